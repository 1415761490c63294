//! Who asks whom, at which version, and when: all that a handler knows besides the request, and what it may decide.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use krafka_protocol::{ApiKey, ErrorCode, Str};

use crate::faults::Denial;
use crate::listeners::SecurityProtocol;
use crate::purgatory::Waiting;
use crate::security::acls::{CLUSTER_NAME, Operation, ResourceType};
use crate::security::principal::Principal;
use crate::state::State;

/// One connection of the cluster's life; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

/// One request of the cluster's life; never used twice. A request that waits stays the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What a handler knows of a request besides its body.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Which request this is.
    pub(crate) request: RequestId,
    /// Which connection it came on.
    pub(crate) connection: ConnectionId,
    /// The node that was asked.
    pub(crate) node: i32,
    /// The listener that the connection came through.
    pub(crate) listener: SecurityProtocol,
    /// Who asks, as far as the listener wanted to know.
    pub(crate) principal: Principal,
    /// What the client calls itself.
    pub(crate) client_id: Option<Str>,
    /// Where the client is, in Kafka's form: `/127.0.0.1`.
    pub(crate) client_host: Str,
    /// The API asked for.
    pub(crate) key: ApiKey,
    /// The version of request and response.
    pub(crate) version: i16,
    /// The number that the response repeats.
    pub(crate) correlation_id: i32,
    /// When the handler runs; for a request that waited, when it is looked at again.
    pub(crate) now: Instant,
    /// The time of day at `now`, in milliseconds since 1970.
    pub(crate) wall_ms: i64,
    /// What faults refuse of the request, before anything is done.
    pub(crate) denials: Vec<Denial>,
}

impl Context {
    /// A request that the cluster makes of itself, to be told what its nodes know.
    pub(crate) fn own(state: &State, node: i32, key: ApiKey, version: i16, now: Instant) -> Self {
        Self {
            request: RequestId(u64::MAX),
            connection: ConnectionId(u64::MAX),
            node,
            listener: state.config.listeners.first(),
            principal: Principal::anonymous(),
            client_id: None,
            client_host: Str::from_static("/127.0.0.1"),
            key,
            version,
            correlation_id: 0,
            now,
            wall_ms: state.clock.millis(now),
            denials: Vec::new(),
        }
    }

    /// Whether a request leaves the controller no time: then it is REQUEST_TIMED_OUT before anything else is looked at.
    /// What the cluster asks of itself has time.
    pub(crate) fn is_out_of_time(&self, timeout_ms: i32) -> bool {
        timeout_ms <= 0 && self.connection != ConnectionId(u64::MAX)
    }

    /// The error that a fault gives to the request as a whole: to one with no smaller parts, or from a rule that names
    /// none of them.
    pub(crate) fn denied(&self) -> Option<ErrorCode> {
        self.denials.iter().find_map(Denial::request)
    }

    /// Why the client may not do this with a topic: a fault's reason, or the authorizer's. Handlers ask it where Kafka
    /// asks its authorizer: for each topic, before anything is done for it.
    ///
    /// Who may create on the cluster may create every topic.
    pub(crate) fn topic_error(&self, state: &State, operation: Operation, topic: &str) -> Option<ErrorCode> {
        let fault = self.denials.iter().find_map(|denial| denial.topic(topic));
        fault.or_else(|| self.refused_topic(state, operation, topic))
    }

    /// The topics that the client may not describe.
    pub(crate) fn hidden_topics(&self, state: &State) -> BTreeSet<Str> {
        let names = state.topics.iter().map(|topic| &topic.name);
        names.filter(|name| self.topic_error(state, Operation::Describe, name).is_some()).cloned().collect()
    }

    /// Why the client may not do this with a partition. The authorizer knows topics only.
    pub(crate) fn partition_error(
        &self,
        state: &State,
        operation: Operation,
        topic: &str,
        partition: i32,
    ) -> Option<ErrorCode> {
        let fault = self.denials.iter().find_map(|denial| denial.partition(topic, partition));
        fault.or_else(|| self.refused_topic(state, operation, topic))
    }

    /// Why the client may not do this with a group.
    pub(crate) fn group_error(&self, state: &State, operation: Operation, group: &str) -> Option<ErrorCode> {
        let fault = self.denials.iter().find_map(|denial| denial.group(group));
        let refusal = || self.refused(state, operation, ResourceType::Group, group);
        fault.or_else(|| refusal().then_some(ErrorCode::GROUP_AUTHORIZATION_FAILED))
    }

    /// Why the client may not do this with a transactional id.
    pub(crate) fn transactional_id_error(&self, state: &State, operation: Operation, id: &str) -> Option<ErrorCode> {
        let fault = self.denials.iter().find_map(|denial| denial.transactional_id(id));
        let refusal = || self.refused(state, operation, ResourceType::TransactionalId, id);
        fault.or_else(|| refusal().then_some(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    }

    /// Why the client may not do this with the cluster.
    ///
    /// Who may write to any topic may also write idempotently (KIP-679).
    pub(crate) fn cluster_error(&self, state: &State, operation: Operation) -> Option<ErrorCode> {
        let refusal = || {
            let is_writer = || {
                operation == Operation::IdempotentWrite
                    && state.acls.allow_any(&self.principal, self.address(), Operation::Write, ResourceType::Topic)
            };
            self.refused(state, operation, ResourceType::Cluster, CLUSTER_NAME) && !is_writer()
        };
        self.denied().or_else(|| refusal().then_some(ErrorCode::CLUSTER_AUTHORIZATION_FAILED))
    }

    /// Whether the authorizer lets the client do this. What only shows more or less of an answer asks here; what can
    /// be refused asks the functions above, because faults have a say there.
    pub(crate) fn may(&self, state: &State, operation: Operation, resource_type: ResourceType, name: &str) -> bool {
        state.acls.allow(&self.principal, self.address(), operation, resource_type, name)
    }

    /// The client's address alone.
    pub(crate) fn address(&self) -> &str {
        self.client_host.trim_start_matches('/')
    }

    fn refused(&self, state: &State, operation: Operation, resource_type: ResourceType, name: &str) -> bool {
        !self.may(state, operation, resource_type, name)
    }

    fn refused_topic(&self, state: &State, operation: Operation, topic: &str) -> Option<ErrorCode> {
        let is_creator =
            || operation == Operation::Create && self.may(state, operation, ResourceType::Cluster, CLUSTER_NAME);
        let is_refused = self.refused(state, operation, ResourceType::Topic, topic) && !is_creator();
        is_refused.then_some(ErrorCode::TOPIC_AUTHORIZATION_FAILED)
    }
}

#[cfg(test)]
impl Context {
    /// A heartbeat of somebody unknown, at node 1.
    pub(crate) fn for_test(client_id: Option<&'static str>, now: Instant) -> Self {
        Self {
            request: RequestId(0),
            connection: ConnectionId(0),
            node: 1,
            listener: SecurityProtocol::Plaintext,
            principal: Principal::anonymous(),
            client_id: client_id.map(Str::from_static),
            client_host: Str::from_static("/127.0.0.1"),
            key: ApiKey::Heartbeat,
            version: 0,
            correlation_id: 0,
            now,
            wall_ms: 0,
            denials: Vec::new(),
        }
    }
}

/// What a handler decided.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<R> {
    /// Answer now.
    Reply(R),
    /// Answer now, and close the connection when the answer is written.
    ReplyAndClose(R),
    /// Answer after a while.
    ReplyLate(R, Duration),
    /// Answer after a while, and close the connection when the answer is written: a login that failed.
    ReplyLateAndClose(R, Duration),
    /// Answer later. The request waits, and what is behind it on its connection waits too.
    Park(Waiting),
    /// Answer nothing, and read on: `acks=0`.
    NoReply,
    /// Close the connection, as Kafka does with what it cannot answer.
    Close,
}

impl<R> Outcome<R> {
    /// Turns the answer into another type.
    pub(crate) fn map<S>(self, into: impl FnOnce(R) -> S) -> Outcome<S> {
        match self {
            Self::Reply(response) => Outcome::Reply(into(response)),
            Self::ReplyAndClose(response) => Outcome::ReplyAndClose(into(response)),
            Self::ReplyLate(response, delay) => Outcome::ReplyLate(into(response), delay),
            Self::ReplyLateAndClose(response, delay) => Outcome::ReplyLateAndClose(into(response), delay),
            Self::Park(waiting) => Outcome::Park(waiting),
            Self::NoReply => Outcome::NoReply,
            Self::Close => Outcome::Close,
        }
    }
}
