//! Which access rules somebody asks for, or wants to be rid of.

use krafka_protocol::Str;

use super::acls::{Operation, PatternType, Permission, ResourceType, Rule};

/// The number on the wire that stands for any type, operation or permission.
const ANY: i8 = 1;
/// The pattern type that finds all patterns that cover a name.
const MATCH: i8 = 2;
/// The operation that stands for all of them in a rule.
pub(crate) const ALL_OPERATIONS: i8 = 2;

/// A filter, as it comes on the wire. Its numbers are known ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    resource_type: i8,
    name: Option<Str>,
    pattern_type: i8,
    principal: Option<Str>,
    host: Option<Str>,
    operation: i8,
    permission: i8,
}

impl Filter {
    /// Reads a filter, if all its numbers mean something.
    pub(crate) fn new(
        (resource_type, name, pattern_type): (i8, Option<Str>, i8),
        (principal, host): (Option<Str>, Option<Str>),
        (operation, permission): (i8, i8),
    ) -> Option<Self> {
        let is_known = (resource_type == ANY || ResourceType::of_code(resource_type).is_some())
            && (pattern_type == ANY || pattern_type == MATCH || pattern_type_of(pattern_type).is_some())
            && (operation == ANY || operation_of(operation).is_some())
            && (permission == ANY || permission_of(permission).is_some());
        is_known.then_some(Self { resource_type, name, pattern_type, principal, host, operation, permission })
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

    fn named(name: Option<&str>, pattern_type: i8) -> Filter {
        Filter::new((ANY, name.map(Str::from), pattern_type), (None, None), (ANY, ANY)).expect("known numbers")
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
        let of = |principal: &'static str| {
            Filter::new((ANY, None, ANY), (Some(principal.into()), None), (ANY, ANY)).expect("known numbers")
        };

        assert!(of("User:alice").matches(&rule("a", PatternType::Literal)));
        assert!(!of("User:*").matches(&rule("a", PatternType::Literal)));
    }

    #[test]
    fn unknown_numbers_make_no_filter() {
        assert_eq!(Filter::new((0, None, ANY), (None, None), (ANY, ANY)), None);
        assert_eq!(Filter::new((ANY, None, 5), (None, None), (ANY, ANY)), None);
        assert_eq!(Filter::new((ANY, None, ANY), (None, None), (16, ANY)), None);
        assert_eq!(Filter::new((ANY, None, ANY), (None, None), (ANY, 4)), None);
    }
}
