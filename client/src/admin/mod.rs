//! Administration: [`AdminClient`].

use crate::kafka::Kafka;

/// A client for administration: topics and the cluster.
#[derive(Clone, Debug)]
pub struct AdminClient {
    kafka: Kafka,
}

impl AdminClient {
    pub(crate) fn new(kafka: Kafka) -> Self {
        Self { kafka }
    }
}
