//! DeleteAcls (31): removes the access rules that match filters (KIP-140).
//!
//! Sent to any broker, which forwards it to the controller, or to a controller itself (KIP-919), by whoever may alter
//! the cluster. [`describe_acls`](super::describe_acls) says what the numbers mean and how filters match: the same
//! filter finds there what it would remove here.
//!
//! Version 1 adds the pattern type (KIP-290), and from it on the broker answers before it throttles (KIP-219); 2 is
//! the first in the flexible encoding (KIP-482); from 3 on there are rules about users (KIP-373). Kafka 4.0 dropped
//! version 0 (KIP-896).

use crate::{Message, Str};

/// Removes rules.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 31, versions = 0..=3, flexible = 2.., response = DeleteAclsResponse)]
pub struct DeleteAclsRequest {
    /// The filters. A rule goes when it matches any of them.
    pub filters: Vec<DeleteAclsFilter>,
}

/// Which rules to remove.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct DeleteAclsFilter {
    /// The type of the resource; 1 for any.
    pub resource_type_filter: i8,
    /// The name of the resource, `None` for any.
    pub resource_name_filter: Option<Str>,
    /// How the name is compared: 1 patterns of either type with just this name, 2 all patterns that hold for a
    /// resource of this name, 3 literal ones with just this name, 4 prefixed ones with just this name.
    #[field(versions = 1.., default = 3)]
    pub pattern_type_filter: i8,
    /// The principal, `None` for any.
    pub principal_filter: Option<Str>,
    /// The host, `None` for any.
    pub host_filter: Option<Str>,
    /// The operation; 1 for any.
    pub operation: i8,
    /// The permission; 1 for any.
    pub permission_type: i8,
}

/// Which rules are gone.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 31, versions = 0..=3, flexible = 2..)]
pub struct DeleteAclsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// One outcome for each filter of the request, in its order: nothing else says which is whose.
    pub filter_results: Vec<DeleteAclsFilterResult>,
}

/// The outcome for one filter.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct DeleteAclsFilterResult {
    /// Why the filter was not applied, 0 if it was. INVALID_REQUEST: it makes no sense. SECURITY_DISABLED: there is
    /// no authorizer. CLUSTER_AUTHORIZATION_FAILED: the caller may not alter the cluster.
    pub error_code: i16,
    /// The reason in words, `None` if there was no error.
    pub error_message: Option<Str>,
    /// The rules that matched; it is no error when there are none.
    pub matching_acls: Vec<DeleteAclsMatchingAcl>,
}

/// A rule that matched, and whether it is gone.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct DeleteAclsMatchingAcl {
    /// Why the rule is still there, 0 if it is gone.
    pub error_code: i16,
    /// The reason in words, `None` if there was no error.
    pub error_message: Option<Str>,
    /// The type of the resources that it was about.
    pub resource_type: i8,
    /// Their name, or the beginning of it, or `*`.
    pub resource_name: Str,
    /// 3 literal, 4 prefixed.
    #[field(versions = 1.., default = 3)]
    pub pattern_type: i8,
    /// To whom it applied.
    pub principal: Str,
    /// From which address, `*` for all.
    pub host: Str,
    /// The operation; 2 for all of them.
    pub operation: i8,
    /// 2 deny, 3 allow.
    pub permission_type: i8,
}
