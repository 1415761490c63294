//! What requests and answers can carry, version by version, as the schemas tell: a rule that asks for what no request
//! has could never act, and is refused when it is written.

use krafka_protocol::schema::{FieldSchema, FieldType, MessageSchema};
use krafka_protocol::{ApiKey, Uuid};
use serde_json::Value;

use super::place::Meaning;
use super::request_text;
use super::tree::Tree;
use crate::handlers;

/// What a rule can look for in a request, by the name that the field of a rule has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted<'a> {
    Topic,
    TopicId,
    Partitions,
    Group,
    TransactionalId,
    Resource,
    /// A field on a path, with a value.
    Field(&'a str, &'a Value),
}

/// An API in one of its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spoken {
    pub(crate) key: ApiKey,
    pub(crate) version: i16,
}

impl Spoken {
    /// All versions of these APIs that nodes have handlers for; of all APIs, if none is named.
    pub(crate) fn all_of(apis: &[ApiKey]) -> Vec<Self> {
        let is_meant = |key: &&ApiKey| apis.is_empty() || apis.contains(key);
        let served = handlers::SERVED.iter().filter(is_meant);
        let spoken = served.filter_map(|key| key.versions().map(|versions| (*key, versions)));
        spoken.flat_map(|(key, versions)| versions.iter().map(move |version| Self { key, version })).collect()
    }

    /// Whether a request can have what a rule looks for.
    pub(crate) fn can_have(self, wanted: Wanted<'_>) -> bool {
        let Some([schema, _]) = self.key.schemas() else { return false };
        match wanted {
            Wanted::Field(path, value) => match field_at(schema, path, Some(self.version)) {
                Some(field) => can_be(field, value),
                // What a version has not got is what it is when nobody sets it.
                None => field_at(schema, path, None)
                    .is_some_and(|field| !path.contains('.') && Tree::default_of(field).to_json() == *value),
            },
            entity => any_field(schema, self.version, &|structure, field| names(entity, structure, field)),
        }
    }

    /// Whether a request has a field on a path, whatever its value.
    pub(crate) fn has_field(self, path: &str) -> bool {
        self.key.schemas().is_some_and(|[schema, _]| field_at(schema, path, None).is_some())
    }

    /// Whether an answer has a field on a path.
    pub(crate) fn answers_field(self, path: &str) -> bool {
        self.key.schemas().is_some_and(|[_, schema]| field_at(schema, path, Some(self.version)).is_some())
    }

    /// Whether an answer tells of several topics, partitions, groups … one by one.
    pub(crate) fn answers_entities(self) -> bool {
        let Some([_, schema]) = self.key.schemas() else { return false };
        any_field(schema, self.version, &|_, field| {
            let FieldType::Array(&FieldType::Struct(element)) = field.field_type else { return false };
            element
                .fields
                .iter()
                .any(|field| field.versions.contains(self.version) && Meaning::of(element.name, field.name).is_some())
        })
    }
}

impl Wanted<'_> {
    /// How a rule calls it.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Topic => "`topic`".to_owned(),
            Self::TopicId => "`topic_id`".to_owned(),
            Self::Partitions => "`partitions`".to_owned(),
            Self::Group => "`group`".to_owned(),
            Self::TransactionalId => "`transactional_id`".to_owned(),
            Self::Resource => "`resource`".to_owned(),
            Self::Field(path, _) => format!("field `{path}`"),
        }
    }
}

/// The field on a path, if a message has it in this version; in any version, if none is given.
pub(crate) fn field_at(
    schema: &'static MessageSchema,
    path: &str,
    version: Option<i16>,
) -> Option<&'static FieldSchema> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let is_there = |field: &FieldSchema| version.is_none_or(|version| field.versions.contains(version));
    let field = schema.fields.iter().find(|field| field.name == first && is_there(field))?;
    let Some(rest) = rest else { return Some(field) };
    match field.field_type {
        FieldType::Struct(inner) | FieldType::Array(&FieldType::Struct(inner)) => field_at(inner, rest, version),
        _ => None,
    }
}

/// Whether any field of a message, however deep, is one that is looked for; it is told the structure's name, too.
fn any_field(
    schema: &'static MessageSchema,
    version: i16,
    is_meant: &dyn Fn(&'static str, &'static FieldSchema) -> bool,
) -> bool {
    schema.fields.iter().filter(|field| field.versions.contains(version)).any(|field| {
        let inner = match field.field_type {
            FieldType::Struct(inner) | FieldType::Array(&FieldType::Struct(inner)) => Some(inner),
            _ => None,
        };
        is_meant(schema.name, field) || inner.is_some_and(|inner| any_field(inner, version, is_meant))
    })
}

/// Whether a field can name an entity of this kind, as [`Entities`](super::Entities) reads it.
fn names(wanted: Wanted<'_>, structure: &str, field: &FieldSchema) -> bool {
    let (is_list, leaf) = match field.field_type {
        FieldType::Array(element) => (true, *element),
        other => (false, other),
    };
    let is_number = matches!(leaf, FieldType::Int32) && (is_list || field.name != "partitions");
    match (Meaning::of(structure, field.name), leaf) {
        (Some(Meaning::Topic), FieldType::String) => wanted == Wanted::Topic,
        (Some(Meaning::TopicId), FieldType::Uuid) => !is_list && matches!(wanted, Wanted::Topic | Wanted::TopicId),
        (Some(Meaning::Partition), _) => is_number && wanted == Wanted::Partitions,
        (Some(Meaning::Group), FieldType::String) => wanted == Wanted::Group,
        (Some(Meaning::TransactionalId), FieldType::String) => wanted == Wanted::TransactionalId,
        (Some(Meaning::CoordinatorKey), FieldType::String) => {
            matches!(wanted, Wanted::Group | Wanted::TransactionalId)
        }
        // What it is, its type beside it says.
        (Some(Meaning::Resource), FieldType::String) => {
            !is_list && matches!(wanted, Wanted::Resource | Wanted::Topic | Wanted::Group)
        }
        _ => false,
    }
}

/// Whether a field can have a value as the history shows it; for an array it may be that of one element.
fn can_be(field: &FieldSchema, value: &Value) -> bool {
    let is_element = matches!(field.field_type, FieldType::Array(element) if fits(element, value));
    is_element || fits(&field.field_type, value) || (value.is_null() && field.nullable.is_some())
}

/// Whether a value is one of a type.
pub(crate) fn fits(field_type: &FieldType, value: &Value) -> bool {
    match field_type {
        FieldType::Bool => value.is_boolean(),
        FieldType::Float64 => value.is_number(),
        FieldType::String => value.is_string(),
        FieldType::Uuid => {
            value.as_str().is_some_and(|text| text.parse::<Uuid>().is_ok_and(|id| id.to_string() == text))
        }
        // They are shown by their number alone.
        FieldType::Bytes | FieldType::Records => value
            .as_str()
            .and_then(|text| text.strip_suffix(" bytes"))
            .is_some_and(|number| number.parse::<u32>().is_ok_and(|parsed| parsed.to_string() == number)),
        FieldType::Array(element) => value.as_array().is_some_and(|values| values.iter().all(|it| fits(element, it))),
        // The whole structure is compared.
        FieldType::Struct(schema) => value.as_object().is_some_and(|fields| {
            fields.len() == schema.fields.len()
                && schema.fields.iter().all(|field| fields.get(field.name).is_some_and(|it| can_be(field, it)))
        }),
        number => value.as_i64().is_some_and(|it| request_text::range(number).is_some_and(|range| range.contains(&it))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spoken(key: ApiKey, version: i16) -> Spoken {
        Spoken { key, version }
    }

    /// What the fields mean is found in every API by the same words: some that name a thing, and some that do not.
    #[test]
    fn requests_carry_what_their_fields_mean() {
        let carried = [
            (ApiKey::Produce, 9, Wanted::Topic),
            (ApiKey::Produce, 9, Wanted::Partitions),
            (ApiKey::Produce, 9, Wanted::TransactionalId),
            (ApiKey::Fetch, 13, Wanted::Topic),
            (ApiKey::Fetch, 13, Wanted::TopicId),
            (ApiKey::FindCoordinator, 4, Wanted::Group),
            (ApiKey::FindCoordinator, 4, Wanted::TransactionalId),
            (ApiKey::OffsetFetch, 8, Wanted::Group),
            (ApiKey::DescribeConfigs, 4, Wanted::Resource),
            (ApiKey::DescribeConfigs, 4, Wanted::Topic),
            (ApiKey::ElectLeaders, 2, Wanted::Partitions),
            (ApiKey::DeleteTopics, 5, Wanted::Topic),
        ];
        for (key, version, wanted) in carried {
            assert!(spoken(key, version).can_have(wanted), "{key:?} {version} {wanted:?}");
        }
        let missing = [
            (ApiKey::Fetch, 12, Wanted::TopicId),
            (ApiKey::ApiVersions, 3, Wanted::Topic),
            (ApiKey::Metadata, 12, Wanted::Partitions),
            (ApiKey::Heartbeat, 4, Wanted::Topic),
            (ApiKey::Fetch, 12, Wanted::Group),
            (ApiKey::JoinGroup, 9, Wanted::TransactionalId),
            (ApiKey::Produce, 9, Wanted::Resource),
        ];
        for (key, version, wanted) in missing {
            assert!(!spoken(key, version).can_have(wanted), "{key:?} {version} {wanted:?}");
        }
    }

    #[test]
    fn values_are_those_that_a_field_can_have() {
        let produce = spoken(ApiKey::Produce, 9);
        let can = |path, value: Value| produce.can_have(Wanted::Field(path, &value));

        assert!(can("acks", json!(-1)) && can("transactional_id", json!(null)));
        assert!(can("topic_data.partition_data.index", json!(3)));
        assert!(can("topic_data.partition_data.records", json!("61 bytes")));
        for (path, value) in [
            ("acks", json!("x")),
            ("acks", json!(40_000)),
            ("acks", json!(1.5)),
            ("acks", json!(null)),
            ("transactional_id", json!(7)),
            ("topic_data.name", json!(null)),
            ("topic_data.partition_data", json!({"index": 3})),
            ("topic_data.partition_data.records", json!("abc")),
        ] {
            assert!(!can(path, value.clone()), "{path} {value}");
        }
        // Version 3 of Fetch has no isolation level, which reads as 0 there.
        let fetch = spoken(ApiKey::Fetch, 3);
        let can = |value: Value| fetch.can_have(Wanted::Field("isolation_level", &value));
        assert_eq!((can(json!(0)), can(json!(1))), (true, false));
    }
}
