//! How a rule is written: `fake.when(ApiKey::Produce).on(1).times(2).reply_error(ErrorCode::NOT_LEADER_OR_FOLLOWER)`.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, ErrorCode, Str};

use super::Book;
use super::hits::{Hits, Reached};
use super::rule::{Action, ActiveRule, Selector};
use crate::context::ConnectionId;

/// The APIs that a rule is about.
#[derive(Clone, Debug)]
pub struct Apis(Vec<ApiKey>);

impl Apis {
    /// Every API.
    pub const ANY: Self = Self(Vec::new());
}

impl From<ApiKey> for Apis {
    fn from(key: ApiKey) -> Self {
        Self(vec![key])
    }
}

impl<const N: usize> From<[ApiKey; N]> for Apis {
    fn from(keys: [ApiKey; N]) -> Self {
        Self(keys.to_vec())
    }
}

/// A rule in the making. Selectors narrow it down, all of them must hold; the action at the end puts it to work.
///
/// A rule acts once unless told otherwise. When several rules match a request, each counts and all act.
#[must_use = "a rule is put to work by its action, such as `reply_error`"]
pub struct RuleBuilder {
    book: Book,
    selector: Selector,
    after_handling: bool,
    skip: u64,
    budget: Option<u64>,
    probability: Option<f64>,
}

/// A rule at work. Dropping it leaves the rule where it is.
pub struct Rule {
    book: Book,
    id: u64,
    hits: Hits,
}

impl Clone for Rule {
    /// Another handle to the same rule.
    fn clone(&self) -> Self {
        Self { book: self.book.clone(), id: self.id, hits: self.hits.share() }
    }
}

impl RuleBuilder {
    pub(crate) fn new(book: Book, apis: Apis) -> Self {
        let selector = Selector { keys: apis.0, ..Selector::default() };
        Self { book, selector, after_handling: false, skip: 0, budget: Some(1), probability: None }
    }

    /// Only requests to this node.
    pub fn on(mut self, node: i32) -> Self {
        self.selector.node = Some(node);
        self
    }

    /// Only requests in these versions.
    pub fn versions(mut self, versions: RangeInclusive<i16>) -> Self {
        self.selector.versions = Some(versions);
        self
    }

    /// Only requests on this connection, as the history names it.
    pub fn connection(mut self, connection: ConnectionId) -> Self {
        self.selector.connection = Some(connection.0);
        self
    }

    /// Only requests of clients that call themselves so.
    pub fn client_id(mut self, client_id: impl Into<Str>) -> Self {
        self.selector.client_id = Some(client_id.into());
        self
    }

    /// Only requests about this topic; an error is given to the topic alone.
    pub fn topic(mut self, topic: impl Into<Str>) -> Self {
        self.selector.topic = Some(topic.into());
        self
    }

    /// Only requests about this partition; an error is given to the partition alone.
    pub fn partition(mut self, topic: impl Into<Str>, partition: i32) -> Self {
        self.selector.topic = Some(topic.into());
        self.selector.partition = Some(partition);
        self
    }

    /// Only requests about this group.
    pub fn group(mut self, group: impl Into<Str>) -> Self {
        self.selector.group = Some(group.into());
        self
    }

    /// Only requests of which this holds. It is asked last, and must not use the cluster that asks it.
    pub fn matching(mut self, holds: impl Fn(&AnyRequest) -> bool + Send + Sync + 'static) -> Self {
        self.selector.predicate = Some(Arc::new(holds));
        self
    }

    /// Not before the `n`th request that matches; the first is number 1.
    pub fn nth(mut self, n: u64) -> Self {
        self.skip = n.saturating_sub(1);
        self
    }

    /// Only some of the requests that match, drawn with this probability from the cluster's seed.
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability);
        self
    }

    /// Acts this often instead of once.
    pub fn times(mut self, times: u64) -> Self {
        self.budget = Some(times);
        self
    }

    /// Acts until it is removed.
    pub fn forever(mut self) -> Self {
        self.budget = None;
        self
    }

    /// Lets the request be handled, with all its effects, before the action: only the answer is meddled with.
    pub fn after_handling(mut self) -> Self {
        self.after_handling = true;
        self
    }

    /// Answers an error: to the topic or partition that the rule names and to nothing else, or else to all that is
    /// asked for. What is refused has no effect, unless it comes [after handling](Self::after_handling).
    pub fn reply_error(self, code: ErrorCode) -> Rule {
        self.install(Action::Error(code))
    }

    /// Tells the client to be silent for this time. The answer is sent at once, and the connection is not read from
    /// until the time is over, as Kafka does since version 2.0 (KIP-219).
    pub fn throttle(self, time: Duration) -> Rule {
        self.install(Action::Throttle(time))
    }

    /// Handles the request later, or answers it later if [after handling](Self::after_handling). What is behind it on
    /// its connection waits too.
    pub fn delay(self, time: Duration) -> Rule {
        self.install(Action::Delay(time))
    }

    /// Closes the connection instead of handling the request, or of answering it.
    pub fn drop_connection(self) -> Rule {
        self.install(Action::Drop)
    }

    /// Never answers the request, nor anything behind it on its connection.
    pub fn silence(self) -> Rule {
        self.install(Action::Silence)
    }

    /// Answers Metadata (from version 13 on) with REBOOTSTRAP_REQUIRED, 129: the client must forget the cluster that it
    /// knows and begin again from its bootstrap servers (KIP-1102).
    pub fn rebootstrap(self) -> Rule {
        self.install(Action::Rebootstrap)
    }

    /// Makes the client's epoch one of the past. For Fetch, ListOffsets and OffsetForLeaderEpoch the leader is elected
    /// again just before, so a client that tells the epoch it knows gets FENCED_LEADER_EPOCH. Produce is answered
    /// INVALID_PRODUCER_EPOCH, InitProducerId PRODUCER_FENCED, and a group's SyncGroup, Heartbeat and OffsetCommit
    /// ILLEGAL_GENERATION.
    pub fn fence_epoch(self) -> Rule {
        self.install(Action::FenceEpoch)
    }

    /// Moves the leaders of the partitions that the request is about to this node, just before it is handled.
    pub fn move_leader(self, to: i32) -> Rule {
        self.install(Action::MoveLeader(Some(to)))
    }

    /// Moves the leaders of the partitions that the request is about to other replicas, just before it is handled.
    pub fn move_leader_away(self) -> Rule {
        self.install(Action::MoveLeader(None))
    }

    /// Changes the answer before it is written.
    pub fn edit(self, edit: impl Fn(&mut AnyResponse) + Send + Sync + 'static) -> Rule {
        self.install(Action::Edit(Arc::new(edit)))
    }

    /// Does nothing but count.
    pub fn observe(self) -> Rule {
        self.install(Action::Observe)
    }

    fn install(self, action: Action) -> Rule {
        let Self { book, selector, after_handling, skip, budget, probability } = self;
        let hits = Hits::default();
        let rule =
            ActiveRule { id: 0, selector, action, after_handling, skip, budget, probability, hits: hits.share() };
        let id = book.install(rule);
        Rule { book, id, hits }
    }
}

impl Rule {
    /// How often the rule has acted.
    pub fn hits(&self) -> u64 {
        self.hits.count()
    }

    /// Waits until the rule has acted this often.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait, and nothing else.
    pub fn wait(&self, hits: u64) -> Reached {
        self.hits.reach(hits)
    }

    /// Ends the rule. A request that it has already acted on is not undone.
    pub fn remove(&self) {
        self.book.remove(self.id);
    }
}

impl fmt::Debug for RuleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "when {}", self.selector)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("id", &self.id).field("hits", &self.hits()).finish()
    }
}
