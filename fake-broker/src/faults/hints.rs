//! Wrong hints: what answers tell a client by the way about leaders, replicas and coordinators, omitted or false.

use krafka_protocol::{ApiKey, Str};
use serde::{Deserialize, Serialize};

use super::answers::Change;
use super::tree::Tree;
use crate::listeners::SecurityProtocol;
use crate::state::State;

/// A hint that is not what a broker would give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Hint {
    /// Produce, Fetch, ShareFetch and ShareAcknowledge: who leads the partition now (KIP-951), whatever the truth is.
    Leader {
        /// The node that is said to lead. It may be one that nobody knows.
        node: i32,
        /// The epoch that it is said to lead in.
        epoch: i32,
        /// Whether the answer says where the node is, if there is such a node.
        #[serde(default)]
        endpoint: bool,
    },
    /// The same APIs: nothing is said about the leader.
    NoLeader,
    /// Fetch: the replica that the client should read from (KIP-392).
    PreferredReplica {
        /// The replica's node. It may be one that nobody knows.
        node: i32,
    },
    /// FindCoordinator: another node coordinates, without being asked.
    Coordinator {
        /// The node, with its address if there is such a node.
        node: i32,
    },
    /// Metadata: all partitions that the rule names are led by this node in this epoch; -1 for none.
    Metadata {
        /// The node.
        node: i32,
        /// The epoch; -1 for an unknown one.
        epoch: i32,
    },
}

impl Hint {
    /// Whether the API's answers have room for the hint.
    pub(crate) fn fits(&self, key: ApiKey, version: i16) -> bool {
        match self {
            Self::Leader { .. } | Self::NoLeader => match key {
                ApiKey::Produce => version >= 10,
                ApiKey::Fetch => version >= 12,
                ApiKey::ShareFetch | ApiKey::ShareAcknowledge => true,
                _ => false,
            },
            Self::PreferredReplica { .. } => key == ApiKey::Fetch && version >= 11,
            Self::Coordinator { .. } => key == ApiKey::FindCoordinator,
            Self::Metadata { .. } => key == ApiKey::Metadata,
        }
    }

    /// The changes that make up the hint.
    pub(crate) fn changes(&self, state: &State, listener: SecurityProtocol) -> Vec<Change> {
        let int = |path: &str, value: i32| Change::Set { path: path.to_owned(), value: Tree::Int(i64::from(value)) };
        let leader = |node: i32, epoch: i32| {
            ["responses.partitions", "responses.partition_responses"]
                .into_iter()
                .flat_map(|partition| {
                    [
                        int(&format!("{partition}.current_leader.leader_id"), node),
                        int(&format!("{partition}.current_leader.leader_epoch"), epoch),
                    ]
                })
                .collect::<Vec<_>>()
        };
        match self {
            Self::NoLeader => {
                let mut changes = leader(-1, -1);
                changes.push(Change::Endpoints(Vec::new()));
                changes
            }
            Self::Leader { node, epoch, endpoint } => {
                let mut changes = leader(*node, *epoch);
                let address = state.endpoint(*node, listener).filter(|_| *endpoint);
                changes.push(Change::Endpoints(address.map(|(host, port)| (*node, host, port)).into_iter().collect()));
                changes
            }
            Self::PreferredReplica { node } => vec![int("responses.partitions.preferred_read_replica", *node)],
            Self::Coordinator { node } => {
                let (host, port) = state.endpoint(*node, listener).unwrap_or_else(|| (Str::default(), -1));
                let of = |prefix: &str| {
                    let host = Change::Set { path: format!("{prefix}host"), value: Tree::Str(host.clone()) };
                    [int(&format!("{prefix}node_id"), *node), int(&format!("{prefix}port"), port), host]
                };
                of("").into_iter().chain(of("coordinators.")).collect()
            }
            Self::Metadata { node, epoch } => {
                let partition = "topics.partitions";
                vec![int(&format!("{partition}.leader_id"), *node), int(&format!("{partition}.leader_epoch"), *epoch)]
            }
        }
    }
}
