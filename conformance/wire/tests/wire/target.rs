//! Where the tests run: a fake cluster in memory, or a real one at `KRAFKA_BOOTSTRAP`.
//!
//! What does not hold everywhere is said in the test, by `since` and `differs`, and never by passing in silence: see
//! `agreement.rs`. `KRAFKA_AS_VERSION=3.9` makes the fake look like that Kafka.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use krafka_fake_broker::{FakeCluster, FakeClusterBuilder, KafkaVersion};
use krafka_protocol::api::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponseBroker};
use krafka_protocol::frame::encode_request;
use krafka_protocol::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, Bytes, ErrorCode, HeartbeatRequest, Message, Reader, Request, Str,
    Uuid, decode_response_header,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::agreement::{Agreement, Place};

/// The environment variable that names a real broker.
const BOOTSTRAP: &str = "KRAFKA_BOOTSTRAP";

/// The environment variable that names a listener of the same broker that asks for SASL.
const BOOTSTRAP_SASL: &str = "KRAFKA_BOOTSTRAP_SASL";

/// The environment variable that names a broker which looks after its logs every few hundred milliseconds:
/// `log.retention.check.interval.ms`, `log.cleaner.backoff.ms` and `log.initial.task.delay.ms` are short. It also has
/// `unstable.api.versions.enable`.
pub(crate) const BOOTSTRAP_BRISK: &str = "KRAFKA_BOOTSTRAP_BRISK";

/// The environment variable that says which Kafka the fake looks like.
const AS_VERSION: &str = "KRAFKA_AS_VERSION";

/// The environment variable that names a broker whose features' levels the tests may change: a cluster of one node that
/// nobody else uses.
const BOOTSTRAP_LEVELS: &str = "KRAFKA_BOOTSTRAP_LEVELS";

/// Longer than anything takes that is going to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How long nothing must come for a test to believe that nothing will.
const QUIET: Duration = Duration::from_millis(300);

/// A cluster to ask.
pub(crate) struct Target {
    fake: Option<FakeCluster>,
    bootstrap: String,
    /// Whether the servers above are nodes 1, 2, 3 and so on, some of which may be down.
    are_numbered: bool,
    agreement: Agreement,
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

/// What a connection reads and writes: a socket, a pipe, or TLS around one.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// Runs a test on the fake in virtual time, or on the real broker in real time.
pub(crate) fn run(test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP) {
        Some(target) => run_on(target, test),
        None => on_fake(as_asked(FakeCluster::builder()), async |target, _| test(target).await),
    }
}

/// Runs a test on the real broker, or on a fake that looks like this Kafka.
pub(crate) fn run_as(version: KafkaVersion, test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP) {
        Some(target) => run_on(target, test),
        None => on_fake(FakeCluster::builder().as_version(version), async |target, _| test(target).await),
    }
}

/// Runs a test on a real broker.
pub(crate) fn run_on(target: Target, test: impl AsyncFnOnce(Target)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let agreement = target.agreement.clone();
    agreement.judge(|| runtime.block_on(test(target)));
}

/// Runs a test that needs three nodes: on the real cluster if it has as many, else on the fake.
pub(crate) fn run_on_three(test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP) {
        Some(target) if target.bootstrap.split(',').count() >= 3 => run_on(target, test),
        _ => on_fake(as_asked(FakeCluster::builder().nodes(3)), async |target, _| test(target).await),
    }
}

/// Runs a test on the real broker, or on a fake with settings in which it does what the broker does.
pub(crate) fn run_with(builder: FakeClusterBuilder, test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP) {
        Some(target) => run_on(target, test),
        None => on_fake(as_asked(builder), async |target, _| test(target).await),
    }
}

/// Runs a test on a listener that asks for SASL: the one at `KRAFKA_BOOTSTRAP_SASL`, whose users must be the builder's,
/// or that of a fake.
pub(crate) fn run_on_sasl(builder: FakeClusterBuilder, test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP_SASL) {
        Some(target) => run_on(target, test),
        None => on_fake(as_asked(builder), async |target, _| test(target).await),
    }
}

/// Runs a test that needs three nodes in racks, by which they choose the replica that a consumer reads from: on the
/// real cluster if it has as many nodes, else on the fake.
pub(crate) fn run_on_racks(test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP) {
        Some(target) if target.bootstrap.split(',').count() >= 3 => run_on(target, test),
        _ => {
            let racks = ["rack-1", "rack-2", "rack-3"];
            let builder = FakeCluster::builder().nodes(3).racks(racks).rack_aware_replica_selector(true);
            on_fake(as_asked(builder), async |target, _| test(target).await);
        }
    }
}

/// Runs a test that waits for what a broker does to its logs from time to time: on a real one only if it does so often.
pub(crate) fn run_on_brisk(test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP_BRISK) {
        Some(target) => run_on(target, test),
        None => on_fake(as_asked(FakeCluster::builder()), async |target, _| test(target).await),
    }
}

/// Runs a test that speaks versions which Kafka calls unstable.
pub(crate) fn run_on_unstable(test: impl AsyncFnOnce(Target)) {
    match Target::named_by(BOOTSTRAP_BRISK) {
        Some(target) => run_on(target, test),
        None => {
            let builder = FakeCluster::builder().unstable_api_versions(true);
            on_fake(as_asked(builder), async |target, _| test(target).await);
        }
    }
}

/// Runs a test that changes the levels of the cluster's features: on a real cluster only if it is there for that, and
/// then one such test at a time.
pub(crate) fn run_on_levels(test: impl AsyncFnOnce(Target)) {
    static ALONE: Mutex<()> = Mutex::new(());
    match Target::named_by(BOOTSTRAP_LEVELS) {
        Some(target) => {
            // A test that failed has left the levels behind that it had set: each sets its own.
            let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
            run_on(target, test);
        }
        None => on_fake(as_asked(FakeCluster::builder()), async |target, _| test(target).await),
    }
}

/// Runs a test that needs the fake: for its controls, or for settings that a broker at hand may not have.
pub(crate) fn on_fake(builder: FakeClusterBuilder, test: impl AsyncFnOnce(Target, FakeCluster)) {
    let paused = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = paused.expect("a runtime");
    let agreement = Agreement::new(Place::Fake);
    agreement.clone().judge(|| {
        runtime.block_on(async {
            let builder = builder.group_session_timeouts(Duration::from_secs(1), Duration::from_secs(1800));
            let builder = builder.fresh_coordinators(true);
            let fake = builder.start_on_pipes();
            let bootstrap = fake.bootstrap();
            let target = Target { fake: Some(fake.clone()), bootstrap, are_numbered: false, agreement };
            test(target, fake).await;
        });
    });
}

/// A fake on whose connections one may say nothing for hours.
pub(crate) fn patient(builder: FakeClusterBuilder) -> FakeClusterBuilder {
    builder.property("connections.max.idle.ms", "-1").expect("a setting of Kafka")
}

/// Settings as CreateTopics takes them.
fn given(configs: &[(&str, &str)]) -> Vec<CreatableTopicConfig> {
    let given = |&(name, value): &(&str, &str)| CreatableTopicConfig { name: name.into(), value: Some(value.into()) };
    configs.iter().map(given).collect()
}

/// Runs a test that needs the fake, which looks like the Kafka that the environment asks for.
pub(crate) fn on_fake_as_asked(builder: FakeClusterBuilder, test: impl AsyncFnOnce(Target, FakeCluster)) {
    on_fake(as_asked(builder), test);
}

/// Makes the fake look like the Kafka that the environment asks for.
fn as_asked(builder: FakeClusterBuilder) -> FakeClusterBuilder {
    match std::env::var(AS_VERSION) {
        Ok(version) => builder.as_version(version.parse().expect("a version of Kafka")),
        Err(_) => builder,
    }
}

impl Target {
    /// The real broker that an environment variable names, if it is set.
    pub(crate) fn named_by(variable: &str) -> Option<Self> {
        std::env::var(variable).ok().map(Self::real)
    }

    /// Real nodes with the ids 1, 2, 3 and so on, some of which may be down.
    pub(crate) fn of_nodes(servers: String) -> Self {
        Self { are_numbered: true, ..Self::real(servers) }
    }

    fn real(bootstrap: String) -> Self {
        Self { fake: None, bootstrap, are_numbered: false, agreement: Agreement::new(Place::Real) }
    }

    /// The Kafka that answers here, or that the fake looks like.
    pub(crate) async fn version(&self) -> KafkaVersion {
        let answer = self.api_versions().await;
        let finalized = answer.finalized_features.iter().find(|feature| &*feature.name == "metadata.version");
        // A fresh cluster has the newest level that its release knows, and each release so far has brought one.
        match finalized.expect("a cluster of KRaft has a metadata version").max_version_level {
            ..=21 => KafkaVersion::V3_9,
            22..=25 => KafkaVersion::V4_0,
            26..=27 => KafkaVersion::V4_1,
            28..=29 => KafkaVersion::V4_2,
            30 => KafkaVersion::V4_3,
            31.. => KafkaVersion::V4_4,
        }
    }

    pub(crate) async fn api_versions(&self) -> ApiVersionsResponse {
        let (client_software_name, client_software_version) = ("wire".into(), "1".into());
        let asked =
            ApiVersionsRequest { client_software_name, client_software_version, ..ApiVersionsRequest::default() };
        self.connect().await.call(asked, 3).await
    }

    /// Those of these versions of an API that are spoken here: all of them by the newest Kafka.
    pub(crate) async fn spoken(&self, api: ApiKey, versions: RangeInclusive<i16>) -> RangeInclusive<i16> {
        let answer = self.api_versions().await;
        let range = answer.api_keys.iter().find(|key| key.api_key == api.code()).expect("an API that is advertised");
        let (first, last) = (range.min_version.max(*versions.start()), range.max_version.min(*versions.end()));
        if self.version().await == KafkaVersion::V4_4 {
            assert_eq!(first..=last, versions, "the newest Kafka speaks them all");
        }
        first..=last
    }

    /// Ends the test here if what comes is not there in the Kafka that it runs on: the table of agreements says so, and
    /// `what` has come since then.
    pub(crate) async fn since(&self, first: KafkaVersion, what: &str) {
        if self.version().await < first {
            self.agreement.is_not_there(format!("{what}: since {first}"));
        }
    }

    /// Ends the test here if what comes is no longer there in the Kafka that it runs on.
    pub(crate) async fn until(&self, last: KafkaVersion, what: &str) {
        if self.version().await > last {
            self.agreement.is_not_there(format!("{what}: until {last}"));
        }
    }

    /// States that Kafkas before this version differ from what comes, and why. On those the test must fail, so that no
    /// statement outlives its difference.
    pub(crate) async fn differs_before(&self, first: KafkaVersion, why: &str) {
        if self.version().await < first {
            self.agreement.differs(format!("before {first}: {why}"));
        }
    }

    /// States that the fake differs from what comes, on purpose or not yet, and why. On the fake the test must fail.
    #[allow(dead_code, reason = "for the next difference that stays")]
    pub(crate) fn differs_on_fake(&self, why: &str) {
        if self.fake.is_some() {
            self.agreement.differs(why.to_owned());
        }
    }

    /// Connects to the first of the bootstrap servers.
    pub(crate) async fn connect(&self) -> Wire {
        self.connect_to_server(self.bootstrap.split(',').next().expect("a server")).await
    }

    async fn connect_to_server(&self, server: &str) -> Wire {
        let (host, port) = server.rsplit_once(':').expect("host:port");
        self.connect_to(host, port.parse().expect("a port")).await
    }

    /// Connects to a node, which is up.
    pub(crate) async fn node(&self, node: i32) -> Wire {
        if self.are_numbered {
            let server = self.bootstrap.split(',').nth(node as usize - 1).expect("a node of that id");
            return self.connect_to_server(server).await;
        }
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

    pub(crate) async fn connect_to(&self, host: &str, port: u16) -> Wire {
        Wire::over(self.dial(host, port).await)
    }

    /// Opens a stream, on which nothing was said yet.
    pub(crate) async fn dial(&self, host: &str, port: u16) -> Box<dyn Stream> {
        match &self.fake {
            Some(fake) => Box::new(fake.pipes().connect(host, port).await.expect("the node is up")),
            None => Box::new(TcpStream::connect((host, port)).await.expect("the broker is up")),
        }
    }

    /// A name that no other test and no earlier run has used.
    pub(crate) fn fresh(&self, what: &str) -> Str {
        fresh(what)
    }

    /// Makes a topic and waits until it has leaders.
    pub(crate) async fn topic(&self, partitions: i32) -> Topic {
        self.topic_with(partitions, &[]).await
    }

    /// Makes a topic with settings of its own. Where there are several real nodes, the one that `connect` reaches has
    /// all of it, alone: so a test that knows of one node runs on a cluster of any size.
    pub(crate) async fn topic_with(&self, partitions: i32, configs: &[(&str, &str)]) -> Topic {
        self.topic_called("topic", partitions, configs).await
    }

    /// The same, with a name that begins like this.
    pub(crate) async fn topic_called(&self, what: &str, partitions: i32, configs: &[(&str, &str)]) -> Topic {
        let (name, configs) = (self.fresh(what), given(configs));
        let mut topic = CreatableTopic { name, num_partitions: partitions, configs, ..CreatableTopic::default() };
        let mut wire = self.connect().await;
        if self.fake.is_none() && self.bootstrap.contains(',') {
            let first = self.first_node(&mut wire).await;
            let on_first = |partition_index| CreatableReplicaAssignment { partition_index, broker_ids: vec![first] };
            topic.assignments = (0..partitions).map(on_first).collect();
            topic.num_partitions = -1;
        }
        self.make(topic, &mut wire, partitions).await
    }

    /// The id of the node that `connect` connects to.
    async fn first_node(&self, wire: &mut Wire) -> i32 {
        let brokers = wire.call(MetadataRequest::default(), 12).await.brokers;
        let at = |broker: &&MetadataResponseBroker| {
            self.bootstrap.split(',').next() == Some(&format!("{}:{}", broker.host, broker.port))
        };
        brokers.iter().find(at).expect("the listener's own address among the brokers").node_id
    }

    /// Makes a topic of one partition with these replicas, the first of which leads.
    pub(crate) async fn topic_on(&self, replicas: &[i32]) -> Topic {
        self.topic_on_with(replicas, &[]).await
    }

    /// The same, with settings of its own.
    pub(crate) async fn topic_on_with(&self, replicas: &[i32], configs: &[(&str, &str)]) -> Topic {
        let assignment = CreatableReplicaAssignment { partition_index: 0, broker_ids: replicas.to_vec() };
        let (name, assignments, configs) = (self.fresh("topic"), vec![assignment], given(configs));
        let topic = CreatableTopic { name, num_partitions: -1, assignments, configs, ..CreatableTopic::default() };
        self.make(topic, &mut self.node(replicas[0]).await, 1).await
    }

    /// Makes a topic, and waits until the node asked leads it.
    async fn make(&self, topic: CreatableTopic, wire: &mut Wire, partitions: i32) -> Topic {
        let name = topic.name.clone();
        let topic = CreatableTopic { replication_factor: -1, ..topic };
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
                self.until_all_know(&ask).await;
                return Topic { name, id: topic.topic_id };
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until each node of a real cluster knows a topic: a coordinator is asked about it too.
    async fn until_all_know(&self, ask: &MetadataRequest) {
        if self.fake.is_some() {
            return;
        }
        for server in self.bootstrap.split(',') {
            let mut wire = self.connect_to_server(server).await;
            while wire.call(ask.clone(), 12).await.topics[0].error_code != 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
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

/// A name that no other test and no earlier run has used.
pub(crate) fn fresh(what: &str) -> Str {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let run = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_micros();
    Str::from(format!("{what}-{run}-{}", COUNT.fetch_add(1, Ordering::Relaxed)))
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
    /// Speaks Kafka's protocol on a stream.
    pub(crate) fn over(stream: Box<dyn Stream>) -> Self {
        Self { stream, next: 1 }
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn call<R: Request>(&mut self, request: R, version: i16) -> R::Response {
        self.send(request, version).await;
        self.receive::<R>(version).await
    }

    /// Sends a request.
    pub(crate) async fn send<R: Request>(&mut self, request: R, version: i16) {
        self.try_send(request, version).await.expect("the connection is open");
    }

    /// Sends a request on a connection that may be closed.
    pub(crate) async fn try_send<R: Request>(&mut self, request: R, version: i16) -> std::io::Result<()> {
        let frame = encode_request(&request, version, self.next, Some("wire")).expect("a legal request");
        self.next += 1;
        self.stream.write_all(&frame.to_bytes()).await?;
        self.stream.flush().await
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

    /// Reads one byte; none if the connection is closed.
    pub(crate) async fn byte(&mut self) -> Option<u8> {
        tokio::time::timeout(PATIENCE, self.stream.read_u8()).await.expect("something in time").ok()
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
