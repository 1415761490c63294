//! Whose cryptography TLS uses: that of the feature which was asked for beside the default.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// The provider: aws-lc, or else graviola, or else ring.
///
/// The process may have installed another, or none: this one is what the features stand for.
///
/// # Errors
/// This machine's processor lacks what the provider needs, and there is no other.
#[cfg(feature = "tls-aws-lc")]
#[expect(clippy::unnecessary_wraps, reason = "other features can fail")]
pub(crate) fn provider() -> Result<Arc<CryptoProvider>, String> {
    Ok(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
}

/// The same without aws-lc.
#[cfg(all(feature = "tls-graviola", not(feature = "tls-aws-lc")))]
pub(crate) fn provider() -> Result<Arc<CryptoProvider>, String> {
    graviola().or_else(instead)
}

/// The same without aws-lc and graviola.
#[cfg(all(feature = "tls-ring", not(any(feature = "tls-graviola", feature = "tls-aws-lc"))))]
#[expect(clippy::unnecessary_wraps, reason = "other features can fail")]
pub(crate) fn provider() -> Result<Arc<CryptoProvider>, String> {
    Ok(Arc::new(rustls::crypto::ring::default_provider()))
}

/// The same without any of them.
#[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc", feature = "tls-graviola")))]
pub(crate) fn provider() -> Result<Arc<CryptoProvider>, String> {
    Err("krafka was built without cryptography for TLS: take the feature tls-ring, tls-aws-lc or tls-graviola"
        .to_owned())
}

/// What to do on a processor that graviola cannot use.
#[cfg(all(feature = "tls-graviola", feature = "tls-ring", not(feature = "tls-aws-lc")))]
#[expect(clippy::needless_pass_by_value, clippy::unnecessary_wraps, reason = "without ring it is the error")]
fn instead(why: String) -> Result<Arc<CryptoProvider>, String> {
    tracing::debug!(%why, "TLS by ring instead");
    Ok(Arc::new(rustls::crypto::ring::default_provider()))
}

/// What to do on a processor that graviola cannot use.
#[cfg(all(feature = "tls-graviola", not(any(feature = "tls-ring", feature = "tls-aws-lc"))))]
const fn instead(why: String) -> Result<Arc<CryptoProvider>, String> {
    Err(why)
}

#[cfg(all(feature = "tls-graviola", not(feature = "tls-aws-lc")))]
fn graviola() -> Result<Arc<CryptoProvider>, String> {
    // It would panic in the middle of a handshake.
    judge(&instructions())?;
    Ok(Arc::new(rustls_graviola::default_provider()))
}

/// Whether all of the instructions are there.
#[cfg(all(feature = "tls-graviola", not(feature = "tls-aws-lc")))]
fn judge(instructions: &[(&str, bool)]) -> Result<(), String> {
    let missing = instructions.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name);
    match missing.collect::<Vec<_>>().join(", ").as_str() {
        "" => Ok(()),
        missing => Err(format!(
            "this processor lacks the instructions {missing} that the cryptography of tls-graviola needs: build krafka \
             with the feature tls-ring or tls-aws-lc"
        )),
    }
}

#[cfg(all(feature = "tls-graviola", not(feature = "tls-aws-lc"), target_arch = "x86_64"))]
fn instructions() -> [(&'static str, bool); 9] {
    [
        ("adx", is_x86_feature_detected!("adx")),
        ("aes", is_x86_feature_detected!("aes")),
        ("avx", is_x86_feature_detected!("avx")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("bmi1", is_x86_feature_detected!("bmi1")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
        ("sse3", is_x86_feature_detected!("sse3")),
        ("ssse3", is_x86_feature_detected!("ssse3")),
    ]
}

#[cfg(all(feature = "tls-graviola", not(feature = "tls-aws-lc"), target_arch = "aarch64"))]
fn instructions() -> [(&'static str, bool); 4] {
    [
        ("aes", std::arch::is_aarch64_feature_detected!("aes")),
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("pmull", std::arch::is_aarch64_feature_detected!("pmull")),
        ("sha2", std::arch::is_aarch64_feature_detected!("sha2")),
    ]
}

#[cfg(all(test, feature = "tls-graviola", not(feature = "tls-aws-lc")))]
mod tests {
    use super::*;

    #[test]
    fn what_a_processor_lacks_is_named_with_what_helps() {
        let fault = judge(&[("adx", false), ("aes", true), ("avx2", false)]).expect_err("two are missing");

        assert!(fault.contains("instructions adx, avx2 that") && fault.contains("tls-ring"), "{fault}");
        assert_eq!(judge(&[("aes", true)]), Ok(()));
    }

    /// Without what graviola needs it is ring, if that is there, and else an error instead of a panic later.
    #[cfg(feature = "tls-ring")]
    #[test]
    fn ring_helps_out() {
        assert!(instead("none".to_owned()).is_ok() && provider().is_ok());
    }
}
