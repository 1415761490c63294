//! Groups and their coordinators, as a test sees and moves them.

use std::collections::BTreeMap;

use krafka_protocol::{ErrorCode, Str};

use super::FakeCluster;
use crate::configs::of_group;
use crate::coordinators::log::{self, Commit};
use crate::coordinators::{self, CoordinatorKind};
use crate::groups::{self, Committer, GroupView};
use crate::handlers::commits;
use crate::offsets::Committed;
use crate::operations::Operation;

impl FakeCluster {
    /// Returns a group as it is now, or `None` if nobody ever joined it.
    pub fn group(&self, group: &str) -> Option<GroupView> {
        self.look(|state| groups::view(state, group))
    }

    /// Sets something for one group, by Kafka's name of it, such as `consumer.session.timeout.ms`; `None` lets the
    /// cluster's setting hold again.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If groups have no such config, or it cannot have that value. The bounds that brokers set for it are not asked.
    #[track_caller]
    pub fn set_group_config(&self, group: &str, name: &str, value: Option<&str>) {
        let checked = self.look(|state| {
            let config = of_group(name, state.cluster_version());
            let config = config.ok_or_else(|| format!("Unknown group config name: {name}"))?;
            value.map_or(Ok(()), |value| config.check(value))
        });
        checked.unwrap_or_else(|reason| panic!("{reason}"));
        self.control(|state, _| state.set_group_config(&group.into(), &name.into(), value.map(Str::from)));
    }

    /// Returns the offsets that a group committed, by topic and partition.
    pub fn committed(&self, group: &str) -> BTreeMap<(Str, i32), i64> {
        self.look(|state| {
            let topics = state.offsets.of_group(group);
            let flat = topics.flat_map(|(topic, partitions)| {
                partitions.into_iter().map(|(partition, committed)| ((topic.clone(), partition), committed.offset))
            });
            flat.collect()
        })
    }

    /// Commits an offset for a group, whether it has members or not. A group that is not there is made by it, without
    /// members, as by the first commit of a consumer that manages its partitions itself.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such partition, the group has no name, nobody coordinates it, or the metadata is longer than
    /// `offset.metadata.max.bytes`.
    #[track_caller]
    pub fn commit(&self, group: &str, topic: &str, partition: i32, offset: i64, metadata: &str) {
        self.try_commit(group, topic, partition, offset, metadata).unwrap_or_else(|reason| panic!("{reason}"));
    }

    /// Commits an offset as [`commit`](Self::commit) does.
    ///
    /// # Errors
    ///
    /// Why it cannot be done, in words. Nothing has changed then.
    pub(crate) fn try_commit(
        &self,
        group: &str,
        topic: &str,
        partition: i32,
        offset: i64,
        metadata: &str,
    ) -> Result<(), String> {
        if group.is_empty() {
            return Err("a group has a name".to_owned());
        }
        let committed = Committed { offset, leader_epoch: -1, metadata: metadata.into() };
        self.control(|state, now| {
            if state.topics.partition(topic, partition).is_none() {
                return Err(format!("there is no partition {topic}-{partition}"));
            }
            // Found out before anything changes: what is kept is written to the log, which takes no more.
            if commits::is_too_long(state, metadata) {
                let name = ErrorCode::OFFSET_METADATA_TOO_LARGE.name();
                return Err(format!("{name}: the metadata is longer than offset.metadata.max.bytes"));
            }
            coordinators::ensure_topic(state, CoordinatorKind::Group);
            if coordinators::find(state, CoordinatorKind::Group, group).is_none() {
                return Err(format!("nobody coordinates the group {group}: its partition has no leader"));
            }
            let (group, topic) = (Str::from(group), Str::from(topic));
            let by = Committer {
                group_id: &group,
                member_id: &Str::default(),
                instance_id: None,
                epoch: -1,
                version: 0,
                is_transactional: false,
            };
            let (groups, image) = groups::at(state, -1);
            // Who is at work there would refuse it; a test may all the same.
            let _ = groups.check_commit(&image, &by, now);
            groups::settle(state, &group, now);
            state.offsets.commit(now, None, &group, &topic, partition, committed.clone());
            let commit = Commit { topic, partition, committed, expires_ms: None };
            log::write_commits(state, &group, &[commit], None, now);
            Ok(())
        })
    }

    /// Returns the node that coordinates a group, or -1 when nobody does: its partition of `__consumer_offsets` has no
    /// leader.
    pub fn coordinator(&self, group: &str) -> i32 {
        self.control(|state, _| {
            coordinators::ensure_topic(state, CoordinatorKind::Group);
            coordinators::find(state, CoordinatorKind::Group, group).unwrap_or(-1)
        })
    }

    /// Makes a node the coordinator of a group, and of all groups that share its partition of `__consumer_offsets`:
    /// that partition's leader moves.
    ///
    /// # Panics
    ///
    /// If the node is not up.
    #[track_caller]
    pub fn move_coordinator(&self, group: &str, node: i32) {
        self.expect(Operation::MoveCoordinator { group: Some(group.to_owned()), transactional_id: None, node });
    }
}
