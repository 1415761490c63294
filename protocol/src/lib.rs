//! The Kafka wire protocol: messages, record batches and compression, without I/O.

extern crate self as krafka_protocol;

pub mod api;
pub mod compression;
mod error_code;
pub mod frame;
pub mod group;
mod header;
pub mod machine;
mod message;
pub mod records;
pub mod schema;
pub mod script;
pub mod value;
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
pub use records::RecordBatchBuilder;
pub use schema::{FieldDefault, FieldSchema, FieldType, MessageSchema, Versions};
pub use wire::{DecodeError, EncodeError, Reader, Str, Uuid, Writer};
