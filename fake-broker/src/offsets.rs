//! The offsets that groups have committed.

use std::collections::BTreeMap;
use std::time::Instant;

use krafka_protocol::Str;

/// Every group's committed offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offsets {
    groups: BTreeMap<Str, BTreeMap<Str, BTreeMap<i32, Kept>>>,
    /// What was forgotten since the log took note of it: group, topic and partition.
    forgotten: Vec<(Str, Str, i32)>,
}

/// A position that a group has committed for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The next offset that the group wants.
    pub offset: i64,
    /// The epoch of the leader that the record before it was read from, or -1.
    pub leader_epoch: i32,
    /// What the client wished to keep with it.
    pub metadata: Str,
}

/// A position, and how long it is kept.
#[derive(Clone, Debug)]
struct Kept {
    committed: Committed,
    at: Instant,
    /// Set by a commit that brought a retention time of its own.
    expires: Option<Instant>,
}

impl Offsets {
    /// Stores a position in place of the last one, which may have been further on. It is forgotten at `expires`, if
    /// that is set, and else when nobody has used it for long.
    pub(crate) fn commit(
        &mut self,
        now: Instant,
        expires: Option<Instant>,
        group: &Str,
        topic: &Str,
        partition: i32,
        committed: Committed,
    ) {
        let topics = self.groups.entry(group.clone()).or_default();
        topics.entry(topic.clone()).or_default().insert(partition, Kept { committed, at: now, expires });
    }

    /// The position of a group in a partition.
    pub(crate) fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<&Committed> {
        self.groups.get(group)?.get(topic)?.get(&partition).map(|kept| &kept.committed)
    }

    /// All positions of a group, topic by topic.
    pub(crate) fn of_group(&self, group: &str) -> impl Iterator<Item = (&Str, Vec<(i32, &Committed)>)> {
        self.groups.get(group).into_iter().flatten().map(|(topic, partitions)| {
            (topic, partitions.iter().map(|(index, kept)| (*index, &kept.committed)).collect())
        })
    }

    /// Forgets the positions in a topic that is gone, so that one of the same name starts without any.
    pub(crate) fn topic_deleted(&mut self, topic: &str) {
        for (group, topics) in &mut self.groups {
            let partitions = topics.remove_entry(topic).into_iter();
            let partitions = partitions.flat_map(|(topic, kept)| kept.into_keys().map(move |it| (topic.clone(), it)));
            self.forgotten.extend(partitions.map(|(topic, partition)| (group.clone(), topic, partition)));
        }
    }

    /// Forgets all positions of a group that is gone.
    pub(crate) fn group_deleted(&mut self, group: &str) {
        let Some((group, topics)) = self.groups.remove_entry(group) else { return };
        for (topic, partitions) in topics {
            let partitions = partitions.into_keys();
            self.forgotten.extend(partitions.map(|partition| (group.clone(), topic.clone(), partition)));
        }
    }

    /// Forgets one position.
    pub(crate) fn delete(&mut self, group: &str, topic: &str, partition: i32) {
        let Some(topics) = self.groups.get_mut(group) else { return };
        if let Some(partitions) = topics.get_mut(topic) {
            if partitions.remove(&partition).is_some() {
                self.forgotten.push((Str::from(group), Str::from(topic), partition));
            }
            if partitions.is_empty() {
                topics.remove(topic);
            }
        }
    }

    /// Forgets the positions of a group that have expired, by their topic and partition, the time of their commit, and
    /// the end that they were given. Says whether any are left.
    pub(crate) fn expire(
        &mut self,
        group: &str,
        has_expired: impl Fn(&Str, i32, Instant, Option<Instant>) -> bool,
    ) -> bool {
        let Some(topics) = self.groups.get_mut(group) else { return false };
        let forgotten = &mut self.forgotten;
        topics.retain(|topic, partitions| {
            partitions.retain(|&partition, kept| {
                let is_over = has_expired(topic, partition, kept.at, kept.expires);
                if is_over {
                    forgotten.push((Str::from(group), topic.clone(), partition));
                }
                !is_over
            });
            !partitions.is_empty()
        });
        let is_left = !topics.is_empty();
        if !is_left {
            self.groups.remove(group);
        }
        is_left
    }

    /// What was forgotten since this was last asked: group, topic and partition.
    pub(crate) fn take_forgotten(&mut self) -> Vec<(Str, Str, i32)> {
        std::mem::take(&mut self.forgotten)
    }
}
