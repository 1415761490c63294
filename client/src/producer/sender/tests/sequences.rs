//! What keeps a record from being written twice, or lost between two others.

use super::*;

/// PR-06, PR-30.
#[test]
fn a_lost_request_is_sent_again_with_the_same_stamp_over_a_new_connection() {
    play(|play| {
        play.batch(0, 3);
        let request = play.request();
        play.connects = false;

        play.lose(&request, true);
        play.after(ms(130));
        assert!(play.requests().is_empty());
        assert_eq!(play.log(), ["Refresh(orders)", "Connect(1)"]);
        play.input(Input::Connected { node: 1, link: 11 });

        let again = play.request();
        assert_eq!((again.node, &again.batches), (11, &request.batches));
    });
}

/// The connection was closed while it was idle, or given up for another: no reason to ask who leads now.
#[test]
fn what_never_left_is_sent_over_another_connection_at_once() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.log();

        play.lose(&request, false);

        assert_eq!(play.request().batches, request.batches);
        assert!(!play.log().contains(&"Refresh(orders)".to_owned()));
    });
}

/// Requests of a connection that broke fail one after the other. None may be sent again before its predecessors.
#[test]
fn losses_that_come_in_any_order_keep_the_order() {
    play_on(|play| {
        (0..3).for_each(|_| play.batch(0, 1));
        let sent = play.requests();

        for at in [2, 0, 1] {
            play.lose(&sent[at], true);
            play.batch(0, 1);
        }
        play.after(ms(130));

        let mut sequences = Vec::new();
        for _ in 0..6 {
            for request in play.requests() {
                sequences.push(request.batches[0].2);
                play.accept(&request);
            }
        }
        assert_eq!(sequences, [0, 1, 2, 3, 4, 5]);
    });
}

/// PR-08, BR-047.
#[test]
fn a_duplicate_is_a_success_at_an_unknown_offset() {
    play(|play| {
        play.batch(0, 3);
        let request = play.request();

        play.refuse(&request, ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
        play.batch(0, 1);

        assert_eq!(play.log(), ["orders-0 written at -1"]);
        assert_eq!(play.request().batches, [Stamped(0, 0, 3, 1)]);
    });
}

/// PR-09.
#[test]
fn a_gap_before_the_first_batch_starts_a_new_epoch() {
    play(|play| {
        play.batch(0, 2);
        let request = play.request();
        play.accept(&request);
        play.batch(0, 2);
        play.batch(0, 2);
        let sent = play.requests();

        play.refuse(&sent[0], ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        assert!(play.requests().is_empty(), "the second one is still on its way");
        play.refuse(&sent[1], ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        play.after(ms(130));

        let stamps: Vec<_> = play.requests().iter().map(|request| request.batches[0]).collect();
        assert_eq!(stamps, [Stamped(0, 1, 0, 2), Stamped(0, 1, 2, 2)]);
    });
}

#[test]
fn a_gap_behind_a_batch_that_waits_is_no_gap() {
    play_on(|play| {
        play.batch(0, 1);
        play.batch(0, 1);
        let sent = play.requests();

        play.refuse(&sent[0], ErrorCode::NOT_ENOUGH_REPLICAS);
        play.refuse(&sent[1], ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        play.after(ms(130));

        assert_eq!(play.request().batches, [Stamped(0, 0, 0, 1)], "the epoch is kept");
    });
}

#[test]
fn what_follows_a_batch_that_failed_for_good_is_numbered_anew() {
    play_on(|play| {
        (0..3).for_each(|_| play.batch(0, 1));
        let sent = play.requests();

        play.refuse(&sent[0], ErrorCode::INVALID_RECORD);
        play.refuse(&sent[1], ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        play.refuse(&sent[2], ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        play.after(ms(130));

        let stamps: Vec<_> = play.requests().iter().map(|request| request.batches[0]).collect();
        assert_eq!(stamps, [Stamped(0, 1, 0, 1), Stamped(0, 1, 1, 1)]);
        assert_eq!(play.log(), ["orders-0 failed: producing to orders-0 at broker 1: INVALID_RECORD"]);
    });
}

/// BR-043: under another epoch the broker would not recognise what it has already.
#[test]
fn another_partition_moves_to_the_new_epoch_when_nothing_of_the_old_one_is_left() {
    play(|play| {
        play.batch(0, 1);
        play.batch(1, 1);
        let sent = play.requests();
        play.refuse(&sent[0], ErrorCode::INVALID_RECORD);
        play.batch(0, 1);
        assert_eq!(play.request().batches, [Stamped(0, 1, 0, 1)]);

        play.lose(&sent[1], true);
        play.after(ms(130));
        let again = play.requests().into_iter().find(|request| request.batches[0].0 == 1).expect("partition 1");
        assert_eq!(again.batches, [Stamped(1, 0, 0, 1)], "as it was sent before");
        play.accept(&again);
        play.batch(1, 1);

        let next = play.requests().into_iter().find(|request| request.batches[0].0 == 1).expect("partition 1");
        assert_eq!(next.batches, [Stamped(1, 1, 0, 1)]);
    });
}

/// PR-12.
#[test]
fn a_batch_that_expires_unsent_leaves_no_gap() {
    play(|play| {
        play.batch(3, 1);
        play.after(121 * SECOND);
        let log = play.log();
        let failed: Vec<_> = log.iter().filter(|entry| entry.contains("failed")).collect();
        assert_eq!(failed.len(), 1);
        assert!(failed[0].contains("no leader") && failed[0].contains("was not written"), "{failed:?}");

        play.input(Input::Changed(snapshot(2, 2, &[Some(1), Some(1), Some(2), Some(3)])));
        play.batch(3, 1);

        assert_eq!(play.request().batches, [Stamped(3, 0, 0, 1)]);
    });
}

/// PR-11, PR-13: nobody knows whether the first was written, until the second tells.
#[test]
fn behind_an_expired_batch_the_next_one_tells_whether_it_was_written() {
    for (code, stamp) in
        [(ErrorCode::NONE, Stamped(0, 0, 2, 1)), (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, Stamped(0, 1, 0, 1))]
    {
        play_on(|play| {
            play.batch(0, 1);
            let first = play.request();
            play.after(60 * SECOND);
            play.batch(0, 1);
            let second = play.request();

            play.after(60 * SECOND);
            let log = play.log();
            assert!(log[0].contains("delivery_timeout") && log[0].contains("may have been written"), "{log:?}");
            play.batch(0, 1);
            assert!(play.requests().is_empty(), "fresh batches wait");
            play.lose(&first, true);
            play.refuse(&second, code);
            play.after(ms(250));

            let next = play.requests();
            assert_eq!(next.first().map(|request| request.batches[0]), Some(stamp), "{code}");
        });
    }
}

#[test]
fn an_expired_batch_that_was_alone_leaves_a_new_epoch_behind() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.after(120 * SECOND);
        play.batch(0, 1);
        assert!(play.requests().is_empty());

        play.lose(&request, true);

        assert_eq!(play.request().batches, [Stamped(0, 1, 0, 1)]);
    });
}

#[test]
fn an_expired_batch_that_turns_out_to_be_written_leaves_no_gap() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.after(120 * SECOND);
        play.batch(0, 1);

        play.accept(&request);

        assert_eq!(play.request().batches, [Stamped(0, 0, 1, 1)]);
        assert_eq!(
            play.log().iter().filter(|entry| entry.contains("written at")).count(),
            0,
            "it was answered already"
        );
    });
}

/// PR-10.
#[test]
fn a_broker_that_forgot_the_producer_is_met_under_a_new_epoch() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.reply(
            &request,
            vec![PartitionProduceResponse { log_start_offset: -1, ..answer(0, ErrorCode::UNKNOWN_PRODUCER_ID) }],
        );
        play.after(ms(130));
        let again = play.request();
        assert_eq!(again.batches, request.batches, "with the log's start unknown it is only asked again");

        play.reply(
            &again,
            vec![PartitionProduceResponse { log_start_offset: 50, ..answer(0, ErrorCode::UNKNOWN_PRODUCER_ID) }],
        );
        play.after(ms(250));

        assert_eq!(play.request().batches, [Stamped(0, 1, 0, 1)]);
    });
}

#[test]
fn a_fenced_producer_gets_another_id_each_time() {
    play(|play| {
        for id in 10..13 {
            play.batch(0, 1);
            let request = play.request();
            play.identifies = false;

            play.refuse(&request, ErrorCode::INVALID_PRODUCER_EPOCH);
            play.after(ms(130));
            assert_eq!(play.log(), ["Identify"]);
            play.identifies = true;
            play.input(Input::Identified(ProducerId { id, epoch: 0 }));

            let again = play.request();
            assert_eq!(again.batches, [Stamped(0, 0, 0, 1)]);
            play.accept(&again);
            assert_eq!(play.log(), ["orders-0 written at 100"]);
        }
    });
}

#[test]
fn a_fenced_batch_that_may_have_been_written_is_not_written_again() {
    play(|play| {
        play.batch(0, 1);
        let request = play.request();
        play.lose(&request, true);
        play.after(ms(130));
        let again = play.request();
        play.log();

        play.refuse(&again, ErrorCode::INVALID_PRODUCER_EPOCH);

        let log = play.log();
        assert!(log[0].contains("INVALID_PRODUCER_EPOCH") && log[0].contains("may have been written"), "{log:?}");
    });
}

/// A batch that is still open has not had its answer by then.
#[test]
fn an_open_batch_hears_of_it_too() {
    play(|play| {
        play.identifies = false;
        let batch = play.open(0);
        play.after(ms(1));
        let error = KrafkaError::broker(ErrorCode::CLUSTER_AUTHORIZATION_FAILED, "asking for an id");

        play.input(Input::Unidentified { error: error.clone(), is_final: true });
        assert_eq!(play.log(), ["Identify", "Seal(0, 0)"]);
        play.fill(0, batch, 1);
        play.after(ms(130));
        play.input(Input::Unidentified { error, is_final: true });

        assert_eq!(play.log(), ["Identify", "orders-0 failed: asking for an id: CLUSTER_AUTHORIZATION_FAILED"]);
    });
}

/// PR-19.
#[test]
fn a_producer_that_gets_no_id_says_why() {
    play(|play| {
        play.identifies = false;
        play.batch(0, 1);
        assert_eq!(play.log(), ["Identify"]);
        let error = KrafkaError::broker(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, "asking for an id");
        play.input(Input::Unidentified { error, is_final: false });
        assert!(play.log().is_empty(), "it is asked again later");
        play.after(ms(130));
        assert_eq!(play.log(), ["Identify"]);

        let error = KrafkaError::broker(ErrorCode::CLUSTER_AUTHORIZATION_FAILED, "asking for an id");
        play.input(Input::Unidentified { error, is_final: true });

        assert_eq!(play.log(), ["orders-0 failed: asking for an id: CLUSTER_AUTHORIZATION_FAILED"]);
        play.after(10 * SECOND);
        assert!(play.log().is_empty(), "nobody waits for one");
        play.batch(0, 1);
        assert_eq!(play.log(), ["Identify"]);
    });
}

#[test]
fn a_topic_that_was_created_again_gets_a_new_sequence() {
    play(|play| {
        play.batch(0, 3);
        let request = play.request();
        play.accept(&request);

        play.input(Input::Changed(snapshot_of(2, 0, &[Some(3)], Uuid([8; 16]))));
        play.batch(0, 1);

        let next = play.request();
        assert_eq!((next.node, next.batches), (3, vec![Stamped(0, 1, 0, 1)]));
    });
}

#[test]
fn without_idempotence_one_batch_at_a_time_goes_unstamped() {
    play_with(
        |settings| (settings.is_idempotent, settings.max_in_flight) = (false, 1),
        |play| {
            play.batch(0, 1);
            play.batch(0, 1);
            let request = play.request();
            assert_eq!(request.batches, [Stamped(0, -1, -1, 1)]);

            play.refuse(&request, ErrorCode::NOT_ENOUGH_REPLICAS);
            play.after(ms(130));
            let again = play.request();
            play.accept(&again);

            assert_eq!(play.request().batches, [Stamped(0, -1, -1, 1)]);
        },
    );
}
