//! MD-18: topics that nothing is sent to rest, and wake.

use super::*;

const MAX_IDLE: Duration = Duration::from_secs(300);

impl Play<'_> {
    /// A caller loaded a topic.
    fn load(&mut self, topic: &'static str, snapshot: &Arc<Snapshot>) {
        self.input(Input::Event(Event::Loaded { topic: Str::from(topic), snapshot: snapshot.clone() }));
    }

    /// The topics that were named last as those to be kept fresh.
    #[track_caller]
    fn kept(&mut self) -> String {
        std::mem::take(&mut self.kept).pop().expect("it was told anew")
    }
}

fn both(version: u64) -> Arc<Snapshot> {
    let mut snapshot = Snapshot::clone(&snapshot(version, 1, &[Some(1), Some(1), Some(2), None]));
    let view = TopicView { name: Str::from("other"), ..TopicView::clone(&snapshot.topics["orders"]) };
    snapshot.topics.insert(view.name.clone(), Arc::new(view));
    Arc::new(snapshot)
}

#[test]
fn a_topic_rests_when_nothing_was_opened_for_long_enough() {
    play(|play| {
        play.load("orders", &both(2));
        play.after(SECOND);
        play.load("other", &both(2));
        assert_eq!(play.kept, ["orders", "orders other"]);
        play.kept.clear();
        play.after(MAX_IDLE - 2 * SECOND);
        play.batch(0, 1);
        let request = play.request();
        play.accept(&request);
        play.log();

        play.after(ms(1_999));
        assert!(play.log().is_empty() && play.kept.is_empty());
        play.after(ms(1));
        assert_eq!((play.kept(), play.log()), ("orders".to_owned(), vec!["Rest(other)".to_owned()]));

        play.after(MAX_IDLE - 3 * SECOND);
        assert!(play.log().is_empty() && play.kept.is_empty());
        play.after(SECOND);
        assert_eq!((play.kept(), play.log()), (String::new(), vec!["Rest(orders)".to_owned()]));
        play.after(3 * MAX_IDLE);
        assert!(play.log().is_empty() && play.kept.is_empty(), "once");
    });
}

/// Whatever its state: open, queued for a leader that is away, or sent without an answer.
#[test]
fn a_topic_with_a_batch_on_its_way_does_not_rest() {
    let keep = |settings: &mut Settings| {
        (settings.linger, settings.delivery_timeout) = (Duration::ZERO, 10 * MAX_IDLE);
    };
    play_with(
        |settings| (settings.linger, settings.delivery_timeout) = (2 * MAX_IDLE, 10 * MAX_IDLE),
        |play| {
            play.load("orders", &both(2));
            let batch = play.open(0);
            play.after(2 * MAX_IDLE - SECOND);
            assert_eq!((play.kept(), play.log()), ("orders".to_owned(), vec![]));
            play.fill(0, batch, 1);
        },
    );
    play_with(keep, |play| {
        play.load("orders", &both(2));
        play.batch(3, 1);
        play.after(2 * MAX_IDLE);
        assert_eq!(play.kept(), "orders");
        assert!(play.log().iter().all(|entry| entry == "Refresh(orders)"));
    });
    play_with(keep, |play| {
        play.load("orders", &both(2));
        play.batch(0, 1);
        let request = play.request();
        play.after(2 * MAX_IDLE);
        assert_eq!((play.kept(), play.log()), ("orders".to_owned(), vec![]));

        play.accept(&request);
        play.after(MAX_IDLE);
        assert_eq!((play.kept(), play.log().pop()), (String::new(), Some("Rest(orders)".to_owned())));
    });
}

/// The record of a caller who looked at the topic just before it was told to rest.
#[test]
fn what_comes_for_a_topic_that_rests_wakes_it() {
    play(|play| {
        play.load("orders", &both(2));
        play.batch(0, 1);
        let request = play.request();
        play.accept(&request);
        play.after(2 * MAX_IDLE);
        play.input(Input::Changed(snapshot(3, 4, &[Some(3), Some(3), Some(3), Some(3)])));
        assert_eq!(play.kept(), "");
        play.log();

        play.batch(0, 1);

        assert_eq!(play.request().node, 3, "it is sent where the topic is by now");
        assert_eq!(play.kept(), "orders");
        play.after(2 * MAX_IDLE);
        assert!(play.kept.is_empty(), "it is not idle while a request has no answer");
    });
}

#[test]
fn a_partition_that_is_new_to_the_producer_wakes_its_topic() {
    play(|play| {
        play.load("orders", &both(2));
        play.after(2 * MAX_IDLE);
        assert_eq!(play.kept(), "");

        play.batch(2, 1);

        assert_eq!((play.request().node, play.kept()), (2, "orders".to_owned()));
    });
}

/// Its metadata are gone when it is sent to again, and come back as another topic's.
#[test]
fn a_topic_that_was_created_again_while_it_rested_is_another() {
    play(|play| {
        play.load("orders", &snapshot(2, 1, &[Some(1); 4]));
        play.batch(0, 3);
        let request = play.request();
        assert_eq!(request.batches, [Stamped(0, 0, 0, 3)]);
        play.accept(&request);
        play.after(2 * MAX_IDLE);
        play.input(Input::Changed(Arc::new(Snapshot {
            topics: BTreeMap::new(),
            ..Snapshot::clone(&snapshot(3, 1, &[]))
        })));
        assert!(play.requests().is_empty());
        play.log();

        play.batch(0, 1);
        assert!(play.requests().is_empty());
        assert_eq!(play.log(), ["Refresh(orders)"]);
        play.input(Input::Changed(snapshot_of(4, 0, &[Some(2); 4], Uuid([8; 16]))));

        let again = play.request();
        assert_eq!((again.node, again.batches), (2, vec![Stamped(0, 1, 0, 1)]), "with a sequence of its own");
    });
}
