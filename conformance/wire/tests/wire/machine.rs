//! The cluster as a machine: no shell, no runtime, no clock.

use std::time::{Duration, Instant};

use krafka_fake_broker::{Action, Cluster, ConnectionId, FakeCluster, Input, SecurityProtocol};
use krafka_protocol::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::frame::encode_request;
use krafka_protocol::{Bytes, Machine, Request};

use crate::records::batch_at;

/// The length in front of a frame.
const PREFIX: usize = 4;

/// A machine, the time, and everything that it did.
struct Run {
    cluster: Cluster,
    now: Instant,
    trace: Vec<String>,
}

impl Run {
    #[expect(clippy::disallowed_methods, reason = "the time must begin somewhere")]
    fn new(seed: u64) -> Self {
        let now = Instant::now();
        let builder = FakeCluster::builder().nodes(3).topic("orders", 2).seed(seed).start_time_ms(1_700_000_000_000);
        Self { cluster: builder.build_machine(now), now, trace: Vec::new() }
    }

    fn input(&mut self, input: Input) {
        self.cluster.handle(input, self.now);
        self.drain();
    }

    fn open(&mut self, connection: u64, node: i32) {
        self.input(Input::Opened {
            connection: ConnectionId(connection),
            node,
            listener: SecurityProtocol::Plaintext,
            subject: None,
        });
    }

    fn send<R: Request>(&mut self, connection: u64, request: &R, version: i16) {
        let frame = encode_request(request, version, 1, Some("machine")).expect("a legal request").to_bytes();
        self.input(Input::Received { connection: ConnectionId(connection), frame: frame.slice(PREFIX..) });
    }

    /// Lets time pass, deadline by deadline.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(deadline) = self.cluster.deadline().filter(|deadline| *deadline <= end) {
            self.now = deadline;
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        while let Some(action) = self.cluster.poll(self.now) {
            self.trace.push(match action {
                Action::Write { connection, frame } => format!("{connection} {:?}", frame.to_bytes()),
                Action::Read { connection } => format!("{connection} read"),
                Action::Finish { connection } => format!("{connection} finish"),
                Action::Close { connection } => format!("{connection} close"),
                Action::Reset { connection } => format!("{connection} reset"),
            });
        }
        assert!(self.cluster.deadline().is_none_or(|deadline| deadline > self.now), "a drained machine is not late");
    }

    /// What was written, read or closed since the last call.
    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace)
    }
}

fn produce(acks: i16) -> ProduceRequest {
    let records = Some(batch_at(1_700_000_000_000, &["a", "b"]));
    let partition_data = vec![PartitionProduceData { index: 0, records }];
    let topic = TopicProduceData { name: "orders".into(), partition_data, ..TopicProduceData::default() };
    ProduceRequest { acks, timeout_ms: 1_000, topic_data: vec![topic], ..ProduceRequest::default() }
}

fn fetch(max_wait_ms: i32, fetch_offset: i64) -> FetchRequest {
    let partition = FetchPartition { fetch_offset, partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topic = FetchTopic { topic: "orders".into(), partitions: vec![partition], ..FetchTopic::default() };
    FetchRequest { max_wait_ms, min_bytes: 1, session_epoch: 0, topics: vec![topic], ..FetchRequest::default() }
}

fn join() -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol { name: "range".into(), metadata: Bytes::from_static(b"topics") };
    JoinGroupRequest {
        group_id: "group".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..JoinGroupRequest::default()
    }
}

/// A little of everything that draws from chance or waits for time.
fn story(seed: u64) -> Vec<String> {
    let mut run = Run::new(seed);
    for node in 1..=3 {
        run.open(node as u64, node);
    }
    run.send(1, &MetadataRequest { topics: None, ..MetadataRequest::default() }, 12);
    let topic = CreatableTopic { name: "made".into(), num_partitions: 3, replication_factor: 2, ..Default::default() };
    run.send(2, &CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() }, 7);
    run.send(1, &produce(-1), 9);
    run.open(4, 1);
    run.send(4, &fetch(5_000, 2), 12);
    run.pass(Duration::from_secs(1));
    run.send(1, &produce(1), 9);
    for connection in 1..=3 {
        run.send(connection, &join(), 3);
    }
    run.pass(Duration::from_secs(30));
    run.input(Input::Closed { connection: ConnectionId(2) });
    run.trace
}

#[test]
fn same_inputs_give_the_same_actions() {
    let first = story(7);

    assert!(first.len() > 10);
    assert_eq!(first, story(7));
    assert_ne!(first, story(8), "ids come from the seed");
}

/// FI-13a.
#[test]
fn next_request_is_looked_at_when_the_answer_was_handed_out() {
    let mut run = Run::new(0);
    run.open(1, 1);
    run.send(1, &fetch(5_000, 0), 12);
    run.send(1, &MetadataRequest::default(), 12);
    assert_eq!(run.take(), ["c1 read"]);

    run.pass(Duration::from_secs(4));
    assert_eq!(run.take(), [""; 0]);
    run.pass(Duration::from_secs(1));

    let actions = run.take();
    assert_eq!(actions.len(), 3, "two answers, and ready for more: {actions:?}");
    assert_eq!(actions[2], "c1 read");
}

/// FI-13b.
#[test]
fn unanswered_request_lets_the_next_one_through() {
    let mut run = Run::new(0);
    run.open(1, 1);
    run.take();

    run.send(1, &produce(0), 9);

    assert_eq!(run.take(), ["c1 read"]);
}

#[test]
fn closed_connection_is_owed_nothing() {
    let mut run = Run::new(0);
    run.open(1, 1);
    run.send(1, &fetch(5_000, 0), 12);
    run.input(Input::Closed { connection: ConnectionId(1) });
    run.take();

    run.pass(Duration::from_secs(10));

    assert_eq!(run.take(), [""; 0]);
    assert_eq!(run.cluster.deadline(), None);
}
