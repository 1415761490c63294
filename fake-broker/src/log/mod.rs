//! Partition logs: batches as they were produced, leader epochs, and what is known of producers and transactions.

mod aborted;
mod compaction;
mod epochs;
pub(crate) mod old_formats;
mod partition;
pub(crate) mod producers;
mod retention;
mod rewrite;
mod segments;

pub(crate) use epochs::EpochEnd;
pub(crate) use partition::{Appended, Log};
pub(crate) use rewrite::recompressed;
