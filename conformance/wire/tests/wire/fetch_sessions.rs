//! Fetch sessions on the wire (KIP-227).

use krafka_protocol::Uuid;
use krafka_protocol::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use krafka_protocol::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic};

use crate::records::{base_offsets, batch, error, fetch_request, produce_request, written};
use crate::target::{Target, Topic, Wire, run};

const VERSION: i16 = 13;

/// A consumer of two partitions, and the session that it has.
struct Consumer {
    wire: Wire,
    topic: Topic,
    session: i32,
    epoch: i32,
}

impl Consumer {
    /// A topic with one record in partition 0, and a session that was told so.
    async fn new(target: &Target) -> (Self, FetchResponse) {
        let topic = target.topic(2).await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch(&["a"])).await;
        let mut consumer = Self { wire, topic, session: 0, epoch: 0 };
        let asked = vec![ask(0, 0), ask(1, 0)];
        let answer = consumer.fetch(asked).await;
        consumer.session = answer.session_id;
        consumer.epoch = 1;
        (consumer, answer)
    }

    async fn fetch(&mut self, partitions: Vec<FetchPartition>) -> FetchResponse {
        let request = self.request(partitions);
        self.wire.call(request, VERSION).await
    }

    /// The same, one epoch on.
    async fn next(&mut self, partitions: Vec<FetchPartition>) -> FetchResponse {
        let answer = self.fetch(partitions).await;
        self.epoch += 1;
        answer
    }

    fn request(&self, partitions: Vec<FetchPartition>) -> FetchRequest {
        let topic = FetchTopic { topic: self.topic.name.clone(), topic_id: self.topic.id, partitions };
        let topics = if topic.partitions.is_empty() { vec![] } else { vec![topic] };
        let (session_id, session_epoch) = (self.session, self.epoch);
        FetchRequest { session_id, session_epoch, topics, ..fetch_request(&self.topic, 0) }
    }
}

fn ask(partition: i32, fetch_offset: i64) -> FetchPartition {
    FetchPartition { partition, fetch_offset, partition_max_bytes: 1 << 20, ..FetchPartition::default() }
}

/// The partitions that an answer names.
fn named(answer: &FetchResponse) -> Vec<i32> {
    answer.responses.iter().flat_map(|topic| topic.partitions.iter().map(|p| p.partition_index)).collect()
}

#[test]
fn first_answer_opens_a_session_and_has_everything() {
    run(async |target| {
        let (_, answer) = Consumer::new(&target).await;

        assert_eq!(error(answer.error_code), "NONE");
        assert!(answer.session_id > 0);
        assert_eq!(named(&answer), [0, 1]);
    });
}

/// FI-02d.
#[test]
fn later_answers_have_only_what_is_new() {
    run(async |target| {
        let (mut consumer, answer) = Consumer::new(&target).await;

        let quiet = consumer.next(vec![ask(0, 1)]).await;
        assert_eq!((quiet.session_id, named(&quiet)), (answer.session_id, vec![]));
        let topic = Topic { name: consumer.topic.name.clone(), id: consumer.topic.id };
        written(&mut consumer.wire, &topic, batch(&["b"])).await;
        let news = consumer.next(vec![]).await;
        assert_eq!(named(&news), [0], "the position is remembered");
        let unchanged = consumer.next(vec![]).await;
        assert_eq!(named(&unchanged), [0], "records come until the position moves");
    });
}

/// Where there is room for one of them only, partitions take turns: who had records goes to the end.
#[test]
fn partitions_of_a_session_take_turns() {
    run(async |target| {
        let topic = target.topic(3).await;
        let mut wire = target.connect().await;
        for partition in [0, 1, 2] {
            let mut request = produce_request(&topic, -1, Some(batch(&["a"])));
            request.topic_data[0].partition_data[0].index = partition;
            wire.call(request, 9).await;
        }
        let mut consumer = Consumer { wire, topic, session: 0, epoch: 0 };
        let mut turns = Vec::new();
        for _ in 0..6 {
            let asked = if consumer.epoch == 0 { vec![ask(0, 0), ask(1, 0), ask(2, 0)] } else { vec![] };
            // The first batch comes whatever its size, and nothing else.
            let request = FetchRequest { max_bytes: 1, ..consumer.request(asked) };
            let answer = consumer.wire.call(request, VERSION).await;
            (consumer.session, consumer.epoch) = (answer.session_id, consumer.epoch + 1);
            let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
            let full = partitions.filter(|partition| !base_offsets(partition).is_empty());
            turns.push(full.map(|partition| partition.partition_index).collect::<Vec<_>>());
        }

        // The opening is in the order of the request, and moves nobody.
        assert_eq!(turns, [[0], [0], [1], [2], [0], [1]]);
    });
}

#[test]
fn forgotten_partitions_are_answered_no_more() {
    run(async |target| {
        let (mut consumer, _) = Consumer::new(&target).await;
        let forgotten =
            ForgottenTopic { topic: consumer.topic.name.clone(), topic_id: consumer.topic.id, partitions: vec![0] };
        let request = FetchRequest { forgotten_topics_data: vec![forgotten], ..consumer.request(vec![]) };
        let answer = consumer.wire.call(request, VERSION).await;

        assert_eq!((error(answer.error_code), named(&answer)), ("NONE", vec![]));
    });
}

/// A session ends when nothing is left in it. What the request that ends it names is answered all the same.
#[test]
fn request_that_adds_and_forgets_the_last_partition_is_answered_without_a_session() {
    run(async |target| {
        let (mut consumer, _) = Consumer::new(&target).await;
        let forgotten =
            ForgottenTopic { topic: consumer.topic.name.clone(), topic_id: consumer.topic.id, partitions: vec![0, 1] };
        let asked = consumer.request(vec![ask(0, 0)]);

        let answer =
            consumer.wire.call(FetchRequest { forgotten_topics_data: vec![forgotten], ..asked }, VERSION).await;

        assert_eq!((answer.session_id, named(&answer)), (0, vec![0]));
        assert!(answer.responses[0].partitions[0].records.as_ref().is_some_and(|records| !records.is_empty()));
        consumer.epoch += 1;
        assert_eq!(error(consumer.fetch(vec![]).await.error_code), "FETCH_SESSION_ID_NOT_FOUND");
    });
}

/// Of a topic that is gone, the session misses by its name what it knew, and by its id what is new: in one place.
#[test]
fn topic_that_is_gone_is_told_in_one_place() {
    run(async |target| {
        let topic = target.topic(2).await;
        let mut consumer = Consumer { wire: target.connect().await, topic, session: 0, epoch: 0 };
        consumer.session = consumer.next(vec![ask(0, 0)]).await.session_id;
        let gone = DeleteTopicState { name: Some(consumer.topic.name.clone()), topic_id: Uuid::ZERO };
        let delete = DeleteTopicsRequest { topics: vec![gone], timeout_ms: 10_000, ..Default::default() };
        assert_eq!(error(target.connect().await.call(delete, 6).await.responses[0].error_code), "NONE");
        while until_error(&mut consumer).await != "UNKNOWN_TOPIC_OR_PARTITION" {}

        let answer = consumer.next(vec![ask(1, 0)]).await;

        assert_eq!(answer.responses.len(), 1);
        let mut told: Vec<_> =
            answer.responses[0].partitions.iter().map(|p| (p.partition_index, error(p.error_code))).collect();
        told.sort_unstable();
        assert_eq!(told, [(0, "UNKNOWN_TOPIC_OR_PARTITION"), (1, "UNKNOWN_TOPIC_ID")]);
    });
}

#[test]
fn errors_are_told_each_time_and_so_is_their_end() {
    run(async |target| {
        let (mut consumer, _) = Consumer::new(&target).await;

        for _ in 0..2 {
            let answer = consumer.next(vec![ask(1, 99)]).await;
            assert!(named(&answer).contains(&1));
        }
        let healed = consumer.next(vec![ask(0, 1), ask(1, 0)]).await;
        assert_eq!(named(&healed), [1], "though there is nothing but the end of the error");
    });
}

/// FI-02d.
#[test]
fn wrong_epochs_and_unknown_sessions_are_errors_of_the_whole() {
    run(async |target| {
        let (mut consumer, _) = Consumer::new(&target).await;
        consumer.epoch = 5;
        let wrong = consumer.fetch(vec![]).await;
        consumer.session ^= 1;
        let unknown = consumer.fetch(vec![]).await;

        assert_eq!(
            (error(wrong.error_code), wrong.session_id, named(&wrong)),
            ("INVALID_FETCH_SESSION_EPOCH", 0, vec![])
        );
        assert_eq!(error(unknown.error_code), "FETCH_SESSION_ID_NOT_FOUND");
    });
}

#[test]
fn names_and_ids_do_not_mix_in_a_session() {
    run(async |target| {
        let (mut consumer, _) = Consumer::new(&target).await;
        let request = consumer.request(vec![]);

        assert_eq!(error(consumer.wire.call(request, 12).await.error_code), "FETCH_SESSION_TOPIC_ID_ERROR");
    });
}

#[test]
fn final_epoch_closes_the_session() {
    run(async |target| {
        let (mut consumer, _) = Consumer::new(&target).await;
        consumer.epoch = -1;
        let last = consumer.fetch(vec![ask(0, 0)]).await;
        consumer.epoch = 1;
        let after = consumer.fetch(vec![]).await;

        assert_eq!((error(last.error_code), last.session_id, named(&last)), ("NONE", 0, vec![0]));
        assert_eq!(error(after.error_code), "FETCH_SESSION_ID_NOT_FOUND");
    });
}

#[test]
fn waiting_session_is_answered_empty_when_its_time_is_up() {
    run(async |target| {
        let (mut consumer, _) = Consumer::new(&target).await;
        consumer.next(vec![ask(0, 1)]).await;
        let request = FetchRequest { max_wait_ms: 400, ..consumer.request(vec![]) };
        consumer.wire.send(request, VERSION).await;
        assert!(consumer.wire.is_quiet().await);

        let answer = consumer.wire.receive::<FetchRequest>(VERSION).await;
        assert_eq!((error(answer.error_code), named(&answer)), ("NONE", vec![]));
    });
}

/// A topic that is deleted, and another that gets its name.
#[test]
fn topic_that_goes_is_told_to_its_session_and_its_successor_is_not_it() {
    run(async |target| {
        let (mut consumer, _) = Consumer::new(&target).await;
        let name = consumer.topic.name.clone();
        let gone = DeleteTopicState { name: Some(name.clone()), topic_id: Uuid::ZERO };
        let delete = DeleteTopicsRequest { topics: vec![gone], timeout_ms: 10_000, ..Default::default() };
        assert_eq!(error(consumer.wire.call(delete, 6).await.responses[0].error_code), "NONE");
        // A node among several gives the replica up before it forgets the topic.
        while until_error(&mut consumer).await != "UNKNOWN_TOPIC_OR_PARTITION" {}

        let topic = CreatableTopic { name, num_partitions: 2, replication_factor: -1, ..CreatableTopic::default() };
        let create = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..CreateTopicsRequest::default() };
        assert_eq!(error(consumer.wire.call(create, 7).await.topics[0].error_code), "NONE");
        while until_error(&mut consumer).await != "INCONSISTENT_TOPIC_ID" {}
    });
}

/// Asks until a partition fails, and says how.
async fn until_error(consumer: &mut Consumer) -> &'static str {
    loop {
        let answer = consumer.next(vec![]).await;
        let mut codes = answer.responses.iter().flat_map(|topic| topic.partitions.iter().map(|p| p.error_code));
        if let Some(code) = codes.find(|code| *code != 0) {
            return error(code);
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
