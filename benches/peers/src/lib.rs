//! The codec beside the `kafka-protocol` crate: for each case, what we do and what they do with the same bytes.
//!
//! Their messages are made by their own decoder from our encoding, so both hold the same values; that they encode them
//! to the same bytes again is a test.

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable};
use kafka_protocol::records::{
    Compression as TheirCompression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions,
};
use krafka_bench_cases::{batches, messages};
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::{Message, Reader, Writer};

/// One thing that both can do.
pub struct Pair {
    /// What is done to what.
    pub name: String,
    /// We do it once.
    pub ours: Box<dyn FnMut()>,
    /// They do it once.
    pub theirs: Box<dyn FnMut()>,
}

/// All of them.
pub fn all() -> Vec<Pair> {
    let mut pairs = Vec::new();
    message::<_, theirs::MetadataResponse>(&mut pairs, "metadata v12, 100 x 10 x 3", messages::metadata(), 12);
    message::<_, theirs::FetchResponse>(&mut pairs, "fetch v13, 100 x 10 x 1 KiB", messages::fetch(), 13);
    message::<_, theirs::ProduceRequest>(
        &mut pairs,
        "produce v11, 6 x 128 KiB",
        messages::produce(1, 6, 128 << 10),
        11,
    );
    message::<_, theirs::ProduceRequest>(
        &mut pairs,
        "produce v11, 100 x 10 x 1 KiB",
        messages::produce(100, 10, 1024),
        11,
    );
    message::<_, theirs::OffsetCommitRequest>(&mut pairs, "offset commit v9, 100 x 10", messages::offset_commit(), 9);
    records(&mut pairs, Compression::None, TheirCompression::None);
    records(&mut pairs, Compression::Lz4, TheirCompression::Lz4);
    pairs
}

/// Their encoding of what they decoded from `body`.
///
/// # Panics
/// If they cannot read or write it.
pub fn again<T: Decodable + Encodable>(body: &Bytes, version: i16) -> Bytes {
    let message = T::decode(&mut body.clone(), version).expect("they read what we have written");
    let mut out = BytesMut::new();
    message.encode(&mut out, version).expect("they write what they have read");
    out.freeze()
}

fn message<M, T>(pairs: &mut Vec<Pair>, what: &str, message: M, version: i16)
where
    M: Message + 'static,
    T: Decodable + Encodable + 'static,
{
    let body = messages::body(&message, version);
    assert_eq!(again::<T>(&body, version), body, "{what}: both must mean the same bytes");
    let (len, bytes) = (body.len(), body.clone());
    let their_message = T::decode(&mut body.clone(), version).expect("they read what we have written");

    pairs.push(Pair {
        name: format!("decode {what}"),
        ours: Box::new(move || {
            black_box(M::decode(&mut Reader::new(black_box(&body).clone()), version).expect("we have written it"));
        }),
        theirs: Box::new(move || {
            black_box(T::decode(&mut black_box(&bytes).clone(), version).expect("they have read it before"));
        }),
    });
    pairs.push(Pair {
        name: format!("encode {what}"),
        ours: Box::new(move || {
            let message = black_box(&message);
            let mut out = Writer::with_capacity(message.hint());
            message.encode(&mut out, version).expect("it fits its version");
            black_box(out);
        }),
        // Both have room to begin with: we what a frame is given in the client, they what they are about to write.
        theirs: Box::new(move || {
            let mut out = BytesMut::with_capacity(len);
            black_box(&their_message).encode(&mut out, version).expect("it fits its version");
            black_box(out);
        }),
    });
}

fn records(pairs: &mut Vec<Pair>, codec: Compression, their_codec: TheirCompression) {
    let (set, values) = (batches::batch(codec), batches::values());
    let their_records: Vec<Record> = RecordBatchDecoder::decode(&mut set.clone()).expect("they read ours").records;
    assert!(their_records.iter().map(|record| record.value.as_ref()).eq(values.iter().map(Some)), "the same records");

    let (bytes, mut decompressor) = (set.clone(), Decompressor::default());
    pairs.push(Pair {
        name: format!("decode 1,000 records, {codec}"),
        ours: Box::new(move || {
            black_box(batches::decode_all_at_once(black_box(&set), &mut decompressor));
        }),
        theirs: Box::new(move || {
            black_box(RecordBatchDecoder::decode(&mut black_box(&bytes).clone()).expect("they have read it before"));
        }),
    });

    let mut compressor = Compressor::new(codec, None).expect("built in");
    let mut buffer = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression: their_codec };
    pairs.push(Pair {
        name: format!("encode 1,000 records, {codec}"),
        ours: Box::new(move || {
            let mut sealed = batches::build(black_box(&values), std::mem::take(&mut buffer), &mut compressor);
            sealed.stamp(batches::STAMP);
            black_box(sealed.bytes());
            buffer = sealed.into_buffer().expect("nobody else holds it");
        }),
        theirs: Box::new(move || {
            let mut out = BytesMut::with_capacity(batches::RECORDS * (batches::SIZE + 20));
            RecordBatchEncoder::encode(&mut out, black_box(&their_records), &options).expect("they can");
            black_box(out);
        }),
    });
}
