//! Fetching by script: who is asked when, and what answers are made into.

use std::time::Duration;

use krafka_protocol::api::fetch::{FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint};
use krafka_protocol::records::{ControlRecord, assign_offsets};
use krafka_protocol::script::Script;

use super::*;
use crate::cluster::{Node, PartitionView, TopicView};

mod moves;
mod racks;

const MS: Duration = Duration::from_millis(1);
const ROOM: usize = 1 << 20;

fn fetcher(_: Instant) -> Fetcher {
    let config = FetchConfig {
        max_wait: MS * 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
        partition_max_bytes: 1 << 10,
        rack: Str::from("here"),
        lease: MS * 300_000,
        backoff: Backoff::new(MS * 100, MS * 1_000),
    };
    Fetcher::new(config, cluster(&[1, 2, 3]), Rng::new(1))
}

/// These nodes, with replicas of partitions 0 to 9 on each.
fn cluster(nodes: &[i32]) -> Arc<Snapshot> {
    let node = |id| Arc::new(Node { id, host: Str::from("h"), port: 9, rack: None });
    let partition = PartitionView { replicas: nodes.iter().copied().collect(), ..PartitionView::leaderless() };
    let partitions = vec![partition; 10];
    let topic = TopicView { name: Str::from("t"), id: Uuid([7; 16]), is_internal: false, partitions };
    Arc::new(Snapshot {
        nodes: nodes.iter().map(|&id| (id, node(id))).collect(),
        topics: BTreeMap::from([(Str::from("t"), Arc::new(topic))]),
        ..Snapshot::default()
    })
}

fn want(partition: i32) -> Want {
    Want {
        claim: Claim { slot: partition as usize, generation: 1 },
        topic: Str::from("t"),
        topic_id: Uuid([7; 16]),
        partition,
        leader: 1,
        leader_epoch: 3,
        position: Position::new(10, 3),
    }
}

fn wanted(lists: &[(i32, &[i32])]) -> Input {
    let nodes = lists.iter().map(|(node, partitions)| {
        let partitions = partitions.iter().map(|&partition| Want { leader: *node, ..want(partition) }).collect();
        (*node, NodeWants { partitions, held_back: false })
    });
    Input::Wanted { nodes: nodes.collect(), room: ROOM }
}

fn data(partition: i32, code: ErrorCode) -> PartitionData {
    PartitionData { partition_index: partition, error_code: code.0, high_watermark: 99, ..PartitionData::default() }
}

fn answer(node: i32, partitions: Vec<PartitionData>) -> Input {
    let topic = FetchableTopicResponse { topic_id: Uuid([7; 16]), partitions, ..FetchableTopicResponse::default() };
    let response = FetchResponse { session_id: 5, responses: vec![topic], ..FetchResponse::default() };
    Input::Answered { node, answer: Ok(response), max_wait: MS * 500 }
}

fn refusal(node: i32, code: ErrorCode) -> Input {
    Input::Answered {
        node,
        answer: Ok(FetchResponse { error_code: code.0, ..FetchResponse::default() }),
        max_wait: MS * 500,
    }
}

/// What it does, each action in a word; a fetch with the partitions that its request names.
fn words(script: &mut Script<Fetcher>) -> Vec<String> {
    let word = |action| match action {
        Action::Fetch { node, request, .. } => {
            let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
            let partitions: Vec<_> = partitions.map(|partition| partition.partition).collect();
            format!("fetch {node} {partitions:?} epoch {}", request.session_epoch)
        }
        Action::EndSession { node, .. } => format!("end {node}"),
        Action::Buffer(fetched) => format!("buffer {}", fetched.claim.slot),
        Action::Diverged { end_offset, .. } => format!("diverged {end_offset}"),
        Action::OutOfRange { claim, offset } => format!("out of range {} {offset}", claim.slot),
        Action::Prefer { claim, preferred } => format!("prefer {} for {}", preferred.node(), claim.slot),
        Action::AskLeader { claim } => format!("ask the leader of {}", claim.slot),
        Action::Refresh { .. } => "refresh".to_owned(),
        Action::Hint(hint) => format!("hint {} {}", hint.leader_id, hint.leader_epoch),
        Action::Report(_) => "report".to_owned(),
    };
    script.actions().into_iter().map(word).collect()
}

#[test]
fn each_broker_has_one_fetch_in_flight() {
    Script::run(fetcher, |script| {
        script.input(wanted(&[(1, &[0, 1]), (2, &[2])])).input(wanted(&[(1, &[0, 1]), (2, &[2])]));
        assert_eq!(words(script), ["fetch 1 [0, 1] epoch 0", "fetch 2 [2] epoch 0"]);

        script.input(answer(2, vec![data(2, ErrorCode::NONE)])).input(wanted(&[(1, &[0, 1]), (2, &[2])]));

        assert_eq!(words(script), ["buffer 2", "fetch 2 [] epoch 1"], "node 1 holds up nobody");
    });
}

/// Without the first, a leader cannot tell that we are behind; without the second, it cannot tell that its log has
/// another past than what we read (KIP-320, KIP-595).
#[test]
fn a_fetch_names_the_leaders_epoch_and_that_of_the_last_record() {
    Script::run(fetcher, |script| {
        let want = Want { leader_epoch: 5, position: Position::new(10, 3), ..want(0) };
        let nodes = BTreeMap::from([(1, NodeWants { partitions: vec![want], held_back: false })]);

        script.input(Input::Wanted { nodes, room: ROOM });

        let [Action::Fetch { request, .. }] = &script.actions()[..] else { panic!("one fetch") };
        let partition = &request.topics[0].partitions[0];
        let named = (partition.current_leader_epoch, partition.fetch_offset, partition.last_fetched_epoch);
        assert_eq!(named, (5, 10, 3));
    });
}

#[test]
fn a_full_buffer_stops_fetching() {
    Script::run(fetcher, |script| {
        let nodes = BTreeMap::from([(1, NodeWants { partitions: vec![want(0)], held_back: false })]);

        script.input(Input::Wanted { nodes, room: 0 }).after(MS * 10_000);

        assert_eq!(words(script), [""; 0]);
    });
}

#[test]
fn room_is_shared_by_the_fetches_in_flight() {
    Script::run(fetcher, |script| {
        let Input::Wanted { nodes, .. } = wanted(&[(1, &[0]), (2, &[1]), (3, &[2])]) else { unreachable!() };

        script.input(Input::Wanted { nodes, room: 2_048 });

        assert_eq!(words(script), ["fetch 1 [0] epoch 0", "fetch 2 [1] epoch 0"]);
    });
}

#[test]
fn a_broker_may_not_hold_back_its_answer_long_while_a_buffer_is_full() {
    Script::run(fetcher, |script| {
        let nodes = BTreeMap::from([(1, NodeWants { partitions: vec![want(0)], held_back: true })]);

        script.input(Input::Wanted { nodes, room: ROOM });

        let actions = script.actions();
        let [Action::Fetch { request, .. }] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!(request.max_wait_ms, 20);
    });
}

/// The pause of the only fetch that it sends.
fn pause_of_the_next(script: &mut Script<Fetcher>, partitions: &[i32]) -> u128 {
    script.input(wanted(&[(1, partitions)]));
    let fetches = script.actions().into_iter().filter_map(|action| match action {
        Action::Fetch { pause, .. } => Some(pause.as_millis()),
        _ => None,
    });
    let pauses: Vec<_> = fetches.collect();
    let [pause] = pauses[..] else { panic!("one fetch, not {pauses:?}") };
    pause
}

/// CB-20: who hears of nothing new may leave the connection to others, for no longer than a broker would have held back
/// its answer.
#[test]
fn the_more_answers_bring_nothing_the_longer_the_connection_may_be_left_to_others() {
    Script::run(fetcher, |script| {
        let mut pauses = vec![pause_of_the_next(script, &[0])];
        for _ in 0..7 {
            script.after(MS * 500).input(answer(1, vec![]));
            pauses.push(pause_of_the_next(script, &[0]));
        }
        assert_eq!(pauses, [0, 31, 62, 125, 250, 500, 500, 500]);

        script.after(MS * 500).input(answer(1, vec![]));
        assert_eq!(pause_of_the_next(script, &[0, 1]), 0, "it asks for something new");
        script.after(MS * 500).input(answer(1, vec![]));
        assert_eq!(pause_of_the_next(script, &[0, 1]), 31);
        let records = PartitionData { records: Some(Bytes::from_static(&[0; 80])), ..data(0, ErrorCode::NONE) };
        script.input(answer(1, vec![records]));
        assert_eq!(pause_of_the_next(script, &[0, 1]), 0, "there are records");
    });
}

/// A user's long wait is for brokers, which answer as soon as there is something. A pause does not.
#[test]
fn a_pause_is_bounded_and_is_no_longer_than_the_brokers_wait() {
    let ms = Duration::from_millis;
    assert_eq!(pause(9, ms(30_000)), MAX_PAUSE);
    assert_eq!(pause(9, IMPATIENT_WAIT), IMPATIENT_WAIT);
    assert_eq!(pause(9, Duration::ZERO), Duration::ZERO);
}

#[test]
fn a_lost_answer_backs_the_broker_off_and_asks_in_full() {
    Script::run(fetcher, |script| {
        script.input(wanted(&[(1, &[0])])).input(answer(1, vec![])).input(wanted(&[(1, &[0])]));
        script.actions();

        let error = KrafkaError::timeout("no answer");
        script
            .input(Input::Answered { node: 1, answer: Err(error), max_wait: MS * 500 })
            .input(wanted(&[(1, &[0])]))
            .after(MS * 70);
        assert_eq!(words(script), ["refresh"]);
        script.after(MS * 60);

        assert_eq!(words(script), ["fetch 1 [0] epoch 0"]);
    });
}

/// CB-20: that says nothing of the broker, and metadata would only want one more connection.
#[test]
fn a_broker_that_there_was_no_connection_to_is_asked_again_later() {
    Script::run(fetcher, |script| {
        script.input(wanted(&[(1, &[0])])).input(answer(1, vec![])).input(wanted(&[(1, &[0])]));
        script.actions();

        let error = crate::network::no_room("opening a connection", "all 1 are in use".to_owned());
        let unsent = Input::Answered { node: 1, answer: Err(error), max_wait: MS * 500 };
        script.input(unsent).input(wanted(&[(1, &[0])]));
        assert_eq!(words(script), [""; 0]);
        script.after(MS * 130);

        assert_eq!(words(script), ["fetch 1 [0] epoch 0"], "the broker has not heard of what changed");
    });
}

#[test]
fn session_errors_cost_a_round_trip_the_first_time_only() {
    for code in [ErrorCode::FETCH_SESSION_ID_NOT_FOUND, ErrorCode::INVALID_FETCH_SESSION_EPOCH] {
        Script::run(fetcher, |script| {
            script.input(wanted(&[(1, &[0])])).input(answer(1, vec![])).input(wanted(&[(1, &[0])]));
            script.actions();

            script.input(refusal(1, code)).input(wanted(&[(1, &[0])]));
            assert_eq!(words(script), ["fetch 1 [0] epoch 0"], "{code}");
            script.input(refusal(1, code)).input(wanted(&[(1, &[0])]));
            assert_eq!(words(script), [""; 0], "{code}");
            script.after(MS * 300);

            assert_eq!(words(script), ["fetch 1 [0] epoch 0"], "{code}");
        });
    }
}

#[test]
fn other_top_level_errors_back_off_and_those_that_stay_are_told() {
    let table = [
        (ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR, vec!["refresh"]),
        (ErrorCode::UNKNOWN_TOPIC_ID, vec!["refresh"]),
        (ErrorCode::KAFKA_STORAGE_ERROR, vec!["refresh"]),
        (ErrorCode::UNKNOWN_SERVER_ERROR, vec!["refresh", "report"]),
        (ErrorCode::CLUSTER_AUTHORIZATION_FAILED, vec!["refresh", "report"]),
    ];
    for (code, expected) in table {
        Script::run(fetcher, |script| {
            script.input(wanted(&[(1, &[0])]));
            script.actions();

            script.input(refusal(1, code)).input(wanted(&[(1, &[0])]));

            assert_eq!(words(script), expected, "{code}");
        });
    }
}

#[test]
fn a_failed_partition_waits_and_its_neighbours_do_not() {
    Script::run(fetcher, |script| {
        script.input(wanted(&[(1, &[0, 1])]));
        script.actions();

        let failed = data(0, ErrorCode::NOT_LEADER_OR_FOLLOWER);
        script.input(answer(1, vec![failed])).input(wanted(&[(1, &[0, 1])]));
        assert_eq!(words(script), ["refresh", "fetch 1 [] epoch 1"]);
        script.input(answer(1, vec![])).input(wanted(&[(1, &[0, 1])])).after(MS * 130);
        script.input(answer(1, vec![])).input(wanted(&[(1, &[0, 1])]));

        assert_eq!(words(script), ["fetch 1 [] epoch 2", "fetch 1 [0] epoch 3"]);
    });
}

#[test]
fn a_failed_partition_is_fetched_at_once_from_another_leader() {
    Script::run(fetcher, |script| {
        script.input(wanted(&[(1, &[0])]));
        script.actions();

        script.input(answer(1, vec![data(0, ErrorCode::NOT_LEADER_OR_FOLLOWER)])).input(wanted(&[(2, &[0])]));

        assert_eq!(words(script), ["refresh", "fetch 2 [0] epoch 0"]);
    });
}

/// A slot's next tenant is another partition, or one of another topic under the same name.
#[test]
fn who_failed_is_the_partition_and_not_its_slot() {
    let tenant = Claim { slot: 0, generation: 2 };
    let others = [
        (Want { claim: tenant, ..want(7) }, vec!["fetch 1 [7] epoch 1"]),
        (Want { claim: tenant, topic_id: Uuid([8; 16]), ..want(0) }, vec!["fetch 1 [0] epoch 1"]),
        (Want { claim: Claim { slot: 5, generation: 2 }, ..want(0) }, vec![]),
    ];
    for (other, expected) in others {
        Script::run(fetcher, |script| {
            script.input(wanted(&[(1, &[0])]));
            script.actions();
            script.input(answer(1, vec![data(0, ErrorCode::NOT_LEADER_OR_FOLLOWER)]));
            assert_eq!(words(script), ["refresh"]);

            let nodes = BTreeMap::from([(1, NodeWants { partitions: vec![other.clone()], held_back: false })]);
            script.input(Input::Wanted { nodes, room: ROOM });

            assert_eq!(words(script), expected, "{other:?}");
        });
    }
}

/// Failures are forgotten some time after their pause, so that those of partitions that are read no more do not stay.
#[test]
fn old_failures_are_forgotten() {
    Script::run(fetcher, |script| {
        for partition in 0..10_000 {
            script.input(wanted(&[(1, &[partition])]));
            script.input(answer(1, vec![data(partition, ErrorCode::NOT_LEADER_OR_FOLLOWER)])).after(MS * 100);
            script.actions();
        }

        let kept = script.machine().penalties.len();
        assert!(kept <= 3_000, "{kept} failures are remembered, of 1,000 s");
    });
}

/// LE-05.
#[test]
fn a_hint_is_passed_on_with_its_address() {
    Script::run(fetcher, |script| {
        script.input(wanted(&[(1, &[0])]));
        script.actions();
        let current_leader = LeaderIdAndEpoch { leader_id: 2, leader_epoch: 4 };
        let failed = PartitionData { current_leader, ..data(0, ErrorCode::NOT_LEADER_OR_FOLLOWER) };
        let Input::Answered { answer: Ok(mut response), .. } = answer(1, vec![failed]) else { unreachable!() };
        let endpoint = NodeEndpoint { node_id: 2, host: Str::from("h"), port: 9, rack: None };
        response.node_endpoints.push(endpoint);

        script.input(Input::Answered { node: 1, answer: Ok(response), max_wait: MS * 500 });

        let actions = script.actions();
        let Action::Hint(hint) = &actions[0] else { panic!("{actions:?}") };
        assert_eq!((hint.leader_id, hint.leader_epoch), (2, 4));
        assert_eq!(hint.endpoint, Some((Str::from("h"), 9, None)));
    });
}

#[test]
fn what_was_not_asked_for_or_comes_twice_is_ignored() {
    Script::run(fetcher, |script| {
        script.input(wanted(&[(1, &[0])]));
        script.actions();

        let twice = vec![data(0, ErrorCode::NONE), data(0, ErrorCode::NONE), data(8, ErrorCode::NONE)];
        script.input(answer(1, twice)).input(answer(1, vec![data(0, ErrorCode::NONE)]));

        assert_eq!(words(script), ["buffer 0"]);
    });
}

/// LE-18.
#[test]
fn a_log_that_diverges_or_ends_elsewhere_is_reported_as_such() {
    Script::run(fetcher, |script| {
        script.input(wanted(&[(1, &[0, 1])]));
        script.actions();
        let mut diverged = data(0, ErrorCode::NONE);
        diverged.diverging_epoch.epoch = 2;
        diverged.diverging_epoch.end_offset = 8;

        script.input(answer(1, vec![diverged, data(1, ErrorCode::OFFSET_OUT_OF_RANGE)]));

        assert_eq!(words(script), ["diverged 8", "out of range 1 10"]);
    });
}

#[test]
fn full_requests_begin_with_another_partition_each_time() {
    Script::run(fetcher, |script| {
        let mut firsts = Vec::new();
        for _ in 0..3 {
            script.input(wanted(&[(1, &[0, 1, 2])]));
            firsts.extend(words(script));
            let response = FetchResponse::default();
            script.after(MS * 500).input(Input::Answered { node: 1, answer: Ok(response), max_wait: MS * 500 });
        }

        let expected = ["fetch 1 [0, 1, 2] epoch 0", "fetch 1 [1, 2, 0] epoch 0", "fetch 1 [2, 0, 1] epoch 0"];
        assert_eq!(firsts, expected);
    });
}

#[test]
fn closing_ends_the_sessions_that_there_are() {
    Script::run(fetcher, |script| {
        script.input(wanted(&[(1, &[0]), (2, &[1])])).input(answer(1, vec![]));
        script.actions();

        script.close(Input::Closed, |fetcher| fetcher.wanted.len());

        assert_eq!(words(script), ["end 1"], "node 2 has not made a session yet");
    });
}

/// How many milliseconds after an answer the next fetch is sent.
fn wait_for_the_next(script: &mut Script<Fetcher>) -> u128 {
    let answered = script.elapsed();
    script.input(wanted(&[(1, &[0])]));
    if let Some(deadline) = script.deadline() {
        script.at(deadline);
    }
    let actions = script.actions();
    let fetches = actions.iter().filter(|action| matches!(action, Action::Fetch { .. })).count();
    assert_eq!(fetches, 1, "{actions:?}");
    (script.elapsed() - answered).as_millis()
}

fn records_from(offset: i64) -> Vec<PartitionData> {
    let mut batch = ControlRecord::Commit { coordinator_epoch: 0 }.to_batch(7, 0, 1_000).expect("it is small");
    assign_offsets(&mut batch, offset, 3).expect("a batch of ours");
    vec![PartitionData { records: Some(batch.freeze()), ..data(0, ErrorCode::NONE) }]
}

/// BY-14. A first answer that is early and empty may have its reason, and costs no time.
#[test]
fn a_broker_that_answers_at_once_with_nothing_is_asked_less_and_less_often() {
    let old = records_from(3);
    let kinds = [vec![], vec![data(0, ErrorCode::NONE)], vec![data(0, ErrorCode::OFFSET_OUT_OF_RANGE)], old];
    for nothing in kinds {
        Script::run(fetcher, |script| {
            let mut waits = vec![wait_for_the_next(script)];
            for _ in 0..7 {
                script.input(answer(1, nothing.clone()));
                waits.push(wait_for_the_next(script));
            }
            assert_eq!(waits[..2], [0, 0], "{waits:?}");
            assert!((80..=120).contains(&waits[2]) && (160..=240).contains(&waits[3]), "{waits:?}");
            assert_eq!(waits[5..], [500; 3], "no less often than one that takes its time: {waits:?}");

            script.input(answer(1, records_from(10)));
            assert_eq!(wait_for_the_next(script), 0, "there are records");
            script.input(answer(1, nothing.clone()));
            assert_eq!(wait_for_the_next(script), 0, "again the first");
        });
    }
}

/// The time that a fetch took counts: a request that was held back for a while is no loop.
#[test]
fn a_broker_that_takes_a_while_is_asked_at_once() {
    Script::run(fetcher, |script| {
        for took in [100, 500, 400] {
            wait_for_the_next(script);
            script.after(MS * took).input(answer(1, vec![]));
        }
        assert_eq!(wait_for_the_next(script), 0);
        for _ in 0..3 {
            script.after(MS * 40).input(answer(1, vec![]));
            wait_for_the_next(script);
        }
        script.after(MS * 100).input(answer(1, vec![]));
        assert_eq!(wait_for_the_next(script), 0, "it has taken its time");
        script.input(answer(1, vec![]));
        assert_eq!(wait_for_the_next(script), 0, "again the first");
    });
}

/// CB-20: where connections are few a broker is given less time, and has taken all of it.
#[test]
fn a_broker_that_takes_the_time_that_it_was_given_is_asked_at_once() {
    Script::run(fetcher, |script| {
        for _ in 0..5 {
            assert_eq!(wait_for_the_next(script), 0);
            let Input::Answered { node, answer, .. } = answer(1, vec![]) else { unreachable!() };
            script.after(MS * 50).input(Input::Answered { node, answer, max_wait: MS * 50 });
        }
    });
}

/// Who asks that nothing be waited for is not made to wait.
#[test]
fn a_fetch_that_need_not_wait_for_anything_is_repeated_at_once() {
    let build = |now| {
        let mut fetcher = fetcher(now);
        fetcher.config.min_bytes = 0;
        fetcher
    };
    Script::run(build, |script| {
        for _ in 0..5 {
            assert_eq!(wait_for_the_next(script), 0);
            script.input(answer(1, vec![]));
        }
    });
}

/// Whom it sends us to is asked next. But who does nothing else is asked like one that says nothing.
#[test]
fn a_leader_that_sends_us_elsewhere_again_and_again_is_asked_less_and_less_often() {
    Script::run(fetcher, |script| {
        let mut waits = vec![wait_for_the_next(script)];
        for _ in 0..7 {
            let elsewhere = PartitionData { preferred_read_replica: 2, ..data(0, ErrorCode::NONE) };
            script.input(answer(1, vec![elsewhere]));
            waits.push(wait_for_the_next(script));
        }

        assert_eq!(waits[..2], [0, 0], "{waits:?}");
        assert!((80..=120).contains(&waits[2]), "{waits:?}");
        assert_eq!(waits[5..], [500; 3], "{waits:?}");
    });
}

/// Brokers come and go, also such as never were: what is kept of each goes with it.
#[test]
fn what_is_known_of_a_node_goes_when_the_cluster_has_it_no_more() {
    Script::run(fetcher, |script| {
        for node in 1..=1_000 {
            script.input(Input::ClusterChanged(cluster(&[node, node + 1])));
            script.input(wanted(&[(node, &[0]), (node + 1, &[1])]));
            let error = KrafkaError::timeout("no answer");
            script.input(Input::Answered { node, answer: Err(error), max_wait: MS * 500 });
            script.input(answer(node + 1, vec![]));
            script.actions();
        }
        let kept = script.machine().peers.keys().copied().collect::<Vec<_>>();
        assert_eq!(kept, [1_000, 1_001]);

        script.input(wanted(&[(1_000, &[0])]));
        script.input(Input::ClusterChanged(cluster(&[1]))).input(wanted(&[(1, &[0])]));
        script.after(MS * 1_000).input(answer(1_000, vec![])).input(wanted(&[(1, &[0])]));

        let kept = script.machine().peers.keys().copied().collect::<Vec<_>>();
        assert_eq!(kept, [1], "one that was asked has answered");
    });
}

/// Their penalty is enough: the others of the node are not made to wait.
#[test]
fn failed_partitions_do_not_count_as_an_answer_with_nothing() {
    Script::run(fetcher, |script| {
        for partition in 1..6 {
            script.input(wanted(&[(1, &[0, partition])]));
            assert_eq!(words(script).len(), 1, "it is asked at once");
            script.input(answer(1, vec![data(partition, ErrorCode::NOT_LEADER_OR_FOLLOWER)]));
            assert_eq!(words(script), ["refresh"]);
        }
    });
}
