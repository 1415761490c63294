//! CreateAcls (30): adds access rules (KIP-140).
//!
//! Sent to any broker, which forwards it to the controller, or to a controller itself (KIP-919), by whoever may alter
//! the cluster. To create a rule that is already there is no error. [`describe_acls`](super::describe_acls) says what
//! the numbers mean.
//!
//! Version 1 adds the pattern type (KIP-290), and from it on the broker answers before it throttles (KIP-219); 2 is
//! the first in the flexible encoding (KIP-482); from 3 on there are rules about users (KIP-373). Kafka 4.0 dropped
//! version 0 (KIP-896).

use crate::{Message, Str};

/// Adds rules.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 30, versions = 0..=3, flexible = 2.., response = CreateAclsResponse)]
pub struct CreateAclsRequest {
    /// The rules.
    pub creations: Vec<AclCreation>,
}

/// A rule to add.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct AclCreation {
    /// The type of the resources that it is about; neither 0 nor 1.
    pub resource_type: i8,
    /// Their name, or the beginning of it, or `*`; never empty. For the cluster only `kafka-cluster`.
    pub resource_name: Str,
    /// 3 literal, 4 prefixed; nothing else.
    #[field(versions = 1.., default = 3)]
    pub resource_pattern_type: i8,
    /// To whom it applies: type and name with a colon between them, `User:*` for everyone.
    pub principal: Str,
    /// From which address, `*` for all.
    pub host: Str,
    /// The operation, 2 for all of them; neither 0 nor 1.
    pub operation: i8,
    /// 2 deny, 3 allow; nothing else.
    pub permission_type: i8,
}

/// Which rules are there now.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 30, versions = 0..=3, flexible = 2..)]
pub struct CreateAclsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// One outcome for each rule of the request, in its order: nothing else says which is whose.
    pub results: Vec<AclCreationResult>,
}

/// The outcome for one rule.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct AclCreationResult {
    /// Why the rule was not added, 0 if it is there. INVALID_REQUEST: it makes no sense. SECURITY_DISABLED: there is
    /// no authorizer. CLUSTER_AUTHORIZATION_FAILED: the caller may not alter the cluster.
    pub error_code: i16,
    /// The reason in words, `None` if there was no error.
    pub error_message: Option<Str>,
}
