//! A text that is taken and used, and never shown.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// A password or a key within an [`Operation`](super::Operation). It is read from JSON as any text is; where an
/// operation is shown, in a list of rules or in a test's output, there is `[hidden]` in its place.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

/// What is shown in the place of a secret.
const HIDDEN: &str = "[hidden]";
