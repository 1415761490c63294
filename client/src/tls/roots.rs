//! Whom the client trusts.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

#[cfg(feature = "keystores")]
use super::keystore::Keystore;
use super::material::Material;
use super::pem;
#[cfg(feature = "keystores")]
use super::store::Store;
use crate::files::Files;

/// Where the trusted issuers are found.
#[derive(Clone, Debug, Default)]
pub(super) struct Roots {
    pub(super) materials: Vec<Material>,
    #[cfg(feature = "keystores")]
    pub(super) keystores: Vec<Keystore>,
    #[cfg(feature = "native-roots")]
    pub(super) with_native: bool,
    #[cfg(feature = "webpki-roots")]
    pub(super) with_webpki: bool,
}

/// Whom the client trusts, as far as it was read.
pub(super) struct Trusted {
    pub(super) roots: RootCertStore,
    /// Those of them that the user named, and not everybody knows.
    pub(super) named: Vec<CertificateDer<'static>>,
}

impl Roots {
    pub(super) fn load(&self, files: &Files) -> Result<Trusted, String> {
        let (mut roots, mut named) = (RootCertStore::empty(), Vec::new());
        for material in &self.materials {
            let name = material.name();
            let before = roots.len();
            let certificates =
                pem::certificates(material.contents(files)?).map_err(|fault| format!("{name}: {fault}"))?;
            for certificate in certificates {
                named.push(certificate.clone());
                roots.add(certificate).map_err(|why| format!("a certificate in {name} cannot be read ({why})"))?;
            }
            if roots.len() == before {
                return Err(format!(
                    "there is no CERTIFICATE section in {name}: give the issuer's certificate in PEM form"
                ));
            }
        }
        #[cfg(feature = "keystores")]
        for keystore in &self.keystores {
            let certificates = keystore.open(files, None, Store::into_trusted)?;
            named.extend(certificates.iter().cloned());
            // A copy of Java's own list may have some that nobody else can read.
            let (added, _) = roots.add_parsable_certificates(certificates);
            if added == 0 {
                return Err(format!("no certificate in {} can be read", keystore.name()));
            }
        }
        self.add_known(&mut roots)?;
        if roots.is_empty() {
            return Err(
                "no issuer is trusted: name one with roots_file, roots_keystore or roots_pem (in Java's properties \
                 ssl.truststore.location), or build krafka with the feature webpki-roots, which is there by default, \
                 or native-roots"
                    .to_owned(),
            );
        }
        Ok(Trusted { roots, named })
    }

    /// The files that they are in.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let paths = self.materials.iter().filter_map(Material::path);
        #[cfg(feature = "keystores")]
        let paths = paths.chain(self.keystores.iter().map(Keystore::path));
        paths
    }

    fn are_none_named(&self) -> bool {
        #[cfg(feature = "keystores")]
        return self.materials.is_empty() && self.keystores.is_empty();
        #[cfg(not(feature = "keystores"))]
        self.materials.is_empty()
    }

    /// Whether the operating system's issuers may be among them, which are read from its disk.
    pub(super) fn are_native(&self) -> bool {
        #[cfg(feature = "native-roots")]
        return self.with_native || self.are_none_named();
        #[cfg(not(feature = "native-roots"))]
        false
    }

    /// Adds the issuers that everybody knows, where they are asked for, or nothing else is.
    #[allow(clippy::unnecessary_wraps, reason = "with the features it can fail")]
    fn add_known(&self, roots: &mut RootCertStore) -> Result<(), String> {
        let is_bare = self.are_none_named();
        #[cfg(feature = "webpki-roots")]
        let is_bare = is_bare && !self.with_webpki;
        #[cfg(feature = "native-roots")]
        if is_bare || self.with_native {
            let added = add_native(roots);
            // A container without a system around it has none, which matters where they were asked for by name, or
            // where there are no others.
            if self.with_native || cfg!(not(feature = "webpki-roots")) {
                added?;
            } else if let Err(why) = added {
                tracing::info!(%why, "trusting Mozilla's issuers instead of the operating system's");
            }
        }
        #[cfg(feature = "webpki-roots")]
        if self.with_webpki || (is_bare && roots.is_empty()) {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        let _ = (is_bare, roots);
        Ok(())
    }
}

#[cfg(feature = "native-roots")]
fn add_native(roots: &mut RootCertStore) -> Result<(), String> {
    let found = rustls_native_certs::load_native_certs();
    // A system's store often has some that nobody can read; one that has none is broken.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    match found.errors.first() {
        Some(why) if added == 0 => Err(format!("the operating system's issuers cannot be read ({why})")),
        None if added == 0 => Err("the operating system trusts no issuer".to_owned()),
        _ => Ok(()),
    }
}
