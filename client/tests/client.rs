//! What the client does, seen from both ends: by its callers, and by a fake cluster over in-memory pipes. Time is
//! virtual.

#![allow(clippy::disallowed_methods, reason = "tests ask for the virtual time to see how long something took")]

mod cancellation;
mod consumer;
mod handle;
mod producer;
