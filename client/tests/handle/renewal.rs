//! Sessions that end (KIP-368): connections authenticate once more while they are in use, and are replaced when that
//! does not succeed. What the fake does there is what brokers do (`conformance/wire`, `reauthentication`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use krafka::producer::Acks;
use krafka::protocol::{ApiKey, SaslAuthenticateResponse, SaslHandshakeResponse};
use krafka::testing::{FakeCluster, FakeClusterBuilder, SecurityProtocol};
use krafka::{BearerToken, Kafka, KrafkaError, ProvidingToken, Record, TokenProvider};
use krafka_protocol::AnyResponse;
use tokio::time::sleep;
use tracing::Level;

use super::observed::Observed;
use super::{assert_says, client};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// A time that no test reaches.
const LATE_MS: i64 = 4_000_000_000_000;

/// A cluster of one node whose sessions last a minute.
fn minute_long() -> FakeClusterBuilder {
    FakeCluster::builder().nodes(1).topic("orders", 1).user("alice", "hunter2").connections_max_reauth(MINUTE)
}

async fn alice(fake: &FakeCluster) -> Kafka {
    client(fake).sasl_scram_sha512("alice", "hunter2").connect().await.expect("the password is right")
}

/// How many connections were made, as each begins with ApiVersions, and how many logins succeeded.
fn connections_and_logins(fake: &FakeCluster) -> (usize, usize) {
    let history = fake.history();
    let answers = history.of(ApiKey::SaslAuthenticate).filter_map(|event| event.response());
    let logins = answers.filter(|answer: &&SaslAuthenticateResponse| answer.session_lifetime_ms > 0).count();
    (history.count(ApiKey::ApiVersions), logins)
}

async fn ask_every_four_seconds(kafka: &Kafka, duration: Duration) {
    for _ in 0..duration.as_secs() / 4 {
        sleep(4 * SECOND).await;
        kafka.admin().describe_cluster().await.expect("there is always a session");
    }
}

/// AU-07.
#[tokio::test(start_paused = true)]
async fn a_connection_authenticates_again_and_stays() {
    let fake = minute_long().start_on_pipes();
    let kafka = alice(&fake).await;
    kafka.admin().describe_cluster().await.expect("it is answered");
    let (connections, logins) = connections_and_logins(&fake);

    ask_every_four_seconds(&kafka, 5 * MINUTE).await;

    let (later_connections, later_logins) = connections_and_logins(&fake);
    assert_eq!(later_connections, connections, "no connection was made anew");
    assert!((5..=6).contains(&(later_logins - logins)), "{} logins in five minutes", later_logins - logins);
}

/// AU-07: with five batches in flight at any time, nothing is lost, repeated or disordered.
#[tokio::test(start_paused = true)]
async fn traffic_flows_on_through_renewals() {
    for acks in [Acks::All, Acks::None] {
        let fake = minute_long().start_on_pipes();
        // With acks=0 nothing but the socket holds the client back: the broker must be the faster one.
        let delay = if acks == Acks::None { Duration::from_millis(30) } else { Duration::from_millis(120) };
        fake.when(ApiKey::Produce).forever().delay(delay);
        let kafka = alice(&fake).await;
        let builder = kafka.producer().acks(acks).linger(Duration::ZERO);
        let builder = if acks == Acks::None { builder.idempotent(false) } else { builder };
        let producer = builder.build().await.expect("good settings");
        producer.send(Record::new("orders", "first")).await.expect("it is written");
        let (connections, logins) = connections_and_logins(&fake);

        for number in 0..3_000 {
            let handle = producer.enqueue(Record::new("orders", number.to_string())).await.expect("there is room");
            drop(handle);
            sleep(Duration::from_millis(50)).await;
        }
        producer.flush().await.expect("all are written");
        // With acks=0, "written" is not "arrived".
        sleep(10 * SECOND).await;

        let values: Vec<_> = fake.records("orders").into_iter().map(|record| record.value.clone()).collect();
        let expected: Vec<_> = (0..3_000).map(|number| Some(number.to_string().into())).collect();
        let lost: Vec<_> = expected.iter().filter(|value| !values.contains(value)).collect();
        assert_eq!(lost, [&None; 0], "with {acks:?}");
        assert_eq!(values[1..], expected);
        let (later_connections, later_logins) = connections_and_logins(&fake);
        assert_eq!(later_connections, connections, "no connection was made anew");
        assert!(later_logins - logins >= 2, "{} logins in two and a half minutes", later_logins - logins);
    }
}

/// AU-07: a session that ended while nobody used the connection is renewed by whoever uses it next.
#[tokio::test(start_paused = true)]
async fn a_session_that_ended_in_silence_is_renewed_by_the_next_caller() {
    let fake = minute_long().start_on_pipes();
    let kafka = alice(&fake).await;
    kafka.admin().describe_cluster().await.expect("it is answered");
    let (connections, _) = connections_and_logins(&fake);

    sleep(3 * MINUTE).await;
    kafka.admin().describe_cluster().await.expect("the session is renewed first");

    assert_eq!(connections_and_logins(&fake).0, connections);
}

/// AU-08.
#[tokio::test(start_paused = true)]
async fn a_renewal_without_a_lifetime_is_the_last() {
    let fake = FakeCluster::builder().nodes(1).user("alice", "hunter2").start_on_pipes();
    fake.when(ApiKey::SaslAuthenticate).times(4).edit(|response| {
        if let AnyResponse::SaslAuthenticate(accepted) = response {
            accepted.session_lifetime_ms = 60_000;
        }
    });
    // The rule stands for a broker whose setting is changed; the fake itself renews only sessions that end.
    let kafka = alice(&fake).await;
    kafka.admin().describe_cluster().await.expect("it is answered");
    let before = fake.history().count(ApiKey::SaslHandshake);

    ask_every_four_seconds(&kafka, 10 * MINUTE).await;

    assert!(fake.history().count(ApiKey::SaslHandshake) - before <= 2);
}

/// AU-07: brokers take no second renewal within a second of the first. A client that has shorter sessions (of tokens
/// that are about to end) moves to another connection then, without a failure, and without asking for what is refused.
#[tokio::test(start_paused = true)]
async fn sessions_too_short_to_be_renewed_twice_are_replaced() {
    let (log, _guard) = Observed::start();
    let fake = minute_long().connections_max_reauth(Duration::from_millis(800)).start_on_pipes();
    let kafka = alice(&fake).await;
    let (connections, logins) = connections_and_logins(&fake);

    for _ in 0..200 {
        kafka.admin().describe_cluster().await.expect("there is always a session");
        sleep(Duration::from_millis(50)).await;
    }

    let shaken = fake.history();
    let mut shaken = shaken.of(ApiKey::SaslHandshake).filter_map(|event| event.response());
    assert!(shaken.all(|answer: &SaslHandshakeResponse| answer.error_code == 0));
    assert_eq!(log.lines(Level::WARN), [""; 0]);
    let (later_connections, later_logins) = connections_and_logins(&fake);
    let (made, renewed) = (later_connections - connections, later_logins - logins);
    assert!((4..=10).contains(&made) && renewed > made, "{made} connections, {renewed} logins");
}

/// Brings one token after the other, and the last one again and again; then none.
#[derive(Clone)]
struct InTurn {
    tokens: &'static [&'static str],
    asked: Arc<AtomicUsize>,
}

impl InTurn {
    fn new(tokens: &'static [&'static str]) -> Self {
        Self { tokens, asked: Arc::default() }
    }
}

impl TokenProvider for InTurn {
    fn token(&self) -> ProvidingToken<'_> {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let token = self.tokens.get(turn).copied().ok_or("the issuer is down")?;
            #[expect(clippy::disallowed_methods, reason = "the wall clock is not the one under test")]
            let end = SystemTime::now() + 50 * SECOND;
            Ok(BearerToken::new(token).expires_at(end))
        })
    }
}

fn issuing() -> FakeCluster {
    FakeCluster::builder()
        .nodes(1)
        .listener(SecurityProtocol::SaslPlaintext)
        .connections_max_reauth(MINUTE)
        .oauthbearer_token("first", "alice", LATE_MS)
        .oauthbearer_token("second", "alice", LATE_MS)
        .oauthbearer_token("bobs", "bob", LATE_MS)
        .start_on_pipes()
}

/// AU-11: what is said the next time is what is good by then.
#[tokio::test(start_paused = true)]
async fn a_session_is_renewed_with_the_token_of_the_day() {
    let fake = issuing();
    let provider = InTurn::new(&["first", "second", "second", "second", "second", "second"]);
    let kafka = client(&fake).sasl_oauthbearer(provider).connect().await.expect("the token is good");
    kafka.admin().describe_cluster().await.expect("it is answered");
    let (connections, _) = connections_and_logins(&fake);

    ask_every_four_seconds(&kafka, 2 * MINUTE).await;

    assert_eq!(connections_and_logins(&fake).0, connections);
}

/// AU-09: the broker does not let somebody else go on; a new connection does.
#[tokio::test(start_paused = true)]
async fn another_principal_gets_another_connection() {
    let fake = issuing();
    let provider = InTurn::new(&["first", "bobs", "bobs", "bobs", "bobs", "bobs"]);
    let kafka = client(&fake).sasl_oauthbearer(provider).connect().await.expect("the token is good");
    kafka.admin().describe_cluster().await.expect("it is answered");
    let (connections, _) = connections_and_logins(&fake);

    ask_every_four_seconds(&kafka, 2 * MINUTE).await;

    assert!(connections_and_logins(&fake).0 > connections);
    assert!(fake.connections(1) <= 2, "those of before are closed");
}

/// AU-10: there is no token to renew with, and none for a new connection: the caller is told why.
#[tokio::test(start_paused = true)]
async fn without_a_token_the_caller_is_told() {
    let fake = issuing();
    let kafka = client(&fake).request_timeout(SECOND).sasl_oauthbearer(InTurn::new(&["first"]));
    let kafka = kafka.connect().await.expect("the token is good");

    sleep(2 * MINUTE).await;
    let error = kafka.admin().describe_cluster().await.expect_err("there is no token");

    assert_says(&error, &["the issuer is down"]);
    assert!(error.is_retriable(), "{error:?}");
}

/// A broker that does not answer: whoever waits goes to another connection before long.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_not_answered_is_given_up() {
    let fake = minute_long().start_on_pipes();
    let kafka = alice(&fake).await;
    kafka.admin().describe_cluster().await.expect("it is answered");
    let (connections, _) = connections_and_logins(&fake);
    sleep(MINUTE).await;
    fake.when(ApiKey::SaslHandshake).times(1).silence();

    let began = tokio::time::Instant::now();
    kafka.admin().describe_cluster().await.expect("on another connection");

    assert!(began.elapsed() <= 11 * SECOND, "{:?} is longer than connect_timeout", began.elapsed());
    assert_eq!(connections_and_logins(&fake).0, connections + 1);
}

/// A password that is changed while a connection lives: the connection ends, and the error says which credentials.
#[tokio::test(start_paused = true)]
async fn a_refused_renewal_is_told_as_what_it_is() {
    let fake = minute_long().start_on_pipes();
    let kafka = alice(&fake).await;
    kafka.admin().describe_cluster().await.expect("it is answered");
    sleep(MINUTE).await;
    fake.when(ApiKey::SaslAuthenticate).forever().edit(|response| {
        if let AnyResponse::SaslAuthenticate(answer) = response {
            answer.error_code = krafka::ErrorCode::SASL_AUTHENTICATION_FAILED.0;
        }
    });

    let error = kafka.admin().describe_cluster().await.expect_err("the password is no good any more");

    assert!(matches!(error, KrafkaError::Auth { .. }) && error.is_fatal(), "{error:?}");
    assert_says(&error, &["SCRAM-SHA-512", "user name and the password"]);
}
