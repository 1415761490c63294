//! Authentication in trouble: slow, silent, shouting or broken brokers.

use std::time::Duration;

use krafka::protocol::{ApiKey, DescribeClusterRequest};
use krafka::testing::{FakeCluster, FakeClusterBuilder};
use krafka::{ErrorCode, Kafka, KrafkaError};
use krafka_protocol::{AnyResponse, Bytes};

use super::{assert_says, client};

const SECOND: Duration = Duration::from_secs(1);

fn locked(nodes: i32) -> FakeClusterBuilder {
    FakeCluster::builder().nodes(nodes).user("alice", "hunter2")
}

async fn alice(fake: &FakeCluster) -> Kafka {
    client(fake).sasl_plain("alice", "hunter2").connect().await.expect("the password is right")
}

/// AU-04: brokers hold back the answer to a failed login, so that guessing is slow.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_comes_late_is_still_a_refusal() {
    let fake = locked(1).failed_authentication_delay(5 * SECOND).start_on_pipes();

    let error = client(&fake).sasl_plain("alice", "wrong").connect().await.expect_err("the password is wrong");

    assert!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
}

/// AU-06: whatever is asked for meanwhile, a broker hears nothing of it before it knows who asks.
#[tokio::test(start_paused = true)]
async fn nothing_but_the_login_is_said_before_its_end() {
    let fake = locked(1).start_on_pipes();
    fake.when(ApiKey::SaslAuthenticate).forever().delay(SECOND);
    let kafka = alice(&fake).await;

    let calls: Vec<_> = (0..20)
        .map(|_| {
            let admin = kafka.admin();
            tokio::spawn(async move { admin.describe_cluster().await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").expect("it is answered");
    }

    let history = fake.history();
    let connections: std::collections::BTreeSet<_> = history.iter().map(|event| event.connection).collect();
    for connection in connections {
        let keys: Vec<_> = history.on_connection(connection).map(|event| event.key).collect();
        let login = [ApiKey::ApiVersions, ApiKey::SaslHandshake, ApiKey::SaslAuthenticate];
        assert_eq!(keys[..3], login);
        assert!(!keys[3..].iter().any(|key| login.contains(key)), "{keys:?}");
    }
}

/// AU-12.
#[tokio::test(start_paused = true)]
async fn a_broker_that_refuses_does_not_keep_the_others_from_serving() {
    let fake = locked(3).start_on_pipes();
    let kafka = alice(&fake).await;
    fake.when(ApiKey::SaslAuthenticate).on(2).forever().edit(|response| {
        if let AnyResponse::SaslAuthenticate(answer) = response {
            answer.error_code = ErrorCode::SASL_AUTHENTICATION_FAILED.0;
        }
    });

    for node in [1, 2, 3] {
        let connection = kafka.broker_connection(node).await;
        let answer = match connection {
            Ok(connection) => connection.call(DescribeClusterRequest::default()).await.map(drop),
            Err(error) => Err(error),
        };
        match answer {
            Ok(()) => assert_ne!(node, 2),
            Err(error) => {
                assert_eq!(node, 2, "{error}");
                assert!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
            }
        }
    }
}

/// AU-14: brokers before Kafka 1.0, and some proxies, close the connection instead of refusing.
#[tokio::test(start_paused = true)]
async fn a_broker_that_hangs_up_is_suspected_of_refusing() {
    let fake = locked(1).start_on_pipes();
    let rule = fake.when(ApiKey::SaslAuthenticate).forever().drop_connection();

    let began = tokio::time::Instant::now();
    let builder = client(&fake).sasl_plain("alice", "hunter2").bootstrap_timeout(5 * SECOND);
    let error = builder.connect().await.expect_err("it hangs up");

    assert!(matches!(error, KrafkaError::Network { .. }) && error.is_retriable(), "{error:?}");
    assert_says(&error, &["SaslAuthenticate", "credentials"]);
    let attempts = rule.hits();
    assert!((3..=25).contains(&attempts), "{attempts} attempts in {:?}", began.elapsed());
}

/// AU-15.
#[tokio::test(start_paused = true)]
async fn a_broker_that_shouts_is_not_listened_to() {
    for len in [2 << 20, 5] {
        let fake = locked(1).start_on_pipes();
        fake.when(ApiKey::SaslAuthenticate).forever().edit(move |response| {
            if let AnyResponse::SaslAuthenticate(answer) = response {
                answer.auth_bytes = Bytes::from(vec![0xff; len]);
            }
        });

        let builder = client(&fake).sasl_scram_sha256("alice", "hunter2").bootstrap_timeout(5 * SECOND);
        let error = builder.connect().await.expect_err("that is no message of SCRAM");

        assert!(matches!(error, KrafkaError::Auth { .. } | KrafkaError::Protocol { .. }), "{error:?}");
        assert!(error.to_string().len() < 500, "{error}");
    }
}
