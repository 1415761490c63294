//! Carries out one admin call in its caller's task: dropping the call's future ends it.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use krafka_protocol::Str;
use krafka_protocol::machine::Machine;
use tokio::time::timeout_at;

use super::route::{Action, Input, ItemAnswer, Route, Target};
use crate::cluster::{self, Node};
use crate::drive;
use crate::error::KrafkaError;
use crate::kafka::Kafka;
use crate::network::{CallError, Connection, Lane};

/// Asks about items until each has its result or the time is over.
///
/// `ask` makes one request of a connection: the items, and the time that the broker may take.
pub(super) async fn run<T, F>(
    kafka: &Kafka,
    target: Target,
    mut route: Route<T>,
    ask: impl Fn(Connection, Vec<Str>, Duration) -> F,
) -> BTreeMap<Str, Result<T, KrafkaError>>
where
    F: Future<Output = Result<Vec<(Str, ItemAnswer<T>)>, CallError>>,
{
    let mut failed_node = None;
    loop {
        if kafka.cluster().is_gone() {
            route.handle(Input::Failed(CallError::unsent(cluster::gone())), drive::now());
        }
        match route.poll(drive::now()) {
            Some(Action::Finish(results)) => return results,
            Some(Action::Ask { items, is_retry, time_left }) => {
                let deadline = drive::now() + time_left;
                let attempt = async {
                    if is_retry {
                        // Another broker may be the controller by now. If none can be asked, the request will say so.
                        let _ = kafka.cluster().load(&[]).await;
                    }
                    let node = choose(kafka, target, failed_node.take());
                    failed_node = Some(node.clone());
                    let connection = kafka.network().connection(&node, Lane::Control).await?;
                    let answers = ask(connection, items, time_left.min(kafka.request_timeout())).await?;
                    failed_node = None;
                    Ok(answers)
                };
                match timeout_at(deadline.into(), attempt).await {
                    Ok(Ok(answers)) => route.handle(Input::Answered(answers), drive::now()),
                    Ok(Err(error)) => route.handle(Input::Failed(error), drive::now()),
                    // The route's own deadline is the same, and ends it at the next poll.
                    Err(_) => {}
                }
            }
            None => drive::sleep_until(route.deadline()).await,
        }
    }
}

/// The broker to ask. One that just failed is asked only if there is no other.
fn choose(kafka: &Kafka, target: Target, failed: Option<Node>) -> Node {
    let snapshot = kafka.cluster().snapshot();
    let failed = failed.map(|node| node.id);
    if target == Target::Controller {
        let controller = snapshot.controller.and_then(|id| snapshot.node(id));
        if let Some(controller) = controller.filter(|node| Some(node.id) != failed) {
            return Node::clone(controller);
        }
    }
    let cost = |node: &Node| (Some(node.id) == failed, kafka.network().cost(node, Lane::Control));
    let best = snapshot.nodes.values().min_by_key(|node| cost(node));
    Node::clone(best.expect("a connected handle knows at least one broker"))
}
