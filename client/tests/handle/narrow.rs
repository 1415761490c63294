//! Brokers that serve less than Kafka, other versions than a moment ago, or things that nobody knows yet.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::{FakeCluster, Profile};
use krafka::{KrafkaError, ProtocolErrorKind, Record};
use krafka_protocol::api::api_versions::{ApiVersion, SupportedFeatureKey};
use krafka_protocol::{AnyResponse, ApiKey, ApiVersionsResponse, ErrorCode};

use super::{assert_says, client};

const SECOND: Duration = Duration::from_secs(1);

/// BR-001: services choose a version for each API; none is that of a release.
#[tokio::test(start_paused = true)]
async fn services_that_serve_a_part_are_written_to_and_read_from() {
    for profile in Profile::ALL {
        let fake = FakeCluster::builder().nodes(1).as_service(profile).topic("orders", 1).start_on_pipes();
        let kafka = client(&fake).connect().await.expect("it is up");

        let topics = kafka.admin().list_topics().await.expect("it is served");
        // Event Hubs of this profile has no producer ids.
        let is_idempotent = profile != Profile::EventHubs;
        let producer = kafka.producer().idempotent(is_idempotent).build().await.expect("valid");
        producer.send(Record::new("orders", "tea")).await.expect("it is served");
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("valid");
        let record = consumer.recv().await.expect("it is served");
        consumer.close().await.expect("it is committed");

        assert_eq!(topics.len(), 1, "{profile:?}");
        assert_eq!(record.value.as_deref(), Some(&b"tea"[..]), "{profile:?}");
        assert_eq!(fake.committed("g")[&("orders".into(), 0)], 1, "{profile:?}");
    }
}

/// Edits what every broker says of its versions.
fn edit_versions(fake: &FakeCluster, edit: impl Fn(&mut ApiVersionsResponse) + Send + Sync + 'static) {
    fake.when(ApiKey::ApiVersions).forever().edit(move |response| {
        if let AnyResponse::ApiVersions(versions) = response {
            edit(versions);
        }
    });
}

/// AV-05: it fails here, and says what is missing where.
#[tokio::test(start_paused = true)]
async fn an_api_that_is_not_served_is_named_and_not_sent() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    edit_versions(&fake, |versions| versions.api_keys.retain(|api| api.api_key != ApiKey::DescribeCluster as i16));
    let kafka = client(&fake).connect().await.expect("it is up");

    let error = kafka.admin().describe_cluster().await.expect_err("it is not served");

    assert!(matches!(error, KrafkaError::Protocol { kind: ProtocolErrorKind::UnsupportedVersion, .. }), "{error:?}");
    assert!(!error.is_retriable());
    assert_says(&error, &["broker 1 at", "does not serve DescribeCluster"]);
    assert_eq!(fake.history().count(ApiKey::DescribeCluster), 0);
}

/// AV-10: what a newer broker tells besides is passed over.
#[tokio::test(start_paused = true)]
async fn what_nobody_knows_yet_is_passed_over() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    edit_versions(&fake, |versions| {
        versions.api_keys.push(ApiVersion { api_key: 9_999, min_version: 0, max_version: 3 });
        let name = "future.version".into();
        versions.supported_features.push(SupportedFeatureKey { name, min_version: 0, max_version: 7 });
    });

    let kafka = client(&fake).connect().await.expect("it is up");

    assert_eq!(kafka.admin().describe_cluster().await.expect("it is served").brokers.len(), 1);
}

/// AV-08, AV-09: what a broker serves is learnt on each connection, whatever the one before said.
#[tokio::test(start_paused = true)]
async fn versions_are_learnt_anew_on_each_connection() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let admin = kafka.admin();
    let mut spoken = Vec::new();

    for max_version in [0, 2, 1] {
        fake.clear_faults();
        edit_versions(&fake, move |versions| {
            let served = versions.api_keys.iter_mut().find(|api| api.api_key == ApiKey::DescribeCluster as i16);
            served.expect("the fake serves it").max_version = max_version;
        });
        fake.disconnect(1);
        tokio::time::sleep(SECOND).await;
        admin.describe_cluster().await.expect("it is served");
        spoken.push(fake.history().of(ApiKey::DescribeCluster).last().expect("it was asked").version);
    }

    assert_eq!(spoken, [0, 2, 1]);
}

/// AV-04, BY-13: known or not.
#[tokio::test(start_paused = true)]
async fn an_error_instead_of_versions_is_told_with_its_code() {
    for (code, said) in [(42, "INVALID_REQUEST"), (9_999, "9999")] {
        let fake = FakeCluster::builder().nodes(1).start_on_pipes();
        edit_versions(&fake, move |versions| versions.error_code = code);

        let error = client(&fake).bootstrap_timeout(SECOND).connect().await.expect_err("it does not work");

        assert_says(&error, &[&fake.bootstrap(), "ApiVersions", said]);
    }
}

/// AV-04: a broker in trouble may be well again. Nobody gives up that has time left: neither who writes, nor who reads.
#[tokio::test(start_paused = true)]
async fn an_error_instead_of_versions_may_pass() {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 3).group_initial_rebalance_delay(Duration::ZERO);
    let fake = fake.start_on_pipes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("valid");
    let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("valid");
    producer.send(Record::new("orders", "tea")).await.expect("it is up");
    consumer.recv().await.expect("it is up");

    fake.when(ApiKey::ApiVersions).forever().reply_error(ErrorCode::UNKNOWN_SERVER_ERROR);
    fake.nodes().into_iter().for_each(|node| fake.disconnect(node));
    let sent = producer.enqueue(Record::new("orders", "coffee")).await.expect("there is room");
    for _ in 0..20 {
        assert!(consumer.poll(SECOND).await.expect("it has time").is_empty());
    }
    let failed = kafka.metrics().connections.failed;
    assert!((20..1_000).contains(&failed), "{failed} attempts in 20 s");
    fake.clear_faults();

    sent.await.expect("it is well");
    let record = consumer.recv().await.expect("it is well");
    assert_eq!(record.value.as_deref(), Some(&b"coffee"[..]));
}

/// AV-13: the whole list, or parts of it, make no sense.
#[tokio::test(start_paused = true)]
async fn versions_that_make_no_sense_are_told() {
    type Edit = fn(&mut ApiVersionsResponse);
    let edits: [(Edit, &str); 3] = [
        (|versions| versions.api_keys.clear(), "no API at all"),
        (|versions| versions.api_keys[3].min_version = 99, "versions 99 to"),
        (|versions| versions.api_keys.push(versions.api_keys[3].clone()), "twice"),
    ];
    for (edit, said) in edits {
        let fake = FakeCluster::builder().nodes(1).start_on_pipes();
        edit_versions(&fake, edit);

        let error = client(&fake).connect().await.expect_err("it does not work");

        assert!(matches!(error, KrafkaError::Protocol { kind: ProtocolErrorKind::Malformed, .. }), "{error:?}");
        assert_says(&error, &[&fake.bootstrap(), said]);
    }
}
