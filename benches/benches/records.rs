//! What a record costs on its way into a batch and out of it: 1,000 of 100 bytes, with every codec.
//!
//! The values are JSON of the kind that compresses to a half. Buffers, tables and decompressed bytes are used again
//! from one batch to the next, as producer and consumer do. A figure divided by 1,000 is that of one record.

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use krafka_protocol::Bytes;
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::{Batch, BatchBuilder, BatchHeader, Batches, NO_HEADERS, SealedBatch, Stamp};

const RECORDS: usize = 1000;
const SIZE: usize = 100;
const STAMP: Stamp = Stamp { producer_id: 4711, producer_epoch: 3, base_sequence: 1_000_000, transactional: false };

/// Values like `{"id":1000042,"user":"9e3779b1","ts":…,"amount":17.50,"state":"shipped"…}` of exactly 100 bytes.
fn values() -> Vec<Bytes> {
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

fn build(values: &[Bytes], buffer: BytesMut, compressor: &mut Compressor) -> SealedBatch {
    let mut builder = BatchBuilder::with_buffer(buffer);
    for (index, value) in (0..).zip(values) {
        builder.try_append(1_790_000_000_000 + index / 100, None, Some(value), NO_HEADERS).expect("it fits");
    }
    builder.seal(compressor).expect("there are records")
}

fn batch(codec: Compression) -> Bytes {
    let mut sealed = build(&values(), BytesMut::new(), &mut Compressor::new(codec, None).expect("built in"));
    sealed.stamp(STAMP);
    sealed.bytes()
}

/// The codecs that encode in every build.
const CODECS: [Compression; 4] = [Compression::None, Compression::Lz4, Compression::Snappy, Compression::Gzip];

/// From values to bytes that can be sent: append, compress, stamp, checksum.
fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    group.throughput(Throughput::Elements(RECORDS as u64));
    let values = values();
    for codec in CODECS {
        let mut compressor = Compressor::new(codec, None).expect("built in");
        let mut buffer = BytesMut::new();
        group.bench_function(codec.name(), |bencher| {
            bencher.iter(|| {
                let mut sealed = build(black_box(&values), std::mem::take(&mut buffer), &mut compressor);
                sealed.stamp(STAMP);
                black_box(sealed.bytes());
                buffer = sealed.into_buffer().expect("nobody else holds it");
            });
        });
    }
    group.finish();
}

/// From fetched bytes to records: checksum, decompression, and either a vector of records or a walk over them.
fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(RECORDS as u64));
    for codec in CODECS {
        let set = batch(codec);
        let mut decompressor = Decompressor::default();
        group.bench_function(format!("{codec}, owned"), |bencher| {
            bencher.iter(|| {
                let batch = open(black_box(&set));
                let records = batch.records(&mut decompressor).and_then(|records| records.to_vec());
                black_box(records.expect("readable").len())
            });
        });
        group.bench_function(format!("{codec}, one by one"), |bencher| {
            bencher.iter(|| {
                let batch = open(black_box(&set));
                let records = batch.records(&mut decompressor).expect("readable");
                for record in records {
                    black_box(record.expect("readable"));
                }
            });
        });
        group.bench_function(format!("{codec}, borrowed"), |bencher| {
            bencher.iter(|| {
                let batch = open(black_box(&set));
                let records = batch.records(&mut decompressor).expect("readable");
                // Touches the value, as whoever asked for it would.
                records.iter().fold(0, |sum, record| {
                    let record = record.expect("readable");
                    sum + record.offset + i64::from(record.value.map_or(0, |value| value[8]))
                })
            });
        });
    }
    group.finish();
}

fn open(set: &Bytes) -> Batch {
    let batch = Batches::new(set.clone()).next().expect("one batch").expect("a whole batch");
    batch.verify_crc().expect("its own checksum");
    batch
}

fn parts(criterion: &mut Criterion) {
    let set = batch(Compression::None);
    criterion.bench_function("peek at a header", |bencher| {
        bencher.iter(|| black_box(BatchHeader::peek(black_box(&set)).expect("a header").next_offset()));
    });
    let mut group = criterion.benchmark_group("batch");
    group.throughput(Throughput::Bytes(set.len() as u64));
    let whole = open(&set);
    group.bench_function("checksum", |bencher| bencher.iter(|| black_box(&whole).verify_crc()));
    let mut sealed = build(&values(), BytesMut::new(), &mut Compressor::none());
    group.bench_function("stamp again", |bencher| {
        bencher.iter(|| {
            sealed.stamp(STAMP);
            black_box(sealed.bytes().len())
        });
    });
    group.finish();
}

criterion_group!(benches, encode, decode, parts);
criterion_main!(benches);
