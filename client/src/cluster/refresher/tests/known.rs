//! What is known already is enough for who comes second, as long as it is sound.

use super::*;

fn need(script: &mut Test, topics: &[&'static str], waiter: &'static str) {
    script.input(Input::Needed { topics: names(topics), waiter });
}

/// A refresher that knows the topic "orders", and what happens then.
fn knowing_orders(scenario: impl Fn(&mut Test)) {
    connected(|script| {
        load(script, &["orders"], "first");
        succeed(script, 1);
        script.actions();
        scenario(script);
    });
}

/// MD-01: there is neither an answer nor a backoff to wait for.
#[test]
fn what_is_known_is_not_asked_for_again() {
    knowing_orders(|script| {
        need(script, &["orders"], "second");

        assert_eq!(acts(script), ["second: version 2"]);
    });
}

#[test]
fn what_is_known_in_part_is_asked_for() {
    knowing_orders(|script| {
        need(script, &["orders", "other"], "second");
        script.after(SECOND);

        assert_eq!(acts(script), ["fetch [\"orders\", \"other\"] from [1, 2]"]);
    });
}

#[test]
fn what_somebody_doubts_is_waited_for() {
    knowing_orders(|script| {
        doubt(script, &["orders"]);
        need(script, &["orders"], "second");
        script.after(SECOND);
        assert_eq!(acts(script), ["fetch [\"orders\"] from [1, 2]"]);

        need(script, &["orders"], "third");
        assert_eq!(acts(script), [""; 0], "the doubt is on its way");

        succeed(script, 2);
        assert_eq!(acts(script), ["publish 3", "second: version 3", "third: version 3"]);
    });
}

/// The refresh by age is not answered, so that the topic that nobody watches is still there.
#[test]
fn what_is_old_is_asked_for_again() {
    knowing_orders(|script| {
        script.after(2 * MAX_AGE);
        assert_eq!(acts(script), ["fetch [] from [1, 2]"]);

        need(script, &["orders"], "second");
        assert_eq!(acts(script), [""; 0]);

        succeed(script, 1);
        let acts = acts(script);
        assert_eq!(acts.last().expect("the topic is fetched"), "fetch [\"orders\"] from [1, 2]");
    });
}

#[test]
fn what_is_watched_does_not_get_old() {
    connected(|script| {
        script.input(Input::Watched { owner: 1, topics: names(&["orders"]) });
        load(script, &["orders"], "first");
        succeed(script, 1);
        script.after(2 * MAX_AGE);
        succeed(script, 1);
        script.actions();

        need(script, &["orders"], "second");

        assert_eq!(acts(script), ["second: version 2"]);
    });
}

#[test]
fn what_brokers_said_that_are_left_is_asked_for_again() {
    knowing_orders(|script| {
        script.input(Input::Rebootstrap);
        need(script, &["orders"], "second");
        script.after(SECOND);

        let acts = acts(script);
        assert!(acts.iter().all(|act| act.starts_with("fetch")) && !acts.is_empty(), "{acts:?}");
    });
}
