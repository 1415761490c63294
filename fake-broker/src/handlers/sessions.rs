//! Fetch sessions (KIP-227): what a node remembers of a consumer's partitions, so that requests and answers name only
//! what changed.
//!
//! ```text
//!   epoch 0 ──▶ full fetch, a session if there is a slot ──▶ epochs 1, 2, … ──▶ incremental fetches
//!   epoch -1 ─▶ full fetch, the session named is closed
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use krafka_protocol::api::fetch::{FetchPartition, FetchTopic, ForgottenTopic, PartitionData};
use krafka_protocol::{ErrorCode, Str, Uuid};

use super::parts;
use crate::rng::Rng;

/// The epoch of a request that asks for a new session.
const INITIAL_EPOCH: i32 = 0;
/// The epoch of a request that wants no session.
const FINAL_EPOCH: i32 = -1;
/// How long a session is left alone before a larger one may take its slot: Kafka's
/// `MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`.
const EVICTION_AGE: Duration = Duration::from_secs(120);

/// In how many parts a node keeps its sessions, so that its threads do not wait for each other.
const SHARDS: i32 = 8;
/// How many session ids each part has.
const IDS_PER_SHARD: i32 = i32::MAX / SHARDS;

/// A partition that a consumer wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The topic's name; empty if the request named an unknown id.
    pub(crate) topic: Str,
    /// The topic's id, or zero where the request's version has none.
    pub(crate) topic_id: Uuid,
    pub(crate) ask: FetchPartition,
}

impl Wanted {
    fn is(&self, topic: &str, topic_id: Uuid, partition: i32) -> bool {
        let same_topic = if topic_id.is_zero() { self.topic == *topic } else { self.topic_id == topic_id };
        same_topic && self.ask.partition == partition
    }
}

/// How a request relates to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// It wants everything, and no session.
    Sessionless,
    /// It wants everything, and a session if there is room.
    Full,
    /// It belongs to a session, which is at this epoch now.
    Incremental { session: i32, epoch: i32 },
}

/// The fetch sessions of one node, in eight parts that each have an eighth of the slots. A session's id tells its part.
#[derive(Clone, Debug, Default)]
pub(crate) struct FetchSessions {
    slots_per_shard: usize,
    /// The part that the next session belongs to: they take turns.
    next_shard: i32,
    sessions: BTreeMap<i32, Session>,
}

#[derive(Clone, Debug)]
struct Session {
    /// The epoch that the next request must have.
    epoch: i32,
    by_id: bool,
    created: Instant,
    last_used: Instant,
    /// In the order that they are answered in: those that just had records come last, so that none starves.
    partitions: Vec<Cached>,
}

#[derive(Clone, Debug)]
struct Cached {
    wanted: Wanted,
    /// What the consumer was told last.
    high_watermark: i64,
    log_start_offset: i64,
}

impl FetchSessions {
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots_per_shard: slots / SHARDS as usize, next_shard: 0, sessions: BTreeMap::new() }
    }

    /// The partitions that a session remembers, by topic name and index.
    pub(crate) fn partitions(&self, session: i32) -> impl Iterator<Item = (&Str, i32)> {
        let cached = self.sessions.get(&session).into_iter().flat_map(|session| &session.partitions);
        cached.map(|cached| (&cached.wanted.topic, cached.wanted.ask.partition))
    }

    /// Forgets all sessions, as a crash does.
    pub(crate) fn clear(&mut self) {
        self.sessions.clear();
    }

    /// Finds out what a request is about: its context, and all partitions that it wants.
    pub(crate) fn begin(
        &mut self,
        (session_id, epoch): (i32, i32),
        by_id: bool,
        wanted: Vec<Wanted>,
        forgotten: &[ForgottenTopic],
        now: Instant,
    ) -> Result<(Context, Vec<Wanted>), ErrorCode> {
        if epoch == INITIAL_EPOCH || epoch == FINAL_EPOCH {
            // A full request that names a session closes it.
            self.sessions.remove(&session_id);
            let context = if epoch == FINAL_EPOCH { Context::Sessionless } else { Context::Full };
            return Ok((context, wanted));
        }
        let session = self.sessions.get_mut(&session_id).ok_or(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)?;
        if session.epoch != epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        if session.by_id != by_id {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        session.update(wanted.clone(), forgotten);
        if session.partitions.is_empty() {
            // What the request itself names is answered all the same.
            self.sessions.remove(&session_id);
            return Ok((Context::Sessionless, wanted));
        }
        session.last_used = now;
        session.epoch = next_epoch(epoch);
        let all = session.partitions.iter().map(|cached| cached.wanted.clone()).collect();
        Ok((Context::Incremental { session: session_id, epoch: session.epoch }, all))
    }

    /// Opens a session over what a full fetch answered, if there is a slot. Returns its id, or 0.
    pub(crate) fn open(
        &mut self,
        by_id: bool,
        answered: &[(Wanted, PartitionData)],
        ids: &mut Rng,
        now: Instant,
    ) -> i32 {
        let shard = self.next_shard;
        self.next_shard = (shard + 1) % SHARDS;
        if !self.make_room(shard, answered.len(), now) {
            return 0;
        }
        let id = loop {
            let id = shard * IDS_PER_SHARD + (ids.next_u64() % IDS_PER_SHARD as u64) as i32;
            if id != 0 && !self.sessions.contains_key(&id) {
                break id;
            }
        };
        let partitions = answered.iter().map(|(wanted, data)| Cached {
            wanted: wanted.clone(),
            high_watermark: data.high_watermark,
            log_start_offset: data.log_start_offset,
        });
        let session = Session {
            epoch: next_epoch(INITIAL_EPOCH),
            by_id,
            created: now,
            last_used: now,
            partitions: partitions.collect(),
        };
        self.sessions.insert(id, session);
        id
    }

    /// Keeps of a session's answer only what the consumer does not know yet.
    pub(crate) fn keep_news(
        &mut self,
        session: i32,
        epoch: i32,
        mut answered: Vec<(Wanted, PartitionData)>,
    ) -> Result<Vec<(Wanted, PartitionData)>, ErrorCode> {
        let session = self.sessions.get_mut(&session).ok_or(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)?;
        // Another request may have come in between, on another connection.
        if session.epoch != epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        answered.retain(|(wanted, data)| session.is_news(wanted, data));
        Ok(answered)
    }

    /// Says if a part has room for a session of `size` partitions, after taking the slot of one that gives way to it:
    /// one that nobody has used for long, or else the smallest of those that are smaller, and were old already when
    /// they were used last.
    fn make_room(&mut self, shard: i32, size: usize, now: Instant) -> bool {
        let of_shard = || self.sessions.range(shard * IDS_PER_SHARD..=(shard + 1) * IDS_PER_SHARD - 1);
        if of_shard().count() < self.slots_per_shard {
            return true;
        }
        let unused = of_shard().min_by_key(|(_, session)| session.last_used);
        let idle = unused.filter(|(_, session)| now.saturating_duration_since(session.last_used) > EVICTION_AGE);
        let smaller = || {
            let old = of_shard()
                .filter(|(_, session)| session.last_used.saturating_duration_since(session.created) > EVICTION_AGE);
            old.min_by_key(|(_, session)| session.partitions.len())
                .filter(|(_, session)| session.partitions.len() < size)
        };
        let Some(victim) = idle.or_else(smaller).map(|(&id, _)| id) else { return false };
        self.sessions.remove(&victim);
        true
    }
}

impl Session {
    /// Adds, changes and removes partitions as a request says.
    fn update(&mut self, wanted: Vec<Wanted>, forgotten: &[ForgottenTopic]) {
        for wanted in wanted {
            match self.find(&wanted.topic, wanted.topic_id, wanted.ask.partition) {
                Some(cached) => cached.wanted.ask = wanted.ask,
                None => self.partitions.push(Cached { wanted, high_watermark: -1, log_start_offset: -1 }),
            }
        }
        for topic in forgotten {
            for &partition in &topic.partitions {
                self.partitions.retain(|cached| !cached.wanted.is(&topic.topic, topic.topic_id, partition));
            }
        }
    }

    fn find(&mut self, topic: &str, topic_id: Uuid, partition: i32) -> Option<&mut Cached> {
        self.partitions.iter_mut().find(|cached| cached.wanted.is(topic, topic_id, partition))
    }

    /// Whether a partition's answer tells the consumer anything, and remembers that it was told.
    fn is_news(&mut self, wanted: &Wanted, data: &PartitionData) -> bool {
        let position = self
            .partitions
            .iter()
            .position(|cached| cached.wanted.is(&wanted.topic, wanted.topic_id, wanted.ask.partition));
        let Some(position) = position else { return true };
        let cached = &mut self.partitions[position];
        let has_records = data.records.as_ref().is_some_and(|records| !records.is_empty());
        let moved = cached.high_watermark != data.high_watermark || cached.log_start_offset != data.log_start_offset;
        let failed = data.error_code != 0;
        cached.log_start_offset = data.log_start_offset;
        // The first answer without the error is news, whatever it says.
        cached.high_watermark = if failed { -1 } else { data.high_watermark };
        if has_records {
            let served = self.partitions.remove(position);
            self.partitions.push(served);
        }
        has_records || moved || failed || data.diverging_epoch.epoch >= 0 || data.preferred_read_replica >= 0
    }
}

/// All partitions that a request lists, each once, with the names of their topics where they are known.
pub(crate) fn wanted(topics: &[FetchTopic], name_of: impl Fn(Uuid) -> Option<Str>) -> Vec<Wanted> {
    let mut all = Vec::new();
    for topic in topics {
        let name =
            if topic.topic_id.is_zero() { topic.topic.clone() } else { name_of(topic.topic_id).unwrap_or_default() };
        all.extend(topic.partitions.iter().map(|ask| {
            let wanted = Wanted { topic: name.clone(), topic_id: topic.topic_id, ask: ask.clone() };
            ((topic.topic_id, name.clone(), ask.partition), wanted)
        }));
    }
    parts::once(all).into_iter().map(|(_, wanted)| wanted).collect()
}

/// The epoch after `epoch`: from the highest it goes on at 1, because 0 asks for a new session.
fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}
