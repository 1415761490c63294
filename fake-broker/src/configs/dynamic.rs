//! What a running broker refuses of its own configs, although each value by itself is valid.
//!
//! Two rounds, as in Kafka: whether the broker would start with all of these, and whether it can become so while it
//! runs. The words are those of the Java exceptions, some of which nobody meant for clients. Not judged here: classes
//! that a broker cannot load, other than principal builders and reporters of metrics.

use krafka_protocol::{ErrorCode, Str};

use super::alter::Change;
use super::{Overrides, Refusal, broker, definition};
use crate::features::ELIGIBLE_LEADER_REPLICAS_VERSION;
use crate::state::State;

/// The sizes of pools of threads: a running broker halves or doubles them at most. Of several that are wrong, Kafka
/// names the first in this order, which is that of a hash table.
const POOLS: [&str; 9] = [
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "background.threads",
    "num.io.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
];

const OVERRIDES: &str = "max.connections.per.ip.overrides";
const PROTOCOLS: &str = "listener.security.protocol.map";

/// What each thread that cleans logs needs of the buffer that they share.
const DEDUPE_BUFFER_PER_CLEANER: i64 = 1024 * 1024;

const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// Whom configs are given to, and what is given.
pub(super) struct Proposal<'a> {
    pub(super) state: &'a State,
    pub(super) node: i32,
    pub(super) for_all: bool,
    pub(super) given: &'a Overrides,
}

impl Proposal<'_> {
    /// Refuses what the broker could not be, and then what it cannot become.
    pub(super) fn check(&self, changes: &[Change]) -> Result<(), Refusal> {
        self.check_whole().map_err(|text| Refusal::new(ErrorCode::INVALID_REQUEST, text))?;
        self.check_step().map_err(|text| {
            let text = format!(
                "Invalid value org.apache.kafka.common.config.ConfigException: {text} \
                 for configuration Invalid dynamic configuration"
            );
            Refusal::new(ErrorCode::INVALID_REQUEST, text)
        })?;
        self.check_in_sync_replicas(changes)
    }

    /// Whether a broker would start with all of it.
    fn check_whole(&self) -> Result<(), String> {
        self.check_protocols()?;
        let is_class = |class: &Str| class.starts_with("org.apache.kafka.");
        if let Some(class) = self.given.get("principal.builder.class").filter(|class| !is_class(class)) {
            return Err(format!(
                "Invalid value {class} for configuration principal.builder.class: Class {class} could not be found."
            ));
        }
        if let Some(listeners) = self.given.get("listeners") {
            let listeners = definition::list(listeners);
            if listeners.is_empty() {
                let text = "must not be empty. Valid values include: any non-empty value";
                return Err(format!("Configuration 'listeners' {text}"));
            }
            if let Some(wrong) = listeners.iter().find(|listener| !listener.contains("://")) {
                let all = listeners.join(", ");
                let text = format!("Unable to parse {wrong} to a broker endpoint");
                return Err(format!("Error creating broker listeners from '[{all}]': {text}"));
            }
        }
        for name in ["log.roll.ms", "log.roll.jitter.ms", "log.retention.ms"] {
            self.after_number(name).map_or(Ok(()), |value| broker::check_start(name, value))?;
        }
        let overrides = self.after(OVERRIDES).unwrap_or_default();
        let overrides = pairs(OVERRIDES, &overrides)?;
        if self.after_number("max.connections.per.ip") == Some(0) && overrides.is_empty() {
            let text = "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property \
                        is set.";
            return Err(format!("requirement failed: {text}"));
        }
        if let Some((_, wrong)) = overrides.iter().find(|(_, most)| most.parse::<i32>().is_err()) {
            return Err(format!("For input string: \"{wrong}\""));
        }
        let is_of_host = |char: char| char.is_ascii_alphanumeric() || "-%._:".contains(char);
        let strangers: Vec<&str> =
            overrides.iter().map(|(host, _)| *host).filter(|host| !host.chars().all(is_of_host)).collect();
        if !strangers.is_empty() {
            return Err(format!("{OVERRIDES} contains invalid addresses : {}", strangers.join(",")));
        }
        let buffer = self.after_number("log.cleaner.dedupe.buffer.size");
        if let (Some(buffer), Some(cleaners)) = (buffer, self.after_number("log.cleaner.threads")) {
            let share = buffer.checked_div(cleaners).ok_or("/ by zero")?;
            if share <= DEDUPE_BUFFER_PER_CLEANER {
                let text = "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.";
                return Err(format!("requirement failed: {text}"));
            }
        }
        self.check_cordoned()
    }

    /// Each listener has a protocol, and one that there is.
    fn check_protocols(&self) -> Result<(), String> {
        let Some(protocols) = self.given.get(PROTOCOLS) else { return Ok(()) };
        let protocols = pairs(PROTOCOLS, protocols)?;
        for (name, protocol) in &protocols {
            if name.is_empty() {
                return Err("The provided listener name is null or empty string".to_owned());
            }
            if !["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"].iter().any(|it| it.eq_ignore_ascii_case(protocol)) {
                return Err(format!("Invalid security protocol `{protocol}` defined in {PROTOCOLS}"));
            }
        }
        let listeners = self.after("listeners").unwrap_or_default();
        let listeners = definition::list(&listeners);
        let names = listeners.iter().filter_map(|listener| listener.split("://").next());
        match names.chain(["CONTROLLER"]).find(|listener| protocols.iter().all(|(name, _)| name != listener)) {
            Some(without) => {
                let (all, text) =
                    (listeners.join(", "), format!("No security protocol defined for listener {without}"));
                Err(format!("Error creating broker listeners from '[{all}]': {text}"))
            }
            None => Ok(()),
        }
    }

    /// Replicas are kept from log directories that there are.
    fn check_cordoned(&self) -> Result<(), String> {
        let cordoned = self.given.get("cordoned.log.dirs").cloned().unwrap_or_default();
        let cordoned = definition::list(&cordoned);
        if cordoned == ["*"] {
            return Ok(());
        }
        if cordoned.contains(&"*") {
            let text = "When cordoned.log.dirs is set to *, it must not contain other values";
            return Err(format!("requirement failed: {text}"));
        }
        let present = self.after("log.dirs").unwrap_or_default();
        let missing: Vec<&str> =
            cordoned.into_iter().filter(|directory| !definition::list(&present).contains(directory)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join(", ");
        let text = "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries";
        Err(format!("requirement failed: {text} : {missing}"))
    }

    /// Whether a broker can become so while it runs.
    fn check_step(&self) -> Result<(), String> {
        for name in ["max.connections", "max.connection.creation.rate"] {
            if self.after_number(name) == Some(0) {
                return Err(format!("Invalid {name} 0"));
            }
        }
        for name in POOLS {
            let (Some(before), Some(after)) = (self.before_number(name), self.after_number(name)) else { continue };
            // -1 stands for another pool's size, and is less than half of itself.
            if after == before {
                continue;
            }
            let text = format!("Dynamic thread count update validation failed for {name}={after}");
            if after < before / 2 {
                return Err(format!("{text}, value should be at least half the current value {before}"));
            }
            if after > before * 2 {
                return Err(format!("{text}, value should not be greater than double the current value {before}"));
            }
        }
        let cleaners = "log.cleaner.threads";
        if let (Some(before), Some(after)) = (self.before_number(cleaners), self.after_number(cleaners)) {
            if after < before / 2 {
                let text = "Log cleaner threads cannot be reduced to less than half the current value";
                return Err(format!("{text} {before}"));
            }
            if after > before * 2 {
                let text = "Log cleaner threads cannot be increased to more than double the current value";
                return Err(format!("{text} {before}"));
            }
        }
        if let Some(reporters) = self.given.get("metric.reporters")
            && definition::list(reporters).iter().any(|class| !class.starts_with("org.apache.kafka."))
        {
            let text = "Validation of dynamic config update of Set(metric.reporters) failed with class";
            return Err(format!("{text} class kafka.server.DynamicMetricsReporters"));
        }
        self.check_local_retention("log.local.retention.ms", "log.retention.ms")?;
        self.check_local_retention("log.local.retention.bytes", "log.retention.bytes")
    }

    /// What is kept near at hand is at most what is kept at all; -2 is as much.
    fn check_local_retention(&self, local: &str, whole: &str) -> Result<(), String> {
        let Some(most) = self.after_number(whole).filter(|most| *most >= 0) else { return Ok(()) };
        let value = self.given.get(local).and_then(|value| value.trim().parse::<i64>().ok());
        let why = match value {
            Some(-1) => format!("Value must not be -1 as {whole} value is set as {most}."),
            Some(value) if value > most => format!("Value must not be more than {whole} property value: {most}"),
            _ => return Ok(()),
        };
        let value = value.unwrap_or_default();
        Err(format!("Invalid value {value} for configuration {local}: {why}"))
    }

    /// With eligible leader replicas (KIP-966) all brokers have the same least number of replicas in sync.
    fn check_in_sync_replicas(&self, changes: &[Change]) -> Result<(), Refusal> {
        let Some(change) = changes.iter().find(|change| change.name == MIN_INSYNC_REPLICAS) else { return Ok(()) };
        if self.state.feature_level(ELIGIBLE_LEADER_REPLICAS_VERSION) == 0 {
            return Ok(());
        }
        let text = if !self.for_all {
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        } else if !self.given.contains_key(&change.name) {
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        } else {
            return Ok(());
        };
        Err(Refusal::new(ErrorCode::INVALID_CONFIG, text))
    }

    fn before_number(&self, name: &str) -> Option<i64> {
        self.before(name)?.trim().parse().ok()
    }

    fn after_number(&self, name: &str) -> Option<i64> {
        // Times have several names, with units of their own.
        broker::spellings(name).find_map(|(name, factor)| {
            let number: i64 = self.after(name)?.trim().parse().ok()?;
            Some(if number < 0 { number } else { number.saturating_mul(factor) })
        })
    }

    /// What the broker has now.
    fn before(&self, name: &str) -> Option<Str> {
        let configs = &self.state.configs;
        let own = configs.brokers.get(&self.node).and_then(|own| own.get(name));
        own.or_else(|| configs.cluster.get(name)).cloned().or_else(|| self.at_start(name))
    }

    /// What the broker would have.
    fn after(&self, name: &str) -> Option<Str> {
        let configs = &self.state.configs;
        let own = configs.brokers.get(&self.node).and_then(|own| own.get(name));
        let dynamic = if self.for_all {
            own.or_else(|| self.given.get(name))
        } else {
            self.given.get(name).or_else(|| configs.cluster.get(name))
        };
        dynamic.cloned().or_else(|| self.at_start(name))
    }

    /// What the broker's file says, or else Kafka's default.
    fn at_start(&self, name: &str) -> Option<Str> {
        let found = broker::find(name, self.state.version_of(self.node))?;
        let written = self.state.static_values_of(self.node).get(name).cloned();
        written.or_else(|| found.definition.default.map(Str::from_static))
    }
}

/// The entries of a config that is a list of names and values.
///
/// # Errors
///
/// Kafka's words for an entry without a colon: Java looks for the last one, and cuts the entry there.
fn pairs<'a>(config: &str, list: &'a str) -> Result<Vec<(&'a str, &'a str)>, String> {
    let pair = |entry: &'a str| match entry.rsplit_once(':') {
        Some((name, value)) => Ok((name.trim(), value.trim())),
        None => {
            let length = entry.encode_utf16().count();
            Err(format!("Error parsing configuration property '{config}': begin 0, end -1, length {length}"))
        }
    };
    definition::list(list).into_iter().map(pair).collect()
}
