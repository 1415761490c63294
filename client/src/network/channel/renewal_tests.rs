//! Sessions that end (KIP-368), by script: what is held back, what the broker hears, and who is told when it fails.

use krafka_protocol::script::Script;

use super::tests::{
    IDLE, RULES, SECOND, TIMEOUT, Test, Who, answer, answered, answered_after, ask, failed, owed, refused, tell,
};
use super::*;

/// Runs a scenario on a channel whose session is to be renewed after ten seconds.
fn ending(scenario: impl Fn(&mut Test)) {
    Script::run(|now| Channel::new(Rules { renew_at: Some(now + 10 * SECOND), ..RULES }, now), scenario);
}

/// AU-07: what was in flight is answered, then SASL is spoken, then the rest is written, in order.
#[test]
fn a_session_is_renewed_between_two_requests() {
    ending(|script| {
        script.at(9 * SECOND).input(ask(1, "a")).input(ask(2, "b")).input(ask(3, "c"));
        assert_eq!(script.actions(), [Action::Write("a"), Action::Write("b")]);

        script.at(10 * SECOND).input(answer(1));
        assert_eq!(script.actions(), [answered_after("a", SECOND)], "b is still in flight");
        script.input(answer(2));
        assert_eq!(script.actions(), [answered_after("b", SECOND), Action::Renew]);
        script.input(ask(4, "d")).input(Input::Said("sasl"));
        assert_eq!(script.actions(), [Action::Write("sasl")]);
        script.input(Input::Written).input(answer(7));
        assert_eq!(script.actions(), [Action::Heard(Bytes::new())]);

        script.input(Input::Renewed(Some(script.now() + 10 * SECOND)));
        assert_eq!(script.actions(), [Action::Write("c"), Action::Write("d")]);
    });
}

/// AU-07: the broker is told again as often as it wants to be.
#[test]
fn a_renewed_session_is_renewed_again() {
    ending(|script| {
        script.at(10 * SECOND).input(ask(1, "a"));
        assert_eq!(script.actions(), [Action::Renew]);
        script.input(Input::Renewed(Some(script.now() + 10 * SECOND))).input(answer(1));
        assert_eq!(script.actions(), [Action::Write("a"), answered("a")]);

        script.at(19 * SECOND).input(ask(2, "b")).input(answer(2));
        assert_eq!(script.actions(), [Action::Write("b"), answered("b")]);
        script.at(20 * SECOND).input(ask(3, "c"));
        assert_eq!(script.actions(), [Action::Renew]);
    });
}

/// AU-08.
#[test]
fn a_renewal_without_a_lifetime_is_the_last() {
    ending(|script| {
        script.at(10 * SECOND).input(ask(1, "a")).input(Input::Renewed(None)).input(answer(1));
        script.actions();

        script.at(500 * SECOND).input(ask(2, "b"));

        assert_eq!(script.actions(), [Action::Write("b")]);
    });
}

/// A connection that nobody uses does not talk to the broker; it closes when it has been idle for long enough.
#[test]
fn an_unused_session_is_not_renewed() {
    ending(|script| {
        script.at(10 * SECOND);
        assert_eq!(script.actions(), []);

        script.input(ask(1, "-gone"));
        assert_eq!(script.actions(), [], "nobody waits for it");
        script.at(10 * SECOND + IDLE);
        assert_eq!(script.actions(), [Action::Close(Failure::Closed)]);
    });
}

/// acks=0: there is no answer to wait for, only the write.
#[test]
fn what_is_not_answered_is_written_before_the_renewal() {
    ending(|script| {
        script.at(9 * SECOND).input(tell(1, "a"));
        script.actions();
        script.at(10 * SECOND).input(tell(2, "b"));
        assert_eq!(script.actions(), []);

        script.input(Input::Written);

        assert_eq!(script.actions(), [Action::Sent("a"), Action::Renew]);
    });
}

/// The broker reads nothing while it mutes the client.
#[test]
fn a_throttle_comes_before_the_renewal() {
    ending(|script| {
        script.at(9 * SECOND).input(ask(1, "a")).input(answer(1)).input(Input::Throttled(5 * SECOND));
        script.actions();

        script.at(11 * SECOND).input(ask(2, "b")).at(14 * SECOND);

        assert_eq!(script.timed_actions(), [(14 * SECOND, Action::Renew)]);
    });
}

/// AU-09: whoever waited goes to another connection, on which it is found out what is wrong.
#[test]
fn a_session_that_cannot_be_renewed_closes_the_connection() {
    let refusing = |input: fn() -> Input<Who, Who>, failure: Failure| {
        ending(|script| {
            script.at(10 * SECOND).input(ask(1, "a")).input(ask(2, "b"));
            script.actions();

            script.input(input());

            let refusals = ["a", "b"].map(|who| refused(who, failure.clone()));
            assert_eq!(script.actions()[..2], refusals);
            script.close(answer(1), owed);
        });
    };
    refusing(|| Input::Unrenewed, Failure::Unrenewed);
    refusing(|| Input::Lost(Loss::Ended), Failure::Lost(Loss::Ended));
}

#[test]
fn a_renewal_takes_no_longer_than_it_may() {
    ending(|script| {
        script.at(10 * SECOND).input(ask(1, "a")).input(Input::Said("sasl"));
        script.actions();

        script.at(11 * SECOND);

        let expected = [refused("a", Failure::Unrenewed), Action::Close(Failure::Unrenewed)];
        assert_eq!(script.timed_actions(), expected.map(|action| (11 * SECOND, action)));
    });
}

/// A request that the broker keeps for long does not make those behind it late: they have not been written.
#[test]
fn a_request_in_flight_keeps_its_own_timeout() {
    ending(|script| {
        script.at(9 * SECOND).input(ask(1, "a"));
        script.actions();
        script.at(10 * SECOND).input(ask(2, "b"));
        assert_eq!(script.actions(), []);

        script.at(9 * SECOND + TIMEOUT);

        let failure = Failure::TimedOut(TIMEOUT);
        assert_eq!(script.actions()[..2], [failed("a", failure), refused("b", Failure::Behind)]);
    });
}

/// What was taken before the connection was given up is still done.
#[test]
fn a_retired_connection_is_renewed_for_what_it_took() {
    ending(|script| {
        script.at(10 * SECOND).input(ask(1, "a")).input(Input::Retired);
        assert_eq!(script.actions(), [Action::Renew, Action::Drain]);

        script.input(Input::Renewed(None)).input(answer(1));

        assert_eq!(script.actions(), [Action::Write("a"), answered("a"), Action::Close(Failure::Closed)]);
    });
}

/// AU-07: brokers take no second renewal within a second of the first, so that a session of half a second after one
/// (a token that is about to end) ends with its connection: in time, and without a word to the broker.
#[test]
fn a_session_too_short_to_be_renewed_again_ends_with_its_connection() {
    ending(|script| {
        script.at(10 * SECOND).input(ask(1, "a"));
        assert_eq!(script.actions(), [Action::Renew]);
        script.input(Input::Renewed(Some(script.now() + SECOND / 2))).input(ask(2, "b")).input(ask(3, "c"));
        assert_eq!(script.actions(), [Action::Write("a"), Action::Write("b")]);

        script.at(10 * SECOND + SECOND / 2);

        assert_eq!(script.actions(), [Action::Drain, refused("c", Failure::Unrenewed)]);
        script.input(answer(1)).input(ask(4, "d")).input(answer(2));
        let last = [answered_after("a", SECOND / 2), refused("d", Failure::Closed), answered_after("b", SECOND / 2)];
        assert_eq!(script.actions()[..3], last);
        script.close(answer(1), owed);
    });
}

/// AU-07: nobody finds a connection whose last session is over.
#[test]
fn a_last_session_ends_also_when_nobody_asks() {
    ending(|script| {
        script.at(10 * SECOND).input(ask(1, "a"));
        script.input(Input::Renewed(Some(script.now() + SECOND / 2))).input(answer(1));
        script.actions();

        script.at(11 * SECOND);

        let expected = [Action::Drain, Action::Close(Failure::Closed)];
        assert_eq!(script.timed_actions(), expected.map(|action| (10 * SECOND + SECOND / 2, action)));
    });
}

/// AU-07: the limit is that of a second renewal: Kafka counts from the renewal before.
#[test]
fn the_first_session_is_renewed_however_short_it_is() {
    let soon = |now| Channel::new(Rules { renew_at: Some(now + SECOND / 10), ..RULES }, now);
    Script::run(soon, |script: &mut Test| {
        script.at(SECOND / 10).input(ask(1, "a"));

        assert_eq!(script.actions(), [Action::Renew]);
    });
}
