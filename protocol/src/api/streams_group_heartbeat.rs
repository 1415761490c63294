//! StreamsGroupHeartbeat (88): the life of a member of a streams group (KIP-1071), from joining to leaving, in one
//! request that is sent over and over to the group's coordinator.
//!
//! The coordinator is told what has changed since the last heartbeat, and tells what has changed since its last answer:
//! whatever is null is as it was. A member joins at epoch 0 with everything set, and sends everything again whenever
//! the answer to a heartbeat is lost.
//!
//! Version 1 asks for the topology in words (KIP-1331), has the acceptable lag in 64 bits, and may answer with status
//! 6.

use crate::{Message, Str};

/// Joins the group, stays in it, or leaves it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 88, versions = 0..=1, flexible = 0.., response = StreamsGroupHeartbeatResponse)]
pub struct StreamsGroupHeartbeatRequest {
    /// The group: the application's id.
    pub group_id: Str,
    /// The member's id, which it makes up when it starts and keeps for as long as its process lives.
    pub member_id: Str,
    /// The epoch that the last answer gave the member; 0 to join, -1 to leave, -2 when a static member leaves and will
    /// come back.
    pub member_epoch: i32,
    /// The epoch of the endpoints that the member knows: the last [`endpoint_information_epoch`] it was given.
    ///
    /// [`endpoint_information_epoch`]: StreamsGroupHeartbeatResponse::endpoint_information_epoch
    pub endpoint_information_epoch: i32,
    /// The name of a static member, `None` for a dynamic one or if unchanged.
    #[field(default = null)]
    pub instance_id: Option<Str>,
    /// The rack where the member stands, `None` if it does not say or if unchanged.
    #[field(default = null)]
    pub rack_id: Option<Str>,
    /// For how many milliseconds the coordinator waits until the member gives tasks up; -1 if unchanged.
    #[field(default = -1)]
    pub rebalance_timeout_ms: i32,
    /// What the application computes, from a member that joins; `None` later on.
    #[field(default = null)]
    pub topology: Option<Topology>,
    /// The active tasks that the member has now, `None` if unchanged.
    #[field(default = null)]
    pub active_tasks: Option<Vec<TaskIds>>,
    /// The standby tasks that the member has now, `None` if unchanged.
    #[field(default = null)]
    pub standby_tasks: Option<Vec<TaskIds>>,
    /// The tasks whose state the member is still building up to take them over, `None` if unchanged.
    #[field(default = null)]
    pub warmup_tasks: Option<Vec<TaskIds>>,
    /// The process that the member belongs to: its members share disks, so a task's copies should not. `None` if
    /// unchanged.
    #[field(default = null)]
    pub process_id: Option<Str>,
    /// Where the application answers queries about its state; `None` if nowhere or if unchanged.
    #[field(default = null)]
    pub user_endpoint: Option<Endpoint>,
    /// Tags, the zone for instance, over which an assignor may spread standby tasks; `None` if unchanged.
    #[field(default = null)]
    pub client_tags: Option<Vec<KeyValue>>,
    /// How far the member has read the changelogs of its tasks, `None` if unchanged.
    #[field(default = null)]
    pub task_offsets: Option<Vec<TaskOffset>>,
    /// Where those changelogs end, `None` if unchanged.
    #[field(default = null)]
    pub task_end_offsets: Option<Vec<TaskOffset>>,
    /// Whether every member of the group shall shut down.
    pub shutdown_application: bool,
}

/// What the application computes: its parts and the topics between them.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Topology {
    /// The number of this topology, which grows when the application changes it.
    pub epoch: i32,
    /// The parts that no topic inside one of them connects.
    pub subtopologies: Vec<Subtopology>,
}

/// A part of a topology. Each partition of its source topics is a task.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Subtopology {
    /// Its id, the same for the same topology in every member.
    pub subtopology_id: Str,
    /// The topics that it reads.
    pub source_topics: Vec<Str>,
    /// Patterns of further topics that it reads.
    pub source_topic_regex: Vec<Str>,
    /// The topics that keep its state, which the coordinator creates.
    pub state_changelog_topics: Vec<TopicInfo>,
    /// The topics inside the application that it writes.
    pub repartition_sink_topics: Vec<Str>,
    /// The topics inside the application that it reads, which the coordinator creates.
    pub repartition_source_topics: Vec<TopicInfo>,
    /// Sets of topics that must have the same number of partitions.
    pub copartition_groups: Vec<CopartitionGroup>,
}

/// Topics that must have the same number of partitions, each by its place in the list of the [`Subtopology`].
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct CopartitionGroup {
    /// Places in [`Subtopology::source_topics`], from 0.
    pub source_topics: Vec<i16>,
    /// Places in [`Subtopology::source_topic_regex`], from 0.
    pub source_topic_regex: Vec<i16>,
    /// Places in [`Subtopology::repartition_source_topics`], from 0.
    pub repartition_source_topics: Vec<i16>,
}

/// A topic that the coordinator creates for the application.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct TopicInfo {
    /// The topic's name.
    pub name: Str,
    /// How many partitions it must have; 0 if as many as its subtopology has tasks, and so for every changelog.
    pub partitions: i32,
    /// How many replicas each has; 0 for the broker's default.
    pub replication_factor: i16,
    /// The settings that differ from the broker's defaults.
    pub topic_configs: Vec<KeyValue>,
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

/// Tasks of one subtopology.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct TaskIds {
    /// The subtopology.
    pub subtopology_id: Str,
    /// The partitions, each of which is a task.
    pub partitions: Vec<i32>,
}

/// What the member shall do, and how the group is.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 88, versions = 0..=1, flexible = 0..)]
pub struct StreamsGroupHeartbeatResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why the heartbeat was refused, 0 if it was not.
    pub error_code: i16,
    /// The reason in words, `None` if there is no error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// The member's id, as it said.
    pub member_id: Str,
    /// The member's epoch, for its next heartbeat.
    pub member_epoch: i32,
    /// After how many milliseconds the next heartbeat is due.
    pub heartbeat_interval_ms: i32,
    /// In version 0, what [`acceptable_recovery_lag`](Self::acceptable_recovery_lag) is later.
    #[field(versions = 0)]
    pub acceptable_recovery_lag_legacy: i32,
    /// After how many milliseconds the heartbeat shall tell the offsets of the tasks again.
    pub task_offset_interval_ms: i32,
    /// How many records a task's copy may be behind to count as caught up, so that the task may move there; -1 if the
    /// broker has no such setting.
    #[field(versions = 1.., ignorable, default = -1)]
    pub acceptable_recovery_lag: i64,
    /// What is wrong with the group, if anything. The schema allows null.
    pub status: Option<Vec<Status>>,
    /// The active tasks of the member, `None` if unchanged.
    #[field(default = null)]
    pub active_tasks: Option<Vec<TaskIds>>,
    /// The standby tasks of the member, `None` if unchanged.
    #[field(default = null)]
    pub standby_tasks: Option<Vec<TaskIds>>,
    /// The tasks that the member shall prepare to take over, `None` if unchanged.
    #[field(default = null)]
    pub warmup_tasks: Option<Vec<TaskIds>>,
    /// Whether the broker wants the topology in words, by StreamsGroupTopologyDescriptionUpdate (KIP-1331).
    #[field(versions = 1..)]
    pub topology_description_required: bool,
    /// The epoch of the endpoints told here, or of those that the member knows already.
    pub endpoint_information_epoch: i32,
    /// Which member has which partitions, for queries; `None` if unchanged. There is one entry a member, so that those
    /// of one endpoint belong together.
    #[field(default = null)]
    pub partitions_by_user_endpoint: Option<Vec<EndpointToPartitions>>,
}

/// The partitions of one member.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct EndpointToPartitions {
    /// Where the member answers queries.
    pub user_endpoint: Endpoint,
    /// The partitions that its active tasks read.
    pub active_partitions: Vec<TopicPartition>,
    /// The partitions that the tasks read of which it has a copy or prepares one.
    pub standby_partitions: Vec<TopicPartition>,
}

/// Something that is wrong with the group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Status {
    /// What it is:
    ///
    /// * 0: the member's topology is older than the group's;
    /// * 1: topics to read do not exist, or no topic fits a pattern;
    /// * 2: topics that belong together have different numbers of partitions, or a changelog has too few or
    ///   too many;
    /// * 3: topics inside the application do not exist yet, and the coordinator creates them;
    /// * 4: a member has asked for the whole application to be shut down;
    /// * 5: the assignment is not made yet;
    /// * 6: members lack tags over which standby tasks are to be spread (version 1).
    pub status_code: i8,
    /// The same in words, with the topics that it is about.
    pub status_detail: Str,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: Str,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}
