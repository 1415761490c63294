//! The Kafka wire protocol: messages, record batches and compression, without I/O.

pub mod compression;
pub mod records;

pub use bytes::Bytes;
pub use compression::Compression;
pub use records::RecordBatchBuilder;
