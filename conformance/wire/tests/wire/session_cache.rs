//! The cache of fetch sessions (KIP-227): who gets a slot, and who loses it. On the fake, because a cache that others
//! use as well has no rules to see. Real brokers of 4.4.0 that nobody else used, with 23 and with 7 slots, answered the
//! first two tests the same.

use std::time::Duration;

use krafka_fake_broker::FakeCluster;
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest};

use crate::records::{error, fetch_request};
use crate::target::{Topic, Wire, on_fake};

const VERSION: i16 = 13;

/// A request for a session over so many partitions.
fn opening(topic: &Topic, partitions: i32) -> FetchRequest {
    let mut request = FetchRequest { session_epoch: 0, ..fetch_request(topic, 0) };
    let first = request.topics[0].partitions[0].clone();
    let partition = |partition| FetchPartition { partition, ..first.clone() };
    request.topics[0].partitions = (0..partitions).map(partition).collect();
    request
}

async fn open(wire: &mut Wire, topic: &Topic, partitions: i32) -> i32 {
    wire.call(opening(topic, partitions), VERSION).await.session_id
}

/// The next request of a session: the error that it gets.
async fn next(wire: &mut Wire, topic: &Topic, session_id: i32, session_epoch: i32) -> &'static str {
    let request = FetchRequest { session_id, session_epoch, topics: vec![], ..fetch_request(topic, 0) };
    error(wire.call(request, VERSION).await.error_code)
}

/// Fake only: `max.incremental.fetch.session.cache.slots` is set when a broker starts; sessions get old in minutes.
#[test]
fn slots_are_shared_out_to_eight_parts_that_take_turns() {
    on_fake(FakeCluster::builder().fetch_session_slots(23), async |target, _| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let mut sessions = Vec::new();
        for _ in 0..24 {
            sessions.push(open(&mut wire, &topic, 1).await);
        }

        assert!(sessions[..16].iter().all(|id| *id > 0), "{sessions:?}");
        assert_eq!(sessions[16..], [0; 8], "two for each part, the rest of the slots are nobody's");
        let parts: Vec<_> = sessions[..16].iter().map(|id| id / (i32::MAX / 8)).collect();
        assert_eq!(parts, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
    });
}

/// Fake only: `max.incremental.fetch.session.cache.slots` is set when a broker starts; sessions get old in minutes.
#[test]
fn fewer_slots_than_parts_are_none() {
    on_fake(FakeCluster::builder().fetch_session_slots(7), async |target, _| {
        let topic = target.topic(1).await;

        assert_eq!(open(&mut target.connect().await, &topic, 1).await, 0);
    });
}

/// FI-02d, FE-03.
///
/// Fake only: `max.incremental.fetch.session.cache.slots` is set when a broker starts; sessions get old in minutes.
#[test]
fn session_that_nobody_uses_gives_way() {
    on_fake(FakeCluster::builder().fetch_session_slots(8), async |target, _| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let mut sessions = Vec::new();
        for _ in 0..8 {
            sessions.push(open(&mut wire, &topic, 1).await);
        }
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(next(&mut wire, &topic, sessions[1], 1).await, "NONE");
        tokio::time::advance(Duration::from_secs(21)).await;

        assert!(open(&mut wire, &topic, 1).await > 0, "the first part's was idle for more than two minutes");
        assert_eq!(next(&mut wire, &topic, sessions[0], 1).await, "FETCH_SESSION_ID_NOT_FOUND");
        assert_eq!(open(&mut wire, &topic, 1).await, 0, "the second part's was used");
        assert_eq!(next(&mut wire, &topic, sessions[1], 2).await, "NONE");
    });
}

/// Fake only: `max.incremental.fetch.session.cache.slots` is set when a broker starts; sessions get old in minutes.
#[test]
fn larger_session_takes_the_slot_of_an_old_smaller_one() {
    on_fake(FakeCluster::builder().fetch_session_slots(8), async |target, _| {
        let topic = target.topic(3).await;
        let mut wire = target.connect().await;
        let mut sessions = Vec::new();
        for _ in 0..8 {
            sessions.push(open(&mut wire, &topic, 2).await);
        }
        tokio::time::advance(Duration::from_secs(110)).await;
        for session in &sessions[..3] {
            assert_eq!(next(&mut wire, &topic, *session, 1).await, "NONE");
        }
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(next(&mut wire, &topic, sessions[1], 2).await, "NONE");
        assert_eq!(next(&mut wire, &topic, sessions[2], 2).await, "NONE");

        assert_eq!(open(&mut wire, &topic, 3).await, 0, "the first was not old yet when it was used last");
        assert!(open(&mut wire, &topic, 3).await > 0, "the second was");
        assert_eq!(next(&mut wire, &topic, sessions[1], 3).await, "FETCH_SESSION_ID_NOT_FOUND");
        assert_eq!(open(&mut wire, &topic, 2).await, 0, "the third is as large");
        assert_eq!(next(&mut wire, &topic, sessions[0], 2).await, "NONE");
    });
}
