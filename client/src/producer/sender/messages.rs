//! What the machine hears, and what it orders.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use krafka_protocol::api::produce::ProduceResponse;
use krafka_protocol::{Str, Uuid};

use crate::cluster::{LeaderHint, Node, Snapshot};
use crate::error::KrafkaError;
use crate::producer::accumulator::Event;
use crate::producer::batch::Batch;
use crate::producer::delivery::{Destination, Receipt, Settled};
use crate::producer::identity::ProducerId;

/// Something that happened. `L` is what a connection is to the driver.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and moves once")]
pub(in crate::producer) enum Input<L> {
    /// Something happened to the records.
    Event(Event),
    /// The view of the cluster changed.
    Changed(Arc<Snapshot>),
    /// A broker can be reached.
    Connected { node: i32, link: L },
    /// A broker cannot be reached.
    Unreachable { node: i32, error: KrafkaError },
    /// A broker answered a request, and perhaps asked for a pause.
    Answered { request: u64, response: ProduceResponse, pause: Option<Duration> },
    /// A request without an answer (acks=0) is on its way.
    Written { request: u64 },
    /// A request has no answer and will get none.
    Lost { request: u64, error: KrafkaError, possibly_written: bool, is_retriable: bool },
    /// A broker gave the producer an identity.
    Identified(ProducerId),
    /// None did. If it is final, asking again does not help.
    Unidentified { error: KrafkaError, is_final: bool },
}

/// Something to do.
pub(in crate::producer) enum Action<L> {
    /// Seal the open batch of a partition.
    Seal { slot: usize, number: u64 },
    /// Connect to a broker.
    Connect(Arc<Node>),
    /// Send batches, at most one for each partition.
    Produce { request: u64, link: L, batches: Vec<Outgoing> },
    /// Ask any broker for an identity.
    Identify,
    /// The view of a topic is wrong: fetch it anew.
    Refresh(Str),
    /// Keep the views of these topics fresh, and those of no others.
    Keep(Vec<Str>),
    /// Have callers load a topic anew before they send to it.
    Rest(Str),
    /// A broker told who leads.
    Hint(LeaderHint),
    /// Wait for a view of the cluster that is newer than this version.
    Watch(u64),
    /// Answer the records of a batch.
    Settle(Receipt, Settled),
    /// Keep the buffer of a batch that is done.
    Recycle(Batch),
    /// All is answered, and nothing more will come.
    Stop,
}

/// A batch in a request.
#[derive(Debug)]
pub(in crate::producer) struct Outgoing {
    pub(in crate::producer) destination: Arc<Destination>,
    pub(in crate::producer) topic_id: Uuid,
    pub(in crate::producer) records: Bytes,
}

impl<L> fmt::Debug for Action<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seal { slot, number } => write!(f, "Seal({slot}, {number})"),
            Self::Connect(node) => write!(f, "Connect({})", node.id),
            Self::Produce { request, batches, .. } => {
                write!(f, "Produce({request}")?;
                batches.iter().try_for_each(|batch| write!(f, ", {}", batch.destination))?;
                f.write_str(")")
            }
            Self::Identify => f.write_str("Identify"),
            Self::Refresh(topic) => write!(f, "Refresh({topic})"),
            Self::Keep(topics) => write!(f, "Keep({})", topics.join(", ")),
            Self::Rest(topic) => write!(f, "Rest({topic})"),
            Self::Hint(hint) => write!(f, "Hint({}-{} is led by {})", hint.topic, hint.partition, hint.leader),
            Self::Watch(version) => write!(f, "Watch({version})"),
            Self::Settle(_, settled) => write!(f, "Settle({settled:?})"),
            Self::Recycle(batch) => write!(f, "Recycle({}, {:?})", batch.destination, batch.order),
            Self::Stop => f.write_str("Stop"),
        }
    }
}
