//! [`Shared`]: what a consumer's handle and its task both hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use super::commit::Ticket;
use super::core::Core;
use super::metrics::ConsumerCounters;
use crate::{KrafkaError, Result};

/// See the file's head.
pub(crate) struct Shared {
    pub(crate) core: Arc<Mutex<Core>>,
    /// Tells callers that wait for records, or for a position, to look again.
    pub(crate) arrivals: Notify,
    pub(crate) counters: ConsumerCounters,
    tickets: Mutex<Tickets>,
}

/// Calls that wait for the task.
#[derive(Default)]
struct Tickets {
    next: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Result<()>>>,
    is_closed: bool,
}

impl Shared {
    pub(crate) fn new(core: Core, counters: ConsumerCounters) -> Self {
        Self { core: Arc::new(Mutex::new(core)), arrivals: Notify::new(), counters, tickets: Mutex::default() }
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        // What a panicking caller was doing to it was done in full or not at all: plain code, with no call to the
        // user's.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws a ticket, and what its answer comes by.
    pub(crate) fn ticket(&self) -> (Ticket, oneshot::Receiver<Result<()>>) {
        let mut tickets = self.tickets();
        let (sender, receiver) = oneshot::channel();
        let ticket = tickets.next;
        tickets.next += 1;
        // Tickets of callers that have gone away are dropped as new ones are drawn.
        tickets.waiting.retain(|_, waiting| !waiting.is_closed());
        if !tickets.is_closed {
            tickets.waiting.insert(ticket, sender);
        }
        (Ticket(ticket), receiver)
    }

    pub(crate) fn answer(&self, ticket: Ticket, result: Result<()>) {
        if let Some(waiting) = self.tickets().waiting.remove(&ticket.0) {
            // A caller that dropped its future does not want the answer.
            let _ = waiting.send(result);
        }
    }

    /// The task has ended: nobody will be answered, and nothing will arrive.
    pub(crate) fn close(&self) {
        self.core().closed.get_or_insert_with(closed);
        let mut tickets = self.tickets();
        tickets.is_closed = true;
        tickets.waiting.clear();
        drop(tickets);
        self.arrivals.notify_waiters();
    }

    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cold]
pub(crate) fn closed() -> KrafkaError {
    KrafkaError::closed("the consumer was closed")
}
