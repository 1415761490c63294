//! Stories of producers.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::{Compression, KrafkaError, Record};
use krafka_protocol::{ApiKey, ErrorCode};

use crate::world::PATIENCE;
use crate::{Result, World, ensure, workload};

/// One record, with everything a record can have, through every room of the house.
pub async fn one_record_through_every_room(world: &World) -> Result<()> {
    let topic = world.topic("first").create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().build().await?;
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    let record =
        Record::new(&*topic.name, "value").key("key").header("name", "content").timestamp_ms(1_700_000_000_123);

    let sent = world.calls().within(PATIENCE, "send", producer.send(record)).await??;
    world.calls().within(PATIENCE, "assign", consumer.assign(&topic.name, topic.all())).await??;
    let read = world.calls().within(PATIENCE, "recv", consumer.recv()).await??;

    ensure!((sent.partition, sent.offset) == (0, 0), "the first record got {}@{}", sent.partition, sent.offset);
    ensure!((&*read.topic, read.partition, read.offset) == (&*topic.name, 0, 0), "read from {}", read.topic);
    ensure!(read.key.as_deref() == Some(b"key"), "the key came back as {:?}", read.key);
    ensure!(read.value.as_deref() == Some(b"value"), "the value came back as {:?}", read.value);
    ensure!(read.timestamp_ms == 1_700_000_000_123, "the timestamp came back as {}", read.timestamp_ms);
    let headers: Vec<_> = read.headers.iter().map(|header| (header.name(), header.value)).collect();
    let expected = [("name".into(), Some(b"content".as_slice()))];
    ensure!(headers == expected, "the headers came back as {headers:?}");
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    world.calls().within(PATIENCE, "close", producer.close()).await??;
    Ok(())
}

/// Every codec that this build can encode, and sizes from nothing to more than a batch.
pub async fn every_codec_round_trips(world: &World) -> Result<()> {
    let kafka = world.kafka().await?;
    for codec in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        let topic = world.topic(&format!("codec-{codec}")).create().await?;
        let producer = kafka.producer().compression(codec).build().await?;
        let values: Vec<String> =
            [0, 1, 100, 15_000, 40_000].iter().map(|length| format!("{codec}-{}", "x".repeat(*length))).collect();

        for value in &values {
            let call = producer.send(Record::new(&*topic.name, value.clone()));
            world.calls().within(PATIENCE, "send", call).await??;
        }
        let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
        world.calls().within(PATIENCE, "assign", consumer.assign(&topic.name, topic.all())).await??;

        for value in &values {
            let read = world.calls().within(PATIENCE, "recv", consumer.recv()).await??;
            let same = read.value.as_deref() == Some(value.as_bytes());
            ensure!(same, "{codec}: a value of {} bytes came back otherwise", value.len());
        }
        world.calls().within(PATIENCE, "close", consumer.close()).await??;
        world.calls().within(PATIENCE, "close", producer.close()).await??;
    }
    Ok(())
}

/// A leader that moves while batches are in flight loses nothing and repeats nothing.
pub async fn leader_moves_mid_flight(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(3).create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().batch_size(2_000).build().await?;

    let sending = workload::send(world, &producer, &topic, "a", 1..=5_000);
    for (acked, partition) in [(500, 0), (1_500, 1), (2_500, 0), (3_500, 2)] {
        sending.acked(acked).await?;
        let fake = world.fake()?;
        let from = fake.leader(&topic.name, partition);
        if let Some(to) = fake.live_nodes().into_iter().find(|node| Some(*node) != from) {
            fake.move_leader(&topic.name, partition, to);
        }
    }

    sending.finish().await?.all_acked()
}

/// The broker writes a batch and the answer is lost: the retry must not write it again, and must learn its place.
pub async fn lost_produce_response(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().build().await?;
    let fake = world.fake()?;
    let rule = fake.when(ApiKey::Produce).times(3).after_handling().drop_connection();

    let sent = workload::send(world, &producer, &topic, "a", 1..=200).finish().await?;

    sent.all_acked()?;
    ensure!(rule.hits() == 3, "3 answers should have been lost, {} were", rule.hits());
    Ok(())
}

/// Small batches, five in flight, and every third Produce is refused: the order in the log is the order of sending.
pub async fn a_failing_batch_keeps_the_order(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(2).create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().batch_size(400).linger(Duration::ZERO).build().await?;
    let fake = world.fake()?;
    for nth in [2, 3, 5, 8, 13, 21] {
        fake.when(ApiKey::Produce).nth(nth).reply_error(ErrorCode::NOT_ENOUGH_REPLICAS);
    }

    workload::send(world, &producer, &topic, "a", 1..=1_000).finish().await?.all_acked()
}

/// Each of three Produce answers asks for two seconds of silence on its connection.
pub async fn throttled_producer(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let rule = world.fake()?.when(ApiKey::Produce).times(3).throttle(Duration::from_secs(2));
    let began = world.elapsed();

    // One at a time, so that each record meets the throttle that the one before it drew.
    for number in 1..=4 {
        workload::send(world, &producer, &topic, "a", number..=number).finish().await?.all_acked()?;
    }

    let took = world.elapsed() - began;
    ensure!(rule.hits() == 3, "3 answers should have been throttled, {} were", rule.hits());
    // A connection that a drawn fault resets takes its throttle with it.
    let is_exact = world.kind() == crate::Kind::Scripted;
    ensure!(!is_exact || took >= Duration::from_secs(6), "three throttles of 2 s took {took:?} in all");
    Ok(())
}

/// With a long linger, only the flush can have sealed the batches.
pub async fn flush_waits_for_what_was_before(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(3).create().await?;
    let kafka = world.kafka().await?;
    let linger = Duration::from_secs(60);
    let producer = kafka.producer().linger(linger).build().await?;
    let began = world.elapsed();

    let mut handles = Vec::new();
    for number in 0..50 {
        let record = Record::new(&*topic.name, format!("a:{number}")).key(number.to_string());
        handles.push(world.calls().within(PATIENCE, "enqueue", producer.enqueue(record)).await??);
    }
    world.calls().within(PATIENCE, "flush", producer.flush()).await??;

    for handle in handles {
        world.calls().within(Duration::from_millis(1), "a delivery after flush", handle).await??;
    }
    ensure!(world.elapsed() - began < linger, "flush waited for the linger");
    world.calls().within(PATIENCE, "close", producer.close()).await??;
    Ok(())
}

/// All nodes crash. What was never written says so, and what may have been says so, too.
pub async fn gone_cluster_fails_definitely(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let kafka = world.kafka_builder().request_timeout(Duration::from_secs(2)).connect().await?;
    let timeout = Duration::from_secs(5);
    let producer = kafka.producer().linger(Duration::ZERO).delivery_timeout(timeout).build().await?;
    world.calls().within(PATIENCE, "send", producer.send(Record::new(&*topic.name, "a:1"))).await??;
    let fake = world.fake()?;

    // The first is swallowed by a living broker: nobody can know. The second meets nobody at all.
    let rule = fake.when(ApiKey::Produce).forever().silence();
    let began = world.elapsed();
    let swallowed = world.calls().within(PATIENCE, "send", producer.send(Record::new(&*topic.name, "a:2"))).await?;
    let took = world.elapsed() - began;
    rule.remove();
    fake.nodes().into_iter().for_each(|node| fake.crash(node));
    let unheard = world.calls().within(PATIENCE, "send", producer.send(Record::new(&*topic.name, "a:3"))).await?;
    fake.nodes().into_iter().for_each(|node| fake.restart(node));

    let maybe = matches!(swallowed, Err(KrafkaError::DeliveryTimeout { possibly_written: true, .. }));
    ensure!(maybe, "a record that a broker swallowed gave {swallowed:?}");
    ensure!(took >= timeout && took < timeout * 2, "the delivery timeout of {timeout:?} took {took:?}");
    let never = matches!(unheard, Err(KrafkaError::DeliveryTimeout { possibly_written: false, .. }));
    ensure!(never, "a record that no broker heard of gave {unheard:?}");
    Ok(())
}

/// Batches of many records against a topic that takes little more than one record at a time.
pub async fn too_large_batches_are_split(world: &World) -> Result<()> {
    let topic = world.topic("small").config("max.message.bytes", "200").create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().batch_size(16_384).linger(Duration::from_millis(50)).build().await?;

    workload::send(world, &producer, &topic, "a", 1..=300).finish().await?.all_acked()
}
