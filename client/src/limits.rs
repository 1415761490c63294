//! The limits of everything that grows with what a broker sends or a caller asks, each with its reason.

use std::time::Duration;

/// The longest time that a broker's throttle mutes a connection. A broker that asks for days is mistaken.
pub(crate) const MAX_THROTTLE: Duration = Duration::from_secs(5 * 60);

/// The longest string that Kafka's protocol carries, in bytes.
pub(crate) const MAX_STRING: usize = i16::MAX as usize;

/// The longest client id of a group's member: a coordinator makes its id of it, of a dash, and of 36 characters.
pub(crate) const MAX_CLIENT_ID_OF_MEMBER: usize = MAX_STRING - 37;

/// Requests that wait on one connection. Producers and consumers keep to a few; past this a caller floods.
pub(crate) const MAX_WAITING_REQUESTS: usize = 10_000;

/// Requests in flight on a lane that answers in its own time. A broker reads one request per connection at a time, so
/// more would only wait in its socket buffer.
pub(crate) const MAX_IN_FLIGHT: usize = 10;

/// Produce requests in flight on one connection: Kafka's limit for idempotent producers.
pub(crate) const MAX_IN_FLIGHT_PRODUCE: usize = 5;

/// The default of the largest response that is read.
pub(crate) const MAX_RESPONSE_SIZE: usize = 100 * 1024 * 1024;

/// How long what is in flight may still take when the handle is closed. Who closes has waited for what matters.
pub(crate) const CLOSE_PATIENCE: Duration = Duration::from_secs(3);

/// The largest answer during the handshake, before the peer is known to be a broker.
pub(crate) const MAX_HANDSHAKE_SIZE: usize = 1024 * 1024;

/// Callers that wait for one connection, one metadata fetch or one coordinator.
pub(crate) const MAX_WAITERS: usize = 100_000;

/// Coordinators that are remembered. An admin client that walks thousands of groups must not keep them all.
pub(crate) const MAX_COORDINATORS: usize = 10_000;

/// The longest time that anything waits for. [`Duration::MAX`] is how Rust says "for ever", and no clock can be moved
/// on by so much: a hundred years say the same.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The time that a user gave, in the range that a clock can be moved on by.
pub(crate) fn finite(duration: Duration) -> Duration {
    duration.min(FOR_EVER)
}
