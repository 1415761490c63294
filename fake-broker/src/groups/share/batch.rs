//! A stretch of records that a share partition has handed out together, and what became of each.
//!
//! Kafka keeps one state for a whole batch until somebody treats its records differently, and one for each record from
//! then on. Here neighbours with the same state are one [`Run`], so that a batch of a million costs as much as one of
//! two; whether Kafka would know its records one by one is a flag, because its answers depend on it.

use std::time::Instant;

use krafka_protocol::Str;

/// What has become of a record, with Kafka's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordState {
    /// Anybody may have it.
    Available = 0,
    /// A member has it, for as long as its lock holds.
    Acquired = 1,
    /// It was worked on.
    Acknowledged = 2,
    /// It is given up: rejected, delivered too often, no record at all, or deleted.
    Archived = 4,
}

impl RecordState {
    /// Whether nobody will ever get the record again.
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Acknowledged | Self::Archived)
    }

    /// The state that Kafka gives this number.
    pub(crate) fn from_code(code: i8) -> Option<Self> {
        let all = [Self::Available, Self::Acquired, Self::Acknowledged, Self::Archived];
        all.into_iter().find(|state| *state as i8 == code)
    }
}

/// Who holds a record, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) member: Str,
    pub(crate) until: Instant,
}

/// Records next to each other of which the same is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) state: RecordState,
    pub(crate) delivery_count: i16,
    /// Set exactly while the records are acquired.
    pub(crate) lock: Option<Lock>,
}

impl Run {
    /// Whether `member` holds it.
    pub(crate) fn is_held_by(&self, member: &str) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.member == *member)
    }

    /// Lets a member have the records once more.
    pub(crate) fn acquire(&mut self, lock: Lock) {
        self.state = RecordState::Acquired;
        self.delivery_count = self.delivery_count.saturating_add(1);
        self.lock = Some(lock);
    }

    /// Gives the records back, unless they were delivered as often as they may be.
    pub(crate) fn release(&mut self, max_delivery_count: i16) {
        let is_spent = self.delivery_count >= max_delivery_count;
        self.state = if is_spent { RecordState::Archived } else { RecordState::Available };
        self.lock = None;
    }

    /// Ends the records' life here.
    pub(crate) fn finish(&mut self, state: RecordState) {
        self.state = state;
        self.lock = None;
    }

    fn continues(&self, next: &Self) -> bool {
        self.last + 1 == next.first
            && (self.state, self.delivery_count, &self.lock) == (next.state, next.delivery_count, &next.lock)
    }
}

/// Records that were handed out together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// They cover the batch without gaps, in the order of their offsets; there is at least one.
    runs: Vec<Run>,
    /// Whether Kafka knows the records one by one.
    per_record: bool,
}

impl Batch {
    /// A batch whose records are all alike.
    pub(crate) fn new(run: Run) -> Self {
        Self { runs: vec![run], per_record: false }
    }

    pub(crate) fn first(&self) -> i64 {
        self.runs[0].first
    }

    pub(crate) fn last(&self) -> i64 {
        self.runs[self.runs.len() - 1].last
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// What is known of all its records, if Kafka knows them as one.
    pub(crate) fn as_one(&self) -> Option<&Run> {
        (!self.per_record).then(|| &self.runs[0])
    }

    /// From now on Kafka knows its records one by one.
    pub(crate) fn split_up(&mut self) {
        self.per_record = true;
    }

    /// Changes the records from `first` to `last`, run by run, as long as `change` says to go on.
    pub(crate) fn change(&mut self, first: i64, last: i64, mut change: impl FnMut(&mut Run) -> bool) {
        let mut runs = Vec::with_capacity(self.runs.len() + 2);
        let mut goes_on = true;
        for run in std::mem::take(&mut self.runs) {
            let (from, to) = (run.first.max(first), run.last.min(last));
            if from > to || !goes_on {
                push(&mut runs, run);
                continue;
            }
            if run.first < from {
                push(&mut runs, Run { last: from - 1, ..run.clone() });
            }
            let mut middle = Run { first: from, last: to, ..run.clone() };
            goes_on = change(&mut middle);
            push(&mut runs, middle);
            if to < run.last {
                push(&mut runs, Run { first: to + 1, ..run });
            }
        }
        self.runs = runs;
    }
}

/// Appends a run, or lengthens the last one by it.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.continues(&run) => last.last = run.last,
        _ => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available(first: i64, last: i64) -> Run {
        Run { first, last, state: RecordState::Available, delivery_count: 0, lock: None }
    }

    #[test]
    fn a_change_splits_runs_and_neighbours_grow_together_again() {
        let mut batch = Batch::new(available(0, 9));

        batch.change(3, 5, |run| {
            run.finish(RecordState::Archived);
            true
        });
        let split: Vec<_> = batch.runs().iter().map(|run| (run.first, run.last, run.state)).collect();
        batch.change(0, 9, |run| {
            run.finish(RecordState::Archived);
            true
        });

        let (available, archived) = (RecordState::Available, RecordState::Archived);
        assert_eq!(split, [(0, 2, available), (3, 5, archived), (6, 9, available)]);
        assert_eq!(batch.runs().len(), 1);
    }

    #[test]
    fn records_that_were_delivered_often_enough_are_not_given_back() {
        let mut run = available(0, 0);
        run.delivery_count = 5;

        run.release(5);

        assert_eq!(run.state, RecordState::Archived);
    }
}
