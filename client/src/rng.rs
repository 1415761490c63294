//! [`Rng`]: the client's chance, seeded, so that the same seed makes the same choices.
//!
//! SplitMix64: eight bytes of state, one multiplication chain, equidistributed. Jitter and load balancing need no more;
//! nothing secret is drawn from it.

/// A small deterministic generator.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// An own generator for one purpose, so that one part's draws do not shift another's.
    pub(crate) fn stream(seed: u64, name: &str) -> Self {
        // FNV-1a keeps the streams of different names apart; the first draw mixes the rest.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let mut rng = Self::new(seed ^ hash);
        Self::new(rng.next_u64())
    }

    pub(crate) const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 when `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        // The high half of a 128-bit product: no division, and a bias too small to matter for load balancing.
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A factor in `1 - spread ..= 1 + spread`.
    pub(crate) fn jitter(&mut self, spread: f64) -> f64 {
        let unit = self.next_u64() as f64 / u64::MAX as f64;
        1.0 - spread + 2.0 * spread * unit
    }

    /// Puts the items in a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_numbers() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));

        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
    }

    #[test]
    fn streams_of_one_seed_differ_by_name() {
        let mut draws = ["a", "b", "ab", "ba", ""].map(|name| Rng::stream(7, name).next_u64());

        draws.sort_unstable();

        assert!(draws.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut rng = Rng::new(1);
        let mut seen = [0; 7];

        (0..7_000).for_each(|_| seen[rng.below(7) as usize] += 1);

        assert!(seen.iter().all(|count| (800..1_200).contains(count)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn jitter_stays_within_its_spread() {
        let mut rng = Rng::new(1);
        let draws: Vec<f64> = (0..1_000).map(|_| rng.jitter(0.2)).collect();

        assert!(draws.iter().all(|factor| (0.8..=1.2).contains(factor)));
        assert!(draws.iter().any(|factor| *factor < 0.85) && draws.iter().any(|factor| *factor > 1.15));
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();

        Rng::new(3).shuffle(&mut items);

        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
