//! What it costs to read and write the messages that a busy client sees most.
//!
//! The shapes are those of the table in the performance notes: metadata of 100 topics with 10
//! partitions and 3 replicas each, a fetch of as many partitions, a produce of six full batches.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use krafka_bench_cases::messages::{api_versions, body, fetch, metadata, offset_commit, produce};
use krafka_protocol::frame::{encode_request, encode_response};
use krafka_protocol::{ApiKey, Message, Reader};

fn decode<M: Message>(criterion: &mut Criterion, name: &str, message: &M, version: i16) {
    let body = body(message, version);
    criterion.bench_function(&format!("decode/{name}"), |bencher| {
        bencher.iter(|| M::decode(&mut Reader::new(body.clone()), version).expect("we have written it"));
    });
}

fn codec(criterion: &mut Criterion) {
    let (metadata, fetch, commit, api_versions) = (metadata(), fetch(), offset_commit(), api_versions());
    let (large, small) = (produce(1, 6, 128 << 10), produce(100, 10, 1024));

    decode(criterion, "metadata v12, 100 x 10 x 3", &metadata, 12);
    criterion.bench_function("encode/metadata v12, 100 x 10 x 3", |bencher| {
        bencher.iter(|| encode_response(ApiKey::Metadata, black_box(&metadata), 12, 1));
    });

    decode(criterion, "fetch v13, 100 x 10 x 1 KiB", &fetch, 13);
    criterion.bench_function("encode/fetch v13, 100 x 10 x 1 KiB", |bencher| {
        bencher.iter(|| encode_response(ApiKey::Fetch, black_box(&fetch), 13, 1));
    });

    decode(criterion, "produce v11, 6 x 128 KiB", &large, 11);
    criterion.bench_function("encode/produce v11, 6 x 128 KiB", |bencher| {
        bencher.iter(|| encode_request(black_box(&large), 11, 1, Some("bench")));
    });
    criterion.bench_function("encode/produce v11, 100 x 10 x 1 KiB", |bencher| {
        bencher.iter(|| encode_request(black_box(&small), 11, 1, Some("bench")));
    });

    decode(criterion, "offset_commit v9, 100 x 10", &commit, 9);
    criterion.bench_function("encode/offset_commit v9, 100 x 10", |bencher| {
        bencher.iter(|| encode_request(black_box(&commit), 9, 1, Some("bench")));
    });

    decode(criterion, "api_versions v3", &api_versions, 3);
    criterion.bench_function("encode/api_versions v3", |bencher| {
        bencher.iter(|| encode_response(ApiKey::ApiVersions, black_box(&api_versions), 3, 1));
    });
}

criterion_group!(benches, codec);
criterion_main!(benches);
