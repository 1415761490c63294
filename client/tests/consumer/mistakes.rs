//! What a consumer refuses, and that a refusal harms nobody else.

use std::time::Duration;

use krafka::{KrafkaError, TopicPartition};

use super::{SOON, World, take, values};

fn message(refused: krafka::Result<()>) -> String {
    let error = refused.expect_err("it is refused");
    assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test(start_paused = true)]
async fn names_that_no_topic_can_have_are_refused_where_they_are_given() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.kafka.consumer("g").build().await.expect("the settings are valid");

    for name in ["", "..", "two words", &"x".repeat(70_000)] {
        let refusals = [
            message(consumer.subscribe(&["t", name]).await),
            message(consumer.assign(name, vec![0]).await),
            message(consumer.commit_offsets([(TopicPartition::new(name, 0), 1)]).await),
        ];
        assert!(refusals.iter().all(|text| text.contains("is no topic name")), "{refusals:?}");
    }

    assert!(consumer.subscription().is_empty());
    // The handle is as good as before: a name that cannot be encoded has not come into what all its clients share.
    world.produce("t", 0, &["a"]).await;
    assert_eq!(values(&take(&world.reader("t", &[0]).await, 1).await), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn reading_nothing_is_a_mistake_and_no_wait() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.kafka.consumer("g").build().await.expect("the settings are valid");

    let never_subscribed = consumer.recv().await.expect_err("there is nothing to read");
    consumer.subscribe(&["t"]).await.expect("subscribed");
    let subscribed = consumer.poll(Duration::from_millis(1)).await;
    consumer.unsubscribe().await.expect("unsubscribed");
    let no_longer = consumer.poll(Duration::from_secs(3600)).await.expect_err("there is nothing to read any more");

    assert!(subscribed.is_ok(), "{subscribed:?}");
    for error in [never_subscribed, no_longer] {
        assert!(matches!(error, KrafkaError::IllegalState { .. }), "{error:?}");
        assert!(error.to_string().contains("call subscribe or assign"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn negative_partitions_are_refused_where_they_are_given() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.kafka.consumer("g").build().await.expect("the settings are valid");

    assert!(message(consumer.assign("t", vec![0, -1]).await).contains("no partition -1"));
    assert!(
        message(consumer.commit_offsets([(TopicPartition::new("t", -1), 1)]).await).contains("t--1 is no partition")
    );
    assert!(consumer.assignment().is_empty());
}

#[tokio::test(start_paused = true)]
async fn committed_offsets_are_not_told_after_closing() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.kafka.consumer("g").build().await.expect("the settings are valid");
    consumer.close().await.expect("closed");

    let error = consumer.committed(&[TopicPartition::new("t", 0)]).await.expect_err("it is closed");

    assert!(matches!(error, KrafkaError::Closed { .. }), "{error:?}");
}

/// [`Duration::MAX`] is how Rust says "for ever".
#[tokio::test(start_paused = true)]
async fn for_ever_is_a_time_like_any_other() {
    const FOR_EVER: Duration = Duration::MAX;
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let consumer = world.kafka.consumer("g").auto_offset_reset(krafka::consumer::AutoOffsetReset::Earliest);
    let consumer = consumer.max_poll_interval(FOR_EVER).auto_commit_interval(FOR_EVER).fetch_max_wait(FOR_EVER);
    let consumer = consumer.retry_backoff(FOR_EVER).api_timeout(FOR_EVER).close_timeout(FOR_EVER);
    let consumer = consumer.build().await.expect("the settings are valid");
    consumer.subscribe(&["t"]).await.expect("subscribed");

    let records = consumer.poll(FOR_EVER).await.expect("records");

    assert_eq!(values(&records), ["a"]);
    assert_eq!(consumer.position("t", 0).await.expect("it is known"), 1);
    consumer.commit().await.expect("committed");
    consumer.committed(&[TopicPartition::new("t", 0)]).await.expect("there is a coordinator");
    consumer.close().await.expect("closed");
}

/// What could not be sent, or not sent back, is refused before anything is: a member's id is made of the client's.
#[tokio::test(start_paused = true)]
async fn ids_that_the_protocol_cannot_carry_are_refused_where_they_are_given() {
    let world = World::new(&[("t", 1)]).await;
    let connect = async |length: usize| {
        let environment = krafka::Environment::new(world.fake.pipes(), 1);
        let builder = krafka::Kafka::builder(world.fake.bootstrap()).environment(environment);
        builder.client_id("c".repeat(length)).connect().await.expect("the protocol carries it")
    };
    let refused = async |builder: krafka::consumer::ConsumerBuilder| message(builder.build().await.map(drop));

    let long = refused(connect(32_731).await.consumer("g")).await;
    assert!(long.contains("client_id") && long.contains("32730"), "{long}");
    connect(32_767).await.consumer_without_group().build().await.expect("without a group there is no member");
    let group = refused(world.kafka.consumer("g".repeat(32_768))).await;
    assert!(group.contains("the group's name") && group.contains("32767"), "{group}");
    for id in ["two words".to_owned(), "x".repeat(250)] {
        let id = refused(world.kafka.consumer("g").group_instance_id(id)).await;
        assert!(id.contains("is no group_instance_id"), "{id}");
    }
    let consumer = world.kafka.consumer("g").build().await.expect("the settings are valid");
    let offset = krafka::consumer::OffsetAndMetadata::new(1).metadata("x".repeat(32_768));
    let metadata = message(consumer.commit_offsets([(TopicPartition::new("t", 0), offset)]).await);
    assert!(metadata.contains("the metadata of t-0") && metadata.contains("32767"), "{metadata}");

    let consumer = connect(32_730).await.consumer("g").build().await.expect("the longest that there may be");
    consumer.subscribe(&["t"]).await.expect("a topic's name");
    consumer.poll(SOON).await.expect("no error");
    assert_eq!(consumer.assignment().len(), 1, "it has joined");
}
