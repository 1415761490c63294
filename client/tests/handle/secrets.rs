//! No secret is seen: neither in what a type says of itself, nor in an error, nor in the log at its finest.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafka::testing::{FakeCluster, SecurityProtocol};
use krafka::{
    Assertion, AwsCredentials, BearerToken, Connect, Connecting, Environment, Kafka, KafkaBuilder, KrafkaError, MskIam,
    Oidc, ProvidingToken, Tls, TokenProvider, WallClock,
};
use rcgen::KeyPair;
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::client;
use super::observed::hear_all;
use super::oidc::Endpoint;

/// What nobody may read. Each mechanism takes it as its password, its token, its key.
const SECRET: &str = "hunter2-and-some-more";
/// A time that no test reaches.
const LATE_MS: i64 = 4_000_000_000_000;
/// Noon of 2026-02-28.
const NOON_MS: u64 = 1_772_280_000_000;

struct Noon;

impl WallClock for Noon {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(NOON_MS)
    }
}

/// Writes down all that is logged by this thread, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
        self.note("\n");
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.note(&format!("{field}={value:?} "));
    }
}

impl Log {
    fn note(&self, text: &str) {
        self.0.lock().expect("nobody panicked").push_str(text);
    }

    /// Notes what a value says of itself.
    fn show(&self, value: &impl Debug) {
        self.note(&format!("{value:?}\n{value:#?}\n"));
    }

    /// Notes an error, and all that it comes from.
    fn tell(&self, error: &KrafkaError) {
        self.show(error);
        let mut source: Option<&dyn std::error::Error> = Some(error);
        while let Some(error) = source {
            self.note(&format!("{error}\n"));
            source = error.source();
        }
    }
}

/// Runs something, and fails if the secret was seen meanwhile, plain or in base64.
fn unseen(test: impl AsyncFnOnce(Log)) {
    let log = Log::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime can be built");
    hear_all();
    tracing::subscriber::with_default(log.clone(), || runtime.block_on(test(log.clone())));
    let seen = log.0.lock().expect("nobody panicked").clone();
    assert!(seen.len() > 500, "something is logged and shown:\n{seen}");
    let mut shapes = vec![SECRET.to_owned()];
    // Whatever stands before it: a part of its base64 is the same.
    shapes.extend((0..3).map(|shift| STANDARD.encode(format!("{}{SECRET}", "x".repeat(shift)))[4..24].to_owned()));
    for shape in shapes {
        let at = seen.find(&shape).map(|at| &seen[at.saturating_sub(200)..at]);
        assert_eq!(at, None, "the secret was seen behind this");
    }
}

/// Logs in, does some work, renews its sessions, and shows everything; then the same with a broker that refuses.
async fn in_and_out(log: &Log, fake: &FakeCluster, other: &FakeCluster, login: impl Fn(KafkaBuilder) -> KafkaBuilder) {
    let noon = |fake: &FakeCluster| {
        Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1).wall_clock(Noon))
    };
    let builder = login(noon(fake));
    log.show(&builder);
    let kafka = builder.connect().await.expect("the credentials are right");
    log.show(&kafka);
    log.show(&kafka.producer().build().await.expect("good settings"));
    for _ in 0..10 {
        sleep(Duration::from_secs(20)).await;
        kafka.admin().describe_cluster().await.expect("it is served");
    }
    let refused = login(noon(other)).connect().await.expect_err("nobody knows the secret here");
    assert!(matches!(refused, KrafkaError::Auth { .. }), "{refused:?}");
    log.tell(&refused);
}

fn minute_long() -> krafka::testing::FakeClusterBuilder {
    FakeCluster::builder().nodes(1).start_time_ms(NOON_MS as i64).connections_max_reauth(Duration::from_secs(60))
}

/// AU-02.
#[test]
fn passwords_are_not_seen() {
    unseen(async |log| {
        let fake = minute_long().user("alice", SECRET).start_on_pipes();
        let other = minute_long().user("alice", "another").start_on_pipes();

        in_and_out(&log, &fake, &other, |builder| builder.sasl_plain("alice", SECRET)).await;
        in_and_out(&log, &fake, &other, |builder| builder.sasl_scram_sha256("alice", SECRET)).await;
        in_and_out(&log, &fake, &other, |builder| builder.sasl_scram_sha512("alice", SECRET)).await;
        let error = client(&other).sasl_delegation_token("id", SECRET).connect().await.expect_err("there is none");
        log.tell(&error);
        log.show(&client(&other).sasl_delegation_token_sha256("id", SECRET));
        // What a mechanism cannot carry is told without it, too.
        log.tell(&client(&other).sasl_plain("alice", format!("{SECRET}\0")).connect().await.expect_err("a NUL"));
    });
}

/// AU-02.
#[test]
fn aws_keys_are_not_seen() {
    unseen(async |log| {
        let fake = minute_long().aws_msk_iam("AKID", SECRET, "alice").start_on_pipes();
        let other = minute_long().aws_msk_iam("AKID", "another", "alice").start_on_pipes();
        let keys = AwsCredentials::new("AKID", SECRET).session_token(SECRET);
        log.show(&keys);
        let iam = MskIam::new(keys).region("us-east-1");
        log.show(&iam);

        in_and_out(&log, &fake, &other, |builder| builder.sasl_aws_msk_iam(iam.clone())).await;
    });
}

/// Fails with an error that a careless provider might make.
struct Failing;

impl TokenProvider for Failing {
    fn token(&self) -> ProvidingToken<'_> {
        Box::pin(async { Err("no answer".into()) })
    }
}

/// AU-02.
#[test]
fn tokens_are_not_seen() {
    unseen(async |log| {
        let issuing = |token: &'static str| {
            let builder = minute_long().listener(SecurityProtocol::SaslPlaintext);
            builder.oauthbearer_token(token, "alice", LATE_MS).start_on_pipes()
        };
        let (fake, other) = (issuing(SECRET), issuing("another"));
        log.show(&BearerToken::new(SECRET));

        in_and_out(&log, &fake, &other, |builder| builder.sasl_oauthbearer(BearerToken::new(SECRET))).await;
        log.tell(&client(&fake).sasl_oauthbearer(Failing).connect().await.expect_err("there is no token"));
        let unfit = BearerToken::new(format!("{SECRET} "));
        log.tell(&client(&fake).sasl_oauthbearer(unfit).connect().await.expect_err("a blank"));
    });
}

/// AU-02: what the token endpoint is told, and what it says.
#[test]
fn what_goes_to_a_token_endpoint_is_not_seen() {
    unseen(async |log| {
        let builder = minute_long().listener(SecurityProtocol::SaslPlaintext);
        let fake = builder.oauthbearer_token(SECRET, "alice", LATE_MS).start_on_pipes();
        let other = FakeCluster::builder().nodes(1).listener(SecurityProtocol::SaslPlaintext);
        let other = other.oauthbearer_token("another", "alice", LATE_MS).start_on_pipes();
        let endpoint = Endpoint::granting(SECRET, 60);
        let url = format!("http://login.example/token?key={SECRET}");

        let secret = Oidc::client_credentials(&*url, "billing", SECRET).param("key", SECRET);
        let given = Oidc::jwt_bearer(&*url, Assertion::from_text(SECRET));
        for oidc in [secret, given] {
            let oidc = oidc.environment(endpoint.environment());
            log.show(&oidc);
            in_and_out(&log, &fake, &other, |builder| builder.sasl_oauthbearer(oidc.clone())).await;
            let refusing = Endpoint::refusing(401).environment();
            let refused = client(&fake).sasl_oauthbearer(oidc.clone().environment(refusing)).connect().await;
            log.tell(&refused.expect_err("it refuses"));
            let shapes: [fn(&str) -> String; 3] = [
                |asked| format!("<html>Blocked. {asked}</html>"),
                |asked| format!(r#"{{"error":"blocked","error_description":"{asked}"}}"#),
                |asked| format!(r#"{{"error":"{asked}","trace":"{asked}"}}"#),
            ];
            for shape in shapes {
                let echoing = Endpoint::echoing(shape).environment();
                let refused = client(&fake).sasl_oauthbearer(oidc.clone().environment(echoing)).connect().await;
                let error = refused.expect_err("it refuses");
                assert!(error.to_string().contains("status 403"), "{error}");
                log.tell(&error);
            }
        }
        let with_user = Oidc::client_credentials(format!("https://a:{SECRET}@b/"), "billing", SECRET);
        log.show(&with_user);
        log.tell(&client(&fake).sasl_oauthbearer(with_user).connect().await.expect_err("a user in the URL"));
    });
}

/// Keys, and the passwords of keys.
#[test]
fn private_keys_are_not_seen() {
    unseen(async |log| {
        let pem = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key").serialize_pem();
        let inner = pem.lines().nth(1).expect("three lines").to_owned();
        let tls = Tls::new().roots_pem("none").identity_pem("none", &pem).key_password(SECRET);
        log.show(&tls);
        let error = Kafka::builder("a:1").tls(tls.clone()).connect().await.expect_err("there is no root");
        log.tell(&error);
        log.show(&Kafka::builder("a:1").tls(tls));
        let assertion = Assertion::signed_by_pem(&pem).key_password(SECRET);
        log.show(&assertion);
        log.show(&Oidc::jwt_bearer("https://a", assertion));

        // A key whose line ends were lost, one that was cut, and one of an unknown kind.
        let authority = rcgen::generate_simple_self_signed(["a".to_owned()]).expect("a certificate").cert.pem();
        let joined = pem.replace('\n', " ");
        for torn in [&*joined, &joined.replace(' ', "\\n"), &pem[..pem.len() - 30], &pem.replace("END P", "END X")] {
            let tls = Tls::new().roots_pem(&authority).identity_pem(&authority, torn);
            log.show(&tls);
            log.show(&Kafka::builder("a:1").tls(tls).environment(Environment::through(Nowhere)).connect().await);
            let torn = Tls::new().roots_pem(&authority).identity_pem(torn, torn);
            log.tell(&Kafka::builder("a:1").tls(torn).connect().await.expect_err("no certificate"));
            let torn = Tls::new().roots_pem(torn_roots(&pem));
            log.tell(&Kafka::builder("a:1").tls(torn).connect().await.expect_err("no certificate"));
        }
        let seen = log.0.lock().expect("nobody panicked").clone();
        let decimal = format!("{:?}", inner.as_bytes());
        assert!(!seen.contains(&decimal[1..40]), "{seen}");
        assert!(!seen.contains("[80, 82, 73"), "{seen}");
        assert!(!seen.contains(&inner) && !seen.contains("PRIVATE KEY-----"), "{seen}");
    });
}

/// A key where a certificate should be, on one line.
fn torn_roots(key: &str) -> String {
    key.replace('\n', " ").replace("PRIVATE KEY", "CERTIFICATE")
}

/// Java's names, URLs and the environment: wrong values are told without them.
#[test]
fn settings_are_not_seen() {
    unseen(async |log| {
        let plain = format!(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n\
             sasl.jaas.config=x.PlainLoginModule required username=\"alice\" password=\"{SECRET}\""
        );
        let good = format!("bootstrap.servers=a:1\n{plain};");
        log.show(&Kafka::from_properties(&good).expect("good properties"));
        for wrong in [format!("bootstrap.servers=a:1\n{plain}"), format!("{plain};"), format!("{good}\nx=\\u{SECRET}")]
        {
            log.tell(&Kafka::from_properties(&wrong).expect_err("something is wrong"));
        }
        log.show(&Kafka::builder(format!("kafka://alice:{SECRET}@a:1")));
        for typo in ["kafka+ssl", "KAFKA", "Kafka+TLS", "kafka+sssl", "SASL_SSL", "http"] {
            say_url(&log, &format!("{typo}://alice:{SECRET}@a:1")).await;
            say_url(&log, &format!("{typo}://alice:{SECRET}@a")).await;
        }
        for front in ["", "kafka:", "kafka:/", "kafka//", "b:2,"] {
            say_url(&log, &format!("{front}alice:{SECRET}@a:1")).await;
        }
        say_url(&log, &format!("kafka://alice:?{SECRET}@a:1")).await;
        say_url(&log, &format!("kafka://alice:,{SECRET}@a:1")).await;
        say_url(&log, &format!("kafak+tls://a:1/?ssl.key.password={SECRET}")).await;
        say_url(&log, &format!("a:1/?ssl.key.password=x,{SECRET}")).await;
        let fake = FakeCluster::builder().nodes(1).start_on_pipes();
        let kafka = client(&fake).connect().await.expect("it is there");
        for servers in ["kafka://", "SSL://", ""] {
            let servers = format!("{servers}alice:{SECRET}@a:1");
            log.tell(&kafka.update_seed_brokers(&servers).expect_err("no list of servers"));
            log.show(&Kafka::from_properties(&format!("bootstrap.servers={servers}")));
        }
        let mut said = String::new();
        for wrong in ["path", "?sasl.mechanism=NONE", "?x"] {
            let error = Kafka::builder(format!("kafka://alice:{SECRET}@a:1/{wrong}")).connect().await;
            let error = error.expect_err("something is wrong");
            writeln!(said, "{error}").expect("a string takes all");
            log.tell(&error);
        }
        assert!(said.contains("path"), "{said}");
    });
}

/// Shows what becomes of a URL, whether it is a good one or not.
async fn say_url(log: &Log, url: &str) {
    let builder = Kafka::builder(url).bootstrap_timeout(Duration::from_millis(10));
    let builder = builder.environment(Environment::through(Nowhere));
    log.show(&builder);
    if let Err(error) = builder.connect().await {
        log.tell(&error);
    }
}

/// A network without brokers.
struct Nowhere;

impl Connect for Nowhere {
    fn connect<'a>(&'a self, _: &'a str, _: u16) -> Connecting<'a> {
        Box::pin(std::future::ready(Err(std::io::ErrorKind::ConnectionRefused.into())))
    }
}

/// What is wrong with a login module is told without the words that may be its password.
#[test]
fn a_torn_login_module_is_not_seen() {
    unseen(async |log| {
        let head = "bootstrap.servers=a:1\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=";
        for jaas in [
            format!("x.PlainLoginModule required username=a password=my {SECRET};"),
            format!("x.PlainLoginModule required username=a password=my\"{SECRET}\";"),
            format!("x.PlainLoginModule required username=\"a\" password=\"x\"{SECRET}\";"),
            format!("x.PlainLoginModule required username=\"a\" password=\"x\"{SECRET}=;"),
            format!("x.PlainLoginModule required username='a' password='it's{SECRET}';"),
            format!("x.PlainLoginModule required {SECRET};"),
            format!("x.PlainLoginModule {SECRET};"),
            format!("x.{SECRET} required;"),
            format!("{SECRET} required;"),
            format!("alice {SECRET}"),
            SECRET.to_owned(),
        ] {
            log.tell(&Kafka::from_properties(&format!("{head}{jaas}")).expect_err("it is torn"));
        }
        // Lines that nothing joins are names of properties, as Java has it.
        let torn =
            format!("bootstrap.servers=a:1\nssl.keystore.key=-----BEGIN PRIVATE KEY-----\n{SECRET}\n  {SECRET}=\n");
        log.show(&Kafka::from_properties(&torn));
        let path = format!("/no/such/-----BEGIN PRIVATE KEY-----\n{SECRET}");
        log.show(&Tls::new().identity_files(&path, &path));
        log.tell(&Kafka::builder("a:1").tls(Tls::new().roots_file(&path)).connect().await.expect_err("no such file"));
    });
}

/// The test itself can fail: a secret that somebody logs is found.
#[test]
#[should_panic(expected = "the secret was seen")]
fn a_secret_that_is_logged_is_found() {
    unseen(async |log| {
        log.note(&" ".repeat(500));
        tracing::trace!(password = %STANDARD.encode(format!("alice:{SECRET}")), "careless");
    });
}
