//! A batch on its way: open while callers append to it, sealed when it waits for the broker.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use krafka_protocol::compression::{Compressor, Decompressor};
use krafka_protocol::records::{self, BatchBuilder, RecordsError, SealedBatch};

use super::delivery::{DeliveryHandle, Destination, Receipt, Settled};
use super::identity::{Stamp, later};
use super::memory::{Lease, OVERHEAD};
use super::record::Record;
use crate::cluster::Node;
use crate::error::KrafkaError;

/// What time it is. Asked as seldom as possible: it costs as much as appending a record.
pub(super) trait Time {
    /// For deadlines.
    fn now(&self) -> Instant;
    /// For records: milliseconds since 1970.
    fn wall_ms(&self) -> i64;
}

/// The batch of a partition that records are appended to.
#[derive(Debug)]
pub(super) struct OpenBatch {
    builder: BatchBuilder,
    receipt: Receipt,
    lease: Lease,
    number: u64,
    opened: Instant,
    clock: Clock,
}

impl OpenBatch {
    pub(super) fn new(buffer: BytesMut, receipt: Receipt, lease: Lease, number: u64, opened: Instant) -> Self {
        let builder = BatchBuilder::with_buffer(buffer);
        Self { builder, receipt, lease, number, opened, clock: Clock::new() }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The length so far, and what the next record adds.
    pub(super) fn encoded_len(&self) -> usize {
        self.builder.encoded_len()
    }

    /// What its buffer takes without growing.
    pub(super) fn capacity(&self) -> usize {
        self.builder.capacity()
    }

    /// Accounts for what the buffer will have grown to.
    pub(super) fn grow(&mut self, lease: Lease) {
        self.lease.merge(lease);
    }

    /// Appends a record. `time` is asked seldom: see [`Clock`].
    #[inline]
    pub(super) fn append(&mut self, record: &Record, time: &impl Time) -> Result<DeliveryHandle, RecordsError> {
        let timestamp = match record.timestamp_ms {
            Some(timestamp) => timestamp,
            None => self.clock.read(|| time.wall_ms()),
        };
        let index =
            self.builder.try_append(timestamp, record.key.as_deref(), record.value.as_deref(), &record.headers)?;
        Ok(self.receipt.handle(index, timestamp))
    }

    /// Closes the batch. If it cannot be compressed its records fail, and the buffer is lost.
    pub(super) fn seal(self, compressor: &mut Compressor, destination: &Arc<Destination>) -> Option<Batch> {
        let Self { builder, receipt, lease, number, opened, .. } = self;
        match builder.seal(compressor) {
            Ok(sealed) => {
                let order = Order { number, part: 0 };
                Some(Batch::new(order, destination.clone(), sealed, opened, receipt, Some(lease)))
            }
            Err(error) => {
                let message = format!("producing to {destination}: the batch could not be compressed: {error}");
                receipt.settle(Settled::Failed(KrafkaError::Compression { message: message.into() }));
                None
            }
        }
    }
}

/// The time of day, read as seldom as it can be while still telling milliseconds apart.
///
/// Where records come faster than milliseconds pass, only
/// every second, fourth … sixteenth one reads it; where they come slower, each one does.
#[derive(Debug)]
struct Clock {
    ms: i64,
    /// How many records take the last reading as it is.
    left: u32,
    step: u32,
}

impl Clock {
    const MAX_STEP: u32 = 16;

    fn new() -> Self {
        Self { ms: i64::MIN, left: 0, step: 1 }
    }

    #[inline]
    fn read(&mut self, time: impl Fn() -> i64) -> i64 {
        if self.left == 0 {
            let ms = time();
            self.step = if ms == self.ms { (2 * self.step).min(Self::MAX_STEP) } else { 1 };
            self.left = self.step;
            self.ms = ms;
        }
        self.left -= 1;
        self.ms
    }
}

/// Where a batch stands among those of its partition. The parts of a split one follow each other in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order {
    pub(super) number: u64,
    /// The index, in the batch as it was sealed, of the first record of this part.
    pub(super) part: u32,
}

/// A sealed batch: what was appended is fixed, and is sent until it is settled.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) order: Order,
    pub(super) destination: Arc<Destination>,
    /// When its first record was appended: the delivery timeout runs from here.
    pub(super) created: Instant,
    /// How often it was sent.
    pub(super) attempts: u32,
    /// Whether some attempt may have reached the log.
    pub(super) possibly_written: bool,
    /// Why the last attempt failed.
    pub(super) last_error: Option<KrafkaError>,
    pub(super) stamp: Option<Stamp>,
    sealed: SealedBatch,
    /// `None` once its records have their answer, as when it expired in flight.
    receipt: Option<Receipt>,
    lease: Option<Lease>,
}

impl Batch {
    fn new(
        order: Order,
        destination: Arc<Destination>,
        sealed: SealedBatch,
        created: Instant,
        receipt: Receipt,
        lease: Option<Lease>,
    ) -> Self {
        Self {
            order,
            destination,
            created,
            attempts: 0,
            possibly_written: false,
            last_error: None,
            stamp: None,
            sealed,
            receipt: Some(receipt),
            lease,
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.sealed.count().unsigned_abs()
    }

    /// The length on the wire.
    pub(super) fn len(&self) -> usize {
        self.sealed.len()
    }

    /// Takes the duty to answer its records, if they have no answer yet.
    pub(super) fn take_receipt(&mut self) -> Option<Receipt> {
        self.receipt.take()
    }

    /// It goes to this broker.
    pub(super) fn sent(&mut self, client_id: &str, node: &Node) {
        let records = self.count();
        if let Some(receipt) = &mut self.receipt {
            receipt.sent(client_id, node, records);
        }
    }

    /// Whether its records have their answer.
    pub(super) fn is_settled(&self) -> bool {
        self.receipt.is_none()
    }

    /// Gives it its place in the producer's sequence.
    pub(super) fn stamp(&mut self, stamp: Stamp) {
        self.stamp = Some(stamp);
        self.sealed.stamp(records::Stamp {
            producer_id: stamp.producer.id,
            producer_epoch: stamp.producer.epoch,
            base_sequence: stamp.base_sequence,
            transactional: false,
        });
    }

    /// The bytes to send: the same ones each time, but for a new stamp.
    pub(super) fn bytes(&mut self) -> Bytes {
        self.sealed.bytes()
    }

    /// Makes smaller batches of it, which take its place, its sequence numbers and its age.
    ///
    /// Half the size is tried, and half of that the next time: the limit that it broke is the broker's, after
    /// compression, and is not told.
    ///
    /// # Errors
    ///
    /// If its bytes cannot be read back; then it is as it was.
    pub(super) fn split(
        &mut self,
        compressor: &mut Compressor,
        decompressor: &mut Decompressor,
    ) -> Result<Vec<Self>, RecordsError> {
        let sealed = self.sealed.split(self.sealed.encoded_len() / 2, compressor, decompressor)?;
        let mut end = 0;
        let ends: Vec<u32> = sealed
            .iter()
            .map(|part| {
                end += part.count().unsigned_abs();
                end
            })
            .collect();
        let receipts: Vec<_> = match self.receipt.take() {
            Some(receipt) => receipt.split(&ends).into_iter().map(Some).collect(),
            None => ends.iter().map(|_| None).collect(),
        };
        let mut lease = self.lease.take();
        // The parts share what the whole one leased; the first one takes what is over.
        let mut leases: Vec<_> =
            sealed.iter().map(|part| lease.as_mut()?.part(part.encoded_len() + OVERHEAD)).collect();
        match (&mut leases[0], lease) {
            (Some(first), Some(rest)) => first.merge(rest),
            (first, rest) => *first = rest,
        }
        let starts = std::iter::once(0).chain(ends);
        let parts =
            sealed.into_iter().zip(receipts).zip(leases).zip(starts).map(|(((sealed, receipt), lease), start)| {
                let mut part = Self {
                    order: Order { number: self.order.number, part: self.order.part + start },
                    destination: self.destination.clone(),
                    created: self.created,
                    attempts: self.attempts,
                    possibly_written: false,
                    last_error: self.last_error.clone(),
                    stamp: None,
                    sealed,
                    receipt,
                    lease,
                };
                if let Some(stamp) = self.stamp {
                    let base_sequence = match stamp.base_sequence {
                        -1 => -1,
                        sequence => later(sequence, start),
                    };
                    part.stamp(Stamp { base_sequence, ..stamp });
                }
                part
            });
        Ok(parts.collect())
    }

    /// Gives the buffer back for another batch, unless a request still holds it.
    pub(super) fn into_buffer(self) -> Option<BytesMut> {
        self.sealed.into_buffer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_stream_reads_the_clock_for_each_record() {
        let mut clock = Clock::new();

        let read: Vec<_> = (0..20).map(|ms| clock.read(|| ms)).collect();

        assert_eq!(read, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_fast_stream_reads_it_for_one_in_sixteen() {
        let (mut clock, readings) = (Clock::new(), std::cell::Cell::new(0));

        for _ in 0..1_600 {
            assert_eq!(
                clock.read(|| {
                    readings.set(readings.get() + 1);
                    7
                }),
                7
            );
        }

        assert!((100..110).contains(&readings.get()), "{readings:?}");
    }

    #[test]
    fn a_stream_that_slows_down_is_at_most_sixteen_records_behind() {
        let mut clock = Clock::new();
        (0..1_000).for_each(|_| assert_eq!(clock.read(|| 0), 0));

        let stale = (1..100).map(|ms| clock.read(|| ms)).take_while(|read| *read == 0).count();

        assert!(stale < 16, "{stale}");
    }
}
