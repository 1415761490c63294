//! A consumer group as administrators and tests see it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use krafka_protocol::api::consumer_group_describe::{
    Assignment, DescribedGroup, Member as DescribedMember, TopicPartitions,
};
use krafka_protocol::{Str, Uuid};

use super::ConsumerGroup;
use super::classic_side::CONSUMER;
use super::member::{Member, Partitions, partitions_of};
use crate::config::Config;
use crate::faults::KafkaVersion;
use crate::groups::image::Image;
use crate::groups::view::{GroupKind, GroupView, MemberView};

impl ConsumerGroup {
    /// The group in the answer to ConsumerGroupDescribe.
    pub(in crate::groups) fn describe(&self, group_id: &Str, image: &Image<'_>, config: &Config) -> DescribedGroup {
        DescribedGroup {
            group_id: group_id.clone(),
            group_state: Str::from_static(self.state().name()),
            group_epoch: self.epoch,
            assignment_epoch: self.target_epoch,
            assignor_name: self.preferred_assignor(config),
            members: self.members.values().map(|member| self.describe_member(member, image)).collect(),
            ..DescribedGroup::default()
        }
    }

    /// The names of all topics that members are subscribed to or hold.
    pub(in crate::groups) fn topics_in_sight(&self, image: &Image<'_>) -> BTreeSet<Str> {
        let held = self.members.values().flat_map(|member| member.assigned.keys());
        let meant = self.targets.values().flat_map(BTreeMap::keys);
        held.chain(meant).filter_map(|id| image.name_of(*id)).collect()
    }

    /// The group as a test sees it.
    pub(in crate::groups) fn view(&self, image: &Image<'_>, config: &Config) -> GroupView {
        let members = self.members.values().map(|member| MemberView {
            id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            kind: if member.classic.is_some() { GroupKind::Classic } else { GroupKind::Consumer },
            epoch: member.epoch,
            metadata: member.classic_metadata(),
            assignment: Bytes::new(),
            partitions: named(&partitions_of(&member.assigned), image),
            target: self.targets.get(&member.id).map(|target| named(target, image)).unwrap_or_default(),
        });
        GroupView {
            kind: GroupKind::Consumer,
            state: self.state(),
            generation: self.epoch,
            protocol_type: Some(Str::from_static(CONSUMER)),
            protocol: Some(self.preferred_assignor(config)),
            leader: None,
            members: members.collect(),
        }
    }

    fn describe_member(&self, member: &Member, image: &Image<'_>) -> DescribedMember {
        let target = self.targets.get(&member.id).cloned().unwrap_or_default();
        let mut held = partitions_of(&member.assigned);
        // What it has to give up, and has not given up, is the member's in the eyes of Kafka 4.3 and later.
        if image.version >= KafkaVersion::V4_3 {
            for (topic, partitions) in partitions_of(&member.revoking) {
                held.entry(topic).or_default().extend(partitions);
            }
        }
        DescribedMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            rack_id: member.rack.clone(),
            member_epoch: member.epoch,
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            subscribed_topic_names: member.topics.iter().cloned().collect(),
            subscribed_topic_regex: Some(member.regex.clone().unwrap_or_default()),
            assignment: listed(&held, image),
            target_assignment: listed(&target, image),
            member_type: i8::from(member.classic.is_none()),
        }
    }
}

/// Partitions with the names of their topics; topics that are gone are left out.
fn listed(partitions: &Partitions, image: &Image<'_>) -> Assignment {
    let topic = |(id, indexes): (&Uuid, &BTreeSet<i32>)| {
        Some(TopicPartitions {
            topic_id: *id,
            topic_name: image.name_of(*id)?,
            partitions: indexes.iter().copied().collect(),
        })
    };
    Assignment { topic_partitions: partitions.iter().filter_map(topic).collect() }
}

fn named(partitions: &Partitions, image: &Image<'_>) -> Vec<(Str, i32)> {
    let all = partitions.iter().filter_map(|(id, indexes)| Some((image.name_of(*id)?, indexes)));
    let mut named: Vec<_> = all.flat_map(|(name, indexes)| indexes.iter().map(move |i| (name.clone(), *i))).collect();
    named.sort_unstable();
    named
}
