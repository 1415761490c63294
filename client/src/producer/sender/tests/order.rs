//! Which batch goes when.

use super::*;

/// PR-03.
#[test]
fn what_is_ready_for_one_broker_is_one_request() {
    play(|play| {
        play.connects = false;
        play.batch(0, 1);
        play.batch(1, 2);
        play.batch(2, 3);
        assert_eq!(play.log(), ["Connect(1)", "Connect(2)"]);

        play.input(Input::Connected { node: 1, link: 1 });
        play.input(Input::Connected { node: 2, link: 2 });

        let [one, two] = &play.requests()[..] else { panic!("one for each broker") };
        assert_eq!((one.node, &one.batches[..]), (1, &[Stamped(0, 0, 0, 1), Stamped(1, 0, 0, 2)][..]));
        assert_eq!((two.node, &two.batches[..]), (2, &[Stamped(2, 0, 0, 3)][..]));
    });
}

#[test]
fn a_request_is_not_larger_than_allowed() {
    play_with(
        |settings| settings.max_request_size = 1_500,
        |play| {
            play.connects = false;
            play.batch(0, 5);
            play.batch(1, 5);

            play.input(Input::Connected { node: 1, link: 1 });

            assert_eq!(play.requests().iter().map(|request| request.batches.len()).collect::<Vec<_>>(), [1, 1]);
        },
    );
}

#[test]
fn five_batches_are_in_flight_and_the_next_one_waits_for_an_answer() {
    play_on(|play| {
        (0..7).for_each(|_| play.batch(0, 2));
        let sent = play.requests();
        let sequences: Vec<_> = sent.iter().map(|request| request.batches[0].2).collect();
        assert_eq!(sequences, [0, 2, 4, 6, 8]);

        play.accept(&sent[0]);

        assert_eq!(play.request().batches, [Stamped(0, 0, 10, 2)]);
        assert_eq!(play.log(), ["orders-0 written at 100"]);
    });
}

/// A partition takes any sequence from a producer that it does not know: the second batch must not come before the
/// first.
#[test]
fn the_very_first_batch_goes_alone() {
    play(|play| {
        (0..3).for_each(|_| play.batch(0, 2));
        let first = play.request();
        play.refuse(&first, ErrorCode::NOT_ENOUGH_REPLICAS);
        play.after(ms(130));
        let again = play.request();
        assert_eq!(again.batches, [Stamped(0, 0, 0, 2)]);

        play.accept(&again);

        let stamps: Vec<_> = play.requests().iter().map(|request| request.batches[0]).collect();
        assert_eq!(stamps, [Stamped(0, 0, 2, 2), Stamped(0, 0, 4, 2)]);
    });
}

/// PR-05.
#[test]
fn a_failed_first_batch_is_sent_again_in_order_with_its_stamp() {
    play_on(|play| {
        (0..3).for_each(|_| play.batch(0, 1));
        let sent = play.requests();

        play.refuse(&sent[0], ErrorCode::NOT_ENOUGH_REPLICAS);
        play.refuse(&sent[1], ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        play.refuse(&sent[2], ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        play.batch(0, 1);

        assert!(play.requests().is_empty(), "backing off");
        play.after(ms(130));
        for sequence in [0, 1] {
            let again = play.request();
            assert_eq!(again.batches, [Stamped(0, 0, sequence, 1)]);
            play.accept(&again);
        }
        let stamps: Vec<_> = play.requests().iter().map(|request| request.batches[0]).collect();
        assert_eq!(stamps, [Stamped(0, 0, 2, 1), Stamped(0, 0, 3, 1)], "fresh ones go again behind the last of them");
    });
}

/// PR-04.
#[test]
fn one_failed_partition_of_a_request_is_sent_again_alone() {
    play(|play| {
        play.connects = false;
        play.batch(0, 1);
        play.batch(1, 1);
        play.input(Input::Connected { node: 1, link: 1 });
        let request = play.request();

        play.reply(&request, vec![answer(0, ErrorCode::NONE), answer(1, ErrorCode::NOT_ENOUGH_REPLICAS)]);
        play.after(ms(130));

        assert_eq!(play.request().batches, [Stamped(1, 0, 0, 1)]);
    });
}

/// PR-18: 100 ms, doubling to 1 s, a fifth more or less.
#[test]
fn failures_in_a_row_back_off_longer_and_longer() {
    play(|play| {
        play.batch(0, 1);
        let mut waits = Vec::new();
        for _ in 0..6 {
            let (request, at) = (play.request(), play.script.elapsed());
            play.refuse(&request, ErrorCode::NOT_ENOUGH_REPLICAS);
            while play.requests.is_empty() {
                let deadline = play.script.deadline().expect("a retry is due");
                play.script.at(deadline);
                play.attend();
            }
            waits.push((play.script.elapsed() - at).as_millis());
        }

        let bounds = [(80, 120), (160, 240), (320, 480), (640, 960), (800, 1_200), (800, 1_200)];
        assert!(waits.iter().zip(bounds).all(|(wait, (least, most))| (least..=most).contains(wait)), "{waits:?}");
    });
}

#[test]
fn a_lingering_batch_is_sealed_when_it_is_ripe() {
    play_with(
        |settings| settings.linger = ms(5),
        |play| {
            let batch = play.open(0);
            play.after(ms(4));
            assert!(play.log().is_empty());

            play.after(ms(1));

            assert_eq!(play.log(), ["Seal(0, 0)"]);
            play.fill(0, batch, 3);
            assert_eq!(play.request().batches, [Stamped(0, 0, 0, 3)]);
        },
    );
}

/// A batch that could not be sent yet goes on filling.
#[test]
fn a_ripe_batch_stays_open_while_five_are_in_flight() {
    play_on(|play| {
        (0..5).for_each(|_| play.batch(0, 1));
        let sent = play.requests();
        let batch = play.open(0);
        play.after(SECOND);
        assert!(play.log().is_empty());

        play.accept(&sent[0]);

        assert_eq!(play.log(), ["orders-0 written at 100", "Seal(0, 5)"]);
        play.fill(0, batch, 9);
        assert_eq!(play.request().batches, [Stamped(0, 0, 5, 9)]);
    });
}

/// PR-02.
#[test]
fn a_flush_seals_at_once() {
    play_with(
        |settings| settings.linger = 10 * SECOND,
        |play| {
            let (one, two) = (play.open(0), play.open(2));

            play.input(Input::Event(Event::Flushed));

            assert_eq!(play.log(), ["Seal(0, 0)", "Seal(2, 0)"]);
            play.fill(0, one, 1);
            play.fill(2, two, 1);
            assert_eq!(play.requests().len(), 2);
        },
    );
}

#[test]
fn a_caller_that_waits_for_memory_ends_the_linger() {
    play_with(
        |settings| settings.linger = 10 * SECOND,
        |play| {
            let batch = play.open(0);

            play.input(Input::Event(Event::Starved));

            assert_eq!(play.log(), ["Seal(0, 0)"]);
            play.fill(0, batch, 1);
        },
    );
}

/// Callers compress at their own pace: what was sealed second may come first.
#[test]
fn batches_that_come_out_of_order_are_put_in_order() {
    play_on(|play| {
        play.connects = false;
        let one = play.open(0);
        let two = play.open(0);
        play.input(Input::Connected { node: 1, link: 1 });
        play.fill(0, two, 2);
        assert!(play.requests().is_empty());

        play.fill(0, one, 1);
        play.connects = true;
        play.input(Input::Connected { node: 1, link: 1 });

        let stamps: Vec<_> = play.requests().iter().map(|request| request.batches[0]).collect();
        assert_eq!(stamps, [Stamped(0, 0, 0, 1), Stamped(0, 0, 1, 2)]);
    });
}

#[test]
fn a_batch_that_cannot_be_compressed_does_not_hold_up_the_next() {
    play(|play| {
        drop(play.open(0));
        play.input(Input::Event(Event::Sealed { slot: 0, number: 0, batch: None }));

        play.batch(0, 1);

        assert_eq!(play.request().batches, [Stamped(0, 0, 0, 1)]);
    });
}

/// PR-15.
#[test]
fn a_batch_that_is_too_large_is_split_and_keeps_order_and_sequences() {
    play_on(|play| {
        play.batch(0, 8);
        play.batch(0, 1);
        let sent = play.requests();

        play.refuse(&sent[0], ErrorCode::MESSAGE_TOO_LARGE);
        play.refuse(&sent[1], ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);

        let mut stamps = Vec::new();
        while let [request] = &play.requests()[..] {
            stamps.push(request.batches[0]);
            play.accept(request);
        }
        let mut next = 0;
        for Stamped(_, epoch, sequence, count) in &stamps {
            assert_eq!((*epoch, *sequence), (0, next), "{stamps:?}");
            next += count;
        }
        assert_eq!((next, stamps.last()), (9, Some(&Stamped(0, 0, 8, 1))));
        assert!(stamps.len() > 2);
    });
}

#[test]
fn splitting_goes_on_to_single_records_and_only_the_too_large_one_fails() {
    play(|play| {
        play.batch(0, 8);
        // The broker takes nothing but single records, and not the one at sequence 5.
        let mut accepted = 0;
        for _ in 0..40 {
            let requests = play.requests();
            for request in &requests {
                let Stamped(_, epoch, sequence, count) = request.batches[0];
                let is_bad = epoch == 0 && sequence == 5;
                match count == 1 && !is_bad {
                    true => play.accept(request),
                    false => play.refuse(request, ErrorCode::MESSAGE_TOO_LARGE),
                }
                accepted += i32::from(count == 1 && !is_bad);
            }
            play.after(ms(20));
        }

        let log = play.log();
        assert_eq!((accepted, log.iter().filter(|entry| entry.contains("written")).count()), (7, 7), "{log:?}");
        let failed: Vec<_> = log.iter().filter(|entry| entry.contains("failed")).collect();
        assert_eq!(failed.len(), 1);
        assert!(failed[0].contains("max.message.bytes") && failed[0].contains("MESSAGE_TOO_LARGE"), "{failed:?}");
    });
}
