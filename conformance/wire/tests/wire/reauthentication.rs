//! Logins that have an end (KIP-368). A real cluster must have been started with `--sasl --prop
//! connections.max.reauth.ms=2000`, and `KRAFKA_REAUTH` name its SASL_PLAINTEXT listener.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::ErrorCode;
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::api::sasl_authenticate::SaslAuthenticateRequest;
use krafka_protocol::api::sasl_handshake::SaslHandshakeRequest;
use krafka_protocol::{Bytes, Str};

use crate::logins::{handshake, plain};
use crate::target::{Target, Wire, on_fake, run_on};

const SECOND: Duration = Duration::from_secs(1);

fn run(test: impl AsyncFnOnce(Target)) {
    match Target::named_by("KRAFKA_REAUTH") {
        Some(target) => run_on(target, test),
        None => {
            let builder = FakeCluster::builder().user("alice", "alice-secret").user("bob", "bob-secret");
            on_fake(builder.connections_max_reauth(2 * SECOND), async |target, _| test(target).await);
        }
    }
}

async fn log_in(target: &Target) -> Wire {
    let mut wire = target.connect().await;
    let answer = plain(&mut wire, "alice", "alice-secret").await;
    assert_eq!((answer.error_code, answer.session_lifetime_ms), (0, 2000));
    wire
}

async fn is_served(wire: &mut Wire) -> bool {
    let request = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
    !wire.call(request, 12).await.brokers.is_empty()
}

#[test]
fn connection_is_closed_when_it_is_used_after_the_end() {
    run(async |target| {
        let mut wire = log_in(&target).await;
        assert!(is_served(&mut wire).await);

        tokio::time::sleep(2 * SECOND + SECOND / 2).await;

        wire.send(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 12).await;
        assert!(wire.is_closed().await);
    });
}

#[test]
fn login_is_renewed_before_and_after_the_end() {
    run(async |target| {
        let mut wire = log_in(&target).await;
        for wait in [SECOND, 2 * SECOND + SECOND / 2] {
            tokio::time::sleep(wait + SECOND / 10).await;
            let answer = plain(&mut wire, "alice", "alice-secret").await;
            assert_eq!((answer.error_code, answer.session_lifetime_ms), (0, 2000));
            assert!(is_served(&mut wire).await);
        }

        let again = handshake(&mut wire, "PLAIN").await;
        assert_eq!(ErrorCode(again.error_code), ErrorCode::ILLEGAL_SASL_STATE, "not twice in a second");
        assert!(is_served(&mut wire).await);
    });
}

#[test]
fn nothing_else_is_served_while_the_login_is_renewed() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "Metadata 13, which has an error of its own").await;
        let mut wire = log_in(&target).await;
        assert_eq!(handshake(&mut wire, "PLAIN").await.error_code, 0);

        let told = wire.call(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 13).await;

        assert_eq!(ErrorCode(told.error_code), ErrorCode::ILLEGAL_SASL_STATE);
        assert!(wire.is_closed().await);
    });
}

#[test]
fn who_renews_a_login_is_the_same_as_before() {
    run(async |target| {
        let mut wire = log_in(&target).await;
        let answer = plain(&mut wire, "bob", "bob-secret").await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::SASL_AUTHENTICATION_FAILED);
        let words = "Cannot change principals during re-authentication from User.alice: User.bob";
        assert_eq!(answer.error_message.as_deref(), Some(words));
        assert!(wire.is_closed().await);

        let mut wire = log_in(&target).await;
        let answer = plain(&mut wire, "alice", "guess").await;
        let words = "Authentication failed: Invalid username or password";
        assert_eq!(answer.error_message.as_deref(), Some(words));
        assert!(wire.is_closed().await);

        let mut wire = log_in(&target).await;
        assert_eq!(handshake(&mut wire, "SCRAM-SHA-256").await.error_code, 0);
        let request = SaslAuthenticateRequest { auth_bytes: Bytes::from_static(b"n,,n=alice,r=abc") };
        wire.send(request, 2).await;
        assert!(wire.is_closed().await, "the mechanism stays, too");

        let mut wire = log_in(&target).await;
        assert_eq!(handshake(&mut wire, "SCRAM-SHA-256").await.error_code, 0);
        wire.send(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 12).await;
        assert!(wire.is_closed().await, "whatever is asked next");

        let mut wire = log_in(&target).await;
        wire.send(SaslHandshakeRequest { mechanism: Str::from_static("NOPE") }, 1).await;
        assert!(wire.is_closed().await, "here nobody is told which mechanisms there are");
    });
}

#[test]
fn old_clients_are_cut_off_too() {
    run(async |target| {
        let mut wire = target.connect().await;
        assert_eq!(handshake(&mut wire, "PLAIN").await.error_code, 0);
        let request = SaslAuthenticateRequest { auth_bytes: Bytes::from_static(b"\0alice\0alice-secret") };
        assert_eq!(wire.call(request, 0).await.error_code, 0);
        tokio::time::sleep(2 * SECOND + SECOND / 2).await;
        wire.send(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 12).await;
        assert!(wire.is_closed().await);

        let mut wire = target.connect().await;
        wire.call(SaslHandshakeRequest { mechanism: Str::from_static("PLAIN") }, 0).await;
        wire.send_raw(b"\0\0\0\x13\0alice\0alice-secret").await;
        assert_eq!(wire.frame().await.as_deref(), Some(&b""[..]));
        tokio::time::sleep(2 * SECOND + SECOND / 2).await;
        wire.send(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 12).await;
        assert!(wire.is_closed().await);
    });
}
