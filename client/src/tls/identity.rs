//! The certificate that the client shows, and its key.

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::material::Material;
use super::{key, pem};
use crate::auth::Secret;
use crate::files::Files;

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
        files: &Files,
        password: Option<&Secret>,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let chain = &self.chain;
        let certificates =
            pem::certificates(chain.contents(files)?).map_err(|fault| format!("{}: {fault}", chain.name()))?;
        if certificates.is_empty() {
            return Err(format!("there is no CERTIFICATE section in {}: it is to hold the client's own", chain.name()));
        }
        Ok((certificates, key::read(&self.key, files, password)?))
    }
}
