//! What versions a broker speaks, how the client learns it, and what it makes of it.

use std::time::Duration;

use krafka::protocol::{
    ApiKey, ApiVersionsRequest, DescribeClusterRequest, ShareGroupHeartbeatRequest, VersionedDecode, versions,
};
use krafka::{Kafka, KrafkaError, ProtocolErrorKind};

use super::road::{Heard, Road};
use super::{NODES, Result, Stage, client, ensure, refused, says, within};

/// CB-29: whatever the client is called, brokers read its header.
pub(super) async fn odd_client_ids_are_taken(stage: &Stage) -> Result<()> {
    for id in ["", "a b\u{e9}\u{1f600}/\\\"", &"x".repeat(32_000)] {
        let connect = client(stage)?.client_id(id).connect();
        let kafka = within(Duration::from_secs(10), "connect", connect).await??;
        kafka.admin().describe_cluster().await?;
    }
    Ok(())
}

/// What the client said of itself on each connection, with the version in which it did.
fn introductions(road: &Road) -> Result<Vec<(Heard, ApiVersionsRequest)>> {
    let read = |heard: Heard| -> Result<_> {
        let request = ApiVersionsRequest::decode_versioned(heard.version, &mut heard.body())?;
        Ok((heard, request))
    };
    road.heard_of(ApiKey::ApiVersions).into_iter().map(read).collect()
}

/// Asks each broker something on a connection of its own.
async fn ask_each(kafka: &Kafka) -> Result<()> {
    for node in 1..=NODES {
        kafka.broker_connection(node).await?.call(DescribeClusterRequest::default()).await?;
    }
    Ok(())
}

/// AV-01, AV-12, CB-29: a broker that is older than the client says what it takes, and is asked once more; and each
/// connection hears who the client is, by a name that Kafka takes (KIP-511).
pub(super) async fn versions_are_learned_in_one_more_round_trip_at_most(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;

    ask_each(&kafka).await?;
    ask_each(&kafka).await?;

    let said = introductions(&road)?;
    let connections = road.dials().len();
    for connection in 0..connections {
        let asked: Vec<_> = said.iter().filter(|(heard, _)| heard.connection == connection).collect();
        let versions: Vec<_> = asked.iter().map(|(heard, _)| heard.version).collect();
        let newest = versions::API_VERSIONS_MAX;
        let is_short = if stage.is_3() { [&[newest, 4][..], &[4]].contains(&&*versions) } else { versions == [newest] };
        ensure!(is_short, "connection {connection} asked for versions in {versions:?}");
        for (_, request) in asked {
            let (name, version) = (&*request.client_software_name, &*request.client_software_version);
            ensure!(name.contains("krafka") && !version.is_empty(), "it is called '{name}' '{version}'");
        }
    }
    Ok(())
}

/// AV-05: what a cluster does not serve is refused here, with its name and the broker's, and nothing is sent.
pub(super) async fn an_api_that_is_absent_fails_here(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let connection = kafka.broker_connection(1).await?;
    let before = road.heard().len();

    // Kafka 3.9 has no share groups; no broker serves what controllers do.
    let (error, name) = if stage.is_3() {
        let call = connection.call(ShareGroupHeartbeatRequest::default()).await;
        (refused(call, "the heartbeat")?, "ShareGroupHeartbeat")
    } else {
        let negotiated = connection.negotiate_api_version(ApiKey::Vote, i16::MAX, 0).await;
        (refused(negotiated, "the vote")?, "Vote")
    };

    let is_unsupported = matches!(&error, KrafkaError::Protocol { kind: ProtocolErrorKind::UnsupportedVersion, .. });
    ensure!(is_unsupported && !error.is_retriable(), "{error:?}");
    says(&error, &[name, stage.address(1)?])?;
    ensure!(road.heard().len() == before, "something was sent");
    Ok(())
}

/// AV-06: so is a version that the broker does not serve, with the ranges of both.
pub(super) async fn versions_that_do_not_meet_fail_here(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let connection = kafka.broker_connection(1).await?;
    let served = connection.api_versions(ApiKey::DescribeCluster).await?.map(|versions| versions.max);
    let served = served.unwrap_or_default();
    let before = road.heard().len();

    let negotiated = connection.negotiate_api_version(ApiKey::DescribeCluster, i16::MAX, served + 1).await;
    let error = refused(negotiated, "a version beyond the broker's")?;

    says(&error, &["DescribeCluster", &format!("0 to {served}"), stage.address(1)?])?;
    ensure!(road.heard().len() == before, "something was sent");
    Ok(())
}

/// AV-10: the features that the cluster has finalized are told (KIP-584), whatever they are called.
pub(super) async fn features_are_told(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;

    let features = kafka.broker_connection(1).await?.broker_features().await?;

    let text = format!("{features:?}");
    ensure!(text.contains("metadata.version"), "{text}");
    Ok(())
}

/// AV-14: the answer's header is that of version 0 at each of them, or no client could read it.
pub(super) async fn versions_may_be_asked_for_at_every_version(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let connection = kafka.broker_connection(1).await?;
    let served = connection.api_versions(ApiKey::ApiVersions).await?.map(|versions| versions.max).unwrap_or_default();
    ensure!(served == if stage.is_3() { 4 } else { versions::API_VERSIONS_MAX }, "versions up to {served}");

    for version in versions::API_VERSIONS_MIN..=served {
        let request = ApiVersionsRequest {
            client_software_name: "curious".into(),
            client_software_version: "1".into(),
            ..ApiVersionsRequest::default()
        };
        let answer = connection.call_at(request, version).await?;
        let is_there = answer.api_keys.iter().any(|api| api.api_key == ApiKey::ApiVersions as i16);
        ensure!(answer.error_code == 0 && is_there, "version {version}: error {}", answer.error_code);
    }
    Ok(())
}

/// AV-15: a bootstrap server is asked as nobody in particular; a broker of the cluster is told who it is thought to be
/// (KIP-1242).
pub(super) async fn only_a_broker_that_is_known_is_told_who_it_is(stage: &Stage) -> Result<()> {
    let road = Road::default();
    road.lead("seed:9092", stage.address(1)?);
    let kafka = Kafka::builder("seed:9092").environment(road.environment()).connect().await?;
    ask_each(&kafka).await?;

    let said = introductions(&road)?;
    let at = |address: &str| said.iter().filter(|(heard, _)| heard.version >= 5 && heard.to == address).count();
    ensure!(at("seed:9092") > 0 && (stage.is_3() || at(stage.address(2)?) > 0), "nobody was asked in version 5");
    for (heard, request) in said.iter().filter(|(heard, _)| heard.version >= 5) {
        let is_named = request.cluster_id.is_some() && request.node_id >= 0;
        let is_nobody = request.cluster_id.is_none() && request.node_id < 0;
        let is_right = if heard.to == "seed:9092" { is_nobody } else { is_named };
        ensure!(is_right, "{} is asked as {:?} of {:?}", heard.to, request.node_id, request.cluster_id);
    }
    Ok(())
}
