//! Who gets which task in a streams group (KIP-1071): the broker's sticky assignor, member by member.

use std::collections::BTreeSet;
use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::Str;
use krafka_protocol::api::streams_group_heartbeat::{
    StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, Subtopology, TaskIds, TaskOffset, Topology,
};

use crate::share_dead_letters::configure;
use crate::streams_groups::{Member, describe, internal, part, topology};
use crate::target::{Target, run};

/// Longer than Kafka waits between two assignments.
const INTERVAL: Duration = Duration::from_millis(1_200);

type Tasks = BTreeSet<(Str, i32)>;

fn flat(told: &[TaskIds]) -> Tasks {
    told.iter().flat_map(|ids| ids.partitions.iter().map(|&at| (ids.subtopology_id.clone(), at))).collect()
}

fn ids(tasks: &Tasks) -> Option<Vec<TaskIds>> {
    let parts: BTreeSet<&Str> = tasks.iter().map(|(part, _)| part).collect();
    let of = |part: &Str| tasks.iter().filter(|(other, _)| other == part).map(|(_, at)| *at).collect();
    Some(parts.into_iter().map(|part| TaskIds { subtopology_id: part.clone(), partitions: of(part) }).collect())
}

/// A member that works on what it is told, and gives up at once what it is not.
struct Worker {
    member: Member,
    active: Tasks,
    standby: Tasks,
}

impl Worker {
    fn take(&mut self, answer: &StreamsGroupHeartbeatResponse) {
        if let Some(told) = &answer.active_tasks {
            self.active = flat(told);
        }
        if let Some(told) = &answer.standby_tasks {
            self.standby = flat(told);
        }
    }

    async fn beat(&mut self) {
        let request = StreamsGroupHeartbeatRequest {
            active_tasks: ids(&self.active),
            standby_tasks: ids(&self.standby),
            warmup_tasks: Some(vec![]),
            ..self.member.heartbeat(self.member.epoch)
        };
        let answer = self.member.beat(request).await;
        self.take(&answer);
    }
}

/// The members of a group.
struct Crew<'a> {
    target: &'a Target,
    group: Str,
    topology: Option<Topology>,
    workers: Vec<Worker>,
}

impl<'a> Crew<'a> {
    fn new(target: &'a Target, parts: Vec<Subtopology>) -> Self {
        Self { target, group: target.fresh("app"), topology: topology(0, parts), workers: Vec::new() }
    }

    /// Members of a process join, one right behind the other, when the last assignment is long enough ago.
    async fn start(&mut self, process: &'static str, members: &[&'static str]) {
        tokio::time::sleep(INTERVAL).await;
        for id in members {
            self.join(process, id, None).await;
        }
    }

    /// A member joins with what its disk knows of states.
    async fn join(&mut self, process: &'static str, id: &'static str, offsets: Option<Vec<TaskOffset>>) {
        let member = Member::new(self.target, &self.group, id).await;
        let mut worker = Worker { member, active: Tasks::new(), standby: Tasks::new() };
        let request = StreamsGroupHeartbeatRequest {
            process_id: Some(Str::from_static(process)),
            task_offsets: offsets,
            ..worker.member.joining(self.topology.clone())
        };
        let answer = worker.member.beat(request).await;
        worker.take(&answer);
        self.workers.push(worker);
    }

    /// A member goes.
    async fn stop(&mut self, ids: &[&str]) {
        tokio::time::sleep(INTERVAL).await;
        for id in ids {
            let at = self.workers.iter().position(|worker| &*worker.member.id == *id).expect("it is there");
            let mut gone = self.workers.remove(at).member;
            let left = gone.ask(gone.heartbeat(-1)).await;
            assert_eq!(left.error_code, 0, "{:?}", left.error_message);
        }
    }

    /// What each member has when all have what they shall have: `id: active + standby`.
    async fn settled(&mut self) -> String {
        loop {
            for worker in &mut self.workers {
                worker.beat().await;
            }
            let described = describe(&mut self.workers[0].member.wire, &self.group).await;
            if &*described.group_state == "Stable" {
                return self.shown();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The same once it is another than before: that a config was changed reaches the group by and by.
    async fn settled_otherwise(&mut self, before: &str) -> String {
        for _ in 0..100 {
            let settled = self.settled().await;
            if settled != before {
                return settled;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        before.to_owned()
    }

    fn shown(&self) -> String {
        let list = |tasks: &Tasks| -> String { tasks.iter().map(|(part, at)| format!(" {part}_{at}")).collect() };
        let one = |worker: &Worker| {
            let reserve = if worker.standby.is_empty() { "" } else { " +" };
            format!("{}:{}{reserve}{}", worker.member.id, list(&worker.active), list(&worker.standby))
        };
        self.workers.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// A subtopology that has state.
fn stateful(target: &Target, id: &'static str, source: &Str) -> Subtopology {
    Subtopology { state_changelog_topics: vec![internal(&target.fresh("store"), 0)], ..part(id, &[source]) }
}

/// Instances of two threads each come and go: partitions of two subtopologies stay together, and nobody is idle.
#[test]
fn instances_come_and_go() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (one, two) = (target.topic(4).await, target.topic(4).await);
        let mut crew = Crew::new(&target, vec![part("0", &[&one.name]), part("1", &[&two.name])]);

        crew.start("p1", &["a1", "a2"]).await;
        let alone = crew.settled().await;
        crew.start("p2", &["b1", "b2"]).await;
        let pairs = crew.settled().await;
        crew.start("p3", &["c1", "c2"]).await;
        let three = crew.settled().await;
        crew.stop(&["b1", "b2"]).await;
        let after = crew.settled().await;

        assert_eq!(alone, "a1: 0_0 0_2 1_0 1_2; a2: 0_1 0_3 1_1 1_3");
        assert_eq!(pairs, "a1: 0_0 1_0; a2: 0_1 1_1; b1: 1_2 1_3; b2: 0_2 0_3");
        assert_eq!(three, "a1: 0_0 1_0; a2: 0_1 1_1; b1: 1_2; b2: 0_2; c1: 1_3; c2: 0_3");
        assert_eq!(after, "a1: 0_0 1_0; a2: 0_1 1_1; c1: 0_2 1_3; c2: 0_3 1_2");
    });
}

/// Which process gets what is left over follows the hashes of the ids, and so do its members.
#[test]
fn ties_are_broken_the_same_way() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (one, two) = (target.topic(5).await, target.topic(3).await);
        let mut crew = Crew::new(&target, vec![part("in", &[&one.name]), part("out", &[&two.name])]);
        crew.start("alpha", &["kiwi"]).await;
        for (process, member) in [("beta", "fig"), ("gamma", "plum"), ("alpha", "lime"), ("delta", "date")] {
            crew.join(process, member, None).await;
        }

        let shared = crew.settled().await;
        crew.start("epsilon", &["pear", "sloe", "nut"]).await;
        let more = crew.settled().await;
        crew.stop(&["plum", "date"]).await;
        let fewer = crew.settled().await;

        assert_eq!(shared, "kiwi: in_1 out_1; fig: in_2 out_2; plum: in_3 out_0; lime: in_4; date: in_0");
        assert_eq!(
            more,
            "kiwi: in_1; fig: in_2; plum: out_0; lime: in_4; date: in_0; pear: in_3; sloe: out_1; nut: out_2"
        );
        assert_eq!(fewer, "kiwi: in_1 out_0; fig: in_2; lime: in_4; pear: in_0 in_3; sloe: out_1; nut: out_2");
    });
}

/// Copies of states are in other processes, take over when one goes, and stay where they are; a group's config says how
/// many there are, and its change is taken up.
#[test]
fn copies_of_states_take_over() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (one, two) = (target.topic(3).await, target.topic(2).await);
        let parts = vec![stateful(&target, "0", &one.name), part("1", &[&two.name])];
        let mut crew = Crew::new(&target, parts);
        configure(&target, &crew.group, &[("streams.num.standby.replicas", "1")]).await;
        crew.start("p1", &["a1", "a2"]).await;
        for (process, member) in [("p2", "b1"), ("p2", "b2"), ("p3", "c1")] {
            crew.join(process, member, None).await;
        }

        let shared = crew.settled().await;
        crew.stop(&["a1"]).await;
        let fewer = crew.settled().await;
        crew.stop(&["a2"]).await;
        let two_left = crew.settled().await;
        crew.start("p4", &["d1", "d2"]).await;
        let more = crew.settled().await;
        tokio::time::sleep(INTERVAL).await;
        configure(&target, &crew.group, &[("streams.num.standby.replicas", "2")]).await;
        let twice = crew.settled_otherwise(&more).await;

        assert_eq!(shared, "a1: 0_0 + 0_2; a2: 1_0; b1: 1_1; b2: 0_2 + 0_1; c1: 0_1 + 0_0");
        assert_eq!(fewer, "a2: 1_0 + 0_2; b1: 1_1 + 0_0; b2: 0_2 + 0_1; c1: 0_0 0_1");
        assert_eq!(two_left, "b1: 1_1 + 0_0; b2: 0_2 1_0 + 0_1; c1: 0_0 0_1 + 0_2");
        assert_eq!(more, "b1: 1_1 + 0_0; b2: 1_0 + 0_2; c1: 0_0 + 0_1; d1: 0_2; d2: 0_1");
        assert_eq!(twice, "b1: 1_1 + 0_0; b2: 1_0 + 0_1 0_2; c1: 0_0 + 0_1 0_2; d1: 0_2 + 0_0; d2: 0_1");
    });
}

/// Who comes back with states on its disk gets their tasks, and of several who is furthest.
#[test]
fn states_on_disk_decide() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let topic = target.topic(3).await;
        let mut crew = Crew::new(&target, vec![stateful(&target, "0", &topic.name)]);
        let has = |partition, offset| TaskOffset { subtopology_id: "0".into(), partition, offset };

        crew.join("p1", "a", Some(vec![has(0, 5), has(1, 9)])).await;
        crew.join("p2", "b", Some(vec![has(0, 7), has(1, 2)])).await;
        crew.join("p3", "c", None).await;
        let shared = crew.settled().await;

        assert_eq!(shared, "a: 0_1; b: 0_0; c: 0_2");
    });
}

/// What counts as a member's own is what it was given, not what it is meant to get.
#[test]
fn plans_are_not_kept() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let topic = target.topic(4).await;
        let mut crew = Crew::new(&target, vec![part("0", &[&topic.name])]);
        crew.start("p1", &["a"]).await;
        crew.settled().await;

        // The first member does not know yet that it is to give up half of its tasks.
        crew.start("p2", &["b"]).await;
        crew.start("p3", &["c"]).await;
        crew.stop(&["b"]).await;
        crew.start("p4", &["d"]).await;
        let shared = crew.settled().await;

        assert_eq!(shared, "a: 0_0 0_1; c: 0_3; d: 0_2");
    });
}

/// The first assignment is made with the first heartbeat behind the wait for more members, not when the wait is over.
#[test]
fn the_first_assignment_waits_for_a_heartbeat() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let topic = target.topic(2).await;
        let mut crew = Crew::new(&target, vec![part("0", &[&topic.name])]);
        crew.join("p1", "a", None).await;

        tokio::time::sleep(Duration::from_millis(3_500)).await;
        crew.join("p2", "b", None).await;
        let joined = crew.shown();
        let shared = crew.settled().await;

        assert_eq!(joined, "a:; b: 0_0");
        assert_eq!(shared, "a: 0_1; b: 0_0");
    });
}
