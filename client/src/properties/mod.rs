//! Settings by the names that Java's clients have for them: from a text, a URL, or the environment.

mod apply;
mod jaas;
mod names;
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

    /// A builder with the settings of a process's environment: reads `KRAFKA_BOOTSTRAP_SERVERS` as
    /// `bootstrap.servers`, and so on.
    pub(crate) fn of_environment(
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<KafkaBuilder, KrafkaError> {
        let properties = Self::from_variables(variables);
        if properties.get("bootstrap.servers").is_none() && properties.get("url").is_none() {
            return Err(KrafkaError::config(format!("neither {PREFIX}BOOTSTRAP_SERVERS nor {PREFIX}URL is set")));
        }
        let named = |why| KrafkaError::config(format!("the variables {PREFIX}…: {why}"));
        apply::build(&properties).map_err(named)
    }

    fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Self {
        let property = |(name, value): (String, String)| {
            let name = name.strip_prefix(PREFIX)?.to_ascii_lowercase().replace('_', ".");
            Some((name, Zeroizing::new(value)))
        };
        Self(variables.filter_map(property).collect())
    }

    /// Reads `kafka://user:password@host:port,host:port/?name=value&…`; nothing if it is no URL of ours.
    pub(crate) fn from_url(text: &str) -> Option<Result<Self, KrafkaError>> {
        Some(Self::default().beside(text)?.map_err(KrafkaError::config))
    }

    /// These settings and those of a URL; nothing if the text is no URL of ours.
    fn beside(&self, url: &str) -> Option<Result<Self, String>> {
        let all = url::read(url)?.and_then(|url| url.with(self));
        Some(all.map_err(|why| format!("the URL of the bootstrap servers {why}")))
    }

    /// A builder with these settings.
    pub(crate) fn builder(&self) -> Result<KafkaBuilder, KrafkaError> {
        apply::build(self).map_err(KrafkaError::config)
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), Zeroizing::new(value.into()));
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
