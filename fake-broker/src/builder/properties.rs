//! Settings by Kafka's names and in its words, as a broker's file has them: for the program, and for whoever has them
//! as text.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use krafka_protocol::Str;

use super::FakeClusterBuilder;
use super::elsewhere::ELSEWHERE;
use crate::config::MigrationPolicy;
use crate::configs::broker;
use crate::faults::KafkaVersion;
use crate::limits::{self, MAX_REQUEST_BYTES};
use crate::operations::MAX_PARTITIONS;
use crate::security::principal::Principal;

/// Why a setting is refused, in words.
type Refused = String;

/// Settings that brokers have and do not list: those of the authorizer, and one that Kafka keeps for its own tests.
const UNLISTED: [&str; 3] =
    ["allow.everyone.if.no.acl.found", "super.users", "group.consumer.regex.refresh.interval.ms"];

/// What groups can speak.
const PROTOCOLS: [&str; 4] = ["classic", "consumer", "share", "streams"];

impl FakeClusterBuilder {
    /// Sets a config of all brokers by Kafka's name of it: through the method that is there for it, or else as
    /// [`broker_config`](Self::broker_config) does.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// ```
    /// use krafka_fake_broker::FakeCluster;
    ///
    /// let builder = FakeCluster::builder().property("transaction.max.timeout.ms", "60000").unwrap();
    /// assert!(builder.property("transaction.max.timeout.msec", "60000").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// In words, if no broker of Kafka 3.9 to 4.4 has such a config, or it cannot have that value; or if it is one that
    /// would act on nothing, as the nodes, their addresses and their disks are made otherwise here. What only tunes the
    /// inside of a broker (threads, buffers, files) changes nothing, and is told of.
    pub fn property(mut self, name: &str, value: &str) -> Result<Self, Refused> {
        if let Some((_, instead)) = ELSEWHERE.iter().find(|(names, _)| names.contains(&name)) {
            return Err(format!("{name} acts on nothing here: {instead}"));
        }
        check(name, value)?;
        let config = &mut self.config;
        match name {
            "allow.everyone.if.no.acl.found" => config.acls.allow_everyone_if_no_acl_found = parse(name, value)?,
            "auto.create.topics.enable" => config.auto_create_topics = parse(name, value)?,
            "connection.failed.authentication.delay.ms" => config.logins.failure_delay = millis(name, value)?,
            "connections.max.reauth.ms" => {
                // 0 stands for never.
                config.logins.max_reauth = Some(millis(name, value)?).filter(|lifetime| !lifetime.is_zero());
            }
            "default.replication.factor" => self.replication_factor = Some(positive(name, value)?),
            "delegation.token.secret.key" => config.logins.tokens.secret = Some(Str::from(value)),
            "group.consumer.assignment.interval.ms" => {
                config.group_consumer_assignment_interval = millis(name, value)?;
            }
            "group.consumer.heartbeat.interval.ms" => {
                config.group_consumer_heartbeat_interval = millis(name, value)?;
            }
            "group.consumer.max.size" => config.group_consumer_max_size = parse::<i32>(name, value)? as usize,
            "group.consumer.migration.policy" => {
                let policy = match &*value.to_ascii_lowercase() {
                    "disabled" => MigrationPolicy::Disabled,
                    "upgrade" => MigrationPolicy::Upgrade,
                    "downgrade" => MigrationPolicy::Downgrade,
                    "bidirectional" => MigrationPolicy::Bidirectional,
                    _ => return Err(refused(name, value, "it is disabled, upgrade, downgrade or bidirectional")),
                };
                config.group_consumer_migration_policy = Some(policy);
            }
            "group.consumer.regex.refresh.interval.ms" => {
                config.group_consumer_regex_refresh_interval = Duration::from_millis(positive(name, value)?);
            }
            "group.consumer.session.timeout.ms" => config.group_consumer_session_timeout = millis(name, value)?,
            "group.initial.rebalance.delay.ms" => config.group_initial_rebalance_delay = millis(name, value)?,
            "group.max.session.timeout.ms" => config.group_max_session_timeout = millis(name, value)?,
            "group.max.size" => config.group_max_size = parse::<i32>(name, value)? as usize,
            "group.min.session.timeout.ms" => config.group_min_session_timeout = millis(name, value)?,
            "group.share.max.share.sessions" => config.share_session_slots = parse::<i32>(name, value)? as usize,
            "max.incremental.fetch.session.cache.slots" => {
                config.fetch_session_slots = parse::<i32>(name, value)? as usize;
            }
            "delegation.token.expiry.check.interval.ms" => config.logins.tokens.sweep_ms = parse(name, value)?,
            "delegation.token.expiry.time.ms" => config.logins.tokens.renew_ms = parse(name, value)?,
            "delegation.token.max.lifetime.ms" => config.logins.tokens.max_lifetime_ms = parse(name, value)?,
            "num.partitions" => config.default_partitions = parse(name, value)?,
            "offset.metadata.max.bytes" => config.offset_metadata_max_bytes = parse(name, value)?,
            "offsets.retention.check.interval.ms" => {
                config.offsets_retention_check_interval = millis(name, value)?;
            }
            "offsets.retention.minutes" => {
                let minutes: u32 = parse(name, value)?;
                config.offsets_retention = Duration::from_secs(60 * u64::from(minutes));
            }
            "producer.id.expiration.ms" => config.producer_id_expiration_ms = parse(name, value)?,
            "replica.selector.class" => {
                config.rack_aware_replica_selector = value.ends_with("RackAwareReplicaSelector")
            }
            "super.users" => {
                for user in value.split(';').map(str::trim).filter(|user| !user.is_empty()) {
                    let user = Principal::parse(user).ok_or_else(|| refused(name, value, "a user is User:name"))?;
                    config.acls.super_users.insert(user);
                }
            }
            "transaction.abort.timed.out.transaction.cleanup.interval.ms" => {
                config.transaction_abort_interval = millis(name, value)?;
            }
            "transaction.max.timeout.ms" => config.transaction_max_timeout_ms = parse(name, value)?,
            "transaction.two.phase.commit.enable" => config.two_phase_commit = parse(name, value)?,
            "transactional.id.expiration.ms" => config.transactional_id_expiration_ms = parse(name, value)?,
            "unstable.api.versions.enable" => config.unstable_api_versions = parse(name, value)?,
            _ => {
                check_here(name, value)?;
                config.properties.insert(Str::from(name), Str::from(value));
            }
        }
        Ok(self)
    }

    /// Sets what a method of the builder is given, as [`property`](Self::property) does.
    #[track_caller]
    pub(super) fn with(self, name: &str, value: impl Display) -> Self {
        self.property(name, &value.to_string()).unwrap_or_else(|reason| panic!("{reason}"))
    }
}

/// Checks a value as a broker does when it starts.
fn check(name: &str, value: &str) -> Result<(), Refused> {
    let known = KafkaVersion::ALL.into_iter().rev().find_map(|version| broker::find(name, version));
    match known {
        Some(known) => known.definition.check(value)?,
        None if UNLISTED.contains(&name) => (),
        None => return Err(format!("no broker has a config '{name}'")),
    }
    value.trim().parse().map_or(Ok(()), |number| broker::check_start(name, number))
}

/// Checks what Kafka would take, and this cluster cannot have.
fn check_here(name: &str, value: &str) -> Result<(), Refused> {
    match name {
        "offsets.topic.num.partitions"
        | "transaction.state.log.num.partitions"
        | "share.coordinator.state.topic.num.partitions"
            if parse::<i32>(name, value)? > MAX_PARTITIONS =>
        {
            Err(refused(name, value, format!("a topic has at most {MAX_PARTITIONS} partitions here")))
        }
        "socket.request.max.bytes" | "sasl.server.max.receive.size"
            if !(1..=MAX_REQUEST_BYTES).contains(&parse(name, value)?) =>
        {
            Err(refused(name, value, format!("a request has 1 to {MAX_REQUEST_BYTES} bytes here")))
        }
        "group.consumer.assignors" if value.split(',').any(|name| limits::assignor(name.trim()).is_none()) => {
            Err(refused(name, value, "there are uniform and range"))
        }
        "group.coordinator.rebalance.protocols" => {
            let names: Vec<_> = value.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
            if let Some(other) = names.iter().find(|name| !PROTOCOLS.contains(&name.as_str())) {
                Err(refused(name, value, format!("there is no protocol '{other}'")))
            } else if !names.iter().any(|name| name == "classic") {
                Err(refused(name, value, "Disabling the 'classic' protocol is not supported."))
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    }
}

fn parse<T: FromStr>(name: &str, value: &str) -> Result<T, Refused>
where
    T::Err: Display,
{
    // Kafka takes TRUE for true.
    value.trim().to_ascii_lowercase().parse().map_err(|error: T::Err| refused(name, value, error))
}

/// Reads a number that is to be 1 or more, though the table has no bound of it.
fn positive<T: FromStr + From<bool> + PartialOrd>(name: &str, value: &str) -> Result<T, Refused>
where
    T::Err: Display,
{
    let number: T = parse(name, value)?;
    if number < T::from(true) { Err(refused(name, value, "Value must be at least 1")) } else { Ok(number) }
}

fn millis(name: &str, value: &str) -> Result<Duration, Refused> {
    parse(name, value).map(Duration::from_millis)
}

fn refused(name: &str, value: &str, reason: impl Display) -> Refused {
    format!("{name} cannot be '{value}': {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str) -> Result<FakeClusterBuilder, Refused> {
        FakeClusterBuilder::default().property(name, value)
    }

    #[test]
    fn settings_have_kafkas_names() {
        let builder = set("transaction.max.timeout.ms", "60000").expect("a setting");
        assert_eq!(builder.config.transaction_max_timeout_ms, 60_000);
        let builder = set("offsets.retention.minutes", "2").expect("a setting");
        assert_eq!(builder.config.offsets_retention, Duration::from_secs(120));
        let builder = set("super.users", "User:a; User:b").expect("a setting");
        assert_eq!(builder.config.acls.super_users.len(), 2);
        let builder = set("log.retention.hours", "3").expect("a setting");
        assert_eq!(builder.config.properties.get("log.retention.hours").map(|value| &**value), Some("3"));
    }

    #[test]
    fn what_is_none_is_refused() {
        let refusals = [
            ("log.retention.our", "3", "no broker has a config 'log.retention.our'"),
            ("num.partitions", "many", "Invalid value many for configuration num.partitions: Not a number of type INT"),
            ("num.partitions", "0", "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
            ("fetch.max.bytes", "1", "Invalid value 1 for configuration fetch.max.bytes: Value must be at least 1024"),
            (
                "compression.lz4.level",
                "18",
                "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17",
            ),
            (
                "socket.request.max.bytes",
                "2000000000",
                "socket.request.max.bytes cannot be '2000000000': a request has 1 to 104857600 bytes here",
            ),
            ("default.replication.factor", "-1", "default.replication.factor cannot be '-1': Value must be at least 1"),
            ("super.users", "alice", "super.users cannot be 'alice': a user is User:name"),
            ("log.roll.ms", "0", "requirement failed: log.roll.ms must be greater than or equal to 1"),
            ("node.id", "7", "node.id acts on nothing here: nodes are numbered from 1 on"),
        ];
        for (name, value, words) in refusals {
            assert_eq!(set(name, value).err().as_deref(), Some(words));
        }
        assert!(set("log.retention.hours", "soon").is_err());
    }

    /// What is refused as set elsewhere is a setting of Kafka, or it would be no help to say so.
    #[test]
    fn what_is_set_elsewhere_is_kafkas() {
        for name in ELSEWHERE.iter().flat_map(|(names, _)| *names) {
            let is_known = KafkaVersion::ALL.into_iter().any(|version| broker::find(name, version).is_some());
            assert!(is_known, "{name}");
            assert!(set(name, "1").is_err_and(|reason| reason.starts_with(&format!("{name} acts on nothing here"))));
        }
    }
}
