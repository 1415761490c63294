//! The channel by script: who is written when, and who hears what.

use std::io;

use krafka_protocol::script::Script;

use super::*;
use crate::network::frames::FrameError;

/// A waiter by name; one whose name begins with `-` has gone away.
pub(super) type Who = &'static str;

impl Waiter for Who {
    fn is_abandoned(&self) -> bool {
        self.starts_with('-')
    }
}

pub(super) type Act = Action<Who, Who>;
pub(super) type Test = Script<Channel<Who, Who>>;

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
pub(super) const IDLE: Duration = Duration::from_secs(540);
pub(super) const RULES: Rules =
    Rules { max_in_flight: 2, max_idle: IDLE, renew_at: None, renewal_timeout: SECOND, muted_until: None };

/// Runs a scenario on a channel with room for two requests in flight.
fn channel(scenario: impl Fn(&mut Test)) {
    Script::run(|now| Channel::new(RULES, now), scenario);
}

pub(super) fn ask(id: i32, who: Who) -> Input<Who, Who> {
    Input::Submitted(Queued { correlation_id: id, frame: who, waiter: who, timeout: TIMEOUT, is_answered: true })
}

pub(super) fn tell(id: i32, who: Who) -> Input<Who, Who> {
    Input::Submitted(Queued { correlation_id: id, frame: who, waiter: who, timeout: TIMEOUT, is_answered: false })
}

pub(super) fn answer(correlation_id: i32) -> Input<Who, Who> {
    Input::Received { correlation_id, body: Bytes::new() }
}

pub(super) fn answered(waiter: Who) -> Act {
    answered_after(waiter, Duration::ZERO)
}

pub(super) fn answered_after(waiter: Who, took: Duration) -> Act {
    Action::Answer { waiter, body: Bytes::new(), took }
}

pub(super) fn failed(waiter: Who, failure: Failure) -> Act {
    Action::Fail { waiter, failure, possibly_written: true }
}

pub(super) fn refused(waiter: Who, failure: Failure) -> Act {
    Action::Fail { waiter, failure, possibly_written: false }
}

pub(super) fn owed(channel: &Channel<Who, Who>) -> usize {
    channel.pending()
}

#[test]
fn requests_are_written_in_order_up_to_the_limit() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b")).input(ask(3, "c"));
        assert_eq!(script.actions(), [Action::Write("a"), Action::Write("b")]);

        script.input(answer(1));
        assert_eq!(script.actions(), [answered("a"), Action::Write("c")]);

        script.input(answer(2)).input(answer(3));
        assert_eq!(script.actions(), [answered("b"), answered("c")]);
    });
}

/// CB-15.
#[test]
fn request_timeout_closes_the_connection() {
    channel(|script| {
        script.input(ask(1, "a")).after(SECOND).input(ask(2, "b")).input(ask(3, "c"));
        script.actions();

        script.at(TIMEOUT);

        let expected = [
            failed("a", Failure::TimedOut(TIMEOUT)),
            failed("b", Failure::Behind),
            refused("c", Failure::Behind),
            Action::Close(Failure::TimedOut(TIMEOUT)),
        ];
        assert_eq!(script.timed_actions(), expected.map(|action| (TIMEOUT, action)));
        script.close(answer(1), owed);
        assert_eq!(script.actions(), [], "late bytes reach nobody");
    });
}

/// At `max_connections` others wait for its end: a throttle may take minutes.
#[test]
fn a_retired_connection_closes_when_nobody_waits_for_what_it_has_not_written() {
    channel(|script| {
        script.input(ask(1, "a")).input(Input::Written).input(answer(1)).input(Input::Throttled(60 * SECOND));
        script.input(ask(2, "-b"));
        script.actions();

        script.input(Input::Retired);

        let expected = [Action::Drain, refused("-b", Failure::Closed), Action::Close(Failure::Closed)];
        assert_eq!(script.actions(), expected);
    });
}

#[test]
fn the_timeout_starts_at_the_write() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b")).input(ask(3, "c"));
        script.at(20 * SECOND).input(answer(1)).input(answer(2));
        script.actions();

        script.at(49 * SECOND);
        assert_eq!(script.actions(), [], "c was written after 20 s");

        script.at(50 * SECOND);
        assert_eq!(script.actions()[0], failed("c", Failure::TimedOut(TIMEOUT)));
    });
}

/// CB-16.
#[test]
fn an_unknown_correlation_id_is_a_protocol_error() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b"));
        script.actions();

        script.input(answer(7));

        let failure = Failure::Unexpected { expected: Some(1), received: 7 };
        let expected = [failed("a", failure.clone()), failed("b", Failure::Behind), Action::Close(failure)];
        assert_eq!(script.actions(), expected);
    });
}

/// CB-16.
#[test]
fn swapped_answers_reach_nobody() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b"));
        script.actions();

        script.input(answer(2)).input(answer(1));

        assert!(!script.actions().iter().any(|action| matches!(action, Action::Answer { .. })));
    });
}

#[test]
fn an_answer_that_nobody_asked_for_closes_the_connection() {
    channel(|script| {
        script.input(answer(1));

        assert_eq!(script.actions(), [Action::Close(Failure::Unexpected { expected: None, received: 1 })]);
    });
}

/// TH-01.
#[test]
fn throttle_mutes_writes() {
    channel(|script| {
        script.input(ask(1, "a")).input(answer(1)).input(Input::Throttled(5 * SECOND));
        script.actions();

        script.after(SECOND).input(ask(2, "b")).at(5 * SECOND - Duration::from_millis(1));
        assert_eq!(script.actions(), []);

        script.at(5 * SECOND);
        assert_eq!(script.timed_actions(), [(5 * SECOND, Action::Write("b"))]);
    });
}

/// TH-01: the handshake's answer asked for it.
#[test]
fn a_channel_may_begin_in_silence() {
    let begin = |now| Channel::new(Rules { muted_until: Some(now + 5 * SECOND), ..RULES }, now);
    Script::run(begin, |script: &mut Test| {
        script.input(ask(1, "a")).after(5 * SECOND);

        assert_eq!(script.timed_actions(), [(5 * SECOND, Action::Write("a"))]);
    });
}

/// TH-04: what was written before the throttle waits for as long as the broker does not read, and is not late.
#[test]
fn a_throttle_is_no_timeout() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b")).input(answer(1)).input(Input::Throttled(40 * SECOND));
        script.input(ask(3, "c"));
        script.actions();

        script.at(69 * SECOND);
        assert_eq!(script.timed_actions(), [(40 * SECOND, Action::Write("c"))]);

        script.at(70 * SECOND);
        assert_eq!(script.timed_actions()[0], (70 * SECOND, failed("b", Failure::TimedOut(TIMEOUT))));
    });
}

#[test]
fn overlapping_throttles_do_not_add_up() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b")).input(answer(1)).input(Input::Throttled(10 * SECOND));
        script.at(5 * SECOND).input(Input::Throttled(10 * SECOND)).input(Input::Throttled(SECOND));
        script.input(ask(3, "c"));
        script.actions();

        script.at(15 * SECOND);
        assert_eq!(script.timed_actions(), [(15 * SECOND, Action::Write("c"))]);
        script.at(45 * SECOND);
        // It had 15 s of silence on top. So long has the other, which was written when they were over.
        let late = failed("b", Failure::TimedOut(TIMEOUT));
        assert_eq!(script.timed_actions()[0], (TIMEOUT + 15 * SECOND, late));
    });
}

/// TH-04: also of one that is done when the socket has taken it, which it does not while the broker reads nothing.
#[test]
fn a_request_without_an_answer_gets_the_silence_on_top() {
    channel(|script| {
        script.input(ask(1, "a")).input(tell(2, "b")).input(Input::Written);
        script.input(answer(1)).input(Input::Throttled(10 * SECOND));
        script.actions();

        script.at(45 * SECOND);

        let late = failed("b", Failure::TimedOut(TIMEOUT));
        assert_eq!(script.timed_actions()[0], (TIMEOUT + 10 * SECOND, late));
    });
}

/// TH-07.
#[test]
fn an_absurd_throttle_is_capped() {
    channel(|script| {
        script.input(ask(1, "a")).input(answer(1)).input(Input::Throttled(86_400 * SECOND)).input(ask(2, "b"));
        script.actions();

        script.at(300 * SECOND);

        assert_eq!(script.timed_actions(), [(300 * SECOND, Action::Write("b"))]);
    });
}

#[test]
fn a_request_abandoned_before_the_write_is_never_written() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b")).input(ask(3, "-c")).input(ask(4, "d"));
        script.actions();

        script.input(answer(1));

        assert_eq!(script.actions(), [answered("a"), Action::Write("d")]);
    });
}

/// Who gave up during a long throttle takes no room from others.
#[test]
fn abandoned_requests_make_room() {
    channel(|script| {
        script.input(Input::Throttled(60 * SECOND));
        for _ in 0..MAX_WAITING_REQUESTS {
            script.input(ask(1, "-gone"));
        }
        script.input(ask(2, "a"));
        assert_eq!(script.actions(), []);

        for _ in 1..MAX_WAITING_REQUESTS {
            script.input(ask(3, "b"));
        }
        script.input(ask(4, "c"));
        assert_eq!(script.actions(), [refused("c", Failure::Full)]);

        script.at(60 * SECOND);
        assert_eq!(script.actions()[0], Action::Write("a"));
    });
}

#[test]
fn the_answer_to_an_abandoned_request_is_not_the_next_ones() {
    channel(|script| {
        // "a" goes away after its write; the channel only notices that its answer has no taker.
        script.input(ask(1, "a")).input(ask(2, "b"));
        script.actions();

        script.input(answer(1)).input(answer(2));

        assert_eq!(script.actions(), [answered("a"), answered("b")]);
    });
}

/// CB-14.
#[test]
fn a_lost_connection_fails_each_request_once() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b")).input(ask(3, "c"));
        script.actions();
        let lost = Loss::Failed(io::ErrorKind::ConnectionReset, "reset".to_owned());

        script.input(Input::Lost(lost.clone())).input(Input::Lost(Loss::Ended)).input(answer(1));

        let failure = Failure::Lost(lost);
        let expected = [
            failed("a", failure.clone()),
            failed("b", failure.clone()),
            refused("c", failure.clone()),
            Action::Close(failure),
        ];
        assert_eq!(script.actions(), expected);
        assert_eq!(script.machine().deadline(), None);
    });
}

#[test]
fn garbage_is_told_to_the_oldest_request_only() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b"));
        script.actions();
        let garbage = Failure::Lost(Loss::Garbage(FrameError::Http));

        script.input(Input::Lost(Loss::Garbage(FrameError::Http)));

        assert_eq!(script.actions()[..2], [failed("a", garbage), failed("b", Failure::Behind)]);
    });
}

#[test]
fn requests_after_the_end_are_refused() {
    channel(|script| {
        script.input(Input::Lost(Loss::Ended)).input(ask(1, "a"));

        assert_eq!(script.actions()[1..], [refused("a", Failure::Closed)]);
        script.close(ask(2, "b"), owed);
    });
}

/// acks=0: there is no answer, and none is waited for.
#[test]
fn an_unanswered_request_is_done_when_it_is_written() {
    channel(|script| {
        script.input(tell(1, "a")).input(ask(2, "b"));
        assert_eq!(script.actions(), [Action::Write("a"), Action::Write("b")]);

        script.input(Input::Written);
        assert_eq!(script.actions(), [Action::Sent("a")]);

        script.input(Input::Written).input(answer(2));
        assert_eq!(script.actions(), [answered("b")]);
    });
}

/// A socket that takes nothing holds back what has no answer, too.
#[test]
fn unanswered_requests_count_until_they_are_written() {
    channel(|script| {
        script.input(tell(1, "a")).input(tell(2, "b")).input(tell(3, "c"));
        assert_eq!(script.actions(), [Action::Write("a"), Action::Write("b")]);

        script.input(Input::Written);
        assert_eq!(script.actions(), [Action::Sent("a"), Action::Write("c")]);

        script.at(TIMEOUT);
        assert_eq!(script.actions()[0], failed("b", Failure::TimedOut(TIMEOUT)));
    });
}

/// CB-13.
#[test]
fn an_idle_connection_closes() {
    channel(|script| {
        script.after(SECOND).input(ask(1, "a")).after(SECOND).input(answer(1));
        script.actions();

        script.at(IDLE + 2 * SECOND);

        assert_eq!(script.timed_actions(), [(IDLE + 2 * SECOND, Action::Close(Failure::Closed))]);
    });
}

/// What has no answer counts as use, too: a producer without acknowledgements sends nothing else.
#[test]
fn what_is_not_answered_keeps_a_connection_from_being_idle() {
    channel(|script| {
        script.at(IDLE - SECOND).input(tell(1, "a"));
        assert_eq!(script.actions(), [Action::Write("a")]);
        script.after(10 * SECOND).input(Input::Written);
        assert_eq!(script.actions(), [Action::Sent("a")]);

        assert_eq!(script.deadline(), Some(2 * IDLE + 9 * SECOND));
    });
}

/// Who gave up while the broker had asked for silence was there a moment ago, and may come again.
#[test]
fn who_gives_up_in_a_silence_keeps_a_connection_from_being_idle() {
    channel(|script| {
        script.at(IDLE - SECOND).input(Input::Throttled(10 * SECOND)).input(ask(1, "-a"));
        assert_eq!(script.actions(), []);

        script.at(IDLE + 9 * SECOND);
        assert_eq!(script.actions(), []);

        assert_eq!(script.deadline(), Some(2 * IDLE + 9 * SECOND));
    });
}

/// CB-31: to close a client once more does not give the brokers more time.
#[test]
fn closing_twice_is_no_longer_than_closing_once() {
    channel(|script| {
        script.input(ask(1, "a")).input(Input::Leaving);
        script.after(CLOSE_PATIENCE / 2).input(Input::Leaving);
        script.actions();

        script.at(CLOSE_PATIENCE);

        assert_eq!(script.actions(), [failed("a", Failure::Left), Action::Close(Failure::Left)]);
    });
}

/// TH-04: a new connection in its place would evade the broker's quota.
#[test]
fn a_muted_connection_is_not_idle() {
    let rules = Rules { max_idle: SECOND, ..RULES };
    Script::run(
        |now| Channel::new(rules, now),
        |script: &mut Test| {
            script.input(Input::Throttled(60 * SECOND)).at(59 * SECOND);
            assert_eq!(script.actions(), []);

            script.at(60 * SECOND);
            assert_eq!(script.actions(), [Action::Close(Failure::Closed)]);
        },
    );
}

/// Fault 26 of the peer: a long request is no idleness.
#[test]
fn a_connection_with_a_request_in_flight_is_not_idle() {
    let rules = Rules { max_idle: SECOND, ..RULES };
    Script::run(
        |now| Channel::new(rules, now),
        |script: &mut Test| {
            script.input(ask(1, "a"));
            script.actions();

            script.at(29 * SECOND);

            assert_eq!(script.actions(), []);
        },
    );
}

#[test]
fn a_retired_connection_finishes_what_it_took() {
    channel(|script| {
        script.input(ask(1, "a")).input(ask(2, "b")).input(ask(3, "c")).input(Input::Retired).input(ask(4, "d"));
        assert_eq!(
            script.actions(),
            [Action::Write("a"), Action::Write("b"), Action::Drain, refused("d", Failure::Closed)]
        );

        script.input(answer(1)).input(answer(2)).input(answer(3));

        let expected =
            [answered("a"), Action::Write("c"), answered("b"), answered("c"), Action::Close(Failure::Closed)];
        assert_eq!(script.actions(), expected);
    });
}

#[test]
fn a_flood_of_requests_is_refused() {
    channel(|script| {
        for id in 0..MAX_WAITING_REQUESTS as i32 + 2 {
            script.input(ask(id, "a"));
        }
        script.actions();

        script.input(ask(-1, "late"));

        assert_eq!(script.actions(), [refused("late", Failure::Full)]);
    });
}

/// A caller that gives up after its request was written.
#[derive(Debug, Default, Clone)]
struct Fickle(std::rc::Rc<std::cell::Cell<bool>>);

impl Waiter for Fickle {
    fn is_abandoned(&self) -> bool {
        self.0.get()
    }
}

/// A long poll that nobody waits for must not keep a released connection open.
#[test]
fn a_retired_connection_does_not_wait_for_what_nobody_waits_for() {
    let now = crate::drive::now();
    let rules = Rules { max_idle: SECOND, ..RULES };
    let mut channel: Channel<&str, Fickle> = Channel::new(rules, now);
    let caller = Fickle::default();
    let poll = Queued { correlation_id: 1, frame: "poll", waiter: caller.clone(), timeout: SECOND, is_answered: true };
    channel.handle(Input::Submitted(poll), now);
    assert!(matches!(channel.poll(now), Some(Action::Write("poll"))));
    channel.handle(Input::Written, now);

    channel.handle(Input::Retired, now);
    assert!(matches!(channel.poll(now), Some(Action::Drain)));
    assert!(channel.poll(now).is_none(), "somebody waits for the answer");
    caller.0.set(true);

    assert!(matches!(channel.poll(now), Some(Action::Fail { possibly_written: true, .. })));
    assert!(matches!(channel.poll(now), Some(Action::Close(Failure::Closed))));
}
