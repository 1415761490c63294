//! [`Allowed`]: which versions of TLS and which cipher suites are spoken, of those that there are.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl TlsVersion {
    const fn number(self) -> ProtocolVersion {
        match self {
            Self::Tls12 => ProtocolVersion::TLSv1_2,
            Self::Tls13 => ProtocolVersion::TLSv1_3,
        }
    }
}

/// Which are spoken: all where nothing is said.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowed {
    pub(super) versions: Option<Vec<TlsVersion>>,
    /// By their names at IANA.
    pub(super) suites: Option<Vec<String>>,
}

impl Allowed {
    /// The provider with these suites alone, and the versions.
    ///
    /// # Errors
    /// Nothing is left, in words.
    pub(super) fn of(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<(Arc<CryptoProvider>, Vec<&'static SupportedProtocolVersion>), String> {
        let mut versions = rustls::ALL_VERSIONS.to_vec();
        if let Some(allowed) = &self.versions {
            versions.retain(|version| allowed.iter().any(|allowed| allowed.number() == version.version));
            if versions.is_empty() {
                return Err("no version of TLS is allowed: name one with versions".to_owned());
            }
        }
        let provider = match &self.suites {
            None => provider,
            Some(names) => Arc::new(CryptoProvider { cipher_suites: named(names, &provider)?, ..(*provider).clone() }),
        };
        let speaks =
            |version: ProtocolVersion| provider.cipher_suites.iter().any(|suite| suite.version().version == version);
        if !versions.iter().any(|version| speaks(version.version)) {
            return Err(
                "none of the cipher suites that are allowed is one of the versions of TLS that are (in Java's \
                        properties ssl.cipher.suites and ssl.enabled.protocols)"
                    .to_owned(),
            );
        }
        Ok((provider, versions))
    }
}

/// The suites of these names, in the provider's order.
fn named(names: &[String], provider: &CryptoProvider) -> Result<Vec<SupportedCipherSuite>, String> {
    let all = &provider.cipher_suites;
    for name in names.iter().filter(|name| !all.iter().any(|suite| is_named(*suite, name))) {
        tracing::warn!(%name, "a cipher suite that is not there is passed over");
    }
    let suites: Vec<_> = all.iter().copied().filter(|suite| names.iter().any(|name| is_named(*suite, name))).collect();
    if suites.is_empty() {
        let there: Vec<_> = all.iter().map(|suite| iana(*suite)).collect();
        return Err(format!(
            "none of the cipher suites that are allowed is there (in Java's properties ssl.cipher.suites): name some \
             of {}",
            there.join(", ")
        ));
    }
    Ok(suites)
}

fn is_named(suite: SupportedCipherSuite, name: &str) -> bool {
    iana(suite).eq_ignore_ascii_case(name)
}

/// The name that IANA has for it, and Java.
fn iana(suite: SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    // rustls has the version in the names of those of TLS 1.3.
    name.strip_prefix("TLS13_").map_or_else(|| name.clone(), |rest| format!("TLS_{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(versions: Option<&[TlsVersion]>, suites: Option<&[&str]>) -> Result<(Vec<String>, usize), String> {
        let suites = suites.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let allowed = Allowed { versions: versions.map(<[_]>::to_vec), suites };
        let (provider, versions) = allowed.of(crate::tls::provider()?)?;
        Ok((provider.cipher_suites.iter().map(|suite| iana(*suite)).collect(), versions.len()))
    }

    const OF_13: &str = "TLS_AES_256_GCM_SHA384";
    const OF_12: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";

    #[test]
    fn all_is_spoken_where_nothing_is_said() {
        let (suites, versions) = of(None, None).expect("there are some");
        assert!(versions == 2 && suites.len() >= 4, "{suites:?}");
        assert!(suites.iter().any(|suite| suite == OF_13) && suites.iter().any(|suite| suite == OF_12), "{suites:?}");
    }

    #[test]
    fn what_is_named_is_left() {
        let one = |name: &str| vec![name.to_owned()];
        assert_eq!(of(None, Some(&[OF_13, "TLS_RSA_WITH_RC4_128_MD5"])), Ok((one(OF_13), 2)));
        assert_eq!(of(Some(&[TlsVersion::Tls12]), Some(&[OF_12])), Ok((one(OF_12), 1)));
        assert_eq!(of(Some(&[TlsVersion::Tls13, TlsVersion::Tls12]), None).map(|(_, versions)| versions), Ok(2));
    }

    #[test]
    fn where_nothing_is_left_it_is_told() {
        for (fault, word) in [
            (of(Some(&[]), None), "no version of TLS"),
            (of(None, Some(&["TLS_RSA_WITH_RC4_128_MD5"])), OF_13),
            (of(Some(&[TlsVersion::Tls13]), Some(&[OF_12])), "ssl.enabled.protocols"),
        ] {
            let fault = fault.expect_err("nothing is left");
            assert!(fault.contains(word), "{fault}");
        }
    }
}
