//! The settings of topics by their names, as administrators give and read them.

use krafka_protocol::Str;

use crate::topics::TopicSettings;

/// A setting as Kafka shows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    pub(crate) value: Str,
    /// Where the value comes from: 1 from the topic, 5 from Kafka's defaults.
    pub(crate) source: i8,
}

const FROM_TOPIC: i8 = 1;
const FROM_DEFAULTS: i8 = 5;

/// Every setting of Kafka 4.4 that a topic may have, with its default.
const DEFAULTS: &[(&str, &str)] = &[
    ("cleanup.policy", "delete"),
    ("compression.gzip.level", "-1"),
    ("compression.lz4.level", "9"),
    ("compression.type", "producer"),
    ("compression.zstd.level", "3"),
    ("delete.retention.ms", "86400000"),
    ("file.delete.delay.ms", "60000"),
    ("flush.messages", "9223372036854775807"),
    ("flush.ms", "9223372036854775807"),
    ("follower.replication.throttled.replicas", ""),
    ("index.interval.bytes", "4096"),
    ("leader.replication.throttled.replicas", ""),
    ("local.retention.bytes", "-2"),
    ("local.retention.ms", "-2"),
    ("max.compaction.lag.ms", "9223372036854775807"),
    ("max.message.bytes", "1048588"),
    ("message.timestamp.after.max.ms", "3600000"),
    ("message.timestamp.before.max.ms", "9223372036854775807"),
    ("message.timestamp.type", "CreateTime"),
    ("min.cleanable.dirty.ratio", "0.5"),
    ("min.compaction.lag.ms", "0"),
    ("min.insync.replicas", "1"),
    ("preallocate", "false"),
    ("remote.log.copy.disable", "false"),
    ("remote.log.delete.on.disable", "false"),
    ("remote.storage.enable", "false"),
    ("retention.bytes", "-1"),
    ("retention.ms", "604800000"),
    ("segment.bytes", "1073741824"),
    ("segment.index.bytes", "10485760"),
    ("segment.jitter.ms", "0"),
    ("segment.ms", "604800000"),
    ("unclean.leader.election.enable", "false"),
];

/// The values of `compression.type`.
const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];

/// Reads the settings that a topic is created with; says in Kafka's way what is wrong with them.
pub(crate) fn parse<'a>(given: impl Iterator<Item = (&'a Str, Option<&'a Str>)>) -> Result<TopicSettings, String> {
    let mut settings = TopicSettings::default();
    for (name, value) in given {
        let Some(value) = value else {
            return Err(format!("Null value not supported for topic configs: {name}"));
        };
        if !DEFAULTS.iter().any(|(known, _)| *name == **known) {
            return Err(format!("Unknown topic config name: {name}"));
        }
        validate(name, value)?;
        settings.set(name, value);
        settings.given.insert(name.clone(), value.clone());
    }
    Ok(settings)
}

/// Says in Kafka's way what is wrong with a value.
fn validate(name: &str, value: &str) -> Result<(), String> {
    let invalid = |reason: &str| format!("Invalid value {value} for configuration {name}: {reason}");
    let number = |least: i64| match value.trim().parse::<i64>() {
        Ok(number) if number >= least => Ok(number),
        Ok(_) => Err(invalid(&format!("Value must be at least {least}"))),
        Err(_) => Err(invalid("Not a number of type INT")),
    };
    match name {
        "max.message.bytes" => {
            i32::try_from(number(0)?).map_err(|_| invalid("Not a number of type INT"))?;
        }
        "min.insync.replicas" => {
            number(1)?;
        }
        "message.timestamp.type" if !["CreateTime", "LogAppendTime"].contains(&value) => {
            return Err(invalid("String must be one of: CreateTime, LogAppendTime"));
        }
        "cleanup.policy" => {
            let mut policies = value.split(',').map(str::trim).filter(|policy| !policy.is_empty());
            if policies.any(|policy| !["compact", "delete"].contains(&policy)) {
                return Err(invalid("String must be one of: compact, delete"));
            }
        }
        "compression.type" if !CODECS.contains(&value) => {
            return Err(invalid(&format!("String must be one of: {}", CODECS.join(", "))));
        }
        "retention.ms" | "retention.bytes" => {
            number(-1)?;
        }
        "segment.bytes" | "segment.ms" => {
            number(1)?;
        }
        _ => {}
    }
    Ok(())
}

/// All settings of a topic.
pub(crate) fn describe(settings: &TopicSettings) -> Vec<Shown> {
    let show = |&(name, default): &(&'static str, &'static str)| match settings.given.get(name) {
        Some(value) => Shown { name, value: value.clone(), source: FROM_TOPIC },
        None => Shown { name, value: Str::from_static(default), source: FROM_DEFAULTS },
    };
    DEFAULTS.iter().map(show).collect()
}
