//! Where batches go while leaders and brokers come and go.

use super::*;

fn endpoint(node_id: i32) -> NodeEndpoint {
    NodeEndpoint { node_id, host: Str::from("elsewhere"), port: 9_999, rack: None }
}

/// LE-01.
#[test]
fn a_hint_of_a_newer_leader_is_followed_at_once() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();

        play.reply(&request, vec![moved(0, 2, 5)]);

        let again = play.request();
        assert_eq!((again.node, &again.batches), (2, &request.batches));
        assert_eq!(play.log(), ["Hint(orders-0 is led by 2)"], "and nothing is fetched");
    });
}

/// LE-02.
#[test]
fn without_a_hint_the_metadata_is_fetched_and_the_batch_waits() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();

        play.refuse(&request, ErrorCode::NOT_LEADER_OR_FOLLOWER);

        assert!(play.requests().is_empty());
        assert_eq!(play.log(), ["Refresh(orders)"]);
        play.after(ms(130));
        assert_eq!(play.request().node, 1);
    });
}

#[test]
fn news_of_another_leader_end_the_wait() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.refuse(&request, ErrorCode::NOT_LEADER_OR_FOLLOWER);

        play.input(Input::Changed(snapshot(2, 2, &[Some(3), Some(1), Some(2), None])));

        assert_eq!(play.request().node, 3);
    });
}

/// LE-03.
#[test]
fn a_hint_that_is_no_news_does_not_make_a_loop() {
    for (leader, epoch) in [(1, 1), (2, 1), (2, 0), (-1, -1)] {
        play(|play| {
            play.batch(0, 1);
            for _ in 0..3 {
                let request = play.request();
                play.reply(&request, vec![moved(0, leader, epoch)]);
                assert!(play.requests().is_empty(), "hint {leader} at {epoch}");
                play.after(ms(500));
            }
        });
    }
}

/// LE-03: one that is news each time is followed, but at a pace, and nothing of its leaders is kept.
#[test]
fn hints_that_never_end_make_no_loop_and_fill_no_memory() {
    play(|play| {
        play.batch(0, 1);
        let mut hasty = 0;
        for number in 0..50 {
            let mut requests = play.requests();
            match requests.is_empty() {
                true => play.after(ms(1_500)),
                false => hasty += 1,
            }
            requests.extend(play.requests());
            let [request] = &requests[..] else { panic!("{number}: {requests:?}") };
            let hint = moved(0, 100 + number, 5 + number);
            play.reply_with(request, vec![hint], vec![endpoint(100 + number)], None);
        }

        assert_eq!(hasty, 1 + HASTY_MOVES);
        let nodes: Vec<i32> = play.script.machine().peers.keys().copied().collect();
        assert!(nodes.len() <= 4, "{nodes:?}");
    });
}

/// So it is with leaders that cannot be reached.
#[test]
fn leaders_that_never_were_are_not_kept() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.connects = false;
        play.reply_with(&request, vec![moved(0, 100, 5)], vec![endpoint(100)], None);
        let error = || KrafkaError::network("dialling", std::io::ErrorKind::ConnectionRefused.into());
        play.input(Input::Unreachable { node: 100, error: error() });
        assert!(play.script.machine().peers.contains_key(&100), "it leads, as far as is known");

        play.input(Input::Changed(snapshot(2, 6, &[Some(2), Some(1), Some(2), None])));

        let nodes: Vec<i32> = play.script.machine().peers.keys().copied().collect();
        assert_eq!(nodes, [1, 2]);
    });
}

/// LE-04.
#[test]
fn a_hint_of_an_unknown_broker_needs_its_address() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.reply(&request, vec![moved(0, 9, 5)]);
        assert_eq!(play.log(), ["Refresh(orders)"]);
        play.after(ms(130));

        let request = play.request();
        play.reply_with(&request, vec![moved(0, 9, 5)], vec![endpoint(9)], None);

        assert_eq!(play.request().node, 9);
    });
}

#[test]
fn older_metadata_does_not_undo_a_hint() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.reply(&request, vec![moved(0, 2, 5)]);
        let again = play.request();
        play.accept(&again);

        play.input(Input::Changed(snapshot(2, 4, &[Some(1), Some(1), Some(2), None])));
        play.batch(0, 1);

        assert_eq!(play.request().node, 2);
    });
}

/// All that is in flight fails alike when a leader moves: the hint is followed for each of them, and in order.
#[test]
fn everything_in_flight_follows_the_leader() {
    play_on(|play| {
        (0..3).for_each(|_| play.batch(0, 1));
        let sent = play.requests();

        sent.iter().for_each(|request| play.reply(request, vec![moved(0, 2, 5)]));

        for sequence in 0..3 {
            let request = play.request();
            assert_eq!((request.node, &request.batches[..]), (2, &[Stamped(0, 0, sequence, 1)][..]));
            play.accept(&request);
        }
    });
}

/// What waited for a broker that could not be reached goes to the next leader: nobody is to be connected to for it.
#[test]
fn a_broker_that_nothing_waits_for_any_more_is_not_connected_to() {
    play(|play| {
        play.connects = false;
        play.batch(0, 1);
        let error = KrafkaError::network("dialling", std::io::ErrorKind::ConnectionRefused.into());
        play.input(Input::Unreachable { node: 1, error });
        play.input(Input::Changed(snapshot(2, 2, &[Some(2), Some(1), Some(2), None])));
        play.log();

        play.after(SECOND * 10);

        assert_eq!(play.log(), [""; 0], "it waits for broker 2 to be connected to");
    });
}

/// Two connections keep no order between them.
#[test]
fn nothing_goes_to_the_new_leader_while_something_is_on_its_way_to_the_old_one() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.input(Input::Changed(snapshot(2, 2, &[Some(2), Some(1), Some(2), None])));
        play.batch(0, 1);
        assert!(play.requests().is_empty());

        play.accept(&request);

        assert_eq!(play.request().node, 2);
    });
}

/// LE-19, BR-030.
#[test]
fn a_partition_without_a_leader_waits_and_asks_less_and_less_often() {
    play(|play| {
        play.batch(3, 1);
        play.after(10 * SECOND);
        let asked = play.log();
        assert!((10..=18).contains(&asked.len()), "{asked:?}");
        assert!(asked.iter().all(|entry| entry == "Refresh(orders)"));

        play.input(Input::Changed(snapshot(2, 2, &[Some(1), Some(1), Some(2), Some(3)])));

        assert_eq!(play.request().node, 3);
    });
}

#[test]
fn a_broker_that_cannot_be_reached_is_tried_again_and_its_batches_stay_unsent() {
    play(|play| {
        play.connects = false;
        play.batch(0, 1);
        play.log();
        let error = KrafkaError::network("connecting to broker 1", std::io::ErrorKind::ConnectionRefused.into());

        for _ in 0..3 {
            play.input(Input::Unreachable { node: 1, error: error.clone() });
            assert_eq!(play.log(), ["Refresh(orders)"]);
            play.after(ms(500));
            assert_eq!(play.log(), ["Connect(1)"]);
        }
        play.input(Input::Unreachable { node: 1, error });
        play.after(120 * SECOND);

        let log = play.log();
        let failed = log.iter().find(|entry| entry.contains("failed")).expect("it expired");
        assert!(failed.contains("connecting to broker 1") && failed.contains("the record was not written"), "{failed}");
    });
}

#[test]
fn wrong_credentials_fail_at_once() {
    play(|play| {
        play.connects = false;
        play.batch(0, 1);

        play.input(Input::Unreachable { node: 1, error: KrafkaError::auth("PLAIN at broker 1: no") });

        assert!(play.log().contains(&"orders-0 failed: PLAIN at broker 1: no".to_owned()));
    });
}

#[test]
fn a_broker_that_asks_for_silence_gets_it() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.reply_with(&request, vec![answer(0, ErrorCode::NONE)], Vec::new(), Some(ms(700)));
        play.batch(0, 1);
        play.batch(2, 1);
        assert_eq!(play.request().node, 2, "others are not muted");

        play.after(ms(699));
        assert!(play.requests().is_empty());
        play.after(ms(1));

        assert_eq!(play.request().node, 1);
    });
}

/// PR-25.
#[test]
fn an_answer_twice_counts_once_and_none_is_none() {
    play(|play| {
        play.connects = false;
        play.batch(0, 1);
        play.batch(1, 1);
        play.input(Input::Connected { node: 1, link: 1 });
        let request = play.request();
        play.log();

        let surplus = answer(77, ErrorCode::NONE);
        play.reply(&request, vec![answer(0, ErrorCode::NONE), answer(0, ErrorCode::INVALID_RECORD), surplus]);
        play.after(ms(130));

        assert_eq!(play.log(), ["orders-0 written at 100"]);
        assert_eq!(play.request().batches, [Stamped(1, 0, 0, 1)], "the one left out is sent again");
    });
}

#[test]
fn an_answer_may_name_the_topic_by_its_id() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        let topic = TopicProduceResponse {
            name: Str::default(),
            topic_id: Uuid([7; 16]),
            partition_responses: vec![answer(0, ErrorCode::NONE)],
        };
        let response = ProduceResponse { responses: vec![topic], ..ProduceResponse::default() };

        play.input(Input::Answered { request: request.id, response, pause: None });

        assert_eq!(play.log(), ["orders-0 written at 100"]);
    });
}

/// PR-31.
#[test]
fn a_topic_that_may_not_be_written_to_fails_at_once() {
    play(|play| {
        play.batch(3, 1);
        play.log();
        let mut refused = Snapshot { version: 2, nodes: snapshot(2, 1, &[]).nodes.clone(), ..Snapshot::default() };
        refused.errors.insert(Str::from("orders"), ErrorCode::TOPIC_AUTHORIZATION_FAILED);

        play.input(Input::Changed(Arc::new(refused)));

        let log = play.log();
        assert!(log[0].starts_with("orders-3 failed") && log[0].contains("TOPIC_AUTHORIZATION_FAILED"), "{log:?}");
    });
}

#[test]
fn closing_waits_for_what_is_left_and_fails_it_at_the_deadline() {
    play(|play| {
        play.batch(0, 1);
        play.request();
        play.batch(3, 1);
        play.log();
        let deadline = Some(play.script.now() + 5 * SECOND);

        play.input(Input::Event(Event::Closed { deadline }));
        play.after(4 * SECOND);
        assert!(play.log().iter().all(|entry| entry == "Refresh(orders)"));
        play.after(SECOND);

        let log = play.log();
        let failed: Vec<_> = log.iter().filter(|entry| entry.contains("failed")).collect();
        assert!(failed[0].contains("orders-0") && failed[0].contains("may have been written"), "{log:?}");
        assert!(failed[1].contains("orders-3") && failed[1].contains("was not written"), "{log:?}");
        assert_eq!(log.last().map(String::as_str), Some("Stop"));
    });
}

#[test]
fn closing_an_idle_producer_stops_it_at_once() {
    play(|play| {
        play.input(Input::Event(Event::Closed { deadline: None }));

        assert_eq!(play.log(), ["Stop"]);
    });
}
