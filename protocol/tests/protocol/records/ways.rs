//! Every way into and out of a batch that the other tests do not go.

use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::{
    Batch, BatchBuilder, BatchHeader, Batches, HEADER_LEN, InvalidBatch, NO_HEADERS, Records, RecordsError, Stamp,
    check_produced, rewrite_batch,
};
use krafka_protocol::{Bytes, RecordBatchBuilder};

const HEADERS: &[(&str, Option<&str>)] = &[("a", Some("1")), ("b", None), ("a", Some("2"))];

/// Three records: one with headers, one with a value only, and a tombstone.
fn builder() -> BatchBuilder {
    let mut builder = BatchBuilder::new();
    builder.try_append(1_000, Some(b"k0"), Some(b"v0"), HEADERS).expect("it fits");
    builder.try_append(1_001, None, Some(b"v1"), NO_HEADERS).expect("it fits");
    builder.try_append(1_002, Some(b"k2"), None, NO_HEADERS).expect("it fits");
    builder
}

fn records_of(bytes: Bytes) -> (BatchHeader, Records) {
    let batch = Batch::new(bytes).expect("our own batch");
    batch.verify_crc().expect("our own checksum");
    (*batch.header(), batch.records(&mut Decompressor::default()).expect("our own records"))
}

#[test]
fn borrowed_and_owned_records_say_the_same_of_their_headers() {
    let (_, records) = records_of(builder().seal(&mut Compressor::none()).expect("records").bytes());

    let owned = records.to_vec().expect("our own records");

    for (borrowed, owned) in records.iter().map(|record| record.expect("our own record")).zip(&owned) {
        assert_eq!(borrowed.headers.to_headers(records.payload()), owned.headers);
        assert_eq!(
            (borrowed.headers.len(), borrowed.headers.is_empty()),
            (owned.headers.len(), owned.headers.is_empty())
        );
        assert_eq!(borrowed.headers.last("a"), owned.headers.last("a"));
        assert_eq!(format!("{:?}", borrowed.headers), format!("{:?}", owned.headers));
        assert_eq!(borrowed.value.map(|value| records.share(value)), owned.value);
    }
    let headers = &owned[0].headers;
    assert_eq!((headers.len(), headers.is_empty()), (3, false));
    assert_eq!((owned[1].headers.len(), owned[1].headers.is_empty()), (0, true));
    assert_eq!(headers.last("a").and_then(|header| header.value), Some(&b"2"[..]));
    assert_eq!(headers.last("b").map(|header| header.value), Some(None));
    assert_eq!(headers.last("c"), None);
    let shared: Vec<_> = headers.iter_shared().collect();
    assert_eq!(shared.len(), 3);
    for ((name, value), header) in shared.iter().zip(headers.iter()) {
        assert_eq!((&name[..], value.as_deref()), (header.key, header.value));
        assert_eq!(name.as_ptr(), header.key.as_ptr(), "a slice of the same bytes");
    }
    assert_eq!(format!("{headers:?}"), r#"{"a": Some([49]), "b": None, "a": Some([50])}"#);
}

#[test]
fn records_are_taken_one_by_one() {
    let (_, records) = records_of(builder().seal(&mut Compressor::none()).expect("records").bytes());
    let owned = records.to_vec().expect("our own records");
    let payload = records.payload().clone();
    let least = records.iter().size_hint();
    assert!(least.0 == 0 && least.1 >= Some(3) && least.1 <= Some(payload.len()), "{least:?}");

    let mut taken = records.into_iter();
    assert_eq!(taken.payload(), &payload);
    for expected in &owned {
        let record = taken.next_ref().expect("one more").expect("our own record");
        assert_eq!((record.offset, record.timestamp), (expected.offset, expected.timestamp));
        assert_eq!((record.key, record.value), (expected.key.as_deref(), expected.value.as_deref()));
    }
    assert!(taken.next_ref().is_none() && taken.next().is_none());
}

#[test]
fn a_size_hint_is_never_too_small() {
    let mut builder = BatchBuilder::new();
    for _ in 0..50 {
        // Seven bytes: the least that a record can be.
        builder.try_append(0, None, None, NO_HEADERS).expect("it fits");
    }
    let (_, records) = records_of(builder.seal(&mut Compressor::none()).expect("records").bytes());

    let mut iter = records.iter();

    for left in (0..50).rev() {
        assert!(iter.size_hint().1 >= Some(left + 1));
        assert!(iter.next().is_some());
    }
    assert!(iter.next().is_none());
}

#[test]
fn a_batch_in_one_expression_is_the_same_batch() {
    let value = b"a value, a value, a value, a value".as_slice();
    for codec in [Compression::None, Compression::Gzip] {
        let headers = vec![("h", Some(&b"x"[..])), ("n", None)];
        let batch = RecordBatchBuilder::new()
            .compression(codec)
            .add_record(None, Some(value), vec![])
            .timestamp(1_234)
            .add_record(Some(b"key"), Some(value), headers)
            .build()
            .expect("two records");

        let (header, records) = records_of(batch);

        assert_eq!(header.attributes.compression(), Ok(codec));
        let records = records.to_vec().expect("our own records");
        let said: Vec<_> = records.iter().map(|r| (r.timestamp, r.key.as_deref(), r.headers.len())).collect();
        assert_eq!(said, [(-1, None, 0), (1_234, Some(&b"key"[..]), 2)]);
        assert!(records.iter().all(|record| record.value.as_deref() == Some(value)));
    }
    assert_eq!(RecordBatchBuilder::new().build(), Err(RecordsError::Empty));
}

#[test]
fn a_rewritten_batch_is_compressed_if_anything_is_left() {
    let (header, records) = records_of(builder().seal(&mut Compressor::none()).expect("records").bytes());
    let mut gzip = Compressor::new(Compression::Gzip, None).expect("built in");
    let rewrite = |kept: usize, compressor: &mut Compressor| {
        let records = records.iter().map(|record| record.expect("our own record")).take(kept);
        records_of(rewrite_batch(&header, records, compressor).expect("it fits").freeze())
    };

    let (some, left) = rewrite(2, &mut gzip);
    assert_eq!((some.attributes.compression(), some.count), (Ok(Compression::Gzip), 2));
    assert_eq!(left.to_vec().expect("our own records"), records.to_vec().expect("our own records")[..2]);
    let (none, left) = rewrite(0, &mut gzip);
    assert_eq!((none.attributes.compression(), none.count), (Ok(Compression::None), 0));
    assert!(left.payload().is_empty());
}

/// Whatever codec its header still names: there is nothing to decompress.
#[test]
fn an_empty_batch_of_any_codec_is_read() {
    let (header, _) = records_of(builder().seal(&mut Compressor::none()).expect("records").bytes());
    for codec in Compression::ALL {
        let mut bytes = vec![0; HEADER_LEN];
        let attributes = header.attributes.with_compression(codec);
        let empty = BatchHeader { batch_length: HEADER_LEN as i32 - 12, count: 0, attributes, ..header };
        empty.write(bytes.first_chunk_mut().expect("a header"));

        let batch = Batch::new(bytes.into()).expect("a header is a batch");

        let records = batch.records(&mut Decompressor::default()).expect("nothing to read");
        assert_eq!(records.to_vec(), Ok(vec![]), "{codec}");
    }
}

#[test]
fn a_batch_shorter_than_its_header_is_an_error() {
    let mut bytes = builder().seal(&mut Compressor::none()).expect("records").bytes().to_vec();
    bytes[8..12].copy_from_slice(&48_i32.to_be_bytes());

    let mut batches = Batches::new(bytes.into());

    let too_short = RecordsError::BatchLength { position: 0, base_offset: 0, length: 48 };
    assert_eq!(batches.next().map(|batch| batch.map(drop)), Some(Err(too_short)));
    assert!(batches.next().is_none());
}

#[test]
fn a_sealed_batch_knows_its_size() {
    let open = builder();
    let encoded_len = open.encoded_len();
    assert!(open.capacity() >= encoded_len);

    let sealed = open.seal(&mut Compressor::new(Compression::Gzip, None).expect("built in")).expect("records");

    assert_eq!((sealed.count(), sealed.encoded_len()), (3, encoded_len));
    assert_ne!(sealed.len(), encoded_len);
}

/// What just fits stays together, and one byte less parts it.
#[test]
fn a_batch_is_split_at_its_target() {
    let sealed = || {
        let mut builder = BatchBuilder::new();
        for _ in 0..4 {
            builder.try_append(0, None, Some(&[7; 50]), NO_HEADERS).expect("it fits");
        }
        builder.seal(&mut Compressor::none()).expect("records")
    };
    let record = (sealed().encoded_len() - HEADER_LEN) / 4;
    let counts = |target| {
        let parts = sealed().split(target, &mut Compressor::none(), &mut Decompressor::default());
        parts.expect("our own records").iter().map(|part| part.count()).collect::<Vec<_>>()
    };

    assert_eq!(counts(HEADER_LEN + 4 * record), [4]);
    assert_eq!(counts(HEADER_LEN + 4 * record - 1), [3, 1]);
    assert_eq!(counts(HEADER_LEN + 2 * record), [2, 2]);
    assert_eq!(counts(1), [1, 1, 1, 1]);
}

#[test]
fn a_producer_may_begin_at_0() {
    let stamped = |producer_id, base_sequence| {
        let mut sealed = builder().seal(&mut Compressor::none()).expect("records");
        sealed.stamp(Stamp { producer_id, producer_epoch: 0, base_sequence, transactional: false });
        check_produced(&sealed.bytes(), &mut Decompressor::default()).map(drop)
    };

    assert_eq!(stamped(0, 0), Ok(()));
    assert_eq!(stamped(-1, -1), Ok(()));
    assert_eq!(stamped(0, -1), Err(InvalidBatch::Sequence { producer_id: 0, base_sequence: -1 }));
}

#[test]
fn an_old_format_is_an_invalid_record() {
    let refused = |error| InvalidBatch::Unreadable(error).error_code();

    assert_eq!(refused(RecordsError::UnsupportedMagic { base_offset: 0, magic: 1 }), 87);
    assert_eq!(refused(RecordsError::Empty), 2);
    assert_eq!(InvalidBatch::Control.error_code(), 87);
}
