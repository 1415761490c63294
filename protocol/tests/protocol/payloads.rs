//! Messages that are no API's: what stands inside other messages, in records and in the logs of coordinators.

use krafka_protocol::group::{Assignment, Subscription};
use krafka_protocol::records::{
    AbortedTxn, ControlRecordTypeSchema, EndTxnMarker, KRaftVersionRecord, LeaderChangeMessage, SnapshotFooterRecord,
    SnapshotHeaderRecord, VotersRecord,
};
use krafka_protocol::schema::MessageSchema;
use krafka_protocol::value::Structure;
use krafka_protocol::{DecodeError, DefaultPrincipalData, EncodeError, Message, Reader, Writer};

/// One type of them.
pub(crate) struct Payload {
    /// The name of Kafka's schema.
    pub(crate) name: &'static str,
    pub(crate) schema: &'static MessageSchema,
    decode: fn(&mut Reader, i16) -> Decoded,
}

type Decoded = Result<Box<dyn Written>, DecodeError>;

/// All of them.
pub(crate) const PAYLOADS: &[Payload] = &[
    Payload::of::<Subscription>("ConsumerProtocolSubscription"),
    Payload::of::<Assignment>("ConsumerProtocolAssignment"),
    Payload::of::<AbortedTxn>("AbortedTxn"),
    Payload::of::<ControlRecordTypeSchema>("ControlRecordTypeSchema"),
    Payload::of::<EndTxnMarker>("EndTxnMarker"),
    Payload::of::<LeaderChangeMessage>("LeaderChangeMessage"),
    Payload::of::<SnapshotHeaderRecord>("SnapshotHeaderRecord"),
    Payload::of::<SnapshotFooterRecord>("SnapshotFooterRecord"),
    Payload::of::<KRaftVersionRecord>("KRaftVersionRecord"),
    Payload::of::<VotersRecord>("VotersRecord"),
    Payload::of::<DefaultPrincipalData>("DefaultPrincipalData"),
];

impl Payload {
    const fn of<M: Message + 'static>(name: &'static str) -> Self {
        let decode = |input: &mut Reader, version| Ok(Box::new(M::decode(input, version)?) as Box<dyn Written>);
        Self { name, schema: M::SCHEMA, decode }
    }

    /// Reads one, without a version before it.
    pub(crate) fn decode(&self, input: &mut Reader, version: i16) -> Decoded {
        (self.decode)(input, version)
    }
}

/// A payload of any type.
pub(crate) trait Written {
    fn encode(&self, out: &mut Writer, version: i16) -> Result<(), EncodeError>;
    fn structure(&self) -> &dyn Structure;
}

impl<M: Message> Written for M {
    fn encode(&self, out: &mut Writer, version: i16) -> Result<(), EncodeError> {
        Message::encode(self, out, version)
    }

    fn structure(&self) -> &dyn Structure {
        self
    }
}
