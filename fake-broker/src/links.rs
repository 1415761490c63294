//! Links between nodes: what the cluster does when two of its nodes cannot reach each other, or one of them is paused.
//!
//! ```text
//!   follower ✕ leader        the follower stops, and is out of sync after `replica.lag.time.max.ms`, if the leader
//!                            can say so
//!   node ✕ controller        it learns nothing more; after `broker.session.timeout.ms` the others go on without it,
//!                            and leaders move
//!   controller ✕ majority    after 2 s another node is the controller
//!   coordinator ✕ leader     a transaction that is decided waits with its marker
//! ```
//!
//! A link that is cut one way is cut for both: Kafka's nodes talk in requests and answers. Other than in Kafka, a node
//! that the others go on without knows that it leads no more: it refuses what it would accept, and lose later; what it
//! took before that, and no follower got, is lost all the same. It coordinates nothing either.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use krafka_protocol::Uuid;

use crate::state::State;
use crate::timers::Timer;
use crate::transactions;

/// How long a controller leads that no majority fetches from: Kafka's default of `controller.quorum.fetch.timeout.ms`.
const QUORUM_FETCH_TIMEOUT: Duration = Duration::from_secs(2);

/// The links that are cut, and who suffers from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    /// Pairs of nodes, the lower id first.
    cut: BTreeSet<(i32, i32)>,
    /// Followers (topic, partition, node) that stopped because their leader is out of reach.
    held: BTreeSet<(Uuid, i32, i32)>,
    /// Since when nodes have not heard from the controller, and whether what they know stopped then.
    lost: BTreeMap<i32, (Instant, bool)>,
    /// Since when the controller has had no majority.
    alone_since: Option<Instant>,
}

impl State {
    /// Cuts these links between nodes, and no others.
    pub(crate) fn cut_links(&mut self, cut: BTreeSet<(i32, i32)>, now: Instant) {
        if self.links.cut != cut {
            self.links.cut = cut;
            self.mind_links(now);
        }
    }

    /// Whether two nodes do not hear each other: the link is cut, or one of them is paused.
    pub(crate) fn are_apart(&self, a: i32, b: i32) -> bool {
        let is_paused = self.nodes.is_paused(a) || self.nodes.is_paused(b);
        a != b && (is_paused || self.links.cut.contains(&(a.min(b), a.max(b))))
    }

    /// Whether all nodes hear each other, and there is nothing left of a time when they did not.
    fn all_is_well(&self) -> bool {
        let links = &self.links;
        links.cut.is_empty() && links.held.is_empty() && links.lost.is_empty() && !self.nodes.has_paused()
    }

    /// Follows up on links that are cut, and on nodes and leaders that changed meanwhile.
    pub(crate) fn mind_links(&mut self, now: Instant) {
        if self.all_is_well() {
            return;
        }
        self.mind_controller(now);
        let controller = self.nodes.controller();
        for node in self.nodes.ids() {
            let is_lost = self.nodes.is_running(node) && node != controller && self.are_apart(node, controller);
            if is_lost {
                self.lose(node, now);
            } else if let Some((_, is_frozen)) = self.links.lost.remove(&node) {
                if is_frozen {
                    self.frozen.remove(&node);
                }
                if self.nodes.is_fenced(node) {
                    self.node_returned(node, now);
                }
            }
        }
        self.mind_followers(Some(now));
        self.finish_reassignments(now);
        transactions::tell_all(self, now);
    }

    /// Stops the followers whose leader is out of reach, since this moment or the next write, and lets the others go
    /// on.
    pub(crate) fn mind_followers(&mut self, since: Option<Instant>) {
        if self.all_is_well() {
            return;
        }
        let mut held = BTreeSet::new();
        let (mut stopped, mut freed) = (Vec::new(), Vec::new());
        for topic in self.topics.iter() {
            for (index, partition) in topic.indexed() {
                for &node in &partition.replicas {
                    let key = (topic.id, index, node);
                    let was_held = self.links.held.contains(&key);
                    let is_cut = partition.leader.is_some_and(|leader| self.are_apart(leader, node));
                    if is_cut && (was_held || !partition.is_held(node)) {
                        held.insert(key);
                    }
                    match (was_held, is_cut) {
                        (false, true) if !partition.is_held(node) => stopped.push((topic.name.clone(), index, node)),
                        (true, false) => freed.push((topic.name.clone(), index, node)),
                        _ => {}
                    }
                }
            }
        }
        self.links.held = held;
        for (topic, index, node) in stopped {
            self.set_lag(&topic, index, node, true, since);
        }
        for (topic, index, node) in freed {
            self.set_lag(&topic, index, node, false, since);
        }
    }

    /// Whether a partition's leader can tell the controller who is in sync.
    pub(crate) fn may_shrink(&self, leader: Option<i32>) -> bool {
        leader.is_none_or(|leader| !self.are_apart(leader, self.nodes.controller()))
    }

    /// Elects another controller when a majority has not reached this one for too long.
    fn mind_controller(&mut self, now: Instant) {
        let controller = self.nodes.controller();
        if self.has_majority(controller) {
            self.links.alone_since = None;
            return;
        }
        let since = *self.links.alone_since.get_or_insert(now);
        let due = since + QUORUM_FETCH_TIMEOUT;
        if now < due {
            self.timers.set(due, Timer::Links);
            return;
        }
        let voters = self.voters().into_iter().filter(|&node| self.nodes.is_running(node));
        if let Some(next) = voters.filter(|&node| self.has_majority(node)).min() {
            self.links.alone_since = None;
            if self.nodes.is_fenced(next) {
                self.node_returned(next, now);
            }
            self.nodes.set_controller(next);
        }
    }

    fn has_majority(&self, node: i32) -> bool {
        let voters = self.voters();
        let reached = voters
            .iter()
            .filter(|&&other| other == node || self.nodes.is_running(other) && !self.are_apart(node, other));
        2 * reached.count() > voters.len()
    }

    /// A node does not hear from the controller: it learns nothing more, and is fenced in the end.
    fn lose(&mut self, node: i32, now: Instant) {
        let (since, _) = match self.links.lost.get(&node) {
            Some(lost) => *lost,
            None => {
                let is_frozen = !self.frozen.contains_key(&node);
                if is_frozen {
                    self.freeze(node);
                }
                self.links.lost.insert(node, (now, is_frozen));
                (now, is_frozen)
            }
        };
        let due = since + self.broker_millis("broker.session.timeout.ms", 9_000);
        if now < due {
            self.timers.set(due, Timer::Links);
        } else if self.nodes.is_up(node) && self.has_majority(self.nodes.controller()) {
            self.go_on_without(node, now);
            self.nodes.change(node, |node| node.fenced = true);
        }
    }
}
