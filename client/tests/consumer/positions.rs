//! Where a consumer reads: assigning, seeking, resetting, validating.

use std::time::Duration;

use krafka::consumer::{AutoOffsetReset, OffsetAndMetadata};
use krafka::testing::FakeCluster;
use krafka::{Environment, Kafka, KrafkaError, TopicPartition};
use krafka_protocol::{AnyResponse, ApiKey, ErrorCode};
use tokio::time::Instant;

use super::{SOON, World, numbers, take, texts, values};

async fn reader_with(world: &World, reset: AutoOffsetReset) -> krafka::Consumer {
    let consumer = world.kafka.consumer_without_group().auto_offset_reset(reset).build().await.expect("valid");
    consumer.assign("t", vec![0]).await.expect("assigned");
    consumer
}

#[tokio::test(start_paused = true)]
async fn latest_reads_only_what_comes_after() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["old"]).await;

    let consumer = reader_with(&world, AutoOffsetReset::Latest).await;
    let position = consumer.position("t", 0).await.expect("a position");
    world.produce("t", 0, &["new"]).await;

    assert_eq!(position, 1);
    assert_eq!(values(&take(&consumer, 1).await), ["new"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_poll_names_the_partition_until_the_user_seeks() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;
    let consumer = reader_with(&world, AutoOffsetReset::None).await;

    let first = consumer.poll(SOON).await;
    let second = consumer.poll(SOON).await;
    consumer.seek("t", 0, 1).await.expect("assigned");

    for answer in [first, second] {
        let Err(KrafkaError::NoOffset { partitions }) = answer else { panic!("{answer:?}") };
        assert_eq!(*partitions, [TopicPartition::new("t", 0)]);
    }
    assert_eq!(values(&take(&consumer, 1).await), ["b"]);
}

/// Between `assign` and `seek` the task may well have looked for a position, and found none.
#[tokio::test(start_paused = true)]
async fn who_seeks_before_the_first_poll_hears_of_no_missing_position() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;
    let consumer = reader_with(&world, AutoOffsetReset::None).await;
    tokio::time::sleep(SOON).await;

    consumer.seek("t", 0, 1).await.expect("assigned");

    assert_eq!(values(&consumer.poll(SOON).await.expect("there is a position")), ["b"]);
    let other = reader_with(&world, AutoOffsetReset::None).await;
    tokio::time::sleep(SOON).await;
    other.assign("t", vec![]).await.expect("nothing is read");
    let idle = other.poll(SOON).await.expect_err("it reads nothing");
    assert!(matches!(idle, KrafkaError::IllegalState { .. }), "and wants for no position: {idle:?}");
}

#[tokio::test(start_paused = true)]
async fn by_duration_starts_at_the_first_record_that_is_young_enough() {
    let world = World::new(&[("t", 1)]).await;
    // Its timestamps are from 1970.
    world.produce("t", 0, &["ancient"]).await;

    let hour = reader_with(&world, AutoOffsetReset::ByDuration(Duration::from_secs(3_600))).await;
    let century = reader_with(&world, AutoOffsetReset::ByDuration(Duration::from_secs(100 * 366 * 86_400))).await;

    assert_eq!(hour.position("t", 0).await.expect("a position"), 1, "nothing is that young: the end");
    assert_eq!(century.position("t", 0).await.expect("a position"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_topic_is_an_error_in_bounded_time() {
    let world = World::new(&[]).await;
    let consumer = world.kafka.consumer_without_group().build().await.expect("valid");

    let begin = Instant::now();
    let answer = consumer.assign("nowhere", vec![0]).await;

    assert!(matches!(&answer, Err(KrafkaError::UnknownTopic { topic }) if &**topic == "nowhere"), "{answer:?}");
    assert!(begin.elapsed() < Duration::from_secs(10), "it took {:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_partition_is_an_error_that_names_it() {
    let world = World::new(&[("t", 2)]).await;
    let consumer = world.kafka.consumer_without_group().build().await.expect("valid");

    let error = consumer.assign("t", vec![0, 7]).await.expect_err("there is no partition 7");

    assert!(error.to_string().contains("t-7") && error.to_string().contains("2 partitions"), "{error}");
    assert!(consumer.assignment().is_empty());
}

#[tokio::test(start_paused = true)]
async fn assigning_replaces_the_partitions_of_that_topic_only() {
    let world = World::new(&[("t", 3), ("u", 1)]).await;
    world.produce("t", 1, &["a"]).await;
    let consumer = world.reader("t", &[0, 1]).await;
    take(&consumer, 1).await;
    consumer.assign("u", vec![0]).await.expect("assigned");

    consumer.assign("t", vec![1, 2]).await.expect("assigned");

    let names: Vec<_> = consumer.assignment().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["t-1", "t-2", "u-0"]);
    assert_eq!(consumer.position("t", 1).await.expect("kept"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_seek_drops_what_was_fetched_for_the_old_position() {
    let world = World::new(&[("t", 1)]).await;
    let sent = numbers(0, 9);
    world.produce("t", 0, &texts(&sent)).await;
    let consumer = world.reader("t", &[0]).await;
    tokio::time::sleep(SOON).await;

    consumer.seek("t", 0, 7).await.expect("assigned");

    assert_eq!(values(&take(&consumer, 3).await), ["7", "8", "9"]);
    assert_eq!(consumer.position("t", 0).await.expect("a position"), 10);
}

/// LE-16.
#[tokio::test(start_paused = true)]
async fn a_seek_wins_over_a_lookup_that_is_under_way() {
    let world = World::new(&[("t", 1)]).await;
    let sent = numbers(0, 9);
    world.produce("t", 0, &texts(&sent)).await;
    let lookup = world.fake.when(ApiKey::ListOffsets).delay(Duration::from_secs(2));
    let consumer = world.reader("t", &[0]).await;
    lookup.wait(1).await;

    consumer.seek("t", 0, 8).await.expect("assigned");

    assert_eq!(values(&take(&consumer, 2).await), ["8", "9"]);
    tokio::time::sleep(SOON).await;
    assert_eq!(consumer.position("t", 0).await.expect("a position"), 10);
}

#[tokio::test(start_paused = true)]
async fn seeking_to_the_ends_asks_the_leader() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;
    let consumer = reader_with(&world, AutoOffsetReset::Latest).await;

    consumer.seek_to_beginning("t", 0).await.expect("assigned");
    let beginning = consumer.position("t", 0).await.expect("a position");
    consumer.seek_to_end("t", 0).await.expect("assigned");
    let end = consumer.position("t", 0).await.expect("a position");

    assert_eq!((beginning, end), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn an_offset_behind_the_end_is_reset_as_the_policy_says() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;
    let consumer = world.reader("t", &[0]).await;

    consumer.seek("t", 0, 100).await.expect("assigned");

    assert_eq!(values(&take(&consumer, 2).await), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_position_that_retention_took_goes_on_at_the_log_start() {
    let world = World::new(&[("t", 1)]).await;
    let sent = numbers(0, 9);
    for number in &sent {
        world.produce("t", 0, &[number]).await;
    }
    world.fake.delete_records("t", 0, 6);
    let consumer = world.reader("t", &[0]).await;

    consumer.seek("t", 0, 2).await.expect("assigned");

    assert_eq!(values(&take(&consumer, 4).await), ["6", "7", "8", "9"]);
}

#[tokio::test(start_paused = true)]
async fn a_position_out_of_range_without_policy_is_an_error() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = reader_with(&world, AutoOffsetReset::None).await;
    consumer.seek("t", 0, 100).await.expect("assigned");

    let answer = consumer.poll(SOON).await;

    assert!(matches!(answer, Err(KrafkaError::NoOffset { .. })), "{answer:?}");
}

/// A consumer that has read the ten records there are.
async fn ten_read() -> (World, krafka::Consumer) {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &texts(&numbers(0, 9))).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 10).await;
    (world, consumer)
}

/// LE-08.
#[tokio::test(start_paused = true)]
async fn a_moved_leader_is_asked_about_the_position_before_it_is_fetched_from() {
    let (world, consumer) = ten_read().await;
    let old = world.fake.leader("t", 0).expect("a leader");

    world.fake.move_leader("t", 0, old % 3 + 1);
    world.produce("t", 0, &["10"]).await;

    assert_eq!(values(&take(&consumer, 1).await), ["10"]);
    assert!(world.fake.history().count(ApiKey::OffsetForLeaderEpoch) >= 1);
}

/// LE-12: the answer of the leader before last says nothing about the log of the last one.
#[tokio::test(start_paused = true)]
async fn a_leader_that_moves_again_while_the_position_is_checked_is_asked_itself() {
    let (world, consumer) = ten_read().await;
    let old = world.fake.leader("t", 0).expect("a leader");
    let slow = world.fake.when(ApiKey::OffsetForLeaderEpoch).delay(Duration::from_secs(2));

    world.fake.move_leader("t", 0, old % 3 + 1);
    slow.wait(1).await;
    world.fake.move_leader("t", 0, (old + 1) % 3 + 1);
    world.produce("t", 0, &["10"]).await;

    assert_eq!(values(&take(&consumer, 1).await), ["10"]);
    let asked = world.fake.history().count(ApiKey::OffsetForLeaderEpoch);
    assert!((2..=3).contains(&asked), "{asked} checks for two moves");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.fake.history().count(ApiKey::OffsetForLeaderEpoch), asked, "it goes on asking");
}

/// LE-12: so it is where a fetch would not find it out, for its version does not name the epoch of what was read last.
#[tokio::test(start_paused = true)]
async fn what_a_former_leader_says_of_a_position_counts_no_more() {
    let fake = FakeCluster::builder().nodes(3).topic("t", 1).start_time_ms(1_000).start_on_pipes();
    fake.when(ApiKey::ApiVersions).forever().edit(|response| {
        if let AnyResponse::ApiVersions(versions) = response {
            let fetch = versions.api_keys.iter_mut().filter(|api| api.api_key == ApiKey::Fetch as i16);
            fetch.for_each(|api| api.max_version = 11);
        }
    });
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1));
    let kafka = builder.metadata_max_age(Duration::from_secs(1)).connect().await.expect("the fake is up");
    let world = World { fake, kafka };
    world.produce("t", 0, &texts(&numbers(0, 9))).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 10).await;
    let old = world.fake.leader("t", 0).expect("a leader");
    let (second, third) = (old % 3 + 1, (old + 1) % 3 + 1);
    let late = world.fake.when(ApiKey::OffsetForLeaderEpoch).on(second).after_handling().delay(Duration::from_secs(5));
    world.fake.when(ApiKey::OffsetForLeaderEpoch).on(third).edit(truncate);

    world.fake.move_leader("t", 0, second);
    late.wait(1).await;
    world.fake.move_leader("t", 0, third);

    assert_eq!(values(&take_within(&consumer, 6, Duration::from_secs(20)).await), ["4", "5", "6", "7", "8", "9"]);
}

/// LE-14: what the former leader answered before the position was checked may be what the new one does not have. It is
/// dropped, and fetched once more after the check.
#[tokio::test(start_paused = true)]
async fn records_that_come_before_the_position_is_checked_are_fetched_again() {
    let fake = FakeCluster::builder().nodes(3).topic("t", 1).start_time_ms(1_000).start_on_pipes();
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1));
    let kafka = builder.metadata_max_age(Duration::from_secs(1)).connect().await.expect("the fake is up");
    let world = World { fake, kafka };
    world.produce("t", 0, &["0"]).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 1).await;
    // Until no fetch waits for records any more.
    consumer.pause(&[TopicPartition::new("t", 0)]).expect("assigned");
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.produce("t", 0, &["1"]).await;
    let late = world.fake.when(ApiKey::Fetch).after_handling().times(1).delay(Duration::from_secs(3));
    let check = world.fake.when(ApiKey::OffsetForLeaderEpoch).times(1).delay(Duration::from_secs(6));
    let old = world.fake.leader("t", 0).expect("a leader");
    let start = Instant::now();

    consumer.resume(&[TopicPartition::new("t", 0)]).expect("assigned");
    late.wait(1).await;
    world.fake.move_leader("t", 0, old % 3 + 1);
    let records = take_within(&consumer, 1, Duration::from_secs(20)).await;

    assert_eq!(check.hits(), 1, "it was checked while the answer was on its way");
    assert_eq!(values(&records), ["1"]);
    assert!(start.elapsed() >= Duration::from_secs(6), "it was handed out after {:?}, unchecked", start.elapsed());
    assert!(consumer.poll(SOON).await.expect("no error").is_empty(), "and once");
}

/// Polls until that many records have come, for that long.
async fn take_within(consumer: &krafka::Consumer, count: usize, time: Duration) -> Vec<krafka::ConsumerRecord> {
    let (mut records, end) = (Vec::new(), Instant::now() + time);
    while records.len() < count && Instant::now() < end {
        records.extend(consumer.poll(Duration::from_secs(1)).await.expect("no error"));
    }
    records
}

/// LE-27.
#[tokio::test(start_paused = true)]
async fn a_leader_that_moves_all_the_time_costs_no_record_and_doubles_none() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;
    let sent = numbers(0, 59);

    let writing = async {
        for (value, node) in texts(&sent).iter().zip([1, 2, 3].into_iter().cycle()) {
            world.fake.move_leader("t", 0, node);
            world.produce("t", 0, &[value]).await;
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
    };
    let ((), records) = tokio::join!(writing, take(&consumer, 60));

    assert_eq!(values(&records), texts(&sent));
    assert!(consumer.poll(SOON).await.expect("no error").is_empty());
}

/// LE-17.
#[tokio::test(start_paused = true)]
async fn a_lookup_is_repeated_with_fresh_metadata_after_a_fenced_epoch() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let rule = world.fake.when(ApiKey::ListOffsets).times(2).reply_error(ErrorCode::FENCED_LEADER_EPOCH);

    let consumer = world.reader("t", &[0]).await;

    assert_eq!(values(&take(&consumer, 1).await), ["a"]);
    assert_eq!(rule.hits(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_about_a_partition_that_is_not_assigned_says_so() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;

    let error = consumer.seek("t", 3, 0).await.expect_err("it is not assigned");

    assert!(matches!(error, KrafkaError::IllegalState { .. }));
    assert!(error.to_string().contains("t-3"), "{error}");
}

/// A leader whose log is the same only up to offset 4: an unclean election took what lay behind.
fn truncate(response: &mut AnyResponse) {
    let AnyResponse::OffsetForLeaderEpoch(answer) = response else { return };
    for partition in answer.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        partition.leader_epoch = 0;
        partition.end_offset = 4;
    }
}

/// LE-09.
#[tokio::test(start_paused = true)]
async fn a_truncated_log_is_read_on_from_where_it_parts() {
    let (world, consumer) = ten_read().await;
    let _rule = world.fake.when(ApiKey::OffsetForLeaderEpoch).edit(truncate);

    world.fake.move_leader("t", 0, world.fake.leader("t", 0).expect("a leader") % 3 + 1);

    assert_eq!(values(&take(&consumer, 6).await), ["4", "5", "6", "7", "8", "9"]);
}

/// LE-09.
#[tokio::test(start_paused = true)]
async fn a_truncated_log_without_a_policy_is_an_error_that_says_where() {
    let world = World::new(&[("t", 1)]).await;
    let sent = numbers(0, 9);
    world.produce("t", 0, &texts(&sent)).await;
    let consumer = reader_with(&world, AutoOffsetReset::None).await;
    consumer.seek("t", 0, 0).await.expect("assigned");
    take(&consumer, 10).await;
    let _rule = world.fake.when(ApiKey::OffsetForLeaderEpoch).edit(truncate);

    world.fake.move_leader("t", 0, world.fake.leader("t", 0).expect("a leader") % 3 + 1);
    let error = consumer.poll(SOON).await.expect_err("records were replaced");

    let text = error.to_string();
    assert!(text.contains("t-0") && text.contains("offset 4") && text.contains("position was 10"), "{text}");
}

/// The leader knows nothing of the epoch of what was read, nor where another ends.
fn know_nothing(response: &mut AnyResponse) {
    let AnyResponse::OffsetForLeaderEpoch(answer) = response else { return };
    for partition in answer.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        (partition.leader_epoch, partition.end_offset) = (-1, -1);
    }
}

/// LE-10.
#[tokio::test(start_paused = true)]
async fn a_position_of_which_the_leader_knows_nothing_is_reset() {
    let (world, consumer) = ten_read().await;
    let _rule = world.fake.when(ApiKey::OffsetForLeaderEpoch).edit(know_nothing);

    world.fake.move_leader("t", 0, world.fake.leader("t", 0).expect("a leader") % 3 + 1);

    assert_eq!(values(&take(&consumer, 10).await), numbers(0, 9), "from the earliest");
}

/// LE-10: without a policy it stays, and the application is told all that is known.
#[tokio::test(start_paused = true)]
async fn a_position_of_which_the_leader_knows_nothing_is_an_error_without_a_policy() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &texts(&numbers(0, 9))).await;
    let consumer = reader_with(&world, AutoOffsetReset::None).await;
    consumer.seek("t", 0, 0).await.expect("assigned");
    take(&consumer, 10).await;
    let _rule = world.fake.when(ApiKey::OffsetForLeaderEpoch).edit(know_nothing);
    let epoch = world.fake.leader_epoch("t", 0).expect("an epoch");

    world.fake.move_leader("t", 0, world.fake.leader("t", 0).expect("a leader") % 3 + 1);
    let errors = [consumer.poll(SOON).await, consumer.poll(SOON).await];

    for error in errors {
        let text = error.expect_err("whether it is the same log is not known").to_string();
        for known in ["t-0".to_owned(), "position 10".to_owned(), format!("epoch {epoch}")] {
            assert!(text.contains(&known), "{known}: {text}");
        }
    }
    assert_eq!(consumer.position("t", 0).await.expect("it stays"), 10);
    consumer.seek("t", 0, 9).await.expect("assigned");
    assert_eq!(values(&take(&consumer, 1).await), ["9"], "who insists gets what is there");
}

/// Records 0 to 9 of one epoch, and 10 to 14 of the next; and the first of the two.
async fn two_epochs(world: &World) -> i32 {
    world.produce("t", 0, &texts(&numbers(0, 9))).await;
    let epoch = world.fake.leader_epoch("t", 0).expect("an epoch");
    world.fake.move_leader("t", 0, world.fake.leader("t", 0).expect("a leader") % 3 + 1);
    world.produce("t", 0, &texts(&numbers(10, 14))).await;
    epoch
}

/// LE-15: records 10 to 12 of that epoch are lost.
#[tokio::test(start_paused = true)]
async fn a_seek_with_an_older_epoch_lands_where_that_epoch_ends() {
    let world = World::new(&[("t", 1)]).await;
    let epoch = two_epochs(&world).await;
    let consumer = reader_with(&world, AutoOffsetReset::Earliest).await;
    let fetches = |world: &World| world.fake.history().count(ApiKey::Fetch);
    take(&consumer, 15).await;
    tokio::time::sleep(SOON).await;

    let hold = world.fake.when(ApiKey::OffsetForLeaderEpoch).delay(Duration::from_secs(2));
    consumer.seek("t", 0, OffsetAndMetadata::new(13).leader_epoch(epoch)).await.expect("assigned");
    hold.wait(1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = fetches(&world);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(fetches(&world), before, "nothing is fetched before the leader has said what it knows");

    assert_eq!(values(&take(&consumer, 5).await), ["10", "11", "12", "13", "14"]);
}

/// LE-15: what that epoch has is where the user says.
#[tokio::test(start_paused = true)]
async fn a_seek_within_its_epoch_is_taken_as_it_is() {
    let world = World::new(&[("t", 1)]).await;
    let epoch = two_epochs(&world).await;
    let consumer = reader_with(&world, AutoOffsetReset::Earliest).await;
    take(&consumer, 15).await;

    for (offset, of) in [(10, epoch), (4, epoch), (13, epoch + 1)] {
        consumer.seek("t", 0, OffsetAndMetadata::new(offset).leader_epoch(of)).await.expect("assigned");
        assert_eq!(values(&take(&consumer, 1).await)[0], offset.to_string());
    }

    assert_eq!(world.fake.history().count(ApiKey::OffsetForLeaderEpoch), 3, "the leader was asked each time");
    consumer.seek("t", 0, OffsetAndMetadata::new(13)).await.expect("assigned");
    assert_eq!(values(&take(&consumer, 2).await), ["13", "14"]);
    assert_eq!(world.fake.history().count(ApiKey::OffsetForLeaderEpoch), 3, "without an epoch there is no question");
}

/// LE-15, LE-09.
#[tokio::test(start_paused = true)]
async fn a_seek_beyond_its_epoch_without_a_policy_is_an_error_that_says_where() {
    let world = World::new(&[("t", 1)]).await;
    let epoch = two_epochs(&world).await;
    let consumer = reader_with(&world, AutoOffsetReset::None).await;

    consumer.seek("t", 0, OffsetAndMetadata::new(13).leader_epoch(epoch)).await.expect("assigned");
    let error = consumer.poll(SOON).await.expect_err("there were others");

    let text = error.to_string();
    assert!(text.contains("t-0") && text.contains("offset 10") && text.contains("position was 13"), "{text}");
    consumer.seek("t", 0, 13).await.expect("assigned");
    assert_eq!(values(&take(&consumer, 2).await), ["13", "14"], "who insists gets what is there");
}
