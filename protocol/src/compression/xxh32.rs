//! xxHash of 32 bits with seed 0: the checksum inside LZ4 frames.

const PRIMES: [u32; 5] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1];

/// Returns the hash of `bytes`.
pub(super) fn xxh32(bytes: &[u8]) -> u32 {
    let (stripes, rest) = bytes.as_chunks::<16>();
    let mut hash = if stripes.is_empty() {
        PRIMES[4]
    } else {
        let mut lanes = [PRIMES[0].wrapping_add(PRIMES[1]), PRIMES[1], 0, 0_u32.wrapping_sub(PRIMES[0])];
        for stripe in stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<4>().0) {
                let mixed = lane.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(PRIMES[1]));
                *lane = mixed.rotate_left(13).wrapping_mul(PRIMES[0]);
            }
        }
        lanes.into_iter().zip([1, 7, 12, 18]).fold(0, |sum: u32, (lane, turn)| sum.wrapping_add(lane.rotate_left(turn)))
    };
    // The length counts modulo 2^32.
    hash = hash.wrapping_add(bytes.len() as u32);
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        let mixed = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(PRIMES[2]));
        hash = mixed.rotate_left(17).wrapping_mul(PRIMES[3]);
    }
    for &byte in rest {
        hash = hash.wrapping_add(u32::from(byte).wrapping_mul(PRIMES[4])).rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    hash = (hash ^ hash >> 15).wrapping_mul(PRIMES[1]);
    hash = (hash ^ hash >> 13).wrapping_mul(PRIMES[2]);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::xxh32;

    #[test]
    fn known_hashes() {
        assert_eq!(xxh32(b""), 0x02cc_5d05);
        assert_eq!(xxh32(b"a"), 0x550d_7456);
        assert_eq!(xxh32(b"abc"), 0x32d1_53ff);
        assert_eq!(xxh32(b"Nobody inspects the spammish repetition"), 0xe229_3b2f);
    }
}
