//! A message as Java prints it, as a value to compare: what the example `recode` prints, read again.

use std::collections::BTreeMap;

use krafka_protocol::UnknownTags;
use krafka_protocol::value::Structure;
use serde_json::Value as Json;

use crate::vectors::hex;

/// A message in JSON, and what JSON cannot show.
pub(crate) struct Rendering {
    pub(crate) json: Json,
    /// The record sets by their path, in hex.
    pub(crate) records: BTreeMap<String, String>,
    /// The unknown tags of each structure that has some, by its path: numbers and contents, in hex.
    pub(crate) unknown: BTreeMap<String, Vec<(u32, String)>>,
}

/// The message as Java prints it.
pub(crate) fn render(message: &dyn Structure, version: i16, unknown: &UnknownTags) -> Rendering {
    let printed = crate::recode::rendering::render(message, version, unknown);
    let mut tags = BTreeMap::<_, Vec<_>>::new();
    for (structure, number, value) in unknown.iter() {
        tags.entry(printed.structures[structure as usize].clone()).or_default().push((number, hex(value)));
    }
    Rendering {
        json: serde_json::from_str(&printed.json).unwrap_or_else(|error| panic!("{}: {error}", printed.json)),
        records: printed.records.into_iter().map(|(path, bytes)| (path, hex(&bytes))).collect(),
        unknown: tags,
    }
}
