//! ShareFetch: sessions, what is acquired, and how long it waits. FI-08, and what SH-05 to SH-09 and SH-15 say of the
//! broker.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use krafka_protocol::api::share_fetch::{FetchPartition, FetchTopic, ForgottenTopic, ShareFetchRequest};
use krafka_protocol::{ApiKey, ErrorCode, Str, Uuid};
use tokio::time::Instant;

use crate::records::{batch, written};
use crate::share_member::{ACCEPT, RELEASE, RENEW, ShareMember, acquired};
use crate::target::{Target, on_fake, run, run_on_three};
use crate::transactional::{END, Producer};

/// Records are acquired once, and come with the batches that hold them.
#[test]
fn records_are_acquired_by_one_member_only() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut first = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut second = ShareMember::joined(&target, &group, &topic, "m2").await;
        let records = batch(&["a", "b", "c"]);
        written(&mut target.connect().await, &topic, records.clone()).await;

        let request = first.request(&[]);
        let mut answer = first.ask(request).await;
        let other = second.poll().await;

        assert_eq!(answer.acquisition_lock_timeout_ms, 30_000);
        let partition = answer.responses.remove(0).partitions.remove(0);
        assert_eq!(partition.records.as_ref().map(|got| got.len()), Some(records.len()));
        assert_eq!(acquired(partition), [(0, 2, 1)]);
        assert_eq!(other, []);
    });
}

/// SH-16: what was aborted is given to nobody; the mark that says so is, with what comes behind it.
#[test]
fn aborted_records_are_not_given_to_a_group_that_reads_committed() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        only_committed(&target, &group).await;
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut producer = Producer::new(&target).await;
        assert_eq!(producer.send_when_ready(&topic, 0, &["gone", "too"]).await, 0);
        producer.finish(END, false).await;

        assert_eq!(written(&mut target.connect().await, &topic, batch(&["kept"])).await, 3);

        assert_eq!(member.poll_until().await, [(2, 3, 1)]);
    });
}

/// Lets a group see only what is committed.
async fn only_committed(target: &Target, group: &Str) {
    let config = AlterableConfig {
        name: "share.isolation.level".into(),
        config_operation: 0,
        value: Some("read_committed".into()),
    };
    let resource = AlterConfigsResource { resource_type: 32, resource_name: group.clone(), configs: vec![config] };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let answer = target.connect().await.call(request, 1).await.responses.remove(0);
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
}

/// FI-12g: a request says who asks; one that renews locks asks for nothing else.
#[test]
fn requests_that_make_no_sense_are_refused() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "a refusal of who does not say who it is").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        let good = member.request(&[]);
        let cases = [
            ShareFetchRequest { group_id: None, ..good.clone() },
            ShareFetchRequest { member_id: None, ..good.clone() },
            ShareFetchRequest { member_id: Some(Str::default()), ..good.clone() },
            ShareFetchRequest { member_id: Some("x".repeat(37).into()), ..good.clone() },
            ShareFetchRequest { is_renew_ack: true, ..good },
            member.request(&[(0, 0, &[ACCEPT])]),
        ];

        for request in cases {
            let shown = format!("{request:?}");
            assert_eq!(member.refused(request).await, "INVALID_REQUEST", "{shown}");
        }
    });
}

/// FI-08b, SH-06: a session goes from epoch to epoch; another one is refused, and so is one that is not there.
#[test]
fn a_session_has_its_epochs() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        let at = |epoch, member: &ShareMember| ShareFetchRequest {
            share_session_epoch: epoch,
            max_wait_ms: 10,
            ..member.request(&[])
        };

        let before = member.refused(at(1, &member)).await;
        let no_end = member.refused(at(-1, &member)).await;
        let begun = member.refused(at(0, &member)).await;
        let next = member.refused(at(1, &member)).await;
        let again = member.refused(at(1, &member)).await;
        let closed = member.refused(at(-1, &member)).await;
        let after = member.refused(at(2, &member)).await;

        assert_eq!((before, no_end), ("SHARE_SESSION_NOT_FOUND", "SHARE_SESSION_NOT_FOUND"));
        assert_eq!((begun, next, again), ("NONE", "NONE", "INVALID_SHARE_SESSION_EPOCH"));
        assert_eq!((closed, after), ("NONE", "SHARE_SESSION_NOT_FOUND"));
    });
}

/// A partition is told of when it is new, and then only when there is news of it.
#[test]
fn partitions_without_news_are_left_out() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(2).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        let counts = async |member: &mut ShareMember, request| -> Vec<i32> {
            let answer = member.ask(request).await;
            let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
            partitions.map(|partition| partition.partition_index).collect()
        };
        let quick = |request| ShareFetchRequest { max_wait_ms: 300, ..request };

        let new = {
            let request = quick(member.request(&[]));
            counts(&mut member, request).await
        };
        let nothing = {
            let request = quick(member.request(&[]));
            counts(&mut member, request).await
        };
        let second = vec![FetchPartition { partition_index: 1, ..FetchPartition::default() }];
        let topics = vec![FetchTopic { topic_id: topic.id, partitions: second }];
        let added = {
            let request = quick(ShareFetchRequest { topics, ..member.request(&[]) });
            counts(&mut member, request).await
        };
        let topics = vec![FetchTopic { topic_id: topic.id, partitions: vec![] }];
        written(&mut target.connect().await, &topic, batch(&["a"])).await;
        let news = {
            let request = quick(ShareFetchRequest { topics, ..member.request(&[]) });
            counts(&mut member, request).await
        };

        assert_eq!((new, nothing, added, news), (vec![0], vec![], vec![1], vec![0]));
    });
}

/// A partition that is not there is told of in every answer; when nothing else is asked for, at once.
#[test]
fn an_unknown_partition_is_told_of_each_time() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        let partitions = vec![FetchPartition { partition_index: 7, ..FetchPartition::default() }];
        let topics = vec![FetchTopic { topic_id: topic.id, partitions }];
        let request = ShareFetchRequest { topics, max_wait_ms: 15_000, ..member.request(&[]) };

        let first = member.ask(request.clone()).await;
        let bare = ShareFetchRequest { topics: vec![], share_session_epoch: 1, ..request };
        let second = member.ask(bare.clone()).await;
        let forgotten = ForgottenTopic { topic_id: topic.id, partitions: vec![7] };
        let forget = ShareFetchRequest { forgotten_topics_data: vec![forgotten], share_session_epoch: 2, ..bare };
        let third = member.ask(forget).await;

        for answer in [first, second] {
            let partition = &answer.responses[0].partitions[0];
            assert_eq!(
                (partition.partition_index, ErrorCode(partition.error_code).name()),
                (7, "UNKNOWN_TOPIC_OR_PARTITION")
            );
        }
        assert_eq!(third.responses, []);
    });
}

/// A topic id that nobody knows is an error of the whole request, and the session's epoch goes on.
#[test]
fn an_unknown_topic_is_no_answer_at_all() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        let unknown = Uuid(*b"nobody knows it ");
        let partitions = vec![FetchPartition::default()];
        let topics = vec![FetchTopic { topic_id: unknown, partitions }];
        let forgotten = ForgottenTopic { topic_id: unknown, partitions: vec![0] };

        let first = member.refused(ShareFetchRequest { topics: topics.clone(), ..member.request(&[]) }).await;
        let quick = ShareFetchRequest { max_wait_ms: 10, ..member.request(&[]) };
        let again = member.refused(ShareFetchRequest { share_session_epoch: 1, ..quick.clone() }).await;
        let forgotten_topics_data = vec![forgotten];
        let forget = ShareFetchRequest { share_session_epoch: 2, forgotten_topics_data, ..quick };
        let after = member.refused(forget).await;

        assert_eq!((first, again, after), ("UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR", "NONE"));
    });
}

#[expect(clippy::disallowed_methods, reason = "the time that passes is what the test is about")]
fn now() -> Instant {
    Instant::now()
}

/// Before the group's coordinator knows of it, a partition cannot be read: its state is not there. The member is told
/// when its time is up, so that it does not ask again and again.
#[test]
fn a_group_that_nobody_joined_reads_nothing() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::new(&target, &group, &topic, "m1").await;

        let asked = now();
        for _ in 0..2 {
            let request = member.request(&[]);
            let answer = member.ask(request).await;
            assert_eq!(ErrorCode(answer.responses[0].partitions[0].error_code).name(), "UNKNOWN_SERVER_ERROR");
        }

        assert!(asked.elapsed() >= Duration::from_secs(1), "{:?}", asked.elapsed());
    });
}

/// SH-15: in batches, a member may get more than it asks for; strictly (KIP-1206), never.
#[test]
fn the_number_of_records_is_kept_in_one_mode_only() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "share acquire modes").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.connect().await;
        let values = ["v"; 10];
        written(&mut wire, &topic, batch(&values)).await;
        written(&mut wire, &topic, batch(&values)).await;
        let three = |member: &ShareMember, share_acquire_mode| ShareFetchRequest {
            max_records: 3,
            share_acquire_mode,
            ..member.request(&[])
        };

        let batched = member.acquired(three(&member, 0)).await;
        let strict = member.acquired(three(&member, 1)).await;
        let more = member.acquired(three(&member, 1)).await;
        let rest = member.poll().await;

        assert_eq!((batched, strict), (vec![(0, 9, 1)], vec![(10, 12, 1)]));
        assert_eq!((more, rest), (vec![(13, 15, 1)], vec![(16, 19, 1)]));
    });
}

/// The batches of an answer are as long as the member wants them, but never end inside one of the log.
#[test]
fn acquired_batches_have_about_the_size_asked_for() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.connect().await;
        for _ in 0..5 {
            written(&mut wire, &topic, batch(&["a", "b"])).await;
        }

        let request = ShareFetchRequest { batch_size: 3, ..member.request(&[]) };
        let got = member.acquired(request).await;

        assert_eq!(got, [(0, 3, 1), (4, 7, 1), (8, 9, 1)]);
    });
}

/// FI-08c. What is given back is delivered again in the batches that it was in; what was delivered three times, in
/// halves; the fifth time alone. SH-05: then it is archived.
#[test]
fn records_delivered_often_are_isolated_and_then_archived() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "records delivered often in smaller stretches").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        written(&mut target.connect().await, &topic, batch(&["a", "b", "c", "d"])).await;
        let mut seen = Vec::new();

        for _ in 0..3 {
            seen.push(member.poll_until().await);
            assert_eq!(member.acknowledge(&[(0, 3, &[RELEASE])]).await, "NONE");
        }
        let half = member.poll_until().await;
        let other_half = member.poll_until().await;
        assert_eq!(member.acknowledge(&[(0, 3, &[RELEASE])]).await, "NONE");
        let alone = member.poll_until().await;
        assert_eq!(member.acknowledge(&[(0, 0, &[RELEASE])]).await, "NONE");
        let next = member.poll_until().await;

        assert_eq!(seen, [[(0, 3, 1)], [(0, 3, 2)], [(0, 3, 3)]]);
        assert_eq!((half, other_half), (vec![(0, 1, 4)], vec![(2, 3, 4)]));
        assert_eq!((alone, next), (vec![(0, 0, 5)], vec![(1, 1, 5)]));
    });
}

/// A fetch waits for records, and is answered as soon as there are any; one that wants none is answered at once.
#[test]
fn a_fetch_waits_for_records() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let patient = ShareFetchRequest { max_wait_ms: 15_000, ..member.request(&[]) };

        let none = member.acquired(ShareFetchRequest { max_records: 0, ..patient.clone() }).await;
        let no_bytes = ShareFetchRequest { max_bytes: 0, share_session_epoch: 2, ..patient.clone() };
        let no_bytes = member.acquired(no_bytes).await;
        let no_least = ShareFetchRequest { min_bytes: 0, share_session_epoch: 3, ..patient.clone() };
        let no_least = member.acquired(no_least).await;
        member.leader.send(ShareFetchRequest { share_session_epoch: 4, ..patient }, 2).await;
        assert!(member.leader.is_quiet().await);
        written(&mut target.connect().await, &topic, batch(&["a"])).await;
        let mut answer = member.leader.receive::<ShareFetchRequest>(2).await;

        assert_eq!((none, no_bytes, no_least), (vec![], vec![], vec![]));
        assert_eq!(acquired(answer.responses.remove(0).partitions.remove(0)), [(0, 0, 1)]);
    });
}

/// SH-09: a session dies with the connection that it was begun on, and the records are others' to have.
#[test]
fn a_lost_connection_gives_records_back() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut lost = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut other = ShareMember::joined(&target, &group, &topic, "m2").await;
        written(&mut target.connect().await, &topic, batch(&["a", "b"])).await;
        assert_eq!(lost.poll_until().await, [(0, 1, 1)]);

        lost.leader = target.connect().await;
        let got = other.poll_until().await;
        let session = lost.refused(lost.request(&[])).await;

        assert_eq!((got, session), (vec![(0, 1, 2)], "SHARE_SESSION_NOT_FOUND"));
    });
}

/// A session may go on over another connection, as long as the first one is there.
#[test]
fn a_session_is_not_bound_to_its_connection() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;

        let first = std::mem::replace(&mut member.leader, target.connect().await);
        let over_another = member.refused(ShareFetchRequest { max_wait_ms: 10, ..member.request(&[]) }).await;
        drop(first);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let without_the_first = member.refused(member.request(&[])).await;

        assert_eq!((over_another, without_the_first), ("NONE", "SHARE_SESSION_NOT_FOUND"));
    });
}

/// Who closes its session gives its records back; who begins another in its place does not.
#[test]
fn a_closed_session_gives_records_back() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        written(&mut target.connect().await, &topic, batch(&["a", "b"])).await;
        assert_eq!(member.poll_until().await, [(0, 1, 1)]);

        member.session_epoch = 0;
        let anew = member.poll().await;
        let end = ShareFetchRequest { share_session_epoch: -1, ..member.request(&[(0, 0, &[ACCEPT])]) };
        let ended = member.ask(end).await;
        member.session_epoch = 0;
        let after = member.poll_until().await;

        assert_eq!(anew, []);
        assert_eq!(ended.responses[0].partitions[0].acknowledge_error_code, 0);
        assert_eq!(after, [(1, 1, 2)]);
    });
}

/// Forgetting a partition is no word about its records: they stay with the member.
#[test]
fn a_forgotten_partition_keeps_its_records() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut other = ShareMember::joined(&target, &group, &topic, "m2").await;
        written(&mut target.connect().await, &topic, batch(&["a"])).await;
        assert_eq!(member.poll_until().await, [(0, 0, 1)]);

        let forgotten_topics_data = vec![ForgottenTopic { topic_id: topic.id, partitions: vec![0] }];
        let forget = ShareFetchRequest { topics: vec![], forgotten_topics_data, ..member.request(&[]) };
        let answer = member.ask(forget).await;
        let others = other.poll().await;

        assert_eq!((answer.responses, others), (vec![], vec![]));
        assert_eq!(member.acknowledge(&[(0, 0, &[ACCEPT])]).await, "NONE");
    });
}

/// Acknowledgements come with a fetch, are carried out whatever else there is, and are answered beside it.
#[test]
fn acknowledgements_ride_on_a_fetch() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch(&["a", "b"])).await;
        assert_eq!(member.poll_until().await, [(0, 1, 1)]);
        written(&mut wire, &topic, batch(&["c"])).await;

        let both = member.request(&[(0, 1, &[ACCEPT])]);
        let both = member.ask(both).await;
        let wrong = ShareFetchRequest { max_wait_ms: 10, ..member.request(&[(2, 2, &[9])]) };
        let wrong = member.ask(wrong).await;
        let renewed = ShareFetchRequest {
            is_renew_ack: true,
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: 0,
            max_records: 0,
            ..member.request(&[(2, 2, &[RENEW])])
        };
        let renewed = member.ask(renewed).await;

        let codes = |answer: &krafka_protocol::ShareFetchResponse| {
            let partition = &answer.responses[0].partitions[0];
            (ErrorCode(partition.error_code).name(), ErrorCode(partition.acknowledge_error_code).name())
        };
        assert_eq!(codes(&both), ("NONE", "NONE"));
        assert_eq!(acquired(both.responses[0].partitions[0].clone()), [(2, 2, 1)]);
        assert_eq!(codes(&wrong), ("NONE", "INVALID_REQUEST"));
        assert_eq!(codes(&renewed), ("NONE", "NONE"));
    });
}

/// LE-05, SH-08, KIP-951: who asks a node that does not lead is told who does.
#[test]
fn the_wrong_node_names_the_leader() {
    run_on_three(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic_on(&[2, 3]).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        member.leader = target.node(3).await;

        let request = member.request(&[]);
        let answer = member.ask(request).await;
        let acknowledged = member.acknowledge(&[(0, 0, &[ACCEPT])]).await;

        let partition = &answer.responses[0].partitions[0];
        assert_eq!(ErrorCode(partition.error_code).name(), "NOT_LEADER_OR_FOLLOWER");
        assert_eq!(partition.current_leader.leader_id, 2);
        assert_eq!(answer.node_endpoints.iter().map(|node| node.node_id).collect::<Vec<_>>(), [2]);
        assert_eq!(acknowledged, "UNKNOWN_TOPIC_OR_PARTITION");
    });
}

/// A rule for a topic also finds the fetches within a session, which name it no more.
///
/// Fake only: it is about the fake's rules.
#[test]
fn rule_for_a_topic_finds_fetches_within_a_session() {
    on_fake(FakeCluster::builder(), async |target, fake| {
        let group = Str::from_static("share");
        let topic = target.topic(1).await;
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let other = fake.when(ApiKey::ShareFetch).topic("other").observe();
        let rule = fake.when(ApiKey::ShareFetch).partition(&*topic.name, 0).observe();

        let within = ShareFetchRequest { topics: Vec::new(), ..member.request(&[]) };
        assert!(within.share_session_epoch > 0);
        member.ask(within).await;

        assert_eq!((rule.hits(), other.hits()), (1, 0));
    });
}

/// FI-08c, SH-06: a node has so many sessions. Who comes too late waits, is refused, and gets in when another has gone.
///
/// Fake only: `group.share.max.share.sessions` is set when a broker starts, for all groups.
#[test]
fn sessions_are_limited() {
    on_fake(FakeCluster::builder().share_session_slots(1), async |target, _fake| {
        let group = Str::from_static("share");
        let topic = target.topic(1).await;
        let mut first = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut second = ShareMember::joined(&target, &group, &topic, "m2").await;

        second.leader.send(second.request(&[]), 2).await;
        assert!(second.leader.is_quiet().await);
        let refused = second.leader.receive::<ShareFetchRequest>(2).await;
        first.ask(ShareFetchRequest { share_session_epoch: -1, ..first.request(&[]) }).await;
        let admitted = second.refused(second.request(&[])).await;

        assert_eq!(ErrorCode(refused.error_code).name(), "SHARE_SESSION_LIMIT_REACHED");
        assert_eq!(admitted, "NONE");
    });
}
