//! The cluster: who is in it.

use std::sync::Arc;

use krafka_protocol::DescribeClusterResponse;
use krafka_protocol::ErrorCode;

use super::route::ItemAnswer;
use crate::types::BrokerInfo;

/// A cluster and its brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterInfo {
    /// The cluster's id.
    pub cluster_id: Arc<str>,
    /// The broker that takes admin requests for the controller. In KRaft, any of them may be named.
    pub controller: Option<i32>,
    /// The brokers, in order of their ids.
    pub brokers: Vec<BrokerInfo>,
}

pub(super) fn described(response: DescribeClusterResponse) -> ItemAnswer<ClusterInfo> {
    let code = ErrorCode(response.error_code);
    if !code.is_ok() {
        return Err((code, response.error_message));
    }
    let broker = |broker: krafka_protocol::api::describe_cluster::DescribeClusterBroker| {
        Some(BrokerInfo {
            id: broker.broker_id,
            host: (&*broker.host).into(),
            // A port that does not fit is none that one could connect to.
            port: u16::try_from(broker.port).ok()?,
            rack: broker.rack.map(|rack| (&*rack).into()),
        })
    };
    let mut brokers: Vec<_> = response.brokers.into_iter().filter_map(broker).collect();
    brokers.sort_unstable_by_key(|broker| broker.id);
    Ok(ClusterInfo {
        cluster_id: (&*response.cluster_id).into(),
        controller: Some(response.controller_id).filter(|id| *id >= 0),
        brokers,
    })
}
