//! The machine, by script.
