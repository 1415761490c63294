//! Preferred replicas on the wire (KIP-392), on three nodes in the racks `rack-1` to `rack-3` whose brokers have a
//! `RackAwareReplicaSelector`.

use krafka_fake_broker::{Clock, FakeCluster, TokioClock};
use krafka_protocol::Str;
use krafka_protocol::api::fetch::{FetchRequest, PartitionData};

use crate::records::{base_offsets, batch, error, fetch_request, only, written};
use crate::target::{Target, Topic, Wire, on_fake, run_on_racks};

const VERSION: i16 = 12;

/// A fetch by a consumer in a rack.
pub(crate) fn from_rack(rack: &str, topic: &Topic, offset: i64) -> FetchRequest {
    FetchRequest { rack_id: Str::from(rack), max_wait_ms: 10_000, ..fetch_request(topic, offset) }
}

/// A topic that node 1 leads and node 2 follows, with one record in it that both have.
async fn followed(target: &Target) -> (Topic, Wire) {
    let topic = target.topic_on(&[1, 2]).await;
    let mut wire = target.node(1).await;
    written(&mut wire, &topic, batch(&["a"])).await;
    (topic, wire)
}

/// The preferred replica of an answer, and what else it has.
fn preferred(data: &PartitionData) -> (i32, Vec<i64>) {
    assert_eq!(error(data.error_code), "NONE");
    (data.preferred_read_replica, base_offsets(data))
}

/// LE-24.
#[test]
fn leader_sends_a_consumer_to_the_replica_in_its_rack() {
    run_on_racks(async |target| {
        let (topic, mut wire) = followed(&target).await;
        let data = only(wire.call(from_rack("rack-2", &topic, 0), VERSION).await);

        assert_eq!(preferred(&data), (2, vec![]), "and nothing else, though there is a record");
        assert_eq!((data.high_watermark, data.last_stable_offset, data.log_start_offset), (1, 1, 0));
        let mut follower = target.node(2).await;
        assert_eq!(preferred(&only(follower.call(from_rack("rack-2", &topic, 0), VERSION).await)), (-1, vec![0]));
    });
}

#[test]
fn leader_serves_who_is_in_its_rack_or_in_nobodys() {
    run_on_racks(async |target| {
        let (topic, mut wire) = followed(&target).await;

        for rack in ["rack-1", "rack-3", "nowhere", ""] {
            let data = only(wire.call(from_rack(rack, &topic, 0), VERSION).await);
            assert_eq!(preferred(&data), (-1, vec![0]), "{rack}");
        }
    });
}

#[test]
fn versions_before_11_know_no_racks() {
    run_on_racks(async |target| {
        let (topic, mut wire) = followed(&target).await;
        let ask = FetchRequest { rack_id: Str::default(), ..from_rack("", &topic, 0) };

        assert_eq!(preferred(&only(wire.call(ask, 10).await)), (-1, vec![0]));
        assert_eq!(preferred(&only(wire.call(from_rack("rack-2", &topic, 0), 11).await)), (2, vec![]));
    });
}

#[test]
fn waiting_for_records_is_the_followers_business() {
    run_on_racks(async |target| {
        let (topic, mut wire) = followed(&target).await;
        let began = TokioClock.now();
        let data = only(wire.call(from_rack("rack-2", &topic, 1), VERSION).await);

        assert_eq!(preferred(&data), (2, vec![]));
        assert!(TokioClock.now() - began < std::time::Duration::from_secs(5), "the leader does not wait");
    });
}

/// A session is told of the preferred replica each time.
#[test]
fn session_names_the_preferred_replica() {
    run_on_racks(async |target| {
        let (topic, mut wire) = followed(&target).await;
        let opening = FetchRequest { session_epoch: 0, ..from_rack("rack-2", &topic, 0) };
        let opened = wire.call(opening, VERSION).await;
        let session_id = opened.session_id;
        assert_eq!(preferred(&only(opened)), (2, vec![]));
        let next = FetchRequest { session_id, session_epoch: 1, topics: vec![], ..from_rack("rack-2", &topic, 0) };

        assert_eq!(preferred(&only(wire.call(next, VERSION).await)), (2, vec![]));
    });
}

/// LE-25. Who lags is no longer preferred when he is out of sync, or lacks what the consumer wants next.
///
/// Fake only: a follower that lags and is up is one whose fetches hang: Kafka's cannot be told to.
#[test]
fn replica_that_lags_is_not_preferred() {
    let builder =
        FakeCluster::builder().nodes(3).racks(["rack-1", "rack-2", "rack-3"]).rack_aware_replica_selector(true);
    on_fake(builder, async |target, fake| {
        let (topic, mut wire) = followed(&target).await;
        fake.lag(2, &topic.name, 0);
        let ask = |offset| FetchRequest { max_wait_ms: 0, ..from_rack("rack-2", &topic, offset) };
        let more = crate::records::produce_request(&topic, 1, Some(batch(&["b"])));
        wire.call(more, 9).await;

        assert_eq!(preferred(&only(wire.call(ask(1), VERSION).await)), (2, vec![]));
        assert_eq!(preferred(&only(wire.call(ask(2), VERSION).await)), (-1, vec![]), "the follower ends at 1");
        tokio::time::advance(std::time::Duration::from_secs(31)).await;
        assert_eq!(preferred(&only(wire.call(ask(0), VERSION).await)), (-1, vec![0, 1]), "it is out of sync");
    });
}

/// Of several in the rack the one that has most is preferred.
///
/// Fake only: the real clusters have one node in each rack.
#[test]
fn replica_that_has_most_is_preferred() {
    let racks = ["rack-1", "rack-2", "rack-2"];
    let builder = FakeCluster::builder().nodes(3).racks(racks).rack_aware_replica_selector(true);
    on_fake(builder, async |target, fake| {
        for (lags, has_all) in [(2, 3), (3, 2)] {
            let topic = target.topic_on(&[1, 2, 3]).await;
            let mut wire = target.node(1).await;
            written(&mut wire, &topic, batch(&["a"])).await;
            fake.lag(lags, &topic.name, 0);
            let more = crate::records::produce_request(&topic, 1, Some(batch(&["b"])));
            wire.call(more, 9).await;

            let data = only(wire.call(from_rack("rack-2", &topic, 0), VERSION).await);
            assert_eq!(preferred(&data), (has_all, vec![]), "{lags} lags");
        }
    });
}

/// The default of Kafka: no selector, and so no preferred replica.
///
/// Fake only: `replica.selector.class` is set when a broker starts.
#[test]
fn without_a_selector_the_leader_serves_all() {
    on_fake(FakeCluster::builder().nodes(3).racks(["rack-1", "rack-2", "rack-3"]), async |target, _| {
        let (topic, mut wire) = followed(&target).await;

        assert_eq!(preferred(&only(wire.call(from_rack("rack-2", &topic, 0), VERSION).await)), (-1, vec![0]));
    });
}
