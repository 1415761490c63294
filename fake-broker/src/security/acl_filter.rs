//! Which access rules somebody asks for, or wants to be rid of.

use krafka_protocol::Str;

use super::acls::{Operation, PatternType, Permission, Rule};

/// The number on the wire that stands for any type, operation or permission.
const ANY: i8 = 1;
/// The pattern type that finds all patterns that cover a name.
const MATCH: i8 = 2;
/// The operation that stands for all of them in a rule.
pub(crate) const ALL_OPERATIONS: i8 = 2;

/// The highest numbers of resource types, pattern types, operations and permissions. What is beyond them is unknown to
/// Kafka, and matches nothing.
pub(crate) const LAST: [i8; 4] = [7, 4, 15, 3];

/// A filter, as it comes on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) resource_type: i8,
    pub(crate) name: Option<Str>,
    pub(crate) pattern_type: i8,
    pub(crate) principal: Option<Str>,
    pub(crate) host: Option<Str>,
    pub(crate) operation: i8,
    pub(crate) permission: i8,
}

impl Filter {
    /// Whether it has a number that nobody may send: Kafka takes it for a request that it cannot read.
    pub(crate) fn is_unreadable(&self) -> bool {
        [self.resource_type, self.pattern_type, self.operation, self.permission].contains(&0)
    }

    /// What is unknown about it, in Kafka's words.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let [resource_type, pattern_type, operation, permission] = LAST;
        let is_known = |number: i8, last: i8| (1..=last).contains(&number);
        if !is_known(self.resource_type, resource_type) || !is_known(self.pattern_type, pattern_type) {
            Some("Unknown patternFilter.")
        } else if !is_known(self.operation, operation) || !is_known(self.permission, permission) {
            Some("Unknown entryFilter.")
        } else {
            None
        }
    }

    /// Whether a rule is one of those that are meant.
    pub(crate) fn matches(&self, rule: &Rule) -> bool {
        (self.resource_type == ANY || self.resource_type == rule.resource_type as i8)
            && self.matches_pattern(rule)
            && self.principal.as_ref().is_none_or(|principal| *principal == rule.principal)
            && self.host.as_ref().is_none_or(|host| *host == rule.host)
            && (self.operation == ANY || self.operation == code_of(rule.operation))
            && (self.permission == ANY || self.permission == rule.permission as i8)
    }

    fn matches_pattern(&self, rule: &Rule) -> bool {
        match (&self.name, self.pattern_type) {
            (None, ANY | MATCH) => true,
            (Some(name), ANY) => *name == rule.name,
            (Some(name), MATCH) => rule.covers(name),
            (name, kind) => kind == rule.pattern_type as i8 && name.as_ref().is_none_or(|name| *name == rule.name),
        }
    }
}

/// The operation of a rule on the wire: `Some(None)` stands for all of them.
pub(crate) fn operation_of(code: i8) -> Option<Option<Operation>> {
    if code == ALL_OPERATIONS { Some(None) } else { Operation::of_code(code).map(Some) }
}

/// The number of a rule's operation.
pub(crate) fn code_of(operation: Option<Operation>) -> i8 {
    operation.map_or(ALL_OPERATIONS, |operation| operation as i8)
}

/// The pattern type of a rule on the wire.
pub(crate) fn pattern_type_of(code: i8) -> Option<PatternType> {
    [PatternType::Literal, PatternType::Prefixed].into_iter().find(|kind| *kind as i8 == code)
}

/// The permission of a rule on the wire.
pub(crate) fn permission_of(code: i8) -> Option<Permission> {
    [Permission::Deny, Permission::Allow].into_iter().find(|permission| *permission as i8 == code)
}

#[cfg(test)]
mod tests {
    use super::super::acls::ResourceType;
    use super::*;

    fn rule(name: &str, pattern_type: PatternType) -> Rule {
        Rule {
            resource_type: ResourceType::Topic,
            name: name.into(),
            pattern_type,
            principal: "User:alice".into(),
            host: "*".into(),
            operation: None,
            permission: Permission::Allow,
        }
    }

    const EVERYTHING: Filter = Filter {
        resource_type: ANY,
        name: None,
        pattern_type: ANY,
        principal: None,
        host: None,
        operation: ANY,
        permission: ANY,
    };

    fn named(name: Option<&str>, pattern_type: i8) -> Filter {
        Filter { name: name.map(Str::from), pattern_type, ..EVERYTHING }
    }

    #[test]
    fn pattern_types_find_what_they_say() {
        let rules = [
            rule("orders", PatternType::Literal),
            rule("orders", PatternType::Prefixed),
            rule("or", PatternType::Prefixed),
            rule("*", PatternType::Literal),
            rule("else", PatternType::Literal),
        ];
        let found = |filter: Filter| rules.each_ref().map(|rule| filter.matches(rule));

        assert_eq!(found(named(Some("orders"), 3)), [true, false, false, false, false]);
        assert_eq!(found(named(Some("orders"), 4)), [false, true, false, false, false]);
        assert_eq!(found(named(Some("orders"), ANY)), [true, true, false, false, false]);
        assert_eq!(found(named(Some("orders"), MATCH)), [true, true, true, true, false]);
        assert_eq!(found(named(None, 3)), [true, false, false, true, true]);
        assert_eq!(found(named(None, MATCH)), [true; 5]);
    }

    #[test]
    fn principals_are_compared_as_they_are_written() {
        let of = |principal: &'static str| Filter { principal: Some(principal.into()), ..EVERYTHING };

        assert!(of("User:alice").matches(&rule("a", PatternType::Literal)));
        assert!(!of("User:*").matches(&rule("a", PatternType::Literal)));
    }

    #[test]
    fn unknown_numbers_match_nothing() {
        let rule = rule("a", PatternType::Literal);
        assert!(EVERYTHING.matches(&rule) && EVERYTHING.fault().is_none() && !EVERYTHING.is_unreadable());

        for (filter, fault) in [
            (Filter { resource_type: 8, ..EVERYTHING }, "Unknown patternFilter."),
            (Filter { pattern_type: 5, ..EVERYTHING }, "Unknown patternFilter."),
            (Filter { operation: 16, ..EVERYTHING }, "Unknown entryFilter."),
            (Filter { permission: 4, ..EVERYTHING }, "Unknown entryFilter."),
        ] {
            assert!(!filter.matches(&rule) && !filter.is_unreadable(), "{filter:?}");
            assert_eq!(filter.fault(), Some(fault));
        }
        assert!(Filter { operation: 0, ..EVERYTHING }.is_unreadable());
    }
}
