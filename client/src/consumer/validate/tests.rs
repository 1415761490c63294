//! Validation by script: each answer of a leader, and how often it is asked.

use std::time::Duration;

use krafka_protocol::api::offset_for_leader_epoch::{EpochEndOffset, OffsetForLeaderTopicResult};
use krafka_protocol::script::Script;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn validator(_: Instant) -> Validator {
    Validator::new(Backoff::new(MS * 100, MS * 1_000), Rng::new(1))
}

fn want() -> Want {
    Want {
        claim: Claim { slot: 0, generation: 1 },
        topic: Str::from("t"),
        partition: 0,
        leader: Some((2, 5)),
        position: Position::new(10, 3),
    }
}

fn answer(code: ErrorCode, leader_epoch: i32, end_offset: i64) -> Result<OffsetForLeaderEpochResponse, KrafkaError> {
    let partition = EpochEndOffset { error_code: code.0, partition: 0, leader_epoch, end_offset };
    let topic = OffsetForLeaderTopicResult { topic: Str::from("t"), partitions: vec![partition] };
    Ok(OffsetForLeaderEpochResponse { topics: vec![topic], ..OffsetForLeaderEpochResponse::default() })
}

fn words(script: &mut Script<Validator>) -> Vec<String> {
    let word = |action| match action {
        Action::Ask { node, request, .. } => {
            let asked = &request.topics[0].partitions[0];
            format!("ask {node} epoch {} of {}", asked.leader_epoch, asked.current_leader_epoch)
        }
        Action::Valid { .. } => "valid".to_owned(),
        Action::Truncated { epoch, end_offset, .. } => format!("truncated {end_offset} {epoch}"),
        Action::Undefined { .. } => "undefined".to_owned(),
        Action::Refresh { .. } => "refresh".to_owned(),
        Action::Report(_) => "report".to_owned(),
    };
    script.actions().into_iter().map(word).collect()
}

/// It would answer that it knows nothing of it, and the position would be lost to the reset policy.
#[test]
fn a_leader_that_is_older_than_the_position_is_not_asked() {
    Script::run(validator, |script| {
        let newer = |leader| Input::Wanted(vec![Want { leader, position: Position::new(10, 6), ..want() }]);
        script.input(newer(Some((2, 5))));
        assert_eq!(words(script), ["refresh"]);

        script.input(newer(Some((3, 6)))).after(MS * 130);

        assert_eq!(words(script), ["ask 3 epoch 6 of 6"]);
    });
}

/// LE-08, LE-10.
#[test]
fn the_leader_is_asked_where_the_epoch_ends() {
    let unsupported = KrafkaError::protocol(ProtocolErrorKind::UnsupportedVersion, "too old");
    let table: Vec<(Result<OffsetForLeaderEpochResponse, KrafkaError>, &[&str])> = vec![
        (answer(ErrorCode::NONE, 3, 10), &["valid"]),
        (answer(ErrorCode::NONE, 3, 99), &["valid"]),
        (answer(ErrorCode::NONE, 2, 7), &["truncated 7 2"]),
        (answer(ErrorCode::NONE, -1, -1), &["undefined"]),
        (answer(ErrorCode::FENCED_LEADER_EPOCH, -1, -1), &["refresh"]),
        (answer(ErrorCode::UNKNOWN_LEADER_EPOCH, -1, -1), &["refresh"]),
        (answer(ErrorCode::NOT_LEADER_OR_FOLLOWER, -1, -1), &["refresh"]),
        (answer(ErrorCode::TOPIC_AUTHORIZATION_FAILED, -1, -1), &["report", "refresh"]),
        (Ok(OffsetForLeaderEpochResponse::default()), &["refresh"]),
        (Err(KrafkaError::timeout("no answer")), &["refresh"]),
        (Err(unsupported), &["valid"]),
    ];
    for (index, (answer, expected)) in table.iter().enumerate() {
        Script::run(validator, |script| {
            script.input(Input::Wanted(vec![want()]));
            assert_eq!(words(script), ["ask 2 epoch 3 of 5"]);

            script.input(Input::Answered { asked: vec![want()], answer: answer.clone() });

            assert_eq!(words(script), *expected, "line {index}");
        });
    }
}

/// LE-11.
#[test]
fn an_error_that_stays_is_asked_about_at_growing_distances() {
    Script::run(validator, |script| {
        script.input(Input::Wanted(vec![want()]));
        let mut asked = 0;
        for _ in 0..100 {
            if words(script).iter().any(|word| word.starts_with("ask")) {
                asked += 1;
                let answer = answer(ErrorCode::TOPIC_AUTHORIZATION_FAILED, -1, -1);
                script.input(Input::Answered { asked: vec![want()], answer }).input(Input::Wanted(vec![want()]));
            }
            script.after(MS * 100);
        }

        assert!((8..=20).contains(&asked), "{asked} questions in 10 s");
    });
}
