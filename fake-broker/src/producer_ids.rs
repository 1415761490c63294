//! Who hands out producer ids and epochs: InitProducerId without the transactions.
//!
//! A broker takes ids from the controller in blocks of a thousand, so the ids of two brokers differ by their blocks. A
//! producer without a transactional id gets a new id each time. One with a transactional id keeps its id, and each
//! initialisation raises the epoch, which fences whoever used the last one; the rules are those of Kafka's
//! `TransactionCoordinator` while no transaction is open.

use std::collections::BTreeMap;

use krafka_protocol::{ErrorCode, Str};

/// How many ids a broker takes at once.
const BLOCK: i64 = 1000;
/// `transaction.max.timeout.ms`.
const MAX_TRANSACTION_TIMEOUT_MS: i32 = 15 * 60 * 1000;
/// The last epoch is kept for fencing, so one before it the id is used up.
const LAST_USABLE_EPOCH: i16 = i16::MAX - 1;

/// The ids of the whole cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProducerIds {
    next_block: i64,
    /// The next id of each node, and the end of its block.
    blocks: BTreeMap<i32, (i64, i64)>,
    transactional: BTreeMap<Str, Identity>,
}

/// A producer id with an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdAndEpoch {
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
}

#[derive(Clone, Debug)]
struct Identity {
    current: IdAndEpoch,
    /// The epoch before the current one, if the producer itself raised it: it may ask again.
    last_epoch: i16,
    /// The id before the current one, which was used up.
    previous_id: i64,
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

    /// The id and epoch with which a transactional producer goes on; `expected` is what it believes to have.
    ///
    /// # Errors
    ///
    /// `INVALID_REQUEST` for an empty id, `INVALID_TRANSACTION_TIMEOUT`, and `PRODUCER_FENCED` if what the producer
    /// believes to have has since been given to another.
    pub(crate) fn initialise(
        &mut self,
        node: i32,
        transactional_id: &Str,
        timeout_ms: i32,
        expected: Option<IdAndEpoch>,
    ) -> Result<IdAndEpoch, ErrorCode> {
        if transactional_id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        if !(1..=MAX_TRANSACTION_TIMEOUT_MS).contains(&timeout_ms) {
            return Err(ErrorCode::INVALID_TRANSACTION_TIMEOUT);
        }
        let Some(identity) = self.transactional.get(transactional_id) else {
            let current = self.allocate(node);
            self.transactional.insert(transactional_id.clone(), Identity { current, last_epoch: -1, previous_id: -1 });
            return Ok(current);
        };
        let IdAndEpoch { producer_id, producer_epoch } = identity.current;
        if let Some(expected) = expected {
            let repeats_a_rotation =
                expected.producer_id == identity.previous_id && expected.producer_epoch >= LAST_USABLE_EPOCH;
            if expected.producer_id != producer_id && !repeats_a_rotation {
                return Err(ErrorCode::PRODUCER_FENCED);
            }
        }
        let expected_epoch = expected.map(|e| e.producer_epoch);
        if producer_epoch >= LAST_USABLE_EPOCH && expected_epoch.is_none_or(|e| e == producer_epoch) {
            let current = self.allocate(node);
            let last_epoch = if expected.is_some() { producer_epoch } else { -1 };
            let rotated = Identity { current, last_epoch, previous_id: producer_id };
            self.transactional.insert(transactional_id.clone(), rotated);
            return Ok(current);
        }
        let last_epoch = identity.last_epoch;
        let (next, last) = match expected_epoch {
            None => (producer_epoch + 1, -1),
            Some(epoch) if epoch == producer_epoch => (producer_epoch + 1, producer_epoch),
            // It did not see the answer to its last request.
            Some(epoch) if epoch == last_epoch => (producer_epoch, last_epoch),
            Some(_) => return Err(ErrorCode::PRODUCER_FENCED),
        };
        let current = IdAndEpoch { producer_id, producer_epoch: next };
        let previous_id = identity.previous_id;
        self.transactional.insert(transactional_id.clone(), Identity { current, last_epoch: last, previous_id });
        Ok(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i32 = 60_000;

    fn id(producer_id: i64, producer_epoch: i16) -> IdAndEpoch {
        IdAndEpoch { producer_id, producer_epoch }
    }

    #[test]
    fn nodes_draw_from_blocks_of_their_own() {
        let mut ids = ProducerIds::default();

        assert_eq!(ids.allocate(1), id(0, 0));
        assert_eq!(ids.allocate(2), id(1000, 0));
        assert_eq!(ids.allocate(1), id(1, 0));
        for _ in 2..1000 {
            ids.allocate(1);
        }
        assert_eq!(ids.allocate(1), id(2000, 0));
    }

    #[test]
    fn transactional_id_keeps_its_producer_id_and_raises_the_epoch() {
        let mut ids = ProducerIds::default();
        let name = Str::from("t");

        assert_eq!(ids.initialise(1, &name, MINUTE, None), Ok(id(0, 0)));
        assert_eq!(ids.initialise(1, &name, MINUTE, None), Ok(id(0, 1)));
        assert_eq!(ids.initialise(1, &name, MINUTE, Some(id(0, 1))), Ok(id(0, 2)));
        assert_eq!(ids.initialise(1, &name, MINUTE, Some(id(0, 1))), Ok(id(0, 2)), "repeated");
        assert_eq!(ids.initialise(1, &name, MINUTE, None), Ok(id(0, 3)));
        assert_eq!(ids.initialise(1, &name, MINUTE, Some(id(0, 2))), Err(ErrorCode::PRODUCER_FENCED));
        assert_eq!(ids.initialise(1, &name, MINUTE, Some(id(9, 3))), Err(ErrorCode::PRODUCER_FENCED));
    }

    #[test]
    fn used_up_epochs_rotate_the_producer_id() {
        let mut ids = ProducerIds::default();
        let name = Str::from("t");
        ids.initialise(1, &name, MINUTE, None).expect("the first");
        for _ in 0..LAST_USABLE_EPOCH {
            ids.initialise(1, &name, MINUTE, None).expect("the next epoch");
        }

        let worn = id(0, LAST_USABLE_EPOCH);
        assert_eq!(ids.initialise(1, &name, MINUTE, Some(worn)), Ok(id(1, 0)));
        assert_eq!(ids.initialise(1, &name, MINUTE, Some(worn)), Ok(id(1, 0)), "repeated");
    }

    #[test]
    fn bad_ids_and_timeouts_are_refused() {
        let mut ids = ProducerIds::default();

        assert_eq!(ids.initialise(1, &Str::from(""), MINUTE, None), Err(ErrorCode::INVALID_REQUEST));
        for timeout in [0, -1, MAX_TRANSACTION_TIMEOUT_MS + 1] {
            let refused = ids.initialise(1, &Str::from("t"), timeout, None);
            assert_eq!(refused, Err(ErrorCode::INVALID_TRANSACTION_TIMEOUT));
        }
    }
}
