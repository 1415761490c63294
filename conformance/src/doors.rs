//! AU-01, AU-02, AU-04, AU-07, TL-01, TL-02, TL-03, TL-05, BY-15: every way into a cluster: each SASL mechanism,
//! with and without TLS, and what must not get in.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use krafka::protocol::CreateDelegationTokenRequest;
use krafka::{Connect, Connecting, Environment, Kafka, KafkaBuilder, KrafkaError, NewTopic, Record, TcpConnect, Tls};
use scenarios::{Failure, Result, ensure};

use crate::provider::stage::{SESSION, Stage};

/// How long a client may take to be let in, or to hear that it is not.
const BOUND: Duration = Duration::from_secs(30);

/// A cluster with all its listeners.
pub struct Doors<'a>(&'a Stage);

/// One way in, by name, and what comes of it.
pub type Check<'a> = (String, Box<dyn Fn() -> Result<()> + 'a>);

impl<'a> Doors<'a> {
    /// Those of a cluster that was made for it: see [`Ground::Doors`](crate::provider::stage::Ground::Doors).
    #[must_use]
    pub fn of(stage: &'a Stage) -> Self {
        Self(stage)
    }

    /// What is tried.
    #[must_use]
    pub fn checks(&self) -> Vec<Check<'_>> {
        let mut checks: Vec<Check<'_>> = Vec::new();
        for (listener, tls) in [("SASL_PLAINTEXT", false), ("SASL_SSL", true)] {
            for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] {
                let name = format!("AU-01 {mechanism} on {listener} lets in");
                checks.push((name, Box::new(move || self.let_in(self.by_properties(listener, mechanism, "")?))));
            }
            for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
                let name = format!("AU-02,04 {mechanism} on {listener} refuses a wrong password");
                let refused = move || {
                    let builder = self.by_properties(listener, mechanism, "wrong")?;
                    self.refused(builder, "check the user name and the password")
                };
                checks.push((name, Box::new(refused)));
            }
            for mechanism in ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"] {
                let name = format!("AU-07 {mechanism} on {listener} renews its sessions");
                checks.push((name, Box::new(move || self.renewed(listener, mechanism))));
            }
            let name = format!("AU-01 a delegation token on {listener} lets in");
            checks.push((name, Box::new(move || self.by_token(listener, tls))));
        }
        checks.push(("TL-01 TLS lets in".to_owned(), Box::new(|| self.let_in(self.builder("SSL")?.tls(self.tls()?)))));
        let identity = || -> Result<()> {
            let tls = self.tls()?.identity_files(self.0.fact("TLS_CLIENT_CERT")?, self.0.fact("TLS_CLIENT_KEY")?);
            self.let_in(self.builder("SSL")?.tls(tls))
        };
        checks.push(("TL-03 TLS with a client certificate lets in".to_owned(), Box::new(identity)));
        let other_name =
            || self.refused(self.builder("SSL")?.tls(self.tls()?.server_name("kafka.example")), "kafka.example");
        checks.push(("TL-01 TLS refuses a broker of another name".to_owned(), Box::new(other_name)));
        let stranger = || -> Result<()> {
            // The client's own certificate is nobody's issuer.
            let tls = Tls::new().roots_file(self.0.fact("TLS_CLIENT_CERT")?);
            self.refused(self.builder("SSL")?.tls(tls), "not accepted")
        };
        checks.push(("TL-02 TLS refuses an issuer that is not trusted".to_owned(), Box::new(stranger)));
        let plaintext = || self.told(self.builder("PLAINTEXT")?.tls(self.tls()?), "plaintext");
        checks.push(("TL-05 TLS on a plaintext listener is told so".to_owned(), Box::new(plaintext)));
        let tls = || self.told(self.builder("SSL")?, "TLS");
        checks.push(("TL-05 plaintext on a TLS listener is told so".to_owned(), Box::new(tls)));
        checks
    }

    fn block_on<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        self.0.block_on(BOUND, future)
    }

    fn builder(&self, listener: &str) -> Result<KafkaBuilder> {
        Ok(Kafka::builder(self.0.servers(listener)?).bootstrap_timeout(Duration::from_secs(2)))
    }

    fn tls(&self) -> Result<Tls> {
        Ok(Tls::new().roots_file(self.0.fact("TLS_CA")?))
    }

    /// The builder of a Java client's settings.
    fn by_properties(&self, listener: &str, mechanism: &str, suffix: &str) -> Result<KafkaBuilder> {
        let module = match mechanism {
            "PLAIN" => "plain.PlainLoginModule",
            "OAUTHBEARER" => "oauthbearer.OAuthBearerLoginModule",
            _ => "scram.ScramLoginModule",
        };
        let options = match mechanism {
            "OAUTHBEARER" => "unsecuredLoginStringClaim_sub=\"alice\"".to_owned(),
            _ => format!("username=\"alice\" password=\"alice-secret{suffix}\""),
        };
        let text = format!(
            "bootstrap.servers={}\nsecurity.protocol={listener}\nsasl.mechanism={mechanism}\n\
             sasl.jaas.config=org.apache.kafka.common.security.{module} required {options};\n\
             ssl.truststore.type=PEM\nssl.truststore.location={}\n",
            self.0.servers(listener)?,
            self.0.fact("TLS_CA")?
        );
        Ok(Kafka::from_properties(&text)?.bootstrap_timeout(Duration::from_secs(5)))
    }

    fn by_token(&self, listener: &str, is_tls: bool) -> Result<()> {
        let token = self.block_on(async {
            let alice = self.by_properties(listener, "SCRAM-SHA-512", "")?.connect().await?;
            let connection = alice.broker_connection(1).await?;
            let request = CreateDelegationTokenRequest { max_lifetime_ms: -1, ..Default::default() };
            Ok(connection.call(request).await?)
        })?;
        ensure!(token.error_code == 0, "CreateDelegationToken: error {}", token.error_code);
        let builder = self.builder(listener)?.sasl_delegation_token(&*token.token_id, base64(&token.hmac));
        // A broker hears of a token a moment after the controller has made it.
        let builder = if is_tls { builder.tls(self.tls()?) } else { builder };
        let mut last = Ok(());
        for _ in 0..20 {
            last = self.let_in(builder.clone());
            if last.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        last
    }

    fn let_in(&self, builder: KafkaBuilder) -> Result<()> {
        self.block_on(async {
            let kafka = builder.connect().await?;
            let cluster = kafka.admin().describe_cluster().await?;
            ensure!(cluster.brokers.len() == 1, "{} brokers instead of one", cluster.brokers.len());
            Ok(())
        })
    }

    /// Stays on its connections while it is used for longer than some sessions last, and loses nothing.
    fn renewed(&self, listener: &str, mechanism: &str) -> Result<()> {
        let dials = Arc::new(AtomicUsize::new(0));
        let environment = Environment::through(Counting(dials.clone()));
        let builder = self.by_properties(listener, mechanism, "")?.environment(environment);
        self.block_on(async {
            let kafka = builder.connect().await?;
            let topic = format!("renewed-{}-{mechanism}", listener.to_lowercase());
            for made in kafka.admin().create_topics([NewTopic::new(&*topic, 1)]).await?.into_values() {
                made?;
            }
            let producer = kafka.producer().linger(Duration::ZERO).build().await?;
            producer.send(Record::new(&*topic, "first")).await?;
            kafka.admin().describe_cluster().await?;
            let before = dials.load(Relaxed);
            let pause = Duration::from_millis(10);
            for sent in 1..=4 * SESSION.as_millis() as i64 / 10 {
                let written = producer.send(Record::new(&*topic, "next")).await?;
                ensure!(written.offset == sent, "offset {} instead of {sent}", written.offset);
                kafka.admin().describe_cluster().await?;
                tokio::time::sleep(pause).await;
            }
            // In silence a session ends; the next call renews it.
            tokio::time::sleep(2 * SESSION).await;
            producer.send(Record::new(&*topic, "last")).await?;
            producer.close().await?;
            let dialled = dials.load(Relaxed) - before;
            ensure!(dialled == 0, "{dialled} connections were made anew");
            Ok(())
        })
    }

    /// Not let in for a reason that no retry helps with.
    fn refused(&self, builder: KafkaBuilder, words: &str) -> Result<()> {
        let error = self.block_on(async { Ok(builder.connect().await) })?.err();
        let error = error.ok_or_else(|| Failure::new("it was let in"))?;
        ensure!(matches!(error, KrafkaError::Auth { .. }), "{error:?} is no Auth error");
        ensure!(error.to_string().contains(words), "'{error}' lacks '{words}'");
        ensure!(!format!("{error:?}").contains("secretwrong"), "the error shows the password");
        Ok(())
    }

    /// Not let in, with a hint.
    fn told(&self, builder: KafkaBuilder, words: &str) -> Result<()> {
        let error = self.block_on(async { Ok(builder.connect().await) })?.err();
        let error = error.ok_or_else(|| Failure::new("it was let in"))?;
        ensure!(error.to_string().contains(words), "'{error}' lacks '{words}'");
        Ok(())
    }
}

/// Connects by TCP, and counts.
struct Counting(Arc<AtomicUsize>);

impl Connect for Counting {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        self.0.fetch_add(1, Relaxed);
        TcpConnect.connect(host, port)
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
