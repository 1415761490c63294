//! [`RebalanceListener`]: how an application learns that partitions come and go.

use std::future::Future;
use std::pin::Pin;

use crate::TopicPartition;

/// What a listener's methods return.
pub type ListenerFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Told when a group takes partitions from this consumer, and when it gives some.
///
/// Partitions are taken only while the application is inside `poll` or `recv` (so never while it works on records
/// that it was given), or when they are lost. The methods run as a task of the consumer's own: dropping the `poll`
/// that set a rebalance off drops no callback. No record is delivered from the moment when partitions are being
/// revoked until [`on_assigned`](Self::on_assigned) has returned. The consumer may be used inside: to commit, to
/// seek, to pause. Each call is given at most the maximum poll interval; then the rebalance goes on without it, since
/// the group would.
pub trait RebalanceListener: Send + Sync + 'static {
    /// These partitions are about to be given up: finish what belongs to them, and commit. With auto commit, what
    /// `poll` returned has been committed just before.
    fn on_revoked<'a>(&'a self, partitions: &'a [TopicPartition]) -> ListenerFuture<'a> {
        let _ = partitions;
        Box::pin(std::future::ready(()))
    }

    /// These partitions were given to this consumer, and will be fetched when this returns.
    fn on_assigned<'a>(&'a self, partitions: &'a [TopicPartition]) -> ListenerFuture<'a> {
        let _ = partitions;
        Box::pin(std::future::ready(()))
    }

    /// These partitions are gone: the group gave up on this member, and others may own them by now. Nothing can be
    /// committed for them. By default it does what `on_revoked` does.
    fn on_lost<'a>(&'a self, partitions: &'a [TopicPartition]) -> ListenerFuture<'a> {
        self.on_revoked(partitions)
    }
}
