//! ListGroups (16): the groups that one broker coordinates, for tools and admin clients.
//!
//! There is no list of all groups anywhere: who wants it asks every broker and puts the answers together. A group
//! that moves meanwhile may be in two of them, or in none.
//!
//! Version 1 adds the throttle time, and from 2 on the broker answers before it throttles (KIP-219); 3 is the first
//! in the flexible encoding (KIP-482); 4 tells states and can select by them (KIP-518); 5 does the same for types
//! (KIP-848).

use crate::{Message, Str};

/// Asks for the groups that the receiving broker coordinates.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 16, versions = 0..=5, flexible = 3.., response = ListGroupsResponse)]
pub struct ListGroupsRequest {
    /// Only groups in one of these states; empty for all. Case does not matter to Kafka 4. A state that the broker
    /// does not know is no error: no group is in it.
    #[field(versions = 4..)]
    pub states_filter: Vec<Str>,
    /// Only groups of one of these types; empty for all. The types are listed at [`ListedGroup::group_type`].
    #[field(versions = 5..)]
    pub types_filter: Vec<Str>,
}

/// The groups.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 16, versions = 0..=5, flexible = 3..)]
pub struct ListGroupsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// Why the list is missing or not complete, 0 if it is complete. COORDINATOR_LOAD_IN_PROGRESS and
    /// COORDINATOR_NOT_AVAILABLE: try again.
    pub error_code: i16,
    /// The groups that the caller may describe; the others are left out without a word.
    pub groups: Vec<ListedGroup>,
}

/// A group in the list.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 3..)]
pub struct ListedGroup {
    /// The group's id.
    pub group_id: Str,
    /// What kind of members it has: `consumer` (of either protocol), `connect`, `share`, `streams` or a word of their
    /// own; empty for a group without members that only stores offsets.
    pub protocol_type: Str,
    /// Its state. Classic groups are `PreparingRebalance`, `CompletingRebalance`, `Stable`, `Empty` or `Dead`; those
    /// of KIP-848 `Assigning`, `Reconciling`, `Stable`, `Empty` or `Dead`.
    #[field(versions = 4.., ignorable)]
    pub group_state: Str,
    /// `classic`, `consumer` (KIP-848), `share` (KIP-932) or `streams` (KIP-1071).
    #[field(versions = 5.., ignorable)]
    pub group_type: Str,
}
