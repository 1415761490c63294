//! ControlledShutdown (7): a broker of a ZooKeeper cluster asks the controller to move the leaders away from it, and so
//! can stop without anybody missing it.
//!
//! Kafka 4 has dropped it: with KRaft, the heartbeat says so. The header of a version 0 request has no client id.
//! Version 1 changes nothing else; 2 knows brokers by their epoch (KIP-380); 3 brings the flexible encoding (KIP-482).

use crate::{Message, Str};

/// Asks to be relieved of leading.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 7, versions = 0..=3, flexible = 3.., response = ControlledShutdownResponse)]
pub struct ControlledShutdownRequest {
    /// The broker that is to stop.
    pub broker_id: i32,
    /// The broker's epoch, -1 if unknown: then the controller does not check it.
    #[field(versions = 2.., ignorable, default = -1)]
    pub broker_epoch: i64,
}

/// What the broker still leads.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 7, versions = 0..=3, flexible = 3..)]
pub struct ControlledShutdownResponse {
    /// 0 for none. STALE_CONTROLLER_EPOCH: the controller is another now. BROKER_NOT_AVAILABLE: the broker is not
    /// registered. STALE_BROKER_EPOCH: it has registered again since.
    pub error_code: i16,
    /// The partitions that no other broker could take over: while there are any, the broker had better ask again.
    pub remaining_partitions: Vec<RemainingPartition>,
}

/// A partition that the broker still leads.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 3..)]
pub struct RemainingPartition {
    /// The topic's name.
    pub topic_name: Str,
    /// The partition's number.
    pub partition_index: i32,
}
