//! [`Nonces`]: what makes each SCRAM exchange unlike all others.

use std::sync::{Mutex, PoisonError};

use crate::rng::Rng;

/// Draws nonces: from the operating system, or, in simulations, from the seed.
pub(crate) enum Nonces {
    System,
    Seeded(Mutex<Rng>),
}

/// The bytes of a nonce, each two characters on the wire.
const LEN: usize = 16;

impl Nonces {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::Seeded(Mutex::new(Rng::stream(seed, "nonces")))
    }

    /// A nonce of printable characters without a comma.
    pub(crate) fn draw(&self) -> String {
        let mut bytes = [0; LEN];
        match self {
            Self::System => getrandom::fill(&mut bytes).expect("the operating system has random bytes"),
            Self::Seeded(rng) => {
                let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.as_chunks_mut().0.iter_mut().for_each(|eight| *eight = rng.next_u64().to_be_bytes());
            }
        }
        format!("{:032x}", u128::from_be_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_nonce_comes_twice() {
        for nonces in [Nonces::System, Nonces::seeded(1)] {
            let drawn: std::collections::BTreeSet<_> = (0..1000).map(|_| nonces.draw()).collect();

            assert_eq!(drawn.len(), 1000);
            assert!(drawn.iter().all(|nonce| nonce.len() == 2 * LEN));
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_nonces() {
        let draw = |seed| Nonces::seeded(seed).draw();

        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
