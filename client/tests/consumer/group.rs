//! Consumers that share topics: joining, rebalancing, committing, leaving.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerBuilder, ListenerFuture, RebalanceListener};
use krafka::testing::{FakeCluster, GroupState};
use krafka::{Environment, Kafka, KrafkaError, TopicPartition};
use krafka_protocol::{ApiKey, ErrorCode, Str};
use tokio::time::Instant;

use super::{SOON, World, numbers, take, texts, value, values};

pub(super) fn builder(kafka: &Kafka) -> ConsumerBuilder {
    kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest)
}

pub(super) async fn member(kafka: &Kafka) -> Consumer {
    let consumer = builder(kafka).build().await.expect("the settings are valid");
    consumer.subscribe(&["t"]).await.expect("it has a group");
    consumer
}

/// Polls without waiting for records, so that rebalances go on, until it has that many partitions.
pub(super) async fn settle(consumers: &[&Consumer], partitions: &[usize]) {
    let begin = Instant::now();
    loop {
        for consumer in consumers {
            consumer.poll(Duration::from_millis(100)).await.expect("no error");
        }
        let now: Vec<_> = consumers.iter().map(|consumer| consumer.assignment().len()).collect();
        if now == partitions {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "it has {now:?} instead of {partitions:?}");
    }
}

pub(super) fn committed(fake: &FakeCluster, partition: i32) -> Option<i64> {
    fake.committed("g").get(&(Str::from("t"), partition)).copied()
}

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, what: &str, partitions: &[TopicPartition]) {
        let names: Vec<_> = partitions.iter().map(ToString::to_string).collect();
        self.0.lock().expect("no panic").push(format!("{what} {}", names.join(" ")));
    }

    fn pages(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }
}

impl RebalanceListener for Diary {
    fn on_revoked<'a>(&'a self, partitions: &'a [TopicPartition]) -> ListenerFuture<'a> {
        self.note("revoked", partitions);
        Box::pin(tokio::time::sleep(Duration::from_millis(100)))
    }

    fn on_assigned<'a>(&'a self, partitions: &'a [TopicPartition]) -> ListenerFuture<'a> {
        self.note("assigned", partitions);
        Box::pin(std::future::ready(()))
    }

    fn on_lost<'a>(&'a self, partitions: &'a [TopicPartition]) -> ListenerFuture<'a> {
        self.note("lost", partitions);
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_lone_member_reads_everything() {
    let world = World::new(&[("t", 3)]).await;
    for partition in 0..3 {
        world.produce("t", partition, &["a", "b"]).await;
    }

    let consumer = member(&world.kafka).await;
    let records = take(&consumer, 6).await;

    assert_eq!(records.len(), 6);
    let group = world.fake.group("g").expect("a group");
    assert_eq!((group.state, group.members.len()), (GroupState::Stable, 1));
}

/// A crash between two polls must repeat what the first one returned, so it is not committed before the second.
#[tokio::test(start_paused = true)]
async fn two_members_share_and_neither_loses_nor_doubles() {
    let world = World::new(&[("t", 4)]).await;
    let first = member(&world.kafka).await;
    settle(&[&first], &[4]).await;
    let second = member(&World::connect(&world.fake, 2).await).await;
    let sent: Vec<String> = numbers(1, 400);

    let mut got = Vec::new();
    for chunk in sent.chunks(4) {
        for (partition, number) in chunk.iter().enumerate() {
            world.produce("t", partition as i32, &[number]).await;
        }
        for consumer in [&first, &second] {
            got.extend(values(&consumer.poll(Duration::from_millis(50)).await.expect("no error")));
        }
    }
    settle(&[&first, &second], &[2, 2]).await;
    for consumer in [&first, &second] {
        got.extend(values(&consumer.poll(SOON).await.expect("no error")));
    }

    let distinct: BTreeSet<_> = got.iter().collect();
    assert_eq!(got.len(), distinct.len(), "some came twice");
    assert_eq!(distinct, sent.iter().collect());
}

#[tokio::test(start_paused = true)]
async fn partitions_of_a_member_that_leaves_go_to_the_other() {
    let world = World::new(&[("t", 4)]).await;
    let first = member(&world.kafka).await;
    let second = member(&world.kafka).await;
    settle(&[&first, &second], &[2, 2]).await;

    second.close().await.expect("closed");
    settle(&[&first], &[4]).await;

    for partition in 0..4 {
        world.produce("t", partition, &["a"]).await;
    }
    assert_eq!(take(&first, 4).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_member_works_off_its_records_before_it_gives_partitions_up() {
    let world = World::new(&[("t", 2)]).await;
    let first = member(&world.kafka).await;
    world.produce("t", 0, &["a"]).await;
    world.produce("t", 1, &["b"]).await;
    take(&first, 2).await;
    let second = member(&world.kafka).await;

    tokio::time::sleep(Duration::from_secs(30)).await;
    let during = (first.assignment().len(), second.assignment().len());
    settle(&[&first, &second], &[1, 1]).await;

    assert_eq!(during, (2, 0), "the first member is at work, and heartbeats keep it in the group");
    assert_eq!((committed(&world.fake, 0), committed(&world.fake, 1)), (Some(1), Some(1)));
    assert!(second.poll(Duration::from_secs(1)).await.expect("no error").is_empty(), "nothing is repeated");
}

#[tokio::test(start_paused = true)]
async fn the_listener_hears_of_each_change_in_order() {
    let world = World::new(&[("t", 2)]).await;
    let diary = Diary::default();
    let first = builder(&world.kafka).rebalance_listener(diary.clone()).build().await.expect("valid");
    first.subscribe(&["t"]).await.expect("it has a group");
    settle(&[&first], &[2]).await;

    let second = member(&world.kafka).await;
    settle(&[&first, &second], &[1, 1]).await;
    first.close().await.expect("closed");

    let mine = first_partition(&diary.pages()[2]);
    assert_eq!(
        diary.pages(),
        [
            "assigned t-0 t-1".to_owned(),
            "revoked t-0 t-1".to_owned(),
            format!("assigned {mine}"),
            format!("revoked {mine}"),
        ]
    );
}

fn first_partition(page: &str) -> String {
    page.rsplit(' ').next().expect("a partition").to_owned()
}

#[tokio::test(start_paused = true)]
async fn added_partitions_are_noticed() {
    let world = World::of(FakeCluster::builder().topic("t", 1).group_initial_rebalance_delay(Duration::ZERO)).await;
    let consumer = member(&world.kafka).await;
    settle(&[&consumer], &[1]).await;

    world.fake.add_partitions("t", 3);
    let begin = Instant::now();
    while consumer.assignment().len() < 3 {
        consumer.poll(Duration::from_secs(1)).await.expect("no error");
        assert!(begin.elapsed() < Duration::from_secs(400), "not noticed by the maximum age of metadata");
    }
    world.produce("t", 2, &["a"]).await;

    assert_eq!(values(&take(&consumer, 1).await), ["a"]);
}

/// Metadata that come while the group gathers are compared when it has: they do not come again.
#[tokio::test(start_paused = true)]
async fn partitions_that_are_added_while_the_group_gathers_are_noticed() {
    let world = World::of(FakeCluster::builder().topic("t", 1).group_initial_rebalance_delay(Duration::ZERO)).await;
    let kafka = Kafka::builder(world.fake.bootstrap())
        .environment(Environment::new(world.fake.pipes(), 7))
        .metadata_max_age(Duration::from_secs(1));
    let kafka = kafka.connect().await.expect("it is up");
    let slow = world.fake.when(ApiKey::SyncGroup).delay(Duration::from_secs(5));
    let consumer = member(&kafka).await;
    while slow.hits() == 0 {
        consumer.poll(Duration::from_millis(50)).await.expect("no error");
    }

    world.fake.add_partitions("t", 3);

    settle(&[&consumer], &[3]).await;
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_appears_later_is_read() {
    let world = World::new(&[]).await;
    let consumer = member(&world.kafka).await;
    assert!(consumer.poll(SOON).await.expect("an unknown topic is no error").is_empty());

    world.fake.create_topic("t", 2);
    settle(&[&consumer], &[2]).await;
    world.produce("t", 1, &["a"]).await;

    assert_eq!(values(&take(&consumer, 1).await), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_moved_coordinator_is_found_again() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = member(&world.kafka).await;
    world.produce("t", 0, &["a"]).await;
    take(&consumer, 1).await;

    world.fake.move_coordinator("g", world.fake.coordinator("g") % 3 + 1);
    world.produce("t", 0, &["b"]).await;
    let next = values(&take(&consumer, 1).await);
    consumer.commit().await.expect("committed at the new coordinator");

    assert_eq!(next, ["b"]);
    assert_eq!(committed(&world.fake, 0), Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_the_group_forgot_joins_again() {
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::ILLEGAL_GENERATION] {
        let world = World::new(&[("t", 1)]).await;
        let diary = Diary::default();
        let consumer = builder(&world.kafka).rebalance_listener(diary.clone()).build().await.expect("valid");
        consumer.subscribe(&["t"]).await.expect("it has a group");
        settle(&[&consumer], &[1]).await;

        world.fake.when(ApiKey::Heartbeat).reply_error(code).wait(1).await;
        settle(&[&consumer], &[1]).await;
        tokio::time::sleep(SOON).await;
        settle(&[&consumer], &[1]).await;
        world.produce("t", 0, &["a"]).await;

        assert_eq!(values(&take(&consumer, 1).await), ["a"], "after {code}");
        assert_eq!(diary.pages()[..2], ["assigned t-0", "lost t-0"], "after {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn passing_errors_while_joining_are_invisible() {
    let steps = [
        (ApiKey::JoinGroup, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
        (ApiKey::JoinGroup, ErrorCode::NOT_COORDINATOR),
        (ApiKey::SyncGroup, ErrorCode::REBALANCE_IN_PROGRESS),
        (ApiKey::SyncGroup, ErrorCode::NOT_COORDINATOR),
        (ApiKey::FindCoordinator, ErrorCode::COORDINATOR_NOT_AVAILABLE),
        (ApiKey::OffsetFetch, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
        (ApiKey::OffsetFetch, ErrorCode::UNSTABLE_OFFSET_COMMIT),
    ];
    for (api, code) in steps {
        let world = World::new(&[("t", 1)]).await;
        world.produce("t", 0, &["a"]).await;
        let rule = world.fake.when(api).times(2).reply_error(code);

        let consumer = member(&world.kafka).await;

        assert_eq!(values(&take(&consumer, 1).await), ["a"], "after {code} to {}", api.name());
        assert_eq!(rule.hits(), 2, "{code} to {}", api.name());
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_member_tells_the_user() {
    for code in [ErrorCode::GROUP_AUTHORIZATION_FAILED, ErrorCode::GROUP_MAX_SIZE_REACHED] {
        let world = World::new(&[("t", 1)]).await;
        world.fake.when(ApiKey::JoinGroup).forever().reply_error(code);
        let consumer = member(&world.kafka).await;

        let error = consumer.poll(SOON).await.expect_err("it is refused");

        assert!(matches!(&error, KrafkaError::Broker { code: found, .. } if *found == code), "{error}");
        assert!(error.to_string().contains("'g'"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_that_does_not_poll_leaves_and_comes_back() {
    let world = World::new(&[("t", 1)]).await;
    let diary = Diary::default();
    let builder = builder(&world.kafka).rebalance_listener(diary.clone()).max_poll_interval(Duration::from_secs(30));
    let consumer = builder.build().await.expect("valid");
    consumer.subscribe(&["t"]).await.expect("it has a group");
    settle(&[&consumer], &[1]).await;

    // Waiting inside poll is not idleness, however long it takes.
    consumer.poll(Duration::from_secs(100)).await.expect("no error");
    let after_waiting = consumer.assignment().len();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let members = world.fake.group("g").map_or(0, |group| group.members.len());
    let after_idling = consumer.assignment().len();
    settle(&[&consumer], &[1]).await;

    assert_eq!((after_waiting, after_idling, members), (1, 0, 0));
    assert_eq!(diary.pages(), ["assigned t-0", "lost t-0", "assigned t-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_static_member_comes_back_to_its_partitions_without_a_rebalance() {
    let world = World::new(&[("t", 2)]).await;
    let other = member(&world.kafka).await;
    let fixed = builder(&world.kafka).group_instance_id("one").build().await.expect("valid");
    fixed.subscribe(&["t"]).await.expect("it has a group");
    settle(&[&other, &fixed], &[1, 1]).await;
    let (mine, generation) = (fixed.assignment(), world.fake.group("g").expect("a group").generation);

    fixed.close().await.expect("closed");
    let again = builder(&world.kafka).group_instance_id("one").build().await.expect("valid");
    again.subscribe(&["t"]).await.expect("it has a group");
    settle(&[&other, &again], &[1, 1]).await;

    assert_eq!(again.assignment(), mine);
    assert_eq!(world.fake.group("g").expect("a group").generation, generation);
}

#[tokio::test(start_paused = true)]
async fn the_older_of_two_static_members_of_one_name_is_fenced() {
    let world = World::new(&[("t", 1)]).await;
    let older = builder(&world.kafka).group_instance_id("one").build().await.expect("valid");
    older.subscribe(&["t"]).await.expect("it has a group");
    settle(&[&older], &[1]).await;

    let newer = builder(&world.kafka).group_instance_id("one").build().await.expect("valid");
    newer.subscribe(&["t"]).await.expect("it has a group");
    settle(&[&newer], &[1]).await;
    let error = older.poll(SOON).await.expect_err("it is fenced");

    assert!(matches!(error, KrafkaError::Fenced { .. }), "{error}");
    assert!(older.assignment().is_empty());
}

#[tokio::test(start_paused = true)]
async fn changing_the_subscription_changes_the_assignment() {
    let world = World::new(&[("t", 1), ("u", 1)]).await;
    let consumer = member(&world.kafka).await;
    settle(&[&consumer], &[1]).await;

    consumer.subscribe(&["u", "t"]).await.expect("it has a group");
    settle(&[&consumer], &[2]).await;
    consumer.unsubscribe().await.expect("left");

    assert!(consumer.assignment().is_empty() && consumer.subscription().is_empty());
    assert!(world.fake.group("g").is_none_or(|group| group.members.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn calls_that_need_a_group_name_the_remedy() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;

    let errors = [
        consumer.subscribe(&["t"]).await.expect_err("no group"),
        consumer.commit().await.expect_err("no group"),
        consumer.committed(&[]).await.map(drop).expect_err("no group"),
    ];
    let empty = world.kafka.consumer("").build().await.expect_err("no name");

    for error in errors {
        assert!(matches!(error, KrafkaError::IllegalState { .. }), "{error}");
        assert!(error.to_string().contains("Kafka::consumer(group)"), "{error}");
    }
    assert!(matches!(empty, KrafkaError::Config { .. }) && empty.to_string().contains("group"), "{empty}");
}

#[tokio::test(start_paused = true)]
async fn subscribing_and_assigning_do_not_mix() {
    let world = World::new(&[("t", 1)]).await;
    let subscribed = member(&world.kafka).await;
    let assigned = builder(&world.kafka).build().await.expect("valid");
    assigned.assign("t", vec![0]).await.expect("assigned");

    let errors = [
        subscribed.assign("t", vec![0]).await.expect_err("it is subscribed"),
        assigned.subscribe(&["t"]).await.expect_err("it is assigned"),
    ];

    for error in errors {
        assert!(error.to_string().contains("unsubscribe()"), "{error}");
    }
}

/// A `poll` that is dropped while partitions are being revoked drops neither the callback nor the assignment after it.
#[tokio::test(start_paused = true)]
async fn a_poll_dropped_during_a_rebalance_loses_no_callback() {
    let world = World::new(&[("t", 2)]).await;
    let diary = Diary::default();
    let first = builder(&world.kafka).rebalance_listener(diary.clone()).build().await.expect("valid");
    first.subscribe(&["t"]).await.expect("it has a group");
    settle(&[&first], &[2]).await;
    let second = member(&world.kafka).await;

    let begin = Instant::now();
    while (first.assignment().len(), second.assignment().len()) != (1, 1) {
        let _ = tokio::time::timeout(Duration::from_millis(7), first.recv()).await;
        let _ = tokio::time::timeout(Duration::from_millis(7), second.recv()).await;
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", diary.pages());
    }
    tokio::time::sleep(SOON).await;

    let pages = diary.pages();
    assert_eq!(pages.len(), 3, "{pages:?}");
    assert_eq!(pages[1], "revoked t-0 t-1");
}

#[tokio::test(start_paused = true)]
async fn a_member_cut_off_from_its_coordinator_loses_its_partitions_at_the_session_timeout() {
    let world = World::new(&[("t", 1)]).await;
    let diary = Diary::default();
    let builder = builder(&world.kafka).rebalance_listener(diary.clone()).session_timeout(Duration::from_secs(10));
    let consumer = builder.build().await.expect("valid");
    consumer.subscribe(&["t"]).await.expect("it has a group");
    settle(&[&consumer], &[1]).await;

    let rule = world.fake.when(ApiKey::Heartbeat).forever().silence();
    consumer.poll(Duration::from_secs(9)).await.expect("no error");
    let before = diary.pages().len();
    consumer.poll(Duration::from_secs(2)).await.expect("no error");
    rule.remove();
    settle(&[&consumer], &[1]).await;
    consumer.poll(Duration::from_secs(60)).await.expect("no error");

    assert_eq!(before, 1);
    assert_eq!(diary.pages(), ["assigned t-0", "lost t-0", "assigned t-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_rebalance_under_load_keeps_order_and_commits() {
    let world = World::new(&[("t", 2)]).await;
    let sent = numbers(1, 100);
    for partition in 0..2 {
        world.produce("t", partition, &texts(&sent)).await;
    }
    let builder = |kafka: &Kafka| builder(kafka).max_poll_records(7);
    let first = builder(&world.kafka).build().await.expect("valid");
    first.subscribe(&["t"]).await.expect("it has a group");
    let mut got = vec![Vec::new(), Vec::new()];
    let mut keep = |records: Vec<krafka::ConsumerRecord>| {
        records.iter().for_each(|record| got[record.partition as usize].push(value(record)));
    };
    keep(first.poll(SOON).await.expect("records"));

    let second = builder(&world.kafka).build().await.expect("valid");
    second.subscribe(&["t"]).await.expect("it has a group");
    for _ in 0..100 {
        keep(first.poll(Duration::from_millis(100)).await.expect("no error"));
        keep(second.poll(Duration::from_millis(100)).await.expect("no error"));
    }

    assert_eq!(got, [sent.clone(), sent]);
}

#[tokio::test(start_paused = true)]
async fn more_members_than_partitions_are_stable() {
    let world = World::new(&[("t", 1)]).await;
    let first = member(&world.kafka).await;
    let second = member(&world.kafka).await;
    let begin = Instant::now();
    while first.assignment().len() + second.assignment().len() != 1 || begin.elapsed() < Duration::from_secs(20) {
        first.poll(Duration::from_millis(100)).await.expect("no error");
        second.poll(Duration::from_millis(100)).await.expect("no error");
        assert!(begin.elapsed() < Duration::from_secs(60));
    }

    let joins = world.fake.history().count(ApiKey::JoinGroup);
    first.poll(Duration::from_secs(60)).await.expect("no error");
    second.poll(Duration::from_secs(60)).await.expect("no error");

    assert_eq!(world.fake.history().count(ApiKey::JoinGroup), joins, "an empty share is no reason to join again");
}

/// A coordinator that parks the join must not park the leave behind it.
#[tokio::test(start_paused = true)]
async fn closing_during_a_join_is_quick_and_leaves_no_ghost() {
    let world = World::new(&[("t", 2)]).await;
    let first = member(&world.kafka).await;
    settle(&[&first], &[2]).await;
    // It joins, and waits for the first member, who does not poll.
    let second = member(&world.kafka).await;
    tokio::time::sleep(SOON).await;

    let begin = Instant::now();
    second.close().await.expect("closed");
    let took = begin.elapsed();
    settle(&[&first], &[2]).await;

    assert!(took < Duration::from_secs(1), "closing took {took:?}");
    assert_eq!(world.fake.group("g").expect("a group").members.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_in_time_when_the_coordinator_is_silent() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let consumer = builder(&world.kafka).close_timeout(Duration::from_secs(3)).build().await.expect("valid");
    consumer.subscribe(&["t"]).await.expect("it has a group");
    take(&consumer, 1).await;
    world.fake.when([ApiKey::OffsetCommit, ApiKey::LeaveGroup]).forever().silence();

    let begin = Instant::now();
    let error = consumer.close().await.expect_err("the position was not committed");

    assert!(error.to_string().contains("committing offsets of group 'g'"), "{error}");
    assert_eq!(begin.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_the_group_refuses_hears_why_until_it_subscribes_anew() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let second = Duration::from_secs(1);
    let builder = builder(&world.kafka).session_timeout(second).heartbeat_interval(second / 3);
    let consumer = builder.build().await.expect("the settings are valid");
    consumer.subscribe(&["t"]).await.expect("it has a group");

    for _ in 0..3 {
        let error = consumer.poll(second).await.expect_err("a session that short is refused").to_string();
        assert!(error.contains("session_timeout 1s") && error.contains("group.min.session.timeout.ms"), "{error}");
    }
    consumer.recv().await.expect_err("there is nothing to wait for");

    consumer.unsubscribe().await.expect("it can be given up");
    let error = consumer.poll(second).await.expect_err("there is nothing to read any more").to_string();
    assert!(error.contains("call subscribe or assign"), "the refusal is forgotten: {error}");
}
