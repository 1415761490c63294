//! A record set as one JSON value: its batches with the fields of their headers, and its records.
//!
//! The shape is that of the `json` column of the vectors (`tests/vectors/`), which was made with Kafka's own classes.
//! The golden test compares the two, so that what this example prints is what the test has seen.

use std::error::Error;
use std::panic::catch_unwind;

use krafka_protocol::compression::Decompressor;
use krafka_protocol::records::{
    Batch, BatchHeader, Batches, ControlRecord, MAGIC, RecordRef, Records, RecordsError, TimestampType,
};
use krafka_protocol::value::Structure;
use krafka_protocol::{Bytes, UnknownTags};
use serde_json::{Map, Value, json};

use super::hex::{hex, unhex};
use super::lines::Line;
use super::rendering::{render, to_ascii};

/// The answer to a line: the record set whose hex it is, in JSON, or `{"error": …}`.
pub(crate) fn answer(line: Line<'_>) -> String {
    let digits = line.bytes.trim_ascii();
    let listing = match digits {
        _ if line.dropped > 0 => Err(format!("the line is longer than {} bytes", line.bytes.len())),
        b"-" => Ok(Bytes::new()),
        digits => unhex(digits).map(Bytes::from),
    };
    // As with messages, a fault of the codec costs its own line only.
    let listing = listing.and_then(|bytes| {
        catch_unwind(|| record_set_json(bytes))
            .map_err(|_| "the codec panicked: its message is on standard error".to_owned())
    });
    listing.unwrap_or_else(|error| error_json(&error))
}

/// The record set in JSON, or `{"error": …}` with the first thing that is wrong with it.
pub(crate) fn record_set_json(bytes: Bytes) -> String {
    list(bytes).unwrap_or_else(|error| error_json(&error.to_string()))
}

fn error_json(error: &str) -> String {
    to_ascii(&json!({ "error": error }).to_string())
}

/// The longest listing. What few bytes decompress to may be millions of small records, each of which is a hundred bytes
/// of JSON.
const MAX_LISTING: usize = 1 << 29;

fn list(bytes: Bytes) -> Result<String, Box<dyn Error>> {
    let mut listing = format!("{{\"sizeInBytes\":{},\"batches\":[", bytes.len());
    let mut decompressor = Decompressor::default();
    let mut set = Batches::new(bytes);
    loop {
        let position = set.position();
        let Some(batch) = set.next() else { break };
        let batch = batch?;
        batch.verify_crc()?;
        let records = batch.records(&mut decompressor)?;
        records.verify_crcs()?;
        if position > 0 {
            listing.push(',');
        }
        push_batch(&mut listing, position, &batch, &records)?;
    }
    listing.push_str(&format!("],\"trailingBytes\":{}}}", set.trailing_len()));
    Ok(listing)
}

fn push_batch(listing: &mut String, position: usize, batch: &Batch, records: &Records) -> Result<(), Box<dyn Error>> {
    // That of the records knows the first offset inside a compressed message of an old format.
    let header = records.header();
    let codec = header.attributes.compression().map_or("unknown", |codec| codec.name());
    let timestamp_type = match header.timestamp_type() {
        None => "NoTimestampType",
        Some(TimestampType::CreateTime) => "CreateTime",
        Some(TimestampType::LogAppendTime) => "LogAppendTime",
    };
    let mut fields = object(json!({
        "position": position,
        "magic": header.magic,
        "sizeInBytes": batch.bytes().len(),
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset(),
        "codec": codec,
        "timestampType": timestamp_type,
        "attributes": header.attributes.0,
        "crc": header.crc,
        "maxTimestamp": header.max_timestamp,
    }));
    if header.magic == MAGIC {
        fields.extend(object(json!({
            "partitionLeaderEpoch": header.partition_leader_epoch,
            "baseTimestamp": header.base_timestamp,
            "producerId": header.producer_id,
            "producerEpoch": header.producer_epoch,
            "baseSequence": header.base_sequence,
            "lastSequence": header.last_sequence(),
            "isTransactional": header.attributes.is_transactional(),
            "isControlBatch": header.attributes.is_control(),
            "deleteHorizonMs": header.delete_horizon_ms(),
            "count": header.count,
        })));
    }
    let fields = Value::from(fields).to_string();
    listing.push_str(fields.trim_end_matches('}'));
    listing.push_str(",\"records\":[");
    for (index, record) in records.iter().enumerate() {
        if index > 0 {
            listing.push(',');
        }
        listing.push_str(&to_ascii(&record_json(header, &record?)?.to_string()));
        if listing.len() > MAX_LISTING {
            return Err(format!("the listing is longer than {MAX_LISTING} bytes").into());
        }
    }
    listing.push_str("]}");
    Ok(())
}

fn record_json(header: &BatchHeader, record: &RecordRef<'_>) -> Result<Value, RecordsError> {
    let mut listing = object(json!({
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key.map(hex),
        "value": record.value.map(hex),
    }));
    if header.magic == MAGIC {
        // A record's offset lies within 32 bits of the batch's, or it would not have been decoded.
        let delta = record.offset.wrapping_sub(header.base_offset) as i32;
        let headers = record.headers.iter().map(|header| json!([header.name(), header.value.map(hex)]));
        listing.insert("sequence".to_owned(), header.sequence_at(delta).into());
        listing.insert("headers".to_owned(), headers.collect());
    }
    if header.attributes.is_control() {
        let control = ControlRecord::parse(record.key, record.value)?;
        listing.insert("control".to_owned(), mark_json(&control));
    }
    Ok(listing.into())
}

/// A mark of a control batch, by its name and content.
fn mark_json(control: &ControlRecord) -> Value {
    let (mark, version): (&dyn Structure, _) = match control {
        ControlRecord::Abort { coordinator_epoch } | ControlRecord::Commit { coordinator_epoch } => {
            return json!({ "type": control.name(), "coordinatorEpoch": coordinator_epoch });
        }
        ControlRecord::LeaderChange(mark) => (mark, mark.version),
        ControlRecord::SnapshotHeader(mark) => (mark, mark.version),
        ControlRecord::SnapshotFooter(mark) => (mark, mark.version),
        ControlRecord::KRaftVersion(mark) => (mark, mark.version),
        ControlRecord::KRaftVoters(mark) => (mark, mark.version),
        ControlRecord::Other { .. } => return json!({ "type": control.name() }),
    };
    let message: Value =
        serde_json::from_str(&render(mark, version, &UnknownTags::default()).json).expect("we print JSON");
    json!({ "type": control.name(), "message": message })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
