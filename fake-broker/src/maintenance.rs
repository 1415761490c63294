//! What brokers do to their logs by themselves: retention every five minutes, compaction every fifteen seconds.
//!
//! Both come at fixed times after the start of the cluster, so that a test can tell when, and only while there is
//! anything in a log. A test that does not care to wait asks for them.

use std::time::{Duration, Instant};

use crate::state::State;
use crate::timers::{Timer, TimerId};
use crate::topics::Topic;

/// Kafka's `log.initial.task.delay.ms`: when retention comes first.
const INITIAL_DELAY: Duration = Duration::from_secs(30);
/// Kafka's default of `log.retention.check.interval.ms`.
const RETENTION_INTERVAL: Duration = Duration::from_secs(300);
/// Kafka's default of `log.cleaner.backoff.ms`.
const CLEANER_INTERVAL: Duration = Duration::from_secs(15);

/// What is done to logs from time to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Delete what is too old or too much.
    Retention,
    /// Compact.
    Cleaner,
}

/// When each task is due next, if there is anything to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maintenance {
    retention: Option<TimerId>,
    cleaner: Option<TimerId>,
}

impl State {
    /// Sees to it that the logs are looked after from now on: one of them has records.
    pub(crate) fn maintain_logs(&mut self, now: Instant) {
        for task in [Task::Retention, Task::Cleaner] {
            if self.task_timer(task).is_none() {
                let (delay, interval) = match task {
                    Task::Retention => (INITIAL_DELAY, RETENTION_INTERVAL),
                    Task::Cleaner => (CLEANER_INTERVAL, CLEANER_INTERVAL),
                };
                let due = self.clock.next_tick(now, delay, interval);
                *self.task_timer(task) = Some(self.timers.set(due, Timer::Maintain(task)));
            }
        }
    }

    /// Carries out a task whose time has come.
    pub(crate) fn maintain(&mut self, task: Task, now: Instant) {
        *self.task_timer(task) = None;
        match task {
            Task::Retention => self.expire(now, |is_compacted| !is_compacted),
            Task::Cleaner => self.clean_logs(now),
        }
        let has_records = self.topics.iter().flat_map(|topic| &topic.partitions).any(|it| !it.log.is_empty());
        if has_records {
            self.maintain_logs(now);
        }
    }

    /// Deletes what the topics need not keep any longer.
    pub(crate) fn apply_retention(&mut self, now: Instant) {
        self.expire(now, |_| true);
    }

    /// Compacts the logs that are dirty enough. The cleaner sees to the retention of compacted topics, too.
    fn clean_logs(&mut self, now: Instant) {
        let now_ms = self.clock.millis(now);
        for (partition, settings) in self.topics.iter_mut().flat_map(Topic::led_mut) {
            if settings.compacted {
                partition.log.clean_if_dirty(settings, now_ms);
            }
        }
        self.expire(now, |is_compacted| is_compacted);
    }

    /// Compacts one partition, whatever its topic's settings say of when. Says if it is there.
    pub(crate) fn compact(&mut self, topic: &str, index: i32, now: Instant) -> bool {
        let now_ms = self.clock.millis(now);
        let Some(id) = self.topics.by_name(topic).map(|topic| topic.id) else { return false };
        let Some(topic) = self.topics.by_id_mut(id) else { return false };
        let found = usize::try_from(index).ok().and_then(|index| topic.led_mut().nth(index));
        let Some((partition, settings)) = found else { return false };
        partition.log.clean_now(settings, now_ms);
        true
    }

    /// Applies the retention of the topics that are compacted or not, as `concerns` says.
    fn expire(&mut self, now: Instant, concerns: impl Fn(bool) -> bool) {
        let now_ms = self.clock.millis(now);
        let mut changed = Vec::new();
        for topic in self.topics.iter_mut() {
            let id = topic.id;
            for (index, (partition, settings)) in (0_i32..).zip(topic.led_mut()) {
                if concerns(settings.compacted) && partition.log.expire(settings, now_ms) {
                    changed.push((id, index));
                }
            }
        }
        for (topic, index) in changed {
            self.wake_partition(topic, index);
        }
    }

    fn task_timer(&mut self, task: Task) -> &mut Option<TimerId> {
        match task {
            Task::Retention => &mut self.maintenance.retention,
            Task::Cleaner => &mut self.maintenance.cleaner,
        }
    }
}
