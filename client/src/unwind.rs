//! What a user's own code does when it panics inside of a task of ours: it fails, and the task goes on.
//!
//! A task that ends by a panic takes with it what it has: the token that all connections wait for, the attempt that all
//! callers wait for. Nothing of ours is half changed when a future of the user's is all that was polled.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// The future panicked. What it said is with the panic hook, and not here: it may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it panicked; see standard error for where")
    }
}

impl std::error::Error for Panicked {}

/// Runs what `begin` returns, and survives when it, or `begin` itself, panics.
pub(crate) fn caught<F: Future>(begin: impl FnOnce() -> F) -> impl Future<Output = Result<F::Output, Panicked>> {
    let mut future = catch_unwind(AssertUnwindSafe(|| Box::pin(begin()))).ok();
    poll_fn(move |cx| {
        let Some(running) = &mut future else { return Poll::Ready(Err(Panicked)) };
        match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => {
                future = None;
                Poll::Ready(Err(Panicked))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_failure() {
        assert_eq!(caught(|| async { 7 }).await, Ok(7));
        assert_eq!(caught(|| async { panic!("within") }).await, Err::<(), _>(Panicked));
        let begin = || -> std::future::Ready<()> { panic!("before") };
        assert_eq!(caught(begin).await, Err(Panicked));
    }
}
