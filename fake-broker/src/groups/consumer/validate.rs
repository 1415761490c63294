//! What a ConsumerGroupHeartbeat must look like before any group is asked.

use krafka_protocol::ErrorCode;
use krafka_protocol::api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;

use crate::faults::KafkaVersion;
use crate::groups::desk::Refusal;
use crate::groups::image::Image;

/// Checks a request by itself, where these assignors are to be had.
pub(in crate::groups) fn validate(
    request: &ConsumerGroupHeartbeatRequest,
    version: i16,
    image: &Image<'_>,
    supported: &[&str],
) -> Result<(), Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    let is_blank = |text: &str| text.trim().is_empty();
    let epoch = request.member_epoch;
    // Since version 1 the member draws its id itself; before, it has one once it is in the group. Kafka 3.9 looks at it
    // last, and also when a static member leaves for a while.
    let is_old = image.version < KafkaVersion::V4_0;
    let is_nobody = (version >= 1 || epoch > 0 || epoch == -1 || is_old && epoch == -2) && is_blank(&request.member_id);
    if is_nobody && !is_old {
        return invalid("MemberId can't be empty.");
    }
    if is_blank(&request.group_id) {
        return invalid("GroupId can't be empty.");
    }
    if request.instance_id.as_ref().is_some_and(|id| is_blank(id)) {
        return invalid("InstanceId can't be empty.");
    }
    if request.rack_id.as_ref().is_some_and(|rack| is_blank(rack)) {
        return invalid("RackId can't be empty.");
    }
    match epoch {
        _ if is_nobody => return invalid("MemberId can't be empty."),
        0 if request.rebalance_timeout_ms == -1 => {
            return invalid("RebalanceTimeoutMs must be provided in first request.");
        }
        0 if request.topic_partitions.as_ref().is_none_or(|owned| !owned.is_empty()) => {
            return invalid("TopicPartitions must be empty when (re-)joining.");
        }
        0 if image.version < KafkaVersion::V4_0
            && request.subscribed_topic_names.as_ref().is_none_or(Vec::is_empty) =>
        {
            return invalid("SubscribedTopicNames must be set in first request.");
        }
        0 if request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none() => {
            return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.");
        }
        -2 if request.instance_id.is_none() => return invalid("InstanceId can't be null."),
        ..-2 => return invalid("MemberEpoch is invalid."),
        _ => {}
    }
    match &request.server_assignor {
        Some(name) if !supported.contains(&&**name) => Err(Refusal::new(
            ErrorCode::UNSUPPORTED_ASSIGNOR,
            format!("ServerAssignor {name} is not supported. Supported assignors: {}.", supported.join(", ")),
        )),
        _ => Ok(()),
    }
}
