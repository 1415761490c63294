//! Nodes that a test may kill and stop: of the fake, or of a real cluster that is there for that.
//!
//! `KRAFKA_MORTALS` is the folder of a cluster that `conformance/real-kafka start VERSION --nodes 4 --apart` made,
//! with the [`SETTINGS`] below. One test at a time has it. When a test ends, however it ends, all nodes are up and
//! running again.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use krafka_fake_broker::FakeCluster;
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponsePartition};

use crate::target::{PATIENCE, Target, Wire, on_fake_as_asked, run_on};

/// The environment variable that names the folder of the cluster.
const MORTALS: &str = "KRAFKA_MORTALS";

/// What lets a test wait for seconds where Kafka waits for half a minute: `conformance/agreements` starts the cluster
/// with the same. A node that is silent is given up on after the first, and a replica that lags is out of sync after
/// the second.
pub(crate) const SETTINGS: [(&str, &str); 2] =
    [("broker.session.timeout.ms", "8000"), ("replica.lag.time.max.ms", "3000")];

/// The nodes: 1 to 4. Those of a real cluster are brokers only, so that somebody still decides when all of them are
/// down.
pub(crate) enum Mortals {
    Fake(FakeCluster),
    Real(String),
}

/// Runs a test on nodes that it may kill.
pub(crate) fn run_on_mortals(test: impl AsyncFnOnce(Target, Mortals)) {
    static ALONE: Mutex<()> = Mutex::new(());
    let Ok(home) = std::env::var(MORTALS) else {
        let builder = SETTINGS
            .iter()
            .fold(FakeCluster::builder().nodes(4), |builder, (name, value)| builder.broker_config(*name, *value));
        return on_fake_as_asked(builder, async |target, fake| test(target, Mortals::Fake(fake)).await);
    };
    // A test that failed has left the nodes up: dropping `Mortals` sees to it.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let nodes = Mortals::Real(home);
    run_on(Target::of_nodes(nodes.servers()), async |target| test(target, nodes).await);
}

impl Mortals {
    /// Kills a node at once, and waits until the others go on without it.
    pub(crate) async fn crash(&self, node: i32) {
        match self {
            Self::Fake(fake) => fake.crash(node),
            Self::Real(_) => self.command("stop", node, &["--now"]),
        }
    }

    /// Starts a node that was killed, and waits until it serves.
    pub(crate) async fn restart(&self, node: i32) {
        match self {
            Self::Fake(fake) => fake.restart(node),
            Self::Real(_) => self.command("restart", node, &[]),
        }
    }

    /// Stops a node in its tracks.
    pub(crate) async fn pause(&self, node: i32) {
        match self {
            Self::Fake(fake) => fake.pause(node),
            Self::Real(_) => self.command("pause", node, &[]),
        }
    }

    /// Lets a node go on that was stopped.
    pub(crate) async fn resume(&self, node: i32) {
        match self {
            Self::Fake(fake) => fake.resume(node),
            Self::Real(_) => self.command("resume", node, &[]),
        }
    }

    /// The real nodes' addresses.
    fn servers(&self) -> String {
        let Self::Real(home) = self else { return String::new() };
        let read = |node| {
            let text = std::fs::read_to_string(Path::new(home).join(format!("node-{node}.properties")));
            let text = text.expect("the settings of a node");
            let at = text.lines().find_map(|line| line.strip_prefix("listeners=PLAINTEXT://"));
            at.expect("a listener").split(',').next().expect("an address").to_owned()
        };
        (1..=4).map(read).collect::<Vec<_>>().join(",")
    }

    fn command(&self, what: &str, node: i32, options: &[&str]) {
        let Self::Real(home) = self else { return };
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../real-kafka");
        let mut command = Command::new(program);
        command.arg(what).arg(home).args((node > 0).then(|| node.to_string())).args(options).stdout(Stdio::null());
        assert!(command.status().expect("real-kafka").success(), "{what} {node}");
    }
}

impl Drop for Mortals {
    fn drop(&mut self) {
        if let Self::Real(_) = self {
            self.command("resume", 0, &[]);
            self.command("restart", 0, &[]);
        }
    }
}

/// What a node says of the first partition of a topic.
pub(crate) async fn partition(wire: &mut Wire, topic: &str) -> MetadataResponsePartition {
    let topic = MetadataRequestTopic { name: Some(topic.into()), ..MetadataRequestTopic::default() };
    let request = MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() };
    wire.call(request, 12).await.topics.remove(0).partitions.remove(0)
}

/// Asks until the answer is as expected, as what it tells of comes about some time later.
///
/// # Panics
///
/// With the last answer, if it never is.
pub(crate) async fn comes<T: PartialEq + std::fmt::Debug>(expected: T, mut ask: impl AsyncFnMut() -> T) {
    let mut answer = ask().await;
    for _ in 0..PATIENCE.as_millis() / 100 {
        if answer == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer = ask().await;
    }
    assert_eq!(answer, expected);
}
