//! Dead-letter queues of share groups (KIP-1191): records that a group gives up go to a topic of its choice.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::Str;
use krafka_protocol::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use krafka_protocol::api::share_acknowledge::ShareAcknowledgeRequest;
use krafka_protocol::compression::Decompressor;

use crate::feature_levels::set;
use crate::records::{batch, written};
use crate::share_member::{ACCEPT, GAP, REJECT, RELEASE, ShareMember};
use crate::target::{Target, Topic, Wire, run_on_levels};
use crate::transactional::{batches, read};

const GROUP: i8 = 32;
/// What lets groups use a topic, and how a group names it.
const MAY_BE_USED: (&str, &str) = ("errors.deadletterqueue.group.enable", "true");
const QUEUE: &str = "errors.deadletterqueue.topic.name";

/// Sets something for a group.
pub(crate) async fn configure(target: &Target, group: &Str, settings: &[(&str, &str)]) {
    let config = |&(name, value): &(&str, &str)| AlterableConfig {
        name: name.into(),
        config_operation: 0,
        value: Some(value.into()),
    };
    let configs = settings.iter().map(config).collect();
    let resource = AlterConfigsResource { resource_type: GROUP, resource_name: group.clone(), configs };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let answer = target.connect().await.call(request, 1).await.responses.remove(0);
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
}

/// A record of a dead-letter queue: key, value, headers in their order.
#[derive(Debug, PartialEq)]
struct Letter {
    key: Option<String>,
    value: Option<String>,
    headers: Vec<(String, String)>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What lies in a dead-letter queue, once there are so many records.
async fn letters(wire: &mut Wire, queue: &Topic, count: usize) -> Vec<Letter> {
    for _ in 0..200 {
        let mut found = Vec::new();
        for batch in batches(&read(wire, queue, 0, false).await) {
            let records = batch.records(&mut Decompressor::default()).expect("records").to_vec().expect("records");
            for record in records {
                let headers = record.headers.iter();
                let headers = headers.map(|header| (text(header.key), text(header.value.unwrap_or_default())));
                found.push(Letter {
                    key: record.key.as_deref().map(text),
                    value: record.value.as_deref().map(text),
                    headers: headers.collect(),
                });
            }
        }
        if found.len() >= count {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no {count} letters came");
}

/// A letter about a record of partition 0 of a topic.
fn letter(group: &Str, topic: &Topic, offset: i64, count: i16, message: &str) -> Letter {
    let headers = [
        ("topic", topic.name.to_string()),
        ("partition", "0".to_owned()),
        ("offset", offset.to_string()),
        ("group", group.to_string()),
        ("delivery.count", count.to_string()),
        ("message", message.to_owned()),
    ];
    let headers = headers.map(|(name, value)| (format!("__dlq.errors.{name}"), value)).into();
    Letter { key: None, value: None, headers }
}

const REJECTED: &str = "Offset rejected by client.";
const SPENT: &str = "Offset delivery count exceeded the threshold.";

/// Where nothing must come, something that must is waited for behind it.
#[test]
fn records_that_are_given_up_leave_letters() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_4, "dead-letter queues").await;
        set(&target, "share.version", 2).await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let queue = target.topic_called("dlq.a", 1, &[MAY_BE_USED]).await;
        let settings = [(QUEUE, &*queue.name), ("share.delivery.count.limit", "2")];
        configure(&target, &group, &settings).await;
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch(&["a", "b", "c", "d", "e"])).await;
        assert_eq!(member.poll_until().await, [(0, 4, 1)]);

        let types = [ACCEPT, REJECT, GAP, RELEASE, RELEASE];
        assert_eq!(member.acknowledge(&[(0, 4, &types)]).await, "NONE");
        let rejected = letters(&mut wire, &queue, 1).await;
        assert_eq!(member.poll_until().await, [(3, 4, 2)]);
        assert_eq!(member.acknowledge(&[(3, 4, &[RELEASE])]).await, "NONE");
        let all = letters(&mut wire, &queue, 3).await;

        assert_eq!(rejected, [letter(&group, &topic, 1, 1, REJECTED)]);
        let spent = |offset| letter(&group, &topic, offset, 2, SPENT);
        assert_eq!(all[1..], [spent(3), spent(4)]);
    });
}

/// What a member had when its session ended was delivered often enough. Letters may have a record's key and value.
#[test]
fn letters_may_be_copies() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_4, "dead-letter queues").await;
        set(&target, "share.version", 2).await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let queue = target.topic_called("dlq.b", 1, &[MAY_BE_USED]).await;
        let copies = ("errors.deadletterqueue.copy.record.enable", "true");
        configure(&target, &group, &[(QUEUE, &queue.name), copies, ("share.delivery.count.limit", "2")]).await;
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch(&["a", "b", "c"])).await;
        assert_eq!(member.poll_until().await, [(0, 2, 1)]);
        assert_eq!(member.acknowledge(&[(0, 2, &[RELEASE])]).await, "NONE");
        assert_eq!(member.poll_until().await, [(0, 2, 2)]);

        let last = ShareAcknowledgeRequest {
            group_id: Some(group.clone()),
            member_id: Some(member.id.clone()),
            share_session_epoch: -1,
            ..ShareAcknowledgeRequest::default()
        };
        assert_eq!(member.leader.call(last, 2).await.error_code, 0);

        let found = letters(&mut wire, &queue, 3).await;
        let values: Vec<_> = found.iter().map(|letter| letter.value.as_deref()).collect();
        assert_eq!(values, [Some("a"), Some("b"), Some("c")]);
        let copy =
            |offset, value: &str| Letter { value: Some(value.into()), ..letter(&group, &topic, offset, 2, SPENT) };
        assert_eq!(found[1], copy(1, "b"));
    });
}

/// What a member had when its connection was lost leaves letters as well, though the node forgets the group with it.
#[test]
fn a_lost_connection_leaves_letters() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_4, "dead-letter queues").await;
        set(&target, "share.version", 2).await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let queue = target.topic_called("dlq.f", 1, &[MAY_BE_USED]).await;
        configure(&target, &group, &[(QUEUE, &queue.name), ("share.delivery.count.limit", "2")]).await;
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch(&["a", "b"])).await;
        assert_eq!(member.poll_until().await, [(0, 1, 1)]);
        assert_eq!(member.acknowledge(&[(0, 1, &[RELEASE])]).await, "NONE");
        assert_eq!(member.poll_until().await, [(0, 1, 2)]);

        member.leave().await;
        member.leader = target.connect().await;
        let found = letters(&mut wire, &queue, 2).await;

        assert_eq!(found, [0, 1].map(|offset| letter(&group, &topic, offset, 2, SPENT)));
    });
}

/// A topic is used only if it has the prefix, is there, and allows it; the record is given up all the same.
#[test]
fn queue_that_may_not_be_used_stays_empty() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_4, "dead-letter queues").await;
        set(&target, "share.version", 2).await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let unnamed = target.topic_called("another", 1, &[MAY_BE_USED]).await;
        let closed = target.topic_called("dlq.c", 1, &[]).await;
        let good = target.topic_called("dlq.d", 1, &[MAY_BE_USED]).await;
        let missing = target.fresh("dlq.missing");
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.connect().await;

        for (offset, queue) in (0..).zip([&unnamed.name, &closed.name, &missing, &good.name]) {
            configure(&target, &group, &[(QUEUE, queue)]).await;
            written(&mut wire, &topic, batch(&["v"])).await;
            assert_eq!(member.poll_until().await, [(offset, offset, 1)]);
            assert_eq!(member.acknowledge(&[(offset, offset, &[REJECT])]).await, "NONE");
        }

        assert_eq!(letters(&mut wire, &good, 1).await, [letter(&group, &topic, 3, 1, REJECTED)]);
        for empty in [&unnamed, &closed] {
            assert_eq!(letters(&mut wire, empty, 0).await, []);
        }
    });
}

/// Level 1 of the feature has share groups, and no queues for them.
#[test]
fn queues_come_with_a_level_of_their_own() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_4, "dead-letter queues").await;
        set(&target, "share.version", 1).await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let queue = target.topic_called("dlq.e", 1, &[MAY_BE_USED]).await;
        configure(&target, &group, &[(QUEUE, &queue.name)]).await;
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.connect().await;

        for (offset, level) in [(0, 2), (1, 2)] {
            written(&mut wire, &topic, batch(&["v"])).await;
            assert_eq!(member.poll_until().await, [(offset, offset, 1)]);
            assert_eq!(member.acknowledge(&[(offset, offset, &[REJECT])]).await, "NONE");
            set(&target, "share.version", level).await;
        }

        assert_eq!(letters(&mut wire, &queue, 1).await, [letter(&group, &topic, 1, 1, REJECTED)]);
    });
}
