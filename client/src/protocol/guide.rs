//! The samples of the protocol guide, as they stand in it.
//!
//! ```no_run
//! # async fn sample(conn: krafka::protocol::BrokerConnection) {
//! use krafka::protocol::ApiKey;
//! // negotiate_api_version(api_key, max, min) clamps to client MIN..MAX and broker range.
//! let fetch_version = conn
//!     .negotiate_api_version(ApiKey::Fetch, 12, 4)
//!     .await
//!     .expect("broker does not support any usable Fetch version");
//! println!("Using Fetch v{}", fetch_version);
//! # }
//! ```
//!
//! ```
//! use krafka::protocol::versions;
//! // Each API has both MIN and MAX constants
//! let min_fetch = versions::FETCH_MIN; // 4 (Kafka 3.9+ baseline)
//! let max_fetch = versions::FETCH_MAX; // 18 (v18 KIP-1166)
//! let min_produce = versions::PRODUCE_MIN; // 3 (v3+ transactions)
//! let max_produce = versions::PRODUCE_MAX; // 13 (v13 topic UUIDs, KIP-516)
//! let max_metadata = versions::METADATA_MAX; // 13 (v13 top-level error_code)
//! # assert_eq!([min_fetch, max_fetch, min_produce, max_produce, max_metadata], [4, 18, 3, 13, 13]);
//! # assert_eq!(krafka::protocol::ApiKey::Fetch.flexible_version(), Some(12));
//! # assert_eq!(krafka::protocol::ApiKey::Produce.flexible_version(), Some(9));
//! ```
//!
//! ```
//! # fn main() -> krafka::Result<()> {
//! # let metadata = krafka::protocol::MetadataResponse::default();
//! # let mut received = bytes::BytesMut::new();
//! # krafka::protocol::VersionedEncode::encode_versioned(&metadata, 1, &mut received)?;
//! use krafka::protocol::{VersionedEncode, VersionedDecode, MetadataRequest, MetadataResponse};
//!
//! let request = MetadataRequest::all_topics();
//! let mut buf = bytes::BytesMut::new();
//! // Encode for a specific protocol version — dispatches to the right encoder
//! request.encode_versioned(1, &mut buf)?;
//!
//! // In real usage, `response_buf` would be filled with bytes read from the network.
//! # let buf = received;
//! let mut response_buf = buf.freeze();
//! // Decode response for a specific version
//! let response = MetadataResponse::decode_versioned(1, &mut response_buf)?;
//! # assert_eq!(response, metadata);
//!
//! // A version that nobody knows is an error that says so.
//! let error: krafka::KrafkaError = request.encode_versioned(-1, &mut bytes::BytesMut::new()).unwrap_err().into();
//! assert!(matches!(error, krafka::KrafkaError::Protocol { .. }), "{error}");
//! # Ok(())
//! # }
//! ```
//!
//! ```
//! # fn main() -> krafka::Result<()> {
//! use krafka::protocol::{RecordBatchBuilder, Compression};
//!
//! let batch = RecordBatchBuilder::new()
//!     .compression(Compression::Snappy)
//!     .add_record(Some(b"key"), Some(b"value"), vec![])
//!     .add_record(None, Some(b"value-only"), vec![])
//!     .build()?;
//! # let _ = batch;
//! # Ok(())
//! # }
//! ```
