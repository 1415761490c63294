//! Consumes records.
