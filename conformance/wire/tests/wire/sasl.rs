//! SASL PLAIN on the wire. A real broker must know alice and have a SASL_PLAINTEXT listener:
//! `KRAFKA_BOOTSTRAP_SASL=127.0.0.1:9094`, as `real-kafka start --sasl` gives.

use krafka_fake_broker::FakeCluster;
use krafka_protocol::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};
use krafka_protocol::api::sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse};
use krafka_protocol::api::sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse};
use krafka_protocol::{ApiVersionsRequest, Bytes, DescribeClusterRequest, ErrorCode, HeartbeatRequest, Str, Uuid};

use crate::target::{Target, Wire, run_on_sasl};

const RIGHT: &[u8] = b"\0alice\0alice-secret";

fn run(test: impl AsyncFnOnce(Target)) {
    run_on_sasl(FakeCluster::builder().sasl_plain("alice", "alice-secret"), test);
}

async fn handshake(wire: &mut Wire, mechanism: &'static str, version: i16) -> SaslHandshakeResponse {
    wire.call(SaslHandshakeRequest { mechanism: Str::from_static(mechanism) }, version).await
}

async fn authenticate(wire: &mut Wire, token: &'static [u8], version: i16) -> SaslAuthenticateResponse {
    wire.call(SaslAuthenticateRequest { auth_bytes: Bytes::from_static(token) }, version).await
}

fn metadata() -> MetadataRequest {
    MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }
}

#[test]
fn right_password_lets_in() {
    run(async |target| {
        let mut wire = target.connect().await;
        wire.call(ApiVersionsRequest::default(), 0).await;

        let agreed = handshake(&mut wire, "PLAIN", 1).await;
        assert_eq!(agreed.error_code, 0);
        assert!(agreed.mechanisms.contains(&Str::from("PLAIN")));
        let answer = authenticate(&mut wire, RIGHT, 2).await;

        assert_eq!((answer.error_code, answer.error_message.as_deref()), (0, Some("")));
        assert_eq!((answer.auth_bytes.len(), answer.session_lifetime_ms), (0, 0));
        assert!(!wire.call(metadata(), 12).await.brokers.is_empty());
    });
}

#[test]
fn wrong_password_is_told_and_the_connection_closed() {
    run(async |target| {
        for version in [0, 2] {
            let mut wire = target.connect().await;
            handshake(&mut wire, "PLAIN", 1).await;

            let answer = authenticate(&mut wire, b"\0alice\0guess", version).await;

            assert_eq!(ErrorCode(answer.error_code), ErrorCode::SASL_AUTHENTICATION_FAILED);
            let words = "Authentication failed: Invalid username or password";
            assert_eq!(answer.error_message.as_deref(), Some(words));
            assert!(wire.is_closed().await);
        }
    });
}

#[test]
fn unsupported_mechanism_is_answered_with_those_there_are() {
    run(async |target| {
        let mut wire = target.connect().await;

        let answer = handshake(&mut wire, "NOPE", 1).await;

        assert_eq!(ErrorCode(answer.error_code), ErrorCode::UNSUPPORTED_SASL_MECHANISM);
        assert!(answer.mechanisms.contains(&Str::from("PLAIN")));
        assert!(wire.is_closed().await);
    });
}

#[test]
fn nothing_is_answered_before_the_handshake() {
    run(async |target| {
        let mut wire = target.connect().await;
        wire.send(metadata(), 12).await;
        assert!(wire.is_closed().await);

        let mut wire = target.connect().await;
        wire.send(SaslAuthenticateRequest { auth_bytes: Bytes::from_static(RIGHT) }, 2).await;
        assert!(wire.is_closed().await);

        let mut wire = target.connect().await;
        wire.call(ApiVersionsRequest::default(), 0).await;
        wire.send(ApiVersionsRequest::default(), 0).await;
        assert!(wire.is_closed().await, "once is enough");
    });
}

#[test]
fn anything_but_the_token_is_illegal_after_the_handshake() {
    run(async |target| {
        let mut wire = target.connect().await;
        handshake(&mut wire, "PLAIN", 1).await;
        let again = handshake(&mut wire, "PLAIN", 1).await;
        assert_eq!((ErrorCode(again.error_code), again.mechanisms.len()), (ErrorCode::ILLEGAL_SASL_STATE, 0));
        assert!(wire.is_closed().await);

        let mut wire = target.connect().await;
        handshake(&mut wire, "PLAIN", 1).await;
        let answer = wire.call(HeartbeatRequest::default(), 0).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::ILLEGAL_SASL_STATE);
        assert!(wire.is_closed().await);

        let mut wire = target.connect().await;
        handshake(&mut wire, "PLAIN", 1).await;
        let answer = wire.call(ApiVersionsRequest::default(), 0).await;
        assert_eq!((ErrorCode(answer.error_code), answer.api_keys.len()), (ErrorCode::ILLEGAL_SASL_STATE, 0));
        assert!(wire.is_closed().await);
    });
}

/// Who has not logged in learns nothing of the cluster by asking in the middle of it.
#[test]
fn nothing_is_told_during_the_login() {
    run(async |target| {
        let unexpected = |name: &str| format!("Unexpected Kafka request of type {name} during SASL authentication.");
        let illegal = ErrorCode::ILLEGAL_SASL_STATE;
        let (topic, nowhere) = (Uuid([7; 16]), target.fresh("nowhere"));
        let named = MetadataRequestTopic { topic_id: Uuid::ZERO, name: Some(nowhere.clone()) };
        let by_id = MetadataRequestTopic { topic_id: topic, name: None };
        for (version, topics) in [(12, None), (12, Some(vec![named.clone(), by_id])), (1, Some(vec![named]))] {
            let mut wire = target.connect().await;
            handshake(&mut wire, "PLAIN", 1).await;
            let asked = topics.iter().flatten().map(|topic| topic.name.clone().unwrap_or_default());
            let asked: Vec<Str> = asked.collect();
            let told = wire.call(MetadataRequest { topics, ..MetadataRequest::default() }, version).await;
            assert_eq!((told.brokers.len(), told.cluster_id, told.controller_id), (0, None, -1));
            let codes: Vec<_> = told.topics.iter().map(|topic| ErrorCode(topic.error_code)).collect();
            assert_eq!(codes, vec![illegal; asked.len()]);
            let names: Vec<_> = told.topics.into_iter().map(|topic| topic.name.unwrap_or_default()).collect();
            assert_eq!(names, asked);
            assert!(wire.is_closed().await);
        }

        let mut wire = target.connect().await;
        handshake(&mut wire, "PLAIN", 1).await;
        let told = wire.call(DescribeClusterRequest::default(), 0).await;
        assert_eq!(
            (ErrorCode(told.error_code), told.error_message),
            (illegal, Some(unexpected("DESCRIBE_CLUSTER").into()))
        );
        assert_eq!((told.brokers.len(), &*told.cluster_id, told.controller_id), (0, "", -1));
        assert!(wire.is_closed().await);

        let mut wire = target.connect().await;
        handshake(&mut wire, "PLAIN", 1).await;
        let asked = CreatableTopic { name: nowhere, num_partitions: 1, replication_factor: 1, ..Default::default() };
        let request = CreateTopicsRequest { topics: vec![asked], timeout_ms: 5_000, ..CreateTopicsRequest::default() };
        let told = wire.call(request, 5).await.topics.remove(0);
        assert_eq!(
            (ErrorCode(told.error_code), told.error_message),
            (illegal, Some(unexpected("CREATE_TOPICS").into()))
        );
        assert!(wire.is_closed().await);
    });
}

#[test]
fn sasl_is_over_when_it_is_done() {
    run(async |target| {
        let mut wire = target.connect().await;
        handshake(&mut wire, "PLAIN", 1).await;
        authenticate(&mut wire, RIGHT, 2).await;

        let handshake = handshake(&mut wire, "PLAIN", 1).await;
        let token = authenticate(&mut wire, RIGHT, 2).await;

        assert_eq!(ErrorCode(handshake.error_code), ErrorCode::ILLEGAL_SASL_STATE);
        assert_eq!(ErrorCode(token.error_code), ErrorCode::ILLEGAL_SASL_STATE);
        let words = "SaslAuthenticate request received after successful authentication";
        assert_eq!(token.error_message.as_deref(), Some(words));
        assert!(!wire.call(metadata(), 12).await.brokers.is_empty(), "still open");
    });
}

#[test]
fn bare_tokens_follow_the_oldest_handshake() {
    run(async |target| {
        let mut wire = target.connect().await;
        handshake(&mut wire, "PLAIN", 0).await;
        wire.send_raw(&[&[0, 0, 0, RIGHT.len() as u8], RIGHT].concat()).await;
        assert_eq!(wire.frame().await.as_deref(), Some(&b""[..]));
        assert!(!wire.call(metadata(), 12).await.brokers.is_empty());

        let mut wire = target.connect().await;
        handshake(&mut wire, "PLAIN", 0).await;
        wire.send_raw(b"\0\0\0\x0d\0alice\0guess!").await;
        assert!(wire.is_closed().await);
    });
}

#[test]
fn listener_without_sasl_wants_none() {
    crate::target::run(async |target| {
        let mut wire = target.connect().await;

        let answer = handshake(&mut wire, "PLAIN", 1).await;

        assert_eq!((ErrorCode(answer.error_code), answer.mechanisms.len()), (ErrorCode::ILLEGAL_SASL_STATE, 0));
        assert!(!wire.call(metadata(), 12).await.brokers.is_empty(), "still open");
    });
}
