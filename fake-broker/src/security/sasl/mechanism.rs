//! The SASL mechanisms that a cluster can offer.

/// A way to say who one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SaslMechanism {
    /// A name and a password, as they are (RFC 4616).
    Plain,
    /// Proof that one knows the password, by SHA-256 (RFC 7677).
    ScramSha256,
    /// Proof that one knows the password, by SHA-512.
    ScramSha512,
    /// A token that somebody else has issued (RFC 7628).
    OAuthBearer,
    /// A request signed with the keys of AWS, which only Amazon's brokers take.
    AwsMskIam,
}

impl SaslMechanism {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Plain, Self::ScramSha256, Self::ScramSha512, Self::OAuthBearer, Self::AwsMskIam];

    /// Returns the name that clients ask for it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
            Self::OAuthBearer => "OAUTHBEARER",
            Self::AwsMskIam => "AWS_MSK_IAM",
        }
    }
}
