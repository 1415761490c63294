//! What is wrong with a certificate, and what the alert of a peer means: in words, with what to do.

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError};

use super::explain::Peer;
use super::verifier::other;
use crate::calendar::Moment;

/// What is wrong with the certificate that a peer has shown.
pub(super) fn certificate(fault: &CertificateError, peer: &Peer) -> String {
    let Peer { whom, setter, .. } = peer;
    match fault {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("it expired on {}: renew it there, and check this machine's clock", date(*not_after))
        }
        CertificateError::Expired => "it has expired: renew it there, and check this machine's clock".into(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("it is not valid before {}: check this machine's clock", date(*not_before))
        }
        CertificateError::NotValidYet => "it is not valid yet: check this machine's clock".into(),
        CertificateError::UnknownIssuer => format!(
            "its issuer is not trusted: check that the issuer's certificate is among the roots given to {setter}, and \
             that {whom} sends those between"
        ),
        CertificateError::BadSignature => format!(
            "it was not signed by the trusted issuer of that name, or with a key that is too weak here (RSA of less \
             than 2048 bits): is there another issuer with the same name, whose certificate is to be among the roots \
             given to {setter}?"
        ),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "it, or one of those between, is signed in a way that is not taken, as SHA-1 and MD5 are: have it signed \
             anew with SHA-256 or more, and a key of RSA (2048 bits at least), P-256, P-384 or Ed25519"
                .into()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let presented = if presented.is_empty() {
                "no name (its common name does not count: it needs a subjectAltName)".to_owned()
            } else {
                presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ")
            };
            format!("it is for {presented}, and not for {}: {}", expected.to_str(), named(peer))
        }
        CertificateError::NotValidForName => format!("it is for another name: {}", named(peer)),
        CertificateError::Revoked => "it was revoked: a new one must be issued".into(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not one for servers: its extended key usage must have serverAuth, or be left out".into()
        }
        CertificateError::BadEncoding => "it is none, or damaged: have it issued anew".into(),
        CertificateError::UnhandledCriticalExtension => CRITICAL.into(),
        CertificateError::UnknownRevocationStatus
        | CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            "whether it was revoked is not known: the lists in the rustls::ClientConfig must cover its issuer, and be \
             up to date"
                .into()
        }
        CertificateError::ApplicationVerificationFailure => {
            "the verifier in the rustls::ClientConfig does not take it".into()
        }
        fault => match other(fault).as_deref() {
            Some("CaUsedAsEndEntity") => {
                "it is the certificate of an issuer (CA:TRUE), as openssl req -x509 makes it: give exactly this \
                 certificate to Tls::roots_file, or have one shown that is no issuer's"
                    .into()
            }
            Some("UnsupportedCertVersion") => {
                "it, or one of those between, is of version 1 of X.509, which is not taken: have it issued with \
                 extensions (openssl x509 -req with -extfile, for the subjectAltName), which makes it one of version 3"
                    .into()
            }
            Some("UnsupportedCriticalExtension") => CRITICAL.into(),
            Some("EndEntityUsedAsCa") => {
                "one of those between is no issuer's (it lacks CA:TRUE): have the chain put right".into()
            }
            Some("NameConstraintViolation") => {
                "an issuer of it may not issue for this name (its name constraints): have one issued by another".into()
            }
            Some("PathLenConstraintViolated") => {
                "an issuer of it may have no issuer below it (its path length): have one issued by another".into()
            }
            Some(name) => format!("rustls calls it {name}: have it issued anew"),
            None => "rustls does not take it, for a reason that has no name here: have it issued anew".into(),
        },
    }
}

const CRITICAL: &str = "it, or one of those between, has an extension that is critical and not known here: have it \
                        issued without, or with that extension not marked as critical";

/// Whose name must be in the certificate.
fn named(peer: &Peer) -> String {
    let whose = match peer.whom {
        "the broker" => "that the broker advertises (advertised.listeners)",
        _ => "in the URL",
    };
    format!("the certificate must be for the name {whose}, or Tls::server_name, for {}, must say another", peer.setter)
}

/// `DnsName("a.example")` as `a.example`.
fn bare(presented: &str) -> &str {
    let inner = presented.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
    inner.unwrap_or(presented).trim_matches('"')
}

/// What is meant by the alert that a peer ended the handshake with.
pub(super) fn alerted(alert: AlertDescription, peer: &Peer) -> String {
    use AlertDescription as Alert;
    let whom = peer.whom;
    match alert {
        Alert::CertificateRequired | Alert::NoCertificate => WANTS_ONE.into(),
        Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate | Alert::AccessDenied
            if !peer.shows_certificate =>
        {
            // What Java's servers say to who shows none.
            WANTS_ONE.into()
        }
        Alert::UnknownCA => format!(
            "{whom} does not trust the issuer of the client's certificate: have it do so, or \
                                     show one of an issuer that it trusts"
        ),
        Alert::BadCertificate | Alert::CertificateUnknown | Alert::AccessDenied => format!(
            "{whom} does not take the client's certificate: does it trust its issuer, and is it one for clients \
             (clientAuth)? Its log says more"
        ),
        Alert::UnsupportedCertificate => {
            format!(
                "the client's certificate is of a kind that {whom} does not take: is it one for clients (clientAuth)?"
            )
        }
        Alert::CertificateExpired => "the client's certificate has expired: renew it".into(),
        Alert::CertificateRevoked => "the client's certificate was revoked: get another".into(),
        Alert::ProtocolVersion => format!(
            "{whom} speaks none of the versions of TLS that this client may speak, which are 1.2 and 1.3 where \
             Tls::versions says nothing else"
        ),
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            let other = if peer.shows_certificate { String::new() } else { format!(" If so, {WANTS_ONE}") };
            format!(
                "there is no cipher of TLS, or no kind of key in {whom}'s certificate, that both know (RSA, P-256, \
                 P-384 and Ed25519 are known here); or a client certificate is asked for.{other}"
            )
        }
        Alert::UnrecognisedName => "it serves no such name: check the host name, or Tls::server_name".into(),
        Alert::NoApplicationProtocol => "it wants to speak HTTP or the like: give the port of a Kafka listener".into(),
        Alert::InternalError => format!("something is wrong there: the log of {whom} says more"),
        Alert::CloseNotify | Alert::UserCanceled => format!("{whom} ended it: its log says more"),
        _ => format!(
            "{whom} makes no sense of what it was sent: is there something between that changes what is said? \
                      Its log says more"
        ),
    }
}

const WANTS_ONE: &str = "it asks for a client certificate, and this client has none to show: give one with \
                         Tls::identity_files (Java: ssl.keystore.*)";

/// The day, as in 2026-11-30, and the time.
fn date(time: UnixTime) -> String {
    let Moment { year, month, day, hour, minute, second } = Moment::of_seconds(time.as_secs());
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;
    use rustls::pki_types::ServerName;

    use super::*;

    fn peer(shows_certificate: bool) -> Peer {
        Peer { context: String::new(), whom: "the broker", setter: "KafkaBuilder::tls", shows_certificate }
    }

    /// An error with a name, as webpki's are.
    #[derive(Debug)]
    struct MaximumPathDepthExceeded;

    impl std::fmt::Display for MaximumPathDepthExceeded {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Ok(())
        }
    }

    impl std::error::Error for MaximumPathDepthExceeded {}

    #[test]
    fn each_fault_is_told_in_words() {
        let (time, name) = (UnixTime::since_unix_epoch(std::time::Duration::ZERO), ServerName::try_from("a.b"));
        let expected = name.expect("a name");
        let faults = [
            CertificateError::BadEncoding,
            CertificateError::Expired,
            CertificateError::ExpiredContext { time, not_after: time },
            CertificateError::NotValidYet,
            CertificateError::NotValidYetContext { time, not_before: time },
            CertificateError::Revoked,
            CertificateError::UnhandledCriticalExtension,
            CertificateError::UnknownIssuer,
            CertificateError::UnknownRevocationStatus,
            CertificateError::ExpiredRevocationList,
            CertificateError::ExpiredRevocationListContext { time, next_update: time },
            CertificateError::BadSignature,
            CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id: vec![1],
                supported_algorithms: Vec::new(),
            },
            CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                signature_algorithm_id: vec![1],
                public_key_algorithm_id: vec![2],
            },
            CertificateError::NotValidForName,
            CertificateError::NotValidForNameContext { expected, presented: vec!["DnsName(\"c.d\")".into()] },
            CertificateError::InvalidPurpose,
            CertificateError::ApplicationVerificationFailure,
            CertificateError::Other(OtherError(Arc::new(MaximumPathDepthExceeded))),
        ];
        for fault in faults {
            let text = certificate(&fault, &peer(false));
            assert!(text.len() > 25 && !text.contains('{') && !text.contains("Context"), "{fault:?}: {text}");
            assert!(!text.contains("Other") && !text.contains("::Err"), "{fault:?}: {text}");
        }
    }

    #[test]
    fn who_shows_no_certificate_is_told_to() {
        for alert in 0..=u8::MAX {
            let alert = AlertDescription::from(alert);
            let [without, with] = [false, true].map(|shows| alerted(alert, &peer(shows)));
            assert!(without.len() > 25, "{alert:?}: {without}");
            let is_asked = matches!(alert, AlertDescription::CertificateRequired | AlertDescription::NoCertificate);
            assert!(is_asked || !with.contains("identity_files"), "{alert:?}: {with}");
        }
        for alert in [AlertDescription::BadCertificate, AlertDescription::HandshakeFailure] {
            assert!(
                alerted(alert, &peer(false)).contains("Tls::identity_files"),
                "as Java's servers refuse: {alert:?}"
            );
        }
    }
}
