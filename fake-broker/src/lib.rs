//! A multi-node Kafka cluster in one deterministic value, with fault injection.
//!
//! For tests of Kafka clients: it starts in a millisecond, any number of them run side by side, and it can be broken on
//! purpose. Clients reach it over TCP, over pipes in memory under a paused clock, or inside a simulation; or as the
//! program `krafka-fake-broker`, in any language.
//!
//! ```
//! use krafka_fake_broker::FakeCluster;
//! use krafka_protocol::{ApiKey, ErrorCode};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start().await?;
//! let produce = fake.when(ApiKey::Produce).partition("orders", 0).times(2);
//! let refused = produce.reply_error(ErrorCode::NOT_LEADER_OR_FOLLOWER);
//! // … let a client of `fake.bootstrap()` produce …
//! fake.move_leader("orders", 1, 3);
//! fake.crash(1);
//! // … and look at what it did:
//! println!("refused {} times, produced {:?}", refused.hits(), fake.records("orders"));
//! println!("it sent {} requests", fake.history().count(ApiKey::Produce));
//! # Ok(())
//! # }
//! ```
//!
//! It answers as Kafka does, no more leniently: each rule has a test that runs on a real broker as well
//! (`conformance/wire`). It advertises only what it serves, with the versions that Kafka 3.9 to 4.4 have.
//!
//! Where to look:
//!
//! * [`FakeCluster`] is what a test holds, [`FakeClusterBuilder`] how it is made, [`RuleBuilder`] what goes wrong,
//!   [`History`] what happened.
//! * [`Cluster`] is the machine inside: no sockets, no clock, no threads; the same inputs give the same actions.
//!   `handlers/` has one file for each API.
//! * Kafka's defaults hold but for three, which suit tests better: unknown topics are not created, topics have up to
//!   three replicas, and groups do not wait for members before their first rebalance. The builder changes them back.

mod blocking;
mod builder;
mod clock;
mod cluster;
mod config;
mod configs;
mod connection;
mod context;
mod control;
mod coordinators;
mod eligible;
mod faults;
mod features;
mod groups;
mod handle;
mod handlers;
mod history;
mod java;
mod json_words;
mod limits;
mod links;
mod listeners;
mod log;
mod log_dirs;
mod maintenance;
mod nodes;
mod offsets;
mod operations;
mod operator;
mod partition;
mod producer_ids;
mod purgatory;
mod quorum;
mod quotas;
mod re2;
mod reassignments;
mod rng;
mod security;
mod serve;
mod state;
mod telemetry;
mod timers;
mod topics;
mod transactions;
mod words;

pub use blocking::BlockingFakeCluster;
pub use builder::FakeClusterBuilder;
pub use clock::{Clock, TokioClock};
pub use cluster::{Action, Cluster, Input};
pub use config::MigrationPolicy;
pub use context::{ConnectionId, RequestId};
pub use faults::{Apis, Damage, Hint, KafkaVersion, Profile, Reached, Rule, RuleBuilder, Towards, UnknownVersion};
pub use groups::{GroupKind, GroupState, GroupView, MemberView};
pub use handle::{FakeCluster, NewRecord, StoredRecord};
pub use history::{Event, History};
pub use listeners::SecurityProtocol;
pub use offsets::Committed;
pub use operations::{Durability, Operation, Secret};
pub use security::sasl::SaslMechanism;
pub use serve::pipe::{PipeStream, Pipes};
#[cfg(feature = "tls")]
pub use serve::tls::{ClientAuth, ServerTls};
pub use telemetry::{Metric, MetricKind, MetricPoint, TelemetryPush};
pub use topics::validate_name as validate_topic_name;
pub use transactions::{TransactionState, TransactionView};
