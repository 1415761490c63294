//! CB-20: fewer connections than brokers. Whose turn it is, how long it takes, and who goes along.

use super::*;

/// What a machine with so many connections does, in short; the test sets how many requests are pending.
struct Cluster {
    slots: Slots<Watched, &'static str, &'static str>,
    connections: BTreeMap<i32, Watched>,
    now: Instant,
}

const SOON: Duration = Duration::from_millis(20);

fn cluster(max_connections: usize) -> Cluster {
    Cluster { slots: Slots::new(max_connections, 1), connections: BTreeMap::new(), now: crate::drive::now() }
}

impl Cluster {
    fn told(&mut self, input: Input<Watched, &'static str, &'static str>) -> Vec<String> {
        self.slots.handle(input, self.now);
        let acts = std::iter::from_fn(|| self.slots.poll(self.now)).map(|action| match action {
            Action::Dial { node, key } => format!("dial {} {:?}", node.id, key.lane),
            Action::Give { connection, waiter } => format!("give {} to {waiter}", connection.0),
            Action::Refuse { waiter, .. } => format!("refuse {waiter}"),
            Action::Retire(connection) | Action::Leave(connection) => format!("retire {}", connection.0),
        });
        acts.collect()
    }

    fn want(&mut self, id: i32, lane: Lane, waiter: &'static str) -> Vec<String> {
        self.told(want_at(id, lane, waiter))
    }

    /// An attempt succeeds, and a request is on its way.
    fn connect(&mut self, id: i32, lane: Lane) -> Vec<String> {
        let connection = Watched(id as u32, std::rc::Rc::new(std::cell::Cell::new(1)));
        self.connections.insert(id, connection.clone());
        self.told(Input::Connected { key: Key::new(&node(id), lane), connection })
    }

    fn answer(&self, id: i32) {
        self.connections[&id].1.set(0);
    }

    fn look_after(&mut self, time: Duration) -> Vec<String> {
        self.now += time;
        self.told(Input::Looked)
    }
}

fn want_at(id: i32, lane: Lane, waiter: &'static str) -> Input<Watched, &'static str, &'static str> {
    Input::Wanted { node: node(id), lane, waiter }
}

#[test]
fn a_connection_that_is_kept_busy_is_had_for_a_turn() {
    let mut one = cluster(1);
    assert_eq!(one.want(1, Fetch(7), "a"), ["dial 1 Fetch(7)"]);
    assert_eq!(one.connect(1, Fetch(7)), ["give 1 to a"]);

    assert!(one.want(2, Fetch(7), "b").is_empty());
    assert!(one.look_after(TURN - SOON).is_empty(), "its turn is not over");
    assert_eq!(one.look_after(SOON), ["retire 1"]);
    assert!(one.look_after(PACE).is_empty(), "it has not done what it was asked");
    assert!(one.want(1, Fetch(7), "a").is_empty(), "it is at the end now");
    one.answer(1);
    assert_eq!(one.look_after(SOON), ["dial 2 Fetch(7)"]);
    assert_eq!(one.connect(2, Fetch(7)), ["give 2 to b"]);
    assert_eq!(one.look_after(PACE), ["retire 2"], "and so on");
    one.answer(2);
    assert_eq!(one.look_after(SOON), ["dial 1 Fetch(7)"]);
    assert!(!one.slots.is_waiting());
}

/// One that is given up is open until its last answer, also where its own lane is the next to want one.
#[test]
fn one_that_leaves_counts_until_it_is_gone() {
    let mut two = cluster(2);
    for id in [1, 2] {
        two.want(id, Fetch(7), "a");
        two.connect(id, Fetch(7));
    }
    two.want(3, Fetch(7), "b");
    assert_eq!(two.look_after(PACE), ["retire 1"]);
    assert!(two.want(1, Fetch(7), "c").is_empty());
    two.answer(2);
    assert_eq!(two.look_after(PACE), ["retire 2", "dial 3 Fetch(7)"]);
    assert_eq!(two.connect(3, Fetch(7)), ["give 3 to b"]);
    assert!(two.look_after(SOON).is_empty(), "two are open");
    two.answer(1);
    assert_eq!(two.look_after(SOON), ["dial 1 Fetch(7)"]);
}

#[test]
fn one_that_is_idle_makes_room_at_once_but_not_before_it_was_used() {
    let mut one = cluster(1);
    one.want(1, Produce, "a");
    one.connect(1, Produce);
    one.answer(1);

    assert!(one.want(2, Produce, "b").is_empty(), "it was just handed over");
    assert_eq!(one.look_after(GRACE), ["retire 1", "dial 2 Produce"]);
}

#[test]
fn turns_are_taken_in_the_order_of_who_came() {
    let mut one = cluster(1);
    one.want(1, Produce, "a");
    one.connect(1, Produce);
    for (id, waiter) in [(3, "c"), (2, "b"), (3, "d")] {
        assert!(one.want(id, Produce, waiter).is_empty());
    }
    one.answer(1);
    one.now += SOON;

    assert!(one.want(4, Produce, "e").contains(&"dial 3 Produce".to_owned()), "whoever comes later");
    assert_eq!(one.connect(3, Produce), ["give 3 to c", "give 3 to d"]);
    one.answer(3);
    assert_eq!(one.look_after(PACE), ["retire 3", "dial 2 Produce"]);
}

/// Whose broker is connected to goes along, where that is no rebalance.
#[test]
fn lanes_of_one_broker_go_together() {
    let mut one = cluster(1);
    one.want(1, Produce, "a");
    one.connect(1, Produce);
    for (lane, waiter) in [(Fetch(7), "b"), (Produce, "c"), (Join(7), "d"), (Control, "e"), (Own(1), "f")] {
        assert!(one.want(2, lane, waiter).is_empty());
    }
    one.answer(1);

    assert_eq!(one.look_after(SOON), ["retire 1", "dial 2 Fetch(7)"]);
    assert_eq!(one.connect(2, Fetch(7)), ["give 2 to b", "give 2 to c", "give 2 to e"]);
    one.answer(2);
    assert_eq!(one.look_after(PACE), ["retire 2", "dial 2 Join(7)"]);
}

#[test]
fn who_gave_up_has_no_turn() {
    let mut one = cluster(1);
    one.want(1, Produce, "a");
    one.connect(1, Produce);
    one.want(2, Produce, "-b");
    one.want(3, Produce, "c");
    one.answer(1);

    assert_eq!(one.look_after(SOON), ["retire 1", "dial 3 Produce"]);
}

#[test]
fn who_waits_for_an_address_that_failed_meanwhile_is_told() {
    let mut one = cluster(1);
    one.want(1, Produce, "a");
    one.want(2, Produce, "b");
    assert_eq!(
        one.told(Input::Failed { key: Key::new(&node(1), Produce), error: "down" }),
        ["refuse a", "dial 2 Produce"]
    );
    one.connect(2, Produce);
    one.want(1, Fetch(7), "c");
    assert!(!one.slots.is_waiting(), "it is left alone for a while");
}

/// Handshakes are dear: however many wait, connections are given up one by one.
#[test]
fn many_who_wait_do_not_end_all_connections_at_once() {
    let mut fifty = cluster(50);
    for id in 1..=50 {
        fifty.want(id, Fetch(7), "a");
        fifty.connect(id, Fetch(7));
    }
    for id in 51..=80 {
        fifty.want(id, Fetch(7), "b");
    }

    let mut retired = 0;
    for _ in 0..100 {
        retired += fifty.look_after(LOOK).iter().filter(|act| act.starts_with("retire")).count();
    }

    assert!((10..=20).contains(&retired), "{retired} in a second");
}

#[test]
fn closing_and_releasing_refuse_those_who_wait() {
    let mut one = cluster(1);
    one.want(1, Control, "a");
    one.connect(1, Control);
    one.want(2, Fetch(7), "b");
    one.want(2, Produce, "c");

    assert_eq!(one.told(Input::Released { lanes: vec![Fetch(7)] }), ["refuse b"]);
    assert_eq!(one.told(Input::Closed), ["refuse c", "retire 1"]);
    assert!(!one.slots.is_waiting());
}

/// Any broker can serve metadata: at the cap one that is connected to, whatever for, but for joins.
#[test]
fn at_the_limit_brokers_with_a_connection_cost_less() {
    let mut two = cluster(2);
    two.want(1, Join(7), "a");
    two.connect(1, Join(7));
    let before = [1, 2, 3].map(|id| two.slots.cost(&node(id), Control, two.now));
    assert!(before[0] == before[1] && before[1] == before[2], "there is room: {before:?}");
    two.want(2, Fetch(7), "b");
    two.connect(2, Fetch(7));

    let [joining, fetching, none] = [1, 2, 3].map(|id| two.slots.cost(&node(id), Control, two.now));

    assert!(fetching < joining && joining == none, "{joining} {fetching} {none}");
}
