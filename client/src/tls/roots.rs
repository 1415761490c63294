//! Whom the client trusts.

use rustls::RootCertStore;

use super::material::Material;
use super::pem;

/// Where the trusted issuers are found.
#[derive(Clone, Debug, Default)]
pub(super) struct Roots {
    pub(super) materials: Vec<Material>,
    #[cfg(feature = "native-roots")]
    pub(super) with_native: bool,
    #[cfg(feature = "webpki-roots")]
    pub(super) with_webpki: bool,
}

impl Roots {
    pub(super) fn load(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        for material in &self.materials {
            let name = material.name();
            let before = roots.len();
            let certificates = pem::sections(&material.read()?, |label| label == "CERTIFICATE")
                .map_err(|why| format!("the certificates in {name} cannot be read: {why}"))?;
            for certificate in certificates {
                roots
                    .add(certificate.der.to_vec().into())
                    .map_err(|why| format!("a certificate in {name} cannot be read ({why})"))?;
            }
            if roots.len() == before {
                return Err(format!(
                    "there is no CERTIFICATE section in {name}: give the issuer's certificate in PEM form"
                ));
            }
        }
        self.add_known(&mut roots)?;
        if roots.is_empty() {
            return Err(
                "no issuer is trusted: name one with roots_file or roots_pem (Java: ssl.truststore.location or \
                 .certificates, with ssl.truststore.type=PEM), or build krafka with the feature native-roots, to trust \
                 whom the operating system trusts, or webpki-roots"
                    .to_owned(),
            );
        }
        Ok(roots)
    }

    /// Adds the issuers that everybody knows, where they are asked for, or nothing else is.
    #[allow(clippy::unnecessary_wraps, reason = "with the features it can fail")]
    fn add_known(&self, roots: &mut RootCertStore) -> Result<(), String> {
        let is_bare = self.materials.is_empty();
        #[cfg(feature = "webpki-roots")]
        let is_bare = is_bare && !self.with_webpki;
        #[cfg(feature = "native-roots")]
        if is_bare || self.with_native {
            add_native(roots)?;
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
