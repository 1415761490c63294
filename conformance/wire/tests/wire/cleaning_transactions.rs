//! What compaction leaves of transactions: on the fake in virtual time, and on a real broker that compacts often.

use std::time::Duration;

use krafka_protocol::compression::Compression;
use krafka_protocol::records::Stamp;
use krafka_protocol::{Bytes, ErrorCode};

use crate::cleaning::{batches, compacted, keyed, plain, told};
use crate::configs::{SET, TOPIC, change, refusal};
use crate::records::{time, written};
use crate::target::{Target, Topic, Wire, run_on_brisk};
use crate::transactional::{PLAIN_END, PLAIN_PRODUCE, Producer, produce_request, read};

/// So far apart that each batch begins a segment of its own.
const APART_MS: i64 = 5_000;

/// A topic with one producer, and a clock of its own for the batches.
struct Table {
    topic: Topic,
    wire: Wire,
    producer: Producer,
    timestamp: i64,
    sequence: i32,
}

impl Table {
    /// Writes records of a transaction, at a new time.
    async fn write(&mut self, records: &[(&str, Option<&str>)]) -> i64 {
        self.timestamp += APART_MS;
        let (producer_id, producer_epoch, base_sequence) = (self.producer.id, self.producer.epoch, self.sequence);
        self.sequence += i32::try_from(records.len()).expect("a few");
        let stamp = Stamp { producer_id, producer_epoch, base_sequence, transactional: true };
        let batch: Bytes = keyed(Compression::None, self.timestamp, records, Some(stamp));
        self.producer.add_when_ready(&self.topic.name, 0).await;
        let request = produce_request(&self.topic, Some(self.producer.name.clone()), batch);
        let answer = self.producer.broker.call(request, PLAIN_PRODUCE).await;
        let answer = &answer.responses[0].partition_responses[0];
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE);
        answer.base_offset
    }

    /// Writes a record without a transaction, at a new time.
    async fn dirt(&mut self, key: &str, value: &str) {
        self.timestamp += APART_MS;
        written(&mut self.wire, &self.topic, plain(self.timestamp, &[(key, Some(value))])).await;
    }

    /// The records, without the marks.
    async fn data(&mut self) -> Vec<String> {
        let marks: Vec<String> = self.marks().await.iter().map(|(offset, _)| format!("{offset} ")).collect();
        let all = told(&mut self.wire, &self.topic).await;
        all.into_iter().filter(|line| !marks.iter().any(|mark| line.starts_with(mark))).collect()
    }

    /// The offsets of the marks, and whether each has a delete horizon.
    async fn marks(&mut self) -> Vec<(i64, bool)> {
        let batches = batches(&mut self.wire, &self.topic).await;
        let marks = batches.iter().map(|batch| *batch.header()).filter(|header| header.attributes.is_control());
        marks.map(|header| (header.base_offset, header.delete_horizon_ms().is_some())).collect()
    }

    /// Waits until the records are these.
    async fn until(&mut self, expected: &[&str]) {
        for _ in 0..200 {
            if self.data().await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the log is {:?}", self.data().await);
    }

    /// Lets the log of [`held_table`] be cleaned, all of it in one go.
    async fn release(&mut self) {
        let now = vec![change("min.compaction.lag.ms", SET, Some("0"))];
        assert_eq!(refusal(&mut self.wire, TOPIC, &self.topic.name, now).await.0, "NONE");
    }

    /// Has the log of [`bare_mark`] cleaned at least this often: what is written replaces what was written before,
    /// and each replacement is waited for.
    async fn clean_rounds(&mut self, rounds: i64) {
        self.dirt("k9", "5").await;
        for offset in 6..6 + rounds {
            self.dirt("k9", &offset.to_string()).await;
            let (last, newest) = (format!("{0} k9={0}", offset - 1), format!("{offset} k9={offset}"));
            self.until(&["2 k2=kept", &last, &newest]).await;
        }
    }

    /// How many aborted transactions a reader of committed records is told of.
    async fn aborted(&mut self) -> usize {
        let data = read(&mut self.wire, &self.topic, 0, true).await;
        data.aborted_transactions.map_or(0, |aborted| aborted.len())
    }
}

async fn table(target: &Target, settings: &[(&str, &str)]) -> Table {
    let (topic, wire) = compacted(target, settings).await;
    let producer = Producer::new(target).await;
    // The marks have the time of day, which must not be later than that of the records before them.
    Table { topic, wire, producer, timestamp: time() + 60_000, sequence: 0 }
}

/// One whose log is not cleaned before that is allowed: in the middle of what is written, it would be cleaned twice.
async fn held_table(target: &Target, settings: &[(&str, &str)]) -> Table {
    let hold = ("min.compaction.lag.ms", "3600000");
    table(target, &[settings, &[hold]].concat()).await
}

/// KIP-534. Neither does what was aborted count as the last of its key, nor does it stay; its mark stays for as long as
/// a reader may be on the way to it.
#[test]
fn aborted_records_go_and_their_mark_stays() {
    run_on_brisk(async |target| {
        let mut table = held_table(&target, &[]).await;
        table.write(&[("k1", Some("kept")), ("k2", Some("old"))]).await;
        table.producer.finish(PLAIN_END, true).await;
        table.write(&[("k1", Some("aborted")), ("k2", None)]).await;
        table.producer.finish(PLAIN_END, false).await;
        table.write(&[("k2", Some("new"))]).await;
        table.producer.finish(PLAIN_END, true).await;
        table.dirt("k9", "x").await;

        table.release().await;
        table.until(&["0 k1=kept", "6 k2=new", "8 k9=x"]).await;

        assert_eq!(table.marks().await, [(2, false), (5, false), (7, false)]);
        assert_eq!(table.aborted().await, 1, "who is in the middle of it must know");
    });
}

/// The mark may lie behind all that can be cleaned yet. Found by the laws.
#[test]
fn mark_behind_what_is_cleaned_counts() {
    run_on_brisk(async |target| {
        let mut table = table(&target, &[]).await;
        table.write(&[("k1", Some("kept"))]).await;
        table.producer.finish(PLAIN_END, true).await;
        table.write(&[("k1", Some("aborted"))]).await;
        table.dirt("k9", "x").await;
        table.producer.finish(PLAIN_END, false).await;

        table.until(&["0 k1=kept", "3 k9=x"]).await;

        assert_eq!(table.marks().await, [(1, false), (4, false)]);
    });
}

/// KIP-534. A mark whose transaction left nothing gets a horizon, and stays until then, however often the log is
/// cleaned. Readers need not be told of the transaction any more: there is nothing of it to pass over.
#[test]
fn mark_of_an_aborted_transaction_stays_until_its_horizon() {
    run_on_brisk(async |target| {
        let mut table = bare_mark(&target, "3600000").await;

        table.clean_rounds(5).await;

        assert_eq!(table.marks().await, [(1, true), (3, false)]);
        assert_eq!(table.aborted().await, 0);
    });
}

/// KIP-534. Behind its horizon the mark goes with the next cleaning. The mark of a transaction that left a record stays
/// for as long as that record does.
#[test]
fn mark_of_an_aborted_transaction_goes_after_its_horizon() {
    run_on_brisk(async |target| {
        let mut table = bare_mark(&target, "0").await;

        table.clean_rounds(5).await;

        assert_eq!(table.marks().await, [(3, false)]);
        assert_eq!(table.aborted().await, 0);
    });
}

/// A log that was cleaned once: a transaction that was aborted has left its mark at offset 1 and nothing else, and is
/// not known yet to have left nothing. Nothing is dirty, so that it stays like that until more is written.
async fn bare_mark(target: &Target, delete_retention_ms: &str) -> Table {
    let mut table = held_table(target, &[("delete.retention.ms", delete_retention_ms)]).await;
    table.write(&[("k1", Some("aborted"))]).await;
    table.producer.finish(PLAIN_END, false).await;
    table.write(&[("k2", Some("kept"))]).await;
    table.producer.finish(PLAIN_END, true).await;
    table.dirt("k9", "4").await;
    table.release().await;
    table.until(&["2 k2=kept", "4 k9=4"]).await;
    assert_eq!(table.marks().await, [(1, false), (3, false)]);
    table
}

/// What lies behind the first record of an open transaction is left alone.
#[test]
fn open_transaction_holds_compaction_back() {
    run_on_brisk(async |target| {
        let mut table = table(&target, &[]).await;
        table.dirt("k1", "a").await;
        table.dirt("k1", "b").await;
        table.write(&[("k2", Some("open"))]).await;
        table.dirt("k1", "c").await;
        table.dirt("k1", "d").await;
        table.dirt("k9", "x").await;

        table.until(&["1 k1=b", "2 k2=open", "3 k1=c", "4 k1=d", "5 k9=x"]).await;
        table.producer.finish(PLAIN_END, true).await;
        table.dirt("k8", "y").await;

        table.until(&["2 k2=open", "4 k1=d", "5 k9=x", "7 k8=y"]).await;
    });
}
