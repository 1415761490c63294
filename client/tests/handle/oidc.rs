//! Bearer tokens from a token endpoint, which the tests play, over pipes with a paused clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use krafka::protocol::ApiKey;
use krafka::testing::{FakeCluster, SecurityProtocol};
use krafka::{
    Assertion, Connect, Connecting, Environment, Kafka, KafkaBuilder, KrafkaError, Oidc, Stream, Tls, WallClock,
};
use rcgen::KeyPair;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use super::assert_says;
use super::tls::Authority;

const MINUTE: Duration = Duration::from_secs(60);
/// A time that no test reaches.
const LATE_MS: i64 = 4_000_000_000_000;

/// A request as the endpoint saw it.
#[derive(Clone, Debug)]
struct Seen {
    line: String,
    headers: BTreeMap<String, String>,
    body: String,
}

/// What it answers to its n-th request: nothing at all, or these bytes.
type Answer = dyn Fn(usize) -> Option<String> + Send + Sync;

/// A token endpoint at the other end of pipes.
#[derive(Clone)]
pub(super) struct Endpoint {
    answer: Arc<Answer>,
    seen: Arc<Mutex<Vec<Seen>>>,
    tls: Option<TlsAcceptor>,
}

impl Endpoint {
    fn new(answer: impl Fn(usize) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), seen: Arc::default(), tls: None }
    }

    /// One that always grants this token.
    pub(super) fn granting(token: &'static str, seconds: u64) -> Self {
        Self::new(move |_| Some(ok(&format!(r#"{{"access_token":"{token}","expires_in":{seconds}}}"#))))
    }

    /// One that always refuses.
    pub(super) fn refusing(status: u16) -> Self {
        Self::new(move |_| Some(answered(status, r#"{"error":"invalid_client"}"#)))
    }

    /// One that always refuses, and repeats what it was asked, in that shape.
    pub(super) fn echoing(shape: fn(&str) -> String) -> Self {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let asked = seen.clone();
        let answer = move |number: usize| {
            let Seen { line, headers, body } = asked.lock().expect("nobody panicked")[number].clone();
            Some(answered(403, &shape(&format!("{line} {headers:?} {body}").replace('"', "'"))))
        };
        Self { seen, ..Self::new(answer) }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("nobody panicked").clone()
    }

    pub(super) fn environment(&self) -> Environment {
        Environment::new(self.clone(), 1).wall_clock(Fixed)
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let headers = lines[1..].iter().filter_map(|line| line.split_once(": "));
        let headers: BTreeMap<String, String> =
            headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let mut body = vec![0; headers["content-length"].parse().expect("a number")];
        stream.read_exact(&mut body).await?;
        let body = String::from_utf8(body).expect("a form is ASCII");
        let number = {
            let mut seen = self.seen.lock().expect("nobody panicked");
            seen.push(Seen { line: lines[0].clone(), headers, body });
            seen.len() - 1
        };
        match (self.answer)(number) {
            Some(answer) => stream.write_all(answer.as_bytes()).await?,
            None => std::future::pending().await,
        }
        stream.shutdown().await
    }
}

impl Connect for Endpoint {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let endpoint = self.clone();
        tokio::spawn(async move {
            // A client that goes away has seen enough.
            match &endpoint.tls.clone() {
                None => drop(endpoint.serve(theirs).await),
                Some(tls) => {
                    if let Ok(stream) = tls.accept(theirs).await {
                        drop(endpoint.serve(stream).await);
                    }
                }
            }
        });
        Box::pin(async {
            let stream: Box<dyn Stream> = Box::new(ours);
            Ok(stream)
        })
    }
}

/// Noon of 2026-02-28.
struct Fixed;

impl WallClock for Fixed {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(1_772_280_000_000)
    }
}

fn ok(body: &str) -> String {
    answered(200, body)
}

fn answered(status: u16, body: &str) -> String {
    let len = body.len();
    format!("HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}")
}

/// A cluster that takes the token `t0ken`.
fn issuing() -> FakeCluster {
    FakeCluster::builder()
        .nodes(2)
        .listener(SecurityProtocol::SaslPlaintext)
        .oauthbearer_token("t0ken", "alice", LATE_MS)
        .start_on_pipes()
}

fn billing(endpoint: &Endpoint) -> Oidc {
    Oidc::client_credentials("http://login.example:8080/token?x=y", "billing", "hunter 2")
        .environment(endpoint.environment())
}

/// A client whose clock is the endpoint's.
fn at_noon(fake: &FakeCluster) -> KafkaBuilder {
    Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1).wall_clock(Fixed))
}

async fn works(builder: KafkaBuilder) -> Kafka {
    let kafka = builder.connect().await.expect("the endpoint grants a token, and the broker takes it");
    kafka.admin().describe_cluster().await.expect("it is served");
    kafka
}

pub(super) async fn fails(oidc: Oidc) -> KrafkaError {
    let fake = issuing();
    at_noon(&fake).sasl_oauthbearer(oidc).connect().await.expect_err("there is no token")
}

/// AU-01: KIP-768, as RFC 6749 has it.
#[tokio::test(start_paused = true)]
async fn a_client_and_its_secret_get_a_token() {
    let (fake, endpoint) = (issuing(), Endpoint::granting("t0ken", 300));

    let oidc = billing(&endpoint).scope("kafka read").param("audience", "brokers").extension("traceId", "7");
    let kafka = works(at_noon(&fake).sasl_oauthbearer(oidc)).await;
    kafka.broker_connection(2).await.expect("it is up");

    let [seen] = &endpoint.seen()[..] else { panic!("one request is enough: {:?}", endpoint.seen()) };
    assert_eq!(seen.line, "POST /token?x=y HTTP/1.1");
    assert_eq!(seen.headers["host"], "login.example:8080");
    assert_eq!(seen.headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(seen.headers["authorization"], "Basic YmlsbGluZzpodW50ZXIrMg==");
    assert_eq!(seen.body, "grant_type=client_credentials&scope=kafka+read&audience=brokers");
}

/// The header Host has no port where it is the scheme's own: some servers insist.
#[tokio::test(start_paused = true)]
async fn the_host_header_is_as_browsers_send_it() {
    let (fake, endpoint) = (issuing(), Endpoint::granting("t0ken", 300));
    let oidc = Oidc::client_credentials("http://login.example/token", "a", "b").environment(endpoint.environment());

    works(at_noon(&fake).sasl_oauthbearer(oidc)).await;

    assert_eq!(endpoint.seen()[0].headers["host"], "login.example");
}

/// AU-01: KIP-1139, and `private_key_jwt`.
#[tokio::test(start_paused = true)]
async fn a_signed_assertion_gets_a_token() {
    let (fake, endpoint) = (issuing(), Endpoint::granting("t0ken", 300));
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key").serialize_pem();
    let assertion = Assertion::signed_by_pem(key).issuer("billing").subject("billing").audience("login");

    let bearer = Oidc::jwt_bearer("http://login/token", assertion.clone()).environment(endpoint.environment());
    works(at_noon(&fake).sasl_oauthbearer(bearer.scope("kafka"))).await;
    let oidc = Oidc::client_assertion("http://login/token", "billing", assertion).environment(endpoint.environment());
    works(at_noon(&fake).sasl_oauthbearer(oidc)).await;

    let [bearer, client] = &endpoint.seen()[..] else { panic!("two requests: {:?}", endpoint.seen()) };
    assert!(bearer.body.starts_with("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=ey"));
    assert!(bearer.body.ends_with("&scope=kafka"), "{}", bearer.body);
    let kind = "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer";
    let begins = format!("grant_type=client_credentials&client_id=billing&{kind}&client_assertion=ey");
    assert!(client.body.starts_with(&begins), "{}", client.body);
    assert!([bearer, client].iter().all(|seen| !seen.headers.contains_key("authorization")));
}

/// A platform writes its tokens into a file, and changes them: what counts is what is there when one is needed.
#[tokio::test(start_paused = true)]
async fn an_assertion_in_a_file_is_read_each_time() {
    let (fake, endpoint) = (issuing(), Endpoint::granting("t0ken", 300));
    let path = std::env::temp_dir().join(format!("krafka-assertion-{}", std::process::id()));
    let oidc = Oidc::jwt_bearer("http://login/token", Assertion::from_file(&path)).environment(endpoint.environment());

    for text in ["one\n", "two"] {
        std::fs::write(&path, text).expect("it can be written");
        works(at_noon(&fake).sasl_oauthbearer(oidc.clone())).await;
    }
    std::fs::remove_file(&path).expect("it can be removed");

    let bodies: Vec<_> = endpoint.seen().into_iter().map(|seen| seen.body).collect();
    assert!(bodies[0].ends_with("&assertion=one") && bodies[1].ends_with("&assertion=two"), "{bodies:?}");
    assert_says(&fails(oidc).await, &["krafka-assertion", "cannot be read"]);
}

/// AU-10: nobody waits for the next token, and the old one serves until then.
#[tokio::test(start_paused = true)]
async fn tokens_are_renewed_ahead_of_their_end() {
    let (fake, endpoint) = (issuing(), Endpoint::granting("t0ken", 600));
    let kafka = works(at_noon(&fake).sasl_oauthbearer(billing(&endpoint))).await;

    sleep(7 * MINUTE).await;
    assert_eq!(endpoint.seen().len(), 1);
    sleep(2 * MINUTE).await;
    assert_eq!(endpoint.seen().len(), 2);

    drop(kafka);
    sleep(60 * MINUTE).await;
    assert_eq!(endpoint.seen().len(), 2, "a handle that is gone wants no tokens");
}

/// AU-10: an endpoint that is down, silent or out of its mind for a while.
#[tokio::test(start_paused = true)]
async fn an_endpoint_in_trouble_is_asked_again() {
    let fake = issuing();
    let endpoint = Endpoint::new(|number| match number {
        0 => Some(answered(503, "later")),
        1 => Some(String::new()),
        2 => None,
        _ => Some(ok(r#"{"access_token":"t0ken"}"#)),
    });
    let oidc = billing(&endpoint).timeout(Duration::from_secs(1));

    works(at_noon(&fake).sasl_oauthbearer(oidc)).await;

    assert_eq!(endpoint.seen().len(), 4);
}

/// AU-02: an endpoint that says no is not asked again, and its words reach the reader.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_refuses_is_told_at_once() {
    let endpoint = Endpoint::new(|_| Some(answered(401, r#"{"error":"invalid_client"}"#)));

    let error = fails(billing(&endpoint)).await;

    assert!(matches!(error, KrafkaError::Auth { .. }) && error.is_fatal(), "{error:?}");
    assert_says(&error, &["http://login.example:8080/token", "401", "invalid_client", "scope"]);
    assert!(!format!("{error:?}").contains("hunter"));
    assert!(endpoint.seen().len() <= 2, "once for each bootstrap server");
}

/// What comes from outside is bounded.
#[tokio::test(start_paused = true)]
async fn an_endless_answer_is_not_read_to_its_end() {
    let endpoint = Endpoint::new(|_| Some(format!("HTTP/1.1 200 x\r\n\r\n{}", "x".repeat(3 << 20))));

    let error = fails(billing(&endpoint)).await;

    assert_says(&error, &["longer than 1048576 bytes"]);
}

/// TL-01: an endpoint's certificate is checked as a broker's is.
#[tokio::test(start_paused = true)]
async fn the_endpoint_has_to_show_its_certificate() {
    let authority = Authority::new();
    let mut endpoint = Endpoint::granting("t0ken", 300);
    endpoint.tls = Some(TlsAcceptor::from(authority.issue("login.example").server(None)));
    let oidc = |url: &str, trusted: &Authority| {
        Oidc::client_credentials(url, "billing", "hunter2")
            .tls(Tls::new().roots_pem(&trusted.pem))
            .environment(endpoint.environment())
    };
    let fake = issuing();

    works(at_noon(&fake).sasl_oauthbearer(oidc("https://login.example/token", &authority))).await;

    for (url, trusted) in [("https://login.example/token", Authority::new()), ("https://other.example/", authority)] {
        let error = fails(oidc(url, &trusted)).await;
        assert!(matches!(error, KrafkaError::Auth { source: Some(_), .. }), "{error:?}");
        assert_says(&error, &["certificate is not accepted", "Oidc::tls"]);
    }
    assert_eq!(endpoint.seen().len(), 1, "a secret is sent only to whom it is for");
}

/// What fails says what to do at the endpoint, and not at a broker.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_cannot_be_spoken_with_is_told_with_a_remedy() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let early = authority.issue_with("login.example", super::tls::key(), |params| {
        params.not_after = rcgen::date_time_ymd(2025, 2, 1);
    });
    let asking = authority.issue("login.example");
    let behind = |server| Endpoint { tls: Some(TlsAcceptor::from(server)), ..Endpoint::granting("t0ken", 300) };
    let expired = ["it expired on 2025-02-01", "renew it"];
    let wanted = ["asks for a client certificate", "Tls::identity_files"];
    for (endpoint, url, words) in [
        (behind(early.server(None)), "https://login.example/token", expired),
        (behind(asking.server(Some(&clients))), "https://login.example/token", wanted),
        (behind(asking.server(None)), "http://login.example:443/token", ["is no HTTP", "https://"]),
    ] {
        let oidc = Oidc::client_credentials(url, "billing", "hunter2").tls(Tls::new().roots_pem(&authority.pem));
        let error = fails(oidc.environment(endpoint.environment())).await;
        assert_says(&error, &words);
        assert!(!error.to_string().contains("Kafka listener"), "{error}");
    }
    let oidc = Oidc::client_credentials("https://login.example:80/token", "billing", "hunter2").tls(Tls::new());
    let error = fails(oidc.environment(Environment::new(Plain, 1).wall_clock(Fixed))).await;
    assert!(!error.is_retriable(), "{error:?}");
    assert_says(&error, &["speaks no TLS", "http://"]);
}

/// A web server that understands nothing.
struct Plain;

impl Connect for Plain {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        Box::pin(async {
            let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
            tokio::spawn(async move {
                theirs.read_u8().await?;
                theirs.write_all(answered(400, "").as_bytes()).await?;
                theirs.shutdown().await
            });
            let stream: Box<dyn Stream> = Box::new(ours);
            Ok(stream)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn settings_that_are_wrong_are_named() {
    for (oidc, words) in [
        (Oidc::client_credentials("login.example", "a", "b"), "no scheme"),
        (Oidc::client_credentials("https://login.example", "a", "b").tls(Tls::new().roots_pem("")), "CERTIFICATE"),
        (Oidc::jwt_bearer("http://login.example", Assertion::signed_by_pem("")), "no key"),
    ] {
        let error = fails(oidc).await;
        assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
        assert_says(&error, &["token endpoint", words]);
    }
}

/// AU-11, KIP-368: the fake ends sessions with the token; each is renewed with the next one.
#[tokio::test(start_paused = true)]
async fn sessions_are_renewed_with_new_tokens() {
    let fake = FakeCluster::builder()
        .nodes(1)
        .listener(SecurityProtocol::SaslPlaintext)
        .connections_max_reauth(MINUTE)
        .oauthbearer_token("t0ken", "alice", LATE_MS)
        .start_on_pipes();
    let endpoint = Endpoint::granting("t0ken", 60);
    let kafka = works(at_noon(&fake).sasl_oauthbearer(billing(&endpoint))).await;
    let connections = fake.history().count(ApiKey::ApiVersions);

    for _ in 0..40 {
        sleep(5 * Duration::from_secs(1)).await;
        kafka.admin().describe_cluster().await.expect("there is always a session");
    }

    assert_eq!(fake.history().count(ApiKey::ApiVersions), connections);
    assert!(endpoint.seen().len() >= 4, "{} tokens in more than three minutes", endpoint.seen().len());
}
