//! The handle: connecting, connections and administration. Over pipes with a paused clock, and over TCP where the
//! socket is the point.

mod access;
mod admin;
mod auth_trouble;
mod capped;
mod capped_trouble;
mod connect;
mod connection;
mod dialling;
mod endings;
#[cfg(all(feature = "tls", unix))]
mod files;
mod frozen;
mod hanging;
mod hooks;
#[cfg(all(feature = "keystores", unix))]
mod keystores;
mod logs;
mod metadata;
mod metrics;
mod narrow;
mod observed;
#[cfg(feature = "oidc")]
mod oidc;
mod providers;
mod proxy;
mod raw;
mod renewal;
mod rolling;
mod sasl;
#[cfg(all(feature = "oidc", feature = "encrypted-keys"))]
mod secrets;
mod spans;
#[cfg(feature = "tls")]
mod tls;
#[cfg(all(feature = "tls", feature = "encrypted-keys"))]
mod tls_material;
#[cfg(feature = "tls")]
mod tls_trouble;

use krafka::testing::FakeCluster;
use krafka::{Environment, Kafka, KafkaBuilder};

/// A builder for a client of a fake cluster on pipes.
fn client(fake: &FakeCluster) -> KafkaBuilder {
    Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1))
}

/// Fails unless the text has all the words that its reader needs.
#[track_caller]
fn assert_says(error: &krafka::KrafkaError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "'{text}' lacks '{word}'");
    }
}
