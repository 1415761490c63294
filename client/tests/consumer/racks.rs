//! A consumer that knows its rack reads from the replica there (KIP-392).

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use krafka::consumer::{AutoOffsetReset, Consumer, OffsetAndMetadata};
use krafka::testing::{FakeCluster, FakeClusterBuilder};
use krafka::{Environment, Kafka};
use krafka_protocol::{AnyResponse, ApiKey, ErrorCode, FetchRequest, FetchResponse};
use tokio::time::Instant;

use super::{SOON, World, numbers, take, texts, value, values};

/// How long a leader's word holds.
const LEASE: Duration = Duration::from_secs(60);

/// A cluster with a node in each of three racks, and a consumer that stands in the rack of a follower.
struct Racks {
    world: World,
    leader: i32,
    near: i32,
    consumer: Consumer,
}

impl Racks {
    async fn new() -> Self {
        Self::of(FakeCluster::builder().topic("t", 1)).await
    }

    async fn of(builder: FakeClusterBuilder) -> Self {
        let builder = builder.nodes(3).racks(["rack-1", "rack-2", "rack-3"]).rack_aware_replica_selector(true);
        let fake = builder.start_time_ms(1_000).start_on_pipes();
        let leader = fake.leader("t", 0).expect("a leader");
        let near = leader % 3 + 1;
        let kafka = Kafka::builder(fake.bootstrap())
            .environment(Environment::new(fake.pipes(), 1))
            .client_rack(format!("rack-{near}"))
            .metadata_max_age(LEASE)
            .connect()
            .await
            .expect("the fake is up");
        let world = World { fake, kafka };
        let consumer = world.reader("t", &[0]).await;
        Self { world, leader, near, consumer }
    }

    /// As above, with a record that has been read, so that the leader has sent the consumer to the other one.
    async fn settled() -> Self {
        let racks = Self::new().await;
        racks.world.produce("t", 0, &["first"]).await;
        assert_eq!(values(&take(&racks.consumer, 1).await), ["first"]);
        assert_eq!(racks.fetched_from().last(), Some(&racks.near));
        racks
    }

    /// Which nodes were asked for records, in order.
    fn fetched_from(&self) -> Vec<i32> {
        self.world.fake.history().of(ApiKey::Fetch).map(|event| event.node).collect()
    }

    fn fetches_of(&self, node: i32) -> usize {
        self.world.fake.history().count_on(node, ApiKey::Fetch)
    }

    /// Writes a record, and waits for it to be read. Says how long that took.
    async fn passes(&self, text: &str) -> Duration {
        self.world.produce("t", 0, &[text]).await;
        let begin = Instant::now();
        assert_eq!(values(&take(&self.consumer, 1).await), [text]);
        begin.elapsed()
    }
}

/// LE-24.
#[tokio::test(start_paused = true)]
async fn records_come_from_the_replica_in_the_consumers_rack() {
    let racks = Racks::new().await;
    let sent = numbers(0, 99);

    for some in texts(&sent).chunks(10) {
        racks.world.produce("t", 0, some).await;
        assert_eq!(values(&take(&racks.consumer, 10).await), some);
    }

    let nodes = racks.fetched_from();
    assert_eq!(nodes[0], racks.leader, "it says who is near");
    assert!(nodes[1..].iter().all(|node| *node == racks.near), "{nodes:?}");
    let history = racks.world.fake.history();
    let rack = format!("rack-{}", racks.near);
    assert!(history.requests::<FetchRequest>().all(|fetch| *fetch.rack_id == *rack));
}

#[tokio::test(start_paused = true)]
async fn without_a_rack_records_come_from_the_leader() {
    let Racks { world, leader, consumer, .. } = Racks::new().await;
    consumer.close().await.expect("closed");
    let kafka = World::connect(&world.fake, 2).await;
    let before = world.fake.history().count(ApiKey::Fetch);
    let plain = World { kafka, ..world };

    let consumer = plain.reader("t", &[0]).await;
    plain.produce("t", 0, &["a"]).await;
    take(&consumer, 1).await;

    let history = plain.fake.history();
    assert!(history.of(ApiKey::Fetch).skip(before).all(|event| event.node == leader));
}

/// LE-24: the leader is asked once in each lease.
#[tokio::test(start_paused = true)]
async fn when_the_lease_ends_the_leader_is_asked_again() {
    let racks = Racks::settled().await;
    let before = racks.fetches_of(racks.leader);

    tokio::time::sleep(LEASE - Duration::from_secs(2)).await;
    let within = racks.fetches_of(racks.leader);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let behind = racks.fetches_of(racks.leader);
    racks.passes("a").await;

    assert_eq!((within, behind), (before, before + 1));
    assert_eq!(racks.fetched_from().last(), Some(&racks.near), "it has said the same");
}

/// LE-25: a position that the replica does not have yet is the leader's to judge.
#[tokio::test(start_paused = true)]
async fn a_replica_that_lacks_the_position_does_not_reset_it() {
    let racks = Racks::settled().await;
    racks.world.fake.lag(racks.near, "t", 0);
    // The leader alone has these; they are committed when the other one is out of sync.
    for value in ["a", "b", "c"] {
        racks.world.fake.append("t", 0, None, Some(value.as_bytes()));
    }
    let before = racks.fetches_of(racks.near);

    racks.consumer.seek("t", 0, 2).await.expect("assigned");
    let early = racks.consumer.poll(SOON).await.expect("no error");

    assert_eq!(values(&early), [""; 0]);
    let asked = racks.fetches_of(racks.near) - before;
    assert!(asked <= 2, "it was asked {asked} times for what it lacks");
    assert_eq!(racks.consumer.position("t", 0).await.expect("a position"), 2, "it was not reset");
    let resets = racks.world.fake.history().count(ApiKey::ListOffsets);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(values(&take(&racks.consumer, 2).await), ["b", "c"]);
    assert_eq!(resets, 1, "where it began");
}

/// LE-25: to a replica that lags, what it lacks looks like a log that was truncated.
#[tokio::test(start_paused = true)]
async fn a_replica_that_lags_does_not_make_a_log_look_truncated() {
    let racks = Racks::settled().await;
    let epoch = racks.world.fake.leader_epoch("t", 0).expect("an epoch");
    racks.world.fake.lag(racks.near, "t", 0);
    for value in ["a", "b", "c"] {
        racks.world.fake.append("t", 0, None, Some(value.as_bytes()));
    }
    let before = racks.fetches_of(racks.near);

    racks.consumer.seek("t", 0, OffsetAndMetadata::new(2).leader_epoch(epoch)).await.expect("assigned");
    racks.consumer.poll(SOON).await.expect("no error");

    assert_eq!(racks.consumer.position("t", 0).await.expect("a position"), 2);
    assert!(racks.fetches_of(racks.near) > before, "it was asked, and said so");
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(values(&take(&racks.consumer, 2).await), ["b", "c"]);
}

/// LE-25: and what the leader does not have either is reset.
#[tokio::test(start_paused = true)]
async fn a_position_that_nobody_has_is_reset() {
    let racks = Racks::settled().await;

    racks.consumer.seek("t", 0, 1_000).await.expect("assigned");

    assert_eq!(values(&take(&racks.consumer, 1).await), ["first"], "from the earliest");
}

/// LE-26.
#[tokio::test(start_paused = true)]
async fn reading_goes_on_when_the_replica_dies() {
    let racks = Racks::settled().await;

    racks.world.fake.crash(racks.near);
    let took = racks.passes("a").await;
    assert_eq!(racks.fetched_from().last(), Some(&racks.leader));
    assert!(took < Duration::from_secs(1), "{took:?}");

    racks.world.fake.restart(racks.near);
    tokio::time::sleep(SOON).await;
    racks.passes("b").await;
    assert_eq!(racks.fetched_from().last(), Some(&racks.near), "it is sent there again");
}

/// LE-26: the leader does not know yet that it is unreachable, and names it again whenever it is asked.
#[tokio::test(start_paused = true)]
async fn a_replica_that_fails_costs_no_delay_and_is_not_hammered() {
    let codes = [
        ErrorCode::NOT_LEADER_OR_FOLLOWER,
        ErrorCode::REPLICA_NOT_AVAILABLE,
        ErrorCode::KAFKA_STORAGE_ERROR,
        ErrorCode::UNKNOWN_LEADER_EPOCH,
        ErrorCode::FENCED_LEADER_EPOCH,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::UNKNOWN_TOPIC_ID,
        ErrorCode::OFFSET_OUT_OF_RANGE,
        ErrorCode::UNKNOWN_SERVER_ERROR,
    ];
    for code in codes {
        let racks = Racks::settled().await;
        let rule = racks.world.fake.when(ApiKey::Fetch).on(racks.near).forever().partition("t", 0).reply_error(code);
        let (asked, led) = (racks.fetches_of(racks.near), racks.fetches_of(racks.leader));

        for number in numbers(1, 20) {
            let took = racks.passes(&number).await;
            assert!(took < Duration::from_millis(700), "{code}: {took:?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let (asked, led) = (racks.fetches_of(racks.near) - asked, racks.fetches_of(racks.leader) - led);
        rule.remove();
        tokio::time::sleep(SOON).await;
        racks.passes("at last").await;

        assert!((2..=20).contains(&asked), "{code}: {asked} fetches in 10 s");
        assert!(led <= 80, "{code}: {led} fetches of the leader in 10 s");
        assert_eq!(racks.fetched_from().last(), Some(&racks.near), "{code}: when it is well again");
    }
}

/// LE-26: so it is with connections that break.
#[tokio::test(start_paused = true)]
async fn a_replica_whose_connections_break_is_left_alone_for_a_while() {
    let racks = Racks::settled().await;
    let rule = racks.world.fake.when(ApiKey::Fetch).on(racks.near).forever().drop_connection();
    let asked = racks.fetches_of(racks.near);

    for number in numbers(1, 20) {
        let took = racks.passes(&number).await;
        assert!(took < Duration::from_millis(700), "{took:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let asked = racks.fetches_of(racks.near) - asked;
    rule.remove();

    assert!((2..=20).contains(&asked), "{asked} fetches in 10 s");
}

/// LE-04: the leader names a node of which the client has not heard.
#[tokio::test(start_paused = true)]
async fn a_preferred_replica_that_nobody_knows_strands_nothing() {
    let racks = Racks::new().await;
    racks.world.fake.when(ApiKey::Fetch).on(racks.leader).forever().edit(|response| {
        if let AnyResponse::Fetch(fetch) = response {
            name(fetch, 77);
        }
    });

    for number in numbers(1, 10) {
        let took = racks.passes(&number).await;
        assert!(took < Duration::from_secs(3), "{took:?}");
    }
    let asked = racks.fetches_of(racks.leader);
    assert!(asked <= 100, "{asked} fetches");
}

/// LE-04, BY-14: so it is when it names another one each time, and sends no records either: it is asked no more often
/// than one that has nothing to say.
#[tokio::test(start_paused = true)]
async fn a_leader_that_names_new_replicas_again_and_again_is_not_hammered() {
    let racks = Racks::new().await;
    let named = Arc::new(AtomicI32::new(100));
    let next = named.clone();
    racks.world.fake.when(ApiKey::Fetch).on(racks.leader).forever().edit(move |response| {
        if let AnyResponse::Fetch(fetch) = response {
            for partition in fetch.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
                partition.records = None;
                partition.preferred_read_replica = next.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    racks.world.produce("t", 0, &["a"]).await;
    let before = (racks.fetches_of(racks.leader), racks.world.fake.history().count(ApiKey::Metadata));

    tokio::time::sleep(Duration::from_secs(60)).await;

    let asked = racks.fetches_of(racks.leader) - before.0;
    assert!((100..=150).contains(&asked), "{asked} fetches in 60 s, which take 500 ms where nothing is new");
    let refreshes = racks.world.fake.history().count(ApiKey::Metadata) - before.1;
    assert!((30..=130).contains(&refreshes), "{refreshes} times it was looked for in 60 s");
    assert!(named.load(Ordering::Relaxed) > 200);
}

/// Sends the consumer on wherever the leader did so itself.
fn name(fetch: &mut FetchResponse, node: i32) {
    let partitions = fetch.responses.iter_mut().flat_map(|topic| &mut topic.partitions);
    for partition in partitions.filter(|partition| partition.preferred_read_replica >= 0) {
        partition.preferred_read_replica = node;
    }
}

/// LE-26: a leader that moves, also to the replica itself, is asked anew.
#[tokio::test(start_paused = true)]
async fn a_new_leader_is_asked_who_is_near() {
    let racks = Racks::settled().await;
    let third = racks.near % 3 + 1;

    racks.world.fake.move_leader("t", 0, third);
    tokio::time::sleep(SOON).await;
    racks.passes("a").await;
    assert!(racks.fetches_of(third) > 0, "it knows who is in sync");
    assert_eq!(racks.fetched_from().last(), Some(&racks.near));

    racks.world.fake.move_leader("t", 0, racks.near);
    racks.passes("b").await;
    let before = racks.fetched_from().len();
    racks.passes("c").await;
    assert!(racks.fetched_from()[before..].iter().all(|node| *node == racks.near));
}

/// LE-26: nothing is lost or comes twice, whoever is near, and in whatever order nodes die.
#[tokio::test(start_paused = true)]
async fn nothing_is_lost_or_doubled_while_replicas_come_and_go() {
    let racks =
        Racks::of(FakeCluster::builder().topic("t", 1).property("min.insync.replicas", "1").expect("known")).await;
    let sent = numbers(0, 199);
    let mut read = Vec::new();

    for (round, some) in texts(&sent).chunks(10).enumerate() {
        match round % 4 {
            0 => racks.world.fake.crash(racks.near),
            2 => racks.world.fake.restart(racks.near),
            _ => {}
        }
        racks.world.produce("t", 0, some).await;
        read.extend(take(&racks.consumer, 10).await);
        tokio::time::sleep(Duration::from_millis(u64::try_from(round * 137 % 1_000).expect("small"))).await;
    }

    assert_eq!(read.iter().map(value).collect::<Vec<_>>(), sent);
    assert!(racks.fetches_of(racks.near) > 10 && racks.fetches_of(racks.leader) > 10);
}

/// A replica that hangs is noticed when its answer is overdue, as a leader is.
#[tokio::test(start_paused = true)]
async fn a_replica_that_hangs_is_given_up_when_its_answer_is_overdue() {
    let racks = Racks::settled().await;
    racks.world.fake.pause(racks.near);
    racks.world.fake.append("t", 0, None, Some(b"a"));

    let begin = Instant::now();
    let mut read = Vec::new();
    while read.is_empty() && begin.elapsed() < Duration::from_secs(60) {
        read = racks.consumer.poll(SOON).await.expect("no error");
    }

    assert_eq!(values(&read), ["a"]);
    assert!(begin.elapsed() < Duration::from_secs(35), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_sessions_at_leader_and_replica() {
    let racks = Racks::settled().await;

    racks.consumer.close().await.expect("closed");

    let history = racks.world.fake.history();
    let ended: std::collections::BTreeSet<i32> = history
        .of(ApiKey::Fetch)
        .filter(|event| event.request::<FetchRequest>().is_some_and(|fetch| fetch.session_epoch == -1))
        .map(|event| event.node)
        .collect();
    assert_eq!(ended, [racks.leader, racks.near].into());
}

/// What the replica does not answer holds up nobody else.
#[tokio::test(start_paused = true)]
async fn each_partition_has_its_own_nearest_replica() {
    let racks = Racks::of(FakeCluster::builder().topic("t", 6)).await;
    let all: Vec<i32> = (0..6).collect();
    racks.consumer.assign("t", all.clone()).await.expect("assigned");

    for partition in all {
        racks.world.produce("t", partition, &["a", "b"]).await;
    }
    take(&racks.consumer, 12).await;
    let before = racks.fetched_from().len();
    for partition in 0..6 {
        racks.world.produce("t", partition, &["c"]).await;
    }
    take(&racks.consumer, 6).await;

    assert!(racks.fetched_from()[before..].iter().all(|node| *node == racks.near), "all have a replica there");
}

/// Brokers before 2.4 know no racks.
#[tokio::test(start_paused = true)]
async fn a_rack_is_left_out_where_the_broker_does_not_know_it() {
    let racks = Racks::new().await;
    racks.world.fake.when(ApiKey::ApiVersions).forever().edit(|response| {
        if let AnyResponse::ApiVersions(versions) = response {
            let fetch = versions.api_keys.iter_mut().filter(|api| api.api_key == ApiKey::Fetch as i16);
            fetch.for_each(|api| api.max_version = 10);
        }
    });
    racks.world.fake.nodes().into_iter().for_each(|node| racks.world.fake.disconnect(node));
    tokio::time::sleep(SOON).await;

    racks.passes("a").await;

    let history = racks.world.fake.history();
    let last = history.of(ApiKey::Fetch).next_back().expect("fetches");
    assert_eq!((last.node, last.version), (racks.leader, 10));
}

#[tokio::test(start_paused = true)]
async fn a_rack_of_a_handle_is_that_of_its_groups_members_too() {
    let racks = Racks::settled().await;
    let builder = racks.world.kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest);
    let member = builder.build().await.expect("valid");
    member.subscribe(&["t"]).await.expect("subscribed");
    let before = racks.fetches_of(racks.near);
    racks.consumer.close().await.expect("closed");

    assert_eq!(values(&take(&member, 1).await), ["first"]);

    assert!(racks.fetches_of(racks.near) > before + 1);
}

/// A member of a group that stands in `rack`, or nowhere, and has its partition; and the node that leads that.
async fn member_in(rack: &str, replicas: i16) -> (FakeCluster, i32, Consumer) {
    let builder = FakeCluster::builder().topic("t", 1).replication_factor(replicas);
    let Racks { world: World { fake, .. }, leader, .. } = Racks::of(builder).await;
    let kafka = Kafka::builder(fake.bootstrap())
        .environment(Environment::new(fake.pipes(), 2))
        .client_rack(rack)
        .metadata_max_age(SOON)
        .connect()
        .await
        .expect("the fake is up");
    let consumer = kafka.consumer("g").build().await.expect("valid");
    consumer.subscribe(&["t"]).await.expect("subscribed");
    while consumer.assignment().is_empty() {
        consumer.poll(SOON).await.expect("no error");
    }
    (fake, leader, consumer)
}

/// How many joins it takes when a node's rack changes.
async fn joins_when_a_rack_changes(rack: &str, node: impl FnOnce(i32) -> i32) -> usize {
    let (fake, leader, consumer) = member_in(rack, 1).await;
    let before = fake.history().count(ApiKey::JoinGroup);

    let changed = node(leader);
    fake.when(ApiKey::Metadata).forever().edit(move |response| {
        if let AnyResponse::Metadata(metadata) = response {
            let brokers = metadata.brokers.iter_mut().filter(|broker| broker.node_id == changed);
            brokers.for_each(|broker| broker.rack = Some("rack-9".into()));
        }
    });
    for _ in 0..6 {
        consumer.poll(SOON).await.expect("no error");
    }

    assert_eq!(consumer.assignment().len(), 1);
    fake.history().count(ApiKey::JoinGroup) - before
}

/// MD-23: once, and only where it matters.
#[tokio::test(start_paused = true)]
async fn a_group_rebalances_when_the_racks_of_its_partitions_change() {
    assert_eq!(joins_when_a_rack_changes("rack-1", |leader| leader).await, 1);
    assert_eq!(joins_when_a_rack_changes("rack-1", |leader| leader % 3 + 1).await, 0, "it has no partition there");
    assert_eq!(joins_when_a_rack_changes("", |leader| leader).await, 0, "racks are nothing to it");
}

/// MD-23: brokers that go and come back have moved nowhere (Kafka 4.4; 3.9 rebalances when each goes, and again
/// when it comes).
#[tokio::test(start_paused = true)]
async fn a_group_does_not_rebalance_when_brokers_are_restarted_in_turn() {
    let (fake, _, consumer) = member_in("rack-1", 3).await;
    let coordinator = fake.history().of(ApiKey::JoinGroup).next_back().expect("it has joined").node;
    let before = fake.history().count(ApiKey::JoinGroup);

    for node in (1..=3).filter(|node| *node != coordinator) {
        fake.crash(node);
        let down = fake.history().count(ApiKey::Metadata);
        for _ in 0..4 {
            consumer.poll(SOON).await.expect("no error");
        }
        assert!(fake.history().count(ApiKey::Metadata) > down, "it has heard that node {node} is down");
        fake.restart(node);
        for _ in 0..4 {
            consumer.poll(SOON).await.expect("no error");
        }
    }

    assert_eq!(fake.history().count(ApiKey::JoinGroup), before);
}
