//! [`FreshTls`]: the TLS of a connected handle, which reads changed files again.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::timeout;

use super::{Settings, Source, Tls};
use crate::files::{Files, Fingerprint};

/// The TLS of a connected handle, which reads changed files again.
#[derive(Clone)]
pub(crate) struct FreshTls {
    tls: Tls,
    /// How long files may take, where there is nothing else to go on with.
    patience: Duration,
    current: Arc<Mutex<Current>>,
}

/// What is spoken with.
struct Current {
    config: Arc<ClientConfig>,
    /// That of the files that it was read from.
    fingerprint: Fingerprint,
    /// How many readings came before the one that it was read by.
    reading: u64,
    /// How many readings were begun.
    readings: u64,
    /// Whether what is in the files now cannot be used.
    is_failing: bool,
    /// Of what could not be used the last time: it is not tried at each connection.
    unusable: Option<Fingerprint>,
    /// Of what is being opened, which may take long.
    opening: Option<Fingerprint>,
    /// Whether the files were not read in time.
    is_hung: bool,
}

/// Where there are old certificates, new ones are waited for no longer than for this part of what connecting may take:
/// the rest is for connecting.
const PART_FOR_FILES: u32 = 4;

impl FreshTls {
    /// # Errors
    /// Which issuer, certificate, key or name is wrong, in words, or which file was not read within `patience`.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the reading to itself.
    pub(crate) async fn new(tls: Tls, patience: Duration) -> Result<Self, String> {
        if let Some(name) = &tls.server_name {
            server_name(name)?;
        }
        let (config, fingerprint) = match &tls.source {
            Source::Config(_, Some(setter)) => {
                return Err(format!(
                    "{setter} was called on a Tls that is made from a rustls::ClientConfig, which has settings of its \
                     own: set it there, or begin with Tls::new"
                ));
            }
            Source::Config(config, None) => (config.clone(), Fingerprint::default()),
            Source::Settings(settings) => {
                let files = Files::read(settings.paths(), patience).await?;
                let fingerprint = files.fingerprint();
                let config = timeout(patience, config_of(settings, files)).await;
                let config = config.map_err(|_| format!("to open the key stores takes longer than {patience:?}"))?;
                (Arc::new(config?), fingerprint)
            }
        };
        let current = Current {
            config,
            fingerprint,
            reading: 0,
            readings: 0,
            is_failing: false,
            unusable: None,
            opening: None,
            is_hung: false,
        };
        Ok(Self { tls, patience, current: Arc::new(Mutex::new(current)) })
    }

    /// What to speak with now: of files that have changed, what is in them, if that can be used and is read in time.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the reading to itself.
    pub(crate) async fn config(&self) -> Arc<ClientConfig> {
        if let Source::Settings(settings) = &self.tls.source
            && settings.paths().next().is_some()
            // Nobody waits again for the file that somebody waited for in vain.
            && !(self.current().is_hung && Files::are_read(settings.paths()))
        {
            let reading = {
                let mut current = self.current();
                current.readings += 1;
                current.readings
            };
            match Files::read(settings.paths(), self.patience / PART_FOR_FILES).await {
                Ok(files) => {
                    if let Some(fingerprint) = self.news(&files) {
                        // By a task of its own: what takes longer than this connection may is there for the next.
                        let (fresh, patience) = (self.clone(), self.patience / PART_FOR_FILES);
                        let renewing = tokio::spawn(async move { fresh.renew(files, fingerprint, reading).await });
                        if timeout(patience, renewing).await.is_err() {
                            self.keep(&format!("to open the key stores takes longer than {patience:?}"));
                        }
                    }
                }
                Err(why) => {
                    self.current().is_hung = true;
                    self.keep(&why);
                }
            }
        }
        self.current().config.clone()
    }

    /// What tells these files from those that are spoken with, if they are others, and nobody opens them or has tried
    /// to: whoever hears of it does.
    fn news(&self, files: &Files) -> Option<Fingerprint> {
        let fingerprint = files.fingerprint();
        let mut current = self.current();
        current.is_hung = false;
        if fingerprint == current.fingerprint {
            current.is_failing = false;
            return None;
        }
        if [&current.unusable, &current.opening].contains(&&Some(fingerprint.clone())) {
            return None;
        }
        current.opening = Some(fingerprint.clone());
        Some(fingerprint)
    }

    async fn renew(&self, files: Files, fingerprint: Fingerprint, reading: u64) {
        let Source::Settings(settings) = &self.tls.source else { return };
        let opened = config_of(settings, files).await;
        self.current().opening = None;
        match opened {
            Ok(config) => {
                let mut current = self.current();
                // Several connections may have come to it at the same time, some of them with what was there before.
                if fingerprint != current.fingerprint && reading > current.reading {
                    tracing::info!("read the certificates of TLS again");
                    (current.config, current.fingerprint, current.reading) = (Arc::new(config), fingerprint, reading);
                    (current.is_failing, current.unusable) = (false, None);
                }
            }
            Err(why) => {
                self.current().unusable = Some(fingerprint);
                self.keep(&why);
            }
        }
    }

    /// One line until it succeeds, and not one for each new connection.
    fn keep(&self, why: &str) {
        if std::mem::replace(&mut self.current().is_failing, true) {
            tracing::debug!(%why, "kept the old certificates of TLS");
        } else {
            tracing::warn!(%why, "kept the old certificates of TLS; they are looked at again and again");
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a certificate to show to who asks for one.
    pub(crate) fn shows_certificate(&self) -> bool {
        self.current().config.client_auth_cert_resolver.has_certs()
    }

    /// The name that the certificate of the broker at `host` must be for.
    ///
    /// # Errors
    /// It is no name for a certificate.
    pub(crate) fn name_of(&self, host: &str) -> Result<ServerName<'static>, String> {
        server_name(self.tls.server_name.as_deref().unwrap_or(host))
    }
}

/// Makes a configuration of what was read. What takes long, such as to decrypt a key, does so where nobody waits.
async fn config_of(settings: &Settings, files: Files) -> Result<ClientConfig, String> {
    if !settings.takes_long() {
        return settings.config(&files);
    }
    let settings = settings.clone();
    // What is logged there goes where the caller's lines go.
    let log = tracing::dispatcher::get_default(Clone::clone);
    let make = move || tracing::dispatcher::with_default(&log, || settings.config(&files));
    tokio::task::spawn_blocking(make).await.map_err(io::Error::other).map_err(|why| why.to_string())?
}

/// A name as certificates have it: a name that ends in a dot is found by DNS and stands in no certificate.
fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    let without_dot = name.strip_suffix('.').unwrap_or(name);
    ServerName::try_from(without_dot.to_owned()).map_err(|_| format!("'{name}' is no name for a certificate"))
}
