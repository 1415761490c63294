//! What a share fetch finds in the log of a partition: how much there is, and which records its member gets.

use bytes::{Bytes, BytesMut};
use krafka_protocol::records::{AbortedTxn, BatchHeader};

use crate::groups::share::{self, Acquired, Extent, Settings, ShareKey, Wish};
use crate::state::State;

/// Where the field ends that has a batch's length, which counts from there.
const LENGTH_END: usize = 12;

/// How many bytes there are from where the group reads on, as far as it matters whether there are `enough`; none if the
/// group may not have more now.
pub(super) fn bytes_ready(state: &mut State, key: &ShareKey, enough: usize, settings: &Settings) -> usize {
    read(state, key, settings, enough, true).map_or(0, |(_, records)| records.len())
}

/// Acquires records of one partition. Returns the batches that hold them, and which of their records they are.
pub(super) fn acquire(
    state: &mut State,
    key: &ShareKey,
    wish: &Wish,
    max_bytes: usize,
    at_least_one: bool,
    settings: &Settings,
) -> (Bytes, Vec<Acquired>) {
    let Some((fetch_offset, records)) = read(state, key, settings, max_bytes, at_least_one) else {
        return Default::default();
    };
    let batches = batches(&records);
    let extents: Vec<Extent> = batches.iter().map(|(extent, ..)| *extent).collect();
    let aborted = if settings.read_committed { aborted(state, key, &batches) } else { Vec::new() };
    let Some(partition) = state.share.partition_mut(key) else { return Default::default() };
    let acquired = partition.acquire(wish, fetch_offset, &extents, &settings.limits);
    let acquired = partition.archive_aborted(&wish.lock.member, acquired, &aborted);
    share::locks_changed(state, key);
    let (Some(first), Some(last)) = (acquired.first().map(|got| got.first), acquired.last().map(|got| got.last)) else {
        return Default::default();
    };
    let held = batches.iter().filter(|(extent, ..)| extent.last >= first && extent.base <= last);
    let mut slice = BytesMut::new();
    held.for_each(|(.., bytes)| slice.extend_from_slice(bytes));
    (slice.freeze(), acquired)
}

/// Which batches belong to aborted transactions.
fn aborted(state: &State, key: &ShareKey, batches: &[(Extent, BatchHeader, Bytes)]) -> Vec<Extent> {
    let partition = state.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
    let (Some(partition), Some((first, ..)), Some((last, ..))) = (partition, batches.first(), batches.last()) else {
        return Vec::new();
    };
    let transactions: Vec<&AbortedTxn> = partition.log.aborted(first.base, last.last + 1).collect();
    let is_of_one = |header: &BatchHeader| {
        transactions.iter().any(|aborted| {
            // The mark that ends a transaction is given with what follows it: clients know it and pass over it.
            aborted.producer_id == header.producer_id
                && !header.attributes.is_control()
                && (aborted.first_offset..=aborted.last_offset).contains(&header.base_offset)
        })
    };
    batches.iter().filter(|(_, header, _)| is_of_one(header)).map(|(extent, ..)| *extent).collect()
}

/// Reads the log from where the group reads on: the offset, and the batches.
fn read(
    state: &mut State,
    key: &ShareKey,
    settings: &Settings,
    max_bytes: usize,
    at_least_one: bool,
) -> Option<(i64, Bytes)> {
    let State { topics, share, .. } = state;
    let log = &topics.by_id(key.topic)?.partition(key.partition)?.log;
    let partition = share.partition_mut(key)?;
    if !partition.can_acquire(&settings.limits) {
        return None;
    }
    // What was deleted is only noticed by who would read it.
    if partition.next_fetch_offset() < log.start_offset() {
        partition.log_starts_at(log.start_offset());
    }
    let fetch_offset = partition.next_fetch_offset();
    let limit = if settings.read_committed { log.last_stable_offset() } else { log.high_watermark() };
    let records = log.read(fetch_offset, limit, max_bytes, at_least_one);
    Some((fetch_offset, records))
}

/// The whole batches of what was read, each with the offsets that it covers.
fn batches(records: &Bytes) -> Vec<(Extent, BatchHeader, Bytes)> {
    let mut batches = Vec::new();
    let mut rest = records.clone();
    // What is behind the last whole batch was cut where the bytes ended.
    while let Ok(header) = BatchHeader::peek(&rest) {
        let length = LENGTH_END + usize::try_from(header.batch_length).unwrap_or(0);
        if length > rest.len() {
            break;
        }
        let last = header.base_offset + i64::from(header.last_offset_delta);
        batches.push((Extent { base: header.base_offset, last }, header, rest.split_to(length)));
    }
    batches
}
