//! What a client may do, as the bit field that answers have room for: everything that exists where there is no
//! authorizer.

use crate::context::Context;
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
    on(state, cx, ResourceType::Group, group)
}

fn on(state: &State, cx: &Context, resource_type: ResourceType, name: &str) -> i32 {
    state.acls.allowed_operations(&cx.principal, cx.address(), resource_type, name)
}
