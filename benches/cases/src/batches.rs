//! A batch of 1,000 records of 100 bytes, and the ways to write and to read it.
//!
//! The values are JSON of the kind that compresses to a half. Buffers, tables and decompressed bytes are used again
//! from one batch to the next, as producer and consumer do.

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::{Batch, BatchBuilder, Batches, NO_HEADERS, SealedBatch, Stamp};

/// How many records there are in a batch.
pub const RECORDS: usize = 1000;
/// The length of each value.
pub const SIZE: usize = 100;
/// What an idempotent producer writes into each batch.
pub const STAMP: Stamp = Stamp { producer_id: 4711, producer_epoch: 3, base_sequence: 1_000_000, transactional: false };

/// Values like `{"id":1000042,"user":"9e3779b1","ts":…,"amount":17.50,"state":"shipped"…}` of exactly 100 bytes.
pub fn values() -> Vec<Bytes> {
    const WORDS: [&str; 8] = ["active", "pending", "shipped", "cancelled", "returned", "created", "paid", "refunded"];
    let mut state = 42_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut value = |id: usize| {
        let (user, time, amount, cents, word) =
            (random(1 << 31), random(1_000_000), random(10_000), random(100), WORDS[random(8) as usize]);
        let mut json = format!(
            r#"{{"id":{},"user":"{user:08x}","ts":{},"amount":{amount}.{cents:02},"state":"{word}""#,
            1_000_000 + id,
            1_790_000_000_000 + time,
        );
        json.push_str(&format!(r#","{}":"{:x}"#, &word[..4], random(1 << 31)));
        json.truncate(SIZE - 2);
        Bytes::from(format!(r#"{json:<98}"}}"#))
    };
    (0..RECORDS).map(&mut value).collect()
}

/// The timestamp of a record: 100 of them share one.
pub fn timestamp(index: usize) -> i64 {
    1_790_000_000_000 + index as i64 / 100
}

/// Appends the values to a batch in `buffer`, and seals it.
///
/// # Panics
/// If the codec fails, which it does not.
pub fn build(values: &[Bytes], buffer: BytesMut, compressor: &mut Compressor) -> SealedBatch {
    let mut builder = BatchBuilder::with_buffer(buffer);
    for (index, value) in values.iter().enumerate() {
        builder.try_append(timestamp(index), None, Some(value), NO_HEADERS).expect("it fits");
    }
    builder.seal(compressor).expect("there are records")
}

/// The batch as it is fetched.
///
/// # Panics
/// If the codec cannot encode in this build.
pub fn batch(codec: Compression) -> Bytes {
    let mut sealed = build(&values(), BytesMut::new(), &mut Compressor::new(codec, None).expect("built in"));
    sealed.stamp(STAMP);
    sealed.bytes()
}

/// The batch that `set` consists of, with its checksum verified.
///
/// # Panics
/// If it is not one whole batch.
pub fn open(set: &Bytes) -> Batch {
    let batch = Batches::new(set.clone()).next().expect("one batch").expect("a whole batch");
    batch.verify_crc().expect("its own checksum");
    batch
}

/// Reads all records into one vector.
///
/// # Panics
/// If they cannot be read, as below.
pub fn decode_all_at_once(set: &Bytes, decompressor: &mut Decompressor) -> i64 {
    let records = open(set).records(decompressor).and_then(|records| records.to_vec());
    black_box(records.expect("readable")).len() as i64
}

/// Reads one owned record after the other.
///
/// # Panics
/// If they cannot be read.
pub fn decode_one_by_one(set: &Bytes, decompressor: &mut Decompressor) -> i64 {
    let mut count = 0;
    for record in open(set).records(decompressor).expect("readable") {
        black_box(record.expect("readable"));
        count += 1;
    }
    count
}

/// Borrows one record after the other, and touches each value, as whoever asked for it would.
///
/// # Panics
/// If they cannot be read.
pub fn decode_borrowed(set: &Bytes, decompressor: &mut Decompressor) -> i64 {
    let records = open(set).records(decompressor).expect("readable");
    records.iter().fold(0, |sum, record| {
        let record = record.expect("readable");
        sum + record.offset + i64::from(record.value.map_or(0, |value| value[8]))
    })
}
