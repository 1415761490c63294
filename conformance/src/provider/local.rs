//! A real Kafka on this machine, from its jars: no container engine needed, ready in a few seconds.
//!
//! Each node is broker and controller in one, with its data in a folder that goes when the cluster is dropped. All
//! listeners are on 127.0.0.1.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use krafka::Kafka;
use krafka_protocol::Uuid;
use scenarios::{Failure, Result};

use crate::java::{Ended, Jars, explain_no_java, run};

/// How long a cluster may take to be ready: ten times what a slow start took.
const READY: Duration = Duration::from_secs(120);

/// A running Kafka. Dropping it ends its processes and removes its data.
pub struct LocalKafka {
    bootstrap: String,
    jars: Jars,
    // The order matters: the processes end before their folder goes.
    _nodes: Vec<Ended>,
    home: Home,
}

impl LocalKafka {
    /// Starts this version with so many nodes, and waits until all of them are in the cluster.
    ///
    /// # Errors
    /// If the jars cannot be had, or a node ends instead of starting: with the end of its log.
    pub fn start(version: &str, nodes: u16) -> Result<Self> {
        let jars = Jars::fetch(version)?;
        let home = Home::new()?;
        let ports = free_ports(2 * usize::from(nodes))?;
        let (brokers, controllers) = ports.split_at(usize::from(nodes));
        let cluster_id = new_id();
        let voters: Vec<String> =
            (1..).zip(controllers).map(|(node, port)| format!("{node}@127.0.0.1:{port}:{}", new_id())).collect();
        let mut running = Vec::new();
        for (node, (port, controller)) in (1..).zip(brokers.iter().zip(controllers)) {
            let config = home.0.join(format!("node-{node}.properties"));
            fs::write(&config, properties(&jars, &home.0, node, *port, *controller, controllers))?;
            let mut format = jars.class("kafka.tools.StorageTool", &home.0, "ERROR")?;
            format.args(["format", "--cluster-id", &cluster_id, "--initial-controllers", &voters.join(",")]);
            run(with_config(format, &config), b"")?;
            let log = File::create(log_of(&home.0, node))?;
            let mut broker = jars.class("kafka.Kafka", &home.0, "INFO")?;
            broker.arg(&config).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            running.push(Ended(broker.spawn().map_err(explain_no_java)?));
        }
        let bootstrap = brokers.iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>().join(",");
        let mut kafka = Self { bootstrap, jars, _nodes: running, home };
        kafka.wait_until_ready(usize::from(nodes))?;
        Ok(kafka)
    }

    pub(crate) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        self.jars.version()
    }

    fn wait_until_ready(&mut self, nodes: usize) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let bootstrap = self.bootstrap.clone();
        let ready = async {
            loop {
                if let Ok(kafka) = Kafka::builder(&bootstrap).client_id("conformance-start").connect().await
                    && let Ok(cluster) = kafka.admin().describe_cluster().await
                    && cluster.brokers.len() == nodes
                {
                    return Ok(());
                }
                if let Some(node) = self.ended_node() {
                    return Err(Failure::new(format!("node {node} ended. Its log ends:\n{}", self.log_end(node))));
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        match runtime.block_on(async { tokio::time::timeout(READY, ready).await }) {
            Ok(ended) => ended,
            Err(_) => Err(Failure::new(format!("not ready after {READY:?}. A log ends:\n{}", self.log_end(1)))),
        }
    }

    fn ended_node(&mut self) -> Option<usize> {
        let ended = self._nodes.iter_mut().position(|node| matches!(node.0.try_wait(), Ok(Some(_))));
        ended.map(|index| index + 1)
    }

    fn log_end(&self, node: usize) -> String {
        let log = fs::read_to_string(log_of(&self.home.0, node)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

fn with_config(mut command: Command, config: &Path) -> Command {
    command.arg("--config").arg(config);
    command
}

fn log_of(home: &Path, node: usize) -> PathBuf {
    home.join(format!("node-{node}.log"))
}

/// The settings of one node. Internal topics are small and rebalances quick, for a cluster that lives a minute.
fn properties(jars: &Jars, home: &Path, node: usize, port: u16, controller: u16, controllers: &[u16]) -> String {
    let nodes = controllers.len();
    let (replicas, in_sync) = (nodes.min(3), nodes.min(2));
    let quorum: Vec<String> = controllers.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut text = String::new();
    let mut set = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}={value}");
    };
    set("process.roles", &"broker,controller");
    set("node.id", &node);
    set("listeners", &format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"));
    set("advertised.listeners", &format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"));
    set("controller.listener.names", &"CONTROLLER");
    set("listener.security.protocol.map", &"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
    set("controller.quorum.bootstrap.servers", &quorum.join(","));
    set("controller.quorum.election.timeout.ms", &500);
    set("log.dirs", &home.join(format!("node-{node}")).display());
    set("auto.create.topics.enable", &false);
    set("default.replication.factor", &replicas);
    set("offsets.topic.num.partitions", &5);
    set("offsets.topic.replication.factor", &replicas);
    set("transaction.state.log.num.partitions", &5);
    set("transaction.state.log.replication.factor", &replicas);
    set("transaction.state.log.min.isr", &in_sync);
    set("group.initial.rebalance.delay.ms", &100);
    if !jars.is_3() {
        set("share.coordinator.state.topic.num.partitions", &5);
        set("share.coordinator.state.topic.replication.factor", &replicas);
        set("share.coordinator.state.topic.min.isr", &in_sync);
    }
    text
}

/// A folder that goes when this is dropped.
struct Home(PathBuf);

impl Home {
    fn new() -> Result<Self> {
        let home = std::env::temp_dir().join(format!("krafka-conformance-{}", new_id()));
        fs::create_dir_all(&home)?;
        Ok(Self(home))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A folder left behind is a nuisance, no fault of what was tested.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Ports that were free a moment ago. All are held until the last is found, so that they differ.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    let held: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<std::io::Result<_>>()?;
    Ok(held
        .iter()
        .map(TcpListener::local_addr)
        .collect::<std::io::Result<Vec<_>>>()?
        .iter()
        .map(|at| at.port())
        .collect())
}

/// A new id in Kafka's form. It begins with a letter: a leading '-' would look like an option to Kafka's tools.
fn new_id() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};

    let mut bytes = [0; 16];
    for half in bytes.chunks_mut(8) {
        // The standard library's hasher keys are the random bytes that it hands out without a dependency.
        half.copy_from_slice(&RandomState::new().build_hasher().finish().to_be_bytes());
    }
    bytes[0] = b'k';
    Uuid(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_suit_kafkas_tools() {
        let (one, other) = (new_id(), new_id());

        assert_ne!(one, other);
        assert_eq!(one.len(), 22);
        assert!(one.starts_with('a'), "{one}");
    }

    #[test]
    fn ports_differ() {
        let mut ports = free_ports(6).unwrap();
        ports.sort_unstable();
        ports.dedup();

        assert_eq!(ports.len(), 6);
    }
}
