//! What a record costs on its way into a batch and out of it: 1,000 of 100 bytes, with every codec.
//!
//! The values are JSON of the kind that compresses to a half. Buffers, tables and decompressed bytes are used again
//! from one batch to the next, as producer and consumer do. A figure divided by 1,000 is that of one record.

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use krafka_bench_cases::batches::{
    RECORDS, STAMP, batch, build, decode_all_at_once, decode_borrowed, decode_one_by_one, open, values,
};
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::BatchHeader;

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
        group.bench_function(format!("{codec}, all at once"), |bencher| {
            bencher.iter(|| decode_all_at_once(black_box(&set), &mut decompressor));
        });
        group.bench_function(format!("{codec}, one by one"), |bencher| {
            bencher.iter(|| decode_one_by_one(black_box(&set), &mut decompressor));
        });
        group.bench_function(format!("{codec}, borrowed"), |bencher| {
            bencher.iter(|| decode_borrowed(black_box(&set), &mut decompressor));
        });
    }
    group.finish();
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
