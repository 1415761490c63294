//! What is wrong with JSON that somebody wrote, in words of JSON: serde has Rust's.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads what is written again as it was read. A list of values where there is an object of names, which serde takes
/// by their order, is refused: it is seen by what is written.
///
/// # Errors
///
/// What is wrong, in words of JSON.
pub(crate) fn read<T: DeserializeOwned + Serialize>(json: &[u8]) -> Result<T, String> {
    let read: T = serde_json::from_slice(json).map_err(|error| explain(&error, json))?;
    let given: Value = serde_json::from_slice(json).map_err(|error| explain(&error, json))?;
    let written = serde_json::to_value(&read).map_err(|error| error.to_string())?;
    match list_for_object(&given, &written) {
        Some(path) => Err(format!("`{}` is an object with names, not an array", path.join("."))),
        None => Ok(read),
    }
}

/// Where a list was given that is an object.
fn list_for_object<'a>(given: &'a Value, written: &Value) -> Option<Vec<&'a str>> {
    match (given, written) {
        (Value::Array(_), Value::Object(_)) => Some(Vec::new()),
        (Value::Object(given), Value::Object(written)) => given.iter().find_map(|(name, given)| {
            let mut path = list_for_object(given, written.get(name)?)?;
            path.insert(0, name);
            Some(path)
        }),
        _ => None,
    }
}

/// Says what is wrong with what was read.
pub(crate) fn explain(error: &serde_json::Error, json: &[u8]) -> String {
    let text = error.to_string();
    let (text, place) = text.split_at(text.rfind(" at line ").unwrap_or(text.len()));
    // Both are said of JSON that is none, too.
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(json).is_ok();
    match text {
        _ if error.is_eof() => return format!("this is no JSON: it ends in the middle{place}"),
        "expected value" if is_json => {
            return format!("expected a name, or an object of one name and its fields{place}");
        }
        "trailing characters" if is_json => return format!("expected an array of fewer elements{place}"),
        _ if !is_json && error.is_syntax() => return format!("this is no JSON: {text}{place}"),
        _ => {}
    }
    if let Some(name) = text.strip_prefix("unknown variant ") {
        return format!("unknown name {name}{place}");
    }
    let wrong = text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: "));
    match wrong.and_then(|wrong| wrong.split_once(", expected ")) {
        Some((found, wanted)) => format!("expected {}, found {}{place}", wanted_words(wanted), found_words(found)),
        None => {
            let text = text.strip_prefix("invalid length ").map_or_else(
                || text.to_owned(),
                |rest| match rest.split_once(", expected ") {
                    Some((length, wanted)) => {
                        let s = if length == "1" { "" } else { "s" };
                        format!("expected {}, found {length} element{s}", wanted_words(wanted))
                    }
                    None => text.to_owned(),
                },
            );
            format!("{text}{place}")
        }
    }
}

/// What there should be.
fn wanted_words(wanted: &str) -> String {
    let is_number = |name: &str| {
        let sizes = ["8", "16", "32", "64", "128", "size"];
        name.strip_prefix(['u', 'i']).is_some_and(|size| sizes.contains(&size))
    };
    match wanted {
        "variant identifier" => "a name".to_owned(),
        "string or map" | "enum" => "a name, or an object of a name and its fields".to_owned(),
        "a map" | "map" => "an object".to_owned(),
        "a sequence" => "an array".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "unit" | "unit variant" => "nothing".to_owned(),
        it if is_number(it) && it.starts_with('u') => "a whole number from 0 on that is not too large".to_owned(),
        it if is_number(it) => "a whole number that is not too large".to_owned(),
        it if it.starts_with("struct ") || it.starts_with("enum ") => "an object".to_owned(),
        it if it.starts_with("newtype variant") || it.starts_with("tuple variant") => "a value".to_owned(),
        it => match it.strip_prefix("a tuple of size ").or_else(|| it.strip_prefix("an array of length ")) {
            Some(size) => format!("an array of {size} elements"),
            None => it.to_owned(),
        },
    }
}

/// What there is.
fn found_words(found: &str) -> String {
    match found {
        "sequence" => "an array".to_owned(),
        "map" => "an object".to_owned(),
        "unit value" | "null" => "null".to_owned(),
        "unit variant" => "a name alone".to_owned(),
        "newtype variant" | "struct variant" => "a name with fields".to_owned(),
        it => match it.split_once(' ') {
            Some(("integer" | "floating", rest)) => format!("the number {}", rest.trim_start_matches("point ")),
            Some(("string", rest)) => format!("the text {rest}"),
            Some(("boolean", rest)) => rest.to_owned(),
            _ => it.to_owned(),
        },
    }
}
