//! How much somebody has used of late: a rate over ten seconds and a bit, and a bucket that fills with time.
//!
//! Kafka's defaults of `quota.window.num` and `quota.window.size.seconds` hold, and those of
//! `controller.quota.window.num` and `controller.quota.window.size.seconds`: eleven windows of a second.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(1);
const WINDOWS: u32 = 11;

/// For how many seconds a limit may be used up in one go.
pub(crate) const BURST_SECONDS: f64 = (WINDOWS - 1) as f64;

/// What was used in each of the last windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rate {
    windows: VecDeque<(Instant, f64)>,
}

impl Rate {
    /// Counts an amount, and says for how long its user must wait for the rate to be within the limit.
    pub(crate) fn record(&mut self, amount: f64, limit: f64, now: Instant) -> Duration {
        match self.windows.back_mut() {
            Some((begun, sum)) if now < *begun + WINDOW => *sum += amount,
            _ => self.windows.push_back((now, amount)),
        }
        self.wait(limit, now)
    }

    /// Takes back what was counted last.
    pub(crate) fn unrecord(&mut self, amount: f64) {
        if let Some((_, sum)) = self.windows.back_mut() {
            *sum -= amount;
        }
    }

    /// The part by which the rate is too high, of the time that it was measured in.
    fn wait(&mut self, limit: f64, now: Instant) -> Duration {
        while self.windows.front().is_some_and(|(begun, _)| *begun + WINDOW * WINDOWS <= now) {
            self.windows.pop_front();
        }
        let Some((first, _)) = self.windows.front() else { return Duration::ZERO };
        // Ten whole windows count even where they have not passed yet, so that a first burst is no offence.
        let passed = now.duration_since(*first);
        let whole = u32::try_from(passed.as_nanos() / WINDOW.as_nanos()).unwrap_or(WINDOWS).min(WINDOWS - 1);
        let measured = (passed + WINDOW * (WINDOWS - 1 - whole)).as_secs_f64();
        let rate = self.windows.iter().map(|(_, sum)| sum).sum::<f64>() / measured;
        if rate <= limit {
            return Duration::ZERO;
        }
        Duration::from_millis(((rate - limit) / limit * measured * 1000.0).round() as u64)
    }
}

/// What may be used at once, filled up with time: it may be overdrawn, but who has overdrawn it must wait.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bucket {
    credit: f64,
    filled: Instant,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(limit: f64, now: Instant) -> Self {
        Self { credit: limit * f64::from(WINDOWS), filled: now }
    }

    /// Takes an amount, if nobody has to wait; else says for how long. Who is lenient takes it in any case.
    pub(crate) fn take(&mut self, amount: f64, limit: f64, is_strict: bool, now: Instant) -> Result<(), Duration> {
        let passed = now.duration_since(self.filled).as_secs_f64();
        self.credit = (self.credit + passed * limit).min(limit * f64::from(WINDOWS));
        self.filled = now;
        if self.credit < 0.0 && is_strict {
            return Err(self.wait(limit));
        }
        self.credit -= amount;
        if self.credit < 0.0 && !is_strict { Err(self.wait(limit)) } else { Ok(()) }
    }

    fn wait(&self, limit: f64) -> Duration {
        Duration::from_millis((-self.credit / limit * 1000.0).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
    fn some_time() -> Instant {
        Instant::now()
    }

    #[test]
    fn ten_seconds_worth_are_no_offence() {
        let now = some_time();
        let mut rate = Rate::default();

        assert_eq!(rate.record(1000.0, 100.0, now), Duration::ZERO);
        assert_eq!(rate.record(100.0, 100.0, now), Duration::from_secs(1));
        rate.unrecord(100.0);
        assert_eq!(rate.record(0.0, 100.0, now), Duration::ZERO);
    }

    #[test]
    fn windows_are_forgotten() {
        let now = some_time();
        let mut rate = Rate::default();
        rate.record(1000.0, 100.0, now);

        assert_eq!(rate.record(100.0, 100.0, now + Duration::from_millis(10_999)), Duration::from_millis(1));
        assert_eq!(rate.record(100.0, 100.0, now + Duration::from_secs(11)), Duration::ZERO);
    }

    #[test]
    fn bucket_is_overdrawn_once_and_fills_up() {
        let now = some_time();
        let mut bucket = Bucket::new(2.0, now);

        assert_eq!(bucket.take(30.0, 2.0, true, now), Ok(()));
        assert_eq!(bucket.take(1.0, 2.0, true, now), Err(Duration::from_secs(4)));
        assert_eq!(bucket.take(1.0, 2.0, false, now), Err(Duration::from_millis(4500)));
        assert_eq!(bucket.take(1.0, 2.0, true, now + Duration::from_millis(4500)), Ok(()));
    }
}
