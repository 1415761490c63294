//! What brokers ask a share coordinator: the APIs 83 to 87, and who that coordinator is.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::delete_share_group_state as deletes;
use krafka_protocol::api::find_coordinator::{Coordinator, FindCoordinatorRequest};
use krafka_protocol::api::initialize_share_group_state as begins;
use krafka_protocol::api::read_share_group_state as reads;
use krafka_protocol::api::read_share_group_state_summary as sums;
use krafka_protocol::api::write_share_group_state as writes;
use krafka_protocol::{ErrorCode, Str, Uuid};

use crate::target::{Target, Topic, Wire, run, run_on_three};

/// A group's state of partition 0 of a topic, and a connection to who keeps it.
struct State {
    wire: Wire,
    group: Str,
    topic: Uuid,
}

async fn find(target: &Target, key: String, version: i16) -> Coordinator {
    let coordinator_keys = vec![key.into()];
    let request = FindCoordinatorRequest { key_type: 2, coordinator_keys, ..FindCoordinatorRequest::default() };
    loop {
        let found = target.connect().await.call(request.clone(), version).await.coordinators.remove(0);
        if ErrorCode(found.error_code) != ErrorCode::COORDINATOR_NOT_AVAILABLE {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

impl State {
    async fn of(target: &Target, topic: &Topic) -> Self {
        let group = target.fresh("share");
        let found = find(target, format!("{group}:{}:0", topic.id), 6).await;
        let mut state = Self { wire: target.node(found.node_id).await, group, topic: topic.id };
        // A coordinator that is new may have to read its log first.
        while state.read(0).await.0 == "COORDINATOR_LOAD_IN_PROGRESS" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        state
    }

    async fn begin(&mut self, state_epoch: i32, start_offset: i64) -> &'static str {
        let partitions = vec![begins::PartitionData { partition: 0, state_epoch, start_offset }];
        let topics = vec![begins::InitializeStateData { topic_id: self.topic, partitions }];
        let request = begins::InitializeShareGroupStateRequest { group_id: self.group.clone(), topics };
        ErrorCode(self.wire.call(request, 0).await.results[0].partitions[0].error_code).name()
    }

    /// The error, the start offset, and the batches: first and last offset, state, delivery count.
    async fn read(&mut self, leader_epoch: i32) -> (&'static str, i64, Vec<(i64, i64, i8, i16)>) {
        let partitions = vec![reads::PartitionData { partition: 0, leader_epoch }];
        let topics = vec![reads::ReadStateData { topic_id: self.topic, partitions }];
        let request = reads::ReadShareGroupStateRequest { group_id: self.group.clone(), topics };
        let read = self.wire.call(request, 0).await.results.remove(0).partitions.remove(0);
        let batch = |b: reads::StateBatch| (b.first_offset, b.last_offset, b.delivery_state, b.delivery_count);
        let batches = read.state_batches.into_iter().map(batch).collect();
        (ErrorCode(read.error_code).name(), read.start_offset, batches)
    }

    async fn write(&mut self, epochs: (i32, i32), start_offset: i64, batches: &[(i64, i64, i8, i16)]) -> &'static str {
        let (state_epoch, leader_epoch) = epochs;
        let batch = |&(first_offset, last_offset, delivery_state, delivery_count): &(i64, i64, i8, i16)| {
            writes::StateBatch { first_offset, last_offset, delivery_state, delivery_count }
        };
        let partition = writes::PartitionData {
            partition: 0,
            state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count: 2,
            state_batches: batches.iter().map(batch).collect(),
        };
        let topics = vec![writes::WriteStateData { topic_id: self.topic, partitions: vec![partition] }];
        let request = writes::WriteShareGroupStateRequest { group_id: self.group.clone(), topics };
        ErrorCode(self.wire.call(request, 1).await.results[0].partitions[0].error_code).name()
    }

    /// The error, the start offset, how many records are done with.
    async fn summary(&mut self) -> (&'static str, i64, i32) {
        let partitions = vec![sums::PartitionData { partition: 0, leader_epoch: 0 }];
        let topics = vec![sums::ReadStateSummaryData { topic_id: self.topic, partitions }];
        let request = sums::ReadShareGroupStateSummaryRequest { group_id: self.group.clone(), topics };
        let read = self.wire.call(request, 1).await.results.remove(0).partitions.remove(0);
        (ErrorCode(read.error_code).name(), read.start_offset, read.delivery_complete_count)
    }

    async fn delete(&mut self) -> &'static str {
        let partitions = vec![deletes::PartitionData { partition: 0 }];
        let topics = vec![deletes::DeleteStateData { topic_id: self.topic, partitions }];
        let request = deletes::DeleteShareGroupStateRequest { group_id: self.group.clone(), topics };
        ErrorCode(self.wire.call(request, 0).await.results[0].partitions[0].error_code).name()
    }
}

/// FI-12b: a share coordinator is asked for by group, topic id and partition.
#[test]
fn a_key_of_a_share_coordinator_has_three_parts() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let id = Uuid(*b"any topic at all");
        for good in [format!("group:{id}:0"), format!("group:{id}:-1")] {
            assert_eq!(find(&target, good, 6).await.error_code, 0);
        }
        for wrong in ["x".to_owned(), format!("group:{id}"), format!("group:{id}:x"), format!(":{id}:0"), "a::0".into()]
        {
            let found = find(&target, wrong.clone(), 6).await;
            assert_eq!(ErrorCode(found.error_code).name(), "INVALID_REQUEST", "{wrong}");
        }
    });
}

/// A state is begun, read by the leader, written, summed up, and forgotten.
#[test]
fn a_state_is_kept() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "WriteShareGroupState 1").await;
        let topic = target.topic(1).await;
        let mut state = State::of(&target, &topic).await;

        assert_eq!(state.read(0).await.0, "INVALID_REQUEST");
        assert_eq!(state.write((1, 0), 0, &[]).await, "INVALID_REQUEST");
        assert_eq!(state.begin(1, -1).await, "NONE");
        assert_eq!(state.read(0).await, ("NONE", -1, vec![]));
        assert_eq!(state.write((1, 0), 1, &[(1, 2, 2, 1), (3, 4, 0, 2)]).await, "NONE");
        assert_eq!(state.read(0).await, ("NONE", 1, vec![(1, 2, 2, 1), (3, 4, 0, 2)]));
        assert_eq!(state.summary().await, ("NONE", 1, 2));
        assert_eq!(state.delete().await, "NONE");
        assert_eq!(state.read(0).await.0, "INVALID_REQUEST");
        assert_eq!(state.delete().await, "NONE");
    });
}

/// Of two states of a record, more deliveries win; without a start offset, the last one stays.
#[test]
fn writes_are_laid_over_each_other() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "WriteShareGroupState 1").await;
        let topic = target.topic(1).await;
        let mut state = State::of(&target, &topic).await;
        assert_eq!(state.begin(1, 0).await, "NONE");

        assert_eq!(state.write((1, 0), 0, &[(0, 9, 0, 1)]).await, "NONE");
        assert_eq!(state.write((1, 0), -1, &[(3, 4, 2, 2)]).await, "NONE");
        assert_eq!(state.write((1, 0), -1, &[(4, 5, 4, 1)]).await, "NONE");
        let laid = state.read(0).await;
        assert_eq!(state.write((1, 0), 4, &[(4, 4, 2, 2)]).await, "NONE");
        let moved = state.read(0).await;

        assert_eq!(laid, ("NONE", 0, vec![(0, 2, 0, 1), (3, 4, 2, 2), (5, 5, 4, 1), (6, 9, 0, 1)]));
        assert_eq!(moved, ("NONE", 4, vec![(4, 4, 2, 2), (5, 5, 4, 1), (6, 9, 0, 1)]));
    });
}

/// An earlier leader, and an earlier state, are fenced.
#[test]
fn earlier_epochs_are_fenced() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "WriteShareGroupState 1").await;
        let topic = target.topic(1).await;
        let mut state = State::of(&target, &topic).await;
        assert_eq!(state.begin(5, 0).await, "NONE");
        assert_eq!(state.read(3).await.0, "NONE");

        assert_eq!(state.read(2).await.0, "FENCED_LEADER_EPOCH");
        assert_eq!(state.write((5, 2), 0, &[]).await, "FENCED_LEADER_EPOCH");
        assert_eq!(state.write((4, 3), 0, &[]).await, "FENCED_STATE_EPOCH");
        assert_eq!(state.begin(4, 0).await, "FENCED_STATE_EPOCH");
        assert_eq!(state.begin(5, 7).await, "NONE");
        assert_eq!(state.read(3).await.1, 7);
    });
}

/// Each state has one node that keeps it; without a group's name nothing is answered.
#[test]
fn another_node_does_not_keep_a_state() {
    run_on_three(async |target| {
        target.since(KafkaVersion::V4_2, "WriteShareGroupState 1").await;
        let topic = target.topic(1).await;
        let mut state = State::of(&target, &topic).await;
        let found = find(&target, format!("{}:{}:0", state.group, topic.id), 6).await;
        let nameless = reads::ReadShareGroupStateRequest {
            group_id: Str::default(),
            topics: vec![reads::ReadStateData { topic_id: topic.id, partitions: vec![] }],
        };

        let nothing = state.wire.call(nameless, 0).await;
        state.wire = target.node(found.node_id % 3 + 1).await;

        assert_eq!(nothing.results, []);
        assert_eq!(state.begin(1, 0).await, "NOT_COORDINATOR");
        assert_eq!(state.read(0).await.0, "NOT_COORDINATOR");
        assert_eq!(state.write((1, 0), 0, &[]).await, "NOT_COORDINATOR");
        assert_eq!(state.summary().await.0, "NOT_COORDINATOR");
        assert_eq!(state.delete().await, "NOT_COORDINATOR");
    });
}

/// A leader has an epoch.
#[test]
fn a_negative_leader_epoch_is_refused() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "a check of the leader epoch by itself").await;
        let topic = target.topic(1).await;
        let mut state = State::of(&target, &topic).await;
        assert_eq!(state.begin(1, 0).await, "NONE");

        assert_eq!(state.read(-1).await.0, "INVALID_REQUEST");
    });
}
