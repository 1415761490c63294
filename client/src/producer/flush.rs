//! What a flush waits for: the batches that were there when it was called, and no later ones.
//!
//! Each batch carries a [`Token`] of the generation in which it was opened. A flush closes the present generation and
//! waits until nobody holds a token of it or of an earlier one. So a batch costs one reference, and a flush nothing but
//! its own waiting, however many batches there are.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// Held by each batch that is not settled yet.
#[derive(Clone, Debug)]
pub(super) struct Token {
    _generation: Arc<Generation>,
}

/// The batches between two flushes. It ends when its last token is dropped.
#[derive(Debug, Default)]
struct Generation {
    waiters: Mutex<Vec<Waker>>,
}

impl Drop for Generation {
    fn drop(&mut self) {
        let waiters = self.waiters.get_mut().unwrap_or_else(PoisonError::into_inner);
        waiters.drain(..).for_each(Waker::wake);
    }
}

/// The generations of one producer.
#[derive(Debug, Default)]
pub(super) struct Generations {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    present: Arc<Generation>,
    /// Closed ones that may still have batches.
    earlier: Vec<Weak<Generation>>,
}

impl Generations {
    /// A token of the present generation.
    pub(super) fn token(&self) -> Token {
        Token { _generation: self.lock().present.clone() }
    }

    /// Closes the present generation and returns what waits for it and for all earlier ones.
    pub(super) fn close(&self) -> Earlier {
        let mut inner = self.lock();
        inner.earlier.retain(|generation| generation.strong_count() > 0);
        let closed = std::mem::take(&mut inner.present);
        inner.earlier.push(Arc::downgrade(&closed));
        let earlier = Earlier { generations: inner.earlier.clone() };
        drop(inner);
        earlier
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resolves when every batch of some generations is settled.
#[derive(Debug)]
pub(super) struct Earlier {
    generations: Vec<Weak<Generation>>,
}

impl Future for Earlier {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(last) = self.generations.last() {
            if let Some(generation) = last.upgrade() {
                let mut waiters = generation.waiters.lock().unwrap_or_else(PoisonError::into_inner);
                if !waiters.iter().any(|waiter| waiter.will_wake(cx.waker())) {
                    waiters.push(cx.waker().clone());
                }
                drop(waiters);
                // If this was the last reference, the drop that follows wakes us again.
                return Poll::Pending;
            }
            self.generations.pop();
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn is_done(flush: &mut Earlier, flag: &Arc<Flag>) -> bool {
        Pin::new(flush).poll(&mut Context::from_waker(&Waker::from(flag.clone()))).is_ready()
    }

    #[test]
    fn a_flush_waits_for_earlier_batches_and_not_for_later_ones() {
        let (generations, flag) = (Generations::default(), Arc::new(Flag::default()));
        let earlier = generations.token();
        let mut flush = generations.close();
        let later = generations.token();
        assert!(!is_done(&mut flush, &flag));

        drop(earlier);

        assert!(flag.0.load(Ordering::Relaxed), "woken by the last token");
        assert!(is_done(&mut flush, &flag));
        drop(later);
    }

    #[test]
    fn a_second_flush_waits_for_what_the_first_waits_for() {
        let (generations, flag) = (Generations::default(), Arc::new(Flag::default()));
        let oldest = generations.token();
        let mut first = generations.close();
        let mut second = generations.close();
        assert!(!is_done(&mut first, &flag) && !is_done(&mut second, &flag));

        drop(oldest);

        assert!(is_done(&mut first, &flag) && is_done(&mut second, &flag));
    }

    #[test]
    fn nothing_to_flush_is_done_at_once() {
        assert!(is_done(&mut Generations::default().close(), &Arc::default()));
    }
}
