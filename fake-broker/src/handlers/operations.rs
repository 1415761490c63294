//! What a client may do, as the bit field that answers have room for: everything that exists where there is no
//! authorizer.

use crate::context::Context;
use crate::faults::KafkaVersion;
use crate::security::acls::{CLUSTER_NAME, Operation, ResourceType};
use crate::state::State;

/// On the cluster; nothing if the client may not see it.
pub(crate) fn cluster(state: &State, cx: &Context) -> i32 {
    if cx.may(state, Operation::Describe, ResourceType::Cluster, CLUSTER_NAME) {
        on(state, cx, ResourceType::Cluster, CLUSTER_NAME)
    } else {
        0
    }
}

/// On a topic, which the client may see.
pub(crate) fn topic(state: &State, cx: &Context, name: &str) -> i32 {
    on(state, cx, ResourceType::Topic, name)
}

/// On a group, which the client may see.
pub(crate) fn group(state: &State, cx: &Context, group: &str) -> i32 {
    let operations = on(state, cx, ResourceType::Group, group);
    // Kafka 3.9 has configs of groups, and forgets here that one needs a permission for them.
    let of_configs = 1 << Operation::DescribeConfigs as i32 | 1 << Operation::AlterConfigs as i32;
    if state.version_of(cx.node) < KafkaVersion::V4_0 { operations & !of_configs } else { operations }
}

fn on(state: &State, cx: &Context, resource_type: ResourceType, name: &str) -> i32 {
    state.acls.allowed_operations(&cx.principal, cx.address(), resource_type, name)
}
