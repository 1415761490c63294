//! Compaction: of the records with the same key only the last one stays, and that not for ever if it is a tombstone.
//!
//! ```text
//!   │ clean: a key once │ dirty: keys are collected here │ recent, undecided, or written to: left alone │
//!   0           first_dirty_offset              first uncleanable                                   the end
//! ```
//!
//! The rules are those of Kafka's `Cleaner`. All below the first uncleanable offset is read through and written anew:
//! batches keep their offsets and sequences, and one whose records are all gone stays as a mere header where it holds
//! the last sequence of its producer. Tombstones and the marks of transactions that left nothing get a delete horizon
//! (KIP-534) when they are first met, and go when they are met after it. What was aborted goes at once.
//!
//! Other than Kafka's, this cleaner has no limit to the keys that it collects in one round.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::Bytes;
use krafka_protocol::compression::{Compression, Decompressor};
use krafka_protocol::records::{Attributes, Batch, BatchHeader, ControlRecord, RecordRef};

use super::partition::{Log, Stored};
use super::rewrite::rewritten;
use crate::topics::TopicSettings;

/// The attribute bit of a batch whose base timestamp is a delete horizon.
const DELETE_HORIZON: i16 = 1 << 6;

/// What may be cleaned.
#[derive(Clone, Copy, Debug)]
struct Cleanable {
    first_dirty_offset: i64,
    end_offset: i64,
}

/// A transaction that was aborted.
#[derive(Clone, Copy, Debug)]
struct Aborted {
    producer_id: i64,
    first_offset: i64,
    marker_offset: i64,
}

/// What one round of cleaning knows.
struct Round {
    /// The last offset of each key of the dirty part.
    latest: BTreeMap<Bytes, i64>,
    aborted: Vec<Aborted>,
    /// The last batch that tells how far a producer is: by its last offset.
    last_of_producer: BTreeMap<i64, i64>,
    end_offset: i64,
    now_ms: i64,
    delete_retention_ms: i64,
}

/// What a round has met so far.
#[derive(Default)]
struct Seen {
    /// The producers that have written in their open transactions.
    open: BTreeSet<i64>,
    /// The marks of transactions that had left nothing before this round.
    bare_marks: Vec<i64>,
}

impl Log {
    /// Compacts the log if it is dirty enough, or has dirt that is old enough. Says if it was.
    pub(crate) fn clean_if_dirty(&mut self, settings: &TopicSettings, now_ms: i64) -> bool {
        let Some(range) = self.cleanable(settings, now_ms) else { return false };
        let size = |from: i64, to: i64| self.segment((from, to)).iter().map(|batch| batch.bytes.len()).sum::<usize>();
        let (clean, dirty) =
            (size(i64::MIN, range.first_dirty_offset), size(range.first_dirty_offset, range.end_offset));
        let oldest = self.segment((range.first_dirty_offset, range.end_offset)).iter().map(|batch| batch.max_timestamp);
        let is_late = oldest.min().is_some_and(|oldest| now_ms.saturating_sub(oldest) > settings.max_compaction_lag_ms);
        let is_dirty = dirty as f64 > (clean + dirty) as f64 * f64::from(settings.min_dirty_ppm) / 1_000_000.0;
        if dirty == 0 || !(is_dirty || is_late) {
            return false;
        }
        self.clean(range, settings, now_ms);
        true
    }

    /// Compacts all that is committed, whatever the topic says of when.
    pub(crate) fn clean_now(&mut self, settings: &TopicSettings, now_ms: i64) {
        self.segments.roll(self.end_offset);
        let settings = TopicSettings { min_compaction_lag_ms: 0, ..settings.clone() };
        if let Some(range) = self.cleanable(&settings, now_ms) {
            self.clean(range, &settings, now_ms);
        }
    }

    /// What may be cleaned, by whole segments: neither the active one, nor what is not stable, nor what is too recent.
    fn cleanable(&self, settings: &TopicSettings, now_ms: i64) -> Option<Cleanable> {
        let first_dirty_offset = self.first_dirty_offset.max(self.start_offset);
        let stable = self.last_stable_offset();
        let youngest = now_ms.saturating_sub(settings.min_compaction_lag_ms);
        let is_recent = |range: (i64, i64)| {
            let newest = self.segment(range).iter().map(|batch| batch.max_timestamp).max();
            settings.min_compaction_lag_ms > 0 && newest.is_some_and(|newest| newest > youngest)
        };
        let mut end_offset = self.segments.ranges(self.end_offset).next()?.0;
        for range in self.segments.ranges(self.end_offset) {
            let is_active = range.0 == self.segments.active_base();
            if is_active || range.1 > stable || (range.1 > first_dirty_offset && is_recent(range)) {
                break;
            }
            end_offset = range.1;
        }
        (end_offset > first_dirty_offset).then_some(Cleanable { first_dirty_offset, end_offset })
    }

    fn clean(&mut self, range: Cleanable, settings: &TopicSettings, now_ms: i64) {
        self.merge_segments(range.end_offset, settings.segment_bytes);
        let after = self.batches.partition_point(|batch| batch.base_offset < range.end_offset);
        // Their marks may lie beyond what is cleaned.
        let aborted = aborted(&self.batches);
        let round = Round {
            latest: latest_offsets(&self.batches[..after], range.first_dirty_offset, &aborted),
            aborted,
            last_of_producer: last_of_producers(&self.batches),
            end_offset: range.end_offset,
            now_ms,
            delete_retention_ms: settings.delete_retention_ms,
        };
        let mut seen = Seen::default();
        let cleaned: Vec<Stored> =
            self.batches[..after].iter().filter_map(|stored| round.keep(stored, &mut seen)).collect();
        self.batches.splice(..after, cleaned);
        self.aborted.emptied(&seen.bare_marks);
        self.first_dirty_offset = range.end_offset;
    }

    /// Makes fewer segments of those that are cleaned, none larger than allowed.
    fn merge_segments(&mut self, end_offset: i64, most: usize) {
        let mut group: Option<((i64, i64), usize)> = None;
        let ranges: Vec<_> = self.segments.ranges(self.end_offset).take_while(|range| range.1 <= end_offset).collect();
        let mut groups = Vec::new();
        for range in ranges {
            let size = self.segment(range).iter().map(|batch| batch.bytes.len()).sum::<usize>();
            group = match group {
                Some(((base, _), sum)) if sum + size <= most => Some(((base, range.1), sum + size)),
                full => {
                    groups.extend(full);
                    Some((range, size))
                }
            };
        }
        for (range, _) in groups.into_iter().chain(group) {
            self.segments.merge(range);
        }
    }
}

impl Round {
    /// What is left of a batch.
    fn keep(&self, stored: &Stored, seen: &mut Seen) -> Option<Stored> {
        // What cannot be read is left as it is.
        let Ok(batch) = Batch::new(stored.bytes.clone()) else { return Some(stored.clone()) };
        let header = *batch.header();
        let Ok(records) = batch.records(&mut Decompressor::default()) else { return Some(stored.clone()) };
        let Ok(records) = records.iter().collect::<Result<Vec<_>, _>>() else { return Some(stored.clone()) };

        let is_control = header.attributes.is_control();
        let is_empty_transaction = is_control && !seen.open.remove(&header.producer_id);
        if is_empty_transaction {
            seen.bare_marks.push(stored.last_offset);
        }
        let is_past_horizon = header.delete_horizon_ms().is_some_and(|horizon| horizon <= self.now_ms);
        if header.attributes.is_transactional() && !is_control {
            seen.open.insert(header.producer_id);
        }
        let discards = match is_control {
            true => is_empty_transaction && is_past_horizon,
            false => self.is_aborted(&header),
        };
        let stays = |record: &RecordRef<'_>| !discards && (is_control || self.is_latest(record, is_past_horizon));
        let kept: Vec<_> = records.iter().copied().filter(stays).collect();
        if kept.is_empty() {
            let is_last_of_producer =
                header.has_producer_id() && self.last_of_producer.get(&header.producer_id) == Some(&stored.last_offset);
            let stays = is_last_of_producer || stored.last_offset + 1 == self.end_offset;
            return if stays { self.emptied(stored, &header) } else { None };
        }
        let has_tombstones = kept.iter().any(|record| record.value.is_none()) || is_empty_transaction;
        let needs_horizon = has_tombstones && header.delete_horizon_ms().is_none();
        if kept.len() == records.len() && !needs_horizon {
            return Some(stored.clone());
        }
        self.rewritten(stored, &header, &kept, needs_horizon)
    }

    /// Whether a record is the last of its key, and no tombstone whose time is over.
    fn is_latest(&self, record: &RecordRef<'_>, is_past_horizon: bool) -> bool {
        if record.offset >= self.end_offset {
            return true;
        }
        let Some(key) = record.key else { return false };
        let is_latest = self.latest.get(key).is_none_or(|&latest| record.offset >= latest);
        is_latest && (record.value.is_some() || !is_past_horizon)
    }

    fn is_aborted(&self, header: &BatchHeader) -> bool {
        header.attributes.is_transactional() && is_aborted(&self.aborted, header)
    }

    /// The header of a batch, alone.
    fn emptied(&self, stored: &Stored, header: &BatchHeader) -> Option<Stored> {
        let attributes = Attributes(header.attributes.0 & !DELETE_HORIZON);
        let header = BatchHeader { attributes, base_timestamp: -1, ..*header };
        let bytes = rewritten(&header, [], Compression::None)?.freeze();
        Some(Stored { bytes, ..stored.clone() })
    }

    fn rewritten(
        &self,
        stored: &Stored,
        header: &BatchHeader,
        records: &[RecordRef<'_>],
        needs_horizon: bool,
    ) -> Option<Stored> {
        let codec = header.attributes.compression().ok()?;
        let horizon = match needs_horizon {
            true => Some(self.now_ms.saturating_add(self.delete_retention_ms)),
            false => header.delete_horizon_ms(),
        };
        let attributes = horizon.map_or(header.attributes, |_| Attributes(header.attributes.0 | DELETE_HORIZON));
        let first = records.first().map_or(-1, |record| record.timestamp);
        let max_timestamp = records.iter().map(|record| record.timestamp).max().unwrap_or(-1);
        let header = BatchHeader { attributes, base_timestamp: horizon.unwrap_or(first), max_timestamp, ..*header };
        let bytes = rewritten(&header, records.iter().copied(), codec)?.freeze();
        Some(Stored { bytes, max_timestamp, ..stored.clone() })
    }
}

/// The transactions that were aborted, as the marks in the log tell.
fn aborted(batches: &[Stored]) -> Vec<Aborted> {
    let mut open = BTreeMap::new();
    let mut aborted = Vec::new();
    for batch in batches {
        let Ok(header) = BatchHeader::peek(&batch.bytes) else { continue };
        if !header.attributes.is_control() {
            if header.attributes.is_transactional() {
                open.entry(header.producer_id).or_insert(batch.base_offset);
            }
        } else if let Some(first_offset) = open.remove(&header.producer_id).filter(|_| is_abort(batch)) {
            aborted.push(Aborted { producer_id: header.producer_id, first_offset, marker_offset: batch.base_offset });
        }
    }
    aborted
}

/// Whether a control batch says that a transaction was aborted.
fn is_abort(stored: &Stored) -> bool {
    let Ok(batch) = Batch::new(stored.bytes.clone()) else { return false };
    let Ok(records) = batch.records(&mut Decompressor::default()) else { return false };
    let first = records.iter().next().and_then(Result::ok);
    first.is_some_and(|record| {
        ControlRecord::parse(record.key, record.value).is_ok_and(|mark| mark.kind() == ControlRecord::ABORT)
    })
}

fn is_aborted(aborted: &[Aborted], header: &BatchHeader) -> bool {
    aborted.iter().any(|it| {
        it.producer_id == header.producer_id && (it.first_offset..it.marker_offset).contains(&header.base_offset)
    })
}

/// The last offset of each key from `from` on, but for what was aborted.
fn latest_offsets(batches: &[Stored], from: i64, aborted: &[Aborted]) -> BTreeMap<Bytes, i64> {
    let mut latest = BTreeMap::new();
    let mut decompressor = Decompressor::default();
    let first = batches.partition_point(|batch| batch.last_offset < from);
    for stored in &batches[first..] {
        let Ok(batch) = Batch::new(stored.bytes.clone()) else { continue };
        let header = batch.header();
        if header.attributes.is_control() || (header.attributes.is_transactional() && is_aborted(aborted, header)) {
            continue;
        }
        let Ok(records) = batch.records(&mut decompressor) else { continue };
        for record in records.iter().filter_map(Result::ok).filter(|record| record.offset >= from) {
            if let Some(key) = record.key {
                latest.insert(Bytes::copy_from_slice(key), record.offset);
            }
        }
    }
    latest
}

/// For each producer the last offset of the batch that has its newest sequence, or else its newest epoch.
fn last_of_producers(batches: &[Stored]) -> BTreeMap<i64, i64> {
    let mut last: BTreeMap<i64, (i16, bool, i64)> = BTreeMap::new();
    for stored in batches {
        let Ok(header) = BatchHeader::peek(&stored.bytes) else { continue };
        if !header.has_producer_id() {
            continue;
        }
        let is_data = !header.attributes.is_control();
        let known = last.get(&header.producer_id);
        // A mark of the same epoch says nothing new after data.
        if is_data || known.is_none_or(|&(epoch, is_data, _)| epoch != header.producer_epoch || !is_data) {
            last.insert(header.producer_id, (header.producer_epoch, is_data, stored.last_offset));
        }
    }
    last.into_iter().map(|(producer_id, (_, _, offset))| (producer_id, offset)).collect()
}

#[cfg(test)]
mod tests {
    use krafka_protocol::compression::Compressor;
    use krafka_protocol::records::BatchBuilder;

    use super::*;

    /// Five records with keys of their own, each in a segment of its own, the last of which is written to; and the size
    /// of one.
    fn five(settings: &TopicSettings) -> (Log, usize) {
        let mut log = Log::default();
        log.begin_epoch(0);
        let mut size = 0;
        for key in ["a", "b", "c", "d", "e"] {
            let mut builder = BatchBuilder::new();
            builder.try_append::<&str, &str>(1, Some(key.as_bytes()), Some(b"v"), &[]).expect("there is room");
            let bytes = builder.seal(&mut Compressor::none()).expect("a batch").bytes();
            size = bytes.len();
            log.append(&Batch::new(bytes).expect("a batch"), settings, 1);
        }
        log.raise_high_watermark(5);
        (log, size)
    }

    /// What is cleaned becomes fewer segments, none of which is larger than a topic's may be.
    #[test]
    fn segments_are_merged_up_to_their_size() {
        let each_alone = TopicSettings { segment_bytes: 1, compacted: true, ..TopicSettings::default() };
        let (log, size) = five(&each_alone);

        for (segment_bytes, expected) in [
            (size, vec![(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
            (2 * size, vec![(0, 2), (2, 4), (4, 5)]),
            (3 * size, vec![(0, 3), (3, 4), (4, 5)]),
            (10 * size, vec![(0, 4), (4, 5)]),
        ] {
            let mut log = log.clone();
            assert!(log.clean_if_dirty(&TopicSettings { segment_bytes, ..each_alone.clone() }, 1));
            assert_eq!(log.segments.ranges(5).collect::<Vec<_>>(), expected, "{segment_bytes}");
        }
    }

    /// A log that never gets dirty enough is cleaned when what is dirty gets too old.
    #[test]
    fn old_dirt_is_cleaned_however_little_it_is() {
        let settings = TopicSettings {
            segment_bytes: 1,
            compacted: true,
            min_dirty_ppm: 1_000_000,
            max_compaction_lag_ms: 100,
            ..TopicSettings::default()
        };
        let (mut log, _) = five(&settings);

        assert!(!log.clean_if_dirty(&settings, 101));
        assert!(log.clean_if_dirty(&settings, 102));
        assert!(!log.clean_if_dirty(&settings, 102), "nothing is left to be cleaned");
    }
}
