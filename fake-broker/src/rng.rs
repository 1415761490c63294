//! The cluster's chance: a small generator (SplitMix64), seeded once, with one stream for each use.
//!
//! A new draw in one stream does not shift the others, so that a change in one place keeps old seeds meaningful.

use krafka_protocol::Uuid;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    /// The stream called `name` of a seed.
    pub(crate) fn stream(seed: u64, name: &str) -> Self {
        // FNV-1a spreads the name over the state; SplitMix64 does the rest.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self { state: seed ^ hash }
    }

    /// The next number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product is free of the modulo's bias for any bound that occurs here.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether something happens that has this probability.
    pub(crate) fn hits(&mut self, probability: f64) -> bool {
        (self.below(1 << 32) as f64) < probability * f64::from(u32::MAX)
    }

    /// A random (version 4) id, never Kafka's reserved ones.
    pub(crate) fn uuid(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next_u64().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next_u64().to_be_bytes());
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        // Kafka avoids ids whose text starts with a dash, because tools would take it for an option.
        if bytes[0] >> 2 == 62 {
            bytes[0] &= 0x7f;
        }
        Uuid(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draws =
            |name| (0..4).map(|_| 0).scan(Rng::stream(7, name), |rng, _| Some(rng.next_u64())).collect::<Vec<_>>();

        assert_eq!(draws("topics"), draws("topics"));
        assert_ne!(draws("topics"), draws("sessions"));
    }

    #[test]
    fn below_stays_below() {
        let mut rng = Rng::stream(1, "below");

        assert!((0..1000).all(|_| rng.below(3) < 3));
    }
}
