//! The in-process fake cluster, for tests of code that uses this client.
//!
//! # Test your consumer in ten lines
//!
//! ```
//! use krafka::consumer::AutoOffsetReset;
//! use krafka::testing::{Clients, FakeCluster};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
//! let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
//! fake.append("orders", 0, Some(b"table 4"), Some(b"tea"));
//!
//! let kafka = fake.client().connect().await?;
//! let consumer = kafka.consumer("kitchen").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
//! consumer.subscribe(&["orders"]).await?;
//! let order = consumer.recv().await?;
//! consumer.close().await?;
//!
//! assert_eq!(order.value.as_deref(), Some(&b"tea"[..]));
//! assert_eq!(fake.committed("kitchen")[&("orders".into(), 0)], 1);
//! # Ok::<_, krafka::KrafkaError>(())
//! # }).unwrap();
//! ```
//!
//! The function around it is `#[tokio::test(start_paused = true)]`, for which tokio has the feature `test-util` (its
//! `full` does not include it): the cluster lives in memory, and time passes only when everybody waits, so that a
//! session timeout of a minute costs nothing. Each test has a cluster of its own, which ends when it is dropped; any
//! number run side by side.
//!
//! The same test does the same in each run. That its bytes are the same, too, takes a clock for what records say of
//! their time: [`start_time_ms`](FakeClusterBuilder::start_time_ms) for the cluster, and
//! [`wall_clock`](crate::Environment::wall_clock) for the client, whose default is the system's.
//!
//! # What to do with it
//!
//! | a test wants to | with |
//! | --- | --- |
//! | give a consumer something to read, poison included | [`append`], [`append_batch`] |
//! | see what was produced | [`records`], [`partition_records`] |
//! | see what was committed | [`committed`] |
//! | wait until a group has settled | [`wait_group_stable`] |
//! | wait for anything else | [`wait_for`], [`Rule::wait`] |
//! | make requests fail, wait, get lost, or be throttled | [`when`], a [`RuleBuilder`] |
//! | move a leader or a coordinator, kill a node | [`move_leader`], [`move_coordinator`], [`crash`], [`restart`] |
//! | know what the client asked, when and how often | [`history`] |
//! | be no `async` function | [`start_blocking`](FakeClusterBuilder::start_blocking) |
//! | give the cluster to a client in another language | [`start`], or the program `krafka-fake-broker` |
//!
//! [`append`]: FakeCluster::append
//! [`append_batch`]: FakeCluster::append_batch
//! [`records`]: FakeCluster::records
//! [`partition_records`]: FakeCluster::partition_records
//! [`committed`]: FakeCluster::committed
//! [`wait_group_stable`]: FakeCluster::wait_group_stable
//! [`wait_for`]: FakeCluster::wait_for
//! [`when`]: FakeCluster::when
//! [`move_leader`]: FakeCluster::move_leader
//! [`move_coordinator`]: FakeCluster::move_coordinator
//! [`crash`]: FakeCluster::crash
//! [`restart`]: FakeCluster::restart
//! [`history`]: FakeCluster::history
//! [`start`]: FakeClusterBuilder::start
//!
//! Five tests of applications are in `examples/testing`: a leader that moves, a poison record, a transfer that dies
//! half-way, a member that is too slow, and a quota.
//!
//! # What is stable
//!
//! These keep their names and meanings from one minor release to the next. What else there is says that it is
//! unstable: it follows Kafka, and what its tests need.
//!
//! * [`FakeCluster`][]: `builder`, `bootstrap`, `pipes`, `nodes`, `live_nodes`, `address`, `create_topic`,
//!   `delete_topic`, `add_partitions`, `topics`, `append`, `append_batch`, `records`, `partition_records`,
//!   `committed`, `group`, `wait_for`, `wait_group_stable`, `when`, `clear_faults`, `unfired_rules`, `history`,
//!   `leader`, `leader_epoch`, `move_leader`, `coordinator`, `move_coordinator`, `controller`, `move_controller`,
//!   `crash`, `restart`, `disconnect`, `connections`, `high_watermark`, `log_start_offset`, `delete_records`
//! * [`FakeClusterBuilder`][]: `nodes`, `topic`, `seed`, `as_version`, `node_version`, `racks`, `auto_create_topics`,
//!   `default_partitions`, `replication_factor`, `start`, `start_on_pipes`, `start_blocking`, `sasl_plain`, `user`,
//!   `port_base`, `start_time_ms`
//! * [`BlockingFakeCluster`][]: `block_on`, `wait_for`, `wait_group_stable`, `wait_hits`
//! * [`RuleBuilder`][]: `on`, `versions`, `topic`, `partition`, `group`, `client_id`, `matching`, `nth`, `probability`,
//!   `times`, `forever`, `after_handling`, `reply_error`, `throttle`, `delay`, `drop_connection`, `silence`,
//!   `rebootstrap`, `fence_epoch`, `move_leader`, `move_leader_away`, `observe`
//! * [`Rule`][]: `hits`, `wait`, `remove`
//! * [`History`][]: `iter`, `of`, `since`, `count`, `count_on`, `requests`, `len`, `is_empty`, `dropped`
//! * [`Event`][]: `request`, `response`
//! * [`GroupView`][]: `is_stable_with`
//!
//! # In ports
//!
//! [`start`] listens on ports of 127.0.0.1 instead, for clients that need sockets:
//! `Kafka::builder(fake.bootstrap())`. The clock cannot be paused then, and waits are real.

pub use krafka_fake_broker::*;

use crate::environment::{Connect, Connecting, Environment, Stream};
use crate::{Kafka, KafkaBuilder};

/// Clients of a fake cluster.
pub trait Clients {
    /// A client that reaches the cluster in memory, to be configured further and connected.
    ///
    /// Its chance (the jitter of its backoffs, its choice among equals) begins with the seed 1; set another with
    /// [`KafkaBuilder::environment`] and [`FakeCluster::pipes`].
    fn client(&self) -> KafkaBuilder;
}

impl Clients for FakeCluster {
    fn client(&self) -> KafkaBuilder {
        Kafka::builder(self.bootstrap()).environment(Environment::new(self.pipes(), 1))
    }
}

impl Connect for Pipes {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let stream: Box<dyn Stream> = Box::new(Self::connect(self, host, port).await?);
            Ok(stream)
        })
    }
}
