//! What a consumer asks of brokers, and what it makes of their errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use krafka::consumer::{AutoOffsetReset, Consumer};
use krafka::{KrafkaError, TopicPartition};
use krafka_protocol::api::fetch::{FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData};
use krafka_protocol::compression::Compression;
use krafka_protocol::{AnyResponse, ApiKey, Bytes, ErrorCode, FetchRequest};

use super::{SOON, World, numbers, take, texts, values};

#[tokio::test(start_paused = true)]
async fn a_session_names_only_what_changed() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;
    world.produce("t", 0, &["a"]).await;
    take(&consumer, 1).await;

    consumer.poll(SOON).await.expect("no error");

    let history = world.fake.history();
    let sessions: Vec<_> = history.requests::<FetchRequest>().map(|fetch| fetch.session_epoch).collect();
    let last = history.requests::<FetchRequest>().next_back().expect("fetches");
    assert_eq!(sessions[..3], [0, 1, 2]);
    assert!(last.topics.is_empty() && last.forgotten_topics_data.is_empty(), "{last:?}");
}

/// An empty partition that was ready a moment earlier would otherwise hold up the others for a whole wait.
#[tokio::test(start_paused = true)]
async fn all_partitions_whose_offsets_came_together_are_fetched_together() {
    let world = World::new(&[("t", 3)]).await;
    let node = world.fake.leader("t", 0).expect("a leader");
    for partition in [1, 2] {
        world.fake.move_leader("t", partition, node);
    }
    let consumer = world.reader("t", &[0, 1, 2]).await;

    consumer.poll(SOON).await.expect("no error");

    let history = world.fake.history();
    let first = history.requests::<FetchRequest>().next().expect("fetches");
    assert_eq!(first.topics[0].partitions.len(), 3, "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_is_made_anew_and_nothing_is_lost_or_doubled() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;
    world.produce("t", 0, &["a"]).await;
    take(&consumer, 1).await;

    for code in [ErrorCode::FETCH_SESSION_ID_NOT_FOUND, ErrorCode::INVALID_FETCH_SESSION_EPOCH] {
        let rule = world.fake.when(ApiKey::Fetch).reply_error(code);
        rule.wait(1).await;
        world.produce("t", 0, &["b"]).await;
        assert_eq!(values(&take(&consumer, 1).await), ["b"], "after {code}");
    }

    assert_eq!(consumer.position("t", 0).await.expect("a position"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_paused_partition_is_forgotten_and_comes_back() {
    let world = World::new(&[("t", 2)]).await;
    let node = world.fake.leader("t", 0).expect("a leader");
    world.fake.move_leader("t", 1, node);
    let consumer = world.reader("t", &[0, 1]).await;
    let partition = [TopicPartition::new("t", 1)];
    consumer.poll(SOON).await.expect("no error");

    consumer.pause(&partition).expect("assigned");
    consumer.poll(SOON).await.expect("no error");
    let history = world.fake.history();
    let forgotten = history.requests::<FetchRequest>().flat_map(|fetch| &fetch.forgotten_topics_data).count();
    consumer.resume(&partition).expect("assigned");
    world.produce("t", 1, &["a"]).await;

    assert_eq!(forgotten, 1);
    assert_eq!(values(&take(&consumer, 1).await), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_sessions() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;
    consumer.poll(SOON).await.expect("no error");

    consumer.close().await.expect("closed");

    let history = world.fake.history();
    let last = history.requests::<FetchRequest>().next_back().expect("fetches");
    assert_eq!(last.session_epoch, -1);
}

/// LE-06, LE-07, LE-22, LE-23.
///
/// Every code that a leader may answer for a partition: the consumer waits, refreshes, and goes on. It never spins.
#[tokio::test(start_paused = true)]
async fn partition_errors_are_backed_off_and_healed() {
    let codes = [
        ErrorCode::NOT_LEADER_OR_FOLLOWER,
        ErrorCode::FENCED_LEADER_EPOCH,
        ErrorCode::UNKNOWN_LEADER_EPOCH,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::UNKNOWN_TOPIC_ID,
        ErrorCode::INCONSISTENT_TOPIC_ID,
        ErrorCode::KAFKA_STORAGE_ERROR,
        ErrorCode::REPLICA_NOT_AVAILABLE,
        ErrorCode::OFFSET_NOT_AVAILABLE,
        ErrorCode::CORRUPT_MESSAGE,
        ErrorCode::UNKNOWN_SERVER_ERROR,
    ];
    for code in codes {
        let world = World::new(&[("t", 1)]).await;
        world.produce("t", 0, &["a"]).await;
        let rule = world.fake.when(ApiKey::Fetch).forever().partition("t", 0).reply_error(code);
        let consumer = world.reader("t", &[0]).await;

        let during = consumer.poll(Duration::from_secs(10)).await.expect("nothing that the user must know");
        let tries = rule.hits();
        rule.remove();

        assert!(during.is_empty());
        assert!((5..=40).contains(&tries), "{code}: {tries} fetches in 10 s");
        assert_eq!(values(&take(&consumer, 1).await), ["a"], "after {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn top_level_errors_do_not_make_a_tight_loop() {
    for code in [ErrorCode::UNKNOWN_SERVER_ERROR, ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR, ErrorCode::UNKNOWN_TOPIC_ID]
    {
        let world = World::new(&[("t", 1)]).await;
        world.produce("t", 0, &["a"]).await;
        let rule = world.fake.when(ApiKey::Fetch).forever().edit(move |response| {
            if let AnyResponse::Fetch(fetch) = response {
                fetch.error_code = code.0;
                fetch.responses.clear();
            }
        });
        let consumer = world.reader("t", &[0]).await;

        tokio::time::sleep(Duration::from_secs(10)).await;
        let tries = rule.hits();
        rule.remove();
        // What cannot heal by itself is said once.
        let _ = consumer.poll(Duration::ZERO).await;

        assert!((5..=40).contains(&tries), "{code}: {tries} fetches in 10 s");
        assert_eq!(values(&take(&consumer, 1).await), ["a"], "after {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lack_of_permission_is_said() {
    let world = World::new(&[("t", 1)]).await;
    let _rule = world.fake.when(ApiKey::Fetch).forever().topic("t").reply_error(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    let consumer = world.reader("t", &[0]).await;

    let error = consumer.poll(SOON).await.expect_err("no permission");

    assert!(matches!(&error, KrafkaError::Broker { code: ErrorCode::TOPIC_AUTHORIZATION_FAILED, .. }), "{error}");
    assert!(error.to_string().contains("t-0"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_moves_again_and_again_loses_and_doubles_nothing() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;
    let sent = numbers(1, 30);

    let mut got = Vec::new();
    for (index, number) in sent.iter().enumerate() {
        world.produce("t", 0, &[number]).await;
        if index % 3 == 0 {
            let leader = world.fake.leader("t", 0).expect("a leader");
            world.fake.move_leader("t", 0, leader % 3 + 1);
        }
        got.extend(values(&consumer.poll(Duration::from_millis(20)).await.expect("no error")));
    }
    while got.len() < sent.len() {
        got.extend(values(&take(&consumer, 1).await));
    }

    assert_eq!(got, sent);
}

#[tokio::test(start_paused = true)]
async fn a_crashed_leader_is_replaced() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 1).await;

    world.fake.crash(world.fake.leader("t", 0).expect("a leader"));
    world.produce("t", 0, &["b"]).await;

    assert_eq!(values(&take(&consumer, 1).await), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_is_created_anew_is_read_from_its_start() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["old"]).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 1).await;

    world.fake.delete_topic("t");
    world.fake.create_topic("t", 1);
    world.produce("t", 0, &["new"]).await;

    assert_eq!(values(&take(&consumer, 1).await), ["new"]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_larger_than_the_limits_gets_through() {
    let world = World::new(&[("t", 1)]).await;
    let large = "x".repeat(5_000);
    world.produce("t", 0, &[&large]).await;
    world.produce("t", 0, &["small"]).await;
    let builder = world.kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer =
        builder.fetch_max_bytes(100).partition_max_bytes(100).buffer_bytes(100).build().await.expect("valid");
    consumer.assign("t", vec![0]).await.expect("assigned");

    assert_eq!(values(&take(&consumer, 2).await), [large, "small".to_owned()]);
}

/// Flips a bit of the last record of what is fetched of partition 0.
fn garble(response: &mut AnyResponse) {
    let AnyResponse::Fetch(fetch) = response else { return };
    for partition in fetch.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
        if let Some(records) = partition.records.as_mut().filter(|records| !records.is_empty()) {
            let mut bytes = records.to_vec();
            *bytes.last_mut().expect("not empty") ^= 1;
            *records = Bytes::from(bytes);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_does_not_decode_is_named_and_can_be_passed() {
    let world = World::new(&[("t", 2)]).await;
    world.produce("t", 0, &["good"]).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 1).await;
    let rule = world.fake.when(ApiKey::Fetch).forever().partition("t", 0).edit(garble);
    // The fetch that is parked already escapes the rule.
    rule.wait(1).await;
    world.produce("t", 0, &["bad", "bad too"]).await;

    let error = consumer.poll(SOON).await.expect_err("the checksum is wrong");
    let again = consumer.poll(SOON).await.expect_err("it is still there");
    consumer.assign("t", vec![0, 1]).await.expect("assigned");
    world.produce("t", 1, &["other"]).await;
    let other = values(&take(&consumer, 1).await);
    rule.remove();
    world.produce("t", 0, &["next"]).await;
    consumer.seek("t", 0, 3).await.expect("assigned");
    let next = values(&take(&consumer, 1).await);

    for error in [error, again] {
        let KrafkaError::RecordDeserialization { topic, partition, offset, .. } = &error else { panic!("{error}") };
        assert_eq!((&**topic, *partition, *offset), ("t", 0, 1));
    }
    assert_eq!((other, next), (vec!["other".to_owned()], vec!["next".to_owned()]));
}

/// BR-096: a few hundred bytes that would become a megabyte.
#[tokio::test(start_paused = true)]
async fn a_batch_beyond_the_limit_is_named_and_can_be_passed() {
    let world = World::new(&[("t", 1)]).await;
    let bomb = "0".repeat(1_000_000);
    world.produce_with(Compression::Gzip, "t", 0, &["before"]).await;
    world.produce_with(Compression::Gzip, "t", 0, &[&bomb]).await;
    world.produce_with(Compression::Gzip, "t", 0, &["behind"]).await;
    let consumer = limited(&world, 1_000_000).await;

    let before = consumer.poll(SOON).await.expect("what lies before it is good");
    let error = consumer.poll(SOON).await.expect_err("it is larger than allowed");
    let again = consumer.poll(SOON).await.expect_err("it is still there");
    let position = consumer.position("t", 0).await.expect("assigned");
    consumer.seek("t", 0, 2).await.expect("assigned");
    let behind = values(&take(&consumer, 1).await);

    assert_eq!((values(&before), behind), (vec!["before".to_owned()], vec!["behind".to_owned()]));
    assert_eq!(position, 1);
    for error in [error.to_string(), again.to_string()] {
        assert!(error.starts_with("t-0 at offset 1: "), "{error}");
        assert!(error.contains("batch at offset 1: gzip: more than 1000000 bytes decompressed"), "{error}");
        assert!(error.contains("max_decompressed_size"), "{error}");
    }
}

async fn limited(world: &World, bytes: usize) -> Consumer {
    let builder = world.kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.max_decompressed_size(bytes).build().await.expect("the settings are valid");
    consumer.assign("t", vec![0]).await.expect("assigned");
    consumer
}

/// One answer with ten batches that are within the limit each: no poll returns more than that, and none is lost.
#[tokio::test(start_paused = true)]
async fn batches_that_exceed_the_limit_together_come_with_several_polls() {
    let world = World::new(&[("t", 1)]).await;
    let large = "0".repeat(300_000);
    for _ in 0..10 {
        world.produce_with(Compression::Lz4, "t", 0, &[&large]).await;
    }
    let consumer = limited(&world, 1_000_000).await;

    let mut polls = Vec::new();
    while polls.iter().sum::<usize>() < 10 {
        polls.push(consumer.poll(SOON).await.expect("each is within the limit").len());
    }
    let position = consumer.position("t", 0).await.expect("assigned");

    assert_eq!((polls, position), (vec![3, 3, 3, 1], 10));
}

/// Puts two messages of format 1 in the place of what is fetched: offsets 0 and 1, one byte of value each.
fn age(response: &mut AnyResponse) {
    let AnyResponse::Fetch(fetch) = response else { return };
    for partition in fetch.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
        if let Some(records) = partition.records.as_mut().filter(|records| !records.is_empty()) {
            let message = |offset: u8, crc: u32| {
                let mut message = vec![0; 12 + 4 + 2 + 8 + 4 + 4 + 1];
                (message[7], message[11]) = (offset, 23);
                message[12..16].copy_from_slice(&crc.to_be_bytes());
                message[16] = 1;
                message[26..30].fill(0xff);
                (message[33], message[34]) = (1, b'a' + offset);
                message
            };
            *records = Bytes::from([message(0, 0x37b2_c2e9), message(1, 0xaebb_9353)].concat());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_from_before_batches_are_read() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["new", "too"]).await;
    let rule = world.fake.when(ApiKey::Fetch).partition("t", 0).edit(age);
    let consumer = world.reader("t", &[0]).await;

    let old = values(&take(&consumer, 2).await);
    let position = consumer.position("t", 0).await.expect("assigned");
    world.produce("t", 0, &["newer"]).await;
    let next = values(&take(&consumer, 1).await);

    assert_eq!((old, position), (vec!["a".to_owned(), "b".to_owned()], 2));
    assert_eq!((next, rule.hits()), (vec!["newer".to_owned()], 1));
}

/// While the application works, the next records arrive; but no more than the buffer may hold.
#[tokio::test(start_paused = true)]
async fn fetching_runs_ahead_within_bounds() {
    let world = World::new(&[("t", 1)]).await;
    let payload = "x".repeat(900);
    for _ in 0..100 {
        world.produce("t", 0, &[&payload]).await;
    }
    let builder = world.kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.partition_max_bytes(10_000).max_poll_records(1).build().await.expect("valid");
    consumer.assign("t", vec![0]).await.expect("assigned");
    tokio::time::sleep(Duration::from_secs(60)).await;

    let ahead = world.fake.history().count(ApiKey::Fetch);
    let first = consumer.poll(Duration::ZERO).await.expect("buffered");
    let all = take(&consumer, 99).await;

    assert_eq!(ahead, 2, "fetches of 10,000 bytes until 20,000 are there");
    assert_eq!((first.len(), all.len()), (1, 99));
}

/// A partition whose buffer is full must not wait for the long poll of its idle neighbour once it is drained.
#[tokio::test(start_paused = true)]
async fn a_busy_partition_does_not_wait_for_an_idle_one_at_the_same_broker() {
    let world = World::new(&[("t", 2)]).await;
    let node = world.fake.leader("t", 0).expect("a leader");
    world.fake.move_leader("t", 1, node);
    let batch = numbers(1, 100);
    for _ in 0..50 {
        world.produce("t", 0, &texts(&batch)).await;
    }
    let builder = world.kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.partition_max_bytes(2_000).build().await.expect("valid");
    consumer.assign("t", vec![0, 1]).await.expect("assigned");

    let begin = tokio::time::Instant::now();
    take(&consumer, 5_000).await;

    assert!(begin.elapsed() < Duration::from_secs(3), "it took {:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_fenced_epoch_is_healed_by_fresh_metadata() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 1).await;

    let rule = world.fake.when(ApiKey::Fetch).partition("t", 0).fence_epoch();
    rule.wait(1).await;
    world.produce("t", 0, &["b"]).await;

    assert_eq!(values(&take(&consumer, 1).await), ["b"]);
}

/// The answer that names the new leader saves the metadata request and the backoff (KIP-951).
#[tokio::test(start_paused = true)]
async fn a_hint_leads_to_the_new_leader_at_once() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 1).await;
    world.produce("t", 0, &["b"]).await;
    take(&consumer, 1).await;

    world.fake.move_leader("t", 0, world.fake.leader("t", 0).expect("a leader") % 3 + 1);
    world.produce("t", 0, &["c"]).await;
    let begin = tokio::time::Instant::now();
    let records = take(&consumer, 1).await;

    assert_eq!(values(&records), ["c"]);
    assert!(begin.elapsed() < Duration::from_millis(50), "it took {:?}", begin.elapsed());
}

/// A throttled fetch connection is silent for that long, and nothing else is.
#[tokio::test(start_paused = true)]
async fn a_throttle_delays_the_next_fetch_and_loses_nothing() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let _rule = world.fake.when(ApiKey::Fetch).throttle(Duration::from_secs(2));
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 1).await;

    world.produce("t", 0, &["b"]).await;
    let begin = tokio::time::Instant::now();
    let records = take(&consumer, 1).await;

    assert_eq!(values(&records), ["b"]);
    let took = begin.elapsed();
    assert!(took > Duration::from_millis(1_500) && took < Duration::from_millis(2_500), "it took {took:?}");
}

/// LE-03, LE-05: a broker that names a newer leader in each answer, which is at its own address, is no way to a loop.
#[tokio::test(start_paused = true)]
async fn a_leader_that_moves_in_each_answer_is_followed_at_a_pace() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 1).await;
    let leader = world.fake.leader("t", 0).expect("a leader");
    let (host, port) = world.fake.address(leader).expect("it is there");
    let first = world.fake.history().requests::<FetchRequest>().next().expect("a fetch").clone();
    let topic_id = first.topics[0].topic_id;
    let named = Arc::new(AtomicI32::new(100));
    let next = named.clone();
    world.fake.when(ApiKey::Fetch).forever().edit(move |response| {
        let AnyResponse::Fetch(fetch) = response else { return };
        let number = next.fetch_add(1, Ordering::Relaxed);
        let current_leader = LeaderIdAndEpoch { leader_id: number, leader_epoch: number };
        let error_code = ErrorCode::NOT_LEADER_OR_FOLLOWER.0;
        let moved = PartitionData { error_code, current_leader, ..PartitionData::default() };
        fetch.responses = vec![FetchableTopicResponse { topic_id, partitions: vec![moved], ..Default::default() }];
        let endpoint = NodeEndpoint { node_id: number, host: host.clone(), port: port.into(), rack: None };
        fetch.node_endpoints = vec![endpoint];
    });
    // Metadata do not contradict, and any log is the same.
    world.fake.when(ApiKey::Metadata).forever().edit(|response| {
        let AnyResponse::Metadata(metadata) = response else { return };
        let partitions = metadata.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
        partitions.for_each(|partition| partition.leader_epoch = -1);
    });
    world.fake.when(ApiKey::OffsetForLeaderEpoch).forever().edit(|response| {
        let AnyResponse::OffsetForLeaderEpoch(answer) = response else { return };
        for partition in answer.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            (partition.error_code, partition.leader_epoch, partition.end_offset) = (0, 0, 1);
        }
    });
    let before = world.fake.history().count(ApiKey::Fetch);

    tokio::time::sleep(Duration::from_secs(30)).await;

    let asked = world.fake.history().count(ApiKey::Fetch) - before;
    assert!((5..=100).contains(&asked), "{asked} fetches in 30 s");
}
