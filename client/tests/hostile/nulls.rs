//! BY-14: a peer that answers well, but with null in one field that may be null, in every answer that has it.
//!
//! A session that uses every answer of Kafka that the client reads is held once undisturbed; the fields are what those
//! answers have by their schemas, in the versions that they came in. Where null is no less than what was there, nobody
//! notices. Where it is, the client does without, asks again, or says so; and works as soon as the peer does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::protocol::ApiKey;
use krafka::protocol::schema::{FieldType, MessageSchema};
use krafka::protocol::value::{Structure, Value};
use krafka::testing::FakeCluster;
use krafka::{Environment, ItemResults, Kafka, NewTopic, Record, Result};
use serde_json::Value as Json;
use tokio::time::{Instant, timeout};

use crate::{PANICS, count_panics};

/// How long each step is waited for. What takes longer is given up, as an application would.
const PATIENCE: Duration = Duration::from_secs(150);

/// Each way through the network. Without it no time would pass for a client that asks again and again.
const LATENCY: Duration = Duration::from_millis(1);

/// How often a client asks in a second of a session at most. Without a pause it would be 500 times.
const MOST_REQUESTS_IN_A_SECOND: u64 = 20;

/// A field of an answer, with those around it.
type Field = (ApiKey, String);

/// What became of a session.
#[derive(Debug, Default)]
struct Ending {
    /// Every field that may be null, and whether it ever was not.
    fields: BTreeMap<Field, bool>,
    /// What went wrong, in the order in which it did.
    errors: Vec<String>,
    /// What it read, of what was written and acknowledged.
    read: BTreeSet<String>,
    acknowledged: BTreeSet<String>,
    requests: u64,
    took: Duration,
}

/// What the client has to say where null is always in this field, or once; nothing where it can do without.
///
/// Records that are null are none, as in Kafka's own clients: a consumer of them waits.
fn told(field: &Field, is_once: bool) -> &'static [&'static str] {
    match (field.0, &*field.1, is_once) {
        (ApiKey::Fetch, "responses.partitions.records", false) => &["consume: nothing came of it in 150s"],
        (ApiKey::Metadata, "topics.name", false) => {
            &["administer: describing topic 'new': not done", "produce: topic 'orders' does not exist"]
        }
        (ApiKey::DeleteTopics, "responses.name", false) => &["administer: deleting topic 'new': not done"],
        // It is asked again, and has been done.
        (ApiKey::DeleteTopics, "responses.name", true) => &["administer: topic 'new' does not exist"],
        _ => &[],
    }
}

/// Holds a session, with null in a field of every answer or of the first.
fn hold(null: Option<(&Field, bool)>) -> Ending {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let fake = FakeCluster::builder().nodes(2).racks(["a", "b"]).topic("orders", 2).user("alice", "hunter2");
        let fake = fake.group_initial_rebalance_delay(Duration::ZERO).start_on_pipes();
        fake.when_network().latency(LATENCY, Duration::ZERO);
        let rule = null.map(|((key, path), is_once)| {
            let when = fake.when(*key);
            if is_once { when.times(1) } else { when.forever() }.set(path.as_str(), Json::Null)
        });
        let ending = Mutex::default();
        let start = Instant::now();

        let kafka = connect(&fake);
        let kafka = step(&ending, "connect", kafka.connect()).await;
        if let Some(kafka) = &kafka {
            step(&ending, "administer", administer(kafka)).await;
            step(&ending, "produce", produce(&fake, kafka, &ending)).await;
            step(&ending, "consume", consume(&fake, kafka, &ending)).await;
        }
        let took = start.elapsed();
        let requests = fake.history().len() as u64 + fake.history().dropped();
        rule.inspect(|rule| {
            assert!(rule.hits() > 0, "{null:?}: nobody asked");
            rule.remove();
        });
        let kafka = match kafka {
            Some(kafka) => kafka,
            None => connect(&fake).connect().await.expect("the peer is well"),
        };
        let mut ending: Ending = ending.into_inner().expect("no panic");
        let stored = check(&fake, &kafka).await;
        assert_eq!(stored, ending.acknowledged, "{null:?}: what was acknowledged is there, once: {ending:?}");
        ending.fields = nullable_fields(&fake);
        (ending.took, ending.requests) = (took, requests);
        ending
    })
}

fn connect(fake: &FakeCluster) -> krafka::KafkaBuilder {
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1));
    builder.sasl_scram_sha256("alice", "hunter2")
}

async fn step<T>(ending: &Mutex<Ending>, name: &str, step: impl Future<Output = Result<T>>) -> Option<T> {
    let result = timeout(PATIENCE, step).await;
    let error = match result {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("nothing came of it in {PATIENCE:?}"),
    };
    ending.lock().expect("no panic").errors.push(format!("{name}: {error}"));
    None
}

async fn administer(kafka: &Kafka) -> Result<()> {
    fn all<T>(results: ItemResults<T>) -> Result<Vec<T>> {
        results.into_values().collect()
    }
    let admin = kafka.admin();
    admin.describe_cluster().await?;
    all(admin.create_topics([NewTopic::new("new", 1)]).await?)?;
    all(admin.create_partitions([("new", 2)]).await?)?;
    all(admin.describe_topics(["new"]).await?)?;
    admin.list_topics().await?;
    all(admin.delete_topics(["new"]).await?)?;
    Ok(())
}

/// Writes before and after a leader has moved, of which a broker tells with the address of the next.
async fn produce(fake: &FakeCluster, kafka: &Kafka, ending: &Mutex<Ending>) -> Result<()> {
    let producer = kafka.producer().build().await?;
    for number in 0..8 {
        if number == 4 {
            move_leaders(fake);
        }
        let value = format!("{number}");
        producer.send(Record::new("orders", value.clone()).partition(number % 2)).await?;
        ending.lock().expect("no panic").acknowledged.insert(value);
    }
    producer.close().await
}

async fn consume(fake: &FakeCluster, kafka: &Kafka, ending: &Mutex<Ending>) -> Result<()> {
    let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.subscribe(&["orders"]).await?;
    let all = ending.lock().expect("no panic").acknowledged.len();
    let mut has_moved = false;
    while ending.lock().expect("no panic").read.len() < all {
        for record in consumer.poll(Duration::from_secs(30)).await? {
            let value = String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned();
            ending.lock().expect("no panic").read.insert(value);
        }
        if !std::mem::replace(&mut has_moved, true) {
            move_leaders(fake);
        }
    }
    consumer.commit().await?;
    consumer.close().await?;

    let again = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::None).build().await?;
    again.subscribe(&["orders"]).await?;
    again.poll(Duration::from_secs(1)).await?;
    again.close().await
}

fn move_leaders(fake: &FakeCluster) {
    for partition in 0..2 {
        let now = fake.leader("orders", partition);
        fake.move_leader("orders", partition, if now == Some(1) { 2 } else { 1 });
    }
}

/// Does a bit of everything, now that the peer is well. What a new consumer reads of the records before.
async fn check(fake: &FakeCluster, kafka: &Kafka) -> BTreeSet<String> {
    let stored = fake.records("orders").len();
    let check = async {
        kafka.admin().describe_cluster().await?;
        let producer = kafka.producer().build().await?;
        producer.send(Record::new("orders", "last").partition(0)).await?;
        producer.close().await?;
        let consumer = kafka.consumer("h").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
        consumer.subscribe(&["orders"]).await?;
        let mut read = Vec::new();
        while read.len() <= stored {
            for record in consumer.poll(Duration::from_secs(30)).await? {
                read.push(String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned());
            }
        }
        consumer.close().await?;
        Ok::<_, krafka::KrafkaError>(read)
    };
    let read = timeout(PATIENCE, check).await.expect("the peer is well").expect("the peer is well");
    let values: BTreeSet<String> = read.iter().filter(|value| *value != "last").cloned().collect();
    assert_eq!(values.len() + 1, read.len(), "each once: {read:?}");
    values
}

/// The fields that may be null of all answers so far, in the versions that those came in; and whether one was not.
fn nullable_fields(fake: &FakeCluster) -> BTreeMap<Field, bool> {
    let mut fields = BTreeMap::new();
    for event in fake.history().iter() {
        let Some(response) = &event.response else { continue };
        let note = &mut |path: String, is_set| *fields.entry((event.key, path)).or_default() |= is_set;
        find(response.structure().schema(), Some(response.structure()), event.version, "", note);
    }
    fields
}

fn find(
    schema: &'static MessageSchema,
    structure: Option<&dyn Structure>,
    version: i16,
    around: &str,
    note: &mut dyn FnMut(String, bool),
) {
    for (index, field) in schema.fields.iter().enumerate() {
        if !field.versions.contains(version) {
            continue;
        }
        let path = format!("{around}{}", field.name);
        let value = structure.and_then(|structure| structure.field(index));
        if field.nullable.is_some_and(|versions| versions.contains(version)) {
            note(path.clone(), value.as_ref().is_some_and(|value| !matches!(value, Value::Null)));
        }
        let around = format!("{path}.");
        match (field.field_type, value) {
            (FieldType::Array(FieldType::Struct(schema)), Some(Value::Array(elements))) => {
                for index in 0..elements.count() {
                    let Some(Value::Struct(element)) = elements.element(index) else { continue };
                    find(schema, Some(element), version, &around, note);
                }
            }
            (FieldType::Array(FieldType::Struct(schema)), _) => find(schema, None, version, &around, note),
            (FieldType::Struct(schema), Some(Value::Struct(inner))) => {
                find(schema, Some(inner), version, &around, note);
            }
            (FieldType::Struct(schema), _) => find(schema, None, version, &around, note),
            _ => {}
        }
    }
}

#[test]
fn null_wherever_it_may_be() {
    count_panics();
    let undisturbed = hold(None);
    assert!(undisturbed.errors.is_empty() && undisturbed.read.len() == 8, "{undisturbed:?}");
    let were_set = undisturbed.fields.values().filter(|is_set| **is_set).count();
    assert!(were_set >= 16 && undisturbed.fields.len() >= 25, "{undisturbed:?}");

    for field in undisturbed.fields.keys() {
        for is_once in [false, true] {
            let ending = hold(Some((field, is_once)));

            let told = told(field, is_once);
            assert_eq!(PANICS.get(), 0, "{field:?}: something panicked");
            assert_eq!(ending.errors.len(), told.len(), "{field:?}: {ending:?}");
            assert!(ending.errors.iter().zip(told).all(|(is, told)| is.starts_with(told)), "{field:?}: {ending:?}");
            assert!(!told.is_empty() || ending.read == undisturbed.read, "{field:?}: {ending:?}");
            let most = undisturbed.requests + MOST_REQUESTS_IN_A_SECOND * ending.took.as_secs();
            assert!(ending.requests <= most, "{field:?}: more than {most} requests: {ending:?}");
        }
    }
}
