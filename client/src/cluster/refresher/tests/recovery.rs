//! When the known brokers are given up for the bootstrap servers (KIP-899, KIP-1102).

use super::*;

/// The trigger counts from the first failure since the last success: one failure in the client's youth, and one when it
/// is old, are no five minutes without metadata.
#[test]
fn a_failure_before_a_success_does_not_count() {
    connected(|script| {
        doubt(script, &["a"]);
        acts(script);
        fail(script);
        acts(script);
        succeed(script, 2);
        acts(script);
        // The refresh by age.
        script.after(400 * SECOND);
        acts(script);
        succeed(script, 3);
        acts(script);
        script.after(SECOND);

        doubt(script, &["a"]);
        acts(script);
        fail(script);

        let asked = acts(script);
        let other = ["fetch [\"a\"] from [1]", "fetch [\"a\"] from [2]"];
        assert!(asked.len() == 1 && other.contains(&&*asked[0]), "the other broker is asked, not {asked:?}");
    });
}
