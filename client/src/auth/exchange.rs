//! [`Exchange`]: one authentication, message by message, whatever the mechanism.

use std::fmt;

use bytes::Bytes;

use super::{Plain, SecretText, aws, oauth, scram};

/// One authentication under way: what the client says first, and what it answers.
#[derive(Debug)]
pub(crate) enum Exchange {
    /// Everything is in the first message.
    Plain(Plain),
    Scram(scram::Exchange),
    Bearer(oauth::Exchange),
    MskIam(aws::Exchange),
}

/// What follows from what a broker said.
pub(crate) enum Next {
    /// Say this.
    Say(Bytes),
    /// The broker has nothing left to prove.
    Done,
}

impl Exchange {
    /// The mechanism's registered name.
    pub(crate) fn mechanism(&self) -> &'static str {
        match self {
            Self::Plain(_) => "PLAIN",
            Self::Scram(exchange) => exchange.mechanism(),
            Self::Bearer(_) => "OAUTHBEARER",
            Self::MskIam(_) => "AWS_MSK_IAM",
        }
    }

    /// What the client says first.
    pub(crate) fn initial_response(&self) -> Bytes {
        match self {
            Self::Plain(plain) => plain.initial_response(),
            Self::Scram(exchange) => exchange.initial_response(),
            Self::Bearer(exchange) => exchange.initial_response(),
            Self::MskIam(exchange) => exchange.initial_response(),
        }
    }

    /// What the client answers to a broker that has not refused.
    ///
    /// # Errors
    /// Why the broker is not believed, in words.
    pub(crate) fn answer(&mut self, challenge: &[u8]) -> Result<Next, String> {
        match self {
            Self::Plain(_) => Ok(Next::Done),
            Self::Scram(exchange) => exchange.answer(challenge),
            Self::Bearer(exchange) => exchange.answer(challenge),
            Self::MskIam(exchange) => exchange.answer(challenge),
        }
    }

    /// Whether to find the answer to this takes so long that it must not hold up an asynchronous task.
    pub(crate) fn is_costly(&self, challenge: &[u8]) -> bool {
        match self {
            Self::Scram(exchange) => exchange.is_costly(challenge),
            Self::Plain(_) | Self::Bearer(_) | Self::MskIam(_) => false,
        }
    }

    /// What is to be checked when the broker refuses.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Plain(_) => "check the user name and the password".to_owned(),
            Self::MskIam(_) => "check the AWS keys, that their policies allow kafka-cluster:Connect to this cluster, \
                                the region, and this machine's clock"
                .to_owned(),
            Self::Scram(exchange) => exchange.remedy().to_owned(),
            Self::Bearer(exchange) => {
                let complaint =
                    exchange.complaint().map(|said| format!("the broker says {said}; ")).unwrap_or_default();
                format!("{complaint}check who issues the token, whom it is for, and until when it holds")
            }
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Say(_) => "Say([hidden])",
            Self::Done => "Done",
        })
    }
}

/// A message with a secret in it, which is wiped once it has been written.
pub(super) fn wiped(message: SecretText) -> Bytes {
    Bytes::from_owner(message.into_text())
}
