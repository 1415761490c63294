//! A Kafka client that is tested like a database.
//!
//! ```no_run
//! # async fn example() -> krafka::Result<()> {
//! use krafka::{Kafka, Record};
//!
//! let kafka = Kafka::builder("kafka-1:9092,kafka-2:9092").client_id("shop").connect().await?;
//!
//! let producer = kafka.producer().build().await?;
//! producer.send(Record::new("orders", "three apples").key("customer-7")).await?;
//!
//! let consumer = kafka.consumer("billing").build().await?;
//! consumer.subscribe(&["orders"]).await?;
//! let record = consumer.recv().await?;
//! # Ok(())
//! # }
//! ```
//!
//! | to | see |
//! | --- | --- |
//! | connect, with TLS and SASL | [`Kafka`], [`KafkaBuilder`] |
//! | write records | [`producer`] |
//! | read records, alone or in a group | [`consumer`] |
//! | make and describe topics | [`AdminClient`] |
//! | know what went wrong, and whether to retry | [`KrafkaError`] |
//! | know what the client did, in numbers, or in spans | [`metrics`], [`OTEL_SEMCONV_VERSION`] |
//! | test against an in-process cluster that breaks as told | `testing` (feature `test-broker`) |
//! | connect through a SOCKS5 proxy | [`Socks5`] |
//! | bring another network, clock or seed | [`Environment`] |
//! | speak the wire protocol | `protocol` (feature `protocol`) |
//!
//! Everything made from one [`Kafka`] handle shares its connections and its view of the cluster. Everything is
//! [`Send`], and says under "Cancel safety" what dropping a future means.

mod admin;
mod auth;
mod backoff;
mod bootstrap;
mod calendar;
mod cluster;
pub mod consumer;
mod drive;
mod environment;
mod error;
#[cfg(feature = "tls")]
mod files;
mod kafka;
mod kafka_builder;
mod limits;
pub mod metrics;
mod network;
pub mod producer;
mod properties;
#[cfg(feature = "protocol")]
pub mod protocol;
mod rng;
mod spans;
#[cfg(feature = "test-broker")]
pub mod testing;
#[cfg(feature = "tls")]
mod tls;
mod topic_name;
mod types;
mod unwind;

pub use admin::{AdminClient, ClusterInfo, ItemResults, NewTopic};
#[cfg(feature = "aws-config")]
pub use auth::AwsSdk;
#[cfg(feature = "oidc")]
pub use auth::{Assertion, AssertionAlgorithm, Oidc};
pub use auth::{
    AwsCredentials, AwsCredentialsProvider, AwsEnvironment, BearerToken, MskIam, ProvidingCredentials, ProvidingToken,
    TokenError, TokenProvider,
};
pub use cluster::MetadataRecoveryStrategy;
pub use consumer::{Consumer, ConsumerRecord};
pub use environment::{Connect, Connecting, Environment, Stream, SystemClock, WallClock};
pub use error::{ErrorCode, Explanation, KrafkaError, ProtocolErrorKind, Recovery, Result};
pub use kafka::Kafka;
pub use kafka_builder::KafkaBuilder;
pub use krafka_protocol::{Compression, Str};
pub use network::{Socks5, TcpConnect};
pub use producer::{DeliveryHandle, Producer, Record, RecordMetadata};
pub use spans::OTEL_SEMCONV_VERSION;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsVersion};
pub use types::{BrokerInfo, PartitionInfo, TopicInfo, TopicPartition};

/// The README's examples, compiled and run with the other documentation tests.
#[cfg(all(doctest, feature = "test-broker"))]
#[doc = include_str!("../../README.md")]
struct Readme;
