//! How configs are changed: set and deleted, and lists appended to and subtracted from.

use std::collections::BTreeSet;

use krafka_protocol::{ErrorCode, Str};

use super::broker::{self, Mode};
use super::definition::{self, Kind};
use super::dynamic::Proposal;
use super::{Overrides, Refusal, ResourceType, client_metrics, group_table, loggers, of_group, of_topic};
use crate::faults::KafkaVersion;
use crate::state::State;
use crate::topics;

/// One change of one config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) name: Str,
    pub(crate) operation: i8,
    pub(crate) value: Option<Str>,
}

pub(crate) const SET: i8 = 0;
pub(crate) const DELETE: i8 = 1;
pub(crate) const APPEND: i8 = 2;
pub(crate) const SUBTRACT: i8 = 3;

/// Whether a request is carried out, or only checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    ValidateOnly,
    CarryOut,
}

impl State {
    /// Changes some configs of something, as the broker `node` does when it is asked; the others stay.
    ///
    /// # Errors
    ///
    /// If Kafka would refuse; then nothing is changed.
    pub(crate) fn alter_configs(
        &mut self,
        node: i32,
        resource: i8,
        name: &str,
        changes: &[Change],
        doing: Doing,
    ) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        if !changes.iter().all(|change| seen.insert(&change.name)) {
            return Err(invalid("Error due to duplicate config keys"));
        }
        let nulls: Vec<_> =
            changes.iter().filter(|change| change.operation != DELETE && change.value.is_none()).collect();
        if !nulls.is_empty() {
            let names: Vec<&str> = nulls.iter().map(|change| &*change.name).collect();
            return Err(invalid(format!("Null value not supported for : {}", names.join(","))));
        }
        let resource = self.resource(node, resource)?;
        if resource == ResourceType::BrokerLogger {
            return self.alter_loggers(node, name, changes, doing);
        }
        let mut given = self.overrides(node, resource, name)?;
        for change in changes {
            self.apply(resource, &mut given, change)?;
        }
        self.replace_configs(node, resource, name, given, changes, doing)
    }

    /// Sets the configs of something to exactly these.
    ///
    /// # Errors
    ///
    /// If Kafka would refuse; then nothing is changed.
    pub(crate) fn set_configs(
        &mut self,
        node: i32,
        resource: i8,
        name: &str,
        configs: &[(Str, Option<Str>)],
        doing: Doing,
    ) -> Result<(), Refusal> {
        let nulls: Vec<&str> = configs.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| &**name).collect();
        if !nulls.is_empty() {
            return Err(invalid(format!("Null value not supported for : {}", nulls.join(", "))));
        }
        let resource = self.resource(node, resource)?;
        if resource == ResourceType::BrokerLogger {
            return Err(invalid("Unknown resource type 8"));
        }
        self.overrides(node, resource, name)?;
        let mut given = Overrides::new();
        let mut changes = Vec::new();
        for (name, value) in configs {
            let change = Change { name: name.clone(), operation: SET, value: value.clone() };
            self.apply(resource, &mut given, &change)?;
            changes.push(change);
        }
        self.replace_configs(node, resource, name, given, &changes, doing)
    }

    /// The type of a resource that configs can be set for.
    fn resource(&self, node: i32, code: i8) -> Result<ResourceType, Refusal> {
        let version = self.version_of(node);
        let known = ResourceType::from_code(code);
        // Groups have configs since Kafka 4.
        known
            .filter(|known| *known != ResourceType::Group || version >= KafkaVersion::V4_0)
            .ok_or_else(|| invalid(format!("Unknown resource type {code}")))
    }

    /// What is set for something now; fails if there is no such thing.
    fn overrides(&self, node: i32, resource: ResourceType, name: &str) -> Result<Overrides, Refusal> {
        let configs = &self.configs;
        match resource {
            ResourceType::Topic if name.is_empty() => Err(invalid("Default topic resources are not allowed.")),
            ResourceType::Topic => {
                topics::validate_name(name).map_err(|text| Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, text))?;
                // Whether there is such a topic is asked last.
                Ok(self.topics.by_name(name).map(|topic| topic.settings.given.clone()).unwrap_or_default())
            }
            ResourceType::Broker if name.is_empty() => Ok(configs.cluster.clone()),
            ResourceType::Broker | ResourceType::BrokerLogger => match name.parse::<i32>() {
                Ok(id) if id == node => Ok(configs.brokers.get(&node).cloned().unwrap_or_default()),
                Ok(id) if resource == ResourceType::Broker => {
                    Err(invalid(format!("Unexpected broker id, expected {node}, but received {id}")))
                }
                Ok(id) => Err(invalid(format!("Unexpected node id. Expected {node}, but received {id}"))),
                Err(_) => Err(invalid(format!("Node id must be an integer, but it is: {name}"))),
            },
            ResourceType::ClientMetrics if name.is_empty() => Err(invalid("Subscription name can't be empty")),
            ResourceType::ClientMetrics => Ok(configs.client_metrics.get(name).cloned().unwrap_or_default()),
            ResourceType::Group if name.is_empty() => Err(invalid("Default group resources are not allowed.")),
            ResourceType::Group => Ok(configs.groups.get(name).cloned().unwrap_or_default()),
        }
    }

    /// Makes one change.
    fn apply(&self, resource: ResourceType, given: &mut Overrides, change: &Change) -> Result<(), Refusal> {
        let version = self.cluster_version();
        let name = &change.name;
        let kind = match resource {
            ResourceType::Topic => of_topic(name, version).map(|config| config.kind),
            ResourceType::Group => of_group(name, version).map(|config| config.kind),
            ResourceType::ClientMetrics => {
                client_metrics::TABLE.iter().find(|config| *name == *config.name).map(|config| config.kind)
            }
            _ => broker::find(name, version).map(|config| config.definition.kind),
        };
        let value = change.value.as_deref().unwrap_or_default();
        match change.operation {
            SET => {
                if resource == ResourceType::ClientMetrics {
                    client_metrics::check_elements(name, value)?;
                }
                given.insert(name.clone(), normal(kind, value, version));
            }
            DELETE => {
                given.remove(name);
            }
            // Only the brokers' and the topics' own lists are known as such.
            APPEND | SUBTRACT
                if kind != Some(Kind::List)
                    || matches!(resource, ResourceType::Group | ResourceType::ClientMetrics) =>
            {
                return Err(no_list(resource, change, kind.is_none(), version));
            }
            APPEND => {
                let present = self.present(resource, given, name);
                let mut elements = definition::list(&present);
                let added: Vec<_> = definition::list(value);
                elements.extend(added.iter().filter(|element| !definition::list(&present).contains(element)));
                given.insert(name.clone(), normal(kind, &elements.join(","), version));
            }
            SUBTRACT => {
                let present = self.present(resource, given, name);
                let taken = definition::list(value);
                let left: Vec<_> =
                    definition::list(&present).into_iter().filter(|element| !taken.contains(element)).collect();
                given.insert(name.clone(), Str::from(left.join(",")));
            }
            // Kafka runs into an error that nobody expected.
            _ => return Err(Refusal { code: ErrorCode::UNKNOWN_SERVER_ERROR, message: None }),
        }
        Ok(())
    }

    /// The list that is appended to: what is set, or else the default.
    fn present(&self, resource: ResourceType, given: &Overrides, name: &str) -> Str {
        let inherited = || match resource {
            ResourceType::Topic => self.inherited_by_topics(name),
            ResourceType::Group => self.inherited_by_groups(name),
            ResourceType::Broker => self.broker_value(name),
            _ => None,
        };
        given.get(name).cloned().or_else(inherited).unwrap_or_default()
    }

    /// Checks what is to be set, and sets it.
    fn replace_configs(
        &mut self,
        node: i32,
        resource: ResourceType,
        name: &str,
        given: Overrides,
        changes: &[Change],
        doing: Doing,
    ) -> Result<(), Refusal> {
        match resource {
            ResourceType::Topic => {
                self.check_topic_configs(&given)?;
                if self.topics.by_name(name).is_none() {
                    let text = format!("The topic '{name}' does not exist.");
                    return Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, text));
                }
            }
            ResourceType::Group => self.check_group_configs(&given)?,
            ResourceType::ClientMetrics => client_metrics::check(&given)?,
            _ => self.check_broker_configs(node, name.is_empty(), changes, &given)?,
        }
        if doing == Doing::ValidateOnly {
            return Ok(());
        }
        match resource {
            ResourceType::Topic => {
                if let Some(id) = self.topics.by_name(name).map(|topic| topic.id) {
                    let own_settings = self.own_topic_settings(&given);
                    let settings = self.topic_settings(given);
                    if let Some(topic) = self.topics.by_id_mut(id) {
                        topic.set_settings(settings, own_settings);
                    }
                }
            }
            ResourceType::Group => self.replace_group_configs(&Str::from(name), given),
            ResourceType::ClientMetrics => {
                keep(&mut self.configs.client_metrics, Str::from(name), given);
                self.telemetry.subscriptions_changed();
            }
            _ if name.is_empty() => {
                self.configs.cluster = given;
                self.broker_configs_changed();
            }
            _ => {
                keep(&mut self.configs.brokers, node, given);
                self.broker_configs_changed();
            }
        }
        Ok(())
    }

    /// Sets the configs of a group to exactly these, which are valid; the group hears of each that changed.
    fn replace_group_configs(&mut self, group: &Str, given: Overrides) {
        let before = self.configs.groups.get(group).cloned().unwrap_or_default();
        for name in before.keys().filter(|name| !given.contains_key(*name)) {
            self.groups.set(group, name, None);
        }
        for (name, value) in given.iter().filter(|(name, value)| before.get(*name) != Some(*value)) {
            self.groups.set(group, name, Some(value.clone()));
        }
        keep(&mut self.configs.groups, group.clone(), given);
    }

    /// Sets a config of a group, or forgets it, as a test does: whatever the bounds of the broker are.
    pub(crate) fn set_group_config(&mut self, group: &Str, name: &Str, value: Option<Str>) {
        let mut given = self.configs.groups.get(group).cloned().unwrap_or_default();
        match value {
            Some(value) => given.insert(name.clone(), value),
            None => given.remove(name),
        };
        self.replace_group_configs(group, given);
    }

    /// Checks what is set for a topic, each config and all of them together.
    pub(crate) fn check_topic_configs(&self, given: &Overrides) -> Result<(), Refusal> {
        let version = self.cluster_version();
        let invalid = |text: String| Refusal::new(ErrorCode::INVALID_CONFIG, text);
        // Names come before values, as a name that nobody knows has no type.
        if let Some(name) = given.keys().find(|name| of_topic(name, version).is_none()) {
            return Err(invalid(format!("Unknown topic config name: {name}")));
        }
        for (name, value) in given {
            if let Some(config) = of_topic(name, version) {
                config.check(value).map_err(invalid)?;
            }
        }
        let settings = self.topic_settings(given.clone());
        let (least, most) = (settings.min_compaction_lag_ms, settings.max_compaction_lag_ms);
        if least > most {
            return Err(invalid(format!(
                "conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
            )));
        }
        if given.get("remote.storage.enable").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            let text = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with \
                        remote log storage.";
            return Err(invalid(text.to_owned()));
        }
        Ok(())
    }

    fn check_group_configs(&self, given: &Overrides) -> Result<(), Refusal> {
        let version = self.cluster_version();
        let invalid = |text: String| Refusal::new(ErrorCode::INVALID_CONFIG, text);
        for (name, value) in given {
            let Some(config) = of_group(name, version) else {
                return Err(invalid(format!("Unknown group config name: {name}")));
            };
            config.check(value).map_err(invalid)?;
            let number = value.trim().parse::<i64>().unwrap_or(0);
            if let Some((least, most)) = group_table::bounds(name) {
                let least = self.broker_number(least).unwrap_or(i64::MIN);
                let most = self.broker_number(most).unwrap_or(i64::MAX);
                if !(least..=most).contains(&number) {
                    return Err(invalid(format!("{name} must be in the range {least} to {most} inclusive.")));
                }
            }
            match config.name {
                "streams.num.standby.replicas" => {
                    let most = self.broker_number("group.streams.max.standby.replicas").unwrap_or(2);
                    if number > most {
                        return Err(invalid(format!("{name} must be less than or equal to {most}")));
                    }
                }
                "streams.assignor.name" if value.trim() != "sticky" => {
                    let text = "is not a registered task assignor. Registered assignors are: [sticky].";
                    return Err(invalid(format!("{name} '{value}' {text}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_broker_configs(
        &self,
        node: i32,
        for_all: bool,
        changes: &[Change],
        given: &Overrides,
    ) -> Result<(), Refusal> {
        let version = self.version_of(node);
        let mode = |name: &str| broker::find(name, version).map(|config| config.mode);
        let having = |wanted: Mode| -> Vec<&str> {
            let names = changes.iter().map(|change| &*change.name);
            names.filter(|name| mode(name) == Some(wanted)).collect()
        };
        let listed = |names: Vec<&str>| match version {
            KafkaVersion::V3_9 => format!("Set({})", names.join(", ")),
            _ => format!("[{}]", names.join(", ")),
        };
        let fixed = having(Mode::ReadOnly);
        if !fixed.is_empty() {
            return Err(invalid(format!("Cannot update these configs dynamically: {}", listed(fixed))));
        }
        let of_listeners = having(Mode::PerListener);
        if !of_listeners.is_empty() {
            return Err(invalid(format!(
                "These security configs can be dynamically updated only per-listener using the listener prefix: {}",
                listed(of_listeners)
            )));
        }
        let of_one = having(Mode::PerBroker);
        if for_all && !of_one.is_empty() {
            return Err(invalid(format!(
                "Cannot update these configs at default cluster level, broker id must be specified: {}",
                listed(of_one)
            )));
        }
        for (name, value) in given {
            if let Some(config) = broker::find(name, version) {
                config.definition.check(value).map_err(invalid)?;
            }
        }
        Proposal { state: self, node, for_all, given }.check(changes)
    }

    fn alter_loggers(&mut self, node: i32, name: &str, changes: &[Change], doing: Doing) -> Result<(), Refusal> {
        self.overrides(node, ResourceType::BrokerLogger, name)?;
        for change in changes {
            let level = match change.operation {
                SET => change.value.as_deref(),
                DELETE => None,
                operation => {
                    let word = if operation == APPEND { "APPEND" } else { "SUBTRACT" };
                    return Err(invalid(format!("{word} operation is not allowed for the BROKER_LOGGER resource")));
                }
            };
            loggers::check(&change.name, level)?;
        }
        if doing == Doing::ValidateOnly {
            return Ok(());
        }
        let levels = self.configs.loggers.entry(node).or_default();
        for change in changes {
            match &change.value {
                Some(level) if change.operation == SET => {
                    levels.insert(change.name.clone(), Str::from(level.to_ascii_uppercase()));
                }
                _ => {
                    levels.remove(&change.name);
                }
            }
        }
        Ok(())
    }
}

/// Keeps what is set for something, or forgets the thing when nothing is.
fn keep<K: Ord>(all: &mut std::collections::BTreeMap<K, Overrides>, key: K, given: Overrides) {
    if given.is_empty() {
        all.remove(&key);
    } else {
        all.insert(key, given);
    }
}

/// A value as Kafka tells it again, and of a list each element once since 4.2.
pub(crate) fn normal(kind: Option<Kind>, value: &str, version: KafkaVersion) -> Str {
    match kind {
        Some(Kind::List) => {
            let mut elements: Vec<&str> = Vec::new();
            for element in definition::list(value) {
                if version < KafkaVersion::V4_2 || !elements.contains(&element) {
                    elements.push(element);
                }
            }
            Str::from(elements.join(","))
        }
        None => Str::from(value),
        Some(kind) => Str::from(kind.told(value)),
    }
}

fn no_list(resource: ResourceType, change: &Change, is_unknown: bool, version: KafkaVersion) -> Refusal {
    let name = &change.name;
    let (word, verb) = if change.operation == APPEND { ("append", "APPEND") } else { ("subtract", "SUBTRACT") };
    let is_unknown = is_unknown || broker::THROTTLES.contains(&&*change.name);
    let text = match resource {
        // Kafka 3.9 looks for the name without making sure that there is one.
        ResourceType::Broker if is_unknown && version == KafkaVersion::V3_9 => {
            return Refusal { code: ErrorCode::UNKNOWN_SERVER_ERROR, message: None };
        }
        // Throttles of moved replicas are not among the names that this is looked up in.
        ResourceType::Broker if is_unknown => format!("Unknown config name: {name}"),
        ResourceType::Broker => format!("Config value {word} is not allowed for config key: {name}"),
        _ => format!("Can't {verb} to key {name} because its type is not LIST."),
    };
    Refusal::new(ErrorCode::INVALID_CONFIG, text)
}

fn invalid(text: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, text)
}
