//! The configs of one group, ready to be used.

use std::time::Duration;

use krafka_protocol::Str;

/// What a group's configs say, together with the broker's where the group says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the kinds of groups that read the rest are being written")]
pub(crate) struct GroupSettings {
    pub(crate) consumer_session_timeout: Duration,
    pub(crate) consumer_heartbeat_interval: Duration,
    pub(crate) share_session_timeout: Duration,
    pub(crate) share_assignment_interval: Duration,
    pub(crate) share_heartbeat_interval: Duration,
    pub(crate) share_record_lock_duration: Duration,
    pub(crate) share_delivery_count_limit: i16,
    pub(crate) share_partition_max_record_locks: usize,
    pub(crate) share_auto_offset_reset: OffsetReset,
    /// Whether `share.isolation.level` is `read_committed`.
    pub(crate) share_read_committed: bool,
    pub(crate) share_renew_acknowledge: bool,
    /// The topic for records that are given up; empty for none.
    pub(crate) share_dead_letter_topic: Str,
    /// Whether they go there with their contents.
    pub(crate) share_copies_dead_letters: bool,
    pub(crate) streams_session_timeout: Duration,
    pub(crate) streams_assignment_interval: Duration,
    pub(crate) streams_heartbeat_interval: Duration,
    pub(crate) streams_initial_rebalance_delay: Duration,
    pub(crate) streams_num_standby_replicas: i32,
}

/// Where a share group begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffsetReset {
    Earliest,
    Latest,
    /// At the first record that is not older than this.
    ByDuration(Duration),
}

#[allow(dead_code, reason = "as above")]
impl GroupSettings {
    /// Works out a group's settings; `value` knows each config's value by its name.
    pub(crate) fn new(value: impl Fn(&str) -> Str) -> Self {
        // What is set was checked when it was set, so that it is a number of the right type.
        let number = |name: &str| value(name).trim().parse::<i32>().unwrap_or(0);
        let millis = |name: &str| Duration::from_millis(u64::try_from(number(name)).unwrap_or(0));
        Self {
            consumer_session_timeout: millis("consumer.session.timeout.ms"),
            consumer_heartbeat_interval: millis("consumer.heartbeat.interval.ms"),
            share_session_timeout: millis("share.session.timeout.ms"),
            share_assignment_interval: millis("share.assignment.interval.ms"),
            share_heartbeat_interval: millis("share.heartbeat.interval.ms"),
            share_record_lock_duration: millis("share.record.lock.duration.ms"),
            share_delivery_count_limit: i16::try_from(number("share.delivery.count.limit")).unwrap_or(i16::MAX),
            share_partition_max_record_locks: usize::try_from(number("share.partition.max.record.locks")).unwrap_or(0),
            share_auto_offset_reset: OffsetReset::parse(&value("share.auto.offset.reset"))
                .unwrap_or(OffsetReset::Latest),
            share_read_committed: value("share.isolation.level").trim() == "read_committed",
            share_renew_acknowledge: value("share.renew.acknowledge.enable").trim().eq_ignore_ascii_case("true"),
            share_dead_letter_topic: value("errors.deadletterqueue.topic.name"),
            share_copies_dead_letters: value("errors.deadletterqueue.copy.record.enable")
                .trim()
                .eq_ignore_ascii_case("true"),
            streams_session_timeout: millis("streams.session.timeout.ms"),
            streams_assignment_interval: millis("streams.assignment.interval.ms"),
            streams_heartbeat_interval: millis("streams.heartbeat.interval.ms"),
            streams_initial_rebalance_delay: millis("streams.initial.rebalance.delay.ms"),
            streams_num_standby_replicas: number("streams.num.standby.replicas"),
        }
    }
}

impl OffsetReset {
    /// Reads a value of `share.auto.offset.reset`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "earliest" => Some(Self::Earliest),
            "latest" => Some(Self::Latest),
            text => duration(text.strip_prefix("by_duration:")?).map(Self::ByDuration),
        }
    }
}

/// Reads a duration of ISO 8601 with days, hours, minutes and seconds, of which a negative one is none.
fn duration(text: &str) -> Option<Duration> {
    const DAY: f64 = 86_400.0;
    let upper = text.to_ascii_uppercase();
    let rest = upper.strip_prefix('P')?;
    let (days, time) = rest.split_once('T').map_or((rest, None), |(days, time)| (days, Some(time)));
    let mut seconds = match days.strip_suffix('D') {
        Some(count) => count.parse::<u32>().ok().map(f64::from)? * DAY,
        None if days.is_empty() => 0.0,
        None => return None,
    };
    let Some(mut time) = time else {
        return (!days.is_empty()).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten();
    };
    if time.is_empty() {
        return None;
    }
    for (unit, length) in [('H', 3_600.0), ('M', 60.0), ('S', 1.0)] {
        if let Some((count, after)) = time.split_once(unit) {
            let is_number = count.bytes().all(|byte| byte.is_ascii_digit() || (unit == 'S' && byte == b'.'));
            seconds += count.parse::<f64>().ok().filter(|_| is_number)? * length;
            time = after;
        }
    }
    if !time.is_empty() { None } else { Duration::try_from_secs_f64(seconds).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_resets_are_read() {
        let by = |millis| Some(OffsetReset::ByDuration(Duration::from_millis(millis)));

        assert_eq!(OffsetReset::parse("earliest"), Some(OffsetReset::Earliest));
        assert_eq!(OffsetReset::parse("by_duration:PT1H"), by(3_600_000));
        assert_eq!(OffsetReset::parse("by_duration:P1DT2H3M4.5S"), by(93_784_500));
        assert_eq!(OffsetReset::parse("by_duration:P2D"), by(172_800_000));
        for wrong in ["", "sometime", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-PT1H", "P1D"] {
            assert_eq!(OffsetReset::parse(wrong), None, "{wrong:?}");
        }
    }
}
