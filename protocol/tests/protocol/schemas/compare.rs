//! What differs between a message as we declare it and Kafka's schema of it.

use krafka_protocol::schema::{FieldDefault, FieldSchema, FieldType, MessageSchema, Versions};
use serde_json::Value;

/// What differs between a message and Kafka's schema of it, in the versions that both have.
pub(crate) fn compare(name: &str, ours: &MessageSchema, theirs: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let mut check = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            differences.push(format!("{name}: {what} {ours} instead of {theirs}"));
        }
    };
    let kind = ["Request", "Response"].into_iter().find(|kind| name.ends_with(kind));
    check("name", name.to_owned(), text(&theirs["name"]));
    check("type", kind.unwrap_or("data").to_lowercase(), text(&theirs["type"]));
    check("key", format!("{:?}", ours.key.map(i64::from)), format!("{:?}", theirs["apiKey"].as_i64()));
    // A newer release keeps the bare name of what it has dropped.
    let Some(valid) = versions(&theirs["validVersions"]) else { return differences };
    let flexible = versions(&theirs["flexibleVersions"]).map(|range| range.min);
    check("first flexible version", format!("{:?}", ours.flexible), format!("{flexible:?}"));
    if let Some(common) = ours.versions.intersection(&valid) {
        compare_fields(name, ours, theirs, common, &mut differences);
    }
    differences
}

/// Compares the fields of a structure, in the versions in which the structure is there.
fn compare_fields(path: &str, ours: &MessageSchema, theirs: &Value, common: Versions, differences: &mut Vec<String>) {
    let mine = ours.fields.iter().filter(|field| field.versions.intersection(&common).is_some());
    let fields = theirs["fields"].as_array().expect("a structure has a list of fields");
    let kafkas = fields.iter().filter(|field| within(&field["versions"], common).is_some());
    let (mut mine, kafkas): (Vec<_>, Vec<_>) = (mine.collect(), kafkas.collect());
    // A tagged field may come later without a version of its own.
    mine.retain(|field| {
        let is_there = |theirs: &&Value| snake_case(&text(&theirs["name"])) == field.name;
        let is_missing = field.tag.is_some() && !kafkas.iter().any(is_there);
        if is_missing {
            differences.push(format!("{path}.{}: no such tag", field.name));
        }
        !is_missing
    });
    if mine.len() != kafkas.len() {
        differences.push(format!("{path}: {} fields instead of {}", mine.len(), kafkas.len()));
        return;
    }
    for (ours, theirs) in mine.into_iter().zip(kafkas) {
        compare_field(path, ours, theirs, common, differences);
    }
}

fn compare_field(path: &str, ours: &FieldSchema, theirs: &Value, common: Versions, differences: &mut Vec<String>) {
    let path = format!("{path}.{}", ours.name);
    let mut check = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            differences.push(format!("{path}: {what} {ours} instead of {theirs}"));
        }
    };
    let mine = ours.versions.intersection(&common);
    let nullable = ours.nullable.and_then(|nullable| nullable.intersection(&common));
    let tagged = ours.tag.and(mine);
    let field_type = text(&theirs["type"]);
    check("name", ours.name.to_owned(), snake_case(&text(&theirs["name"])));
    check("type", type_name(&ours.field_type), field_type.clone());
    check("versions", format!("{mine:?}"), format!("{:?}", within(&theirs["versions"], common)));
    let kafkas_nullable = within(&theirs["nullableVersions"], common).zip(mine);
    let kafkas_nullable = kafkas_nullable.and_then(|(nullable, mine)| nullable.intersection(&mine));
    check("nullable versions", format!("{nullable:?}"), format!("{kafkas_nullable:?}"));
    check("tagged versions", format!("{tagged:?}"), format!("{:?}", within(&theirs["taggedVersions"], common)));
    check("ignorable", ours.ignorable.to_string(), (theirs["ignorable"] == true).to_string());
    // Java's record sets are null until they are set, and schemas do not say so; ours, where all versions have null.
    let is_null = field_type == "records" && ours.nullable == Some(ours.versions);
    let unset = if is_null { FieldDefault::Null } else { FieldDefault::Zero };
    check("default", format!("{:?}", normal(&ours.default)), default(&theirs["default"], &field_type, unset));
    if tagged.is_some() && theirs["taggedVersions"].is_string() {
        // One schema of 3.9 writes the number as a string.
        let tag = theirs["tag"].as_u64().or_else(|| theirs["tag"].as_str()?.parse().ok());
        check("tag", format!("{:?}", ours.tag.map(u64::from)), format!("{tag:?}"));
    }

    let mut inner = &ours.field_type;
    while let FieldType::Array(element) = inner {
        inner = element;
    }
    if let (FieldType::Struct(structure), Some(common)) = (inner, mine) {
        if theirs["fields"].is_array() {
            compare_fields(&path, structure, theirs, common, differences);
        } else {
            differences.push(format!("{path}: a structure instead of {field_type}"));
        }
    }
}

/// The range that a schema writes as `3`, `3+`, `3-5` or `none`.
pub(crate) fn versions(json: &Value) -> Option<Versions> {
    let text = json.as_str().filter(|&text| text != "none")?;
    let number = |text: &str| text.parse().expect("versions are numbers");
    Some(match (text.strip_suffix('+'), text.split_once('-')) {
        (Some(min), _) => Versions::new(number(min), i16::MAX),
        (None, Some((min, max))) => Versions::new(number(min), number(max)),
        (None, None) => Versions::new(number(text), number(text)),
    })
}

/// The part of a range that lies within another.
fn within(json: &Value, common: Versions) -> Option<Versions> {
    versions(json)?.intersection(&common)
}

fn text(json: &Value) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

/// `MaxBytes` as `max_bytes`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// A type as schemas write it.
fn type_name(field_type: &FieldType) -> String {
    match field_type {
        FieldType::Array(element) => format!("[]{}", type_name(element)),
        FieldType::Struct(structure) => structure.name.to_owned(),
        simple => format!("{simple:?}").to_lowercase(),
    }
}

/// A default in one spelling: zero, false and empty are what a field has without one.
fn normal(default: &FieldDefault) -> FieldDefault {
    match *default {
        FieldDefault::Int(0) | FieldDefault::Bool(false) | FieldDefault::Str("") => FieldDefault::Zero,
        other => other,
    }
}

/// The default in a schema, where numbers and booleans may be quoted, and numbers hexadecimal; `unset` if it has none.
fn default(json: &Value, field_type: &str, unset: FieldDefault) -> String {
    let text = match json {
        Value::Null => return format!("{unset:?}"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let default = match (text.as_str(), field_type) {
        ("null", _) => FieldDefault::Null,
        ("", "string") => FieldDefault::Zero,
        (text, "string") => return format!("Str({text:?})"),
        (text, "bool") => FieldDefault::Bool(text == "true"),
        (text, "float64") => FieldDefault::Float(text.parse().expect("a number")),
        (text, _) => FieldDefault::Int(match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).expect("a hexadecimal number"),
            None => text.parse().expect("a number"),
        }),
    };
    format!("{:?}", normal(&default))
}

#[cfg(test)]
mod tests {
    use krafka_protocol::{Message, Str};

    use super::*;
    use crate::jar::parse_schema;

    /// The comparison itself must be able to fail: one change to any attribute is one difference.
    #[test]
    fn a_change_to_any_attribute_is_a_difference() {
        let json = r#"{
            // A comment.
            "apiKey": 3, "type": "request", "name": "ProbeRequest", "validVersions": "1-5", "flexibleVersions": "3+",
            "fields": [
                { "name": "MaxBytes", "type": "int32", "versions": "0+", "default": "0x10" },
                { "name": "Text", "type": "string", "versions": "2-4", "nullableVersions": "3+", "ignorable": true },
                { "name": "Parts", "type": "[]Part", "versions": "4+", "taggedVersions": "4+", "tag": 0, "fields": [
                    { "name": "Index", "type": "int16", "versions": "0+" }
                ]}
            ]
        }"#;
        let changes = [
            ("\"apiKey\": 3", "\"apiKey\": 4"),
            ("\"type\": \"request\"", "\"type\": \"response\""),
            ("\"flexibleVersions\": \"3+\"", "\"flexibleVersions\": \"4+\""),
            ("MaxBytes", "MinBytes"),
            ("int32", "int64"),
            ("0x10", "0x11"),
            ("\"versions\": \"2-4\"", "\"versions\": \"2+\""),
            ("\"nullableVersions\": \"3+\"", "\"nullableVersions\": \"2+\""),
            (", \"nullableVersions\": \"3+\"", ""),
            ("\"ignorable\": true", "\"ignorable\": false"),
            ("\"tag\": 0", "\"tag\": 1"),
            ("\"taggedVersions\": \"4+\"", "\"taggedVersions\": \"5+\""),
            ("\"taggedVersions\": \"4+\", \"tag\": 0, ", ""),
            ("[]Part", "Part"),
            ("[]Part", "[]Piece"),
            ("Index", "Number"),
            ("int16", "uint16"),
            ("{ \"name\": \"Index\", \"type\": \"int16\", \"versions\": \"0+\" }", ""),
        ];

        let unchanged = compare("ProbeRequest", ProbeRequest::SCHEMA, &parse_schema(json));
        assert_eq!(unchanged, [""; 0]);
        for (from, to) in changes {
            let changed = json.replacen(from, to, 1);
            assert_ne!(changed, json, "{from} is in the schema");
            let differences = compare("ProbeRequest", ProbeRequest::SCHEMA, &parse_schema(&changed));
            assert_eq!(differences.len(), 1, "{from} -> {to}: {differences:?}");
        }
    }

    #[derive(Clone, Debug, PartialEq, Message)]
    #[message(key = 3, versions = 1..=5, flexible = 3.., response = ProbeRequest)]
    struct ProbeRequest {
        #[field(default = 16)]
        max_bytes: i32,
        #[field(versions = 2..=4, nullable = 3..=4, ignorable)]
        text: Option<Str>,
        #[field(versions = 4.., tag = 0)]
        parts: Vec<ProbePart>,
    }

    #[derive(Clone, Debug, PartialEq, Message)]
    #[message(versions = 4..=5, flexible = 3.., name = "Part")]
    struct ProbePart {
        index: i16,
    }
}
