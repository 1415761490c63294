//! Retention: segments that are too old or too many go, the oldest first.
//!
//! Kafka deletes whole segments, and nothing that is not committed. The segment that is written to goes as well when
//! all of it is old enough: a new one is begun at the end of the log.

use super::partition::{Log, Stored};
use crate::topics::TopicSettings;

impl Log {
    /// Deletes what the topic need not keep any longer. Says if anything went.
    pub(crate) fn expire(&mut self, settings: &TopicSettings, now_ms: i64) -> bool {
        if !settings.deletes {
            return false;
        }
        let before = self.start_offset;
        if let Ok(most) = usize::try_from(settings.retention_bytes) {
            let size = |segment: &[Stored]| segment.iter().map(|batch| batch.bytes.len()).sum::<usize>();
            let mut excess = size(&self.batches).saturating_sub(most);
            self.delete_segments(|segment| {
                let goes = excess >= size(segment) && excess > 0;
                excess = excess.saturating_sub(size(segment));
                goes
            });
        }
        if settings.retention_ms >= 0 {
            self.delete_segments(|segment| {
                newest_ms(segment).is_some_and(|newest| now_ms.saturating_sub(newest) > settings.retention_ms)
            });
        }
        self.start_offset > before
    }

    /// Deletes the oldest segments, as long as they are committed and `goes` says so.
    fn delete_segments(&mut self, mut goes: impl FnMut(&[Stored]) -> bool) {
        let mut start = None;
        for range in self.segments.ranges(self.end_offset) {
            let segment = self.segment(range);
            if range.1 > self.high_watermark || segment.is_empty() || !goes(segment) {
                break;
            }
            start = Some(range.1);
        }
        let Some(start) = start else { return };
        if start == self.end_offset {
            self.segments.roll(start);
        }
        self.delete_before(start);
    }
}

/// How new a segment is: its greatest timestamp, or for records without any, when it was written last.
fn newest_ms(segment: &[Stored]) -> Option<i64> {
    let newest = segment.iter().map(|batch| batch.max_timestamp).max()?;
    if newest >= 0 { Some(newest) } else { segment.iter().map(|batch| batch.written_ms).max() }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::compression::Compressor;
    use krafka_protocol::records::{Batch, BatchBuilder};

    use super::*;

    /// A log of four segments with one record each, of which two are committed.
    fn half_committed(settings: &TopicSettings) -> Log {
        let mut log = Log::default();
        log.begin_epoch(0);
        for _ in 0..4 {
            let mut builder = BatchBuilder::new();
            builder.try_append::<&str, &str>(1, None, Some(b"v"), &[]).expect("there is room");
            let bytes = builder.seal(&mut Compressor::none()).expect("a batch").bytes();
            log.append(&Batch::new(bytes).expect("a batch"), settings, 1);
        }
        log.raise_high_watermark(2);
        log
    }

    /// What not all replicas have is not old, however old it is, and not too much.
    #[test]
    fn nothing_goes_that_is_not_committed() {
        let by_age = TopicSettings { segment_bytes: 1, retention_ms: 10, ..TopicSettings::default() };
        let by_size = TopicSettings { segment_bytes: 1, retention_bytes: 0, ..TopicSettings::default() };
        for settings in [by_age, by_size] {
            let mut log = half_committed(&settings);

            assert!(log.expire(&settings, 1_000));
            assert_eq!((log.start_offset(), log.end_offset()), (2, 4));
            assert!(!log.expire(&settings, 1_000));

            log.raise_high_watermark(4);
            assert!(log.expire(&settings, 1_000));
            assert_eq!((log.start_offset(), log.end_offset()), (4, 4));
        }
    }
}
