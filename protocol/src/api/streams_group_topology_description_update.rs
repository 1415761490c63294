//! StreamsGroupTopologyDescriptionUpdate (93): a member tells the coordinator of its streams group what the application
//! computes, in words, for tools to show (KIP-1331).
//!
//! A member sends it when the answer to its heartbeat asked for it. The broker keeps it if it has a plugin for that.

use crate::{Message, Str};

/// Tells what the application computes.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 93, versions = 0, flexible = 0.., response = StreamsGroupTopologyDescriptionUpdateResponse)]
pub struct StreamsGroupTopologyDescriptionUpdateRequest {
    /// The group.
    pub group_id: Str,
    /// The member that sends this. If it is none any more the broker answers UNKNOWN_MEMBER_ID, and it must join again.
    pub member_id: Str,
    /// The number of the topology described.
    pub topology_epoch: i32,
    /// The topology in words.
    pub topology_description: TopologyDescription,
}

/// A topology in words: what the application's developer sees of it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TopologyDescription {
    /// Its parts.
    pub subtopologies: Vec<TopologyDescriptionSubtopology>,
    /// The stores that every member holds in full.
    pub global_stores: Vec<TopologyDescriptionGlobalStore>,
}

/// A part of a topology in words.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TopologyDescriptionSubtopology {
    /// Its id within the topology.
    pub subtopology_id: Str,
    /// Its nodes.
    pub nodes: Vec<TopologyDescriptionNode>,
}

/// A step of the computation.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TopologyDescriptionNode {
    /// Its name.
    pub name: Str,
    /// What it does: 1 reads topics, 2 computes, 3 writes a topic.
    pub node_type: i8,
    /// The topics that it reads, if it does; empty too where they are only known at run time.
    pub source_topics: Vec<Str>,
    /// The topic that it writes, if it does; `None` too where that is only known at run time.
    #[field(default = null)]
    pub sink_topic: Option<Str>,
    /// The stores that it uses, if it computes.
    pub stores: Vec<Str>,
    /// The names of the nodes that come after it; who comes before it follows from these.
    pub successors: Vec<Str>,
}

/// A store that every member holds in full.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TopologyDescriptionGlobalStore {
    /// The node that reads the store's topic.
    pub source: TopologyDescriptionNode,
    /// The node that fills the store.
    pub processor: TopologyDescriptionNode,
}

/// Whether the broker has the topology now.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 93, versions = 0, flexible = 0..)]
pub struct StreamsGroupTopologyDescriptionUpdateResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why it has not, 0 if it has.
    pub error_code: i16,
    /// The reason in words, `None` if there is no error.
    #[field(default = null)]
    pub error_message: Option<Str>,
}
