//! Faults that a seed draws: a plan, which is data, and the task that carries it out.
//!
//! The seed first chooses which kinds of fault this run has at all (a different subset each time finds more than all
//! kinds always), then draws when each strikes. All faults end within [`Plan::LENGTH`]; then the world heals, and the
//! story must come to its end in bounded time.

use std::fmt;
use std::time::Duration;

use krafka_fake_broker::{FakeCluster, Rule};
use krafka_protocol::{ApiKey, ErrorCode};

use crate::World;

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The leader of some partition moves to another node.
    MoveLeader(u64),
    /// The leader epoch of some partition rises without a move, so that what clients know is fenced.
    BumpEpoch(u64),
    /// A node crashes, and comes back.
    Crash(i32, Duration),
    /// The network to a node goes silent, and comes back.
    Hold(i32, Duration),
    /// The connections to a node are reset.
    Cut(i32),
    /// A node refuses connections for a while.
    Refuse(i32, Duration),
    /// Bytes from a node come in small pieces for a while.
    Dribble(i32, Duration),
    /// The next request of an API draws an error.
    Error(ApiKey, ErrorCode),
    /// The next request of an API is done, but its connection is lost with the answer.
    LoseAnswer(ApiKey),
    /// The next request of an API is lost with its connection.
    LoseRequest(ApiKey),
    /// The next request of an API is delayed.
    Delay(ApiKey, Duration),
    /// The next request of an API is answered with a throttle, and the connection muted.
    Throttle(ApiKey, Duration),
    /// The next Metadata request is answered with REBOOTSTRAP_REQUIRED.
    Rebootstrap,
}

/// When which fault strikes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<(Duration, Fault)>,
}

/// What an API may be answered with, by a healthy cluster on a bad day.
const ERRORS: &[(ApiKey, ErrorCode)] = &[
    (ApiKey::Produce, ErrorCode::NOT_LEADER_OR_FOLLOWER),
    (ApiKey::Produce, ErrorCode::NOT_ENOUGH_REPLICAS),
    (ApiKey::Produce, ErrorCode::KAFKA_STORAGE_ERROR),
    (ApiKey::Fetch, ErrorCode::NOT_LEADER_OR_FOLLOWER),
    (ApiKey::Fetch, ErrorCode::UNKNOWN_LEADER_EPOCH),
    (ApiKey::Fetch, ErrorCode::FENCED_LEADER_EPOCH),
    (ApiKey::Fetch, ErrorCode::OFFSET_NOT_AVAILABLE),
    (ApiKey::Fetch, ErrorCode::KAFKA_STORAGE_ERROR),
    (ApiKey::Fetch, ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
    (ApiKey::Metadata, ErrorCode::LEADER_NOT_AVAILABLE),
    (ApiKey::FindCoordinator, ErrorCode::COORDINATOR_NOT_AVAILABLE),
    (ApiKey::InitProducerId, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
    (ApiKey::ListOffsets, ErrorCode::NOT_LEADER_OR_FOLLOWER),
    (ApiKey::ListOffsets, ErrorCode::FENCED_LEADER_EPOCH),
    (ApiKey::JoinGroup, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
    (ApiKey::JoinGroup, ErrorCode::NOT_COORDINATOR),
    (ApiKey::SyncGroup, ErrorCode::REBALANCE_IN_PROGRESS),
    (ApiKey::Heartbeat, ErrorCode::REBALANCE_IN_PROGRESS),
    (ApiKey::OffsetCommit, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
    (ApiKey::OffsetFetch, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
];

/// The APIs whose requests and answers get lost or late.
const LOSABLE: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::Metadata,
    ApiKey::FindCoordinator,
    ApiKey::ListOffsets,
    ApiKey::JoinGroup,
    ApiKey::SyncGroup,
    ApiKey::Heartbeat,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::InitProducerId,
    ApiKey::ApiVersions,
];

/// How many kinds of fault there are: see [`Plan::draw`].
const KINDS: u64 = 13;

impl Plan {
    /// All faults strike, and end, within this time.
    pub const LENGTH: Duration = Duration::from_secs(12);

    /// No faults.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// What this seed draws for a cluster of nodes `1..=nodes`.
    #[must_use]
    pub fn draw(seed: u64, nodes: i32) -> Self {
        let mut chance = Chance::new(seed);
        let kinds: Vec<u64> = (0..KINDS).filter(|_| chance.below(2) == 0).collect();
        let mut steps = Vec::new();
        if !kinds.is_empty() {
            for _ in 0..chance.below(16) {
                // Half of them early: many a story is over in a second or two.
                let at =
                    Duration::from_millis(if chance.below(2) == 0 { chance.below(1_500) } else { chance.below(8_000) });
                let longest = Self::LENGTH - at;
                let lasts = Duration::from_millis(50 + chance.below(4_000)).min(longest);
                let kind = kinds[chance.below(kinds.len() as u64) as usize];
                steps.push((at, Self::fault(kind, nodes, lasts, &mut chance)));
            }
        }
        steps.sort_by_key(|(at, _)| *at);
        Self { steps }
    }

    fn fault(kind: u64, nodes: i32, lasts: Duration, chance: &mut Chance) -> Fault {
        let node = 1 + chance.below(nodes as u64) as i32;
        let api = LOSABLE[chance.below(LOSABLE.len() as u64) as usize];
        match kind {
            0 => Fault::MoveLeader(chance.next()),
            1 => Fault::BumpEpoch(chance.next()),
            2 => Fault::Crash(node, lasts),
            3 => Fault::Hold(node, lasts),
            4 => Fault::Cut(node),
            5 => Fault::Refuse(node, lasts),
            6 => Fault::Dribble(node, lasts),
            7 | 8 => {
                let (api, code) = ERRORS[chance.below(ERRORS.len() as u64) as usize];
                Fault::Error(api, code)
            }
            9 => Fault::LoseAnswer(api),
            10 => Fault::LoseRequest(api),
            11 => Fault::Delay(api, lasts),
            _ if chance.below(4) == 0 => Fault::Rebootstrap,
            _ => Fault::Throttle(api, lasts),
        }
    }

    /// Carries the plan out: when it returns, all of its faults are over.
    pub(crate) async fn carry_out(&self, world: &World) {
        let Some(fake) = world.try_fake() else { return };
        let mut ends: Vec<(Duration, Fault)> = Vec::new();
        let mut rules = Vec::new();
        let mut begins = self.steps.iter().copied().peekable();
        loop {
            ends.sort_by_key(|(at, _)| *at);
            let begin = begins.peek().map(|(at, _)| *at);
            let end = ends.first().map(|(at, _)| *at);
            let Some(next) = begin.into_iter().chain(end).min() else { break };
            world.pass(next.saturating_sub(world.elapsed())).await;
            if end == Some(next) {
                let (_, fault) = ends.remove(0);
                undo(fault, world, fake);
            } else if let Some((at, fault)) = begins.next() {
                match strike(fault, world, fake) {
                    Struck::Over => {}
                    Struck::Until(lasts) => ends.push((at + lasts, fault)),
                    Struck::Rule(rule) => rules.push(rule),
                }
            }
        }
        // What has not met its request by now never shall. The story's own faults stay.
        rules.iter().for_each(Rule::remove);
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("no faults drawn");
        }
        for (index, (at, fault)) in self.steps.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{:.3}s {fault:?}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

/// What is left to do once a fault has struck.
enum Struck {
    Over,
    Until(Duration),
    Rule(Rule),
}

fn strike(fault: Fault, world: &World, fake: &FakeCluster) -> Struck {
    let address = |node: i32| world.address(node);
    match fault {
        Fault::MoveLeader(pick) => {
            if let Some((topic, partition)) = some_partition(world, pick) {
                let nodes = fake.live_nodes();
                if let Some(to) = nodes.get((pick >> 32) as usize % nodes.len().max(1)) {
                    fake.move_leader(&topic, partition, *to);
                }
            }
            Struck::Over
        }
        Fault::BumpEpoch(pick) => {
            if let Some((topic, partition)) = some_partition(world, pick) {
                fake.bump_leader_epoch(&topic, partition);
            }
            Struck::Over
        }
        Fault::Crash(node, lasts) => {
            fake.crash(node);
            Struck::Until(lasts)
        }
        Fault::Hold(node, lasts) => {
            world.links().hold(&address(node));
            Struck::Until(lasts)
        }
        Fault::Cut(node) => {
            world.links().cut(&address(node));
            Struck::Over
        }
        Fault::Refuse(node, lasts) => {
            world.links().refuse(&address(node));
            Struck::Until(lasts)
        }
        Fault::Dribble(node, lasts) => {
            world.links().dribble(&address(node), 13);
            Struck::Until(lasts)
        }
        Fault::Error(api, code) => Struck::Rule(fake.when(api).reply_error(code)),
        Fault::LoseAnswer(api) => Struck::Rule(fake.when(api).after_handling().drop_connection()),
        Fault::LoseRequest(api) => Struck::Rule(fake.when(api).drop_connection()),
        Fault::Delay(api, lasts) => Struck::Rule(fake.when(api).delay(lasts)),
        Fault::Throttle(api, lasts) => Struck::Rule(fake.when(api).throttle(lasts)),
        Fault::Rebootstrap => Struck::Rule(fake.when(ApiKey::Metadata).rebootstrap()),
    }
}

fn undo(fault: Fault, world: &World, fake: &FakeCluster) {
    match fault {
        Fault::Crash(node, _) => fake.restart(node),
        Fault::Hold(node, _) => world.links().release(&world.address(node)),
        Fault::Refuse(node, _) => world.links().accept(&world.address(node)),
        Fault::Dribble(node, _) => world.links().dribble(&world.address(node), 0),
        _ => {}
    }
}

/// Ends every fault, also those of the story.
pub(crate) fn heal(world: &World, fake: &FakeCluster) {
    fake.clear_faults();
    for node in fake.nodes() {
        fake.restart(node);
    }
    world.links().heal();
}

fn some_partition(world: &World, pick: u64) -> Option<(String, i32)> {
    let topics = world.topics();
    let topic = topics.get(pick as usize % topics.len().max(1))?;
    Some((topic.name.clone(), ((pick >> 16) % topic.partitions as u64) as i32))
}

/// SplitMix64: enough chance for a plan, the same on every machine.
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        Self(seed ^ 0x6e65_6d65_7369_7321)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_plan() {
        assert_eq!(Plan::draw(7, 3), Plan::draw(7, 3));
        assert_ne!(Plan::draw(7, 3), Plan::draw(8, 3));
    }

    #[test]
    fn faults_end_in_time_and_every_kind_is_drawn() {
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..500 {
            for (at, fault) in Plan::draw(seed, 3).steps {
                let words = format!("{fault:?}");
                kinds.insert(words.split(['(', ' ']).next().unwrap_or_default().to_owned());
                if let Fault::Crash(_, lasts) | Fault::Hold(_, lasts) | Fault::Refuse(_, lasts) = fault {
                    assert!(at + lasts <= Plan::LENGTH, "{fault:?} at {at:?}");
                }
            }
        }
        assert_eq!(kinds.len(), 13, "{kinds:?}");
    }
}
