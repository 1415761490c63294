//! Settings by the names that Java's clients have for them: from a text, a URL, or the environment.

mod apply;
mod jaas;
#[cfg(feature = "oidc")]
mod oidc;
mod text;
mod url;

use std::collections::BTreeMap;
use std::fmt;

use zeroize::Zeroizing;

use crate::error::KrafkaError;
use crate::kafka_builder::KafkaBuilder;

/// What begins the names of environment variables.
const PREFIX: &str = "KRAFKA_";

/// Names and values. The values may be secret, all of them.
#[derive(Clone, Default)]
pub(crate) struct Properties(BTreeMap<String, Zeroizing<String>>);

impl Properties {
    /// Reads a text in the form of Java's `.properties` files.
    pub(crate) fn from_text(text: &str) -> Result<Self, KrafkaError> {
        let mut properties = Self::default();
        for (name, value) in text::read(text).map_err(|why| KrafkaError::config(format!("properties: {why}")))? {
            // As in Java: the last one counts.
            properties.0.insert(name, value);
        }
        Ok(properties)
    }

    /// Reads `KRAFKA_BOOTSTRAP_SERVERS` as `bootstrap.servers`, and so on.
    pub(crate) fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Self {
        let property = |(name, value): (String, String)| {
            let name = name.strip_prefix(PREFIX)?.to_ascii_lowercase().replace('_', ".");
            Some((name, Zeroizing::new(value)))
        };
        Self(variables.filter_map(property).collect())
    }

    /// Reads `kafka://user:password@host:port,host:port/?name=value&…`; nothing if it is no URL of ours.
    pub(crate) fn from_url(text: &str) -> Option<Result<Self, KrafkaError>> {
        let read = url::read(text)?;
        Some(read.map_err(|why| KrafkaError::config(format!("the URL of the bootstrap servers {why}"))))
    }

    /// A builder with these settings.
    pub(crate) fn builder(&self) -> Result<KafkaBuilder, KrafkaError> {
        apply::builder(self)
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), Zeroizing::new(value.into()));
    }

    /// These, and those of `others` that they lack, but for the URL.
    fn with(mut self, others: &Self) -> Self {
        for (name, value) in others.0.iter().filter(|(name, _)| *name != "url") {
            self.0.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The names alone.
impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests;
