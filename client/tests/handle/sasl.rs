//! SASL: each mechanism against the fake, whose own rules are those of real brokers (`conformance/wire`, `sasl`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use krafka::protocol::{ApiKey, CreateDelegationTokenRequest, SaslAuthenticateResponse};
use krafka::testing::{FakeCluster, SaslMechanism, SecurityProtocol};
use krafka::{
    AwsCredentials, AwsCredentialsProvider, BearerToken, Environment, Kafka, KafkaBuilder, KrafkaError, MskIam,
    ProvidingCredentials, ProvidingToken, TokenProvider, WallClock,
};
use krafka_protocol::{AnyResponse, Bytes};
use tokio::time::sleep;

use super::{assert_says, client};

const MINUTE: Duration = Duration::from_secs(60);
/// A time that no test reaches.
const LATE_MS: i64 = 4_000_000_000_000;

async fn works(builder: KafkaBuilder) {
    let kafka = builder.connect().await.expect("the credentials are right");
    kafka.admin().describe_cluster().await.expect("it is served");
}

/// The error of credentials that are wrong, which is told at once.
async fn refused(builder: KafkaBuilder) -> KrafkaError {
    let error = tokio::time::timeout(Duration::from_secs(2), builder.connect()).await.expect("it is told at once");
    let error = error.expect_err("the credentials are wrong");
    assert!(matches!(error, KrafkaError::Auth { .. }) && !error.is_retriable() && error.is_fatal(), "{error:?}");
    error
}

/// AU-01.
#[tokio::test(start_paused = true)]
async fn scram_is_accepted() {
    let fake = FakeCluster::builder().nodes(2).user("alice", "hunter2").start_on_pipes();

    works(client(&fake).sasl_scram_sha256("alice", "hunter2")).await;
    works(client(&fake).sasl_scram_sha512("alice", "hunter2")).await;
}

/// AU-02.
#[tokio::test(start_paused = true)]
async fn a_wrong_scram_password_is_told_at_once_and_not_shown() {
    let fake = FakeCluster::builder().nodes(1).user("alice", "hunter2").start_on_pipes();

    for builder in
        [client(&fake).sasl_scram_sha256("alice", "swordfish"), client(&fake).sasl_scram_sha512("bob", "swordfish")]
    {
        let error = refused(builder).await;
        assert_says(&error, &["SCRAM-SHA-", &fake.bootstrap(), "user name and the password"]);
        assert!(!format!("{error:?}").contains("swordfish"));
    }
}

/// AU-03.
#[tokio::test(start_paused = true)]
async fn a_mechanism_that_is_not_enabled_is_told_with_those_that_are() {
    let fake = FakeCluster::builder()
        .nodes(1)
        .user("alice", "hunter2")
        .sasl_mechanism(SaslMechanism::Plain)
        .sasl_mechanism(SaslMechanism::ScramSha256)
        .start_on_pipes();

    let error = refused(client(&fake).sasl_scram_sha512("alice", "hunter2")).await;

    assert_says(&error, &["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256", "UNSUPPORTED_SASL_MECHANISM"]);
}

/// AU-05: a peer in the middle that does not know the password.
#[tokio::test(start_paused = true)]
async fn a_broker_that_cannot_prove_itself_is_left() {
    let fake = FakeCluster::builder().nodes(1).user("alice", "hunter2").start_on_pipes();
    fake.when(ApiKey::SaslAuthenticate).forever().edit(|response| {
        if let AnyResponse::SaslAuthenticate(answer) = response
            && answer.auth_bytes.starts_with(b"v=")
        {
            answer.auth_bytes = Bytes::from_static(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        }
    });

    let error = refused(client(&fake).sasl_scram_sha256("alice", "hunter2")).await;

    assert_says(&error, &["signature", "does not know the password"]);
}

/// What RFC 4013 writes differently, Kafka keeps as it was typed: whichever the broker has, the client comes in.
#[tokio::test(start_paused = true)]
async fn both_spellings_of_a_password_are_tried() {
    let as_typed = FakeCluster::builder().nodes(1).user("alice", "I\u{ad}X").start_on_pipes();
    let as_prepared = FakeCluster::builder().nodes(1).user("alice", "IX").start_on_pipes();

    works(client(&as_typed).sasl_scram_sha256("alice", "I\u{ad}X")).await;
    works(client(&as_prepared).sasl_scram_sha256("alice", "I\u{ad}X")).await;

    let refusals = |fake: &FakeCluster| {
        let answers = fake.history();
        let answers = answers.of(ApiKey::SaslAuthenticate).filter_map(|event| event.response());
        answers.filter(|answer: &&SaslAuthenticateResponse| answer.error_code != 0).count()
    };
    assert_eq!((refusals(&as_typed), refusals(&as_prepared)), (0, 1), "what worked once is tried first");
}

/// AU-01: a delegation token instead of a password.
#[tokio::test(start_paused = true)]
async fn a_delegation_token_is_accepted() {
    let fake =
        FakeCluster::builder().nodes(1).user("alice", "hunter2").delegation_token_secret_key("secret").start_on_pipes();
    let alice = client(&fake).sasl_scram_sha256("alice", "hunter2").connect().await.expect("the password is right");
    let connection = alice.broker_connection(1).await.expect("it is up");
    let request = CreateDelegationTokenRequest { max_lifetime_ms: -1, ..CreateDelegationTokenRequest::default() };
    let token = connection.call(request).await.expect("it is served");
    let hmac = base64(&token.hmac);

    works(client(&fake).sasl_delegation_token(&*token.token_id, &hmac)).await;

    let error = refused(client(&fake).sasl_delegation_token(&*token.token_id, base64(b"another"))).await;
    assert_says(&error, &["delegation token"]);
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A cluster that takes one bearer token.
fn issuing(nodes: i32) -> FakeCluster {
    FakeCluster::builder()
        .nodes(nodes)
        .listener(SecurityProtocol::SaslPlaintext)
        .oauthbearer_token("t0ken", "alice", LATE_MS)
        .start_on_pipes()
}

/// AU-01.
#[tokio::test(start_paused = true)]
async fn a_bearer_token_is_accepted() {
    let fake = issuing(2);

    works(client(&fake).sasl_oauthbearer(BearerToken::new("t0ken").extension("traceId", "7"))).await;
}

/// AU-02: the broker's own words reach the reader, and the token does not.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_good_is_told_with_the_brokers_words() {
    let fake = issuing(1);

    let error = refused(client(&fake).sasl_oauthbearer(BearerToken::new("swordfish"))).await;

    assert_says(&error, &["OAUTHBEARER", "invalid_token", "who issues the token"]);
    assert!(!format!("{error:?}").contains("swordfish"));
    assert_eq!(fake.history().count(ApiKey::SaslHandshake), 1, "another that is as new would be the same");
    let error = refused(client(&fake).sasl_oauthbearer(BearerToken::new("two words"))).await;
    assert_says(&error, &["character that no bearer token has"]);
}

/// Brings a token each time that it is asked, after it has failed some times.
#[derive(Clone, Default)]
struct Counting {
    asked: Arc<AtomicUsize>,
    failures: usize,
    life: Option<Duration>,
}

impl TokenProvider for Counting {
    fn token(&self) -> ProvidingToken<'_> {
        Box::pin(async {
            sleep(Duration::from_millis(50)).await;
            if self.asked.fetch_add(1, Ordering::Relaxed) < self.failures {
                return Err("the issuer is down".into());
            }
            let token = BearerToken::new("t0ken");
            Ok(match self.life {
                #[expect(clippy::disallowed_methods, reason = "the wall clock is not the one under test")]
                Some(life) => token.expires_at(SystemTime::now() + life),
                None => token,
            })
        })
    }
}

/// AU-10: all connections of a handle share one token.
#[tokio::test(start_paused = true)]
async fn one_token_serves_all_connections() {
    let fake = issuing(3);
    let provider = Counting::default();

    let kafka = client(&fake).sasl_oauthbearer(provider.clone()).connect().await.expect("the token is good");
    for node in 1..=3 {
        kafka.broker_connection(node).await.expect("it is up").api_versions(ApiKey::Fetch).await.expect("it answers");
    }

    assert_eq!(provider.asked.load(Ordering::Relaxed), 1);
    assert!(fake.history().count(ApiKey::SaslAuthenticate) >= 4);
}

/// AU-10, BR-148: an issuer that is down for a moment costs a moment.
#[tokio::test(start_paused = true)]
async fn a_provider_that_fails_is_asked_again() {
    let fake = issuing(1);
    works(client(&fake).sasl_oauthbearer(Counting { failures: 2, ..Counting::default() })).await;

    let never = Counting { failures: usize::MAX, ..Counting::default() };
    let error = client(&fake).sasl_oauthbearer(never).connect().await.expect_err("there is no token");

    assert!(error.is_retriable(), "{error:?}");
    assert_says(&error, &["asking for a bearer token", "the issuer is down"]);
}

/// A mistake of the application's is a failure like others, and does not take the handle with it.
#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_is_asked_again() {
    #[derive(Clone, Default)]
    struct Panicking(Arc<AtomicUsize>);
    impl TokenProvider for Panicking {
        fn token(&self) -> ProvidingToken<'_> {
            let asked = self.0.fetch_add(1, Ordering::Relaxed);
            assert!(asked > 0, "the first time, before there is a future");
            Box::pin(async move {
                assert!(asked > 1, "the second time, in the future");
                // Later than any clock can tell.
                Ok(BearerToken::new("t0ken").expires_at(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 62)))
            })
        }
    }
    let provider = Panicking::default();

    works(client(&issuing(1)).sasl_oauthbearer(provider.clone())).await;

    assert_eq!(provider.0.load(Ordering::Relaxed), 3);
}

/// AU-10: the next token is there before the old one ends, though nobody connects.
#[tokio::test(start_paused = true)]
async fn tokens_are_renewed_ahead_of_their_end() {
    let fake = issuing(1);
    let provider = Counting { life: Some(10 * MINUTE), ..Counting::default() };
    let kafka = client(&fake).sasl_oauthbearer(provider.clone()).connect().await.expect("the token is good");

    sleep(7 * MINUTE).await;
    assert_eq!(provider.asked.load(Ordering::Relaxed), 1);
    sleep(2 * MINUTE).await;
    assert_eq!(provider.asked.load(Ordering::Relaxed), 2);

    drop(kafka);
    sleep(60 * MINUTE).await;
    assert_eq!(provider.asked.load(Ordering::Relaxed), 2, "a handle that is gone wants no tokens");
}

/// A cluster that takes requests signed by one pair of keys.
fn of_amazon() -> FakeCluster {
    FakeCluster::builder().nodes(2).start_time_ms(NOON_MS).aws_msk_iam("AKID", "hunter2", "alice").start_on_pipes()
}

/// Noon of 2026-02-28, by the fake's clock and by the client's.
const NOON_MS: i64 = 1_772_280_000_000;

struct Noon;

impl WallClock for Noon {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(NOON_MS.unsigned_abs())
    }
}

fn at_noon(fake: &FakeCluster) -> KafkaBuilder {
    Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1).wall_clock(Noon))
}

/// AU-01.
#[tokio::test(start_paused = true)]
async fn aws_keys_are_accepted() {
    let fake = of_amazon();

    works(at_noon(&fake).sasl_aws_msk_iam(MskIam::new(AwsCredentials::new("AKID", "hunter2")).region("us-east-1")))
        .await;
    let temporary = AwsCredentials::new("AKID", "hunter2").session_token("t/o+k=en");
    works(at_noon(&fake).sasl_aws_msk_iam(MskIam::new(temporary).region("eu-central-1"))).await;
}

/// AU-02.
#[tokio::test(start_paused = true)]
async fn wrong_aws_keys_are_told_at_once_and_not_shown() {
    let fake = of_amazon();
    let iam = |keys| MskIam::new(keys).region("us-east-1");

    let error = refused(at_noon(&fake).sasl_aws_msk_iam(iam(AwsCredentials::new("AKID", "swordfish")))).await;
    assert_says(&error, &["AWS_MSK_IAM", "Access denied", "kafka-cluster:Connect", "clock"]);
    assert!(!format!("{error:?}").contains("swordfish"));

    let error = refused(at_noon(&fake).sasl_aws_msk_iam(iam(AwsCredentials::new("AKID", "sword fish")))).await;
    assert_says(&error, &["secret access key"]);
    assert!(!format!("{error:?}").contains("sword"));

    let builder = at_noon(&fake).sasl_aws_msk_iam(iam(AwsCredentials::new("AKID", "hunter2")).region("Frankfurt"));
    let error = builder.connect().await.expect_err("there is no such region");
    assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
}

/// Brings keys that hold for ten minutes, and counts.
struct Rotating(Arc<AtomicUsize>);

impl AwsCredentialsProvider for Rotating {
    fn credentials(&self) -> ProvidingCredentials<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let keys = AwsCredentials::new("AKID", "hunter2").expires_at(Noon.now() + 10 * MINUTE);
        Box::pin(std::future::ready(Ok(keys)))
    }
}

/// AU-10: AWS keys are shared and renewed as tokens are.
#[tokio::test(start_paused = true)]
async fn aws_keys_are_renewed_ahead_of_their_end() {
    let fake = of_amazon();
    let asked = Arc::new(AtomicUsize::new(0));
    let iam = MskIam::new(Rotating(asked.clone())).region("us-east-1");
    let kafka = at_noon(&fake).sasl_aws_msk_iam(iam).connect().await.expect("the keys are good");
    for node in 1..=2 {
        kafka.broker_connection(node).await.expect("it is up");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    sleep(9 * MINUTE).await;

    assert_eq!(asked.load(Ordering::Relaxed), 2);
}
