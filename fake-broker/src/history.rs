//! Every request and its answer, as they happened.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, Str};

use crate::context::{ConnectionId, Context, RequestId};

/// A request that a node received, and its answer.
#[derive(Clone, Debug)]
pub struct Event {
    /// When the node began to work on it.
    pub at: Instant,
    /// Which request it is.
    pub id: RequestId,
    /// The node that was asked.
    pub node: i32,
    /// The connection it came on.
    pub connection: ConnectionId,
    /// What the client calls itself.
    pub client_id: Option<Str>,
    /// The API.
    pub key: ApiKey,
    /// The version of request and response.
    pub version: i16,
    /// The number that the response repeats.
    pub correlation_id: i32,
    /// The request.
    pub request: Arc<AnyRequest>,
    /// When the answer was written.
    pub answered_at: Option<Instant>,
    /// The answer as it was written; none yet, or never.
    pub response: Option<Arc<AnyResponse>>,
}

/// The newest events of a cluster.
#[derive(Clone, Debug, Default)]
pub struct History {
    events: VecDeque<Event>,
}

impl History {
    /// Notes that a node begins to work on a request.
    pub(crate) fn asked(&mut self, cx: &Context, request: &Arc<AnyRequest>) {
        self.events.push_back(Event {
            at: cx.now,
            id: cx.request,
            node: cx.node,
            connection: cx.connection,
            client_id: cx.client_id.clone(),
            key: cx.key,
            version: cx.version,
            correlation_id: cx.correlation_id,
            request: request.clone(),
            answered_at: None,
            response: None,
        });
    }

    /// Notes the answer to a request, when it is handed to the writer.
    pub(crate) fn answered(&mut self, request: RequestId, now: Instant, response: Arc<AnyResponse>) {
        // Ids rise with time, so that the events are sorted by them.
        let index = self.events.partition_point(|event| event.id < request);
        if let Some(event) = self.events.get_mut(index).filter(|event| event.id == request) {
            event.answered_at = Some(now);
            event.response = Some(response);
        }
    }
}
