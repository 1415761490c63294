//! [`Hint`]: what a broker said about who leads now (KIP-951).

use krafka_protocol::api::fetch::{NodeEndpoint, PartitionData};
use krafka_protocol::{Str, Uuid};

/// Who leads a partition, as a broker said that does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) topic: Str,
    pub(crate) topic_id: Uuid,
    pub(crate) partition: i32,
    pub(crate) leader_id: i32,
    pub(crate) leader_epoch: i32,
    /// Host, port and rack, if the broker told.
    pub(crate) endpoint: Option<(Str, i32, Option<Str>)>,
}

impl Hint {
    /// What an answer says of a partition, if it does.
    pub(super) fn of(topic: &Str, topic_id: Uuid, data: &PartitionData, endpoints: &[NodeEndpoint]) -> Option<Self> {
        let leader = &data.current_leader;
        (leader.leader_id >= 0 && leader.leader_epoch >= 0).then(|| Self {
            topic: topic.clone(),
            topic_id,
            partition: data.partition_index,
            leader_id: leader.leader_id,
            leader_epoch: leader.leader_epoch,
            endpoint: endpoints
                .iter()
                .find(|endpoint| endpoint.node_id == leader.leader_id)
                .map(|endpoint| (endpoint.host.clone(), endpoint.port, endpoint.rack.clone())),
        })
    }
}
