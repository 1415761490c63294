//! DescribeCluster: the nodes, and which of them is the controller.

use krafka_protocol::api::describe_cluster::DescribeClusterBroker;
use krafka_protocol::{DescribeClusterRequest, DescribeClusterResponse, ErrorCode, Str};

use super::operations;
use crate::context::{Context, Outcome};
use crate::state::State;
use crate::words::words;

/// The kinds of nodes that a request may ask for.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &DescribeClusterRequest,
) -> Outcome<DescribeClusterResponse> {
    if let Some(code) = cx.denied() {
        return Outcome::Reply(failed(code, words(code)));
    }
    match request.endpoint_type {
        BROKERS => {}
        CONTROLLERS => {
            let text =
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER";
            return Outcome::Reply(failed(ErrorCode::MISMATCHED_ENDPOINT_TYPE, text));
        }
        other => {
            let text = format!("Unsupported endpoint type {other}");
            return Outcome::Reply(failed(ErrorCode::UNSUPPORTED_ENDPOINT_TYPE, &text));
        }
    }
    let shown = state.nodes.iter().filter(|(_, node)| node.up || (node.registered && request.include_fenced_brokers));
    let brokers = shown.map(|(broker_id, node)| {
        let (host, port) = node.told(cx.listener);
        DescribeClusterBroker { broker_id, host, port, rack: node.rack.clone(), is_fenced: !node.up }
    });
    let mut response = DescribeClusterResponse {
        endpoint_type: BROKERS,
        cluster_id: state.config.cluster_id.clone(),
        controller_id: state.nodes.controller(),
        brokers: brokers.collect(),
        error_message: None,
        ..DescribeClusterResponse::default()
    };
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = operations::cluster(state, cx);
    }
    Outcome::Reply(response)
}

fn failed(code: ErrorCode, message: &str) -> DescribeClusterResponse {
    DescribeClusterResponse {
        error_code: code.0,
        error_message: Some(Str::from(message)),
        ..DescribeClusterResponse::default()
    }
}
