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

/// CB-20: where `max_connections` left no room, nobody was asked, and nobody failed.
#[test]
fn a_broker_that_was_not_asked_did_not_fail() {
    connected(|script| {
        load(script, &["orders"], "a");
        assert_eq!(acts(script), [r#"fetch ["orders"] from [1, 2]"#]);

        for _ in 0..5 {
            let no_room = crate::network::no_room("opening a connection", "all 1 are in use".to_owned());
            answer_with(script, Err(no_room));
            assert_eq!(acts(script), [""; 0], "whoever waits goes on waiting");
            script.after(SECOND);
            assert_eq!(acts(script), [r#"fetch ["orders"] from [1, 2]"#], "all of them are asked anew");
        }
        succeed(script, 5);

        assert_eq!(acts(script), ["publish 2", "a: version 2"]);
        let metadata = &script.machine().registry.metadata;
        assert_eq!((metadata.rebootstraps.get(), metadata.failures.get()), (0, 0));
        assert_eq!(script.machine().failing_since, None);
    });
}
