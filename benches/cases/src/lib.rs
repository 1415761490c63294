//! What all measurements of the codec share: the messages, the batches, and one closure for each thing measured.
//!
//! `benches/check` counts instructions of the cases under callgrind, `tests/allocations.rs` their allocations,
//! `krafka-benches` and `benches/peers` take the time of the same messages.

pub mod batches;
pub mod messages;

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::frame::{encode_request, encode_response};
use krafka_protocol::{ApiKey, Message, Reader, Request};

/// One thing that is measured.
pub struct Case {
    /// What is done to what, as tables and baselines name it.
    pub name: String,
    run: Box<dyn FnMut()>,
}

impl Case {
    fn new(name: impl Into<String>, run: impl FnMut() + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }

    /// Does it once. What it makes is dropped inside.
    pub fn run(&mut self) {
        (self.run)();
    }
}

/// All of them: messages first, then batches.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    response(&mut cases, "metadata v12, 100 x 10 x 3", ApiKey::Metadata, messages::metadata(), 12);
    response(&mut cases, "fetch v13, 100 x 10 x 1 KiB", ApiKey::Fetch, messages::fetch(), 13);
    request(&mut cases, "produce v11, 6 x 128 KiB", messages::produce(1, 6, 128 << 10), 11);
    request(&mut cases, "produce v11, 100 x 10 x 1 KiB", messages::produce(100, 10, 1024), 11);
    request(&mut cases, "offset commit v9, 100 x 10", messages::offset_commit(), 9);
    response(&mut cases, "api versions v3", ApiKey::ApiVersions, messages::api_versions(), 3);
    for codec in [Compression::None, Compression::Lz4] {
        records(&mut cases, codec);
    }
    cases
}

fn request<M: Request + 'static>(cases: &mut Vec<Case>, what: &str, message: M, version: i16) {
    decode::<M>(cases, what, &message, version);
    cases.push(Case::new(format!("encode {what}"), move || {
        black_box(encode_request(black_box(&message), version, 1, Some("bench")).expect("the message fits"));
    }));
}

fn response<M: Message + 'static>(cases: &mut Vec<Case>, what: &str, key: ApiKey, message: M, version: i16) {
    decode::<M>(cases, what, &message, version);
    cases.push(Case::new(format!("encode {what}"), move || {
        black_box(encode_response(key, black_box(&message), version, 1).expect("the message fits"));
    }));
}

fn decode<M: Message>(cases: &mut Vec<Case>, what: &str, message: &M, version: i16) {
    let body = messages::body(message, version);
    cases.push(Case::new(format!("decode {what}"), move || {
        black_box(M::decode(&mut Reader::new(black_box(&body).clone()), version).expect("we have written it"));
    }));
}

fn records(cases: &mut Vec<Case>, codec: Compression) {
    let values = batches::values();
    let mut compressor = Compressor::new(codec, None).expect("built in");
    let mut buffer = BytesMut::new();
    cases.push(Case::new(format!("encode 1,000 records, {codec}"), move || {
        let mut sealed = batches::build(black_box(&values), std::mem::take(&mut buffer), &mut compressor);
        sealed.stamp(batches::STAMP);
        black_box(sealed.bytes());
        buffer = sealed.into_buffer().expect("nobody else holds it");
    }));

    for (how, run) in WALKS {
        let (set, mut decompressor) = (batches::batch(codec), Decompressor::default());
        cases.push(Case::new(format!("decode 1,000 records, {codec}, {how}"), move || {
            black_box(run(black_box(&set), &mut decompressor));
        }));
    }
}

/// A way to read a batch.
type Walk = fn(&Bytes, &mut Decompressor) -> i64;

const WALKS: [(&str, Walk); 3] = [
    ("all at once", batches::decode_all_at_once),
    ("one by one", batches::decode_one_by_one),
    ("borrowed", batches::decode_borrowed),
];
