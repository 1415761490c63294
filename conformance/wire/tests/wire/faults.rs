//! Rules: what they match, what they do, how often. Only the fake has them.

use std::time::Duration;

use krafka_fake_broker::{Apis, FakeCluster, Rule};
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
};
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData};
use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, ErrorCode, HeartbeatRequest, MetadataResponse, Str};
use tokio::time::Instant;

use crate::producers::batch;
use crate::target::{Target, Wire, on_fake};

const SECOND: Duration = Duration::from_secs(1);
const TOPIC: &str = "orders";

/// Runs a test on one node with the topic, whose two partitions it leads.
fn run(test: impl AsyncFnOnce(Target, FakeCluster)) {
    on_fake(FakeCluster::builder().topic(TOPIC, 2), test);
}

/// Writes a record to both partitions.
fn produce() -> ProduceRequest {
    produce_by(-1)
}

/// Records for both partitions by a producer with an id, or by one that has none and is not idempotent.
fn produce_by(id: i64) -> ProduceRequest {
    let epoch = if id < 0 { -1 } else { 0 };
    let partition = |index| PartitionProduceData { index, records: Some(batch(id, epoch, i32::from(epoch), 1)) };
    let topic = TopicProduceData {
        name: Str::from_static(TOPIC),
        partition_data: vec![partition(0), partition(1)],
        ..TopicProduceData::default()
    };
    ProduceRequest { acks: 1, timeout_ms: 1_000, topic_data: vec![topic], ..ProduceRequest::default() }
}

fn produce_errors(response: &ProduceResponse) -> [&'static str; 2] {
    let mut errors = [""; 2];
    for partition in &response.responses[0].partition_responses {
        errors[partition.index as usize] = ErrorCode(partition.error_code).name();
    }
    errors
}

/// Reads from partition 1, in a session if one is named.
fn fetch(session_id: i32, session_epoch: i32) -> FetchRequest {
    let partition = FetchPartition {
        partition: 1,
        partition_max_bytes: 1_000,
        current_leader_epoch: 0,
        ..FetchPartition::default()
    };
    let topic = FetchTopic { topic: Str::from_static(TOPIC), partitions: vec![partition], ..FetchTopic::default() };
    let topics = if session_epoch > 0 { Vec::new() } else { vec![topic] };
    FetchRequest { max_bytes: 1_000, session_id, session_epoch, topics, ..FetchRequest::default() }
}

fn fetch_error(response: &FetchResponse) -> &'static str {
    ErrorCode(response.responses[0].partitions[0].error_code).name()
}

fn commit(group: &'static str) -> OffsetCommitRequest {
    let partition = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 9,
        ..OffsetCommitRequestPartition::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: Str::from_static(TOPIC),
        partitions: vec![partition(0), partition(1)],
        ..OffsetCommitRequestTopic::default()
    };
    OffsetCommitRequest {
        group_id: Str::from_static(group),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..OffsetCommitRequest::default()
    }
}

fn commit_errors(response: &OffsetCommitResponse) -> Vec<&'static str> {
    response.topics[0].partitions.iter().map(|p| ErrorCode(p.error_code).name()).collect()
}

async fn metadata(wire: &mut Wire) -> MetadataResponse {
    wire.call(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 13).await
}

/// How much virtual time passes.
#[expect(clippy::disallowed_methods, reason = "the time that passes is what the tests are about")]
async fn time_of<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let start = Instant::now();
    let result = work.await;
    (start.elapsed(), result)
}

#[test]
fn error_hits_the_partition_alone_and_the_rest_is_served() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.when(ApiKey::Produce).partition(TOPIC, 1).reply_error(ErrorCode::KAFKA_STORAGE_ERROR);

        let response = wire.call(produce(), 9).await;

        assert_eq!(produce_errors(&response), ["NONE", "KAFKA_STORAGE_ERROR"]);
        assert_eq!((fake.high_watermark(TOPIC, 0), fake.high_watermark(TOPIC, 1)), (Some(1), Some(0)));
    });
}

#[test]
fn error_without_an_entity_hits_all_of_them() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.when(ApiKey::Produce).reply_error(ErrorCode::NOT_LEADER_OR_FOLLOWER);

        let response = wire.call(produce(), 9).await;

        assert_eq!(produce_errors(&response), ["NOT_LEADER_OR_FOLLOWER"; 2]);
        assert_eq!(fake.high_watermark(TOPIC, 0), Some(0), "refused before anything was done");
    });
}

#[test]
fn rules_act_once_or_as_often_as_told() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        let error = ErrorCode::NOT_COORDINATOR;
        let heartbeat = async |wire: &mut Wire| {
            ErrorCode(wire.call(HeartbeatRequest { group_id: "g".into(), ..Default::default() }, 4).await.error_code)
        };
        let natural = ErrorCode::UNKNOWN_MEMBER_ID;
        fake.coordinator("g");

        let once = fake.when(ApiKey::Heartbeat).reply_error(error);
        assert_eq!([heartbeat(&mut wire).await, heartbeat(&mut wire).await], [error, natural]);
        let twice = fake.when(ApiKey::Heartbeat).times(2).reply_error(error);
        for expected in [error, error, natural] {
            assert_eq!(heartbeat(&mut wire).await, expected);
        }
        let third = fake.when(ApiKey::Heartbeat).nth(3).reply_error(error);
        for expected in [natural, natural, error, natural] {
            assert_eq!(heartbeat(&mut wire).await, expected);
        }
        let forever = fake.when(ApiKey::Heartbeat).forever().reply_error(error);
        for _ in 0..5 {
            assert_eq!(heartbeat(&mut wire).await, error);
        }
        forever.remove();
        assert_eq!(heartbeat(&mut wire).await, natural);

        assert_eq!([&once, &twice, &third, &forever].map(Rule::hits), [1, 2, 1, 5]);
    });
}

#[test]
fn one_request_is_one_hit_however_many_parts_match() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        let rule = fake.when(ApiKey::Produce).topic(TOPIC).times(2).reply_error(ErrorCode::KAFKA_STORAGE_ERROR);

        wire.call(produce(), 9).await;

        assert_eq!(rule.hits(), 1);
    });
}

#[test]
fn what_a_request_does_not_carry_it_does_not_match() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        let rules = [
            fake.when(Apis::ANY).topic("other").observe(),
            fake.when(Apis::ANY).partition(TOPIC, 7).observe(),
            fake.when(Apis::ANY).group("g").observe(),
            fake.when(Apis::ANY).on(2).observe(),
            fake.when(Apis::ANY).client_id("somebody").observe(),
            fake.when(Apis::ANY).versions(0..=8).observe(),
            fake.when([ApiKey::Fetch, ApiKey::Heartbeat]).observe(),
            fake.when(Apis::ANY).matching(|request| request.downcast_ref::<FetchRequest>().is_some()).observe(),
        ];
        let matching = fake
            .when([ApiKey::Produce, ApiKey::Fetch])
            .topic(TOPIC)
            .on(1)
            .client_id("wire")
            .versions(9..=9)
            .matching(|request| matches!(request, AnyRequest::Produce(produce) if produce.acks == 1))
            .observe();

        wire.call(produce(), 9).await;

        assert_eq!(rules.map(|rule| rule.hits()), [0; 8]);
        assert_eq!(matching.hits(), 1);
        assert_eq!(fake.unfired_rules().len(), 8);
        assert_eq!(fake.unfired_rules()[1], "any request for orders-7 → observe");
        fake.clear_faults();
        assert!(fake.unfired_rules().is_empty());
    });
}

#[test]
fn several_rules_act_on_one_request() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.when(ApiKey::Produce).partition(TOPIC, 0).reply_error(ErrorCode::KAFKA_STORAGE_ERROR);
        fake.when(ApiKey::Produce).partition(TOPIC, 1).reply_error(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        fake.when(ApiKey::Produce).delay(SECOND);

        let (time, response) = time_of(wire.call(produce(), 9)).await;

        assert_eq!(produce_errors(&response), ["KAFKA_STORAGE_ERROR", "NOT_LEADER_OR_FOLLOWER"]);
        assert!(time >= SECOND);
    });
}

#[test]
fn wait_ends_with_the_nth_hit() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        let rule = fake.when(ApiKey::Metadata).observe();
        let waiting = rule.wait(2);
        let asking = async {
            metadata(&mut wire).await;
            assert_eq!(rule.hits(), 1);
            metadata(&mut wire).await;
        };

        tokio::join!(waiting, asking);

        assert_eq!(rule.hits(), 2);
    });
}

/// To observe is no fault that runs out: such a rule counts all that matches, unless it is told when to stop.
#[test]
fn observation_counts_on_unless_told_otherwise() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        let on = [
            fake.when(ApiKey::Metadata).observe(),
            fake.install_json(r#"{"when": {"apis": ["Metadata"]}, "do": "observe"}"#).expect("a legal rule"),
        ];
        let twice = [
            fake.when(ApiKey::Metadata).times(2).observe(),
            fake.install_json(r#"{"when": {"apis": ["Metadata"]}, "times": 2, "do": "observe"}"#)
                .expect("a legal rule"),
        ];

        for _ in 0..3 {
            metadata(&mut wire).await;
        }

        assert_eq!(on.map(|rule| rule.hits()), [3, 3]);
        assert_eq!(twice.map(|rule| rule.hits()), [2, 2]);
    });
}

#[test]
fn dropped_connection_has_no_effect_before_and_all_after_handling() {
    run(async |target, fake| {
        fake.when(ApiKey::Produce).drop_connection();
        let mut wire = target.connect().await;
        wire.send(produce(), 9).await;
        assert!(wire.is_closed().await);
        assert_eq!(fake.high_watermark(TOPIC, 0), Some(0));

        fake.when(ApiKey::Produce).after_handling().drop_connection();
        let mut wire = target.connect().await;
        wire.send(produce(), 9).await;
        assert!(wire.is_closed().await);
        assert_eq!(fake.high_watermark(TOPIC, 0), Some(1));
    });
}

#[test]
fn silence_leaves_the_connection_open_and_deaf() {
    run(async |target, fake| {
        fake.when(ApiKey::Produce).silence();
        let mut wire = target.connect().await;
        wire.send(produce(), 9).await;
        wire.send(produce(), 9).await;
        assert!(wire.is_quiet().await);
        assert_eq!(fake.high_watermark(TOPIC, 0), Some(0));

        fake.when(ApiKey::Produce).after_handling().silence();
        let mut wire = target.connect().await;
        wire.send(produce(), 9).await;
        assert!(wire.is_quiet().await);
        assert_eq!(fake.high_watermark(TOPIC, 0), Some(1));
        metadata(&mut target.connect().await).await;
    });
}

#[test]
fn delay_is_before_or_after_the_handling() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        for (rule, early) in [(fake.when(ApiKey::Produce), 0), (fake.when(ApiKey::Produce).after_handling(), 2)] {
            rule.delay(SECOND);
            wire.send(produce(), 9).await;
            assert!(wire.is_quiet().await);
            assert_eq!(fake.high_watermark(TOPIC, 0), Some(early));
            wire.receive::<ProduceRequest>(9).await;
        }
    });
}

/// TH-01: the answer comes at once and tells the time; what is sent meanwhile is not looked at.
#[test]
fn throttle_answers_at_once_and_mutes_the_connection() {
    run(async |target, fake| {
        let (mut muted, mut other) = (target.connect().await, target.connect().await);
        fake.when(ApiKey::Metadata).throttle(SECOND);

        let (time, response) = time_of(metadata(&mut muted)).await;
        assert_eq!(response.throttle_time_ms, 1_000);
        assert!(time < SECOND / 10);

        let (time, response) = time_of(metadata(&mut other)).await;
        assert_eq!((response.throttle_time_ms, time < SECOND / 10), (0, true));
        let (time, response) = time_of(metadata(&mut muted)).await;
        assert_eq!(response.throttle_time_ms, 0);
        assert!(time >= SECOND * 9 / 10, "{time:?}");
    });
}

#[test]
fn leader_moves_just_before_the_nth_produce() {
    on_fake(FakeCluster::builder().nodes(3).topic(TOPIC, 3), async |target, fake| {
        let mut wire = target.connect().await;
        let mut request = produce();
        request.topic_data[0].partition_data.truncate(1);
        fake.when(ApiKey::Produce).partition(TOPIC, 0).nth(2).move_leader(2);

        assert_eq!(wire.call(request.clone(), 10).await.responses[0].partition_responses[0].error_code, 0);
        let response = wire.call(request.clone(), 10).await;

        let partition = &response.responses[0].partition_responses[0];
        assert_eq!(ErrorCode(partition.error_code), ErrorCode::NOT_LEADER_OR_FOLLOWER);
        assert_eq!((partition.current_leader.leader_id, partition.current_leader.leader_epoch), (2, 1));
        assert_eq!(fake.leader(TOPIC, 0), Some(2));

        fake.when(ApiKey::Produce).move_leader_away();
        wire.call(request, 10).await;
        assert_ne!(fake.leader(TOPIC, 0), Some(2));
    });
}

/// RB-03: in versions that can say so.
#[test]
fn rebootstrap_is_told_from_version_13_on() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        let rule = fake.when(ApiKey::Metadata).rebootstrap();

        let old = wire.call(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 12).await;
        assert_eq!((rule.hits(), old.brokers.len()), (0, 1));
        let response = metadata(&mut wire).await;

        assert_eq!(ErrorCode(response.error_code), ErrorCode::REBOOTSTRAP_REQUIRED);
        assert!(response.brokers.is_empty());
    });
}

#[test]
fn fenced_epoch_is_a_real_election_for_a_fetch() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.when(ApiKey::Fetch).partition(TOPIC, 1).fence_epoch();

        let fenced = wire.call(fetch(0, -1), 12).await;

        assert_eq!(fetch_error(&fenced), "FENCED_LEADER_EPOCH");
        assert_eq!((fake.leader_epoch(TOPIC, 0), fake.leader_epoch(TOPIC, 1)), (Some(0), Some(1)));
    });
}

#[test]
fn fenced_epoch_is_an_error_for_a_producer() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.when(ApiKey::Produce).partition(TOPIC, 1).fence_epoch();

        assert_eq!(produce_errors(&wire.call(produce(), 9).await), ["NONE"; 2], "who has no epoch is not fenced");
        assert_eq!(produce_errors(&wire.call(produce_by(7), 9).await), ["NONE", "INVALID_PRODUCER_EPOCH"]);
    });
}

#[test]
fn session_is_asked_about_what_it_remembers() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        let first = wire.call(fetch(0, 0), 12).await;
        assert_ne!(first.session_id, 0);
        fake.when(ApiKey::Fetch).partition(TOPIC, 1).reply_error(ErrorCode::NOT_LEADER_OR_FOLLOWER);

        let next = wire.call(fetch(first.session_id, 1), 12).await;

        assert_eq!(fetch_error(&next), "NOT_LEADER_OR_FOLLOWER");
    });
}

/// FI-14.
#[test]
fn late_error_comes_after_the_deed() {
    run(async |target, fake| {
        let mut wire = target.coordinator(&"g".into()).await;
        let code = ErrorCode::REQUEST_TIMED_OUT;
        fake.when(ApiKey::OffsetCommit).partition(TOPIC, 1).after_handling().reply_error(code);

        let response = wire.call(commit("g"), 9).await;

        assert_eq!(commit_errors(&response), ["NONE", "REQUEST_TIMED_OUT"]);
        assert_eq!(fake.committed("g").len(), 2);
    });
}

#[test]
fn group_is_refused_alone() {
    run(async |target, fake| {
        let mut wire = target.coordinator(&"g".into()).await;
        let rule = fake.when(ApiKey::OffsetCommit).group("h").reply_error(ErrorCode::GROUP_AUTHORIZATION_FAILED);

        assert_eq!(commit_errors(&wire.call(commit("g"), 9).await), ["NONE"; 2]);
        assert_eq!(commit_errors(&wire.call(commit("h"), 9).await), ["GROUP_AUTHORIZATION_FAILED"; 2]);

        assert_eq!(rule.hits(), 1);
        assert!(fake.committed("h").is_empty());
    });
}

#[test]
fn answer_can_be_edited() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.when(ApiKey::Metadata).edit(|response| {
            if let AnyResponse::Metadata(metadata) = response {
                metadata.controller_id = 77;
            }
        });

        assert_eq!(metadata(&mut wire).await.controller_id, 77);
        assert_eq!(metadata(&mut wire).await.controller_id, 1);
    });
}

#[test]
fn probability_is_drawn_from_the_seed() {
    let draws = |seed| {
        let mut pattern = Vec::new();
        on_fake(FakeCluster::builder().seed(seed), async |target, fake| {
            let mut wire = target.connect().await;
            let rule = fake.when(ApiKey::Metadata).probability(0.5).observe();
            for _ in 0..64 {
                let before = rule.hits();
                metadata(&mut wire).await;
                pattern.push(rule.hits() > before);
            }
        });
        pattern
    };

    let first = draws(1);

    assert_eq!(first, draws(1));
    assert_ne!(first, draws(2));
    assert!((16..=48).contains(&first.iter().filter(|hit| **hit).count()));
}

#[test]
fn history_tells_requests_and_answers() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.when(ApiKey::Produce).silence();
        metadata(&mut wire).await;
        wire.send(produce(), 9).await;
        assert!(wire.is_quiet().await);

        let history = fake.history();

        assert_eq!((history.count(ApiKey::Metadata), history.count_on(1, ApiKey::Produce)), (1, 1));
        let connection = history.iter().next().expect("a request").connection;
        let on_it = history.on_connection(connection).count();
        assert_eq!((history.by("wire").count(), history.by("somebody").count(), on_it), (2, 0, 2));
        assert_eq!(history.requests::<ProduceRequest>().map(|r| r.acks).collect::<Vec<_>>(), [1]);
        let events: Vec<_> = history.iter().collect();
        assert_eq!((events[0].version, events[0].client_id.as_deref()), (13, Some("wire")));
        assert!(events[0].response::<MetadataResponse>().is_some() && events[1].response.is_none());
    });
}
