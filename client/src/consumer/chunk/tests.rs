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
        let is_used_up = chunk.decode(most, &mut decoding(), &mut out).expect("it decodes");
        offsets.extend(out.iter().map(|record| record.offset));
        positions.push(chunk.position());
        if is_used_up {
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
    let is_used_up = chunk.decode(100, &mut decoding, &mut out).expect("it decodes");

    assert!(is_used_up);
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
fn an_old_format_is_refused_by_name() {
    let mut old = batch(0, 1, 1);
    old[16] = 1;
    let mut chunk = chunk(0, &[old]);

    let error = chunk.decode(100, &mut decoding(), &mut Vec::new()).expect_err("magic 1");

    assert!(error.to_string().contains("t-0 at offset 0"), "{error}");
}
