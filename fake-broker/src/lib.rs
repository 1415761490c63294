//! A multi-node Kafka cluster in one deterministic value, with fault injection.

mod builder;
mod clock;
mod cluster;
mod config;
mod connection;
mod context;
mod control;
mod coordinators;
mod faults;
mod groups;
mod handle;
mod handlers;
mod history;
mod log;
mod nodes;
mod offsets;
mod producer_ids;
mod purgatory;
mod rng;
mod security;
mod serve;
mod state;
mod timers;
mod topic_configs;
mod topics;

pub use builder::FakeClusterBuilder;
pub use clock::{Clock, TokioClock};
pub use cluster::{Action, Cluster, Input};
pub use context::{ConnectionId, RequestId};
pub use faults::{Apis, KafkaVersion, Reached, Rule, RuleBuilder, UnknownVersion};
pub use groups::{GroupState, GroupView, MemberView};
pub use handle::FakeCluster;
pub use history::{Event, History};
pub use offsets::Committed;
pub use serve::pipe::Pipes;
pub use topics::validate_name as validate_topic_name;
