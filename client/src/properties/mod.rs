//! Settings by the names that Java's clients have for them: from a text, a URL, or the environment.

mod apply;
mod jaas;
mod login;
mod names;
#[cfg(feature = "oidc")]
mod oidc;
mod text;
mod unsecured;
mod url;

use std::collections::BTreeMap;
use std::fmt;

use zeroize::Zeroizing;

use self::url::Url;
use crate::error::KrafkaError;
use crate::kafka_builder::KafkaBuilder;

/// What begins the names of environment variables.
const PREFIX: &str = "KRAFKA_";

/// Names and values. The values may be secret, all of them.
#[derive(Clone, Default)]
pub(crate) struct Properties {
    values: BTreeMap<String, Zeroizing<String>>,
    /// Whether they are variables of the environment, which an error then names.
    are_variables: bool,
}

impl Properties {
    /// Reads a text in the form of Java's `.properties` files.
    pub(crate) fn from_text(text: &str) -> Result<Self, KrafkaError> {
        let mut properties = Self::default();
        for (name, value) in text::read(text).map_err(|why| KrafkaError::config(format!("properties: {why}")))? {
            // As in Java: the last one counts.
            properties.values.insert(name, value);
        }
        Ok(properties)
    }

    /// Reads `KRAFKA_BOOTSTRAP_SERVERS` as `bootstrap.servers`, and so on.
    pub(crate) fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Self {
        let property = |(name, value): (String, String)| {
            let name = name.strip_prefix(PREFIX)?.to_ascii_lowercase().replace('_', ".");
            Some((name, Zeroizing::new(value)))
        };
        Self { values: variables.filter_map(property).collect(), are_variables: true }
    }

    /// Reads `kafka://user:password@host:port,host:port/?name=value&…`; nothing if it is no URL of ours.
    pub(crate) fn from_url(text: &str) -> Option<Result<Self, KrafkaError>> {
        let read = || Url::read(text)?.with(&Self::default());
        Url::is_one(text).then(|| read().map_err(|why| KrafkaError::config(of_url(&why))))
    }

    /// A builder with these settings.
    pub(crate) fn builder(&self) -> Result<KafkaBuilder, KrafkaError> {
        self.build().map_err(|why| KrafkaError::config(if self.are_variables { self.by_variables(why) } else { why }))
    }

    fn build(&self) -> Result<KafkaBuilder, String> {
        match self.are_variables {
            true => names::judge_variables(self)?,
            false => names::judge_file(self)?,
        }
        match self.url() {
            None => apply::builder(self),
            Some((_, text)) => {
                let all = Url::read(text).and_then(|url| url.with(self)).map_err(|why| of_url(&why))?;
                apply::builder(&all)
            }
        }
    }

    /// The URL, and the property that it is in: its own, or the one of the servers.
    fn url(&self) -> Option<(&str, &str)> {
        let servers = || self.get("bootstrap.servers").filter(|servers| Url::is_one(servers));
        self.get("url").map(|url| ("url", url)).or_else(|| Some(("bootstrap.servers", servers()?)))
    }

    /// What is wrong, with the variable in it instead of the property that it begins with.
    fn by_variables(&self, why: String) -> String {
        if why.starts_with(PREFIX) {
            return why;
        }
        let end = why.find(|c: char| !c.is_ascii_lowercase() && c != '.').unwrap_or(why.len());
        let (name, rest) = why.split_at(end);
        match self.url() {
            Some((url, _)) if self.get(name).is_none() => format!("{}: {why}", names::variable(url)),
            None if why == apply::NO_SERVERS => "neither KRAFKA_BOOTSTRAP_SERVERS nor KRAFKA_URL is set".to_owned(),
            _ if names::is_read(name) => format!("{}{rest}", names::variable(name)),
            _ => why,
        }
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.values.insert(name.to_owned(), Zeroizing::new(value.into()));
    }

    /// These, which are a URL's, and those that are given beside it.
    ///
    /// # Errors
    /// One is there in both, and not the same: which of them counts is not guessed.
    fn with(mut self, beside: &Self) -> Result<Self, String> {
        let url = beside.url().map(|(name, _)| name);
        for (name, value) in beside.values.iter().filter(|(name, _)| Some(name.as_str()) != url) {
            match self.get(name) {
                Some(own) if own != value.trim() => {
                    return Err(format!("has a {name}, and there is another beside the URL: leave one of them out"));
                }
                Some(_) => {}
                None => drop(self.values.insert(name.clone(), value.clone())),
            }
        }
        Ok(self)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| value.trim())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }
}

/// What is wrong with a URL.
fn of_url(why: &str) -> String {
    format!("the URL of the bootstrap servers {why}")
}

/// The names alone, and of those only what is surely one: a torn value looks like names, too.
impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names().filter(|name| names::is_name(name))).finish()
    }
}

#[cfg(test)]
mod tests;
