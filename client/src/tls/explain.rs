//! What a failed TLS handshake means, and what to do about it.

use std::io;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

use super::verifier::is_of_an_issuer;
use crate::calendar::Moment;
use crate::cluster::Node;
use crate::error::{KrafkaError, ProtocolErrorKind};

/// The reason in words. A certificate that is not accepted will not be accepted later.
#[cold]
pub(crate) fn explain(node: &Node, why: &io::Error) -> KrafkaError {
    let cause = why.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let context = format!("TLS handshake with {node}");
    match cause {
        Some(error @ Error::InvalidCertificate(fault)) => KrafkaError::auth_because(
            format!("{context}: the broker's certificate is not accepted: {}", certificate(fault)),
            error.clone(),
        ),
        Some(error @ Error::AlertReceived(alert)) => KrafkaError::auth_because(
            format!("{context}: the broker refused with {alert:?}: {}", alerted(*alert)),
            error.clone(),
        ),
        Some(Error::InvalidMessage(_)) => KrafkaError::protocol(
            ProtocolErrorKind::NotKafka,
            format!(
                "{context}: the broker speaks plaintext, or no TLS at least: give the port of an SSL or SASL_SSL \
                 listener, or leave TLS out"
            ),
        ),
        Some(error @ Error::PeerIncompatible(fault)) => KrafkaError::auth_because(
            format!(
                "{context}: there is no version or cipher of TLS that both speak ({fault:?}): the broker needs TLS \
                 1.2 or 1.3 (ssl.enabled.protocols)"
            ),
            error.clone(),
        ),
        Some(error @ Error::PeerMisbehaved(fault)) => {
            let said = format!(
                "the broker does not keep to the rules of TLS ({fault:?}): is there something between that changes \
                 what is said, or a certificate that this cryptography does not know (Ed25519 in TLS 1.2)?"
            );
            KrafkaError::network_saying(
                format!("{context}: {said}"),
                std::sync::Arc::new(io::Error::new(why.kind(), error.clone())),
            )
        }
        None if why.kind() == io::ErrorKind::UnexpectedEof => {
            let said = "the peer closed the connection; is it a plaintext listener, or no Kafka broker?";
            KrafkaError::network(context, io::Error::new(why.kind(), said))
        }
        _ => KrafkaError::network(context, io::Error::new(why.kind(), why.to_string())),
    }
}

/// Why a broker ended a connection on which the handshake had seemed to succeed: with TLS 1.3 it sees the client's
/// certificate only after the client has begun to speak.
#[cold]
pub(crate) fn explain_late(node: &Node, why: &io::Error) -> Option<KrafkaError> {
    let cause = why.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(cause, Some(Error::AlertReceived(_))).then(|| explain(node, why))
}

/// What is wrong with a certificate, and what to do.
fn certificate(fault: &CertificateError) -> String {
    match fault {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("it expired on {}: renew it on the broker, and check this machine's clock", date(*not_after))
        }
        CertificateError::Expired => {
            "it has expired: renew it on the broker, and check this machine's clock".to_owned()
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("it is not valid before {}: check this machine's clock", date(*not_before))
        }
        CertificateError::NotValidYet => "it is not valid yet: check this machine's clock".to_owned(),
        CertificateError::UnknownIssuer => {
            "its issuer is not trusted: check that the issuer's certificate is among the \
                                            roots given to KafkaBuilder::tls, and that the broker sends those between"
                .to_owned()
        }
        CertificateError::BadSignature => {
            "it was not signed by the trusted issuer of that name: is there another issuer \
                                           with the same name, whose certificate is to be among the roots given to \
                                           KafkaBuilder::tls?"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let presented = if presented.is_empty() {
                "no name (its common name does not count: it needs a subjectAltName)".to_owned()
            } else {
                presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ")
            };
            format!(
                "it is for {presented}, and not for {}: the certificate must be for the name that the broker \
                 advertises (advertised.listeners), or Tls::server_name must say another",
                expected.to_str()
            )
        }
        CertificateError::NotValidForName => "it is for another name: the certificate must be for the name that the \
                                              broker advertises (advertised.listeners), or Tls::server_name must say \
                                              another"
            .to_owned(),
        CertificateError::Revoked => "it was revoked".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not one for servers: its extended key usage must have serverAuth, or be left out".to_owned()
        }
        issuer if is_of_an_issuer(issuer) => {
            "it is the certificate of an issuer (CA:TRUE), as openssl req -x509 makes \
                                              it: give exactly this certificate to Tls::roots_file, or let the broker \
                                              show one that is no issuer's"
                .to_owned()
        }
        other => format!("{other:?}"),
    }
}

/// `DnsName("a.example")` as `a.example`.
fn bare(presented: &str) -> &str {
    let inner = presented.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
    inner.unwrap_or(presented).trim_matches('"')
}

fn alerted(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            "it asks for a client certificate: give one with Tls::identity_files"
        }
        AlertDescription::UnknownCA | AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
            "does it trust the issuer of the client's certificate, or ask for one?"
        }
        AlertDescription::CertificateExpired => "the client's certificate has expired: renew it",
        AlertDescription::CertificateRevoked => "the client's certificate was revoked",
        AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => {
            "is there a version and a cipher of TLS that both speak, and does it ask for a client certificate?"
        }
        AlertDescription::UnrecognisedName => "it serves no such name: check the host name, or Tls::server_name",
        _ => "does it ask for a client certificate?",
    }
}

/// The day, as in 2026-11-30, and the time.
fn date(time: UnixTime) -> String {
    let Moment { year, month, day, hour, minute, second } = Moment::of_seconds(time.as_secs());
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}
