//! A Kafka client that is tested like a database.

mod admin;
mod auth;
mod backoff;
mod bootstrap;
mod cluster;
pub mod consumer;
mod drive;
mod environment;
mod error;
mod kafka;
mod kafka_builder;
mod limits;
mod network;
pub mod producer;
mod rng;
#[cfg(feature = "test-broker")]
pub mod testing;
mod types;

pub use admin::{AdminClient, ClusterInfo, ItemResults, NewTopic};
pub use cluster::MetadataRecoveryStrategy;
pub use consumer::{Consumer, ConsumerRecord};
pub use environment::{Connect, Connecting, Environment, Stream, SystemClock, WallClock};
pub use error::{ErrorCode, KrafkaError, ProtocolErrorKind, Result};
pub use kafka::Kafka;
pub use kafka_builder::KafkaBuilder;
pub use krafka_protocol::{Compression, Str};
pub use network::TcpConnect;
pub use producer::{DeliveryHandle, Producer, Record, RecordMetadata};
pub use types::{BrokerInfo, PartitionInfo, TopicInfo, TopicPartition};
