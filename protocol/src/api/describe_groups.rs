//! DescribeGroups (15): what a coordinator knows about classic groups, for tools and admin clients.
//!
//! Each group is asked about at its own coordinator ([`find_coordinator`](super::find_coordinator)). Groups of the
//! newer protocols have APIs of their own, ConsumerGroupDescribe for those of KIP-848; asked here, the coordinator
//! treats them as it treats groups that do not exist.
//!
//! Version 1 adds the throttle time, and from 2 on the broker answers before it throttles, so that the client has to
//! wait by itself (KIP-219); 3 tells what the caller may do (KIP-430); 4 names static members (KIP-345); 5 is the
//! first in the flexible encoding (KIP-482). Up to version 5 a group that does not exist is described as `Dead`,
//! without an error; from 6 on the state is still `Dead`, and the error GROUP_ID_NOT_FOUND (KIP-1043).

use crate::{Bytes, Message, Str};

/// Asks about groups that the receiving broker coordinates.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 15, versions = 0..=6, flexible = 5.., response = DescribeGroupsResponse)]
pub struct DescribeGroupsRequest {
    /// The groups' ids; with none of them, the answer is empty.
    pub groups: Vec<Str>,
    /// Whether to tell what the caller may do to each group (KIP-430).
    #[field(versions = 3..)]
    pub include_authorized_operations: bool,
}

/// The groups, in any order.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 15, versions = 0..=6, flexible = 5..)]
pub struct DescribeGroupsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// One for each group asked about.
    pub groups: Vec<DescribedGroup>,
}

/// A classic group as its coordinator sees it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=6, flexible = 5..)]
pub struct DescribedGroup {
    /// Why the group is not described, 0 if it is. NOT_COORDINATOR: find the coordinator anew.
    /// COORDINATOR_LOAD_IN_PROGRESS and COORDINATOR_NOT_AVAILABLE: try again. GROUP_AUTHORIZATION_FAILED and
    /// INVALID_GROUP_ID are final, and so is GROUP_ID_NOT_FOUND, from version 6 on.
    pub error_code: i16,
    /// The reason in words, `None` if the broker gives none.
    #[field(versions = 6.., nullable = 6.., default = null)]
    pub error_message: Option<Str>,
    /// The group's id.
    pub group_id: Str,
    /// `PreparingRebalance`, `CompletingRebalance`, `Stable`, `Empty` or `Dead`; empty after most errors.
    pub group_state: Str,
    /// What kind of members the group has: `consumer`, `connect` or a word of their own; empty if it never had any.
    pub protocol_type: Str,
    /// The protocol that the members agreed on, for consumers the assignor's name; empty unless the group is
    /// `Stable`.
    pub protocol_data: Str,
    /// The members. A `Dead` or `Empty` group has none.
    pub members: Vec<DescribedGroupMember>,
    /// A bit set of what the caller may do to the group, bit `1 << operation` with the numbers that
    /// [`describe_acls`](super::describe_acls) lists; `i32::MIN` when that was not asked for.
    #[field(versions = 3.., default = -2147483648)]
    pub authorized_operations: i32,
}

/// A member of a classic group.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=6, flexible = 5..)]
pub struct DescribedGroupMember {
    /// The id that the coordinator gave it.
    pub member_id: Str,
    /// The name of a static member, `None` for a dynamic one.
    #[field(versions = 4.., nullable = 4.., ignorable, default = null)]
    pub group_instance_id: Option<Str>,
    /// The client id with which it joined.
    pub client_id: Str,
    /// The address from which it joined, as Java prints one: `/192.0.2.7`.
    pub client_host: Str,
    /// What the member said about itself for the chosen protocol, for consumers a
    /// [`Subscription`](crate::group::Subscription); empty unless the group is `Stable`.
    pub member_metadata: Bytes,
    /// What the group's leader assigned to it, for consumers an [`Assignment`](crate::group::Assignment); empty
    /// unless the group is `Stable`.
    pub member_assignment: Bytes,
}
