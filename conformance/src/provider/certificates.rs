//! Certificates for the fake's listeners, as the script makes them for real brokers.

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use scenarios::Result;

/// Somebody who issues certificates.
pub(crate) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
pub(crate) struct Certified {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Authority {
    /// An authority of this name.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let (mut params, key) = (named(name)?, KeyPair::generate()?);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    /// Its own certificate.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate of somebody on this machine.
    pub(crate) fn issue(&self, name: &str) -> Result<Certified> {
        let key = KeyPair::generate()?;
        Ok(Certified { chain: named(name)?.signed_by(&key, &self.issuer)?.pem(), key: key.serialize_pem() })
    }
}

/// Each has a name of its own, as in life.
fn named(name: &str) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}
