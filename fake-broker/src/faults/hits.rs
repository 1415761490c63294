//! How often a rule has matched, and who waits for it to match more often.

use std::fmt;
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
    /// The highest count that there can be, if there is one.
    most: Option<u64>,
    /// What became of what is counted, if it is counted no more.
    ending: Option<Ending>,
    waiting: Vec<Waker>,
}

/// Why a count is not raised any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The rule was removed.
    Removed,
    /// There is no cluster any more that it could act in.
    ClusterEnded,
}

/// Why a count will never be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Never {
    /// Nothing raises it any more.
    Ended { why: Ending, hits: u64, wanted: u64 },
    /// It is more than there can be.
    TooMany { most: u64, wanted: u64 },
}

/// Resolves when a count has been reached, or never will be.
#[derive(Debug)]
#[must_use = "nothing waits until this is awaited"]
pub(crate) struct Reach {
    hits: Hits,
    count: u64,
}

/// Resolves when a rule has acted often enough; made by [`Rule::wait`](super::Rule::wait).
///
/// Dropping it means nothing but to wait no longer.
///
/// # Panics
///
/// When it is awaited and the rule will never have acted so often: it acts fewer times, it was removed, or its cluster
/// is gone.
#[derive(Debug)]
#[must_use = "nothing waits until this is awaited"]
pub struct Reached {
    rule: u64,
    reach: Reach,
}

impl Hits {
    /// A count that is never higher than this.
    pub(crate) fn up_to(most: Option<u64>) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner { most, ..Inner::default() })) }
    }

    /// Another handle to the same count.
    pub(crate) fn share(&self) -> Self {
        Self { inner: self.inner.clone() }
    }

    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    pub(crate) fn raise(&self) {
        self.change(|inner| inner.count += 1);
    }

    /// Lets those go who wait for more than there is. What happened first is what they are told.
    pub(crate) fn end(&self, why: Ending) {
        self.change(|inner| inner.ending = inner.ending.or(Some(why)));
    }

    pub(crate) fn reach(&self, count: u64) -> Reach {
        Reach { hits: self.share(), count }
    }

    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let waiting = {
            let mut inner = self.lock();
            change(&mut inner);
            std::mem::take(&mut inner.waiting)
        };
        // Woken outside the lock: a waker may run the task at once, and the task may ask for the count.
        for waker in waiting {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Hits {
    fn clone(&self) -> Self {
        let Inner { count, most, ending, .. } = *self.lock();
        Self { inner: Arc::new(Mutex::new(Inner { count, most, ending, waiting: Vec::new() })) }
    }
}

impl Reached {
    pub(super) fn new(rule: u64, reach: Reach) -> Self {
        Self { rule, reach }
    }
}

impl Future for Reach {
    type Output = Result<(), Never>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut inner = self.hits.lock();
        let (hits, wanted) = (inner.count, self.count);
        if hits >= wanted {
            return Poll::Ready(Ok(()));
        }
        if let Some(most) = inner.most.filter(|most| *most < wanted) {
            return Poll::Ready(Err(Never::TooMany { most, wanted }));
        }
        if let Some(why) = inner.ending {
            return Poll::Ready(Err(Never::Ended { why, hits, wanted }));
        }
        if !inner.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Future for Reached {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let rule = self.rule;
        Pin::new(&mut self.reach).poll(cx).map(|reached| reached.unwrap_or_else(|never| panic!("rule {rule} {never}")))
    }
}

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { why: Ending::Removed, hits, wanted } => {
                write!(f, "was removed after {hits} of {wanted} hits")
            }
            Self::Ended { why: Ending::ClusterEnded, hits, wanted } => {
                write!(f, "ended with its cluster after {hits} of {wanted} hits")
            }
            Self::TooMany { most, wanted } => {
                let s = if *most == 1 { "" } else { "s" };
                write!(f, "acts {most} time{s} at most, and was to have {wanted} hits")
            }
        }
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
        assert_eq!(reached.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
        assert_eq!(hits.count(), 2);
    }
}
