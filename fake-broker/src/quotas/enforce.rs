//! Where quotas take hold: after a request was carried out, before its answer is written.
//!
//! A fetch whose answer is too much gets an empty one, as in Kafka; here its session has taken note of what was not
//! sent, where Kafka's has not. The next fetch has the records, and with them all that is new.

use std::time::Duration;

use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, ErrorCode, FetchResponse, Message};

use super::Limited;
use crate::context::Context;
use crate::state::State;

/// Counts what a request used, and says for how long its client must wait; nothing if it need not. `request_bytes` is
/// the size of the request on the wire; the answer is missing where none is given.
pub(crate) fn throttle(
    state: &mut State,
    cx: &Context,
    (request, request_bytes): (&AnyRequest, usize),
    response: Option<&mut AnyResponse>,
) -> Option<Duration> {
    let quotas = &mut state.quotas;
    if quotas.is_empty() {
        return None;
    }
    let for_time = if is_exempt(cx.key) { Duration::ZERO } else { quotas.record_request(cx) };
    let wait = match (request, response) {
        (AnyRequest::Produce(_), _) => quotas.record(Limited::Produce, cx, request_bytes).max(for_time),
        (AnyRequest::Fetch(request), Some(AnyResponse::Fetch(response))) => {
            let bytes = response.size(cx.version).unwrap_or_default();
            let wait = quotas.record(Limited::Fetch, cx, bytes).max(for_time);
            if !wait.is_zero() {
                quotas.unrecord(Limited::Fetch, cx, bytes);
                // A session that would have begun with this answer does not begin.
                let session_id = if request.session_epoch > 0 { response.session_id } else { 0 };
                *response = FetchResponse { session_id, ..FetchResponse::default() };
            }
            wait
        }
        _ => quotas.take_throttle().max(for_time),
    };
    (!wait.is_zero()).then_some(wait)
}

/// Whether an API takes time that nobody is held to account for: what brokers ask of each other, and logins.
fn is_exempt(key: ApiKey) -> bool {
    matches!(key, ApiKey::SaslHandshake | ApiKey::SaslAuthenticate | ApiKey::WriteTxnMarkers)
}

/// Counts partitions that are about to be made or deleted. From the strict version on, a client that has gone too far
/// is refused; before, it is only told to wait.
pub(crate) fn check_mutation(
    state: &mut State,
    cx: &Context,
    partitions: usize,
    strict_version: i16,
) -> Result<(), (ErrorCode, String)> {
    if state.quotas.may_mutate(cx, partitions, cx.version >= strict_version) {
        return Ok(());
    }
    // Kafka has no words for it.
    Err((ErrorCode::THROTTLING_QUOTA_EXCEEDED, String::new()))
}
