//! A consumer's machines, and how they hang together: what one does becomes what another hears.
//!
//! ```text
//!                 ┌──────────────── Core: subscription, buffer (shared with callers) ───────────────┐
//!   wanted lists  ▼                ▼                   ▼                    ▼                        │ outcomes
//!             Loader ◆        Resetter ◆          Validator ◆           Fetcher ◆ ───────────────────┤
//!         committed offset   first offset      same log as before?       records                     │
//!                                                                                                    │
//!             Committer ◆ ◀── positions ── Member ◆ ── assigned, revoked (engine/rebalance.rs) ──────┘
//! ```
//!
//! No machine knows another. Whenever something has happened the engine looks at all partitions, tells each machine
//! what is wanted of it, and carries their actions on: those that concern the core at once, the others to the driver.

mod actions;
mod rebalance;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use krafka_protocol::Str;
use krafka_protocol::api::fetch::{FetchRequest, FetchResponse};
use krafka_protocol::api::heartbeat::HeartbeatRequest;
use krafka_protocol::api::join_group::JoinGroupRequest;
use krafka_protocol::api::leave_group::LeaveGroupRequest;
use krafka_protocol::api::list_offsets::{ListOffsetsRequest, ListOffsetsResponse};
use krafka_protocol::api::offset_commit::OffsetCommitRequest;
use krafka_protocol::api::offset_fetch::{OffsetFetchRequest, OffsetFetchResponse};
use krafka_protocol::api::offset_for_leader_epoch::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
use krafka_protocol::api::sync_group::SyncGroupRequest;
use krafka_protocol::machine::Machine;

use self::rebalance::Rebalance;
use super::assign::Whereabouts;
use super::commit::{Committer, Offsets, Ticket};
use super::committed::Loader;
use super::config::{AutoOffsetReset, ConsumerConfig};
use super::core::{Core, Gate};
use super::fetcher::{Fetcher, Hint};
use super::group::Identity;
use super::group::classic::{self, Member};
use super::reset::Resetter;
use super::subscription::{Stage, Start};
use super::validate::Validator;
use super::{commit, committed, fetcher, reset, validate};
use crate::cluster::Snapshot;
use crate::environment::WallClock;
use crate::rng::Rng;
use crate::{KrafkaError, TopicPartition};

/// How often topics that do not exist yet are asked for.
const MISSING_TOPIC_INTERVAL: Duration = Duration::from_secs(5);

/// How often the leader of a partition that has none is asked for. Elections take less than a second.
const LEADERLESS_INTERVAL: Duration = Duration::from_millis(500);

/// What the driver hears, from the user's calls and from the network.
#[derive(Debug)]
pub(crate) enum Input {
    /// The core changed in a way that the task should look at.
    Woken,
    /// The application has assigned partitions in the core.
    Reassigned,
    ClusterChanged(Arc<Snapshot>),
    /// Join the group for these topics.
    Subscribed(BTreeSet<Str>),
    /// Give everything up; leave the group.
    Unsubscribed(Ticket),
    /// Commit these offsets, or the present positions.
    Commit {
        ticket: Ticket,
        offsets: Option<Offsets>,
        deadline: Instant,
    },
    Close {
        ticket: Ticket,
        deadline: Instant,
    },
    Fetched {
        node: i32,
        answer: Result<FetchResponse, KrafkaError>,
        /// For how long the broker could hold it back.
        max_wait: Duration,
    },
    Listed {
        asked: Vec<reset::Want>,
        answer: Result<ListOffsetsResponse, KrafkaError>,
    },
    Validated {
        asked: Vec<validate::Want>,
        answer: Result<OffsetForLeaderEpochResponse, KrafkaError>,
    },
    Loaded {
        asked: Vec<committed::Want>,
        answer: Result<OffsetFetchResponse, KrafkaError>,
    },
    Committed(commit::Input),
    Member(classic::Input),
    /// A LeaveGroup or an end of a fetch session has been answered, or not.
    Parted,
    /// The listener's callback has returned.
    ListenerReturned,
}

/// What the driver does.
#[derive(Debug)]
pub(crate) enum Action {
    Fetch {
        node: i32,
        request: FetchRequest,
        pause: Duration,
    },
    EndSession {
        node: i32,
        request: FetchRequest,
    },
    ListOffsets {
        node: i32,
        request: ListOffsetsRequest,
        asked: Vec<reset::Want>,
    },
    Validate {
        node: i32,
        request: OffsetForLeaderEpochRequest,
        asked: Vec<validate::Want>,
    },
    LoadCommitted {
        request: OffsetFetchRequest,
        asked: Vec<committed::Want>,
    },
    Commit(OffsetCommitRequest),
    Join {
        round: u64,
        request: JoinGroupRequest,
    },
    Count {
        round: u64,
        topics: BTreeSet<Str>,
    },
    Sync {
        round: u64,
        request: SyncGroupRequest,
    },
    Beat(HeartbeatRequest),
    Leave(LeaveGroupRequest),
    /// Say `ClusterChanged` when there is a snapshot newer than this.
    FollowCluster {
        since: u64,
    },
    Refresh(Vec<Str>),
    Watch(Vec<Str>),
    Hint(Hint),
    /// Call the application's listener; then say `ListenerReturned`.
    Listen(Event),
    Answer {
        ticket: Ticket,
        result: Result<(), KrafkaError>,
    },
    /// Callers that wait for records should look again.
    WakeCallers,
    /// Everything is done.
    Closed,
}

/// What a listener is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Revoked(Vec<TopicPartition>),
    Lost(Vec<TopicPartition>),
    Assigned(Vec<TopicPartition>),
}

/// See the file's head.
pub(crate) struct Engine {
    core: Arc<Mutex<Core>>,
    config: Arc<ConsumerConfig>,
    wall_clock: Arc<dyn WallClock>,
    has_listener: bool,
    snapshot: Arc<Snapshot>,
    fetcher: Fetcher,
    resetter: Resetter,
    validator: Validator,
    group: Option<Group>,
    rebalance: Rebalance,
    /// Topics that are watched for changes.
    watched: BTreeSet<Str>,
    /// Topics that are missing, or whose partitions have no leader.
    doubted: BTreeSet<Str>,
    ask_again: Option<Instant>,
    closing: Option<Closing>,
    actions: VecDeque<Action>,
    /// Something has happened since all machines were last looked at.
    is_dirty: bool,
    now: Option<Instant>,
}

/// The part that only consumers with a group have.
struct Group {
    member: Member,
    committer: Committer,
    loader: Loader,
    topics: BTreeSet<Str>,
    /// As leader: what all members read.
    led_topics: BTreeSet<Str>,
    auto_commit: Option<AutoCommit>,
    user: User,
}

struct AutoCommit {
    interval: Duration,
    due: Option<Instant>,
    /// What was committed last, so that a quiet consumer does not repeat it.
    last: Offsets,
}

/// Whether the application still polls.
struct User {
    max_poll_interval: Duration,
    calls: u64,
    alive: Option<Instant>,
    is_idle: bool,
}

struct Closing {
    ticket: Ticket,
    deadline: Instant,
    /// Requests that part from brokers, and are waited for.
    partings: usize,
    has_left: bool,
    /// Why the last offsets were not committed.
    error: Option<KrafkaError>,
}

impl Engine {
    pub(crate) fn new(
        core: Arc<Mutex<Core>>,
        config: Arc<ConsumerConfig>,
        wall_clock: Arc<dyn WallClock>,
        has_listener: bool,
        snapshot: Arc<Snapshot>,
        seed: u64,
    ) -> Self {
        let version = snapshot.version;
        let rng = |name| Rng::stream(seed, name);
        let backoff = config.fetch.backoff;
        let group = config.group.as_ref().map(|group| Group {
            member: Member::new(group.member.clone(), rng("member")),
            committer: Committer::new(group.id.clone(), backoff, rng("commit")),
            loader: Loader::new(group.id.clone(), backoff, rng("committed")),
            topics: BTreeSet::new(),
            led_topics: BTreeSet::new(),
            auto_commit: group.auto_commit.map(|interval| AutoCommit { interval, due: None, last: Offsets::new() }),
            user: User { max_poll_interval: group.max_poll_interval, calls: 0, alive: None, is_idle: false },
        });
        Self {
            fetcher: Fetcher::new(config.fetch.clone(), snapshot.clone(), rng("fetch")),
            resetter: Resetter::new(backoff, rng("reset")),
            validator: Validator::new(backoff, rng("validate")),
            core,
            config,
            wall_clock,
            has_listener,
            snapshot,
            group,
            rebalance: Rebalance::default(),
            watched: BTreeSet::new(),
            doubted: BTreeSet::new(),
            ask_again: None,
            closing: None,
            actions: VecDeque::from([Action::FollowCluster { since: version }]),
            is_dirty: true,
            now: None,
        }
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        // A panic while it was held would be a bug of ours in a few lines of plain code; the state is whole either way.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where to start without a position.
    fn start(&self, name: &TopicPartition) -> Result<Start, KrafkaError> {
        start(self.config.reset, &*self.wall_clock, name)
    }

    fn follow_cluster(&self) {
        let snapshot = self.snapshot.clone();
        let policy = self.config.reset;
        // All records of a topic that was created anew are new to us, whatever "latest" would say. With no policy,
        // that it is another topic is for the application to know.
        let start_over = |name: &TopicPartition| match policy {
            AutoOffsetReset::None => Err(no_offset(name)),
            _ => Ok(Start::Earliest),
        };
        let mut core = self.core();
        for slot in core.subscription.follow(&snapshot, &start_over) {
            core.clear(slot);
        }
    }

    /// Says what the group's topics look like now, to the member that has made the assignment.
    pub(super) fn recount(&mut self, now: Instant) {
        let Some(group) = &mut self.group else { return };
        if group.led_topics.is_empty() || !group.member.is_stable() {
            return;
        }
        let counts = match group.member.minds_racks() {
            true => Whereabouts::of(&group.led_topics, &self.snapshot),
            false => Whereabouts::anywhere(&group.led_topics, &self.snapshot),
        };
        group.member.handle(classic::Input::Recounted(counts), now);
    }

    /// Gives machines their lists, and looks after what depends on time.
    fn settle(&mut self, now: Instant) {
        self.follow_user(now);
        self.rebalance_on(now);
        self.reset_drained();
        self.commit_automatically(now);

        if self.group.is_none() {
            self.begin_all();
        }
        let core = self.core();
        let (nodes, room, leaderless) = core.wanted(now);
        let (mut loading, mut resetting, mut validating) = (Vec::new(), Vec::new(), Vec::new());
        for (claim, partition) in core.subscription.iter() {
            let (topic, number, leader) = (partition.topic.clone(), partition.name.partition, partition.leader);
            match partition.stage {
                Stage::Loading => loading.push(committed::Want { claim, topic, partition: number }),
                Stage::Resetting(start) => {
                    resetting.push(reset::Want { claim, topic, partition: number, leader, start });
                }
                Stage::Validating => {
                    let position = partition.position;
                    validating.push(validate::Want { claim, topic, partition: number, leader, position });
                }
                Stage::Fetching | Stage::Stuck(_) => {}
            }
        }
        let topics = core.subscription.topics();
        drop(core);

        if self.closing.is_none() {
            self.fetcher.handle(fetcher::Input::Wanted { nodes, room }, now);
        }
        self.resetter.handle(reset::Input::Wanted(resetting), now);
        self.validator.handle(validate::Input::Wanted(validating), now);
        if let Some(group) = &mut self.group {
            group.loader.handle(committed::Input::Wanted(loading), now);
        }
        self.watch(topics, leaderless, now);
    }

    /// Has the topics watched that matter, and asks again for those that are missing, or have partitions without a
    /// leader.
    fn watch(&mut self, mut topics: BTreeSet<Str>, leaderless: Vec<Str>, now: Instant) {
        if let Some(group) = &self.group {
            topics.extend(group.topics.iter().cloned());
            topics.extend(group.led_topics.iter().cloned());
        }
        let is_known = |topic: &Str| self.snapshot.topics.contains_key(topic);
        let leaderless: Vec<Str> = leaderless.into_iter().filter(is_known).collect();
        let interval = if leaderless.is_empty() { MISSING_TOPIC_INTERVAL } else { LEADERLESS_INTERVAL };
        let mut doubted: BTreeSet<Str> = topics.iter().filter(|topic| !is_known(topic)).cloned().collect();
        doubted.extend(leaderless);
        if doubted.is_empty() {
            self.ask_again = None;
        } else if doubted != self.doubted || self.ask_again.is_none_or(|time| time <= now) {
            self.ask_again = Some(now + interval);
            self.actions.push_back(Action::Refresh(doubted.iter().cloned().collect()));
        }
        self.doubted = doubted;
        if topics != self.watched {
            self.actions.push_back(Action::Watch(topics.iter().cloned().collect()));
            self.watched = topics;
        }
    }

    /// Resets partitions that ran out of the leader's range, once what was fetched of them has been handed out.
    fn reset_drained(&mut self) {
        let drained = self.core().to_reset();
        for (slot, name, offset) in drained {
            let start = self.start(&name);
            tracing::info!(partition = %name, offset, policy = ?self.config.reset, "the offset is out of range");
            let mut core = self.core();
            match start {
                Ok(start) => core.reset(slot, start),
                Err(error) => core.stick(slot, error),
            }
            drop(core);
            self.actions.push_back(Action::WakeCallers);
        }
    }

    fn commit_automatically(&mut self, now: Instant) {
        let is_open = self.core().gate == Gate::Open;
        let Some(group) = &mut self.group else { return };
        let Some(auto) = &mut group.auto_commit else { return };
        let due = *auto.due.get_or_insert(now + auto.interval);
        if due > now || self.closing.is_some() {
            return;
        }
        auto.due = Some(now + auto.interval);
        // One that is still under way says more than a second one behind it would.
        if !is_open || !group.committer.is_idle() {
            return;
        }
        let core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let offsets = rebalance::standing(rebalance::committable(&core), &self.snapshot);
        drop(core);
        if offsets.is_empty() || offsets == auto.last {
            return;
        }
        auto.last.clone_from(&offsets);
        let identity = group.identity();
        let deadline = now + self.config.api_timeout;
        let request = commit::Input::Requested { ticket: None, offsets, identity, deadline, awaits_partitions: false };
        group.committer.handle(request, now);
    }

    /// Notices that the application polls, that it has stopped, that it is back.
    fn follow_user(&mut self, now: Instant) {
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(group) = &mut self.group else { return };
        let user = &mut group.user;
        if core.calls != user.calls
            || core.waiting > 0
            || user.alive.is_none()
            || group.member.is_outside() && !user.is_idle
        {
            user.calls = core.calls;
            user.alive = Some(now);
            if std::mem::take(&mut user.is_idle) {
                core.user_is_idle = false;
                group.member.handle(classic::Input::Returned, now);
            }
        } else if !user.is_idle && user.alive.is_some_and(|alive| now >= alive + user.max_poll_interval) {
            user.is_idle = true;
            core.user_is_idle = true;
            let interval = user.max_poll_interval;
            tracing::warn!(?interval, "no poll within the maximum poll interval; leaving the group");
            group.member.handle(classic::Input::Idle, now);
        }
    }

    fn commit(&mut self, ticket: Ticket, offsets: Option<Offsets>, deadline: Instant, now: Instant) {
        let offsets =
            offsets.unwrap_or_else(|| rebalance::standing(rebalance::positions(&self.core()), &self.snapshot));
        let Some(group) = &mut self.group else {
            let result = Err(KrafkaError::illegal_state("this consumer has no group"));
            return self.actions.push_back(Action::Answer { ticket, result });
        };
        let identity = group.identity();
        let request =
            commit::Input::Requested { ticket: Some(ticket), offsets, identity, deadline, awaits_partitions: true };
        group.committer.handle(request, now);
    }
}

impl Group {
    /// In whose name to commit. A consumer that chose its partitions itself speaks for nobody.
    fn identity(&self) -> Identity {
        if self.topics.is_empty() { Identity::outside() } else { self.member.identity().clone() }
    }
}

impl Machine for Engine {
    type Input = Input;
    type Action = Action;

    fn handle(&mut self, input: Input, now: Instant) {
        self.now = Some(now);
        self.is_dirty = true;
        match input {
            Input::Woken => self.core().woke(),
            Input::Reassigned => self.follow_cluster(),
            Input::ClusterChanged(snapshot) => {
                self.actions.push_back(Action::FollowCluster { since: snapshot.version });
                self.snapshot = snapshot.clone();
                self.fetcher.handle(fetcher::Input::ClusterChanged(snapshot), now);
                self.follow_cluster();
                self.recount(now);
            }
            Input::Subscribed(topics) => {
                if let Some(group) = &mut self.group {
                    group.topics.clone_from(&topics);
                    group.user.alive = None;
                    group.member.handle(classic::Input::Subscribed(topics), now);
                }
            }
            Input::Unsubscribed(ticket) => self.unsubscribe(ticket),
            Input::Commit { ticket, offsets, deadline } => self.commit(ticket, offsets, deadline, now),
            Input::Close { ticket, deadline } => self.close(ticket, deadline),
            Input::Fetched { node, answer, max_wait } => {
                self.fetcher.handle(fetcher::Input::Answered { node, answer, max_wait }, now);
            }
            Input::Listed { asked, answer } => self.resetter.handle(reset::Input::Answered { asked, answer }, now),
            Input::Validated { asked, answer } => {
                self.validator.handle(validate::Input::Answered { asked, answer }, now);
            }
            Input::Loaded { asked, answer } => {
                if let Some(group) = &mut self.group {
                    group.loader.handle(committed::Input::Answered { asked, answer }, now);
                }
            }
            Input::Committed(input) => {
                if let Some(group) = &mut self.group {
                    group.committer.handle(input, now);
                }
            }
            Input::Member(input) => {
                if let Some(group) = &mut self.group {
                    group.member.handle(input, now);
                }
            }
            Input::Parted => {
                if let Some(closing) = &mut self.closing {
                    closing.partings = closing.partings.saturating_sub(1);
                }
            }
            Input::ListenerReturned => self.listener_returned(now),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Action> {
        self.now = Some(now);
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            if self.follow_up() {
                continue;
            }
            let is_due = self.due().is_some_and(|due| due <= now);
            if std::mem::take(&mut self.is_dirty) || is_due {
                self.settle(now);
            }
            if !self.carry_on(now) && self.actions.is_empty() && !self.is_dirty {
                self.finish_closing(now);
                return self.actions.pop_front();
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let group = self.group.as_ref();
        let machines = [
            self.fetcher.deadline(),
            self.resetter.deadline(),
            self.validator.deadline(),
            group.and_then(|group| group.loader.deadline()),
            group.and_then(|group| group.committer.deadline()),
            group.and_then(|group| group.member.deadline()),
        ];
        let own = self.due().filter(|&time| self.now.is_none_or(|now| time > now));
        machines.into_iter().chain([own]).flatten().min()
    }
}

impl Engine {
    /// When the engine itself has something to do.
    fn due(&self) -> Option<Instant> {
        let group = self.group.as_ref();
        let auto_commit = group.and_then(|group| group.auto_commit.as_ref()?.due).filter(|_| self.closing.is_none());
        let idle = group
            .filter(|group| !group.user.is_idle && !group.member.is_outside())
            .and_then(|group| Some(group.user.alive? + group.user.max_poll_interval));
        let closing = self.closing.as_ref().map(|closing| closing.deadline);
        [auto_commit, idle, closing, self.ask_again, self.rebalance.deadline()].into_iter().flatten().min()
    }
}

/// Where a policy starts.
fn start(policy: AutoOffsetReset, clock: &dyn WallClock, name: &TopicPartition) -> Result<Start, KrafkaError> {
    match policy {
        AutoOffsetReset::Earliest => Ok(Start::Earliest),
        AutoOffsetReset::Latest => Ok(Start::Latest),
        AutoOffsetReset::None => Err(no_offset(name)),
        AutoOffsetReset::ByDuration(age) => {
            let now = clock.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Ok(Start::At(i64::try_from(now.saturating_sub(age).as_millis()).unwrap_or(i64::MAX)))
        }
    }
}

fn no_offset(name: &TopicPartition) -> KrafkaError {
    KrafkaError::NoOffset { partitions: Arc::new([name.clone()]) }
}
