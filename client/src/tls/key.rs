//! Private keys in PEM form, encrypted ones too. Nothing of a key is in any error.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

use super::material::Material;
use super::pem::{self, Kind};
use crate::auth::Secret;
use crate::files::Files;

/// Reads a key: the first in the text.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn read(
    material: &Material,
    files: &Files,
    password: Option<&Secret>,
) -> Result<PrivateKeyDer<'static>, String> {
    let name = material.name();
    let sections = pem::sections(material.contents(files)?).map_err(|fault| format!("{name}: {fault}"))?;
    let Some(section) = sections.into_iter().find(|section| section.kind != Kind::Certificate) else {
        return Err(format!("there is no key in {name}: it is to have a PRIVATE KEY section"));
    };
    let der = || section.der.to_vec();
    Ok(match section.kind {
        Kind::EncryptedKey => return decrypt(&section.der, &name, password),
        Kind::RsaKey => PrivatePkcs1KeyDer::from(der()).into(),
        Kind::EcKey => PrivateSec1KeyDer::from(der()).into(),
        Kind::Key | Kind::Certificate => PrivatePkcs8KeyDer::from(der()).into(),
    })
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

    /// The file that it is in, if it is in one.
    pub(crate) fn path(&self) -> Option<&std::path::Path> {
        self.material.path()
    }

    pub(crate) fn load(&self, files: &Files) -> Result<PrivateKeyDer<'static>, String> {
        read(&self.material, files, self.password.as_ref())
    }
}

#[cfg(feature = "encrypted-keys")]
fn decrypt(der: &[u8], name: &str, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    use pkcs8::pkcs5::EncryptionScheme;

    let unread = || {
        format!(
            "the key in {name} is encrypted in a form that is not read: convert it with openssl pkcs8 -topk8 -v2 \
             aes256"
        )
    };
    let encrypted = pkcs8::EncryptedPrivateKeyInfoRef::try_from(der).map_err(|_| unread())?;
    if !matches!(encrypted.encryption_algorithm, EncryptionScheme::Pbes2(_)) {
        return Err(unread());
    }
    let Some(password) = password else {
        return Err(format!(
            "the key in {name} is encrypted: give its password with key_password (in Java's properties \
             ssl.key.password, or sasl.oauthbearer.assertion.private.key.passphrase)"
        ));
    };
    let wrong = |_| format!("the key in {name} cannot be decrypted: check the password");
    let decrypted = encrypted.decrypt(password.expose()).map_err(wrong)?;
    Ok(PrivatePkcs8KeyDer::from(decrypted.as_bytes().to_vec()).into())
}

#[cfg(not(feature = "encrypted-keys"))]
fn decrypt(_der: &[u8], name: &str, _password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, String> {
    Err(format!("the key in {name} is encrypted: build krafka with the feature encrypted-keys"))
}
