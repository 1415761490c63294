//! Whom quotas are for, as requests write it: types and names.

use krafka_protocol::Str;

use super::{Entity, Name};

/// The types of whom a quota can be for.
pub(crate) const USER: &str = "user";
pub(crate) const CLIENT_ID: &str = "client-id";
pub(crate) const IP: &str = "ip";

impl Entity {
    /// Reads whom a quota is for. The error says in Kafka's words what is wrong with it.
    pub(crate) fn parse<'a>(parts: impl IntoIterator<Item = (&'a Str, &'a Name)>) -> Result<Self, String> {
        let mut entity = Self::default();
        for (kind, name) in parts {
            let part = match &**kind {
                USER => &mut entity.user,
                CLIENT_ID => &mut entity.client_id,
                IP => &mut entity.ip,
                _ => return Err(format!("Unhandled client quota entity type: {kind}")),
            };
            // Of two that have one type, the last counts.
            *part = Some(name.as_ref().map(Str::detached));
            if name.as_ref().is_some_and(|name| name.is_empty()) {
                return Err(format!("Empty {kind} not supported"));
            }
        }
        if entity == Self::default() {
            return Err("Invalid empty client quota entity".to_owned());
        }
        if entity.ip.is_some() && (entity.user.is_some() || entity.client_id.is_some()) {
            return Err(
                "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId".to_owned()
            );
        }
        Ok(entity)
    }

    /// The parts, as an answer lists them.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, &Name)> {
        let parts = [(USER, &self.user), (CLIENT_ID, &self.client_id), (IP, &self.ip)];
        parts.into_iter().filter_map(|(kind, name)| Some((kind, name.as_ref()?)))
    }

    /// Which limits may be set for it, and whether each is a whole number.
    pub(crate) fn keys(&self) -> &'static [(&'static str, bool)] {
        if self.ip.is_some() {
            return &[("connection_creation_rate", true)];
        }
        &[
            ("producer_byte_rate", true),
            ("consumer_byte_rate", true),
            ("request_percentage", false),
            ("controller_mutation_rate", false),
        ]
    }
}
