//! Where PEM comes from: a text, or a file that may change.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use zeroize::Zeroizing;

/// A PEM text, or where it is.
#[derive(Clone)]
pub(super) enum Material {
    Text(Arc<Zeroizing<Vec<u8>>>),
    File(PathBuf),
}

/// No certificate or key is nearly so large; a path that leads to something else is not read to its end.
const MAX_LEN: u64 = 16 << 20;

impl Material {
    pub(super) fn text(pem: impl AsRef<[u8]>) -> Self {
        Self::Text(Arc::new(Zeroizing::new(pem.as_ref().to_vec())))
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// What to call it in an error.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Text(_) => "the PEM text".to_owned(),
            // Whoever gives the text itself as its path must not read it in an error.
            Self::File(path) if path.to_string_lossy().contains("-----BEGIN") => {
                "the PEM text given as a path".to_owned()
            }
            Self::File(path) => format!("'{}'", path.display()),
        }
    }

    pub(super) fn read(&self) -> Result<Zeroizing<Vec<u8>>, String> {
        match self {
            Self::Text(text) => Ok(Zeroizing::clone(text)),
            Self::File(path) => {
                let unread = |why: String| format!("{} cannot be read ({why})", self.name());
                let len = fs::metadata(path).map_err(|why| unread(why.to_string()))?.len();
                if len > MAX_LEN {
                    return Err(unread(format!("it has {len} bytes, and at most {MAX_LEN} are taken")));
                }
                fs::read(path).map(Zeroizing::new).map_err(|why| unread(why.to_string()))
            }
        }
    }
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

/// When files were written last, and how long they are: equal as long as nobody has changed them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stamps(Vec<Option<(SystemTime, u64)>>);

impl Stamps {
    pub(super) fn of<'a>(materials: impl Iterator<Item = &'a Material>) -> Self {
        let stamp = |material: &Material| match material {
            Material::Text(_) => None,
            // A file that is away for a moment has another stamp, too; then reading it fails, and the old one stays.
            Material::File(path) => {
                let metadata = fs::metadata(path).ok()?;
                Some((metadata.modified().ok()?, metadata.len()))
            }
        };
        Self(materials.map(stamp).collect())
    }
}
