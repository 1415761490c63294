//! Logins, certificates and permissions that a client meets while it is at work.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use krafka::protocol::api::alter_user_scram_credentials::ScramCredentialUpsertion;
use krafka::protocol::api::create_acls::{AclCreation, CreateAclsRequest};
use krafka::protocol::api::delete_acls::{DeleteAclsFilter, DeleteAclsRequest};
use krafka::protocol::{AlterUserScramCredentialsRequest, ApiKey, Bytes, ErrorCode};
use krafka::{AwsCredentials, BearerToken, KafkaBuilder, MskIam, ProvidingToken, Tls, TokenProvider};

use super::road::Road;
use super::{
    AutoOffsetReset, Failure, Kafka, KrafkaError, NewTopic, Record, Result, Stage, client, ensure, refused, says,
    topic, until, within,
};
use crate::provider::certificates::Authority;

const SECOND: Duration = Duration::from_secs(1);

/// Kafka's number for topics, among the kinds of resources.
const TOPIC: i8 = 2;

/// Kafka's number for SCRAM-SHA-256.
const SCRAM_SHA_256: i8 = 1;

/// Kafka's number for groups.
const GROUP: i8 = 3;

/// A client without a login, at a listener that asks for one.
fn anonymous(stage: &Stage) -> Result<KafkaBuilder> {
    Ok(Kafka::builder(stage.servers("SASL_PLAINTEXT")?).bootstrap_timeout(5 * SECOND))
}

fn alice(stage: &Stage) -> Result<KafkaBuilder> {
    Ok(anonymous(stage)?.sasl_scram_sha512("alice", "alice-secret"))
}

/// AU-03: a mechanism that is not enabled is refused with the list of those that are.
pub(super) async fn a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(stage: &Stage) -> Result<()> {
    let iam = MskIam::new(AwsCredentials::new("AKID", "never-shown")).region("us-east-1");

    let connected = within(20 * SECOND, "connect", anonymous(stage)?.sasl_aws_msk_iam(iam).connect()).await?;

    let error = refused(connected, "AWS_MSK_IAM")?;
    says(&error, &["AWS_MSK_IAM", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])?;
    ensure!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
    ensure!(!format!("{error:?} {error}").contains("never-shown"), "the error shows the key");
    Ok(())
}

/// AU-06: however many calls wait for the login, nothing but what it needs is on the wire until it is done.
pub(super) async fn nothing_goes_before_the_login(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = alice(stage)?.environment(road.environment()).connect().await?;
    let calls: Vec<_> = (0..10).map(|_| kafka.admin()).collect();
    let calls: Vec<_> =
        calls.into_iter().map(|admin| tokio::spawn(async move { admin.describe_cluster().await })).collect();
    for call in calls {
        call.await??;
    }
    let raw = kafka.broker_connection(1).await?;
    raw.api_versions(ApiKey::Fetch).await?;

    let login = [ApiKey::ApiVersions, ApiKey::SaslHandshake, ApiKey::SaslAuthenticate];
    let heard = road.heard();
    for connection in 0..road.dials().len() {
        let asked: Vec<_> = heard.iter().filter(|heard| heard.connection == connection).collect();
        let ends = asked.iter().rposition(|heard| heard.is(ApiKey::SaslAuthenticate)).unwrap_or_default();
        ensure!(ends >= 2, "connection {connection} had no login of SCRAM");
        for heard in &asked[..ends] {
            ensure!(login.iter().any(|key| heard.is(*key)), "API {} went before the login was done", heard.key);
        }
    }
    Ok(())
}

/// Asks for a token in vain, so many times; then it has one.
struct Issuer {
    asked: Arc<AtomicUsize>,
    failures: usize,
}

impl TokenProvider for Issuer {
    fn token(&self) -> ProvidingToken<'_> {
        let asked = self.asked.fetch_add(1, Relaxed);
        Box::pin(async move {
            if asked < self.failures {
                return Err("the issuer is down".into());
            }
            // {"alg":"none"} and {"sub":"alice","iat":1000000000,"exp":4000000000}
            let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImlhdCI6MTAwMDAwMDAwMCwiZXhwIjo0MDAwMDAwMDAwfQ.";
            Ok(BearerToken::new(token))
        })
    }
}

/// AU-10: a provider that fails is asked again, and one token serves all connections; if it never has one, the error
/// says what it said.
pub(super) async fn tokens_are_waited_for_and_shared(stage: &Stage) -> Result<()> {
    let asked = Arc::new(AtomicUsize::new(0));
    let provider = Issuer { asked: asked.clone(), failures: 1 };

    let kafka = within(20 * SECOND, "connect", anonymous(stage)?.sasl_oauthbearer(provider).connect()).await??;
    for _ in 0..5 {
        kafka.broker_connection(1).await?;
    }
    let never = Issuer { asked: Arc::default(), failures: usize::MAX };
    let without = within(20 * SECOND, "connect", anonymous(stage)?.sasl_oauthbearer(never).connect()).await?;

    let asked = asked.load(Relaxed);
    ensure!(asked == 2, "the provider was asked {asked} times");
    let error = refused(without, "a client without a token")?;
    says(&error, &["the issuer is down"])
}

/// AU-11: a password that changed while the client is at work counts for whoever logs in next; who has logged in with
/// the former one works on, until it must do so again.
pub(super) async fn a_password_that_changed_counts_for_the_next_login(stage: &Stage) -> Result<()> {
    let carol = |password: &str| Ok::<_, Failure>(anonymous(stage)?.sasl_scram_sha256("carol", password));
    let works = async |password: &str| -> krafka::Result<Kafka> {
        let kafka = carol(password).expect("there is such a listener").connect().await?;
        kafka.admin().describe_cluster().await?;
        Ok(kafka)
    };
    let becomes = async |password: &str| -> Result<Kafka> {
        set_password(stage, "carol", password).await?;
        until("carol is let in", async || works(password).await.ok()).await
    };

    let before = becomes("first-secret").await?;
    let after = becomes("second-secret").await?;

    let error = refused(works("first-secret").await, "the former password")?;
    ensure!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
    after.admin().describe_cluster().await?;
    let ends = async || matches!(before.admin().describe_cluster().await, Err(KrafkaError::Auth { .. })).then_some(());
    until("the former login ends", ends).await
}

/// Sets somebody's password for SCRAM-SHA-256 (KIP-554).
async fn set_password(stage: &Stage, user: &str, password: &str) -> Result<()> {
    const ITERATIONS: u32 = 4_096;
    let mut salted = [0; 32];
    pbkdf2::pbkdf2_hmac::<sha2::Sha256>(password.as_bytes(), user.as_bytes(), ITERATIONS, &mut salted);
    let upsertion = ScramCredentialUpsertion {
        name: user.into(),
        mechanism: SCRAM_SHA_256,
        iterations: ITERATIONS as i32,
        salt: Bytes::copy_from_slice(user.as_bytes()),
        salted_password: Bytes::copy_from_slice(&salted),
    };
    let request = AlterUserScramCredentialsRequest { deletions: vec![], upsertions: vec![upsertion] };
    let answer = client(stage)?.connect().await?.broker_connection(1).await?.call(request).await?;
    ensure!(answer.results.iter().all(|result| result.error_code == 0), "{answer:?}");
    Ok(())
}

/// Forbids everybody everything with a resource, or takes that back, by a client that may do so.
async fn forbid(stage: &Stage, resource: i8, name: &str, is_forbidden: bool) -> Result<()> {
    let connection = client(stage)?.connect().await?.broker_connection(1).await?;
    if is_forbidden {
        let creation = AclCreation {
            resource_type: resource,
            resource_name: name.into(),
            resource_pattern_type: 3,
            principal: "User:alice".into(),
            host: "*".into(),
            operation: 2,
            permission_type: 2,
        };
        let answer = connection.call(CreateAclsRequest { creations: vec![creation] }).await?;
        ensure!(answer.results.iter().all(|result| result.error_code == 0), "{answer:?}");
    } else {
        let filter = DeleteAclsFilter {
            resource_type_filter: resource,
            resource_name_filter: Some(name.into()),
            pattern_type_filter: 3,
            principal_filter: None,
            host_filter: None,
            operation: 1,
            permission_type: 1,
        };
        let answer = connection.call(DeleteAclsRequest { filters: vec![filter] }).await?;
        ensure!(answer.filter_results.iter().all(|result| result.error_code == 0), "{answer:?}");
    }
    Ok(())
}

fn is_refused<T>(result: &krafka::Result<T>, expected: ErrorCode) -> bool {
    matches!(result, Err(KrafkaError::Broker { code, .. }) if *code == expected)
}

/// AU-13, MD-05: who may no longer write to a topic or be in a group is told so by Kafka's code, and works with others;
/// when it may again, so does the same producer and consumer.
pub(super) async fn permissions_come_and_go(stage: &Stage) -> Result<()> {
    let kafka = alice(stage)?.metadata_max_age(SECOND).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let other = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let group = stage.name("group");
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let consumer =
        kafka.consumer(&group).auto_commit(false).auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.subscribe(&[&other]).await?;
    producer.send(Record::new(&*name, "tea")).await?;
    producer.send(Record::new(&*other, "milk")).await?;
    within(20 * SECOND, "recv", consumer.recv()).await??;

    forbid(stage, TOPIC, &name, true).await?;
    let denied = async || {
        let sent = producer.send(Record::new(&*name, "tea")).await;
        is_refused(&sent, ErrorCode::TOPIC_AUTHORIZATION_FAILED).then_some(())
    };
    until("writing is refused", denied).await?;
    producer.send(Record::new(&*other, "milk")).await?;
    forbid(stage, TOPIC, &name, false).await?;
    let allowed = async || producer.send(Record::new(&*name, "tea")).await.ok();
    until("writing is allowed again", allowed).await?;

    forbid(stage, GROUP, &group, true).await?;
    let denied = async || is_refused(&consumer.commit().await, ErrorCode::GROUP_AUTHORIZATION_FAILED).then_some(());
    until("committing is refused", denied).await?;
    forbid(stage, GROUP, &group, false).await?;
    let allowed = async || {
        // A poll tells of what the heartbeats were refused, and goes on.
        let _ = consumer.poll(SECOND / 10).await;
        consumer.commit().await.ok()
    };
    until("committing is allowed again", allowed).await
}

/// TL-03: a certificate of an issuer whom the broker does not know is refused.
pub(super) async fn a_strangers_certificate_is_refused(stage: &Stage) -> Result<()> {
    let stranger = Authority::new("stranger")?.issue("stranger")?;
    let tls = Tls::new().roots_file(stage.fact("TLS_CA")?).identity_pem(&stranger.chain, &stranger.key);
    let builder = Kafka::builder(stage.servers("SSL")?).tls(tls).bootstrap_timeout(5 * SECOND);

    let connected = within(20 * SECOND, "connect", builder.connect()).await?;

    let error = refused(connected, "a stranger")?;
    says(&error, &["certificate"])
}
