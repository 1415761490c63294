//! How APIs, error codes, ids and times are written in JSON: by the names that Kafka gives them, and in milliseconds.

use std::fmt;
use std::time::Duration;

use krafka_protocol::{ApiKey, ErrorCode, Uuid};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An API, by its name: `"Produce"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Api(pub(crate) ApiKey);

/// An error code, by its name or its number: `"NOT_LEADER_OR_FOLLOWER"` or `6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) ErrorCode);

/// A topic's id, as Kafka prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) Uuid);

/// How often a rule acts: `3` or `"forever"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Number(u64),
    Forever,
}

impl Serialize for Api {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for Api {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let found = ApiKey::ALL.iter().find(|key| key.name() == name);
        found.map(|key| Self(*key)).ok_or_else(|| de::Error::custom(format!("there is no API called `{name}`")))
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if ErrorCode::ALL.contains(&self.0) { to.serialize_str(self.0.name()) } else { to.serialize_i16(self.0.0) }
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(CodeVisitor)
    }
}

struct CodeVisitor;

impl Visitor<'_> for CodeVisitor {
    type Value = Code;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name or the number of an error code")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Code, E> {
        let found = ErrorCode::ALL.iter().find(|code| code.name() == name);
        found.map(|code| Code(*code)).ok_or_else(|| E::custom(format!("there is no error code called `{name}`")))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Code, E> {
        i16::try_from(number)
            .map(|number| Code(ErrorCode(number)))
            .map_err(|_| E::custom(format!("{number} is no error code: it does not fit into 16 bits")))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Code, E> {
        self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(|_| de::Error::custom(format!("`{text}` is not the id of a topic")))
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(times) => to.serialize_u64(*times),
            Self::Forever => to.serialize_str("forever"),
        }
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TimesVisitor)
    }
}

struct TimesVisitor;

impl Visitor<'_> for TimesVisitor {
    type Value = Times;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of times, or \"forever\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Times, E> {
        if text == "forever" { Ok(Times::Forever) } else { Err(E::invalid_value(de::Unexpected::Str(text), &self)) }
    }

    fn visit_u64<E: de::Error>(self, times: u64) -> Result<Times, E> {
        Ok(Times::Number(times))
    }
}

/// A time in whole milliseconds.
pub(crate) mod millis {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
