//! Judges the certificates of brokers: as rustls does, with two things more that Java's clients take.
//!
//! * A certificate that is itself among the roots needs no issuer. The one that `openssl req -x509` makes for a
//!   development broker says of itself that it is an issuer, which rustls takes from no broker.
//! * With [`Tls::accept_any_name`](super::Tls::accept_any_name) any name will do.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::roots::Trusted;

#[derive(Debug)]
pub(super) struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    /// The certificates that the user named.
    pinned: Vec<CertificateDer<'static>>,
    accepts_any_name: bool,
}

impl Verifier {
    pub(super) fn new(
        trusted: Trusted,
        provider: Arc<CryptoProvider>,
        accepts_any_name: bool,
    ) -> Result<Arc<Self>, String> {
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(trusted.roots), provider);
        let inner = builder.build().map_err(|why| format!("the issuers cannot be used ({why})"))?;
        Ok(Arc::new(Self { inner, pinned: trusted.named, accepts_any_name }))
    }
}

/// Whether nothing is wrong with a certificate but that it has no issuer, or is one's.
///
/// Its time and its purpose are judged before that, so that one which has expired is not among them; its name is judged
/// after it.
fn asks_for_issuer(fault: &CertificateError) -> bool {
    matches!(fault, CertificateError::UnknownIssuer) || is_of_an_issuer(fault)
}

/// Whether a certificate says of itself that it is an issuer's.
pub(super) fn is_of_an_issuer(fault: &CertificateError) -> bool {
    other(fault).as_deref() == Some("CaUsedAsEndEntity")
}

/// The name of a fault that rustls has none for. What it comes from is no dependency of ours, and has it in `Debug`.
pub(super) fn other(fault: &CertificateError) -> Option<String> {
    let CertificateError::Other(why) = fault else { return None };
    Some(format!("{:?}", why.0).chars().take_while(char::is_ascii_alphanumeric).collect())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let verdict = match verdict {
            Err(Error::InvalidCertificate(fault)) if asks_for_issuer(&fault) && self.pinned.contains(end_entity) => {
                rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)
                    .map(|()| ServerCertVerified::assertion())
            }
            verdict => verdict,
        };
        match verdict {
            // The name is checked last: a certificate that fails there has passed everything else.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.accepts_any_name => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
