//! A key store of Java's: where it is, and how to open it.

use std::path::{Path, PathBuf};

use super::store::{Fault, Passwords, Store};
use crate::auth::Secret;
use crate::files::{Files, shown};

#[derive(Clone, Debug)]
pub(super) struct Keystore {
    path: PathBuf,
    password: Secret,
}

impl Keystore {
    pub(super) fn new(path: impl Into<PathBuf>, password: impl Into<String>) -> Self {
        Self { path: path.into(), password: Secret::new(password) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What to call it in an error.
    pub(super) fn name(&self) -> String {
        shown(&self.path)
    }

    /// Something of what is in it.
    pub(super) fn open<T>(
        &self,
        files: &Files,
        key_password: Option<&Secret>,
        part: impl FnOnce(Store) -> Result<T, Fault>,
    ) -> Result<T, String> {
        let passwords = Passwords { store: self.password.expose(), key: key_password.map(Secret::expose) };
        let opened = Store::read(files.get(&self.path)?, passwords).and_then(part);
        opened.map_err(|fault| format!("{} {fault}", self.name()))
    }
}
