//! Whether anything of a secret is left in the memory of a client that has used it and is gone.
//!
//! Each client lives in a process of its own, because a broker in the same one has the password, too. The process looks
//! through its own memory, freed parts included: once while the client lives, when the secret is there in one place,
//! and once after its end, when it is nowhere. A secret comes to it masked, and is compared under the mask.
//!
//! What others keep of a secret is theirs: rustls and its cryptography of a private key, hyper of what goes to a token
//! endpoint.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the processes live in real time")]

use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use krafka::testing::{ClientAuth, FakeCluster, FakeClusterBuilder, SaslMechanism, SecurityProtocol, ServerTls};
use krafka::{AwsCredentials, BearerToken, Connect, Connecting, Environment, Kafka, KafkaBuilder, MskIam, Tls};
use krafka_protocol::{AnyResponse, ApiKey};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use zeroize::Zeroizing;

/// The name of the one test, by which it begins itself anew.
const TEST: &str = "nothing_of_a_secret_is_left";
const MASK: u8 = 0x5a;
/// A piece of so many bytes is not there by chance.
const PIECE: usize = 12;
/// A time that no test reaches.
const LATE_MS: i64 = 4_000_000_000_000;
/// How long sessions last, where they end, and how long they are said to last: nobody is late.
const HOUR: Duration = Duration::from_secs(3_600);
const SESSION: Duration = Duration::from_millis(400);

/// One way of giving a secret to a client.
struct Case {
    name: &'static str,
    /// How long the secret is: long ones grow out of what they are put together in.
    length: u32,
    cluster: fn(&str, &Pki) -> FakeClusterBuilder,
    /// A builder for a client, from where the cluster is, and the secret. What is public is in the environment.
    client: fn(&str, String) -> KafkaBuilder,
}

const CASES: &[Case] = &[
    Case {
        name: "PLAIN",
        length: 48,
        cluster: |secret, _| sasl().sasl_plain("alice", secret),
        client: |at, secret| Kafka::builder(at).sasl_plain("alice", secret),
    },
    Case {
        name: "PLAIN over TLS",
        length: 48,
        cluster: |secret, pki| FakeCluster::builder().listener(SaslSsl).tls(pki.server()).sasl_plain("alice", secret),
        client: |at, secret| Kafka::builder(at).tls(trusting()).sasl_plain("alice", secret),
    },
    Case {
        name: "PLAIN over TLS, again and again",
        length: 48,
        cluster: |secret, pki| {
            let builder = FakeCluster::builder().listener(SaslSsl).tls(pki.server()).sasl_plain("alice", secret);
            builder.connections_max_reauth(HOUR)
        },
        client: |at, secret| Kafka::builder(at).tls(trusting()).sasl_plain("alice", secret),
    },
    Case {
        name: "PLAIN, again and again",
        length: 48,
        cluster: |secret, _| sasl().sasl_plain("alice", secret).connections_max_reauth(HOUR),
        client: |at, secret| Kafka::builder(at).sasl_plain("alice", secret),
    },
    Case {
        name: "PLAIN over a stream of one's own, again and again",
        length: 48,
        cluster: |secret, _| sasl().sasl_plain("alice", secret).connections_max_reauth(HOUR),
        client: |at, secret| Kafka::builder(at).environment(Environment::new(Own, 1)).sasl_plain("alice", secret),
    },
    Case {
        name: "SCRAM",
        length: 48,
        cluster: |secret, _| sasl().user("alice", secret).sasl_mechanism(SaslMechanism::ScramSha512),
        client: |at, secret| Kafka::builder(at).sasl_scram_sha512("alice", secret),
    },
    Case { name: "OAUTHBEARER", length: 1_500, cluster: knowing, client: bearing },
    Case { name: "OAUTHBEARER, a long token", length: 9_000, cluster: knowing, client: bearing },
    Case {
        name: "AWS_MSK_IAM",
        length: 48,
        cluster: |secret, _| sasl().start_time_ms(now_ms()).aws_msk_iam("AKID", secret, "alice"),
        client: |at, secret| {
            let keys = AwsCredentials::new("AKID", secret);
            Kafka::builder(at).sasl_aws_msk_iam(MskIam::new(keys).region("us-east-1"))
        },
    },
    Case {
        name: "a session token of AWS",
        length: 1_500,
        cluster: |_, _| sasl().start_time_ms(now_ms()).aws_msk_iam("AKID", "hunter2", "alice"),
        client: |at, secret| {
            let keys = AwsCredentials::new("AKID", "hunter2").session_token(secret);
            Kafka::builder(at).sasl_aws_msk_iam(MskIam::new(keys).region("us-east-1"))
        },
    },
    Case {
        name: "a URL",
        length: 48,
        cluster: |secret, _| sasl().user("alice", secret),
        client: |at, secret| {
            let mut url = String::with_capacity(200);
            for part in ["kafka://alice:", &Zeroizing::new(secret), "@", at, "?sasl.mechanism=SCRAM-SHA-256"] {
                url.push_str(part);
            }
            Kafka::builder(url)
        },
    },
    Case {
        name: "properties",
        length: 48,
        cluster: |secret, _| sasl().user("alice", secret),
        client: |at, secret| {
            let mut text = Zeroizing::new(String::with_capacity(1_000));
            let before = "\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=\
                          org.apache.kafka.common.security.scram.ScramLoginModule required username=\"alice\" \
                          password=\"";
            for part in ["bootstrap.servers=", at, before, &Zeroizing::new(secret), "\";\n"] {
                text.push_str(part);
            }
            Kafka::from_properties(&text).expect("good properties")
        },
    },
    Case {
        name: "the text of a private key",
        length: 48,
        cluster: |_, pki| {
            let clients = pki.roots.as_bytes();
            let server = pki.server().client_auth(clients, ClientAuth::Required).expect("an authority");
            FakeCluster::builder().listener(SecurityProtocol::Ssl).tls(server)
        },
        client: |at, secret| {
            let mut pem = Zeroizing::new(String::with_capacity(1_000));
            for part in ["-----BEGIN PRIVATE KEY-----\n", &Zeroizing::new(secret), "\n-----END PRIVATE KEY-----\n"] {
                pem.push_str(part);
            }
            Kafka::builder(at).tls(trusting().identity_pem(given("WIPED_CHAIN"), &*pem))
        },
    },
];

use SecurityProtocol::SaslSsl;

fn sasl() -> FakeClusterBuilder {
    FakeCluster::builder().listener(SecurityProtocol::SaslPlaintext)
}

fn knowing(token: &str, _: &Pki) -> FakeClusterBuilder {
    sasl().oauthbearer_token(token, "alice", LATE_MS)
}

fn bearing(at: &str, token: String) -> KafkaBuilder {
    Kafka::builder(at).sasl_oauthbearer(BearerToken::new(token).extension("logicalCluster", "lkc-1"))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292 million")
}

fn trusting() -> Tls {
    Tls::new().roots_pem(given("WIPED_ROOTS"))
}

/// What the process was given in its environment.
fn given(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is given"))
}

/// Makes streams that write one piece at a time, as those of users may.
struct Own;

struct Narrow(TcpStream);

impl Connect for Own {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let stream: Box<dyn krafka::Stream> = Box::new(Narrow(TcpStream::connect((host, port)).await?));
            Ok(stream)
        })
    }
}

impl AsyncRead for Narrow {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Narrow {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// An authority, and whom it has certified: a broker, and a client.
struct Pki {
    roots: String,
    chain: String,
    key: KeyPair,
}

impl Pki {
    fn new() -> Self {
        let of = |names: Vec<String>| CertificateParams::new(names).expect("names of hosts");
        let new_key = || KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
        let authority_key = new_key();
        let mut authority = of(Vec::new());
        authority.distinguished_name.push(rcgen::DnType::CommonName, "the authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let roots = authority.self_signed(&authority_key).expect("a certificate").pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = new_key();
        let params = of(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]);
        let chain = params.signed_by(&key, &issuer).expect("a certificate").pem();
        Self { roots, chain, key }
    }

    fn server(&self) -> ServerTls {
        ServerTls::from_pem(self.chain.as_bytes(), self.key.serialize_pem().as_bytes()).expect("a certificate")
    }

    /// The second half of the text of the key: the first is the same for all keys of a kind.
    fn key_text(&self) -> String {
        self.key.serialize_pem().lines().filter(|line| !line.starts_with('-')).collect()
    }
}

#[test]
fn nothing_of_a_secret_is_left() {
    if let Ok(name) = std::env::var("WIPED_CASE") {
        return live(CASES.iter().find(|case| case.name == name).expect("one of ours"));
    }
    let faults: Vec<String> = CASES.iter().filter_map(let_live).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A secret of some length, in which nothing is twice.
fn letters(length: u32) -> String {
    let mut state = 1_u32;
    let letter = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_digit((state >> 24) % 36, 36).expect("a digit of base 36")
    };
    (0..length).map(letter).collect()
}

/// Starts a cluster, and a process whose client uses it; what that process complains of, if it does.
fn let_live(case: &Case) -> Option<String> {
    let pki = Pki::new();
    let secret = if case.name.contains("key") { pki.key_text() } else { letters(case.length) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    let fake = runtime.block_on((case.cluster)(&secret, &pki).nodes(1).start()).expect("a free port");

    if is_repeated(case) {
        fake.when(ApiKey::SaslAuthenticate).forever().edit(|response| {
            if let AnyResponse::SaslAuthenticate(accepted) = response {
                accepted.session_lifetime_ms = SESSION.as_millis() as i64;
            }
        });
    }

    let masked: String = secret.bytes().map(|byte| format!("{:02x}", byte ^ MASK)).collect();
    let mut process = Command::new(std::env::current_exe().expect("it has a name"));
    process.args(["--exact", TEST, "--nocapture"]).env("WIPED_CASE", case.name);
    process.env("WIPED_AT", fake.bootstrap()).env("WIPED_SECRET", masked);
    process.env("WIPED_ROOTS", &pki.roots).env("WIPED_CHAIN", &pki.chain);
    let output = process.output().expect("it can be started");

    let said = String::from_utf8_lossy(&output.stderr);
    let fault = (!output.status.success()).then(|| format!("{}: {said}", case.name));
    if fault.is_none() && is_repeated(case) {
        let logins = fake.history().count(ApiKey::SaslHandshake);
        let connections = fake.history().count(ApiKey::ApiVersions);
        assert!(logins > connections, "{logins} logins on {connections} connections");
    }
    fault
}

/// Whether its sessions end.
fn is_repeated(case: &Case) -> bool {
    case.name.contains("again")
}

/// The life of the process: a client comes and goes, and what it leaves is looked at.
fn live(case: &Case) {
    let masked = Masked::given();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let builder = (case.client)(&given("WIPED_AT"), masked.secret());
    runtime.block_on(async {
        let kafka = builder.connect().await.expect("the credentials are right");
        let begun = SystemTime::now();
        loop {
            kafka.admin().describe_cluster().await.expect("it is served");
            if !is_repeated(case) || begun.elapsed().is_ok_and(|elapsed| elapsed > SESSION) {
                break;
            }
        }
        assert_eq!(masked.places(), 1, "places where it is while the client lives");
        kafka.close();
    });
    drop(runtime);

    assert_eq!(masked.places(), 0, "places where it is left");
}

/// A secret, not as it is.
struct Masked(Vec<u8>);

impl Masked {
    fn given() -> Self {
        let text = given("WIPED_SECRET");
        let byte = |index| u8::from_str_radix(&text[index..index + 2], 16).expect("in hexadecimal");
        Self((0..text.len()).step_by(2).map(byte).collect())
    }

    fn secret(&self) -> String {
        let mut secret = String::with_capacity(self.0.len());
        self.0.iter().for_each(|byte| secret.push(char::from(byte ^ MASK)));
        secret
    }

    /// In how many places of this process's memory the secret is, in part at least. The allocator writes over the first
    /// bytes of what is freed: hence pieces of the middle and of the end.
    fn places(&self) -> usize {
        let starts = [self.0.len() / 2, self.0.len() - PIECE];
        let pieces = starts.map(|start| &self.0[start..start + PIECE]);
        pieces.into_iter().map(Self::places_of).max().unwrap_or(0)
    }

    fn places_of(piece: &[u8]) -> usize {
        let memory = fs::File::open("/proc/self/mem").expect("it can be read");
        let maps = fs::read_to_string("/proc/self/maps").expect("it can be read");
        maps.lines().filter_map(writable).map(|(start, end)| places_in(&memory, start, end, piece)).sum()
    }
}

/// The range of a line of the memory's map, if it can be written to.
fn writable(line: &str) -> Option<(u64, u64)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    rest.starts_with("rw").then_some((address(start)?, address(end)?))
}

fn places_in(memory: &fs::File, start: u64, end: u64, piece: &[u8]) -> usize {
    const STEP: usize = 1 << 14;
    const NOTHING: &[u8] = &[0; STEP];
    // What was read is masked before it is kept, or it would be found itself.
    let (mut read, mut places, mut at) = (Zeroizing::new(vec![0; STEP]), 0, start);
    while at < end {
        let len = STEP.min((end - at) as usize);
        // Some ranges are the system's own.
        if memory.read_exact_at(&mut read[..len], at).is_err() {
            break;
        }
        // Most of it was never used.
        if read[..len] != NOTHING[..len] {
            read[..len].iter_mut().for_each(|byte| *byte ^= MASK);
            places += read[..len].windows(PIECE).filter(|part| *part == piece).count();
        }
        // The next read begins early enough to see what the end of this one has cut off.
        at += if len == STEP { STEP - PIECE + 1 } else { len } as u64;
    }
    places
}
