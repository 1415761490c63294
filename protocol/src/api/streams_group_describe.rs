//! StreamsGroupDescribe (89): what streams groups are and do (KIP-1071), from their coordinator, for tools.
//!
//! Version 1 can add the topology in words (KIP-1331) and names the assignor (KIP-1357).

use crate::{Message, Str};

/// Asks for the description of groups.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 89, versions = 0..=1, flexible = 0.., response = StreamsGroupDescribeResponse)]
pub struct StreamsGroupDescribeRequest {
    /// The groups.
    pub group_ids: Vec<Str>,
    /// Whether to tell what the asker may do with each group.
    pub include_authorized_operations: bool,
    /// Whether to tell the topology in words, if the broker has it.
    #[field(versions = 1..)]
    pub include_topology_description: bool,
}

/// The description of each group asked for.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 89, versions = 0..=1, flexible = 0..)]
pub struct StreamsGroupDescribeResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The groups.
    pub groups: Vec<DescribedGroup>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct DescribedGroup {
    /// Why there is no description, 0 if there is one.
    pub error_code: i16,
    /// The reason in words, `None` if there is no error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The group.
    pub group_id: Str,
    /// Its state in words, `Stable` for instance; empty after an error.
    pub group_state: Str,
    /// The group's epoch, which grows with every change of its members, their wishes or their topics.
    pub group_epoch: i32,
    /// The group epoch for which the target assignment was made.
    pub assignment_epoch: i32,
    /// The topology as the coordinator uses it, `None` after an error.
    #[field(default = null)]
    pub topology: Option<Topology>,
    /// The members.
    pub members: Vec<Member>,
    /// What the asker may do with the group, a bit for each operation; `i32::MIN` if that was not asked for.
    #[field(default = -2147483648)]
    pub authorized_operations: i32,
    /// The topology in words; `None` unless the status is 3.
    #[field(versions = 1.., nullable = 1.., default = null)]
    pub topology_description: Option<TopologyDescription>,
    /// Why the topology in words is there or not: 0 nobody asked for it, 1 the broker has none, 2 the broker could not
    /// get it, 3 it is there.
    #[field(versions = 1..)]
    pub topology_description_status: i8,
    /// Who makes the next assignment, which may be another than who made the current one; `None` after an error.
    #[field(versions = 1.., nullable = 1.., ignorable, default = null)]
    pub assignor_name: Option<Str>,
}

/// A topology as the coordinator uses it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Topology {
    /// The number of the topology, which grows when the application changes it.
    pub epoch: i32,
    /// Its parts, with numbers of partitions set and patterns replaced by topics; `None` while topics are missing or
    /// have wrong numbers of partitions.
    #[field(default = null)]
    pub subtopologies: Option<Vec<Subtopology>>,
}

/// A part of a topology. Each partition of its source topics is a task.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Subtopology {
    /// Its id within the topology.
    pub subtopology_id: Str,
    /// The topics that it reads.
    pub source_topics: Vec<Str>,
    /// The topics inside the application that it writes.
    pub repartition_sink_topics: Vec<Str>,
    /// The topics that keep its state, which the coordinator creates.
    pub state_changelog_topics: Vec<TopicInfo>,
    /// The topics inside the application that it reads, which the coordinator creates.
    pub repartition_source_topics: Vec<TopicInfo>,
}

/// A topic that the coordinator creates for the application.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct TopicInfo {
    /// The topic's name.
    pub name: Str,
    /// How many partitions it must have; 0 if nothing is said about it, and so for every changelog.
    pub partitions: i32,
    /// How many replicas each has; 0 for the broker's default.
    pub replication_factor: i16,
    /// The settings that differ from the broker's defaults.
    pub topic_configs: Vec<KeyValue>,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Member {
    /// The member's id.
    pub member_id: Str,
    /// The member's epoch: the assignment epoch that it has caught up with.
    pub member_epoch: i32,
    /// The name of a static member, `None` for a dynamic one.
    #[field(default = null)]
    pub instance_id: Option<Str>,
    /// The rack where the member stands, `None` if it does not say.
    #[field(default = null)]
    pub rack_id: Option<Str>,
    /// What the client calls itself.
    pub client_id: Str,
    /// The host that it connects from.
    pub client_host: Str,
    /// The number of the topology that the member has.
    pub topology_epoch: i32,
    /// The process that the member belongs to; its other members have the same.
    pub process_id: Str,
    /// Where it answers queries about its state, `None` if nowhere.
    #[field(default = null)]
    pub user_endpoint: Option<Endpoint>,
    /// Tags, the zone for instance, over which an assignor may spread standby tasks.
    pub client_tags: Vec<KeyValue>,
    /// How far the member has read the changelogs of its tasks.
    pub task_offsets: Vec<TaskOffset>,
    /// Where those changelogs end.
    pub task_end_offsets: Vec<TaskOffset>,
    /// The tasks that it has.
    pub assignment: Assignment,
    /// The tasks that it shall have.
    pub target_assignment: Assignment,
    /// Whether it is still in the group by the classic protocol.
    pub is_classic: bool,
}

/// Where an application answers queries about its state.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Endpoint {
    /// The host's name or address.
    pub host: Str,
    /// The port.
    pub port: u16,
}

/// An offset in the changelogs of one task.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct TaskOffset {
    /// The task's subtopology.
    pub subtopology_id: Str,
    /// The task's partition.
    pub partition: i32,
    /// The sum over all of its changelogs.
    pub offset: i64,
}

/// The tasks of one member.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Assignment {
    /// The tasks that it runs.
    pub active_tasks: Vec<TaskIds>,
    /// The tasks of which it keeps a copy of the state.
    pub standby_tasks: Vec<TaskIds>,
    /// The tasks whose state it builds up to take them over.
    pub warmup_tasks: Vec<TaskIds>,
}

/// Tasks of one subtopology.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct TaskIds {
    /// The subtopology.
    pub subtopology_id: Str,
    /// The partitions, each of which is a task.
    pub partitions: Vec<i32>,
}

/// A name and what it stands for.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct KeyValue {
    /// The name.
    pub key: Str,
    /// What it stands for.
    pub value: Str,
}

/// A topology in words: what the application's developer sees of it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=1, flexible = 0..)]
pub struct TopologyDescription {
    /// Its parts.
    pub subtopologies: Vec<TopologyDescriptionSubtopology>,
    /// The stores that every member holds in full.
    pub global_stores: Vec<TopologyDescriptionGlobalStore>,
}

/// A part of a topology in words.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=1, flexible = 0..)]
pub struct TopologyDescriptionSubtopology {
    /// Its id within the topology.
    pub subtopology_id: Str,
    /// Its nodes.
    pub nodes: Vec<TopologyDescriptionNode>,
}

/// A step of the computation.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=1, flexible = 0..)]
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
    /// The names of the nodes that come after it.
    pub successors: Vec<Str>,
}

/// A store that every member holds in full.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 1..=1, flexible = 0..)]
pub struct TopologyDescriptionGlobalStore {
    /// The node that reads the store's topic.
    pub source: TopologyDescriptionNode,
    /// The node that fills the store.
    pub processor: TopologyDescriptionNode,
}
