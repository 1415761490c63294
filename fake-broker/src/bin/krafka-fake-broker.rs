//! The fake cluster as a program of its own, for clients in any language.
//!
//! Prints `BOOTSTRAP=host:port,…` on one line when it is ready, the addresses of further listeners and of the control
//! port before it, and runs until its standard input closes or a signal asks it to end.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::SocketAddr;
#[cfg(feature = "tls")]
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

#[cfg(feature = "tls")]
use krafka_fake_broker::{ClientAuth, ServerTls};
use krafka_fake_broker::{FakeCluster, FakeClusterBuilder, KafkaVersion, Profile, SecurityProtocol};
use lexopt::prelude::*;
use tokio::io::AsyncReadExt;

const USAGE: &str = "\
krafka-fake-broker: a Kafka cluster that is not real, but answers as a real one does

Usage: krafka-fake-broker [OPTIONS]

  --nodes N                  how many nodes (default 1)
  --port-base PORT           node i listens on PORT + i - 1 of 127.0.0.1, further listeners on the
                             ports behind those of all nodes (default: free ports)
  --topic NAME[:PARTITIONS]  create a topic; may be repeated
  --as-version VERSION       look like Kafka 3.9, 4.0, 4.1, 4.2, 4.3 or 4.4 (default 4.4),
                             or advertise what msk-serverless or event-hubs do
  --node-version NODE=VERSION
                             let one node look like that Kafka, as in a rolling upgrade; may be
                             repeated. The features of the cluster are those of its oldest node
  --auto-create              create unknown topics that clients ask for
  --sasl USER:PASSWORD       open a further listener on every node, which asks for SASL, and let this
                             user in; may be repeated for others. The first user is a superuser, as is whoever
                             comes without SASL; ACLs are enforced where there are any
  --oauthbearer              take unsecured tokens on that listener, which is opened without --sasl, too:
                             anybody is who a JSON web token says that nobody signed
  --tls DIR                  open a further listener on every node, which speaks TLS with the
                             certificate DIR/server.pem and its key DIR/server.key (PEM); where there
                             is a DIR/ca.pem, a client may show a certificate signed by it, and is
                             then who it says. With --sasl there is a listener for both at once, too
  --config NAME=VALUE        set a config of all brokers by Kafka's name, as a broker's file does, such as
                             transaction.max.timeout.ms=60000; may be repeated for others
  --feature NAME=LEVEL       begin with a feature at that level, such as group.version=0, as kafka-storage
                             format does; may be repeated for others
  --racks RACK,…             the racks of the nodes, given round robin
  --telemetry                advertise that the nodes take metrics of clients
  --marker-delay MS          how long partitions wait to be told that a transaction has ended, while its
                             producer is answered CONCURRENT_TRANSACTIONS (default 0; Kafka takes some
                             milliseconds)
  --seed N                   the seed of all ids (default 0)
  --control ADDRESS          serve the control port there, such as 127.0.0.1:0: rules of
                             what shall go wrong, changes of the cluster, and views of what
                             is in it, over HTTP with JSON; prints CONTROL=host:port
  --strict                   end with status 1 if a rule never acted, or a client asked for
                             what Kafka refuses
  --help                     print this

When it is ready it prints BOOTSTRAP=host:port,… on one line; and before it, for
further listeners, SASL_BOOTSTRAP=…, TLS_BOOTSTRAP=… and SASL_TLS_BOOTSTRAP=… on a
line each. It ends when its standard input closes, or with SIGINT, SIGTERM or
SIGHUP.";

/// What --auto-create sets.
const AUTO_CREATE: &str = "auto.create.topics.enable";

const KAFKAS: &str = "3.9, 4.0, 4.1, 4.2, 4.3 or 4.4";
const KAFKAS_AND_SERVICES: &str = "3.9, 4.0, 4.1, 4.2, 4.3 or 4.4, msk-serverless or event-hubs";

/// What the command line asks for.
struct Options {
    builder: FakeClusterBuilder,
    control: Option<SocketAddr>,
    strict: bool,
}

/// What was said so far, to be compared with what else is said.
struct Given {
    /// Names that can be given once, with the options that they belong to.
    names: BTreeSet<(&'static str, String)>,
    node_count: i32,
    /// The nodes that have a version of their own.
    nodes: Vec<i32>,
    service: Option<String>,
    auto_create: bool,
    configured_auto_create: Option<String>,
}

impl Default for Given {
    fn default() -> Self {
        let (names, nodes) = (BTreeSet::new(), Vec::new());
        Self { names, node_count: 1, nodes, service: None, auto_create: false, configured_auto_create: None }
    }
}

impl Given {
    /// Takes a name that may be given once: of two the first would be forgotten.
    fn once(&mut self, option: &'static str, what: &str, name: &str) -> Result<(), Failure> {
        if self.names.insert((option, name.to_owned())) {
            return Ok(());
        }
        Err(Failure::Usage(format!("{option}: {what} '{name}' was given before")))
    }

    /// Sees that it goes together.
    fn check(&self) -> Result<(), Failure> {
        if let Some(node) = self.nodes.iter().find(|node| !(1..=self.node_count).contains(*node)) {
            let numbered = format!("they are numbered from 1 to {}", self.node_count);
            return Err(Failure::Usage(format!("--node-version: there is no node {node}: {numbered}")));
        }
        if let (Some(service), Some(node)) = (&self.service, self.nodes.first()) {
            let reason = format!("all nodes advertise what {service} does, and node {node} cannot be a Kafka");
            return Err(Failure::Usage(format!("--node-version: {reason}")));
        }
        match &self.configured_auto_create {
            Some(value) if self.auto_create && !value.trim().eq_ignore_ascii_case("true") => {
                Err(Failure::Usage(format!("--auto-create and --config {AUTO_CREATE}={value} contradict each other")))
            }
            _ => Ok(()),
        }
    }
}

/// What is wrong with the command line, or with the machine.
enum Failure {
    Usage(String),
    Io(io::Error),
}

fn main() -> ExitCode {
    match parse().and_then(|options| options.map_or(Ok(()), run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            eprintln!("krafka-fake-broker: {message}\nTry --help.");
            ExitCode::from(2)
        }
        Err(Failure::Io(error)) => {
            eprintln!("krafka-fake-broker: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the command line. Returns nothing when it only asked for help.
fn parse() -> Result<Option<Options>, Failure> {
    let (mut control, mut strict) = (None, false);
    // Access rules can be made and are kept, and nothing is denied that no rule is about: a client's tests of its
    // administration pass, and nobody else notices.
    let mut builder = FakeCluster::builder()
        .authorizer()
        .allow_everyone_if_no_acl_found(true)
        .super_user("User:ANONYMOUS")
        .fresh_coordinators(true);
    let mut given = Given::default();
    let (mut has_sasl, mut has_users, mut has_tls) = (false, false, false);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next().map_err(usage)? {
        builder = match argument {
            Long("nodes") => {
                let nodes = parsed(&mut arguments, "--nodes takes a number")?;
                given.node_count = nodes;
                builder.try_nodes(nodes).map_err(|reason| Failure::Usage(format!("--nodes: {reason}")))?
            }
            Long("port-base") => builder.port_base(within(&mut arguments, "--port-base", 1, 65_535)? as u16),
            Long("topic") => {
                let argument = text(&mut arguments)?;
                let (name, partitions) = topic(&argument)?;
                let fault = |reason: String| Failure::Usage(format!("--topic {argument}: {reason}"));
                given.once("--topic", "the topic", name)?;
                builder.try_topic(name, partitions).map_err(fault)?
            }
            Long("as-version") => {
                let named = text(&mut arguments)?;
                match named.parse::<Profile>() {
                    Ok(profile) => {
                        given.service = Some(named);
                        builder.as_service(profile)
                    }
                    Err(_) => builder.as_version(version("--as-version", KAFKAS_AND_SERVICES, &named)?),
                }
            }
            Long("node-version") => {
                let text = text(&mut arguments)?;
                let pair = text.split_once('=').and_then(|(node, named)| Some((node.parse::<i32>().ok()?, named)));
                let Some((node, named)) = pair else {
                    return Err(Failure::Usage(format!("--node-version takes NODE=VERSION, not '{text}'")));
                };
                given.once("--node-version", "node", &node.to_string())?;
                given.nodes.push(node);
                builder.node_version(node, version("--node-version", KAFKAS, named)?)
            }
            Long("auto-create") => {
                given.auto_create = true;
                builder.auto_create_topics(true)
            }
            Long("sasl") => {
                let user = text(&mut arguments)?;
                let Some((user, password)) = user.split_once(':').filter(|(user, _)| !user.is_empty()) else {
                    return Err(Failure::Usage(format!("--sasl takes USER:PASSWORD, not '{user}'")));
                };
                if password.is_empty() {
                    let reason = "the password is empty, and no client logs in with such a one";
                    return Err(Failure::Usage(format!("--sasl {user}: {reason}")));
                }
                given.once("--sasl", "the user", user)?;
                if !has_users {
                    builder = builder.super_user(&format!("User:{user}"));
                }
                (has_sasl, has_users) = (true, true);
                builder.user(user, password).delegation_token_secret_key("krafka")
            }
            Long("oauthbearer") => {
                has_sasl = true;
                builder.oauthbearer_unsecured()
            }
            Long("config") => {
                let setting = text(&mut arguments)?;
                let Some((name, value)) = setting.split_once('=') else {
                    return Err(Failure::Usage(format!("--config takes NAME=VALUE, not '{setting}'")));
                };
                given.once("--config", "the config", name)?;
                if name == AUTO_CREATE {
                    given.configured_auto_create = Some(value.to_owned());
                }
                builder.property(name, value).map_err(|reason| Failure::Usage(format!("--config: {reason}")))?
            }
            Long("feature") => {
                let feature = text(&mut arguments)?;
                let named = feature.split_once('=').and_then(|(name, level)| Some((name, level.parse().ok()?)));
                let Some((name, level)) = named else {
                    return Err(Failure::Usage(format!("--feature takes NAME=LEVEL, not '{feature}'")));
                };
                given.once("--feature", "the feature", name)?;
                builder.feature(name, level)
            }
            Long("racks") => {
                let racks = text(&mut arguments)?;
                if racks.split(',').any(|rack| rack.trim().is_empty()) {
                    return Err(Failure::Usage(format!("--racks takes RACK,…, each with a name, not '{racks}'")));
                }
                builder.racks(racks.split(',').map(str::to_owned))
            }
            Long("telemetry") => builder.client_telemetry(true),
            #[cfg(feature = "tls")]
            Long("tls") => {
                has_tls = true;
                builder.tls(certificate(&text(&mut arguments)?)?)
            }
            Long("marker-delay") => {
                let millis = parsed(&mut arguments, "--marker-delay takes a number of milliseconds")?;
                builder.marker_delay(Duration::from_millis(millis))
            }
            Long("seed") => builder.seed(parsed(&mut arguments, "--seed takes a number from 0 on")?),
            Long("control") if control.is_some() => {
                return Err(Failure::Usage("--control was given before: there is one control port".to_owned()));
            }
            Long("control") => {
                control = Some(parsed(&mut arguments, "--control takes an address with a port, such as 127.0.0.1:0")?);
                builder
            }
            Long("strict") => {
                strict = true;
                builder.strict()
            }
            Short('h') | Long("help") => {
                // Whoever reads it may have seen enough, or have no room.
                writeln!(io::stdout(), "{USAGE}").map_err(Failure::Io)?;
                return Ok(None);
            }
            other => return Err(usage(other.unexpected())),
        };
    }
    given.check()?;
    let further = [
        (has_sasl, SecurityProtocol::SaslPlaintext),
        (has_tls, SecurityProtocol::Ssl),
        (has_sasl && has_tls, SecurityProtocol::SaslSsl),
    ];
    builder = builder.listener(SecurityProtocol::Plaintext);
    let wanted = further.into_iter().filter(|(is_open, _)| *is_open);
    let builder = wanted.fold(builder, |builder, (_, it)| builder.listener(it));
    // All but the features was looked at when it was read.
    builder.check().map_err(|reason| Failure::Usage(format!("--feature {reason}")))?;
    Ok(Some(Options { builder, control, strict }))
}

/// Reads what TLS listeners need from a directory.
#[cfg(feature = "tls")]
fn certificate(directory: &str) -> Result<ServerTls, Failure> {
    let path = |name: &str| Path::new(directory).join(name);
    let read = |name: &str| {
        let path = path(name);
        std::fs::read(&path).map_err(|error| Failure::Usage(format!("--tls: {}: {error}", path.display())))
    };
    let unusable = |error: io::Error| Failure::Usage(format!("--tls {directory}: {error}"));
    let tls = ServerTls::from_pem(&read("server.pem")?, &read("server.key")?).map_err(unusable)?;
    if !path("ca.pem").exists() {
        return Ok(tls);
    }
    tls.client_auth(&read("ca.pem")?, ClientAuth::Requested).map_err(unusable)
}

fn usage(error: lexopt::Error) -> Failure {
    Failure::Usage(error.to_string())
}

fn text(arguments: &mut lexopt::Parser) -> Result<String, Failure> {
    arguments.value().and_then(|value| value.string()).map_err(usage)
}

/// Reads what the option takes, and says what that is where it is something else.
fn parsed<T: std::str::FromStr>(arguments: &mut lexopt::Parser, takes: &str) -> Result<T, Failure> {
    let value = text(arguments)?;
    value.parse().map_err(|_| Failure::Usage(format!("{takes}, not '{value}'")))
}

fn within(arguments: &mut lexopt::Parser, option: &str, least: i32, most: i32) -> Result<i32, Failure> {
    let value = text(arguments)?;
    let number: i32 =
        value.parse().map_err(|error| Failure::Usage(format!("{option}: '{value}' is no number: {error}")))?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(Failure::Usage(format!("{option} takes a number from {least} to {most}, not {number}")))
    }
}

fn topic(argument: &str) -> Result<(&str, i32), Failure> {
    let (name, partitions) = argument.rsplit_once(':').unwrap_or((argument, "1"));
    let fault = |_| Failure::Usage(format!("--topic {argument}: '{partitions}' is not a number of partitions"));
    Ok((name, partitions.parse().map_err(fault)?))
}

fn version(option: &str, takes: &str, argument: &str) -> Result<KafkaVersion, Failure> {
    argument.parse().map_err(|_| Failure::Usage(format!("{option} takes {takes}, not '{argument}'")))
}

fn run(options: Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Io)?;
    let served = runtime.block_on(serve(options)).map_err(Failure::Io);
    // The task that reads standard input may be blocked in it for ever.
    runtime.shutdown_background();
    served
}

async fn serve(options: Options) -> io::Result<()> {
    // Asked for before anybody is told that we are ready, so that no signal finds the default action.
    let mut ended = Ended::new()?;
    let fake = options.builder.start().await?;
    let mut out = io::stdout();
    if let Some(address) = options.control {
        writeln!(out, "CONTROL={}", fake.serve_control(address).await?)?;
    }
    let further = [
        ("SASL_BOOTSTRAP", SecurityProtocol::SaslPlaintext),
        ("TLS_BOOTSTRAP", SecurityProtocol::Ssl),
        ("SASL_TLS_BOOTSTRAP", SecurityProtocol::SaslSsl),
    ];
    for (name, listener) in further {
        let addresses = fake.bootstrap_of(listener);
        if !addresses.is_empty() {
            writeln!(out, "{name}={addresses}")?;
        }
    }
    writeln!(out, "BOOTSTRAP={}", fake.bootstrap())?;
    out.flush()?;
    ended.wait().await;
    let complaints = if options.strict { fake.complaints() } else { Vec::new() };
    // The process ends now, and says what its drop would say.
    std::mem::forget(fake);
    if complaints.is_empty() { Ok(()) } else { Err(io::Error::other(complaints.join("\n"))) }
}

/// What ends the program.
#[cfg(unix)]
struct Ended {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Ended {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            // All of them end the program alike.
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
            () = input_closed() => {}
        }
    }
}

/// What ends the program.
#[cfg(not(unix))]
struct Ended;

#[cfg(not(unix))]
impl Ended {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn wait(&mut self) {
        tokio::select! {
            // Both end the program alike.
            biased;
            _ = tokio::signal::ctrl_c() => {}
            () = input_closed() => {}
        }
    }
}

/// Waits until standard input is at its end.
async fn input_closed() {
    let mut input = tokio::io::stdin();
    let mut ignored = [0; 1024];
    while let Ok(1..) = input.read(&mut ignored).await {}
}
