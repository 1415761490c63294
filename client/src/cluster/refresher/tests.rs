//! When metadata is fetched, from whom, and who hears of it.

mod hints;
mod known;
mod paces;
mod recovery;

use std::io;

use krafka_protocol::Uuid;
use krafka_protocol::api::metadata::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic};
use krafka_protocol::script::Script;

use super::*;

type Test = Script<Refresher<&'static str>>;

const SECOND: Duration = Duration::from_secs(1);
const MAX_AGE: Duration = Duration::from_secs(300);

fn rules() -> Rules {
    Rules {
        bootstrap: vec![Node::bootstrap(0, "boot-a", 1), Node::bootstrap(1, "boot-b", 2)],
        max_age: MAX_AGE,
        recovery: MetadataRecoveryStrategy::Rebootstrap,
        rebootstrap_trigger: Duration::from_secs(300),
        seed: 1,
    }
}

fn registry() -> Arc<Registry> {
    Arc::new(Registry::new("me".into()))
}

fn refresher(scenario: impl Fn(&mut Test)) {
    Script::run(|_| Refresher::new(rules(), registry()), scenario);
}

/// A refresher that has bootstrapped and knows brokers 1 and 2.
fn connected(scenario: impl Fn(&mut Test)) {
    refresher(|script| {
        load(script, &[], "connect");
        succeed(script, 1);
        script.actions();
        script.after(5 * SECOND);
        scenario(script);
    });
}

fn names(topics: &[&'static str]) -> Vec<Str> {
    topics.iter().map(|topic| Str::from(*topic)).collect()
}

fn load(script: &mut Test, topics: &[&'static str], waiter: &'static str) {
    script.input(Input::Loaded { topics: names(topics), waiter });
}

fn doubt(script: &mut Test, topics: &[&'static str]) {
    script.input(Input::Doubted { topics: names(topics) });
}

/// What the machine did, in words that tests compare; the fetches among it can be answered with `succeed` and `fail`.
fn acts(script: &mut Test) -> Vec<String> {
    script.actions().iter().map(act).collect()
}

fn act(action: &Action<&'static str>) -> String {
    match action {
        Action::Fetch { candidates, topics, .. } => {
            let mut ids: Vec<i32> = candidates.iter().map(|node| node.id).collect();
            ids.sort_unstable();
            let topics: Vec<&str> = topics.iter().map(|topic| &**topic).collect();
            format!("fetch {topics:?} from {ids:?}")
        }
        Action::Publish(snapshot) => format!("publish {}", snapshot.version),
        Action::Seed(servers) => format!("seed {}:{}", servers[0].host, servers[0].port),
        Action::Answer { waiter, result: Ok(snapshot) } => format!("{waiter}: version {}", snapshot.version),
        Action::Answer { waiter, result: Err(error) } => format!("{waiter}: {error}"),
    }
}

/// The fetch in flight, and the first node of those that it may ask.
fn in_flight(script: &Test) -> (u64, Node) {
    let fetching = script.machine().fetching.as_ref().expect("a fetch is in flight");
    (fetching.id, fetching.candidates[0].clone())
}

fn answer_with(script: &mut Test, result: Result<MetadataResponse, KrafkaError>) {
    let (fetch, node) = in_flight(script);
    script.input(Input::Fetched { fetch, node, result });
}

/// Answers the fetch in flight: brokers 1 and 2, and each topic led by broker 1 in this epoch.
fn succeed(script: &mut Test, epoch: i32) {
    let topics = script.machine().fetching.as_ref().expect("a fetch is in flight").topics.clone();
    answer_with(script, Ok(response(&topics, epoch)));
}

fn fail(script: &mut Test) {
    let (_, node) = in_flight(script);
    let source = io::Error::from(io::ErrorKind::ConnectionRefused);
    answer_with(script, Err(KrafkaError::network(format!("connecting to {node}"), source)));
}

fn response(topics: &[Str], epoch: i32) -> MetadataResponse {
    let broker = |node_id| MetadataResponseBroker { node_id, port: 9092, ..MetadataResponseBroker::default() };
    let topic = |name: &Str| MetadataResponseTopic {
        name: Some(name.clone()),
        topic_id: Uuid([7; 16]),
        partitions: vec![MetadataResponsePartition {
            leader_id: 1,
            leader_epoch: epoch,
            ..MetadataResponsePartition::default()
        }],
        ..MetadataResponseTopic::default()
    };
    MetadataResponse {
        brokers: vec![broker(1), broker(2)],
        topics: topics.iter().map(topic).collect(),
        ..MetadataResponse::default()
    }
}

#[test]
fn nothing_is_sent_before_somebody_asks() {
    refresher(|script| {
        script.at(3_600 * SECOND);

        assert_eq!(acts(script), [""; 0]);
    });
}

#[test]
fn the_first_fetch_asks_a_bootstrap_server() {
    refresher(|script| {
        load(script, &[], "w");
        assert_eq!(acts(script), ["fetch [] from [-2, -1]"]);

        succeed(script, 1);
        assert_eq!(acts(script), ["publish 1", "w: version 1"]);
    });
}

/// CB-01, MD-19.
#[test]
fn the_next_server_is_asked_when_one_fails() {
    refresher(|script| {
        load(script, &[], "w");
        acts(script);

        fail(script);
        assert_eq!(acts(script).len(), 1, "one more fetch, at the server that is left");

        succeed(script, 1);
        assert_eq!(acts(script), ["publish 1", "w: version 1"]);
    });
}

/// CB-03.
#[test]
fn when_all_servers_fail_the_error_names_them_all() {
    refresher(|script| {
        load(script, &[], "w");
        fail(script);
        fail(script);

        let said = acts(script).pop().expect("an answer");
        assert!(said.contains("boot-a:1") && said.contains("boot-b:2"), "{said}");
    });
}

/// RB-10.
#[test]
fn failed_rounds_back_off() {
    refresher(|script| {
        let mut starts = Vec::new();
        for _ in 0..6 {
            load(script, &[], "w");
            while script.machine().fetching.is_none() {
                script.after(Duration::from_millis(1));
            }
            starts.push(script.elapsed().as_millis());
            fail(script);
            fail(script);
        }

        let gaps: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (gap, middle) in gaps.iter().zip([100, 200, 400, 800, 1_000]) {
            assert!((middle * 8 / 10..=middle * 12 / 10 + 1).contains(gap), "{gaps:?}");
        }
    });
}

/// MD-01.
#[test]
fn what_is_asked_together_is_fetched_together() {
    connected(|script| {
        load(script, &["a"], "1");
        load(script, &["a"], "2");
        load(script, &["b"], "3");
        load(script, &["c"], "4");
        assert_eq!(acts(script), [r#"fetch ["a"] from [1, 2]"#], "a is in flight, and covers the second asker too");

        succeed(script, 1);
        assert_eq!(acts(script), ["publish 2", "1: version 2", "2: version 2", r#"fetch ["b", "c"] from [1, 2]"#]);

        succeed(script, 1);
        assert_eq!(acts(script), ["publish 3", "3: version 3", "4: version 3"]);
    });
}

#[test]
fn a_new_topic_is_fetched_at_once() {
    connected(|script| {
        load(script, &["a"], "1");
        succeed(script, 1);
        acts(script);

        load(script, &["b"], "2");

        assert_eq!(acts(script), [r#"fetch ["b"] from [1, 2]"#]);
    });
}

/// MD-02, MD-16: asking again and again is slowed down while nothing changes.
#[test]
fn the_same_topic_is_fetched_at_a_growing_distance() {
    connected(|script| {
        let mut starts = Vec::new();
        for _ in 0..7 {
            load(script, &["a"], "w");
            while script.machine().fetching.is_none() {
                script.after(Duration::from_millis(1));
            }
            starts.push(script.elapsed().as_millis());
            succeed(script, 1);
        }

        let gaps: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (gap, middle) in gaps.iter().zip([100, 200, 400, 800, 1_000, 1_000]) {
            assert!((middle * 8 / 10..=middle * 12 / 10 + 1).contains(gap), "{gaps:?}");
        }
    });
}

#[test]
fn an_unchanged_answer_is_not_published() {
    connected(|script| {
        load(script, &["a"], "w");
        succeed(script, 1);
        acts(script);

        script.after(10 * SECOND);
        load(script, &["a"], "w");
        succeed(script, 1);

        assert_eq!(acts(script), [r#"fetch ["a"] from [1, 2]"#, "w: version 2"]);
    });
}

/// MD-15: only what is watched, once in a while, and nothing else for an hour.
#[test]
fn watched_topics_are_refreshed_by_age() {
    connected(|script| {
        load(script, &["a"], "w");
        succeed(script, 1);
        script.input(Input::Watched { owner: 7, topics: names(&["a"]) });
        acts(script);
        let start = script.elapsed();

        let mut fetches = Vec::new();
        for second in 0..3_600 {
            script.at(start + second * SECOND);
            if script.machine().fetching.is_some() {
                succeed(script, 1);
            }
            fetches.extend(acts(script).into_iter().filter(|act| act.starts_with("fetch")).map(|act| (second, act)));
        }

        assert!((11..=13).contains(&fetches.len()), "{fetches:?}");
        assert!(fetches.iter().all(|(_, act)| act == r#"fetch ["a"] from [1, 2]"#), "{fetches:?}");
    });
}

/// MD-15: clients that started together do not ask together.
#[test]
fn refreshes_by_age_are_spread() {
    let dues = std::cell::RefCell::new(BTreeSet::new());
    for seed in 0..20 {
        Script::run(
            |_| Refresher::new(Rules { seed, ..rules() }, registry()),
            |script: &mut Test| {
                load(script, &[], "connect");
                succeed(script, 1);
                script.actions();
                dues.borrow_mut().insert(script.deadline().expect("the next refresh"));
            },
        );
    }

    let dues = dues.into_inner();
    assert!(dues.len() > 15, "{dues:?}");
    assert!(dues.first() >= Some(&MAX_AGE.mul_f64(0.9)) && dues.last() <= Some(&MAX_AGE.mul_f64(1.1)), "{dues:?}");
}

/// MD-18.
#[test]
fn topics_that_nobody_uses_are_forgotten() {
    connected(|script| {
        load(script, &["a", "b"], "w");
        succeed(script, 1);
        script.input(Input::Watched { owner: 7, topics: names(&["a"]) });

        for _ in 0..3 {
            script.after(MAX_AGE * 2);
            succeed(script, 1);
        }

        let topics: Vec<_> = script.machine().current.topics.keys().map(ToString::to_string).collect();
        assert_eq!(topics, ["a"]);
    });
}

#[test]
fn a_doubt_is_tried_until_it_is_cleared() {
    connected(|script| {
        doubt(script, &["a"]);
        doubt(script, &["a", "b"]);
        assert_eq!(acts(script), [r#"fetch ["a"] from [1, 2]"#]);
        (0..4).for_each(|_| fail(script));
        acts(script);

        script.after(SECOND);
        assert_eq!(acts(script), [r#"fetch ["a", "b"] from [-2, -1]"#], "still wanted, now from the bootstrap servers");

        succeed(script, 1);
        script.after(20 * SECOND);
        assert_eq!(acts(script), ["publish 2"]);
    });
}

/// RB-01: within the same round, so that nobody who waits notices.
#[test]
fn without_a_reachable_broker_the_bootstrap_servers_are_asked() {
    connected(|script| {
        load(script, &["a"], "w");
        fail(script);
        acts(script);

        fail(script);
        assert_eq!(acts(script), [r#"fetch ["a"] from [-2, -1]"#]);

        succeed(script, 1);
        assert_eq!(acts(script), ["publish 2", "w: version 2"]);
    });
}

/// RB-02.
#[test]
fn without_recovery_only_known_brokers_are_asked() {
    let rules = || Rules { recovery: MetadataRecoveryStrategy::None, ..rules() };
    Script::run(
        |_| Refresher::new(rules(), registry()),
        |script: &mut Test| {
            load(script, &[], "connect");
            succeed(script, 1);
            load(script, &["a"], "w");
            fail(script);
            acts(script);

            fail(script);

            let said = acts(script);
            assert!(said.len() == 1 && said[0].starts_with("w: "), "{said:?}");
            script.input(Input::RebootstrapRequired).after(2 * SECOND);
            load(script, &["a"], "w");
            assert_eq!(acts(script), [r#"fetch ["a"] from [1, 2]"#]);
        },
    );
}

/// RB-03.
#[test]
fn code_129_begins_again_at_once() {
    connected(|script| {
        load(script, &["a"], "w");
        acts(script);

        let required =
            MetadataResponse { error_code: ErrorCode::REBOOTSTRAP_REQUIRED.0, ..MetadataResponse::default() };
        answer_with(script, Ok(required));

        assert_eq!(acts(script), [r#"fetch ["a"] from [-2, -1]"#]);
    });
}

#[test]
fn code_129_from_a_bootstrap_server_is_no_loop() {
    refresher(|script| {
        load(script, &[], "w");
        acts(script);

        let required =
            || MetadataResponse { error_code: ErrorCode::REBOOTSTRAP_REQUIRED.0, ..MetadataResponse::default() };
        answer_with(script, Ok(required()));
        answer_with(script, Ok(required()));

        let said = acts(script);
        assert!(said.len() == 2 && said[1].contains("REBOOTSTRAP_REQUIRED"), "{said:?}");
    });
}

/// RB-04: the connections may live; no answer for five minutes is enough.
#[test]
fn five_minutes_without_metadata_begin_again() {
    connected(|script| {
        doubt(script, &["a"]);
        // Broker 1 never answers: each attempt takes until its timeout.
        script.after(299 * SECOND);
        fail(script);
        script.after(300 * SECOND);
        acts(script);

        fail(script);

        assert_eq!(acts(script), [r#"fetch ["a"] from [-2, -1]"#]);
    });
}

#[test]
fn a_rebootstrap_discards_the_fetch_in_flight() {
    connected(|script| {
        load(script, &["a"], "w");
        let (fetch, node) = in_flight(script);
        acts(script);

        script.input(Input::RebootstrapRequired);
        assert_eq!(acts(script), [r#"fetch ["a"] from [-2, -1]"#]);

        script.input(Input::Fetched { fetch, node, result: Ok(response(&names(&["a"]), 1)) });
        assert_eq!(acts(script), [""; 0], "the answer of the wrong broker is nobody's");

        succeed(script, 1);
        assert_eq!(acts(script)[..2], ["publish 2", "w: version 2"]);
    });
}

/// RB-02: a strategy is for what the client decides by itself.
#[test]
fn the_user_may_begin_again_whatever_the_strategy() {
    let rules = || Rules { recovery: MetadataRecoveryStrategy::None, ..rules() };
    Script::run(
        |_| Refresher::new(rules(), registry()),
        |script: &mut Test| {
            load(script, &[], "connect");
            succeed(script, 1);
            script.after(5 * SECOND);
            script.actions();

            script.input(Input::Rebootstrap);

            assert_eq!(acts(script), ["fetch [] from [-2, -1]"]);
        },
    );
}

/// RB-08.
#[test]
fn other_bootstrap_servers_are_used_the_next_time() {
    connected(|script| {
        script.input(Input::Seeded(vec![Node::bootstrap(0, "boot-c", 3)]));
        assert_eq!(acts(script), ["seed boot-c:3"], "nothing else happens yet");

        script.input(Input::Rebootstrap);

        assert_eq!(acts(script), ["fetch [] from [-1]"]);
        assert_eq!(&*in_flight(script).1.host, "boot-c");
    });
}

/// RB-08, RB-10: who cannot connect does not wait for servers that are no more.
#[test]
fn other_bootstrap_servers_are_asked_at_once_while_the_former_fail() {
    refresher(|script| {
        load(script, &[], "w");
        acts(script);

        script.input(Input::Seeded(vec![Node::bootstrap(0, "boot-c", 3)]));
        assert_eq!(acts(script), ["seed boot-c:3", "fetch [] from [-1]"]);

        fail(script);
        script.input(Input::Seeded(vec![Node::bootstrap(0, "boot-d", 4)]));
        doubt(script, &[]);
        assert_eq!(acts(script)[1..], ["seed boot-d:4", "fetch [] from [-1]"], "without the backoff");
    });
}

/// A broker that has just started knows nobody: the others do.
#[test]
fn an_answer_without_brokers_is_none() {
    connected(|script| {
        load(script, &["a"], "w");
        acts(script);

        answer_with(script, Ok(MetadataResponse { brokers: Vec::new(), ..response(&names(&["a"]), 1) }));
        assert_eq!(acts(script).len(), 1, "the other broker is asked");

        succeed(script, 1);
        assert_eq!(acts(script), ["publish 2", "w: version 2"]);
    });
}

/// Nor is one that only has brokers that cannot be connected to.
#[test]
fn an_answer_without_brokers_of_use_is_none() {
    connected(|script| {
        load(script, &["a"], "w");
        acts(script);
        let mut answer = response(&names(&["a"]), 1);
        answer.brokers.iter_mut().for_each(|broker| broker.port = 70_000);

        answer_with(script, Ok(answer));

        assert_eq!(acts(script).len(), 1, "the other broker is asked");
    });
}

/// RB-07: nothing that the former cluster said is believed of the new one's topics.
#[test]
fn another_cluster_is_asked_about_everything_that_is_watched() {
    refresher(|script| {
        let of = |id: &'static str, topics: &[Str]| {
            Ok(MetadataResponse { cluster_id: Some(Str::from(id)), ..response(topics, 9) })
        };
        load(script, &["a", "b"], "w");
        answer_with(script, of("one", &names(&["a", "b"])));
        script.input(Input::Watched { owner: 1, topics: names(&["a", "b"]) });
        script.after(5 * SECOND);
        load(script, &["a"], "w");
        script.actions();

        answer_with(script, of("two", &names(&["a"])));
        assert!(script.machine().current.topic("b").is_none());
        script.after(SECOND);

        assert_eq!(script.machine().fetching.as_ref().expect("a fetch").topics, names(&["a", "b"]));
    });
}

#[test]
fn a_hint_is_published_and_an_old_one_is_not() {
    connected(|script| {
        load(script, &["a"], "w");
        succeed(script, 5);
        acts(script);
        let hint = |leader_epoch| {
            let (topic, topic_id) = (Str::from("a"), Uuid::ZERO);
            Input::Hinted(LeaderHint { topic, topic_id, partition: 0, leader: 2, leader_epoch, node: None })
        };

        script.input(hint(6)).input(hint(6)).input(hint(4));

        assert_eq!(acts(script), ["publish 3"]);
    });
}

/// MD-20: what no retry can help with is told, whatever the others said.
#[test]
fn an_authentication_failure_is_told_first() {
    refresher(|script| {
        load(script, &[], "w");
        answer_with(script, Err(KrafkaError::auth("wrong password")));
        fail(script);

        let last = script.actions().pop();
        let Some(Action::Answer { result: Err(error), .. }) = last else { panic!("no answer: {last:?}") };
        assert!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
        assert!(error.to_string().contains("wrong password"), "{error}");
    });
}

#[test]
fn a_closed_client_asks_no_more() {
    connected(|script| {
        doubt(script, &["a"]);
        script.input(Input::Watched { owner: 1, topics: names(&["a"]) });
        acts(script);
        answer_with(script, Err(KrafkaError::closed("the Kafka handle was closed")));
        assert_eq!(acts(script), [""; 0], "the other brokers are not asked, nor the bootstrap servers");

        script.after(3_600 * SECOND);

        assert_eq!(acts(script), [""; 0]);
    });
}
