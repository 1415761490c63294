//! What comes out of fetched bytes: whole, cut, compacted, broken.

use bytes::BytesMut;
use krafka_protocol::compression::{Compression, Compressor};
use krafka_protocol::records::{BatchBuilder, ControlRecord, NO_HEADERS, assign_offsets, set_log_append_time};

use super::*;

/// A batch of `count` records, as a leader of epoch `epoch` stored it at `base`.
fn batch(base: i64, count: usize, epoch: i32) -> BytesMut {
    let mut builder = BatchBuilder::new();
    for index in 0..count {
        builder.try_append(1_000 + index as i64, None, Some(b"value"), NO_HEADERS).expect("it is small");
    }
    let mut sealed = builder.seal(&mut Compressor::new(Compression::None, None).expect("no codec")).expect("it fits");
    let mut bytes = BytesMut::from(&sealed.bytes()[..]);
    assign_offsets(&mut bytes, base, epoch).expect("a batch of ours");
    bytes
}

fn control(base: i64) -> BytesMut {
    let mut bytes = ControlRecord::Commit { coordinator_epoch: 0 }.to_batch(7, 0, 1_000).expect("it is small");
    assign_offsets(&mut bytes, base, 3).expect("a batch of ours");
    bytes
}

fn chunk(from: i64, batches: &[BytesMut]) -> Chunk {
    let records = Bytes::from(batches.concat());
    let from = Position::new(from, -1);
    let next = end_of(&records, from);
    let claim = Claim { slot: 0, generation: 1 };
    Chunk::new(TopicPartition::new("t", 0), Fetched { claim, from, next, records, high_watermark: 99 })
}

fn decoding() -> Decoding {
    Decoding { check_crcs: true, decompressor: Decompressor::default() }
}

/// The offsets that come out, `most` at a time, and the position after each time.
fn drained(chunk: &mut Chunk, most: usize) -> (Vec<i64>, Vec<Position>) {
    let (mut offsets, mut positions) = (Vec::new(), Vec::new());
    loop {
        let mut out = Vec::new();
        let stop = chunk.decode(most, &mut decoding(), &mut out).expect("it decodes");
        offsets.extend(out.iter().map(|record| record.offset));
        positions.push(chunk.position());
        if stop == Stop::UsedUp {
            return (offsets, positions);
        }
    }
}

#[test]
fn positions_are_exact_at_every_slice() {
    let mut chunk = chunk(0, &[batch(0, 3, 1), batch(3, 2, 2)]);

    let (offsets, positions) = drained(&mut chunk, 2);

    assert_eq!(offsets, [0, 1, 2, 3, 4]);
    let expected = [(2, 1), (4, 2), (5, 2)].map(|(offset, epoch)| Position::new(offset, epoch));
    assert_eq!(positions, expected);
}

#[test]
fn records_before_the_position_are_left_out() {
    assert_eq!(drained(&mut chunk(4, &[batch(0, 3, 1), batch(3, 3, 1)]), 100).0, [4, 5]);
}

#[test]
fn control_batches_move_the_position_and_nothing_else() {
    let mut chunk = chunk(0, &[batch(0, 1, 3), control(1), batch(2, 1, 3), control(3)]);

    let (offsets, positions) = drained(&mut chunk, 100);

    assert_eq!(offsets, [0, 2]);
    assert_eq!(positions, [Position::new(4, 3)]);
}

/// Compaction keeps the offsets of a batch whose last records are gone, also when all are.
#[test]
fn the_position_passes_what_compaction_took() {
    let mut tail_gone = batch(0, 2, 1);
    tail_gone[23..27].copy_from_slice(&9_i32.to_be_bytes());
    let mut all_gone = batch(10, 1, 1);
    all_gone.truncate(krafka_protocol::records::HEADER_LEN);
    all_gone[8..12].copy_from_slice(&49_i32.to_be_bytes());
    all_gone[57..61].copy_from_slice(&0_i32.to_be_bytes());
    let mut chunk = chunk(0, &[tail_gone, all_gone]);

    let mut out = Vec::new();
    let mut decoding = Decoding { check_crcs: false, ..decoding() };
    let stop = chunk.decode(100, &mut decoding, &mut out).expect("it decodes");

    assert_eq!(stop, Stop::UsedUp);
    assert_eq!(out.iter().map(|record| record.offset).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(chunk.position(), Position::new(11, 1));
}

#[test]
fn a_cut_batch_at_the_end_is_left_for_the_next_fetch() {
    let mut cut = batch(3, 2, 1);
    cut.truncate(cut.len() - 1);

    let (offsets, positions) = drained(&mut chunk(0, &[batch(0, 3, 1), cut]), 100);

    assert_eq!(offsets, [0, 1, 2]);
    assert_eq!(positions, [Position::new(3, 1)]);
}

#[test]
fn the_broker_s_timestamp_counts_where_the_topic_says_so() {
    let mut bytes = batch(0, 2, 1);
    set_log_append_time(&mut bytes, 5_555).expect("a batch of ours");
    let mut out = Vec::new();

    chunk(0, &[bytes]).decode(100, &mut decoding(), &mut out).expect("it decodes");

    let stamps: Vec<_> = out.iter().map(|record| (record.timestamp_ms, record.timestamp_type)).collect();
    assert_eq!(stamps, [(5_555, TimestampType::LogAppendTime); 2]);
}

#[test]
fn a_wrong_checksum_is_named_with_its_offset_as_often_as_one_asks() {
    let mut bad = batch(3, 2, 1);
    *bad.last_mut().expect("not empty") ^= 1;
    let mut chunk = chunk(0, &[batch(0, 3, 1), bad]);

    let mut out = Vec::new();
    for _ in 0..3 {
        let error = chunk.decode(100, &mut decoding(), &mut out).expect_err("the checksum is wrong");
        let KrafkaError::RecordDeserialization { topic, partition, offset, .. } = error else { panic!("{error}") };
        assert_eq!((&*topic, partition, offset), ("t", 0, 3));
    }

    assert_eq!(out.len(), 3, "what lies before it is good");
    assert_eq!(chunk.position(), Position::new(3, 1));
}

#[test]
fn a_record_that_does_not_decode_stops_at_its_offset() {
    let mut bad = batch(0, 3, 1);
    // The last byte of the second record is its header count.
    let record = (bad.len() - krafka_protocol::records::HEADER_LEN) / 3;
    bad[krafka_protocol::records::HEADER_LEN + 2 * record - 1] = 0x7f;
    let mut chunk = chunk(0, &[bad, batch(3, 1, 1)]);
    let mut decoding = Decoding { check_crcs: false, ..decoding() };

    let mut out = Vec::new();
    for _ in 0..2 {
        let error = chunk.decode(100, &mut decoding, &mut out).expect_err("a record is broken");
        assert!(matches!(error, KrafkaError::RecordDeserialization { offset: 1, .. }), "{error}");
    }

    assert_eq!(out.len(), 1);
}

#[test]
fn an_unknown_format_is_refused_by_name() {
    let mut future = batch(0, 1, 1);
    future[16] = 3;
    let mut chunk = chunk(0, &[future]);

    let error = chunk.decode(100, &mut decoding(), &mut Vec::new()).expect_err("magic 3");

    assert!(error.to_string().contains("t-0 at offset 0"), "{error}");
}

/// A message of format 0 or 1, with attributes that say how its value is compressed.
fn message(magic: u8, attributes: u8, offset: i64, value: &[u8]) -> BytesMut {
    let mut body = vec![magic, attributes];
    if magic == 1 {
        body.extend_from_slice(&(2_000 + offset).to_be_bytes());
    }
    body.extend_from_slice(&(-1_i32).to_be_bytes());
    body.extend_from_slice(&(value.len() as i32).to_be_bytes());
    body.extend_from_slice(value);
    let crc = body.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| (crc >> 1) ^ ((crc & 1) * 0xedb8_8320))
    });
    let (length, crc) = (body.len() as i32 + 4, !crc);
    let bytes = [&offset.to_be_bytes()[..], &length.to_be_bytes(), &crc.to_be_bytes(), &body].concat();
    BytesMut::from(&bytes[..])
}

fn wrapper(offset: i64, messages: &[BytesMut]) -> BytesMut {
    let mut gzip = Compressor::new(Compression::Gzip, None).expect("built in");
    message(1, 1, offset, gzip.compress(&messages.concat()).expect("it compresses"))
}

/// What brokers stored before 0.11: messages, compressed ones with relative offsets, and batches behind them.
#[test]
fn old_formats_are_read_and_the_position_follows() {
    let inside = [0, 1, 3].map(|offset| message(1, 0, offset, b"value"));
    let log = [message(0, 0, 4, b"value"), message(1, 0, 5, b"value"), wrapper(9, &inside), batch(10, 2, 1)];

    let mut out = Vec::new();
    let stop = chunk(4, &log).decode(100, &mut decoding(), &mut out).expect("it decodes");
    let (offsets, positions) = drained(&mut chunk(7, &log), 1);

    assert_eq!(stop, Stop::UsedUp);
    assert_eq!(out.iter().map(|record| record.offset).collect::<Vec<_>>(), [4, 5, 6, 7, 9, 10, 11]);
    assert_eq!(
        out.iter().map(|record| record.timestamp_ms).collect::<Vec<_>>(),
        [-1, 2005, 2000, 2001, 2003, 1000, 1001]
    );
    assert!(out.iter().all(|record| record.timestamp_type == TimestampType::CreateTime));
    let epochs = [None, None, None, None, None, Some(1), Some(1)];
    assert_eq!(out.iter().map(|record| record.leader_epoch).collect::<Vec<_>>(), epochs);
    assert_eq!(offsets, [7, 9, 10, 11]);
    let expected = [(8, -1), (10, -1), (11, 1), (12, 1), (12, 1)].map(|(offset, epoch)| Position::new(offset, epoch));
    assert_eq!(positions, expected);
}

/// The checksum of a wrapper covers the compressed bytes; what it holds has its own.
#[test]
fn a_wrong_checksum_inside_a_message_is_found_if_one_asks() {
    let mut bad = message(1, 0, 0, b"value");
    *bad.last_mut().expect("not empty") ^= 1;
    let set = [wrapper(5, &[bad])];
    let careless = &mut Decoding { check_crcs: false, ..decoding() };

    let error = chunk(5, &set).decode(1, &mut decoding(), &mut Vec::new()).expect_err("the checksum is wrong");
    let read = chunk(5, &set).decode(1, careless, &mut Vec::new());

    assert!(error.to_string().contains("checksum"), "{error}");
    assert_eq!(read.expect("nobody asked"), Stop::Full);
}

/// A batch of one record of `size` zeros.
fn zeros(base: i64, size: usize) -> BytesMut {
    let mut builder = BatchBuilder::new();
    builder.try_append(1_000, None, Some(&vec![0; size]), NO_HEADERS).expect("it fits");
    let mut sealed = builder.seal(&mut Compressor::new(Compression::Gzip, None).expect("built in")).expect("it fits");
    let mut bytes = BytesMut::from(&sealed.bytes()[..]);
    assign_offsets(&mut bytes, base, 1).expect("a batch of ours");
    bytes
}

/// Each batch is within the limit, and all together are far beyond it: they come in pieces, and none is lost.
#[test]
fn many_small_bombs_come_in_pieces() {
    let bombs: Vec<_> = (0..20).map(|base| zeros(base, 300_000)).collect();
    let mut chunk = chunk(0, &bombs);
    let mut decoding = Decoding { check_crcs: true, decompressor: Decompressor::new(1_000_000) };

    let mut offsets = Vec::new();
    let pieces = std::iter::from_fn(|| {
        let mut out = Vec::new();
        decoding.renew_budget();
        let stop = chunk.decode(500, &mut decoding, &mut out).expect("each is within the limit");
        offsets.extend(out.iter().map(|record| record.offset));
        (!out.is_empty()).then_some((out.len(), stop))
    });
    let pieces: Vec<_> = pieces.collect();

    assert_eq!(pieces, [vec![(3, Stop::OverBudget); 6], vec![(2, Stop::UsedUp)]].concat());
    assert_eq!(offsets, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_batch_beyond_the_limit_is_named_with_its_partition_and_codec() {
    let mut chunk = chunk(7, &[zeros(7, 1_000_000), zeros(8, 10)]);
    let mut decoding = Decoding { check_crcs: true, decompressor: Decompressor::new(1_000_000) };
    decoding.renew_budget();

    let error = chunk.decode(500, &mut decoding, &mut Vec::new()).expect_err("the record has a frame, too");

    assert_eq!(
        error.to_string(),
        "t-0 at offset 7: batch at offset 7: gzip: more than 1000000 bytes decompressed; raise \
         max_decompressed_size, or seek past it to go on"
    );
    assert_eq!(chunk.position().offset, 7);
}
