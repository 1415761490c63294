//! DeleteGroups (42): deletes groups without members, and the offsets that they have committed (KIP-229).
//!
//! Each group goes to its own coordinator. Groups of every type can be deleted: classic ones, those of KIP-848, share
//! and streams groups.
//!
//! From version 1 on the broker answers before it throttles (KIP-219); 2 is the first in the flexible encoding
//! (KIP-482); 3 gives reasons in words, and may answer GROUP_DELETION_FAILED (KIP-1331).

use crate::{Message, Str};

/// Deletes groups that the receiving broker coordinates.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 42, versions = 0..=3, flexible = 2.., response = DeleteGroupsResponse)]
pub struct DeleteGroupsRequest {
    /// The groups' ids.
    pub groups_names: Vec<Str>,
}

/// Which groups are gone.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 42, versions = 0..=3, flexible = 2..)]
pub struct DeleteGroupsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// One outcome for each group, in any order.
    pub results: Vec<DeletableGroupResult>,
}

/// The outcome for one group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct DeletableGroupResult {
    /// The group's id.
    pub group_id: Str,
    /// Why the group is still there, 0 if it is gone. NON_EMPTY_GROUP: it has members. GROUP_ID_NOT_FOUND,
    /// INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED. NOT_COORDINATOR and COORDINATOR_NOT_AVAILABLE: find the
    /// coordinator anew. COORDINATOR_LOAD_IN_PROGRESS: try again. GROUP_DELETION_FAILED: the plug-in that keeps the
    /// topology of a streams group could not forget it; before version 3 that is UNKNOWN_SERVER_ERROR.
    pub error_code: i16,
    /// The reason in words, `None` if the broker gives none.
    #[field(versions = 3.., nullable = 3.., ignorable, default = null)]
    pub error_message: Option<Str>,
}
