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

use std::future::Future;
use std::ops::ControlFlow;
use std::time::Instant;

use krafka_protocol::machine::Machine;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

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
pub(crate) struct Work<I> {
    tasks: JoinSet<I>,
}

impl<I: Send + 'static> Work<I> {
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new() }
    }

    /// Runs a future; its result will be handed to the machine.
    pub(crate) fn start(&mut self, future: impl Future<Output = I> + Send + 'static) {
        self.tasks.spawn(future);
    }

    /// The next result. Pends for ever when nothing runs.
    ///
    /// # Panics
    /// When the future that it waits for panicked: a driver must not go on without its input.
    pub(crate) async fn next(&mut self) -> I {
        match self.tasks.join_next().await {
            Some(Ok(input)) => input,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // Nobody aborts these tasks but the end of the runtime, and then this task ends as well.
            Some(Err(_)) | None => std::future::pending().await,
        }
    }

    /// A result that is ready now.
    pub(crate) fn try_next(&mut self) -> Option<I> {
        match self.tasks.try_join_next()? {
            Ok(input) => Some(input),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => None,
        }
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
