//! The invariant "every call answers": what the story asked of the client, and what is still unanswered.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::{Failure, Result};

/// The calls of one run. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    calls: BTreeMap<u64, (String, Instant)>,
    late: Vec<String>,
}

impl Calls {
    /// Awaits a call that must answer, one way or the other, within `bound`.
    ///
    /// # Errors
    /// If it does not answer in time. The answer itself may be an error: that is the caller's to judge.
    ///
    /// # Cancel safety
    /// A dropped call counts as answered: the story gave it up.
    pub async fn within<T>(
        &self,
        bound: Duration,
        name: impl Into<String>,
        call: impl Future<Output = T>,
    ) -> Result<T> {
        let name = name.into();
        let opened = self.open(name.clone());
        match timeout(bound, call).await {
            Ok(answer) => Ok(answer),
            Err(_) => {
                let words = format!("{name} did not answer within {bound:?}");
                opened.calls.lock().late.push(words.clone());
                Err(Failure::new(words))
            }
        }
    }

    /// Fails if a call is open, or one was late.
    pub(crate) fn check(&self) -> Result<()> {
        let open = self.lock();
        if let Some(late) = open.late.first() {
            return Err(Failure::new(late.clone()));
        }
        match open.calls.values().next() {
            Some((name, since)) => Err(Failure::new(format!("{name} is unanswered since {:?}", since.elapsed()))),
            None => Ok(()),
        }
    }

    fn open(&self, name: String) -> Opened {
        let mut open = self.lock();
        let id = open.next;
        open.next += 1;
        open.calls.insert(id, (name, crate::world::now()));
        Opened { calls: self.clone(), id }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes its call off the list when it is dropped.
struct Opened {
    calls: Calls,
    id: u64,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.calls.lock().calls.remove(&self.id);
    }
}
