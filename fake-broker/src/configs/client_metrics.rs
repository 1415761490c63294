//! The configs of a subscription to clients' metrics (KIP-714): which metrics, of whom, and how often.

use krafka_protocol::{ErrorCode, Str};

use super::definition::{Definition, Kind, Rule};
use super::{Overrides, Refusal, definition};
use crate::faults::KafkaVersion;

const ALL: (KafkaVersion, KafkaVersion) = (KafkaVersion::V3_9, KafkaVersion::V4_4);

/// The least and the most that `interval.ms` may be.
const INTERVAL_MS: std::ops::RangeInclusive<i64> = 100..=3_600_000;

/// What `match` can ask of a client.
pub(crate) const SELECTORS: [&str; 6] = [
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// The configs of a subscription, by name.
#[rustfmt::skip]
pub(crate) const TABLE: &[Definition] = &[
    Definition { name: "interval.ms", kind: Kind::Int, default: Some("300000"), rule: Rule::Any, synonym: None,
        versions: ALL, text: "How often a client is to push." },
    Definition { name: "match", kind: Kind::List, default: Some(""), rule: Rule::Any, synonym: None,
        versions: ALL, text: "Which clients are meant: `selector=regular expression`, all of which must hold." },
    Definition { name: "metrics", kind: Kind::List, default: Some(""), rule: Rule::Any, synonym: None,
        versions: ALL, text: "Prefixes of the names of the metrics that are wanted; `*` is all of them." },
];

/// Checks what a subscription is to be.
///
/// # Errors
///
/// Kafka's refusal of it.
pub(crate) fn check(given: &Overrides) -> Result<(), Refusal> {
    for (name, value) in given {
        let Some(config) = TABLE.iter().find(|config| *name == *config.name) else {
            let text = format!("Unknown client metrics configuration: {name}");
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, text));
        };
        config.check(value).map_err(|text| Refusal::new(ErrorCode::INVALID_CONFIG, text))?;
        match config.name {
            "interval.ms" if !value.trim().parse().is_ok_and(|interval| INTERVAL_MS.contains(&interval)) => {
                let text =
                    format!("Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)");
                return Err(Refusal::new(ErrorCode::INVALID_REQUEST, text));
            }
            "match" => {
                selectors(value)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks that a list has no empty elements.
///
/// # Errors
///
/// Kafka's refusal of it.
pub(super) fn check_elements(name: &str, value: &str) -> Result<(), Refusal> {
    if name == "metrics" && !value.trim().is_empty() && definition::list(value).iter().any(|element| element.is_empty())
    {
        let text = "Configuration 'metrics' values must not be empty.";
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, text));
    }
    Ok(())
}

/// Reads `match`: what is asked of a client, and the regular expression that must fit.
///
/// # Errors
///
/// Kafka's refusal of a pattern that is none.
pub(crate) fn selectors(value: &Str) -> Result<Vec<(String, String)>, Refusal> {
    let mut selectors = Vec::new();
    for pattern in definition::list(value) {
        let illegal = || Refusal::new(ErrorCode::INVALID_CONFIG, format!("Illegal client matching pattern: {pattern}"));
        let (selector, expression) = pattern.split_once('=').ok_or_else(illegal)?;
        let (selector, expression) = (selector.trim(), expression.trim());
        if !SELECTORS.contains(&selector) || regex::Regex::new(expression).is_err() {
            return Err(illegal());
        }
        selectors.push((selector.to_owned(), expression.to_owned()));
    }
    Ok(selectors)
}

/// The prefixes of `metrics`.
pub(crate) fn prefixes(value: &Str) -> Vec<Str> {
    definition::list(value).into_iter().map(Str::from).collect()
}
