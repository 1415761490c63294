//! Record batches: against Java's bytes, by their laws, and against hostile bytes.

mod golden;
mod hostile;
mod messages;
// The example prints it, so that anyone can compare; the test has seen what it prints.
#[path = "../../../examples/recode/records.rs"]
mod listing;
mod properties;
