//! Which requests, or new connections, a rule is about.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use krafka_protocol::{AnyRequest, ApiKey, Str};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::carried::{Spoken, Wanted};
use super::entities::Entities;
use super::names::{Api, Id};
use super::network::{Passing, Towards};
use super::tree::{Node, Tree};
use super::verdict::Target;
use crate::context::Context;

/// Asks a question about a request.
pub(crate) type Predicate = Arc<dyn Fn(&AnyRequest) -> bool + Send + Sync>;

/// What a rule waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// A node begins to work on a request.
    #[default]
    Request,
    /// A client connects to a node.
    Connect,
    /// A frame sets out, from a client or to it; or one node has something to tell another.
    Network,
}

/// What must all hold for a request to match. What a request does not carry, it does not match: a rule for a topic
/// never matches a Heartbeat.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Selector {
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) event: Event,
    /// Any API, if absent.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "some_apis")]
    pub(crate) apis: Vec<Api>,
    /// The lowest and the highest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) versions: Option<[i16; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connection: Option<u64>,
    /// The node at the other end of a link between nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<i32>,
    /// Which way on the link; both ways, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) towards: Option<Towards>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic_id: Option<Id>,
    /// Any partition, if absent.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "some_partitions")]
    pub(crate) partitions: Vec<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transactional_id: Option<String>,
    /// The name of what a configuration belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<String>,
    /// Fields of the request that must have these values, each named by the fields on the way to it with dots between.
    /// One element of an array is enough.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) fields: BTreeMap<String, Value>,
    #[serde(skip)]
    pub(crate) predicate: Option<Predicate>,
}

impl Selector {
    /// The APIs and versions in which a request can be one of those meant; none for rules that are not about requests.
    ///
    /// # Errors
    ///
    /// It could never match.
    pub(crate) fn check(&self) -> Result<Vec<Spoken>, String> {
        if self.versions.is_some_and(|[first, last]| first > last) {
            return Err("`versions` are the first and the last, such as [0, 9]".to_owned());
        }
        if let Some(node) = self.node.into_iter().chain(self.peer).find(|node| *node < 1) {
            return Err(format!("nodes are numbered from 1 on: `node` and `peer` cannot be {node}"));
        }
        if self.event == Event::Connect && (self.names_contents() || self.client_id.is_some()) {
            return Err("a connection is known by `node` and `connection` before anything is asked on it".to_owned());
        }
        if self.event == Event::Request { self.requests() } else { Ok(Vec::new()) }
    }

    fn requests(&self) -> Result<Vec<Spoken>, String> {
        let apis: Vec<ApiKey> = self.apis.iter().map(|api| api.0).collect();
        let names: Vec<&str> = apis.iter().map(|key| key.name()).collect();
        let names = names.join(" or ");
        let all = Spoken::all_of(&apis);
        if all.is_empty() {
            return Err(format!("no node speaks {names}"));
        }
        let has_version =
            |spoken: &Spoken| self.versions.is_none_or(|[first, last]| (first..=last).contains(&spoken.version));
        let mut left: Vec<Spoken> = all.iter().copied().filter(has_version).collect();
        if let (true, Some([first, last])) = (left.is_empty(), self.versions) {
            let known = all.iter().map(|spoken| spoken.version);
            let known = format!("from {} to {}", known.clone().min().unwrap_or(0), known.max().unwrap_or(0));
            let whose = if apis.is_empty() { "all APIs" } else { &names };
            return Err(format!("`versions` [{first}, {last}] are none of {whose}, which has them {known}"));
        }
        let request =
            if apis.is_empty() { "no request has".to_owned() } else { format!("a request of {names} has no") };
        let is_unknown = |path: &String| !all.iter().any(|spoken| spoken.has_field(path));
        if let Some(path) = self.fields.keys().find(|path| is_unknown(path)) {
            let a = if apis.is_empty() { " a" } else { "" };
            return Err(format!("{request}{a} field `{path}`"));
        }
        let mut before: Vec<String> = Vec::new();
        for wanted in self.wanted() {
            left.retain(|spoken| spoken.can_have(wanted));
            if left.is_empty() {
                let versions =
                    self.versions.map_or_else(String::new, |[first, last]| format!(" in versions {first} to {last}"));
                let beside = if before.is_empty() { String::new() } else { format!(" beside {}", before.join(", ")) };
                return Err(match wanted {
                    Wanted::Field(path, value) => {
                        format!("`{path}` of a request of {names} cannot be {value}{versions}{beside}")
                    }
                    entity => format!("{request} {}{versions}{beside}", entity.name()),
                });
            }
            before.push(wanted.name());
        }
        Ok(left)
    }

    /// All that it asks a request for.
    fn wanted(&self) -> impl Iterator<Item = Wanted<'_>> {
        let entities = [
            (self.topic.is_some(), Wanted::Topic),
            (self.topic_id.is_some(), Wanted::TopicId),
            (!self.partitions.is_empty(), Wanted::Partitions),
            (self.group.is_some(), Wanted::Group),
            (self.transactional_id.is_some(), Wanted::TransactionalId),
            (self.resource.is_some(), Wanted::Resource),
        ];
        let entities = entities.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, wanted)| wanted);
        entities.chain(self.fields.iter().map(|(path, value)| Wanted::Field(path, value)))
    }

    /// Whether a request is one of those meant.
    pub(crate) fn matches(&self, cx: &Context, request: &AnyRequest, entities: &Entities) -> bool {
        let has = |wanted: &Option<String>, names: &[Str]| {
            wanted.as_ref().is_none_or(|wanted| names.iter().any(|name| **name == **wanted))
        };
        self.event == Event::Request
            && (self.apis.is_empty() || self.apis.contains(&Api(cx.key)))
            && self.versions.is_none_or(|[min, max]| (min..=max).contains(&cx.version))
            && self.node.is_none_or(|node| node == cx.node)
            && self.connection.is_none_or(|connection| connection == cx.connection.0)
            && (self.client_id.is_none() || self.client_id.as_deref() == cx.client_id.as_deref())
            && has(&self.group, &entities.groups)
            && has(&self.transactional_id, &entities.transactional_ids)
            && has(&self.resource, &entities.resources)
            && (self.topic.is_none() || self.topics_of(entities).next().is_some())
            && self.topic_id.is_none_or(|id| entities.topic_ids.iter().any(|(named, _)| *named == id.0))
            && (self.partitions.is_empty() || self.partitions_of(entities).next().is_some())
            && self.fields_match(request)
            && self.predicate.as_ref().is_none_or(|holds| holds(request))
    }

    /// Whether a new connection is one of those meant.
    pub(crate) fn matches_connection(&self, connection: u64, node: i32) -> bool {
        self.event == Event::Connect
            && self.node.is_none_or(|wanted| wanted == node)
            && self.connection.is_none_or(|wanted| wanted == connection)
    }

    /// Whether a frame on the network is one of those meant.
    pub(crate) fn matches_frame(&self, passing: &Passing) -> bool {
        self.event == Event::Network
            && self.peer.is_none()
            && self.node.is_none_or(|wanted| wanted == passing.node)
            && self.connection.is_none_or(|wanted| wanted == passing.connection)
            && (self.client_id.is_none() || self.client_id.as_deref() == passing.client_id.as_deref())
            && self.towards.is_none_or(|wanted| wanted == passing.towards)
    }

    /// The two nodes between which the rule stands, if it stands between nodes.
    pub(crate) fn pair(&self) -> Option<(i32, i32)> {
        self.node.zip(self.peer).filter(|_| self.event == Event::Network)
    }

    /// Whether it asks for what only a request tells.
    pub(crate) fn names_contents(&self) -> bool {
        let who = Self {
            event: self.event,
            node: self.node,
            connection: self.connection,
            client_id: self.client_id.clone(),
            peer: self.peer,
            towards: self.towards,
            ..Self::default()
        };
        self.predicate.is_some() || serde_json::to_value(self).ok() != serde_json::to_value(&who).ok()
    }

    /// The parts of a request that the rule is about.
    pub(crate) fn target(&self, entities: &Entities) -> Target {
        let text = |name: &Option<String>| name.as_deref().map(Str::from);
        let by_id = || self.topic_id.and_then(|id| entities.name_of(id.0));
        Target {
            topic: text(&self.topic).or_else(by_id),
            partitions: self.partitions.clone(),
            group: text(&self.group),
            transactional_id: text(&self.transactional_id),
            resource: text(&self.resource),
        }
    }

    /// The partitions of a request that the rule is about.
    pub(crate) fn partitions_of<'a>(&'a self, entities: &'a Entities) -> impl Iterator<Item = (Str, i32)> + 'a {
        let partitions = self.topics_of(entities).flat_map(|(topic, ps)| ps.iter().map(|p| (topic.clone(), *p)));
        partitions.filter(|(_, p)| self.partitions.is_empty() || self.partitions.contains(p))
    }

    fn topics_of<'a>(&'a self, entities: &'a Entities) -> impl Iterator<Item = &'a (Str, Vec<i32>)> {
        let by_id = self.topic_id.map(|id| entities.name_of(id.0));
        entities.topics.iter().filter(move |(topic, _)| {
            self.topic.as_ref().is_none_or(|wanted| **wanted == **topic)
                && by_id.as_ref().is_none_or(|wanted| wanted.as_ref() == Some(topic))
        })
    }

    fn fields_match(&self, request: &AnyRequest) -> bool {
        if self.fields.is_empty() {
            return true;
        }
        let node = Node::of(request.structure());
        self.fields.iter().all(|(path, wanted)| {
            let path: Vec<&str> = path.split('.').collect();
            any_at(&node, &path, wanted)
        })
    }
}

/// Whether a field on the path, in any element of the arrays on the way, has the value.
fn any_at(node: &Node, path: &[&str], wanted: &Value) -> bool {
    let [first, rest @ ..] = path else { return false };
    let Some(value) = node.get(first) else { return false };
    let holds = |value: &Tree| match value {
        Tree::Struct(inner) if !rest.is_empty() => any_at(inner, rest, wanted),
        Tree::Float(value) => rest.is_empty() && wanted.as_f64() == Some(*value),
        value => rest.is_empty() && value.to_json() == *wanted,
    };
    match value {
        Tree::Array(elements) if rest.is_empty() => value.to_json() == *wanted || elements.iter().any(holds),
        Tree::Array(elements) => elements.iter().any(holds),
        value => holds(value),
    }
}

fn some_apis<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Api>, D::Error> {
    some("apis", Vec::deserialize(from)?)
}

fn some_partitions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<i32>, D::Error> {
    some("partitions", Vec::deserialize(from)?)
}

/// A list that names something. Who computes one that comes out empty does not mean everything.
fn some<T, E: Error>(field: &str, list: Vec<T>) -> Result<Vec<T>, E> {
    if list.is_empty() { Err(E::custom(none_named(field))) } else { Ok(list) }
}

/// What is wrong with an empty list.
pub(super) fn none_named(field: &str) -> String {
    format!("`{field}` names none: leave it away to mean all")
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.apis.iter().map(|api| api.0.name()).collect();
        f.write_str(match self.event {
            Event::Connect => "a connection",
            Event::Network => "the network",
            Event::Request if names.is_empty() => "any request",
            Event::Request => "",
        })?;
        f.write_str(&names.join(" or "))?;
        if let Some([min, max]) = self.versions {
            write!(f, " in version {min} to {max}")?;
        }
        if let Some(node) = self.node {
            write!(f, " on node {node}")?;
        }
        if let Some(peer) = self.peer {
            write!(f, " and node {peer}")?;
        }
        match self.towards {
            Some(Towards::Node) => f.write_str(" towards the node")?,
            Some(Towards::Peer) => f.write_str(" towards its peer")?,
            None => {}
        }
        if let Some(connection) = self.connection {
            write!(f, " on connection {connection}")?;
        }
        let partitions: Vec<String> = self.partitions.iter().map(ToString::to_string).collect();
        let topic = self.topic.clone().or_else(|| self.topic_id.map(|id| id.0.to_string()));
        match (topic, partitions.join(",")) {
            (Some(topic), partitions) if partitions.is_empty() => write!(f, " for {topic}")?,
            (Some(topic), partitions) => write!(f, " for {topic}-{partitions}")?,
            (None, partitions) if partitions.is_empty() => {}
            (None, partitions) => write!(f, " for partition {partitions}")?,
        }
        let others = [
            (" of group ", &self.group),
            (" of transactional id ", &self.transactional_id),
            (" for the resource ", &self.resource),
            (" of client ", &self.client_id),
        ];
        for (what, name) in others {
            if let Some(name) = name {
                write!(f, "{what}{name}")?;
            }
        }
        for (path, value) in &self.fields {
            write!(f, " with {path} = {value}")?;
        }
        if self.predicate.is_some() { f.write_str(" that matches") } else { Ok(()) }
    }
}
