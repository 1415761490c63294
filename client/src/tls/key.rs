//! Private keys in PEM form, encrypted ones too.

use rustls::pki_types::PrivateKeyDer;

use super::material::Material;
use super::pem;
use crate::auth::Secret;

/// Reads a key.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn read(material: &Material, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    let (name, pem) = (material.name(), material.read()?);
    let sections = pem::sections(&pem, |label| label.ends_with("PRIVATE KEY"));
    let sections = sections.map_err(|why| format!("the key in {name} cannot be read: {why}"))?;
    let Some(section) = sections.into_iter().next() else {
        return Err(format!("there is no key in {name}: it is to have a PRIVATE KEY section"));
    };
    let der = section.der.to_vec();
    match section.label.as_str() {
        "PRIVATE KEY" => Ok(PrivateKeyDer::Pkcs8(der.into())),
        "RSA PRIVATE KEY" => Ok(PrivateKeyDer::Pkcs1(der.into())),
        "EC PRIVATE KEY" => Ok(PrivateKeyDer::Sec1(der.into())),
        "ENCRYPTED PRIVATE KEY" => decrypt(&section.der, &name, password),
        _ => Err(format!("the key in {name} is of a kind that is not read: convert it with: openssl pkcs8 -topk8")),
    }
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
fn decrypt(der: &[u8], name: &str, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    use pkcs8::der::Decode;

    let Some(password) = password else {
        return Err(format!(
            "the key in {name} is encrypted: give its password with key_password (Java: ssl.key.password)"
        ));
    };
    let encrypted = pkcs8::EncryptedPrivateKeyInfoRef::from_der(der).map_err(|_| {
        format!("the key in {name} is encrypted in a way that is not read: openssl pkcs8 -topk8 -v2 aes256 makes one")
    })?;
    let decrypted = encrypted.decrypt(password.expose()).map_err(|why| {
        format!("the key in {name} cannot be decrypted ({why}): check the password, and that it is encrypted by PBES2")
    })?;
    Ok(PrivateKeyDer::Pkcs8(decrypted.as_bytes().to_vec().into()))
}

#[cfg(not(feature = "encrypted-keys"))]
fn decrypt(_der: &[u8], name: &str, _password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    Err(format!("the key in {name} is encrypted: build krafka with the feature encrypted-keys"))
}
