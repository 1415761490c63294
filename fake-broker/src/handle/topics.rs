//! Controls of topics: they are made, grown and deleted.

use krafka_protocol::Str;

use super::FakeCluster;
use crate::state::State;
use crate::topics;

impl FakeCluster {
    /// Creates a topic with the cluster's replication factor. Partition `p` is led by the `p`-th live node, counted
    /// round.
    ///
    /// # Panics
    ///
    /// If the name is invalid or taken, or there are no partitions.
    pub fn create_topic(&self, name: &str, partitions: i32) {
        self.control(|state, _| {
            if let Err(fault) = topics::validate_name(name) {
                panic!("{fault}");
            }
            assert!(partitions > 0, "the topic {name} needs at least one partition");
            assert!(state.topics.by_name(name).is_none(), "the topic {name} exists already");
            let replicas = state.config.replication_factor;
            state.add_topic(Str::from(name), partitions, replicas);
        });
    }

    /// Deletes a topic with all its records. Says if it was there.
    pub fn delete_topic(&self, name: &str) -> bool {
        self.control(|state, _| {
            let id = state.topics.by_name(name).map(|topic| topic.id);
            id.and_then(|id| state.delete_topic(id)).is_some()
        })
    }

    /// Gives a topic more partitions, so that it has `total` of them.
    ///
    /// # Panics
    ///
    /// If there is no such topic, or it has as many already.
    pub fn add_partitions(&self, name: &str, total: i32) {
        self.control(|state, _| {
            let topic = state.topics.by_name(name).unwrap_or_else(|| panic!("there is no topic {name}"));
            let (id, present) = (topic.id, topic.partitions.len() as i32);
            assert!(total > present, "the topic {name} has {present} partitions already");
            let replicas = state.config.replication_factor;
            let assignments = (present..total).map(|index| state.place(index, replicas)).collect();
            state.grow_topic(id, assignments);
        });
    }

    /// Returns the names of all topics but the internal ones.
    pub fn topics(&self) -> Vec<Str> {
        self.look(State::topic_names)
    }
}
