//! The certificate that the client shows, and its key.

use std::path::Path;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[cfg(feature = "keystores")]
use super::keystore::Keystore;
use super::material::Material;
#[cfg(feature = "keystores")]
use super::store::Store;
use super::{key, pem};
use crate::auth::Secret;
use crate::files::Files;

/// A certificate chain and its key, or where they are.
#[derive(Clone, Debug)]
pub(super) enum Identity {
    Pem {
        chain: Material,
        key: Material,
    },
    #[cfg(feature = "keystores")]
    Keystore(Keystore),
}

impl Identity {
    /// The files that it is in.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let paths = match self {
            Self::Pem { chain, key } => [chain.path(), key.path()],
            #[cfg(feature = "keystores")]
            Self::Keystore(keystore) => [Some(keystore.path()), None],
        };
        paths.into_iter().flatten()
    }

    /// Both, as TLS wants them.
    pub(super) fn load(
        &self,
        files: &Files,
        password: Option<&Secret>,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let (chain, key) = match self {
            Self::Pem { chain, key } => (chain, key),
            #[cfg(feature = "keystores")]
            Self::Keystore(keystore) => return keystore.open(files, password, Store::into_identity),
        };
        let certificates =
            pem::certificates(chain.contents(files)?).map_err(|fault| format!("{}: {fault}", chain.name()))?;
        if certificates.is_empty() {
            return Err(format!("there is no CERTIFICATE section in {}: it is to hold the client's own", chain.name()));
        }
        Ok((certificates, key::read(key, files, password)?))
    }
}
