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
mod producer_ids;
mod purgatory;
mod rng;
mod security;
mod state;
mod timers;
mod topics;

pub use clock::{Clock, TokioClock};
pub use cluster::{Action, Cluster, Input};
pub use context::{ConnectionId, RequestId};
pub use faults::{Apis, KafkaVersion, Reached, Rule, RuleBuilder, UnknownVersion};
pub use groups::{GroupState, GroupView, MemberView};
pub use history::{Event, History};
pub use offsets::Committed;
