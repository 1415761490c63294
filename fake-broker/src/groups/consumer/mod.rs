//! A group of KIP-848: the coordinator assigns, and each heartbeat takes its member one step nearer to its target.
//!
//! Read in `GroupMetadataManager` of Kafka 4.0 to 4.4 and checked on 4.4.0 and 3.9.2 by `conformance/wire`. A heartbeat
//! does three things: what it says anew about its member may raise the group's epoch; an epoch ahead of the target gets
//! another target from an [assignor](assignors); and the member [takes a step](reconcile) towards it.
//!
//! On purpose other than in Kafka:
//!
//! * members come in the order of their ids where Kafka takes them in that of a hash map;
//! * regular expressions are resolved right after the heartbeat that brings them, not some milliseconds later in a
//!   thread of their own;
//! * topics that come, go or grow are seen by the next heartbeat at once.

pub(super) mod assignors;
mod classic_side;
pub(super) mod convert;
mod describe;
mod heartbeat;
mod member;
mod patterns;
mod reconcile;
#[cfg(test)]
mod tests;
mod validate;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use krafka_protocol::{ErrorCode, Str, Uuid};

use assignors::{Problem, Subscriber};
use member::{Member, MemberState, Partitions};
use patterns::Patterns;
use reconcile::{Target, reconcile};
pub(super) use validate::validate;

use super::desk::{Desk, Refusal};
use super::image::TopicMetadata;
use super::view::GroupState;
use super::{CommitScope, Committer};
use crate::config::Config;
use crate::faults::KafkaVersion;
use crate::java;

/// One group.
#[derive(Clone, Debug, Default)]
pub(super) struct ConsumerGroup {
    /// Goes up when members, their wishes or their topics change.
    epoch: i32,
    /// The epoch that the targets were computed for.
    target_epoch: i32,
    targets: BTreeMap<Str, Partitions>,
    /// When the targets were computed; `None` as long as the next ones need not wait.
    assigned_at: Option<Instant>,
    members: BTreeMap<Str, Member>,
    patterns: Patterns,
    /// What the subscribed topics looked like when the epoch last went up.
    metadata: BTreeMap<Str, TopicMetadata>,
}

impl ConsumerGroup {
    /// A group that its first member is about to join. Since Kafka 4.3 it begins a step ahead, with nobody assigned
    /// anything in it: who subscribes by an expression then waits only until its topics are found.
    pub(super) fn new(version: KafkaVersion) -> Self {
        let epoch = i32::from(version >= KafkaVersion::V4_3);
        Self { epoch, target_epoch: epoch, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn state(&self) -> GroupState {
        if self.members.is_empty() {
            GroupState::Empty
        } else if self.epoch > self.target_epoch {
            GroupState::Assigning
        } else if self.members.values().all(|member| member.is_reconciled_to(self.target_epoch)) {
            GroupState::Stable
        } else {
            GroupState::Reconciling
        }
    }

    /// When something is due in the group.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.members.values().filter_map(|member| member.timers.next()).chain(self.patterns.due()).min()
    }

    /// Does what is due but for losing members, whom it names.
    pub(super) fn expire(&mut self, desk: &Desk<'_>) -> BTreeSet<Str> {
        if self.patterns.due().is_some_and(|at| at <= desk.now) {
            self.resolve(desk);
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= desk.now);
        let mut lost = BTreeSet::new();
        for member in self.members.values_mut() {
            let timers = member.timers;
            let was_slow = timers.revocation.is_some_and(|(at, epoch)| at <= desk.now && epoch == member.epoch);
            if was_slow || is_due(timers.session) || is_due(timers.join) || is_due(timers.sync) {
                lost.insert(member.id.clone());
            } else if is_due(timers.revocation.map(|(at, _)| at)) {
                member.timers.revocation = None;
            }
        }
        lost
    }

    /// Takes members out, without asking whether the group becomes a classic one by it.
    pub(super) fn remove(&mut self, leaving: &BTreeSet<Str>, desk: &Desk<'_>) {
        if leaving.is_empty() {
            return;
        }
        for id in leaving {
            self.members.remove(id);
            self.targets.remove(id);
        }
        self.patterns.keep(&self.expressions());
        self.metadata = self.present_metadata(desk);
        self.epoch += 1;
        // Kafka 4.4 and later have an assignment for nobody then, which the next member's does not have to wait for.
        if self.members.is_empty() && desk.image.version >= KafkaVersion::V4_4 {
            self.target_epoch = self.epoch;
            self.assigned_at = None;
        }
    }

    /// Lets the sessions of all members run anew, as the next coordinator does.
    pub(super) fn reload(&mut self, desk: &Desk<'_>) {
        for member in self.members.values_mut() {
            let session = member.classic.as_ref().map_or_else(|| desk.session_timeout(), |side| side.session_timeout);
            let is_revoking = member.state == MemberState::UnrevokedPartitions && member.classic.is_none();
            member.timers = member::Timers {
                session: Some(desk.now + session),
                revocation: is_revoking.then_some((desk.now + member.rebalance_timeout, member.epoch)),
                ..member::Timers::default()
            };
        }
        self.assigned_at = None;
    }

    /// Whether some member reads a topic.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        let by_name = self.members.values().any(|member| member.topics.contains(topic));
        by_name || self.expressions().iter().any(|regex| self.patterns.topics(regex).any(|name| &**name == topic))
    }

    /// Whether offsets may be committed by who says so, and which.
    pub(super) fn check_commit(&self, by: &Committer<'_>, desk: &Desk<'_>) -> Result<CommitScope, Refusal> {
        if by.epoch < 0 && self.members.is_empty() {
            return Ok(CommitScope::All);
        }
        let is_nobody = by.epoch == -1 && by.member_id.is_empty() && by.instance_id.is_none();
        if by.is_transactional && is_nobody && desk.image.version >= KafkaVersion::V4_3 {
            return Ok(CommitScope::All);
        }
        let member = self.find(by.member_id, by.group_id)?;
        if !by.is_transactional && member.classic.is_none() && by.version < 9 {
            let message = "OffsetCommit version 9 or above must be used by members using the consumer group protocol";
            return Err(Refusal::new(ErrorCode::UNSUPPORTED_VERSION, message));
        }
        let error = member.stale_error();
        if by.epoch == member.epoch {
            return Ok(CommitScope::All);
        }
        if by.epoch > member.epoch || desk.image.version < KafkaVersion::V4_3 {
            let message =
                format!("The received epoch {} does not match the member's epoch {}.", by.epoch, member.epoch);
            return Err(Refusal::new(error, message));
        }
        // KIP-1251: an epoch of the past will do for partitions that the member has had since then.
        let since = member.assigned.iter().chain(&member.revoking).flat_map(|(topic, held)| {
            held.iter().map(move |(index, epoch)| ((*topic, *index), *epoch)).filter(|(_, epoch)| *epoch <= by.epoch)
        });
        Ok(CommitScope::Held { partitions: since.map(|(partition, _)| partition).collect(), error })
    }

    /// Whether the offsets may be told to who asks.
    pub(super) fn check_fetch(&self, group: &str, member_id: Option<&Str>, epoch: i32) -> Result<(), Refusal> {
        let Some(member_id) = member_id else {
            // Kafka trips over nobody who has an epoch.
            let trip = || Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, String::new());
            return if epoch < 0 { Ok(()) } else { Err(trip()) };
        };
        let member = self.find(member_id, group)?;
        if epoch == member.epoch {
            return Ok(());
        }
        let message = format!("The received epoch {epoch} does not match the member's epoch {}.", member.epoch);
        Err(Refusal::new(member.stale_error(), message))
    }

    fn find(&self, member_id: &str, group: &str) -> Result<&Member, Refusal> {
        self.members.get(member_id).ok_or_else(|| unknown_member(member_id, group))
    }

    fn static_member(&self, instance_id: Option<&Str>) -> Option<&Member> {
        let instance_id = instance_id?;
        self.members.values().find(|member| member.instance_id.as_ref() == Some(instance_id))
    }

    pub(super) fn has_expressions(&self) -> bool {
        self.members.values().any(|member| member.regex().is_some())
    }

    /// The regular expressions that members subscribe by.
    fn expressions(&self) -> BTreeSet<Str> {
        self.members.values().filter_map(Member::regex).cloned().collect()
    }

    /// The names of the topics that a member reads, whether they exist or not.
    fn subscription<'a>(&'a self, member: &'a Member) -> impl Iterator<Item = &'a Str> {
        member.topics.iter().chain(member.regex().into_iter().flat_map(|regex| self.patterns.topics(regex)))
    }

    fn subscribed_ids(&self, member: &Member, desk: &Desk<'_>) -> BTreeSet<Uuid> {
        self.subscription(member).filter_map(|name| desk.image.id_of(name)).collect()
    }

    fn present_metadata(&self, desk: &Desk<'_>) -> BTreeMap<Str, TopicMetadata> {
        let names: BTreeSet<&Str> = self.members.values().flat_map(|member| self.subscription(member)).collect();
        names.into_iter().filter_map(|name| Some((name.clone(), desk.image.metadata(name)?))).collect()
    }

    /// Raises the epoch if it must be, or if the subscribed topics are not what they were.
    fn raise_epoch(&mut self, must: bool, desk: &Desk<'_>) {
        let metadata = self.present_metadata(desk);
        if must || metadata != self.metadata {
            self.epoch += 1;
            self.metadata = metadata;
        }
    }

    /// The assignor that most members name, of several the first in the order of Kafka's map; the default, if none
    /// does.
    fn preferred_assignor(&self, config: &Config) -> Str {
        let mut votes: BTreeMap<&Str, usize> = BTreeMap::new();
        for name in self.members.values().filter_map(|member| member.assignor.as_ref()) {
            *votes.entry(name).or_default() += 1;
        }
        let most = votes.values().copied().max();
        let votes = java::in_hash_order(votes.into_iter().collect(), |(name, _)| java::hash(name));
        let winner = votes.into_iter().find(|(_, count)| Some(*count) == most).map(|(name, _)| name.clone());
        winner.unwrap_or_else(|| config.default_assignor())
    }

    /// Computes the targets anew if the epoch has gone up, unless the last ones are too young for that.
    fn assign(&mut self, desk: &Desk<'_>) {
        let interval = desk.assignment_interval();
        let is_young = self.assigned_at.is_some_and(|at| desk.now < at + interval);
        if self.target_epoch >= self.epoch || is_young {
            return;
        }
        let mut problem = Problem::default();
        for (id, member) in &self.members {
            let topics = self.subscribed_ids(member, desk);
            problem.topics.extend(topics.iter().map(|topic| (*topic, desk.image.partitions(*topic))));
            let target = self.targets.get(id).cloned().unwrap_or_default();
            problem.members.insert(id.clone(), Subscriber { instance_id: member.instance_id.clone(), topics, target });
        }
        self.targets = assignors::assign(&self.preferred_assignor(desk.config), &problem);
        self.target_epoch = self.epoch;
        self.assigned_at = Some(desk.now);
    }

    /// Takes a member one step towards its target.
    fn step(
        &mut self,
        id: &Str,
        has_changed: bool,
        owned: Option<&[krafka_protocol::api::consumer_group_heartbeat::TopicPartitions]>,
        desk: &Desk<'_>,
    ) {
        let Some(mut member) = self.members.get(id).cloned() else { return };
        if !has_changed && member.is_reconciled_to(self.target_epoch) {
            return;
        }
        let nothing = Partitions::new();
        let partitions = self.targets.get(id).unwrap_or(&nothing);
        let subscribed = self.subscribed_ids(&member, desk);
        let target = Target { epoch: self.target_epoch, partitions, subscribed: &subscribed, has_changed, owned };
        let before = member.progress();
        reconcile(&mut member, &target, |topic, index| self.members.values().any(|m| m.holds(topic, index)));
        // Members of the classic protocol have other timers.
        if member.classic.is_none() && member.progress() != before {
            let is_revoking = member.state == MemberState::UnrevokedPartitions;
            let ends = desk.now + member.rebalance_timeout;
            member.timers.revocation = is_revoking.then_some((ends, member.epoch));
        }
        self.members.insert(id.clone(), member);
    }

    /// Puts a member, or its next incarnation, in its place.
    fn put(&mut self, member: Member, replaced: Option<&Str>) {
        if let Some(old) = replaced {
            self.members.remove(old);
            if let Some(target) = self.targets.remove(old) {
                self.targets.insert(member.id.clone(), target);
            }
        }
        self.members.insert(member.id.clone(), member);
    }
}

impl Member {
    /// What a member whose epoch is not the one it says is told.
    fn stale_error(&self) -> ErrorCode {
        if self.classic.is_some() { ErrorCode::ILLEGAL_GENERATION } else { ErrorCode::STALE_MEMBER_EPOCH }
    }

    /// All that a step can change.
    fn progress(&self) -> (i32, i32, MemberState, member::Held, member::Held) {
        (self.epoch, self.previous_epoch, self.state, self.assigned.clone(), self.revoking.clone())
    }
}

fn unknown_member(member_id: &str, group: &str) -> Refusal {
    Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, format!("Member {member_id} is not a member of group {group}."))
}
