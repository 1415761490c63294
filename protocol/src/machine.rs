//! The shape of everything that decides: inputs, actions and a deadline.

use std::time::Instant;

/// A state machine that does no I/O of its own.
///
/// Feed it with [`handle`](Machine::handle), then call [`poll`](Machine::poll) until it returns `None`, carrying out
/// each action; then sleep until [`deadline`](Machine::deadline) or the next input.
///
/// Three laws hold for every machine, and [`Script`](crate::script::Script) checks them: a drained machine has no
/// deadline in the past; the same inputs at the same times give the same actions; after its closing input it owes
/// nobody an answer.
pub trait Machine {
    /// Something that happened: a response came, a batch was sealed, the user called flush.
    type Input;
    /// Something to do: write a request, complete a future, close a socket.
    type Action;

    /// Takes note of what happened.
    fn handle(&mut self, input: Self::Input, now: Instant);

    /// The next thing to do, if there is one.
    fn poll(&mut self, now: Instant) -> Option<Self::Action>;

    /// When to poll again though nothing happened.
    fn deadline(&self) -> Option<Instant>;
}
