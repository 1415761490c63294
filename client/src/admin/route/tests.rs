//! The laws of the machine.
