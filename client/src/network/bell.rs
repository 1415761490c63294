//! [`Bell`]: how connections say that they have come to rest, where somebody waits for one of them to do so.

use std::sync::atomic::{AtomicBool, Ordering, fence};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Rung by the connections of a handle; heard by the task that looks for room. While nobody listens, to ring it costs
/// one load.
#[derive(Debug, Default)]
pub(super) struct Bell {
    is_heard: AtomicBool,
    rung: Notify,
}

impl Bell {
    /// Begins to listen; whether nobody did. What has happened before is to be looked at after this: it is not told.
    pub(super) fn listen(&self) -> bool {
        let is_first = !self.is_heard.swap(true, Ordering::SeqCst);
        // Whoever rings has first noted what has happened. Either it sees that it is heard, or that is seen here.
        fence(Ordering::SeqCst);
        is_first
    }

    /// Nobody listens any more.
    pub(super) fn ignore(&self) {
        self.is_heard.store(false, Ordering::SeqCst);
    }

    /// Something has happened, and was noted where whoever listens will look.
    pub(super) fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.is_heard.load(Ordering::SeqCst) {
            self.rung.notify_one();
        }
    }

    /// Done when it is rung, or was since this was asked last.
    pub(super) fn rung(&self) -> Notified<'_> {
        self.rung.notified()
    }
}
