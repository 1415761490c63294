//! What a Kafka Streams application computes: its parts, the topics between them, and how many tasks that makes.
//!
//! A topology is compared with the topics that there are. It is ready when all of them are there with the right numbers
//! of partitions; until then its members are told what is wrong, and topics inside the application are created.
//!
//! Some topologies that make no sense are refused with a reason; over others Kafka trips, and says so by
//! UNKNOWN_SERVER_ERROR without a word. Which is which was seen with Kafka 4.4.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::api::streams_group_heartbeat::{self as wire, TopicInfo};
use krafka_protocol::{ErrorCode, Str};

use super::super::{Image, Refusal};
use super::assignor::hash_order;
use super::counts::Counts;

/// A partition of a subtopology's work.
pub(crate) type Task = (Str, i32);

/// A topology as a member tells it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Topology {
    pub(crate) epoch: i32,
    pub(crate) subtopologies: BTreeMap<Str, Subtopology>,
}

/// A part that no topic inside it connects with the others. With its lists in another order it is another one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subtopology {
    told: wire::Subtopology,
}

/// A topic that the coordinator creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InternalTopic {
    pub(crate) name: Str,
    pub(crate) partitions: i32,
    /// 0 for the broker's default.
    pub(crate) replication_factor: i16,
    pub(crate) configs: Vec<(Str, Str)>,
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
    pub(crate) missing: Vec<InternalTopic>,
}

const MISSING_SOURCE_TOPICS: i8 = 1;
const INCORRECTLY_PARTITIONED_TOPICS: i8 = 2;
const MISSING_INTERNAL_TOPICS: i8 = 3;

/// How many topics a status names; of the others it tells the number.
const NAMED: usize = 3;

impl Topology {
    /// Reads a topology out of a request.
    pub(crate) fn parse(topology: &wire::Topology) -> Result<Self, Refusal> {
        let parts = topology.subtopologies.iter();
        let parts = parts.map(|told| (told.subtopology_id.clone(), Subtopology { told: told.clone() }));
        let subtopologies: BTreeMap<_, _> = parts.collect();
        if topology.epoch < 0 || subtopologies.len() < topology.subtopologies.len() {
            return Err(trip());
        }
        Ok(Self { epoch: topology.epoch, subtopologies })
    }

    /// The topics that it is about.
    pub(crate) fn topics(&self) -> BTreeSet<&Str> {
        self.subtopologies.values().flat_map(|part| topics(&part.told)).collect()
    }

    /// Compares the topology with the topics that there are.
    pub(crate) fn configure(&self, image: &Image<'_>) -> Result<Configured, Refusal> {
        let parts: Vec<&Subtopology> = self.subtopologies.values().collect();
        let copartitioned = parts.iter().map(|part| part.copartitioned()).collect::<Result<Vec<_>, _>>()?;
        let sources: BTreeSet<&Str> = parts.iter().flat_map(|part| part.sources()).collect();
        let gone: Vec<&Str> = sources.into_iter().filter(|name| image.id_of(name).is_none()).collect();
        if !gone.is_empty() {
            let detail = format!("Source topics {} are missing.", summary(gone));
            return Ok(Configured::not_ready(MISSING_SOURCE_TOPICS, detail));
        }
        let mut counts = Counts::of_repartition_topics(&parts, image)?;
        for group in copartitioned.iter().flatten() {
            if let Err(detail) = counts.make_equal(group, &parts) {
                return Ok(Configured::not_ready(INCORRECTLY_PARTITIONED_TOPICS, detail));
            }
        }
        for (id, part) in &self.subtopologies {
            let Some(tasks) = counts.most(part) else {
                return Err(invalid(format!("No source topics found for subtopology {id}")));
            };
            part.changelogs().iter().for_each(|topic| counts.decide(topic.name.clone(), tasks));
        }

        let mut configured = Configured::default();
        // In the order of the first time that each was named, with what was said of it last.
        let mut inside: Vec<InternalTopic> = Vec::new();
        for (id, part) in &self.subtopologies {
            configured.tasks.insert(id.clone(), counts.most(part).unwrap_or(0));
            for topic in part.internal_topics(&counts)? {
                configured.internal.insert(topic.name.clone(), topic.partitions);
                match inside.iter_mut().find(|known| known.name == topic.name) {
                    Some(known) => *known = topic,
                    None => inside.push(topic),
                }
            }
        }
        let names: Vec<Str> = inside.iter().map(|topic| topic.name.clone()).collect();
        let order = hash_order(&names);
        inside.sort_by_key(|topic| order.iter().position(|name| **name == topic.name));
        let differs =
            |topic: &&InternalTopic| counts.existing(&topic.name).is_some_and(|found| found != topic.partitions);
        if let Some(InternalTopic { name, partitions, .. }) = inside.iter().find(differs) {
            let found = counts.existing(name).unwrap_or(0);
            let detail = format!(
                "Existing topic {name} has different number of partitions: expected {partitions}, found {found}"
            );
            return Ok(Configured::not_ready(INCORRECTLY_PARTITIONED_TOPICS, detail));
        }
        inside.retain(|topic| counts.existing(&topic.name).is_none());
        if !inside.is_empty() {
            let names = inside.iter().map(|topic| &topic.name).collect();
            let detail = format!("Internal topics are missing: {}", summary(names));
            configured.problem = Some(Problem { status: MISSING_INTERNAL_TOPICS, detail, missing: inside });
        }
        Ok(configured)
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
    /// The topics from outside that it reads.
    pub(crate) fn sources(&self) -> &[Str] {
        &self.told.source_topics
    }

    /// The topics inside the application that it writes to.
    pub(crate) fn sinks(&self) -> &[Str] {
        &self.told.repartition_sink_topics
    }

    /// The topics inside the application that it reads.
    pub(crate) fn repartition(&self) -> &[TopicInfo] {
        &self.told.repartition_source_topics
    }

    /// The topics with the changes of its states.
    pub(crate) fn changelogs(&self) -> &[TopicInfo] {
        &self.told.state_changelog_topics
    }

    /// All topics that it reads.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Str> {
        self.sources().iter().chain(self.repartition().iter().map(|topic| &topic.name))
    }

    /// The topics that must have the same number of partitions, each told by its place in a list.
    fn copartitioned(&self) -> Result<Vec<BTreeSet<Str>>, Refusal> {
        let groups = self.told.copartition_groups.iter().map(|group| {
            let sources = group.source_topics.iter().map(|&at| at_place(self.sources(), at).cloned());
            let repartition = group.repartition_source_topics.iter();
            let repartition = repartition.map(|&at| at_place(self.repartition(), at).map(|topic| topic.name.clone()));
            sources.chain(repartition).collect::<Option<BTreeSet<Str>>>()
        });
        groups.map(|group| group.ok_or_else(trip)).collect()
    }

    /// The topics inside the application that it reads or keeps its states in, with their numbers of partitions.
    fn internal_topics(&self, counts: &Counts<'_>) -> Result<Vec<InternalTopic>, Refusal> {
        let mut topics = Vec::new();
        for list in [self.repartition(), self.changelogs()] {
            let names: BTreeSet<&Str> = list.iter().map(|topic| &topic.name).collect();
            if names.len() < list.len() {
                return Err(trip());
            }
            for told in list {
                let keys: BTreeSet<&Str> = told.topic_configs.iter().map(|config| &config.key).collect();
                let partitions =
                    if told.partitions == 0 { counts.decided(&told.name).unwrap_or(0) } else { told.partitions };
                if keys.len() < told.topic_configs.len() || partitions < 1 {
                    return Err(trip());
                }
                let configs = told.topic_configs.iter().map(|config| (config.key.clone(), config.value.clone()));
                topics.push(InternalTopic {
                    name: told.name.clone(),
                    partitions,
                    replication_factor: told.replication_factor,
                    configs: configs.collect(),
                });
            }
        }
        Ok(topics)
    }
}

/// All topics that a part is about, as Kafka goes through them.
pub(crate) fn topics(told: &wire::Subtopology) -> impl Iterator<Item = &Str> {
    let repartition = told.repartition_source_topics.iter().map(|topic| &topic.name);
    let changelogs = told.state_changelog_topics.iter().map(|topic| &topic.name);
    told.source_topics.iter().chain(&told.repartition_sink_topics).chain(repartition).chain(changelogs)
}

fn at_place<T>(list: &[T], place: i16) -> Option<&T> {
    list.get(usize::try_from(place).ok()?)
}

/// The first of some topics, and how many others there are.
fn summary(names: Vec<&Str>) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(|name| &***name).collect();
    let others = names.len().saturating_sub(NAMED);
    let rest = if others > 0 { format!(" and {others} additional topics") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

pub(super) fn invalid(reason: String) -> Refusal {
    Refusal::new(ErrorCode::STREAMS_INVALID_TOPOLOGY, reason)
}

/// Kafka trips over what it was told.
pub(super) fn trip() -> Refusal {
    Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, String::new())
}
