//! What the client does, seen from both ends: by its callers, and by a fake cluster over in-memory pipes. Time is virtual.

mod consumer;
mod handle;
mod producer;
