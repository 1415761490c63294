//! How a rule is written: `fake.when(ApiKey::Produce).on(1).times(2).reply_error(ErrorCode::NOT_LEADER_OR_FOLLOWER)`.
//!
//! Here are the selectors; the actions, which end a rule, are in `verbs.rs`.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafka_protocol::{AnyRequest, ApiKey, Uuid};

use super::Book;
use super::action::Action;
use super::hits::{Hits, Reach, Reached};
use super::names::{Api, Id, Times};
use super::network::Towards;
use super::rule::RuleText;
use super::selector::{Event, Selector, none_named};
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
        const { assert!(N > 0, "no API is named: `Apis::ANY` is every one") };
        Self(keys.to_vec())
    }
}

/// A rule in the making. Selectors narrow it down, all of them must hold; the action at the end puts it to work.
///
/// A rule acts once unless told otherwise; one that only [observes](Self::observe) counts until it is removed. When
/// several rules match a request, each counts and all act.
///
/// # Panics
///
/// The action does, if the rule could never act: because it asks a request for what no request of its APIs has, or does
/// what no broker does. The text says what is wrong, as [`install_json`](crate::FakeCluster::install_json) does.
#[must_use = "a rule is put to work by its action, such as `reply_error`"]
pub struct RuleBuilder {
    book: Book,
    now: Instant,
    text: RuleText,
}

/// A rule at work. Dropping it leaves the rule where it is.
pub struct Rule {
    book: Book,
    id: u64,
    hits: Hits,
}

impl RuleBuilder {
    pub(crate) fn new(book: Book, apis: Apis, now: Instant) -> Self {
        let when = Selector { apis: apis.0.into_iter().map(Api).collect(), ..Selector::default() };
        let text = RuleText {
            when,
            nth: 1,
            times: None,
            probability: None,
            after: Duration::ZERO,
            until_ms: None,
            after_handling: false,
            action: Action::Observe,
        };
        Self { book, now, text }
    }

    /// A rule for new connections instead of requests.
    pub(crate) fn connecting(book: Book, now: Instant) -> Self {
        let mut builder = Self::new(book, Apis::ANY, now);
        builder.text.when.event = Event::Connect;
        builder
    }

    /// A rule for the network, which lasts until it is removed.
    pub(crate) fn network(book: Book, now: Instant) -> Self {
        let mut builder = Self::new(book, Apis::ANY, now).forever();
        builder.text.when.event = Event::Network;
        builder
    }

    /// Only what goes this way; without it, both ways. For rules about the network.
    ///
    /// **Unstable:** may change in any release.
    pub fn towards(mut self, towards: Towards) -> Self {
        self.text.when.towards = Some(towards);
        self
    }

    /// The link to another node in place of the links to clients. For rules about the network.
    ///
    /// **Unstable:** may change in any release.
    pub fn peer(mut self, node: i32) -> Self {
        self.text.when.peer = Some(node);
        self
    }

    /// Only requests to this node.
    pub fn on(mut self, node: i32) -> Self {
        self.text.when.node = Some(node);
        self
    }

    /// Only requests in these versions.
    pub fn versions(mut self, versions: RangeInclusive<i16>) -> Self {
        self.text.when.versions = Some([*versions.start(), *versions.end()]);
        self
    }

    /// Only requests on this connection, as the history names it.
    ///
    /// **Unstable:** may change in any release.
    pub fn connection(mut self, connection: ConnectionId) -> Self {
        self.text.when.connection = Some(connection.0);
        self
    }

    /// Only requests of clients that call themselves so.
    pub fn client_id(mut self, client_id: impl Into<String>) -> Self {
        self.text.when.client_id = Some(client_id.into());
        self
    }

    /// Only requests about this topic; an error is given to the topic alone.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.text.when.topic = Some(topic.into());
        self
    }

    /// Only requests that name a topic by this id; an error is given to the topic alone.
    ///
    /// **Unstable:** may change in any release.
    pub fn topic_id(mut self, topic_id: Uuid) -> Self {
        self.text.when.topic_id = Some(Id(topic_id));
        self
    }

    /// Only requests about this partition; an error is given to the partition alone.
    pub fn partition(self, topic: impl Into<String>, partition: i32) -> Self {
        self.partitions(topic, [partition])
    }

    /// Only requests about one of these partitions; an error is given to them alone.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there are none: [`topic`](Self::topic) alone is about all.
    #[track_caller]
    pub fn partitions(mut self, topic: impl Into<String>, partitions: impl IntoIterator<Item = i32>) -> Self {
        self.text.when.topic = Some(topic.into());
        self.text.when.partitions = partitions.into_iter().collect();
        assert!(!self.text.when.partitions.is_empty(), "{}", none_named("partitions"));
        self
    }

    /// Only requests about this group.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.text.when.group = Some(group.into());
        self
    }

    /// Only requests about this transactional id.
    ///
    /// **Unstable:** may change in any release.
    pub fn transactional_id(mut self, transactional_id: impl Into<String>) -> Self {
        self.text.when.transactional_id = Some(transactional_id.into());
        self
    }

    /// Only requests about the configurations of what has this name: a topic, a broker, a group.
    ///
    /// **Unstable:** may change in any release.
    pub fn resource(mut self, name: impl Into<String>) -> Self {
        self.text.when.resource = Some(name.into());
        self
    }

    /// Only requests of which this holds. It is asked last, and must not use the cluster that asks it.
    pub fn matching(mut self, holds: impl Fn(&AnyRequest) -> bool + Send + Sync + 'static) -> Self {
        self.text.when.predicate = Some(Arc::new(holds));
        self
    }

    /// Not before the `n`th request that matches; the first is number 1.
    pub fn nth(mut self, n: u64) -> Self {
        self.text.nth = n;
        self
    }

    /// Only some of the requests that match, drawn with this probability from the cluster's seed.
    pub fn probability(mut self, probability: f64) -> Self {
        self.text.probability = Some(probability);
        self
    }

    /// Sleeps for this time, counted from now, before it matches anything.
    ///
    /// **Unstable:** may change in any release.
    pub fn after(mut self, time: Duration) -> Self {
        self.text.after = time;
        self
    }

    /// Matches nothing any more once this time has passed, counted from now.
    ///
    /// **Unstable:** may change in any release.
    pub fn until(mut self, time: Duration) -> Self {
        self.text.until_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Acts this often, and then never again.
    pub fn times(mut self, times: u64) -> Self {
        self.text.times = Some(Times::Number(times));
        self
    }

    /// Acts until it is removed.
    pub fn forever(mut self) -> Self {
        self.text.times = Some(Times::Forever);
        self
    }

    /// Lets the request be handled, with all its effects, before the action: only the answer is meddled with.
    pub fn after_handling(mut self) -> Self {
        self.text.after_handling = true;
        self
    }

    /// Puts the rule to work.
    ///
    /// # Panics
    ///
    /// If it could never act, or does what no broker does.
    #[track_caller]
    pub(super) fn install(mut self, action: Action) -> Rule {
        self.text.action = action;
        match self.book.install(self.text, self.now) {
            Ok(rule) => rule,
            Err(reason) => panic!("a rule that cannot be: {reason}"),
        }
    }
}

impl Rule {
    pub(super) fn new(book: Book, id: u64, hits: Hits) -> Self {
        Self { book, id, hits }
    }

    /// The number that the control port calls the rule by.
    ///
    /// **Unstable:** may change in any release.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How often the rule has acted.
    pub fn hits(&self) -> u64 {
        self.hits.count()
    }

    /// Waits until the rule has acted this often. How long that may take is for the test to say, with its runtime's
    /// timeout; a rule whose time is over ([`RuleBuilder::until`]) is waited for like any other.
    ///
    /// # Panics
    ///
    /// The future does, when the rule will never have acted so often: it acts fewer [times](RuleBuilder::times), it was
    /// removed, or its cluster is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait, and nothing else.
    pub fn wait(&self, hits: u64) -> Reached {
        Reached::new(self.id, self.reach(hits))
    }

    /// Waits as [`wait`](Self::wait) does, and says why it would be for ever.
    pub(crate) fn reach(&self, hits: u64) -> Reach {
        self.hits.reach(hits)
    }

    /// Ends the rule. A request that it has already acted on is not undone. Who waits for it to act is told.
    pub fn remove(&self) {
        self.book.remove(self.id);
    }
}

impl Clone for Rule {
    /// Another handle to the same rule.
    fn clone(&self) -> Self {
        Self { book: self.book.clone(), id: self.id, hits: self.hits.share() }
    }
}

impl fmt::Debug for RuleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "when {}", self.text.when)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("id", &self.id).field("hits", &self.hits()).finish()
    }
}
