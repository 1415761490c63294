//! How long an assignment stands before a group's coordinator makes the next one: groups of KIP-848, share groups and
//! streams groups alike, since Kafka 4.3. GN-01 and what SH-01 says of the broker.
//!
//! Each test gives its group a longer interval than the default, so that it shows that the group's own setting acts.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::streams_group_heartbeat::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};
use krafka_protocol::{ErrorCode, Str};
use tokio::time::Instant;

use crate::consumer::Consumer;
use crate::share_dead_letters::configure;
use crate::share_member::ShareMember;
use crate::streams_groups::{Member, part, statuses, topology};
use crate::target::{Target, Topic, run};

/// The interval of each group here, in milliseconds, and the same as a time.
const INTERVAL_MS: &str = "3000";
const INTERVAL: Duration = Duration::from_secs(3);
/// How much longer something may take than it must.
const SLACK: Duration = Duration::from_millis(1_500);

/// A streams group's member waits for its first tasks otherwise.
const AT_ONCE: (&str, &str) = ("streams.initial.rebalance.delay.ms", "0");

/// The status of a streams group whose assignment waits.
const DELAYED: i8 = 5;

/// Kafka 4.4 and later assign nothing to nobody when the last member goes, which no later assignment has to wait for.
async fn last_takes_interval_along(target: &Target) -> bool {
    target.version().await >= KafkaVersion::V4_4
}

async fn set(target: &Target, group: &Str, settings: &[(&str, &str)]) {
    target.since(KafkaVersion::V4_3, "assignment intervals").await;
    configure(target, group, settings).await;
    // Each node learns of it a little later.
    tokio::time::sleep(Duration::from_millis(500)).await;
}

#[expect(clippy::disallowed_methods, reason = "the time that passes is what the tests are about")]
fn now() -> Instant {
    Instant::now()
}

/// Whoever joins a group of KIP-848 that everybody has left is assigned its part at once, or after the interval.
#[test]
fn who_joins_an_empty_consumer_group_is_assigned() {
    run(async |target| {
        let (group, topic) = (target.fresh("group"), target.topic(1).await);
        set(&target, &group, &[("consumer.assignment.interval.ms", INTERVAL_MS)]).await;
        let mut first = Consumer::new(&target, &group, &[&topic]).await;
        let mut next = Consumer::new(&target, &group, &[&topic]).await;
        first.join().await;
        assert_eq!((first.epoch, first.size()), (2, 1));

        let since = now();
        first.leave().await;
        let empty = next.describe().await;
        next.join().await;
        let joined = (next.epoch, next.size());
        next.settle(1).await;

        if last_takes_interval_along(&target).await {
            assert_eq!((empty.group_epoch, empty.assignment_epoch), (3, 3));
            assert_eq!(joined, (4, 1));
        } else {
            assert_eq!((empty.group_epoch, empty.assignment_epoch), (3, 2));
            assert_eq!(joined, (2, 0));
            assert!(since.elapsed() > INTERVAL - SLACK, "{:?}", since.elapsed());
        }
        assert_eq!(next.epoch, 4);
    });
}

/// A share group's first assignment is of nothing, as the state of its partitions is not kept yet: the next one waits.
#[test]
fn a_share_group_waits_for_its_interval() {
    run(async |target| {
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        set(&target, &group, &[("share.assignment.interval.ms", INTERVAL_MS)]).await;
        let mut member = ShareMember::new(&target, &group, &topic, "m1").await;

        let since = now();
        member.join().await;

        let took = since.elapsed();
        assert!((INTERVAL..INTERVAL + SLACK).contains(&took), "{took:?}");
        assert_eq!(member.epoch, 3);
    });
}

/// Whoever joins a share group that everybody has left is assigned its part at once, or after the interval.
#[test]
fn who_joins_an_empty_share_group_is_assigned() {
    run(async |target| {
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        set(&target, &group, &[("share.assignment.interval.ms", INTERVAL_MS)]).await;
        let mut first = ShareMember::joined(&target, &group, &topic, "m1").await;
        let mut next = ShareMember::new(&target, &group, &topic, "m2").await;

        first.leave().await;
        let joined = next.beat(Some(vec![topic.name.clone()])).await;
        let told = (joined.member_epoch, joined.assignment.map(|given| given.topic_partitions.len()));
        let since = now();
        next.join().await;

        if last_takes_interval_along(&target).await {
            assert_eq!(told, (5, Some(1)));
        } else {
            assert_eq!(told, (3, Some(0)));
            assert!(since.elapsed() > INTERVAL - SLACK, "{:?}", since.elapsed());
        }
        assert_eq!(next.epoch, 5);
    });
}

/// A member of a streams group that speaks the version that is there.
struct Streams {
    member: Member,
    version: i16,
    reads: Topic,
}

impl Streams {
    async fn new(target: &Target, group: &Str, topic: &Topic, id: &'static str) -> Self {
        let version = i16::from(target.version().await >= KafkaVersion::V4_4);
        let reads = Topic { name: topic.name.clone(), id: topic.id };
        Self { member: Member::new(target, group, id).await, version, reads }
    }

    async fn say(&mut self, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse {
        let answer = self.member.wire.call(request, self.version).await;
        assert_eq!(ErrorCode(answer.error_code).name(), "NONE", "{:?}", answer.error_message);
        self.member.epoch = answer.member_epoch;
        answer
    }

    /// Joins. Says its epoch, how many parts of the topology it has tasks of, and the group's statuses.
    async fn join(&mut self) -> (i32, usize, Vec<i8>) {
        let joining = self.member.joining(topology(0, vec![part("0", &[&self.reads.name])]));
        shown(&self.say(joining).await)
    }

    /// Sends heartbeats until it has tasks.
    async fn wait(&mut self) {
        loop {
            let answer = self.say(self.member.heartbeat(self.member.epoch)).await;
            if answer.active_tasks.is_some_and(|tasks| !tasks.is_empty()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn shown(answer: &StreamsGroupHeartbeatResponse) -> (i32, usize, Vec<i8>) {
    (answer.member_epoch, answer.active_tasks.as_ref().map_or(0, Vec::len), statuses(answer))
}

/// Whoever joins a streams group that everybody has left is assigned its part at once, or after the interval.
#[test]
fn who_joins_an_empty_streams_group_is_assigned() {
    run(async |target| {
        let (group, topic) = (target.fresh("app"), target.topic(1).await);
        set(&target, &group, &[("streams.assignment.interval.ms", INTERVAL_MS), AT_ONCE]).await;
        let mut first = Streams::new(&target, &group, &topic, "m1").await;
        let mut next = Streams::new(&target, &group, &topic, "m2").await;
        assert_eq!(first.join().await, (2, 1, vec![]));

        let since = now();
        first.say(first.member.heartbeat(-1)).await;
        let joined = next.join().await;

        if last_takes_interval_along(&target).await {
            assert_eq!(joined, (4, 1, vec![]));
        } else {
            assert_eq!(joined, (2, 0, vec![DELAYED]));
            next.wait().await;
            assert!(since.elapsed() > INTERVAL - SLACK, "{:?}", since.elapsed());
        }
        assert_eq!(next.member.epoch, 4);
    });
}

/// Whoever joins a streams group with members waits for the interval, and is told so.
#[test]
fn a_streams_group_waits_for_its_interval() {
    run(async |target| {
        let (group, topic) = (target.fresh("app"), target.topic(2).await);
        set(&target, &group, &[("streams.assignment.interval.ms", INTERVAL_MS), AT_ONCE]).await;
        let mut first = Streams::new(&target, &group, &topic, "m1").await;
        let mut second = Streams::new(&target, &group, &topic, "m2").await;
        assert_eq!(first.join().await, (2, 1, vec![]));

        let since = now();
        let joined = second.join().await;
        loop {
            let answer = second.say(second.member.heartbeat(second.member.epoch)).await;
            if !statuses(&answer).contains(&DELAYED) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }

        let took = since.elapsed();
        assert_eq!(joined, (2, 0, vec![DELAYED]));
        assert!((INTERVAL - SLACK..INTERVAL + SLACK).contains(&took), "{took:?}");
        assert_eq!(second.member.epoch, 3);
    });
}
