//! [`Histogram`]: how long things took, in buckets that grow with the time; and [`Recorder`], which fills one.
//!
//! Each power of two, in microseconds, is cut into eight equal parts: a quantile is an eighth too high at most. To note
//! a time costs three atomic additions and no allocation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The parts of a power of two, as a power of two.
const PART_BITS: u32 = 3;

const PARTS: usize = 1 << PART_BITS;

/// Up to 2^33 microseconds, more than two hours. What takes longer counts as that.
const BUCKETS: usize = 31 * PARTS;

/// The bucket of a time. Bounds belong to the bucket below them, as Prometheus has it.
const fn index(micros: u64) -> usize {
    let micros = micros.saturating_sub(1);
    if micros < PARTS as u64 {
        return micros as usize;
    }
    let exponent = micros.ilog2();
    let part = (micros >> (exponent - PART_BITS)) as usize % PARTS;
    let index = (exponent - PART_BITS + 1) as usize * PARTS + part;
    if index < BUCKETS { index } else { BUCKETS - 1 }
}

/// The longest time of a bucket, in microseconds.
const fn bound(index: usize) -> u64 {
    if index < PARTS {
        return index as u64 + 1;
    }
    let exponent = index / PARTS - 1;
    ((PARTS + index % PARTS + 1) as u64) << exponent
}

/// Notes times, from any thread.
pub(crate) struct Recorder {
    counts: [AtomicU64; BUCKETS],
    sum: AtomicU64,
    max: AtomicU64,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum: AtomicU64::new(0), max: AtomicU64::new(0) }
    }
}

impl Recorder {
    pub(crate) fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.counts[index(micros)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(micros, Ordering::Relaxed);
        self.max.fetch_max(micros, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Histogram {
        let last = self.counts.iter().rposition(|count| count.load(Ordering::Relaxed) > 0);
        let used = &self.counts[..last.map_or(0, |last| last + 1)];
        Histogram {
            counts: used.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: Duration::from_micros(self.sum.load(Ordering::Relaxed)),
            max: Duration::from_micros(self.max.load(Ordering::Relaxed)),
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.read().fmt(f)
    }
}

/// How long things took, at the moment when it was read.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> krafka::Result<()> {
/// # let fake = krafka::testing::FakeCluster::builder().start().await.expect("ports are free");
/// # let kafka = krafka::Kafka::builder(fake.bootstrap()).connect().await?;
/// let metrics = kafka.metrics();
/// let metadata = &metrics.requests["Metadata"].time;
/// println!("{} requests, 99 % within {:?}", metadata.count(), metadata.quantile(0.99));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Without the empty ones at the end.
    counts: Box<[u64]>,
    sum: Duration,
    max: Duration,
}

impl Histogram {
    /// Returns how many times there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns all times together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the longest time.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Returns the mean, or zero if there are no times.
    pub fn mean(&self) -> Duration {
        // Microseconds, for a Duration is divided by 32 bits at most.
        let micros = self.sum.as_micros().checked_div(u128::from(self.count())).unwrap_or(0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Returns a time that this part of all times does not exceed: 0.5 for the median, 0.99 for the 99th percentile. It
    /// may be an eighth too high, and is zero if there are no times.
    pub fn quantile(&self, part: f64) -> Duration {
        let count = self.count();
        // As a float may not hold it exactly, the rank is kept in its range.
        let rank = ((part * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (index, within) in self.counts.iter().enumerate() {
            seen += within;
            if seen >= rank {
                return Duration::from_micros(bound(index)).min(self.max);
            }
        }
        Duration::ZERO
    }

    /// How many times do not exceed 2^`exponent` microseconds. Exact, for the buckets end there.
    pub(super) fn within(&self, exponent: u32) -> u64 {
        let end = index(1 << exponent) + 1;
        self.counts[..end.min(self.counts.len())].iter().sum()
    }
}

/// What a reader wants to know, and not a thousand counts.
impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("mean", &self.mean())
            .field("median", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(times: &[u64]) -> Histogram {
        let recorder = Recorder::default();
        times.iter().for_each(|time| recorder.record(Duration::from_micros(*time)));
        recorder.read()
    }

    #[test]
    fn buckets_touch_and_are_an_eighth_wide() {
        for index in 0..BUCKETS - 1 {
            let (end, next) = (bound(index), bound(index + 1));
            assert_eq!((super::index(end), super::index(end + 1)), (index, index + 1), "{end}");
            assert!(next - end <= (end / PARTS as u64).max(1), "{end} to {next}");
        }
        assert_eq!((index(0), index(u64::MAX)), (0, BUCKETS - 1));
        assert_eq!(bound(BUCKETS - 1), 1 << 33);
    }

    #[test]
    fn quantiles_are_an_eighth_too_high_at_most() {
        let times: Vec<u64> = (1..=10_000).map(|n| n * 7).collect();
        let histogram = micros(&times);

        for part in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = (part * 70_000.0) as u128;
            let said = histogram.quantile(part).as_micros();
            assert!((exact..=exact * 9 / 8 + 1).contains(&said), "{part}: {said}, not {exact}");
        }
        assert_eq!((histogram.count(), histogram.max()), (10_000, Duration::from_millis(70)));
        assert_eq!(histogram.mean(), Duration::from_micros(35_003));
        assert_eq!(histogram.sum(), Duration::from_micros(7 * 10_000 * 10_001 / 2));
    }

    #[test]
    fn what_is_empty_or_endless_has_its_figures() {
        let empty = micros(&[]);
        assert_eq!((empty.count(), empty.mean(), empty.quantile(0.5)), (0, Duration::ZERO, Duration::ZERO));

        let endless = Recorder::default();
        endless.record(Duration::MAX);
        assert_eq!(endless.read().quantile(1.0), Duration::from_micros(1 << 33));
    }

    #[test]
    fn a_histogram_is_shown_in_a_line() {
        let shown = format!("{:?}", micros(&[1_000, 1_000, 4_000]));

        assert_eq!(shown, "Histogram { count: 3, mean: 2ms, median: 1.024ms, p99: 4ms, max: 4ms }");
    }

    #[test]
    fn powers_of_two_are_counted_exactly() {
        let histogram = micros(&[1, 1_024, 1_025, 2_048, 1 << 20]);

        assert_eq!([0, 9, 10, 11, 20].map(|exponent| histogram.within(exponent)), [1, 1, 2, 4, 5]);
    }
}
