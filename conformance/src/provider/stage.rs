//! A cluster for trials: with several ways in, or with nodes that may die. A real Kafka by the script beside this
//! crate, or the fake, which is told the same.
//!
//! What one should know of it are its facts, by the names that the script prints: `BOOTSTRAP`, `TLS_CA`, and so on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use krafka::testing::SecurityProtocol;
use krafka_fake_broker::{ClientAuth, FakeCluster, FakeClusterBuilder, ServerTls};
use scenarios::{Failure, Result};
use tokio::runtime::Runtime;

use super::certificates::Authority;
use crate::clock::run_id;

/// How long a session lasts before the client must authenticate again (`connections.max.reauth.ms`).
pub(crate) const SESSION: Duration = Duration::from_secs(2);

/// After how much silence a broker closes a connection (`connections.max.idle.ms`). The fake closes none for that.
pub(crate) const IDLE: Duration = Duration::from_secs(5);

/// How many of the [`Ground::Nodes`] there are.
pub(crate) const NODES: i32 = 3;

/// The release that clusters are upgraded from.
pub(crate) const OLDEST: &str = "3.9.2";

/// What kind of cluster a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ground {
    /// One node with all listeners, by SASL and TLS.
    Doors,
    /// Three nodes, each in a rack of its own, that may be killed, stopped and moved, and make topics that somebody
    /// writes to.
    Nodes,
    /// The same of release 3.9.2, whichever is asked for, to be upgraded. The fake has none.
    Releases,
}

/// A cluster. Dropping it ends it.
pub struct Stage {
    facts: BTreeMap<String, String>,
    version: String,
    run: u64,
    names: AtomicU32,
    /// Whether something was done to a node since the last healing.
    is_hurt: AtomicBool,
    nodes: Nodes,
    runtime: Runtime,
}

enum Nodes {
    Fake(FakeCluster),
    Real(PathBuf),
}

impl Stage {
    /// Starts the fake, or this version of Kafka.
    ///
    /// # Errors
    /// If it does not start: with what was said about it.
    pub fn start(version: &str, ground: Ground) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (facts, nodes) = if version == "fake" { fake(&runtime, ground)? } else { real(version, ground)? };
        let (names, is_hurt) = (AtomicU32::new(0), AtomicBool::new(false));
        Ok(Self { facts, version: version.to_owned(), run: run_id(), names, is_hurt, nodes, runtime })
    }

    /// Runs what is asked of the cluster, for so long at most.
    pub(crate) fn block_on<T>(&self, bound: Duration, future: impl Future<Output = Result<T>>) -> Result<T> {
        let late = |_| Err(Failure::new(format!("nothing came of it within {bound:?}")));
        self.runtime.block_on(async { tokio::time::timeout(bound, future).await.unwrap_or_else(late) })
    }

    pub(crate) fn fact(&self, name: &str) -> Result<&str> {
        let fact = self.facts.get(name).map(String::as_str);
        fact.ok_or_else(|| Failure::new(format!("the cluster said no {name}")))
    }

    /// The bootstrap servers of a listener.
    pub(crate) fn servers(&self, listener: &str) -> Result<&str> {
        self.fact(&if listener == "PLAINTEXT" { "BOOTSTRAP".to_owned() } else { format!("BOOTSTRAP_{listener}") })
    }

    /// The address of a node's plain listener, as it was when the cluster began.
    pub(crate) fn address(&self, node: i32) -> Result<&str> {
        let address =
            usize::try_from(node - 1).ok().and_then(|index| self.fact("BOOTSTRAP").ok()?.split(',').nth(index));
        address.ok_or_else(|| Failure::new(format!("there is no node {node}")))
    }

    /// The fake itself, where it is the cluster.
    pub(crate) fn fake(&self) -> Option<&FakeCluster> {
        match &self.nodes {
            Nodes::Fake(fake) => Some(fake),
            Nodes::Real(_) => None,
        }
    }

    /// Whether it is of Kafka's third release.
    pub(crate) fn is_3(&self) -> bool {
        self.version.starts_with("3.")
    }

    /// A name that nothing else in this cluster has.
    pub(crate) fn name(&self, what: &str) -> String {
        format!("{what}-{:x}-{}", self.run, self.names.fetch_add(1, Relaxed))
    }

    /// Kills a node at once.
    pub(crate) async fn crash(&self, node: i32) -> Result<()> {
        self.order(&["stop"], node, &["--now"], |fake| fake.crash(node)).await
    }

    /// Starts a node that was killed, and waits until it serves.
    pub(crate) async fn restart(&self, node: i32) -> Result<()> {
        self.order(&["restart"], node, &[], |fake| fake.restart(node)).await
    }

    /// Starts all nodes that were killed, and waits until they serve.
    pub(crate) async fn restart_all(&self) -> Result<()> {
        self.order(&["restart"], 0, &[], |fake| fake.nodes().into_iter().for_each(|node| fake.restart(node))).await
    }

    /// Stops a node in its tracks: the system still takes connections for it.
    pub(crate) async fn pause(&self, node: i32) -> Result<()> {
        self.order(&["pause"], node, &[], |fake| fake.pause(node)).await
    }

    /// Lets a node go on that was stopped.
    pub(crate) async fn resume(&self, node: i32) -> Result<()> {
        self.order(&["resume"], node, &[], |fake| fake.resume(node)).await
    }

    /// Starts a node again that was killed, or all of them if it is 0, at other ports; or where they were at first, if
    /// they are elsewhere. [`address`](Self::address) stays where they were at first.
    ///
    /// # Errors
    /// If they do not start.
    pub(crate) async fn restart_elsewhere(&self, node: i32) -> Result<()> {
        self.order(&["restart"], node, &["--shift"], |fake| {
            for node in fake.nodes().into_iter().filter(|it| node == 0 || *it == node) {
                fake.restart(node);
                let (host, port) = fake.address(node).expect("a node has an address");
                let first = self.address(node).ok().and_then(|address| address.rsplit_once(':')?.1.parse().ok());
                let first: u16 = first.expect("an address ends with its port");
                fake.move_node(node, &host, if port == first { first - 1_000 } else { first });
                fake.disconnect(node);
            }
        })
        .await
    }

    /// Starts a node that was killed from another release's jars, and waits until it serves.
    pub(crate) async fn restart_as(&self, node: i32, release: &str) -> Result<()> {
        self.order(&["restart"], node, &["--release", release], |_| ()).await
    }

    /// Where a node is now.
    pub(crate) fn present_address(&self, node: i32) -> Result<String> {
        if let Some(fake) = self.fake() {
            let address = fake.address(node).map(|(host, port)| format!("{host}:{port}"));
            return address.ok_or_else(|| Failure::new(format!("there is no node {node}")));
        }
        let settings = std::fs::read_to_string(Path::new(self.fact("DIR")?).join(format!("node-{node}.properties")))?;
        let address = settings.lines().find_map(|line| line.strip_prefix("listeners=PLAINTEXT://")?.split(',').next());
        address.map(str::to_owned).ok_or_else(|| Failure::new(format!("node {node} has no plain listener")))
    }

    /// Leaves all nodes up and running, whatever was done to them.
    pub(crate) async fn heal(&self) -> Result<()> {
        if !self.is_hurt.swap(false, Relaxed) {
            return Ok(());
        }
        match &self.nodes {
            Nodes::Fake(fake) => {
                for node in fake.nodes() {
                    fake.resume(node);
                    if !fake.live_nodes().contains(&node) {
                        fake.restart(node);
                    }
                }
                Ok(())
            }
            Nodes::Real(_) => {
                self.order(&["resume"], 0, &[], |_| ()).await?;
                self.order(&["restart"], 0, &[], |_| ()).await?;
                self.is_hurt.store(false, Relaxed);
                Ok(())
            }
        }
    }

    /// Has the script do something with a node, or with all of them if it is 0; or the fake.
    async fn order(&self, what: &[&str], node: i32, options: &[&str], fake: impl FnOnce(&FakeCluster)) -> Result<()> {
        self.is_hurt.store(true, Relaxed);
        let script = match &self.nodes {
            Nodes::Fake(cluster) => {
                fake(cluster);
                return Ok(());
            }
            Nodes::Real(script) => script,
        };
        let mut command = Command::new(script);
        command.args(what).arg(self.fact("DIR")?).args((node > 0).then(|| node.to_string())).args(options);
        tokio::task::spawn_blocking(move || said(command)).await?.map(drop)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let (Nodes::Real(script), Some(folder)) = (&self.nodes, self.facts.get("DIR")) {
            // What does not stop ends with the machine; what was tested is not to blame.
            let _ = Command::new(script).args(["stop", folder, "--now"]).output();
        }
        if let Some(folder) = self.facts.get("DIR") {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// What a command prints.
fn said(mut command: Command) -> Result<String> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(Failure::new(format!("{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr))))
}

fn real(version: &str, ground: Ground) -> Result<(BTreeMap<String, String>, Nodes)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("real-kafka");
    let (sessions, idle) = (SESSION.as_millis(), IDLE.as_millis());
    let mut command = Command::new(&script);
    command.args(["start", if ground == Ground::Releases { OLDEST } else { version }]);
    match ground {
        Ground::Doors => command.args(["--sasl", "--tls", "--prop", &format!("connections.max.reauth.ms={sessions}")]),
        Ground::Nodes | Ground::Releases => {
            command.args(["--nodes", &NODES.to_string(), "--apart", "--prop", "auto.create.topics.enable=true"]);
            // The others notice that one is gone within seconds.
            command.args(["--prop", "broker.session.timeout.ms=4000", "--prop", "broker.heartbeat.interval.ms=500"]);
            command.args(["--prop", &format!("connections.max.idle.ms={idle}")])
        }
    };
    let said = said(command)?;
    let facts = said.lines().filter_map(|line| line.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned()));
    Ok((facts.collect(), Nodes::Real(script)))
}

fn fake(runtime: &Runtime, ground: Ground) -> Result<(BTreeMap<String, String>, Nodes)> {
    let mut facts = BTreeMap::new();
    let mut fact = |name: &str, value: String| facts.insert(name.to_owned(), value);
    let builder = match ground {
        Ground::Doors => {
            let folder = std::env::temp_dir().join(format!("krafka-doors-{:x}", run_id()));
            std::fs::create_dir_all(&folder)?;
            let authority = Authority::new("fake-ca")?;
            let (server, client) = (authority.issue("localhost")?, authority.issue("client")?);
            for (name, file, text) in [
                ("TLS_CA", "ca.pem", authority.pem()),
                ("TLS_CLIENT_CERT", "client.pem", &*client.chain),
                ("TLS_CLIENT_KEY", "client.key", &*client.key),
            ] {
                std::fs::write(folder.join(file), text)?;
                fact(name, folder.join(file).display().to_string());
            }
            fact("DIR", folder.display().to_string());
            let tls = ServerTls::from_pem(server.chain.as_bytes(), server.key.as_bytes())?;
            doors(tls.client_auth(authority.pem().as_bytes(), ClientAuth::Requested)?)
        }
        Ground::Nodes | Ground::Releases => FakeCluster::builder()
            .nodes(NODES)
            .racks((1..=NODES).map(|node| format!("rack-{node}")))
            .rack_aware_replica_selector(true)
            .auto_create_topics(true)
            .broker_config("broker.session.timeout.ms", "4000"),
    };
    let cluster = runtime.block_on(builder.start())?;
    fact("BOOTSTRAP", cluster.bootstrap());
    if ground == Ground::Doors {
        fact("BOOTSTRAP_SASL_PLAINTEXT", cluster.bootstrap_of(SecurityProtocol::SaslPlaintext));
        fact("BOOTSTRAP_SASL_SSL", cluster.bootstrap_of(SecurityProtocol::SaslSsl));
        fact("BOOTSTRAP_SSL", cluster.bootstrap_of(SecurityProtocol::Ssl));
    }
    Ok((facts, Nodes::Fake(cluster)))
}

/// The fake with the listeners and users of the script.
fn doors(tls: ServerTls) -> FakeClusterBuilder {
    let listeners = [
        SecurityProtocol::Plaintext,
        SecurityProtocol::SaslPlaintext,
        SecurityProtocol::Ssl,
        SecurityProtocol::SaslSsl,
    ];
    let builder = listeners.into_iter().fold(FakeCluster::builder().nodes(1), FakeClusterBuilder::listener);
    let users = ["admin", "alice", "bob"];
    let builder = users.iter().fold(builder, |builder, user| builder.user(*user, format!("{user}-secret")));
    builder
        .tls(tls)
        .oauthbearer_unsecured()
        .connections_max_reauth(SESSION)
        .delegation_token_secret_key("fake-delegation-token-key")
        .authorizer()
        .super_user("User:ANONYMOUS")
        .super_user("User:admin")
        .allow_everyone_if_no_acl_found(true)
}
