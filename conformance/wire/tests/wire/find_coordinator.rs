//! How coordinators come to be: by being asked for.

use std::time::Duration;

use krafka_protocol::ErrorCode;
use krafka_protocol::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use krafka_protocol::api::find_coordinator::{Coordinator, FindCoordinatorRequest};
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};

use crate::target::{Wire, run_on_levels};

const TOPIC: &str = "__transaction_state";

/// Takes the topic of the coordinators away, if it is there, as on a cluster where nobody has asked for one yet.
async fn forget_coordinators(wire: &mut Wire) {
    let topics = vec![DeleteTopicState { name: Some(TOPIC.into()), ..DeleteTopicState::default() }];
    wire.call(DeleteTopicsRequest { topics, timeout_ms: 5_000, ..DeleteTopicsRequest::default() }, 6).await;
    let topic = MetadataRequestTopic { name: Some(TOPIC.into()), ..MetadataRequestTopic::default() };
    let asked = MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() };
    while wire.call(asked.clone(), 12).await.topics[0].error_code == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn find(wire: &mut Wire) -> Vec<Coordinator> {
    let coordinator_keys = vec!["one".into(), "two".into()];
    let request = FindCoordinatorRequest { key_type: 1, coordinator_keys, ..FindCoordinatorRequest::default() };
    wire.call(request, 4).await.coordinators
}

/// Who asks first hears that there is no coordinator, for none of the keys, though the request has brought them about:
/// a client has to ask again.
#[test]
fn who_asks_first_has_to_ask_again() {
    run_on_levels(async |target| {
        let mut wire = target.connect().await;
        forget_coordinators(&mut wire).await;

        for found in find(&mut wire).await {
            assert_eq!(ErrorCode(found.error_code), ErrorCode::COORDINATOR_NOT_AVAILABLE);
            assert_eq!((found.node_id, &*found.host, found.port), (-1, "", -1));
            assert_eq!(found.error_message.as_deref(), Some(""));
        }
        loop {
            let found = find(&mut wire).await;
            if found.iter().all(|found| found.error_code == 0) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}
