//! LZ4 blocks made with patience: longer matches than a table of last places finds.
//!
//! ```text
//!     sequence: token u8 (literals high, match length less 4 low) │ more literals… │ literals │
//!               distance u16 │ more match length…           15 goes on in bytes, each adding up to 255
//! ```
//!
//! Places where the same four bytes begin form a chain, newest first, and the level says how far along it is looked.
//! The format wants the last five bytes of a block as literals, and no match to begin in its last twelve.

/// The length of the shortest match.
const LEAST_MATCH: usize = 4;
/// No match begins within this many bytes of a block's end.
const NO_START: usize = 12;
/// No match reaches into this many last bytes.
const LAST_LITERALS: usize = 5;
const HASH_BITS: u32 = 15;
/// Places are kept in 16 bits, one up, so that 0 means none.
const LONGEST_BLOCK: usize = 1 << 16;

/// The chains of one block.
pub(super) struct Chains {
    /// How many places of a chain are looked at.
    attempts: usize,
    /// By hash, the newest place.
    heads: Vec<u16>,
    /// By place, the one before it with the same hash.
    links: Vec<u16>,
    /// Places in front of this one are in the chains.
    linked: usize,
}

#[derive(Clone, Copy)]
struct Match {
    start: usize,
    length: usize,
    distance: usize,
}

impl Chains {
    pub(super) fn new(attempts: usize) -> Self {
        Self { attempts, heads: vec![0; 1 << HASH_BITS], links: vec![0; LONGEST_BLOCK], linked: 0 }
    }

    /// Compresses a block of at most 64 KiB to the end of `out`.
    pub(super) fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) {
        assert!(block.len() <= LONGEST_BLOCK, "a place in a block has 16 bits");
        self.heads.fill(0);
        self.linked = 0;
        let (mut anchor, mut at) = (0, 0);
        while at + NO_START <= block.len() {
            let Some(mut found) = self.longest(block, at, LEAST_MATCH - 1) else {
                at += 1;
                continue;
            };
            // A longer match one byte later is worth that byte as a literal.
            while found.start + 1 + NO_START <= block.len()
                && let Some(longer) = self.longest(block, found.start + 1, found.length + 1)
            {
                found = longer;
            }
            write(out, &block[anchor..found.start], Some(found));
            at = found.start + found.length;
            anchor = at;
        }
        write(out, &block[anchor..], None);
    }

    /// The longest match at `start` that is longer than `floor`.
    fn longest(&mut self, block: &[u8], start: usize, floor: usize) -> Option<Match> {
        self.link_up_to(block, start);
        let here = &block[start..block.len() - LAST_LITERALS];
        let mut best = Match { start, length: floor, distance: 0 };
        let mut place = self.heads[hash(block, start)];
        for _ in 0..self.attempts {
            if place == 0 || best.length >= here.len() {
                break;
            }
            let candidate = usize::from(place) - 1;
            let there = &block[candidate..];
            // What does not match where the best one ends is no longer than it.
            if there[best.length] == here[best.length] {
                let length = common(here, there);
                if length > best.length {
                    best = Match { start, length, distance: start - candidate };
                }
            }
            place = self.links[candidate];
        }
        (best.distance > 0).then_some(best)
    }

    fn link_up_to(&mut self, block: &[u8], end: usize) {
        for place in self.linked..end {
            let head = &mut self.heads[hash(block, place)];
            self.links[place] = *head;
            *head = place as u16 + 1;
        }
        self.linked = self.linked.max(end);
    }
}

/// A hash of the four bytes at `place`.
fn hash(block: &[u8], place: usize) -> usize {
    let word = block[place..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    (word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// How many bytes are the same, from the start.
fn common(a: &[u8], b: &[u8]) -> usize {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    for (index, (a, b)) in a_words.iter().zip(b_words).enumerate() {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return index * 8 + difference.trailing_zeros() as usize / 8;
        }
    }
    // `b` is the longer one: it begins earlier in the same block.
    let same = a.len() - a_rest.len();
    same + a_rest.iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

/// Writes a sequence; the last one of a block has no match.
fn write(out: &mut Vec<u8>, literals: &[u8], found: Option<Match>) {
    let matched = found.map_or(0, |found| found.length - LEAST_MATCH);
    let token = at_most_15(literals.len()) << 4 | at_most_15(matched);
    out.push(token);
    write_rest(out, literals.len());
    out.extend_from_slice(literals);
    if let Some(found) = found {
        // Inside a block of 64 KiB it fits.
        out.extend_from_slice(&(found.distance as u16).to_le_bytes());
        write_rest(out, matched);
    }
}

fn at_most_15(length: usize) -> u8 {
    length.min(15) as u8
}

/// What a length has beyond the 15 of the token.
fn write_rest(out: &mut Vec<u8>, length: usize) {
    let Some(mut rest) = length.checked_sub(15) else { return };
    while rest >= 255 {
        out.push(255);
        rest -= 255;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use lz4_flex::block::decompress;

    use super::*;

    fn compress(attempts: usize, block: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut chains = Chains::new(attempts);
        // Twice: what is left of another block must not matter.
        chains.compress(&[3; 5_000], &mut out);
        out.clear();
        chains.compress(block, &mut out);
        out
    }

    fn text(length: usize) -> Vec<u8> {
        (0..)
            .flat_map(|n: u32| format!("{} leader epoch, ", n.wrapping_mul(n) % 977).into_bytes())
            .take(length)
            .collect()
    }

    #[test]
    fn an_independent_decoder_reads_blocks_of_every_length() {
        let noise: Vec<u8> = (0..700_u32).map(|n| (n.wrapping_mul(0x9e37_79b1) >> 13) as u8 ^ n as u8).collect();
        for length in (0..300).chain([511, 512, 700]) {
            for block in [&text(length)[..], &noise[..length], &vec![0; length]] {
                for attempts in [1, 16] {
                    let compressed = compress(attempts, block);

                    assert_eq!(decompress(&compressed, length).expect("a block"), block, "{length}");
                }
            }
        }
    }

    #[test]
    fn the_longest_block_is_read() {
        for block in [text(LONGEST_BLOCK), vec![7; LONGEST_BLOCK]] {
            let compressed = compress(256, &block);

            assert_eq!(decompress(&compressed, LONGEST_BLOCK).expect("a block"), block);
        }
    }

    #[test]
    fn patience_pays() {
        let block = text(LONGEST_BLOCK);
        let sizes = [1, 4, 64, 1024].map(|attempts| compress(attempts, &block).len());

        assert!(sizes.is_sorted_by(|less, more| less > more), "{sizes:?}");
    }

    /// The rules that decoders rely on to copy in larger pieces than they should.
    #[test]
    fn a_block_ends_in_literals() {
        for length in 13..60 {
            let compressed = compress(16, &vec![9; length]);

            assert_eq!(compressed[compressed.len() - 6..], [0x50, 9, 9, 9, 9, 9], "{length}");
        }
        assert_eq!(compress(16, &[9; 12]), [&[0xc0][..], &[9; 12]].concat());
    }
}
