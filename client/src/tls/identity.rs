//! The certificate that the client shows, and its key.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::key;
use super::material::Material;
use crate::auth::Secret;

/// A certificate chain and its key, or where they are.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) chain: Material,
    pub(super) key: Material,
}

impl Identity {
    pub(super) fn materials(&self) -> [&Material; 2] {
        [&self.chain, &self.key]
    }

    /// Both, as TLS wants them.
    pub(super) fn load(
        &self,
        password: Option<&Secret>,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let chain = &self.chain;
        let pem = chain.read()?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let certificates = certificates.map_err(|why| format!("{} is no PEM ({why})", chain.name()))?;
        if certificates.is_empty() {
            return Err(format!("there is no CERTIFICATE section in {}: it is to hold the client's own", chain.name()));
        }
        Ok((certificates, key::read(&self.key, password)?))
    }
}
