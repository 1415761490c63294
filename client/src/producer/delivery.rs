//! What became of a record: the future that a caller holds, and the cell that all records of a batch share.
//!
//! A handle is a reference to its batch's [`Cell`] and an index into it, so that a record costs neither an allocation
//! nor a channel. The cell is settled once, for all its records:
//!
//! ```text
//! open ──┬──▶ Written: offset = base offset + index
//!        ├──▶ Failed, Rejected: an error for all, or for some another one
//!        └──▶ Split: the batch became smaller ones, each with a cell; a handle moves on to its own
//! ```
//!
//! Whoever owes the answer holds the [`Receipt`]. It cannot be lost: one that is dropped unsettled fails its records.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use krafka_protocol::Str;
use tracing::Span;

use super::flush::Token;
use super::record::RecordMetadata;
use crate::cluster::Node;
use crate::error::{KrafkaError, Result};
use crate::spans;

/// One partition, as everything on the way of a record to it refers to it.
#[derive(Debug)]
pub(super) struct Destination {
    /// The partition's place in the tables of the producer: small, dense, never reused.
    pub(super) slot: usize,
    pub(super) topic: Arc<str>,
    /// The topic again, as requests want it.
    pub(super) name: Str,
    pub(super) partition: i32,
    /// Sealed batches that wait for their answer: what the sticky partitioner weighs by.
    pub(super) backlog: AtomicU32,
}

impl Destination {
    pub(super) fn new(slot: usize, topic: Arc<str>, partition: i32) -> Self {
        Self { slot, name: Str::from(&*topic), topic, partition, backlog: AtomicU32::new(0) }
    }
}

/// `topic-partition`, as Kafka's own tools write it.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// What became of a batch.
#[derive(Debug)]
pub(super) enum Settled {
    /// The records are in the log. Either number is -1 if the broker did not tell it.
    Written { base_offset: i64, log_append_time: i64 },
    /// All records failed alike.
    Failed(KrafkaError),
    /// The broker named the records it refused; the rest failed with them (KIP-467).
    Rejected { culprits: Vec<(u32, KrafkaError)>, rest: KrafkaError },
    /// The batch became smaller ones. Each entry is the index of the first record *behind* that part.
    Split(Vec<(u32, Arc<Cell>)>),
}

/// The state that the records of one batch share.
#[derive(Debug)]
pub(super) struct Cell {
    destination: Arc<Destination>,
    settled: OnceLock<Settled>,
    waiters: Mutex<Waiters>,
}

/// Who waits for a cell. Entries are reused, so that a handle polled again and again takes one.
#[derive(Debug, Default)]
struct Waiters {
    wakers: Vec<Option<Waker>>,
    free: Vec<u32>,
}

impl Cell {
    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, settled: Settled) {
        if self.settled.set(settled).is_err() {
            return;
        }
        // Taken out under the lock, woken outside of it: a woken task may poll its handle at once.
        let woken = std::mem::take(&mut self.waiters().wakers);
        woken.into_iter().flatten().for_each(Waker::wake);
    }
}

/// The duty to say what became of a batch.
#[derive(Debug)]
pub(super) struct Receipt {
    cell: Arc<Cell>,
    /// Lets the flushes end that wait for this batch. Given up after the cell is settled, never before.
    token: Token,
    done: bool,
    /// From the first way to a broker on.
    span: Option<Span>,
}

impl Receipt {
    pub(super) fn new(destination: Arc<Destination>, token: Token) -> Self {
        destination.backlog.fetch_add(1, Ordering::Relaxed);
        let cell = Arc::new(Cell { destination, settled: OnceLock::new(), waiters: Mutex::default() });
        Self { cell, token, done: false, span: None }
    }

    /// The future for the record at `index`.
    #[inline]
    pub(super) fn handle(&self, index: u32, timestamp_ms: i64) -> DeliveryHandle {
        DeliveryHandle { cell: self.cell.clone(), timestamp_ms, index, waiter: NOT_WAITING }
    }

    /// What the batch is for.
    #[cfg(test)]
    pub(super) fn destination(&self) -> &Destination {
        &self.cell.destination
    }

    /// The batch, of so many records, goes to this broker, perhaps not for the first time.
    pub(super) fn sent(&mut self, client_id: &str, node: &Node, records: u32) {
        let destination = &self.cell.destination;
        let (topic, partition) = (&destination.topic, destination.partition);
        let span = self.span.get_or_insert_with(|| spans::send(client_id, topic, partition, records));
        spans::sent_to(span, node);
    }

    /// Ends the duty: every record of the batch has its answer.
    pub(super) fn settle(mut self, settled: Settled) {
        self.finish(settled);
    }

    /// Passes the duty on to smaller batches, whose first records behind them are at `ends`.
    pub(super) fn split(mut self, ends: &[u32]) -> Vec<Self> {
        let parts: Vec<_> = ends.iter().map(|_| Self::new(self.cell.destination.clone(), self.token.clone())).collect();
        let cells = ends.iter().copied().zip(parts.iter().map(|part| part.cell.clone())).collect();
        self.finish(Settled::Split(cells));
        parts
    }

    fn finish(&mut self, settled: Settled) {
        self.done = true;
        match (&self.span, &settled) {
            (Some(span), Settled::Written { base_offset, .. }) => spans::written(span, *base_offset),
            (Some(span), Settled::Failed(error) | Settled::Rejected { rest: error, .. }) => spans::failed(span, error),
            (Some(_), Settled::Split(_)) | (None, _) => {}
        }
        self.cell.destination.backlog.fetch_sub(1, Ordering::Relaxed);
        self.cell.settle(settled);
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if !self.done {
            let destination = &self.cell.destination;
            let message = format!(
                "producing to {destination}: the producer's task ended before the record was acknowledged; it may have \
                 been written"
            );
            self.finish(Settled::Failed(KrafkaError::closed(message)));
        }
    }
}

const NOT_WAITING: u32 = u32::MAX;

/// A record on its way: resolves to where it was written.
///
/// Returned by [`Producer::enqueue`](crate::Producer::enqueue). Await it for the record's [`RecordMetadata`], or drop
/// it: the record is sent all the same. It costs three words, and no allocation of its own.
///
/// # Errors
///
/// Resolves to [`KrafkaError::DeliveryTimeout`] if the record was not acknowledged in time, to
/// [`KrafkaError::Broker`] if the broker refused it for good, and to [`KrafkaError::Closed`] if the producer was
/// closed before the record was acknowledged. Where the record may be in the log all the same, the error says so.
///
/// # Cancel safety
///
/// Dropping it, or polling it and then dropping the future that polled it, loses nothing: the record stays on its
/// way, and
/// `&mut handle` can be awaited again. Once resolved it may be polled again and resolves to the same.
#[must_use = "the record is sent, but nobody learns whether it arrived; drop it to say that this is meant"]
pub struct DeliveryHandle {
    cell: Arc<Cell>,
    timestamp_ms: i64,
    index: u32,
    waiter: u32,
}

impl DeliveryHandle {
    /// Returns whether the answer is there, so that awaiting would not wait.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let (mut cell, mut index) = (&self.cell, self.index);
        loop {
            match cell.settled.get() {
                None => return false,
                Some(Settled::Split(parts)) => (cell, index) = part_of(parts, index),
                Some(_) => return true,
            }
        }
    }

    #[inline]
    fn written(&self, base_offset: i64, log_append_time: i64) -> RecordMetadata {
        RecordMetadata {
            topic: self.cell.destination.topic.clone(),
            partition: self.cell.destination.partition,
            offset: if base_offset < 0 { -1 } else { base_offset + i64::from(self.index) },
            timestamp_ms: if log_append_time < 0 { self.timestamp_ms } else { log_append_time },
        }
    }

    #[cold]
    fn failed(&self, settled: &Settled) -> KrafkaError {
        match settled {
            Settled::Failed(error) => error.clone(),
            Settled::Rejected { culprits, rest } => {
                culprits.iter().find(|(index, _)| *index == self.index).map_or(rest, |(_, error)| error).clone()
            }
            Settled::Written { .. } | Settled::Split(_) => unreachable!("asked of a batch that failed"),
        }
    }

    fn stop_waiting(&mut self) {
        if self.waiter == NOT_WAITING {
            return;
        }
        let mut waiters = self.cell.waiters();
        if let Some(entry) = waiters.wakers.get_mut(self.waiter as usize) {
            *entry = None;
            waiters.free.push(self.waiter);
        }
        drop(waiters);
        self.waiter = NOT_WAITING;
    }
}

/// The part of a split batch that holds the record at `index`, and its index there.
fn part_of(parts: &[(u32, Arc<Cell>)], index: u32) -> (&Arc<Cell>, u32) {
    let at = parts.partition_point(|(end, _)| *end <= index);
    let start = if at == 0 { 0 } else { parts[at - 1].0 };
    (&parts[at].1, index - start)
}

impl Future for DeliveryHandle {
    type Output = Result<RecordMetadata>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // The usual case apart: whoever awaits handles in order finds most of them settled.
        if let Some(Settled::Written { base_offset, log_append_time }) = self.cell.settled.get() {
            return Poll::Ready(Ok(self.written(*base_offset, *log_append_time)));
        }
        self.poll_slowly(cx)
    }
}

impl DeliveryHandle {
    #[inline(never)]
    fn poll_slowly(&mut self, cx: &Context<'_>) -> Poll<Result<RecordMetadata>> {
        loop {
            match self.cell.settled.get() {
                Some(Settled::Split(parts)) => {
                    let (cell, index) = part_of(parts, self.index);
                    let (cell, index) = (cell.clone(), index);
                    // The old cell's waiters were woken and forgotten when it was split.
                    (self.cell, self.index, self.waiter) = (cell, index, NOT_WAITING);
                }
                Some(Settled::Written { base_offset, log_append_time }) => {
                    return Poll::Ready(Ok(self.written(*base_offset, *log_append_time)));
                }
                Some(settled) => return Poll::Ready(Err(self.failed(settled))),
                None => {
                    let this = &mut *self;
                    let mut waiters = this.cell.waiters();
                    // Settled between the look and the lock: whoever settles takes the wakers under this lock, later.
                    if this.cell.settled.get().is_some() {
                        continue;
                    }
                    match waiters.wakers.get_mut(this.waiter as usize) {
                        Some(Some(waker)) => waker.clone_from(cx.waker()),
                        _ => {
                            let waker = Some(cx.waker().clone());
                            match waiters.free.pop() {
                                Some(free) => {
                                    waiters.wakers[free as usize] = waker;
                                    this.waiter = free;
                                }
                                None => {
                                    this.waiter = waiters.wakers.len() as u32;
                                    waiters.wakers.push(waker);
                                }
                            }
                        }
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Drop for DeliveryHandle {
    #[inline]
    fn drop(&mut self) {
        self.stop_waiting();
    }
}

impl fmt::Debug for DeliveryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeliveryHandle")
            .field("topic", &self.cell.destination.topic)
            .field("partition", &self.cell.destination.partition)
            .field("done", &self.is_done())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::super::flush::Generations;
    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn receipt() -> Receipt {
        Receipt::new(Arc::new(Destination::new(0, "orders".into(), 3)), Generations::default().token())
    }

    fn poll(handle: &mut DeliveryHandle, wakes: &Arc<Count>) -> Poll<Result<RecordMetadata>> {
        let waker = Waker::from(wakes.clone());
        Pin::new(handle).poll(&mut Context::from_waker(&waker))
    }

    fn offset(handle: &mut DeliveryHandle) -> i64 {
        match poll(handle, &Arc::default()) {
            Poll::Ready(Ok(metadata)) => metadata.offset,
            other => panic!("expected an offset, got {other:?}"),
        }
    }

    #[test]
    fn each_record_gets_its_own_offset_and_timestamp() {
        let receipt = receipt();
        let mut handle = receipt.handle(2, 17);

        receipt.settle(Settled::Written { base_offset: 40, log_append_time: -1 });

        let Poll::Ready(Ok(metadata)) = poll(&mut handle, &Arc::default()) else { panic!("settled") };
        assert_eq!((&*metadata.topic, metadata.partition), ("orders", 3));
        assert_eq!((metadata.offset, metadata.timestamp_ms), (42, 17));
    }

    /// BR-047: an offset that the broker did not tell is unknown for each record, not -1 plus its index.
    #[test]
    fn an_unknown_offset_stays_unknown_and_the_brokers_time_wins() {
        let receipt = receipt();
        let mut handle = receipt.handle(2, 17);

        receipt.settle(Settled::Written { base_offset: -1, log_append_time: 99 });

        let Poll::Ready(Ok(metadata)) = poll(&mut handle, &Arc::default()) else { panic!("settled") };
        assert_eq!((metadata.offset, metadata.timestamp_ms), (-1, 99));
    }

    #[test]
    fn settling_wakes_each_waiting_handle_once() {
        let receipt = receipt();
        let (one, two, gone) = (Arc::new(Count::default()), Arc::new(Count::default()), Arc::new(Count::default()));
        let (mut a, mut b, mut c) = (receipt.handle(0, 0), receipt.handle(1, 0), receipt.handle(2, 0));
        assert!(poll(&mut a, &one).is_pending() && poll(&mut a, &one).is_pending());
        assert!(poll(&mut b, &two).is_pending() && poll(&mut c, &gone).is_pending());
        drop(c);

        receipt.settle(Settled::Written { base_offset: 0, log_append_time: -1 });

        assert_eq!([&one, &two, &gone].map(|count| count.0.load(Ordering::Relaxed)), [1, 1, 0]);
    }

    #[test]
    fn handles_that_come_and_go_do_not_pile_up_in_the_cell() {
        let receipt = receipt();
        for _ in 0..100 {
            assert!(poll(&mut receipt.handle(0, 0), &Arc::default()).is_pending());
        }

        assert_eq!(receipt.cell.waiters().wakers.len(), 1);
    }

    #[test]
    fn handles_follow_their_record_through_splits_of_splits() {
        let receipt = receipt();
        let mut handles: Vec<_> = (0..5).map(|index| receipt.handle(index, 0)).collect();
        let wakes = Arc::new(Count::default());
        assert!(poll(&mut handles[4], &wakes).is_pending());

        let mut parts = receipt.split(&[3, 5]);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "woken to move on");
        assert!(poll(&mut handles[4], &wakes).is_pending());
        let last = parts.pop().expect("two parts").split(&[1, 2]);

        for (part, base_offset) in parts.into_iter().chain(last).zip([100, 200, 300]) {
            part.settle(Settled::Written { base_offset, log_append_time: -1 });
        }
        assert_eq!(wakes.0.load(Ordering::Relaxed), 2, "and to move on again");
        assert_eq!(handles.iter_mut().map(offset).collect::<Vec<_>>(), [100, 101, 102, 200, 300]);
    }

    #[test]
    fn culprits_get_their_own_error() {
        let receipt = receipt();
        let (mut bad, mut good) = (receipt.handle(1, 0), receipt.handle(0, 0));
        let (mine, others) = (KrafkaError::config("mine"), KrafkaError::config("others"));

        receipt.settle(Settled::Rejected { culprits: vec![(1, mine)], rest: others });

        let says = |poll| match poll {
            Poll::Ready(Err(error)) => KrafkaError::to_string(&error),
            _ => panic!("expected an error"),
        };
        assert_eq!(says(poll(&mut bad, &Arc::default())), "mine");
        assert_eq!(says(poll(&mut good, &Arc::default())), "others");
    }

    #[test]
    fn a_lost_receipt_fails_its_records() {
        let receipt = receipt();
        let destination = receipt.cell.destination.clone();
        let mut handle = receipt.handle(0, 0);

        drop(receipt);

        assert!(matches!(poll(&mut handle, &Arc::default()), Poll::Ready(Err(KrafkaError::Closed { .. }))));
        assert_eq!(destination.backlog.load(Ordering::Relaxed), 0);
    }
}
