//! A fetch session (KIP-227): what the broker remembers of our last fetch, so that the next one names only what
//! changed.
//!
//! ```text
//!   full (epoch 0) ──answer with an id──▶ incremental (epoch 1, 2, …) ──error or lost answer──▶ full
//! ```
//!
//! The broker moves its epoch on when it has *handled* a request. An answer that never came leaves us not knowing
//! whether it did, so anything but an answer makes the next request a full one.

use std::collections::BTreeMap;

use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchTopic, ForgottenTopic};
use krafka_protocol::{Str, Uuid};

/// The partition as the session knows it. Ids come first, as a re-created topic is another one.
pub(crate) type SessionKey = (Uuid, Str, i32);

/// What is asked of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) last_fetched_epoch: i32,
    pub(crate) max_bytes: i32,
}

/// The first version whose broker looks for diverging logs (KIP-595).
const LAST_EPOCH_SINCE: i16 = 12;

/// The first version with sessions. Before, every request is a full one, and there is nothing to be forgotten.
const SESSIONS_SINCE: i16 = 7;

/// The request as a version can say it. What is lost only costs the broker's help.
pub(crate) fn in_version(mut request: FetchRequest, version: i16) -> FetchRequest {
    if version < LAST_EPOCH_SINCE {
        let partitions = request.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
        partitions.for_each(|partition| partition.last_fetched_epoch = FetchPartition::default().last_fetched_epoch);
    }
    if version < SESSIONS_SINCE {
        request.forgotten_topics_data.clear();
    }
    request
}

/// The session with one broker.
#[derive(Debug, Default)]
pub(crate) struct FetchSession {
    /// Zero while the broker keeps no session for us.
    id: i32,
    /// The epoch of the next request: 0 asks for a new session.
    epoch: i32,
    /// What the broker has in the session, as of the last request.
    known: BTreeMap<SessionKey, Asked>,
}

impl FetchSession {
    /// Fills in the session's part of a request that asks for `wanted`, in the order given.
    ///
    /// The broker keeps the order of a session itself (it moves partitions that returned data to the end), so order
    /// matters only in full requests.
    pub(crate) fn ask(&mut self, wanted: &[(SessionKey, Asked)], request: &mut FetchRequest) {
        request.session_id = self.id;
        request.session_epoch = self.epoch;
        if self.epoch == 0 {
            request.topics = by_topic(wanted.iter().map(|(key, asked)| (key, *asked)));
            self.known = wanted.iter().cloned().collect();
            return;
        }
        let next: BTreeMap<SessionKey, Asked> = wanted.iter().cloned().collect();
        let changed = wanted.iter().filter(|(key, asked)| self.known.get(key) != Some(asked));
        request.topics = by_topic(changed.map(|(key, asked)| (key, *asked)));
        for key in self.known.keys().filter(|key| !next.contains_key(*key)) {
            let (topic_id, topic, partition) = key;
            match request.forgotten_topics_data.last_mut() {
                Some(last) if last.topic == *topic && last.topic_id == *topic_id => last.partitions.push(*partition),
                _ => request.forgotten_topics_data.push(ForgottenTopic {
                    topic: topic.clone(),
                    topic_id: *topic_id,
                    partitions: vec![*partition],
                }),
            }
        }
        self.known = next;
    }

    /// An answer without a session error came. A broker that keeps no session answers with id 0.
    pub(crate) fn answered(&mut self, id: i32) {
        if id == 0 {
            self.reset();
        } else {
            self.id = id;
            // The epoch never comes back to 0, which would ask for a new session.
            self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
        }
    }

    /// The broker has lost the session, or we do not know what it has: the next request is full.
    ///
    /// The id is kept, so that the broker can drop the old session when it makes the new one.
    pub(crate) fn reset(&mut self) {
        self.epoch = 0;
        self.known.clear();
    }

    /// The broker does not know the id: it must not be named again.
    pub(crate) fn forget(&mut self) {
        self.reset();
        self.id = 0;
    }

    /// The request that closes the session at the broker, if there is one. (Epoch -1 ends a session.)
    pub(crate) fn close(&mut self) -> Option<FetchRequest> {
        (self.id != 0).then(|| {
            let request = FetchRequest { session_id: self.id, session_epoch: -1, ..FetchRequest::default() };
            self.forget();
            request
        })
    }

    /// Whether the next request starts a new session.
    #[cfg(test)]
    pub(crate) fn is_full(&self) -> bool {
        self.epoch == 0
    }
}

/// Groups neighbours of the same topic. The order is kept, so a topic may come twice in a rotated list.
fn by_topic<'a>(partitions: impl Iterator<Item = (&'a SessionKey, Asked)>) -> Vec<FetchTopic> {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for ((topic_id, topic, partition), asked) in partitions {
        let partition = FetchPartition {
            partition: *partition,
            current_leader_epoch: asked.leader_epoch,
            fetch_offset: asked.offset,
            last_fetched_epoch: asked.last_fetched_epoch,
            partition_max_bytes: asked.max_bytes,
            ..FetchPartition::default()
        };
        match topics.last_mut() {
            Some(last) if last.topic == *topic && last.topic_id == *topic_id => last.partitions.push(partition),
            _ => topics.push(FetchTopic { topic: topic.clone(), topic_id: *topic_id, partitions: vec![partition] }),
        }
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(partition: i32, offset: i64) -> (SessionKey, Asked) {
        let key = (Uuid([7; 16]), Str::from("t"), partition);
        (key, Asked { offset, leader_epoch: 3, last_fetched_epoch: -1, max_bytes: 1 << 20 })
    }

    fn asked(session: &mut FetchSession, wanted: &[(SessionKey, Asked)]) -> FetchRequest {
        let mut request = FetchRequest::default();
        session.ask(wanted, &mut request);
        request
    }

    fn offsets(request: &FetchRequest) -> Vec<(i32, i64)> {
        let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.map(|partition| (partition.partition, partition.fetch_offset)).collect()
    }

    #[test]
    fn the_first_request_is_full_and_the_next_names_what_changed() {
        let mut session = FetchSession::default();

        let first = asked(&mut session, &[want(0, 0), want(1, 0)]);
        session.answered(9);
        let second = asked(&mut session, &[want(0, 5), want(1, 0)]);

        assert_eq!((first.session_id, first.session_epoch, offsets(&first)), (0, 0, vec![(0, 0), (1, 0)]));
        assert_eq!((second.session_id, second.session_epoch, offsets(&second)), (9, 1, vec![(0, 5)]));
    }

    #[test]
    fn what_is_no_longer_wanted_is_forgotten_once() {
        let mut session = FetchSession::default();
        asked(&mut session, &[want(0, 0), want(1, 0), want(2, 0)]);
        session.answered(9);

        let second = asked(&mut session, &[want(1, 0)]);
        session.answered(9);
        let third = asked(&mut session, &[want(1, 0)]);

        assert_eq!(second.forgotten_topics_data.len(), 1);
        assert_eq!(second.forgotten_topics_data[0].partitions, [0, 2]);
        assert!(third.forgotten_topics_data.is_empty() && third.topics.is_empty());
    }

    #[test]
    fn a_lost_answer_makes_the_next_request_full_under_the_old_id() {
        let mut session = FetchSession::default();
        asked(&mut session, &[want(0, 0)]);
        session.answered(9);

        session.reset();
        let next = asked(&mut session, &[want(0, 0)]);

        assert_eq!((next.session_id, next.session_epoch, offsets(&next)), (9, 0, vec![(0, 0)]));
    }

    #[test]
    fn an_unknown_session_is_not_named_again() {
        let mut session = FetchSession::default();
        asked(&mut session, &[want(0, 0)]);
        session.answered(9);

        session.forget();
        let next = asked(&mut session, &[want(0, 0)]);

        assert_eq!((next.session_id, next.session_epoch), (0, 0));
    }

    #[test]
    fn a_broker_without_sessions_is_asked_in_full_each_time() {
        let mut session = FetchSession::default();
        asked(&mut session, &[want(0, 0)]);
        session.answered(0);

        assert!(session.is_full());
        assert_eq!(offsets(&asked(&mut session, &[want(0, 0)])), [(0, 0)]);
    }

    #[test]
    fn closing_ends_the_session_once() {
        let mut session = FetchSession::default();
        asked(&mut session, &[want(0, 0)]);
        session.answered(9);

        let close = session.close().expect("there is a session");

        assert_eq!((close.session_id, close.session_epoch), (9, -1));
        assert!(session.close().is_none());
    }

    #[test]
    fn the_epoch_wraps_to_one() {
        let mut session = FetchSession { id: 9, epoch: i32::MAX, known: BTreeMap::new() };

        session.answered(9);

        assert_eq!(session.epoch, 1);
    }
}
