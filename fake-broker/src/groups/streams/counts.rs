//! How many partitions the topics of a topology have, or shall have.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::Str;

use super::super::{Image, Refusal};
use super::topology::{Subtopology, invalid};

/// What there is, and what was decided for what is not there yet.
#[derive(Debug)]
pub(super) struct Counts<'a> {
    image: &'a Image<'a>,
    decided: BTreeMap<Str, i32>,
}

impl<'a> Counts<'a> {
    /// Works out how many partitions the topics between the parts have: as many as they say, or as what is written
    /// there comes from.
    pub(super) fn of_repartition_topics(parts: &[&Subtopology], image: &'a Image<'a>) -> Result<Self, Refusal> {
        let mut counts = Self { image, decided: BTreeMap::new() };
        let told = parts.iter().flat_map(|part| part.repartition()).filter(|topic| topic.partitions != 0);
        counts.decided.extend(told.map(|topic| (topic.name.clone(), topic.partitions)));
        loop {
            let (mut is_open, mut goes_on) = (false, false);
            for part in parts {
                for sink in part.sinks() {
                    if counts.decided.contains_key(sink) {
                        continue;
                    }
                    match counts.most_known(part) {
                        Some(count) => {
                            counts.decided.insert(sink.clone(), count);
                            goes_on = true;
                        }
                        None => is_open = true,
                    }
                }
            }
            if !is_open {
                break;
            }
            if !goes_on {
                let reason = "Failed to compute number of partitions for all repartition topics. There may be loops in \
                              the topology that cannot be resolved.";
                return Err(invalid(reason.to_owned()));
            }
        }
        if parts.iter().flat_map(|part| part.repartition()).any(|topic| !counts.decided.contains_key(&topic.name)) {
            let reason = "Failed to compute number of partitions for all repartition topics, because a repartition \
                          source topic is never used as a sink topic.";
            return Err(invalid(reason.to_owned()));
        }
        Ok(counts)
    }

    /// The largest number that is known of the topics that a part reads.
    fn most_known(&self, part: &Subtopology) -> Option<i32> {
        let repartition = part.repartition().iter().filter_map(|topic| self.decided(&topic.name));
        repartition.chain(part.sources().iter().filter_map(|name| self.existing(name))).max()
    }

    /// The largest number of the topics that a part reads, if it reads any.
    pub(super) fn most(&self, part: &Subtopology) -> Option<i32> {
        part.inputs().map(|name| self.count(name)).max()
    }

    /// Gives topics that belong together the same number of partitions; says which cannot have it.
    pub(super) fn make_equal(&mut self, group: &BTreeSet<Str>, parts: &[&Subtopology]) -> Result<(), String> {
        let repartition = || parts.iter().flat_map(|part| part.repartition());
        let fixed: BTreeSet<&Str> =
            repartition().filter(|topic| topic.partitions != 0).map(|topic| &topic.name).collect();
        let (inside, outside): (BTreeMap<&Str, i32>, BTreeMap<&Str, i32>) = group
            .iter()
            .map(|name| (name, self.count(name)))
            .partition(|(name, _)| repartition().any(|topic| topic.name == **name));
        let common = if !outside.is_empty() {
            same(outside.values().copied(), &outside)?
        } else if fixed.is_empty() {
            inside.values().copied().max().unwrap_or(0)
        } else {
            // Kafka looks at all topics with a number of their own, also at those of other groups.
            same(fixed.iter().map(|name| self.count(name)), &inside)?
        };
        for (name, count) in inside {
            if fixed.contains(name) && count != common {
                return Err(format!(
                    "Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions \
                     [{common}] of the source topic."
                ));
            }
            self.decided.insert(name.clone(), common);
        }
        Ok(())
    }

    /// Decides how many partitions a topic shall have.
    pub(super) fn decide(&mut self, name: Str, count: i32) {
        self.decided.insert(name, count);
    }

    /// What was decided for a topic.
    pub(super) fn decided(&self, name: &Str) -> Option<i32> {
        self.decided.get(name).copied()
    }

    /// How many partitions a topic has, if it is there.
    pub(super) fn existing(&self, name: &str) -> Option<i32> {
        self.image.id_of(name).map(|id| self.image.partitions(id))
    }

    fn count(&self, name: &Str) -> i32 {
        self.existing(name).or_else(|| self.decided(name)).unwrap_or(0)
    }
}

/// The number that all of them have; or what Kafka says if they differ, which shows these topics.
fn same(mut counts: impl Iterator<Item = i32>, shown: &BTreeMap<&Str, i32>) -> Result<i32, String> {
    let first = counts.next().unwrap_or(0);
    if counts.all(|count| count == first) {
        return Ok(first);
    }
    let shown: Vec<String> = shown.iter().map(|(name, count)| format!("{name}={count}")).collect();
    Err(format!("Following topics do not have the same number of partitions: [{{{}}}]", shown.join(", ")))
}
