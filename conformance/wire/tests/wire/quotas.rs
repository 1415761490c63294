//! Quotas: how they are set and seen, and how they hold clients back. The clients are users of their own, so that
//! nobody else feels it.

use std::time::Duration;

use krafka_fake_broker::SecurityProtocol::SaslPlaintext;
use krafka_protocol::api::alter_client_quotas::{
    AlterClientQuotasRequest, EntityData, EntryData, EntryResponse, OpData,
};
use krafka_protocol::api::alter_user_scram_credentials::{AlterUserScramCredentialsRequest, ScramCredentialUpsertion};
use krafka_protocol::api::create_acls::AclCreation;
use krafka_protocol::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use krafka_protocol::api::describe_client_quotas::{ComponentData, DescribeClientQuotasRequest};
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::{Bytes, ErrorCode, Str};

use crate::acls::{ALL, CLUSTER, TOPIC, allow, create};
use crate::logins::{Hash, scram};
use crate::records::batch;
use crate::secured::{Secured, run};
use crate::target::Wire;

/// A part of whom a quota is for.
fn part(entity_type: &'static str, name: Option<&Str>) -> EntityData {
    EntityData { entity_type: entity_type.into(), entity_name: name.cloned() }
}

fn op(key: &'static str, value: f64) -> OpData {
    OpData { key: key.into(), value, remove: false }
}

async fn alter(wire: &mut Wire, entity: Vec<EntityData>, ops: Vec<OpData>) -> EntryResponse {
    let request = AlterClientQuotasRequest { entries: vec![EntryData { entity, ops }], validate_only: false };
    wire.call(request, 1).await.entries.remove(0)
}

/// The quotas of those who fit: their parts, and the limits.
async fn found(
    wire: &mut Wire,
    components: Vec<ComponentData>,
    strict: bool,
) -> Vec<(Vec<Option<Str>>, Vec<(Str, f64)>)> {
    let answer = wire.call(DescribeClientQuotasRequest { components, strict }, 1).await;
    assert_eq!(answer.error_code, 0);
    let entries = answer.entries.expect("no error").into_iter().map(|entry| {
        let mut names: Vec<_> = entry.entity.into_iter().map(|part| part.entity_name).collect();
        names.sort();
        let mut values: Vec<_> = entry.values.into_iter().map(|value| (value.key, value.value)).collect();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        (names, values)
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries
}

fn exactly(entity_type: &'static str, name: &Str) -> ComponentData {
    ComponentData { entity_type: entity_type.into(), match_type: 0, r#match: Some(name.clone()) }
}

fn any(entity_type: &'static str) -> ComponentData {
    ComponentData { entity_type: entity_type.into(), match_type: 2, r#match: None }
}

/// A user of its own, who may do everything with the cluster and a topic, and has these quotas; logged in.
async fn limited(secured: &Secured, topic: &Str, ops: Vec<OpData>) -> Wire {
    let mut admin = secured.login("admin").await;
    let user = secured.target.fresh("user");
    let salt = Bytes::from_static(b"salt of this test");
    let upsertion = ScramCredentialUpsertion {
        name: user.clone(),
        mechanism: 1,
        iterations: 4096,
        salted_password: Bytes::from(Hash::Sha256.salted("secret", &salt, 4096)),
        salt,
    };
    let request = AlterUserScramCredentialsRequest { deletions: vec![], upsertions: vec![upsertion] };
    assert_eq!(admin.call(request, 0).await.results[0].error_code, 0);
    let principal = Str::from(format!("User:{user}"));
    let rules = [(TOPIC, topic.clone()), (CLUSTER, Str::from("kafka-cluster"))]
        .map(|(kind, name)| AclCreation { principal: principal.clone(), ..allow(kind, &name, ALL) });
    create(&mut admin, rules.to_vec()).await;
    assert_eq!(alter(&mut admin, vec![part("user", Some(&user))], ops).await.error_code, 0);
    while found(&mut admin, vec![exactly("user", &user)], false).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A broker takes a little longer to act by what it knows.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut wire = secured.connect(SaslPlaintext).await;
    let answer = scram(&mut wire, Hash::Sha256, (&user, "secret"), "").await;
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
    wire
}

fn produce(topic: &Str, bytes: usize, acks: i16) -> ProduceRequest {
    let value = "x".repeat(bytes);
    let data = PartitionProduceData { index: 0, records: Some(batch(&[&value])) };
    ProduceRequest {
        acks,
        timeout_ms: 5_000,
        topic_data: vec![TopicProduceData { name: topic.clone(), partition_data: vec![data], ..Default::default() }],
        ..ProduceRequest::default()
    }
}

/// How long it takes until the next request is answered.
#[expect(clippy::disallowed_methods, reason = "how much time passes is what is asked")]
async fn muted(wire: &mut Wire) -> Duration {
    let begun = tokio::time::Instant::now();
    wire.call(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 12).await;
    begun.elapsed()
}

/// Whether a throttle is that of 1,000 bytes a second too many for ten seconds, give or take what surrounds the
/// records.
fn is_about_a_second(throttle_ms: i32) -> bool {
    (800..=1500).contains(&throttle_ms)
}

#[test]
fn quotas_are_set_and_seen() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let (user, client) = (secured.target.fresh("user"), secured.target.fresh("client"));
        let of_user = vec![part("user", Some(&user))];
        let of_both = vec![part("user", Some(&user)), part("client-id", Some(&client))];
        let of_default = vec![part("user", Some(&user)), part("client-id", None)];
        let rates = vec![op("producer_byte_rate", 1000.0), op("controller_mutation_rate", 0.5)];
        let told = alter(&mut admin, of_user.clone(), rates).await;
        assert_eq!((told.error_code, told.entity.len()), (0, 1));
        alter(&mut admin, of_both.clone(), vec![op("consumer_byte_rate", 7.0)]).await;
        alter(&mut admin, of_default, vec![op("request_percentage", 12.5)]).await;
        while found(&mut admin, vec![exactly("user", &user)], false).await.len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }

        let of_users = (
            vec![Some(user.clone())],
            vec![("controller_mutation_rate".into(), 0.5), ("producer_byte_rate".into(), 1000.0)],
        );
        let of_defaults = (vec![None, Some(user.clone())], vec![("request_percentage".into(), 12.5)]);
        let mut names = vec![Some(user.clone()), Some(client.clone())];
        names.sort();
        let of_boths = (names, vec![("consumer_byte_rate".into(), 7.0)]);
        assert_eq!(found(&mut admin, vec![exactly("user", &user)], true).await, std::slice::from_ref(&of_users));
        let all = found(&mut admin, vec![exactly("user", &user)], false).await;
        assert!(all.len() == 3 && all.contains(&of_users) && all.contains(&of_defaults) && all.contains(&of_boths));
        assert_eq!(
            found(&mut admin, vec![exactly("client-id", &client)], false).await,
            std::slice::from_ref(&of_boths)
        );
        let default = ComponentData { match_type: 1, r#match: None, ..exactly("client-id", &client) };
        assert_eq!(
            found(&mut admin, vec![exactly("user", &user), default], true).await,
            std::slice::from_ref(&of_defaults)
        );
        let of_any = found(&mut admin, vec![exactly("user", &user), any("client-id")], true).await;
        assert!(of_any.len() == 2 && of_any.contains(&of_defaults) && of_any.contains(&of_boths));

        let remove = OpData { remove: true, ..op("consumer_byte_rate", 0.0) };
        assert_eq!(alter(&mut admin, of_both, vec![remove]).await.error_code, 0);
        while found(&mut admin, vec![exactly("user", &user)], false).await.len() > 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn quotas_that_make_no_sense_are_refused() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let user = secured.target.fresh("user");
        let of_user = || vec![part("user", Some(&user))];
        let address = Str::from("127.0.0.9");
        let nowhere = Str::from("no.such.host.invalid");
        let rate = || op("producer_byte_rate", 1.0);
        let twice = format!("Ignoring duplicate entity ClientQuotaEntity(entries={{user={user}}})");
        let combined = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId";
        let strange = "Invalid configuration key connection_creation_rate";
        let large = "Proposed value for producer_byte_rate is too large for a LONG.";
        let table = [
            (vec![], rate(), "Invalid empty client quota entity"),
            (vec![part("group", Some(&user))], rate(), "Unhandled client quota entity type: group"),
            (vec![part("user", Some(&Str::default()))], rate(), "Empty user not supported"),
            (vec![part("user", Some(&user)), part("ip", Some(&address))], rate(), combined),
            (vec![part("ip", Some(&address))], rate(), "Invalid configuration key producer_byte_rate"),
            (vec![part("ip", Some(&nowhere))], rate(), "no.such.host.invalid is not a valid IP or resolvable host."),
            (of_user(), op("connection_creation_rate", 1.0), strange),
            (of_user(), op("producer_byte_rate", 0.0), "Quota producer_byte_rate must be greater than 0"),
            (of_user(), op("producer_byte_rate", 1.5), "producer_byte_rate cannot be a fractional value."),
            (of_user(), op("producer_byte_rate", 1e30), large),
            (of_user(), op("request_percentage", 0.0), "Quota request_percentage must be greater than 0"),
        ];
        for (entity, change, words) in table {
            let told = alter(&mut admin, entity, vec![change]).await;
            let code = ErrorCode(told.error_code);
            assert_eq!((code, told.error_message.as_deref()), (ErrorCode::INVALID_REQUEST, Some(words)));
        }
        let told = alter(&mut admin, of_user(), vec![rate(), rate()]).await;
        assert_eq!(told.error_message.as_deref(), Some(&*twice));
        let remove = OpData { remove: true, ..op("nonsense", 1.0) };
        assert_eq!(alter(&mut admin, of_user(), vec![remove]).await.error_code, 0);
        let entries = vec![EntryData { entity: of_user(), ops: vec![rate()] }];
        let told = admin.call(AlterClientQuotasRequest { entries, validate_only: true }, 1).await;
        assert_eq!(told.entries[0].error_code, 0);

        let mut alice = secured.login("alice").await;
        let told = alter(&mut alice, of_user(), vec![rate()]).await;
        assert_eq!(ErrorCode(told.error_code), ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
        let told = alice.call(DescribeClientQuotasRequest { components: vec![], strict: false }, 1).await;
        let code = ErrorCode(told.error_code);
        assert_eq!((code, told.entries), (ErrorCode::CLUSTER_AUTHORIZATION_FAILED, None));
        assert!(found(&mut admin, vec![exactly("user", &user)], false).await.is_empty());
    });
}

/// Kafka keeps entities in maps. Of an entity that comes twice, the first change is done and the answer is that it
/// comes twice; of two parts of one type, the last is meant; and a quota that is named twice is found before anything
/// else.
#[test]
fn entities_that_come_twice_are_answered_once() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let (user, other) = (secured.target.fresh("user"), secured.target.fresh("user"));
        let entry = |parts: &[(&'static str, &Str)], ops: &[OpData]| EntryData {
            entity: parts.iter().map(|(kind, name)| part(kind, Some(name))).collect(),
            ops: ops.to_vec(),
        };
        let rate = |value| op("consumer_byte_rate", value);
        let entries = vec![
            entry(&[("user", &user)], &[rate(1.0)]),
            entry(&[("user", &user), ("user", &other)], &[rate(9.0)]),
            entry(&[("user", &user)], &[rate(2.0)]),
            entry(&[("client-id", &other), ("user", &user)], &[]),
            entry(&[("nobody", &user)], &[rate(1.0), rate(2.0)]),
        ];

        let told = admin.call(AlterClientQuotasRequest { entries, validate_only: false }, 1).await.entries;

        let mut told: Vec<_> = told
            .iter()
            .map(|entry| {
                let parts = entry.entity.iter().map(|part| format!("{}={}", part.entity_type, show(&part.entity_name)));
                (parts.collect::<Vec<_>>().join(", "), entry.error_message.as_deref().map(str::to_owned))
            })
            .collect();
        told.sort();
        let twice = |parts: &str| Some(format!("Ignoring duplicate entity ClientQuotaEntity(entries={{{parts}}})"));
        let (of_user, nobody) = (format!("user={user}"), format!("nobody={user}"));
        let mut expected = vec![
            (format!("client-id={other}, user={user}"), None),
            (nobody.clone(), twice(&nobody)),
            (of_user.clone(), twice(&of_user)),
            (format!("user={other}"), None),
        ];
        expected.sort();
        assert_eq!(told, expected);
        let limits = async |admin: &mut Wire, name: &Str| loop {
            if let [(_, limits)] = &found(admin, vec![exactly("user", name)], true).await[..] {
                return limits.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(limits(&mut admin, &user).await, [("consumer_byte_rate".into(), 1.0)]);
        assert_eq!(limits(&mut admin, &other).await, [("consumer_byte_rate".into(), 9.0)]);
    });
}

fn show(name: &Option<Str>) -> &str {
    name.as_deref().unwrap_or("null")
}

#[test]
fn filters_that_make_no_sense_are_refused() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let name = Str::from("name");
        let component = |kind: &'static str, match_type, name: Option<&Str>| ComponentData {
            entity_type: kind.into(),
            match_type,
            r#match: name.cloned(),
        };
        let named = |kind| format!("Request specified MATCH_TYPE_{kind}, but also specified a match string.");
        let (default, specified) = (named("DEFAULT"), named("SPECIFIED"));
        let both = "Invalid entity filter component combination. \
                    IP filter component should not be used with user or clientId filter component.";
        let exact = "Request specified MATCH_TYPE_EXACT, but set match string to null.";
        let twice = "Entity type user cannot appear more than once in the filter.";
        let unsupported = (ErrorCode::UNSUPPORTED_VERSION, Some("Unsupported entity type group"));
        let invalid = |words| (ErrorCode::INVALID_REQUEST, Some(words));
        let table = [
            (vec![component("group", 0, Some(&name))], unsupported),
            (vec![component("", 0, Some(&name))], invalid("Invalid empty entity type.")),
            (vec![component("user", 0, None)], invalid(exact)),
            (vec![component("user", 1, Some(&name))], invalid(&default)),
            (vec![component("user", 2, Some(&name))], invalid(&specified)),
            (vec![component("user", 3, None)], invalid("Unknown match type 3")),
            (vec![component("user", 2, None), component("user", 1, None)], invalid(twice)),
            (vec![component("user", 2, None), component("ip", 2, None)], invalid(both)),
        ];

        for (components, expected) in table {
            let told = admin.call(DescribeClientQuotasRequest { components, strict: false }, 1).await;

            assert_eq!((ErrorCode(told.error_code), told.error_message.as_deref()), expected);
            assert_eq!(told.entries, None);
        }
    });
}

#[test]
fn producers_wait_when_they_wrote_too_much() {
    run(async |secured| {
        let topic = secured.target.topic(1).await.name;
        let mut wire = limited(&secured, &topic, vec![op("producer_byte_rate", 1000.0)]).await;
        let first = wire.call(produce(&topic, 9_800, -1), 9).await;
        assert_eq!((first.throttle_time_ms, first.responses[0].partition_responses[0].error_code), (0, 0));
        assert!(muted(&mut wire).await < Duration::from_millis(500));

        let second = wire.call(produce(&topic, 900, -1), 9).await;

        assert_eq!(second.responses[0].partition_responses[0].error_code, 0, "it is written all the same");
        assert!(is_about_a_second(second.throttle_time_ms), "{}", second.throttle_time_ms);
        let muted = muted(&mut wire).await;
        let told = Duration::from_millis(u64::try_from(second.throttle_time_ms).expect("above zero"));
        assert!(muted + Duration::from_millis(150) >= told && muted < told * 2, "{muted:?} {told:?}");
    });
}

#[test]
fn producers_without_acknowledgement_are_muted_too() {
    run(async |secured| {
        let topic = secured.target.topic(1).await.name;
        let mut wire = limited(&secured, &topic, vec![op("producer_byte_rate", 1000.0)]).await;

        wire.send(produce(&topic, 10_800, 0), 9).await;

        let muted = muted(&mut wire).await;
        assert!(muted > Duration::from_millis(600), "{muted:?}");
    });
}

fn fetch(topic: &Str, session: (i32, i32)) -> FetchRequest {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topics = vec![FetchTopic { topic: topic.clone(), partitions: vec![partition], ..FetchTopic::default() }];
    FetchRequest {
        max_bytes: 1 << 20,
        min_bytes: 1,
        max_wait_ms: 100,
        session_id: session.0,
        session_epoch: session.1,
        topics,
        ..FetchRequest::default()
    }
}

#[test]
fn consumers_get_an_empty_answer_when_they_read_too_much() {
    run(async |secured| {
        let topic = secured.target.topic(1).await.name;
        let mut admin = secured.login("admin").await;
        assert_eq!(admin.call(produce(&topic, 6_000, -1), 9).await.responses[0].partition_responses[0].error_code, 0);
        let mut wire = limited(&secured, &topic, vec![op("consumer_byte_rate", 1000.0)]).await;

        let first = wire.call(fetch(&topic, (0, -1)), 12).await;
        let second = wire.call(fetch(&topic, (0, -1)), 12).await;

        assert_eq!((first.throttle_time_ms, first.responses.len()), (0, 1));
        assert_eq!((second.error_code, second.responses.len(), second.session_id), (0, 0, 0));
        assert!((1500..=3500).contains(&second.throttle_time_ms), "{}", second.throttle_time_ms);
        let muted = muted(&mut wire).await;
        assert!(muted > Duration::from_millis(1000), "{muted:?}");
    });
}

#[test]
fn makers_of_topics_are_refused_when_they_made_too_many() {
    run(async |secured| {
        let topic = secured.target.fresh("topic");
        let mut wire = limited(&secured, &topic, vec![op("controller_mutation_rate", 1.0)]).await;
        let make = |name: Str, partitions| CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name,
                num_partitions: partitions,
                replication_factor: 1,
                ..Default::default()
            }],
            timeout_ms: 5_000,
            ..CreateTopicsRequest::default()
        };

        let first = wire.call(make(secured.target.fresh("topic"), 12), 7).await;
        let second = wire.call(make(secured.target.fresh("topic"), 1), 7).await;

        assert_eq!((first.topics[0].error_code, first.throttle_time_ms), (0, 0));
        assert_eq!(ErrorCode(second.topics[0].error_code), ErrorCode::THROTTLING_QUOTA_EXCEEDED);
        assert_eq!(second.topics[0].error_message, None);
        assert!((1..=1500).contains(&second.throttle_time_ms), "{}", second.throttle_time_ms);

        let old = wire.call(make(secured.target.fresh("topic"), 5), 5).await;
        assert_eq!(old.topics[0].error_code, 0, "who does not know the error only waits");
    });
}

/// KIP-124. How much time a request takes is the broker's to say: sooner or later it is too much.
#[test]
fn too_much_time_of_threads_is_throttled() {
    run(async |secured| {
        let topic = secured.target.topic(1).await;
        let mut wire = limited(&secured, &topic.name, vec![op("request_percentage", 0.01)]).await;
        let request = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };

        let mut throttle_ms = 0;
        for _ in 0..500 {
            throttle_ms = wire.call(request.clone(), 12).await.throttle_time_ms;
            if throttle_ms > 0 {
                break;
            }
        }

        assert!((1..=1_000).contains(&throttle_ms), "{throttle_ms}: no longer than a window");
        let muted = muted(&mut wire).await;
        assert!(muted.as_millis() + 50 >= u128::from(throttle_ms.unsigned_abs()), "{muted:?}");
    });
}

/// KIP-124. A fetch that comes when the time is used up is answered without records.
#[test]
fn fetch_without_time_left_is_empty() {
    run(async |secured| {
        let topic = secured.target.topic(1).await;
        let mut wire = limited(&secured, &topic.name, vec![op("request_percentage", 0.01)]).await;
        wire.call(produce(&topic.name, 100, -1), 9).await;
        let partition = FetchPartition { partition_max_bytes: 1 << 20, ..FetchPartition::default() };
        let topics = vec![FetchTopic { topic: topic.name.clone(), partitions: vec![partition], ..Default::default() }];
        let request = FetchRequest { max_bytes: 1 << 20, topics, ..FetchRequest::default() };

        for _ in 0..500 {
            let answer = wire.call(request.clone(), 11).await;
            if answer.throttle_time_ms > 0 {
                assert!(answer.responses.is_empty());
                return;
            }
            assert_eq!(answer.responses.len(), 1);
        }
        panic!("it is never too much");
    });
}

/// KIP-612. Ten in ten seconds are allowed; who comes too often is let in, and sent away unheard.
#[test]
fn who_connects_too_often_is_sent_away() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let (address, _first) = secured.dial_from_elsewhere().await;
        let ip = vec![part("ip", Some(&address.into()))];
        let told = alter(&mut admin, ip.clone(), vec![op("connection_creation_rate", 1.0)]).await;
        assert_eq!(told.error_code, 0, "{:?}", told.error_message);
        // A broker takes a little longer to act by what it knows.
        tokio::time::sleep(Duration::from_millis(1_000)).await;

        let mut served = 0;
        loop {
            let mut wire = Wire::over(secured.dial_from_elsewhere().await.1);
            let sent = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
            if wire.try_send(sent, 12).await.is_err() || wire.byte().await.is_none() {
                break;
            }
            served += 1;
            assert!(served < 30, "it is never too often");
        }

        let remove = OpData { remove: true, ..op("connection_creation_rate", 0.0) };
        assert_eq!(alter(&mut admin, ip, vec![remove]).await.error_code, 0);
        assert!((9..=10).contains(&served), "{served} were served");
    });
}
