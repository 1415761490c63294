//! How coordinators are found, remembered and lost.

use std::io;

use krafka_protocol::script::Script;

use super::*;

/// A waiter is a name; one that begins with `-` has gone away (see the channel's tests).
type Test = Script<Coordinators<&'static str>>;

fn coordinators(scenario: impl Fn(&mut Test)) {
    Script::run(|_| Coordinators::new(1), scenario);
}

fn key(group: &str) -> Key {
    (CoordinatorKind::Group, Str::from(group))
}

fn node(id: i32) -> Node {
    Node { id, host: Str::from("host"), port: 9000 + id as u16, rack: None }
}

fn want(group: &str, waiter: &'static str) -> Input<&'static str> {
    Input::Wanted { key: key(group), waiter }
}

fn found_at(group: &str, id: i32) -> Input<&'static str> {
    Input::Answered { key: key(group), result: Ok(Ok(node(id))) }
}

fn refused(group: &str, code: ErrorCode) -> Input<&'static str> {
    Input::Answered { key: key(group), result: Ok(Err((code, None))) }
}

fn lost(group: &str, id: i32) -> Input<&'static str> {
    Input::Lost { key: key(group), node: node(id) }
}

fn find(group: &str) -> String {
    said(&Action::Find { key: key(group), failures: 0 })
}

fn found(waiter: &'static str, id: i32) -> String {
    said(&Action::Found { waiter, node: node(id) })
}

/// What the machine did, in words.
fn acts(script: &mut Test) -> Vec<String> {
    script.actions().iter().map(said).collect()
}

fn said(action: &Action<&'static str>) -> String {
    match action {
        Action::Find { key: (_, key), .. } => format!("find {key}"),
        Action::Found { waiter, node } => format!("{waiter}: {node}"),
        Action::Fail { waiter, error } => format!("{waiter}: {error}"),
    }
}

/// Moves on until a look-up starts; how many milliseconds that took.
fn until_asked(script: &mut Test) -> u128 {
    let start = script.elapsed();
    while !script.actions().iter().any(|action| matches!(action, Action::Find { .. })) {
        script.after(Duration::from_millis(1));
    }
    (script.elapsed() - start).as_millis()
}

#[test]
fn one_look_up_serves_all_who_wait_and_is_remembered() {
    coordinators(|script| {
        script.input(want("g", "a")).input(want("g", "b")).input(want("h", "c"));
        assert_eq!(acts(script), [find("g"), find("h")]);

        script.input(found_at("g", 1)).input(want("g", "d"));
        assert_eq!(acts(script), [found("a", 1), found("b", 1), found("d", 1)]);
    });
}

#[test]
fn a_coordinator_that_is_not_there_yet_is_waited_for() {
    coordinators(|script| {
        script.input(want("g", "a"));
        script.actions();

        for middle in [100, 200, 400, 800, 1_000, 1_000] {
            script.input(refused("g", ErrorCode::COORDINATOR_NOT_AVAILABLE));
            let waited = until_asked(script);
            assert!((middle * 8 / 10..=middle * 12 / 10 + 1).contains(&waited), "{waited} ms, not about {middle}");
        }
        script.input(found_at("g", 1));

        assert_eq!(acts(script), [found("a", 1)]);
    });
}

#[test]
fn a_broker_that_cannot_be_reached_is_no_answer() {
    coordinators(|script| {
        script.input(want("g", "a"));
        script.actions();
        let error = KrafkaError::network("connecting", io::Error::from(io::ErrorKind::ConnectionRefused));

        script.input(Input::Answered { key: key("g"), result: Err(error) });

        assert!(until_asked(script) <= 121);
    });
}

#[test]
fn a_missing_permission_is_told_at_once() {
    coordinators(|script| {
        script.input(want("g", "a"));
        script.actions();

        script.input(refused("g", ErrorCode::GROUP_AUTHORIZATION_FAILED));

        let said = acts(script);
        assert!(said[0].starts_with("a: finding the coordinator of group 'g': GROUP_AUTHORIZATION_FAILED"), "{said:?}");
    });
}

/// An authentication that failed will fail again: whoever waits must not wait for ever.
#[test]
fn what_no_retry_can_help_with_is_told_at_once() {
    coordinators(|script| {
        script.input(want("g", "a"));
        script.actions();

        script.input(Input::Answered { key: key("g"), result: Err(KrafkaError::auth("wrong password")) });

        assert_eq!(acts(script), ["a: wrong password"]);
    });
}

#[test]
fn a_lost_coordinator_is_looked_for_again() {
    coordinators(|script| {
        script.input(want("g", "a")).input(found_at("g", 1)).after(SETTLED);
        script.actions();

        script.input(lost("g", 1)).input(want("g", "b"));
        assert_eq!(acts(script), [find("g")]);

        script.input(found_at("g", 2));
        assert_eq!(acts(script), [found("b", 2)]);
    });
}

/// Two members notice that a coordinator is gone; the second report must not take away what the first one found.
#[test]
fn a_late_report_about_an_earlier_coordinator_changes_nothing() {
    coordinators(|script| {
        script.input(want("g", "a")).input(found_at("g", 2));
        script.actions();

        script.input(lost("g", 1)).input(want("g", "b"));

        assert_eq!(acts(script), [found("b", 2)]);
    });
}

/// A broker that says "it is me" and then "I am not" must not be asked as fast as it answers.
#[test]
fn brokers_that_disagree_are_not_asked_in_a_circle() {
    coordinators(|script| {
        script.input(want("g", "a")).input(found_at("g", 1));
        script.actions();

        for middle in [100, 200, 400] {
            script.input(lost("g", 1)).input(want("g", "b"));
            let waited = until_asked(script);
            assert!((middle * 8 / 10..=middle * 12 / 10 + 1).contains(&waited), "{waited} ms, not about {middle}");
            script.input(found_at("g", 1));
            script.actions();
        }
    });
}

#[test]
fn nobody_is_asked_for_a_waiter_that_has_gone() {
    coordinators(|script| {
        script.input(want("g", "-a")).after(Duration::from_secs(60));

        assert_eq!(acts(script), [""; 0]);
    });
}

#[test]
fn the_cache_is_bounded() {
    coordinators(|script| {
        for group in 0..MAX_COORDINATORS as i32 + 10 {
            let group = format!("g{group}");
            script.input(want(&group, "w")).input(found_at(&group, 1));
        }

        assert!(script.machine().entries.len() <= MAX_COORDINATORS);
    });
}

#[test]
fn the_question_fits_its_version() {
    let (old, new) = (question(&key("g"), 3), question(&key("g"), 4));

    assert_eq!((&*old.key, old.coordinator_keys.len(), old.key_type), ("g", 0, 0));
    assert_eq!((&*new.key, &new.coordinator_keys[..]), ("", &[Str::from("g")][..]));
}

#[test]
fn the_answer_is_read_in_its_version() {
    use krafka_protocol::api::find_coordinator::Coordinator;
    let old =
        FindCoordinatorResponse { node_id: 3, host: Str::from("h"), port: 9, ..FindCoordinatorResponse::default() };
    let one = |key: &str, error_code: ErrorCode| Coordinator {
        key: Str::from(key),
        node_id: 3,
        host: Str::from("h"),
        port: 9,
        error_code: error_code.0,
        error_message: None,
    };
    let new = |coordinators| FindCoordinatorResponse { coordinators, ..FindCoordinatorResponse::default() };
    let expected = Node { id: 3, host: Str::from("h"), port: 9, rack: None };

    assert_eq!(answer(&key("g"), old, 3), Ok(Ok(expected.clone())));
    let two = new(vec![one("f", ErrorCode::NOT_COORDINATOR), one("g", ErrorCode::NONE)]);
    assert_eq!(answer(&key("g"), two, 4), Ok(Ok(expected)));
    let refusal = new(vec![one("g", ErrorCode::NOT_COORDINATOR)]);
    assert_eq!(answer(&key("g"), refusal, 4), Ok(Err((ErrorCode::NOT_COORDINATOR, None))));
    assert!(answer(&key("g"), new(Vec::new()), 4).is_err());
}

/// A look-up may take longer each time: perhaps it is not the broker that is slow.
#[test]
fn a_look_up_knows_how_many_have_failed() {
    coordinators(|script| {
        let mut failures = Vec::new();
        script.input(want("g", "w"));
        for _ in 0..3 {
            script.after(Duration::from_secs(5));
            for action in script.actions() {
                if let Action::Find { failures: failed, .. } = action {
                    failures.push(failed);
                    let late = KrafkaError::timeout("no answer");
                    script.input(Input::Answered { key: key("g"), result: Err(late) });
                }
            }
        }

        assert_eq!(failures, [0, 1, 2]);
    });
}

/// RB-07: what the brokers of another cluster said is worth nothing here.
#[test]
fn coordinators_of_a_former_cluster_are_forgotten() {
    coordinators(|script| {
        script.input(want("g", "a")).input(found_at("g", 1)).input(want("h", "b"));
        script.actions();

        script.input(Input::Forgotten).input(want("g", "c")).input(found_at("h", 2));

        assert_eq!(acts(script), [find("g"), found("b", 2)], "whoever waits is answered by the new one");
    });
}
