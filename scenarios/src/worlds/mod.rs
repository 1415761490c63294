//! The three kinds of world.

pub mod real;
pub mod scripted;
pub mod simulated;

use std::hash::{Hash, Hasher};

use krafka_fake_broker::FakeCluster;

/// Noon of 2026-01-01: what a simulated day begins with, in milliseconds since 1970.
pub(crate) const NOON_MS: u64 = 1_767_268_800_000;

/// What the cluster was asked and answered, a line for each request, without anything that differs between two same
/// runs.
pub(crate) fn trace(fake: &FakeCluster) -> Vec<String> {
    let history = fake.history();
    let began = history.iter().next().map(|event| event.at);
    history
        .iter()
        .map(|event| {
            let at = began.map(|began| event.at.saturating_duration_since(began)).unwrap_or_default();
            let client = event.client_id.as_deref().unwrap_or("?");
            let answer = match &event.response {
                Some(response) => format!("{:016x}", fingerprint(response)),
                None => "unanswered".to_owned(),
            };
            format!(
                "{:>12.6}s node {} {:?} {client} {:?} v{} #{} asks {:016x} answer {answer}",
                at.as_secs_f64(),
                event.node,
                event.connection,
                event.key,
                event.version,
                event.correlation_id,
                fingerprint(&event.request),
            )
        })
        .collect()
}

/// Two messages with the same fingerprint look the same, field by field.
fn fingerprint(message: &impl std::fmt::Debug) -> u64 {
    // Its keys are fixed, unlike those of a map's hasher.
    #[expect(deprecated, reason = "SipHash with fixed keys is what is wanted, and this is the standard library's")]
    let mut hasher = std::hash::SipHasher::new();
    format!("{message:?}").hash(&mut hasher);
    hasher.finish()
}
