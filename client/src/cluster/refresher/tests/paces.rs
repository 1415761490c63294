//! What is asked about again and again, and what is not made to wait for it.

use super::*;

/// A topic that is missing, and asked about again and again, holds back no other.
#[test]
fn a_topic_in_doubt_does_not_wait_for_others_that_were_asked_about_just_now() {
    connected(|script| {
        doubt(script, &["missing"]);
        assert_eq!(acts(script), ["fetch [\"missing\"] from [1, 2]"]);
        answer_with(script, Ok(response(&[], 1)));
        doubt(script, &["missing"]);
        acts(script);

        doubt(script, &["orders"]);

        assert_eq!(acts(script), ["fetch [\"missing\", \"orders\"] from [1, 2]"], "at once, and the other goes along");
        succeed(script, 1);
        doubt(script, &["missing", "orders"]);
        acts(script);
        script.after(Duration::from_millis(70));
        assert_eq!(acts(script), [""; 0], "both were asked about just now");
    });
}
