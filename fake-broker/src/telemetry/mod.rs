//! What clients report about themselves (KIP-714): who is asked for what, and what was pushed.
//!
//! ```text
//!   client metrics configs ──▶ subscription of an instance ──Get──▶ client ──Push──▶ here, decoded
//! ```
//!
//! A node advertises these requests only if the cluster was built with
//! [`client_telemetry`](crate::FakeClusterBuilder::client_telemetry), as Kafka does only with a plugin that takes the
//! metrics: clients of Java push wherever they are advertised. Other than in Kafka, all nodes know an instance, and the
//! address and the port of a client are never told apart.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use krafka_protocol::compression::{Compression, Decompressor};
use krafka_protocol::{Bytes, ErrorCode, PushTelemetryRequest, Str, Uuid};

use crate::configs::client_metrics;
use crate::context::Context;
use crate::state::State;

pub(crate) mod otlp;

pub use otlp::{Metric, MetricKind, MetricPoint};

/// How often a client asks for its subscription if it has none.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(300);
/// How many clients are known at once, as in Kafka; the one that was silent for longest is forgotten.
const MAX_INSTANCES: usize = 16_384;
/// How many pushes are kept, the newest ones.
const MAX_PUSHES: usize = 4_096;
/// How many bytes the pushes that are kept may have, decompressed.
const MAX_KEPT_BYTES: usize = 64 << 20;
/// The most that a payload may become when it is decompressed.
const MAX_DECOMPRESSED: usize = 64 << 20;
/// The codecs that pushes may be in, those that Kafka likes best first.
pub(crate) const CODECS: [Compression; 4] =
    [Compression::Zstd, Compression::Lz4, Compression::Gzip, Compression::Snappy];

/// The clients that asked or pushed, and their pushes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    instances: BTreeMap<Uuid, Instance>,
    /// Counts the changes of subscriptions.
    changes: u64,
    pub(crate) pushes: VecDeque<TelemetryPush>,
    /// How many of the oldest pushes were forgotten.
    pub(crate) dropped: u64,
    /// The bytes of the payloads that are kept.
    bytes: usize,
}

/// Metrics that a client pushed.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetryPush {
    /// The node that was asked to take it.
    pub node: i32,
    /// Which client it was: the same id for all of its life.
    pub client_instance_id: Uuid,
    /// What the client calls itself.
    pub client_id: Option<Str>,
    /// Whether the client said that it was its last.
    pub terminating: bool,
    /// What came, decompressed.
    pub payload: Bytes,
    /// What is in it; `None` if it is not metrics in the encoding of OpenTelemetry. Kafka takes that, too.
    pub metrics: Option<Vec<Metric>>,
}

/// One client.
#[derive(Clone, Debug)]
struct Instance {
    /// How often subscriptions had changed when it was made.
    changes: u64,
    last_get: Option<Instant>,
    last_push: Option<Instant>,
    terminated: bool,
    /// Whether the last answer was an error after which it may ask again at once.
    must_ask: bool,
}

/// What a client is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub(crate) id: i32,
    pub(crate) interval: Duration,
    pub(crate) metrics: Vec<Str>,
}

impl Telemetry {
    /// Notes that who is asked for what may be another matter now.
    pub(crate) fn subscriptions_changed(&mut self) {
        self.changes += 1;
    }

    /// Finds or remembers a client. One that is met for the first time after a subscription changed, whosever it is,
    /// begins anew, as in Kafka: it may ask at once.
    fn instance(&mut self, id: Uuid) -> &mut Instance {
        if self.instances.len() >= MAX_INSTANCES && !self.instances.contains_key(&id) {
            let silent = self.instances.iter().min_by_key(|(_, it)| it.last_get.max(it.last_push)).map(|(&id, _)| id);
            if let Some(silent) = silent {
                self.instances.remove(&silent);
            }
        }
        let changes = self.changes;
        let new = || Instance { changes, last_get: None, last_push: None, terminated: false, must_ask: false };
        let instance = self.instances.entry(id).or_insert_with(new);
        if instance.changes < changes {
            *instance = new();
        }
        instance
    }

    /// Keeps what was pushed, and forgets the oldest where it is too much.
    pub(crate) fn keep(&mut self, push: TelemetryPush) {
        self.bytes += push.payload.len();
        self.pushes.push_back(push);
        while self.pushes.len() > MAX_PUSHES || self.bytes > MAX_KEPT_BYTES {
            let Some(oldest) = self.pushes.pop_front() else { return };
            self.bytes -= oldest.payload.len();
            self.dropped += 1;
        }
    }
}

impl State {
    /// What the configs ask of a client: all subscriptions that match it, taken together.
    pub(crate) fn telemetry_subscription(&self, cx: &Context, instance: Uuid) -> Subscription {
        let mut interval: Option<Duration> = None;
        let mut metrics = BTreeSet::new();
        for given in self.configs.client_metrics.values() {
            let selectors = given.get("match").map(client_metrics::selectors);
            let selectors = selectors.and_then(Result::ok).unwrap_or_default();
            if !selectors.iter().all(|(selector, pattern)| self.is_meant(cx, instance, selector, pattern)) {
                continue;
            }
            let own = given.get("interval.ms").and_then(|interval| interval.trim().parse().ok());
            let own = own.map_or(DEFAULT_INTERVAL, Duration::from_millis);
            interval = Some(interval.map_or(own, |interval| interval.min(own)));
            metrics.extend(given.get("metrics").into_iter().flat_map(client_metrics::prefixes));
        }
        if metrics.contains("*") {
            metrics = BTreeSet::from([Str::from_static("*")]);
        }
        let interval = interval.unwrap_or(DEFAULT_INTERVAL);
        let metrics: Vec<Str> = metrics.into_iter().collect();
        Subscription { id: subscription_id(instance, interval, &metrics), interval, metrics }
    }

    /// Whether a selector of a subscription fits a client.
    fn is_meant(&self, cx: &Context, instance: Uuid, selector: &str, pattern: &str) -> bool {
        let software = self.connections.get(&cx.connection).and_then(|open| open.software.as_ref());
        let value = match selector {
            "client_instance_id" => instance.to_string(),
            "client_id" => cx.client_id.as_deref().unwrap_or_default().to_owned(),
            "client_software_name" => software.map(|(name, _)| name.to_string()).unwrap_or_default(),
            "client_software_version" => software.map(|(_, version)| version.to_string()).unwrap_or_default(),
            "client_source_address" => cx.client_host.trim_start_matches('/').to_owned(),
            _ => String::new(),
        };
        regex::Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(&value))
    }

    /// Judges a question for the subscription.
    ///
    /// # Errors
    ///
    /// If the client asks too often.
    pub(crate) fn ask_telemetry(&mut self, id: Uuid, interval: Duration, now: Instant) -> Result<(), ErrorCode> {
        let instance = self.telemetry.instance(id);
        let is_early = |last: Option<Instant>| last.is_some_and(|last| now.duration_since(last) <= interval);
        if is_early(instance.last_get.max(instance.last_push)) && !instance.must_ask {
            return Err(ErrorCode::THROTTLING_QUOTA_EXCEEDED);
        }
        instance.last_get = Some(now);
        instance.must_ask = false;
        Ok(())
    }

    /// Judges a push of a client that has this subscription.
    ///
    /// # Errors
    ///
    /// If Kafka would not take it.
    pub(crate) fn push_telemetry(
        &mut self,
        id: Uuid,
        subscription: &Subscription,
        named: i32,
        terminating: bool,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let instance = self.telemetry.instance(id);
        if instance.terminated && !terminating {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        // The first push after a question may come at any time, so that clients do not all push at once.
        let is_first = instance.last_get > instance.last_push || instance.last_push.is_none();
        let is_early = instance.last_push.is_some_and(|last| now.duration_since(last) <= subscription.interval);
        if is_early && !is_first && !terminating {
            return Err(ErrorCode::THROTTLING_QUOTA_EXCEEDED);
        }
        instance.last_push = Some(now);
        instance.terminated |= terminating;
        if named != subscription.id {
            instance.must_ask = true;
            return Err(ErrorCode::UNKNOWN_SUBSCRIPTION_ID);
        }
        Ok(())
    }
}

/// What a push carries, decompressed.
///
/// # Errors
///
/// If its codec is not one that clients are told of, it is too large, or it does not decompress.
pub(crate) fn payload(request: &PushTelemetryRequest, max_bytes: i32) -> Result<Bytes, ErrorCode> {
    let mut codecs = CODECS.into_iter().chain([Compression::None]);
    let codec = codecs.find(|&codec| codec as i8 == request.compression_type);
    let codec = codec.ok_or(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE)?;
    if i32::try_from(request.metrics.len()).is_ok_and(|len| len > max_bytes) {
        return Err(ErrorCode::TELEMETRY_TOO_LARGE);
    }
    match codec {
        Compression::None => Ok(Bytes::copy_from_slice(&request.metrics)),
        codec => Decompressor::new(MAX_DECOMPRESSED)
            .decompress(codec, &request.metrics)
            .map_err(|_| ErrorCode::INVALID_RECORD),
    }
}

/// A number that differs when the subscription does, and from client to client (FNV-1a).
fn subscription_id(instance: Uuid, interval: Duration, metrics: &[Str]) -> i32 {
    let interval = interval.as_millis().to_be_bytes();
    let parts = [&instance.0[..], &interval].into_iter().chain(metrics.iter().map(|metric| metric.as_bytes()));
    let hash = parts.flatten().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    i32::from_be_bytes(hash.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(bytes: usize) -> TelemetryPush {
        let payload = Bytes::from(vec![0; bytes]);
        let client_instance_id = Uuid::ZERO;
        TelemetryPush { node: 1, client_instance_id, client_id: None, terminating: false, payload, metrics: None }
    }

    #[test]
    fn oldest_pushes_are_forgotten_by_number_and_by_size() {
        let mut telemetry = Telemetry::default();
        for _ in 0..=MAX_PUSHES {
            telemetry.keep(push(1));
        }
        assert_eq!((telemetry.pushes.len(), telemetry.dropped), (MAX_PUSHES, 1));

        telemetry.keep(push(MAX_KEPT_BYTES));
        telemetry.keep(push(1));
        assert_eq!((telemetry.pushes.len(), telemetry.bytes), (1, 1), "all before the large one went with it");
        assert_eq!(telemetry.dropped, MAX_PUSHES as u64 + 2);
    }
}
