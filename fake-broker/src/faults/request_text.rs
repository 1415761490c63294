//! A request of any API, written as JSON: its fields by the names that our structs give them. What is absent is what it
//! is when nobody sets it; what is unknown, or does not fit, is refused by its name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use krafka_protocol::schema::{FieldSchema, FieldType, MessageSchema};
use krafka_protocol::{AnyRequest, ApiKey, Reader, Str, Uuid};
use serde_json::{Map, Value as Json};

use super::tree::{Node, Tree};

/// Reads a request in a version that the API has.
///
/// # Errors
///
/// What is wrong with it, with the path to the field.
pub(crate) fn request_of(key: ApiKey, version: i16, fields: &Json) -> Result<AnyRequest, String> {
    let [schema, _] = key.schemas().ok_or_else(|| format!("nobody speaks {}", key.name()))?;
    let none = Json::Object(Map::new());
    let node = structure(schema, if fields.is_null() { &none } else { fields }, version, key.name())?;
    let mut bytes = Vec::new();
    node.encode(version, schema.is_flexible(version), &mut bytes);
    AnyRequest::decode(key, version, &mut Reader::new(Bytes::from(bytes)))
        .map_err(|error| format!("{} in version {version} cannot be so: {error}", key.name()))
}

fn structure(schema: &'static MessageSchema, json: &Json, version: i16, path: &str) -> Result<Node, String> {
    let Json::Object(given) = json else { return Err(format!("`{path}` is an object, not {json}")) };
    let mut node = Node::default_of(schema);
    for (name, json) in given {
        let path = format!("{path}.{name}");
        let known = schema.fields.iter().position(|field| field.name == name);
        let index = known.ok_or_else(|| format!("unknown field `{path}`, expected one of {}", names(schema)))?;
        let field = &schema.fields[index];
        if !field.versions.contains(version) {
            return Err(format!("`{path}` is there in versions {}, not in {version}", field.versions));
        }
        node.fields[index] = value(field, &field.field_type, json, version, &path)?;
    }
    Ok(node)
}

fn value(field: &FieldSchema, field_type: &FieldType, json: &Json, version: i16, path: &str) -> Result<Tree, String> {
    let misfit = || format!("`{path}` cannot be {json}");
    Ok(match (field_type, json) {
        (_, Json::Null) if field.nullable.is_some_and(|versions| versions.contains(version)) => Tree::Null,
        (FieldType::Bool, Json::Bool(value)) => Tree::Bool(*value),
        (FieldType::Float64, Json::Number(value)) => Tree::Float(value.as_f64().ok_or_else(misfit)?),
        (FieldType::String, Json::String(text)) => Tree::Str(Str::from(text.as_str())),
        (FieldType::Bytes | FieldType::Records, Json::String(text)) => {
            Tree::Bytes(Bytes::copy_from_slice(text.as_bytes()))
        }
        (FieldType::Bytes | FieldType::Records, Json::Object(object)) => {
            let text = object.get("base64").and_then(Json::as_str).filter(|_| object.len() == 1);
            let bytes = text.and_then(|text| STANDARD.decode(text).ok());
            Tree::Bytes(bytes.ok_or_else(misfit)?.into())
        }
        (FieldType::Uuid, Json::String(text)) => Tree::Uuid(text.parse::<Uuid>().map_err(|_| misfit())?),
        (FieldType::Struct(schema), json) => Tree::Struct(structure(schema, json, version, path)?),
        (FieldType::Array(element), Json::Array(values)) => {
            let value = |json| value(field, element, json, version, path);
            Tree::Array(values.iter().map(value).collect::<Result<_, _>>()?)
        }
        (field_type, Json::Number(number)) => {
            let number = number.as_i64().filter(|number| range(field_type).is_some_and(|it| it.contains(number)));
            Tree::Int(number.ok_or_else(misfit)?)
        }
        _ => return Err(misfit()),
    })
}

/// What an integer of this type can be.
pub(super) fn range(field_type: &FieldType) -> Option<std::ops::RangeInclusive<i64>> {
    Some(match field_type {
        FieldType::Int8 => i64::from(i8::MIN)..=i64::from(i8::MAX),
        FieldType::Int16 => i64::from(i16::MIN)..=i64::from(i16::MAX),
        FieldType::Uint16 => 0..=i64::from(u16::MAX),
        FieldType::Int32 => i64::from(i32::MIN)..=i64::from(i32::MAX),
        FieldType::Uint32 => 0..=i64::from(u32::MAX),
        FieldType::Int64 => i64::MIN..=i64::MAX,
        _ => return None,
    })
}

fn names(schema: &MessageSchema) -> String {
    let names: Vec<String> = schema.fields.iter().map(|field| format!("`{}`", field.name)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use krafka_protocol::api::create_topics::CreateTopicsRequest;
    use serde_json::json;

    use super::*;

    #[test]
    fn request_is_read_by_the_names_of_its_fields() {
        let fields = json!({"topics": [{"name": "bills", "num_partitions": 3}], "validate_only": true});

        let request = request_of(ApiKey::CreateTopics, 7, &fields).expect("a legal request");

        let create: &CreateTopicsRequest = request.downcast_ref().expect("that one");
        assert_eq!((&*create.topics[0].name, create.topics[0].num_partitions), ("bills", 3));
        assert!(create.validate_only);
        assert_eq!(create.timeout_ms, CreateTopicsRequest::default().timeout_ms, "absent, so that it is the default");
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_path() {
        let cases = [
            (json!({"topik": []}), "unknown field `CreateTopics.topik`"),
            (json!({"topics": [{"nam": "x"}]}), "unknown field `CreateTopics.topics.nam`"),
            (json!({"topics": null}), "`CreateTopics.topics` cannot be null"),
            (json!({"timeout_ms": 3_000_000_000_i64}), "`CreateTopics.timeout_ms` cannot be 3000000000"),
            (json!({"timeout_ms": "5"}), "cannot be \"5\""),
            (json!([]), "`CreateTopics` is an object"),
        ];
        for (fields, reason) in cases {
            let error = request_of(ApiKey::CreateTopics, 7, &fields).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
        let error = request_of(ApiKey::Metadata, 3, &json!({"allow_auto_topic_creation": true}));
        assert!(error.expect_err("too early").contains("in versions 4-"));
    }
}
