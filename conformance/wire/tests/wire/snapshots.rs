//! A running cluster goes back to what it was, and transactions that no client has. Only the fake can.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, GroupState, NewRecord, TransactionState};
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::{ApiKey, ErrorCode};

use crate::leaders::{orders, three};
use crate::member::Member;
use crate::records::{base_offsets, batch, fetch_request, only, written};
use crate::target::on_fake;
use crate::transactional::{Producer, all_values, committed_values};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn cluster_goes_back_to_what_it_was() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        fake.commit("g", "orders", 0, 1, "");
        let then = fake.snapshot();

        written(&mut wire, &topic, batch(&["b"])).await;
        fake.commit("g", "orders", 0, 2, "");
        fake.crash(2);
        fake.append("orders", 0, None, Some(b"c"));
        fake.restore(&then);

        assert!(wire.is_closed().await, "its node was stopped");
        let mut wire = target.node(1).await;
        let data = only(wire.call(fetch_request(&topic, 0), 12).await);
        assert_eq!((base_offsets(&data), data.high_watermark), (vec![0], 1));
        assert_eq!((fake.live_nodes(), fake.committed("g")[&("orders".into(), 0)]), (vec![1, 2, 3], 1));
        written(&mut wire, &topic, batch(&["d"])).await;
        assert_eq!(fake.records("orders").len(), 2);
        fake.restore(&then);
        assert_eq!(fake.records("orders").len(), 1, "as often as one likes");
    });
}

/// The test's own things are no part of the cluster.
#[test]
fn rules_and_history_outlive_a_restore() {
    on_fake(three(), async |target, fake| {
        let then = fake.snapshot();
        let seen = fake.when(ApiKey::Metadata).observe();
        let delayed = fake.when(ApiKey::Metadata).delay(SECOND);
        let mut wire = target.node(1).await;
        wire.send(MetadataRequest::default(), 12).await;
        tokio::time::sleep(SECOND / 2).await;

        fake.restore(&then);
        assert!(wire.is_closed().await);
        tokio::time::sleep(SECOND).await;

        target.node(1).await.call(MetadataRequest::default(), 12).await;
        assert_eq!((seen.hits(), delayed.hits(), fake.history().count(ApiKey::Metadata)), (2, 1, 2));
        let ids: Vec<_> = fake.history().iter().map(|event| event.id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "no id is used twice");
    });
}

/// A member that was there finds its group again and goes on, however long ago that was.
#[test]
fn members_of_then_have_their_whole_session_timeouts() {
    on_fake(FakeCluster::builder().nodes(3).topic("orders", 1), async |target, fake| {
        let mut member = Member::new(&target, &"g".into()).await;
        member.join().await;
        member.sync(&[]).await;
        let stable = fake.wait_for("member", |fake| fake.group("g").filter(|group| group.members.len() == 1)).await;
        let then = fake.snapshot();
        tokio::time::sleep(3_600 * SECOND).await;

        fake.restore(&then);

        let group = fake.group("g").expect("it is back");
        assert_eq!((group.members.len(), group.state == stable.state), (1, true));
        tokio::time::sleep(600 * SECOND).await;
        let state = fake.group("g").map(|group| group.state);
        assert!(state.is_none_or(|state| state == GroupState::Empty), "who stays silent is thrown out: {state:?}");
    });
}

#[test]
fn open_transaction_comes_back_and_can_be_ended() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        fake.begin_transaction("t", 900 * SECOND).expect("an identity");
        assert_eq!(fake.append_to_transaction("t", "orders", 0, &NewRecord::new().value("a")), Ok(0));
        assert_eq!(fake.append_to_transaction("t", "orders", 0, &NewRecord::new().value("b")), Ok(1));
        let then = fake.snapshot();
        fake.end_transaction("t", false).expect("it is open");

        fake.restore(&then);

        assert_eq!(fake.transaction("t").expect("it is back").state, TransactionState::Ongoing);
        let mut wire = target.node(1).await;
        assert!(committed_values(&mut wire, &topic).await.is_empty());
        fake.end_transaction("t", true).expect("it is open again");
        assert_eq!(committed_values(&mut wire, &topic).await, ["a", "b"]);
        assert_eq!(fake.end_transaction("t", false), Err(ErrorCode::INVALID_TXN_STATE));
    });
}

/// A test ends what a client began, in its name; and a new beginning fences the client.
#[test]
fn clients_transaction_is_ended_from_outside() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut producer = Producer::new(&target).await;
        producer.begin().await;
        let name = producer.name.to_string();
        assert_eq!(producer.add("orders", &[0]).await, "NONE");
        assert_eq!(producer.send(11, &topic, 0, &["a"]).await, Ok(0));
        assert_eq!(fake.append_to_transaction(&name, "orders", 0, &NewRecord::new().value("b")), Ok(1));

        fake.begin_transaction(&name, 60 * SECOND).expect("an identity");

        assert_eq!(producer.ends(4, true).await, "PRODUCER_FENCED");
        let mut wire = target.node(1).await;
        assert!(committed_values(&mut wire, &topic).await.is_empty(), "it was aborted");
        assert_eq!(all_values(&mut wire, &topic).await, ["a", "b"]);
    });
}
