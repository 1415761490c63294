//! The Kafka wire protocol: messages, record batches and compression, without I/O.
//!
//! Every API that Kafka 4.4 serves, in every version since Kafka 3.9, for clients and for brokers. Ten minutes with
//! this page are enough to use it.
//!
//! # A request and its answer
//!
//! A message is a plain struct with Kafka's own field names. [`frame`] puts length and header around it:
//!
//! ```
//! use krafka_protocol::api::find_coordinator::Coordinator;
//! use krafka_protocol::frame::{LENGTH_SIZE, encode_request, encode_response};
//! use krafka_protocol::{
//!     ApiKey, FindCoordinatorRequest, FindCoordinatorResponse, Message, Reader, decode_request_header,
//!     decode_response_header,
//! };
//!
//! // The client: version 4, correlation id 1.
//! let request = FindCoordinatorRequest { coordinator_keys: vec!["payments".into()], ..Default::default() };
//! let frame = encode_request(&request, 4, 1, Some("my-client"))?;
//!
//! // The broker takes the length off, reads the header, and then what the header says.
//! let mut input = Reader::new(frame.to_bytes().slice(LENGTH_SIZE..));
//! let header = decode_request_header(&mut input)?;
//! assert_eq!((ApiKey::try_from(header.key)?, header.version), (ApiKey::FindCoordinator, 4));
//! assert_eq!(FindCoordinatorRequest::decode(&mut input, header.version)?, request);
//!
//! let key = "payments".into();
//! let found = Coordinator { key, node_id: 3, host: "kafka-3".into(), port: 9092, ..Default::default() };
//! let response = FindCoordinatorResponse { coordinators: vec![found], ..Default::default() };
//! let frame = encode_response(ApiKey::FindCoordinator, &response, header.version, header.correlation_id)?;
//!
//! // The client again.
//! let mut input = Reader::new(frame.to_bytes().slice(LENGTH_SIZE..));
//! assert_eq!(decode_response_header(ApiKey::FindCoordinator, 4, &mut input)?, 1);
//! assert_eq!(FindCoordinatorResponse::decode(&mut input, 4)?, response);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Versions
//!
//! One struct is all versions of a message. What a version does not have is at its default after reading, and must be
//! at its default for writing, unless Kafka says that it may be dropped. Then nothing gets lost silently:
//!
//! ```
//! use krafka_protocol::frame::encode_request;
//! use krafka_protocol::{ApiKey, FindCoordinatorRequest, versions};
//!
//! // Version 4 asks for many keys at once, and has no place for this one.
//! let request = FindCoordinatorRequest { key: "payments".into(), ..Default::default() };
//! let error = encode_request(&request, versions::FIND_COORDINATOR_MAX, 2, None).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "FindCoordinatorRequest v6, key: the field is set, and this version does not have it"
//! );
//!
//! // What Kafka 4.4 serves is what a client should choose from; what this crate can read goes further back.
//! assert_eq!(ApiKey::Fetch.offered().map(|range| range.to_string()).as_deref(), Some("4-18"));
//! assert_eq!(ApiKey::Fetch.versions().map(|range| range.to_string()).as_deref(), Some("0-18"));
//! ```
//!
//! A client asks a broker what it serves (an ApiVersions request in version 4, which every broker since 3.9 answers),
//! and takes the highest version that both offer:
//!
//! ```
//! use krafka_protocol::api::api_versions::ApiVersion;
//! use krafka_protocol::{ApiKey, ApiVersionsResponse, Versions};
//!
//! let fetch = ApiVersion { api_key: ApiKey::Fetch.code(), min_version: 4, max_version: 17 };
//! let answer = ApiVersionsResponse { api_keys: vec![fetch], ..Default::default() };
//!
//! let served = answer.api_keys.iter().find(|api| api.api_key == ApiKey::Fetch.code());
//! let served = served.map(|api| Versions::new(api.min_version, api.max_version));
//! let common = served.and_then(|served| served.intersection(&ApiKey::Fetch.offered()?));
//! assert_eq!(common.map(|common| common.max), Some(17));
//! ```
//!
//! A version that Kafka still calls unstable needs the feature `unstable-protocol`.
//!
//! # Messages whose type is not known
//!
//! A proxy, a fake broker or a tool that prints traffic reads [`AnyRequest`] and [`AnyResponse`], and can look at any
//! message as data ([`schema`], [`value`]):
//!
//! ```
//! use krafka_protocol::value::Value;
//! use krafka_protocol::{AnyRequest, ApiKey, Bytes, Reader};
//!
//! let body = Bytes::from_static(b"\x00\x03foo\x00\x00\x00\x07\x00\x02me");
//! let request = AnyRequest::decode(ApiKey::Heartbeat, 0, &mut Reader::new(body))?;
//! let structure = request.structure();
//!
//! let mut seen = Vec::new();
//! for (index, field) in structure.schema().fields.iter().enumerate().filter(|(_, field)| field.versions.contains(0)) {
//!     seen.push(match structure.field(index) {
//!         Some(Value::Str(text)) => format!("{}: {text}", field.name),
//!         Some(Value::Int(number)) => format!("{}: {number}", field.name),
//!         _ => field.name.to_owned(),
//!     });
//! }
//! assert_eq!(seen, ["group_id: foo", "generation_id: 7", "member_id: me"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A response does not say what it answers. Its first four bytes, the correlation id, are those of the request's
//! header: who reads both ways remembers API and version by it.
//!
//! Tagged fields that nobody here knows yet are skipped. Who must pass them on keeps them beside the message:
//! [`UnknownTags`].
//!
//! # Records
//!
//! Records are not decoded with the message that carries them: there they are a [`Bytes`], a slice of the frame that
//! came in. [`records`] builds batches in place and reads them without copying:
//!
//! ```
//! use krafka_protocol::compression::{Compression, Decompressor};
//! use krafka_protocol::records::Batches;
//! use krafka_protocol::RecordBatchBuilder;
//!
//! let batch = RecordBatchBuilder::new()
//!     .compression(Compression::Lz4)
//!     .add_record(Some(b"customer-7"), Some(b"three apples"), vec![])
//!     .add_record(Some(b"customer-8"), None, vec![])
//!     .build()?;
//!
//! let mut decompressor = Decompressor::default();
//! let mut values = Vec::new();
//! for batch in Batches::new(batch) {
//!     let batch = batch?;
//!     batch.verify_crc()?;
//!     for record in batch.records(&mut decompressor)?.iter() {
//!         values.push(record?.value.map(<[u8]>::to_vec));
//!     }
//! }
//! assert_eq!(values, [Some(b"three apples".to_vec()), None]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Messages of the formats 0 and 1, from before Kafka 0.11, are read in the same way, compressed ones too. A batch
//! may be a broker's mark instead of data: [`records::ControlRecord`] reads those.
//!
//! What brokers keep in topics of their own, committed offsets for instance, has types as well: [`coordinator`].
//!
//! # Errors
//!
//! What a broker answers with is an [`ErrorCode`]: its name, what it means, and what a client should do about it. What
//! goes wrong here is an [`EncodeError`] or a [`DecodeError`], which names the message, the version and the field:
//!
//! ```
//! use krafka_protocol::{Bytes, ErrorCode, HeartbeatRequest, Message, Reader, Recovery};
//!
//! assert_eq!(ErrorCode(16).name(), "NOT_COORDINATOR");
//! assert_eq!(ErrorCode(16).recovery(), Recovery::RefreshCoordinator);
//!
//! let cut = Bytes::from_static(b"\x00\x03fo");
//! let error = HeartbeatRequest::decode(&mut Reader::new(cut), 0).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "HeartbeatRequest v0, group_id: string length 3 is impossible with 2 bytes left"
//! );
//! ```
//!
//! # What comes from outside is never trusted
//!
//! No bytes make this crate panic or run for ever. The length of an array is believed only as far as the input could
//! hold that many elements, and what a frame may make us allocate is bounded by a budget ([`Reader::with_budget`]);
//! what records may decompress to, by another. Neither refuses what a broker legally sends.
//!
//! # What it costs
//!
//! Strings, bytes and records are slices of the frame. Large ones are spliced into the outgoing frame, which is a
//! chain of chunks for a vectored write. `benches/README.md` in the repository has the figures, beside another Rust
//! codec.
//!
//! # Where things are
//!
//! | where                    | what                                                                                 |
//! |--------------------------|--------------------------------------------------------------------------------------|
//! | [`api`]                  | the messages, a module for each API; [`ApiKey`], [`AnyRequest`], [`AnyResponse`]     |
//! | [`Message`], [`Request`] | what a message can do; the derive of the same name writes it                         |
//! | [`declaring`]            | how a message is declared, and how we know that it is right                          |
//! | [`frame`]                | lengths and headers around messages                                                  |
//! | [`wire`]                 | [`Reader`] and [`Writer`], and how single values look: [`Str`], [`Uuid`]             |
//! | [`schema`], [`value`]    | a message's fields as data, for code that does not know its type                     |
//! | [`ErrorCode`]            | what a broker's error codes are called and mean                                      |
//! | [`records`]              | record batches: built in place, read without copying                                 |
//! | [`compression`]          | gzip, snappy, lz4 and zstd                                                           |
//! | [`group`]                | what members of a group tell each other inside JoinGroup and SyncGroup               |
//! | [`coordinator`]          | what brokers keep in their own topics: offsets, groups, transactions                 |
//! | [`versions`]             | the lowest and highest version of each API that Kafka 4.4 serves, as constants       |
//! | [`VersionedEncode`]      | messages in plain buffers, without frames; single values: [`TryEncode`]              |
//! | [`machine`], [`script`]  | the shape of the state machines in the crates above this one, and their test harness |
//!
//! | feature             | what                                                                                      |
//! |---------------------|-------------------------------------------------------------------------------------------|
//! | `zstd`              | compresses with the C library; reading zstd is always there, in Rust                      |
//! | `zstd-rust`         | compresses without C                                                                      |
//! | `unstable-protocol` | the versions that Kafka still calls unstable                                              |
//!
//! To judge the codec from outside, feed it bytes: `cargo run -p krafka-protocol --example recode -- --help`.

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
pub use header::{RequestHeader, decode_request_header, decode_response_header, encode_response_header};
pub use krafka_protocol_derive::Message;
pub use machine::Machine;
pub use message::{Message, Request};
pub use principal::DefaultPrincipalData;
pub use records::RecordBatchBuilder;
pub use schema::{FieldDefault, FieldSchema, FieldType, MessageSchema, Versions};
pub use versioned::{VersionedDecode, VersionedEncode};
pub use wire::{DecodeError, EncodeError, NodeIds, Reader, Str, TryEncode, UnknownTags, Uuid, Writer};

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
