//! The consumer's task: carries out what its engine decides, and tells the engine what came of it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::api::offset_commit::{OffsetCommitRequest, OffsetCommitResponse};
use krafka_protocol::api::offset_fetch::{OffsetFetchRequest, OffsetFetchResponse};
use krafka_protocol::{ErrorCode, Recovery, Request, Str, Uuid};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::Instrument;

use super::assign::Whereabouts;
use super::commit;
use super::committed::layout;
use super::engine::{Action, Engine, Event, Input};
use super::fetcher::Hint;
use super::group::classic;
use super::listener::RebalanceListener;
use super::metrics::fault;
use super::session;
use super::shared::Shared;
use crate::cluster::{Cluster, CoordinatorKind, LeaderHint, Node};
use crate::drive::{self, Work};
use crate::network::{CallError, Connection, Lane, Network, is_no_room};
use crate::spans;
use crate::{KrafkaError, Result, TopicPartition};

/// OffsetCommit and OffsetFetch name topics by id from this version on.
const TOPIC_IDS_SINCE: i16 = 10;

/// How much longer than the rebalance timeout a parked JoinGroup or SyncGroup may take, as in the Java client.
const REBALANCE_GRACE: Duration = Duration::from_secs(5);

/// How long a broker may park a fetch where `max_connections` lets others wait for its connection.
const SHORT_WAIT_MS: i32 = 50;

/// How long a broker may take to hear that a fetch session is over. To wait longer helps nobody.
const FAREWELL: Duration = Duration::from_secs(1);

/// The brokers, as one consumer speaks to them.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) network: Network,
    pub(crate) cluster: Cluster,
    /// Names this consumer's lanes and watched topics.
    pub(crate) owner: u64,
    pub(crate) client_id: Arc<str>,
    pub(crate) group: Option<Str>,
    pub(crate) request_timeout: Duration,
    pub(crate) session_timeout: Duration,
    pub(crate) rebalance_timeout: Duration,
}

/// Runs a consumer until it is closed, or its handle is dropped.
pub(crate) async fn run(
    mut engine: Engine,
    inputs: UnboundedReceiver<Input>,
    shared: Arc<Shared>,
    remote: Remote,
    listener: Option<Arc<dyn RebalanceListener>>,
) {
    /// Answers those who wait, however the task ends.
    struct Ending(Arc<Shared>);
    impl Drop for Ending {
        fn drop(&mut self) {
            self.0.close();
        }
    }
    let ending = Ending(shared.clone());
    drive::run(&mut engine, inputs, |action, work| carry_out(action, work, &shared, &remote, listener.as_ref())).await;
    remote.cluster.watch_topics(remote.owner, Vec::new());
    // Whatever was on its way has been dropped with the loop, so that no long poll keeps these open.
    remote.network.release(vec![Lane::Fetch(remote.owner), remote.coordination(), remote.parking()]);
    drop(ending);
}

fn carry_out(
    action: Action,
    work: &mut Work<Input>,
    shared: &Arc<Shared>,
    remote: &Remote,
    listener: Option<&Arc<dyn RebalanceListener>>,
) -> ControlFlow<()> {
    let (to, shared) = (remote.clone(), shared.clone());
    match action {
        Action::FollowCluster { since } => {
            work.start(async move { Input::ClusterChanged(to.cluster.changed(since).await) });
        }
        Action::Fetch { node, mut request, pause } => work.start(async move {
            if to.network.takes_turns() {
                // What the broker would have to wait for is waited for here, where it costs nobody a connection.
                drive::sleep_until(Some(drive::now() + pause)).await;
            }
            if to.network.is_scarce() {
                // Others wait for this connection, or for one in its place.
                request.max_wait_ms = request.max_wait_ms.min(SHORT_WAIT_MS);
            }
            let max_wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
            let timeout = to.request_timeout + max_wait;
            let answer = to.in_version(node, Lane::Fetch(to.owner), request, timeout, session::in_version).await;
            answer.iter().for_each(|answer| shared.counters.fetched(answer));
            Input::Fetched { node, answer, max_wait }
        }),
        Action::EndSession { node, request } => work.start(async move {
            // Not on the fetch lane, where it would wait behind a long poll: a session is not tied to its connection.
            // Whether the broker heard of it does not matter: it forgets sessions by itself.
            let parting = to.in_version(node, Lane::Control, request, to.request_timeout, session::in_version);
            let _ = tokio::time::timeout(FAREWELL, parting).await;
            Input::Parted
        }),
        Action::ListOffsets { node, request, asked } => work.start(async move {
            let answer = to.at_node(node, Lane::Control, request, to.request_timeout).await;
            Input::Listed { asked, answer }
        }),
        Action::Validate { node, request, asked } => work.start(async move {
            let answer = to.at_node(node, Lane::Control, request, to.request_timeout).await;
            Input::Validated { asked, answer }
        }),
        Action::LoadCommitted { request, asked } => work.start(async move {
            let answer = to.offset_fetch(request).await;
            Input::Loaded { asked, answer }
        }),
        Action::Commit(request) => work.start(async move {
            let span = spans::commit(&to.client_id, to.group.as_deref());
            let answer = to.offset_commit(request).instrument(span.clone()).await;
            if let Some(error) = fault(&answer) {
                spans::failed(&span, &error);
            }
            shared.counters.committed(&answer);
            Input::Committed(commit::Input::Answered(answer))
        }),
        Action::Join { round, request } => work.start(async move {
            shared.counters.add(|counters| &counters.joins, 1);
            let answer = to.parked(request, |answer| answer.error_code).await;
            Input::Member(classic::Input::Joined { round, answer })
        }),
        Action::Count { round, topics } => work.start(async move {
            let counts = to.count(&topics).await;
            Input::Member(classic::Input::Counted { round, counts })
        }),
        Action::Sync { round, request } => work.start(async move {
            let answer = to.parked(request, |answer| answer.error_code).await;
            Input::Member(classic::Input::Synced { round, answer })
        }),
        Action::Beat(request) => work.start(async move {
            let (lane, generation) = (to.coordination(), request.generation_id);
            // A heartbeat that is not answered within a session is of no use any more.
            let timeout = to.request_timeout.min(to.session_timeout);
            let answer = to.at_coordinator(lane, request, timeout, |answer| answer.error_code).await;
            Input::Member(classic::Input::Beaten { generation, answer })
        }),
        Action::Leave(request) => work.start(async move {
            let lane = to.coordination();
            // Who cannot be told finds out when the session ends.
            let _ = to.at_coordinator(lane, request, to.request_timeout, |answer| answer.error_code).await;
            Input::Parted
        }),
        Action::Refresh(topics) => to.cluster.refresh(&topics),
        Action::Watch(topics) => to.cluster.watch_topics(to.owner, topics),
        Action::Hint(hint) => to.cluster.leader_hint(leader_hint(hint)),
        Action::Listen(event) => {
            let Some(listener) = listener.cloned() else { return ControlFlow::Continue(()) };
            work.start(async move {
                // A task of its own, so that a callback that panics does not take the consumer with it.
                if tokio::spawn(async move { listen(&*listener, event).await }).await.is_err() {
                    tracing::error!("the rebalance listener panicked; the rebalance goes on");
                }
                Input::ListenerReturned
            });
        }
        Action::Answer { ticket, result } => shared.answer(ticket, result),
        Action::WakeCallers => shared.arrivals.notify_waiters(),
        Action::Closed => return ControlFlow::Break(()),
    }
    ControlFlow::Continue(())
}

async fn listen(listener: &dyn RebalanceListener, event: Event) {
    match event {
        Event::Revoked(partitions) => listener.on_revoked(&partitions).await,
        Event::Lost(partitions) => listener.on_lost(&partitions).await,
        Event::Assigned(partitions) => listener.on_assigned(&partitions).await,
    }
}

fn leader_hint(hint: Hint) -> LeaderHint {
    let node = hint
        .endpoint
        .and_then(|(host, port, rack)| Some(Node { id: hint.leader_id, host, port: u16::try_from(port).ok()?, rack }));
    LeaderHint {
        topic: hint.topic,
        topic_id: hint.topic_id,
        partition: hint.partition,
        leader: hint.leader_id,
        leader_epoch: hint.leader_epoch,
        node,
    }
}

impl Remote {
    fn coordination(&self) -> Lane {
        Lane::Coordination(self.owner)
    }

    /// A coordinator parks JoinGroup and SyncGroup until the whole group is there. They have a connection of their
    /// own, so that nothing else of this member waits behind them.
    fn parking(&self) -> Lane {
        Lane::Join(self.owner)
    }

    /// Asks one broker.
    pub(crate) async fn at_node<R>(&self, node: i32, lane: Lane, request: R, timeout: Duration) -> Result<R::Response>
    where
        R: Request,
        R::Response: Send + 'static,
    {
        self.in_version(node, lane, request, timeout, |request, _| request).await
    }

    /// Asks one broker, in words of the version that it speaks.
    async fn in_version<R>(
        &self,
        node: i32,
        lane: Lane,
        request: R,
        timeout: Duration,
        speak: impl FnOnce(R, i16) -> R,
    ) -> Result<R::Response>
    where
        R: Request,
        R::Response: Send + 'static,
    {
        let Some(node) = self.cluster.snapshot().node(node).cloned() else {
            let missing =
                std::io::Error::new(std::io::ErrorKind::NotFound, "it is not in the cluster's metadata any more");
            return Err(KrafkaError::network(format!("{} at broker {node}", R::KEY.name()), missing));
        };
        let connection = self.network.connection(&node, lane).await?;
        let version = connection.version::<R>()?;
        Ok(connection.submit_at(speak(request, version), version, timeout).await?)
    }

    /// Asks the group's coordinator, and says so when it is none any more.
    async fn at_coordinator<R>(
        &self,
        lane: Lane,
        request: R,
        timeout: Duration,
        code: impl FnOnce(&R::Response) -> i16,
    ) -> Result<R::Response>
    where
        R: Request,
        R::Response: Send + 'static,
    {
        let (node, connection) = self.coordinator(lane, R::KEY.name(), timeout).await?;
        self.judged(&node, connection.call(request, timeout).await, code)
    }

    /// Asks what the coordinator answers when the whole group is there. Where `max_connections` is low, others may need
    /// the connection before, the other members first of all. Then it is asked once more: the coordinator has noted
    /// that this member has come, which is what counts for the others, and answers at once when they have come, too.
    async fn parked<R>(&self, request: R, code: impl FnOnce(&R::Response) -> i16) -> Result<R::Response>
    where
        R: Request + Clone,
        R::Response: Send + 'static,
    {
        let timeout = self.request_timeout.max(self.rebalance_timeout + REBALANCE_GRACE);
        let deadline = drive::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(drive::now());
            let (node, connection) = self.coordinator(self.parking(), R::KEY.name(), left).await?;
            if let Some(answer) = connection.call_while_spared(request.clone(), left).await {
                return self.judged(&node, answer, code);
            }
        }
    }

    /// Has the coordinator looked for again, if its answer, or that there is none, shows that it is another.
    fn judged<T>(&self, node: &Node, answer: Result<T, CallError>, code: impl FnOnce(&T) -> i16) -> Result<T> {
        let recovery = answer.as_ref().map(|answer| ErrorCode(code(answer)).recovery());
        self.judge(node, recovery.unwrap_or(Recovery::RefreshCoordinator));
        Ok(answer?)
    }

    async fn coordinator(&self, lane: Lane, what: &str, timeout: Duration) -> Result<(Node, Connection)> {
        let Some(group) = &self.group else {
            return Err(KrafkaError::illegal_state("this consumer has no group"));
        };
        let finding = self.cluster.coordinator(CoordinatorKind::Group, group);
        let Ok(node) = tokio::time::timeout(timeout, finding).await else {
            return Err(KrafkaError::timeout(format!("{what}: group '{group}' had no coordinator for {timeout:?}")));
        };
        let node = node?;
        match self.network.connection(&node, lane).await {
            Ok(connection) => Ok((node, connection)),
            Err(error) => {
                // To have waited in vain for a turn says nothing of the broker.
                if !is_no_room(error.error()) {
                    self.judge(&node, Recovery::RefreshCoordinator);
                }
                Err(error.into())
            }
        }
    }

    /// Has the coordinator looked for again, if an answer shows that it is another.
    fn judge(&self, node: &Node, recovery: Recovery) {
        if let (Recovery::RefreshCoordinator, Some(group)) = (recovery, &self.group) {
            self.cluster.coordinator_lost(CoordinatorKind::Group, group, node);
        }
    }

    async fn offset_commit(&self, mut request: OffsetCommitRequest) -> Result<OffsetCommitResponse> {
        let (node, connection) = self.coordinator(self.coordination(), "OffsetCommit", self.request_timeout).await?;
        let names: Vec<Str> = request.topics.iter().map(|topic| topic.name.clone()).collect();
        let ids = self.ids(&names, connection.version::<OffsetCommitRequest>()?).await?;
        for (topic, (_, id)) in request.topics.iter_mut().zip(&ids) {
            topic.topic_id = *id;
        }
        let answer = connection.call(request, self.request_timeout).await;
        let codes = answer.iter().flat_map(|answer| &answer.topics).flat_map(|topic| &topic.partitions);
        let code = codes.map(|partition| ErrorCode(partition.error_code)).find(|code| !code.is_ok());
        let recovery = code.map_or(Recovery::None, ErrorCode::recovery);
        self.judge(&node, if answer.is_err() { Recovery::RefreshCoordinator } else { recovery });
        let mut answer = answer?;
        for topic in &mut answer.topics {
            name(&mut topic.name, topic.topic_id, &ids);
        }
        Ok(answer)
    }

    pub(crate) async fn offset_fetch(&self, mut request: OffsetFetchRequest) -> Result<OffsetFetchResponse> {
        let (node, connection) = self.coordinator(self.coordination(), "OffsetFetch", self.request_timeout).await?;
        let topics = || request.groups.iter().flat_map(|group| group.topics.iter().flatten());
        let names: Vec<Str> = topics().map(|topic| topic.name.clone()).collect();
        let version = connection.version::<OffsetFetchRequest>()?;
        let ids = self.ids(&names, version).await?;
        // A topic without an id can be asked about by its name only. If there is none of that name, nothing is
        // committed for it, as Java's consumer has it; by id, it would be a topic that the broker has yet to hear of.
        let version = match ids.iter().any(|(_, id)| id.is_zero()) {
            true => version.min(TOPIC_IDS_SINCE - 1),
            false => version,
        };
        let topics = request.groups.iter_mut().flat_map(|group| group.topics.iter_mut().flatten());
        for (topic, (_, id)) in topics.zip(&ids) {
            topic.topic_id = *id;
        }
        let asked = layout::question(request, version);
        let answer = connection.submit_at(asked.clone(), version, self.request_timeout).await;
        let answer = answer.map(|answer| layout::answer(answer, &asked, version));
        let code = answer.iter().flat_map(|answer| &answer.groups).map(|group| ErrorCode(group.error_code)).next();
        let recovery = code.map_or(Recovery::None, ErrorCode::recovery);
        self.judge(&node, if answer.is_err() { Recovery::RefreshCoordinator } else { recovery });
        let mut answer = answer?;
        for topic in answer.groups.iter_mut().flat_map(|group| &mut group.topics) {
            name(&mut topic.name, topic.topic_id, &ids);
        }
        Ok(answer)
    }

    /// The ids of topics, where the version in use needs them; else zeros.
    async fn ids(&self, names: &[Str], version: i16) -> Result<Vec<(Str, Uuid)>> {
        let mut snapshot = self.cluster.snapshot();
        if version >= TOPIC_IDS_SINCE && names.iter().any(|name| !snapshot.topics.contains_key(name)) {
            let loading = self.cluster.load(names);
            snapshot = tokio::time::timeout(self.request_timeout, loading)
                .await
                .map_err(|_| KrafkaError::timeout("loading the ids of topics whose offsets are committed"))??;
        }
        let id = |name: &Str| snapshot.topics.get(name).map_or(Uuid::ZERO, |topic| topic.id);
        Ok(names.iter().map(|name| (name.clone(), id(name))).collect())
    }

    /// How many partitions the topics have, and where, by metadata that knows all of them that exist.
    async fn count(&self, topics: &BTreeSet<Str>) -> Whereabouts {
        let mut snapshot = self.cluster.snapshot();
        if topics.iter().any(|topic| !snapshot.topics.contains_key(topic)) {
            let names: Vec<Str> = topics.iter().cloned().collect();
            // A topic that cannot be loaded in time is assigned when it turns up: the leader rejoins then.
            if let Ok(Ok(loaded)) = tokio::time::timeout(self.request_timeout, self.cluster.load(&names)).await {
                snapshot = loaded;
            }
        }
        Whereabouts::of(topics, &snapshot)
    }

    /// Waits for a topic and these partitions to exist, as long as `patience` allows.
    pub(crate) async fn existing(
        &self,
        topic: &Str,
        partitions: &[i32],
        patience: Duration,
        limit: Duration,
    ) -> Result<()> {
        let begin = drive::now();
        let topics = std::slice::from_ref(topic);
        // What others of this handle found out will do, unless a partition is missing there.
        if let Ok(Ok(snapshot)) = tokio::time::timeout(limit, self.cluster.known(topics)).await
            && missing(&snapshot, topic, partitions).is_none()
        {
            return Ok(());
        }
        loop {
            let left = limit.saturating_sub(drive::now() - begin);
            let error = match tokio::time::timeout(left, self.cluster.load(topics)).await {
                Err(_) => KrafkaError::timeout(format!("loading the metadata of topic '{topic}' took {limit:?}")),
                Ok(Err(error)) if error.is_retriable() && drive::now() - begin < limit => continue,
                Ok(Err(error)) => error,
                Ok(Ok(snapshot)) => match missing(&snapshot, topic, partitions) {
                    None => return Ok(()),
                    Some(error) if drive::now() - begin < patience && error.is_retriable() => continue,
                    Some(error) => error,
                },
            };
            return Err(error);
        }
    }
}

/// What is missing of a topic, if anything is.
fn missing(snapshot: &crate::cluster::Snapshot, topic: &Str, partitions: &[i32]) -> Option<KrafkaError> {
    let Some(view) = snapshot.topics.get(topic) else {
        let code = snapshot.errors.get(topic).copied().unwrap_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        return Some(if code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
            KrafkaError::UnknownTopic { topic: Arc::from(&**topic) }
        } else {
            KrafkaError::broker(code, format!("loading the metadata of topic '{topic}'"))
        });
    };
    let has = view.partitions.len();
    let wrong =
        partitions.iter().find(|&&partition| usize::try_from(partition).map_or(true, |number| number >= has))?;
    let name = TopicPartition::new(&**topic, *wrong);
    Some(KrafkaError::broker(
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        format!("assigning {name}: the topic has {has} partitions, numbered from 0"),
    ))
}

/// Gives an answer that names a topic by its id the name back.
fn name(field: &mut Str, id: Uuid, ids: &[(Str, Uuid)]) {
    if field.is_empty()
        && let Some((name, _)) = ids.iter().find(|(_, known)| *known == id && !id.is_zero())
    {
        *field = name.clone();
    }
}
