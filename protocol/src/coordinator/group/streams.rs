//! Streams groups (KIP-1071): their topology, their members, and the tasks of each.

use crate::{Message, Str};

/// A streams group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct StreamsGroupMetadataKey {
    /// The group.
    pub group_id: Str,
}

/// The state of a streams group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct StreamsGroupMetadataValue {
    /// The group's epoch, one more whenever its members, its topology or its topics change.
    pub epoch: i32,
    /// A hash of the topics that the group reads, to see whether they have changed; 0 for none.
    pub metadata_hash: i64,
    /// The last topology whose topics were found to be there and as they must be, -1 for none.
    #[field(tag = 0, default = -1)]
    pub validated_topology_epoch: i32,
    /// The settings with which the last assignment was made, `None` or empty if there was none.
    #[field(tag = 1)]
    pub last_assignment_configs: Option<Vec<LastAssignmentConfig>>,
    /// The topology that the broker has in words (KIP-1331): -1 none, -2 unknown, since a change was cut short.
    #[field(tag = 2, default = -1)]
    pub stored_description_topology_epoch: i32,
    /// The topology that the broker will not have in words, so that nobody is asked for it again; -1 for none.
    #[field(tag = 3, default = -1)]
    pub failed_description_topology_epoch: i32,
}

/// A setting with which an assignment was made.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct LastAssignmentConfig {
    /// Its name.
    pub key: Str,
    /// Its value.
    pub value: Str,
}

/// A member of a streams group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct StreamsGroupMemberMetadataKey {
    /// The group.
    pub group_id: Str,
    /// The member's id.
    pub member_id: Str,
}

/// Who a member of a streams group is.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct StreamsGroupMemberMetadataValue {
    /// The name of a static member, `None` for a dynamic one.
    pub instance_id: Option<Str>,
    /// The rack where it stands, `None` if it does not say.
    pub rack_id: Option<Str>,
    /// What the client calls itself.
    pub client_id: Str,
    /// The host that it connects from.
    pub client_host: Str,
    /// For how many milliseconds the coordinator waits until it gives tasks up, -1 if it has not said.
    #[field(default = -1)]
    pub rebalance_timeout_ms: i32,
    /// The number of the topology that it has.
    pub topology_epoch: i32,
    /// The process that it belongs to; its other members have the same.
    pub process_id: Str,
    /// Where it answers queries about its state, `None` if nowhere.
    #[field(default = null)]
    pub user_endpoint: Option<Endpoint>,
    /// Tags, the zone for instance, over which an assignor may spread standby tasks.
    pub client_tags: Vec<KeyValue>,
}

/// Where an application answers queries about its state.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct Endpoint {
    /// The host's name or address.
    pub host: Str,
    /// The port.
    pub port: u16,
}

/// A tag of a member.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct KeyValue {
    /// Its name.
    pub key: Str,
    /// Its value.
    pub value: Str,
}

/// A streams group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct StreamsGroupTargetAssignmentMetadataKey {
    /// The group.
    pub group_id: Str,
}

/// For which state of the group the target assignment was made.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct StreamsGroupTargetAssignmentMetadataValue {
    /// The group's epoch at that time. While it is lower than the group's, a new assignment is due.
    pub assignment_epoch: i32,
    /// When the assignment was made, in milliseconds since 1970; 0 if unknown, as before Kafka 4.3 (KIP-1263).
    #[field(tag = 0, ignorable)]
    pub assignment_timestamp: i64,
}

/// A member of a streams group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct StreamsGroupTargetAssignmentMemberKey {
    /// The group.
    pub group_id: Str,
    /// The member's id.
    pub member_id: Str,
}

/// The tasks that a member of a streams group shall have.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct StreamsGroupTargetAssignmentMemberValue {
    /// The tasks that it shall run.
    pub active_tasks: Vec<TaskIds>,
    /// The tasks of which it shall keep a copy of the state.
    pub standby_tasks: Vec<TaskIds>,
    /// The tasks whose state it shall build up to take them over.
    pub warmup_tasks: Vec<TaskIds>,
}

/// Tasks of one subtopology that a member shall have.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TaskIds {
    /// The subtopology.
    pub subtopology_id: Str,
    /// The partitions, each of which is a task.
    pub partitions: Vec<i32>,
}

/// A member of a streams group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct StreamsGroupCurrentMemberAssignmentKey {
    /// The group.
    pub group_id: Str,
    /// The member's id.
    pub member_id: Str,
}

/// The tasks that a member of a streams group has.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct StreamsGroupCurrentMemberAssignmentValue {
    /// The epoch with which the member's next heartbeat must come.
    pub member_epoch: i32,
    /// The epoch before that, with which it comes if the last answer was lost.
    pub previous_member_epoch: i32,
    /// 1 the member has all that it shall have, 2 it must give tasks up, 3 it waits for tasks that others must give up,
    /// 127 unknown.
    pub state: i8,
    /// The tasks that it runs.
    pub active_tasks: Vec<CurrentTaskIds>,
    /// The tasks of which it keeps a copy of the state.
    pub standby_tasks: Vec<CurrentTaskIds>,
    /// The tasks whose state it builds up to take them over.
    pub warmup_tasks: Vec<CurrentTaskIds>,
    /// The active tasks that it must give up.
    pub active_tasks_pending_revocation: Vec<CurrentTaskIds>,
    /// The standby tasks that it must give up.
    pub standby_tasks_pending_revocation: Vec<CurrentTaskIds>,
    /// The tasks that it prepares to take over and must give up.
    pub warmup_tasks_pending_revocation: Vec<CurrentTaskIds>,
}

/// Tasks of one subtopology that a member has.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(name = "TaskIds", versions = 0, flexible = 0..)]
pub struct CurrentTaskIds {
    /// The subtopology.
    pub subtopology_id: Str,
    /// The partitions, each of which is a task.
    pub partitions: Vec<i32>,
    /// For each of them the member epoch at which it came, to refuse commits from before that; `None` or empty if
    /// nobody wrote it down, and for all but active tasks.
    #[field(tag = 0)]
    pub assignment_epochs: Option<Vec<i32>>,
}

/// A streams group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct StreamsGroupTopologyKey {
    /// The group.
    pub group_id: Str,
}

/// What the application of a streams group computes, as a member said when it joined.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct StreamsGroupTopologyValue {
    /// The number of this topology, which grows when the application changes it.
    pub epoch: i32,
    /// The parts that no topic inside one of them connects.
    pub subtopologies: Vec<Subtopology>,
}

/// A part of a topology. Each partition of its source topics is a task.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct Subtopology {
    /// Its id within the topology.
    pub subtopology_id: Str,
    /// The topics that it reads.
    pub source_topics: Vec<Str>,
    /// Patterns of further topics that it reads.
    pub source_topic_regex: Vec<Str>,
    /// The topics that keep its state.
    pub state_changelog_topics: Vec<StreamsTopicInfo>,
    /// The topics inside the application that it writes.
    pub repartition_sink_topics: Vec<Str>,
    /// The topics inside the application that it reads.
    pub repartition_source_topics: Vec<StreamsTopicInfo>,
    /// Sets of topics that must have the same number of partitions.
    pub copartition_groups: Vec<CopartitionGroup>,
}

/// Topics that must have the same number of partitions, each by its place in the list of the [`Subtopology`].
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct CopartitionGroup {
    /// Places in [`Subtopology::source_topics`], from 0.
    pub source_topics: Vec<i16>,
    /// Places in [`Subtopology::source_topic_regex`], from 0.
    pub source_topic_regex: Vec<i16>,
    /// Places in [`Subtopology::repartition_source_topics`], from 0.
    pub repartition_source_topics: Vec<i16>,
}

/// A topic that the coordinator creates for the application.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(name = "TopicInfo", versions = 0, flexible = 0..)]
pub struct StreamsTopicInfo {
    /// The topic's name.
    pub name: Str,
    /// How many partitions it must have; 0 if as many as its subtopology has tasks, and so for every changelog.
    pub partitions: i32,
    /// How many replicas each has; 0 for the broker's default.
    pub replication_factor: i16,
    /// The settings that differ from the broker's defaults.
    pub topic_configs: Vec<TopicConfig>,
}

/// A setting of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TopicConfig {
    /// Its name.
    pub key: Str,
    /// Its value.
    pub value: Str,
}
