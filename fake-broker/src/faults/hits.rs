//! How often a rule has matched, and who waits for it to match more often.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A count that can be waited for. It belongs to no runtime: the cluster raises it, anybody may wait.
///
/// A clone is a count of its own that begins at the same number, since it belongs to a copy of the cluster;
/// [`share`](Self::share) gives another handle.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    count: u64,
    waiting: Vec<Waker>,
}

/// Resolves when a rule has matched often enough; made by [`Rule::wait`](super::Rule::wait).
///
/// Dropping it means nothing but to wait no longer.
#[derive(Debug)]
#[must_use = "nothing waits until this is awaited"]
pub struct Reached {
    hits: Hits,
    count: u64,
}

impl Hits {
    /// Another handle to the same count.
    pub(crate) fn share(&self) -> Self {
        Self { inner: self.inner.clone() }
    }

    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    pub(crate) fn raise(&self) {
        let waiting = {
            let mut inner = self.lock();
            inner.count += 1;
            std::mem::take(&mut inner.waiting)
        };
        // Woken outside the lock: a waker may run the task at once, and the task may ask for the count.
        for waker in waiting {
            waker.wake();
        }
    }

    pub(crate) fn reach(&self, count: u64) -> Reached {
        Reached { hits: self.share(), count }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Hits {
    fn clone(&self) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner { count: self.count(), waiting: Vec::new() })) }
    }
}

impl Future for Reached {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.hits.lock();
        if inner.count >= self.count {
            return Poll::Ready(());
        }
        if !inner.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_until_the_count_is_reached() {
        let hits = Hits::default();
        let mut reached = std::pin::pin!(hits.reach(2));
        let mut cx = Context::from_waker(Waker::noop());

        hits.raise();
        assert_eq!(reached.as_mut().poll(&mut cx), Poll::Pending);
        hits.raise();
        assert_eq!(reached.as_mut().poll(&mut cx), Poll::Ready(()));
        assert_eq!(hits.count(), 2);
    }
}
