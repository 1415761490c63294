//! What clients report about themselves (KIP-714). A broker answers these requests although it does not advertise them,
//! so that all rules hold on one without a plugin, too.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, MetricKind};
use krafka_protocol::api::get_telemetry_subscriptions::GetTelemetrySubscriptionsResponse;
use krafka_protocol::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use krafka_protocol::compression::{Compression, Compressor};
use krafka_protocol::{
    ApiKey, ApiVersionsRequest, Bytes, GetTelemetrySubscriptionsRequest, PushTelemetryRequest, Str, Uuid,
};

use crate::records::error;
use crate::target::{Target, Wire, on_fake, run};

const CLIENT_METRICS: i8 = 16;
const INTERVAL: Duration = Duration::from_millis(500);

/// Longer than an interval.
const PAUSE: Duration = Duration::from_millis(600);

async fn configure(wire: &mut Wire, name: &Str, configs: &[(&str, Option<&str>)]) {
    let config = |&(name, value): &(&str, Option<&str>)| AlterableConfig {
        name: name.into(),
        config_operation: if value.is_some() { 0 } else { 1 },
        value: value.map(Str::from),
    };
    let configs = configs.iter().map(config).collect();
    let resource = AlterConfigsResource { resource_type: CLIENT_METRICS, resource_name: name.clone(), configs };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    assert_eq!(error(wire.call(request, 1).await.responses[0].error_code), "NONE");
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// Asks one client instance of its own, which no other test is, to report what a producer counts.
pub(crate) async fn subscribe(target: &Target, wire: &mut Wire) -> (Str, Uuid) {
    let instance = get(wire, Uuid::ZERO).await.client_instance_id;
    let name = target.fresh("subscription");
    let only = format!("client_instance_id={instance}");
    let interval = INTERVAL.as_millis().to_string();
    let configs = [
        ("interval.ms", Some(&*interval)),
        ("metrics", Some("org.apache.kafka.producer.,org.apache.kafka.consumer.")),
        ("match", Some(&*only)),
    ];
    configure(wire, &name, &configs).await;
    (name, instance)
}

pub(crate) async fn unsubscribe(wire: &mut Wire, name: &Str) {
    configure(wire, name, &[("interval.ms", None), ("metrics", None), ("match", None)]).await;
}

pub(crate) async fn get(wire: &mut Wire, client_instance_id: Uuid) -> GetTelemetrySubscriptionsResponse {
    wire.call(GetTelemetrySubscriptionsRequest { client_instance_id }, 0).await
}

/// Pushes uncompressed bytes.
pub(crate) fn push(client_instance_id: Uuid, subscription_id: i32, metrics: &[u8]) -> PushTelemetryRequest {
    PushTelemetryRequest {
        client_instance_id,
        subscription_id,
        terminating: false,
        compression_type: 0,
        metrics: Bytes::copy_from_slice(metrics),
    }
}

pub(crate) async fn pushed(wire: &mut Wire, request: PushTelemetryRequest) -> &'static str {
    error(wire.call(request, 0).await.error_code)
}

/// A subscription is for clients that match all of its selectors.
#[test]
fn subscription_is_for_whom_it_matches() {
    run(async |target| {
        let mut wire = target.connect().await;
        let (name, instance) = subscribe(&target, &mut wire).await;
        let other = get(&mut wire, Uuid::ZERO).await.client_instance_id;
        assert!(!get(&mut wire, instance).await.requested_metrics.is_empty());

        assert_eq!(get(&mut wire, other).await.requested_metrics, [""; 0], "it is for another instance");
        for (also, is_meant) in [("client_id=wire", true), ("client_id=wir.", true), ("client_id=ire", false)] {
            let both = format!("client_instance_id={instance},{also}");
            configure(&mut wire, &name, &[("match", Some(&*both))]).await;
            let mut asked = target.connect().await;
            assert_eq!(!get(&mut asked, instance).await.requested_metrics.is_empty(), is_meant, "{also}");
        }
        unsubscribe(&mut wire, &name).await;
    });
}

/// A client that several subscriptions are for reports as often as the one that wants it most often.
#[test]
fn shortest_interval_counts() {
    run(async |target| {
        let mut wire = target.connect().await;
        let (name, instance) = subscribe(&target, &mut wire).await;
        let only = format!("client_instance_id={instance}");
        let mut names = vec![name];
        for interval in ["300", "900"] {
            let other = target.fresh("subscription");
            let configs = [
                ("interval.ms", Some(interval)),
                ("metrics", Some("org.apache.kafka.producer.")),
                ("match", Some(&*only)),
            ];
            configure(&mut wire, &other, &configs).await;
            names.push(other);
        }

        let told = get(&mut wire, instance).await;

        assert_eq!((error(told.error_code), told.push_interval_ms), ("NONE", 300));
        for name in &names {
            unsubscribe(&mut wire, name).await;
        }
    });
}

/// TE-02.
#[test]
fn client_that_nobody_asks_is_told_so() {
    run(async |target| {
        let mut wire = target.connect().await;
        let told = get(&mut wire, Uuid::ZERO).await;

        assert_eq!(error(told.error_code), "NONE");
        assert!(!told.client_instance_id.is_zero());
        assert_eq!((told.push_interval_ms, told.requested_metrics.len()), (300_000, 0));
        assert_eq!((told.telemetry_max_bytes, told.delta_temporality), (1_048_576, true));
        assert_eq!(told.accepted_compression_types, [4, 3, 1, 2]);
        assert_eq!(pushed(&mut wire, push(told.client_instance_id, told.subscription_id, &[])).await, "NONE");
        assert_eq!(pushed(&mut wire, push(Uuid::ZERO, told.subscription_id, &[])).await, "INVALID_REQUEST");
    });
}

/// TE-03 and TE-08.
#[test]
fn pushes_are_judged() {
    run(async |target| {
        let mut wire = target.connect().await;
        let (name, instance) = subscribe(&target, &mut wire).await;
        // The interval of the question before there was a subscription has no weight: the present one counts.
        tokio::time::sleep(PAUSE).await;
        let told = get(&mut wire, instance).await;
        let id = told.subscription_id;
        assert_eq!((error(told.error_code), told.push_interval_ms), ("NONE", 500));
        let mut metrics = told.requested_metrics;
        metrics.sort();
        assert_eq!(metrics, ["org.apache.kafka.consumer.", "org.apache.kafka.producer."]);

        // The first push may come at once, whatever it is; others wait for the interval.
        assert_eq!(pushed(&mut wire, push(instance, id.wrapping_add(1), &[])).await, "UNKNOWN_SUBSCRIPTION_ID");
        assert_eq!(pushed(&mut wire, push(instance, id, &[])).await, "THROTTLING_QUOTA_EXCEEDED");
        let mut later = async |request: PushTelemetryRequest| {
            tokio::time::sleep(PAUSE).await;
            pushed(&mut wire, request).await
        };
        assert_eq!(later(push(instance, id, &[])).await, "NONE");
        assert_eq!(later(push(instance, id, &[0xff, 0xff])).await, "NONE");
        let strange = PushTelemetryRequest { compression_type: 9, ..push(instance, id, &[]) };
        assert_eq!(later(strange).await, "UNSUPPORTED_COMPRESSION_TYPE");
        let broken = PushTelemetryRequest { compression_type: 4, ..push(instance, id, b"nonsense") };
        assert_eq!(later(broken).await, "INVALID_RECORD");
        assert_eq!(later(push(instance, id, &vec![0; 1_048_577])).await, "TELEMETRY_TOO_LARGE");
        assert_eq!(pushed(&mut wire, push(Uuid([5; 16]), id, &[])).await, "UNKNOWN_SUBSCRIPTION_ID");

        unsubscribe(&mut wire, &name).await;
    });
}

/// TE-04.
#[test]
fn last_push_may_come_at_once_and_is_the_last() {
    run(async |target| {
        let mut wire = target.connect().await;
        let (name, instance) = subscribe(&target, &mut wire).await;
        tokio::time::sleep(PAUSE).await;
        let id = get(&mut wire, instance).await.subscription_id;

        assert_eq!(pushed(&mut wire, push(instance, id, &[])).await, "NONE");
        let last = PushTelemetryRequest { terminating: true, ..push(instance, id, &[]) };
        assert_eq!(pushed(&mut wire, last).await, "NONE");
        assert_eq!(pushed(&mut wire, push(instance, id, &[])).await, "INVALID_REQUEST");

        unsubscribe(&mut wire, &name).await;
    });
}

#[test]
fn question_that_comes_too_often_is_throttled() {
    run(async |target| {
        let mut wire = target.connect().await;
        let (name, instance) = subscribe(&target, &mut wire).await;
        tokio::time::sleep(PAUSE).await;

        assert_eq!(error(get(&mut wire, instance).await.error_code), "NONE");
        let early = get(&mut wire, instance).await;
        assert_eq!((error(early.error_code), early.client_instance_id), ("THROTTLING_QUOTA_EXCEEDED", Uuid::ZERO));
        tokio::time::sleep(PAUSE).await;
        assert_eq!(error(get(&mut wire, instance).await.error_code), "NONE");

        unsubscribe(&mut wire, &name).await;
    });
}

/// TE-06.
///
/// Fake only: Kafka advertises it if it has a plugin for metrics.
#[test]
fn nothing_is_advertised_unless_it_is_asked_for() {
    let advertises = async |target: Target| {
        let asked = ApiVersionsRequest {
            client_software_name: "wire".into(),
            client_software_version: "1".into(),
            ..ApiVersionsRequest::default()
        };
        let keys = target.connect().await.call(asked, 3).await.api_keys;
        keys.iter().any(|key| key.api_key == ApiKey::PushTelemetry as i16)
    };
    run(async |target| assert!(!advertises(target).await));
    on_fake(FakeCluster::builder().client_telemetry(true), async |target, _| assert!(advertises(target).await));
}

/// TE-01.
///
/// Fake only: Kafka hands what was pushed to a plugin, and no request tells of it.
#[test]
fn metrics_are_decompressed_and_decoded() {
    on_fake(FakeCluster::builder(), async |target, fake| {
        let mut wire = target.connect().await;
        // resource metrics → scope metrics → metric "sends" → gauge → a point of 2.0.
        let point = [&[0x21][..], &2.0_f64.to_le_bytes()].concat();
        let nest = |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).expect("short")], content].concat();
        let metric = [nest(0x0a, b"sends"), nest(0x2a, &nest(0x0a, &point))].concat();
        let payload = nest(0x0a, &nest(0x12, &nest(0x12, &metric)));
        let mut gzip = Compressor::new(Compression::Gzip, None).expect("a codec");
        let compressed = gzip.compress(&payload).expect("compressible");

        let told = get(&mut wire, Uuid::ZERO).await;
        let instance = told.client_instance_id;
        let request = PushTelemetryRequest { compression_type: 1, ..push(instance, told.subscription_id, compressed) };
        assert_eq!(pushed(&mut wire, request).await, "NONE");

        let pushes = fake.telemetry();
        assert_eq!((pushes.len(), pushes[0].client_instance_id, pushes[0].terminating), (1, instance, false));
        assert_eq!(pushes[0].client_id.as_deref(), Some("wire"));
        assert_eq!(pushes[0].payload, payload);
        let metrics = pushes[0].metrics.as_ref().expect("metrics");
        assert_eq!((&*metrics[0].name, metrics[0].kind, metrics[0].points[0].value), ("sends", MetricKind::Gauge, 2.0));
    });
}
