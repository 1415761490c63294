//! What is newer wins, what was not asked about stays.

use krafka_protocol::Uuid;
use krafka_protocol::api::metadata::MetadataResponseBroker;

use super::*;

const ID: Uuid = Uuid([1; 16]);
const OTHER_ID: Uuid = Uuid([2; 16]);

fn partition(partition_index: i32, leader_id: i32, leader_epoch: i32) -> MetadataResponsePartition {
    MetadataResponsePartition { partition_index, leader_id, leader_epoch, ..MetadataResponsePartition::default() }
}

fn topic(name: &str, topic_id: Uuid, partitions: Vec<MetadataResponsePartition>) -> MetadataResponseTopic {
    MetadataResponseTopic { name: Some(Str::from(name)), topic_id, partitions, ..MetadataResponseTopic::default() }
}

fn faulty(name: &str, code: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic { error_code: code.0, ..topic(name, Uuid::ZERO, Vec::new()) }
}

/// An answer from a cluster of brokers 1 and 2.
fn answer(topics: Vec<MetadataResponseTopic>) -> MetadataResponse {
    let broker = |node_id| MetadataResponseBroker {
        node_id,
        host: Str::from("host"),
        port: 9092 + node_id,
        ..MetadataResponseBroker::default()
    };
    MetadataResponse {
        brokers: vec![broker(1), broker(2)],
        cluster_id: Some(Str::from("cluster")),
        controller_id: 1,
        topics,
        ..MetadataResponse::default()
    }
}

fn known(topics: Vec<MetadataResponseTopic>) -> Snapshot {
    let names: Vec<Str> = topics.iter().filter_map(|topic| topic.name.clone()).collect();
    merge(&Snapshot::default(), &names, &answer(topics))
}

fn leader(snapshot: &Snapshot, topic: &str, partition: i32) -> Option<(i32, i32)> {
    snapshot.leader(topic, partition).map(|(node, epoch)| (node.id, epoch))
}

#[test]
fn an_answer_tells_brokers_controller_and_leaders() {
    let snapshot = known(vec![topic("a", ID, vec![partition(1, 2, 7), partition(0, 1, 3)])]);

    assert_eq!(snapshot.nodes.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(snapshot.node(2).map(|node| node.port), Some(9094));
    assert_eq!(snapshot.controller, Some(1));
    assert_eq!([leader(&snapshot, "a", 0), leader(&snapshot, "a", 1)], [Some((1, 3)), Some((2, 7))]);
    assert_eq!(leader(&snapshot, "a", 2), None);
    assert_eq!(snapshot.topic("a").map(|topic| topic.id), Some(ID));
}

/// MD-06.
#[test]
fn topics_that_were_not_asked_about_stay() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 3)])]);

    let after = merge(&before, &[Str::from("b")], &answer(vec![topic("b", OTHER_ID, vec![partition(0, 2, 1)])]));

    assert_eq!([leader(&after, "a", 0), leader(&after, "b", 0)], [Some((1, 3)), Some((2, 1))]);
}

/// MD-10, LE-21.
#[test]
fn an_older_epoch_is_ignored() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5), partition(1, 1, 5)])]);

    let lagging = vec![topic("a", ID, vec![partition(0, 2, 4), partition(1, 2, 6)])];
    let after = merge(&before, &[], &answer(lagging));

    assert_eq!([leader(&after, "a", 0), leader(&after, "a", 1)], [Some((1, 5)), Some((2, 6))]);
}

/// MD-11.
#[test]
fn another_id_is_another_topic() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5), partition(1, 1, 5)])]);

    let after = merge(&before, &[], &answer(vec![topic("a", OTHER_ID, vec![partition(0, 2, 0)])]));

    assert_eq!([leader(&after, "a", 0), leader(&after, "a", 1)], [Some((2, 0)), None]);
    assert_eq!(after.topic("a").map(|topic| topic.id), Some(OTHER_ID));
}

/// MD-08.
#[test]
fn a_leaderless_answer_does_not_lower_the_epoch() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5)])]);

    let leaderless = merge(&before, &[], &answer(vec![topic("a", ID, vec![partition(0, -1, -1)])]));
    assert_eq!(leader(&leaderless, "a", 0), None);

    let lagging = merge(&leaderless, &[], &answer(vec![topic("a", ID, vec![partition(0, 1, 4)])]));
    assert_eq!(leader(&lagging, "a", 0), None, "epoch 4 is older than 5");

    let elected = merge(&lagging, &[], &answer(vec![topic("a", ID, vec![partition(0, 2, 6)])]));
    assert_eq!(leader(&elected, "a", 0), Some((2, 6)));
}

/// MD-17.
#[test]
fn a_leader_that_is_no_broker_is_none() {
    let snapshot = known(vec![topic("a", ID, vec![partition(0, 9, 5)])]);

    assert_eq!(leader(&snapshot, "a", 0), None);
    assert_eq!(snapshot.partition("a", 0).and_then(|partition| partition.leader), None);
}

/// MD-13.
#[test]
fn a_partition_that_an_answer_leaves_out_stays() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5), partition(1, 1, 5)])]);

    let after = merge(&before, &[], &answer(vec![topic("a", ID, vec![partition(0, 1, 5)])]));

    assert_eq!(leader(&after, "a", 1), Some((1, 5)));
}

#[test]
fn unknown_topics_leave_with_their_reason() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5)]), topic("b", OTHER_ID, vec![partition(0, 1, 5)])]);
    let asked = [Str::from("a"), Str::from("b"), Str::from("c")];

    let faults =
        vec![faulty("a", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION), faulty("b", ErrorCode::TOPIC_AUTHORIZATION_FAILED)];
    let after = merge(&before, &asked, &answer(faults));

    assert!(after.topics.is_empty());
    let reasons: Vec<_> = after.errors.iter().map(|(name, code)| (&**name, *code)).collect();
    let expected = [
        ("a", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("b", ErrorCode::TOPIC_AUTHORIZATION_FAILED),
        ("c", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn a_topic_that_comes_back_has_no_error_any_more() {
    let before = known(vec![faulty("a", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)]);

    let after = merge(&before, &[], &answer(vec![topic("a", ID, vec![partition(0, 1, 0)])]));

    assert!(after.errors.is_empty());
    assert_eq!(leader(&after, "a", 0), Some((1, 0)));
}

/// MD-07: an election in progress does not make a topic unknown.
#[test]
fn a_topic_without_leaders_for_a_moment_stays() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5)])]);

    let after = merge(&before, &[], &answer(vec![faulty("a", ErrorCode::LEADER_NOT_AVAILABLE)]));

    assert!(after.topic("a").is_some());
    assert_eq!(after.errors.get("a"), Some(&ErrorCode::LEADER_NOT_AVAILABLE));
}

/// MD-09.
#[test]
fn a_topic_without_partitions_is_not_usable() {
    let snapshot = known(vec![topic("a", ID, Vec::new())]);

    assert!(snapshot.topic("a").is_none());
    assert!(snapshot.errors["a"].is_retriable());
}

/// RB-07.
#[test]
fn another_cluster_is_not_mixed_in() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5)])]);

    let other = MetadataResponse { cluster_id: Some(Str::from("other")), ..answer(Vec::new()) };
    let after = merge(&before, &[], &other);

    assert!(after.topics.is_empty());
    assert_eq!(after.cluster_id.as_deref(), Some("other"));
}

/// MD-14: a broker that restarts does not know of a topic for a moment, and then knows what was.
#[test]
fn a_topic_that_was_missing_has_not_forgotten_its_epochs() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5)])]);
    let back = |id, epoch| {
        let unknown = faulty("a", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        let missing = merge(&before, &[Str::from("a")], &answer(vec![unknown]));
        let missing = merge(&missing, &[Str::from("a")], &answer(Vec::new()));
        assert!(missing.topic("a").is_none() && missing.errors.contains_key("a"));
        leader(&merge(&missing, &[], &answer(vec![topic("a", id, vec![partition(0, 2, epoch)])])), "a", 0)
    };

    assert_eq!(back(ID, 4), Some((1, 5)), "old news");
    assert_eq!(back(ID, 6), Some((2, 6)));
    assert_eq!(back(OTHER_ID, 0), Some((2, 0)), "another topic of the same name");
}

/// BY-12.
#[test]
fn nonsense_is_ignored() {
    let mut nonsense = answer(vec![topic(
        "a",
        ID,
        vec![partition(-1, 1, 0), partition(i32::MAX, 1, 0), partition(65_536, 1, 0), partition(0, 1, 0)],
    )]);
    nonsense.brokers[0].port = 70_000;
    nonsense.topics.push(MetadataResponseTopic { name: None, ..MetadataResponseTopic::default() });

    let snapshot = merge(&Snapshot::default(), &[Str::from("a")], &nonsense);

    assert_eq!(snapshot.nodes.keys().copied().collect::<Vec<_>>(), [2], "port 70000 is none");
    assert_eq!(snapshot.topic("a").map(|topic| topic.partitions.len()), Some(1));
    assert_eq!(snapshot.controller, None);
}

fn hint(leader: i32, leader_epoch: i32, node: Option<Node>) -> LeaderHint {
    LeaderHint { topic: Str::from("a"), topic_id: ID, partition: 0, leader, leader_epoch, node }
}

fn apply(hint: &LeaderHint) -> Option<(i32, i32)> {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5)])]);
    let mut snapshot = Arc::new(before);
    apply_hint(&mut snapshot, hint).then(|| leader(&snapshot, "a", 0))?
}

/// LE-01, LE-03, LE-04.
#[test]
fn a_hint_moves_the_leader_if_it_is_news() {
    let new_node = Node { id: 9, host: Str::from("new"), port: 9, rack: None };

    assert_eq!(apply(&hint(2, 6, None)), Some((2, 6)));
    assert_eq!(apply(&hint(9, 6, Some(new_node))), Some((9, 6)));
    assert_eq!(apply(&hint(2, 5, None)), None, "the present epoch");
    assert_eq!(apply(&hint(2, 4, None)), None, "an older epoch");
    assert_eq!(apply(&hint(9, 6, None)), None, "nobody knows where broker 9 is");
    assert_eq!(apply(&LeaderHint { partition: 7, ..hint(2, 6, None) }), None);
    assert_eq!(apply(&LeaderHint { topic: Str::from("b"), ..hint(2, 6, None) }), None);
}

/// MD-11: a late answer about a topic that is gone says nothing of the one that has its name now.
#[test]
fn a_hint_about_another_topic_of_the_same_name_is_ignored() {
    assert_eq!(apply(&LeaderHint { topic_id: OTHER_ID, ..hint(2, 60, None) }), None);
    assert_eq!(apply(&LeaderHint { topic_id: Uuid::ZERO, ..hint(2, 60, None) }), Some((2, 60)), "by name");
}

/// CB-22: a leader that is at another address than before.
#[test]
fn a_hint_tells_where_its_leader_is_now() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5)])]);
    let moved = Node { id: 2, host: Str::from("elsewhere"), port: 1, rack: None };

    let mut snapshot = Arc::new(before);
    assert!(apply_hint(&mut snapshot, &hint(2, 6, Some(moved.clone()))), "it is news");

    assert_eq!(snapshot.node(2).map(|node| &**node), Some(&moved));
}

/// Leaders that never were would fill the memory: metadata tell of those that are.
#[test]
fn hints_add_few_nodes_until_metadata_come() {
    let stranger = |id| Node { id, host: Str::from("new"), port: 9, rack: None };
    let mut snapshot = Arc::new(known(vec![topic("a", ID, vec![partition(0, 1, 5)])]));

    for number in 0..1_000 {
        apply_hint(&mut snapshot, &hint(100 + number, 6 + number, Some(stranger(100 + number))));
    }
    assert_eq!(snapshot.nodes.len(), 2 + MAX_HINTED);
    assert!(apply_hint(&mut snapshot, &hint(2, 2_000, None)), "a leader that is known is followed");

    let mut snapshot = Arc::new(merge(&snapshot, &[], &answer(vec![])));
    assert_eq!(snapshot.nodes.len(), 2);
    assert!(apply_hint(&mut snapshot, &hint(9, 3_000, Some(stranger(9)))), "and others again, since metadata came");
}

/// A broker that names others in each answer would fill the memory.
#[test]
fn topics_that_nobody_asked_about_are_not_taken_up() {
    let before = known(vec![topic("a", ID, vec![partition(0, 1, 5)])]);
    let asked = topic("b", OTHER_ID, vec![partition(0, 1, 5)]);
    let others = [topic("c", OTHER_ID, vec![partition(0, 1, 5)]), faulty("d", ErrorCode::TOPIC_AUTHORIZATION_FAILED)];
    let known_too = topic("a", ID, vec![partition(0, 2, 6)]);

    let answer = answer([asked, known_too].into_iter().chain(others).collect());
    let after = merge(&before, &[Str::from("b")], &answer);

    assert_eq!(after.topics.keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(leader(&after, "a", 0), Some((2, 6)), "news are news");
    assert!(after.errors.is_empty(), "{:?}", after.errors);
}
