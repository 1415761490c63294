//! What the client knows of topics: when it asks, how often, and what it does about what changed.

use std::collections::BTreeSet;
use std::time::Duration;

use krafka::protocol::ApiKey;
use krafka::protocol::api::describe_topic_partitions::{Cursor, DescribeTopicPartitionsRequest, TopicRequest};

use super::road::Road;
use super::{
    AutoOffsetReset, KrafkaError, NewTopic, Record, Result, Stage, client, ensure, now, refused, topic, until, within,
};

const SECOND: Duration = Duration::from_secs(1);

/// MD-01: those who wait for the same topic ask once.
pub(super) async fn who_waits_for_one_topic_asks_once(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let producer = std::sync::Arc::new(kafka.producer().build().await?);
    let before = road.heard_of(ApiKey::Metadata).len();

    let sending: Vec<_> = (0..100).map(|_| (producer.clone(), Record::new(&*name, "tea"))).collect();
    let sending: Vec<_> = sending
        .into_iter()
        .map(|(producer, record)| tokio::spawn(async move { producer.send(record).await }))
        .collect();
    for sent in sending {
        sent.await??;
    }

    let asked = road.heard_of(ApiKey::Metadata).len() - before;
    ensure!(asked == 1, "a hundred records of one topic took {asked} Metadata requests");
    Ok(())
}

/// MD-02: a record for a topic that is not there yet waits for it, and asks no more often than the backoff allows.
pub(super) async fn a_topic_that_comes_late_is_waited_for(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let producer = kafka.producer().max_block(20 * SECOND).build().await?;
    let name = stage.name("late");
    let before = road.heard_of(ApiKey::Metadata).len();
    let sending = tokio::spawn({
        let (name, record) = (name.clone(), Record::new(&*name, "tea"));
        async move { (producer.send(record).await, name) }
    });
    tokio::time::sleep(2 * SECOND).await;
    let asked = road.heard_of(ApiKey::Metadata).len() - before;

    for made in client(stage)?.connect().await?.admin().create_topics([NewTopic::new(&*name, 1)]).await?.into_values() {
        made?;
    }
    let (sent, _) = within(10 * SECOND, "the record", sending).await??;

    let offset = sent?.offset;
    ensure!(offset == 0, "offset {offset}");
    ensure!((2..=25).contains(&asked), "{asked} Metadata requests in two seconds");
    Ok(())
}

/// MD-03: one for a topic that never comes fails at its deadline: not before, and not after.
pub(super) async fn a_topic_that_never_comes_is_given_up_at_the_deadline(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let producer = kafka.producer().max_block(2 * SECOND).build().await?;
    let name = stage.name("never");
    let began = now();

    let sent = within(10 * SECOND, "the record", producer.send(Record::new(&*name, "tea"))).await?;

    let (error, took) = (refused(sent, "a record for no topic")?, began.elapsed());
    let is_unknown = matches!(&error, KrafkaError::UnknownTopic { topic } if **topic == *name);
    ensure!(is_unknown, "{error:?}");
    ensure!((2 * SECOND - SECOND / 10..4 * SECOND).contains(&took), "it was given up after {took:?}");
    Ok(())
}

/// MD-04: a name that no topic can have is refused at once.
pub(super) async fn a_name_that_cannot_be_is_refused_at_once(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let producer = kafka.producer().max_block(20 * SECOND).build().await?;

    for name in ["a/b", "tea milk", "..", &"x".repeat(250)] {
        let sent = within(2 * SECOND, "the record", producer.send(Record::new(name, "tea"))).await?;
        let error = refused(sent, "a record for a topic of that name")?;
        ensure!(!error.is_retriable(), "'{name}': {error:?}");
    }
    Ok(())
}

/// MD-11: a topic that was deleted and made again is another one: it is written and read from its beginning.
pub(super) async fn a_topic_that_is_made_again_is_a_new_one(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.metadata_max_age(SECOND).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.assign(&name, vec![0]).await?;
    for _ in 0..20 {
        producer.send(Record::new(&*name, "old")).await?;
        within(10 * SECOND, "recv", consumer.recv()).await??;
    }

    let admin = kafka.admin();
    for gone in admin.delete_topics([&*name]).await?.into_values() {
        gone?;
    }
    let made = async || {
        let made = admin.create_topics([NewTopic::new(&*name, 1)]).await.ok()?.into_values().next()?;
        made.ok()
    };
    until("the topic is made again", made).await?;

    let sent = within(20 * SECOND, "send", producer.send(Record::new(&*name, "new"))).await??;
    ensure!(sent.offset == 0, "offset {} in a new topic", sent.offset);
    let record = within(20 * SECOND, "recv", consumer.recv()).await??;
    ensure!(record.offset == 0 && record.value.as_deref() == Some(b"new"), "{record:?}");
    Ok(())
}

/// MD-12: partitions that are added are written to and read from, by who reads alone and by groups.
pub(super) async fn added_partitions_are_used(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.metadata_max_age(SECOND).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    producer.send(Record::new(&*name, "first")).await?;
    let consumer = kafka.consumer(stage.name("group")).auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.subscribe(&[&name]).await?;
    within(20 * SECOND, "recv", consumer.recv()).await??;

    for grown in kafka.admin().create_partitions([(&name, 4)]).await?.into_values() {
        grown?;
    }
    let mut written = BTreeSet::new();
    let all = async || {
        // Records without a key go to the same partition until they make a batch.
        let sent = producer.send(Record::new(&*name, vec![7; 20_000])).await.ok()?;
        written.insert(sent.partition);
        (written.len() == 4).then_some(())
    };
    until("all four partitions are written to", all).await?;

    let mut read = BTreeSet::new();
    let all = async || {
        read.extend(consumer.poll(SECOND).await.ok()?.into_iter().map(|record| record.partition));
        (read.len() == 4).then_some(())
    };
    until("all four partitions are read by the group", all).await?;
    ensure!(consumer.assignment().len() == 4, "{:?}", consumer.assignment());
    Ok(())
}

/// MD-15: who is idle asks once in each age, give or take the jitter, and for nothing else.
pub(super) async fn the_idle_ask_once_in_each_age(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.metadata_max_age(SECOND).environment(road.environment()).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let producer = kafka.producer().build().await?;
    producer.send(Record::new(&*name, "tea")).await?;
    let before = road.heard().len();

    tokio::time::sleep(6 * SECOND).await;

    let asked = road.heard().split_off(before);
    let keys: BTreeSet<_> = asked.iter().map(|heard| heard.key).collect();
    let for_metadata = asked.iter().filter(|heard| heard.is(ApiKey::Metadata)).count();
    ensure!((4..=9).contains(&for_metadata), "{for_metadata} Metadata requests in six ages");
    let known = BTreeSet::from([ApiKey::Metadata as i16, ApiKey::ApiVersions as i16]);
    ensure!(keys.is_subset(&known), "an idle client asked {keys:?}");
    Ok(())
}

/// MD-18: a topic that a producer sends nothing to for a while is asked about no more; who sends to it again finds it
/// as it is by then.
pub(super) async fn topics_that_rest_are_not_asked_about(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.metadata_max_age(SECOND).environment(road.environment()).connect().await?;
    let busy = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let idle = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let producer = kafka.producer().metadata_max_idle(5 * SECOND).build().await?;
    // How often each topic was asked about while only one was sent to for so long.
    let asked_while_sending = async |seconds: u32| -> Result<[usize; 2]> {
        let before = road.heard_of(ApiKey::Metadata).len();
        for _ in 0..2 * seconds {
            producer.send(Record::new(&*busy, "tea")).await?;
            tokio::time::sleep(SECOND / 2).await;
        }
        let asked = road.heard_of(ApiKey::Metadata).split_off(before);
        let about = |name: &str| asked.iter().filter(|heard| names(&heard.frame, name)).count();
        Ok([about(&busy), about(&idle)])
    };
    producer.send(Record::new(&*idle, "tea")).await?;

    let [_, while_fresh] = asked_while_sending(3).await?;
    asked_while_sending(3).await?;
    let [of_busy, of_idle] = asked_while_sending(4).await?;

    ensure!(while_fresh >= 1, "a topic that was just sent to was not kept fresh");
    ensure!(of_busy >= 2 && of_idle == 0, "asked {of_busy} times about the busy topic, {of_idle} times about the idle");
    let other = client(stage)?.connect().await?;
    for grown in other.admin().create_partitions([(&idle, 3)]).await?.into_values() {
        grown?;
    }
    let mut partitions = BTreeSet::new();
    until("all partitions are written to", async || {
        for key in 0..20 {
            let record = Record::new(&*idle, "tea").key(format!("{key}"));
            partitions.insert(producer.send(record).await.ok()?.partition);
        }
        (partitions.len() == 3).then_some(())
    })
    .await
}

/// Whether a request has this text in it.
fn names(frame: &[u8], text: &str) -> bool {
    frame.windows(text.len()).any(|window| window == text.as_bytes())
}

/// MD-24: a topic is described in pieces, each partition once; from one that is gone by then it goes on with the next
/// (KIP-966).
pub(super) async fn descriptions_in_pieces_tell_each_partition_once(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let one = topic(stage, |name| NewTopic::new(name, 7)).await?;
    let other = topic(stage, |name| NewTopic::new(name, 5)).await?;
    let connection = kafka.broker_connection(1).await?;
    let names = [one, other];
    let asked = |cursor| DescribeTopicPartitionsRequest {
        topics: names.iter().map(|name| TopicRequest { name: name.as_str().into() }).collect(),
        response_partition_limit: 3,
        cursor,
    };

    let (mut told, mut cursor, mut pieces) = (Vec::new(), None, 0);
    loop {
        let answer = connection.call(asked(cursor.take())).await?;
        for topic in answer.topics {
            let name = topic.name.unwrap_or_default().to_string();
            told.extend(topic.partitions.iter().map(|partition| (name.clone(), partition.partition_index)));
        }
        pieces += 1;
        let Some(next) = answer.next_cursor else { break };
        cursor = Some(Cursor { topic_name: next.topic_name, partition_index: next.partition_index });
        ensure!(pieces < 20, "the pieces have no end");
    }

    let expected: Vec<_> = names
        .iter()
        .zip([7, 5])
        .flat_map(|(name, partitions)| (0..partitions).map(|partition| (name.clone(), partition)))
        .collect();
    ensure!(told == expected, "told {told:?}");
    ensure!(pieces == 4, "{pieces} pieces");
    let first = connection.call(asked(None)).await?;
    for gone in kafka.admin().delete_topics([&*names[0]]).await?.into_values() {
        gone?;
    }
    let rest = async || {
        let answer = connection.call(asked(first.next_cursor.clone())).await.ok()?;
        let last = answer.topics.into_iter().find(|topic| topic.name.as_deref() == Some(&*names[1]))?;
        (last.partitions.first()?.partition_index == 0).then_some(())
    };
    until("the topic behind the one that is gone is told of", rest).await
}

/// MD-26: where brokers make topics that somebody asks for, the client's word decides whether this one does.
pub(super) async fn topics_are_made_by_themselves_for_who_wants_it(stage: &Stage) -> Result<()> {
    let (willing, other) =
        (client(stage)?.allow_auto_create_topics(true), client(stage)?.allow_auto_create_topics(false));
    let (willing, other) = (willing.connect().await?, other.connect().await?);
    let (made, unmade) = (stage.name("made"), stage.name("unmade"));

    let producer = willing.producer().max_block(20 * SECOND).build().await?;
    let sent = within(20 * SECOND, "send", producer.send(Record::new(&*made, "tea"))).await??;
    ensure!(sent.offset == 0, "offset {}", sent.offset);
    let producer = other.producer().max_block(SECOND).build().await?;
    let error = refused(producer.send(Record::new(&*unmade, "tea")).await, "a record for no topic")?;

    ensure!(matches!(error, KrafkaError::UnknownTopic { .. }), "{error:?}");
    let names: Vec<_> = other.admin().list_topics().await?.into_iter().map(|topic| topic.name).collect();
    ensure!(names.iter().any(|name| **name == *made) && !names.iter().any(|name| **name == *unmade), "{names:?}");
    let described = willing.admin().describe_topics([&*unmade]).await?.into_values().next();
    ensure!(matches!(described, Some(Err(_))), "a description made a topic: {described:?}");
    Ok(())
}
