//! Dead-letter queues (KIP-1191): a record that a share group gives up goes to the topic that the group names.
//!
//! The group sets `errors.deadletterqueue.topic.name`. The topic must begin with the brokers' prefix for such names and
//! say that groups may use it; it is made if the brokers allow that. Given up are records that a member rejects, and
//! those that were delivered as often as they may be; not those of gaps, of aborted transactions, or that are deleted.
//!
//! Where it differs from Kafka on purpose: the letters are there at once, also in a partition that has no leader for
//! now. Kafka gives the record up first, sends the letters after, some of them together, and tries five times.

use std::collections::BTreeMap;
use std::time::Instant;

use krafka_protocol::compression::{Compressor, Decompressor};
use krafka_protocol::records::{Batch, BatchBuilder, Record};
use krafka_protocol::{Str, Uuid};

use super::batch::{RecordState, Run};
use super::persister::ShareKey;
use super::settings::Settings;
use crate::configs::Overrides;
use crate::features::SHARE_VERSION;
use crate::state::State;

/// The level of `share.version` that brings the queues.
const LEVEL: i16 = 2;
/// What a topic says that lets groups use it.
const MAY_BE_USED: &str = "errors.deadletterqueue.group.enable";
const PREFIX: &str = "errors.deadletterqueue.topic.name.prefix";
const MAY_BE_MADE: &str = "errors.deadletterqueue.auto.create.topics.enable";

/// Why a group gives records up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A member rejected them.
    Rejected,
    /// They were delivered too often.
    Spent,
}

impl Cause {
    /// Kafka's words.
    fn message(self) -> &'static str {
        match self {
            Self::Rejected => "Offset rejected by client.",
            Self::Spent => "Offset delivery count exceeded the threshold.",
        }
    }
}

/// Records next to each other that a group has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dead {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) delivery_count: i16,
    pub(super) cause: Cause,
}

impl Dead {
    /// The records of a run, if they were given up.
    pub(super) fn of(run: &Run, cause: Cause) -> Option<Self> {
        let Run { first, last, delivery_count, .. } = *run;
        (run.state == RecordState::Archived).then_some(Self { first, last, delivery_count, cause })
    }
}

/// Writes letters about all records that were given up by now, for the groups that have a queue.
pub(crate) fn bury_all(state: &mut State, now: Instant) {
    for (key, dead) in std::mem::take(&mut state.share.dead) {
        if state.feature_level(SHARE_VERSION) >= LEVEL {
            bury(state, &key, &dead, now);
        }
    }
}

fn bury(state: &mut State, key: &ShareKey, dead: &Dead, now: Instant) {
    let settings = Settings::of(state, &key.group);
    let Some(source) = state.topics.name_of(&key.topic) else { return };
    let Some((queue, partitions)) = queue(state, &settings.dead_letter_topic) else { return };
    let copies = if settings.copies_dead_letters { originals(state, key, dead) } else { BTreeMap::new() };
    let mut letters = BatchBuilder::new();
    for offset in dead.first..=dead.last {
        let original = copies.get(&offset);
        let (name, value) = (original.and_then(|it| it.key.as_deref()), original.and_then(|it| it.value.as_deref()));
        // One that is too large for any batch is lost.
        let _ = letters.try_append(state.clock.millis(now), name, value, &headers(&source, key, dead, offset));
    }
    let Ok(mut sealed) = letters.seal(&mut Compressor::none()) else { return };
    if let Ok(batch) = Batch::new(sealed.bytes()) {
        state.append(queue, key.partition.rem_euclid(partitions), &batch, now);
    }
}

/// The topic for letters and how many partitions it has, if it may be used.
fn queue(state: &mut State, name: &Str) -> Option<(Uuid, i32)> {
    let of_brokers = |config: &str| state.broker_value(config).unwrap_or_default();
    if name.is_empty() || !name.starts_with(of_brokers(PREFIX).trim()) {
        return None;
    }
    let may_be_made = of_brokers(MAY_BE_MADE).trim().eq_ignore_ascii_case("true");
    if state.topics.by_name(name).is_none() && may_be_made {
        let replicas = state.config.replication_factor;
        let assignments = (0..state.config.default_partitions).map(|index| state.place(index, replicas)).collect();
        let given = Overrides::from([(Str::from_static(MAY_BE_USED), Str::from_static("true"))]);
        state.add_topic_on(name.clone(), assignments, given);
    }
    let topic = state.topics.by_name(name).filter(|topic| topic.settings.takes_dead_letters)?;
    Some((topic.id, i32::try_from(topic.partitions.len()).ok()?))
}

/// What a letter says of its record.
fn headers(source: &Str, key: &ShareKey, dead: &Dead, offset: i64) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("__dlq.errors.topic", Some(source.to_string())),
        ("__dlq.errors.partition", Some(key.partition.to_string())),
        ("__dlq.errors.offset", Some(offset.to_string())),
        ("__dlq.errors.group", Some(key.group.to_string())),
        ("__dlq.errors.delivery.count", Some(dead.delivery_count.to_string())),
        ("__dlq.errors.message", Some(dead.cause.message().to_owned())),
    ]
}

/// The records of a stretch, by offset, as far as they are still there.
fn originals(state: &State, key: &ShareKey, dead: &Dead) -> BTreeMap<i64, Record> {
    let mut found = BTreeMap::new();
    let Some(partition) = state.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition)) else {
        return found;
    };
    let stretch = dead.first..=dead.last;
    let batches = partition.log.batches_from(dead.first).filter_map(|bytes| Batch::new(bytes.clone()).ok());
    for batch in batches.take_while(|batch| batch.header().base_offset <= dead.last) {
        let records = batch.records(&mut Decompressor::default()).and_then(|records| records.to_vec());
        let wanted = records.unwrap_or_default().into_iter().filter(|record| stretch.contains(&record.offset));
        found.extend(wanted.map(|record| (record.offset, record)));
    }
    found
}
