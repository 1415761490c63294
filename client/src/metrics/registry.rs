//! [`Registry`]: where the parts of one client count what they do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use krafka_protocol::ApiKey;

use super::{BrokerMetrics, ConnectionMetrics, Counter, MetadataMetrics, Metrics, Recorder, RequestMetrics};
use crate::consumer::ConsumerCounters;
use crate::drive;
use crate::producer::ProducerCounters;

/// Brokers that are counted apart. Clusters have hundreds at most; past this, a broker that invents others would only
/// fill the memory.
const MAX_BROKERS: usize = 10_000;

/// Under this id stand bootstrap servers, which have none of their own yet, and whatever is too much.
pub(super) const BOOTSTRAP: i32 = -1;

/// APIs are numbered from 0; this is past the last.
const APIS: usize = 128;

/// The counters of one client.
pub(crate) struct Registry {
    client_id: Arc<str>,
    pub(crate) connections: Connections,
    pub(crate) metadata: Metadata,
    pub(crate) producers: Arc<ProducerCounters>,
    pub(crate) consumers: Arc<ConsumerCounters>,
    brokers: Mutex<BTreeMap<i32, Arc<Broker>>>,
    requests: Box<[OnceLock<Requests>; APIS]>,
}

/// Counters of all connections.
#[derive(Default)]
pub(crate) struct Connections {
    pub(crate) opened: Counter,
    pub(crate) failed: Counter,
    pub(crate) closed: Counter,
    pub(crate) lost: Counter,
    pub(crate) misrouted: Counter,
    pub(crate) connect_time: Recorder,
}

/// Counters of the view of the cluster.
#[derive(Default)]
pub(crate) struct Metadata {
    pub(crate) refreshes: Counter,
    pub(crate) failures: Counter,
    pub(crate) rebootstraps: Counter,
    pub(crate) cluster_changes: Counter,
    last: Mutex<Option<Instant>>,
}

impl Metadata {
    /// Metadata came.
    pub(crate) fn refreshed(&self, now: Instant) {
        self.refreshes.add(1);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}

/// Counters of what goes to one broker.
#[derive(Default)]
pub(crate) struct Broker {
    pub(crate) requests: Counter,
    pub(crate) bytes_sent: Counter,
    pub(crate) bytes_received: Counter,
    pub(crate) throttled_micros: Counter,
}

/// Counters of the requests of one API.
#[derive(Default)]
struct Requests {
    failed: Counter,
    time: Recorder,
}

impl Registry {
    pub(crate) fn new(client_id: Arc<str>) -> Self {
        Self {
            client_id,
            connections: Connections::default(),
            metadata: Metadata::default(),
            producers: Arc::default(),
            consumers: Arc::default(),
            brokers: Mutex::default(),
            requests: Box::new(std::array::from_fn(|_| OnceLock::new())),
        }
    }

    /// The counters of a broker, which its connections keep.
    pub(crate) fn broker(&self, id: i32) -> Arc<Broker> {
        let mut brokers = self.brokers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = brokers.contains_key(&id) || brokers.len() < MAX_BROKERS;
        let id = if id >= 0 && is_known { id } else { BOOTSTRAP };
        brokers.entry(id).or_default().clone()
    }

    /// A request was answered, so long after it was written.
    pub(crate) fn answered(&self, key: ApiKey, took: Duration) {
        if let Some(requests) = self.requests(key) {
            requests.time.record(took);
        }
    }

    /// A request was not answered, or not sent.
    pub(crate) fn unanswered(&self, key: ApiKey) {
        if let Some(requests) = self.requests(key) {
            requests.failed.add(1);
        }
    }

    fn requests(&self, key: ApiKey) -> Option<&Requests> {
        let requests = usize::try_from(key as i16).ok().and_then(|key| self.requests.get(key))?;
        Some(requests.get_or_init(Requests::default))
    }

    /// All figures as they are now. One of them is the pool's.
    pub(crate) fn read(&self, coordination_fallbacks: u64) -> Metrics {
        let brokers = self.brokers.lock().unwrap_or_else(PoisonError::into_inner);
        let brokers = brokers.iter().map(|(id, broker)| (*id, broker.read())).collect();
        let requests = self.requests.iter().enumerate().filter_map(|(key, requests)| {
            let (key, requests) = (ApiKey::try_from(key as i16).ok()?, requests.get()?);
            Some((key.name(), RequestMetrics { failed: requests.failed.get(), time: requests.time.read() }))
        });
        Metrics {
            client_id: self.client_id.clone(),
            connections: self.connections.read(coordination_fallbacks),
            brokers,
            requests: requests.collect(),
            metadata: self.metadata.read(drive::now()),
            producers: self.producers.read(),
            consumers: self.consumers.read(),
        }
    }
}

impl Connections {
    fn read(&self, coordination_fallbacks: u64) -> ConnectionMetrics {
        // The end before the beginning: what ends in between does not make less than nothing of it.
        let (closed, opened) = (self.closed.get(), self.opened.get());
        ConnectionMetrics {
            open: opened.saturating_sub(closed),
            opened,
            failed: self.failed.get(),
            lost: self.lost.get(),
            misrouted: self.misrouted.get(),
            coordination_fallbacks,
            connect_time: self.connect_time.read(),
        }
    }
}

impl Metadata {
    fn read(&self, now: Instant) -> MetadataMetrics {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        MetadataMetrics {
            refreshes: self.refreshes.get(),
            failures: self.failures.get(),
            rebootstraps: self.rebootstraps.get(),
            cluster_changes: self.cluster_changes.get(),
            age: last.map(|last| now.saturating_duration_since(last)),
        }
    }
}

impl Broker {
    /// The broker asked for silence.
    pub(crate) fn throttled(&self, silence: Duration) {
        self.throttled_micros.add(u64::try_from(silence.as_micros()).unwrap_or(u64::MAX));
    }

    fn read(&self) -> BrokerMetrics {
        BrokerMetrics {
            requests: self.requests.get(),
            bytes_sent: self.bytes_sent.get(),
            bytes_received: self.bytes_received.get(),
            throttled: Duration::from_micros(self.throttled_micros.get()),
        }
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_without_number_do_not_fill_the_memory() {
        let registry = Registry::new("me".into());

        (-10..20_000).for_each(|id| registry.broker(id).requests.add(1));

        let brokers = registry.read(0).brokers;
        assert_eq!(brokers.len(), MAX_BROKERS);
        assert_eq!(brokers.values().map(|broker| broker.requests).sum::<u64>(), 20_010);
        assert_eq!(brokers[&BOOTSTRAP].requests, 10_011);
    }

    #[test]
    fn requests_are_counted_by_api() {
        let registry = Registry::new("me".into());
        registry.answered(ApiKey::Produce, Duration::from_millis(3));
        registry.unanswered(ApiKey::Produce);
        registry.unanswered(ApiKey::Fetch);

        let requests = registry.read(0).requests;

        let figures: Vec<_> = requests.iter().map(|(name, api)| (*name, api.time.count(), api.failed)).collect();
        assert_eq!(figures, [("Fetch", 0, 1), ("Produce", 1, 1)]);
    }
}
