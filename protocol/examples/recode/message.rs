//! One message: read, written again, and printed.

use std::panic::catch_unwind;

use krafka_protocol::value::Structure;
use krafka_protocol::{
    AnyRequest, AnyResponse, ApiKey, ApiVersionsResponse, Bytes, DecodeError, EncodeError, ErrorCode, Message as _,
    MessageSchema, Reader, UnknownTags, Writer,
};

use super::hex::{push_hex, unhex};
use super::lines::Line;
use super::rendering::render;

/// The five columns that answer a line of four.
pub(crate) fn answer(line: Line<'_>) -> String {
    let columns: Vec<&[u8]> = line.bytes.split(|byte| *byte == b'\t').map(<[u8]>::trim_ascii).collect();
    let column = |index: usize| columns.get(index).copied().unwrap_or_default();
    let mut answer = String::new();
    for index in 0..3 {
        push_echo(&mut answer, column(index));
        answer.push('\t');
    }

    let recoded = match columns.len() {
        _ if line.dropped > 0 => Err(format!("the line is longer than {} bytes", line.bytes.len())),
        4 => recode([column(0), column(1), column(2), column(3)]),
        1 if line.bytes.is_empty() => Err("the line is empty".to_owned()),
        count => Err(format!("the line has {count} columns instead of 4")),
    };
    match recoded {
        Ok(Recoded { bytes, json }) => {
            // Without bytes the column is as it was: the sign for none, or empty.
            if bytes.is_empty() {
                answer.push_str(if column(3).is_empty() { "" } else { "-" })
            }
            push_hex(&mut answer, &bytes);
            answer.push('\t');
            answer.push_str(&json);
        }
        Err(reason) => {
            answer.push_str("ERROR ");
            answer.extend(reason.chars().map(|letter| if letter.is_control() { ' ' } else { letter }));
            answer.push_str("\tnull");
        }
    }
    answer
}

/// What became of a message.
struct Recoded {
    bytes: Bytes,
    json: String,
}

fn recode([key, version, direction, hex]: [&[u8]; 4]) -> Result<Recoded, String> {
    let key = number(key).ok_or("the API key is no number of 16 bits")?;
    let version = number(version).ok_or("the version is no number of 16 bits")?;
    let direction = match direction {
        b"request" => Direction::Request,
        b"response" => Direction::Response,
        _ => return Err("the direction is neither request nor response".to_owned()),
    };
    let key = ApiKey::from_code(key).ok_or_else(|| format!("unknown API key {key}"))?;
    if !direction.schema(key).is_some_and(|schema| schema.versions.contains(version)) {
        return Err("unsupported version".to_owned());
    }
    let bytes = if hex == b"-" { Bytes::new() } else { Bytes::from(unhex(hex)?) };

    // A panic would be a fault of the codec. It costs its own line, so that the judgement of all others stands.
    let recoded = catch_unwind(|| recode_body(direction, key, version, bytes));
    recoded.unwrap_or_else(|_| Err("the codec panicked: its message is on standard error".to_owned()))
}

fn recode_body(direction: Direction, key: ApiKey, version: i16, bytes: Bytes) -> Result<Recoded, String> {
    let (message, unknown, version) = match direction.decode_all(key, version, bytes.clone()) {
        Ok((message, unknown)) => (message, unknown, version),
        // A broker that does not know the version answers ApiVersions with an error in version 0.
        Err(error) => match direction.decode_all(key, 0, bytes) {
            Ok((Any::Response(AnyResponse::ApiVersions(refusal)), unknown))
                if refusal.error_code == ErrorCode::UNSUPPORTED_VERSION.0 =>
            {
                (Any::Response(refusal.into()), unknown, 0)
            }
            _ => return Err(error),
        },
    };
    let json = render(message.structure(), version, &unknown).json;
    let bytes = message.encode(version, unknown).map_err(|error| error.to_string())?;
    Ok(Recoded { bytes, json })
}

#[derive(Clone, Copy)]
enum Direction {
    Request,
    Response,
}

impl Direction {
    fn schema(self, key: ApiKey) -> Option<&'static MessageSchema> {
        let [request, response] = key.schemas()?;
        Some(match self {
            Self::Request => request,
            Self::Response => response,
        })
    }

    fn decode_all(self, key: ApiKey, version: i16, bytes: Bytes) -> Result<(Any, UnknownTags), String> {
        let mut input = Reader::new(bytes).keep_unknown_tags();
        let message = self.decode(key, version, &mut input).map_err(|error| error.to_string())?;
        match input.remaining() {
            0 => Ok((message, input.take_unknown_tags())),
            left => Err(format!("the message ends before its bytes do: {left} are left")),
        }
    }

    fn decode(self, key: ApiKey, version: i16, input: &mut Reader) -> Result<Any, DecodeError> {
        match self {
            Self::Request => AnyRequest::decode(key, version, input).map(Any::Request),
            // Not as a client reads it, who takes every answer with this error for one in version 0.
            Self::Response if key == ApiKey::ApiVersions => {
                ApiVersionsResponse::decode(input, version).map(|response| Any::Response(response.into()))
            }
            Self::Response => AnyResponse::decode(key, version, input).map(Any::Response),
        }
    }
}

enum Any {
    Request(AnyRequest),
    Response(AnyResponse),
}

impl Any {
    fn encode(&self, version: i16, unknown: UnknownTags) -> Result<Bytes, EncodeError> {
        let mut out = Writer::new().with_unknown_tags(unknown);
        match self {
            Self::Request(request) => request.encode(&mut out, version)?,
            Self::Response(response) => response.encode(&mut out, version)?,
        }
        Ok(out.into_bytes())
    }

    fn structure(&self) -> &dyn Structure {
        match self {
            Self::Request(request) => request.structure(),
            Self::Response(response) => response.structure(),
        }
    }
}

fn number(column: &[u8]) -> Option<i16> {
    std::str::from_utf8(column).ok()?.parse().ok()
}

/// Repeats a column so that it stays one, and short.
fn push_echo(answer: &mut String, column: &[u8]) {
    const MAX_ECHO: usize = 40;
    if column.is_empty() {
        answer.push('-');
    }
    let shown = &column[..column.len().min(MAX_ECHO)];
    let text = String::from_utf8_lossy(shown);
    answer.extend(text.chars().map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }));
    if column.len() > MAX_ECHO {
        answer.push('…');
    }
}
