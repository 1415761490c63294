//! What a coordinator works with: the settings that hold for a group, the cluster around it, and the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use krafka_protocol::{ErrorCode, Str};

use super::image::Image;
use crate::config::{Config, MigrationPolicy};
use crate::faults::KafkaVersion;

/// The place where one request, or one timer, of a group is worked on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Desk<'a> {
    pub(super) config: &'a Config,
    /// What was set for this group alone, by Kafka's names.
    pub(super) own: Option<&'a BTreeMap<Str, Str>>,
    pub(super) image: Image<'a>,
    pub(super) now: Instant,
}

impl Desk<'_> {
    /// How long a member of KIP-848 may be silent.
    pub(super) fn session_timeout(&self) -> Duration {
        self.own_millis("consumer.session.timeout.ms").unwrap_or(self.config.group_consumer_session_timeout)
    }

    /// How often a member of KIP-848 is to send a heartbeat.
    pub(super) fn heartbeat_interval(&self) -> Duration {
        self.own_millis("consumer.heartbeat.interval.ms").unwrap_or(self.config.group_consumer_heartbeat_interval)
    }

    /// How long an assignment stands before the next one is made. There is no such pause before Kafka 4.3.
    pub(super) fn assignment_interval(&self) -> Duration {
        if self.image.version < KafkaVersion::V4_3 {
            return Duration::ZERO;
        }
        self.own_millis("consumer.assignment.interval.ms").unwrap_or(self.config.group_consumer_assignment_interval)
    }

    /// Whether groups may change over to the other protocol, and in which direction.
    pub(super) fn migration_policy(&self) -> MigrationPolicy {
        self.config.group_consumer_migration_policy.unwrap_or(if self.image.version < KafkaVersion::V4_0 {
            MigrationPolicy::Disabled
        } else {
            MigrationPolicy::Bidirectional
        })
    }

    fn own_millis(&self, name: &str) -> Option<Duration> {
        let value = self.own?.get(name)?;
        value.parse().ok().map(Duration::from_millis)
    }
}

/// Why a group refuses something, with the reason in words where the answer has room for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) error: ErrorCode,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(error: ErrorCode, message: impl Into<String>) -> Self {
        Self { error, message: message.into() }
    }
}
