//! The memory that records may occupy between being sent and being settled: `buffer_memory`.
//!
//! It is counted a batch at a time, when a batch is opened and when its buffer grows, and counts the buffer as
//! allocated, with what surrounds it; so many small batches cannot take many times what the setting says. Whoever finds
//! none left waits in line: first come, first served, and a waiter that is dropped gives up its place.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// What a batch occupies besides its buffer: its cell, its entry in queues, the frame around it. Rounded up.
pub(super) const OVERHEAD: usize = 512;

/// The budget of one producer, and the buffers that it reuses.
#[derive(Debug)]
pub(super) struct Memory {
    total: usize,
    budget: Arc<Semaphore>,
    /// Buffers of whole batches. Fresh ones cost more in page faults than filling them does.
    spare: Mutex<Vec<BytesMut>>,
    /// Smaller buffers are not worth keeping.
    batch_size: usize,
}

/// A part of the budget, held for as long as a batch exists.
#[derive(Debug)]
pub(super) struct Lease {
    permit: OwnedSemaphorePermit,
}

impl From<OwnedSemaphorePermit> for Lease {
    fn from(permit: OwnedSemaphorePermit) -> Self {
        Self { permit }
    }
}

impl Lease {
    pub(super) fn len(&self) -> usize {
        self.permit.num_permits()
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.permit.merge(other.permit);
    }

    /// Takes a part out of it: `len` bytes, or all but one if there are fewer.
    pub(super) fn part(&mut self, len: usize) -> Option<Self> {
        self.permit.split(len.min(self.len().saturating_sub(1))).map(|permit| Self { permit })
    }
}

impl Memory {
    /// Spare buffers kept: enough for what one round trip turns over, little enough to forget about.
    const SPARE_BUFFERS: usize = 32;

    pub(super) fn new(total: usize, batch_size: usize) -> Self {
        let total = total.min(Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        Self { total, budget: Arc::new(Semaphore::new(total)), spare: Mutex::default(), batch_size }
    }

    /// All of the budget.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// What is left of it.
    pub(super) fn available(&self) -> usize {
        self.budget.available_permits()
    }

    /// Takes a part of the budget if it is there and nobody waits for it.
    pub(super) fn try_lease(&self, len: usize) -> Result<Lease, TryAcquireError> {
        let permits = u32::try_from(len).map_err(|_| TryAcquireError::NoPermits)?;
        self.budget.clone().try_acquire_many_owned(permits).map(|permit| Lease { permit })
    }

    /// What to wait in line at: its permits are bytes, and make a [`Lease`]. Closed with the producer.
    pub(super) fn line(&self) -> Arc<Semaphore> {
        self.budget.clone()
    }

    /// Fails everybody who waits, now and later.
    pub(super) fn close(&self) {
        self.budget.close();
    }

    /// A buffer of at least `capacity`, if a spare one is left.
    pub(super) fn spare(&self) -> Option<BytesMut> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps the buffer of a settled batch for another one.
    pub(super) fn recycle(&self, buffer: BytesMut) {
        // Neither small ones, which would grow again, nor those of an outsized record.
        if (self.batch_size..=2 * self.batch_size).contains(&buffer.capacity()) {
            let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < Self::SPARE_BUFFERS {
                spare.push(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_given_back_in_parts_and_as_a_whole() {
        let memory = Memory::new(1_000, 100);
        let mut lease = memory.try_lease(600).expect("there is room");
        assert!(memory.try_lease(401).is_err());

        let part = lease.part(200).expect("there is enough");
        assert_eq!((part.len(), lease.len(), memory.available()), (200, 400, 400));
        drop(part);
        lease.merge(memory.try_lease(600).expect("there is room"));
        assert_eq!((lease.len(), memory.available()), (1_000, 0));

        drop(lease);
        assert_eq!(memory.available(), 1_000);
    }

    #[test]
    fn only_buffers_of_whole_batches_are_kept_and_not_too_many() {
        let memory = Memory::new(1_000, 128);
        memory.recycle(BytesMut::with_capacity(64));
        memory.recycle(BytesMut::with_capacity(1_000));
        assert!(memory.spare().is_none());

        (0..100).for_each(|_| memory.recycle(BytesMut::with_capacity(128)));

        let kept = std::iter::from_fn(|| memory.spare()).count();
        assert_eq!(kept, Memory::SPARE_BUFFERS);
    }

    /// BR-051: a waiter that gives up passes its place on.
    #[tokio::test]
    async fn waiters_are_served_in_order_and_one_that_leaves_is_skipped() {
        let memory = Memory::new(100, 10);
        let all = memory.try_lease(100).expect("there is room");
        let mut first = tokio::spawn(memory.line().acquire_many_owned(80));
        let mut second = tokio::spawn(memory.line().acquire_many_owned(10));
        tokio::task::yield_now().await;

        drop(all);
        let first = (&mut first).await.expect("not aborted").expect("not closed");
        assert!((&mut second).await.expect("not aborted").is_ok());
        assert!(memory.try_lease(20).is_ok());
        drop(first);

        assert_eq!(memory.available(), 100);
    }
}
