//! The task that keeps the view of the cluster: runs the [`Refresher`] and the [`Coordinators`] side by side.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::api::metadata::MetadataRequestTopic;
use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, FindCoordinatorRequest, MetadataRequest, MetadataResponse, Str};
use tokio::sync::{mpsc, oneshot};

use super::coordinators::{self, Coordinators, Key};
use super::published::Published;
use super::refresher::{self, Refresher, Rules};
use super::snapshot::{Node, Snapshot};
use crate::drive::{self, Work};
use crate::error::{KrafkaError, ProtocolErrorKind};
use crate::metrics::Registry;
use crate::network::{Lane, Network, Waiter, is_no_room, no_room};

/// How long one broker may think about a question that any other could answer as well. One that hangs must not hold up
/// all that depends on the answer for a whole request timeout.
const PATIENCE: Duration = Duration::from_secs(3);

type Loaded = oneshot::Sender<Result<Arc<Snapshot>, KrafkaError>>;
/// A broker's answer about a key; or why there is none.
type CoordinatorAnswer = Result<Result<Node, (ErrorCode, Option<Str>)>, KrafkaError>;
type Found = oneshot::Sender<Result<Node, KrafkaError>>;

/// What one of the two machines is told.
pub(super) enum Input {
    Refresher(refresher::Input<Loaded>),
    Coordinators(coordinators::Input<Found>),
}

impl From<refresher::Input<Loaded>> for Input {
    fn from(input: refresher::Input<Loaded>) -> Self {
        Self::Refresher(input)
    }
}

impl From<coordinators::Input<Found>> for Input {
    fn from(input: coordinators::Input<Found>) -> Self {
        Self::Coordinators(input)
    }
}

impl Waiter for Found {
    fn is_abandoned(&self) -> bool {
        self.is_closed()
    }
}

/// How brokers are asked.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) network: Network,
    pub(super) bootstrap: Vec<Node>,
    pub(super) allow_auto_create: bool,
    /// Whether brokers are asked whether they are of the cluster that is meant (KIP-1242).
    pub(super) is_checked: bool,
    pub(super) request_timeout: Duration,
}

/// The two machines as one, for the one loop.
struct View {
    refresher: Refresher<Loaded>,
    coordinators: Coordinators<Found>,
    cluster_id: Option<Str>,
}

enum Action {
    Refresher(refresher::Action<Loaded>),
    Coordinators(coordinators::Action<Found>),
}

impl Machine for View {
    type Input = Input;
    type Action = Action;

    fn handle(&mut self, input: Input, now: std::time::Instant) {
        match input {
            Input::Refresher(input) => self.refresher.handle(input, now),
            Input::Coordinators(input) => {
                if matches!(&input, coordinators::Input::Answered { result: Err(error), .. } if !is_no_room(error)) {
                    // A broker that cannot be asked may be gone for good: whether others are there is the refresher's
                    // to find out, down to the bootstrap servers.
                    self.refresher.handle(refresher::Input::Doubted { topics: Vec::new() }, now);
                }
                self.coordinators.handle(input, now);
            }
        }
    }

    fn poll(&mut self, now: std::time::Instant) -> Option<Action> {
        let Some(action) = self.refresher.poll(now) else {
            return self.coordinators.poll(now).map(Action::Coordinators);
        };
        if let refresher::Action::Publish(snapshot) = &action
            && snapshot.cluster_id != self.cluster_id
        {
            self.cluster_id.clone_from(&snapshot.cluster_id);
            self.coordinators.handle(coordinators::Input::Forgotten, now);
        }
        Some(Action::Refresher(action))
    }

    fn deadline(&self) -> Option<std::time::Instant> {
        [self.refresher.deadline(), self.coordinators.deadline()].into_iter().flatten().min()
    }
}

/// Runs until the last handle is gone.
pub(super) async fn run(
    rules: Rules,
    registry: Arc<Registry>,
    mut asking: Asking,
    published: Arc<Published>,
    inputs: mpsc::UnboundedReceiver<Input>,
) {
    let coordinators = Coordinators::new(rules.seed);
    let mut view = View { refresher: Refresher::new(rules, registry), coordinators, cluster_id: None };
    drive::run(&mut view, inputs, |action, work| {
        match action {
            Action::Refresher(action) => refresh(action, &mut asking, &published, work),
            Action::Coordinators(action) => coordinate(action, &asking, &published, work),
        }
        std::ops::ControlFlow::Continue(())
    })
    .await;
}

fn refresh(action: refresher::Action<Loaded>, asking: &mut Asking, published: &Published, work: &mut Work<Input>) {
    match action {
        refresher::Action::Fetch { fetch, candidates, topics } => {
            let asking = asking.clone();
            work.start(async move {
                // The last one may take its time: perhaps all of them are slow.
                let patience = if candidates.len() > 1 { PATIENCE } else { asking.request_timeout };
                let node = asking.least_loaded(candidates);
                let result = asking.within(patience, "Metadata", &node, asking.metadata(&node, topics)).await;
                refresher::Input::Fetched { fetch, node, result }.into()
            });
        }
        refresher::Action::Seed(bootstrap) => asking.bootstrap = bootstrap,
        refresher::Action::Publish(snapshot) => {
            let before = published.snapshot();
            if snapshot.cluster_id != before.cluster_id {
                if before.cluster_id.is_some() {
                    asking.network.forget_features();
                }
                if asking.is_checked {
                    asking.network.meant_for(snapshot.cluster_id.clone());
                }
            }
            if snapshot.nodes != before.nodes {
                asking.network.moved(snapshot.nodes.clone());
            }
            published.publish(snapshot);
        }
        // A waiter that is gone does not want to know.
        refresher::Action::Answer { waiter, result } => drop(waiter.send(result)),
    }
}

fn coordinate(action: coordinators::Action<Found>, asking: &Asking, published: &Published, work: &mut Work<Input>) {
    match action {
        coordinators::Action::Find { key, failures } => {
            let asking = asking.clone();
            let known: Vec<Node> = published.snapshot().nodes.values().map(|node| Node::clone(node)).collect();
            work.start(async move {
                let candidates = if known.is_empty() { asking.bootstrap.clone() } else { known };
                let patience = PATIENCE.saturating_mul(1 << failures.min(16));
                let result = asking.coordinator_within(patience, candidates, &key).await;
                coordinators::Input::Answered { key, result }.into()
            });
        }
        coordinators::Action::Found { waiter, node } => drop(waiter.send(Ok(node))),
        coordinators::Action::Fail { waiter, error } => drop(waiter.send(Err(error))),
    }
}

impl Asking {
    fn least_loaded(&self, candidates: Vec<Node>) -> Node {
        let best = candidates.into_iter().min_by_key(|node| self.network.cost(node, Lane::Control));
        best.expect("the machines name at least one candidate")
    }

    /// Gives up on a broker, but not on its connection: what is asked there beside this may still be answered. Having
    /// a pending request, it is not chosen again while others are idle.
    async fn within<T>(
        &self,
        patience: Duration,
        what: &str,
        node: &Node,
        asked: impl Future<Output = Result<T, KrafkaError>>,
    ) -> Result<T, KrafkaError> {
        if patience >= self.request_timeout {
            return asked.await;
        }
        let mut asked = pin!(asked);
        tokio::time::timeout(patience, asked.as_mut()).await.unwrap_or_else(|_| {
            // Looked at while it is still waited: whoever gives up leaves the queue.
            if self.network.is_waiting_for(node, Lane::Control) {
                let why = format!("max_connections left no room for one to {node} within {patience:?}");
                return Err(no_room(what, why));
            }
            Err(KrafkaError::timeout(format!("{what} at {node}: no answer within {patience:?}; asking another broker")))
        })
    }

    async fn metadata(&self, node: &Node, topics: Vec<Str>) -> Result<MetadataResponse, KrafkaError> {
        let connection = self.network.connection(node, Lane::Control).await?;
        let topic = |name| MetadataRequestTopic { name: Some(name), ..MetadataRequestTopic::default() };
        let request = MetadataRequest {
            // Never all topics: a client that uses three must not load thousands.
            topics: Some(topics.into_iter().map(topic).collect()),
            allow_auto_topic_creation: self.allow_auto_create,
            ..MetadataRequest::default()
        };
        Ok(connection.call(request, self.request_timeout).await?)
    }

    /// Asks the least loaded broker, and if that one does not answer in time, the next.
    async fn coordinator_within(&self, patience: Duration, mut candidates: Vec<Node>, key: &Key) -> CoordinatorAnswer {
        let node = self.least_loaded(candidates.clone());
        let answer = self.within(patience, "FindCoordinator", &node, self.coordinator(&node, key)).await;
        candidates.retain(|candidate| *candidate != node);
        if candidates.is_empty() || !matches!(answer, Err(KrafkaError::Timeout { .. })) {
            return answer;
        }
        let node = self.least_loaded(candidates);
        self.within(patience, "FindCoordinator", &node, self.coordinator(&node, key)).await
    }

    async fn coordinator(&self, node: &Node, key: &Key) -> CoordinatorAnswer {
        let connection = self.network.connection(node, Lane::Control).await?;
        let version = connection.version::<FindCoordinatorRequest>()?;
        let question = coordinators::question(key, version);
        let response = connection.submit_at(question, version, self.request_timeout).await?;
        coordinators::answer(key, response, version).map_err(|why| {
            let message = format!("FindCoordinator at {node}: {why}");
            KrafkaError::protocol(ProtocolErrorKind::Malformed, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the view does when a coordinator could not be asked for.
    fn after(error: KrafkaError) -> Option<Action> {
        let rules = Rules {
            bootstrap: vec![Node { id: -1, host: "kafka".into(), port: 9092, rack: None }],
            max_age: Duration::from_secs(300),
            recovery: super::super::MetadataRecoveryStrategy::Rebootstrap,
            rebootstrap_trigger: Duration::from_secs(300),
            seed: 1,
        };
        let refresher = Refresher::new(rules, Arc::new(Registry::new("me".into())));
        let mut view = View { refresher, coordinators: Coordinators::new(1), cluster_id: None };
        let key = (crate::cluster::CoordinatorKind::Group, Str::from_static("g"));
        view.handle(coordinators::Input::Answered { key, result: Err(error) }.into(), drive::now());
        view.poll(drive::now())
    }

    /// CB-20: a broker that cannot be asked may be gone; one that there was no room for a connection to was not asked.
    #[tokio::test(start_paused = true)]
    async fn only_a_broker_that_was_asked_casts_doubt_on_the_others() {
        let unanswered = after(KrafkaError::timeout("no answer"));
        assert!(matches!(unanswered, Some(Action::Refresher(refresher::Action::Fetch { .. }))));

        assert!(after(no_room("opening a connection", "all 1 are in use".to_owned())).is_none());
    }
}
