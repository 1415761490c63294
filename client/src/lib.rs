//! A Kafka client that is tested like a database.

mod auth;
mod backoff;
mod cluster;
pub mod consumer;
mod drive;
mod environment;
mod error;
mod limits;
mod network;
pub mod producer;
mod rng;
mod types;

pub use environment::{Connect, Connecting, Environment, Stream, SystemClock, WallClock};
pub use error::{ErrorCode, KrafkaError, ProtocolErrorKind, Result};
pub use types::{BrokerInfo, PartitionInfo, TopicInfo, TopicPartition};
