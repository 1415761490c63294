//! Bytes that no Kafka would send: an error each, never a panic, and never more memory than the limit.

use krafka_protocol::Bytes;
use krafka_protocol::compression::{Compression, CompressionError, Compressor, Decompressor};
use krafka_protocol::records::{
    Batch, BatchBuilder, BatchHeader, Batches, HEADER_LEN, InvalidBatch, NO_HEADERS, RecordsError, check_produced,
};

const LIMIT: usize = 1 << 16;

/// A batch of three records with everything that a record can have.
fn batch(codec: Compression) -> Vec<u8> {
    if codec == Compression::Zstd && Compressor::new(codec, None).is_err() {
        return zstd_batch();
    }
    builder().seal(&mut Compressor::new(codec, None).expect("built in")).expect("three records").bytes().to_vec()
}

fn builder() -> BatchBuilder {
    let mut builder = BatchBuilder::new();
    let value = b"a value that is long enough to refer back to: a value that is long enough".as_slice();
    builder.try_append(1_000, Some(b"key"), Some(value), &[("a", Some("1")), ("", None)]).expect("it fits");
    builder.try_append(1_001, None, Some(value), NO_HEADERS).expect("it fits");
    builder.try_append(999, Some(b""), None, NO_HEADERS).expect("it fits");
    builder
}

/// The same records in a zstd frame of one stored block, for builds that cannot encode zstd.
fn zstd_batch() -> Vec<u8> {
    let plain = builder().seal(&mut Compressor::none()).expect("three records").bytes();
    let records = &plain[HEADER_LEN..];
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    frame.extend_from_slice(&((records.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    frame.extend_from_slice(records);
    rebuilt(&plain, Compression::Zstd, 3, &frame)
}

/// A batch with the header of another, and with other records behind it.
fn rebuilt(batch: &[u8], codec: Compression, count: i32, payload: &[u8]) -> Vec<u8> {
    let mut header = BatchHeader::peek(batch).expect("a batch");
    header.attributes = header.attributes.with_compression(codec);
    header.count = count;
    header.batch_length = (HEADER_LEN - 12 + payload.len()) as i32;
    let mut bytes = vec![0; HEADER_LEN];
    header.write(bytes.first_chunk_mut().expect("61 bytes"));
    bytes.extend_from_slice(payload);
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// CRC-32C bit by bit: a second opinion on the one that the crate uses.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| (crc >> 1) ^ ((crc & 1) * 0x82f6_3b78)))
}

fn read(batch: &Batch) -> Result<usize, RecordsError> {
    batch.records(&mut Decompressor::new(LIMIT))?.to_vec().map(|records| records.len())
}

/// BY-07, BR-095: every bit behind the checksum, and those of the checksum, count; base offset and leader epoch do not.
#[test]
fn every_flipped_bit_is_found() {
    for codec in Compression::ALL {
        let whole = batch(codec);
        assert_eq!(read(&Batch::new(whole.clone().into()).expect("a batch")), Ok(3), "{codec}");
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let found = Batch::new(bytes.into()).and_then(|batch| {
                // Decoding without looking at the checksum must not panic either.
                let _ = read(&batch);
                batch.verify_crc()
            });

            match bit / 8 {
                0..8 | 12..16 => assert_eq!(found, Ok(()), "{codec}, bit {bit}"),
                8..12 => assert!(matches!(found, Err(RecordsError::BatchLength { .. })), "{codec}, bit {bit}"),
                // Format 2 becomes format 0, whose checksum is another.
                16 if bit % 8 == 1 => assert!(matches!(found, Err(RecordsError::Crc { .. })), "{codec}, bit {bit}"),
                16 => assert!(matches!(found, Err(RecordsError::UnsupportedMagic { .. })), "{codec}, bit {bit}"),
                57 if bit % 8 == 7 => assert!(matches!(found, Err(RecordsError::Count { .. })), "{codec}, bit {bit}"),
                _ => assert!(matches!(found, Err(RecordsError::Crc { .. })), "{codec}, bit {bit}: {found:?}"),
            }
        }
    }
}

/// BY-08: a payload that is cut short, behind a header and a checksum that agree with it.
#[test]
fn every_cut_payload_is_an_error() {
    for codec in Compression::ALL {
        let whole = batch(codec);
        for length in 0..whole.len() - HEADER_LEN {
            let bytes = rebuilt(&whole, codec, 3, &whole[HEADER_LEN..HEADER_LEN + length]);
            let batch = Batch::new(bytes.into()).expect("a batch");
            batch.verify_crc().expect("the checksum was renewed");

            let error = read(&batch).expect_err("records are missing");

            let is_named = matches!(
                error,
                RecordsError::Record { .. } | RecordsError::Count { .. } | RecordsError::Decompression { .. }
            );
            assert!(is_named, "{codec} cut to {length}: {error:?}");
        }
    }
}

#[test]
fn a_set_cut_anywhere_ends_quietly() {
    let whole = batch(Compression::None);
    for length in 0..whole.len() {
        let mut batches = Batches::new(Bytes::from(whole[..length].to_vec()));

        assert_eq!(batches.next(), None, "cut to {length}");
        assert_eq!(batches.trailing_len(), length);
    }
}

/// BY-06, BR-093: a count without the records, and records without the count.
#[test]
fn a_lying_count_is_an_error() {
    let whole = batch(Compression::None);
    let payload = &whole[HEADER_LEN..];
    for count in [0, 1, 2, 4, 5, 1_000_000, i32::MAX] {
        let batch = Batch::new(rebuilt(&whole, Compression::None, count, payload).into()).expect("a batch");

        assert!(read(&batch).is_err(), "{count}");
    }
    let negative = Batch::new(rebuilt(&whole, Compression::None, -1, payload).into());
    assert!(matches!(negative, Err(RecordsError::Count { count: -1, .. })));
}

/// BY-09: each record is one byte string away from a good one; the error says which, where and what.
#[test]
fn malformed_records_are_named() {
    let whole = batch(Compression::None);
    let cases: [(&[u8], usize, &str); 13] = [
        (b"\x10\x00\x00\x00\x01\x01\x00", 0, "length reaches beyond"),
        (b"\x01\x00\x00\x00\x01\x01\x00", 0, "length reaches beyond"),
        (b"\xff\xff\xff\xff\xff\xff\x7f", 0, "no varint of 32 bits"),
        (b"\x00\x00\x00\x00\x00\x00\x00", 1, "it is empty"),
        (b"\x0c\x00\xff\xff\xff\xff\xff", 2, "timestamp"),
        (b"\x0c\x00\x00\xff\xff\xff\xff", 3, "no varint of 32 bits"),
        (b"\x0c\x00\x00\x01\x01\x01\x00", 4, "outside the batch"),
        (b"\x0c\x00\x00\x06\x01\x01\x00", 4, "outside the batch"),
        (b"\x0c\x00\x00\x00\x06\x01\x00", 4, "key"),
        (b"\x0c\x00\x00\x00\x03\x01\x00", 4, "key"),
        (b"\x0c\x00\x00\x00\x01\x08\x00", 5, "value"),
        (b"\x0c\x00\x00\x00\x01\x01\x01", 6, "headers"),
        (b"\x0c\x00\x00\x00\x01\x01\x02", 7, "headers"),
    ];
    for (payload, position, reason) in cases {
        let batch = Batch::new(rebuilt(&whole, Compression::None, 1, payload).into()).expect("a batch");

        let error = read(&batch).expect_err("a malformed record");

        let RecordsError::Record { index: 0, position: found, reason: said, .. } = error else {
            panic!("{payload:02x?}: {error:?}")
        };
        assert!(said.contains(reason), "{payload:02x?}: {said}");
        assert_eq!(found, position, "{payload:02x?}: {said}");
    }
}

/// BY-09, BR-086: headers whose lengths and counts cannot be.
#[test]
fn malformed_headers_are_errors() {
    let whole = batch(Compression::None);
    let headers: [&[u8]; 7] = [
        b"\x01",                 // -1 headers
        b"\xfe\xff\xff\xff\x0f", // 2^31 - 1 of them, and no bytes
        b"\x02\x01\x00",         // a name of length -1
        b"\x02\x02a\x03",        // a value of length -2
        b"\x02\x04a\x00",        // a name that reaches beyond
        b"\x02\x02a\x04b",       // a value that reaches beyond
        b"\x02\x02a\x01\x00",    // a byte too many
    ];
    for headers in headers {
        let mut payload = vec![0, 0, 0, 0, 1, 1];
        payload.extend_from_slice(headers);
        payload[0] = (payload.len() as u8 - 1) << 1;
        let batch = Batch::new(rebuilt(&whole, Compression::None, 1, &payload).into()).expect("a batch");

        let error = read(&batch).expect_err("malformed headers");

        assert!(matches!(error, RecordsError::Record { index: 0, .. }), "{headers:02x?}: {error:?}");
    }
}

/// A decoder that gave up stays at the end, whichever way one reads.
#[test]
fn nothing_comes_after_an_error() {
    let whole = batch(Compression::None);
    let payload = b"\x0c\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00";
    let batch = Batch::new(rebuilt(&whole, Compression::None, 2, payload).into()).expect("a batch");
    let records = batch.records(&mut Decompressor::new(LIMIT)).expect("no compression");

    let borrowed: Vec<_> = records.iter().map(|record| record.is_ok()).collect();
    let owned: Vec<_> = records.into_iter().map(|record| record.is_ok()).collect();

    assert_eq!(borrowed, [true, false]);
    assert_eq!(owned, [true, false]);
}

/// BY-07.
#[test]
fn a_codec_that_does_not_exist_is_an_error() {
    let mut bytes = batch(Compression::None);
    bytes[22] |= 5;

    let error = read(&Batch::new(bytes.into()).expect("a batch"));

    let source = CompressionError::UnknownCode { code: 5 };
    assert_eq!(error, Err(RecordsError::Decompression { base_offset: 0, source }));
}

/// BY-08: a batch of 64 MiB of zeros in a few kilobytes.
#[test]
fn bombs_of_every_codec_stop_at_the_limit() {
    let zeros = vec![0; 64 << 20];
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let bomb = match Compressor::new(codec, None) {
            Ok(mut compressor) => compressor.compress(&zeros).expect("zeros compress").to_vec(),
            Err(_) => zstd_bomb(),
        };
        let batch = Batch::new(rebuilt(&batch(Compression::None), codec, 3, &bomb).into()).expect("a batch");

        let error = read(&batch);

        let source = CompressionError::LimitExceeded { codec, limit: LIMIT };
        assert_eq!(error, Err(RecordsError::Decompression { base_offset: 0, source }));
    }
}

/// 64 MiB in blocks of one byte that repeats, in a window of 1 GiB.
pub(super) fn zstd_bomb() -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0];
    for _ in 0..512 {
        frame.extend_from_slice(&[2, 0, 0x10, 0]);
    }
    frame
}

/// BY-07, BR-094: unknown formats are said to be unsupported, each batch once, and what lies behind them is still
/// found.
#[test]
fn unknown_formats_are_unsupported_and_skipped() {
    for magic in [3, 0x7f, 0x80, 0xff_u8] {
        let mut set = vec![0; 12 + 26];
        set[7] = 41;
        set[11] = 26;
        set[16] = magic;
        set.extend_from_slice(&batch(Compression::None));

        let found: Vec<_> = Batches::new(set.into()).map(|batch| batch.map(|batch| batch.header().count)).collect();

        assert_eq!(found, [Err(RecordsError::UnsupportedMagic { base_offset: 41, magic: magic as i8 }), Ok(3)]);
    }
}

/// BY-05: twelve bytes are enough to see that a length is impossible in every format.
#[test]
fn an_impossible_length_is_seen_in_front_of_the_magic() {
    let head = |length: i32| [&7_i64.to_be_bytes()[..], &length.to_be_bytes()].concat();

    let error = RecordsError::BatchLength { position: 0, base_offset: 7, length: 13 };
    assert_eq!(Batches::new(head(13).into()).collect::<Vec<_>>(), [Err(error)]);
    assert_eq!(Batches::new(head(14).into()).next(), None);
    assert_eq!(Batches::new(head(13)[..11].to_vec().into()).next(), None);
}

/// BY-05.
#[test]
fn a_length_that_cannot_be_ends_the_set() {
    for length in [i32::MIN, -1, 0, 13, 48] {
        let mut set = batch(Compression::None);
        set[8..12].copy_from_slice(&length.to_be_bytes());
        set.extend_from_slice(&batch(Compression::None));

        let found: Vec<_> = Batches::new(set.into()).collect();

        assert_eq!(found, [Err(RecordsError::BatchLength { position: 0, base_offset: 0, length })]);
    }
}

/// What a broker refuses, and why.
#[test]
fn a_broker_refuses_what_kafka_refuses() {
    let whole = batch(Compression::None);
    let refuse = |bytes: Vec<u8>| check_produced(&bytes.into(), &mut Decompressor::new(LIMIT)).expect_err("refused");
    let edited = |edit: fn(&mut BatchHeader)| {
        let mut header = BatchHeader::peek(&whole).expect("a batch");
        edit(&mut header);
        let mut bytes = whole.clone();
        header.write(bytes.first_chunk_mut().expect("61 bytes"));
        let crc = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        bytes
    };

    assert_eq!(refuse(vec![]), InvalidBatch::NotOneBatch);
    assert_eq!(refuse([&whole[..], &whole[..]].concat()), InvalidBatch::NotOneBatch);
    assert_eq!(refuse(whole[..70].to_vec()), InvalidBatch::NotOneBatch);
    let mut broken = whole.clone();
    broken[80] ^= 1;
    assert!(matches!(refuse(broken), InvalidBatch::Unreadable(RecordsError::Crc { .. })));
    assert_eq!(refuse(edited(|header| header.base_offset = 7)), InvalidBatch::BaseOffset { base_offset: 7 });
    let count = refuse(edited(|header| header.last_offset_delta = 4));
    assert_eq!(count, InvalidBatch::Count { count: 3, last_offset_delta: 4 });
    assert_eq!(refuse(edited(|header| header.attributes = header.attributes.with_control())), InvalidBatch::Control);
    let sequence = refuse(edited(|header| header.producer_id = 5));
    assert_eq!(sequence, InvalidBatch::Sequence { producer_id: 5, base_sequence: -1 });
    let twice = rebuilt(&whole, Compression::None, 3, &b"\x0c\x00\x00\x00\x01\x01\x00".repeat(3));
    assert_eq!(refuse(twice), InvalidBatch::OffsetDelta { index: 1, offset_delta: 0 });
    let malformed = rebuilt(&whole, Compression::Snappy, 3, b"not snappy");
    let malformed = refuse(malformed);
    assert!(matches!(malformed, InvalidBatch::Unreadable(RecordsError::Decompression { .. })));
    assert_eq!((malformed.error_code(), InvalidBatch::Control.error_code()), (2, 87));
}
