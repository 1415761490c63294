//! Controllers that are forgotten, and the words that come with an error that nothing particular is said of.

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::api::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use krafka_protocol::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::api::unregister_controller::UnregisterControllerRequest;
use krafka_protocol::{ErrorCode, Uuid};

use crate::records::error;
use crate::target::{Wire, on_fake, run};

async fn unregister(wire: &mut Wire, controller_id: i32) -> (&'static str, Option<String>) {
    let answer = wire.call(UnregisterControllerRequest { controller_id }, 0).await;
    (error(answer.error_code), answer.error_message.map(String::from))
}

#[test]
fn unknown_and_active_controllers_stay_as_they_are() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "UnregisterController").await;
        let mut wire = target.connect().await;

        let unknown = Some("Controller ID 99 is not currently registered.".to_owned());
        assert_eq!(unregister(&mut wire, 99).await, ("CONTROLLER_ID_NOT_REGISTERED", unknown));
        // Metadata names any node as the controller, so each is tried: the others register again at once.
        let mut active = 0;
        for broker in wire.call(MetadataRequest::default(), 12).await.brokers {
            match unregister(&mut wire, broker.node_id).await {
                ("INVALID_REQUEST", words) => {
                    let expected = "Controller cannot unregister itself while it is active.";
                    assert_eq!(words.as_deref(), Some(expected));
                    active += 1;
                }
                other => assert_eq!(other, ("NONE", Some(String::new()))),
            }
        }
        assert_eq!(active, 1);
    });
}

/// Fake only: a controller that is killed takes the votes of a cluster of three down to two.
#[test]
fn controller_that_is_gone_can_be_forgotten() {
    on_fake(FakeCluster::builder().nodes(3), async |target, fake| {
        let mut wire = target.node(1).await;
        fake.crash(3);

        assert_eq!(unregister(&mut wire, 3).await.0, "NONE");
        assert_eq!(unregister(&mut wire, 3).await.0, "CONTROLLER_ID_NOT_REGISTERED");
        fake.restart(3);
        assert_eq!(unregister(&mut wire, 3).await.0, "NONE", "it has registered again");
    });
}

#[test]
fn errors_come_with_the_words_of_kafka() {
    run(async |target| {
        let mut wire = target.connect().await;
        let name = target.fresh("topic");

        let topic = CreatePartitionsTopic { name: name.clone(), count: 2, assignments: None };
        let request =
            CreatePartitionsRequest { topics: vec![topic], timeout_ms: 1_000, ..CreatePartitionsRequest::default() };
        let told = wire.call(request, 3).await.results.remove(0);
        assert_eq!(ErrorCode(told.error_code), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        assert_eq!(told.error_message, None, "not all of them do");

        let mut delete = async |topic: DeleteTopicState| {
            let request =
                DeleteTopicsRequest { topics: vec![topic], timeout_ms: 1_000, ..DeleteTopicsRequest::default() };
            let told = wire.call(request, 6).await.responses.remove(0);
            (error(told.error_code), told.error_message.map(String::from).unwrap_or_default())
        };
        let by_name = delete(DeleteTopicState { name: Some(name), ..DeleteTopicState::default() }).await;
        assert_eq!(by_name.1, "This server does not host this topic-partition.");
        let by_id = delete(DeleteTopicState { name: None, topic_id: Uuid([7; 16]) }).await;
        assert_eq!(by_id, ("UNKNOWN_TOPIC_ID", "This server does not host this topic ID.".to_owned()));
    });
}
