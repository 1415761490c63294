//! Who hands out producer ids.
//!
//! A broker takes ids from the controller in blocks of a thousand, so the ids of two brokers differ by their blocks. A
//! producer without a transactional id gets a new id each time; one with a transactional id keeps its id for as long
//! as it has epochs (`transactions/`).

use std::collections::BTreeMap;

/// How many ids a broker takes at once.
const BLOCK: i64 = 1000;

/// The ids of the whole cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProducerIds {
    next_block: i64,
    /// The next id of each node, and the end of its block.
    blocks: BTreeMap<i32, (i64, i64)>,
}

/// A producer id with an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdAndEpoch {
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
}

impl ProducerIds {
    /// A new id, from the block of a node.
    pub(crate) fn allocate(&mut self, node: i32) -> IdAndEpoch {
        let (next, end) = self.blocks.entry(node).or_default();
        if next == end {
            (*next, *end) = (self.next_block, self.next_block + BLOCK);
            self.next_block += BLOCK;
        }
        let producer_id = *next;
        *next += 1;
        IdAndEpoch { producer_id, producer_epoch: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_draw_from_blocks_of_their_own() {
        let mut ids = ProducerIds::default();
        let id = |producer_id| IdAndEpoch { producer_id, producer_epoch: 0 };

        assert_eq!(ids.allocate(1), id(0));
        assert_eq!(ids.allocate(2), id(1000));
        assert_eq!(ids.allocate(1), id(1));
        for _ in 2..1000 {
            ids.allocate(1);
        }
        assert_eq!(ids.allocate(1), id(2000));
    }
}
