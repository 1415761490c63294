//! What is left of leaders that were, on three nodes: a partition that node 1 led, then node 2, then node 1 again, each
//! with an epoch of its own. Elections of preferred leaders, which any cluster can be asked for.

use krafka_protocol::ApiKey;
use krafka_protocol::api::fetch::{FetchRequest, PartitionData};
use krafka_protocol::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
};
use krafka_protocol::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use krafka_protocol::records::Batches;

use crate::admin::{elect, reassign, replicas_are};
use crate::records::{base_offsets, batch, batch_at, error, fetch_request, only, produce_request, time, written};
use crate::target::{Target, Topic, Wire, run_on_three};

/// A topic that node 1 leads and node 2 follows.
async fn followed(target: &Target) -> Topic {
    target.topic_on(&[1, 2]).await
}

/// Makes a node the leader, with the other one as its follower, and waits until both know it.
pub(crate) async fn lead(target: &Target, topic: &Topic, node: i32) {
    let replicas = if node == 1 { [1, 2] } else { [2, 1] };
    let mut wire = target.node(node).await;
    assert_eq!(reassign(&mut wire, &topic.name, 0, Some(&replicas)).await.0, "NONE");
    let (_, before) = replicas_are(&mut wire, &topic.name, &replicas).await;
    while elect(&mut wire, 0, &topic.name, 0).await != ("NONE", "NONE") {}
    for known_by in [1, 2] {
        let mut wire = target.node(known_by).await;
        while replicas_are(&mut wire, &topic.name, &replicas).await != (node, before + 1) {}
    }
    // Who leads knows it a little before it does.
    while offset(&mut wire, topic, -1, -1).await.error_code != 0 {}
}

/// The topic after three leaders: two records of epoch 0, one of epoch 1, one of epoch 2.
async fn led_in_turn(target: &Target) -> Topic {
    let (topic, start) = (followed(target).await, time());
    written(&mut target.node(1).await, &topic, batch_at(start, &["a", "b"])).await;
    lead(target, &topic, 2).await;
    written(&mut target.node(2).await, &topic, batch_at(start + 10, &["c"])).await;
    lead(target, &topic, 1).await;
    written(&mut target.node(1).await, &topic, batch_at(start + 20, &["d"])).await;
    topic
}

/// The answer of ListOffsets to who believes in a leader epoch.
async fn offset(wire: &mut Wire, topic: &Topic, timestamp: i64, believed: i32) -> ListOffsetsPartitionResponse {
    let partition = ListOffsetsPartition { timestamp, current_leader_epoch: believed, ..Default::default() };
    let asked = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![partition] };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![asked], ..ListOffsetsRequest::default() };
    wire.call(request, 7).await.topics.remove(0).partitions.remove(0)
}

/// A fetch of who believes in a leader epoch, and has read records of an epoch last.
fn fetch(topic: &Topic, offset: i64, believed: i32, last: i32) -> FetchRequest {
    let mut request = fetch_request(topic, offset);
    request.topics[0].partitions[0].current_leader_epoch = believed;
    request.topics[0].partitions[0].last_fetched_epoch = last;
    request
}

/// The hint of an answer: its error, the leader and its epoch.
pub(crate) fn hint(data: &PartitionData) -> (&'static str, i32, i32) {
    (error(data.error_code), data.current_leader.leader_id, data.current_leader.leader_epoch)
}

/// FI-04a, FI-04c, LE-08, LE-15.
#[test]
fn each_epoch_ends_where_the_next_began() {
    run_on_three(async |target| {
        let topic = led_in_turn(&target).await;
        let mut wire = target.node(1).await;
        for (believed, asked, expected) in [
            (-1, 0, ("NONE", 0, 2)),
            (2, 0, ("NONE", 0, 2)),
            (2, 1, ("NONE", 1, 3)),
            (2, 2, ("NONE", 2, 4)),
            (2, 3, ("NONE", -1, -1)),
            (2, -1, ("NONE", -1, -1)),
            (1, 0, ("FENCED_LEADER_EPOCH", -1, -1)),
            (3, 0, ("UNKNOWN_LEADER_EPOCH", -1, -1)),
        ] {
            let partition =
                OffsetForLeaderPartition { partition: 0, current_leader_epoch: believed, leader_epoch: asked };
            let named = OffsetForLeaderTopic { topic: topic.name.clone(), partitions: vec![partition] };
            let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![named] };
            let answer = wire.call(request, 4).await.topics.remove(0).partitions.remove(0);

            let told = (error(answer.error_code), answer.leader_epoch, answer.end_offset);
            assert_eq!(told, expected, "epoch {asked}, believing in {believed}");
        }
    });
}

/// LE-18, KIP-595: who has read an epoch further than it goes is told where it ends.
#[test]
fn fetch_tells_where_an_epoch_diverges() {
    run_on_three(async |target| {
        let topic = led_in_turn(&target).await;
        let mut wire = target.node(1).await;
        for (offset, last, expected) in [
            (2, 0, None),
            (3, 0, Some((0, 2))),
            (4, 0, Some((0, 2))),
            (3, 1, None),
            (4, 1, Some((1, 3))),
            (4, 2, None),
            (9, 2, Some((2, 4))),
        ] {
            let data = only(wire.call(fetch(&topic, offset, 2, last), 12).await);

            assert_eq!(error(data.error_code), "NONE", "{last} at {offset}");
            let diverging = (data.diverging_epoch.epoch, data.diverging_epoch.end_offset);
            assert_eq!(diverging, expected.unwrap_or((-1, -1)), "{last} at {offset}");
            assert_eq!(base_offsets(&data).is_empty(), expected.is_some() || offset == 4, "{last} at {offset}");
        }
    });
}

/// LE-06, LE-07, LE-17.
#[test]
fn beliefs_in_other_epochs_are_refused() {
    run_on_three(async |target| {
        let topic = led_in_turn(&target).await;
        let mut wire = target.node(1).await;
        for (believed, expected) in [
            (-1, "NONE"),
            (0, "FENCED_LEADER_EPOCH"),
            (1, "FENCED_LEADER_EPOCH"),
            (2, "NONE"),
            (3, "UNKNOWN_LEADER_EPOCH"),
        ] {
            let data = only(wire.call(fetch(&topic, 0, believed, -1), 12).await);
            assert_eq!(error(data.error_code), expected, "Fetch, {believed}");
            for timestamp in [-1, -2, 0] {
                let answer = offset(&mut wire, &topic, timestamp, believed).await;
                assert_eq!(error(answer.error_code), expected, "ListOffsets, {believed}");
            }
        }
    });
}

/// What was read and found has the epoch in which it was written.
#[test]
fn records_and_offsets_have_their_epochs() {
    run_on_three(async |target| {
        let topic = led_in_turn(&target).await;
        let mut wire = target.node(1).await;

        let records = only(wire.call(fetch(&topic, 0, -1, -1), 12).await).records.expect("records");
        let epochs: Vec<_> =
            Batches::new(records).map(|b| b.expect("a batch").header().partition_leader_epoch).collect();
        assert_eq!(epochs, [0, 1, 2]);
        for (timestamp, expected) in [(-2, (0, 0)), (0, (0, 0)), (-1, (4, 2)), (-3, (3, 2))] {
            let found = offset(&mut wire, &topic, timestamp, -1).await;
            assert_eq!((found.offset, found.leader_epoch), expected, "{timestamp}");
        }
    });
}

/// LE-01, LE-02, LE-05, KIP-951: who led before names who leads now, in the versions that can.
#[test]
fn former_leader_names_the_next() {
    run_on_three(async |target| {
        let topic = followed(&target).await;
        lead(&target, &topic, 2).await;
        let mut wire = target.node(1).await;

        for version in target.spoken(ApiKey::Produce, 9..=13).await {
            let answer = wire.call(produce_request(&topic, -1, Some(batch(&["b"]))), version).await;
            let refused = &answer.responses[0].partition_responses[0];
            assert_eq!(error(refused.error_code), "NOT_LEADER_OR_FOLLOWER");
            let told = (refused.current_leader.leader_id, refused.current_leader.leader_epoch);
            assert_eq!(told, if version >= 10 { (2, 1) } else { (-1, -1) }, "Produce {version}");
        }
        for version in target.spoken(ApiKey::Fetch, 9..=18).await {
            let fenced = only(wire.call(fetch(&topic, 0, 0, -1), version).await);
            let expected = if version >= 16 { (2, 1) } else { (-1, -1) };
            assert_eq!(hint(&fenced), ("FENCED_LEADER_EPOCH", expected.0, expected.1), "Fetch {version}");
        }
        let ahead = only(wire.call(fetch(&topic, 0, 5, -1), 16).await);
        assert_eq!(hint(&ahead), ("UNKNOWN_LEADER_EPOCH", -1, -1), "who is ahead has nothing to learn");
    });
}

/// FI-02e: a session remembers in which epoch its reader believes.
#[test]
fn session_is_fenced_as_its_partitions_are() {
    run_on_three(async |target| {
        let topic = followed(&target).await;
        let mut wire = target.node(1).await;
        let opening = FetchRequest { session_epoch: 0, ..fetch(&topic, 0, 0, -1) };
        let session_id = wire.call(opening, 13).await.session_id;
        let go_on =
            |session_epoch, topics| FetchRequest { session_id, session_epoch, topics, ..fetch(&topic, 0, 0, -1) };
        let quiet = wire.call(go_on(1, vec![]), 13).await;
        assert_eq!((error(quiet.error_code), quiet.responses), ("NONE", vec![]));
        lead(&target, &topic, 2).await;

        // What it knows of the leader, a real node may not have told its replica yet.
        let mut next = 2;
        let fenced = loop {
            let answer = wire.call(go_on(next, vec![]), 13).await;
            next += 1;
            if !answer.responses.is_empty() {
                break answer;
            }
        };
        assert_eq!(error(only(fenced).error_code), "FENCED_LEADER_EPOCH");
        let healed = wire.call(go_on(next, fetch(&topic, 0, 1, -1).topics), 13).await;
        assert_eq!(error(only(healed).error_code), "NONE", "it is a follower now");
    });
}

/// LE-28. A node without a replica has no epoch to compare with: it does not lead, whatever one believes.
#[test]
fn who_has_no_replica_compares_no_epochs() {
    run_on_three(async |target| {
        let topic = target.topic_on(&[2, 3]).await;
        let mut wire = target.node(1).await;
        for believed in [-1, 0, 5] {
            let told = only(wire.call(fetch(&topic, 0, believed, -1), 12).await);
            assert_eq!(error(told.error_code), "NOT_LEADER_OR_FOLLOWER", "{believed}");
            let told = offset(&mut wire, &topic, -1, believed).await;
            assert_eq!(error(told.error_code), "NOT_LEADER_OR_FOLLOWER", "{believed}");
            let partition = OffsetForLeaderPartition { current_leader_epoch: believed, ..Default::default() };
            let topics = vec![OffsetForLeaderTopic { topic: topic.name.clone(), partitions: vec![partition] }];
            let told = wire.call(OffsetForLeaderEpochRequest { replica_id: -1, topics }, 4).await.topics.remove(0);
            assert_eq!(error(told.partitions[0].error_code), "NOT_LEADER_OR_FOLLOWER", "{believed}");
        }
    });
}
