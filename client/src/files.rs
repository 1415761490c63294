//! [`Files`]: the user's certificates, keys and assertions, read from wherever they are.
//!
//! They lie on volumes of the network as often as not, and those hang; and a path may lead to a pipe, or to a device
//! that never ends. So a file is read up to a bound, by a thread of its own that is named for it, which all who want
//! the file at that time wait for, each as long as it can wait. While a file hangs there is this one thread for it, in
//! the whole process. It is none of a runtime's, because the end of a runtime waits for those: nothing can end a thread
//! that hangs in `open`, but the end of the process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// No certificate, key or token is nearly so large.
const MAX_LEN: usize = 16 << 20;

/// What is made room for at first, when the file does not say how long it is.
const MIN_ROOM: usize = 4 << 10;

/// What is in a file, which may be secret; or why that cannot be read, in words.
type Answer = Result<Arc<Zeroizing<Vec<u8>>>, String>;

/// The files that are being read now, and who waits for each.
static READERS: Mutex<BTreeMap<PathBuf, Vec<oneshot::Sender<Answer>>>> = Mutex::new(BTreeMap::new());

/// Some files, as they were when they were read.
#[derive(Debug, Default)]
pub(crate) struct Files(BTreeMap<PathBuf, Answer>);

/// What tells whether files are as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint(Vec<Option<[u8; 32]>>);

impl Files {
    /// Reads all of these. A file that cannot be read is no failure before it is asked for.
    ///
    /// # Errors
    /// One of them was not read to its end in time, in words.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the reading to itself.
    pub(crate) async fn read<'a>(
        paths: impl IntoIterator<Item = &'a Path>,
        patience: Duration,
    ) -> Result<Self, String> {
        let reading: BTreeMap<_, _> = paths.into_iter().map(|path| (path, Reading::of(path, patience))).collect();
        let (mut files, mut current) = (BTreeMap::new(), None);
        let all = async {
            for (path, reading) in reading {
                current = Some(path);
                let answer = reading.answer.await.unwrap_or_else(|_| Err(unread(path, "nobody read it")));
                files.insert(path.to_owned(), answer);
            }
        };
        match (timeout(patience, all).await, current) {
            (Err(_), Some(path)) => Err(unread(
                path,
                &format!("to read it does not end: not within {patience:?}; is it a pipe, or on a volume that hangs?"),
            )),
            _ => Ok(Self(files)),
        }
    }

    /// Whether one of these is being read now.
    pub(crate) fn are_read<'a>(mut paths: impl Iterator<Item = &'a Path>) -> bool {
        let readers = READERS.lock().unwrap_or_else(PoisonError::into_inner);
        paths.any(|path| readers.contains_key(path))
    }

    /// What is in one of them.
    ///
    /// # Errors
    /// Why it cannot be read, in words.
    pub(crate) fn get(&self, path: &Path) -> Result<&[u8], String> {
        match self.0.get(path) {
            Some(Ok(contents)) => Ok(contents),
            Some(Err(why)) => Err(why.clone()),
            None => Err(unread(path, "it was not asked for")),
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let digest = |answer: &Answer| answer.as_ref().ok().map(|contents| Sha256::digest(contents.as_slice()).into());
        Fingerprint(self.0.values().map(digest).collect())
    }
}

/// What to call a file in an error. Whoever gives the text itself as its path, a key or a token, must not read it
/// there.
pub(crate) fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.contains("-----BEGIN") {
        return "the PEM text given as a path".to_owned();
    }
    // As all tokens begin: an object in base64.
    if text.starts_with("eyJ") && text.matches('.').count() == 2 {
        return "the token given as a path".to_owned();
    }
    format!("'{text}'")
}

fn unread(path: &Path, why: &str) -> String {
    format!("{} cannot be read ({why})", shown(path))
}

/// A file that is being read.
struct Reading {
    answer: oneshot::Receiver<Answer>,
    /// Holds a paused clock still as long as it is waited for.
    _pause: Option<Pause>,
}

impl Reading {
    /// Begins to read, or joins those who wait for the same file.
    fn of(path: &Path, patience: Duration) -> Self {
        let (waiter, answer) = oneshot::channel();
        let mut readers = READERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiters) = readers.get_mut(path) {
            // Those that have gone are not to gather while a file hangs.
            waiters.retain(|waiter| !waiter.is_closed());
            waiters.push(waiter);
            return Self { answer, _pause: None };
        }
        readers.insert(path.to_owned(), vec![waiter]);
        drop(readers);

        let (pause, is_over) = Pause::begin(patience);
        let name = path.file_name().unwrap_or_default().to_string_lossy().replace('\0', "");
        let own = path.to_owned();
        let reader = std::thread::Builder::new().name(format!("read {name}")).spawn(move || {
            let read = File::open(&own).and_then(|file| {
                let len = file.metadata().map_or(0, |metadata| metadata.len());
                bounded(file, usize::try_from(len).unwrap_or(MAX_LEN))
            });
            hand_out(&own, read.map(Arc::new).map_err(|why| unread(&own, &why.to_string())));
            // Whoever waited may have gone.
            let _ = is_over.send(());
        });
        if let Err(why) = reader {
            hand_out(path, Err(unread(path, &format!("there is no thread for it: {why}"))));
        }
        Self { answer, _pause: Some(pause) }
    }
}

fn hand_out(path: &Path, answer: Answer) {
    let waiters = READERS.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    for waiter in waiters.into_iter().flatten() {
        let _ = waiter.send(answer.clone());
    }
}

/// Reads to the end.
///
/// What a file says of its length is a hint: pipes and devices say that they are empty. Memory that is outgrown is
/// wiped.
fn bounded(mut source: impl Read, hint: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let room = |wanted: usize| Zeroizing::new(vec![0; wanted.clamp(MIN_ROOM, MAX_LEN) + 1]);
    let (mut bytes, mut len) = (room(hint), 0);
    loop {
        if len > MAX_LEN {
            return Err(io::Error::other(format!("it has more than {MAX_LEN} bytes")));
        }
        if len == bytes.len() {
            let mut larger = room(2 * len);
            larger[..len].copy_from_slice(&bytes);
            bytes = larger;
        }
        match source.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

/// Keeps the clock of a test from running ahead while a file is read: a paused one does when nothing of its runtime is
/// busy, and a thread of our own is nothing to it. A thread of the runtime is, which waits for ours, and ends with
/// whoever wanted the file.
struct Pause(Sender<()>);

impl Pause {
    /// The pause, and what ends it.
    fn begin(patience: Duration) -> (Self, Sender<()>) {
        let (end, ended) = channel();
        drop(tokio::task::spawn_blocking(move || ended.recv_timeout(patience)));
        (Self(end.clone()), end)
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives some bytes at a time, and says between them that it was interrupted.
    struct Drops(usize, bool);

    impl Read for Drops {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::Interrupted.into());
            }
            let len = buf.len().min(1_000).min(self.0);
            buf[..len].fill(7);
            self.0 -= len;
            Ok(len)
        }
    }

    #[test]
    fn all_of_a_file_is_read_whatever_it_says_of_its_length() {
        for (len, hint) in [(0, 0), (1, 0), (100_000, 0), (100_000, 99_999), (100_000, 100_000), (5, usize::MAX)] {
            let read = bounded(Drops(len, false), hint).expect("it is short enough");
            assert_eq!(*read, vec![7; len], "{len} {hint}");
        }
        assert_eq!(bounded(Drops(MAX_LEN, false), 0).expect("it is short enough").len(), MAX_LEN);
        for hint in [0, MAX_LEN, usize::MAX] {
            assert!(bounded(Drops(MAX_LEN + 1, false), hint).is_err());
        }
    }

    #[test]
    fn a_secret_that_is_given_as_a_path_is_not_shown() {
        for secret in ["-----BEGIN PRIVATE KEY-----\nhunter2", "eyJhbGciOiJub25lIn0.hunter2.x"] {
            let shown = shown(Path::new(secret));
            assert!(!shown.contains("hunter2") && shown.contains("given as a path"), "{shown}");
        }
        assert_eq!(shown(Path::new("/etc/a.b.pem")), "'/etc/a.b.pem'");
    }
}
