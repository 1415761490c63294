//! The machine by script: a [`Play`] puts records in, answers as brokers would, and writes down what happens.

mod cluster;
mod idle;
mod order;
mod sequences;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use krafka_protocol::ErrorCode;
use krafka_protocol::api::produce::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};
use krafka_protocol::compression::Compressor;
use krafka_protocol::records::BatchHeader;
use krafka_protocol::script::Script;

use super::*;
use crate::cluster::PartitionView;
use crate::producer::batch::{OpenBatch, Time};
use crate::producer::builder::tests::defaults;
use crate::producer::delivery::{Receipt, Settled};
use crate::producer::flush::Generations;
use crate::producer::memory::{Memory, OVERHEAD};
use crate::producer::record::Record;

/// Who the producer is told to be.
const PRODUCER: ProducerId = ProducerId { id: 9, epoch: 0 };

const SECOND: Duration = Duration::from_secs(1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A request that the machine made, as a broker reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    id: u64,
    node: i32,
    batches: Vec<Stamped>,
}

/// A batch in it: partition, epoch, first sequence and number of records.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamped(i32, i16, i32, i32);

impl fmt::Debug for Stamped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(partition, epoch, sequence, count) = self;
        write!(f, "p{partition} e{epoch} s{sequence}+{count}")
    }
}

/// One run of the machine.
struct Play<'a> {
    script: &'a mut Script<Sender<i32>>,
    destinations: Vec<Arc<Destination>>,
    memory: Memory,
    generations: Generations,
    /// The next batch's number, by partition.
    numbers: Vec<u64>,
    /// What the machine ordered besides what is answered on the spot.
    log: Vec<String>,
    /// The topics to be kept fresh, each time that it was told.
    kept: Vec<String>,
    /// The requests that nobody looked at yet.
    requests: Vec<Request>,
    /// What brokers do when they are asked; else they are silent.
    connects: bool,
    identifies: bool,
}

/// Plays a scene twice, with settings of one's choice.
fn play_with(change: impl Fn(&mut Settings), scene: impl Fn(&mut Play<'_>)) {
    stage(change, |_| {}, scene);
}

/// Plays a scene with partitions that know the producer already, as if they had taken a batch of no records.
fn play_on(scene: impl Fn(&mut Play<'_>)) {
    stage(|_| {}, acquaint, scene);
}

fn acquaint(sender: &mut Sender<i32>) {
    let topic = sender.topics.entry("orders".into()).or_default();
    topic.view = sender.snapshot.topic("orders").cloned();
    topic.is_kept = true;
    for slot in 0..4 {
        let mut partition = Partition::new(destination(slot));
        partition.lead(topic.view.as_deref(), false);
        partition.sequences.restart(PRODUCER);
        let stamp = partition.sequences.stamp(PRODUCER, 0);
        partition.sequences.acknowledge(stamp, 0);
        topic.slots.push(slot);
        sender.partitions.push(Some(partition));
    }
}

fn destination(slot: usize) -> Arc<Destination> {
    Arc::new(Destination::new(slot, "orders".into(), slot as i32))
}

fn stage(change: impl Fn(&mut Settings), prepare: impl Fn(&mut Sender<i32>), scene: impl Fn(&mut Play<'_>)) {
    let mut settings = defaults();
    settings.linger = Duration::ZERO;
    change(&mut settings);
    let build = |_| {
        let view = snapshot(1, 1, &[Some(1), Some(1), Some(2), None]);
        let mut sender = Sender::new(settings.clone(), Arc::default(), view, Rng::new(1));
        prepare(&mut sender);
        sender
    };
    let scene = RefCell::new(scene);
    Script::run(build, |script| {
        let destinations = (0..4).map(destination).collect();
        let mut play = Play {
            script,
            destinations,
            memory: Memory::new(1 << 30, 1 << 20),
            generations: Generations::default(),
            numbers: vec![0; 4],
            log: Vec::new(),
            kept: Vec::new(),
            requests: Vec::new(),
            connects: true,
            identifies: true,
        };
        (scene.borrow())(&mut play);
        // Whatever the scene left undone, closing must answer.
        let deadline = Some(play.script.now() + SECOND);
        play.script.close(Input::Event(Event::Closed { deadline }), |sender| {
            sender.partitions.iter().flatten().map(|partition| partition.queue.len()).sum()
        });
    });
}

fn play(scene: impl Fn(&mut Play<'_>)) {
    play_with(|_| {}, scene);
}

/// A view of the topic "orders" with these leaders, all in one epoch.
fn snapshot(version: u64, leader_epoch: i32, leaders: &[Option<i32>]) -> Arc<Snapshot> {
    snapshot_of(version, leader_epoch, leaders, Uuid([7; 16]))
}

fn snapshot_of(version: u64, leader_epoch: i32, leaders: &[Option<i32>], id: Uuid) -> Arc<Snapshot> {
    let mut snapshot = Snapshot { version, ..Snapshot::default() };
    for id in 1..=3 {
        let node = Node { id, host: Str::from("broker"), port: 9_000 + id as u16, rack: None };
        snapshot.nodes.insert(id, Arc::new(node));
    }
    let partitions =
        leaders.iter().map(|leader| PartitionView { leader: *leader, leader_epoch, ..PartitionView::leaderless() });
    let name = Str::from("orders");
    let view = TopicView { name: name.clone(), id, is_internal: false, partitions: partitions.collect() };
    snapshot.topics.insert(name, Arc::new(view));
    Arc::new(snapshot)
}

struct Stopped(Instant);

impl Time for Stopped {
    fn now(&self) -> Instant {
        self.0
    }

    fn wall_ms(&self) -> i64 {
        0
    }
}

/// An answer for one partition.
fn answer(partition: i32, code: ErrorCode) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index: partition,
        error_code: code.0,
        base_offset: if code.is_ok() { 100 } else { -1 },
        ..PartitionProduceResponse::default()
    }
}

/// The answer that names another leader.
fn moved(partition: i32, leader_id: i32, leader_epoch: i32) -> PartitionProduceResponse {
    let current_leader = LeaderIdAndEpoch { leader_id, leader_epoch };
    PartitionProduceResponse { current_leader, ..answer(partition, ErrorCode::NOT_LEADER_OR_FOLLOWER) }
}

impl Play<'_> {
    /// Does what the machine orders, and notes it down.
    fn attend(&mut self) {
        loop {
            let actions = self.script.actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    Action::Connect(node) if self.connects => {
                        self.script.input(Input::Connected { node: node.id, link: node.id });
                    }
                    Action::Identify if self.identifies => {
                        self.script.input(Input::Identified(PRODUCER));
                    }
                    Action::Produce { request, link, batches } => {
                        let stamped = |batch: &Outgoing| {
                            let header = BatchHeader::peek(&batch.records).expect("a whole batch");
                            let partition = batch.destination.partition;
                            Stamped(partition, header.producer_epoch, header.base_sequence, header.count)
                        };
                        let batches = batches.iter().map(stamped).collect();
                        self.requests.push(Request { id: request, node: link, batches });
                    }
                    Action::Settle(receipt, settled) => {
                        let outcome = match &settled {
                            Settled::Written { base_offset, .. } => format!("written at {base_offset}"),
                            Settled::Failed(error) => format!("failed: {error}"),
                            Settled::Rejected { culprits, .. } => format!("rejected for {}", culprits.len()),
                            Settled::Split(_) => unreachable!("the machine splits receipts itself"),
                        };
                        self.log.push(format!("{} {outcome}", receipt.destination()));
                        receipt.settle(settled);
                    }
                    Action::Keep(topics) => self.kept.push(topics.join(" ")),
                    Action::Watch(_) | Action::Recycle(_) => {}
                    other => self.log.push(format!("{other:?}")),
                }
            }
        }
    }

    fn input(&mut self, input: Input<i32>) {
        self.script.input(input);
        self.attend();
    }

    fn after(&mut self, duration: Duration) {
        // In small steps, so that what is ordered on the way is answered when it is.
        let target = self.script.elapsed() + duration;
        while let Some(deadline) = self.script.deadline().filter(|deadline| *deadline <= target) {
            self.script.at(deadline);
            self.attend();
        }
        self.script.at(target);
        self.attend();
    }

    /// A caller appends the first record of a batch.
    fn open(&mut self, partition: usize) -> OpenBatch {
        let destination = self.destinations[partition].clone();
        let lease = self.memory.try_lease(4_096 + OVERHEAD).expect("plenty");
        let receipt = Receipt::new(destination.clone(), self.generations.token());
        let (number, at) = (self.numbers[partition], self.script.now());
        self.numbers[partition] += 1;
        let batch = OpenBatch::new(BytesMut::with_capacity(4_096), receipt, lease, number, at);
        self.input(Input::Event(Event::Opened { destination, number, at, is_hurried: false }));
        batch
    }

    /// A caller fills it.
    fn fill(&mut self, partition: usize, mut batch: OpenBatch, records: usize) {
        for _ in 0..records {
            let record = Record::new("orders", vec![b'x'; 100]);
            drop(batch.append(&record, &Stopped(self.script.now())).expect("it has room"));
        }
        let number = batch.number();
        let batch = batch.seal(&mut Compressor::none(), &self.destinations[partition]);
        self.input(Input::Event(Event::Sealed { slot: partition, number, batch }));
    }

    /// A batch is opened and filled at once.
    fn batch(&mut self, partition: usize, records: usize) {
        // Not told before the batch is sealed, or the machine would ask for that itself.
        let destination = self.destinations[partition].clone();
        let lease = self.memory.try_lease(4_096 + OVERHEAD).expect("plenty");
        let receipt = Receipt::new(destination.clone(), self.generations.token());
        let (number, at) = (self.numbers[partition], self.script.now());
        self.numbers[partition] += 1;
        let mut batch = OpenBatch::new(BytesMut::with_capacity(4_096), receipt, lease, number, at);
        for _ in 0..records {
            let record = Record::new("orders", vec![b'x'; 100]);
            drop(batch.append(&record, &Stopped(at)).expect("it has room"));
        }
        let batch = batch.seal(&mut Compressor::none(), &self.destinations[partition]);
        self.input(Input::Event(Event::Opened { destination, number, at, is_hurried: false }));
        self.input(Input::Event(Event::Sealed { slot: partition, number, batch }));
        self.log.retain(|entry| !entry.starts_with("Seal"));
    }

    /// The one request since the last look.
    #[track_caller]
    fn request(&mut self) -> Request {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }

    fn requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    /// What else happened since the last look.
    fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn reply(&mut self, request: &Request, answers: Vec<PartitionProduceResponse>) {
        self.reply_with(request, answers, Vec::new(), None);
    }

    fn reply_with(
        &mut self,
        request: &Request,
        partition_responses: Vec<PartitionProduceResponse>,
        node_endpoints: Vec<NodeEndpoint>,
        pause: Option<Duration>,
    ) {
        let topic = TopicProduceResponse { name: Str::from("orders"), topic_id: Uuid::ZERO, partition_responses };
        let response = ProduceResponse { responses: vec![topic], node_endpoints, ..ProduceResponse::default() };
        self.input(Input::Answered { request: request.id, response, pause });
    }

    fn accept(&mut self, request: &Request) {
        let answers = request.batches.iter().map(|batch| answer(batch.0, ErrorCode::NONE)).collect();
        self.reply(request, answers);
    }

    fn refuse(&mut self, request: &Request, code: ErrorCode) {
        let answers = request.batches.iter().map(|batch| answer(batch.0, code)).collect();
        self.reply(request, answers);
    }

    fn lose(&mut self, request: &Request, possibly_written: bool) {
        let error = KrafkaError::network("the connection", std::io::ErrorKind::ConnectionReset.into());
        self.input(Input::Lost { request: request.id, error, possibly_written, is_retriable: true });
    }
}
