//! Produces records.
