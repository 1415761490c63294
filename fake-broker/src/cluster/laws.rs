//! Laws of the machine, whatever it is fed: it never panics, it is never late, its logs stay sound (`soundness.rs`),
//! and a clone does the same as the original.
//!
//! Requests of every API are made by their schemas, with values that are legal, nearly legal or absurd; a producer that
//! knows what it does writes transactions in between (`producer.rs`); frames are broken; nodes die, leaders move,
//! followers lag, and time passes. A seed is a run: `LAWS_SEEDS=1000` runs more of them. What the laws are worth is in
//! `fake-broker/PLANTS.md`.

mod network;
mod producer;
mod soundness;

use std::time::{Duration, Instant};

use krafka_protocol::compression::{Compression, Compressor};
use krafka_protocol::frame::encode_any_request;
use krafka_protocol::records::BatchBuilder;
use krafka_protocol::schema::{FieldType, MessageSchema};
use krafka_protocol::{AnyRequest, ApiKey, Bytes, ErrorCode, Machine, Reader, Str, Uuid};

use self::soundness::{Seen, Sights};
use super::{Action, Cluster, Input};
use crate::context::ConnectionId;
use crate::faults::{Apis, Damage, Meaning, Node, RuleBuilder, Tree};
use crate::handle::FakeCluster;
use crate::listeners::SecurityProtocol;
use crate::operations::{Durability, Operation};
use crate::rng::Rng;

/// How many seeds run when nobody asks for more.
const SEEDS: u64 = 60;
/// How many things happen in a run.
const STEPS: usize = 200;
/// How many of the newest connections are spoken on.
const CONNECTIONS: u64 = 6;

/// One run: a machine, the time, and the chance that decides what happens.
struct Run {
    cluster: Cluster,
    now: Instant,
    chance: Rng,
    opened: u64,
}

/// What happens to a machine.
#[derive(Clone, Debug)]
enum Happening {
    Input(Input),
    Change(Operation),
    Pass(Duration),
}

#[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
fn some_time() -> Instant {
    Instant::now()
}

fn opened(connection: u64, node: i32) -> Input {
    let connection = ConnectionId(connection);
    Input::Opened { connection, node, listener: SecurityProtocol::Plaintext, subject: None }
}

impl Run {
    fn new(seed: u64, now: Instant) -> Self {
        let builder = FakeCluster::builder().nodes(3).topic("orders", 2).topic("bills", 1);
        let cluster = builder.auto_create_topics(true).seed(seed).start_time_ms(1_700_000_000_000).build_machine(now);
        Self { cluster, now, chance: Rng::stream(seed, "laws"), opened: 0 }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.chance.below(n) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.chance.below(from.len() as u64) as usize]
    }

    /// Connects to a node.
    fn open(&mut self, node: i32) -> Input {
        self.opened += 1;
        opened(self.opened, node)
    }

    /// Draws what happens next.
    fn next(&mut self) -> Happening {
        let connection = ConnectionId(self.opened.saturating_sub(self.chance.below(CONNECTIONS)));
        match self.chance.below(20) {
            0 => {
                let node = self.chance.below(4) as i32;
                Happening::Input(self.open(node))
            }
            1 => Happening::Change(self.operation()),
            2 => Happening::Input(Input::Closed { connection }),
            3 => Happening::Change(self.operation()),
            4 | 5 => Happening::Pass(Duration::from_millis(*self.pick(&[0, 1, 100, 5_000, 60_000, 600_000]))),
            6..=11 => Happening::Input(producer::next_request(self).unwrap_or(Input::Closed { connection })),
            _ => {
                let frame = self.frame();
                Happening::Input(Input::Received { connection, frame })
            }
        }
    }

    fn operation(&mut self) -> Operation {
        let (node, partition) = (self.chance.below(4) as i32, self.chance.below(3) as i32);
        let topics = ["orders", "orders", "orders", "orders", "bills", "__consumer_offsets", "nope"];
        let topic = (*self.pick(&topics)).to_owned();
        match self.chance.below(23) {
            0 => Operation::Crash { node, durability: Durability::KeepAll },
            1 => Operation::Crash { node, durability: Durability::LoseTail(3) },
            2 | 3 => Operation::Restart { node },
            4 => Operation::MoveLeader { topic, partition, node: Some(node) },
            5 => Operation::Truncate { topic, partition, offset: self.chance.below(9) as i64 },
            6 => Operation::DeleteRecords { topic, partition, before: self.chance.below(9) as i64 },
            7 => Operation::Pause { node },
            8 => Operation::Resume { node },
            9 => Operation::FreezeMetadata { node },
            10 => Operation::JumpClock { by_ms: 86_400_000 },
            11..=14 => Operation::Lag { topic, partition, node },
            15 | 16 => Operation::CatchUp { topic, partition, node },
            17 | 18 => Operation::BumpLeaderEpoch { topic, partition },
            19..=21 => Operation::Compact { topic, partition },
            _ => Operation::DeleteTopic { topic },
        }
    }

    /// A frame: most are requests, some are broken.
    fn frame(&mut self) -> Bytes {
        if self.one_in(20) {
            let length = self.chance.below(40);
            return (0..length).map(|_| self.chance.next_u64() as u8).collect::<Vec<_>>().into();
        }
        let key = *self.pick(ApiKey::SPOKEN);
        let [schema, _] = key.schemas().expect("it is spoken");
        let range = key.versions().expect("it is spoken");
        let version = range.min + self.chance.below((range.max - range.min + 1) as u64) as i16;
        let node = self.fill(schema, 0);
        let mut body = Vec::new();
        node.encode(version, schema.is_flexible(version), &mut body);
        let request = AnyRequest::decode(key, version, &mut Reader::new(Bytes::from(body))).expect("it was written so");
        let frame = encode_any_request(&request, version, 1, Some("laws")).expect("it was read so").to_bytes();
        let mut frame = frame[4..].to_vec();
        if self.one_in(15) {
            let at = self.chance.below(frame.len() as u64) as usize;
            frame[at] ^= 1 << self.chance.below(8);
        }
        if self.one_in(30) {
            frame.truncate(self.chance.below(frame.len() as u64) as usize);
        }
        frame.into()
    }

    fn fill(&mut self, schema: &'static MessageSchema, depth: usize) -> Node {
        let fields = schema.fields.iter().map(|field| {
            let may_be_null = field.nullable.is_some_and(|versions| versions == field.versions);
            if may_be_null && self.one_in(4) {
                return Tree::Null;
            }
            self.value(schema.name, field.name, &field.field_type, depth)
        });
        Node { schema, fields: fields.collect() }
    }

    fn value(&mut self, structure: &str, field: &str, field_type: &FieldType, depth: usize) -> Tree {
        match field_type {
            FieldType::Bool => Tree::Bool(self.one_in(2)),
            FieldType::Float64 => Tree::Float(*self.pick(&[0.0, 1.5, -1.0, f64::NAN, f64::MAX])),
            FieldType::String => Tree::Str(Str::from(self.text(structure, field))),
            FieldType::Records => Tree::Bytes(self.records()),
            FieldType::Bytes => {
                let bytes = *self.pick(&[&b""[..], b"\0", b"\0\0\0\x01\0\x06orders\0\0\0\x01\0\0\0\0\0\0\0\0"]);
                Tree::Bytes(Bytes::from_static(bytes))
            }
            FieldType::Uuid => {
                let known = self.cluster.state().topics.by_name("orders").map(|topic| topic.id);
                let id = *self.pick(&[known.unwrap_or(Uuid::ZERO), Uuid::ZERO, Uuid([7; 16])]);
                Tree::Uuid(id)
            }
            FieldType::Array(element) => {
                let most = if depth > 2 { 2 } else { 4 };
                let count = self.chance.below(most);
                Tree::Array((0..count).map(|_| self.value(structure, field, element, depth + 1)).collect())
            }
            FieldType::Struct(schema) => Tree::Struct(self.fill(schema, depth + 1)),
            _ => Tree::Int(*self.pick(&[0, 0, 0, 1, 1, 2, 3, -1, -1, -2, 100, 30_000, i64::MAX, i64::MIN])),
        }
    }

    fn text(&mut self, structure: &str, field: &str) -> &'static str {
        let words: &[&'static str] = match Meaning::of(structure, field) {
            Some(Meaning::Topic) => &["orders", "orders", "bills", "new", "", "no such/name", "__consumer_offsets"],
            Some(Meaning::Group | Meaning::CoordinatorKey) => &["g", "g", "h", ""],
            Some(Meaning::TransactionalId) => &["t", "u", ""],
            _ => &["x", "range", "consumer", "uniform", "", "1", "cleanup.policy", "User:a", "."],
        };
        words[self.chance.below(words.len() as u64) as usize]
    }

    /// A batch, or what only looks like one.
    fn records(&mut self) -> Bytes {
        let mut builder = BatchBuilder::new();
        for _ in 0..=self.chance.below(3) {
            builder
                .try_append::<&str, &str>(1_700_000_000_000, None, Some("v".as_bytes()), &[])
                .expect("there is room");
        }
        let mut compressor = Compressor::new(Compression::None, None).expect("nothing is compressed");
        let bytes = builder.seal(&mut compressor).expect("a batch").bytes();
        match self.chance.below(6) {
            0 => Bytes::new(),
            1 => bytes.slice(..bytes.len() - 1),
            2 => {
                let mut bytes = bytes.to_vec();
                let at = self.chance.below(bytes.len() as u64) as usize;
                bytes[at] ^= 0xff;
                bytes.into()
            }
            _ => bytes,
        }
    }
}

impl Happening {
    /// Lets it happen, and tells what the machine did.
    fn befall(&self, cluster: &mut Cluster, now: &mut Instant) -> Vec<String> {
        let mut trace = Vec::new();
        match self {
            Self::Input(input) => cluster.handle(input.clone(), *now),
            // What is impossible is refused in words.
            Self::Change(operation) => trace.extend(cluster.command(operation, *now).err()),
            Self::Pass(time) => {
                let end = *now + *time;
                while let Some(due) = cluster.deadline().filter(|due| *due <= end) {
                    *now = due;
                    drain(cluster, *now, &mut trace);
                }
                *now = end;
            }
        }
        drain(cluster, *now, &mut trace);
        trace
    }
}

fn drain(cluster: &mut Cluster, now: Instant, trace: &mut Vec<String>) {
    while let Some(action) = cluster.poll(now) {
        if let Action::Write { frame, .. } = &action {
            assert!(frame.to_bytes().len() > 4 || frame.to_bytes()[..] == [0; 4], "an answer has a header");
        }
        trace.push(match action {
            Action::Write { connection, frame } => format!("{connection} {:?}", frame.to_bytes()),
            other => format!("{other:?}"),
        });
    }
    assert!(cluster.deadline().is_none_or(|due| due > now), "a drained machine is not late");
}

fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("LAWS_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    0..asked.unwrap_or(SEEDS)
}

/// No frame and no order of events makes it panic, late, or unsound; and a clone made at any moment does the same.
#[test]
fn machine_stands_everything_and_its_clone_does_the_same() {
    let mut sights = Sights::default();
    for seed in seeds() {
        let start = some_time();
        let mut run = Run::new(seed, start);
        let cloned_at = run.chance.below(STEPS as u64) as usize;
        let (mut clone, mut seen) = (None, Seen::new(&mut sights));
        for step in 0..STEPS {
            if step == cloned_at {
                clone = Some((run.cluster.clone(), run.now));
            }
            let happening = run.next();

            let what = format!("seed {seed}, step {step}: {happening:?}");
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let trace = happening.befall(&mut run.cluster, &mut run.now);
                seen.assert_sound(&run.cluster, &happening);
                trace
            }));
            let done = done.unwrap_or_else(|_| panic!("{what}"));
            if let Some((clone, now)) = &mut clone {
                assert_eq!(happening.befall(clone, now), done, "{what}: the clone differs");
            }
        }
    }
    sights.assert_all();
}

/// The same seed and the same inputs give the same bytes.
#[test]
fn runs_repeat_byte_for_byte() {
    let start = some_time();
    let trace = |seed| {
        let mut run = Run::new(seed, start);
        let mut trace = Vec::new();
        for _ in 0..STEPS {
            let happening = run.next();
            trace.extend(happening.befall(&mut run.cluster, &mut run.now));
        }
        trace
    };

    for seed in 0..10 {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
    }
    assert_ne!(trace(0), trace(1));
}

/// Whatever becomes of a clone, the original does not feel it.
#[test]
fn clone_leaves_the_original_alone() {
    let start = some_time();
    let trace = |seed, has_clone: bool| {
        let mut run = Run::new(seed, start);
        let (mut trace, mut clone) = (Vec::new(), None);
        for step in 0..STEPS {
            if has_clone && step % 20 == 10 {
                let chance = Rng::stream(seed, "another life");
                clone = Some(Run { cluster: run.cluster.clone(), now: run.now, chance, opened: run.opened });
            }
            if let Some(clone) = &mut clone {
                let happening = clone.next();
                happening.befall(&mut clone.cluster, &mut clone.now);
            }
            let happening = run.next();
            trace.extend(happening.befall(&mut run.cluster, &mut run.now));
        }
        trace
    };

    for seed in 0..10 {
        assert_eq!(trace(seed, true), trace(seed, false), "seed {seed}");
    }
}

/// A copy has its own rules: what acts in one does not wear out in the other, and nobody's hits are counted twice.
#[test]
fn clone_has_rules_of_its_own() {
    let now = some_time();
    let mut run = Run::new(0, now);
    let book = run.cluster.state().faults.book();
    let error = RuleBuilder::new(book.clone(), Apis::ANY, now).reply_error(ErrorCode::UNKNOWN_SERVER_ERROR);
    RuleBuilder::new(book, Apis::ANY, now).damage(Damage::Flip { at: None, mask: 1 });
    let mut clone = run.cluster.clone();
    let request = krafka_protocol::HeartbeatRequest::default().into();
    let frame = encode_any_request(&request, 4, 1, None).expect("a legal request").to_bytes().slice(4..);
    let connected = Happening::Input(opened(1, 1));
    let asked = Happening::Input(Input::Received { connection: ConnectionId(1), frame });

    connected.befall(&mut clone, &mut run.now);
    let first = asked.befall(&mut clone, &mut run.now);
    assert_eq!(error.hits(), 0, "it acted in the copy alone");
    connected.befall(&mut run.cluster, &mut run.now);
    let second = asked.befall(&mut run.cluster, &mut run.now);

    assert_eq!((error.hits(), first), (1, second));
}
