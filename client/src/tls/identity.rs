//! The certificate that the client shows, and its key.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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
        Ok((certificates, read_key(&self.key, password)?))
    }
}

fn read_key(material: &Material, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    let (name, pem) = (material.name(), material.read()?);
    if let Some(encrypted) = encrypted_section(&pem) {
        return decrypt(encrypted, &name, password);
    }
    PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|why| format!("there is no key in {name} ({why}): it is to have a PRIVATE KEY section"))
}

#[cfg(feature = "encrypted-keys")]
fn decrypt(pem: &str, name: &str, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    use pkcs8::der::Decode;
    use rustls::pki_types::PrivatePkcs8KeyDer;

    let Some(password) = password else {
        return Err(format!("the key in {name} is encrypted: give its password with key_password"));
    };
    let (_, document) =
        pkcs8::SecretDocument::from_pem(pem).map_err(|why| format!("the key in {name} is no PEM ({why})"))?;
    let encrypted = pkcs8::EncryptedPrivateKeyInfoRef::from_der(document.as_bytes())
        .map_err(|why| format!("the key in {name} is not encrypted as PKCS #8 has it ({why})"))?;
    let decrypted = encrypted.decrypt(password.expose()).map_err(|why| {
        format!("the key in {name} cannot be decrypted ({why}): check the password, and that it is encrypted by PBES2")
    })?;
    Ok(PrivatePkcs8KeyDer::from(decrypted.as_bytes().to_vec()).into())
}

#[cfg(not(feature = "encrypted-keys"))]
fn decrypt(_pem: &str, name: &str, _password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    Err(format!("the key in {name} is encrypted: build krafka with the feature encrypted-keys"))
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
