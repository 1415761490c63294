//! Connections and ApiVersions on the wire: framing, order, versions.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::{ApiKey, ErrorCode, Message, Reader, decode_response_header};

use crate::records::error;
use crate::target::{Target, run};

fn introduction() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "krafka".into(),
        client_software_version: "0.1".into(),
        ..ApiVersionsRequest::default()
    }
}

/// A request header in version 1, with its length, and nothing behind it.
fn header(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![];
    frame.extend_from_slice(&(11 + body.len() as i32).to_be_bytes());
    frame.extend_from_slice(&key.to_be_bytes());
    frame.extend_from_slice(&version.to_be_bytes());
    frame.extend_from_slice(&7_i32.to_be_bytes());
    frame.extend_from_slice(&[0, 1, b'k']);
    frame.extend_from_slice(body);
    frame
}

async fn closes_after(target: &Target, bytes: &[u8]) -> bool {
    let mut wire = target.connect().await;
    wire.send_raw(bytes).await;
    wire.is_closed().await
}

/// AV-14: the header is that of version 0 each time.
#[test]
fn api_versions_answers_in_every_version() {
    run(async |target| {
        let mut wire = target.connect().await;
        for version in target.spoken(ApiKey::ApiVersions, 0..=5).await {
            let answer = wire.call(introduction(), version).await;

            assert_eq!(error(answer.error_code), "NONE", "version {version}");
            assert!(answer.api_keys.iter().any(|key| key.api_key == ApiKey::Fetch.code() && key.max_version >= 17));
            assert!(answer.api_keys.is_sorted_by_key(|key| key.api_key));
        }
    });
}

/// AV-01, KIP-511.
#[test]
fn api_versions_of_the_future_is_answered_in_version_0_with_its_own_range() {
    run(async |target| {
        let mut wire = target.connect().await;

        wire.send_raw(&header(18, 99, &[0])).await;
        let mut answer = Reader::new(wire.frame().await.expect("an answer"));
        decode_response_header(ApiKey::ApiVersions, 0, &mut answer).expect("a header");
        let answer = ApiVersionsResponse::decode(&mut answer, 0).expect("version 0");

        assert_eq!(error(answer.error_code), "UNSUPPORTED_VERSION");
        let keys: Vec<_> = answer.api_keys.iter().map(|key| (key.api_key, key.min_version)).collect();
        assert_eq!(keys, [(18, 0)]);
        assert!(answer.api_keys[0].max_version >= 4);
        assert_eq!(wire.call(introduction(), 3).await.error_code, 0, "the connection goes on");
    });
}

/// FI-12a, AV-12.
#[test]
fn software_names_follow_kafkas_pattern() {
    run(async |target| {
        let names =
            [("a", true), ("a-b.c", true), ("", false), ("-a", false), ("a-", false), ("a b", false), ("ä", false)];
        for (name, valid) in names {
            let mut wire = target.connect().await;
            let asked = ApiVersionsRequest { client_software_name: name.into(), ..introduction() };
            let answer = wire.call(asked, 3).await;

            assert_eq!(error(answer.error_code), if valid { "NONE" } else { "INVALID_REQUEST" }, "{name:?}");
        }
    });
}

/// KIP-1242.
#[test]
fn client_that_means_another_cluster_is_told_so() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "KIP-1242: ApiVersions 5 says which cluster and node the client means").await;
        let mut wire = target.connect().await;
        let metadata = wire.call(MetadataRequest::default(), 12).await;
        let (cluster, node) = (metadata.cluster_id.expect("a cluster id"), metadata.brokers[0].node_id);
        let asks = [
            (Some(cluster.clone()), node, "NONE"),
            (None, -1, "NONE"),
            (Some("elsewhere".into()), node, "REBOOTSTRAP_REQUIRED"),
            (Some(cluster.clone()), node + 1, "REBOOTSTRAP_REQUIRED"),
            (Some(cluster), -1, "INVALID_REQUEST"),
            (None, node, "INVALID_REQUEST"),
        ];
        for (cluster_id, node_id, expected) in asks {
            let asked = ApiVersionsRequest { cluster_id, node_id, ..introduction() };
            let answer = target.connect().await.call(asked.clone(), 5).await;

            assert_eq!(error(answer.error_code), expected, "{asked:?}");
        }
    });
}

/// A broker cannot answer in a layout that it does not know.
#[test]
fn unknown_versions_and_apis_close_the_connection() {
    run(async |target| {
        assert!(closes_after(&target, &header(ApiKey::Metadata.code(), 99, &[0, 0, 0])).await);
        assert!(closes_after(&target, &header(4711, 0, &[])).await);
        assert!(closes_after(&target, &header(-1, 0, &[])).await);
    });
}

/// KIP-896.
#[test]
fn versions_that_kafka_4_dropped_close_the_connection() {
    run(async |target| {
        target.differs_before(KafkaVersion::V4_0, "KIP-896: the old versions are still served").await;
        assert!(closes_after(&target, &header(ApiKey::Produce.code(), 2, &[0; 10])).await);
        // These are whole requests of versions that Kafka 4 has dropped, and our codec can read.
        assert!(
            closes_after(&target, &header(ApiKey::ListOffsets.code(), 0, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])).await
        );
        assert!(closes_after(&target, &header(ApiKey::OffsetFetch.code(), 0, &[0, 1, b'g', 0, 0, 0, 0])).await);
    });
}

/// BY-01, BY-15.
#[test]
fn what_is_no_request_closes_the_connection() {
    run(async |target| {
        assert!(closes_after(&target, b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n").await, "HTTP");
        assert!(closes_after(&target, &(-5_i32).to_be_bytes()).await, "a negative length");
        assert!(closes_after(&target, &i32::MAX.to_be_bytes()).await, "an absurd length");
        assert!(closes_after(&target, &header(3, 1, &[0, 0, 0, 9])).await, "a body that is cut");
    });
}

/// FI-13a.
#[test]
fn pipelined_requests_are_answered_in_order() {
    run(async |target| {
        let mut wire = target.connect().await;
        wire.send(introduction(), 3).await;
        wire.send(MetadataRequest::default(), 12).await;
        wire.send(introduction(), 0).await;

        assert_eq!(wire.receive::<ApiVersionsRequest>(3).await.error_code, 0);
        assert!(!wire.receive::<MetadataRequest>(12).await.brokers.is_empty());
        assert_eq!(ErrorCode(wire.receive::<ApiVersionsRequest>(0).await.error_code), ErrorCode::NONE);
    });
}
