//! The records of the coordinators against themselves, and against logs that a real Kafka wrote.

use std::collections::BTreeMap;
use std::path::Path;

use krafka_protocol::Bytes;
use krafka_protocol::compression::Decompressor;
use krafka_protocol::coordinator::{Entry, GroupRecord, RecordType, ShareRecord, TransactionRecord, Versioned};
use krafka_protocol::records::Batches;
use krafka_protocol::schema::MessageSchema;
use proptest::prelude::*;

use crate::filler::{Extra, fill};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_record_is_read_and_written_again(entropy in prop::collection::vec(any::<u8>(), 0..400)) {
        for record in GroupRecord::TYPES {
            for (key, value) in pairs(record, &entropy) {
                let read = GroupRecord::decode(key.clone(), value.clone()).unwrap();
                prop_assert_eq!(read.number(), Some(record.number));
                prop_assert_eq!(read.is_tombstone(), value.is_none());
                prop_assert!(!matches!(read, GroupRecord::Unknown { .. }), "{:?}", read);
                prop_assert_eq!(read.encode().unwrap(), (key, value));
            }
        }
        for record in TransactionRecord::TYPES {
            for (key, value) in pairs(record, &entropy) {
                let read = TransactionRecord::decode(key.clone(), value.clone()).unwrap();
                prop_assert_eq!((read.number(), read.is_tombstone()), (Some(record.number), value.is_none()));
                prop_assert!(matches!(read, TransactionRecord::TransactionLog(_)), "{:?}", read);
                prop_assert_eq!(read.encode().unwrap(), (key, value));
            }
        }
        for record in ShareRecord::TYPES {
            for (key, value) in pairs(record, &entropy) {
                let read = ShareRecord::decode(key.clone(), value.clone()).unwrap();
                prop_assert_eq!((read.number(), read.is_tombstone()), (Some(record.number), value.is_none()));
                prop_assert!(!matches!(read, ShareRecord::Unknown { .. }), "{:?}", read);
                prop_assert_eq!(read.encode().unwrap(), (key, value));
            }
        }
    }

    /// A log may hold anything: what cannot be read is an error, and what can be is written as it was.
    #[test]
    fn any_bytes_are_harmless(
        number in -1..30_i16,
        version in -1..6_i16,
        key in prop::collection::vec(any::<u8>(), 0..40),
        value in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let key = Bytes::from([&number.to_be_bytes()[..], &key].concat());
        let value = Some(Bytes::from([&version.to_be_bytes()[..], &value].concat()));
        if let Ok(read) = GroupRecord::decode(key.clone(), value.clone()) {
            let (key, value) = read.encode().unwrap();
            prop_assert_eq!(GroupRecord::decode(key, value).unwrap(), read);
        }
        if let Ok(read) = ShareRecord::decode(key, value) {
            let (key, value) = read.encode().unwrap();
            prop_assert_eq!(ShareRecord::decode(key, value).unwrap(), read);
        }
    }
}

/// A key of the type with a value in each version, and with none.
fn pairs(record: &RecordType, entropy: &[u8]) -> Vec<(Bytes, Option<Bytes>)> {
    let key = behind(record.number, record.key, 0, entropy);
    let values = record.value.versions.iter().map(|version| Some(behind(version, record.value, version, entropy)));
    values.chain([None]).map(|value| (key.clone(), value)).collect()
}

fn behind(prefix: i16, schema: &MessageSchema, version: i16, entropy: &[u8]) -> Bytes {
    [&prefix.to_be_bytes()[..], &fill(schema, version, entropy, Extra::Nothing)].concat().into()
}

#[test]
fn what_kafka_may_add_is_kept_as_it_is() {
    let new_type = (Bytes::from_static(b"\x7f\x01key"), Some(Bytes::from_static(b"\0\x09value")));
    let new_version = (Bytes::from_static(b"\0\x02\0\x01g"), Some(Bytes::from_static(b"\0\x05value")));
    let tombstone = (Bytes::from_static(b"\0\x18key"), None);

    for ((key, value), number) in [(new_type, 0x7f01), (new_version, 2), (tombstone, 24)] {
        let read = GroupRecord::decode(key.clone(), value.clone()).unwrap();

        assert_eq!(read, GroupRecord::Unknown { key: key.clone(), value: value.clone() });
        assert_eq!((read.number(), read.is_tombstone()), (Some(number), value.is_none()));
        assert_eq!(read.encode().unwrap(), (key, value));
    }
}

#[test]
fn what_no_coordinator_writes_is_an_error() {
    let group = Bytes::from_static(b"\0\x02\0\x01g");
    let whole = GroupRecord::decode(group.clone(), None).unwrap();
    assert!(matches!(whole, GroupRecord::GroupMetadata(_)), "{whole:?}");

    for (key, value, reason) in [
        (Bytes::new(), None, "the input ends too early: 2 bytes needed, 0 left"),
        (Bytes::from_static(b"\0\x02\0\x02g"), None, "GroupMetadataKey v0, group: "),
        (Bytes::from_static(b"\0\x02\0\x01g!"), None, "GroupMetadataKey v0, end: there are bytes behind"),
        (group.clone(), Some(Bytes::from_static(b"\0")), "the input ends too early: 2 bytes needed, 1 left"),
        (group, Some(Bytes::from_static(b"\0\x03\0\x01")), "GroupMetadataValue v3, protocol_type: "),
    ] {
        let error = GroupRecord::decode(key, value).unwrap_err().to_string();
        assert!(error.starts_with(reason), "{error}");
    }
}

/// A structure that is a tagged field and may be null: Java puts a varint before it, 0 for null and 1 if it is there.
#[test]
fn a_tagged_structure_is_written_as_java_does() {
    let key = Bytes::from_static(b"\0\x05\0\x01g\0\x01m");
    let default = b"\0\0\x01\x01\x02c\x02h\x01\x01\xff\xff\xff\xff\x01\0";
    let null = b"\0\0\x01\x01\x02c\x02h\x01\x01\xff\xff\xff\xff\x01\x01\0\x01\0";
    let set = b"\0\0\x01\x01\x02c\x02h\x01\x01\xff\xff\xff\xff\x01\x01\0\x07\x01\0\0\0\x07\x01\0";

    for (value, timeout) in [(&default[..], Some(0)), (null, None), (set, Some(7))] {
        let value = Some(Bytes::from_static(value));
        let read = GroupRecord::decode(key.clone(), value.clone()).unwrap();

        let GroupRecord::ConsumerGroupMemberMetadata(entry) = &read else { panic!("{read:?}") };
        let member = &entry.value.as_ref().expect("it is no tombstone").message;
        assert_eq!(member.classic_member_metadata.as_ref().map(|classic| classic.session_timeout_ms), timeout);
        assert_eq!(read.encode().unwrap(), (key.clone(), value));
    }
}

/// How these came about is said beside them.
#[test]
fn logs_of_a_real_kafka_are_read_and_written_again() {
    let mut offsets = BTreeMap::new();
    for (key, value) in log("__consumer_offsets") {
        let read = GroupRecord::decode(key.clone(), value.clone()).unwrap();
        assert_eq!(read.encode().unwrap(), (key, value), "{read:?}");
        let number = read.number().expect("a key has a type");
        offsets.entry(number).or_insert_with(Vec::new).push(read);
    }
    let mut transactions = Vec::new();
    for (key, value) in log("__transaction_state") {
        let read = TransactionRecord::decode(key.clone(), value.clone()).unwrap();
        assert_eq!(read.encode().unwrap(), (key, value), "{read:?}");
        transactions.push(read);
    }
    let mut states = Vec::new();
    for (key, value) in log("__share_group_state") {
        let read = ShareRecord::decode(key.clone(), value.clone()).unwrap();
        assert_eq!(read.encode().unwrap(), (key, value), "{read:?}");
        states.push(read);
    }

    // Offsets; a classic group; two consumer groups; a share group.
    let counts: Vec<_> = offsets.iter().map(|(number, records)| (*number, records.len())).collect();
    let expected =
        [(1, 6), (2, 3), (3, 4), (5, 4), (6, 4), (7, 4), (8, 4), (10, 2), (11, 3), (12, 3), (13, 3), (14, 3)];
    assert_eq!(counts, [&expected[..], &[(15, 2)]].concat());
    assert_eq!(offsets.values().flatten().filter(|record| record.is_tombstone()).count(), 9);
    let committed = offsets[&1].iter().map(|record| match record {
        GroupRecord::OffsetCommit(Entry { key, value: Some(Versioned { version: 4, message }) }) => {
            (key.group.as_str(), key.partition, message.offset)
        }
        other => panic!("{other:?}"),
    });
    let groups = ["classic-g", "new-g", "regex-g"];
    assert!(committed.eq(groups.iter().flat_map(|group| [(*group, 0, 20), (*group, 1, 0)])));

    // Begun, then three times ongoing, about to be committed, committed.
    let statuses = transactions.iter().map(|record| {
        let TransactionRecord::TransactionLog(entry) = record else { panic!("{record:?}") };
        let value = entry.value.as_ref().expect("no tombstone");
        (value.version, value.message.transaction_status)
    });
    assert!(statuses.eq([0, 1, 2, 4, 1, 2, 4, 1, 2, 4].map(|status| (1, status))));

    let Some(ShareRecord::ShareUpdate(Entry { value: Some(update), .. })) = states.pop() else { panic!("{states:?}") };
    assert_eq!((update.message.start_offset, update.message.delivery_complete_count), (0, 20));
    assert!(states.iter().all(|state| matches!(state, ShareRecord::ShareSnapshot(_))), "{states:?}");
}

/// Number 4, which later ones do not write, and offsets in version 3.
#[test]
fn a_log_of_kafka_3_9_2_is_read_and_written_again() {
    let mut counts = BTreeMap::new();
    for (key, value) in log("__consumer_offsets-3.9.2") {
        let read = GroupRecord::decode(key.clone(), value.clone()).unwrap();
        assert_eq!(read.encode().unwrap(), (key, value), "{read:?}");
        if let GroupRecord::OffsetCommit(Entry { value, .. }) = &read {
            assert_eq!(value.as_ref().map(|value| value.version), Some(3), "{read:?}");
        }
        *counts.entry(read.number().expect("a key has a type")).or_insert(0) += 1;
    }

    let expected = [(1, 4), (2, 3), (3, 2), (4, 2), (5, 2), (6, 1), (7, 2), (8, 2)];
    assert!(counts.iter().map(|(number, count)| (*number, *count)).eq(expected), "{counts:?}");
}

/// The keys and values of a segment.
fn log(topic: &str) -> Vec<(Bytes, Option<Bytes>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/logs/{topic}.log"));
    let segment = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut decompressor = Decompressor::default();
    let batches = Batches::new(segment.into()).map(|batch| batch.expect("Kafka wrote it"));
    let records = batches.flat_map(|batch| {
        batch.verify_crc().expect("Kafka wrote it");
        batch.records(&mut decompressor).and_then(|records| records.to_vec()).expect("Kafka wrote it")
    });
    records.map(|record| (record.key.expect("coordinators write keys"), record.value)).collect()
}
