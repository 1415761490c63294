//! What must hold at the end of every run, one file each.
//!
//! | invariant | says |
//! | --- | --- |
//! | [`heals`] | once the faults are over, a record can be written to and read from every partition |
//! | [`acked_is_readable`] | what was acknowledged is in the log, at the place that was told |
//! | [`no_duplicates`] | no record is in the log twice |
//! | [`partition_order`] | within a partition, the records of one sender lie in the order of sending |
//! | every call answers | nothing asked of the client is unanswered or late: see [`Calls`](crate::calls::Calls) |
//!
//! Groups have three more. Whoever reads with [`Readers`](crate::workload::Readers) is checked by
//! [`group::commits_what_was_read`]; a story asks for [`group::read_once`] and [`group::read_all`].

pub mod acked_is_readable;
pub mod group;
pub mod heals;
pub mod no_duplicates;
pub mod partition_order;

use crate::{Result, World};

/// One record in a topic's log, as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The value, `sender:number`.
    pub value: String,
}

/// All records of a topic, by partition and offset.
#[derive(Clone, Debug)]
pub struct Log {
    /// The topic.
    pub topic: String,
    /// Its records.
    pub records: Vec<Logged>,
}

/// Checks all invariants on all topics of the story.
///
/// # Errors
/// Says which invariant is broken, and by what.
pub async fn check(world: &World) -> Result<()> {
    world.calls().check()?;
    let sent = world.sent();
    for topic in world.topics() {
        let log = heals::heals(world, &topic).await?;
        for sent in sent.iter().filter(|sent| sent.topic == topic.name) {
            acked_is_readable::check(sent, &log)?;
        }
        no_duplicates::check(&log)?;
        partition_order::check(&log)?;
    }
    world.calls().check()
}
