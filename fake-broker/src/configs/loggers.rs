//! The loggers of a broker, whose levels can be changed.
//!
//! Kafka has as many loggers as its code has names for them. Here there are a few that every Kafka has; nothing is
//! logged to them.

use krafka_protocol::{ErrorCode, Str};

use super::definition::Kind;
use super::describe::{Entry, Source};
use super::{Overrides, Refusal};

/// The logger of all others.
const ROOT: &str = "root";
const LOGGERS: [&str; 6] = [
    "kafka.request.logger",
    "kafka.server.BrokerServer",
    "kafka.server.KafkaApis",
    "org.apache.kafka.clients.NetworkClient",
    ROOT,
    "state.change.logger",
];
const LEVELS: [&str; 6] = ["DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"];
const INITIAL: &str = "INFO";

/// The levels of all loggers of a broker, where `changed` has those that were set.
pub(crate) fn describe(changed: Option<&Overrides>) -> Vec<Entry> {
    let level = |name: &str| changed.and_then(|changed| changed.get(name).cloned());
    let describe = |&name: &&'static str| Entry {
        name: Str::from_static(name),
        value: Some(level(name).or_else(|| level(ROOT)).unwrap_or(Str::from_static(INITIAL))),
        source: Source::Logger,
        kind: Kind::Unknown,
        is_read_only: false,
        is_sensitive: false,
        synonyms: Vec::new(),
        text: "",
    };
    LOGGERS.iter().map(describe).collect()
}

/// Checks a change of a logger's level, or, without one, that the logger forgets its own.
///
/// # Errors
///
/// Kafka's refusal of it.
pub(crate) fn check(name: &str, level: Option<&str>) -> Result<(), Refusal> {
    let invalid = |text: String| Err(Refusal::new(ErrorCode::INVALID_CONFIG, text));
    if !LOGGERS.contains(&name) {
        return invalid(format!("Logger {name} does not exist!"));
    }
    match level {
        Some(level) if !LEVELS.contains(&level.to_ascii_uppercase().as_str()) => invalid(format!(
            "Cannot set the log level of {name} to {level} as it is not a supported log level. Valid log levels are {}",
            LEVELS.join(", ")
        )),
        None if name == ROOT => {
            let text = "Removing the log level of the root logger is not allowed";
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, text))
        }
        _ => Ok(()),
    }
}
