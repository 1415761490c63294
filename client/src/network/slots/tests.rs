//! The pool's slots by script.

use krafka_protocol::script::Script;

use super::*;

mod taking_turns;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conn {
    number: u32,
    is_closed: bool,
    pending: usize,
    is_muted: bool,
}

impl Slotted for Conn {
    fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn pending(&self) -> usize {
        self.pending
    }

    fn is_muted(&self) -> bool {
        self.is_muted
    }

    fn has_ended(&self) -> bool {
        self.pending == 0
    }
}

type Test = Script<Slots<Conn, &'static str, &'static str>>;
type Act = Action<Conn, &'static str, &'static str>;

fn idle(number: u32) -> Conn {
    Conn { number, is_closed: false, pending: 0, is_muted: false }
}

fn busy(number: u32) -> Conn {
    Conn { pending: 1, ..idle(number) }
}

fn node(id: i32) -> Node {
    Node { id, host: Str::from("host"), port: 9000 + id as u16, rack: None }
}

fn slots(scenario: impl Fn(&mut Test)) {
    Script::run(|_| Slots::new(usize::MAX, 1), scenario);
}

fn want(id: i32, lane: Lane, waiter: &'static str) -> Input<Conn, &'static str, &'static str> {
    Input::Wanted { node: node(id), lane, waiter }
}

fn connected(id: i32, lane: Lane, connection: Conn) -> Input<Conn, &'static str, &'static str> {
    Input::Connected { key: Key::new(&node(id), lane), connection }
}

fn failed(id: i32, lane: Lane) -> Input<Conn, &'static str, &'static str> {
    Input::Failed { key: Key::new(&node(id), lane), error: "refused" }
}

fn dial(id: i32, lane: Lane) -> Act {
    Action::Dial { key: Key::new(&node(id), lane), node: node(id) }
}

fn give(waiter: &'static str, connection: Conn) -> Act {
    Action::Give { waiter, connection }
}

fn refuse(waiter: &'static str, refusal: Refusal<&'static str>) -> Act {
    Action::Refuse { waiter, refusal }
}

use Lane::{Control, Coordination, Fetch, Join, Own, Produce};

/// CB-10.
#[test]
fn concurrent_callers_share_one_attempt() {
    slots(|script| {
        script.input(want(1, Control, "a")).input(want(1, Control, "b"));
        assert_eq!(script.actions(), [dial(1, Control)]);

        script.input(connected(1, Control, idle(1))).input(want(1, Control, "c"));
        assert_eq!(script.actions(), [give("a", idle(1)), give("b", idle(1)), give("c", idle(1))]);
    });
}

#[test]
fn lanes_and_brokers_have_connections_of_their_own() {
    slots(|script| {
        script.input(want(1, Control, "a")).input(want(1, Produce, "b")).input(want(2, Control, "c"));
        script.input(want(1, Fetch(1), "d")).input(want(1, Fetch(2), "e"));

        let expected = [dial(1, Control), dial(1, Produce), dial(2, Control), dial(1, Fetch(1)), dial(1, Fetch(2))];
        assert_eq!(script.actions(), expected);
    });
}

/// CB-12, CB-13.
#[test]
fn a_closed_connection_is_replaced() {
    slots(|script| {
        let closed = Conn { is_closed: true, ..idle(1) };
        script.input(want(1, Control, "a")).input(connected(1, Control, closed));
        script.actions();

        script.input(want(1, Control, "b"));

        assert_eq!(script.actions(), [dial(1, Control)]);
    });
}

#[test]
fn a_failed_attempt_fails_all_who_wait_and_all_who_come_soon() {
    slots(|script| {
        script.input(want(1, Control, "a")).input(want(1, Control, "b")).input(failed(1, Control));
        script.after(Duration::from_millis(39)).input(want(1, Control, "c")).input(want(1, Produce, "d"));

        let expected = [
            dial(1, Control),
            refuse("a", Refusal::Failed("refused")),
            refuse("b", Refusal::Failed("refused")),
            refuse("c", Refusal::Failed("refused")),
            refuse("d", Refusal::Failed("refused")),
        ];
        assert_eq!(script.actions(), expected);
    });
}

/// Fails an attempt, then asks every millisecond until there is another; how long that took.
fn failed_then_wait(script: &mut Test) -> u128 {
    script.input(failed(1, Control));
    script.actions();
    let start = script.elapsed();
    loop {
        script.after(Duration::from_millis(1)).input(want(1, Control, "w"));
        if script.actions() == [dial(1, Control)] {
            return (script.elapsed() - start).as_millis();
        }
    }
}

/// CB-09.
#[test]
fn repeated_failures_back_off_and_success_resets() {
    slots(|script| {
        script.input(want(1, Control, "a"));

        for middle in [50, 100, 200, 400, 800, 1_000, 1_000] {
            let waited = failed_then_wait(script);
            assert!((middle * 8 / 10..=middle * 12 / 10 + 1).contains(&waited), "{waited} ms, not about {middle}");
        }

        let closed = Conn { is_closed: true, ..idle(1) };
        script.input(connected(1, Control, closed)).input(want(1, Control, "b"));
        let waited = failed_then_wait(script);
        assert!((40..=61).contains(&waited), "{waited} ms after a success");
    });
}

#[test]
fn backoff_is_per_address() {
    slots(|script| {
        script.input(want(1, Control, "a")).input(failed(1, Control));
        script.actions();

        script.input(want(2, Control, "b"));

        assert_eq!(script.actions(), [dial(2, Control)]);
    });
}

#[test]
fn lanes_that_fail_together_are_one_failure() {
    slots(|script| {
        script.input(want(1, Control, "a")).input(want(1, Produce, "b"));
        script.input(failed(1, Produce));

        let waited = failed_then_wait(script);

        assert!(waited <= 61, "{waited} ms");
    });
}

/// CB-22.
#[test]
fn a_broker_that_moves_gets_a_new_connection() {
    slots(|script| {
        script.input(want(1, Control, "a")).input(connected(1, Control, idle(1)));
        script.actions();
        let moved = Node { host: Str::from("elsewhere"), ..node(1) };

        script.input(Input::Wanted { node: moved.clone(), lane: Control, waiter: "b" });

        assert_eq!(script.actions(), [Action::Dial { key: Key::new(&moved, Control), node: moved.clone() }]);
    });
}

fn two_at_most(scenario: impl Fn(&mut Test)) {
    Script::run(|_| Slots::new(2, 1), scenario);
}

#[test]
fn at_the_limit_the_longest_idle_connection_makes_room() {
    two_at_most(|script| {
        script.input(want(1, Control, "a")).input(connected(1, Control, idle(1)));
        script.after(Duration::from_secs(1)).input(want(2, Control, "b")).input(connected(2, Control, idle(2)));
        script.after(Duration::from_secs(1)).input(want(1, Control, "c"));
        script.actions();

        script.input(want(3, Control, "d"));

        assert_eq!(script.actions(), [Action::Retire(idle(2)), dial(3, Control)]);
    });
}

/// CB-20: who wants one to a broker that there is none to waits for a turn, at most for ten seconds.
#[test]
fn at_the_limit_busy_connections_stay() {
    two_at_most(|script| {
        script.input(want(1, Control, "a")).input(connected(1, Control, busy(1))).input(want(2, Control, "b"));
        script.actions();

        script.input(want(3, Control, "c"));

        assert_eq!(script.actions(), []);
        script.after(PATIENCE);
        let full = refuse("c", Refusal::Full { max_connections: 2, waited: PATIENCE });
        assert_eq!(script.actions(), [Action::Retire(busy(1)), full], "to be given up it must be done");
        assert!(!script.machine().is_waiting());
    });
}

/// CB-20.
#[test]
fn at_the_limit_a_lane_borrows_from_another_to_the_same_broker() {
    two_at_most(|script| {
        script.input(want(1, Control, "a")).input(connected(1, Control, busy(1)));
        script.input(want(2, Control, "b")).input(connected(2, Control, busy(2)));
        script.actions();
        assert_eq!(script.machine().fallbacks(), 0);

        script.input(want(1, Coordination(7), "c")).input(want(1, Coordination(7), "d"));

        assert_eq!(script.actions(), [give("c", busy(1)), give("d", busy(1))]);
        assert_eq!(script.machine().fallbacks(), 2);
    });
}

/// Behind what answers at once rather than behind a long poll, and never behind a rebalance.
#[test]
fn at_the_limit_a_lane_borrows_where_it_waits_least() {
    let cases = [
        (Produce, [Fetch(7), Control], Some(Control)),
        (Control, [Fetch(7), Coordination(7)], Some(Coordination(7))),
        (Control, [Join(7), Fetch(7)], Some(Fetch(7))),
        (Fetch(7), [Coordination(7), Produce], Some(Produce)),
        (Join(7), [Control, Coordination(7)], None),
        (Join(7), [Control, Coordination(8)], None),
        (Join(7), [Join(8), Produce], None),
        (Coordination(7), [Join(7), Join(8)], None),
        (Control, [Own(1), Own(2)], None),
        (Own(1), [Control, Produce], None),
    ];
    for (lane, others, expected) in cases {
        two_at_most(|script| {
            for (number, other) in (1..).zip(others) {
                script.input(want(1, other, "w")).input(connected(1, other, busy(number)));
            }
            script.actions();

            script.input(want(1, lane, "a"));

            let number = (1..).zip(others).find_map(|(number, other)| (Some(other) == expected).then_some(number));
            let given: Vec<Act> = number.map(|number| give("a", busy(number))).into_iter().collect();
            assert_eq!(script.actions(), given, "{lane:?} {others:?}");
            assert_eq!(script.machine().is_waiting(), expected.is_none(), "{lane:?} {others:?}");
        });
    }
}

#[test]
fn at_the_limit_a_lane_waits_for_a_connection_that_is_under_way() {
    Script::run(
        |_| Slots::new(1, 1),
        |script: &mut Test| {
            script.input(want(1, Control, "a")).input(want(1, Produce, "b")).input(want(2, Produce, "c"));
            script.input(connected(1, Control, idle(1)));

            assert_eq!(script.actions(), [dial(1, Control), give("a", idle(1)), give("b", idle(1))]);
            script.after(GRACE);
            assert_eq!(script.actions(), [Action::Retire(idle(1))]);
            script.input(Input::Rested);
            assert_eq!(script.actions(), [dial(2, Produce)], "it is gone");
        },
    );
}

/// What is borrowed belongs to another lane: nobody else is retired with the borrower.
#[test]
fn a_lane_that_borrowed_and_is_released_takes_nothing_along() {
    two_at_most(|script| {
        script.input(want(1, Control, "a")).input(connected(1, Control, busy(1)));
        script.input(want(2, Control, "b")).input(connected(2, Control, busy(2))).input(want(1, Fetch(7), "c"));
        script.actions();

        script.input(Input::Released { lanes: vec![Fetch(7)] });

        assert_eq!(script.actions(), []);
    });
}

/// A connection whose pending requests the test sets while it is in its slot. Once it is to end, it does when it has
/// none.
#[derive(Clone)]
struct Watched(u32, std::rc::Rc<std::cell::Cell<usize>>);

impl Slotted for Watched {
    fn is_closed(&self) -> bool {
        false
    }

    fn pending(&self) -> usize {
        self.1.get()
    }

    fn is_muted(&self) -> bool {
        false
    }

    fn has_ended(&self) -> bool {
        self.pending() == 0
    }
}

/// Requests of one lane are in order: it leaves the borrowed connection only when nothing of it can be on its way.
#[test]
fn a_lane_that_borrowed_gets_its_own_when_there_is_room_and_nothing_is_on_its_way() {
    let now = crate::drive::now();
    let mut slots: Slots<Watched, &'static str, &'static str> = Slots::new(2, 1);
    let watched = |number| Watched(number, std::rc::Rc::new(std::cell::Cell::new(1)));
    let (first, second) = (watched(1), watched(2));
    for (id, lane, connection) in [(1, Control, &first), (2, Fetch(7), &second)] {
        slots.handle(Input::Wanted { node: node(id), lane, waiter: "w" }, now);
        slots.handle(Input::Connected { key: Key::new(&node(id), lane), connection: connection.clone() }, now);
    }
    slots.handle(Input::Wanted { node: node(1), lane: Produce, waiter: "w" }, now);
    let produce = Key::new(&node(1), Produce);
    let ready = |slots: &mut Slots<Watched, &'static str, &'static str>| {
        slots.ready(&produce, now).map(|connection| connection.0)
    };
    assert_eq!(ready(&mut slots), Some(1), "borrowed");

    first.1.set(0);
    assert_eq!(ready(&mut slots), Some(1), "there is no room");

    slots.handle(Input::Released { lanes: vec![Fetch(7)] }, now);
    assert_eq!(ready(&mut slots), Some(1), "the other is not gone yet");

    first.1.set(1);
    second.1.set(0);
    assert_eq!(ready(&mut slots), Some(1), "a request is on its way");

    first.1.set(0);
    assert_eq!(ready(&mut slots), None, "it is to have its own");
}

/// CB-20.
#[test]
fn at_the_limit_a_dead_connection_does_not_count() {
    two_at_most(|script| {
        let (dead, busy) = (Conn { is_closed: true, ..idle(1) }, Conn { pending: 1, ..idle(2) });
        script.input(want(1, Control, "a")).input(connected(1, Control, dead));
        script.input(want(2, Control, "b")).input(connected(2, Control, busy));
        script.actions();

        script.input(want(3, Control, "c"));

        assert_eq!(script.actions(), [dial(3, Control)]);
    });
}

/// CB-20: nor does it make room before its socket is closed, as in a good-bye that takes its time.
#[test]
fn at_the_limit_a_closed_connection_counts_until_it_has_ended() {
    two_at_most(|script| {
        let closing = Conn { is_closed: true, ..busy(1) };
        script.input(want(1, Control, "a")).input(connected(1, Control, closing));
        script.input(want(2, Control, "b")).input(connected(2, Control, busy(2)));
        script.actions();

        script.input(want(1, Control, "c")).input(want(3, Control, "d"));

        assert_eq!(script.actions(), []);
    });
}

/// Connections that closed by themselves do not stay for ever, and are not looked for at each attempt.
#[test]
fn closed_connections_are_swept() {
    slots(|script| {
        for id in 0..1_000 {
            let closed = Conn { is_closed: true, ..idle(1) };
            script.input(want(id, Control, "w")).input(connected(id, Control, closed));
            assert!(script.machine().slots.len() <= FEW);
        }
        script.actions();
        for id in 0..1_000 {
            script.input(want(id, Control, "w")).input(connected(id, Control, idle(1)));
        }
        script.actions();

        assert_eq!(script.machine().slots.len(), 1_000, "the others stay");
    });
}

#[test]
fn closing_retires_all_and_refuses_all() {
    slots(|script| {
        script.input(want(1, Control, "a")).input(connected(1, Control, idle(1))).input(want(2, Control, "b"));
        script.actions();

        script.input(Input::Closed).input(want(1, Control, "c")).input(connected(2, Control, idle(2)));

        let expected = [
            Action::Leave(idle(1)),
            refuse("b", Refusal::Closed),
            refuse("c", Refusal::Closed),
            Action::Retire(idle(2)),
        ];
        assert_eq!(script.actions(), expected);
    });
}

#[test]
fn a_released_lane_is_retired_and_the_others_stay() {
    slots(|script| {
        script.input(want(1, Fetch(7), "a")).input(connected(1, Fetch(7), idle(1))).input(want(2, Fetch(7), "b"));
        script.input(want(1, Fetch(8), "c")).input(connected(1, Fetch(8), idle(3)));
        script.actions();

        script.input(Input::Released { lanes: vec![Fetch(7)] }).input(connected(2, Fetch(7), idle(2)));
        script.input(want(1, Fetch(8), "d"));

        let expected =
            [Action::Retire(idle(1)), refuse("b", Refusal::Released), Action::Retire(idle(2)), give("d", idle(3))];
        assert_eq!(script.actions(), expected);
    });
}

/// A producer is closed in its first dial, and another built: there are two attempts for one slot.
#[test]
fn a_lane_that_is_released_while_it_dials_has_one_connection_in_the_end() {
    slots(|script| {
        script.input(want(1, Produce, "a")).input(Input::Released { lanes: vec![Produce] });
        script.input(want(1, Produce, "b"));
        script.actions();

        script.input(connected(1, Produce, idle(1))).input(connected(1, Produce, idle(2)));
        script.input(want(1, Produce, "c"));

        assert_eq!(script.actions(), [give("b", idle(1)), Action::Retire(idle(2)), give("c", idle(1))]);
    });
}

/// The same, where one of the two attempts fails: it takes nothing away from the other.
#[test]
fn an_attempt_that_fails_says_nothing_of_another() {
    let two_attempts = |script: &mut Test| {
        script.input(want(1, Produce, "a")).input(Input::Released { lanes: vec![Produce] });
        script.input(want(1, Produce, "b"));
        script.actions();
    };
    slots(|script| {
        two_attempts(script);
        script.input(connected(1, Produce, idle(1))).input(failed(1, Produce)).input(want(1, Produce, "c"));
        assert_eq!(script.actions(), [give("b", idle(1)), give("c", idle(1))]);
    });
    slots(|script| {
        two_attempts(script);
        script.input(failed(1, Produce));
        assert_eq!(script.actions(), [], "the other may succeed");
        script.input(connected(1, Produce, idle(1)));
        assert_eq!(script.actions(), [give("b", idle(1))]);
    });
    slots(|script| {
        two_attempts(script);
        script.input(failed(1, Produce)).input(failed(1, Produce));
        assert_eq!(script.actions(), [refuse("b", Refusal::Failed("refused"))]);
    });
}

#[test]
fn a_shared_lane_stays_until_its_last_user_has_released_it() {
    slots(|script| {
        script.input(Input::Held { lane: Produce }).input(Input::Held { lane: Produce });
        script.input(want(1, Produce, "a")).input(connected(1, Produce, idle(1)));
        script.actions();

        script.input(Input::Released { lanes: vec![Produce] });
        assert_eq!(script.actions(), []);
        script.input(Input::Released { lanes: vec![Produce] });

        assert_eq!(script.actions(), [Action::Retire(idle(1))]);
    });
}

/// CB-22, MD-22: what was sent to the former address is still answered, what comes next goes to the new one.
#[test]
fn connections_to_a_former_address_run_dry() {
    slots(|script| {
        for id in [1, 2] {
            script.input(want(id, Control, "a")).input(connected(id, Control, idle(id as u32)));
        }
        script.input(want(1, Produce, "dialing"));
        script.actions();
        let moved = Node { host: Str::from("elsewhere"), ..node(1) };

        script.input(Input::Moved { nodes: [(1, Arc::new(moved)), (2, Arc::new(node(2)))].into() });

        assert_eq!(script.actions(), [Action::Retire(idle(1))]);
        script.input(want(2, Control, "b"));
        assert_eq!(script.actions(), [give("b", idle(2))]);
    });
}

/// CB-23, TH-08.
#[test]
fn the_least_loaded_broker_costs_least() {
    slots(|script| {
        for (id, connection) in [
            (1, Conn { pending: 9, ..idle(1) }),
            (2, Conn { pending: 1, ..idle(2) }),
            (3, Conn { is_muted: true, ..idle(3) }),
        ] {
            script.input(want(id, Control, "w")).input(connected(id, Control, connection));
        }
        script.input(want(5, Control, "w")).input(failed(5, Control));
        script.actions();

        let now = script.now();
        let mut ids = [1, 2, 3, 4, 5];
        ids.sort_by_key(|id| script.machine().cost(&node(*id), Control, now));

        assert_eq!(ids, [2, 1, 4, 3, 5], "idle, busy, unconnected, muted, failing");
    });
}
