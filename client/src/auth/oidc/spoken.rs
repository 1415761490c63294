//! [`Spoken`]: the secrets in a request, which an endpoint's answer may repeat, and an error must not.

use super::form::encoded;
use crate::auth::Secret;

/// What is shorter is in any text.
const MIN_SECRET: usize = 4;

/// Secrets that were said, in each shape in which they went over the wire.
#[derive(Default)]
pub(super) struct Spoken(Vec<Secret>);

impl Spoken {
    /// Takes note of one: as it is, and as a form has it.
    pub(super) fn note(&mut self, secret: &Secret) {
        self.0.push(encoded(secret.expose()));
        self.0.push(secret.clone());
    }

    /// The text without them, but for those that are too short to be secret.
    pub(super) fn strike(&self, text: &str) -> String {
        // The longest first: one may be a part of another.
        let secrets = self.0.iter().map(Secret::expose).filter(|secret| secret.len() >= MIN_SECRET);
        let mut secrets: Vec<&str> = secrets.collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[hidden]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_struck_out_in_each_shape() {
        let mut spoken = Spoken::default();
        ["hunter 2", "hunter", "and", ""].into_iter().for_each(|secret| spoken.note(&Secret::new(secret)));

        assert_eq!(spoken.strike("a=hunter+2&b=hunter 2 and a hunter"), "a=[hidden]&b=[hidden] and a [hidden]");
    }
}
