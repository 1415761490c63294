//! Every request and its answer, as they happened, in a ring that forgets the oldest.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, Message, Request, Str};

use crate::context::{ConnectionId, Context, RequestId};

/// How many events are kept.
const MAX_EVENTS: usize = 20_000;
/// How many bytes of records and metrics the events that are kept may hold on to.
const MAX_BYTES: usize = 64 * 1024 * 1024;

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

/// The newest events of a cluster, in the order in which the nodes began to work on them.
///
/// It keeps the last 20,000, and fewer if their records and metrics are more than 64 MiB; [`dropped`](Self::dropped)
/// says how many it has forgotten.
#[derive(Clone, Debug, Default)]
pub struct History {
    events: VecDeque<Event>,
    bytes: usize,
    dropped: u64,
}

impl Event {
    /// Returns the request, if it is of that type.
    pub fn request<R: Request + 'static>(&self) -> Option<&R> {
        self.request.downcast_ref()
    }

    /// Returns the answer, if there is one and it is of that type.
    pub fn response<M: Message + 'static>(&self) -> Option<&M> {
        self.response.as_ref()?.downcast_ref()
    }
}

impl History {
    /// Iterates the events, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Event> + ExactSizeIterator {
        self.events.iter()
    }

    /// Iterates the requests of one type, the oldest first.
    pub fn requests<R: Request + 'static>(&self) -> impl DoubleEndedIterator<Item = &R> {
        self.events.iter().filter_map(Event::request)
    }

    /// Iterates the events of one API, the oldest first.
    pub fn of(&self, key: ApiKey) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter().filter(move |event| event.key == key)
    }

    /// Iterates the requests of clients that call themselves so, the oldest first.
    ///
    /// **Unstable:** may change in any release.
    pub fn by(&self, client_id: &str) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter().filter(move |event| event.client_id.as_deref() == Some(client_id))
    }

    /// Iterates the requests on one connection, the oldest first.
    ///
    /// **Unstable:** may change in any release.
    pub fn on_connection(&self, connection: ConnectionId) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter().filter(move |event| event.connection == connection)
    }

    /// Iterates the events since a moment, the oldest first.
    pub fn since(&self, moment: Instant) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter().filter(move |event| event.at >= moment)
    }

    /// Returns how many requests of an API there are.
    pub fn count(&self, key: ApiKey) -> usize {
        self.of(key).count()
    }

    /// Returns how many requests of an API went to a node.
    pub fn count_on(&self, node: i32, key: ApiKey) -> usize {
        self.of(key).filter(|event| event.node == node).count()
    }

    /// Returns how many events there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Says whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns how many of the oldest events were forgotten.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Notes that a node begins to work on a request.
    pub(crate) fn asked(&mut self, cx: &Context, request: &Arc<AnyRequest>) {
        self.bytes += records_in_request(request);
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
        self.forget_the_oldest();
    }

    /// Notes the answer to a request, when it is handed to the writer.
    pub(crate) fn answered(&mut self, request: RequestId, now: Instant, response: Arc<AnyResponse>) {
        // Ids rise with time, so that the events are sorted by them.
        let index = self.events.partition_point(|event| event.id < request);
        if let Some(event) = self.events.get_mut(index).filter(|event| event.id == request) {
            self.bytes += records_in_response(&response);
            event.answered_at = Some(now);
            event.response = Some(response);
        }
        self.forget_the_oldest();
    }

    fn forget_the_oldest(&mut self) {
        while self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES {
            let Some(event) = self.events.pop_front() else { return };
            let answered = event.response.as_deref().map_or(0, records_in_response);
            self.bytes -= records_in_request(&event.request) + answered;
            self.dropped += 1;
        }
    }
}

/// The bytes of records or metrics that a request holds on to; all else is small.
fn records_in_request(request: &AnyRequest) -> usize {
    let produce = match request {
        AnyRequest::Produce(produce) => produce,
        AnyRequest::PushTelemetry(push) => return push.metrics.len(),
        _ => return 0,
    };
    let partitions = produce.topic_data.iter().flat_map(|topic| &topic.partition_data);
    partitions.filter_map(|partition| partition.records.as_ref()).map(|records| records.len()).sum()
}

/// The bytes of records that an answer holds on to. They are the log's own, but a log may be deleted.
fn records_in_response(response: &AnyResponse) -> usize {
    let AnyResponse::Fetch(fetch) = response else { return 0 };
    let partitions = fetch.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.filter_map(|partition| partition.records.as_ref()).map(|records| records.len()).sum()
}

#[cfg(test)]
mod tests {
    use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
    use krafka_protocol::{Bytes, HeartbeatRequest, HeartbeatResponse, PushTelemetryRequest};

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
    fn some_time() -> Instant {
        Instant::now()
    }

    fn note(history: &mut History, id: u64, request: AnyRequest) {
        let cx = Context {
            request: RequestId(id),
            connection: ConnectionId(1),
            listener: crate::SecurityProtocol::Plaintext,
            principal: crate::security::principal::Principal::anonymous(),
            node: 1,
            client_id: None,
            client_host: Str::default(),
            key: request.key(),
            version: 9,
            correlation_id: 0,
            now: some_time(),
            wall_ms: 0,
            denials: Vec::new(),
        };
        history.asked(&cx, &Arc::new(request));
    }

    fn produce(bytes: usize) -> AnyRequest {
        let partition_data =
            vec![PartitionProduceData { records: Some(Bytes::from(vec![0; bytes])), ..Default::default() }];
        let topic_data = vec![TopicProduceData { partition_data, ..Default::default() }];
        ProduceRequest { topic_data, ..ProduceRequest::default() }.into()
    }

    #[test]
    fn events_are_found_by_type_and_keep_their_answers() {
        let mut history = History::default();
        note(&mut history, 1, HeartbeatRequest::default().into());
        note(&mut history, 2, produce(10));

        history.answered(RequestId(1), some_time(), Arc::new(HeartbeatResponse::default().into()));

        assert_eq!(
            (history.len(), history.count(ApiKey::Heartbeat), history.count_on(2, ApiKey::Heartbeat)),
            (2, 1, 0)
        );
        assert_eq!(history.requests::<ProduceRequest>().count(), 1);
        let answered = |event: &Event| event.response::<HeartbeatResponse>().is_some();
        assert_eq!(history.iter().map(answered).collect::<Vec<_>>(), [true, false]);
    }

    /// Up to 1 MiB each, and there may be many.
    #[test]
    fn metrics_count_as_records_do() {
        let mut history = History::default();
        let metrics = Bytes::from(vec![0; MAX_BYTES / 2]);
        for id in 1..=3 {
            let metrics = metrics.clone();
            note(&mut history, id, PushTelemetryRequest { metrics, ..PushTelemetryRequest::default() }.into());
        }
        assert_eq!((history.len(), history.dropped()), (2, 1));
    }

    #[test]
    fn oldest_events_are_forgotten_by_number_and_by_size() {
        let mut history = History::default();
        for id in 0..=MAX_EVENTS as u64 {
            note(&mut history, id, HeartbeatRequest::default().into());
        }
        assert_eq!((history.len(), history.dropped()), (MAX_EVENTS, 1));

        note(&mut history, 1_000_000, produce(MAX_BYTES));
        assert_eq!(history.len(), MAX_EVENTS);
        note(&mut history, 1_000_001, produce(1));
        assert_eq!((history.len(), history.bytes), (1, 1), "all before the large one went with it");
    }
}
