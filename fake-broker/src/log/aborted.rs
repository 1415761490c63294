//! Which transactions of a partition were aborted: what readers of committed records must skip.
//!
//! It is Kafka's transaction index, but without its segments: a reader is told of exactly the transactions that overlap
//! what it was given, where Kafka's answer may have some more, up to the end of what its index of offsets covers.

use krafka_protocol::records::AbortedTxn;

/// The aborted transactions in the order of their ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct AbortedTransactions {
    entries: Vec<AbortedTxn>,
}

impl AbortedTransactions {
    /// Adds the transaction that was just aborted.
    pub(crate) fn push(&mut self, aborted: AbortedTxn) {
        self.entries.push(aborted);
    }

    /// Those that have records or their end in `from..end`, by their ends.
    pub(crate) fn overlapping(&self, from: i64, end: i64) -> impl Iterator<Item = &AbortedTxn> {
        let first = self.entries.partition_point(|entry| entry.last_offset < from);
        self.entries[first..].iter().filter(move |entry| entry.first_offset < end)
    }

    /// Forgets those that end at `end_offset` or later: their end is lost, so that they are open again.
    pub(crate) fn truncate(&mut self, end_offset: i64) {
        self.entries.retain(|entry| entry.last_offset < end_offset);
    }

    /// Forgets those whose ends are at these offsets: compaction has left nothing of them but the marks.
    pub(crate) fn emptied(&mut self, marks: &[i64]) {
        self.entries.retain(|entry| !marks.contains(&entry.last_offset));
    }

    /// Forgets those that end before `start_offset`: nothing of them is left.
    pub(crate) fn delete_before(&mut self, start_offset: i64) {
        self.entries.retain(|entry| entry.last_offset >= start_offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aborted(ranges: &[(i64, i64)]) -> AbortedTransactions {
        let entry = |&(first_offset, last_offset)| AbortedTxn { first_offset, last_offset, ..AbortedTxn::default() };
        AbortedTransactions { entries: ranges.iter().map(entry).collect() }
    }

    fn found(aborted: &AbortedTransactions, from: i64, end: i64) -> Vec<i64> {
        aborted.overlapping(from, end).map(|entry| entry.first_offset).collect()
    }

    #[test]
    fn reader_is_told_of_what_overlaps() {
        let aborted = aborted(&[(2, 5), (0, 8), (10, 12)]);

        assert_eq!(found(&aborted, 0, 1), [0]);
        assert_eq!(found(&aborted, 0, 13), [2, 0, 10]);
        assert_eq!(found(&aborted, 6, 10), [0]);
        assert_eq!(found(&aborted, 9, 10), [0_i64; 0]);
        assert_eq!(found(&aborted, 12, 13), [10]);
    }

    #[test]
    fn what_is_cut_off_is_forgotten() {
        let mut aborted = aborted(&[(2, 5), (0, 8), (10, 12)]);

        aborted.truncate(12);
        aborted.delete_before(6);

        assert_eq!(found(&aborted, 0, 100), [0]);
    }
}
