//! What rules do to an answer of any API: an error in each place for one, an entity gone or doubled, a field set.

use krafka_protocol::schema::FieldType;
use krafka_protocol::{AnyResponse, ErrorCode, Str, Uuid};
use serde_json::Value;

use super::carried::{self, field_at};
use super::hints::Hint;
use super::names::Api;
use super::place::Place;
use super::tree::{self, Node, Tree};
use super::verdict::{Denial, Target};
use crate::context::Context;
use crate::state::State;

/// A change of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// Leaves the entities out.
    Drop,
    /// Has the entities twice.
    Duplicate,
    /// Sets a field, named by the fields on the way to it with dots between, in all elements of the arrays on the way.
    Set {
        /// The way to the field.
        path: String,
        /// What it becomes.
        value: Tree,
    },
    /// Names these nodes as the new leaders that the answer speaks of.
    Endpoints(Vec<(i32, Str, i32)>),
}

/// Names topics by their ids.
type Names<'a> = &'a dyn Fn(&Uuid) -> Option<Str>;

/// Writes errors into an answer. What goes with a success (offsets, members) stays, as clients must not look at it.
///
/// An error goes to the outermost structures that are about what it is for and have room for an error, as Kafka places
/// those of its authorizer: to each topic in Metadata, to each partition in Produce. An error for the request as a
/// whole goes there too, and to the answer itself only if it has no such structures. `whole` is what the request is
/// about where the answer does not repeat it.
pub(crate) fn deny(response: &mut AnyResponse, version: i16, denials: &[Denial], whole: &Place, state: &State) {
    if !denials.is_empty() {
        let name_of = |id: &Uuid| state.topics.name_of(id);
        tree::edit(response, version, |node| {
            deny_node(node, whole, false, denials, &name_of);
        });
    }
}

/// Puts other words beside an error, wherever an answer has words for it.
pub(crate) fn reword(response: &mut AnyResponse, version: i16, code: ErrorCode, words: &str) {
    tree::edit(response, version, |node| reword_node(node, i64::from(code.0), words));
}

/// Changes the parts of an answer that `target` names; if it names none, the first entity, or each field on the path.
pub(crate) fn change(response: &mut AnyResponse, version: i16, change: &Change, target: &Target, state: &State) {
    let name_of = |id: &Uuid| state.topics.name_of(id);
    tree::edit(response, version, |node| match change {
        Change::Drop => {
            edit_entities(node, &Place::default(), target, &name_of, &mut |elements, index| {
                elements.remove(index);
                0
            });
        }
        Change::Duplicate => {
            edit_entities(node, &Place::default(), target, &name_of, &mut |elements, index| {
                elements.insert(index, elements[index].clone());
                2
            });
        }
        Change::Set { path, value } => {
            let path: Vec<&str> = path.split('.').collect();
            set(node, &path, value, &Place::default(), target, &name_of);
        }
        Change::Endpoints(endpoints) => set_endpoints(node, endpoints),
    });
}

/// Gives wrong hints in the parts of an answer that `target` names.
pub(crate) fn mislead(response: &mut AnyResponse, cx: &Context, hint: &Hint, target: &Target, state: &State) {
    for part in hint.changes(state, cx.listener) {
        change(response, cx.version, &part, target, state);
    }
}

/// Leaves nodes out of the answers that list all of them.
pub(crate) fn hide_nodes(response: &mut AnyResponse, version: i16, hidden: &dyn Fn(i32) -> bool) {
    if !matches!(response, AnyResponse::Metadata(_) | AnyResponse::DescribeCluster(_)) {
        return;
    }
    tree::edit(response, version, |node| {
        if let Some(Tree::Array(brokers)) = node.get_mut("brokers") {
            brokers.retain(|broker| {
                let Tree::Struct(broker) = broker else { return true };
                let id = broker.get("node_id").or_else(|| broker.get("broker_id"));
                !matches!(id, Some(Tree::Int(id)) if i32::try_from(*id).is_ok_and(hidden))
            });
        }
    });
}

/// Says what is wrong with setting a field of the answers of some APIs.
///
/// # Errors
///
/// No API is named, one has no such field, or the value does not fit into it.
pub(crate) fn check_field(apis: &[Api], path: &str, value: &Value) -> Result<(), String> {
    if apis.is_empty() {
        return Err("a rule that sets a field names the APIs whose answers have it".to_owned());
    }
    for Api(key) in apis {
        let [_, schema] = key.schemas().ok_or_else(|| format!("nobody speaks {}", key.name()))?;
        let found =
            field_at(schema, path, None).ok_or_else(|| format!("an answer to {} has no field `{path}`", key.name()))?;
        let fits = match found.field_type {
            // In place of a structure there is one with nothing in it.
            FieldType::Struct(_) => value.is_null(),
            _ if value.is_null() => found.nullable.is_some(),
            FieldType::Array(&FieldType::Struct(_)) => value.as_array().is_some_and(Vec::is_empty),
            FieldType::Bytes | FieldType::Records => false,
            FieldType::Uuid => value.as_str().is_some_and(|text| text.parse::<Uuid>().is_ok()),
            other => carried::fits(&other, value),
        };
        if !fits {
            return Err(format!("`{path}` of an answer to {} cannot be {value}", key.name()));
        }
    }
    Ok(())
}

/// Says whether there was a place for one of the errors.
fn deny_node(node: &mut Node, here: &Place, is_entity: bool, denials: &[Denial], name_of: Names<'_>) -> bool {
    let code = denials.iter().find(|denial| denial.target.fits(here)).map(|denial| i64::from(denial.code.0));
    if is_entity && let (Some(code), Some(slot)) = (code, node.get_mut("error_code")) {
        *slot = Tree::Int(code);
        return true;
    }
    let mut is_placed = false;
    for_each_inner(node, here, name_of, &mut |inner, there| {
        if there != here {
            is_placed |= deny_node(inner, there, true, denials, name_of);
        }
    });
    if is_placed {
        return true;
    }
    if let (Some(code), Some(slot)) = (code, node.get_mut("error_code")) {
        *slot = Tree::Int(code);
        return true;
    }
    for_each_inner(node, here, name_of, &mut |inner, there| {
        if there == here {
            is_placed |= deny_node(inner, there, false, denials, name_of);
        }
    });
    is_placed
}

fn reword_node(node: &mut Node, code: i64, words: &str) {
    let is_meant = matches!(node.get_mut("error_code"), Some(Tree::Int(found)) if *found == code);
    if let (true, Some(Tree::Str(text))) = (is_meant, node.get_mut("error_message"))
        && !text.is_empty()
    {
        *text = Str::from(words);
    }
    for value in &mut node.fields {
        let inner: &mut [Tree] = match value {
            Tree::Array(elements) => elements,
            other => std::slice::from_mut(other),
        };
        for element in inner {
            if let Tree::Struct(inner) = element {
                reword_node(inner, code, words);
            }
        }
    }
}

/// Calls `visit` with each structure inside, and what it is about.
fn for_each_inner(node: &mut Node, here: &Place, name_of: Names<'_>, visit: &mut dyn FnMut(&mut Node, &Place)) {
    for value in &mut node.fields {
        let inner: &mut [Tree] = match value {
            Tree::Array(elements) => elements,
            Tree::Struct(_) => std::slice::from_mut(value),
            _ => continue,
        };
        for element in inner {
            if let Tree::Struct(inner) = element {
                let there = here.within(inner, name_of);
                visit(inner, &there);
            }
        }
    }
}

/// Calls `edit` with the array and the index of each element that is the entity that `target` names, or of the first
/// that is any entity. It says how many elements stand there afterwards. Returns whether there was one.
fn edit_entities(
    node: &mut Node,
    here: &Place,
    target: &Target,
    name_of: Names<'_>,
    edit: &mut dyn FnMut(&mut Vec<Tree>, usize) -> usize,
) -> bool {
    let mut is_found = false;
    for value in &mut node.fields {
        let Tree::Array(elements) = value else { continue };
        let mut index = 0;
        while index < elements.len() {
            let Tree::Struct(inner) = &mut elements[index] else { break };
            let there = here.within(inner, name_of);
            if there != *here && target.fits(&there) {
                index += edit(elements, index);
                is_found = true;
                if target.names_nothing() {
                    return true;
                }
            } else {
                is_found |= edit_entities(inner, &there, target, name_of, edit);
                if is_found && target.names_nothing() {
                    return true;
                }
                index += 1;
            }
        }
    }
    is_found
}

fn set(node: &mut Node, path: &[&str], value: &Tree, here: &Place, target: &Target, name_of: Names<'_>) {
    let [first, rest @ ..] = path else { return };
    let Some(field) = node.get_mut(first) else { return };
    if rest.is_empty() {
        if target.names_nothing() || target.fits(here) {
            *field = value.clone();
        }
        return;
    }
    let inner: &mut [Tree] = match field {
        Tree::Array(elements) => elements,
        other => std::slice::from_mut(other),
    };
    for element in inner {
        if let Tree::Struct(inner) = element {
            let there = here.within(inner, name_of);
            set(inner, rest, value, &there, target, name_of);
        }
    }
}

fn set_endpoints(node: &mut Node, endpoints: &[(i32, Str, i32)]) {
    let Some(field) = node.schema.fields.iter().find(|field| field.name == "node_endpoints") else { return };
    let FieldType::Array(&FieldType::Struct(schema)) = field.field_type else { return };
    let elements = endpoints.iter().map(|(id, host, port)| {
        let mut endpoint = Node::default_of(schema);
        let values = [
            ("node_id", Tree::Int(i64::from(*id))),
            ("host", Tree::Str(host.clone())),
            ("port", Tree::Int(i64::from(*port))),
        ];
        for (name, value) in values {
            if let Some(slot) = endpoint.get_mut(name) {
                *slot = value;
            }
        }
        Tree::Struct(endpoint)
    });
    let elements = elements.collect();
    if let Some(slot) = node.get_mut("node_endpoints") {
        *slot = Tree::Array(elements);
    }
}
