//! What stories do all day: send numbered records, and read them in a group, remembering what came of each.
//!
//! A record's value is `sender:number`. One sender numbers its records upwards, so within a partition the numbers of
//! one sender must rise; and no value may be there twice.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use krafka::{Consumer, DeliveryHandle, KrafkaError, Producer, Record};
use krafka_fake_broker::FakeCluster;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::calls::Calls;
use crate::world::PATIENCE;
use crate::{Failure, Result, Topic, World, ensure};

/// How many records of one sender are unacknowledged at a time.
const WINDOW: usize = 500;

/// How many keys one sender uses.
const KEYS: u64 = 17;

/// What came of one record.
#[derive(Clone, Debug)]
pub enum Fate {
    /// Acknowledged at this place.
    Acked {
        /// The partition.
        partition: i32,
        /// The offset, or -1 where the broker only said that it has the record already.
        offset: i64,
    },
    /// Failed, with the reason.
    Failed(KrafkaError),
}

/// One record that was sent, and what came of it.
#[derive(Clone, Debug)]
pub struct SentRecord {
    /// Its value.
    pub value: String,
    /// What came of it.
    pub fate: Fate,
}

/// All records of one sender.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The topic that they went to.
    pub topic: String,
    /// In the order of sending.
    pub records: Vec<SentRecord>,
}

impl Sent {
    /// The acknowledged records: value, partition, offset.
    pub fn acked(&self) -> impl Iterator<Item = (&str, i32, i64)> {
        self.records.iter().filter_map(|record| match record.fate {
            Fate::Acked { partition, offset } => Some((record.value.as_str(), partition, offset)),
            Fate::Failed(_) => None,
        })
    }

    /// The failed records and why.
    pub fn failed(&self) -> impl Iterator<Item = (&str, &KrafkaError)> {
        self.records.iter().filter_map(|record| match &record.fate {
            Fate::Acked { .. } => None,
            Fate::Failed(error) => Some((record.value.as_str(), error)),
        })
    }

    /// Fails unless every record was acknowledged.
    ///
    /// # Errors
    /// Names the first record that was not.
    pub fn all_acked(&self) -> Result<()> {
        match self.failed().next() {
            None => Ok(()),
            Some((value, error)) => {
                let (failed, all) = (self.failed().count(), self.records.len());
                Err(Failure::new(format!("{failed} of {all} records failed; the first, {value}: {error}")))
            }
        }
    }
}

/// A sender at work.
pub struct Sending {
    task: JoinHandle<Result<Sent>>,
    acked: watch::Receiver<usize>,
}

/// Sends records `numbers` in a task of its own, spread over the partitions by key, as fast as they go.
pub fn send(world: &World, producer: &Producer, topic: &Topic, sender: &str, numbers: RangeInclusive<u64>) -> Sending {
    send_paced(world, producer, topic, sender, numbers, (1, Duration::ZERO))
}

/// The same, in bursts of so many, with a pause after each burst.
pub fn send_paced(
    world: &World,
    producer: &Producer,
    topic: &Topic,
    sender: &str,
    numbers: RangeInclusive<u64>,
    (burst, pause): (u64, Duration),
) -> Sending {
    #[expect(clippy::disallowed_methods, reason = "one story waits on it at a time: there is no order to draw")]
    let (progress, acked) = watch::channel(0);
    let sender = Sender {
        calls: world.calls().clone(),
        producer: producer.clone(),
        topic: topic.name.clone(),
        name: sender.to_owned(),
        burst,
        pause,
        progress,
        done: world.sent_log(),
    };
    Sending { task: tokio::spawn(sender.run(numbers)), acked }
}

impl Sending {
    /// Waits until so many records were acknowledged.
    ///
    /// # Errors
    /// If the sender ended before.
    pub async fn acked(&self, count: usize) -> Result<()> {
        let mut acked = self.acked.clone();
        let reached = acked.wait_for(|now| *now >= count).await.map(|_| ());
        reached.map_err(|_| Failure::new(format!("the sender ended before {count} records were acknowledged")))
    }

    /// Waits for the end of the work.
    ///
    /// # Errors
    /// If a call did not answer in time. Records that failed are no error here: see [`Sent`].
    pub async fn finish(self) -> Result<Sent> {
        self.task.await?
    }
}

struct Sender {
    calls: Calls,
    producer: Producer,
    topic: String,
    name: String,
    burst: u64,
    pause: Duration,
    progress: watch::Sender<usize>,
    done: Arc<Mutex<Vec<Sent>>>,
}

impl Sender {
    async fn run(self, numbers: RangeInclusive<u64>) -> Result<Sent> {
        let mut records = Vec::new();
        let mut waiting = VecDeque::new();
        for number in numbers {
            if waiting.len() == WINDOW {
                self.settle(&mut waiting, &mut records).await?;
            }
            let value = format!("{}:{number}", self.name);
            let record = Record::new(&*self.topic, value.clone()).key(format!("key-{}", number % KEYS));
            match self.calls.within(PATIENCE, "enqueue", self.producer.enqueue(record)).await? {
                Ok(handle) => waiting.push_back((value, handle)),
                Err(error) => records.push(SentRecord { value, fate: Fate::Failed(error) }),
            }
            if !self.pause.is_zero() && number.is_multiple_of(self.burst) {
                tokio::time::sleep(self.pause).await;
            }
        }
        while !waiting.is_empty() {
            self.settle(&mut waiting, &mut records).await?;
        }
        let sent = Sent { topic: self.topic, records };
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(sent.clone());
        Ok(sent)
    }

    async fn settle(
        &self,
        waiting: &mut VecDeque<(String, DeliveryHandle)>,
        records: &mut Vec<SentRecord>,
    ) -> Result<()> {
        let Some((value, handle)) = waiting.pop_front() else { return Ok(()) };
        let fate = match self.calls.within(PATIENCE, format!("delivery of {value}"), handle).await? {
            Ok(at) => {
                self.progress.send_modify(|acked| *acked += 1);
                Fate::Acked { partition: at.partition, offset: at.offset }
            }
            Err(error) => Fate::Failed(error),
        };
        records.push(SentRecord { value, fate });
        Ok(())
    }
}

/// One record as a group's member read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Which member.
    pub member: String,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The value.
    pub value: String,
}

/// The members of a group, reading in tasks of their own. On the fake, each of their polls also checks that the group
/// has committed nothing that nobody has read: what is skipped so is lost the next time that a member dies.
pub struct Readers {
    group: String,
    fake: Option<Arc<FakeCluster>>,
    seen: Arc<Mutex<Vec<Read>>>,
    members: Vec<(String, Arc<AtomicBool>, JoinHandle<Result<()>>)>,
}

impl Readers {
    /// Nobody yet. It is their consumers that join the group: it is named for the checks.
    #[must_use]
    pub fn of(world: &World, group: &str) -> Self {
        Self { group: group.to_owned(), fake: world.shared_fake(), seen: Arc::default(), members: Vec::new() }
    }

    /// Adds a member that polls until it is stopped.
    pub fn add(&mut self, world: &World, name: &str, consumer: Consumer) {
        let stop = Arc::new(AtomicBool::new(false));
        let (calls, seen, stopped, member) = (world.calls().clone(), self.seen.clone(), stop.clone(), name.to_owned());
        let (fake, group) = (self.fake.clone(), self.group.clone());
        let task = tokio::spawn(async move {
            while !stopped.load(Relaxed) {
                let poll = consumer.poll(Duration::from_millis(200));
                // A poll that outlives its timeout by more than a moment is itself a fault.
                let records = match calls.within(Duration::from_secs(2), format!("poll of {member}"), poll).await? {
                    Ok(records) => records,
                    Err(error) if error.is_retriable() => continue,
                    Err(error) => return Err(error.into()),
                };
                let mut seen = lock(&seen);
                for record in records {
                    let value = String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned();
                    let (partition, offset) = (record.partition, record.offset);
                    seen.push(Read { member: member.clone(), partition, offset, value });
                }
                if let Some(fake) = &fake {
                    crate::invariants::group::commits_what_was_read(&fake.committed(&group), &seen)?;
                }
            }
            calls.within(PATIENCE, format!("close of {member}"), consumer.close()).await??;
            Ok(())
        });
        self.members.push((name.to_owned(), stop, task));
    }

    /// Ends a member without a word to anyone: its task is dropped where it stands. So that its consumer cannot say
    /// good-bye either, hold its links first.
    pub fn kill(&mut self, name: &str) {
        self.members.retain(|(member, _, task)| {
            if member == name {
                task.abort();
            }
            member != name
        });
    }

    /// Stops a member: it commits, leaves and closes.
    ///
    /// # Errors
    /// What it failed with.
    pub async fn stop(&mut self, name: &str) -> Result<()> {
        let Some(at) = self.members.iter().position(|(member, ..)| member == name) else {
            return Err(Failure::new(format!("there is no member {name}")));
        };
        let (_, stop, task) = self.members.remove(at);
        stop.store(true, Relaxed);
        task.await?
    }

    /// What was read so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Read> {
        lock(&self.seen).clone()
    }

    /// How many records a member has read.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        lock(&self.seen).iter().filter(|read| read.member == name).count()
    }

    /// Waits until every acknowledged record of these senders was read by someone.
    ///
    /// # Errors
    /// Names a record that was not, after [`PATIENCE`]; or passes on what a member failed with.
    pub async fn read_all(&mut self, world: &World, sent: &[&Sent]) -> Result<()> {
        let deadline = world.elapsed() + PATIENCE;
        let mut unread: BTreeMap<&str, (i32, i64)> =
            sent.iter().flat_map(|sent| sent.acked()).map(|(value, p, o)| (value, (p, o))).collect();
        let mut looked = 0;
        loop {
            {
                let seen = lock(&self.seen);
                for read in &seen[looked..] {
                    unread.remove(read.value.as_str());
                }
                looked = seen.len();
            }
            let Some((value, (partition, offset))) = unread.first_key_value() else { return Ok(()) };
            if let Some(at) = self.members.iter().position(|(.., task)| task.is_finished()) {
                let (name, _, task) = self.members.remove(at);
                task.await??;
                return Err(Failure::new(format!("member {name} ended early")));
            }
            ensure!(
                world.elapsed() <= deadline,
                "{value}, acknowledged at {partition}@{offset}, was not read by the group in {PATIENCE:?}"
            );
            world.pass(Duration::from_millis(50)).await;
        }
    }

    /// Stops all members, and returns what was read.
    ///
    /// # Errors
    /// The first that a member failed with.
    pub async fn finish(self) -> Result<Vec<Read>> {
        self.members.iter().for_each(|(_, stop, _)| stop.store(true, Relaxed));
        for (_, _, task) in self.members {
            task.await??;
        }
        Ok(lock(&self.seen).clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
