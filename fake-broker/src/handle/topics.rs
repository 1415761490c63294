//! Controls of topics: they are made, grown and deleted.

use krafka_protocol::Str;

use super::FakeCluster;
use crate::operations::Operation;
use crate::state::State;

impl FakeCluster {
    /// Creates a topic with the cluster's replication factor. Partition `p` is led by the `p`-th live node, counted
    /// round.
    ///
    /// # Panics
    ///
    /// If the name is invalid or taken, or collides with one that is (`a.b` with `a_b`), or there are no partitions.
    #[track_caller]
    pub fn create_topic(&self, name: &str, partitions: i32) {
        self.expect(Operation::CreateTopic { topic: name.to_owned(), partitions });
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
    #[track_caller]
    pub fn add_partitions(&self, name: &str, total: i32) {
        self.expect(Operation::AddPartitions { topic: name.to_owned(), total });
    }

    /// Returns the names of all topics but the internal ones.
    pub fn topics(&self) -> Vec<Str> {
        self.look(State::topic_names)
    }
}
