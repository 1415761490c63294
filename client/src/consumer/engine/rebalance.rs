//! Takes partitions away and gives new ones, in good order, one step at a time.
//!
//! ```text
//!   Revoke:  Gate ──the user polls──▶ Committing ──▶ Listening ──▶ partitions gone; rejoin, leave or close
//!   Lose:                             partitions gone ──▶ Listening ──▶ rejoin
//!   Assign:                           partitions there ──▶ Listening ──▶ records are handed out
//! ```
//!
//! The gate is what makes a rebalance harmless: the user has worked off what it was given when it polls again, so
//! what is committed is what was worked on, and the next owner repeats nothing. The listener runs as a task of its
//! own; a `poll` that is dropped meanwhile drops nothing of it.

use std::collections::VecDeque;
use std::time::Instant;

use krafka_protocol::machine::Machine;

use super::{Action, Closing, Engine, Event};
use crate::cluster::Snapshot;
use crate::consumer::commit::{Offsets, Ticket};
use crate::consumer::core::{Core, Gate};
use crate::consumer::group::classic;
use crate::consumer::record::OffsetAndMetadata;
use crate::consumer::subscription::{Position, Stage};
use crate::consumer::{commit, fetcher};
use crate::{KrafkaError, TopicPartition};

/// The ticket of the commit that a revocation makes itself.
const OWN_TICKET: Ticket = Ticket(u64::MAX);

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Rebalance {
    queue: VecDeque<Step>,
    current: Option<Current>,
}

#[derive(Debug)]
enum Step {
    Revoke(Then),
    Lose(Vec<TopicPartition>),
    Assign(Vec<TopicPartition>),
}

/// What a revocation is for.
#[derive(Clone, Copy, Debug)]
enum Then {
    Rejoin,
    Leave(Ticket),
    Close,
}

#[derive(Debug)]
struct Current {
    step: Step,
    phase: Phase,
    /// When to go on without the commit or the listener.
    give_up: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gate,
    Committing,
    Listening,
}

impl Rebalance {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.current.as_ref().and_then(|current| current.give_up)
    }
}

impl Engine {
    /// The member must give its partitions up.
    pub(super) fn release(&mut self, lost: bool, now: Instant) {
        if !lost {
            return self.rebalance.queue.push_back(Step::Revoke(Then::Rejoin));
        }
        // Nothing that was planned for these partitions matters any more, but for a callback that is running.
        self.rebalance.queue.retain(|step| matches!(step, Step::Revoke(Then::Leave(_) | Then::Close) | Step::Lose(_)));
        if let Some(Current { step: Step::Revoke(Then::Rejoin), phase: Phase::Gate | Phase::Committing, .. }) =
            self.rebalance.current
        {
            self.rebalance.current = None;
        }
        let mut core = self.core();
        core.gate = Gate::Open;
        let names = core.unassign_all();
        drop(core);
        if names.is_empty() || !self.has_listener {
            self.released(now);
        } else {
            self.rebalance.queue.push_back(Step::Lose(names));
        }
    }

    /// The member was given these partitions.
    pub(super) fn assigned(&mut self, names: Vec<TopicPartition>) {
        self.rebalance.queue.push_back(Step::Assign(names));
    }

    pub(super) fn unsubscribe(&mut self, ticket: Ticket) {
        self.rebalance.queue.push_back(Step::Revoke(Then::Leave(ticket)));
    }

    pub(super) fn close(&mut self, ticket: Ticket, deadline: Instant) {
        self.closing = Some(Closing { ticket, deadline, partings: 0, has_left: false, error: None });
        // Whoever waits to unsubscribe has what he wants.
        for step in std::mem::take(&mut self.rebalance.queue) {
            if let Step::Revoke(Then::Leave(ticket)) = step {
                self.actions.push_back(Action::Answer { ticket, result: Ok(()) });
            }
        }
        if self.rebalance.current.as_ref().is_some_and(|current| current.phase == Phase::Gate) {
            self.rebalance.current = None;
        }
        self.rebalance.queue.push_back(Step::Revoke(Then::Close));
    }

    /// Goes on with the present step, and with those behind it, as far as they go now.
    pub(super) fn rebalance_on(&mut self, now: Instant) {
        loop {
            let Some(current) = &self.rebalance.current else {
                let Some(step) = self.rebalance.queue.pop_front() else { return };
                self.start_step(step, now);
                continue;
            };
            let is_late = current.give_up.is_some_and(|time| time <= now);
            match current.phase {
                Phase::Gate => {
                    let mut core = self.core();
                    // Whoever waits inside `poll` has said so when it came in.
                    if core.waiting > 0 {
                        core.gate = Gate::Shut;
                    }
                    if core.gate != Gate::Shut {
                        return;
                    }
                    drop(core);
                    self.commit_before_revoking(now);
                }
                Phase::Committing if is_late => self.call_listener(now),
                Phase::Listening if is_late => {
                    tracing::warn!("the rebalance listener did not return within the maximum poll interval");
                    self.finish_step(now);
                }
                Phase::Committing | Phase::Listening => return,
            }
        }
    }

    fn start_step(&mut self, step: Step, now: Instant) {
        let phase = if matches!(step, Step::Revoke(_)) { Phase::Gate } else { Phase::Listening };
        match &step {
            Step::Revoke(Then::Rejoin) => {
                let mut core = self.core();
                let is_empty = core.subscription.is_empty();
                core.gate = if is_empty { Gate::Shut } else { Gate::Asked };
            }
            // The user asks for these itself: there is nobody to wait for.
            Step::Revoke(Then::Leave(_) | Then::Close) => self.core().gate = Gate::Shut,
            Step::Lose(_) => {}
            Step::Assign(names) => {
                let mut core = self.core();
                for name in names {
                    core.assign(name.clone(), Stage::Loading);
                }
                drop(core);
                self.follow_cluster();
                if let Some(auto) = self.group.as_mut().and_then(|group| group.auto_commit.as_mut()) {
                    auto.last.clear();
                }
            }
        }
        self.rebalance.current = Some(Current { step, phase, give_up: None });
        if phase == Phase::Listening {
            self.call_listener(now);
        }
    }

    fn commit_before_revoking(&mut self, now: Instant) {
        let give_up = now + self.config.api_timeout.min(self.callback_limit());
        // Who closes is told what was not committed, so that must be known by then.
        let give_up = self.closing.as_ref().map_or(give_up, |closing| closing.deadline.min(give_up));
        let offsets = standing(positions(&self.core()), &self.snapshot);
        let Some(group) = self.group.as_mut().filter(|group| group.auto_commit.is_some() && !offsets.is_empty()) else {
            return self.call_listener(now);
        };
        let identity = group.identity();
        let request = commit::Input::Requested {
            ticket: Some(OWN_TICKET),
            offsets,
            identity,
            deadline: give_up,
            awaits_partitions: false,
        };
        group.committer.handle(request, now);
        self.set_phase(Phase::Committing, Some(give_up));
    }

    /// A commit has ended: whether it was the one that a revocation waits for.
    pub(super) fn rebalance_committed(&mut self, ticket: Ticket, result: &Result<(), KrafkaError>) -> bool {
        if ticket != OWN_TICKET {
            return false;
        }
        if let Err(error) = result {
            tracing::warn!(%error, "offsets were not committed before partitions were given up");
            if let Some(closing) = &mut self.closing {
                closing.error = Some(error.clone());
            }
        }
        if let Some(current) = self.rebalance.current.as_mut().filter(|current| current.phase == Phase::Committing) {
            // Late as of now: the next look goes on.
            current.give_up = self.now;
        }
        true
    }

    fn call_listener(&mut self, now: Instant) {
        let Some(current) = &self.rebalance.current else { return };
        let event = match &current.step {
            Step::Revoke(_) => Event::Revoked(self.core().subscription.names().cloned().collect()),
            Step::Lose(names) => Event::Lost(names.clone()),
            Step::Assign(names) => Event::Assigned(names.clone()),
        };
        let is_needed = match &event {
            Event::Revoked(names) | Event::Lost(names) => !names.is_empty(),
            Event::Assigned(_) => true,
        };
        let is_group = self.group.as_ref().is_some_and(|group| !group.topics.is_empty());
        if is_needed && is_group && self.has_listener {
            let give_up = now + self.callback_limit();
            self.set_phase(Phase::Listening, Some(give_up));
            self.actions.push_back(Action::Listen(event));
        } else {
            self.finish_step(now);
        }
    }

    pub(super) fn listener_returned(&mut self, now: Instant) {
        if self.rebalance.current.as_ref().is_some_and(|current| current.phase == Phase::Listening) {
            self.finish_step(now);
        }
    }

    fn finish_step(&mut self, now: Instant) {
        let Some(current) = self.rebalance.current.take() else { return };
        self.is_dirty = true;
        match current.step {
            Step::Revoke(then) => {
                self.core().unassign_all();
                self.revoked(then, now);
            }
            Step::Lose(_) => self.released(now),
            Step::Assign(_) => self.open_gate(),
        }
    }

    fn revoked(&mut self, then: Then, now: Instant) {
        match then {
            Then::Rejoin => return self.released(now),
            Then::Leave(ticket) => {
                self.open_gate();
                self.actions.push_back(Action::Answer { ticket, result: Ok(()) });
            }
            Then::Close => {
                if let Some(closing) = &mut self.closing {
                    closing.has_left = true;
                }
                self.fetcher.handle(fetcher::Input::Closed, now);
            }
        }
        if let Some(group) = &mut self.group {
            group.topics.clear();
            group.led_topics.clear();
            group.member.handle(classic::Input::Unsubscribed, now);
        }
    }

    fn released(&mut self, now: Instant) {
        if let Some(group) = &mut self.group {
            group.member.handle(classic::Input::Released, now);
        }
        self.is_dirty = true;
    }

    pub(super) fn open_gate(&mut self) {
        self.core().gate = Gate::Open;
        self.actions.push_back(Action::WakeCallers);
        self.is_dirty = true;
    }

    /// Answers `close`, when all that it waits for is done, or its time is over.
    pub(super) fn finish_closing(&mut self, now: Instant) {
        let Some(closing) = &self.closing else { return };
        let is_committing = self.group.as_ref().is_some_and(|group| !group.committer.is_idle());
        let is_late = closing.deadline <= now;
        if !is_late && (!closing.has_left || closing.partings > 0 || is_committing) {
            return;
        }
        if is_late && !closing.has_left {
            // The members that stay should not wait for this one's session to end.
            self.core().unassign_all();
            self.revoked(Then::Close, now);
            while self.carry_on(now) {}
        }
        let Some(closing) = self.closing.take() else { return };
        let result = closing.error.map_or(Ok(()), Err);
        self.actions.push_back(Action::Answer { ticket: closing.ticket, result });
        self.actions.push_back(Action::Closed);
    }

    fn set_phase(&mut self, phase: Phase, give_up: Option<Instant>) {
        if let Some(current) = &mut self.rebalance.current {
            current.phase = phase;
            current.give_up = give_up;
        }
    }

    fn callback_limit(&self) -> std::time::Duration {
        self.config.group.as_ref().map_or(self.config.api_timeout, |group| group.max_poll_interval)
    }
}

/// The positions of all partitions: what `poll` has returned lies before them.
pub(super) fn positions(core: &Core) -> Offsets {
    offsets(core, |partition| partition.has_position().then_some(partition.position))
}

/// What lay before the positions when the last `poll` began has been worked on.
pub(super) fn committable(core: &Core) -> Offsets {
    offsets(core, |partition| partition.committable)
}

/// Those of partitions that are there, by the latest news: a topic may have been deleted, and may have come back with
/// fewer partitions.
pub(super) fn standing(mut offsets: Offsets, snapshot: &Snapshot) -> Offsets {
    offsets.retain(|name, _| match snapshot.topics.get(&*name.topic) {
        Some(topic) => usize::try_from(name.partition).is_ok_and(|number| number < topic.partitions.len()),
        None => true,
    });
    offsets
}

fn offsets(core: &Core, position: impl Fn(&crate::consumer::subscription::Partition) -> Option<Position>) -> Offsets {
    let partitions = core.subscription.iter();
    let known = partitions.filter_map(|(_, partition)| Some((partition.name.clone(), position(partition)?)));
    let known = known.filter(|(_, position)| position.offset >= 0);
    known
        .map(|(name, position)| {
            let mut offset = OffsetAndMetadata::new(position.offset);
            offset.leader_epoch = (position.epoch >= 0).then_some(position.epoch);
            (name, offset)
        })
        .collect()
}
