//! Authentication in trouble: slow, silent, shouting or broken brokers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use krafka::protocol::{ApiKey, DescribeClusterRequest};
use krafka::testing::{FakeCluster, FakeClusterBuilder, SecurityProtocol};
use krafka::{
    AwsCredentials, AwsCredentialsProvider, BearerToken, Connect, Connecting, Environment, ErrorCode, Kafka,
    KrafkaError, ProvidingCredentials, ProvidingToken, TokenProvider,
};
use krafka_protocol::{AnyResponse, Bytes};
use tokio::time::sleep;

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
        if len > 1 << 20 {
            assert_says(&error, &["in the handshake", "no Kafka listener"]);
        }
    }
}

/// Panics the first time, within its future or before there is one.
struct Panicking {
    before: bool,
    asked: AtomicU32,
}

impl Panicking {
    fn new(before: bool) -> Self {
        Self { before, asked: AtomicU32::new(0) }
    }

    fn is_first(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) == 0
    }
}

impl TokenProvider for Panicking {
    fn token(&self) -> ProvidingToken<'_> {
        let is_first = self.is_first();
        assert!(!(self.before && is_first), "hunter2");
        Box::pin(async move {
            assert!(!is_first, "hunter2");
            Ok(BearerToken::new("t0ken"))
        })
    }
}

impl AwsCredentialsProvider for Panicking {
    fn credentials(&self) -> ProvidingCredentials<'_> {
        let is_first = self.is_first();
        assert!(!(self.before && is_first), "hunter2");
        Box::pin(async move {
            assert!(!is_first, "hunter2");
            Ok(AwsCredentials::new("AKID", "hunter2"))
        })
    }
}

/// A cluster that takes one token.
fn bearing() -> FakeClusterBuilder {
    let builder = FakeCluster::builder().nodes(1).listener(SecurityProtocol::SaslPlaintext);
    builder.oauthbearer_token("t0ken", "alice", i64::MAX)
}

/// AU-10: a provider's panic is one request that failed: it takes nothing with it that the next ones need.
#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_has_failed_once() {
    for before in [true, false] {
        let fake = bearing().start_on_pipes();
        client(&fake).sasl_oauthbearer(Panicking::new(before)).connect().await.expect("the second token is right");

        let fake = FakeCluster::builder().nodes(1).aws_msk_iam("AKID", "hunter2", "alice").start_on_pipes();
        let iam = krafka::MskIam::new(Panicking::new(before)).region("us-east-1");
        client(&fake).sasl_aws_msk_iam(iam).connect().await.expect("the second keys are right");
    }
}

/// AU-10: one that never answers is given up after `connect_timeout`, and asked again.
#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_is_asked_again() {
    struct Hanging(AtomicU32);
    impl TokenProvider for Hanging {
        fn token(&self) -> ProvidingToken<'_> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Box::pin(std::future::pending()),
                _ => Box::pin(async { Ok(BearerToken::new("t0ken")) }),
            }
        }
    }
    let fake = bearing().start_on_pipes();
    let began = tokio::time::Instant::now();

    let builder = client(&fake).sasl_oauthbearer(Hanging(AtomicU32::new(0))).connect_timeout(20 * SECOND);
    builder.bootstrap_timeout(200 * SECOND).connect().await.expect("the second token is right");

    assert!((20..25).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

/// Brings what is good at first, then what nobody can use for three times, and in the end what is good again. Each is
/// said to hold for a minute.
#[derive(Clone, Default)]
struct Faltering(Arc<AtomicU32>);

impl Faltering {
    fn asked(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn next(&self) -> (bool, SystemTime) {
        #[expect(clippy::disallowed_methods, reason = "the wall clock is not the one under test")]
        let end = SystemTime::now() + 60 * SECOND;
        (matches!(self.0.fetch_add(1, Ordering::Relaxed), 1..=3), end)
    }
}

impl TokenProvider for Faltering {
    fn token(&self) -> ProvidingToken<'_> {
        let (is_faulty, end) = self.next();
        let token = BearerToken::new(if is_faulty { "" } else { "t0ken" }).expires_at(end);
        Box::pin(async { Ok(token) })
    }
}

impl AwsCredentialsProvider for Faltering {
    fn credentials(&self) -> ProvidingCredentials<'_> {
        let (is_faulty, end) = self.next();
        let keys = AwsCredentials::new("AKID", if is_faulty { "hunter2\n" } else { "hunter2" }).expires_at(end);
        Box::pin(async { Ok(keys) })
    }
}

/// AU-10: a file that is just written anew reads as empty. What still holds is not given away for that.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_used_does_not_replace_what_holds() {
    let (fake, bearer) = (bearing().start_on_pipes(), Faltering::default());
    let by_token = client(&fake).sasl_oauthbearer(bearer.clone()).connect().await.expect("the token is right");
    let (other, iam) = (FakeCluster::builder().nodes(1).aws_msk_iam("AKID", "hunter2", "alice"), Faltering::default());
    let other = other.start_on_pipes();
    let by_keys = client(&other).sasl_aws_msk_iam(krafka::MskIam::new(iam.clone()).region("us-east-1"));
    let by_keys = by_keys.connect().await.expect("the keys are right");

    for _ in 0..30 {
        sleep(4 * SECOND).await;
        for (fake, kafka) in [(&fake, &by_token), (&other, &by_keys)] {
            fake.disconnect(1);
            sleep(SECOND / 10).await;
            kafka.admin().with_timeout(10 * SECOND).describe_cluster().await.expect("there is always a good one");
        }
    }

    for provider in [bearer, iam] {
        assert!((6..=8).contains(&provider.asked()), "it was asked {} times", provider.asked());
    }
}

/// What cannot be used is told, and what is wrong with it.
#[tokio::test(start_paused = true)]
async fn a_token_that_cannot_be_used_is_told() {
    let fake = bearing().start_on_pipes();

    let error = client(&fake).sasl_oauthbearer(BearerToken::new("t0ken\n")).connect().await.expect_err("a line's end");

    assert!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
    assert_says(&error, &["bearer token", "cannot be used", "a line's end"]);
}

/// AU-10: a token whose key was rotated is refused; whoever connects then gets another, and nobody hears of it.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_refused_after_a_while_is_replaced() {
    struct Counted(Arc<AtomicU32>);
    impl TokenProvider for Counted {
        fn token(&self) -> ProvidingToken<'_> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(BearerToken::new("t0ken")) })
        }
    }
    let (fake, asked) = (bearing().start_on_pipes(), Arc::new(AtomicU32::new(0)));
    let kafka = client(&fake).sasl_oauthbearer(Counted(asked.clone())).connect().await.expect("the token is right");
    let reconnected = async || {
        sleep(60 * SECOND).await;
        fake.disconnect(1);
        sleep(SECOND).await;
        kafka.admin().with_timeout(10 * SECOND).describe_cluster().await
    };
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    fake.when(ApiKey::SaslAuthenticate).times(1).reply_error(ErrorCode::SASL_AUTHENTICATION_FAILED);
    reconnected().await.expect("the second token is taken");
    assert_eq!(asked.load(Ordering::Relaxed), 2);

    fake.when(ApiKey::SaslAuthenticate).forever().reply_error(ErrorCode::SASL_AUTHENTICATION_FAILED);
    let error = reconnected().await.expect_err("no token is taken");
    assert!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 3, "a new one that is refused is the end");
}

/// AU-10: nothing is blamed on the broker, which was not asked for anything.
#[tokio::test(start_paused = true)]
async fn a_provider_that_is_slow_is_told() {
    struct Slow;
    impl TokenProvider for Slow {
        fn token(&self) -> ProvidingToken<'_> {
            Box::pin(async {
                sleep(20 * SECOND).await;
                Ok(BearerToken::new("t0ken"))
            })
        }

        fn name(&self) -> String {
            "the vault".to_owned()
        }
    }
    let fake = bearing().start_on_pipes();

    let builder = client(&fake).sasl_oauthbearer(Slow).connect_timeout(4 * SECOND).bootstrap_timeout(5 * SECOND);
    let error = builder.connect().await.expect_err("it takes too long");

    assert_says(&error, &["the vault gave no credentials within 4s", "is it slow"]);
    assert!(!error.to_string().contains("Kafka listener"), "{error}");
}

/// It panics for ever: the error says so, and not what it said.
#[tokio::test(start_paused = true)]
async fn a_provider_that_always_panics_is_told() {
    struct Always;
    impl TokenProvider for Always {
        fn token(&self) -> ProvidingToken<'_> {
            panic!("hunter2")
        }
    }
    let fake = locked(1).start_on_pipes();

    let error = client(&fake).sasl_oauthbearer(Always).connect().await.expect_err("there is no token");

    assert!(error.is_retriable(), "{error:?}");
    assert_says(&error, &["bearer token", "the provider failed", "panicked"]);
    assert!(!format!("{error:?}").contains("hunter2"));
}

/// A time of which nobody can say how far away it is, is far away.
#[tokio::test(start_paused = true)]
async fn a_token_may_hold_as_long_as_it_likes() {
    let mut late = SystemTime::UNIX_EPOCH;
    for power in (0..63).rev() {
        late = late.checked_add(Duration::from_secs(1 << power)).unwrap_or(late);
    }
    let fake = bearing().start_on_pipes();
    let token = BearerToken::new("t0ken").expires_at(late);
    client(&fake).sasl_oauthbearer(token).connect().await.expect("the token is right");
}

/// A network of the user's that panics the first time.
struct Stumbling(krafka::testing::Pipes, AtomicU32);

impl Connect for Stumbling {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        assert!(self.1.fetch_add(1, Ordering::Relaxed) > 0, "hunter2");
        Connect::connect(&self.0, host, port)
    }
}

/// LC-08: a connector of the user's that panics.
#[tokio::test(start_paused = true)]
async fn a_connector_that_panics_has_failed_once() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let stumbling = Stumbling(fake.pipes(), AtomicU32::new(0));
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(stumbling, 1));

    builder.connect().await.expect("the second connection is made");
}
