//! What rules do to an answer of any API: an error in each place for one, an entity gone or doubled, a field set.

use krafka_protocol::{AnyResponse, Str, Uuid};

use super::place::Place;
use super::tree::{self, Node, Tree};
use super::verdict::Denial;
use crate::state::State;

/// Names topics by their ids.
type Names<'a> = &'a dyn Fn(&Uuid) -> Option<Str>;

/// Writes errors into an answer. What goes with a success (offsets, members) stays, as clients must not look at it.
///
/// An error goes to the outermost structures that are about what it is for and have room for an error, as Kafka places
/// those of its authorizer: to each topic in Metadata, to each partition in Produce. An error for the request as a whole
/// goes there too, and to the answer itself only if it has no such structures. `whole` is what the request is about
/// where the answer does not repeat it.
pub(crate) fn deny(response: &mut AnyResponse, version: i16, denials: &[Denial], whole: &Place, state: &State) {
    if !denials.is_empty() {
        let name_of = |id: &Uuid| state.topics.name_of(id);
        tree::edit(response, version, |node| {
            deny_node(node, whole, false, denials, &name_of);
        });
    }
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
