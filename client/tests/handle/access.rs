//! Permissions that come and go while a client is at work.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::protocol::BrokerConnection;
use krafka::testing::FakeCluster;
use krafka::{ErrorCode, KrafkaError, Record};
use krafka_protocol::api::create_acls::{AclCreation, CreateAclsRequest};
use krafka_protocol::api::delete_acls::{DeleteAclsFilter, DeleteAclsRequest};

use super::client;

const SECOND: Duration = Duration::from_secs(1);

/// Kafka's numbers for kinds of resources.
const TOPIC: i8 = 2;
const GROUP: i8 = 3;

/// Forbids everybody everything with a resource.
async fn revoke(connection: &BrokerConnection, resource_type: i8, name: &'static str) {
    let creation = AclCreation {
        resource_type,
        resource_name: name.into(),
        resource_pattern_type: 3,
        principal: "User:*".into(),
        host: "*".into(),
        operation: 2,
        permission_type: 2,
    };
    let answer = connection.call(CreateAclsRequest { creations: vec![creation] }).await.expect("it is answered");
    assert_eq!(answer.results[0].error_code, 0, "{answer:?}");
}

/// Takes back whatever is said of a resource.
async fn restore(connection: &BrokerConnection, resource_type: i8, name: &'static str) {
    let filter = DeleteAclsFilter {
        resource_type_filter: resource_type,
        resource_name_filter: Some(name.into()),
        pattern_type_filter: 3,
        principal_filter: None,
        host_filter: None,
        operation: 1,
        permission_type: 1,
    };
    let answer = connection.call(DeleteAclsRequest { filters: vec![filter] }).await.expect("it is answered");
    assert_eq!(answer.filter_results[0].matching_acls.len(), 1, "{answer:?}");
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T, KrafkaError>, expected: ErrorCode) {
    match result {
        Err(KrafkaError::Broker { code, .. }) if code == expected => {}
        other => panic!("{other:?}, where {expected} is the answer"),
    }
}

/// AU-13: the next call says so, by Kafka's code; and the same clients work once they may again.
#[tokio::test(start_paused = true)]
async fn a_permission_that_is_revoked_is_told_and_one_that_is_restored_is_used() {
    let builder = FakeCluster::builder().nodes(1).topic("orders", 1).group_initial_rebalance_delay(Duration::ZERO);
    let fake = builder.authorizer().allow_everyone_if_no_acl_found(true).start_on_pipes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let acls = kafka.broker_connection(1).await.expect("it is up");
    let producer = kafka.producer().build().await.expect("valid");
    let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).auto_commit(false);
    let consumer = consumer.build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");
    producer.send(Record::new("orders", "0")).await.expect("it may");
    assert_eq!(consumer.recv().await.expect("it may").offset, 0);
    consumer.commit().await.expect("it may");

    revoke(&acls, TOPIC, "orders").await;
    assert_refused(producer.send(Record::new("orders", "1")).await, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    assert_refused(consumer.poll(30 * SECOND).await, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    restore(&acls, TOPIC, "orders").await;
    producer.send(Record::new("orders", "1")).await.expect("it may again");
    let records = loop {
        // What was refused in the meantime may still be told.
        match consumer.poll(30 * SECOND).await {
            Ok(records) if records.is_empty() => panic!("nothing comes any more"),
            Ok(records) => break records,
            Err(error) => assert_refused::<()>(Err(error), ErrorCode::TOPIC_AUTHORIZATION_FAILED),
        }
    };
    assert_eq!(records[0].offset, 1);

    revoke(&acls, GROUP, "g").await;
    assert_refused(consumer.commit().await, ErrorCode::GROUP_AUTHORIZATION_FAILED);
    restore(&acls, GROUP, "g").await;
    // The group was left in the meantime, or not; in the end it commits.
    consumer.subscribe(&["orders"]).await.expect("a topic's name");
    consumer.poll(30 * SECOND).await.expect("it joins again");
    consumer.commit().await.expect("it may again");
}
