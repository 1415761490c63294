//! Settings of groups and of what they commit.

use std::time::Duration;

use super::{FakeClusterBuilder, some_time};
use crate::config::MigrationPolicy;

impl FakeClusterBuilder {
    /// Sets how long an empty group waits for more members before its first rebalance: Kafka's
    /// `group.initial.rebalance.delay.ms`. The default is not at all, as in the configuration that Kafka is shipped
    /// with.
    ///
    /// **Unstable:** may change in any release.
    pub fn group_initial_rebalance_delay(mut self, delay: Duration) -> Self {
        self.config.group_initial_rebalance_delay = delay;
        self
    }

    /// Sets the bounds of a member's session timeout: Kafka's `group.min.session.timeout.ms` and
    /// `group.max.session.timeout.ms`. The defaults are 6 s and 30 min.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If the least is more than the greatest, so that nobody could join.
    #[track_caller]
    pub fn group_session_timeouts(mut self, min: Duration, max: Duration) -> Self {
        assert!(min <= max, "the least session timeout, {min:?}, is not above the greatest, {max:?}");
        self.config.group_min_session_timeout = min;
        self.config.group_max_session_timeout = max;
        self
    }

    /// Sets how many members a group may have: Kafka's `group.max.size`. The default is no limit.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is none, or more than an `i32` has room for.
    #[track_caller]
    pub fn group_max_size(self, members: usize) -> Self {
        self.with("group.max.size", members)
    }

    /// Sets how long a member of KIP-848 may be silent: Kafka's `group.consumer.session.timeout.ms`. The default is
    /// 45 s.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is no time at all.
    #[track_caller]
    pub fn group_consumer_session_timeout(mut self, timeout: Duration) -> Self {
        some_time("group consumer session timeout", timeout);
        self.config.group_consumer_session_timeout = timeout;
        self
    }

    /// Sets how often members of KIP-848 are to send heartbeats: Kafka's `group.consumer.heartbeat.interval.ms`. The
    /// default is 5 s.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is no time at all.
    #[track_caller]
    pub fn group_consumer_heartbeat_interval(mut self, interval: Duration) -> Self {
        some_time("group consumer heartbeat interval", interval);
        self.config.group_consumer_heartbeat_interval = interval;
        self
    }

    /// Sets how long the coordinator leaves an assignment alone before it makes the next one: Kafka's
    /// `group.consumer.assignment.interval.ms`, which is there since 4.3. The default is 1 s.
    ///
    /// **Unstable:** may change in any release.
    pub fn group_consumer_assignment_interval(mut self, interval: Duration) -> Self {
        self.config.group_consumer_assignment_interval = interval;
        self
    }

    /// Sets how often regular expressions are resolved anew though no topic has come: Kafka's
    /// `group.consumer.regex.refresh.interval.ms`. The default is 10 min.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is no time at all.
    #[track_caller]
    pub fn group_consumer_regex_refresh_interval(mut self, interval: Duration) -> Self {
        some_time("group consumer regex refresh interval", interval);
        self.config.group_consumer_regex_refresh_interval = interval;
        self
    }

    /// Sets how many members a group of KIP-848 may have: Kafka's `group.consumer.max.size`. The default is no limit.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is none, or more than an `i32` has room for.
    #[track_caller]
    pub fn group_consumer_max_size(self, members: usize) -> Self {
        self.with("group.consumer.max.size", members)
    }

    /// Sets which way groups with members may change over to the other protocol: Kafka's
    /// `group.consumer.migration.policy`. The default is both ways, and neither in Kafka 3.9.
    ///
    /// **Unstable:** may change in any release.
    pub fn group_consumer_migration_policy(mut self, policy: MigrationPolicy) -> Self {
        self.config.group_consumer_migration_policy = Some(policy);
        self
    }

    /// Sets how long committed offsets are kept that nobody uses: Kafka's `offsets.retention.minutes`. The default is
    /// seven days.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is no time at all.
    #[track_caller]
    pub fn offsets_retention(mut self, retention: Duration) -> Self {
        some_time("offsets retention", retention);
        self.config.offsets_retention = retention;
        self
    }

    /// Sets how often expired offsets and empty groups are looked for: Kafka's
    /// `offsets.retention.check.interval.ms`. The default is 10 min.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is no time at all.
    #[track_caller]
    pub fn offsets_retention_check_interval(mut self, interval: Duration) -> Self {
        some_time("offsets retention check interval", interval);
        self.config.offsets_retention_check_interval = interval;
        self
    }
}
