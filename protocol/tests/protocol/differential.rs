//! Everything against a second codec, the `kafka-protocol` crate, whose messages are generated from Kafka's schemas.
//!
//! Whatever bytes the filler makes of a schema, both read them to the end and write the same. Record batches that
//! either writes, the other reads. Where the two differ, the golden bytes decide who is right.

use std::collections::BTreeSet;

use bytes::BytesMut;
use kafka_protocol::messages::{ApiKey as TheirKey, RequestKind, ResponseKind};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression as TheirCompression, Record as TheirRecord, RecordBatchDecoder, RecordBatchEncoder,
    RecordEncodeOptions, TimestampType as TheirTimestampType,
};
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::{BatchBuilder, Batches, Header, Stamp, assign_offsets};
use krafka_protocol::{ApiKey, Bytes};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use crate::filler::{Extra, fill};
use crate::kinds::{Kind, kinds};

/// Versions that the other codec lists and does not read: its own schemas end before them. Java's golden bytes are of
/// these versions too. The last one is unstable, so that we speak it only with the feature for these.
const REFUSED_BY_THEM: [(ApiKey, i16); 3] =
    [(ApiKey::OffsetCommit, 10), (ApiKey::OffsetFetch, 10), (ApiKey::InitProducerId, 6)];

/// Each kind of message with a version that both codecs know.
fn common() -> impl Iterator<Item = (Kind, TheirKey, i16)> {
    kinds().flat_map(|kind| {
        let key = TheirKey::try_from(kind.api.code()).ok();
        let knows = move |version: i16| {
            let refused = kind.is_request && REFUSED_BY_THEM.contains(&(kind.api, version));
            let key = key.filter(|key| (key.valid_versions().min..=key.valid_versions().max).contains(&version))?;
            (!refused).then_some((kind, key, version))
        };
        kind.schema.versions.iter().filter_map(knows)
    })
}

/// What the other codec writes of what it reads in `bytes`.
fn theirs(kind: &Kind, key: TheirKey, version: i16, bytes: &Bytes) -> Result<Bytes, String> {
    let (mut input, mut output) = (bytes.clone(), BytesMut::new());
    let written = if kind.is_request {
        RequestKind::decode(key, &mut input, version).map(|message| message.encode(&mut output, version))
    } else {
        ResponseKind::decode(key, &mut input, version).map(|message| message.encode(&mut output, version))
    };
    match written {
        Err(error) => Err(format!("does not read it: {error:#}")),
        Ok(_) if !input.is_empty() => Err(format!("leaves {} bytes", input.len())),
        Ok(Err(error)) => Err(format!("does not write what it read: {error:#}")),
        Ok(Ok(())) => Ok(output.freeze()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn two_codecs_read_and_write_the_same(entropy in vec(any::<u8>(), 0..400)) {
        for (kind, key, version) in common() {
            let name = kind.schema.name;
            let least = Bytes::from(fill(kind.schema, version, &entropy, Extra::Nothing));
            for extra in [Extra::Nothing, Extra::Defaults] {
                let bytes = Bytes::from(fill(kind.schema, version, &entropy, extra));
                let ours = kind.decode_all(bytes.clone(), version).map(|decoded| decoded.encode(version).unwrap());
                prop_assert_eq!(ours.as_ref(), Ok(&least), "we: {} v{} {:?}", name, version, extra);
                let theirs = theirs(&kind, key, version, &bytes);
                prop_assert_eq!(theirs.as_ref(), Ok(&least), "they: {} v{} {:?}", name, version, extra);
            }
        }
    }
}

/// What is left out is left out for a reason: APIs of Kafka before 4 and after 4.1, which the other codec lacks.
#[test]
fn nearly_every_message_is_compared() {
    let compared: BTreeSet<_> = common().map(|(kind, ..)| kind.api).collect();
    let lacking: Vec<_> = ApiKey::SPOKEN.iter().copied().filter(|api| !compared.contains(api)).collect();

    assert_eq!(
        lacking,
        [
            ApiKey::LeaderAndIsr,
            ApiKey::StopReplica,
            ApiKey::UpdateMetadata,
            ApiKey::ControlledShutdown,
            ApiKey::StreamsGroupHeartbeat,
            ApiKey::StreamsGroupDescribe,
            ApiKey::StreamsGroupTopologyDescriptionUpdate,
            ApiKey::UnregisterController,
        ]
    );
    assert!(common().count() >= 570, "only {}", common().count());
    for (api, version) in REFUSED_BY_THEM {
        let kind = kinds().find(|kind| kind.is(api, "request")).expect("we speak it");
        let bytes = fill(kind.schema, version, &[], Extra::Nothing).into();
        let key = TheirKey::try_from(api.code()).expect("they know it");
        let error = theirs(&kind, key, version, &bytes).expect_err("it is an exception");
        assert!(error.contains("specified version not supported"), "{error}");
    }
}

/// A record that both codecs can express: names of headers are text, and each of them is there once.
#[derive(Clone, Debug)]
struct Input {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

fn input() -> impl Strategy<Value = Input> {
    let bytes = || option::of(prop_oneof![4 => vec(any::<u8>(), 0..70), 1 => vec(0..4_u8, 0..9_000)]);
    // The other codec takes differences of timestamps that must not overflow.
    let timestamp = prop_oneof![Just(-1), 0..1_i64 << 62, 1_700_000_000_000..1_700_000_100_000_i64];
    (timestamp, bytes(), bytes(), btree_map("[a-zé𝄞]{0,9}", bytes(), 0..4)).prop_map(
        |(timestamp, key, value, headers)| Input { timestamp, key, value, headers: headers.into_iter().collect() },
    )
}

/// What stands in a batch's header.
#[derive(Clone, Debug)]
struct Frame {
    base_offset: i64,
    leader_epoch: i32,
    stamp: Stamp,
    is_snappy: bool,
}

fn frame() -> impl Strategy<Value = Frame> {
    let stamp = (-1..i64::MAX, -1..i16::MAX, -1..i32::MAX, any::<bool>()).prop_map(
        |(producer_id, producer_epoch, base_sequence, transactional)| Stamp {
            producer_id,
            producer_epoch,
            base_sequence,
            transactional,
        },
    );
    (0..i64::MAX - 1_000, -1..i32::MAX, stamp, any::<bool>())
        .prop_map(|(base_offset, leader_epoch, stamp, is_snappy)| Frame { base_offset, leader_epoch, stamp, is_snappy })
}

impl Frame {
    /// The record as the other codec has it, with all that it shares with its batch.
    fn record_of(&self, index: usize, input: &Input) -> TheirRecord {
        let Stamp { producer_id, producer_epoch, base_sequence, transactional } = self.stamp;
        TheirRecord {
            transactional,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: self.leader_epoch,
            producer_id,
            producer_epoch,
            timestamp_type: TheirTimestampType::Creation,
            offset: self.base_offset + index as i64,
            sequence: base_sequence.wrapping_add(index as i32),
            timestamp: input.timestamp,
            key: input.key.clone().map(Bytes::from),
            value: input.value.clone().map(Bytes::from),
            headers: input
                .headers
                .iter()
                .map(|(name, value)| (StrBytes::from_string(name.clone()), value.clone().map(Bytes::from)))
                .collect(),
        }
    }
}

proptest! {
    #[test]
    fn the_other_codec_reads_our_batches(inputs in vec(input(), 1..12), frame in frame()) {
        let mut builder = BatchBuilder::new();
        for input in &inputs {
            builder.try_append(input.timestamp, input.key.as_deref(), input.value.as_deref(), &input.headers).unwrap();
        }
        let codec = if frame.is_snappy { Compression::Snappy } else { Compression::None };
        let mut sealed = builder.seal(&mut Compressor::new(codec, None).unwrap()).unwrap();
        sealed.stamp(frame.stamp);
        let mut batch = sealed.bytes().to_vec();
        assign_offsets(&mut batch, frame.base_offset, frame.leader_epoch).unwrap();

        let mut read = RecordBatchDecoder::decode_all(&mut Bytes::from(batch)).unwrap();

        prop_assert_eq!(read.len(), 1);
        let expected: Vec<_> = inputs.iter().enumerate().map(|(index, input)| frame.record_of(index, input)).collect();
        prop_assert_eq!(read.remove(0).records, expected);
    }

    #[test]
    fn we_read_the_batches_of_the_other_codec(inputs in vec(input(), 1..12), frame in frame()) {
        let records: Vec<_> = inputs.iter().enumerate().map(|(index, input)| frame.record_of(index, input)).collect();
        let compression = if frame.is_snappy { TheirCompression::Snappy } else { TheirCompression::None };
        let mut written = BytesMut::new();
        RecordBatchEncoder::encode(&mut written, &records, &RecordEncodeOptions { version: 2, compression }).unwrap();

        let mut batches = Batches::new(written.freeze());
        let batch = batches.next().expect("a batch").unwrap();
        prop_assert!(batches.next().is_none() && batches.trailing_len() == 0);
        batch.verify_crc().unwrap();
        let read = batch.records(&mut Decompressor::default()).and_then(|records| records.to_vec()).unwrap();

        let header = batch.header();
        prop_assert_eq!((header.base_offset, header.partition_leader_epoch), (frame.base_offset, frame.leader_epoch));
        let Stamp { producer_id, producer_epoch, base_sequence, transactional } = frame.stamp;
        prop_assert_eq!((header.producer_id, header.producer_epoch), (producer_id, producer_epoch));
        prop_assert_eq!((header.base_sequence, header.attributes.is_transactional()), (base_sequence, transactional));
        prop_assert_eq!(Some(header.max_timestamp), inputs.iter().map(|input| input.timestamp).max());
        prop_assert_eq!(read.len(), inputs.len());
        for ((record, input), offset) in read.iter().zip(&inputs).zip(frame.base_offset..) {
            prop_assert_eq!((record.offset, record.timestamp), (offset, input.timestamp));
            prop_assert_eq!(record.key.as_deref(), input.key.as_deref());
            prop_assert_eq!(record.value.as_deref(), input.value.as_deref());
            let owned = |header: Header<'_>| (header.name().to_string(), header.value.map(<[u8]>::to_vec));
            let headers: Vec<_> = record.headers.iter().map(owned).collect();
            prop_assert_eq!(&headers, &input.headers);
        }
    }
}
