//! Laws of record batches: what is built reads the same, however it was compressed, stamped, split or patched.

use krafka_protocol::Bytes;
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::{
    Batch, BatchBuilder, Batches, Record, SealedBatch, Stamp, assign_offsets, check_produced,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A record as it goes in.
#[derive(Clone, Debug)]
struct Input {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    // Short ones at the borders of a varint's length, and now and then more than a snappy chunk and an LZ4 block.
    prop_oneof![
        8 => vec(any::<u8>(), 0..70),
        4 => ("[a-f]{1,9}", 0..900_usize).prop_map(|(word, times)| word.repeat(times).into_bytes()),
        1 => (any::<u8>(), 30_000..90_000_usize).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![Just(-1), Just(i64::MIN), Just(i64::MAX), any::<i64>(), 1_700_000_000_000..1_700_000_100_000_i64]
}

fn record() -> impl Strategy<Value = Input> {
    let headers = vec((vec(any::<u8>(), 0..9), option::of(vec(any::<u8>(), 0..70))), 0..4);
    (timestamp(), option::of(bytes()), option::of(bytes()), headers)
        .prop_map(|(timestamp, key, value, headers)| Input { timestamp, key, value, headers })
}

fn codec() -> impl Strategy<Value = Compression> {
    let codecs: Vec<_> = Compression::ALL.into_iter().filter(|codec| Compressor::new(*codec, None).is_ok()).collect();
    proptest::sample::select(codecs)
}

fn build(inputs: &[Input], codec: Compression) -> SealedBatch {
    let mut builder = BatchBuilder::new();
    for (index, input) in inputs.iter().enumerate() {
        let (key, value) = (input.key.as_deref(), input.value.as_deref());
        let before = builder.encoded_len();
        let exact = builder.record_len(input.timestamp, key, value, &input.headers);
        let bound = BatchBuilder::max_record_len(key, value, &input.headers);

        let at = builder.try_append(input.timestamp, key, value, &input.headers).expect("it fits");

        assert_eq!(at as usize, index);
        assert_eq!(builder.encoded_len(), before + exact);
        assert!(exact <= bound && bound <= exact + 18, "{exact} {bound}");
    }
    builder.seal(&mut Compressor::new(codec, None).expect("a codec of this build")).expect("there are records")
}

fn read(batch: Bytes) -> Vec<Record> {
    let batch = Batch::new(batch).expect("a whole batch");
    batch.verify_crc().expect("its own checksum");
    batch.records(&mut Decompressor::default()).and_then(|records| records.to_vec()).expect("readable records")
}

fn assert_same(inputs: &[Input], records: &[Record], first_offset: i64) {
    assert_eq!(records.len(), inputs.len());
    for ((input, record), offset) in inputs.iter().zip(records).zip(first_offset..) {
        assert_eq!(record.offset, offset);
        assert_eq!(record.timestamp, input.timestamp);
        assert_eq!(record.key.as_deref(), input.key.as_deref());
        assert_eq!(record.value.as_deref(), input.value.as_deref());
        let headers: Vec<_> = record.headers.iter().map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec))).collect();
        assert_eq!(headers, input.headers);
    }
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn what_is_built_reads_the_same(inputs in vec(record(), 1..20), codec in codec()) {
        let mut sealed = build(&inputs, codec);

        let header = *sealed.header();
        prop_assert_eq!(header.count as usize, inputs.len());
        prop_assert_eq!(header.attributes.compression(), Ok(codec));
        prop_assert_eq!(header.base_timestamp, inputs[0].timestamp);
        prop_assert_eq!(Some(header.max_timestamp), inputs.iter().map(|input| input.timestamp).max());
        prop_assert_eq!(header.total_len(), sealed.len());
        assert_same(&inputs, &read(sealed.bytes()), 0);
        prop_assert!(check_produced(&sealed.bytes(), &mut Decompressor::default()).is_ok());
    }

    /// Borrowed, owned at once, and owned one by one.
    #[test]
    fn the_three_ways_to_read_agree(inputs in vec(record(), 1..20), codec in codec()) {
        let batch = Batch::new(build(&inputs, codec).bytes()).expect("a whole batch");
        let records = batch.records(&mut Decompressor::default()).expect("readable records");

        let at_once = records.to_vec().expect("readable records");
        let borrowed: Vec<_> = records.iter().map(|record| record.expect("readable")).collect();
        let one_by_one: Vec<_> = records.clone().into_iter().map(|record| record.expect("readable")).collect();

        prop_assert_eq!(&at_once, &one_by_one);
        for (record, borrowed) in at_once.iter().zip(&borrowed) {
            prop_assert_eq!((record.offset, record.timestamp), (borrowed.offset, borrowed.timestamp));
            prop_assert_eq!((record.key.as_deref(), record.value.as_deref()), (borrowed.key, borrowed.value));
            prop_assert_eq!(record.headers.borrowed(), borrowed.headers);
            prop_assert_eq!(&record.detach(), record);
        }
    }

    /// BR-041: a stamp changes the header and the checksum, and never a byte of the records.
    #[test]
    fn stamps_leave_the_records_alone(
        inputs in vec(record(), 1..5),
        codec in codec(),
        producer_id in any::<i64>(),
        producer_epoch in any::<i16>(),
        base_sequence in any::<i32>(),
        transactional in any::<bool>(),
    ) {
        let mut sealed = build(&inputs, codec);
        let before = sealed.bytes();

        sealed.stamp(Stamp { producer_id, producer_epoch, base_sequence, transactional });
        let after = sealed.bytes();

        let header = *Batch::new(after.clone()).expect("a whole batch").header();
        prop_assert_eq!(&header, sealed.header());
        prop_assert_eq!((header.producer_id, header.producer_epoch), (producer_id, producer_epoch));
        prop_assert_eq!((header.base_sequence, header.attributes.is_transactional()), (base_sequence, transactional));
        prop_assert_eq!(&before[61..], &after[61..]);
        assert_same(&inputs, &read(after), 0);
        // What was taken before the stamp is as it was.
        assert_same(&inputs, &read(before), 0);
    }

    /// However a batch is split, its parts hold all records in order, and only single records exceed the target.
    #[test]
    fn splitting_loses_nothing(inputs in vec(record(), 1..30), codec in codec(), target in 100..20_000_usize) {
        let mut sealed = build(&inputs, codec);
        let mut compressor = Compressor::new(codec, None).expect("a codec of this build");

        let parts = sealed.split(target, &mut compressor, &mut Decompressor::default()).expect("readable records");

        let mut records = Vec::new();
        for mut part in parts {
            prop_assert!(part.count() == 1 || part.encoded_len() <= target);
            let mut bytes = part.bytes().to_vec();
            assign_offsets(&mut bytes, records.len() as i64, 0).expect("a batch");
            records.extend(read(bytes.into()));
        }
        assert_same(&inputs, &records, 0);
    }

    /// BR-065: cut anywhere, the whole batches are read, and the rest is counted.
    #[test]
    fn a_cut_set_yields_its_whole_batches(
        sets in vec(vec(record(), 1..4), 1..5),
        codec in codec(),
        cut in any::<proptest::sample::Index>(),
    ) {
        let batches: Vec<Bytes> = sets.iter().map(|inputs| build(inputs, codec).bytes()).collect();
        let all = batches.concat();
        let cut = cut.index(all.len() + 1);
        let mut whole = Vec::new();
        let mut end = 0;
        for batch in &batches {
            if end + batch.len() > cut {
                break;
            }
            end += batch.len();
            whole.push(batch.clone());
        }

        let mut read = Batches::new(Bytes::from(all).slice(..cut));
        let found: Vec<_> = read.by_ref().map(|batch| batch.expect("a whole batch").bytes().clone()).collect();

        prop_assert_eq!(found, whole);
        prop_assert_eq!((read.position(), read.trailing_len()), (end, cut - end));
    }

    #[test]
    fn codecs_read_what_they_write(input in vec(bytes(), 0..5), codec in codec()) {
        let input = input.concat();
        let mut compressor = Compressor::new(codec, None).expect("a codec of this build");
        let mut decompressor = Decompressor::new(input.len());

        // Twice, as tables and buffers are used again.
        for _ in 0..2 {
            let compressed = compressor.compress(&input).expect("anything compresses");
            prop_assert_eq!(&decompressor.decompress(codec, compressed).expect("it was just written")[..], &input[..]);
        }
    }
}
