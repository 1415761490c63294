//! [`Chunk`]: one partition's share of a fetch, decoded as it is handed out.
//!
//! A chunk keeps the bytes as they came. Batches are checked, decompressed and decoded one at a time, on the thread of
//! whoever polls, so what is buffered costs no more memory than it had on the wire.

use std::sync::Arc;

use bytes::Bytes;
use krafka_protocol::compression::{CompressionError, Decompressor};
use krafka_protocol::records::{Batches, HeadersRef, IntoRecords, RecordsError, TimestampType};

use super::fetcher::Fetched;
use super::record::{ConsumerRecord, Headers};
use super::subscription::{Claim, Position};
use crate::{KrafkaError, TopicPartition};

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) claim: Claim,
    /// How much of the buffer's bound it takes up.
    pub(crate) bytes: usize,
    name: TopicPartition,
    batches: Batches,
    open: Option<OpenBatch>,
    /// The next offset to hand out, and the epoch of what was handed out before.
    position: Position,
    /// Behind the last whole batch.
    end: Position,
    /// What does not decode at the position. It is said again until the partition is sought away.
    fault: Option<KrafkaError>,
}

#[derive(Debug)]
struct OpenBatch {
    records: IntoRecords,
    /// How many are left in it.
    left: usize,
    /// Behind the batch, however many of its last records compaction removed.
    next: Position,
    timestamp_type: TimestampType,
    leader_epoch: Option<i32>,
}

/// How batches are checked on the way out.
#[derive(Debug)]
pub(crate) struct Decoding {
    pub(crate) check_crcs: bool,
    /// Its limit is also the budget for all that is handed out at once.
    pub(crate) decompressor: Decompressor,
}

impl Decoding {
    /// Nothing of what was decoded before is held any more, as far as the consumer is concerned.
    pub(crate) fn renew_budget(&mut self) {
        self.decompressor.set_budget(self.decompressor.limit());
    }
}

/// Why decoding stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The chunk is at its end.
    UsedUp,
    /// There are as many records as were asked for.
    Full,
    /// The next batch would exceed the budget for what is decompressed.
    OverBudget,
}

impl Chunk {
    pub(crate) fn new(name: TopicPartition, fetched: Fetched) -> Self {
        Self {
            claim: fetched.claim,
            bytes: fetched.records.len(),
            name,
            batches: Batches::new(fetched.records),
            open: None,
            position: fetched.from,
            end: fetched.next,
            fault: None,
        }
    }

    /// Where the partition stands after what was handed out.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Decodes up to `most` records into `out`.
    ///
    /// # Errors
    /// When something does not decode. The position is then in front of it, and stays there.
    #[inline]
    pub(crate) fn decode(
        &mut self,
        most: usize,
        decoding: &mut Decoding,
        out: &mut Vec<ConsumerRecord>,
    ) -> Result<Stop, KrafkaError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let full = out.len().saturating_add(most);
        loop {
            let Some(open) = &mut self.open else {
                match self.open_next(decoding)? {
                    Next::Opened => continue,
                    Next::OverBudget => return Ok(Stop::OverBudget),
                    Next::None => {
                        // Behind the last batch, also where compaction left nothing of it.
                        self.position = self.end;
                        return Ok(Stop::UsedUp);
                    }
                }
            };
            out.reserve(open.left.min(full - out.len()).min(MOST_FORESEEN));
            // A handle on the payload that outlives the borrow of the iterator. One a slice, not one a record.
            let payload = open.records.payload().clone();
            while out.len() < full {
                let Some(record) = open.records.next_ref() else {
                    // Inside a message of format 0 nothing keeps offsets below that of the message itself.
                    if open.next.offset > self.position.offset {
                        self.position = open.next;
                    }
                    self.open = None;
                    break;
                };
                let record = match record {
                    Ok(record) => record,
                    Err(error) => {
                        let fault = undecodable(&self.name, self.position.offset, &error);
                        return Err(self.fault.insert(fault).clone());
                    }
                };
                open.left = open.left.saturating_sub(1);
                // A broker sends the whole batch that the position is in, from its first record on.
                if record.offset < self.position.offset {
                    continue;
                }
                self.position = Position::new(record.offset + 1, open.next.epoch);
                out.push(ConsumerRecord {
                    topic: Arc::clone(&self.name.topic),
                    partition: self.name.partition,
                    offset: record.offset,
                    timestamp_ms: record.timestamp,
                    timestamp_type: open.timestamp_type,
                    key: record.key.map(|key| payload.slice_ref(key)),
                    value: record.value.map(|value| payload.slice_ref(value)),
                    headers: headers(record.headers, &payload),
                    leader_epoch: open.leader_epoch,
                });
            }
            if out.len() >= full {
                return Ok(Stop::Full);
            }
        }
    }

    /// Opens the next batch that has records for the user.
    fn open_next(&mut self, decoding: &mut Decoding) -> Result<Next, KrafkaError> {
        let at = self.position.offset;
        let failed = |name: &TopicPartition, error| undecodable(name, at, &error);
        loop {
            let start = self.batches.clone();
            let Some(batch) = self.batches.next() else { return Ok(Next::None) };
            let opened = batch.and_then(|batch| {
                if decoding.check_crcs {
                    batch.verify_crc()?;
                }
                let header = *batch.header();
                // Control batches are markers for the protocol; they only move the position.
                if header.attributes.is_control() || header.next_offset() <= at {
                    return Ok((header, None));
                }
                let records = batch.records(&mut decoding.decompressor)?;
                if decoding.check_crcs {
                    records.verify_crcs()?;
                }
                Ok((header, Some(records)))
            });
            let (header, records) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    // It is met again if the chunk is asked again: nothing is skipped in silence.
                    self.batches = start;
                    if is_over_budget(&error) {
                        return Ok(Next::OverBudget);
                    }
                    return Err(failed(&self.name, error));
                }
            };
            let next = Position::new(header.next_offset(), header.partition_leader_epoch);
            let Some(records) = records else {
                if next.offset > self.position.offset {
                    self.position = next;
                }
                continue;
            };
            self.open = Some(OpenBatch {
                records: records.into_iter(),
                left: usize::try_from(header.count).unwrap_or(0),
                next,
                timestamp_type: header.timestamp_type().unwrap_or(TimestampType::CreateTime),
                leader_epoch: (header.partition_leader_epoch >= 0).then_some(header.partition_leader_epoch),
            });
            return Ok(Next::Opened);
        }
    }
}

/// What [`Chunk::open_next`] found.
enum Next {
    Opened,
    OverBudget,
    None,
}

/// The most records for which room is made before the first of them has been seen.
const MOST_FORESEEN: usize = 1 << 12;

/// Whether the batch may well be within the limit, once what came before it is gone.
fn is_over_budget(error: &RecordsError) -> bool {
    matches!(error, RecordsError::Decompression { source: CompressionError::BudgetExceeded { .. }, .. })
}

#[inline]
fn headers(headers: HeadersRef<'_>, payload: &Bytes) -> Headers {
    if headers.is_empty() { Headers::default() } else { Headers::new(headers.to_headers(payload)) }
}

#[cold]
fn undecodable(name: &TopicPartition, offset: i64, error: &RecordsError) -> KrafkaError {
    let help = match error {
        RecordsError::Decompression { source: CompressionError::LimitExceeded { .. }, .. } => {
            "raise max_decompressed_size, or seek past it to go on"
        }
        _ => "seek past it to go on",
    };
    KrafkaError::RecordDeserialization {
        topic: name.topic.clone(),
        partition: name.partition,
        offset,
        message: format!("{error}; {help}").into(),
    }
}

/// Where a fetch that began at `from` and returned `records` ends: behind the last whole batch.
///
/// What does not even have a header is left for [`Chunk::decode`] to report.
pub(crate) fn end_of(records: &Bytes, from: Position) -> Position {
    let last = Batches::new(records.clone()).filter_map(Result::ok).last();
    let end = last.map(|batch| Position::new(batch.header().next_offset(), batch.header().partition_leader_epoch));
    end.filter(|end| end.offset > from.offset).unwrap_or(from)
}

/// A record is moved at least twice on its way to the user; up to this size that costs a few vector instructions.
const _: () = assert!(size_of::<ConsumerRecord>() <= 120);

#[cfg(test)]
mod tests;
