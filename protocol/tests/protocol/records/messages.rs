//! Messages of formats 0 and 1: what Java's vectors do not hold, written here by hand.

use flate2::Crc;
use krafka_protocol::Bytes;
use krafka_protocol::compression::{Compression, CompressionError, Compressor, Decompressor};
use krafka_protocol::records::{
    Batch, BatchBuilder, BatchHeader, Batches, InvalidBatch, NO_HEADERS, Records, RecordsError, TimestampType,
    assign_offsets, check_produced, set_log_append_time,
};
use proptest::prelude::*;

/// A message as old producers and brokers wrote it.
#[derive(Clone, Copy)]
struct Message<'a> {
    magic: u8,
    offset: i64,
    attributes: u8,
    timestamp: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
}

const V0: Message<'_> = Message { magic: 0, offset: 0, attributes: 0, timestamp: -1, key: None, value: Some(b"value") };
const V1: Message<'_> = Message { magic: 1, timestamp: 1_000, ..V0 };
const LOG_APPEND_TIME: u8 = 8;

impl Message<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut body = vec![self.magic, self.attributes];
        if self.magic == 1 {
            body.extend_from_slice(&self.timestamp.to_be_bytes());
        }
        for part in [self.key, self.value] {
            body.extend_from_slice(&part.map_or(-1, |part| part.len() as i32).to_be_bytes());
            body.extend_from_slice(part.unwrap_or_default());
        }
        let mut crc = Crc::new();
        crc.update(&body);
        let length = body.len() as i32 + 4;
        [&self.offset.to_be_bytes()[..], &length.to_be_bytes(), &crc.sum().to_be_bytes(), &body].concat()
    }

    /// A message of this one's format, attributes and offset that holds others, compressed.
    fn around(&self, codec: Compression, messages: &[Vec<u8>]) -> Vec<u8> {
        let mut compressor = Compressor::new(codec, None).expect("built in");
        let mut compressed = compressor.compress(&messages.concat()).expect("it compresses").to_vec();
        if self.magic == 0 && codec == Compression::Lz4 {
            compressed[6] = old_header_checksum(&compressed);
        }
        Message { attributes: self.attributes | codec.code(), value: Some(&compressed), ..*self }.bytes()
    }
}

/// Kafka hashed the magic of a frame as well, where the format says to begin behind it. The hash of the only header
/// that it wrote then, 04 22 4d 18 60 40.
fn old_header_checksum(frame: &[u8]) -> u8 {
    assert_eq!(frame[..6], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40]);
    0x1a
}

const CODECS: [Compression; 3] = [Compression::Gzip, Compression::Snappy, Compression::Lz4];

fn read(set: Vec<u8>) -> Result<Records, RecordsError> {
    let batch = Batch::new(set.into())?;
    batch.verify_crc()?;
    let records = batch.records(&mut Decompressor::default())?;
    records.verify_crcs()?;
    Ok(records)
}

/// Offset and timestamp of each record, read in all three ways.
fn listed(records: Records) -> Result<Vec<(i64, i64)>, RecordsError> {
    let borrowed: Vec<_> = records.iter().map(|r| r.map(|r| (r.offset, r.timestamp))).collect::<Result<_, _>>()?;
    let owned: Vec<_> = records.to_vec()?.iter().map(|record| (record.offset, record.timestamp)).collect();
    let one_by_one: Vec<_> =
        records.into_iter().map(|r| r.map(|r| (r.offset, r.timestamp))).collect::<Result<_, _>>()?;
    assert_eq!(borrowed, owned);
    assert_eq!(borrowed, one_by_one);
    Ok(borrowed)
}

#[test]
fn a_message_is_a_batch_of_one_record() {
    let message = Message { offset: 7, key: Some(b"k"), value: None, ..V1 };

    let batch = Batch::new(message.bytes().into()).expect("a message");

    let header = *batch.header();
    assert_eq!((header.magic, header.base_offset, header.last_offset(), header.next_offset()), (1, 7, 7, 8));
    assert_eq!((header.count, header.max_timestamp, header.partition_leader_epoch), (1, 1_000, -1));
    assert_eq!((header.has_producer_id(), header.last_sequence(), header.delete_horizon_ms()), (false, -1, None));
    assert_eq!((batch.verify_crc(), batch.payload()), (Ok(()), &batch.bytes()[..]));
    let records = batch.records(&mut Decompressor::default()).expect("a message").to_vec().expect("a record");
    assert_eq!((records.len(), records[0].offset, records[0].timestamp), (1, 7, 1_000));
    assert_eq!((records[0].key.as_deref(), records[0].value.as_deref()), (Some(&b"k"[..]), None));
    assert!(records[0].headers.is_empty());
}

/// Bits that mean something in format 2 only are not there, whatever an old writer left in them.
#[test]
fn undefined_attributes_mean_nothing() {
    let zero = *Batch::new(Message { attributes: 0xf8, ..V0 }.bytes().into()).expect("a message").header();
    let one = *Batch::new(Message { attributes: 0xf8, ..V1 }.bytes().into()).expect("a message").header();

    for header in [zero, one] {
        let attributes = header.attributes;
        assert!(!attributes.is_control() && !attributes.is_transactional() && !attributes.has_delete_horizon());
    }
    assert_eq!((zero.timestamp_type(), one.timestamp_type()), (None, Some(TimestampType::LogAppendTime)));
    assert_eq!(
        Batch::new(V1.bytes().into()).map(|batch| batch.header().timestamp_type()),
        Ok(Some(TimestampType::CreateTime))
    );
}

#[test]
fn offsets_inside_are_absolute_in_format_0_and_relative_in_format_1() {
    for codec in CODECS {
        let old = [5, 6, 9].map(|offset| Message { offset, ..V0 }.bytes());
        let new = [0, 1, 4].map(|offset| Message { offset, timestamp: offset * 10, ..V1 }.bytes());

        let old = read(Message { offset: 9, ..V0 }.around(codec, &old)).expect("a wrapper");
        let new = read(Message { offset: 109, ..V1 }.around(codec, &new)).expect("a wrapper");

        let (old_header, new_header) = (*old.header(), *new.header());
        assert_eq!((old_header.base_offset, old_header.last_offset(), old_header.count), (5, 9, 3), "{codec}");
        assert_eq!((new_header.base_offset, new_header.last_offset(), new_header.count), (105, 109, 3), "{codec}");
        assert_eq!(listed(old), Ok(vec![(5, -1), (6, -1), (9, -1)]), "{codec}");
        assert_eq!(listed(new), Ok(vec![(105, 0), (106, 10), (109, 40)]), "{codec}");
    }
}

/// As some producers sent it, and as no broker stores it: Java takes the offsets as they are.
#[test]
fn a_wrapper_at_offset_0_moves_nothing() {
    let inside = [0, 1].map(|offset| Message { offset, ..V1 }.bytes());

    let records = read(V1.around(Compression::Gzip, &inside)).expect("a wrapper");

    assert_eq!(listed(records), Ok(vec![(0, 1_000), (1, 1_000)]));
}

/// The broker's clock is in the wrapper, and holds for all inside; but format 0 has no timestamps.
#[test]
fn the_append_time_of_a_wrapper_holds_for_its_messages() {
    let inside = [Message { offset: 0, ..V1 }.bytes(), Message { offset: 1, ..V0 }.bytes()];
    let wrapper = Message { offset: 1, timestamp: 5_555, ..V1 };

    let appended = Message { attributes: LOG_APPEND_TIME, ..wrapper }.around(Compression::Snappy, &inside);
    let created = wrapper.around(Compression::Snappy, &inside);

    assert_eq!(read(appended).and_then(listed), Ok(vec![(0, 5_555), (1, -1)]));
    assert_eq!(read(created).and_then(listed), Ok(vec![(0, 1_000), (1, -1)]));
}

/// KAFKA-3160: where the checksum is known to be wrong it is not looked at, and where it is not, it is.
#[test]
fn the_checksum_of_an_lz4_header_is_compared_since_format_1() {
    let inside = [V0.bytes()];
    let old = V0.around(Compression::Lz4, &inside);
    let mut compressor = Compressor::new(Compression::Lz4, None).expect("built in");
    let mut frame = compressor.compress(&inside[0]).expect("it compresses").to_vec();
    let right = Message { attributes: 3, value: Some(&frame), ..V0 }.bytes();
    frame[6] = old_header_checksum(&frame);
    let wrong = Message { attributes: 3, value: Some(&frame), ..V1 }.bytes();

    assert_eq!(read(old).and_then(listed), Ok(vec![(0, -1)]));
    assert_eq!(read(right).and_then(listed), Ok(vec![(0, -1)]), "written by a client that knew better");
    let error = read(wrong).expect_err("format 1 never had it");
    assert!(error.to_string().contains("checksum"), "{error}");
}

#[test]
fn sets_may_mix_formats_and_end_in_a_cut_message() {
    let mut batch = BatchBuilder::new();
    batch.try_append(7, None, Some(b"new"), NO_HEADERS).expect("it fits");
    let mut batch = batch.seal(&mut Compressor::none()).expect("a record").bytes().to_vec();
    assign_offsets(&mut batch, 3, 1).expect("a batch");
    let messages = [V0.bytes(), Message { offset: 1, ..V1 }.bytes(), Message { offset: 2, ..V0 }.bytes(), batch];
    let last = Message { offset: 4, ..V1 }.bytes();

    for cut in 0..last.len() {
        let set = [&messages.concat()[..], &last[..cut]].concat();
        let mut batches = Batches::new(set.into());

        let found: Vec<_> = batches.by_ref().map(|batch| batch.expect("a batch").header().magic).collect();

        assert_eq!((found, batches.trailing_len()), (vec![0, 1, 0, 2], cut));
    }
}

/// Every bit from the magic on counts, in the CRC of the wrapper as in those inside.
#[test]
fn every_flipped_bit_is_found() {
    for message in [V0, V1] {
        let whole = message.bytes();
        for bit in 12 * 8..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let wrapped = message.around(Compression::Gzip, &[flipped.clone()]);

            assert!(read(flipped).is_err(), "bit {bit}");
            assert!(read(wrapped).is_err(), "bit {bit} inside a wrapper");
        }
    }
}

#[test]
fn what_no_kafka_wrote_is_an_error_that_says_what_it_is() {
    let inner = Message { offset: 1, ..V1 }.bytes();
    let nested = V1.around(Compression::Gzip, std::slice::from_ref(&inner));
    let cut = vec![inner[..inner.len() - 1].to_vec()];
    let mut modern = inner.clone();
    modern[16] = 2;
    let mut short = inner.clone();
    short[11] = 21;
    let at = |offset| Message { offset, ..V1 };
    let cases = [
        (at(9).around(Compression::Gzip, &[nested]), "compressed again"),
        (at(9).around(Compression::Snappy, &cut), "reaches beyond"),
        (at(9).around(Compression::Snappy, &[inner, vec![0; 16]]), "cut short"),
        (at(9).around(Compression::Lz4, &[]), "never empty"),
        (at(9).around(Compression::Gzip, &[modern]), "another format"),
        (at(9).around(Compression::Gzip, &[short]), "length cannot be"),
        (at(9).around(Compression::Gzip, &[at(10).bytes()]), "greater offset"),
        (Message { attributes: 1, value: None, ..V1 }.bytes(), "has no value"),
        (Message { attributes: 4, ..V1 }.bytes(), "zstd"),
        (Message { attributes: 5, ..V1 }.bytes(), "unknown compression codec 5"),
        (Message { attributes: 1, ..V1 }.bytes(), "gzip"),
    ];
    for (set, reason) in cases {
        let error = read(set).and_then(listed).expect_err(reason);

        assert!(error.to_string().contains(reason), "{error}");
    }
}

/// The lengths of key and value, each lying in its own way, behind a checksum that agrees.
#[test]
fn lying_lengths_inside_a_message_are_named() {
    for (position, length, reason) in [
        (18, i32::MAX, "key reaches beyond"),
        (18, -2, "key reaches beyond"),
        (18, 6, "value reaches beyond"),
        (22, i32::MAX, "value reaches beyond"),
        (22, i32::MIN, "value reaches beyond"),
        (22, 6, "value reaches beyond"),
        (22, 4, "bytes behind its value"),
        (22, -1, "bytes behind its value"),
    ] {
        let mut bytes = V0.bytes();
        bytes[position..position + 4].copy_from_slice(&length.to_be_bytes());
        let batch = Batch::new(bytes.into()).expect("the message is as long as it says");

        let error = batch.records(&mut Decompressor::default()).and_then(|records| records.to_vec());

        let error = error.expect_err(reason).to_string();
        assert!(error.contains(reason), "{position} {length}: {error}");
    }
}

#[test]
fn a_length_below_the_least_ends_the_set() {
    for (message, least) in [(V0, 14), (V1, 22)] {
        let shortest = Message { value: None, ..message }.bytes();
        assert_eq!(shortest.len(), 12 + least as usize);
        for length in [i32::MIN, -1, 0, least - 1] {
            let mut set = shortest.clone();
            set[8..12].copy_from_slice(&length.to_be_bytes());
            set.extend_from_slice(&message.bytes());

            let found: Vec<_> = Batches::new(set.into()).collect();

            assert_eq!(found.len(), 1, "{length}");
            assert!(matches!(found[0], Err(RecordsError::BatchLength { position: 0, .. })), "{:?}", found[0]);
        }
        assert_eq!(Batches::new(shortest.into()).map(|batch| batch.is_ok()).collect::<Vec<_>>(), [true]);
    }
}

/// The header says enough to go on, and needs no more than itself.
#[test]
fn the_header_of_a_cut_message_is_read() {
    for (message, enough) in [(V0, 18), (V1, 26)] {
        let bytes = Message { offset: 41, ..message }.bytes();

        for length in 0..bytes.len() {
            let peeked = BatchHeader::peek(&bytes[..length]).map(|header| header.next_offset());
            assert_eq!(peeked.is_ok(), length >= enough, "{length}: {peeked:?}");
        }
        assert_eq!(BatchHeader::peek(&bytes[..enough]).map(|header| header.next_offset()), Ok(42));
    }
}

/// What a broker of today does with batches would break a message.
#[test]
fn old_formats_are_neither_appended_nor_changed() {
    for message in [V0, V1] {
        let magic = message.magic as i8;
        let mut bytes = [message.bytes(), vec![0; 61]].concat();
        let unsupported = RecordsError::UnsupportedMagic { base_offset: 0, magic };

        assert_eq!(assign_offsets(&mut bytes, 1, 2), Err(unsupported.clone()));
        assert_eq!(set_log_append_time(&mut bytes, 1), Err(unsupported.clone()));
        let produced = check_produced(&Bytes::from(message.bytes()), &mut Decompressor::default());
        assert_eq!(produced, Err(InvalidBatch::Unreadable(unsupported)));
        assert_eq!(bytes, [message.bytes(), vec![0; 61]].concat());
    }
}

#[test]
fn bombs_stop_at_the_limit() {
    for codec in CODECS {
        let zeros = Message { value: Some(&vec![0; 1 << 20]), ..V1 }.bytes();
        let batch = Batch::new(Message { offset: 7, ..V1 }.around(codec, &[zeros]).into()).expect("a message");

        let error = batch.records(&mut Decompressor::new(1 << 16)).expect_err("a bomb");

        let source = CompressionError::LimitExceeded { codec, limit: 1 << 16 };
        assert_eq!(error, RecordsError::Decompression { base_offset: 7, source });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Numbers that lengths are made of, inside a wrapper and as a set: errors or records, and never a panic.
    #[test]
    fn noise_is_an_error_or_records(
        noise in prop::collection::vec(prop::sample::select(&[0_u8, 0, 0, 0, 1, 1, 14, 22, 0x7f, 0xff][..]), 0..200),
        magic in 0..2_u8,
        offset in any::<i64>(),
    ) {
        let inside = Message { offset, ..V0 }.bytes();
        let wrapper = Message { magic, offset, ..V1 }.around(Compression::Gzip, &[inside, noise.clone()]);

        for set in [wrapper, noise] {
            for batch in Batches::new(set.into()).flatten() {
                let _ = batch.verify_crc();
                if let Ok(records) = batch.records(&mut Decompressor::default()) {
                    let _ = records.verify_crcs();
                    let _ = listed(records);
                }
            }
        }
    }
}
