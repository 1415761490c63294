//! DescribeAcls (29): the access rules that match a filter (KIP-140).
//!
//! Sent to any broker, or to a controller (KIP-919), by whoever may describe the cluster. The numbers below stand in
//! this API, in CreateAcls (30) and in DeleteAcls (31). 0 is what a receiver makes of a number that it does not know,
//! and is INVALID_REQUEST when it is sent; `any` and `match` are for filters.
//!
//! | number | resource type      | pattern type | operation                 | permission |
//! |--------|--------------------|--------------|---------------------------|------------|
//! | 0      | unknown            | unknown      | unknown                   | unknown    |
//! | 1      | any                | any          | any                       | any        |
//! | 2      | topic              | match        | all                       | deny       |
//! | 3      | group              | literal      | read                      | allow      |
//! | 4      | cluster            | prefixed     | write                     |            |
//! | 5      | transactional id   |              | create                    |            |
//! | 6      | delegation token   |              | delete                    |            |
//! | 7      | user               |              | alter                     |            |
//! | 8      |                    |              | describe                  |            |
//! | 9      |                    |              | cluster action            |            |
//! | 10     |                    |              | describe configs          |            |
//! | 11     |                    |              | alter configs             |            |
//! | 12     |                    |              | idempotent write          |            |
//! | 13     |                    |              | create tokens             |            |
//! | 14     |                    |              | describe tokens           |            |
//! | 15     |                    |              | two-phase commit          |            |
//!
//! A rule with a literal pattern holds for the resource of that name, and with the name `*` for all of its type; with
//! a prefixed pattern, for all whose names begin with it. The cluster is called `kafka-cluster`.
//!
//! Version 1 adds the pattern type (KIP-290), and from it on the broker answers before it throttles (KIP-219); 2 is
//! the first in the flexible encoding (KIP-482); from 3 on there are rules about users (KIP-373). Kafka 4.0 dropped
//! version 0 (KIP-896).

use crate::{Message, Str};

/// Asks for the rules that match a filter.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 29, versions = 0..=3, flexible = 2.., response = DescribeAclsResponse)]
pub struct DescribeAclsRequest {
    /// The type of the resource; 1 for any.
    pub resource_type_filter: i8,
    /// The name of the resource, `None` for any.
    pub resource_name_filter: Option<Str>,
    /// How the name is compared. 3: literal patterns with just this name. 4: prefixed patterns with just this name.
    /// 1: patterns of either type with just this name. 2: all patterns that hold for a resource of this name, `*` and
    /// shorter prefixes among them.
    #[field(versions = 1.., default = 3)]
    pub pattern_type_filter: i8,
    /// The principal, `User:alice` for instance; `None` for any. `User:*`, which stands for everyone in a rule,
    /// matches only such rules.
    pub principal_filter: Option<Str>,
    /// The host, `None` for any. `*`, which stands for every host in a rule, matches only such rules.
    pub host_filter: Option<Str>,
    /// The operation; 1 for any.
    pub operation: i8,
    /// The permission; 1 for any.
    pub permission_type: i8,
}

/// The rules.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 29, versions = 0..=3, flexible = 2..)]
pub struct DescribeAclsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why there are no rules, 0 if the list is what there is. SECURITY_DISABLED: the broker has no authorizer.
    /// CLUSTER_AUTHORIZATION_FAILED: the caller may not describe the cluster.
    pub error_code: i16,
    /// The reason in words, `None` if there was no error.
    pub error_message: Option<Str>,
    /// The rules, by the pattern that they are about.
    pub resources: Vec<DescribeAclsResource>,
}

/// The rules about one pattern.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct DescribeAclsResource {
    /// The type of the resources.
    pub resource_type: i8,
    /// Their name, or the beginning of it, or `*`.
    pub resource_name: Str,
    /// 3 literal, 4 prefixed. Version 0 asks for literal ones only, and gets only those.
    #[field(versions = 1.., default = 3)]
    pub pattern_type: i8,
    /// The rules.
    pub acls: Vec<AclDescription>,
}

/// A rule about a pattern.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct AclDescription {
    /// To whom it applies: type and name with a colon between them, `User:*` for everyone.
    pub principal: Str,
    /// From which address, `*` for all.
    pub host: Str,
    /// The operation; 2 for all of them.
    pub operation: i8,
    /// 2 deny, 3 allow.
    pub permission_type: i8,
}
