//! Every config that a broker has in Kafka 3.9 to 4.4: a table in a file beside this one.
//!
//! Its lines are what fresh brokers of 3.9.2, 4.0.2, 4.1.2, 4.2.2, 4.3.1 and 4.4.0 answered to DescribeConfigs, and the
//! bounds are those of the validators in their `KafkaConfig`. Columns: name, first and last version, type, mode
//! (`r` is set in the broker's file only; at run time, `b` is set for one broker, `l` for a listener of one, `c` for
//! one broker or for all), whether it is secret, the least and the most (`~` is none), the default (`~` is null).
//!
//! What such a config does is told by one sentence for all of them: Kafka's documentation has the rest.

use super::definition::{Definition, Kind, Rule};
use crate::faults::KafkaVersion;

/// A broker's config.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BrokerConfig {
    pub(crate) definition: Definition,
    pub(crate) mode: Mode,
    /// Whether its value is never told.
    pub(crate) is_sensitive: bool,
}

/// How a broker's config can be changed at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Not at all.
    ReadOnly,
    /// For one broker at a time.
    PerBroker,
    /// For one broker and one of its listeners at a time, under a name that begins with `listener.name.`.
    PerListener,
    /// For one broker or for all.
    ClusterWide,
}

const TEXT: &str = "A config of the broker: Kafka's documentation has what it does.";

const TABLE: &str = include_str!("broker.tsv");

/// The configs that say the same in other units, the finest first, with the factor to the finest.
#[rustfmt::skip]
const SPELLINGS: &[&[(&str, i64)]] = &[
    &[("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)],
    &[("log.roll.ms", 1), ("log.roll.hours", 3_600_000)],
    &[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)],
    &[("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)],
];

/// Checks a value against what a broker asks for when it starts, beyond the bounds that its type has.
///
/// # Errors
///
/// Kafka's words for what is wrong with it.
pub(crate) fn check_start(name: &str, value: i64) -> Result<(), String> {
    let (is_met, text) = match name {
        "log.roll.ms" => (value >= 1, "greater than or equal to 1"),
        "log.roll.jitter.ms" => (value >= 0, "greater than or equal to 0"),
        // Whatever is below 0 is for ever.
        "log.retention.ms" => (value != 0, "unlimited (-1) or, greater than or equal to 1"),
        _ => return Ok(()),
    };
    if is_met { Ok(()) } else { Err(format!("requirement failed: {name} must be {text}")) }
}

/// How fast replicas are moved: configs of a broker that are told of only where they are set.
pub(crate) const THROTTLES: [&str; 3] = [
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
];

/// The configs of a broker of that version, by name.
pub(crate) fn all(version: KafkaVersion) -> impl Iterator<Item = BrokerConfig> {
    TABLE.lines().filter_map(parse).filter(move |config| config.definition.is_in(version))
}

/// The config of that name in a broker of that version.
pub(crate) fn find(name: &str, version: KafkaVersion) -> Option<BrokerConfig> {
    if let Some(name) = THROTTLES.into_iter().find(|throttle| *throttle == name) {
        return Some(throttle(name));
    }
    let is_of = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('\t'));
    TABLE.lines().filter(is_of).filter_map(parse).find(|config| config.definition.is_in(version))
}

/// The names under which a broker looks for a value, the first that is set counts; and what to multiply it by.
pub(crate) fn spellings(name: &str) -> impl Iterator<Item = (&str, i64)> {
    let group = SPELLINGS.iter().find(|group| group[0].0 == name);
    let alone = group.is_none().then_some((name, 1));
    group.into_iter().flat_map(|group| group.iter().copied()).chain(alone)
}

fn throttle(name: &'static str) -> BrokerConfig {
    let definition = Definition {
        name,
        kind: Kind::Long,
        default: None,
        rule: Rule::AtLeast(0),
        synonym: None,
        versions: (KafkaVersion::V3_9, KafkaVersion::V4_4),
        text: TEXT,
    };
    BrokerConfig { definition, mode: Mode::ClusterWide, is_sensitive: false }
}

/// Reads a line of the table; the tests read all of them.
fn parse(line: &'static str) -> Option<BrokerConfig> {
    let columns: Vec<&'static str> = line.split('\t').collect();
    let [name, first, last, kind, mode, sensitive, least, most, default] = columns[..] else { return None };
    let kind = match kind {
        "1" => Kind::Boolean,
        "2" => Kind::String,
        "3" => Kind::Int,
        "4" => Kind::Short,
        "5" => Kind::Long,
        "6" => Kind::Double,
        "7" => Kind::List,
        "8" => Kind::Class,
        "9" => Kind::Password,
        _ => return None,
    };
    let mode = match mode {
        "r" => Mode::ReadOnly,
        "b" => Mode::PerBroker,
        "l" => Mode::PerListener,
        "c" => Mode::ClusterWide,
        _ => return None,
    };
    let rule = match (words(name), least.parse(), most.parse()) {
        (Some(rule), _, _) => rule,
        (None, Ok(least), Ok(most)) => Rule::Between(least, most),
        (None, Ok(least), Err(_)) => Rule::AtLeast(least),
        (None, Err(_), Ok(most)) => Rule::Between(i64::MIN, most),
        (None, Err(_), Err(_)) => Rule::Any,
    };
    let definition = Definition {
        name,
        kind,
        default: (default != "~").then_some(default),
        rule,
        synonym: None,
        versions: (first.parse().ok()?, last.parse().ok()?),
        text: TEXT,
    };
    Some(BrokerConfig { definition, mode, is_sensitive: sensitive == "1" })
}

/// The configs of brokers that take certain words, and can be changed at run time.
fn words(name: &str) -> Option<Rule> {
    Some(match name {
        "compression.gzip.level" => Rule::GzipLevel,
        "compression.type" => Rule::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        "log.cleanup.policy" => Rule::EachOf(&["compact", "delete"]),
        "log.message.timestamp.type" => Rule::OneOf(&["CreateTime", "LogAppendTime"]),
        "ssl.client.auth" => Rule::OneOf(&["required", "requested", "none"]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_every_default_is_valid() {
        for line in TABLE.lines() {
            let config = parse(line).unwrap_or_else(|| panic!("{line:?} is no line"));
            if let Some(default) = config.definition.default.filter(|_| config.mode != Mode::ReadOnly) {
                assert_eq!(config.definition.check(default), Ok(()), "{line}");
            }
        }
    }

    #[test]
    fn versions_differ_as_the_releases_do() {
        let default = |version| find("log.message.timestamp.after.max.ms", version).and_then(|c| c.definition.default);

        assert_eq!(default(KafkaVersion::V3_9), Some("9223372036854775807"));
        assert_eq!(default(KafkaVersion::V4_4), Some("3600000"));
        assert_eq!(find("node.id", KafkaVersion::V4_4).map(|config| config.mode), Some(Mode::ReadOnly));
        assert_eq!(find("listeners", KafkaVersion::V4_4).map(|config| config.mode), Some(Mode::PerBroker));
        assert_eq!(find("log.retention", KafkaVersion::V4_4), None);
    }
}
