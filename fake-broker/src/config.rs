//! What a cluster is built with and keeps for its life.

use std::collections::BTreeMap;
use std::time::Duration;

use krafka_protocol::Str;

use crate::listeners::Listeners;
use crate::security::acls::Acls;
use crate::security::logins::Logins;

/// The settings of a cluster, with Kafka's defaults where a test would not wish otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) cluster_id: Str,
    pub(crate) seed: u64,
    /// Whether what Kafka refuses is noted, and what did not happen.
    pub(crate) strict: bool,
    pub(crate) default_partitions: i32,
    pub(crate) replication_factor: i16,
    pub(crate) auto_create_topics: bool,
    /// Who may log in at the start, and how.
    pub(crate) logins: Logins,
    /// The ports of each node.
    pub(crate) listeners: Listeners,
    /// What the authorizer is told at the start.
    pub(crate) acls: Acls,
    pub(crate) group_initial_rebalance_delay: Duration,
    pub(crate) group_min_session_timeout: Duration,
    pub(crate) group_max_session_timeout: Duration,
    pub(crate) group_max_size: usize,
    pub(crate) group_consumer_session_timeout: Duration,
    pub(crate) group_consumer_heartbeat_interval: Duration,
    pub(crate) group_consumer_assignment_interval: Duration,
    pub(crate) group_consumer_regex_refresh_interval: Duration,
    pub(crate) group_consumer_max_size: usize,
    /// What the Kafka version's default is, if it is not set.
    pub(crate) group_consumer_migration_policy: Option<MigrationPolicy>,
    pub(crate) offsets_retention: Duration,
    pub(crate) offsets_retention_check_interval: Duration,
    pub(crate) offset_metadata_max_bytes: usize,
    /// Whether a leader sends consumers to the replica in their rack.
    pub(crate) rack_aware_replica_selector: bool,
    /// How many fetch sessions a node keeps.
    pub(crate) fetch_session_slots: usize,
    /// Whether nodes advertise that they take metrics of clients.
    pub(crate) client_telemetry: bool,
    /// Configs of all brokers, by Kafka's names, as a broker's file has them.
    pub(crate) properties: BTreeMap<Str, Str>,
    /// Whether nodes speak versions of requests that their Kafka calls unstable.
    pub(crate) unstable_api_versions: bool,
    /// Whether producers may keep their transactions open for as long as another system's two-phase commit takes.
    pub(crate) two_phase_commit: bool,
    pub(crate) transaction_max_timeout_ms: i32,
    /// Whether who asks for a coordinator first has to ask again.
    pub(crate) fresh_coordinators: bool,
    /// How long it takes at first until the partitions of a transaction are told how it ends.
    pub(crate) marker_delay: Duration,
    /// How often coordinators look for transactions that are open for too long.
    pub(crate) transaction_abort_interval: Duration,
    pub(crate) transactional_id_expiration_ms: i64,
    pub(crate) producer_id_expiration_ms: i64,
    /// How long a new coordinator reads its partition, and answers nothing else.
    pub(crate) coordinator_load_time: Duration,
    /// How many share sessions a node keeps.
    pub(crate) share_session_slots: usize,
}

/// Which way a group with members may change over to the other protocol: Kafka's `group.consumer.migration.policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationPolicy {
    /// Neither way.
    Disabled,
    /// Classic groups may become groups of KIP-848.
    Upgrade,
    /// Groups of KIP-848 may become classic groups.
    Downgrade,
    /// Both ways.
    Bidirectional,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cluster_id: Str::default(),
            seed: 0,
            strict: false,
            default_partitions: 1,
            replication_factor: 1,
            auto_create_topics: false,
            logins: Logins::default(),
            listeners: Listeners::new(&[]),
            acls: Acls::default(),
            group_initial_rebalance_delay: Duration::ZERO,
            group_min_session_timeout: Duration::from_secs(6),
            group_max_session_timeout: Duration::from_secs(30 * 60),
            group_max_size: i32::MAX as usize,
            group_consumer_session_timeout: Duration::from_secs(45),
            group_consumer_heartbeat_interval: Duration::from_secs(5),
            group_consumer_assignment_interval: Duration::from_secs(1),
            group_consumer_regex_refresh_interval: Duration::from_secs(10 * 60),
            group_consumer_max_size: i32::MAX as usize,
            group_consumer_migration_policy: None,
            offsets_retention: Duration::from_secs(7 * 24 * 60 * 60),
            offsets_retention_check_interval: Duration::from_secs(10 * 60),
            offset_metadata_max_bytes: 4096,
            rack_aware_replica_selector: false,
            fetch_session_slots: 1000,
            client_telemetry: false,
            properties: BTreeMap::new(),
            unstable_api_versions: false,
            two_phase_commit: false,
            transaction_max_timeout_ms: 15 * 60 * 1000,
            fresh_coordinators: false,
            marker_delay: Duration::ZERO,
            transaction_abort_interval: Duration::from_secs(10),
            transactional_id_expiration_ms: 7 * 24 * 60 * 60 * 1000,
            producer_id_expiration_ms: 24 * 60 * 60 * 1000,
            coordinator_load_time: Duration::ZERO,
            share_session_slots: 2000,
        }
    }
}
