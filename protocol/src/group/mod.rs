//! What consumers put inside JoinGroup and SyncGroup: their subscriptions and assignments.
//!
//! The coordinator carries these as opaque bytes from member to member. Each begins with an `i16`,
//! its version. Members of one group may run different software, so a version above ours is read as
//! our highest: by agreement every version only adds to the end.

mod assignment;
mod subscription;

pub use assignment::Assignment;
pub use subscription::Subscription;

use crate::{Bytes, DecodeError, EncodeError, Message, Reader, Str, Writer};

/// The highest version of both payloads that we know, and Kafka 4.4 as well.
pub const HIGHEST_VERSION: i16 = 3;

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0..=3)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: Str,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// Writes a payload behind its version.
fn write<M: Message>(payload: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut out = Writer::with_capacity(2 + payload.size(version)?);
    out.put_slice(&version.to_be_bytes());
    payload.encode(&mut out, version)?;
    Ok(out.into_bytes())
}

/// Reads a payload behind its version, whatever a newer version has added to its end.
fn read<M: Message>(bytes: Bytes) -> Result<M, DecodeError> {
    let mut input = Reader::new(bytes);
    let version = i16::from_be_bytes(input.take_array()?);
    M::decode(&mut input, version.min(HIGHEST_VERSION))
}
