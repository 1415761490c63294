//! Replicas in the consumer's rack: node 1 leads all partitions, node 2 follows.

use super::*;

/// Partitions that node 1 leads, to be fetched from a node.
fn of_leader_1(node: i32, partitions: &[i32]) -> Input {
    let partitions = partitions.iter().copied().map(want).collect();
    Input::Wanted { nodes: BTreeMap::from([(node, NodeWants { partitions, held_back: false })]), room: ROOM }
}

/// The node that is asked by the only fetch that it sends, and the rack that it names.
fn asked(script: &mut Script<Fetcher>) -> (i32, String) {
    let actions = script.actions();
    let [Action::Fetch { node, request, .. }] = &actions[..] else { panic!("one fetch, not {actions:?}") };
    (*node, request.rack_id.to_string())
}

/// An answer that sends us to a replica.
fn sent_to(replica: i32) -> PartitionData {
    PartitionData { preferred_read_replica: replica, ..data(0, ErrorCode::NONE) }
}

/// LE-24.
#[test]
fn a_leaders_word_on_a_nearer_replica_is_passed_on_with_its_end() {
    Script::run(fetcher, |script| {
        script.input(of_leader_1(1, &[0]));
        assert_eq!(asked(script), (1, "here".to_owned()));
        script.at(MS * 40);

        script.input(answer(1, vec![sent_to(2)]));

        let actions = script.timed_actions();
        let [(_, Action::Buffer(_)), (_, Action::Prefer { claim, preferred })] = &actions[..] else {
            panic!("{actions:?}")
        };
        assert_eq!((*claim, *preferred), (want(0).claim, Preferred::new(2, (1, 3), script.now() + MS * 300_000)));
        script.input(of_leader_1(2, &[0]));
        assert_eq!(asked(script), (2, "here".to_owned()));
    });
}

#[test]
fn a_leader_that_names_itself_is_fetched_from() {
    Script::run(fetcher, |script| {
        script.input(of_leader_1(1, &[0]));
        script.actions();

        script.input(answer(1, vec![sent_to(1)]));

        assert_eq!(words(script), ["buffer 0"]);
    });
}

/// LE-04: only one that metadata name is believed, if it is up. Else fresh metadata may know more; meanwhile the leader
/// is asked without the rack, and nothing is remembered of who was named.
#[test]
fn a_replica_of_which_metadata_know_nothing_is_not_gone_to() {
    let down = |nodes: &[i32]| {
        let mut cluster = Arc::unwrap_or_clone(cluster(&[1, 2, 3]));
        nodes.iter().for_each(|node| drop(cluster.nodes.remove(node)));
        Arc::new(cluster)
    };
    for (replica, snapshot) in [(77, down(&[])), (-7, down(&[])), (2, down(&[2])), (4, down(&[]))] {
        Script::run(fetcher, |script| {
            script.input(Input::ClusterChanged(snapshot.clone())).input(of_leader_1(1, &[0]));
            script.actions();

            script.input(answer(1, vec![sent_to(replica)])).input(of_leader_1(1, &[0]));

            if replica < 0 {
                assert_eq!(words(script), ["buffer 0", "fetch 1 [] epoch 1"], "it names nobody");
                return;
            }
            let actions = script.actions();
            let [Action::Buffer(_), Action::Refresh { .. }, Action::Fetch { node, request, .. }] = &actions[..] else {
                panic!("{replica}: {actions:?}")
            };
            assert_eq!((*node, &*request.rack_id), (1, ""), "{replica}");
            script.after(MS * 130).input(answer(1, records_from(10)));
            script.actions();
            script.input(of_leader_1(1, &[0]));
            assert_eq!(asked(script), (1, "here".to_owned()), "{replica}: it may know more by now");
        });
    }
}

#[test]
fn a_leader_that_names_a_new_replica_each_time_fills_no_memory() {
    Script::run(fetcher, |script| {
        for replica in 100..1_100 {
            script.input(of_leader_1(1, &[0]));
            if let Some(deadline) = script.deadline() {
                script.at(deadline);
            }
            script.input(answer(1, vec![sent_to(replica)]));
            let words = words(script);
            assert!(!words.iter().any(|word| word.starts_with("prefer")), "{words:?}");
        }

        assert!(script.elapsed() > MS * 400_000, "{:?}", script.elapsed());
        let fetcher = script.machine();
        assert_eq!((fetcher.peers.len(), fetcher.penalties.len()), (1, 1));
    });
}

/// LE-25, LE-26: the leader is asked at once, without the rack; with it as soon as the replica may be asked again.
#[test]
fn a_replica_that_fails_is_left_alone_and_its_leader_is_asked_for_records() {
    let failures = [
        (ErrorCode::OFFSET_OUT_OF_RANGE, vec!["ask the leader of 0"]),
        (ErrorCode::NOT_LEADER_OR_FOLLOWER, vec!["ask the leader of 0", "refresh"]),
        (ErrorCode::REPLICA_NOT_AVAILABLE, vec!["ask the leader of 0", "refresh"]),
        (ErrorCode::UNKNOWN_LEADER_EPOCH, vec!["ask the leader of 0", "refresh"]),
        (ErrorCode::FENCED_LEADER_EPOCH, vec!["ask the leader of 0", "refresh"]),
        (ErrorCode::KAFKA_STORAGE_ERROR, vec!["ask the leader of 0", "refresh"]),
        (ErrorCode::UNKNOWN_SERVER_ERROR, vec!["ask the leader of 0", "refresh"]),
        (ErrorCode::TOPIC_AUTHORIZATION_FAILED, vec!["report", "ask the leader of 0", "refresh"]),
    ];
    for (code, expected) in failures {
        Script::run(fetcher, |script| {
            script.input(of_leader_1(2, &[0]));
            script.actions();

            script.input(answer(2, vec![data(0, code)]));
            assert_eq!(words(script), expected, "{code}");

            script.input(of_leader_1(1, &[0]));
            assert_eq!(asked(script), (1, String::new()), "{code}");
            script.after(MS * 130).input(answer(1, vec![])).input(of_leader_1(1, &[0]));
            assert_eq!(asked(script), (1, "here".to_owned()), "{code}");
        });
    }
}

/// A leader may choose by something else than the rack: it must not be a way around the pause.
#[test]
fn a_replica_that_failed_is_not_asked_before_its_time_whoever_names_it() {
    Script::run(fetcher, |script| {
        let mut pauses = Vec::new();
        for _ in 0..3 {
            script.input(of_leader_1(2, &[0]));
            let before = script.elapsed();
            script.after(MS * 1_500);
            let fetched = script.timed_actions();
            let [(at, Action::Fetch { node: 2, .. })] = &fetched[..] else { panic!("{fetched:?}") };
            pauses.push(at.saturating_sub(before).as_millis());
            script.input(answer(2, vec![data(0, ErrorCode::OFFSET_OUT_OF_RANGE)])).input(of_leader_1(1, &[0]));
            script.input(answer(1, vec![sent_to(2)]));
            script.actions();
        }

        assert_eq!(pauses[0], 0);
        assert!((80..=120).contains(&pauses[1]) && (160..=240).contains(&pauses[2]), "{pauses:?}");
    });
}

/// What the leader gives meanwhile says nothing about the replica.
#[test]
fn a_replica_that_fails_again_and_again_is_left_alone_for_longer() {
    Script::run(fetcher, |script| {
        for _ in 0..4 {
            script.input(of_leader_1(2, &[0])).after(MS * 1_500);
            script.input(answer(2, vec![data(0, ErrorCode::OFFSET_OUT_OF_RANGE)])).input(of_leader_1(1, &[0]));
            script.input(answer(1, vec![data(0, ErrorCode::NONE)]));
            script.actions();
        }
        script.input(of_leader_1(1, &[0])).after(MS * 600);
        assert_eq!(asked(script).1, "");

        script.input(answer(1, vec![])).input(of_leader_1(2, &[0])).after(MS * 1_000);
        script.input(answer(2, vec![data(0, ErrorCode::NONE)]));
        script.input(of_leader_1(2, &[0])).input(answer(2, vec![data(0, ErrorCode::OFFSET_OUT_OF_RANGE)]));
        script.actions();
        script.input(of_leader_1(1, &[0])).after(MS * 130);
        script.input(answer(1, vec![])).actions();
        script.input(of_leader_1(1, &[0]));
        assert_eq!(asked(script).1, "here", "it was well in between");
    });
}

/// LE-26: so it is when nothing comes of a request at all.
#[test]
fn a_replica_whose_broker_is_lost_or_refuses_is_not_waited_for() {
    let lost = || Input::Answered { node: 2, answer: Err(KrafkaError::timeout("no answer")), max_wait: MS * 500 };
    let refused = || refusal(2, ErrorCode::UNKNOWN_TOPIC_ID);
    for ends in [&lost as &dyn Fn() -> Input, &refused] {
        Script::run(fetcher, |script| {
            let both = [want(0), Want { leader: 2, ..want(1) }];
            let nodes = BTreeMap::from([(2, NodeWants { partitions: both.to_vec(), held_back: false })]);
            script.input(Input::Wanted { nodes, room: ROOM });
            script.actions();

            script.input(ends());

            assert_eq!(words(script), ["ask the leader of 0", "refresh"], "it leads the other one itself");
            script.input(of_leader_1(1, &[0]));
            assert_eq!(asked(script), (1, String::new()));
        });
    }
}

#[test]
fn a_lost_session_is_no_fault_of_the_replica() {
    for code in [ErrorCode::FETCH_SESSION_ID_NOT_FOUND, ErrorCode::INVALID_FETCH_SESSION_EPOCH] {
        Script::run(fetcher, |script| {
            script.input(of_leader_1(2, &[0]));
            script.actions();

            script.input(refusal(2, code)).input(of_leader_1(2, &[0]));

            assert_eq!(asked(script).0, 2, "{code}");
        });
    }
}

/// To a replica that is behind, what we read last is where the logs part: only leaders know better.
#[test]
fn a_replica_is_not_believed_that_a_log_was_truncated() {
    Script::run(fetcher, |script| {
        script.input(of_leader_1(2, &[0]));
        script.actions();
        let mut diverging = data(0, ErrorCode::NONE);
        (diverging.diverging_epoch.epoch, diverging.diverging_epoch.end_offset) = (3, 8);

        script.input(answer(2, vec![diverging]));

        assert_eq!(words(script), ["ask the leader of 0"]);
    });
}

#[test]
fn a_replica_does_not_send_us_elsewhere() {
    Script::run(fetcher, |script| {
        script.input(of_leader_1(2, &[0]));
        script.actions();

        script.input(answer(2, vec![sent_to(3)]));

        assert_eq!(words(script), ["ask the leader of 0"]);
    });
}

/// The partitions that are well do not suffer: they are fetched with the one that is not.
#[test]
fn a_partition_goes_from_the_session_of_one_node_to_that_of_another() {
    Script::run(fetcher, |script| {
        script.input(of_leader_1(1, &[0, 1])).input(answer(1, vec![sent_to(2), data(1, ErrorCode::NONE)]));
        script.actions();
        let of = |partition| NodeWants { partitions: vec![want(partition)], held_back: false };

        script.input(Input::Wanted { nodes: BTreeMap::from([(1, of(1)), (2, of(0))]), room: ROOM });

        let actions = script.actions();
        let [Action::Fetch { node: 1, request: first, .. }, Action::Fetch { node: 2, request: second, .. }] =
            &actions[..]
        else {
            panic!("{actions:?}")
        };
        assert_eq!(first.forgotten_topics_data[0].partitions, [0]);
        assert_eq!((second.session_epoch, second.topics[0].partitions[0].partition), (0, 0));
    });
}
