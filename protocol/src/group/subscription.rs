//! What a member of a consumer group wants, and what it has.

use super::TopicPartition;
use crate::{Bytes, DecodeError, EncodeError, Message, Str};

/// A member's wishes, from which the group's leader makes the assignment.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0..=3)]
pub struct Subscription {
    /// The topics that the member wants to read.
    pub topics: Vec<Str>,
    /// What the assignor wants to tell itself, `None` for nothing.
    #[field(default = null)]
    pub user_data: Option<Bytes>,
    /// The partitions that the member still reads, for assignors that move as few as they can
    /// (KIP-429).
    #[field(versions = 1.., ignorable)]
    pub owned_partitions: Vec<TopicPartition>,
    /// The generation in which it was given those, -1 if unknown. The leader believes the newest.
    #[field(versions = 2.., ignorable, default = -1)]
    pub generation_id: i32,
    /// The rack where the member stands, `None` if it does not say (KIP-881).
    #[field(versions = 3.., nullable = 3.., ignorable, default = null)]
    pub rack_id: Option<Str>,
}

impl Subscription {
    /// The payload for [`JoinGroupRequestProtocol::metadata`], with its version.
    ///
    /// What the version has no place for is left out.
    ///
    /// # Errors
    /// When the version is none of 0 to [`HIGHEST_VERSION`](super::HIGHEST_VERSION), or something is too long.
    ///
    /// [`JoinGroupRequestProtocol::metadata`]: crate::api::join_group::JoinGroupRequestProtocol::metadata
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        super::write(self, version)
    }

    /// Reads a payload of any version.
    ///
    /// # Errors
    /// When the version is negative, or the bytes end too early or make no sense.
    pub fn from_bytes(payload: Bytes) -> Result<Self, DecodeError> {
        super::read(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription() -> Subscription {
        Subscription {
            topics: vec!["orders".into()],
            user_data: Some(Bytes::from_static(b"sticky")),
            owned_partitions: vec![TopicPartition { topic: "orders".into(), partitions: vec![0, 2] }],
            generation_id: 7,
            rack_id: Some("a".into()),
        }
    }

    #[test]
    fn the_highest_version_carries_everything() {
        let payload = subscription().to_bytes(3).unwrap();

        assert_eq!(payload[..2], [0, 3]);
        assert_eq!(Subscription::from_bytes(payload).unwrap(), subscription());
    }

    #[test]
    fn an_older_version_leaves_out_what_it_has_no_place_for() {
        let payload = subscription().to_bytes(0).unwrap();

        let read = Subscription::from_bytes(payload).unwrap();
        assert_eq!(read.topics, subscription().topics);
        assert_eq!((read.owned_partitions, read.generation_id, read.rack_id), (vec![], -1, None));
    }

    #[test]
    fn a_newer_version_is_read_as_far_as_it_is_known() {
        let mut payload = subscription().to_bytes(3).unwrap().to_vec();
        payload[1] = 9;
        payload.extend_from_slice(b"something new");

        assert_eq!(Subscription::from_bytes(payload.into()).unwrap(), subscription());
    }

    #[test]
    fn nonsense_is_an_error() {
        let whole = subscription().to_bytes(3).unwrap();

        for cut in 0..whole.len() {
            assert!(Subscription::from_bytes(whole.slice(..cut)).is_err(), "cut to {cut} bytes");
        }
        assert!(Subscription::from_bytes(Bytes::from_static(b"\xff\xff\0\0\0\0\0\0\0\0")).is_err());
        assert!(subscription().to_bytes(4).is_err());
        assert!(subscription().to_bytes(-1).is_err());
    }
}
