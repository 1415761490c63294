//! The consumer group, driven without a wire.
