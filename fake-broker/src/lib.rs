//! A multi-node Kafka cluster in one deterministic value, with fault injection.

mod clock;
mod cluster;
mod config;
mod connection;
mod context;
mod coordinators;
mod faults;
mod groups;
mod handlers;
mod history;
mod log;
mod nodes;
mod offsets;
mod purgatory;
mod rng;
mod security;
mod state;
mod timers;
mod topics;

pub use clock::{Clock, TokioClock};
pub use cluster::{Action, Cluster, Input};
pub use context::{ConnectionId, RequestId};
pub use faults::KafkaVersion;
pub use history::{Event, History};
