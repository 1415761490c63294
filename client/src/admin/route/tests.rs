//! One admin call by script.

use std::io;

use krafka_protocol::script::Script;

use super::*;

type Test = Script<Route<u32>>;

const TIMEOUT: Duration = Duration::from_secs(60);

fn route(items: &[&'static str], scenario: impl Fn(&mut Test)) {
    let items: Vec<Str> = items.iter().map(|item| Str::from(*item)).collect();
    Script::run(|now| Route::new("creating topic", items.clone(), TIMEOUT, 1, now), scenario);
}

fn answers(answers: &[(&'static str, Result<u32, ErrorCode>)]) -> Input<u32> {
    let answer = |(item, answer): &(&'static str, Result<u32, ErrorCode>)| {
        (Str::from(*item), answer.map_err(|code| (code, Some(Str::from("said so")))))
    };
    Input::Answered(answers.iter().map(answer).collect())
}

fn lost() -> CallError {
    CallError::sent(KrafkaError::network("CreateTopics", io::Error::from(io::ErrorKind::ConnectionReset)))
}

/// What the machine did, in words: `ask a b`, or `a: result` for each item at the end.
fn acts(script: &mut Test) -> Vec<String> {
    let words = |action: &Action<u32>| match action {
        Action::Ask { items, is_retry, .. } => {
            let items: Vec<&str> = items.iter().map(|item| &**item).collect();
            vec![format!("{} {}", if *is_retry { "ask again" } else { "ask" }, items.join(" "))]
        }
        Action::Finish(results) => results
            .iter()
            .map(|(item, result)| match result {
                Ok(number) => format!("{item}: {number}"),
                Err(error) => format!("{item}: {error}"),
            })
            .collect(),
    };
    script.actions().iter().flat_map(words).collect()
}

#[test]
fn each_item_has_its_result() {
    route(&["a", "b", "c"], |script| {
        assert_eq!(acts(script), ["ask a b c"]);

        let refused = Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
        script.input(answers(&[("c", Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)), ("a", Ok(1)), ("b", refused)]));

        let said = acts(script);
        assert_eq!(said[0], "a: 1");
        assert!(said[1].starts_with("b: creating topic 'b' (said so): INVALID_TOPIC_EXCEPTION"), "{said:?}");
        assert!(said[2].starts_with("c: topic 'c' does not exist"), "{said:?}");
        assert_eq!(script.deadline(), None);
    });
}

#[test]
fn only_what_is_not_done_is_asked_again() {
    route(&["a", "b"], |script| {
        acts(script);

        script.input(answers(&[("a", Ok(1)), ("b", Err(ErrorCode::NOT_CONTROLLER))]));
        assert_eq!(acts(script), [""; 0]);

        script.after(Duration::from_millis(120));
        assert_eq!(acts(script), ["ask again b"]);

        script.input(answers(&[("b", Ok(2))]));
        assert_eq!(acts(script), ["a: 1", "b: 2"]);
    });
}

/// An item that an answer leaves out is neither done nor lost.
#[test]
fn an_item_without_an_answer_is_asked_again() {
    route(&["a", "b"], |script| {
        acts(script);

        script.input(answers(&[("a", Ok(1)), ("stranger", Ok(9))])).after(Duration::from_millis(120));

        assert_eq!(acts(script), ["ask again b"]);
        script.at(TIMEOUT);
        let said = acts(script);
        assert!(said[1].ends_with("last: the broker's answer says nothing of it"), "{said:?}");
    });
}

#[test]
fn attempts_back_off() {
    route(&["a"], |script| {
        script.actions();
        for middle in [100, 200, 400, 800, 1_000] {
            let start = script.elapsed();
            script.input(Input::Failed(lost()));
            while script.actions().is_empty() {
                script.after(Duration::from_millis(1));
            }
            let waited = (script.elapsed() - start).as_millis();
            assert!((middle * 8 / 10..=middle * 12 / 10 + 1).contains(&waited), "{waited} ms, not about {middle}");
        }
    });
}

#[test]
fn the_deadline_ends_it_with_the_last_reason() {
    route(&["a"], |script| {
        script.input(answers(&[("a", Err(ErrorCode::NOT_CONTROLLER))])).after(Duration::from_secs(1));
        acts(script);

        script.at(TIMEOUT);

        let said = acts(script);
        assert!(said[0].contains("not done within 60s") && said[0].contains("NOT_CONTROLLER"), "{said:?}");
        assert_eq!(script.elapsed(), TIMEOUT);
    });
}

#[test]
fn what_no_retry_can_help_with_ends_it_at_once() {
    route(&["a", "b"], |script| {
        acts(script);

        script.input(Input::Failed(CallError::unsent(KrafkaError::auth("wrong password"))));

        assert_eq!(acts(script), ["a: wrong password", "b: wrong password"]);
    });
}

/// The answer to the first attempt was lost; the second finds the topic that the first one made.
#[test]
fn a_topic_that_an_earlier_attempt_may_have_made_is_told_so() {
    route(&["a"], |script| {
        script.input(Input::Failed(lost())).after(Duration::from_secs(1));
        acts(script);

        script.input(answers(&[("a", Err(ErrorCode::TOPIC_ALREADY_EXISTS))]));

        let said = acts(script);
        assert!(said[0].contains("may have created it"), "{said:?}");
    });
}
