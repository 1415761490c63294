//! Messages of formats 0 and 1, which clients of Kafka before 0.11 write and read: brokers up to 3.9 turn them into
//! batches when they come, and batches into them when they go.
//!
//! Other than in Kafka, what goes is never compressed: such readers take either.

use bytes::{BufMut, Bytes, BytesMut};
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::{self, Batch, BatchHeader, Batches, HEADER_LEN, MAGIC, RecordRef, RecordsError};

/// The timestamp of a message that has none.
const NO_TIMESTAMP: i64 = -1;

/// Why messages cannot be made a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// They are not what their checksum says, or no messages at all.
    Corrupt,
    /// There are none, or of more than one format, or more than one that is compressed.
    Invalid,
}

/// Makes one batch of messages, numbered from 0, in their codec.
pub(crate) fn to_batch(messages: Bytes) -> Result<Batch, Unfit> {
    let sets: Vec<Batch> = Batches::new(messages).collect::<Result<_, _>>().map_err(|_| Unfit::Corrupt)?;
    let first = *sets.first().ok_or(Unfit::Invalid)?.header();
    let codec = first.attributes.compression().map_err(|_| Unfit::Corrupt)?;
    if codec != Compression::None && sets.len() > 1 {
        return Err(Unfit::Invalid);
    }
    let mut decompressor = Decompressor::default();
    let mut read = Vec::with_capacity(sets.len());
    for set in &sets {
        if set.header().magic != first.magic || set.header().attributes.compression().ok() != Some(codec) {
            return Err(Unfit::Invalid);
        }
        set.verify_crc().map_err(|_| Unfit::Corrupt)?;
        let inner = set.records(&mut decompressor).map_err(|_| Unfit::Corrupt)?;
        inner.verify_crcs().map_err(|_| Unfit::Corrupt)?;
        read.push(inner);
    }
    let all: Result<Vec<RecordRef<'_>>, RecordsError> = read.iter().flat_map(|records| records.iter()).collect();
    let all = all.map_err(|_| Unfit::Corrupt)?;
    let last_offset_delta = i32::try_from(all.len()).map_err(|_| Unfit::Invalid)? - 1;
    let header = BatchHeader {
        magic: MAGIC,
        base_offset: 0,
        attributes: first.attributes.with_timestamp_type(records::TimestampType::CreateTime),
        last_offset_delta,
        base_timestamp: all.first().map_or(NO_TIMESTAMP, |record| record.timestamp),
        max_timestamp: all.iter().map(|record| record.timestamp).max().unwrap_or(NO_TIMESTAMP),
        ..first
    };
    let numbered = (0..).zip(&all).map(|(offset, record)| RecordRef { offset, ..*record });
    let mut compressor = Compressor::new(codec, None).map_err(|_| Unfit::Corrupt)?;
    let bytes = records::rewrite_batch(&header, numbered, &mut compressor).map_err(|_| Unfit::Invalid)?;
    Batch::new(bytes.freeze()).map_err(|_| Unfit::Invalid)
}

/// Makes messages of a format of the batches that are whole, from `from` on. Marks of transactions are left out, and so
/// are headers, for which the old formats have no room.
pub(crate) fn to_messages(batches: Bytes, format: i8, from: i64) -> Bytes {
    let mut decompressor = Decompressor::default();
    let mut messages = BytesMut::with_capacity(batches.len());
    for batch in Batches::new(batches).map_while(Result::ok) {
        if batch.header().attributes.is_control() {
            continue;
        }
        let append_time = batch.header().timestamp_type() == Some(records::TimestampType::LogAppendTime);
        let Ok(records) = batch.records(&mut decompressor) else { break };
        for record in records.iter().map_while(Result::ok).filter(|record| record.offset >= from) {
            push_message(&mut messages, format, append_time, &record);
        }
    }
    messages.freeze()
}

fn push_message(out: &mut BytesMut, format: i8, append_time: bool, record: &RecordRef<'_>) {
    let mut body = BytesMut::with_capacity(HEADER_LEN);
    body.put_i8(format);
    body.put_u8(u8::from(format > 0 && append_time) << 3);
    if format > 0 {
        body.put_i64(record.timestamp);
    }
    for bytes in [record.key, record.value] {
        body.put_i32(bytes.map_or(-1, |bytes| bytes.len() as i32));
        body.extend_from_slice(bytes.unwrap_or_default());
    }
    out.put_i64(record.offset);
    out.put_i32(body.len() as i32 + 4);
    out.put_u32(crc32(&body));
    out.extend_from_slice(&body);
}

/// The checksum of the old formats: CRC-32 as zip has it.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[cfg(test)]
mod tests {
    use krafka_protocol::records::{BatchBuilder, NO_HEADERS};

    use super::*;

    fn batch(codec: Compression) -> Bytes {
        let mut builder = BatchBuilder::new();
        for (timestamp, value) in [(5, Some("a")), (7, None), (6, Some("c"))] {
            let (key, value) = (Some("k".as_bytes()), value.map(str::as_bytes));
            builder.try_append(timestamp, key, value, NO_HEADERS).expect("there is room");
        }
        builder.seal(&mut Compressor::new(codec, None).expect("a codec")).expect("a batch").bytes()
    }

    /// Offset, timestamp and whether there is a value, of each record.
    fn told(batch: &Batch) -> Vec<(i64, i64, bool)> {
        let records = batch.records(&mut Decompressor::default()).expect("records").to_vec().expect("whole records");
        records.iter().map(|record| (record.offset, record.timestamp, record.value.is_some())).collect()
    }

    #[test]
    fn batches_become_messages_and_messages_a_batch() {
        for (format, times) in [(0, [-1, -1, -1]), (1, [5, 7, 6])] {
            let messages = to_messages(batch(Compression::Gzip), format, 0);
            assert!(Batches::new(messages.clone()).all(|message| {
                message.is_ok_and(|message| message.header().magic == format && message.verify_crc().is_ok())
            }));

            let again = to_batch(messages).expect("a batch");

            again.verify_crc().expect("a checksum");
            assert_eq!(told(&again), [(0, times[0], true), (1, times[1], false), (2, times[2], true)]);
            assert_eq!(again.header().max_timestamp, times[1]);
        }
    }

    #[test]
    fn messages_begin_at_the_offset_asked_for() {
        let messages = to_messages(batch(Compression::None), 1, 2);

        let offsets: Vec<_> =
            Batches::new(messages).map(|message| message.expect("whole").header().base_offset).collect();
        assert_eq!(offsets, [2]);
    }

    #[test]
    fn broken_messages_are_refused() {
        let mut messages = to_messages(batch(Compression::None), 1, 0).to_vec();
        *messages.last_mut().expect("a byte") ^= 1;

        assert_eq!(to_batch(Bytes::from(messages)), Err(Unfit::Corrupt));
        assert_eq!(to_batch(Bytes::new()), Err(Unfit::Invalid));
    }
}
