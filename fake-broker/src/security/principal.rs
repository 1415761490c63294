//! Who asks: a kind and a name, `User:alice`.

use std::fmt;

use krafka_protocol::Str;

/// The only kind of principal that Kafka makes by itself.
pub(crate) const USER: &str = "User";

/// Somebody who may be granted something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Principal {
    /// `User`, unless an operator or a token says otherwise.
    pub(crate) kind: Str,
    /// The name, which may hold colons: the distinguished name of a certificate does.
    pub(crate) name: Str,
}

impl Principal {
    /// A user of that name.
    pub(crate) fn user(name: impl Into<Str>) -> Self {
        Self { kind: Str::from_static(USER), name: name.into() }
    }

    /// Who asks where nobody has to say who they are.
    pub(crate) fn anonymous() -> Self {
        Self::user(Str::from_static("ANONYMOUS"))
    }

    /// Reads `kind:name`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        Some(Self { kind: kind.into(), name: name.into() })
    }

    /// Whether a rule written for `pattern` is about this principal: it names them, or everyone of their kind.
    pub(crate) fn is_meant_by(&self, pattern: &str) -> bool {
        pattern
            .strip_prefix(&*self.kind)
            .and_then(|rest| rest.strip_prefix(':'))
            .is_some_and(|name| *self.name == *name)
            || pattern == "User:*"
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::Principal;

    #[test]
    fn first_colon_is_between_kind_and_name() {
        let parsed = Principal::parse("User:CN=a:b").expect("two parts");

        assert_eq!((&*parsed.kind, &*parsed.name), ("User", "CN=a:b"));
        assert_eq!(parsed.to_string(), "User:CN=a:b");
        assert_eq!(Principal::parse("alice"), None);
    }

    #[test]
    fn everyone_means_everyone() {
        let alice = Principal::user("alice");

        assert!(alice.is_meant_by("User:alice") && alice.is_meant_by("User:*"));
        assert!(!alice.is_meant_by("User:alic") && !alice.is_meant_by("Group:alice") && !alice.is_meant_by("alice"));
    }
}
