//! [`Backoff`]: how long to wait before trying again.

use std::time::Duration;

use crate::rng::Rng;

/// How much a delay is spread in both directions, so that clients that failed together do not return together.
const JITTER: f64 = 0.2;

/// Delays that double from `base` to `cap`, each with ±20 % jitter, as the Java client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub(crate) base: Duration,
    pub(crate) cap: Duration,
}

impl Backoff {
    pub(crate) const fn new(base: Duration, cap: Duration) -> Self {
        Self { base, cap }
    }

    /// The delay after the `attempt`-th failure in a row, counted from 0.
    pub(crate) fn delay(&self, attempt: u32, rng: &mut Rng) -> Duration {
        let doubled = self.base.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
        doubled.min(self.cap).mul_f64(rng.jitter(JITTER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

    fn middle(attempt: u32) -> u128 {
        let mut rng = Rng::new(1);
        let draws: u128 = (0..1_000).map(|_| BACKOFF.delay(attempt, &mut rng).as_micros()).sum();
        draws / 1_000_000
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let middles: Vec<_> = [0, 1, 2, 3, 4, 5, 6].map(middle).to_vec();

        for (middle, expected) in middles.iter().zip([50, 100, 200, 400, 800, 1_000, 1_000]) {
            assert!(middle.abs_diff(expected) <= expected / 50, "{middles:?}");
        }
    }

    #[test]
    fn a_delay_is_spread_by_a_fifth() {
        let mut rng = Rng::new(1);
        let draws: Vec<_> = (0..1_000).map(|_| BACKOFF.delay(0, &mut rng)).collect();

        assert!(draws.iter().all(|d| (40..=60).contains(&d.as_millis())));
        assert!(draws.iter().any(|d| d.as_millis() < 43) && draws.iter().any(|d| d.as_millis() > 57));
    }

    #[test]
    fn any_number_of_attempts_stays_at_the_cap() {
        let delay = BACKOFF.delay(u32::MAX, &mut Rng::new(1));

        assert!((800..=1_200).contains(&delay.as_millis()));
    }
}
