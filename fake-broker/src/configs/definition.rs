//! What a config is: its name, type, default, and the values that it takes; and what Kafka says of a wrong value.

use crate::faults::KafkaVersion;
use crate::java;

/// A config that Kafka knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The value of a fresh broker; none where Kafka has null.
    pub(crate) default: Option<&'static str>,
    pub(crate) rule: Rule,
    /// The broker's config that decides where this one is not set.
    pub(crate) synonym: Option<&'static str>,
    /// The first and the last version of Kafka that have it so.
    pub(crate) versions: (KafkaVersion, KafkaVersion),
    /// What it does, in our words.
    pub(crate) text: &'static str,
}

/// The type of a config's value, with Kafka's code of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What is in a file of settings and no broker knows: Kafka cannot tell what it is, and hides its value.
    Unknown = 0,
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

/// Which values of its type a config takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// All of them.
    Any,
    /// Numbers from this one on.
    AtLeast(i64),
    /// Numbers in a range, both ends included.
    Between(i64, i64),
    /// Levels of gzip: 1 to 9, or -1 for the library's own choice.
    GzipLevel,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of some of these words.
    EachOf(&'static [&'static str]),
    /// `*`, or a list of `partition:broker`.
    ThrottledReplicas,
    /// Where a share group begins: `earliest`, `latest`, or `by_duration:` and a duration of ISO 8601.
    ShareOffsetReset,
    /// The name of a topic that is not one of Kafka's own, or nothing.
    DeadLetterTopic,
}

impl Definition {
    /// Whether that version of Kafka has the config as it is described here.
    pub(crate) fn is_in(&self, version: KafkaVersion) -> bool {
        (self.versions.0..=self.versions.1).contains(&version)
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// Kafka's words for what is wrong with it.
    pub(crate) fn check(&self, value: &str) -> Result<(), String> {
        let name = self.name;
        // What is no value of its type is shown as it came, with the blanks around it; what is one, as Java writes it.
        let (shown, reason) = match (self.kind, value.trim()) {
            (Kind::Boolean, text) if !is_boolean(text) => {
                (value.to_owned(), "Expected value to be either true or false".to_owned())
            }
            (kind @ (Kind::Int | Kind::Short | Kind::Long), text) => match integer(kind, text) {
                Some(number) => match self.rule.refuses_number(number) {
                    Some(reason) => (number.to_string(), reason),
                    None => return Ok(()),
                },
                None => (value.to_owned(), format!("Not a number of type {}", kind.name())),
            },
            (Kind::Double, text) => match (java::parse_double(text), self.rule) {
                (None, _) => (value.to_owned(), "Not a number of type DOUBLE".to_owned()),
                (Some(number), Rule::AtLeast(least) | Rule::Between(least, _)) if number < least as f64 => {
                    (java::double(number), format!("Value must be at least {least}"))
                }
                (Some(number), Rule::Between(_, most)) if number > most as f64 => {
                    (java::double(number), format!("Value must be no more than {most}"))
                }
                (Some(_), _) => return Ok(()),
            },
            (Kind::List, text) => match self.rule.refuses_list(name, &list(text)) {
                Some(Refused::Value(shown, reason)) => (shown, reason),
                Some(Refused::Whole(message)) => return Err(message),
                None => return Ok(()),
            },
            (_, text) => match self.rule.refuses_word(name, text) {
                Some(Refused::Value(shown, reason)) => (shown, reason),
                Some(Refused::Whole(message)) => return Err(message),
                None => return Ok(()),
            },
        };
        Err(format!("Invalid value {shown} for configuration {name}: {reason}"))
    }
}

/// What a rule says of a value: why it is wrong, or, where Kafka's message has another form, all of the message.
enum Refused {
    Value(String, String),
    Whole(String),
}

impl Rule {
    fn refuses_number(self, number: i64) -> Option<String> {
        match self {
            Self::AtLeast(least) | Self::Between(least, _) if number < least => {
                Some(format!("Value must be at least {least}"))
            }
            Self::Between(_, most) if number > most => Some(format!("Value must be no more than {most}")),
            Self::GzipLevel if number != -1 && !(1..=9).contains(&number) => {
                Some("Value must be between 1 and 9 or equal to -1".to_owned())
            }
            _ => None,
        }
    }

    fn refuses_list(self, name: &str, elements: &[&str]) -> Option<Refused> {
        match self {
            Self::EachOf(known) => {
                if elements.contains(&"") {
                    return Some(Refused::Whole(format!("Configuration '{name}' values must not be empty.")));
                }
                let stranger = elements.iter().find(|element| !known.contains(element))?;
                Some(Refused::Value((*stranger).to_owned(), one_of(known)))
            }
            Self::ThrottledReplicas => {
                let is_replica = |element: &&str| {
                    element.split_once(':').is_some_and(|(partition, broker)| {
                        [partition, broker]
                            .iter()
                            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
                    })
                };
                if elements == ["*"] || elements.iter().all(is_replica) {
                    return None;
                }
                let format = "[partitionId]:[brokerId],[partitionId]:[brokerId],...";
                Some(Refused::Value(
                    format!("[{}]", elements.join(", ")),
                    format!("{name} must be the literal '*' or a list of replicas in the following format: {format}"),
                ))
            }
            _ => None,
        }
    }

    fn refuses_word(self, name: &str, text: &str) -> Option<Refused> {
        match self {
            Self::OneOf(known) if !known.contains(&text) => Some(Refused::Value(text.to_owned(), one_of(known))),
            Self::ShareOffsetReset if super::OffsetReset::parse(text).is_none() => {
                let forms = "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'";
                let reason = format!("Invalid value `{text}` for configuration {name}. The value must be {forms}.");
                Some(Refused::Value(text.to_owned(), reason))
            }
            Self::DeadLetterTopic if text.starts_with("__") => {
                Some(Refused::Whole(format!("{name}: DLQ topic name must not start with '__'")))
            }
            Self::DeadLetterTopic if !text.is_empty() => {
                crate::topics::validate_name(text).err().map(|reason| Refused::Whole(format!("{name}: {reason}")))
            }
            _ => None,
        }
    }
}

impl Kind {
    /// Kafka's code, as DescribeConfigs tells it.
    pub(crate) fn code(self) -> i8 {
        self as i8
    }

    /// A value as Kafka tells it again: what is one of this type is written as Java writes it, without the blanks that
    /// were around it. A password is all that there is.
    pub(crate) fn told(self, value: &str) -> String {
        let text = value.trim();
        let told = match self {
            Self::Boolean => is_boolean(text).then(|| text.to_ascii_lowercase()),
            Self::Int | Self::Short | Self::Long => integer(self, text).map(|number| number.to_string()),
            Self::Double => java::parse_double(text).map(java::double),
            Self::Password => None,
            Self::Unknown | Self::String | Self::List | Self::Class => Some(text.to_owned()),
        };
        told.unwrap_or_else(|| value.to_owned())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Int => "INT",
            Self::Short => "SHORT",
            _ => "LONG",
        }
    }
}

fn is_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

/// Reads a number as Kafka does: of the range of its type.
fn integer(kind: Kind, text: &str) -> Option<i64> {
    match kind {
        Kind::Short => text.parse::<i16>().ok().map(i64::from),
        Kind::Int => text.parse::<i32>().ok().map(i64::from),
        _ => text.parse().ok(),
    }
}

/// The elements of a list.
pub(crate) fn list(text: &str) -> Vec<&str> {
    let text = text.trim();
    if text.is_empty() { Vec::new() } else { text.split(',').map(str::trim).collect() }
}

fn one_of(known: &[&str]) -> String {
    format!("String must be one of: {}", known.join(", "))
}
