//! A record as the control port takes it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafka_protocol::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::http::Reply;
use crate::handle::NewRecord;

/// Bytes: as text, or in base64 where they are none.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
pub(super) enum Text {
    Plain(String),
    Base64 { base64: String },
}

impl TryFrom<Value> for Text {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::String(text) => Ok(Self::Plain(text)),
            Value::Object(fields) if fields.len() == 1 => {
                let base64 = fields.get("base64").and_then(Value::as_str).ok_or(BYTES)?;
                Ok(Self::Base64 { base64: base64.to_owned() })
            }
            _ => Err(BYTES),
        }
    }
}

/// What bytes are.
const BYTES: &str = "bytes are a text, or {\"base64\": \"…\"}";

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
