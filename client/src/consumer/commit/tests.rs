//! Commits by script: their order, their retries, their deadlines.

use std::time::Duration;

use krafka_protocol::api::offset_commit::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use krafka_protocol::script::Script;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn committer(_: Instant) -> Committer {
    Committer::new(Str::from("g"), Backoff::new(MS * 100, MS * 1_000), Rng::new(1))
}

fn requested(script: &Script<Committer>, ticket: u64, offset: i64) -> Input {
    Input::Requested {
        ticket: Some(Ticket(ticket)),
        offsets: Offsets::from([(TopicPartition::new("t", 0), OffsetAndMetadata::new(offset))]),
        identity: Identity { generation: 7, member_id: Str::from("m"), group_instance_id: None },
        deadline: script.now() + MS * 5_000,
        awaits_partitions: true,
    }
}

fn answered(codes: &[ErrorCode]) -> Input {
    let partitions = codes
        .iter()
        .enumerate()
        .map(|(index, code)| OffsetCommitResponsePartition { partition_index: index as i32, error_code: code.0 });
    let topic = OffsetCommitResponseTopic {
        name: Str::from("t"),
        partitions: partitions.collect(),
        ..OffsetCommitResponseTopic::default()
    };
    Input::Answered(Ok(OffsetCommitResponse { topics: vec![topic], ..OffsetCommitResponse::default() }))
}

fn words(script: &mut Script<Committer>) -> Vec<String> {
    let word = |action| match action {
        Action::Send(request) => format!("send {}", request.topics[0].partitions[0].committed_offset),
        Action::Done { ticket, result: Ok(()) } => format!("done {}", ticket.map_or(-1, |ticket| ticket.0 as i64)),
        Action::Done { ticket, result: Err(KrafkaError::Timeout { .. }) } => {
            format!("late {}", ticket.map_or(-1, |ticket| ticket.0 as i64))
        }
        Action::Done { ticket, result: Err(_) } => format!("failed {}", ticket.map_or(-1, |ticket| ticket.0 as i64)),
        Action::Ousted { .. } => "ousted".to_owned(),
        Action::Refresh { .. } => "refresh".to_owned(),
    };
    script.actions().into_iter().map(word).collect()
}

/// Were the second sent while the first is retried, the first could land last and take the group back.
#[test]
fn a_retried_commit_never_lands_after_a_newer_one() {
    Script::run(committer, |script| {
        script.input(requested(script, 1, 10));
        script.input(requested(script, 2, 20));
        assert_eq!(words(script), ["send 10"]);

        script.input(answered(&[ErrorCode::COORDINATOR_LOAD_IN_PROGRESS])).after(MS * 200);
        assert_eq!(words(script), ["send 10"]);
        script.input(answered(&[ErrorCode::NONE])).input(answered(&[ErrorCode::NONE]));

        assert_eq!(words(script), ["done 1", "send 20", "done 2"]);
    });
}

#[test]
fn each_code_is_handled_as_its_kind() {
    let table: &[(ErrorCode, &[&str])] = &[
        (ErrorCode::NONE, &["done 1"]),
        (ErrorCode::COORDINATOR_NOT_AVAILABLE, &["send 10"]),
        (ErrorCode::NOT_COORDINATOR, &["send 10"]),
        (ErrorCode::REBALANCE_IN_PROGRESS, &["send 10"]),
        (ErrorCode::REQUEST_TIMED_OUT, &["send 10"]),
        (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, &["refresh", "send 10"]),
        (ErrorCode::UNKNOWN_TOPIC_ID, &["refresh", "send 10"]),
        (ErrorCode::UNKNOWN_MEMBER_ID, &["ousted", "failed 1"]),
        (ErrorCode::ILLEGAL_GENERATION, &["ousted", "failed 1"]),
        (ErrorCode::FENCED_INSTANCE_ID, &["ousted", "failed 1"]),
        (ErrorCode::OFFSET_METADATA_TOO_LARGE, &["failed 1"]),
        (ErrorCode::GROUP_AUTHORIZATION_FAILED, &["failed 1"]),
        (ErrorCode::TOPIC_AUTHORIZATION_FAILED, &["failed 1"]),
        (ErrorCode::INVALID_COMMIT_OFFSET_SIZE, &["failed 1"]),
    ];
    for (code, expected) in table {
        Script::run(committer, |script| {
            script.input(requested(script, 1, 10));
            script.actions();

            script.input(answered(&[*code])).after(MS * 500);

            assert_eq!(words(script), *expected, "{code}");
        });
    }
}

/// A topic that came back with fewer partitions held up rebalances for a minute. What nobody asked for is not repeated
/// for partitions that are not there; all else is.
#[test]
fn what_the_user_did_not_ask_for_waits_for_no_partition() {
    let table = [
        (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, vec!["refresh", "failed 1"]),
        (ErrorCode::UNKNOWN_TOPIC_ID, vec!["refresh", "failed 1"]),
        (ErrorCode::COORDINATOR_NOT_AVAILABLE, vec!["send 10"]),
        (ErrorCode::REBALANCE_IN_PROGRESS, vec!["send 10"]),
    ];
    for (code, expected) in table {
        Script::run(committer, |script| {
            let mut request = requested(script, 1, 10);
            if let Input::Requested { awaits_partitions, .. } = &mut request {
                *awaits_partitions = false;
            }
            script.input(request);
            script.actions();

            script.input(answered(&[code])).after(MS * 500);

            assert_eq!(words(script), expected, "{code}");
        });
    }
}

#[test]
fn one_partition_that_is_refused_fails_the_commit() {
    Script::run(committer, |script| {
        script.input(requested(script, 1, 10));
        script.actions();

        script.input(answered(&[ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, ErrorCode::OFFSET_METADATA_TOO_LARGE]));

        assert_eq!(words(script), ["failed 1"]);
    });
}

#[test]
fn every_commit_is_answered_by_its_deadline() {
    Script::run(committer, |script| {
        script.input(requested(script, 1, 10));
        script.input(requested(script, 2, 20)).after(MS * 5_000);
        assert_eq!(words(script), ["send 10", "late 1", "late 2"]);

        script.input(answered(&[ErrorCode::COORDINATOR_LOAD_IN_PROGRESS])).after(MS * 5_000);

        assert_eq!(words(script), [""; 0], "nobody waits for it any more");
        assert!(script.machine().is_idle());
    });
}

#[test]
fn a_commit_behind_a_silent_one_waits_for_its_end() {
    Script::run(committer, |script| {
        script.input(requested(script, 1, 10)).after(MS * 5_000);
        script.input(requested(script, 2, 20));
        assert_eq!(words(script), ["send 10", "late 1"]);

        script.input(Input::Answered(Err(KrafkaError::timeout("no answer"))));

        assert_eq!(words(script), ["send 20"]);
    });
}

#[test]
fn nothing_to_commit_is_done_at_once() {
    Script::run(committer, |script| {
        let Input::Requested { ticket, identity, deadline, .. } = requested(script, 1, 0) else { unreachable!() };

        script.input(Input::Requested { ticket, offsets: Offsets::new(), identity, deadline, awaits_partitions: true });

        assert_eq!(words(script), ["done 1"]);
    });
}
