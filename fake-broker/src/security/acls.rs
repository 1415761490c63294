//! The authorizer: who may do what with which resource, by Kafka's rules for its `StandardAuthorizer`.
//!
//! A rule is about a resource by its name, about all that begin with a name, or about all (`*`). To deny wins over to
//! allow; who may read, write, delete or alter may also describe; what no rule is about is refused, or allowed to
//! everyone if the cluster says so. Superusers may do everything. A cluster without an authorizer allows everything.

use std::collections::BTreeSet;

use krafka_protocol::Str;

use super::acl_filter::Filter;
use super::hosts;
use super::principal::Principal;

/// The name that the cluster has as a resource.
pub(crate) const CLUSTER_NAME: &str = "kafka-cluster";

/// What a cluster without an authorizer says of its access rules.
pub(crate) const NO_AUTHORIZER: &str = "No Authorizer is configured on the broker.";

/// Stands for all names, and for all hosts.
pub(crate) const WILDCARD: &str = "*";

/// What somebody wants to do with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Read records, or take part in a group.
    Read = 3,
    /// Write records, or offsets in a transaction.
    Write = 4,
    /// Make topics, or tokens.
    Create = 5,
    /// Delete topics, records, groups.
    Delete = 6,
    /// Change anything that is not a config.
    Alter = 7,
    /// See that it is there, and what it is like.
    Describe = 8,
    /// Do what brokers do.
    ClusterAction = 9,
    /// Read configs.
    DescribeConfigs = 10,
    /// Change configs.
    AlterConfigs = 11,
    /// Write with a producer id without a transaction.
    IdempotentWrite = 12,
    /// Make a delegation token for somebody else.
    CreateTokens = 13,
    /// See a delegation token of somebody else.
    DescribeTokens = 14,
    /// Take part in two-phase commits (KIP-939).
    TwoPhaseCommit = 15,
}

impl Operation {
    const ALL: [Self; 13] = [
        Self::Read,
        Self::Write,
        Self::Create,
        Self::Delete,
        Self::Alter,
        Self::Describe,
        Self::ClusterAction,
        Self::DescribeConfigs,
        Self::AlterConfigs,
        Self::IdempotentWrite,
        Self::CreateTokens,
        Self::DescribeTokens,
        Self::TwoPhaseCommit,
    ];

    /// The operation of a number on the wire.
    pub(crate) fn of_code(code: i8) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| *operation as i8 == code)
    }

    /// Whether who may do `self` may do `other` as well.
    fn implies(self, other: Self) -> bool {
        match other {
            Self::Describe => matches!(self, Self::Read | Self::Write | Self::Delete | Self::Alter | Self::Describe),
            Self::DescribeConfigs => matches!(self, Self::AlterConfigs | Self::DescribeConfigs),
            other => self == other,
        }
    }
}

/// What there is to be authorized for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ResourceType {
    /// Topics, by name.
    Topic = 2,
    /// Groups of all kinds, by id.
    Group = 3,
    /// The one cluster.
    Cluster = 4,
    /// Transactional ids.
    TransactionalId = 5,
    /// Delegation tokens, by id.
    DelegationToken = 6,
    /// Principals, for whom tokens are made.
    User = 7,
}

impl ResourceType {
    /// The type of a number on the wire.
    pub(crate) fn of_code(code: i8) -> Option<Self> {
        let all = [Self::Topic, Self::Group, Self::Cluster, Self::TransactionalId, Self::DelegationToken, Self::User];
        all.into_iter().find(|kind| *kind as i8 == code)
    }

    /// The operations that such a resource knows, as an answer lists them.
    fn operations(self) -> &'static [Operation] {
        use Operation as O;
        match self {
            Self::Topic => {
                &[O::Read, O::Write, O::Create, O::Delete, O::Alter, O::Describe, O::DescribeConfigs, O::AlterConfigs]
            }
            Self::Group => &[O::Read, O::Delete, O::Describe, O::DescribeConfigs, O::AlterConfigs],
            Self::Cluster => &[
                O::Create,
                O::Alter,
                O::Describe,
                O::ClusterAction,
                O::DescribeConfigs,
                O::AlterConfigs,
                O::IdempotentWrite,
            ],
            Self::TransactionalId => &[O::Write, O::Describe, O::TwoPhaseCommit],
            Self::DelegationToken => &[O::Describe],
            Self::User => &[O::CreateTokens, O::DescribeTokens],
        }
    }
}

/// How a rule's name is compared with a resource's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PatternType {
    /// They are the same, or the rule's is `*`.
    Literal = 3,
    /// The resource's begins with the rule's.
    Prefixed = 4,
}

/// Whether a rule grants or refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Permission {
    /// It refuses.
    Deny = 2,
    /// It grants.
    Allow = 3,
}

/// One access rule. The order of the fields is the order in which rules are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    /// The type of the resources that it is about.
    pub(crate) resource_type: ResourceType,
    /// Their name, or how it begins, or `*`.
    pub(crate) name: Str,
    /// How the name is compared.
    pub(crate) pattern_type: PatternType,
    /// To whom it applies: `User:alice`, or `User:*` for everyone.
    pub(crate) principal: Str,
    /// From which address or range of them, or `*`.
    pub(crate) host: Str,
    /// What it grants or refuses; all operations if none is named.
    pub(crate) operation: Option<Operation>,
    /// Whether it grants or refuses.
    pub(crate) permission: Permission,
}

impl Rule {
    /// Whether the rule is about a resource of that name.
    pub(crate) fn covers(&self, name: &str) -> bool {
        match self.pattern_type {
            PatternType::Literal => *self.name == *name || *self.name == *WILDCARD,
            PatternType::Prefixed => name.starts_with(&*self.name),
        }
    }

    /// Whether the rule is about somebody who asks from there, where ranges of hosts are known or not.
    fn is_about(&self, principal: &Principal, host: &str, knows_ranges: bool) -> bool {
        let is_named = *self.host == *host || *self.host == *WILDCARD;
        principal.is_meant_by(&self.principal) && (is_named || knows_ranges && hosts::is_within(host, &self.host))
    }

    /// Whether the rule has its say about an operation. Only a grant reaches further than its own operation.
    fn speaks_of(&self, operation: Operation) -> bool {
        self.operation.is_none_or(|own| match self.permission {
            Permission::Allow => own.implies(operation),
            Permission::Deny => own == operation,
        })
    }
}

/// The rules of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acls {
    /// Whether anybody is refused anything: Kafka's `authorizer.class.name` is set.
    pub(crate) enabled: bool,
    /// Who may do everything: Kafka's `super.users`.
    pub(crate) super_users: BTreeSet<Principal>,
    /// Whether what no rule is about is everyone's: Kafka's `allow.everyone.if.no.acl.found`.
    pub(crate) allow_everyone_if_no_acl_found: bool,
    /// Whether a host may be a range: all nodes are of Kafka 4.4 or later.
    pub(crate) knows_ranges: bool,
    rules: BTreeSet<Rule>,
}

impl Acls {
    /// Whether somebody may do something with a resource. `host` is an address without anything around it.
    pub(crate) fn allow(
        &self,
        principal: &Principal,
        host: &str,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) -> bool {
        if !self.enabled || self.super_users.contains(principal) {
            return true;
        }
        let (mut is_granted, mut is_ruled) = (false, false);
        for rule in self.rules.iter().filter(|rule| rule.resource_type == resource_type && rule.covers(name)) {
            is_ruled = true;
            if rule.is_about(principal, host, self.knows_ranges) && rule.speaks_of(operation) {
                match rule.permission {
                    Permission::Deny => return false,
                    Permission::Allow => is_granted = true,
                }
            }
        }
        is_granted || (!is_ruled && self.allow_everyone_if_no_acl_found)
    }

    /// Whether somebody may do something with any resource of a type: there is a grant that no refusal takes back as
    /// a whole.
    pub(crate) fn allow_any(
        &self,
        principal: &Principal,
        host: &str,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        // Kafka asks for a made-up name first, which finds superusers, and everyone where no rule is.
        if self.allow(principal, host, operation, resource_type, "hardcode") {
            return true;
        }
        let own = |rule: &&Rule| {
            rule.resource_type == resource_type
                && rule.is_about(principal, host, self.knows_ranges)
                && rule.operation.is_none_or(|own| own == operation)
        };
        let (refusals, grants): (Vec<&Rule>, Vec<&Rule>) =
            self.rules.iter().filter(own).partition(|rule| rule.permission == Permission::Deny);
        let takes_back = |refusal: &Rule, grant: &Rule| match (refusal.pattern_type, grant.pattern_type) {
            (PatternType::Literal, PatternType::Prefixed) => *refusal.name == *WILDCARD,
            (PatternType::Prefixed, _) if *grant.name == *WILDCARD => false,
            _ => refusal.covers(&grant.name),
        };
        grants.iter().any(|grant| !refusals.iter().any(|refusal| takes_back(refusal, grant)))
    }

    /// What somebody may do with a resource, as the bit field of an answer.
    pub(crate) fn allowed_operations(
        &self,
        principal: &Principal,
        host: &str,
        resource_type: ResourceType,
        name: &str,
    ) -> i32 {
        let allowed = resource_type.operations().iter().copied();
        allowed
            .filter(|&operation| self.allow(principal, host, operation, resource_type, name))
            .fold(0, |field, operation| field | 1 << operation as i32)
    }

    /// Adds a rule, unless it is there already.
    pub(crate) fn add(&mut self, rule: Rule) {
        self.rules.insert(rule);
    }

    /// The rules that a filter finds, in the order of their resources.
    pub(crate) fn find<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(|rule| filter.matches(rule))
    }

    /// Removes a rule.
    pub(crate) fn remove(&mut self, rule: &Rule) {
        self.rules.remove(rule);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "127.0.0.1";

    fn rule(name: &str, pattern_type: PatternType, operation: Operation, permission: Permission) -> Rule {
        Rule {
            resource_type: ResourceType::Topic,
            name: name.into(),
            pattern_type,
            principal: "User:alice".into(),
            host: WILDCARD.into(),
            operation: Some(operation),
            permission,
        }
    }

    fn allow(name: &str, operation: Operation) -> Rule {
        rule(name, PatternType::Literal, operation, Permission::Allow)
    }

    fn deny(name: &str, operation: Operation) -> Rule {
        rule(name, PatternType::Literal, operation, Permission::Deny)
    }

    fn acls(rules: impl IntoIterator<Item = Rule>) -> Acls {
        Acls { enabled: true, rules: rules.into_iter().collect(), ..Acls::default() }
    }

    fn may(acls: &Acls, user: &'static str, operation: Operation, topic: &str) -> bool {
        acls.allow(&Principal::user(user), HOST, operation, ResourceType::Topic, topic)
    }

    #[test]
    fn grants_imply_that_one_may_look() {
        use Operation::{Alter, AlterConfigs, Create, Delete, Describe, DescribeConfigs, Read, Write};

        for granted in [Read, Write, Delete, Alter, Describe] {
            assert!(may(&acls([allow("a", granted)]), "alice", Describe, "a"), "{granted:?}");
        }
        assert!(!may(&acls([allow("a", Create)]), "alice", Describe, "a"));
        assert!(may(&acls([allow("a", AlterConfigs)]), "alice", DescribeConfigs, "a"));
        assert!(!may(&acls([allow("a", Alter)]), "alice", DescribeConfigs, "a"));
        assert!(!may(&acls([allow("a", Describe)]), "alice", Read, "a"));
    }

    #[test]
    fn refusals_win_and_imply_nothing() {
        let both = acls([allow("*", Operation::Read), deny("a", Operation::Read)]);

        assert!(!may(&both, "alice", Operation::Read, "a"));
        assert!(may(&both, "alice", Operation::Describe, "a"), "to deny reading does not hide");
        assert!(may(&both, "alice", Operation::Read, "b"));
    }

    #[test]
    fn prefixes_cover_what_begins_with_them() {
        let prefixed = acls([rule("or", PatternType::Prefixed, Operation::Read, Permission::Allow)]);

        assert!(may(&prefixed, "alice", Operation::Read, "orders") && may(&prefixed, "alice", Operation::Read, "or"));
        assert!(!may(&prefixed, "alice", Operation::Read, "o"));
        assert!(!may(&prefixed, "bob", Operation::Read, "orders"));
    }

    #[test]
    fn hosts_are_compared_as_they_are_written() {
        let from = |host: &str| acls([Rule { host: host.into(), ..allow("a", Operation::Read) }]);

        assert!(may(&from(HOST), "alice", Operation::Read, "a"));
        assert!(!may(&from("10.0.0.1"), "alice", Operation::Read, "a"));
        let range = from("127.0.0.0/8");
        assert!(!may(&range, "alice", Operation::Read, "a"));
        assert!(may(&Acls { knows_ranges: true, ..range }, "alice", Operation::Read, "a"));
    }

    #[test]
    fn what_no_rule_is_about_is_everyones_if_the_cluster_says_so() {
        let open = Acls { allow_everyone_if_no_acl_found: true, ..acls([allow("a", Operation::Read)]) };

        assert!(may(&open, "bob", Operation::Read, "b"));
        assert!(!may(&open, "bob", Operation::Read, "a"), "a rule about somebody else is a rule");
        assert!(!may(&acls([]), "bob", Operation::Read, "b"));
    }

    #[test]
    fn superusers_and_clusters_without_authorizer_know_no_refusal() {
        let mut ruled = acls([deny("*", Operation::Read)]);
        ruled.super_users.insert(Principal::user("alice"));

        assert!(may(&ruled, "alice", Operation::Read, "a"));
        assert!(may(&Acls::default(), "bob", Operation::Read, "a"));
    }

    #[test]
    fn any_needs_a_grant_that_is_not_taken_back() {
        use PatternType::Prefixed;
        use Permission::{Allow, Deny};
        let any = |rules: Vec<Rule>| {
            acls(rules).allow_any(&Principal::user("alice"), HOST, Operation::Write, ResourceType::Topic)
        };
        let write = Operation::Write;

        assert!(!any(vec![]));
        assert!(any(vec![allow("a", write)]));
        assert!(!any(vec![allow("a", Operation::Read)]));
        assert!(!any(vec![allow("a", write), deny("a", write)]));
        assert!(any(vec![allow("a", write), deny("b", write)]));
        assert!(!any(vec![allow("a", write), deny("*", write)]));
        assert!(!any(vec![allow("ab", write), rule("a", Prefixed, write, Deny)]));
        assert!(any(vec![rule("a", Prefixed, write, Allow), rule("ab", Prefixed, write, Deny)]));
        assert!(any(vec![rule("a", Prefixed, write, Allow), deny("a", write)]));
        assert!(any(vec![allow("*", write), rule("hard", Prefixed, write, Deny)]));
    }

    #[test]
    fn allowed_operations_are_a_bit_field() {
        let reader = acls([allow("a", Operation::Read)]);

        let field = reader.allowed_operations(&Principal::user("alice"), HOST, ResourceType::Topic, "a");

        assert_eq!(field, 1 << 3 | 1 << 8);
    }
}
