//! DescribeClientQuotas (48): the quotas that are set for users, client ids and addresses, for admin tools.
//!
//! Any broker answers, out of the metadata that it has (KIP-546). It says what was configured, entity by entity, not
//! which of several quotas wins for a certain client. Version 1 only brought the flexible encoding.

use crate::{Message, Str};

/// Asks for the quotas of the entities that fit a filter.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 48, versions = 0..=1, flexible = 1.., response = DescribeClientQuotasResponse)]
pub struct DescribeClientQuotasRequest {
    /// What an entity must fit, each component another type; empty fits every entity unless `strict`. The same type
    /// twice, or `ip` beside another type, is an INVALID_REQUEST.
    pub components: Vec<ComponentData>,
    /// Whether an entity may have no types but those of `components`. Otherwise a filter by user also finds the quotas
    /// for that user together with a client id.
    pub strict: bool,
}

/// One condition on an entity.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct ComponentData {
    /// `user`, `client-id`, or `ip` (KIP-612).
    pub entity_type: Str,
    /// How the entity's name is compared: 0 exactly, 1 it must be the default, 2 any name that is given.
    pub match_type: i8,
    /// The name, where it is compared exactly; `None` in the other cases.
    pub r#match: Option<Str>,
}

/// The quotas found.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 48, versions = 0..=1, flexible = 1..)]
pub struct DescribeClientQuotasResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// 0 for none. CLUSTER_AUTHORIZATION_FAILED: the caller may not describe the cluster's configuration.
    /// INVALID_REQUEST: the filter makes no sense. UNSUPPORTED_VERSION: the broker knows no such type of entity.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the broker gives none.
    pub error_message: Option<Str>,
    /// The entities that fit and their quotas; `None` after an error.
    pub entries: Option<Vec<EntryData>>,
}

/// The quotas of one entity.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct EntryData {
    /// Whose quotas these are; with a user and a client id they are for that client of that user.
    pub entity: Vec<EntityData>,
    /// The quotas.
    pub values: Vec<ValueData>,
}

/// One part of an entity's name.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct EntityData {
    /// `user`, `client-id` or `ip`.
    pub entity_type: Str,
    /// The name; `None` for the default, which holds for those of this type without a quota of their own.
    pub entity_name: Option<Str>,
}

/// One quota.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct ValueData {
    /// Which quota: `producer_byte_rate` and `consumer_byte_rate` (bytes per second), `request_percentage` (of a
    /// thread's time), `controller_mutation_rate` (partitions created or deleted per second), and for an `ip`
    /// `connection_creation_rate` (connections per second).
    pub key: Str,
    /// The limit, in the unit that `key` has. Each broker applies it on its own, it is none of the whole cluster.
    pub value: f64,
}
