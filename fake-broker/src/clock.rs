//! The one clock that a running cluster reads: what drivers ask, so that the cluster itself never has to.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Tells a running fake cluster what time it is.
///
/// The default, [`TokioClock`], follows a paused runtime. A simulation whose hosts each have a runtime of their own
/// gives its own clock, because the cluster has only one time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now. Never goes back.
    fn now(&self) -> Instant;
}

/// The clock of the current tokio runtime, which may be paused.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioClock;

impl Clock for TokioClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the drivers' time comes in")]
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// Turns the cluster's time into the time of day: a time of day at one instant, and the time that passed since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    start: Instant,
    start_ms: i64,
}

impl WallClock {
    pub(crate) fn new(start: Instant, start_ms: i64) -> Self {
        Self { start, start_ms }
    }

    /// The first moment after `now` that lies `delay` and any number of `interval`s behind the start.
    pub(crate) fn next_tick(self, now: Instant, delay: Duration, interval: Duration) -> Instant {
        let first = self.start + delay;
        if now < first {
            return first;
        }
        let since = now.saturating_duration_since(first).as_nanos();
        let into_interval = since % interval.as_nanos().max(1);
        now + (interval - Duration::from_nanos(u64::try_from(into_interval).unwrap_or(0)))
    }

    /// How long the cluster has been there.
    pub(crate) fn since_start(self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }

    /// Moves the time of day.
    pub(crate) fn jump(&mut self, by_ms: i64) {
        self.start_ms = self.start_ms.saturating_add(by_ms);
    }

    /// The milliseconds since 1970 at `now`.
    pub(crate) fn millis(self, now: Instant) -> i64 {
        let elapsed = now.saturating_duration_since(self.start).as_millis();
        self.start_ms.saturating_add(i64::try_from(elapsed).unwrap_or(i64::MAX))
    }

    /// The next moment after `now` that is a multiple of `interval` after the start: when something is done again that
    /// brokers do at intervals.
    pub(crate) fn next_multiple(self, now: Instant, interval: Duration) -> Instant {
        let interval = interval.max(Duration::from_millis(1));
        let passed = now.saturating_duration_since(self.start).as_nanos() / interval.as_nanos();
        let next = u64::try_from((passed + 1) * interval.as_nanos()).unwrap_or(u64::MAX);
        self.start + Duration::from_nanos(next)
    }

    /// The time of day of the last such moment up to `now`, in milliseconds since 1970; none before the first.
    pub(crate) fn last_multiple_ms(self, now: Instant, interval: Duration) -> Option<i64> {
        let passed = now.saturating_duration_since(self.start).as_millis() / interval.as_millis().max(1);
        let millis = i64::try_from(passed * interval.as_millis()).unwrap_or(i64::MAX);
        (passed > 0).then(|| self.start_ms.saturating_add(millis))
    }
}

/// The machine's time of day, in milliseconds since 1970, for clusters that were not given one.
#[expect(clippy::disallowed_methods, reason = "the time of day comes in once, when a cluster is built")]
pub(crate) fn system_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
