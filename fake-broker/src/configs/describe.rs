//! How configs are told: each with its value, where that comes from, and what else it could have been.

use krafka_protocol::{ErrorCode, Str};

use super::broker::{self, BrokerConfig};
use super::definition::{Definition, Kind};
use super::{Overrides, Refusal, ResourceType, client_metrics, group_table, loggers, topic_table};
use crate::faults::KafkaVersion;
use crate::state::State;
use crate::topics;

/// Where a value comes from, with Kafka's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Topic = 1,
    Broker = 2,
    AllBrokers = 3,
    File = 4,
    Default = 5,
    Logger = 6,
    ClientMetrics = 7,
    Group = 8,
}

/// A config as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Str,
    pub(crate) value: Option<Str>,
    pub(crate) source: Source,
    pub(crate) kind: Kind,
    pub(crate) is_read_only: bool,
    pub(crate) is_sensitive: bool,
    /// All values that were found on the way, the one that counts first.
    pub(crate) synonyms: Vec<Synonym>,
    pub(crate) text: &'static str,
}

/// A value that was found for a config, under the name that it was found under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synonym {
    pub(crate) name: Str,
    pub(crate) value: Option<Str>,
    pub(crate) source: Source,
}

impl State {
    /// The configs of something, as the broker `node` tells them, in the order of their names.
    ///
    /// # Errors
    ///
    /// If Kafka would not tell them.
    pub(crate) fn describe_configs(
        &self,
        node: i32,
        resource: ResourceType,
        name: &str,
    ) -> Result<Vec<Entry>, Refusal> {
        let invalid = |text: String| Err(Refusal::new(ErrorCode::INVALID_REQUEST, text));
        match resource {
            ResourceType::Topic => {
                topics::validate_name(name).map_err(|text| Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, text))?;
                let Some(topic) = self.topics.by_name(name) else {
                    let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                    return Err(Refusal { code, message: Some(String::new()) });
                };
                Ok(self.describe_topic_configs(node, &topic.settings.given))
            }
            ResourceType::Broker if name.is_empty() => Ok(self.describe_cluster_defaults(node)),
            ResourceType::Broker => match name.parse::<i32>() {
                Ok(id) if id == node => Ok(self.describe_broker(node)),
                Ok(id) => invalid(format!("Unexpected broker id, expected {node} or empty string, but received {id}")),
                Err(_) => invalid(format!("Broker id must be an integer, but it is: {name}")),
            },
            ResourceType::BrokerLogger if name.is_empty() => invalid("Broker id must not be empty".to_owned()),
            ResourceType::BrokerLogger => match name.parse::<i32>() {
                Ok(id) if id == node => Ok(loggers::describe(self.configs.loggers.get(&node))),
                Ok(id) => invalid(format!("Unexpected broker id, expected {node} but received {id}")),
                Err(_) => invalid(format!("Broker id must be an integer, but it is: {name}")),
            },
            ResourceType::ClientMetrics if name.is_empty() => {
                invalid("Client metrics subscription name must not be empty".to_owned())
            }
            ResourceType::ClientMetrics => {
                let given = self.configs.client_metrics.get(name);
                let version = self.version_of(node);
                let mut entries = own(client_metrics::TABLE.iter(), given, Source::ClientMetrics, |_| Vec::new());
                // Before Kafka 4.1 what nobody set is not told at all, and nothing but the value of what is set.
                if version < KafkaVersion::V4_1 {
                    entries.retain(|entry| entry.source == Source::ClientMetrics);
                    for entry in &mut entries {
                        (entry.kind, entry.text) = (Kind::Unknown, "");
                        entry.synonyms.clear();
                    }
                }
                Ok(entries)
            }
            ResourceType::Group if name.is_empty() => invalid("Group name must not be empty".to_owned()),
            ResourceType::Group => Ok(self.describe_group(node, self.configs.groups.get(name))),
        }
    }

    /// The configs of a topic for which `given` is set.
    pub(crate) fn describe_topic_configs(&self, node: i32, given: &Overrides) -> Vec<Entry> {
        let version = self.version_of(node);
        let is_told = |config: &&Definition| config.name != topic_table::HIDDEN || given.contains_key(config.name);
        let table = topic_table::TOPIC.iter().filter(|config| config.is_in(version)).filter(is_told);
        let mut entries = own(table, Some(given), Source::Topic, |config| self.broker_synonyms(node, config.synonym));
        // What a topic inherits in other units is told in its own: the hours of a broker as milliseconds.
        for entry in entries.iter_mut().filter(|entry| entry.source != Source::Topic) {
            if let Some(value) = self.inherited_by_topics(&entry.name)
                && entry.source == Source::Default
            {
                entry.value = Some(value);
            }
        }
        entries
    }

    fn describe_group(&self, node: i32, given: Option<&Overrides>) -> Vec<Entry> {
        let version = self.version_of(node);
        let table = group_table::GROUP.iter().filter(|config| config.is_in(version));
        own(table, given, Source::Group, |config| {
            let mut synonyms = self.broker_synonyms(node, config.synonym);
            // What the broker has no config for has itself as its default.
            if synonyms.is_empty() {
                synonyms.extend(config.synonym.map(|name| default_of(name, config.default)));
            }
            synonyms
        })
    }

    fn describe_broker(&self, node: i32) -> Vec<Entry> {
        let version = self.version_of(node);
        let mut entries: Vec<_> = broker::all(version).map(|config| self.broker_entry(node, &config)).collect();
        let throttles = broker::THROTTLES.iter().filter_map(|name| broker::find(name, version));
        let throttles = throttles.map(|config| self.broker_entry(node, &config));
        entries.extend(throttles.filter(|entry| !entry.synonyms.is_empty()));
        // Names that Kafka does not know are kept for plugins. It cannot tell whether they are secrets.
        let strangers = |values: &Overrides, source| -> Vec<(Str, Source)> {
            let unknown = values.keys().filter(|name| broker::find(name, version).is_none());
            unknown.map(|name| (name.clone(), source)).collect()
        };
        let dynamic = self.configs.brokers.get(&node);
        let mut unknown = dynamic.map(|values| strangers(values, Source::Broker)).unwrap_or_default();
        unknown.extend(strangers(&self.configs.cluster, Source::AllBrokers));
        unknown.extend(strangers(self.config.static_values(), Source::File));
        for (name, source) in unknown {
            if entries.iter().any(|entry| entry.name == name) {
                continue;
            }
            entries.push(Entry {
                synonyms: vec![Synonym { name: name.clone(), value: None, source }],
                name,
                value: None,
                source,
                kind: Kind::Unknown,
                is_read_only: true,
                is_sensitive: true,
                text: "",
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    fn broker_entry(&self, node: i32, config: &BrokerConfig) -> Entry {
        let definition = &config.definition;
        let mut synonyms = self.broker_synonyms(node, Some(definition.name));
        if config.is_sensitive {
            synonyms.iter_mut().for_each(|synonym| synonym.value = None);
        }
        let first = synonyms.first();
        Entry {
            name: Str::from_static(definition.name),
            value: first.and_then(|first| first.value.clone()),
            source: first.map_or(Source::Default, |first| first.source),
            kind: definition.kind,
            is_read_only: config.mode == broker::Mode::ReadOnly,
            is_sensitive: config.is_sensitive,
            synonyms,
            text: definition.text,
        }
    }

    /// What was set for all brokers, and nothing else.
    fn describe_cluster_defaults(&self, node: i32) -> Vec<Entry> {
        let version = self.version_of(node);
        let describe = |(name, value): (&Str, &Str)| {
            let config = broker::find(name, version);
            let is_sensitive = config.is_none_or(|config| config.is_sensitive);
            let value = Some(value.clone()).filter(|_| !is_sensitive);
            Entry {
                name: name.clone(),
                value: value.clone(),
                source: Source::AllBrokers,
                kind: config.map_or(Kind::Unknown, |config| config.definition.kind),
                is_read_only: config.is_none(),
                is_sensitive,
                synonyms: vec![Synonym { name: name.clone(), value, source: Source::AllBrokers }],
                text: config.map_or("", |config| config.definition.text),
            }
        };
        self.configs.cluster.iter().map(describe).collect()
    }

    /// All values that a broker has for a config, the one that counts first: those under its other names too, but none
    /// if there is none under its own.
    fn broker_synonyms(&self, node: i32, name: Option<&'static str>) -> Vec<Synonym> {
        let Some(name) = name else { return Vec::new() };
        let version = self.version_of(node);
        let file = self.static_values_of(node);
        let of_broker = self.configs.brokers.get(&node);
        let default_of = |name: &str| broker::find(name, version).and_then(|config| config.definition.default);
        let sources = [Source::Broker, Source::AllBrokers, Source::File, Source::Default];
        let value = |name: &str, source| match source {
            Source::Broker => of_broker.and_then(|values| values.get(name).cloned()),
            Source::AllBrokers => self.configs.cluster.get(name).cloned(),
            Source::File => file.get(name).cloned(),
            _ => default_of(name).map(Str::from_static),
        };
        if sources.into_iter().all(|source| value(name, source).is_none()) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for source in sources {
            for (name, _) in broker::spellings(name) {
                let value = value(name, source);
                found.extend(value.map(|value| Synonym { name: Str::from(name), value: Some(value), source }));
            }
        }
        found
    }
}

/// The configs of a table, with what is set for one thing before what it inherits.
fn own<'a>(
    table: impl Iterator<Item = &'a Definition>,
    given: Option<&Overrides>,
    source: Source,
    inherited: impl Fn(&Definition) -> Vec<Synonym>,
) -> Vec<Entry> {
    let describe = |config: &Definition| {
        let name = Str::from_static(config.name);
        let mut synonyms = inherited(config);
        let set = given.and_then(|given| given.get(config.name));
        if let Some(value) = set {
            synonyms.insert(0, Synonym { name: name.clone(), value: Some(value.clone()), source });
        }
        let first = synonyms.first();
        Entry {
            value: first.map_or_else(|| config.default.map(Str::from_static), |first| first.value.clone()),
            source: first.map_or(Source::Default, |first| first.source),
            name,
            kind: config.kind,
            is_read_only: false,
            is_sensitive: false,
            synonyms,
            text: config.text,
        }
    };
    table.map(describe).collect()
}

fn default_of(name: &'static str, default: Option<&'static str>) -> Synonym {
    Synonym { name: Str::from_static(name), value: default.map(Str::from_static), source: Source::Default }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::builder::FakeClusterBuilder;
    use crate::configs::alter::{Change, DELETE, Doing, SET};

    #[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
    fn some_time() -> Instant {
        Instant::now()
    }

    /// What is set for one broker is how the logs are kept that it leads, and those alone.
    #[test]
    fn value_of_one_broker_acts_on_what_it_leads() {
        let built = FakeClusterBuilder::default().nodes(2).topic("orders", 2);
        let now = some_time();
        let mut cluster = built.build_machine(now);
        cluster.control(now, |state| {
            let set = |name: &str, value: &str| Change { name: name.into(), operation: SET, value: Some(value.into()) };
            let changes = [set("log.retention.ms", "5000"), set("log.cleanup.policy", "compact,delete")];
            state.alter_configs(2, 4, "2", &changes, Doing::CarryOut).expect("a valid change");
        });

        let topic = cluster.state().topics.by_name("orders").expect("a topic");
        let led: Vec<_> = topic.partitions.iter().map(|partition| topic.settings_on(partition.leader)).collect();
        assert_eq!((led[0].retention_ms, led[0].compacted), (604_800_000, false));
        assert_eq!((led[1].retention_ms, led[1].compacted), (5_000, true));

        cluster.control(now, |state| {
            let changes = ["log.retention.ms", "log.cleanup.policy"].map(|name| Change {
                name: name.into(),
                operation: DELETE,
                value: None,
            });
            state.alter_configs(2, 4, "2", &changes, Doing::CarryOut).expect("a valid change");
        });
        let topic = cluster.state().topics.by_name("orders").expect("a topic");
        assert!(topic.own_settings.is_empty());
    }

    /// What 4.4.0 tells with `log.retention.hours=1` in its file.
    #[test]
    fn values_in_other_units_are_found() {
        let built = FakeClusterBuilder::default().broker_config("log.retention.hours", "1").topic("orders", 1);
        let now = some_time();
        let mut cluster = built.build_machine(now);
        let retention = |state: &State, resource, name: &str, key: &str| {
            let told = state.describe_configs(1, resource, name).expect("configs");
            let entry = told.into_iter().find(|entry| entry.name == key).expect("a config");
            let synonyms: Vec<_> = entry.synonyms.iter().map(|s| (s.name.to_string(), s.source as i8)).collect();
            (entry.value.map(String::from), entry.source, synonyms)
        };

        let of_topic = retention(cluster.state(), ResourceType::Topic, "orders", "retention.ms");
        assert_eq!(of_topic, (Some("3600000".to_owned()), Source::Default, vec![]));
        let of_broker = retention(cluster.state(), ResourceType::Broker, "1", "log.retention.ms");
        assert_eq!(of_broker, (None, Source::Default, vec![]));

        cluster.control(now, |state| {
            let set = Change { name: "log.retention.ms".into(), operation: SET, value: Some("5000".into()) };
            state.alter_configs(1, 4, "", &[set], Doing::CarryOut).expect("a valid change");
        });
        let (value, source, synonyms) = retention(cluster.state(), ResourceType::Topic, "orders", "retention.ms");
        assert_eq!((value.as_deref(), source), (Some("5000"), Source::AllBrokers));
        let names: Vec<_> = synonyms.iter().map(|(name, source)| (name.as_str(), *source)).collect();
        assert_eq!(names, [("log.retention.ms", 3), ("log.retention.hours", 4), ("log.retention.hours", 5)]);
        let topic = cluster.state().topics.by_name("orders").expect("a topic");
        assert_eq!(topic.settings.retention_ms, 5_000);
    }
}
