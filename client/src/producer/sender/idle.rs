//! Topics that nothing was sent to for a while: they rest, and nobody asks brokers about them (KIP-526).
//!
//! ```text
//!     loaded ──▶ kept fresh ──nothing open, queued or in flight for metadata_max_idle──▶ rests
//!                    ▲                                                                     │
//!                    └──────────────────────── loaded, or a batch opened ──────────────────┘
//! ```
//!
//! What a producer knows of a topic that rests (its sequences, and which topic it was) stays.

use std::time::Instant;

use krafka_protocol::Str;

use super::{Action, Sender, Timer, Topic};

impl<L: Clone> Sender<L> {
    /// A caller has loaded a topic.
    pub(super) fn loaded(&mut self, name: &Str, now: Instant) {
        let topic = self.topics.entry(name.clone()).or_default();
        topic.loaded = Some(now);
        if !std::mem::replace(&mut topic.is_kept, true) {
            self.wake(name, now);
        }
    }

    /// Something was appended for a topic after it was told to rest.
    pub(super) fn woken(&mut self, slot: usize, now: Instant) {
        let name = self.partition(slot).destination.name.clone();
        self.loaded(&name, now);
    }

    /// Takes over what became of a topic while it rested.
    fn wake(&mut self, name: &Str, now: Instant) {
        self.is_keep_due = true;
        self.mind_idle(now + self.settings.metadata_max_idle);
        let Some(mut topic) = self.topics.remove(name) else { return };
        for slot in &topic.slots {
            self.partition(*slot).rests = false;
        }
        let moved = if self.follow(name, &mut topic) { topic.slots.clone() } else { Vec::new() };
        self.topics.insert(name.clone(), topic);
        self.stir_moved(moved, now);
    }

    /// Sees to it that idle topics are looked for at that time, or before.
    fn mind_idle(&mut self, at: Instant) {
        if self.idle_look.is_none_or(|look| at < look) {
            self.idle_look = Some(at);
            self.timers.insert((at, Timer::Idle));
        }
    }

    /// Lets topics rest that were idle for long enough.
    pub(super) fn rest(&mut self, now: Instant) {
        let max_idle = self.settings.metadata_max_idle;
        self.idle_look = None;
        let mut topics = std::mem::take(&mut self.topics);
        let mut next: Option<Instant> = None;
        for (name, topic) in topics.iter_mut().filter(|(_, topic)| topic.is_kept) {
            let until = match self.last_used(topic) {
                Some(used) => used + max_idle,
                // Something is under way.
                None => now + max_idle,
            };
            if until > now {
                next = Some(next.map_or(until, |next| next.min(until)));
                continue;
            }
            topic.is_kept = false;
            for slot in &topic.slots {
                self.partition(*slot).rests = true;
            }
            self.is_keep_due = true;
            self.actions.push_back(Action::Rest(name.clone()));
        }
        self.topics = topics;
        if let Some(next) = next {
            self.mind_idle(next);
        }
    }

    /// When a topic was loaded, or a batch opened for it; `None` while it has any.
    fn last_used(&self, topic: &Topic) -> Option<Instant> {
        let partitions = topic.slots.iter().filter_map(|slot| self.partitions[*slot].as_ref());
        let mut last = topic.loaded?;
        for partition in partitions {
            if !partition.is_empty() {
                return None;
            }
            last = partition.opened.map_or(last, |opened| last.max(opened));
        }
        Some(last)
    }

    /// The topics to be kept fresh, if they are others than were told.
    pub(super) fn keep(&mut self) -> Option<Action<L>> {
        if !std::mem::take(&mut self.is_keep_due) {
            return None;
        }
        let kept = self.topics.iter().filter(|(_, topic)| topic.is_kept);
        Some(Action::Keep(kept.map(|(name, _)| name.clone()).collect()))
    }
}
