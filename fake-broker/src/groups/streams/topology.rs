//! What a Kafka Streams application computes: its parts, the topics between them, and how many tasks that makes.
//!
//! A topology is checked against the topics that there are. It is ready when all of them are there with the right
//! numbers of partitions; until then its members are told what is wrong, and topics inside the application are created.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::api::streams_group_heartbeat::{self as wire, TopicInfo};
use krafka_protocol::{ErrorCode, Str};

use super::super::{Image, Refusal};
use crate::topics;
use crate::words::words;

/// A partition of a subtopology's work.
pub(crate) type Task = (Str, i32);

/// A topology as a member tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Topology {
    pub(crate) epoch: i32,
    pub(crate) subtopologies: BTreeMap<Str, Subtopology>,
}

/// A part that no topic inside it connects with the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subtopology {
    pub(crate) sources: BTreeSet<Str>,
    pub(crate) sinks: BTreeSet<Str>,
    pub(crate) repartition: BTreeMap<Str, InternalTopic>,
    pub(crate) changelogs: BTreeMap<Str, InternalTopic>,
    copartition: Vec<BTreeSet<Str>>,
}

/// A topic that the coordinator creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InternalTopic {
    /// 0 if it follows from the topics around it.
    pub(crate) partitions: i32,
    /// 0 for the broker's default.
    pub(crate) replication_factor: i16,
    pub(crate) configs: BTreeMap<Str, Str>,
}

/// A topology beside the topics that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Configured {
    /// How many tasks each subtopology has; none as long as the topology is not ready.
    pub(crate) tasks: BTreeMap<Str, i32>,
    /// How many partitions each topic inside the application has, or shall have.
    pub(crate) internal: BTreeMap<Str, i32>,
    pub(crate) problem: Option<Problem>,
}

/// What keeps a topology from being ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The status that members are told.
    pub(crate) status: i8,
    pub(crate) detail: String,
    /// The topics that are to be created.
    pub(crate) missing: Vec<(Str, i32, InternalTopic)>,
}

const MISSING_SOURCE_TOPICS: i8 = 1;
const INCORRECTLY_PARTITIONED_TOPICS: i8 = 2;
const MISSING_INTERNAL_TOPICS: i8 = 3;

impl Topology {
    /// Reads a topology out of a request.
    pub(crate) fn parse(topology: &wire::Topology) -> Result<Self, Refusal> {
        let mut subtopologies = BTreeMap::new();
        for told in &topology.subtopologies {
            let previous = subtopologies.insert(told.subtopology_id.clone(), Subtopology::parse(told)?);
            if previous.is_some() {
                // Kafka trips over it.
                return Err(Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, words(ErrorCode::UNKNOWN_SERVER_ERROR)));
            }
        }
        Ok(Self { epoch: topology.epoch, subtopologies })
    }

    /// The topics that it is about.
    pub(crate) fn topics(&self) -> BTreeSet<&Str> {
        self.subtopologies.values().flat_map(Subtopology::topics).collect()
    }

    /// Compares the topology with the topics that there are.
    pub(crate) fn configure(&self, image: &Image<'_>) -> Result<Configured, Refusal> {
        let exists = |name: &Str| image.id_of(name).map(|id| image.partitions(id));
        let sources: BTreeSet<&Str> = self.subtopologies.values().flat_map(|part| &part.sources).collect();
        let gone: Vec<&str> = sources.iter().filter(|name| exists(name).is_none()).map(|name| &***name).collect();
        if !gone.is_empty() {
            let detail = format!("Source topics {} are missing.", gone.join(", "));
            return Ok(Configured::not_ready(MISSING_SOURCE_TOPICS, detail));
        }
        let mut counts: BTreeMap<Str, i32> =
            sources.into_iter().filter_map(|name| Some((name.clone(), exists(name)?))).collect();
        self.count_repartition_topics(&mut counts)?;
        if let Some(detail) = self.enforce_copartitioning(&mut counts) {
            return Ok(Configured::not_ready(INCORRECTLY_PARTITIONED_TOPICS, detail));
        }

        let mut configured = Configured::default();
        let mut missing = Vec::new();
        for (id, part) in &self.subtopologies {
            let tasks = part.inputs().filter_map(|name| counts.get(name)).max().copied().unwrap_or(0);
            configured.tasks.insert(id.clone(), tasks);
            let repartition = part.repartition.iter().map(|(name, topic)| (name, topic, counts.get(name).copied()));
            let changelogs = part.changelogs.iter().map(|(name, topic)| (name, topic, Some(tasks)));
            for (name, topic, expected) in repartition.chain(changelogs) {
                let expected = expected.unwrap_or(0);
                configured.internal.insert(name.clone(), expected);
                match exists(name) {
                    Some(found) if found != expected => {
                        let detail = format!(
                            "Existing topic {name} has different number of partitions: expected {expected}, found \
                             {found}"
                        );
                        return Ok(Configured::not_ready(INCORRECTLY_PARTITIONED_TOPICS, detail));
                    }
                    Some(_) => {}
                    None => missing.push((name.clone(), expected, topic.clone())),
                }
            }
        }
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|(name, ..)| &**name).collect();
            let detail = format!("Internal topics are missing: {}", names.join(", "));
            configured.problem = Some(Problem { status: MISSING_INTERNAL_TOPICS, detail, missing });
        }
        Ok(configured)
    }

    /// Works out how many partitions the topics between the parts have: as many as what is written there comes from.
    fn count_repartition_topics(&self, counts: &mut BTreeMap<Str, i32>) -> Result<(), Refusal> {
        let all = self.subtopologies.values().flat_map(|part| &part.repartition);
        let mut open: BTreeSet<&Str> = BTreeSet::new();
        for (name, topic) in all {
            if topic.partitions > 0 {
                counts.insert(name.clone(), topic.partitions);
            } else {
                open.insert(name);
            }
        }
        while !open.is_empty() {
            let resolved = open.iter().find_map(|name| {
                let writers = self.subtopologies.values().filter(|part| part.sinks.contains(*name));
                let known: Option<Vec<i32>> =
                    writers.flat_map(Subtopology::inputs).map(|input| counts.get(input).copied()).collect();
                Some((*name, known?.into_iter().max()?))
            });
            let Some((name, count)) = resolved else {
                let is_sink = |name: &&Str| self.subtopologies.values().any(|part| part.sinks.contains(*name));
                let reason = if open.iter().all(is_sink) {
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the \
                     topology that cannot be resolved."
                } else {
                    "Failed to compute number of partitions for all repartition topics, because a repartition source \
                     topic is never used as a sink topic."
                };
                return Err(invalid(reason.to_owned()));
            };
            open.remove(name);
            counts.insert(name.clone(), count);
        }
        Ok(())
    }

    /// Gives topics that belong together the same number of partitions; says which cannot have it.
    fn enforce_copartitioning(&self, counts: &mut BTreeMap<Str, i32>) -> Option<String> {
        for part in self.subtopologies.values() {
            for group in &part.copartition {
                let count = |name: &Str| counts.get(name).copied().unwrap_or(0);
                let fixed: BTreeMap<&Str, i32> =
                    group.iter().filter(|name| part.sources.contains(*name)).map(|name| (name, count(name))).collect();
                let largest = fixed.values().copied().max().or_else(|| group.iter().map(count).max());
                let common = largest.unwrap_or(0);
                if fixed.values().any(|&count| count != common) {
                    let shown: Vec<String> = fixed.iter().map(|(name, count)| format!("{name}={count}")).collect();
                    return Some(format!(
                        "Following topics do not have the same number of partitions: [{{{}}}]",
                        shown.join(", ")
                    ));
                }
                for name in group {
                    match part.repartition.get(name) {
                        Some(topic) if topic.partitions > 0 && topic.partitions != common => {
                            return Some(format!(
                                "Number of partitions [{}] of repartition topic [{name}] doesn't match number of \
                                 partitions [{common}] of the source topic.",
                                topic.partitions
                            ));
                        }
                        Some(_) => {
                            counts.insert(name.clone(), common);
                        }
                        None => {}
                    }
                }
            }
        }
        None
    }
}

impl Configured {
    fn not_ready(status: i8, detail: String) -> Self {
        Self { problem: Some(Problem { status, detail, missing: Vec::new() }), ..Self::default() }
    }

    /// Whether there is something to assign.
    pub(crate) fn is_ready(&self) -> bool {
        self.problem.is_none()
    }
}

impl Subtopology {
    fn parse(told: &wire::Subtopology) -> Result<Self, Refusal> {
        if !told.source_topic_regex.is_empty() {
            let reason = "Regular expressions for source topics are not supported yet.";
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, reason));
        }
        let changelogs = internal_topics(&told.state_changelog_topics);
        if let Some((name, topic)) = changelogs.iter().find(|(_, topic)| topic.partitions != 0) {
            return Err(invalid(format!(
                "Changelog topic {name} must have an undefined partition count, but it is set to {}.",
                topic.partitions
            )));
        }
        let mut copartition = Vec::new();
        for group in &told.copartition_groups {
            let sources = group.source_topics.iter().map(|&at| at_place(&told.source_topics, at).cloned());
            let repartition = group.repartition_source_topics.iter();
            let repartition =
                repartition.map(|&at| at_place(&told.repartition_source_topics, at).map(|t| t.name.clone()));
            let names: Option<BTreeSet<Str>> = sources.chain(repartition).collect();
            // Kafka trips over a place that is not there.
            let message = words(ErrorCode::UNKNOWN_SERVER_ERROR);
            copartition.push(names.ok_or_else(|| Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, message))?);
        }
        let part = Self {
            sources: told.source_topics.iter().cloned().collect(),
            sinks: told.repartition_sink_topics.iter().cloned().collect(),
            repartition: internal_topics(&told.repartition_source_topics),
            changelogs,
            copartition,
        };
        let wrong = part.topics().filter(|name| topics::validate_name(name).is_err());
        let wrong: Vec<&str> = wrong.map(|name| &**name).collect();
        if wrong.is_empty() {
            Ok(part)
        } else {
            Err(invalid(format!("Topic names {} are not valid topic names.", wrong.join(", "))))
        }
    }

    /// The topics that it reads.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Str> {
        self.sources.iter().chain(self.repartition.keys())
    }

    fn topics(&self) -> impl Iterator<Item = &Str> {
        self.inputs().chain(&self.sinks).chain(self.changelogs.keys())
    }
}

fn internal_topics(told: &[TopicInfo]) -> BTreeMap<Str, InternalTopic> {
    let topic = |info: &TopicInfo| InternalTopic {
        partitions: info.partitions,
        replication_factor: info.replication_factor,
        configs: info.topic_configs.iter().map(|config| (config.key.clone(), config.value.clone())).collect(),
    };
    told.iter().map(|info| (info.name.clone(), topic(info))).collect()
}

fn at_place<T>(list: &[T], place: i16) -> Option<&T> {
    list.get(usize::try_from(place).ok()?)
}

fn invalid(reason: String) -> Refusal {
    Refusal::new(ErrorCode::STREAMS_INVALID_TOPOLOGY, reason)
}
