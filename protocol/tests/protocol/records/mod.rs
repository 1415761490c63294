//! Record batches: against Java's bytes, by their laws, and against hostile bytes.

mod golden;
mod hostile;
mod memory;
mod messages;
mod properties;
mod ways;
