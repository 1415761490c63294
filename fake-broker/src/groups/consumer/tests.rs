//! Laws of the consumer group, whatever its members do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use krafka_protocol::api::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use krafka_protocol::{Str, Uuid};
use proptest::prelude::*;

use super::ConsumerGroup;
use crate::config::Config;
use crate::faults::KafkaVersion;
use crate::groups::desk::Desk;
use crate::groups::view::GroupState;
use crate::groups::{Caller, Image};
use crate::nodes::{Node, Nodes};
use crate::partition::Rules;
use crate::rng::Rng;
use crate::topics::{Partition, Topic, TopicSettings, Topics};

const TOPICS: [(&str, usize); 2] = [("one", 5), ("two", 3)];
const MEMBERS: [&str; 4] = ["a", "b", "c", "d"];

/// What somebody does. A member gives up and takes over what it is told with its next heartbeat.
#[derive(Clone, Debug)]
enum Step {
    Join {
        member: usize,
        topics: usize,
        is_static: bool,
    },
    Heartbeat(usize),
    /// A heartbeat of a member that is too slow to give anything up.
    Cling(usize),
    Leave {
        member: usize,
        comes_back: bool,
    },
    Pass(u64),
    Reload,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let member = 0..MEMBERS.len();
    let step = prop_oneof![
        3 => (member.clone(), 1..4_usize, any::<bool>())
            .prop_map(|(member, topics, is_static)| Step::Join { member, topics, is_static }),
        8 => member.clone().prop_map(Step::Heartbeat),
        2 => member.clone().prop_map(Step::Cling),
        1 => (member, any::<bool>()).prop_map(|(member, comes_back)| Step::Leave { member, comes_back }),
        3 => (0..20_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Reload),
    ];
    prop::collection::vec(step, 0..60)
}

/// A member as it takes itself to be.
#[derive(Clone, Debug, Default)]
struct Actor {
    epoch: i32,
    instance: Option<Str>,
    held: BTreeMap<Uuid, Vec<i32>>,
    told: BTreeMap<Uuid, Vec<i32>>,
}

struct Run {
    config: Config,
    topics: Topics,
    nodes: Nodes,
    group: ConsumerGroup,
    now: Instant,
    actors: BTreeMap<usize, Actor>,
}

const RULES: Rules = Rules { min_insync_replicas: 1, knows_eligible: true, orders_isr: true };

#[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
fn some_time() -> Instant {
    Instant::now()
}

impl Run {
    fn new(version: KafkaVersion) -> Self {
        let node = Node::new(Str::from("h"), BTreeMap::new(), None, version);
        let nodes = Nodes::new([(1, node)].into());
        let mut topics = Topics::default();
        let mut ids = Rng::stream(1, "topics");
        for (name, partitions) in TOPICS {
            let partitions = (0..partitions).map(|_| Partition::new(vec![1], &[1].into(), RULES)).collect();
            let settings = TopicSettings::default();
            topics.insert(Topic {
                id: ids.uuid(),
                name: name.into(),
                internal: false,
                settings,
                own_settings: BTreeMap::new(),
                partitions,
            });
        }
        let group = ConsumerGroup::new(version);
        Self { config: Config::default(), topics, nodes, group, now: some_time(), actors: BTreeMap::new() }
    }

    fn take(&mut self, step: &Step) {
        let actors = |run: &Self, member: usize| run.actors.get(&member).cloned();
        match *step {
            Step::Join { member, topics, is_static } => {
                let instance = is_static.then(|| Str::from(MEMBERS[member]));
                let names = TOPICS.iter().enumerate().filter(|(bit, _)| topics >> bit & 1 == 1);
                let names: Vec<Str> = names.map(|(_, (name, _))| Str::from(*name)).collect();
                self.actors.insert(member, Actor { instance, ..Actor::default() });
                self.say(member, |request| {
                    request.rebalance_timeout_ms = 10_000;
                    request.subscribed_topic_names = Some(names);
                    request.topic_partitions = Some(Vec::new());
                });
            }
            Step::Heartbeat(member) => {
                let Some(mut actor) = actors(self, member) else { return };
                actor.held = actor.told.clone();
                let owned = owned(&actor.held);
                self.actors.insert(member, actor);
                self.say(member, |request| request.topic_partitions = Some(owned));
            }
            Step::Cling(member) => {
                let Some(actor) = actors(self, member) else { return };
                let owned = owned(&actor.held);
                self.say(member, |request| request.topic_partitions = Some(owned));
            }
            Step::Leave { member, comes_back } => {
                let Some(actor) = self.actors.remove(&member) else { return };
                let epoch = if comes_back && actor.instance.is_some() { -2 } else { -1 };
                let request =
                    ConsumerGroupHeartbeatRequest { member_epoch: epoch, instance_id: actor.instance, ..brief(member) };
                let desk = desk(&self.config, Image::of(&self.topics, &self.nodes, 1), self.now);
                if let Ok(gone) = self.group.leave(&request, &desk) {
                    self.group.remove(&gone, &desk);
                }
            }
            Step::Pass(ms) => {
                self.now += Duration::from_millis(ms);
                self.expire();
            }
            Step::Reload => {
                let desk = desk(&self.config, Image::of(&self.topics, &self.nodes, 1), self.now);
                self.group.reload(&desk);
            }
        }
        self.check();
    }

    /// Sends a heartbeat. Who is refused gives everything up and is out.
    fn say(&mut self, member: usize, change: impl FnOnce(&mut ConsumerGroupHeartbeatRequest)) {
        let Some(actor) = self.actors.get_mut(&member) else { return };
        let mut request = ConsumerGroupHeartbeatRequest {
            member_epoch: actor.epoch,
            instance_id: actor.instance.clone(),
            ..brief(member)
        };
        change(&mut request);
        let desk = desk(&self.config, Image::of(&self.topics, &self.nodes, 1), self.now);
        match self.group.heartbeat(&request, &Caller::default(), Str::default, &desk) {
            Ok(answer) => {
                actor.epoch = answer.member_epoch;
                if let Some(assignment) = answer.assignment {
                    actor.told = assignment.topic_partitions.into_iter().map(|t| (t.topic_id, t.partitions)).collect();
                }
            }
            Err(_) => drop(self.actors.remove(&member)),
        }
    }

    fn expire(&mut self) {
        let desk = desk(&self.config, Image::of(&self.topics, &self.nodes, 1), self.now);
        let lost = self.group.expire(&desk);
        self.group.remove(&lost, &desk);
    }

    fn check(&self) {
        let mut held = BTreeSet::new();
        for member in self.group.members.values() {
            for (topic, indexes) in member.assigned.iter().chain(&member.revoking) {
                for index in indexes.keys() {
                    assert!(held.insert((*topic, *index)), "{topic}-{index} is with two: {:?}", self.group);
                }
            }
            assert!(member.epoch <= self.group.target_epoch.max(0), "ahead of its target: {member:?}");
        }
        assert!(self.group.target_epoch <= self.group.epoch);
        assert!(self.group.targets.keys().all(|id| self.group.members.contains_key(id)), "targets of nobody");
    }
}

fn brief(member: usize) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: Str::from("g"),
        member_id: Str::from(MEMBERS[member]),
        ..ConsumerGroupHeartbeatRequest::default()
    }
}

fn owned(held: &BTreeMap<Uuid, Vec<i32>>) -> Vec<TopicPartitions> {
    held.iter().map(|(id, indexes)| TopicPartitions { topic_id: *id, partitions: indexes.clone() }).collect()
}

fn desk<'a>(config: &'a Config, image: Image<'a>, now: Instant) -> Desk<'a> {
    Desk { config, own: None, image, now }
}

proptest! {
    /// No partition is ever with two members; those who go on heartbeating become stable with all partitions of what
    /// they subscribe to; and when nothing more is heard, nobody is left.
    #[test]
    fn partitions_have_one_holder_and_find_it(steps in steps(), is_new in any::<bool>()) {
        let mut run = Run::new(if is_new { KafkaVersion::V4_4 } else { KafkaVersion::V4_0 });
        for step in &steps {
            run.take(step);
        }

        // Members of earlier lives that are silent, or said that they would come back, are given up first.
        for _ in 0..60 {
            run.take(&Step::Pass(1_500));
            for member in 0..MEMBERS.len() {
                run.take(&Step::Heartbeat(member));
            }
        }
        let is_empty = run.actors.is_empty();
        let expected = if is_empty { GroupState::Empty } else { GroupState::Stable };
        prop_assert_eq!(run.group.state(), expected, "{:?}", run.group);
        let wanted: BTreeSet<Str> = run.group.members.values().flat_map(|member| member.topics.clone()).collect();
        let all: usize = TOPICS.iter().filter(|(name, _)| wanted.contains(*name)).map(|(_, count)| count).sum();
        let given: usize = run.actors.values().flat_map(|actor| actor.told.values()).map(Vec::len).sum();
        prop_assert_eq!(given, all);

        run.take(&Step::Pass(60_000));
        prop_assert_eq!(run.group.state(), GroupState::Empty);
        prop_assert_eq!(run.group.deadline(), None);
    }
}
