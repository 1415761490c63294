//! The certificate that the client shows, and its key.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::material::Material;

/// A certificate chain and its key, or where they are.
#[derive(Clone, Default)]
pub(super) struct Identity {
    chain: Option<Material>,
    key: Option<Material>,
    #[cfg(feature = "encrypted-keys")]
    pub(super) password: Option<crate::auth::Secret>,
}

impl Identity {
    /// An identity that keeps the password of the one before.
    pub(super) fn new(chain: Material, key: Material, before: Option<Self>) -> Self {
        Self { chain: Some(chain), key: Some(key), ..before.unwrap_or_default() }
    }

    pub(super) fn materials(&self) -> impl Iterator<Item = &Material> {
        self.chain.iter().chain(&self.key)
    }

    /// Both, as TLS wants them.
    pub(super) fn load(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let (Some(chain), Some(key)) = (&self.chain, &self.key) else {
            return Err("a key password is given, but no certificate: name one with identity_files".to_owned());
        };
        let pem = chain.read()?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let certificates = certificates.map_err(|why| format!("{} is no PEM ({why})", chain.name()))?;
        if certificates.is_empty() {
            return Err(format!("there is no CERTIFICATE section in {}: it is to hold the client's own", chain.name()));
        }
        Ok((certificates, self.key(key)?))
    }

    fn key(&self, material: &Material) -> Result<PrivateKeyDer<'static>, String> {
        let pem = material.read()?;
        if let Some(encrypted) = encrypted_section(&pem) {
            return self.decrypt(encrypted, &material.name());
        }
        PrivateKeyDer::from_pem_slice(&pem).map_err(|why| {
            format!("there is no key in {} ({why}): it is to have a PRIVATE KEY section", material.name())
        })
    }

    #[cfg(feature = "encrypted-keys")]
    fn decrypt(&self, pem: &str, name: &str) -> Result<PrivateKeyDer<'static>, String> {
        use pkcs8::der::Decode;
        use rustls::pki_types::PrivatePkcs8KeyDer;

        let Some(password) = &self.password else {
            return Err(format!("the key in {name} is encrypted: give its password with key_password"));
        };
        let (_, document) =
            pkcs8::SecretDocument::from_pem(pem).map_err(|why| format!("the key in {name} is no PEM ({why})"))?;
        let encrypted = pkcs8::EncryptedPrivateKeyInfoRef::from_der(document.as_bytes())
            .map_err(|why| format!("the key in {name} is not encrypted as PKCS #8 has it ({why})"))?;
        let decrypted = encrypted.decrypt(password.expose()).map_err(|why| {
            format!(
                "the key in {name} cannot be decrypted ({why}): check the password, and that it is encrypted by PBES2"
            )
        })?;
        Ok(PrivatePkcs8KeyDer::from(decrypted.as_bytes().to_vec()).into())
    }

    #[cfg(not(feature = "encrypted-keys"))]
    #[expect(clippy::unused_self, reason = "the signature that it has with the feature")]
    fn decrypt(&self, _pem: &str, name: &str) -> Result<PrivateKeyDer<'static>, String> {
        Err(format!("the key in {name} is encrypted: build krafka with the feature encrypted-keys"))
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("chain", &self.chain).field("key", &self.key).finish_non_exhaustive()
    }
}

/// The section of an encrypted key in a PEM text, which may hold others.
fn encrypted_section(pem: &[u8]) -> Option<&str> {
    const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
    const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
    let text = std::str::from_utf8(pem).ok()?;
    let start = text.find(BEGIN)?;
    let len = text[start..].find(END)? + END.len();
    Some(&text[start..start + len])
}
