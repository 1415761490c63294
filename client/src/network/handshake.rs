//! What happens on a new connection before it is used: ApiVersions, then SASL. SASL alone happens again on a connection
//! whose session is about to end (KIP-368).
//!
//! ```text
//!   ApiVersions, our highest ──ok──▶ SaslHandshake ──ok──▶ SaslAuthenticate ──said all──▶ ready
//!        │  ▲                                                  │  ▲                           ▲
//!        │  └── once more, at the version that                 └──┘ as often as the           │
//!        │      the refusal names                                   mechanism wants           │
//!        └──ok, without SASL ──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! KIP-511: a broker that does not know our version of ApiVersions refuses in the layout of version 0, and names the
//! range that it does know, so that guessing too high costs one round trip and nothing else. With a peer that closes
//! the connection instead, the next one is begun otherwise (see `ladder.rs`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use krafka_protocol::frame::{Frame, encode_request};
use krafka_protocol::machine::Machine;
use krafka_protocol::versions::{API_VERSIONS_MAX, API_VERSIONS_MIN};
use krafka_protocol::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, DecodeError, ErrorCode, Message, Reader, Request,
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse, Str,
    decode_response_header,
};
use zeroize::Zeroizing;

use super::error;
use super::features::BrokerFeatures;
use super::ladder::Opening;
use super::throttle::throttle;
use super::versions::Versions;
use crate::auth::{Exchange, Next};
use crate::cluster::Node;
use crate::error::{KrafkaError, ProtocolErrorKind};
use crate::limits::finite;

/// Kafka's pattern for these two is `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`.
const SOFTWARE_NAME: &str = "krafka";
const SOFTWARE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The answer to the request that was sent last, without its length.
pub(crate) type Input = Bytes;

/// What to do next.
#[derive(Debug)]
pub(crate) enum Action {
    /// Write a request, and read its answer.
    Send(Frame),
    /// Write nothing for so long: the broker reads nothing (KIP-219).
    Hush(Duration),
    /// The connection can be used.
    Finish { versions: Versions, session: Option<Duration> },
    /// It cannot.
    Fail(KrafkaError),
    /// It cannot, for the peer is another broker than was meant: what is known of the cluster is out of date.
    Misrouted(KrafkaError),
    /// It cannot, because the broker does not take these credentials. Others, or others' spelling, it may.
    Refuse(KrafkaError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    ApiVersions { version: i16 },
    SaslHandshake { version: i16 },
    SaslAuthenticate { version: i16 },
    Done,
}

/// The machine of one new connection.
#[derive(Debug)]
pub(crate) struct Handshake {
    node: Node,
    client_id: Arc<str>,
    exchange: Option<Exchange>,
    /// Whether the broker has let the client in before, on this connection.
    is_renewal: bool,
    /// The cluster that the broker is meant to be of, if it is to be asked.
    cluster_id: Option<Str>,
    opening: Opening,
    step: Step,
    /// The version of ApiVersions that was refused last.
    refused: Option<i16>,
    /// The version of ApiVersions that was answered in the end.
    taken: Option<i16>,
    versions: Versions,
    correlation_id: i32,
    actions: VecDeque<Action>,
}

impl Handshake {
    pub(crate) fn new(
        node: Node,
        client_id: Arc<str>,
        exchange: Option<Exchange>,
        cluster_id: Option<Str>,
        opening: Opening,
    ) -> Self {
        let mut handshake = Self::idle(node, client_id, exchange, Versions::default());
        // Nobody knows who a bootstrap server is: it is not asked whether it is somebody.
        handshake.cluster_id = cluster_id.filter(|_| handshake.node.id >= 0);
        handshake.opening = opening;
        handshake.ask_versions(match opening {
            Opening::Highest => API_VERSIONS_MAX,
            Opening::Lowest | Opening::LowestAlone => API_VERSIONS_MIN,
            Opening::Known(version) => version,
        });
        handshake
    }

    /// Authenticates once more on a connection that is in use.
    ///
    /// The versions are those that the connection began with: a broker answers ApiVersions only before it has let the
    /// client in, or as any other request.
    pub(crate) fn again(node: Node, client_id: Arc<str>, exchange: Exchange, versions: Versions) -> Self {
        let mut handshake = Self::idle(node, client_id, Some(exchange), versions);
        handshake.is_renewal = true;
        handshake.authenticate();
        handshake
    }

    fn idle(node: Node, client_id: Arc<str>, exchange: Option<Exchange>, versions: Versions) -> Self {
        let (cluster_id, opening) = (None, Opening::Highest);
        let (step, correlation_id, actions) = (Step::Done, -1, VecDeque::new());
        let (refused, taken, is_renewal) = (None, None, false);
        Self {
            node,
            client_id,
            exchange,
            is_renewal,
            cluster_id,
            opening,
            step,
            refused,
            taken,
            versions,
            correlation_id,
            actions,
        }
    }

    /// The version of ApiVersions that is being waited for, if it is that.
    pub(crate) fn asked_version(&self) -> Option<i16> {
        match self.step {
            Step::ApiVersions { version } => Some(version),
            _ => None,
        }
    }

    /// The version of ApiVersions that the peer took, once it has.
    pub(crate) fn taken_version(&self) -> Option<i16> {
        self.taken
    }

    /// What is being waited for, in words.
    pub(crate) fn step_name(&self) -> &'static str {
        match self.step {
            Step::ApiVersions { .. } => ApiKey::ApiVersions.name(),
            Step::SaslHandshake { .. } => ApiKey::SaslHandshake.name(),
            Step::SaslAuthenticate { .. } | Step::Done => ApiKey::SaslAuthenticate.name(),
        }
    }

    fn ask_versions(&mut self, version: i16) {
        self.step = Step::ApiVersions { version };
        let request = ApiVersionsRequest {
            client_software_name: Str::from_static(SOFTWARE_NAME),
            client_software_version: Str::from_static(SOFTWARE_VERSION),
            // Kafka wants both or neither. Versions before 5 leave them out.
            node_id: self.cluster_id.as_ref().map_or(-1, |_| self.node.id),
            cluster_id: self.cluster_id.clone(),
        };
        self.send(&request, version);
    }

    fn send<R: Request>(&mut self, request: &R, version: i16) {
        self.send_as(request, version, |frame| frame);
    }

    fn send_as<R: Request>(&mut self, request: &R, version: i16, finish: fn(Frame) -> Frame) {
        self.correlation_id += 1;
        match encode_request(request, version, self.correlation_id, Some(&*self.client_id)) {
            Ok(frame) => self.actions.push_back(Action::Send(finish(frame))),
            Err(why) => {
                let message = format!("{} to {}: {why}", R::KEY.name(), self.node);
                self.fail(KrafkaError::protocol(ProtocolErrorKind::Unencodable, message));
            }
        }
    }

    fn versions_answered(&mut self, sent: i16, body: Bytes) {
        let read = |input: &mut Reader| ApiVersionsResponse::decode_answer(input, sent);
        let answer = match self.decode(ApiKey::ApiVersions, sent, body, read) {
            Ok(answer) => answer,
            Err(error) => return self.fail(error),
        };
        self.actions.extend(throttle(ApiKey::ApiVersions, sent, &answer).map(Action::Hush));
        match ErrorCode(answer.error_code) {
            ErrorCode::UNSUPPORTED_VERSION => self.versions_refused(sent, &answer),
            ErrorCode::REBOOTSTRAP_REQUIRED => self.misrouted(),
            code if code.is_ok() => {
                let range = answer.api_keys.iter().find(|api| api.api_key == ApiKey::ApiVersions as i16);
                let better = range.map_or(sent, |range| range.max_version.min(API_VERSIONS_MAX));
                let is_low = match self.opening {
                    Opening::Lowest => sent == API_VERSIONS_MIN,
                    // It was upgraded.
                    Opening::Known(version) => sent == version,
                    Opening::Highest | Opening::LowestAlone => false,
                };
                // What it has refused is not asked again, though it is offered: that would go on for ever.
                if is_low && better > sent && self.refused.is_none_or(|refused| better < refused) {
                    return self.ask_versions(better);
                }
                self.taken = Some(sent);
                let ranges =
                    answer.api_keys.iter().map(|api| (api.api_key, api.min_version, api.max_version)).collect();
                match Versions::new(ranges) {
                    Ok(versions) => {
                        self.versions = versions.with_features(BrokerFeatures::new(&answer));
                        self.authenticate();
                    }
                    Err(why) => self.fail(error::malformed("ApiVersions", &self.node, why)),
                }
            }
            code => self.fail(error::turned_away("ApiVersions", &self.node, code)),
        }
    }

    /// Another attempt may well succeed, once it is known where the broker is now.
    #[cold]
    fn misrouted(&mut self) {
        let why = "another broker, or another cluster, answers at this address now; where it is will be asked again";
        let error = error::lost("connecting", &self.node, std::io::ErrorKind::AddrNotAvailable, why);
        self.step = Step::Done;
        self.actions.push_back(Action::Misrouted(error));
    }

    fn versions_refused(&mut self, sent: i16, refusal: &ApiVersionsResponse) {
        let range = refusal.api_keys.iter().find(|api| api.api_key == ApiKey::ApiVersions as i16);
        let retry = range.map_or(0, |range| range.max_version.min(API_VERSIONS_MAX));
        self.refused = Some(sent);
        // A hint that is not lower than what was refused would be refused again, for ever.
        if retry < sent && retry >= API_VERSIONS_MIN {
            self.ask_versions(retry);
        } else {
            let message =
                format!("{} refuses version {sent} of ApiVersions, and offers version {retry} instead", self.node);
            self.fail(KrafkaError::protocol(ProtocolErrorKind::UnsupportedVersion, message));
        }
    }

    fn authenticate(&mut self) {
        let Some(exchange) = &self.exchange else { return self.finish(None) };
        let mechanism = Str::from(exchange.mechanism());
        match self.versions.negotiate::<SaslHandshakeRequest>() {
            Ok(version) => {
                self.step = Step::SaslHandshake { version };
                self.send(&SaslHandshakeRequest { mechanism }, version);
            }
            Err(mismatch) => self.fail(mismatch.at(&self.node)),
        }
    }

    fn mechanism_answered(&mut self, version: i16, body: Bytes) {
        let read = |input: &mut Reader| SaslHandshakeResponse::decode(input, version);
        let answer = match self.decode(ApiKey::SaslHandshake, version, body, read) {
            Ok(answer) => answer,
            Err(error) => return self.fail(error),
        };
        let exchange = self.exchange.as_ref().expect("SASL starts only with an exchange");
        let code = ErrorCode(answer.error_code);
        if !code.is_ok() {
            let enabled = answer.mechanisms.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
            let remedy = match code {
                ErrorCode::ILLEGAL_SASL_STATE if self.is_renewal => {
                    "the broker takes no renewal of the session now".to_owned()
                }
                ErrorCode::ILLEGAL_SASL_STATE => "is it a listener without SASL?".to_owned(),
                ErrorCode::UNSUPPORTED_SASL_MECHANISM => format!("the broker enables [{enabled}]"),
                _ => return self.fail(error::turned_away("SaslHandshake", &self.node, code)),
            };
            let context = format!("authenticating with {} at {}", exchange.mechanism(), self.node);
            let message = format!("{context}: {code}; {remedy}");
            return self.fail(KrafkaError::auth_because(message, KrafkaError::broker(code, context)));
        }
        match self.versions.negotiate::<SaslAuthenticateRequest>() {
            Ok(version) => {
                let first = exchange.initial_response();
                self.say(first, version);
            }
            Err(mismatch) => self.fail(mismatch.at(&self.node)),
        }
    }

    fn authentication_answered(&mut self, version: i16, body: Bytes) {
        let read = |input: &mut Reader| SaslAuthenticateResponse::decode(input, version);
        let answer = match self.decode(ApiKey::SaslAuthenticate, version, body, read) {
            Ok(answer) => answer,
            Err(error) => return self.fail(error),
        };
        let exchange = self.exchange.as_mut().expect("SASL starts only with an exchange");
        let mechanism = exchange.mechanism();
        let code = ErrorCode(answer.error_code);
        if !code.is_ok() {
            let said = answer.error_message.as_deref().unwrap_or("no reason given");
            let context = format!("authenticating with {mechanism} at {}", self.node);
            let message = format!("{context}: {code} ({said}): {}", exchange.remedy());
            let error = KrafkaError::auth_because(message, KrafkaError::broker(code, context));
            return match code {
                ErrorCode::SASL_AUTHENTICATION_FAILED => self.end(Action::Refuse(error)),
                ErrorCode::ILLEGAL_SASL_STATE | ErrorCode::UNSUPPORTED_SASL_MECHANISM => self.fail(error),
                _ => self.fail(error::turned_away(&format!("SaslAuthenticate ({said})"), &self.node, code)),
            };
        }
        match exchange.answer(&answer.auth_bytes) {
            Ok(Next::Say(message)) => self.say(message, version),
            Ok(Next::Done) => {
                let lifetime = u64::try_from(answer.session_lifetime_ms).unwrap_or(0);
                self.finish((lifetime > 0).then(|| finite(Duration::from_millis(lifetime))));
            }
            Err(why) => {
                self.fail(KrafkaError::auth(format!("authenticating with {mechanism} at {}: {why}", self.node)));
            }
        }
    }

    fn say(&mut self, message: Bytes, version: i16) {
        self.step = Step::SaslAuthenticate { version };
        self.send_as(&SaslAuthenticateRequest { auth_bytes: message }, version, wiped);
    }

    /// Whether to handle this answer takes so long that it must not hold up an asynchronous task: a broker may ask for
    /// a million rounds of hashing.
    pub(crate) fn is_costly(&self, body: &Bytes) -> bool {
        let Step::SaslAuthenticate { version } = self.step else { return false };
        let read = |input: &mut Reader| SaslAuthenticateResponse::decode(input, version);
        let answer = self.decode(ApiKey::SaslAuthenticate, version, body.clone(), read);
        let exchange = self.exchange.as_ref().zip(answer.ok());
        exchange.is_some_and(|(exchange, answer)| exchange.is_costly(&answer.auth_bytes))
    }

    fn decode<T>(
        &self,
        key: ApiKey,
        version: i16,
        body: Bytes,
        read: impl FnOnce(&mut Reader) -> Result<T, DecodeError>,
    ) -> Result<T, KrafkaError> {
        let mut input = Reader::new(body);
        let decoded = decode_response_header(key, version, &mut input)
            .and_then(|correlation_id| read(&mut input).map(|message| (correlation_id, message)));
        match decoded {
            Ok((correlation_id, message)) if correlation_id == self.correlation_id => Ok(message),
            Ok((correlation_id, _)) => Err(KrafkaError::protocol(
                ProtocolErrorKind::UnexpectedResponse,
                format!("{} at {}: the answer to request {correlation_id} came", key.name(), self.node),
            )),
            Err(why) => Err(error::malformed(key.name(), &self.node, why)),
        }
    }

    fn finish(&mut self, session: Option<Duration>) {
        let versions = std::mem::take(&mut self.versions);
        self.end(Action::Finish { versions, session });
    }

    fn fail(&mut self, error: KrafkaError) {
        self.end(Action::Fail(error));
    }

    fn end(&mut self, last: Action) {
        self.step = Step::Done;
        self.actions.push_back(last);
    }
}

/// The same frame, of a message with a secret in it, whose memory is wiped once it has been written.
fn wiped(frame: Frame) -> Frame {
    // A long message is a chunk of its own, and wiped already.
    if frame.chunk().len() < frame.len() {
        return frame;
    }
    let whole = frame.into_chunks().next().unwrap_or_default();
    Frame::from(Bytes::from_owner(Zeroizing::new(Vec::from(whole))))
}

impl Machine for Handshake {
    type Input = Input;
    type Action = Action;

    fn handle(&mut self, body: Bytes, _now: Instant) {
        match self.step {
            Step::ApiVersions { version } => self.versions_answered(version, body),
            Step::SaslHandshake { version } => self.mechanism_answered(version, body),
            Step::SaslAuthenticate { version } => self.authentication_answered(version, body),
            Step::Done => {}
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The dialer bounds the whole attempt by the connect timeout.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests;
