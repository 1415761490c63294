//! Fetch: reads batches from a set of partitions, and waits for them.

use std::time::Instant;

use krafka_protocol::{FetchRequest, FetchResponse};

use crate::cluster::Look;
use crate::context::{Context, Outcome};
use crate::purgatory::WaitKey;
use crate::state::State;

/// A fetch that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    deadline: Instant,
    watched: Vec<WaitKey>,
}

impl Waiting {
    /// When it is answered whatever there is.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The partitions whose news it waits for.
    pub(crate) fn watched(&self) -> impl Iterator<Item = WaitKey> {
        self.watched.iter().copied()
    }
}

pub(crate) fn handle(_state: &mut State, _cx: &Context, _request: &FetchRequest) -> Outcome<FetchResponse> {
    Outcome::Close
}

/// Looks at a waiting fetch again.
pub(crate) fn resume(_state: &mut State, _cx: &Context, _waiting: Waiting, _look: Look) -> Outcome<FetchResponse> {
    Outcome::Close
}
