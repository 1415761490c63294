//! How clients end: closed, dropped, a hundred times over.

use std::sync::Arc;
use std::time::Duration;

use super::road::Road;
use super::{
    AutoOffsetReset, KrafkaError, NODES, NewTopic, Record, Result, Stage, client, ensure, now, refused, topic, until,
    within,
};

const SECOND: Duration = Duration::from_secs(1);

/// CB-31: closing ends what waits for an answer, and every connection, within its bound.
pub(super) async fn closing_ends_what_waits(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let quiet = topic(stage, |name| NewTopic::new(name, NODES)).await?;
    let name = topic(stage, |name| NewTopic::new(name, NODES)).await?;
    let consumer = kafka.consumer_without_group().fetch_max_wait(20 * SECOND).build().await?;
    consumer.assign(&quiet, (0..NODES).collect()).await?;
    let consumer = Arc::new(consumer);
    let waiting = tokio::spawn({
        let consumer = consumer.clone();
        async move { consumer.recv().await }
    });
    let producer = kafka.producer().linger(Duration::from_secs(60)).build().await?;
    let buffered = producer.enqueue(Record::new(&*name, "tea")).await?;
    tokio::time::sleep(SECOND / 2).await;
    ensure!(road.open() > 0, "no connection is open");

    let began = now();
    within(10 * SECOND, "closing the producer", producer.close()).await??;
    within(10 * SECOND, "closing the consumer", consumer.close()).await??;
    kafka.close();

    within(SECOND, "the record", buffered).await??;
    let received = within(5 * SECOND, "recv", waiting).await??;
    ensure!(matches!(received, Err(KrafkaError::Closed { .. })), "recv gave {received:?}");
    until("all sockets are closed", async || (road.open() == 0).then_some(())).await?;
    let took = began.elapsed();
    ensure!(took < 8 * SECOND, "closing took {took:?}");
    Ok(())
}

/// LC-02: a client that is dropped with all its works takes its connections with it.
pub(super) async fn dropped_clients_close_their_sockets(stage: &Stage) -> Result<()> {
    let road = Road::default();
    {
        let kafka = client(stage)?.environment(road.environment()).connect().await?;
        let name = topic(stage, |name| NewTopic::new(name, NODES)).await?;
        let producer = kafka.producer().build().await?;
        producer.send(Record::new(&*name, "tea")).await?;
        let consumer = kafka.consumer(stage.name("group")).auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
        consumer.subscribe(&[&name]).await?;
        within(20 * SECOND, "recv", consumer.recv()).await??;
        ensure!(road.open() > 0, "no connection is open");
    }

    until("all sockets are closed", async || (road.open() == 0).then_some(())).await
}

/// LC-03: closing twice is closing once; what is asked of a closed client is refused as such.
pub(super) async fn closing_twice_is_closing_once(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let (producer, consumer) = (kafka.producer().build().await?, kafka.consumer(stage.name("group")).build().await?);
    consumer.subscribe(&[&name]).await?;
    producer.send(Record::new(&*name, "tea")).await?;

    let (one, other) = tokio::join!(producer.close(), producer.close());
    let (third, fourth) = tokio::join!(consumer.close(), consumer.close());
    kafka.close();
    kafka.close();

    for closed in [one, other, third, fourth, producer.close().await, consumer.close().await] {
        closed?;
    }
    for error in [
        refused(producer.send(Record::new(&*name, "late")).await, "a send")?,
        refused(consumer.poll(SECOND).await, "a poll")?,
        refused(kafka.admin().describe_cluster().await, "a description")?,
    ] {
        ensure!(matches!(error, KrafkaError::Closed { .. }), "{error:?}");
    }
    Ok(())
}

/// LC-06: a client that comes and goes leaves nothing behind.
pub(super) async fn coming_and_going_leaves_nothing(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let come_and_go = async || -> Result<()> {
        let kafka = client(stage)?.environment(road.environment()).connect().await?;
        kafka.admin().describe_cluster().await?;
        kafka.close();
        Ok(())
    };
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..5 {
        come_and_go().await?;
    }
    until("all sockets are closed", async || (road.open() == 0).then_some(())).await?;
    let before = tasks();

    for _ in 0..100 {
        come_and_go().await?;
    }

    until("all sockets are closed", async || (road.open() == 0).then_some(())).await?;
    // The fake has tasks of its own, one for each connection, which end a moment later.
    until("all tasks have ended", async || (tasks() <= before + 5).then_some(())).await
}

/// LC-07: of two that share a handle, one closes, and the other works on.
pub(super) async fn who_shares_a_handle_outlives_the_other(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let (one, other) = (kafka.producer().build().await?, kafka.producer().build().await?);
    one.send(Record::new(&*name, "tea")).await?;
    other.send(Record::new(&*name, "milk")).await?;
    let dials = road.dials().len();

    one.close().await?;
    let third = other.send(Record::new(&*name, "sugar")).await?;
    let described = kafka.admin().describe_cluster().await;

    ensure!(third.offset == 2 && described.is_ok(), "offset {}, {described:?}", third.offset);
    let dialled = road.dials().split_off(dials);
    ensure!(dialled.len() <= 1, "connections were made anew: {dialled:?}");
    Ok(())
}
