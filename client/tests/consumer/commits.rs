//! What a group has committed: when, by whom, and who resumes there.

use std::collections::BTreeSet;
use std::time::Duration;

use krafka::consumer::OffsetAndMetadata;
use krafka::{KrafkaError, TopicPartition};
use krafka_protocol::{ApiKey, ErrorCode, OffsetCommitRequest};
use tokio::time::Instant;

use super::group::{builder, committed, member};
use super::{World, take, values};

#[tokio::test(start_paused = true)]
async fn a_member_resumes_where_the_last_one_committed() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b", "c"]).await;
    let first = builder(&world.kafka).max_poll_records(2).auto_commit(false).build().await.expect("valid");
    first.subscribe(&["t"]).await.expect("it has a group");
    take(&first, 2).await;

    first.commit().await.expect("committed");
    first.close().await.expect("closed");
    let second = member(&world.kafka).await;

    assert_eq!(values(&take(&second, 1).await), ["c"]);
    let all = second.committed(&[TopicPartition::new("t", 0)]).await.expect("known");
    assert_eq!(all[&TopicPartition::new("t", 0)].offset, 2);
}

#[tokio::test(start_paused = true)]
async fn without_commits_everything_is_read_again() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;
    let first = builder(&world.kafka).auto_commit(false).build().await.expect("valid");
    first.subscribe(&["t"]).await.expect("it has a group");
    take(&first, 2).await;
    first.close().await.expect("closed");

    let second = member(&world.kafka).await;

    assert_eq!(values(&take(&second, 2).await), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_poll_returned_is_committed_only_after_the_next_began() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;
    let consumer = member(&world.kafka).await;

    take(&consumer, 2).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let before = committed(&world.fake, 0);
    consumer.poll(Duration::ZERO).await.expect("no error");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let after = committed(&world.fake, 0);

    assert!(before.unwrap_or(0) < 2, "it committed {before:?} while the records were being worked on");
    assert_eq!(after, Some(2));
}

#[tokio::test(start_paused = true)]
async fn closing_commits_and_leaves_at_once() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;
    let consumer = member(&world.kafka).await;
    take(&consumer, 2).await;

    let begin = Instant::now();
    consumer.close().await.expect("closed");

    assert_eq!(committed(&world.fake, 0), Some(2));
    assert!(world.fake.group("g").is_none_or(|group| group.members.is_empty()));
    assert!(begin.elapsed() < Duration::from_secs(1), "closing took {:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_retried_while_the_coordinator_loads() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let consumer = builder(&world.kafka).auto_commit(false).build().await.expect("valid");
    consumer.subscribe(&["t"]).await.expect("it has a group");
    take(&consumer, 1).await;
    let rule = world.fake.when(ApiKey::OffsetCommit).times(3).reply_error(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);

    consumer.commit().await.expect("committed at the fourth try");

    assert_eq!((rule.hits(), committed(&world.fake, 0)), (3, Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_cannot_succeed_ends_at_its_timeout() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let builder = builder(&world.kafka).auto_commit(false).api_timeout(Duration::from_secs(5));
    let consumer = builder.build().await.expect("valid");
    consumer.subscribe(&["t"]).await.expect("it has a group");
    take(&consumer, 1).await;
    world.fake.when(ApiKey::OffsetCommit).forever().reply_error(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);

    let begin = Instant::now();
    let error = consumer.commit().await.expect_err("it cannot succeed");

    assert!(matches!(error, KrafkaError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("COORDINATOR_LOAD_IN_PROGRESS"), "{error}");
    assert_eq!(begin.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_commit_carries_the_leader_epoch_and_the_metadata() {
    let world = World::new(&[("t", 1)]).await;
    world.fake.bump_leader_epoch("t", 0);
    world.produce("t", 0, &["a"]).await;
    let consumer = builder(&world.kafka).auto_commit(false).build().await.expect("valid");
    consumer.subscribe(&["t"]).await.expect("it has a group");
    let epoch = take(&consumer, 1).await[0].leader_epoch;

    consumer.commit().await.expect("committed");
    let by_position = consumer.committed(&[TopicPartition::new("t", 0)]).await.expect("known");
    consumer.commit_offsets([(("t", 0), OffsetAndMetadata::new(1).metadata("mine"))]).await.expect("committed");
    let by_hand = consumer.committed(&[TopicPartition::new("t", 0)]).await.expect("known");

    let name = TopicPartition::new("t", 0);
    assert!(epoch.is_some());
    assert_eq!(by_position[&name].leader_epoch, epoch);
    assert_eq!((by_hand[&name].offset, &*by_hand[&name].metadata), (1, "mine"));
}

#[tokio::test(start_paused = true)]
async fn partitions_assigned_by_hand_use_the_groups_offsets() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;
    let first = builder(&world.kafka).max_poll_records(1).build().await.expect("valid");
    first.assign("t", vec![0]).await.expect("assigned");
    take(&first, 1).await;
    first.close().await.expect("closed");

    let second = builder(&world.kafka).build().await.expect("valid");
    second.assign("t", vec![0]).await.expect("assigned");

    assert_eq!(values(&take(&second, 1).await), ["b"]);
    assert_eq!(world.fake.history().count(ApiKey::JoinGroup), 0);
    let generations: BTreeSet<_> = world
        .fake
        .history()
        .requests::<OffsetCommitRequest>()
        .map(|commit| commit.generation_id_or_member_epoch)
        .collect();
    assert_eq!(generations, BTreeSet::from([-1]));
}

#[tokio::test(start_paused = true)]
async fn a_commit_after_the_group_moved_on_says_so() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let consumer = builder(&world.kafka).auto_commit(false).build().await.expect("valid");
    consumer.subscribe(&["t"]).await.expect("it has a group");
    take(&consumer, 1).await;
    world.fake.when(ApiKey::OffsetCommit).reply_error(ErrorCode::ILLEGAL_GENERATION);

    let error = consumer.commit().await.expect_err("it is not in the generation");
    let again = values(&take(&consumer, 1).await);

    assert!(matches!(error, KrafkaError::Broker { code: ErrorCode::ILLEGAL_GENERATION, .. }), "{error}");
    assert_eq!(again, ["a"], "it joins again at once, and begins where the group had committed");
}

/// Nothing is committed for what does not exist. Java's consumer says the same, and at once.
#[tokio::test(start_paused = true)]
async fn a_topic_that_does_not_exist_has_nothing_committed() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = builder(&world.kafka).build().await.expect("valid");
    let (known, unknown) = (TopicPartition::new("t", 0), TopicPartition::new("nowhere", 0));
    consumer.commit_offsets([(known.clone(), 7)]).await.expect("committed");
    let begin = Instant::now();

    let committed = consumer.committed(&[known.clone(), unknown]).await.expect("it is answered");

    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    assert_eq!(committed.keys().collect::<Vec<_>>(), [&known]);
    assert_eq!(committed[&known].offset, 7);
}

/// A topic that comes back with fewer partitions, or not at all, does not hold up the rebalance that follows: nobody
/// waits for offsets of partitions that are not there.
#[tokio::test(start_paused = true)]
async fn what_is_gone_does_not_hold_up_its_group() {
    for partitions in [Some(1), None] {
        let world = World::new(&[("t", 3), ("u", 1)]).await;
        let consumer = builder(&world.kafka).build().await.expect("valid");
        consumer.subscribe(&["t", "u"]).await.expect("it has a group");
        for partition in 0..3 {
            world.produce("t", partition, &["old"]).await;
        }
        take(&consumer, 3).await;
        let begin = Instant::now();

        world.fake.delete_topic("t");
        let news = if let Some(partitions) = partitions {
            world.fake.create_topic("t", partitions);
            TopicPartition::new("t", 0)
        } else {
            TopicPartition::new("u", 0)
        };
        world.produce(&news.topic, 0, &["new"]).await;
        let read = values(&take(&consumer, 1).await);
        let expected = [partitions.map(|_| TopicPartition::new("t", 0)), Some(TopicPartition::new("u", 0))];
        while consumer.assignment() != expected.iter().flatten().cloned().collect::<Vec<_>>() {
            consumer.poll(Duration::from_millis(100)).await.expect("a topic may go");
            assert!(begin.elapsed() < Duration::from_secs(30), "{partitions:?}: it has {:?}", consumer.assignment());
        }

        assert_eq!(read, ["new"]);
        assert!(begin.elapsed() < Duration::from_secs(30), "{partitions:?}: {:?}", begin.elapsed());
        consumer.close().await.expect("nothing that is there is left uncommitted");
    }
}
