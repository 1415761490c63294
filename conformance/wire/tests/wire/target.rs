//! Where the tests run: a fake cluster in memory, or a real one at `KRAFKA_BOOTSTRAP`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use krafka_fake_broker::{FakeCluster, FakeClusterBuilder};
use krafka_protocol::api::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};
use krafka_protocol::frame::encode_request;
use krafka_protocol::{
    Bytes, ErrorCode, HeartbeatRequest, Message, Reader, Request, Str, Uuid, decode_response_header,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// The environment variable that names a real broker.
const BOOTSTRAP: &str = "KRAFKA_BOOTSTRAP";

/// Longer than anything takes that is going to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long nothing must come for a test to believe that nothing will.
const QUIET: Duration = Duration::from_millis(300);

/// A cluster to ask.
pub(crate) struct Target {
    fake: Option<FakeCluster>,
    bootstrap: String,
}

/// A topic that was made for one test.
pub(crate) struct Topic {
    pub(crate) name: Str,
    pub(crate) id: Uuid,
}

/// A connection, on which requests are sent in any version.
pub(crate) struct Wire {
    stream: Box<dyn Stream>,
    next: i32,
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// Runs a test on the fake in virtual time, or on the real broker in real time.
pub(crate) fn run(test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP) {
        Some(target) => run_on(target, test),
        None => on_fake(FakeCluster::builder(), async |target, _| test(target).await),
    }
}

/// Runs a test on a real broker.
pub(crate) fn run_on(target: Target, test: impl AsyncFnOnce(Target)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test(target));
}

/// Runs a test that needs three nodes: on the real cluster if it has as many, else on the fake.
pub(crate) fn run_on_three(test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP) {
        Some(target) if target.bootstrap.split(',').count() >= 3 => run_on(target, test),
        _ => on_fake(FakeCluster::builder().nodes(3), async |target, _| test(target).await),
    }
}

/// Runs a test that needs the fake: for its controls, or for settings that a broker at hand may not have.
pub(crate) fn on_fake(builder: FakeClusterBuilder, test: impl AsyncFnOnce(Target, FakeCluster)) {
    let paused = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    paused.expect("a runtime").block_on(async {
        let fake = builder.group_session_timeouts(Duration::from_secs(1), Duration::from_secs(1800)).start_on_pipes();
        let target = Target { fake: Some(fake.clone()), bootstrap: fake.bootstrap() };
        test(target, fake).await;
    });
}

impl Target {
    /// The real broker that an environment variable names, if it is set.
    pub(crate) fn named_by(variable: &str) -> Option<Self> {
        std::env::var(variable).ok().map(|bootstrap| Self { fake: None, bootstrap })
    }

    /// Connects to the first of the bootstrap servers.
    pub(crate) async fn connect(&self) -> Wire {
        let first = self.bootstrap.split(',').next().expect("a server");
        let (host, port) = first.rsplit_once(':').expect("host:port");
        self.connect_to(host, port.parse().expect("a port")).await
    }

    /// Connects to a node, which is up.
    pub(crate) async fn node(&self, node: i32) -> Wire {
        let (host, port) = match &self.fake {
            Some(fake) => fake.address(node).expect("a node of that id"),
            None => {
                let brokers = self.connect().await.call(MetadataRequest::default(), 12).await.brokers;
                let found = brokers.into_iter().find(|broker| broker.node_id == node).expect("a node of that id");
                (found.host, u16::try_from(found.port).expect("a port"))
            }
        };
        self.connect_to(&host, port).await
    }

    async fn connect_to(&self, host: &str, port: u16) -> Wire {
        let stream: Box<dyn Stream> = match &self.fake {
            Some(fake) => Box::new(fake.pipes().connect(host, port).await.expect("the node is up")),
            None => Box::new(TcpStream::connect((host, port)).await.expect("the broker is up")),
        };
        Wire { stream, next: 1 }
    }

    /// A name that no other test and no earlier run has used.
    pub(crate) fn fresh(&self, what: &str) -> Str {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let run = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_micros();
        Str::from(format!("{what}-{run}-{}", COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Makes a topic and waits until it has leaders.
    pub(crate) async fn topic(&self, partitions: i32) -> Topic {
        self.topic_with(partitions, &[]).await
    }

    /// Makes a topic with settings of its own.
    pub(crate) async fn topic_with(&self, partitions: i32, configs: &[(&str, &str)]) -> Topic {
        let given =
            |&(name, value): &(&str, &str)| CreatableTopicConfig { name: name.into(), value: Some(value.into()) };
        let configs = configs.iter().map(given).collect();
        let topic = CreatableTopic { num_partitions: partitions, configs, ..CreatableTopic::default() };
        let mut wire = self.connect().await;
        self.make(topic, &mut wire, partitions).await
    }

    /// Makes a topic of one partition with these replicas, the first of which leads.
    pub(crate) async fn topic_on(&self, replicas: &[i32]) -> Topic {
        let assignment = CreatableReplicaAssignment { partition_index: 0, broker_ids: replicas.to_vec() };
        let topic = CreatableTopic { num_partitions: -1, assignments: vec![assignment], ..CreatableTopic::default() };
        self.make(topic, &mut self.node(replicas[0]).await, 1).await
    }

    /// Makes a topic, and waits until the node asked leads it.
    async fn make(&self, topic: CreatableTopic, wire: &mut Wire, partitions: i32) -> Topic {
        let name = self.fresh("topic");
        let topic = CreatableTopic { name: name.clone(), replication_factor: -1, ..topic };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 5_000, ..CreateTopicsRequest::default() };
        assert_eq!(wire.call(request, 5).await.topics[0].error_code, 0);
        let ask = MetadataRequest {
            topics: Some(vec![MetadataRequestTopic { name: Some(name.clone()), ..MetadataRequestTopic::default() }]),
            ..MetadataRequest::default()
        };
        loop {
            let mut found = wire.call(ask.clone(), 12).await.topics;
            let topic = found.remove(0);
            let has_leaders = topic.error_code == 0 && topic.partitions.iter().all(|p| p.error_code == 0);
            // A real broker knows that it leads a little before it does.
            if has_leaders && serves(wire, &name, partitions).await {
                return Topic { name, id: topic.topic_id };
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Connects to a group's coordinator, which may have to read its log first.
    pub(crate) async fn coordinator(&self, group: &Str) -> Wire {
        let mut wire = self.find(0, group).await;
        let request = HeartbeatRequest { group_id: group.clone(), ..HeartbeatRequest::default() };
        loop {
            match ErrorCode(wire.call(request.clone(), 0).await.error_code) {
                ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => {}
                _ => return wire,
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Connects to a group's coordinator when the first of the bootstrap servers may be down.
    pub(crate) async fn to(&self, group: &str, fake: &FakeCluster) -> Wire {
        let (host, port) = fake.address(fake.coordinator(group)).expect("a node");
        self.connect_to(&host, port).await
    }

    /// Connects to a transactional id's coordinator.
    pub(crate) async fn transaction_coordinator(&self, transactional_id: &Str) -> Wire {
        self.find(1, transactional_id).await
    }

    /// A broker that is just up may not know its coordinators for a while.
    async fn find(&self, key_type: i8, key: &Str) -> Wire {
        let mut wire = self.connect().await;
        let coordinator_keys = vec![key.clone()];
        let request = FindCoordinatorRequest { key_type, coordinator_keys, ..FindCoordinatorRequest::default() };
        loop {
            let found = wire.call(request.clone(), 4).await.coordinators.remove(0);
            if found.error_code == 0 {
                return self.connect_to(&found.host, u16::try_from(found.port).expect("a port")).await;
            }
            assert_eq!(ErrorCode(found.error_code), ErrorCode::COORDINATOR_NOT_AVAILABLE);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Whether a broker answers for all partitions of a topic.
async fn serves(wire: &mut Wire, name: &Str, partitions: i32) -> bool {
    let ask = |partition_index| ListOffsetsPartition { partition_index, timestamp: -1, ..Default::default() };
    let topic = ListOffsetsTopic { name: name.clone(), partitions: (0..partitions).map(ask).collect() };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() };
    let mut answers = wire.call(request, 7).await.topics;
    answers.remove(0).partitions.iter().all(|answer| answer.error_code == 0)
}

impl Wire {
    /// Sends a request and reads its answer.
    pub(crate) async fn call<R: Request>(&mut self, request: R, version: i16) -> R::Response {
        self.send(request, version).await;
        self.receive::<R>(version).await
    }

    /// Sends a request.
    pub(crate) async fn send<R: Request>(&mut self, request: R, version: i16) {
        let frame = encode_request(&request, version, self.next, Some("wire")).expect("a legal request");
        self.next += 1;
        self.stream.write_all(&frame.to_bytes()).await.expect("the connection is open");
    }

    /// Reads the answer to the oldest request that has none.
    pub(crate) async fn receive<R: Request>(&mut self, version: i16) -> R::Response {
        let body = tokio::time::timeout(PATIENCE, self.frame()).await.expect("an answer in time");
        let mut reader = Reader::new(body.expect("an answer"));
        decode_response_header(R::KEY, version, &mut reader).expect("a header");
        let response = R::Response::decode(&mut reader, version).expect("a legal answer");
        assert_eq!(reader.remaining(), 0, "nothing is left of the answer");
        response
    }

    /// Whether nothing comes for a while, and the connection stays open.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        tokio::time::timeout(QUIET, self.stream.read(&mut byte)).await.is_err()
    }

    /// Whether the other side closes the connection without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        tokio::time::timeout(PATIENCE, self.frame()).await.is_ok_and(|frame| frame.is_none())
    }

    /// Sends bytes that are no request.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the connection is open");
    }

    /// Reads one frame without its length; none if the connection is closed.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        let length = self.stream.read_i32().await.ok()?;
        let mut body = vec![0; usize::try_from(length).expect("a length")];
        self.stream.read_exact(&mut body).await.ok()?;
        Some(Bytes::from(body))
    }
}
