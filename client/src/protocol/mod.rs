//! The wire protocol, for whoever wants to speak it: all of [`krafka_protocol`], and [connections](BrokerConnection) of
//! one's own to the brokers of a cluster.
//!
//! ```no_run
//! use krafka::protocol::{ApiKey, DescribeClusterRequest};
//!
//! # async fn example(kafka: krafka::Kafka) -> krafka::Result<()> {
//! let conn = kafka.broker_connection(1).await?;
//! if conn.broker_features().await?.finalized_level("transaction.version") >= Some(2) {
//!     println!("transactions of KIP-890");
//! }
//! let answer = conn.call(DescribeClusterRequest::default()).await?;
//! println!("{} brokers", answer.brokers.len());
//!
//! // negotiate_api_version(api_key, max, min) clamps to what the client and the broker speak.
//! let fetch_version = conn
//!     .negotiate_api_version(ApiKey::Fetch, 12, 4)
//!     .await
//!     .expect("broker does not support any usable Fetch version");
//! println!("Using Fetch v{}", fetch_version);
//! # Ok(())
//! # }
//! ```
//!
//! Encoding and decoding by hand needs no connection:
//!
//! ```
//! use krafka::protocol::{MetadataRequest, VersionedDecode, VersionedEncode};
//!
//! # fn main() -> krafka::Result<()> {
//! let request = MetadataRequest::all_topics();
//! let mut buf = bytes::BytesMut::new();
//! request.encode_versioned(1, &mut buf)?;
//! assert_eq!(MetadataRequest::decode_versioned(1, &mut buf.freeze())?, request);
//! # Ok(())
//! # }
//! ```

#[cfg(doctest)]
mod guide;

use std::any::Any;
use std::fmt;
use std::io;

pub use krafka_protocol::*;

use crate::error::{KrafkaError, ProtocolErrorKind};
use crate::kafka::Kafka;
pub use crate::network::BrokerFeatures;
use crate::network::{CallError, Connection, Lane};

/// A connection to one broker, for requests that krafka has no call of its own for.
///
/// Nothing else uses it, so a request that the broker parks holds up nobody. It knows nothing of leaders, coordinators
/// and retries: what the broker answers is what you get, error codes included. Made by
/// [`Kafka::broker_connection`]; when the broker closes the connection, the next call opens it again. It closes when
/// it is dropped.
pub struct BrokerConnection {
    kafka: Kafka,
    node: crate::cluster::Node,
    lane: Lane,
}

impl Kafka {
    /// Opens a connection to the broker with this id, in addition to those that the handle has.
    ///
    /// # Errors
    /// [`KrafkaError::Network`] if the cluster has no such broker, or it cannot be reached;
    /// [`KrafkaError::Auth`] if it refuses the credentials.
    ///
    /// # Cancel safety
    /// Dropping the future may leave an open connection behind, which closes after the handle's idle time.
    pub async fn broker_connection(&self, broker_id: i32) -> Result<BrokerConnection, KrafkaError> {
        let known = self.cluster().snapshot().node(broker_id).cloned();
        let node = match known {
            Some(node) => Some(node),
            None => self.cluster().load(&[]).await?.node(broker_id).cloned(),
        };
        let Some(node) = node else {
            let missing = io::Error::new(io::ErrorKind::NotFound, "the cluster has no broker with this id at present");
            return Err(KrafkaError::network(format!("connecting to broker {broker_id}"), missing));
        };
        let lane = Lane::Own(self.next_owner());
        let connection = BrokerConnection { kafka: self.clone(), node: node.as_ref().clone(), lane };
        connection.open().await?;
        Ok(connection)
    }
}

impl BrokerConnection {
    /// The broker's id.
    pub fn broker_id(&self) -> i32 {
        self.node.id
    }

    /// Returns the highest version of an API that is at most `max`, that the broker serves, and that this crate can
    /// [read and write](ApiKey::versions).
    ///
    /// # Errors
    /// [`KrafkaError::Protocol`] if there is none, or it is below `min`: names the API and the ranges. Otherwise those
    /// of opening the connection again, if it was closed.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    pub async fn negotiate_api_version(&self, key: ApiKey, max: i16, min: i16) -> Result<i16, KrafkaError> {
        let connection = self.open().await?;
        let Some(ours) = key.versions() else {
            let message = format!("{key} is not an API that krafka can read and write");
            return Err(KrafkaError::protocol(ProtocolErrorKind::UnsupportedVersion, message));
        };
        let wanted = Versions::new(min.max(ours.min), max.min(ours.max));
        connection.versions().negotiate_within(key, wanted).map_err(|mismatch| mismatch.at(&self.node))
    }

    /// Returns the versions of an API that the broker serves, or `None` if it does not serve it.
    ///
    /// # Errors
    /// Those of opening the connection again, if it was closed.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    pub async fn api_versions(&self, key: ApiKey) -> Result<Option<Versions>, KrafkaError> {
        let range = self.open().await?.versions().range(key);
        Ok(range.map(|(min, max)| Versions::new(min, max)))
    }

    /// Returns what the broker told of the cluster's features when the connection was made (KIP-584).
    ///
    /// # Errors
    /// Those of opening the connection again, if it was closed.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    pub async fn broker_features(&self) -> Result<BrokerFeatures, KrafkaError> {
        Ok(self.open().await?.versions().features().clone())
    }

    /// Sends a request in the highest version that broker and client speak, and returns the answer.
    ///
    /// A Produce request with `acks` 0, which no broker answers, returns an empty response once it is written.
    ///
    /// # Errors
    /// [`KrafkaError::Protocol`] if the broker does not serve the API, or a field is set that the version does not
    /// have; [`KrafkaError::Timeout`] if the answer takes longer than the handle's request timeout;
    /// [`KrafkaError::Network`] if the connection fails. Error codes inside the response are yours to read.
    ///
    /// # Cancel safety
    /// Dropping the future before the request is written means that it never is; after that the broker acts on it,
    /// and the answer is discarded.
    pub async fn call<R>(&self, request: R) -> Result<R::Response, KrafkaError>
    where
        R: Request + 'static,
        R::Response: Send + 'static,
    {
        let connection = self.open().await?;
        let version = connection.version::<R>()?;
        self.send(&connection, request, version).await
    }

    /// Sends a request in a version of your choice, and returns the answer.
    ///
    /// # Errors
    /// Those of [`call`](Self::call); [`KrafkaError::Protocol`] too if the broker does not serve this version.
    ///
    /// # Cancel safety
    /// As for [`call`](Self::call).
    pub async fn call_at<R>(&self, request: R, version: i16) -> Result<R::Response, KrafkaError>
    where
        R: Request + 'static,
        R::Response: Send + 'static,
    {
        let connection = self.open().await?;
        let version = connection
            .versions()
            .negotiate_within(R::KEY, Versions::new(version, version))
            .map_err(|mismatch| mismatch.at(&self.node))?;
        self.send(&connection, request, version).await
    }

    async fn send<R>(&self, connection: &Connection, request: R, version: i16) -> Result<R::Response, KrafkaError>
    where
        R: Request + 'static,
        R::Response: Send + 'static,
    {
        let timeout = self.kafka.request_timeout();
        let is_answered = (&request as &dyn Any).downcast_ref::<ProduceRequest>().is_none_or(|it| it.acks != 0);
        if is_answered {
            return Ok(connection.submit_at(request, version, timeout).await?);
        }
        connection.submit_unanswered(request, version, timeout).await?;
        Ok(R::Response::default())
    }

    async fn open(&self) -> Result<Connection, CallError> {
        self.kafka.network().connection(&self.node, self.lane).await
    }
}

impl Drop for BrokerConnection {
    fn drop(&mut self) {
        self.kafka.network().release(vec![self.lane]);
    }
}

impl fmt::Debug for BrokerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerConnection").field("node", &format_args!("{}", self.node)).finish_non_exhaustive()
    }
}

impl From<EncodeError> for KrafkaError {
    fn from(error: EncodeError) -> Self {
        Self::protocol(ProtocolErrorKind::Unencodable, error.to_string())
    }
}

impl From<DecodeError> for KrafkaError {
    fn from(error: DecodeError) -> Self {
        Self::protocol(ProtocolErrorKind::Malformed, error.to_string())
    }
}

impl From<records::RecordsError> for KrafkaError {
    fn from(error: records::RecordsError) -> Self {
        match error {
            records::RecordsError::Compression(_) | records::RecordsError::Decompression { .. } => {
                Self::Compression { message: error.to_string().into() }
            }
            error => Self::protocol(ProtocolErrorKind::Malformed, error.to_string()),
        }
    }
}
