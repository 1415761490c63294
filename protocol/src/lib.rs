//! The Kafka wire protocol: messages, record batches and compression, without I/O.
//!
//! Every message is a plain struct with Kafka's own field names, which can be written and read in all versions that
//! Kafka 3.9 to 4.4 speak, on the client's side and on the broker's:
//!
//! ```
//! use krafka_protocol::frame::{LENGTH_SIZE, encode_request};
//! use krafka_protocol::{ApiKey, FindCoordinatorRequest, Message, Reader, decode_request_header, versions};
//!
//! let request = FindCoordinatorRequest { key: "payments".into(), ..Default::default() };
//! let frame = encode_request(&request, 3, 1, Some("my-client"))?;
//!
//! let mut input = Reader::new(frame.to_bytes().slice(LENGTH_SIZE..));
//! let header = decode_request_header(&mut input)?;
//! assert_eq!(ApiKey::try_from(header.key)?, ApiKey::FindCoordinator);
//! assert_eq!(FindCoordinatorRequest::decode(&mut input, header.version)?, request);
//!
//! // Version 4 asks for many keys at once, and has no place for this one.
//! let error = encode_request(&request, versions::FIND_COORDINATOR_MAX, 2, None).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "FindCoordinatorRequest v6, key: the field is set, and this version does not have it"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Records are not decoded with the message that carries them: they are a `Bytes` that [`records`] reads and writes.
//!
//! | where                    | what                                                                                 |
//! |--------------------------|--------------------------------------------------------------------------------------|
//! | [`api`]                  | the messages, a module for each API; [`ApiKey`], [`AnyRequest`], [`AnyResponse`]     |
//! | [`Message`], [`Request`] | what a message can do; the derive of the same name writes it                         |
//! | [`frame`]                | lengths and headers around messages                                                  |
//! | [`wire`]                 | [`Reader`] and [`Writer`], and how single values look: [`Str`], [`Uuid`]             |
//! | [`schema`], [`value`]    | a message's fields as data, for code that does not know its type                     |
//! | [`ErrorCode`]            | what a broker's error codes are called and mean                                      |
//! | [`records`]              | record batches: built in place, read without copying                                 |
//! | [`compression`]          | gzip, snappy, lz4 and zstd                                                           |
//! | [`group`]                | what members of a group tell each other inside JoinGroup and SyncGroup               |
//! | [`coordinator`]          | what brokers keep in their own topics: offsets, groups, transactions                 |
//! | [`versions`]             | the lowest and highest version of each API, as constants                             |
//! | [`VersionedEncode`]      | messages in plain buffers, without frames                                            |
//! | [`machine`], [`script`]  | the shape of the state machines in the crates above this one, and their test harness |
//!
//! What comes from outside is never trusted: bad bytes are an error that names the message, the version and the field,
//! and a frame cannot make a [`Reader`] allocate more than its budget.

extern crate self as krafka_protocol;

pub mod api;
pub mod compression;
pub mod coordinator;
pub mod declaring;
mod error_code;
pub mod frame;
pub mod group;
mod header;
pub mod machine;
mod message;
mod principal;
pub mod records;
pub mod schema;
pub mod script;
pub mod value;
mod versioned;
pub mod wire;

pub use api::requests_and_responses::*;
pub use api::{AnyRequest, AnyResponse, ApiKey, versions};
pub use bytes::Bytes;
pub use compression::Compression;
pub use error_code::{ErrorCode, Recovery};
pub use header::{RequestHeader, decode_request_header, decode_response_header};
pub use krafka_protocol_derive::Message;
pub use machine::Machine;
pub use message::{Message, Request};
pub use principal::DefaultPrincipalData;
pub use records::RecordBatchBuilder;
pub use schema::{FieldDefault, FieldSchema, FieldType, MessageSchema, Versions};
pub use versioned::{VersionedDecode, VersionedEncode};
pub use wire::{DecodeError, EncodeError, NodeIds, Reader, Str, TryEncode, Uuid, Writer};

/// The samples of the protocol guide.
///
/// ```no_run
/// use krafka_protocol::{MetadataRequest, MetadataResponse, VersionedDecode, VersionedEncode};
///
/// let request = MetadataRequest::all_topics();
/// let mut buf = bytes::BytesMut::new();
/// request.encode_versioned(1, &mut buf)?;
/// // In real usage, `response_buf` holds the bytes of a response.
/// let mut response_buf = buf.freeze();
/// let response = MetadataResponse::decode_versioned(1, &mut response_buf)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```
/// use krafka_protocol::{ApiKey, versions};
///
/// assert_eq!((versions::FETCH_MIN, versions::FETCH_MAX), (4, 18));
/// assert_eq!((versions::PRODUCE_MIN, versions::PRODUCE_MAX), (3, 13));
/// assert_eq!(versions::METADATA_MAX, 13);
/// assert_eq!(ApiKey::Fetch.flexible_version(), Some(12));
/// ```
///
/// ```
/// use krafka_protocol::{Compression, RecordBatchBuilder};
///
/// let batch = RecordBatchBuilder::new()
///     .compression(Compression::Snappy)
///     .add_record(Some(b"key"), Some(b"value"), vec![])
///     .add_record(None, Some(b"value-only"), vec![])
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(doctest)]
struct GuideSamples;
