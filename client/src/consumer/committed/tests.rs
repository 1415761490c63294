//! Committed offsets by script: found, absent, not told.

use std::time::Duration;

use krafka_protocol::api::offset_fetch::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};
use krafka_protocol::script::Script;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn loader(_: Instant) -> Loader {
    Loader::new(Str::from("g"), Backoff::new(MS * 100, MS * 1_000), Rng::new(1))
}

fn want(partition: i32) -> Want {
    Want { claim: Claim { slot: partition as usize, generation: 1 }, topic: Str::from("t"), partition }
}

fn answer(code: ErrorCode, partitions: &[(i32, i64, ErrorCode)]) -> Result<OffsetFetchResponse, KrafkaError> {
    let partition = |&(partition_index, committed_offset, code): &(i32, i64, ErrorCode)| {
        let (error_code, committed_leader_epoch) = (code.0, 4);
        OffsetFetchResponsePartitions {
            partition_index,
            committed_offset,
            committed_leader_epoch,
            error_code,
            ..OffsetFetchResponsePartitions::default()
        }
    };
    let topic = OffsetFetchResponseTopics {
        name: Str::from("t"),
        partitions: partitions.iter().map(partition).collect(),
        ..OffsetFetchResponseTopics::default()
    };
    let group = OffsetFetchResponseGroup { group_id: Str::from("g"), topics: vec![topic], error_code: code.0 };
    Ok(OffsetFetchResponse { groups: vec![group], ..OffsetFetchResponse::default() })
}

fn words(script: &mut Script<Loader>) -> Vec<String> {
    let word = |action| match action {
        Action::Ask { asked, .. } => {
            format!("ask {:?}", asked.iter().map(|want| want.partition).collect::<Vec<_>>())
        }
        Action::Found { claim, position } => format!("found {} {} {}", claim.slot, position.offset, position.epoch),
        Action::Nothing { claim } => format!("nothing {}", claim.slot),
        Action::Refresh { .. } => "refresh".to_owned(),
        Action::Report(_) => "report".to_owned(),
    };
    script.actions().into_iter().map(word).collect()
}

#[test]
fn an_offset_carries_its_epoch_and_none_is_told_from_zero() {
    Script::run(loader, |script| {
        script.input(Input::Wanted(vec![want(0), want(1)]));
        let partitions = [(0, 0, ErrorCode::NONE), (1, -1, ErrorCode::NONE)];

        script.input(Input::Answered { asked: vec![want(0), want(1)], answer: answer(ErrorCode::NONE, &partitions) });

        assert_eq!(words(script), ["ask [0, 1]", "found 0 0 4", "nothing 1"]);
    });
}

/// Taken for "nothing committed", it would make the reset policy skip or repeat records.
#[test]
fn what_is_left_out_or_unstable_is_asked_again() {
    for partitions in [&[][..], &[(0, -1, ErrorCode::UNSTABLE_OFFSET_COMMIT)][..]] {
        Script::run(loader, |script| {
            script.input(Input::Wanted(vec![want(0)]));
            script.actions();

            let answer = answer(ErrorCode::NONE, partitions);
            script.input(Input::Answered { asked: vec![want(0)], answer }).input(Input::Wanted(vec![want(0)]));
            script.actions();
            script.after(MS * 200);

            assert_eq!(words(script), ["ask [0]"], "{partitions:?}");
        });
    }
}

#[test]
fn a_lack_of_permission_is_reported_and_retried() {
    Script::run(loader, |script| {
        script.input(Input::Wanted(vec![want(0)]));
        script.actions();

        let answer = answer(ErrorCode::GROUP_AUTHORIZATION_FAILED, &[]);
        script.input(Input::Answered { asked: vec![want(0)], answer }).input(Input::Wanted(vec![want(0)]));
        script.after(MS * 200);

        assert_eq!(words(script), ["report", "ask [0]"]);
    });
}
