//! Carries on what the engine's machines want done: what concerns the core at once, the rest goes to the driver.

use std::time::Instant;

use krafka_protocol::machine::Machine;

use super::{Action, Engine};
use crate::consumer::subscription::{Claim, Position, Stage, Start};
use crate::consumer::{commit, committed, fetcher, group::classic, reset, validate};
use crate::{KrafkaError, TopicPartition};

impl Engine {
    /// Takes one action from the first machine that has one. Returns whether there was any.
    pub(super) fn carry_on(&mut self, now: Instant) -> bool {
        if let Some(action) = self.fetcher.poll(now) {
            self.fetcher_wants(action);
        } else if let Some(action) = self.resetter.poll(now) {
            self.resetter_wants(action);
        } else if let Some(action) = self.validator.poll(now) {
            self.validator_wants(action);
        } else if let Some(action) = self.group.as_mut().and_then(|group| group.loader.poll(now)) {
            self.loader_wants(action);
        } else if let Some(action) = self.group.as_mut().and_then(|group| group.member.poll(now)) {
            self.member_wants(action, now);
        } else if let Some(action) = self.group.as_mut().and_then(|group| group.committer.poll(now)) {
            self.committer_wants(action, now);
        } else {
            return false;
        }
        true
    }

    /// Takes one action that a machine has decided on already. Returns whether there was any.
    ///
    /// One answer may be about thousands of partitions: what it says of each is taken in before all are looked at anew.
    pub(super) fn follow_up(&mut self) -> bool {
        if let Some(action) = self.fetcher.decided() {
            self.fetcher_wants(action);
        } else if let Some(action) = self.resetter.decided() {
            self.resetter_wants(action);
        } else if let Some(action) = self.validator.decided() {
            self.validator_wants(action);
        } else if let Some(action) = self.group.as_mut().and_then(|group| group.loader.decided()) {
            self.loader_wants(action);
        } else {
            return false;
        }
        true
    }

    fn fetcher_wants(&mut self, action: fetcher::Action) {
        match action {
            fetcher::Action::Fetch { node, request, pause } => {
                self.actions.push_back(Action::Fetch { node, request, pause });
            }
            fetcher::Action::EndSession { node, request } => {
                if let Some(closing) = &mut self.closing {
                    closing.partings += 1;
                }
                self.actions.push_back(Action::EndSession { node, request });
            }
            fetcher::Action::Buffer(fetched) => {
                let has_records = !fetched.records.is_empty();
                self.core().buffer(fetched);
                if has_records {
                    self.actions.push_back(Action::WakeCallers);
                    self.is_dirty = true;
                }
            }
            fetcher::Action::Diverged { claim, epoch, end_offset } => self.truncated(claim, epoch, end_offset),
            fetcher::Action::OutOfRange { claim, offset } => {
                self.core().out_of_range(claim, offset);
                self.is_dirty = true;
            }
            fetcher::Action::Prefer { claim, preferred } => {
                let mut core = self.core();
                if let Some(partition) = core.subscription.held(claim) {
                    let node = preferred.node();
                    tracing::debug!(partition = %partition.name, node, "the leader names a replica in our rack");
                }
                core.prefer(claim, preferred);
                drop(core);
                self.is_dirty = true;
            }
            fetcher::Action::AskLeader { claim } => {
                self.core().ask_leader(claim);
                self.is_dirty = true;
            }
            fetcher::Action::Refresh { topics } => self.actions.push_back(Action::Refresh(topics)),
            fetcher::Action::Hint(hint) => self.actions.push_back(Action::Hint(hint)),
            fetcher::Action::Report(complaint) => self.report(complaint.0),
        }
    }

    fn resetter_wants(&mut self, action: reset::Action) {
        match action {
            reset::Action::Ask { node, request, asked } => {
                self.actions.push_back(Action::ListOffsets { node, request, asked });
            }
            reset::Action::Found { claim, position } => self.settled(claim, position),
            reset::Action::NothingSince { claim } => {
                let mut core = self.core();
                if core.subscription.held(claim).is_some() {
                    core.reset(claim.slot, Start::Latest);
                }
                drop(core);
                self.is_dirty = true;
            }
            reset::Action::Refresh { topics } => self.actions.push_back(Action::Refresh(topics)),
            reset::Action::Report(complaint) => self.report(complaint.0),
        }
    }

    fn validator_wants(&mut self, action: validate::Action) {
        match action {
            validate::Action::Ask { node, request, asked } => {
                self.actions.push_back(Action::Validate { node, request, asked });
            }
            validate::Action::Valid { claim } => {
                let position = self.core().subscription.held(claim).map(|partition| partition.position);
                if let Some(position) = position {
                    self.settled(claim, position);
                }
            }
            validate::Action::Truncated { claim, epoch, end_offset } => self.truncated(claim, epoch, end_offset),
            validate::Action::Undefined { claim } => self.undefined(claim),
            validate::Action::Refresh { topics } => self.actions.push_back(Action::Refresh(topics)),
            validate::Action::Report(complaint) => self.report(complaint.0),
        }
    }

    fn loader_wants(&mut self, action: committed::Action) {
        match action {
            committed::Action::Ask { request, asked } => {
                self.actions.push_back(Action::LoadCommitted { request, asked });
            }
            committed::Action::Found { claim, position } => {
                let mut core = self.core();
                if core.subscription.held(claim).is_some() {
                    core.seek(claim.slot, position);
                }
                drop(core);
                self.is_dirty = true;
            }
            committed::Action::Nothing { claim } => self.begin(claim),
            committed::Action::Refresh { topics } => self.actions.push_back(Action::Refresh(topics)),
            committed::Action::Report(complaint) => self.report(complaint.0),
        }
    }

    fn member_wants(&mut self, action: classic::Action, now: Instant) {
        match action {
            classic::Action::Release { lost } => self.release(lost, now),
            classic::Action::Join { round, request } => self.actions.push_back(Action::Join { round, request }),
            classic::Action::Count { round, topics } => {
                if let Some(group) = &mut self.group {
                    group.led_topics.clone_from(&topics);
                }
                self.actions.push_back(Action::Count { round, topics });
            }
            classic::Action::Sync { round, request } => self.actions.push_back(Action::Sync { round, request }),
            classic::Action::Beat(request) => self.actions.push_back(Action::Beat(request)),
            classic::Action::Leave(request) => {
                if let Some(closing) = &mut self.closing {
                    closing.partings += 1;
                }
                self.actions.push_back(Action::Leave(request));
            }
            classic::Action::Assigned(partitions) => {
                let names = partitions.into_iter().map(|(topic, number)| TopicPartition::new(&*topic, number));
                self.assigned(names.collect());
                // What came while the group gathered was not counted.
                self.recount(now);
            }
            classic::Action::Failed(complaint) => {
                self.open_gate();
                self.core().refusal = Some(complaint.0.clone());
                self.report(complaint.0);
            }
        }
        self.is_dirty = true;
    }

    fn committer_wants(&mut self, action: commit::Action, now: Instant) {
        match action {
            commit::Action::Send(request) => self.actions.push_back(Action::Commit(request)),
            commit::Action::Done { ticket: Some(ticket), result } => {
                if !self.rebalance_committed(ticket, &result) {
                    self.actions.push_back(Action::Answer { ticket, result });
                }
            }
            commit::Action::Done { ticket: None, result } => {
                if let Err(error) = result {
                    tracing::warn!(%error, "offsets were not committed; the next automatic commit includes them");
                    if let Some(auto) = self.group.as_mut().and_then(|group| group.auto_commit.as_mut()) {
                        auto.last.clear();
                    }
                }
            }
            commit::Action::Ousted { code, identity } => {
                // A commit that was long on its way says nothing about the member of today.
                if let Some(group) = &mut self.group
                    && *group.member.identity() == identity
                {
                    group.member.handle(classic::Input::Ousted(code), now);
                }
            }
            commit::Action::Refresh { topics } => self.actions.push_back(Action::Refresh(topics)),
        }
        self.is_dirty = true;
    }

    /// The partition is read from here on.
    fn settled(&mut self, claim: Claim, position: Position) {
        let mut core = self.core();
        if core.subscription.held(claim).is_some() {
            core.buffer.clear(claim.slot);
            core.subscription.settle(claim.slot, position);
        }
        drop(core);
        self.is_dirty = true;
        self.actions.push_back(Action::WakeCallers);
    }

    /// Without a group there are no committed offsets: what is assigned begins where the policy says.
    pub(super) fn begin_all(&mut self) {
        let core = self.core();
        let loading = core.subscription.iter().filter(|(_, partition)| matches!(partition.stage, Stage::Loading));
        let claims: Vec<Claim> = loading.map(|(claim, _)| claim).collect();
        drop(core);
        claims.into_iter().for_each(|claim| self.begin(claim));
    }

    /// The partition has no position: the policy says where it begins.
    fn begin(&mut self, claim: Claim) {
        let Some(name) = self.core().subscription.held(claim).map(|partition| partition.name.clone()) else { return };
        let start = self.start(&name);
        let mut core = self.core();
        match start {
            Ok(start) => core.reset(claim.slot, start),
            Err(error) => core.stick(claim.slot, error),
        }
        drop(core);
        self.is_dirty = true;
        self.actions.push_back(Action::WakeCallers);
    }

    /// The leader's log is not the one that was read: it is the same up to `end_offset` at most.
    fn truncated(&mut self, claim: Claim, epoch: i32, end_offset: i64) {
        let held = self.core().subscription.held(claim).map(|partition| (partition.name.clone(), partition.position));
        let Some((name, position)) = held else { return };
        if end_offset < 0 {
            return self.undefined(claim);
        }
        // What was fetched ahead may be past the divergence while what was handed out is not: then nothing was lost.
        let to = Position::new(end_offset.min(position.offset), epoch);
        if end_offset >= position.offset {
            return self.settled(claim, Position::new(position.offset, epoch.min(position.epoch)));
        }
        tracing::warn!(partition = %name, from = position.offset, to = end_offset, epoch, "the log was truncated");
        if self.start(&name).is_ok() {
            return self.settled(claim, to);
        }
        let message = format!(
            "the log of {name} was truncated: it is the same up to offset {end_offset} (epoch {epoch}), and the \
             position was {}; records behind that were replaced. Seek to go on",
            position.offset
        );
        self.core().stick(claim.slot, KrafkaError::illegal_state(message));
        self.actions.push_back(Action::WakeCallers);
    }

    /// The leader knows nothing about the epoch of the position: the log was truncated, nobody can say from where on.
    fn undefined(&mut self, claim: Claim) {
        let held = self.core().subscription.held(claim).map(|partition| (partition.name.clone(), partition.position));
        let Some((name, Position { offset: position, epoch })) = held else { return };
        if let Ok(start) = self.start(&name) {
            let policy = self.config.reset;
            tracing::info!(partition = %name, position, epoch, ?policy, "the log was truncated, it is not known where");
            self.core().reset(claim.slot, start);
            self.is_dirty = true;
            return;
        }
        tracing::warn!(partition = %name, position, epoch, "the log was truncated, it is not known where");
        let message = format!(
            "the log of {name} was truncated: its leader knows nothing of epoch {epoch}, of which the record before \
             position {position} was, nor where the log is the same up to. Seek to go on"
        );
        self.core().stick(claim.slot, KrafkaError::illegal_state(message));
        self.actions.push_back(Action::WakeCallers);
    }

    fn report(&mut self, error: KrafkaError) {
        self.core().complain(error);
        self.actions.push_back(Action::WakeCallers);
    }
}
