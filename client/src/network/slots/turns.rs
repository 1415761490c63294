//! [`Turns`]: whose turn it is to have a connection, where there are fewer than are wanted.
//!
//! Who is refused comes again after a backoff. Without an order, whoever has a connection would keep it, as long polls
//! keep it busy, and whoever comes again in the right moment would get what another has waited for.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Key;

/// For how long a connection is had before others get their turn: long beside what it takes to make one.
pub(super) const TURN: Duration = Duration::from_secs(1);

/// Who was refused and has not come again for this long does not wait any more. Backoffs are shorter.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3);

/// Who waits beyond this has no place in the order.
const MAX_WAITING: usize = 1_000;

/// Those who were refused, in the order in which they were first, and when they came last.
#[derive(Debug, Default)]
pub(super) struct Turns {
    waiting: VecDeque<(Key, Instant)>,
}

impl Turns {
    /// How many wait.
    pub(super) fn len(&mut self, now: Instant) -> usize {
        self.waiting.retain(|(_, came)| now < *came + FORGOTTEN_AFTER);
        self.waiting.len()
    }

    /// How many have waited for longer than this one.
    pub(super) fn ahead_of(&mut self, key: &Key, now: Instant) -> usize {
        let all = self.len(now);
        self.waiting.iter().position(|(waiting, _)| waiting == key).unwrap_or(all)
    }

    /// This one was refused, and keeps the place that it has.
    pub(super) fn refused(&mut self, key: Key, now: Instant) {
        if let Some((_, came)) = self.waiting.iter_mut().find(|(waiting, _)| *waiting == key) {
            *came = now;
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back((key, now));
        }
    }

    /// This one waits no longer.
    pub(super) fn served(&mut self, key: &Key) {
        self.waiting.retain(|(waiting, _)| waiting != key);
    }
}
