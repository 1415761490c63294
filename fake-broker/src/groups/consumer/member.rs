//! One member of a consumer group: what it wants, what it holds, and how far it has come.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use krafka_protocol::api::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use krafka_protocol::api::join_group::JoinGroupRequestProtocol;
use krafka_protocol::{Str, Uuid};

use crate::groups::Caller;

/// Partitions by topic.
pub(in crate::groups) type Partitions = BTreeMap<Uuid, BTreeSet<i32>>;

/// Partitions by topic, each with the epoch in which its holder got it.
pub(super) type Held = BTreeMap<Uuid, BTreeMap<i32, i32>>;

/// Where a member is on its way to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    /// It has what it shall have.
    Stable,
    /// It must give partitions up before it comes to the next epoch.
    UnrevokedPartitions,
    /// It waits for partitions that others still hold.
    UnreleasedPartitions,
}

/// A member as the coordinator knows it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: Str,
    pub(super) instance_id: Option<Str>,
    pub(super) rack: Option<Str>,
    pub(super) rebalance_timeout: Duration,
    pub(super) client_id: Str,
    pub(super) client_host: Str,
    pub(super) topics: BTreeSet<Str>,
    /// Empty for none, as a member ends such a subscription.
    pub(super) regex: Option<Str>,
    pub(super) assignor: Option<Str>,
    pub(super) epoch: i32,
    pub(super) previous_epoch: i32,
    pub(super) state: MemberState,
    pub(super) assigned: Held,
    pub(super) revoking: Held,
    /// Set for a member that speaks the classic protocol to this group.
    pub(super) classic: Option<ClassicSide>,
    pub(super) timers: Timers,
}

/// What a coordinator must know of a member that joined by JoinGroup.
#[derive(Clone, Debug)]
pub(super) struct ClassicSide {
    pub(super) session_timeout: Duration,
    pub(super) protocols: Vec<JoinGroupRequestProtocol>,
}

/// When a member is lost, unless something comes before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// A heartbeat, or any other sign of life.
    pub(super) session: Option<Instant>,
    /// The end of this epoch: the member has given up what it must.
    pub(super) revocation: Option<(Instant, i32)>,
    /// JoinGroup of a member that was told to join again.
    pub(super) join: Option<Instant>,
    /// SyncGroup of a member that has joined.
    pub(super) sync: Option<Instant>,
}

impl Timers {
    pub(super) fn next(&self) -> Option<Instant> {
        [self.session, self.revocation.map(|(at, _)| at), self.join, self.sync].into_iter().flatten().min()
    }
}

impl Member {
    /// A member that has said nothing of itself so far.
    pub(super) fn new(id: Str) -> Self {
        Self {
            id,
            instance_id: None,
            rack: None,
            rebalance_timeout: Duration::ZERO,
            client_id: Str::default(),
            client_host: Str::default(),
            topics: BTreeSet::new(),
            regex: None,
            assignor: None,
            epoch: 0,
            previous_epoch: -1,
            state: MemberState::Stable,
            assigned: Held::new(),
            revoking: Held::new(),
            classic: None,
            timers: Timers::default(),
        }
    }

    /// The same member under the id of its next incarnation, which must find its way from the start.
    pub(super) fn reborn(&self, id: Str) -> Self {
        Self { id, epoch: 0, previous_epoch: 0, timers: Timers::default(), ..self.clone() }
    }

    /// Takes over what a heartbeat says anew.
    pub(super) fn update(&mut self, request: &ConsumerGroupHeartbeatRequest, caller: &Caller) {
        if request.instance_id.is_some() {
            self.instance_id.clone_from(&request.instance_id);
        }
        if request.rack_id.is_some() {
            self.rack.clone_from(&request.rack_id);
        }
        if request.rebalance_timeout_ms != -1 {
            self.rebalance_timeout = millis(request.rebalance_timeout_ms);
        }
        if request.server_assignor.is_some() {
            self.assignor.clone_from(&request.server_assignor);
        }
        if let Some(names) = &request.subscribed_topic_names {
            self.topics = names.iter().cloned().collect();
        }
        if request.subscribed_topic_regex.is_some() {
            self.regex.clone_from(&request.subscribed_topic_regex);
        }
        self.heard_from(caller);
        self.classic = None;
    }

    pub(super) fn heard_from(&mut self, caller: &Caller) {
        self.client_id.clone_from(&caller.client_id);
        self.client_host.clone_from(&caller.client_host);
    }

    /// Comes to an epoch.
    pub(super) fn advance(&mut self, epoch: i32) {
        self.previous_epoch = std::mem::replace(&mut self.epoch, epoch);
    }

    pub(super) fn is_reconciled_to(&self, epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == epoch
    }

    /// The regular expression that it subscribes by, if it does.
    pub(super) fn regex(&self) -> Option<&Str> {
        self.regex.as_ref().filter(|regex| !regex.is_empty())
    }

    /// Whether it may still read a partition, be it on the way out.
    pub(super) fn holds(&self, topic: Uuid, partition: i32) -> bool {
        self.assignment_epoch(topic, partition).is_some()
    }

    /// The epoch in which it got a partition that it may still read.
    pub(super) fn assignment_epoch(&self, topic: Uuid, partition: i32) -> Option<i32> {
        let of = |held: &Held| held.get(&topic)?.get(&partition).copied();
        of(&self.assigned).or_else(|| of(&self.revoking))
    }

    /// Whether all that a request names is assigned to this member; a request that names nothing leaves it open.
    pub(super) fn is_assigned_all(&self, owned: Option<&[TopicPartitions]>) -> bool {
        let has = |topic: &TopicPartitions| {
            let assigned = self.assigned.get(&topic.topic_id);
            assigned.is_some_and(|assigned| topic.partitions.iter().all(|index| assigned.contains_key(index)))
        };
        owned.is_some_and(|owned| owned.iter().all(has))
    }

    /// Whether another state of the same member is assigned other partitions.
    pub(super) fn is_assigned_others_than(&self, other: &Self) -> bool {
        !same_partitions(&self.assigned, &other.assigned)
    }

    /// What the member said of itself for the protocol that it prefers.
    pub(super) fn classic_metadata(&self) -> Bytes {
        let preferred = self.classic.as_ref().and_then(|classic| classic.protocols.first());
        preferred.map(|protocol| protocol.metadata.clone()).unwrap_or_default()
    }
}

fn same_partitions(one: &Held, other: &Held) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|((a, these), (b, those))| a == b && these.keys().eq(those.keys()))
}

/// The partitions without their epochs.
pub(super) fn partitions_of(held: &Held) -> Partitions {
    held.iter().map(|(topic, indexes)| (*topic, indexes.keys().copied().collect())).collect()
}

/// A duration that a request states; what is negative is none.
pub(super) fn millis(ms: i32) -> Duration {
    Duration::from_millis(ms.max(0).unsigned_abs().into())
}
