//! Where a log's segments begin: the pieces that retention deletes whole, and that compaction leaves the last of alone.
//!
//! There are no files here, so that what bounds an index (`segment.index.bytes`) begins no segment, and
//! `segment.jitter.ms` is not drawn: segments end exactly at `segment.bytes` and `segment.ms`.

use crate::topics::TopicSettings;

/// The segments of a log by their first offsets, the last of which is written to.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// Never empty, and rising.
    bases: Vec<i64>,
    active: Active,
}

/// What decides when the segment that is written to is full.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    size: usize,
    /// The newest timestamp of the segment's first batch. The age of a segment is counted in its records' time.
    first_timestamp: Option<i64>,
    /// When the first batch came, for records that have no timestamps.
    began_ms: i64,
}

impl Default for Segments {
    fn default() -> Self {
        Self { bases: vec![0], active: Active::default() }
    }
}

impl Segments {
    /// Makes room for a batch at `offset`: in the active segment, or in a new one if that is full or old enough.
    pub(crate) fn add(&mut self, offset: i64, size: usize, max_timestamp: i64, settings: &TopicSettings, now_ms: i64) {
        let active = &self.active;
        let base = self.bases.last().copied().unwrap_or(0);
        let age_ms = match active.first_timestamp.filter(|&first| first >= 0) {
            Some(first) => max_timestamp.saturating_sub(first),
            None => now_ms.saturating_sub(active.began_ms),
        };
        let is_full = active.size + size > settings.segment_bytes || offset - base > i64::from(i32::MAX);
        // What must be compacted in time must not stay in the active segment for longer.
        let lag_ms = Some(settings.max_compaction_lag_ms).filter(|&lag| settings.compacted && lag > 0);
        let most_ms = settings.segment_ms.min(lag_ms.unwrap_or(i64::MAX));
        if active.size > 0 && (is_full || age_ms > most_ms) {
            self.roll(offset);
        }
        if self.active.size == 0 {
            self.active = Active { size: 0, first_timestamp: Some(max_timestamp), began_ms: now_ms };
        }
        self.active.size += size;
    }

    /// Begins a new segment at `offset`, the end of the log, if the active one has anything.
    pub(crate) fn roll(&mut self, offset: i64) {
        if self.bases.last().is_some_and(|&base| base < offset) {
            self.bases.push(offset);
        }
        self.active = Active::default();
    }

    /// The segments, oldest first: the first offset of each, and the first one after it.
    pub(crate) fn ranges(&self, end_offset: i64) -> impl Iterator<Item = (i64, i64)> {
        let ends = self.bases.iter().skip(1).copied().chain([end_offset]);
        self.bases.iter().copied().zip(ends)
    }

    /// The first offset of the segment that is written to.
    pub(crate) fn active_base(&self) -> i64 {
        self.bases.last().copied().unwrap_or(0)
    }

    /// Forgets the segments that end at or before `offset`, but for the active one.
    pub(crate) fn delete_before(&mut self, offset: i64) {
        let gone = self.bases.iter().skip(1).take_while(|&&base| base <= offset).count();
        self.bases.drain(..gone);
    }

    /// Makes one segment of those that begin in a range, but for the first one.
    pub(crate) fn merge(&mut self, (base, end): (i64, i64)) {
        self.bases.retain(|&other| other <= base || other >= end);
    }

    /// Forgets what begins at `end_offset` or later. The segment that is last then is written to, and has `size` bytes.
    pub(crate) fn truncate(&mut self, end_offset: i64, size: impl FnOnce(i64) -> usize) {
        self.bases.retain(|&base| base < end_offset);
        if self.bases.is_empty() {
            self.bases.push(end_offset);
        }
        self.active.size = size(self.active_base());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> TopicSettings {
        TopicSettings { segment_bytes: 100, segment_ms: 1_000, ..TopicSettings::default() }
    }

    fn ranges(segments: &Segments) -> Vec<(i64, i64)> {
        segments.ranges(100).collect()
    }

    #[test]
    fn segments_end_when_full() {
        let mut segments = Segments::default();
        for offset in 0..3 {
            segments.add(offset, 50, 0, &settings(), 0);
        }

        assert_eq!(ranges(&segments), [(0, 2), (2, 100)]);
    }

    #[test]
    fn segments_end_by_the_time_of_their_records() {
        let mut segments = Segments::default();
        segments.add(0, 1, 5_000, &settings(), 0);
        segments.add(1, 1, 6_000, &settings(), 90_000);
        segments.add(2, 1, 6_001, &settings(), 0);

        assert_eq!(ranges(&segments), [(0, 2), (2, 100)]);
    }

    #[test]
    fn records_without_time_are_dated_by_the_clock() {
        let mut segments = Segments::default();
        segments.add(0, 1, -1, &settings(), 5_000);
        segments.add(1, 1, -1, &settings(), 6_001);

        assert_eq!(ranges(&segments), [(0, 1), (1, 100)]);
    }

    #[test]
    fn the_active_segment_stays() {
        let mut segments = Segments::default();
        segments.add(0, 80, 0, &settings(), 0);
        segments.add(10, 80, 0, &settings(), 0);
        segments.delete_before(100);

        assert_eq!(ranges(&segments), [(10, 100)]);
        segments.truncate(5, |_| 0);
        assert_eq!(ranges(&segments), [(5, 100)]);
    }
}
