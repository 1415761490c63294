//! ListConfigResources: what there is that has configs (KIP-1142); in version 0, subscriptions to client metrics alone.

use std::collections::BTreeSet;

use krafka_protocol::api::list_config_resources::ConfigResource;
use krafka_protocol::{ErrorCode, ListConfigResourcesRequest, ListConfigResourcesResponse, Str};

use crate::configs::ResourceType;
use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::state::State;

/// All types, in the order in which Kafka lists them.
const TYPES: [ResourceType; 5] = [
    ResourceType::Group,
    ResourceType::ClientMetrics,
    ResourceType::BrokerLogger,
    ResourceType::Broker,
    ResourceType::Topic,
];

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &ListConfigResourcesRequest,
) -> Outcome<ListConfigResourcesResponse> {
    if let Some(code) = cx.cluster_error(state, Operation::DescribeConfigs) {
        return Outcome::Reply(failed(code));
    }
    let asked: BTreeSet<ResourceType> = if cx.version == 0 {
        BTreeSet::from([ResourceType::ClientMetrics])
    } else if request.resource_types.is_empty() {
        BTreeSet::from(TYPES)
    } else {
        let known: Option<_> = request.resource_types.iter().map(|&code| ResourceType::from_code(code)).collect();
        let Some(known) = known else { return Outcome::Reply(failed(ErrorCode::UNSUPPORTED_VERSION)) };
        known
    };
    let list = |resource: ResourceType| -> Vec<Str> {
        match resource {
            ResourceType::Group => state.configs.groups.keys().cloned().collect(),
            ResourceType::ClientMetrics => state.configs.client_metrics.keys().cloned().collect(),
            ResourceType::Topic => state.topics.iter().map(|topic| topic.name.clone()).collect(),
            ResourceType::Broker | ResourceType::BrokerLogger => {
                state.nodes.live_ids().into_iter().map(|id| Str::from(id.to_string())).collect()
            }
        }
    };
    let resources = TYPES.into_iter().filter(|resource| asked.contains(resource)).flat_map(|resource| {
        let named = move |resource_name| ConfigResource { resource_name, resource_type: resource as i8 };
        list(resource).into_iter().map(named)
    });
    let config_resources = resources.collect();
    Outcome::Reply(ListConfigResourcesResponse { config_resources, ..ListConfigResourcesResponse::default() })
}

fn failed(code: ErrorCode) -> ListConfigResourcesResponse {
    ListConfigResourcesResponse { error_code: code.0, ..ListConfigResourcesResponse::default() }
}
