//! Kafka in a container, where an engine runs: kept on the host's network, so that its address is one that we know.

use std::net::TcpListener;

use scenarios::Result;
use testcontainers::core::WaitFor;
use testcontainers::runners::SyncRunner;
use testcontainers::{Container as Running, GenericImage, ImageExt};

/// The image, unless `KRAFKA_IMAGE` names another as `name:tag`.
const IMAGE: &str = "apache/kafka:4.4.0";

/// A container with one Kafka node. Dropping it removes the container.
pub struct Container {
    bootstrap: String,
    _running: Running<GenericImage>,
}

impl Container {
    /// Starts the image and waits until the broker says that it has started.
    ///
    /// # Errors
    /// If no engine runs, or the image cannot be had.
    pub fn start() -> Result<Self> {
        let image = std::env::var("KRAFKA_IMAGE").unwrap_or_else(|_| IMAGE.to_owned());
        let (name, tag) = image.rsplit_once(':').unwrap_or((&image, "latest"));
        let port = || Ok::<_, std::io::Error>(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port());
        let (broker, controller) = (port()?, port()?);
        let bootstrap = format!("127.0.0.1:{broker}");
        let running = GenericImage::new(name, tag)
            .with_wait_for(WaitFor::message_on_stdout("Kafka Server started"))
            .with_network("host")
            .with_env_var("KAFKA_NODE_ID", "1")
            .with_env_var("KAFKA_PROCESS_ROLES", "broker,controller")
            .with_env_var(
                "KAFKA_LISTENERS",
                format!("PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}"),
            )
            .with_env_var("KAFKA_ADVERTISED_LISTENERS", format!("PLAINTEXT://{bootstrap}"))
            .with_env_var("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER")
            .with_env_var("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT")
            .with_env_var("KAFKA_CONTROLLER_QUORUM_VOTERS", format!("1@127.0.0.1:{controller}"))
            .with_env_var("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1")
            .with_env_var("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
            .with_env_var("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
            .with_env_var("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "100")
            .start()?;
        Ok(Self { bootstrap, _running: running })
    }

    pub(crate) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }
}
