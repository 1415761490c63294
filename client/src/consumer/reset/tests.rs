//! Offset lookups by script: who is asked, and how answers are told apart.

use std::time::Duration;

use krafka_protocol::api::list_offsets::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use krafka_protocol::script::Script;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn resetter(_: Instant) -> Resetter {
    Resetter::new(Backoff::new(MS * 100, MS * 1_000), Rng::new(1))
}

fn want(partition: i32, leader: Option<(i32, i32)>, start: Start) -> Want {
    let claim = Claim { slot: partition as usize, generation: 1 };
    Want { claim, topic: Str::from("t"), partition, leader, start }
}

fn answer(partitions: &[(i32, i64, ErrorCode)]) -> Result<ListOffsetsResponse, KrafkaError> {
    let partition = |&(partition_index, offset, code): &(i32, i64, ErrorCode)| ListOffsetsPartitionResponse {
        partition_index,
        offset,
        error_code: code.0,
        leader_epoch: 4,
        ..ListOffsetsPartitionResponse::default()
    };
    let topic =
        ListOffsetsTopicResponse { name: Str::from("t"), partitions: partitions.iter().map(partition).collect() };
    Ok(ListOffsetsResponse { topics: vec![topic], ..ListOffsetsResponse::default() })
}

fn words(script: &mut Script<Resetter>) -> Vec<String> {
    let word = |action| match action {
        Action::Ask { node, request, .. } => {
            let asked = request.topics[0].partitions.iter();
            let asked: Vec<_> = asked.map(|asked| (asked.partition_index, asked.timestamp)).collect();
            format!("ask {node} {asked:?} epoch {}", request.topics[0].partitions[0].current_leader_epoch)
        }
        Action::Found { claim, position } => format!("found {} {} {}", claim.slot, position.offset, position.epoch),
        Action::NothingSince { claim } => format!("nothing since {}", claim.slot),
        Action::Refresh { .. } => "refresh".to_owned(),
        Action::Report(_) => "report".to_owned(),
    };
    script.actions().into_iter().map(word).collect()
}

#[test]
fn each_leader_is_asked_about_its_own() {
    Script::run(resetter, |script| {
        let wants = vec![
            want(0, Some((1, 3)), Start::Earliest),
            want(1, Some((2, 5)), Start::Latest),
            want(2, Some((1, 3)), Start::At(77)),
        ];

        script.input(Input::Wanted(wants.clone())).input(Input::Wanted(wants));

        assert_eq!(words(script), ["ask 1 [(0, -2), (2, 77)] epoch 3", "ask 2 [(1, -1)] epoch 5"]);
    });
}

#[test]
fn answers_are_told_apart() {
    let table: &[(Start, i64, ErrorCode, &[&str])] = &[
        (Start::Earliest, 0, ErrorCode::NONE, &["found 0 0 4"]),
        (Start::At(5), -1, ErrorCode::NONE, &["nothing since 0"]),
        // A success without an offset is no offset 0.
        (Start::Latest, -1, ErrorCode::NONE, &["refresh"]),
        (Start::Latest, -1, ErrorCode::FENCED_LEADER_EPOCH, &["refresh"]),
        (Start::Latest, -1, ErrorCode::NOT_LEADER_OR_FOLLOWER, &["refresh"]),
        (Start::Latest, -1, ErrorCode::TOPIC_AUTHORIZATION_FAILED, &["report", "refresh"]),
    ];
    for (start, offset, code, expected) in table {
        Script::run(resetter, |script| {
            let asked = vec![want(0, Some((1, 3)), *start)];
            script.input(Input::Wanted(asked.clone()));
            script.actions();

            script.input(Input::Answered { asked, answer: answer(&[(0, *offset, *code)]) });

            assert_eq!(words(script), *expected, "{start:?}, {offset}, {code}");
        });
    }
}

#[test]
fn a_failed_one_is_asked_again_with_the_epoch_of_the_day() {
    Script::run(resetter, |script| {
        let asked = vec![want(0, Some((1, 3)), Start::Latest)];
        script.input(Input::Wanted(asked.clone()));
        script.actions();

        let answer = answer(&[(0, -1, ErrorCode::FENCED_LEADER_EPOCH)]);
        script.input(Input::Answered { asked, answer });
        script.input(Input::Wanted(vec![want(0, Some((2, 4)), Start::Latest)])).after(MS * 200);

        assert_eq!(words(script), ["refresh", "ask 2 [(0, -1)] epoch 4"]);
    });
}

#[test]
fn a_leaderless_partition_asks_for_metadata_now_and_then() {
    Script::run(resetter, |script| {
        script.input(Input::Wanted(vec![want(0, None, Start::Latest)])).after(MS * 10_000);

        let words = words(script);
        assert!((5..=20).contains(&words.len()) && words.iter().all(|word| word == "refresh"), "{words:?}");
    });
}

#[test]
fn nothing_is_asked_once_nobody_wants_it() {
    Script::run(resetter, |script| {
        let asked = vec![want(0, Some((1, 3)), Start::Latest)];
        script.input(Input::Wanted(asked.clone()));
        script.actions();

        script.input(Input::Answered { asked, answer: Err(KrafkaError::timeout("no answer")) });
        script.close(Input::Wanted(Vec::new()), |resetter| resetter.attempts.wanted.len());

        assert_eq!(words(script), ["refresh"]);
    });
}
