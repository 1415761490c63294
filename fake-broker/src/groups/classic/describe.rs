//! A classic group as others see it: administrators, tests, the search for expired offsets, and online migration.

use std::collections::BTreeSet;
use std::time::Instant;

use bytes::Bytes;
use krafka_protocol::Str;
use krafka_protocol::api::describe_groups::{DescribedGroup, DescribedGroupMember};
use krafka_protocol::group::{Assignment, Subscription};

use super::member::Member;
use super::{ClassicGroup, Phase};
use crate::groups::expiry::AgeCounts;
use crate::groups::view::{GroupKind, GroupState, GroupView, MemberView};

/// The type of groups whose members are consumers.
const CONSUMER: &str = "consumer";

impl ClassicGroup {
    /// A group that was one of KIP-848 until now. `assignment` makes a member's assignment, in the layout of what the
    /// member says about itself.
    pub(in crate::groups) fn stable(
        generation: i32,
        protocol_type: Str,
        members: Vec<Member>,
        now: Instant,
        assignment: impl Fn(&Str, &Bytes) -> Bytes,
    ) -> Self {
        let mut group = Self { generation, protocol_type: Some(protocol_type), members, ..Self::new(now) };
        group.state = Phase::Stable;
        group.protocol = group.elect_protocol();
        for index in 0..group.members.len() {
            let metadata = group.members[index].metadata(group.protocol.as_ref());
            group.members[index].assignment = assignment(&group.members[index].id, &metadata);
        }
        group.read_subscriptions();
        group.write();
        group
    }

    pub(in crate::groups) fn state(&self) -> GroupState {
        match self.state {
            Phase::Empty => GroupState::Empty,
            Phase::PreparingRebalance => GroupState::PreparingRebalance,
            Phase::CompletingRebalance => GroupState::CompletingRebalance,
            Phase::Stable => GroupState::Stable,
        }
    }

    pub(in crate::groups) fn generation(&self) -> i32 {
        self.generation
    }

    pub(in crate::groups) fn protocol_type(&self) -> Option<&Str> {
        self.protocol_type.as_ref()
    }

    pub(in crate::groups) fn protocol(&self) -> Option<&Str> {
        self.protocol.as_ref()
    }

    pub(in crate::groups) fn members(&self) -> &[Member] {
        &self.members
    }

    /// Whether the members are consumers, whose wishes and assignments the coordinator can read.
    pub(in crate::groups) fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// Whether members read a topic. When they are consumers that cannot be understood, any topic may be theirs.
    pub(in crate::groups) fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.is_of_consumers(),
        }
    }

    /// From when on the group's offsets age.
    pub(in crate::groups) fn age_of_offsets(&self) -> AgeCounts {
        match self.state {
            _ if self.protocol_type.is_none() => AgeCounts::FromCommit,
            Phase::Empty => AgeCounts::From(self.since),
            Phase::Stable if self.is_of_consumers() && self.subscribed.is_some() => AgeCounts::FromCommit,
            _ => AgeCounts::Never,
        }
    }

    /// The group in the answer to DescribeGroups. What members say is told of a stable group alone.
    pub(in crate::groups) fn describe(&self, group_id: &Str) -> DescribedGroup {
        let is_stable = self.state == Phase::Stable;
        let member = |member: &Member| DescribedGroupMember {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            member_metadata: if is_stable { member.metadata(self.protocol.as_ref()) } else { Bytes::new() },
            member_assignment: member.assignment.clone(),
        };
        DescribedGroup {
            group_id: group_id.clone(),
            group_state: Str::from_static(self.state().name()),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol_data: self.protocol.clone().filter(|_| is_stable).unwrap_or_default(),
            members: self.members.iter().map(member).collect(),
            ..DescribedGroup::default()
        }
    }

    /// The group as a test sees it.
    pub(in crate::groups) fn view(&self) -> GroupView {
        let members = self.members.iter().map(|member| {
            let partitions = if self.is_of_consumers() { read_partitions(&member.assignment) } else { Vec::new() };
            MemberView {
                id: member.id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                kind: GroupKind::Classic,
                epoch: self.generation,
                metadata: member.metadata(self.protocol.as_ref()),
                assignment: member.assignment.clone(),
                target: partitions.clone(),
                partitions,
            }
        });
        GroupView {
            kind: GroupKind::Classic,
            state: self.state(),
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            members: members.collect(),
        }
    }

    pub(super) fn enter(&mut self, state: Phase, now: Instant) {
        self.state = state;
        self.since = now;
    }

    /// Reads what the members subscribe to, as far as the coordinator can. Of a subscription it needs the first field
    /// alone, whatever follows.
    pub(super) fn read_subscriptions(&mut self) {
        let topics = |member: &Member| {
            let metadata = member.metadata(self.protocol.as_ref());
            let behind_the_version = metadata.get(2..)?;
            let oldest = [&[0, 0], behind_the_version].concat();
            Some(Subscription::from_bytes(oldest.into()).ok()?.topics)
        };
        self.subscribed = match (self.is_of_consumers(), self.members.is_empty(), &self.protocol) {
            (true, true, _) => Some(BTreeSet::new()),
            (true, false, Some(_)) => {
                let all: Option<Vec<Vec<Str>>> = self.members.iter().map(topics).collect();
                all.map(|all| all.into_iter().flatten().collect())
            }
            _ => None,
        };
    }
}

fn read_partitions(assignment: &Bytes) -> Vec<(Str, i32)> {
    let topics = Assignment::from_bytes(assignment.clone()).map(|read| read.assigned_partitions).unwrap_or_default();
    let flat = topics.into_iter().flat_map(|topic| topic.partitions.into_iter().map(move |i| (topic.topic.clone(), i)));
    let mut partitions: Vec<_> = flat.collect();
    partitions.sort_unstable();
    partitions
}
