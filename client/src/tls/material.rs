//! Where PEM comes from: a text, or a file that may change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::files::{Files, shown};

/// A PEM text, or where it is.
#[derive(Clone)]
pub(super) enum Material {
    Text(Arc<Zeroizing<Vec<u8>>>),
    File(PathBuf),
}

impl Material {
    pub(super) fn text(pem: impl AsRef<[u8]>) -> Self {
        Self::Text(Arc::new(Zeroizing::new(pem.as_ref().to_vec())))
    }

    /// The file that it is in, if it is in one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Text(_) => None,
            Self::File(path) => Some(path),
        }
    }

    /// What to call it in an error.
    pub(super) fn name(&self) -> String {
        self.path().map_or_else(|| "the PEM text".to_owned(), shown)
    }

    /// What it is, if its file is among those that were read.
    pub(super) fn contents<'a>(&'a self, files: &'a Files) -> Result<&'a [u8], String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::File(path) => files.get(path),
        }
    }
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}
