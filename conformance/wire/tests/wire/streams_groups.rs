//! Members of streams groups and their coordinator (KIP-1071): topologies, internal topics, tasks, epochs, fencing.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::api::delete_groups::DeleteGroupsRequest;
use krafka_protocol::api::list_groups::ListGroupsRequest;
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::api::streams_group_describe::{DescribedGroup, StreamsGroupDescribeRequest};
use krafka_protocol::api::streams_group_heartbeat::{
    CopartitionGroup, Endpoint, KeyValue, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, Subtopology,
    TaskIds, TopicInfo, Topology,
};
use krafka_protocol::api::streams_group_topology_description_update::{
    StreamsGroupTopologyDescriptionUpdateRequest, TopologyDescription,
};
use krafka_protocol::{ErrorCode, Str};

use crate::target::{Target, Wire, on_fake, run};

/// A part of a topology that reads these topics.
pub(crate) fn part(id: &'static str, sources: &[&Str]) -> Subtopology {
    Subtopology {
        subtopology_id: Str::from_static(id),
        source_topics: sources.iter().map(|&name| name.clone()).collect(),
        ..Subtopology::default()
    }
}

pub(crate) fn internal(name: &Str, partitions: i32) -> TopicInfo {
    TopicInfo { name: name.clone(), partitions, ..TopicInfo::default() }
}

pub(crate) fn topology(epoch: i32, subtopologies: Vec<Subtopology>) -> Option<Topology> {
    Some(Topology { epoch, subtopologies })
}

/// A member with a connection of its own.
pub(crate) struct Member {
    pub(crate) wire: Wire,
    pub(crate) group: Str,
    pub(crate) id: Str,
    pub(crate) epoch: i32,
    instance: Option<Str>,
}

impl Member {
    pub(crate) async fn new(target: &Target, group: &Str, id: &'static str) -> Self {
        let wire = target.coordinator(group).await;
        Self { wire, group: group.clone(), id: Str::from_static(id), epoch: 0, instance: None }
    }

    pub(crate) fn heartbeat(&self, epoch: i32) -> StreamsGroupHeartbeatRequest {
        StreamsGroupHeartbeatRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: epoch,
            instance_id: self.instance.clone(),
            ..StreamsGroupHeartbeatRequest::default()
        }
    }

    pub(crate) fn joining(&self, topology: Option<Topology>) -> StreamsGroupHeartbeatRequest {
        StreamsGroupHeartbeatRequest {
            rebalance_timeout_ms: 5_000,
            process_id: Some(format!("process of {}", self.id).into()),
            topology,
            active_tasks: Some(vec![]),
            standby_tasks: Some(vec![]),
            warmup_tasks: Some(vec![]),
            ..self.heartbeat(0)
        }
    }

    pub(crate) async fn ask(&mut self, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse {
        self.wire.call(request, 1).await
    }

    /// The error and its reason.
    async fn refused(&mut self, request: StreamsGroupHeartbeatRequest) -> (&'static str, String) {
        let answer = self.ask(request).await;
        (ErrorCode(answer.error_code).name(), answer.error_message.map(|text| text.to_string()).unwrap_or_default())
    }

    /// A heartbeat that is answered well.
    pub(crate) async fn beat(&mut self, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse {
        let answer = self.ask(request).await;
        assert_eq!(ErrorCode(answer.error_code).name(), "NONE", "{:?}", answer.error_message);
        self.epoch = answer.member_epoch;
        answer
    }

    /// Joins, and waits until it is told tasks or that there are none.
    async fn assigned(&mut self, topology: Option<Topology>) -> StreamsGroupHeartbeatResponse {
        let mut answer = self.beat(self.joining(topology)).await;
        while statuses(&answer).contains(&5) {
            tokio::time::sleep(Duration::from_millis(300)).await;
            answer = self.beat(self.heartbeat(self.epoch)).await;
        }
        answer
    }

    /// A heartbeat that says which tasks the member has.
    fn owning(&self, active: &[(&'static str, &[i32])]) -> StreamsGroupHeartbeatRequest {
        let ids = active.iter().map(|&(part, partitions)| TaskIds {
            subtopology_id: Str::from_static(part),
            partitions: partitions.to_vec(),
        });
        StreamsGroupHeartbeatRequest {
            active_tasks: Some(ids.collect()),
            standby_tasks: Some(vec![]),
            warmup_tasks: Some(vec![]),
            ..self.heartbeat(self.epoch)
        }
    }
}

pub(crate) fn statuses(answer: &StreamsGroupHeartbeatResponse) -> Vec<i8> {
    answer.status.iter().flatten().map(|status| status.status_code).collect()
}

fn tasks(answer: &StreamsGroupHeartbeatResponse) -> Option<Vec<(&str, &[i32])>> {
    let active = answer.active_tasks.as_ref()?;
    Some(active.iter().map(|task| (&*task.subtopology_id, &task.partitions[..])).collect())
}

pub(crate) async fn describe(wire: &mut Wire, group: &Str) -> DescribedGroup {
    let request = StreamsGroupDescribeRequest { group_ids: vec![group.clone()], ..Default::default() };
    wire.call(request, 1).await.groups.remove(0)
}

/// The first member waits for more of them, and then gets all tasks.
#[test]
fn a_member_joins_and_gets_all_tasks() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(2).await);
        let mut member = Member::new(&target, &group, "m1").await;
        let reads = topology(0, vec![part("0", &[&topic.name])]);

        let joined = member.beat(member.joining(reads)).await;
        let mut told = member.beat(member.heartbeat(1)).await;
        while statuses(&told) == [5] {
            tokio::time::sleep(Duration::from_millis(300)).await;
            told = member.beat(member.heartbeat(member.epoch)).await;
        }
        let after = member.beat(member.heartbeat(member.epoch)).await;

        assert_eq!((joined.member_epoch, statuses(&joined), tasks(&joined)), (1, vec![5], Some(vec![])));
        assert_eq!((joined.heartbeat_interval_ms, joined.acceptable_recovery_lag), (5_000, 10_000));
        assert_eq!(joined.task_offset_interval_ms, 60_000);
        assert_eq!((told.member_epoch, tasks(&told)), (2, Some(vec![("0", &[0, 1][..])])));
        assert_eq!((after.member_epoch, tasks(&after)), (2, None));
    });
}

/// FI-12g: what a heartbeat must have.
#[test]
fn heartbeats_that_make_no_sense_are_refused() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(1).await);
        let mut member = Member::new(&target, &group, "m1").await;
        let reads = topology(0, vec![part("0", &[&topic.name])]);
        let good = member.joining(reads.clone());
        let empty = Str::default();
        let some_task = vec![TaskIds { subtopology_id: "0".into(), partitions: vec![0] }];
        let cases = [
            (StreamsGroupHeartbeatRequest { group_id: empty.clone(), ..good.clone() }, "GroupId can't be empty."),
            (StreamsGroupHeartbeatRequest { member_id: empty.clone(), ..good.clone() }, "MemberId can't be empty."),
            (
                StreamsGroupHeartbeatRequest { instance_id: Some(empty.clone()), ..good.clone() },
                "InstanceId can't be empty.",
            ),
            (StreamsGroupHeartbeatRequest { rack_id: Some(empty), ..good.clone() }, "RackId can't be empty."),
            (
                StreamsGroupHeartbeatRequest { rebalance_timeout_ms: -1, ..good.clone() },
                "RebalanceTimeoutMs must be provided in first request.",
            ),
            (
                StreamsGroupHeartbeatRequest { topology: None, ..good.clone() },
                "Topology must be non-null when (re-)joining.",
            ),
            (
                StreamsGroupHeartbeatRequest { active_tasks: Some(some_task), ..good.clone() },
                "ActiveTasks must be empty when (re-)joining.",
            ),
            (
                StreamsGroupHeartbeatRequest { standby_tasks: None, ..good.clone() },
                "StandbyTasks must be empty when (re-)joining.",
            ),
            (
                StreamsGroupHeartbeatRequest { member_epoch: -3, ..good.clone() },
                "MemberEpoch is -3, but must be greater than or equal to -2.",
            ),
            (StreamsGroupHeartbeatRequest { member_epoch: -2, ..good.clone() }, "InstanceId can't be null."),
            (
                StreamsGroupHeartbeatRequest { member_epoch: 1, ..good },
                "Topology can only be provided when (re-)joining.",
            ),
        ];

        for (request, reason) in cases {
            let shown = format!("{request:?}");
            assert_eq!(member.refused(request).await, ("INVALID_REQUEST", reason.to_owned()), "{shown}");
        }
        assert_eq!(member.refused(member.heartbeat(1)).await.0, "GROUP_ID_NOT_FOUND");
        assert_eq!(member.refused(member.heartbeat(-1)).await.0, "GROUP_ID_NOT_FOUND");
    });
}

/// Topics inside the application are created, with the partitions that follow from what is read.
#[test]
fn internal_topics_are_created() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(2).await);
        let (between, store) = (target.fresh("between"), target.fresh("store"));
        let mut member = Member::new(&target, &group, "m1").await;
        let first = Subtopology { repartition_sink_topics: vec![between.clone()], ..part("0", &[&topic.name]) };
        let compact = KeyValue { key: "cleanup.policy".into(), value: "compact".into() };
        let second = Subtopology {
            repartition_source_topics: vec![internal(&between, 0)],
            state_changelog_topics: vec![TopicInfo { topic_configs: vec![compact], ..internal(&store, 0) }],
            ..part("1", &[])
        };

        let joined = member.beat(member.joining(topology(0, vec![first, second]))).await;
        let mut told = member.beat(member.heartbeat(member.epoch)).await;
        while told.active_tasks.is_none() {
            tokio::time::sleep(Duration::from_millis(300)).await;
            told = member.beat(member.heartbeat(member.epoch)).await;
        }
        let described = describe(&mut member.wire, &group).await;
        let ask = |name: &Str| MetadataRequestTopic { name: Some(name.clone()), ..MetadataRequestTopic::default() };
        let request = MetadataRequest { topics: Some(vec![ask(&between), ask(&store)]), ..Default::default() };
        let made = target.connect().await.call(request, 12).await.topics;

        assert_eq!(statuses(&joined), [5, 3]);
        assert_eq!(tasks(&told), Some(vec![("0", &[0, 1][..]), ("1", &[0, 1][..])]));
        assert_eq!(made.iter().map(|topic| topic.partitions.len()).collect::<Vec<_>>(), [2, 2]);
        let shown = described.topology.and_then(|topology| topology.subtopologies).expect("it has a topology");
        assert_eq!(shown[1].state_changelog_topics[0].partitions, 2);
    });
}

/// What is wrong with the topics is told, and made good when they are right.
#[test]
fn missing_sources_are_told_until_they_are_there() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, missing) = (target.fresh("app"), target.fresh("missing"));
        let mut member = Member::new(&target, &group, "m1").await;

        let waiting = member.assigned(topology(0, vec![part("0", &[&missing])])).await;
        let described = describe(&mut member.wire, &group).await;

        assert_eq!(statuses(&waiting), [1]);
        let detail = &waiting.status.as_ref().expect("a status")[0].status_detail;
        assert_eq!(**detail, *format!("Source topics {missing} are missing."));
        assert_eq!(&*described.group_state, "NotReady");
        assert_eq!(described.group_epoch, described.assignment_epoch);
    });
}

/// Topics that belong together must have as many partitions.
#[test]
fn copartitioned_topics_must_match() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, two, three) = (target.fresh("app"), target.topic(2).await, target.topic(3).await);
        let mut member = Member::new(&target, &group, "m1").await;
        let together = CopartitionGroup { source_topics: vec![0, 1], ..CopartitionGroup::default() };
        let reads = Subtopology { copartition_groups: vec![together], ..part("0", &[&two.name, &three.name]) };
        let store = target.topic(5).await;
        let mut other = Member::new(&target, &target.fresh("app"), "m1").await;
        let keeps = Subtopology { state_changelog_topics: vec![internal(&store.name, 0)], ..part("0", &[&two.name]) };

        let mismatch = member.beat(member.joining(topology(0, vec![reads]))).await;
        let changelog = other.beat(other.joining(topology(0, vec![keeps]))).await;

        assert_eq!((statuses(&mismatch), statuses(&changelog)), (vec![5, 2], vec![5, 2]));
        let detail = &changelog.status.as_ref().expect("statuses")[1].status_detail;
        let expected = format!("Existing topic {} has different number of partitions: expected 2, found 5", store.name);
        assert_eq!(**detail, *expected);
    });
}

/// A second member gets half of the tasks, once the first has given them up.
#[test]
fn tasks_move_when_they_are_given_up() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(2).await);
        let reads = || topology(0, vec![part("0", &[&topic.name])]);
        let mut first = Member::new(&target, &group, "m1").await;
        first.assigned(reads()).await;
        first.beat(first.owning(&[("0", &[0, 1])])).await;
        let mut second = Member::new(&target, &group, "m2").await;

        let joined = second.assigned(reads()).await;
        let (empty, waits) = (tasks(&joined).unwrap_or_default(), second.epoch);
        let revoked = first.beat(first.heartbeat(first.epoch)).await;
        let still_held = second.beat(second.heartbeat(second.epoch)).await;
        let reconciling = describe(&mut first.wire, &group).await;
        let given_up = first.beat(first.owning(&[("0", &[0])])).await;
        let got = second.beat(second.heartbeat(second.epoch)).await;
        let stable = describe(&mut first.wire, &group).await;

        assert_eq!((empty, revoked.member_epoch), (vec![], waits - 1));
        assert_eq!((tasks(&revoked), tasks(&still_held)), (Some(vec![("0", &[0][..])]), None));
        assert_eq!((given_up.member_epoch, tasks(&given_up)), (waits, None));
        assert_eq!(tasks(&got), Some(vec![("0", &[1][..])]));
        assert_eq!((&*reconciling.group_state, &*stable.group_state), ("Reconciling", "Stable"));
    });
}

/// Epochs that cannot be are fenced; the last one before is good with tasks that were given.
#[test]
fn members_at_other_epochs_are_fenced() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(2).await);
        let mut member = Member::new(&target, &group, "m1").await;
        member.assigned(topology(0, vec![part("0", &[&topic.name])])).await;
        let epoch = member.epoch;

        let ahead = member.refused(member.heartbeat(epoch + 1)).await.0;
        let behind = member.refused(member.heartbeat(epoch - 1)).await.0;
        let late = StreamsGroupHeartbeatRequest { member_epoch: epoch - 1, ..member.owning(&[("0", &[0])]) };
        let late = member.refused(late).await.0;
        let no_part = member.refused(member.owning(&[("7", &[0])])).await;
        let no_task = member.refused(member.owning(&[("0", &[9])])).await;
        member.id = Str::from_static("m9");
        let stranger = member.refused(member.heartbeat(epoch)).await;

        assert_eq!((ahead, behind, late), ("FENCED_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH", "NONE"));
        assert_eq!(no_part, ("INVALID_REQUEST", "Subtopology 7 does not exist in the topology.".to_owned()));
        let reason = "Task 9 for subtopology 0 is invalid. Number of tasks for this subtopology: 2";
        assert_eq!(no_task, ("INVALID_REQUEST", reason.to_owned()));
        assert_eq!(stranger, ("UNKNOWN_MEMBER_ID", format!("Member m9 is not a member of group {group}.")));
    });
}

/// A topology stays as it is: an older one is told so, another one is refused.
#[test]
fn a_topology_does_not_change() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(1).await);
        let mut first = Member::new(&target, &group, "m1").await;
        let mut second = Member::new(&target, &group, "m2").await;
        let reads = |epoch, id| topology(epoch, vec![part(id, &[&topic.name])]);
        first.beat(first.joining(reads(3, "0"))).await;

        let other = second.refused(second.joining(reads(3, "1"))).await;
        let newer = second.refused(second.joining(reads(4, "0"))).await;
        let older = second.beat(second.joining(reads(2, "0"))).await;

        let refusal = ("INVALID_REQUEST", "Topology updates are not supported yet.".to_owned());
        assert_eq!((other, newer), (refusal.clone(), refusal));
        assert_eq!(statuses(&older), [0, 5]);
    });
}

/// A static member comes back under another id; while it is there, nobody takes its place.
#[test]
fn static_members_come_back() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(1).await);
        let reads = || topology(0, vec![part("0", &[&topic.name])]);
        let mut old = Member::new(&target, &group, "m1").await;
        let mut new = Member::new(&target, &group, "m2").await;
        old.instance = Some(Str::from_static("one"));
        new.instance = old.instance.clone();
        old.beat(old.joining(reads())).await;

        let taken = new.refused(new.joining(reads())).await.0;
        let left = old.ask(old.heartbeat(-2)).await;
        new.beat(new.joining(reads())).await;
        let fenced = old.refused(old.heartbeat(1)).await.0;
        new.instance = Some(Str::from_static("two"));
        let unknown = new.refused(new.heartbeat(1)).await;
        let described = describe(&mut new.wire, &group).await;

        assert_eq!((taken, left.error_code, left.member_epoch), ("UNRELEASED_INSTANCE_ID", 0, -2));
        assert_eq!(fenced, "FENCED_INSTANCE_ID");
        assert_eq!(unknown, ("UNKNOWN_MEMBER_ID", "Instance id two is unknown.".to_owned()));
        let ids: Vec<_> =
            described.members.iter().map(|member| (&*member.member_id, member.instance_id.as_deref())).collect();
        assert_eq!(ids, [("m2", Some("one"))]);
    });
}

/// Where members answer queries is told to all, with an epoch that says whether it is news.
#[test]
fn endpoints_are_told_with_their_epoch() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(1).await);
        let mut member = Member::new(&target, &group, "m1").await;
        let endpoint = Endpoint { host: "here".into(), port: 99 };
        let reads = topology(0, vec![part("0", &[&topic.name])]);
        let join = StreamsGroupHeartbeatRequest { user_endpoint: Some(endpoint), ..member.joining(reads) };
        let mut told = member.beat(join).await;
        while told.active_tasks.as_ref().is_none_or(Vec::is_empty) {
            tokio::time::sleep(Duration::from_millis(300)).await;
            told = member.beat(member.heartbeat(member.epoch)).await;
        }

        let epoch = told.endpoint_information_epoch;
        let known =
            StreamsGroupHeartbeatRequest { endpoint_information_epoch: epoch, ..member.heartbeat(member.epoch) };
        let known = member.beat(known).await;

        let shown = &told.partitions_by_user_endpoint.as_ref().expect("endpoints are news")[0];
        assert_eq!((&*shown.user_endpoint.host, shown.user_endpoint.port), ("here", 99));
        assert_eq!(shown.active_partitions[0].topic, topic.name);
        assert_eq!(shown.active_partitions[0].partitions, [0]);
        assert_eq!((known.endpoint_information_epoch, known.partitions_by_user_endpoint), (epoch, None));
    });
}

/// One member may ask all to shut down.
#[test]
fn a_shutdown_is_told_to_all() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(1).await);
        let mut member = Member::new(&target, &group, "m1").await;
        member.assigned(topology(0, vec![part("0", &[&topic.name])])).await;

        let stop = StreamsGroupHeartbeatRequest { shutdown_application: true, ..member.heartbeat(member.epoch) };
        let stop = member.beat(stop).await;
        let after = member.beat(member.heartbeat(member.epoch)).await;

        assert_eq!((statuses(&stop), statuses(&after)), (vec![4], vec![4]));
    });
}

/// A streams group is listed, described and deleted as one; its members commit offsets at their epoch.
#[test]
fn a_group_is_seen_by_administrators() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("app"), target.topic(1).await);
        let mut member = Member::new(&target, &group, "m1").await;
        member.assigned(topology(0, vec![part("0", &[&topic.name])])).await;
        let epoch = member.epoch;
        let commit = async |wire: &mut Wire, member_id: &str, generation_id_or_member_epoch| {
            let partition = OffsetCommitRequestPartition { committed_offset: 1, ..Default::default() };
            let topics = vec![OffsetCommitRequestTopic {
                name: topic.name.clone(),
                partitions: vec![partition],
                ..Default::default()
            }];
            let request = OffsetCommitRequest {
                group_id: group.clone(),
                member_id: member_id.into(),
                generation_id_or_member_epoch,
                topics,
                ..OffsetCommitRequest::default()
            };
            ErrorCode(wire.call(request, 9).await.topics[0].partitions[0].error_code).name()
        };
        let delete = async |wire: &mut Wire| {
            let request = DeleteGroupsRequest { groups_names: vec![group.clone()] };
            ErrorCode(wire.call(request, 2).await.results[0].error_code).name()
        };

        let committed = commit(&mut member.wire, "m1", epoch).await;
        let stale = commit(&mut member.wire, "m1", epoch - 1).await;
        let stranger = commit(&mut member.wire, "m9", epoch).await;
        let types_filter = vec![Str::from_static("streams")];
        let listed = member.wire.call(ListGroupsRequest { types_filter, ..Default::default() }, 5).await.groups;
        let refused = delete(&mut member.wire).await;
        let left = member.ask(member.heartbeat(-1)).await;
        let empty = describe(&mut member.wire, &group).await;
        let deleted = delete(&mut member.wire).await;
        let gone = describe(&mut member.wire, &group).await;

        assert_eq!((committed, stale, stranger), ("NONE", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"));
        let listed = listed.iter().find(|listed| listed.group_id == group).expect("it is listed");
        assert_eq!(
            (&*listed.protocol_type, &*listed.group_type, &*listed.group_state),
            ("streams", "streams", "Stable")
        );
        assert_eq!((refused, left.member_epoch, deleted), ("NON_EMPTY_GROUP", -1, "NONE"));
        assert_eq!((&*empty.group_state, empty.group_epoch), ("Empty", empty.assignment_epoch));
        assert_eq!(empty.assignor_name.as_deref(), Some("sticky"));
        assert_eq!(ErrorCode(gone.error_code).name(), "GROUP_ID_NOT_FOUND");
    });
}

/// Without a plugin nobody keeps topologies in words (KIP-1331).
#[test]
fn topologies_in_words_are_not_kept() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupTopologyDescriptionUpdate").await;
        let group = target.fresh("app");
        let request = StreamsGroupTopologyDescriptionUpdateRequest {
            group_id: group.clone(),
            member_id: "m1".into(),
            topology_epoch: 0,
            topology_description: TopologyDescription::default(),
        };

        let answer = target.coordinator(&group).await.call(request, 0).await;

        assert_eq!(ErrorCode(answer.error_code).name(), "UNSUPPORTED_VERSION");
    });
}

/// Who is silent, or does not give its tasks up in time, is out.
///
/// Fake only: Kafka's least session is 45 s, unless its brokers are started otherwise.
#[test]
fn members_have_their_time() {
    on_fake(FakeCluster::builder(), async |target, fake| {
        let (group, topic) = (Str::from_static("app"), target.topic(2).await);
        let reads = || topology(0, vec![part("0", &[&topic.name])]);
        let mut slow = Member::new(&target, &group, "m1").await;
        slow.assigned(reads()).await;
        let mut second = Member::new(&target, &group, "m2").await;
        second.assigned(reads()).await;
        // It is told to give up a task now, and has five seconds for it.
        slow.beat(slow.heartbeat(slow.epoch)).await;

        tokio::time::sleep(Duration::from_secs(6)).await;
        let thrown_out = slow.refused(slow.heartbeat(slow.epoch)).await.0;
        tokio::time::sleep(Duration::from_secs(46)).await;
        let silent = second.refused(second.heartbeat(second.epoch)).await.0;

        assert_eq!((thrown_out, silent), ("UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"));
        assert_eq!(fake.group(&group).map(|group| group.members.len()), Some(0));
    });
}
