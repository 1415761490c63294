//! Which leader epoch each part of a log was written in, as Kafka's leader epoch cache answers it.

/// Where an epoch ends: the epoch itself or the largest below it that the log has, and the first offset after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpochEnd {
    pub(crate) epoch: i32,
    pub(crate) end_offset: i64,
}

impl EpochEnd {
    /// Kafka's answer for what it does not know.
    pub(crate) const UNDEFINED: Self = Self { epoch: -1, end_offset: -1 };
}

/// The epochs of a log with the offsets that they start at, both rising.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaderEpochs {
    starts: Vec<(i32, i64)>,
}

impl LeaderEpochs {
    /// Notes that `epoch` starts at `offset`. An epoch in which nothing was written gives way to its successor.
    pub(crate) fn assign(&mut self, epoch: i32, offset: i64) {
        self.starts.retain(|&(earlier, start)| earlier < epoch && start < offset);
        self.starts.push((epoch, offset));
    }

    /// Forgets the epochs that start at `end_offset` or later: nothing of theirs is left.
    pub(crate) fn truncate(&mut self, end_offset: i64) {
        self.starts.retain(|&(_, start)| start < end_offset);
    }

    /// Forgets what lies below `start_offset`: the epoch that holds it begins there now.
    pub(crate) fn truncate_start(&mut self, start_offset: i64) {
        let after = self.starts.partition_point(|&(_, start)| start <= start_offset);
        let Some(holding) = after.checked_sub(1) else { return };
        self.starts.drain(..holding);
        self.starts[0].1 = start_offset;
    }

    /// The newest epoch.
    pub(crate) fn latest(&self) -> Option<i32> {
        self.starts.last().map(|&(epoch, _)| epoch)
    }

    /// The offset that the newest epoch starts at.
    pub(crate) fn latest_start(&self) -> i64 {
        self.starts.last().map_or(0, |&(_, start)| start)
    }

    /// The epoch that an offset was written in.
    pub(crate) fn of_offset(&self, offset: i64) -> Option<i32> {
        let after = self.starts.partition_point(|&(_, start)| start <= offset);
        Some(self.starts[after.checked_sub(1)?].0)
    }

    /// Where `epoch` ends, in a log that ends at `log_end_offset`.
    pub(crate) fn end_of(&self, epoch: i32, log_end_offset: i64) -> EpochEnd {
        if epoch < 0 {
            return EpochEnd::UNDEFINED;
        }
        if self.latest() == Some(epoch) {
            return EpochEnd { epoch, end_offset: log_end_offset };
        }
        let next = self.starts.partition_point(|&(earlier, _)| earlier <= epoch);
        let Some(&(_, end_offset)) = self.starts.get(next) else { return EpochEnd::UNDEFINED };
        // An epoch before all that the log has ends where the log's first one starts.
        let floor = next.checked_sub(1).map_or(epoch, |index| self.starts[index].0);
        EpochEnd { epoch: floor, end_offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs() -> LeaderEpochs {
        let mut epochs = LeaderEpochs::default();
        epochs.assign(2, 0);
        epochs.assign(4, 10);
        epochs.assign(5, 20);
        epochs
    }

    #[test]
    fn an_epoch_ends_where_the_next_one_starts() {
        assert_eq!(epochs().end_of(2, 30), EpochEnd { epoch: 2, end_offset: 10 });
        assert_eq!(epochs().end_of(5, 30), EpochEnd { epoch: 5, end_offset: 30 });
    }

    #[test]
    fn an_epoch_that_left_nothing_is_answered_by_the_one_below() {
        assert_eq!(epochs().end_of(3, 30), EpochEnd { epoch: 2, end_offset: 10 });
    }

    #[test]
    fn an_epoch_before_the_first_ends_where_the_log_begins() {
        assert_eq!(epochs().end_of(1, 30), EpochEnd { epoch: 1, end_offset: 0 });
    }

    #[test]
    fn an_epoch_of_the_future_is_undefined() {
        assert_eq!(epochs().end_of(6, 30), EpochEnd::UNDEFINED);
        assert_eq!(epochs().end_of(-1, 30), EpochEnd::UNDEFINED);
    }

    #[test]
    fn what_is_deleted_has_no_epoch_any_more() {
        let mut epochs = epochs();
        epochs.truncate_start(15);

        assert_eq!((epochs.of_offset(15), epochs.of_offset(14)), (Some(4), None));
        assert_eq!(epochs.end_of(2, 30), EpochEnd { epoch: 2, end_offset: 15 });
    }

    #[test]
    fn an_empty_epoch_gives_way_to_its_successor() {
        let mut epochs = epochs();
        epochs.assign(6, 20);

        assert_eq!((epochs.latest(), epochs.of_offset(20), epochs.of_offset(19)), (Some(6), Some(6), Some(4)));
        assert_eq!(epochs.end_of(5, 20), EpochEnd { epoch: 4, end_offset: 20 });
    }
}
