//! ShareAcknowledge: what members may say of which records. FI-08, and what SH-02, SH-04, SH-16 and SH-18 say of the
//! broker.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::api::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use krafka_protocol::api::share_acknowledge::{AcknowledgePartition, ShareAcknowledgeRequest};
use krafka_protocol::{ErrorCode, Str, Uuid};

use crate::records::{batch, written};
use crate::share_member::{ACCEPT, GAP, REJECT, RELEASE, RENEW, ShareMember};
use crate::target::{Target, Topic, on_fake, run};

/// A member that has five records.
async fn holder(target: &Target) -> (ShareMember, Topic) {
    let (group, topic) = (target.fresh("share"), target.topic(1).await);
    let mut member = ShareMember::reading(target, &group, &topic, "m1").await;
    written(&mut target.connect().await, &topic, batch(&["a", "b", "c", "d", "e"])).await;
    assert_eq!(member.poll_until().await, [(0, 4, 1)]);
    (member, topic)
}

/// FI-08a, SH-02: accepted and rejected records and gaps never come again, released ones come with a higher count.
#[test]
fn only_released_records_come_again() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareAcknowledge 2").await;
        let (mut member, _) = holder(&target).await;

        let code = member.acknowledge(&[(0, 3, &[ACCEPT, RELEASE, REJECT, GAP]), (4, 4, &[RELEASE])]).await;
        let again = member.poll_until().await;

        assert_eq!((code, again), ("NONE", vec![(1, 1, 2), (4, 4, 2)]));
    });
}

/// FI-08a, SH-02: nobody answers twice for a record, and nobody for one that is another's.
#[test]
fn records_are_answered_for_once_and_by_their_holder() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareAcknowledge 2").await;
        let (mut member, topic) = holder(&target).await;
        let group = member.group.clone();
        let mut other = ShareMember::reading(&target, &group, &topic, "m2").await;

        let others = other.acknowledge(&[(0, 4, &[ACCEPT])]).await;
        let one = member.acknowledge(&[(1, 1, &[ACCEPT])]).await;
        let twice = member.acknowledge(&[(1, 1, &[ACCEPT])]).await;
        let too_far = member.acknowledge(&[(3, 9, &[ACCEPT])]).await;
        let beyond = member.acknowledge(&[(9, 9, &[ACCEPT])]).await;

        assert_eq!((one, others), ("NONE", "INVALID_RECORD_STATE"));
        assert_eq!((twice, too_far, beyond), ("INVALID_RECORD_STATE", "INVALID_REQUEST", "INVALID_REQUEST"));
    });
}

/// What is said of a partition in one request stands or falls together.
#[test]
fn acknowledgements_of_a_partition_are_all_or_nothing() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareAcknowledge 2").await;
        let (mut member, _) = holder(&target).await;

        let refused =
            member.acknowledge(&[(0, 0, &[ACCEPT]), (1, 1, &[RELEASE]), (2, 2, &[ACCEPT]), (9, 9, &[ACCEPT])]).await;
        let all = member.acknowledge(&[(0, 4, &[ACCEPT])]).await;

        assert_eq!((refused, all), ("INVALID_REQUEST", "NONE"));
    });
}

/// FI-12g: acknowledgements are in order, do not overlap, and say one thing of all records or one of each.
#[test]
fn acknowledgements_that_make_no_sense_are_refused() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareAcknowledge 2").await;
        let (mut member, _) = holder(&target).await;
        let plain = |request| ShareAcknowledgeRequest { is_renew_ack: false, ..request };
        let cases = [
            member.acknowledge_request(&[(0, 0, &[])]),
            member.acknowledge_request(&[(0, 0, &[5])]),
            member.acknowledge_request(&[(0, 0, &[-1])]),
            member.acknowledge_request(&[(1, 0, &[ACCEPT])]),
            member.acknowledge_request(&[(-5, -2, &[ACCEPT])]),
            member.acknowledge_request(&[(-5, 1, &[ACCEPT])]),
            member.acknowledge_request(&[(0, 4, &[ACCEPT, ACCEPT])]),
            member.acknowledge_request(&[(2, 2, &[ACCEPT]), (0, 0, &[ACCEPT])]),
            member.acknowledge_request(&[(0, 2, &[ACCEPT]), (1, 3, &[ACCEPT])]),
            plain(member.acknowledge_request(&[(0, 0, &[RENEW])])),
        ];

        for request in cases {
            let request = ShareAcknowledgeRequest { share_session_epoch: member.session_epoch, ..request };
            let shown = format!("{request:?}");
            let answer = member.say(request).await;
            let code = answer.responses[0].partitions[0].error_code;
            assert_eq!(ErrorCode(code).name(), "INVALID_REQUEST", "{shown}");
        }
        assert_eq!(member.acknowledge(&[(0, 4, &[ACCEPT])]).await, "NONE");
    });
}

/// The session has its epochs here too; it cannot be begun.
#[test]
fn acknowledgements_belong_to_a_session() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "a refusal of who does not say who it is").await;
        let (mut member, _) = holder(&target).await;
        let good = member.acknowledge_request(&[(0, 0, &[ACCEPT])]);
        let epoch = member.session_epoch;
        let cases = [
            (ShareAcknowledgeRequest { share_session_epoch: 0, ..good.clone() }, "INVALID_SHARE_SESSION_EPOCH"),
            (ShareAcknowledgeRequest { share_session_epoch: epoch + 1, ..good.clone() }, "INVALID_SHARE_SESSION_EPOCH"),
            (ShareAcknowledgeRequest { member_id: Some("m9".into()), ..good.clone() }, "SHARE_SESSION_NOT_FOUND"),
            (ShareAcknowledgeRequest { member_id: None, ..good.clone() }, "INVALID_REQUEST"),
            (ShareAcknowledgeRequest { group_id: None, ..good.clone() }, "INVALID_REQUEST"),
            (ShareAcknowledgeRequest { share_session_epoch: -1, ..good.clone() }, "NONE"),
            (good, "SHARE_SESSION_NOT_FOUND"),
        ];

        for (request, expected) in cases {
            let shown = format!("{request:?}");
            let code = member.leader.call(request, 2).await.error_code;
            assert_eq!(ErrorCode(code).name(), expected, "{shown}");
        }
    });
}

/// Of a partition that is not there, or that nobody has read here, there is nothing to say.
#[test]
fn unread_partitions_are_unknown() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareAcknowledge 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(2).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let of = |member: &ShareMember, partition_index, topic_id| {
            let mut request = member.acknowledge_request(&[(0, 0, &[ACCEPT])]);
            let batches = request.topics[0].partitions[0].acknowledgement_batches.clone();
            request.topics[0].topic_id = topic_id;
            request.topics[0].partitions =
                vec![AcknowledgePartition { partition_index, acknowledgement_batches: batches }];
            request
        };

        let unread = of(&member, 1, topic.id);
        let unread = member.say(unread).await;
        let unknown = of(&member, 7, topic.id);
        let unknown = member.say(unknown).await;
        let no_topic = member.leader.call(of(&member, 0, Uuid(*b"nobody knows it ")), 2).await;

        for answer in [unread, unknown] {
            let code = answer.responses[0].partitions[0].error_code;
            assert_eq!(ErrorCode(code).name(), "UNKNOWN_TOPIC_OR_PARTITION");
        }
        assert_eq!(ErrorCode(no_topic.error_code).name(), "UNKNOWN_SERVER_ERROR");
    });
}

/// SH-18: records that were deleted are answered for in silence; those behind them as ever.
#[test]
fn deleted_records_are_answered_for_in_silence() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareAcknowledge 2").await;
        let (mut member, topic) = holder(&target).await;
        let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 3 }];
        let topics = vec![DeleteRecordsTopic { name: topic.name.clone(), partitions }];
        let deleted = target.connect().await.call(DeleteRecordsRequest { topics, timeout_ms: 5_000 }, 2).await;
        assert_eq!(deleted.topics[0].partitions[0].error_code, 0);
        // The leader sees it as it reads.
        let request = member.request(&[]);
        member.ask(krafka_protocol::ShareFetchRequest { max_wait_ms: 300, ..request }).await;

        let below = member.acknowledge(&[(0, 2, &[ACCEPT])]).await;
        let across = member.acknowledge(&[(2, 3, &[ACCEPT])]).await;
        let behind = member.acknowledge(&[(4, 4, &[RELEASE])]).await;
        let again = member.poll_until().await;

        assert_eq!((below, across, behind), ("NONE", "NONE", "NONE"));
        assert_eq!(again, [(4, 4, 2)]);
    });
}

/// That records were deleted is only noticed when they would be handed out: until then members answer for them as
/// before.
#[test]
fn deleted_records_are_noticed_by_who_would_read_them() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareAcknowledge 2").await;
        let (mut member, topic) = holder(&target).await;
        assert_eq!(member.acknowledge(&[(1, 1, &[REJECT])]).await, "NONE");
        let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 3 }];
        let topics = vec![DeleteRecordsTopic { name: topic.name.clone(), partitions }];
        let deleted = target.connect().await.call(DeleteRecordsRequest { topics, timeout_ms: 5_000 }, 2).await;
        assert_eq!(deleted.topics[0].partitions[0].error_code, 0);

        let nothing_to_read = member.poll().await;
        let unnoticed = member.acknowledge(&[(0, 2, &[ACCEPT])]).await;
        assert_eq!(member.acknowledge(&[(0, 0, &[RELEASE])]).await, "NONE");
        let gone = member.poll().await;
        let noticed = member.acknowledge(&[(0, 2, &[ACCEPT])]).await;

        assert_eq!((nothing_to_read, gone), (vec![], vec![]));
        assert_eq!((unnoticed, noticed), ("INVALID_RECORD_STATE", "NONE"));
    });
}

/// FI-08c, SH-04: a record is its holder's for the lock's time; then another may have it, and it is late to answer.
///
/// Fake only: Kafka's least lock is 15 s.
#[test]
fn a_lock_holds_for_its_time_and_may_be_renewed() {
    on_fake(FakeCluster::builder(), async |target, _| {
        let (mut member, topic) = holder(&target).await;
        let mut other = ShareMember::reading(&target, &Str::from(&*member.group), &topic, "m2").await;

        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(member.acknowledge(&[(0, 0, &[RENEW])]).await, "NONE");
        tokio::time::sleep(Duration::from_secs(15)).await;
        let expired = other.poll().await;
        let late = member.acknowledge(&[(1, 1, &[ACCEPT])]).await;
        let in_time = member.acknowledge(&[(0, 0, &[ACCEPT])]).await;

        assert_eq!(expired, [(1, 4, 2)]);
        assert_eq!((late, in_time), ("INVALID_RECORD_STATE", "NONE"));
    });
}

/// A fetch that waits gets what comes free, without waiting for its time to be up.
///
/// Fake only: it measures time that must not pass, to the millisecond.
#[test]
fn released_records_wake_who_waits() {
    on_fake(FakeCluster::builder(), async |target, _| {
        let (mut member, topic) = holder(&target).await;
        let mut other = ShareMember::reading(&target, &Str::from(&*member.group), &topic, "m2").await;

        let request = krafka_protocol::ShareFetchRequest { max_wait_ms: 15_000, ..other.request(&[]) };
        other.leader.send(request, 2).await;
        assert!(other.leader.is_quiet().await);
        assert_eq!(member.acknowledge(&[(0, 4, &[RELEASE])]).await, "NONE");
        let answer = other.leader.receive::<krafka_protocol::ShareFetchRequest>(2).await;

        let got = answer.responses.into_iter().flat_map(|topic| topic.partitions);
        assert_eq!(got.flat_map(crate::share_member::acquired).collect::<Vec<_>>(), [(0, 4, 2)]);
    });
}
