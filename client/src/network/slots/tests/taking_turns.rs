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
        self.acts()
    }

    fn acts(&mut self) -> Vec<String> {
        let acts = std::iter::from_fn(|| self.slots.poll(self.now)).map(|action| match action {
            Action::Dial { node, key } => format!("dial {} {:?}", node.id, key.lane),
            Action::Give { connection, waiter } => format!("give {} to {waiter}", connection.0),
            Action::Refuse { waiter, .. } => format!("refuse {waiter}"),
            Action::Retire(connection) | Action::Leave(connection) => format!("retire {}", connection.0),
        });
        let acts = acts.collect();
        assert!(self.slots.deadline().is_none_or(|time| time > self.now), "it wants to act at once, and has not");
        acts
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

    /// All that was asked of a broker is answered, and the connection says so.
    fn answer(&mut self, id: i32) -> Vec<String> {
        self.connections[&id].1.set(0);
        self.told(Input::Rested)
    }

    /// Time goes by, and nothing else happens.
    fn after(&mut self, time: Duration) -> Vec<String> {
        let (end, mut acts) = (self.now + time, Vec::new());
        while let Some(deadline) = self.slots.deadline().filter(|deadline| *deadline <= end) {
            self.now = deadline;
            acts.extend(self.acts());
        }
        self.now = end;
        acts.extend(self.acts());
        acts
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
    assert!(one.after(TURN - SOON).is_empty(), "its turn is not over");
    assert_eq!(one.after(SOON), ["retire 1"]);
    assert!(one.after(PACE).is_empty(), "it has not done what it was asked");
    assert!(one.want(1, Fetch(7), "a").is_empty(), "it is at the end now");
    assert_eq!(one.answer(1), ["dial 2 Fetch(7)"]);
    assert_eq!(one.connect(2, Fetch(7)), ["give 2 to b"]);
    assert_eq!(one.after(PACE), ["retire 2"], "and so on");
    assert_eq!(one.answer(2), ["dial 1 Fetch(7)"]);
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
    assert_eq!(two.after(PACE), ["retire 1"]);
    assert!(two.want(1, Fetch(7), "c").is_empty());
    assert!(two.answer(2).is_empty(), "one was given up just now");
    assert_eq!(two.after(PACE), ["retire 2"]);
    assert_eq!(two.answer(2), ["dial 3 Fetch(7)"], "it is gone");
    assert_eq!(two.connect(3, Fetch(7)), ["give 3 to b"]);
    assert!(two.after(SOON).is_empty(), "two are open");
    assert_eq!(two.answer(1), ["dial 1 Fetch(7)"]);
}

#[test]
fn one_that_is_idle_makes_room_at_once_but_not_before_it_was_used() {
    let mut one = cluster(1);
    one.want(1, Produce, "a");
    one.connect(1, Produce);
    one.answer(1);

    assert!(one.want(2, Produce, "b").is_empty(), "it was just handed over");
    assert_eq!(one.after(GRACE), ["retire 1"]);
    assert_eq!(one.answer(1), ["dial 2 Produce"], "it is gone");
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

    assert_eq!(one.want(4, Produce, "e"), ["retire 1"]);
    assert_eq!(one.answer(1), ["dial 3 Produce"], "whoever comes later");
    assert_eq!(one.connect(3, Produce), ["give 3 to c", "give 3 to d"]);
    one.answer(3);
    assert_eq!(one.after(PACE), ["retire 3"]);
    assert_eq!(one.answer(3), ["dial 2 Produce"]);
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

    assert_eq!(one.after(SOON), ["retire 1"]);
    assert_eq!(one.answer(1), ["dial 2 Fetch(7)"]);
    assert_eq!(one.connect(2, Fetch(7)), ["give 2 to b", "give 2 to c", "give 2 to e"]);
    one.answer(2);
    assert_eq!(one.after(PACE), ["retire 2"]);
    assert_eq!(one.answer(2), ["dial 2 Join(7)"]);
}

#[test]
fn who_gave_up_has_no_turn() {
    let mut one = cluster(1);
    one.want(1, Produce, "a");
    one.connect(1, Produce);
    one.want(2, Produce, "-b");
    one.want(3, Produce, "c");
    one.answer(1);

    assert_eq!(one.after(SOON), ["retire 1"]);
    assert_eq!(one.answer(1), ["dial 3 Produce"]);
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

    let retired = fifty.after(Duration::from_secs(1)).iter().filter(|act| act.starts_with("retire")).count();

    assert!((10..=20).contains(&retired), "{retired} in a second");
}

/// For one who waits one connection is given up, and not the next one because the first takes its time.
#[test]
fn no_more_are_given_up_than_are_waited_for() {
    let mut three = cluster(3);
    for id in 1..=3 {
        three.want(id, Fetch(7), "a");
        three.connect(id, Fetch(7));
    }
    three.want(4, Fetch(7), "b");

    assert_eq!(three.after(SLOW), ["retire 1"]);
}

/// A broker that hangs keeps its connection until the request timeout; one that was throttled, for minutes. Others must
/// not wait for it, where there are others to be given up.
#[test]
fn one_that_does_not_end_is_not_waited_for_for_ever() {
    let mut two = cluster(2);
    for id in [1, 2] {
        two.want(id, Fetch(7), "a");
        two.connect(id, Fetch(7));
    }
    two.want(3, Fetch(7), "b");
    assert_eq!(two.after(TURN), ["retire 1"]);

    assert_eq!(two.after(SLOW), ["retire 2"], "it hangs");
    assert_eq!(two.answer(2), ["dial 3 Fetch(7)"]);
    assert_eq!(two.connect(3, Fetch(7)), ["give 3 to b"]);
    assert!(two.want(2, Fetch(7), "c").is_empty());
    assert_eq!(two.after(PACE), ["retire 3"], "and so on, with one less");
}

/// The same where all that there are wait for rebalances.
#[test]
fn a_join_does_not_wait_for_ever_for_one_that_does_not_end() {
    let mut two = cluster(2);
    two.want(1, Fetch(7), "a");
    two.connect(1, Fetch(7));
    two.want(2, Join(7), "a");
    two.connect(2, Join(7));
    two.want(3, Join(8), "b");
    assert_eq!(two.after(TURN), ["retire 1"]);

    assert_eq!(two.after(SLOW), ["retire 2"]);
}

/// CB-20: an attempt that nobody waits for any more is a socket all the same, or is one in a moment.
#[test]
fn an_attempt_that_was_given_up_counts_until_its_end() {
    let mut one = cluster(1);
    assert_eq!(one.want(1, Fetch(7), "a"), ["dial 1 Fetch(7)"]);
    assert_eq!(one.told(Input::Released { lanes: vec![Fetch(7)] }), ["refuse a"]);
    assert!(one.want(2, Fetch(8), "b").is_empty(), "there is no room");
    assert_eq!(one.connect(1, Fetch(7)), ["retire 1"]);
    assert_eq!(one.answer(1), ["dial 2 Fetch(8)"]);

    assert_eq!(one.told(Input::Released { lanes: vec![Fetch(8)] }), ["refuse b"]);
    assert!(one.want(3, Fetch(9), "c").is_empty(), "there is no room");
    let failed = Input::Failed { key: Key::new(&node(2), Fetch(8)), error: "down" };
    assert_eq!(one.told(failed), ["dial 3 Fetch(9)"]);
}

/// Nobody starves, however many want more than there is, and always more: each has as many turns as the others, and
/// waits for no longer than the turns of all who were there before.
#[test]
fn brokers_that_are_always_wanted_have_as_many_turns_each() {
    for (connections, brokers) in [(1, 2), (1, 3), (2, 3), (3, 7)] {
        let mut few = cluster(connections);
        let (mut turns, mut since, mut longest) = (BTreeMap::<i32, u32>::new(), BTreeMap::new(), Duration::ZERO);
        let mut acts: Vec<String> = (1..=brokers).flat_map(|id| few.want(id, Fetch(7), "w")).collect();
        while turns.values().sum::<u32>() < 50 * brokers as u32 {
            for act in std::mem::take(&mut acts) {
                let word: Vec<_> = act.split(' ').collect();
                let id: i32 = word[1].parse().expect("each act begins with its broker");
                match word[0] {
                    "dial" => {
                        *turns.entry(id).or_default() += 1;
                        longest = longest.max(few.now - since.remove(&id).unwrap_or(few.now));
                        few.connect(id, Fetch(7));
                    }
                    // It is answered a little later, and wants the next turn.
                    _ => {
                        since.insert(id, few.now + SOON);
                        acts.extend(few.after(SOON).into_iter().chain(few.answer(id)));
                        acts.extend(few.want(id, Fetch(7), "w"));
                    }
                }
            }
            acts.extend(few.after(Duration::from_millis(1)));
        }

        let (least, most) = (turns.values().min(), turns.values().max());
        assert!(most <= least.map(|least| least + 1).as_ref(), "{connections} for {brokers}: {turns:?}");
        let bound = (PACE + SOON) * (brokers as u32 - connections as u32 + 1);
        assert!(longest <= bound, "{connections} for {brokers}: {longest:?} of waiting");
    }
}

/// A connection that rests says so: who waits need not look for it, however long it takes.
#[test]
fn who_waits_is_served_when_a_connection_comes_to_rest() {
    let mut one = cluster(1);
    one.want(1, Own(7), "a");
    one.connect(1, Own(7));
    assert!(one.want(2, Control, "b").is_empty());
    assert_eq!(one.slots.deadline(), Some(one.now + PATIENCE), "nobody takes a user's own: time makes no room");

    assert!(one.after(Duration::from_secs(9)).is_empty());
    assert_eq!(one.answer(1), ["retire 1"]);
    assert_eq!(one.answer(1), ["dial 2 Control"]);
    assert_eq!(one.slots.deadline(), None, "nobody waits");
}

/// A coordinator answers joins when the whole group is there: the members that have no connection must get one.
#[test]
fn joins_give_way_to_each_other_where_all_connections_are_theirs() {
    let mut two = cluster(2);
    for id in [1, 2] {
        two.want(id, Join(id as u64), "a");
        two.connect(id, Join(id as u64));
    }
    assert!(two.want(1, Join(3), "b").is_empty());

    assert!(two.after(JOIN_TURN - SOON).is_empty(), "the coordinator may not have got them");
    assert_eq!(two.after(SOON), ["retire 1"]);
    assert!(two.want(1, Join(1), "a").is_empty(), "it is at the end now");
    assert_eq!(two.answer(1), ["dial 1 Join(3)"]);
    assert_eq!(two.connect(1, Join(3)), ["give 1 to b"]);
    assert_eq!(two.after(PACE), ["retire 2"]);
    assert_eq!(two.answer(2), ["dial 1 Join(1)"]);
}

#[test]
fn joins_stay_where_others_take_turns() {
    let mut two = cluster(2);
    two.want(1, Join(7), "a");
    two.connect(1, Join(7));
    two.want(2, Fetch(7), "b");
    two.connect(2, Fetch(7));
    two.after(JOIN_TURN);

    assert_eq!(two.want(3, Join(8), "c"), ["retire 2"], "the fetch leaves");
    assert!(two.want(4, Produce, "d").is_empty());
    assert!(two.after(PACE).is_empty(), "there is no other that would");
    assert_eq!(two.answer(2), ["dial 3 Join(8)"]);
    assert_eq!(two.connect(3, Join(8)), ["give 3 to c", "retire 1"], "now both are joins, and the first had its turn");
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
