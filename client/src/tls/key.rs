//! Private keys in PEM form, encrypted ones too.

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use super::material::Material;
use crate::auth::Secret;

/// Reads a key.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn read(material: &Material, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    let (name, pem) = (material.name(), material.read()?);
    if let Some(encrypted) = encrypted_section(&pem) {
        return decrypt(encrypted, &name, password);
    }
    PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|why| format!("there is no key in {name} ({why}): it is to have a PRIVATE KEY section"))
}

/// A key that something is signed with, or where it is.
#[cfg(feature = "oidc")]
#[derive(Clone)]
pub(crate) struct PrivateKey {
    material: Material,
    password: Option<Secret>,
}

#[cfg(feature = "oidc")]
impl PrivateKey {
    pub(crate) fn file(path: impl Into<std::path::PathBuf>) -> Self {
        Self { material: Material::File(path.into()), password: None }
    }

    pub(crate) fn pem(pem: impl AsRef<[u8]>) -> Self {
        Self { material: Material::text(pem), password: None }
    }

    #[cfg(feature = "encrypted-keys")]
    pub(crate) fn decrypt_with(&mut self, password: Secret) {
        self.password = Some(password);
    }

    /// What to call it in an error.
    pub(crate) fn name(&self) -> String {
        self.material.name()
    }

    pub(crate) fn load(&self) -> Result<PrivateKeyDer<'static>, String> {
        read(&self.material, self.password.as_ref())
    }
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
