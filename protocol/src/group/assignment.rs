//! What a member of a consumer group gets.

use super::TopicPartition;
use crate::{Bytes, DecodeError, EncodeError, Message};

/// The partitions that the group's leader gives to a member.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0..=3)]
pub struct Assignment {
    /// The partitions to read, by topic.
    pub assigned_partitions: Vec<TopicPartition>,
    /// What the assignor wants to tell the member, `None` for nothing.
    #[field(default = null)]
    pub user_data: Option<Bytes>,
}

impl Assignment {
    /// The payload for [`SyncGroupRequestAssignment::assignment`], with its version.
    ///
    /// # Errors
    /// When the version is none of 0 to [`HIGHEST_VERSION`](super::HIGHEST_VERSION), or something is too long.
    ///
    /// [`SyncGroupRequestAssignment::assignment`]: crate::api::sync_group::SyncGroupRequestAssignment::assignment
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        super::write(self, version)
    }

    /// Reads a payload of any version. An empty one, which a coordinator hands to a member that the
    /// leader has left out, is an assignment of nothing.
    ///
    /// # Errors
    /// When the version is negative, or the bytes end too early or make no sense.
    pub fn from_bytes(payload: Bytes) -> Result<Self, DecodeError> {
        if payload.is_empty() { Ok(Self::default()) } else { super::read(payload) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignment() -> Assignment {
        let partitions = TopicPartition { topic: "orders".into(), partitions: vec![1, 4] };
        Assignment { assigned_partitions: vec![partitions], user_data: None }
    }

    #[test]
    fn every_version_carries_everything() {
        for version in 0..=3 {
            let payload = assignment().to_bytes(version).unwrap();

            assert_eq!(payload[..2], version.to_be_bytes());
            assert_eq!(Assignment::from_bytes(payload).unwrap(), assignment());
        }
    }

    #[test]
    fn a_newer_version_is_read_as_far_as_it_is_known() {
        let mut payload = assignment().to_bytes(3).unwrap().to_vec();
        payload[1] = 4;
        payload.extend_from_slice(b"something new");

        assert_eq!(Assignment::from_bytes(payload.into()).unwrap(), assignment());
    }

    #[test]
    fn no_bytes_are_no_partitions() {
        assert_eq!(Assignment::from_bytes(Bytes::new()).unwrap(), Assignment::default());
    }

    #[test]
    fn nonsense_is_an_error() {
        let whole = assignment().to_bytes(0).unwrap();

        for cut in 1..whole.len() {
            assert!(Assignment::from_bytes(whole.slice(..cut)).is_err(), "cut to {cut} bytes");
        }
        assert!(Assignment::from_bytes(Bytes::from_static(b"\x80\0\0\0\0\0\0\0\0\0")).is_err());
    }
}
