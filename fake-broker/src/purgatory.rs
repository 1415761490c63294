//! Requests that wait: long polls for records, and joins and syncs of a group.
//!
//! A request in here is still the one request that its connection works on. A waiting fetch is looked at again when
//! news comes to a partition that it watches, and answered at its deadline with what there is; a waiting group request
//! is answered by its group, through [`State::answer`](crate::state::State::answer).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use krafka_protocol::Uuid;

use crate::context::RequestId;
use crate::handlers::{delete_records, fetch, produce, share_fetch};
use crate::timers::TimerId;

/// What a request waits for.
#[derive(Clone, Debug)]
pub(crate) enum Waiting {
    /// Records in one of its partitions, or anything else that changes its answer.
    Fetch(fetch::Waiting),
    /// Replicas in sync that have not got what was produced.
    Produce(produce::Waiting),
    /// Replicas that have not deleted what is to be deleted.
    DeleteRecords(delete_records::Waiting),
    /// Records that its member may have.
    ShareFetch(share_fetch::Waiting),
    /// Its group's decision.
    Group,
    /// Nothing: a request that Kafka forgets, and whose connection it does not read from any more.
    Nothing,
}

impl Waiting {
    /// When it is answered whatever there is; a group decides for itself.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Fetch(fetch) => Some(fetch.deadline()),
            Self::Produce(produce) => Some(produce.deadline()),
            Self::DeleteRecords(delete) => Some(delete.deadline()),
            Self::ShareFetch(fetch) => Some(fetch.deadline()),
            Self::Group | Self::Nothing => None,
        }
    }

    /// The partitions whose news it waits for.
    fn watched(&self) -> Vec<WaitKey> {
        match self {
            Self::Fetch(fetch) => fetch.watched().collect(),
            Self::Produce(produce) => produce.watched().collect(),
            Self::DeleteRecords(delete) => delete.watched().collect(),
            Self::ShareFetch(fetch) => fetch.watched().collect(),
            Self::Group | Self::Nothing => Vec::new(),
        }
    }
}

/// Something that waiting requests watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitKey {
    /// The topic's id.
    pub(crate) topic: Uuid,
    /// The partition's index.
    pub(crate) partition: i32,
}

/// All requests that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Purgatory {
    parked: BTreeMap<RequestId, Parked>,
    watchers: BTreeMap<WaitKey, BTreeSet<RequestId>>,
    woken: BTreeSet<RequestId>,
}

/// A request that waits, with its timer.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    pub(crate) waiting: Waiting,
    pub(crate) timer: Option<TimerId>,
}

impl Purgatory {
    /// Lets a request wait.
    pub(crate) fn park(&mut self, request: RequestId, waiting: Waiting, timer: Option<TimerId>) {
        for key in waiting.watched() {
            self.watchers.entry(key).or_default().insert(request);
        }
        self.parked.insert(request, Parked { waiting, timer });
    }

    /// Takes a request out, because it is answered or its connection is gone.
    pub(crate) fn remove(&mut self, request: RequestId) -> Option<Parked> {
        let parked = self.parked.remove(&request)?;
        self.woken.remove(&request);
        for key in parked.waiting.watched() {
            if let Some(watchers) = self.watchers.get_mut(&key) {
                watchers.remove(&request);
                if watchers.is_empty() {
                    self.watchers.remove(&key);
                }
            }
        }
        Some(parked)
    }

    /// Marks the requests that watch `key`: each is looked at again before the cluster rests.
    pub(crate) fn wake(&mut self, key: WaitKey) {
        if let Some(watchers) = self.watchers.get(&key) {
            self.woken.extend(watchers);
        }
    }

    /// The next request to look at again, the oldest first.
    pub(crate) fn pop_woken(&mut self) -> Option<RequestId> {
        self.woken.pop_first()
    }
}
