//! Client quotas (KIP-13, KIP-546, KIP-599): who may use how much, and how much they have used.
//!
//! Each node counts for itself, for each user and client id that a quota is set for or falls on by default. Who uses
//! more is told to wait, and its connection is muted for that time (KIP-219). Bytes of produce requests and fetch
//! answers count, and partitions made and deleted. A fetch that would use too much gets an empty answer instead. Who
//! connects too often is let in, not listened to, and sent away after a while (KIP-612).
//!
//! A machine without a clock cannot measure what `request_percentage` limits, which is time of threads: here every
//! request takes [`REQUEST_SECONDS`] of it, whatever it does. All connections come from one address.

mod enforce;
pub(crate) mod entities;
mod meter;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use krafka_protocol::Str;

use crate::context::Context;
pub(crate) use enforce::{check_mutation, throttle};
use meter::{BURST_SECONDS, Bucket, Rate};

/// How much of a thread's time each request takes, in seconds.
const REQUEST_SECONDS: f64 = 0.0002;
/// What nobody waits longer than for requests and connections: Kafka's default of `quota.window.size.seconds`.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limited {
    /// Bytes of produce requests, per second.
    Produce,
    /// Bytes of fetch answers, per second.
    Fetch,
    /// Partitions made and deleted, per second.
    Mutations,
    /// Time of threads, in hundredths of one.
    Requests,
}

impl Limited {
    fn key(self) -> &'static str {
        match self {
            Self::Produce => "producer_byte_rate",
            Self::Fetch => "consumer_byte_rate",
            Self::Mutations => "controller_mutation_rate",
            Self::Requests => "request_percentage",
        }
    }
}

/// One part of whom a quota is for: a name, or those that have no quota of their own.
pub(crate) type Name = Option<Str>;

/// Whom a quota is for. What is not named does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entity {
    pub(crate) user: Option<Name>,
    pub(crate) client_id: Option<Name>,
    pub(crate) ip: Option<Name>,
}

/// Who shares one meter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MeterKey {
    node: i32,
    limited: Limited,
    user: Option<Str>,
    client_id: Option<Str>,
}

/// The quotas of a cluster, and what was used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas {
    limits: BTreeMap<Entity, BTreeMap<Str, f64>>,
    rates: BTreeMap<MeterKey, Rate>,
    buckets: BTreeMap<MeterKey, Bucket>,
    /// The connections that each node has seen from each address.
    connections: BTreeMap<(i32, Str), Rate>,
    /// For how long the request that is being handled has to wait.
    throttle: Duration,
}

impl Quotas {
    /// Whether nobody is limited.
    fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// All quotas, in the order of whom they are for.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Entity, &BTreeMap<Str, f64>)> {
        self.limits.iter()
    }

    /// Sets a quota, or removes it.
    pub(crate) fn set(&mut self, entity: &Entity, key: &Str, value: Option<f64>) {
        let limits = self.limits.entry(entity.clone()).or_default();
        match value {
            Some(value) => {
                limits.insert(key.clone(), value);
            }
            None => {
                limits.remove(key);
            }
        }
        if limits.is_empty() {
            self.limits.remove(entity);
        }
    }

    /// Counts bytes, and says for how long the client must wait.
    pub(crate) fn record(&mut self, limited: Limited, cx: &Context, bytes: usize) -> Duration {
        let Some((key, limit)) = self.find(limited, cx) else { return Duration::ZERO };
        self.rates.entry(key).or_default().record(bytes as f64, limit, cx.now)
    }

    /// Counts the time of a request, and says for how long the client must wait.
    pub(crate) fn record_request(&mut self, cx: &Context) -> Duration {
        let Some((key, limit)) = self.find(Limited::Requests, cx) else { return Duration::ZERO };
        self.rates.entry(key).or_default().record(REQUEST_SECONDS * 100.0, limit, cx.now).min(LONGEST_WAIT)
    }

    /// Counts a connection that a node was asked for. If it is one too many, it does not count, and is to be sent away
    /// after this time.
    pub(crate) fn connect(&mut self, node: i32, address: &str, now: Instant) -> Option<Duration> {
        let of = |ip: Name| Entity { ip: Some(ip), ..Entity::default() };
        let limits = [Some(Str::from(address)), None].map(|name| self.limits.get(&of(name)));
        let limit = *limits.into_iter().flatten().find_map(|limits| limits.get("connection_creation_rate"))?;
        let rate = self.connections.entry((node, Str::from(address))).or_default();
        let wait = rate.record(1.0, limit, now);
        if wait.is_zero() {
            return None;
        }
        rate.unrecord(1.0);
        Some(wait.min(LONGEST_WAIT))
    }

    /// Takes bytes back that were counted, but are not sent.
    pub(crate) fn unrecord(&mut self, limited: Limited, cx: &Context, bytes: usize) {
        if let Some((key, _)) = self.find(limited, cx)
            && let Some(rate) = self.rates.get_mut(&key)
        {
            rate.unrecord(bytes as f64);
        }
    }

    /// How many bytes one answer may have, so that it could ever be sent.
    pub(crate) fn max_fetch_bytes(&self, cx: &Context) -> i32 {
        let limit = self.find(Limited::Fetch, cx).map_or(f64::MAX, |(_, limit)| limit * BURST_SECONDS);
        // A float too big for an integer becomes the biggest one.
        limit as i32
    }

    /// Counts partitions that are made or deleted. Where `is_strict`, says whether that is too much now; else the
    /// client only has to wait afterwards, as those do who do not know the error.
    pub(crate) fn may_mutate(&mut self, cx: &Context, partitions: usize, is_strict: bool) -> bool {
        // There is one controller, whoever hands on the request.
        let Some((key, limit)) = self.find(Limited::Mutations, cx) else { return true };
        let key = MeterKey { node: 0, ..key };
        let bucket = self.buckets.entry(key).or_insert_with(|| Bucket::new(limit, cx.now));
        match bucket.take(partitions as f64, limit, is_strict, cx.now) {
            Ok(()) => true,
            Err(wait) => {
                self.throttle = self.throttle.max(wait);
                !is_strict
            }
        }
    }

    /// For how long the request that was just handled has to wait for what it mutated.
    pub(crate) fn take_throttle(&mut self) -> Duration {
        std::mem::take(&mut self.throttle)
    }

    /// The meter and the limit of a client, if there is a quota for it. The order is Kafka's: what names both user and
    /// client id before what names the user, and that before what names the client id; a name before the default.
    fn find(&self, limited: Limited, cx: &Context) -> Option<(MeterKey, f64)> {
        if self.limits.is_empty() {
            return None;
        }
        let user = cx.principal.name.clone();
        let client_id = cx.client_id.clone().unwrap_or_default();
        let named = |name: &Str| Some(Some(name.clone()));
        let order = [
            (named(&user), named(&client_id)),
            (named(&user), Some(None)),
            (named(&user), None),
            (Some(None), named(&client_id)),
            (Some(None), Some(None)),
            (Some(None), None),
            (None, named(&client_id)),
            (None, Some(None)),
        ];
        order.into_iter().find_map(|(for_user, for_client)| {
            let (by_user, by_client) = (for_user.is_some(), for_client.is_some());
            let entity = Entity { user: for_user, client_id: for_client, ip: None };
            let limit = *self.limits.get(&entity)?.get(limited.key())?;
            let key = MeterKey {
                node: cx.node,
                limited,
                user: by_user.then(|| user.clone()),
                client_id: by_client.then(|| client_id.clone()),
            };
            Some((key, limit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(quotas: &mut Quotas, user: Option<Name>, client_id: Option<Name>, value: f64) {
        let entity = Entity { user, client_id, ip: None };
        quotas.set(&entity, &"producer_byte_rate".into(), Some(value));
    }

    /// KIP-612: who is sent away has not come, so that no number of attempts keeps anybody out for longer.
    #[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
    #[test]
    fn connections_that_are_refused_do_not_count() {
        let mut quotas = Quotas::default();
        let everybody = Entity { ip: Some(None), ..Entity::default() };
        quotas.set(&everybody, &"connection_creation_rate".into(), Some(1.0));
        let begun = Instant::now();
        let mut served_at = |second| {
            let now = begun + Duration::from_secs(second);
            (0..50).filter(|_| quotas.connect(1, "10.0.0.1", now).is_none()).count()
        };

        let served: Vec<_> = (0..=11).map(&mut served_at).collect();

        assert_eq!(served, [10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10]);
    }

    #[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
    #[test]
    fn names_come_before_defaults_and_both_before_one() {
        let (alice, app) = (|| Some(Some(Str::from("ANONYMOUS"))), || Some(Some(Str::from("app"))));
        let cx = Context::for_test(Some("app"), Instant::now());
        let order = [
            (None, Some(None)),
            (None, app()),
            (Some(None), None),
            (Some(None), Some(None)),
            (Some(None), app()),
            (alice(), None),
            (alice(), Some(None)),
            (alice(), app()),
        ];
        let mut quotas = Quotas::default();
        assert_eq!(quotas.find(Limited::Produce, &cx), None);

        for (value, (user, client_id)) in (1..).zip(order) {
            set(&mut quotas, user.clone(), client_id.clone(), f64::from(value));

            let (key, limit) = quotas.find(Limited::Produce, &cx).expect("a quota");
            assert_eq!(limit, f64::from(value), "{user:?} {client_id:?}");
            assert_eq!((key.user.is_some(), key.client_id.is_some()), (user.is_some(), client_id.is_some()));
        }
        assert_eq!(quotas.find(Limited::Fetch, &cx), None);
    }
}
