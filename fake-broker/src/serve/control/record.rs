//! A record as the control port takes it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafka_protocol::Bytes;
use serde::Deserialize;

use super::http::Reply;
use crate::handle::NewRecord;

/// Bytes: as text, or in base64 where they are none.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "bytes are a text, or {\"base64\": \"…\"}")]
pub(super) enum Text {
    Plain(String),
    Base64 { base64: String },
}

/// What a record is made of: all of it can be absent. It is written as `GET …/records` shows it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RecordBody {
    pub(super) key: Option<Text>,
    pub(super) value: Option<Text>,
    /// Names and values, in their order.
    pub(super) headers: Vec<(String, Option<Text>)>,
    pub(super) timestamp: Option<i64>,
}

impl RecordBody {
    /// The record.
    ///
    /// # Errors
    ///
    /// The answer to one with bytes that are not base64.
    pub(super) fn record(self) -> Result<NewRecord, Reply> {
        let mut record = NewRecord::new();
        if let Some(key) = self.key {
            record = record.key(key.bytes()?);
        }
        if let Some(value) = self.value {
            record = record.value(value.bytes()?);
        }
        for (name, value) in self.headers {
            record = match value {
                Some(value) => record.header(name, value.bytes()?),
                None => record.null_header(name),
            };
        }
        Ok(match self.timestamp {
            Some(timestamp) => record.timestamp_ms(timestamp),
            None => record,
        })
    }
}

impl Text {
    fn bytes(self) -> Result<Bytes, Reply> {
        match self {
            Self::Plain(text) => Ok(text.into()),
            Self::Base64 { base64: text } => {
                let bytes = STANDARD.decode(&text);
                bytes.map(Bytes::from).map_err(|_| Reply::error(400, format!("`{text}` is not base64")))
            }
        }
    }
}
