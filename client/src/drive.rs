//! The one loop that every driver calls, and the one place that asks what time it is.
//!
//! A driver gives [`run`] its machine, the channel that the machine's inputs come by, and a function that starts to
//! carry out an action. What takes time is put into [`Work`]: a future whose result is the machine's next input.
//!
//! ```text
//!   handles ──inputs──▶ machine.handle ──▶ machine.poll ──action──▶ carry_out ──┬─▶ done at once
//!                            ▲                                                  └─▶ Work: a future
//!                            └──────────────────── its result ──────────────────────────┘
//! ```

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use krafka_protocol::machine::Machine;
use tokio::sync::mpsc::UnboundedReceiver;

/// How many inputs are taken in before their actions are carried out: enough to coalesce a burst, few enough that no
/// action waits long.
const BURST: usize = 256;

/// What time it is: tokio's clock, which tests pause and simulations own.
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks for the time")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Returns at `deadline`; never, when there is none.
pub(crate) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// The futures that a driver waits for. Each ends as an input of its machine. Dropping it drops them all.
///
/// They run inside of the driver's own task: a task for each would wake another thread to steal it, which costs a busy
/// producer more than all else that it does for a request. Each has a waker of its own, so that only those are polled
/// that something happened to.
pub(crate) struct Work<I> {
    futures: Vec<Option<Running<I>>>,
    free: Vec<usize>,
    woken: Arc<Mutex<Woken>>,
}

struct Running<I> {
    future: Pin<Box<dyn Future<Output = I> + Send>>,
    waker: Waker,
}

/// Which futures want to be polled, and who polls them.
#[derive(Default)]
struct Woken {
    places: VecDeque<usize>,
    driver: Option<Waker>,
}

/// Wakes the driver for one of its futures.
struct Bell {
    place: usize,
    woken: Arc<Mutex<Woken>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.places.push_back(self.place);
        let driver = woken.driver.take();
        drop(woken);
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

impl<I: Send + 'static> Work<I> {
    pub(crate) fn new() -> Self {
        Self { futures: Vec::new(), free: Vec::new(), woken: Arc::default() }
    }

    /// Runs a future; its result will be handed to the machine.
    pub(crate) fn start(&mut self, future: impl Future<Output = I> + Send + 'static) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.futures.push(None);
            self.futures.len() - 1
        });
        let waker = Waker::from(Arc::new(Bell { place, woken: self.woken.clone() }));
        self.futures[place] = Some(Running { future: Box::pin(future), waker });
        self.woken().places.push_back(place);
    }

    /// The next result. Pends for ever when nothing runs.
    pub(crate) async fn next(&mut self) -> I {
        poll_fn(|cx| {
            // Before the look, so that whatever is woken after it wakes the driver.
            self.woken().driver = Some(cx.waker().clone());
            self.try_next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// A result that is ready now.
    pub(crate) fn try_next(&mut self) -> Option<I> {
        loop {
            let place = self.woken().places.pop_front()?;
            // A late wake of one that has ended finds its place empty, or taken by another, which does not mind.
            let Some(running) = &mut self.futures[place] else { continue };
            if let Poll::Ready(input) = running.future.as_mut().poll(&mut Context::from_waker(&running.waker)) {
                self.futures[place] = None;
                self.free.push(place);
                return Some(input);
            }
        }
    }

    fn woken(&self) -> MutexGuard<'_, Woken> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a machine until `carry_out` breaks, or until all senders of `inputs` are gone.
pub(crate) async fn run<M>(
    machine: &mut M,
    mut inputs: UnboundedReceiver<M::Input>,
    mut carry_out: impl FnMut(M::Action, &mut Work<M::Input>) -> ControlFlow<()>,
) where
    M: Machine,
    M::Input: Send + 'static,
{
    let mut work = Work::new();
    loop {
        let at = now();
        while let Some(action) = machine.poll(at) {
            if carry_out(action, &mut work).is_break() {
                return;
            }
        }
        tokio::select! {
            // Results before new orders: they free what the orders wait for. The clock last: an answer that came in
            // time is not late because the task was.
            biased;
            input = work.next() => machine.handle(input, now()),
            input = inputs.recv() => match input {
                Some(input) => machine.handle(input, now()),
                None => return,
            },
            () = sleep_until(machine.deadline()) => {}
        }
        for _ in 0..BURST {
            let Some(input) = work.try_next().or_else(|| inputs.try_recv().ok()) else { break };
            machine.handle(input, now());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn results_come_as_they_are_ready() {
        let mut work = Work::new();
        let (send, receive) = oneshot::channel();
        work.start(async { receive.await.unwrap_or(0) });
        work.start(async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            2
        });
        assert_eq!(work.try_next(), None);

        assert_eq!(work.next().await, 2);
        send.send(1).expect("it is waited for");
        assert_eq!(work.next().await, 1);
        work.start(std::future::ready(3));

        assert_eq!((work.try_next(), work.try_next(), work.futures.len()), (Some(3), None, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_given_up_loses_nothing() {
        let mut work = Work::new();
        let (send, receive) = oneshot::channel();
        work.start(async { receive.await.unwrap_or(0) });

        for _ in 0..3 {
            let second = std::time::Duration::from_secs(1);
            assert!(tokio::time::timeout(second, work.next()).await.is_err());
        }
        send.send(7).expect("it is waited for");

        assert_eq!(work.next().await, 7);
    }
}
