//! Requests that leave the controller no time: it refuses them before it looks at anything else.

use krafka_protocol::api::alter_partition_reassignments::{ReassignablePartition, ReassignableTopic};
use krafka_protocol::api::create_partitions::CreatePartitionsTopic;
use krafka_protocol::api::create_topics::CreatableTopic;
use krafka_protocol::api::delete_topics::DeleteTopicState;
use krafka_protocol::api::elect_leaders::TopicPartitions;
use krafka_protocol::{
    AlterPartitionReassignmentsRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    ElectLeadersRequest, ErrorCode, Str,
};

use crate::target::{Topic, run};

const LATE: i16 = ErrorCode::REQUEST_TIMED_OUT.0;

/// What has a timeout of 0 or less.
const NO_TIME: [i32; 2] = [0, -1];

#[test]
fn topics_are_not_created_in_no_time() {
    run(async |target| {
        let mut wire = target.connect().await;
        let named = |name: Str| CreatableTopic { name, num_partitions: 1, replication_factor: 1, ..Default::default() };
        for timeout_ms in NO_TIME {
            for validate_only in [false, true] {
                let name = target.fresh("late");
                // Neither a bad name nor one that comes twice is looked at.
                let topics = [name.clone(), name.clone(), Str::from("a b")].map(named).to_vec();
                let request = CreateTopicsRequest { topics, timeout_ms, validate_only };

                let answer = wire.call(request, 7).await;

                for topic in &answer.topics {
                    assert_eq!((topic.error_code, &topic.error_message), (LATE, &None), "{topic:?}");
                    assert_eq!((topic.num_partitions, topic.replication_factor), (-1, -1));
                    assert_eq!(topic.configs.as_ref().map(Vec::len), Some(0));
                }
                // The controller that gave up has the topics by name, as clients do.
                assert!(answer.topics.iter().any(|topic| topic.name == name));
                let asked = DeleteTopicState { name: Some(name), ..Default::default() };
                let delete = DeleteTopicsRequest { topics: vec![asked], timeout_ms: 5_000, ..Default::default() };
                let gone = wire.call(delete, 6).await.responses.remove(0).error_code;
                assert_eq!(gone, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0, "nothing was created");
            }
        }
    });
}

#[test]
fn topics_neither_grow_nor_go_in_no_time() {
    run(async |target| {
        let Topic { name, .. } = target.topic(1).await;
        let mut wire = target.connect().await;
        for timeout_ms in NO_TIME {
            for validate_only in [false, true] {
                let grow = |name: Str| CreatePartitionsTopic { name, count: 2, assignments: None };
                let topics = [name.clone(), target.fresh("unknown")].map(grow).to_vec();
                let answer = wire.call(CreatePartitionsRequest { topics, timeout_ms, validate_only }, 3).await;
                let results: Vec<_> = answer.results.iter().map(|one| (one.error_code, &one.error_message)).collect();
                assert_eq!(results, [(LATE, &None), (LATE, &None)]);
            }
            let asked = |name: Str| DeleteTopicState { name: Some(name), ..Default::default() };
            let topics = [name.clone(), target.fresh("unknown")].map(asked).to_vec();
            let answer = wire.call(DeleteTopicsRequest { topics, timeout_ms, ..Default::default() }, 6).await;
            let results: Vec<_> = answer.responses.iter().map(|one| (one.error_code, &one.error_message)).collect();
            assert_eq!(results, [(LATE, &None), (LATE, &None)]);
        }
        let topics = vec![CreatePartitionsTopic { name, count: 2, assignments: None }];
        let request = CreatePartitionsRequest { topics, timeout_ms: 5_000, validate_only: true };
        assert_eq!(wire.call(request, 3).await.results[0].error_code, 0, "it is still there, with one partition");
    });
}

#[test]
fn nothing_is_elected_or_moved_in_no_time() {
    run(async |target| {
        let Topic { name, .. } = target.topic(1).await;
        let mut wire = target.connect().await;
        for timeout_ms in NO_TIME {
            let elect = |topic_partitions| ElectLeadersRequest { election_type: 0, topic_partitions, timeout_ms };
            let one = TopicPartitions { topic: name.clone(), partitions: vec![0] };
            let answer = wire.call(elect(Some(vec![one])), 2).await;
            let result = &answer.replica_election_results[0].partition_result[0];
            assert_eq!((answer.error_code, result.error_code, &result.error_message), (LATE, LATE, &None));
            // The oldest version has no error for the whole.
            let one = TopicPartitions { topic: name.clone(), partitions: vec![0] };
            let answer = wire.call(elect(Some(vec![one])), 0).await;
            assert_eq!(answer.replica_election_results[0].partition_result[0].error_code, LATE);
            let all = wire.call(elect(None), 2).await;
            assert_eq!((all.error_code, all.replica_election_results.len()), (LATE, 0));
            let none = wire.call(elect(Some(Vec::new())), 2).await;
            assert_eq!((none.error_code, none.replica_election_results.len()), (0, 0));

            let reassign = |topics| AlterPartitionReassignmentsRequest { topics, timeout_ms, ..Default::default() };
            let partition = ReassignablePartition { partition_index: 0, replicas: Some(vec![1]) };
            let topic = ReassignableTopic { name: name.clone(), partitions: vec![partition] };
            let answer = wire.call(reassign(vec![topic]), 0).await;
            let result = &answer.responses[0].partitions[0];
            assert_eq!((answer.error_code, &answer.error_message), (LATE, &None));
            assert_eq!((result.error_code, &result.error_message), (LATE, &None));
            let none = wire.call(reassign(Vec::new()), 0).await;
            assert_eq!((none.error_code, none.error_message.as_deref()), (0, Some("")));
        }
    });
}
