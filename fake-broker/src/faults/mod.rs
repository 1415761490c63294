//! What goes wrong on purpose: rules that match requests, and what they make of them.
//!
//! A rule is a [selector](selector::Selector), an [action](action::Action) and a budget; [`RuleBuilder`] is how it is
//! written in Rust, and JSON how it is written elsewhere. Each request is judged once, when its node begins to work on
//! it, so a request that is parked for long is still one match. Errors are placed where Kafka's authorizer places its
//! own: a handler asks its [`Context`](crate::context::Context) for each topic, partition or group, before it does
//! anything for it.
//!
//! ```text
//!   Opened ──▶ refuse · accept late · never read                                       the connection
//!   on its way ─▶ latency · bandwidth · loss · partition, each way                       the network
//!   Received ─▶ cluster changed · refused · dropped · silent · delayed · delivered again   the request
//!      handler ─▶ late error · field set · entity gone or twice · hints · other layout   its answer
//!         written ─▶ in chunks · cut short · flipped · garbage · wrong length              its bytes
//! ```

mod action;
mod after_apply;
mod answers;
mod book;
mod builder;
mod carried;
mod damage;
mod entities;
mod fencing;
mod hints;
mod hits;
#[cfg(test)]
mod json_laws;
mod kafka_versions;
mod names;
mod network;
mod place;
mod profiles;
mod request_text;
mod rule;
mod selector;
#[cfg(test)]
mod tests;
mod tree;
mod verbs;
mod verdict;

pub(crate) use answers::{change, deny, hide_nodes, mislead, reword};
pub(crate) use book::{Book, Faults, Listed};
pub use builder::{Apis, Rule, RuleBuilder};
pub use damage::Damage;
pub(crate) use damage::{Step, plan};
pub(crate) use entities::Entities;
pub(crate) use fencing::rebootstrap;
pub use hints::Hint;
pub use hits::Reached;
pub(crate) use hits::{Ending, Hits, Never};
pub(crate) use kafka_versions::Feature;
pub use kafka_versions::{KafkaVersion, UnknownVersion};
pub(crate) use names::millis;
pub use network::Towards;
pub(crate) use network::{Passage, Passing};
#[cfg(test)]
pub(crate) use place::Meaning;
pub use profiles::Profile;
pub(crate) use request_text::request_of;
pub(crate) use rule::RuleText;
pub(crate) use tree::Node;
#[cfg(test)]
pub(crate) use tree::Tree;
pub(crate) use verdict::{Denial, Verdict};
