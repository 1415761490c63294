//! How a rebalance begins and ends, and what the timers of a group do.

use krafka_protocol::{ErrorCode, Str};

use std::time::Instant;

use bytes::Bytes;

use super::member::Member;
use super::{AtWork, ClassicGroup, JoinTimer, Phase};

impl AtWork<'_> {
    /// Lets one due timer after the other run out. Each acts on the group that the one before has left behind.
    pub(in crate::groups) fn expire(&mut self) {
        let now = self.now;
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        while due(self.group.deadline()) {
            let group = &mut *self.group;
            if let Some(timer) = group.join_timer.filter(|t| t.at <= now) {
                group.join_timer = None;
                self.join_time_is_up(timer);
            } else if due(group.sync_timer) {
                group.sync_timer = None;
                let silent = std::mem::take(&mut group.pending_syncs);
                for member_id in &silent {
                    self.remove(member_id);
                }
                if !silent.is_empty() {
                    self.prepare_rebalance();
                }
            } else if let Some(id) = group.pending_joins.iter().find(|(_, at)| **at <= now).map(|(id, _)| id.clone()) {
                self.lose(&id);
            } else if let Some(member) = group.members.iter_mut().find(|m| due(m.session_ends)) {
                member.session_ends = None;
                if !member.is_excused() {
                    let id = member.id.clone();
                    self.lose(&id);
                }
            }
        }
    }

    /// Starts a rebalance, or goes on with the one that is under way.
    pub(super) fn rebalance_or_complete(&mut self) {
        match self.group.state {
            Phase::PreparingRebalance => self.complete_when_all_joined(),
            Phase::Empty if self.group.members.is_empty() => {}
            _ => self.prepare_rebalance(),
        }
    }

    pub(in crate::groups) fn prepare_rebalance(&mut self) {
        if self.group.state == Phase::CompletingRebalance {
            for member in &mut self.group.members {
                member.assignment = Bytes::new();
            }
            self.answer_syncs(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        let group = &mut *self.group;
        group.pending_syncs.clear();
        group.sync_timer = None;
        let is_initial = group.state == Phase::Empty;
        group.enter(Phase::PreparingRebalance, self.now);
        if is_initial {
            let delay = self.config.group_initial_rebalance_delay;
            let remaining = group.rebalance_timeout().saturating_sub(delay);
            group.new_member_added = false;
            group.join_timer = Some(JoinTimer { at: self.now + delay, initial: Some((delay, remaining)) });
        } else if group.have_all_joined() {
            self.complete_join();
        } else {
            group.join_timer = Some(JoinTimer { at: self.now + group.rebalance_timeout(), initial: None });
        }
    }

    pub(super) fn complete_when_all_joined(&mut self) {
        if !self.group.is_initial_rebalance() && self.group.have_all_joined() {
            self.complete_join();
        }
    }

    fn join_time_is_up(&mut self, timer: JoinTimer) {
        match timer.initial {
            Some((delay, remaining)) if self.group.new_member_added && !remaining.is_zero() => {
                self.group.new_member_added = false;
                let next = self.config.group_initial_rebalance_delay.min(remaining);
                let initial = Some((next, remaining.saturating_sub(delay)));
                self.group.join_timer = Some(JoinTimer { at: self.now + next, initial });
            }
            _ => self.complete_join(),
        }
    }

    /// Ends the first half of a rebalance with those who have joined.
    fn complete_join(&mut self) {
        self.group.join_timer = None;
        let is_missing = |m: &Member| m.parked_join.is_none() && !m.is_static();
        let missing: Vec<Str> = self.group.members.iter().filter(|m| is_missing(m)).map(|m| m.id.clone()).collect();
        for id in &missing {
            self.remove(id);
        }
        let group = &mut *self.group;
        if !group.members.is_empty() && !Self::elect_leader(group) {
            // Only static members are left, and none has come back: they have until their sessions end.
            group.join_timer = Some(JoinTimer { at: self.now + group.rebalance_timeout(), initial: None });
            return;
        }
        group.generation += 1;
        group.protocol = group.elect_protocol();
        group.pending_syncs.clear();
        if group.members.is_empty() {
            group.enter(Phase::Empty, self.now);
            group.read_subscriptions();
            group.write();
            return;
        }
        group.enter(Phase::CompletingRebalance, self.now);
        group.read_subscriptions();
        for index in 0..self.group.members.len() {
            let id = self.group.members[index].id.clone();
            let response = self.joined(id.clone(), true);
            let member = &mut self.group.members[index];
            if let Some(parked) = member.parked_join.take() {
                self.answers.push(parked.join(response));
            }
            member.is_new = false;
            member.heard(self.now);
            self.group.pending_syncs.insert(id);
        }
        self.group.sync_timer = Some(self.now + self.group.rebalance_timeout());
    }

    /// Makes sure that the leader is one of those who have joined; false if nobody has.
    fn elect_leader(group: &mut ClassicGroup) -> bool {
        let has_joined = |m: &&Member| m.parked_join.is_some();
        if group.members.iter().filter(has_joined).any(|m| group.is_leader(&m.id)) {
            return true;
        }
        match group.members.iter().find(has_joined) {
            Some(member) => group.leader = Some(member.id.clone()),
            None => return false,
        }
        true
    }

    /// A member, or an id that might have become one, was not heard of in time.
    pub(super) fn lose(&mut self, member_id: &Str) {
        let was_member = self.group.position(member_id).is_some();
        self.send_away(member_id);
        match self.group.state {
            Phase::Stable | Phase::CompletingRebalance if was_member => self.prepare_rebalance(),
            Phase::PreparingRebalance if self.group.have_all_joined() => self.complete_join(),
            _ => {}
        }
    }

    /// Removes a member and ends its wait: with an error that makes it start over, should it still be there.
    pub(super) fn send_away(&mut self, member_id: &Str) {
        if let Some(index) = self.group.position(member_id)
            && let Some(parked) = self.group.members[index].parked_join.take()
        {
            self.answers.push(parked.join_error(Str::default(), ErrorCode::UNKNOWN_MEMBER_ID));
        }
        self.remove(member_id);
    }
}
