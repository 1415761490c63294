//! What happens to records between the buffer and the user: a rebalance, a seek, an end of the range.

use std::time::Duration;

use bytes::Bytes;

use super::*;

#[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
fn some_time() -> Instant {
    Instant::now()
}

/// Partition t-0 in the state of being fetched at offset 0, with so many bytes buffered.
fn core(bytes: usize) -> (Core, Claim) {
    let mut core = Core::new(100, 1_000);
    core.assign(TopicPartition::new("t", 0), Stage::Loading);
    core.subscription.settle(0, Position::new(0, -1));
    let claim = core.subscription.iter().next().expect("one partition").0;
    core.buffer(fetched(claim, 0, bytes));
    (core, claim)
}

fn fetched(claim: Claim, from: i64, bytes: usize) -> Fetched {
    Fetched {
        claim,
        from: Position::new(from, if from == 0 { -1 } else { 2 }),
        next: Position::new(from + 10, 2),
        records: Bytes::from(vec![0; bytes]),
        high_watermark: 50,
    }
}

fn position(core: &Core) -> i64 {
    core.subscription.partition(&TopicPartition::new("t", 0)).expect("assigned").position.offset
}

#[test]
fn records_of_a_partition_that_was_taken_away_meanwhile_are_not_handed_out() {
    let (mut core, _) = core(10);
    let (slot, chunk) = core.take().expect("buffered");

    core.unassign_all();
    let (is_handed_out, _) = core.delivered(slot, chunk, false);

    assert!(!is_handed_out);
    assert_eq!(core.buffer.bytes(), 0);
}

#[test]
fn records_from_before_a_seek_are_not_handed_out() {
    let (mut core, _) = core(10);
    let (slot, chunk) = core.take().expect("buffered");

    core.seek(slot, Position::new(7, -1));
    let (is_handed_out, _) = core.delivered(slot, chunk, true);

    assert!(!is_handed_out);
    assert_eq!(position(&core), 7);
}

#[test]
fn nothing_is_handed_out_once_a_poll_has_agreed_to_a_rebalance() {
    let (mut core, _) = core(10);
    let (slot, chunk) = core.take().expect("buffered");
    core.gate = Gate::Asked;

    let must_tell = core.enter();
    let (is_handed_out, _) = core.delivered(slot, chunk, true);

    assert!(must_tell && !is_handed_out);
    assert_eq!((core.gate, position(&core)), (Gate::Shut, 0));
    assert!(core.take().is_none());
}

#[test]
fn a_call_that_begins_to_wait_agrees_to_a_rebalance() {
    let (mut core, _) = core(0);
    core.gate = Gate::Asked;

    assert!(core.begin_waiting());
    assert_eq!((core.gate, core.waiting), (Gate::Shut, 1));
}

#[test]
fn an_answer_for_an_offset_that_was_fetched_already_is_dropped() {
    let (mut core, claim) = core(10);

    core.buffer(fetched(claim, 0, 10));
    core.buffer(fetched(claim, 10, 5));

    assert_eq!(core.buffer.bytes(), 15);
}

#[test]
fn a_partition_is_wanted_while_its_buffer_has_room() {
    let (mut core, claim) = core(99);
    core.subscription.held(claim).expect("held").leader = Some((1, 4));

    let (nodes, room, _) = core.wanted(some_time());
    core.buffer(fetched(claim, 10, 1));
    let (full, ..) = core.wanted(some_time());

    assert_eq!((nodes[&1].partitions.len(), nodes[&1].partitions[0].position.offset, room), (1, 10, 901));
    assert!(full[&1].partitions.is_empty() && full[&1].held_back);
}

/// Partitions of one leader with so many bytes buffered of each; which of them are asked for.
fn asked_for(buffered: &[usize]) -> Vec<i32> {
    let mut core = Core::new(100, 1_000);
    for (slot, &bytes) in buffered.iter().enumerate() {
        core.assign(TopicPartition::new("t", slot as i32), Stage::Loading);
        core.subscription.settle(slot, Position::new(0, -1));
        let claim = core.subscription.iter().last().expect("just added").0;
        core.subscription.held(claim).expect("held").leader = Some((1, 4));
        core.buffer(fetched(claim, 0, bytes));
    }
    core.wanted(some_time()).0[&1].partitions.iter().map(|want| want.partition).collect()
}

#[test]
fn a_broker_is_asked_when_it_is_worth_it_or_a_partition_is_empty() {
    assert_eq!(asked_for(&[50, 100, 100]), [0; 0], "one of three could be fetched");
    assert_eq!(asked_for(&[50, 50, 100]), [0, 1]);
    assert_eq!(asked_for(&[50, 100]), [0]);
    assert_eq!(asked_for(&[0, 100, 100, 100]), [0]);
    assert_eq!(asked_for(&[100, 100]), [0; 0]);
}

/// LE-24: until the lease ends, or somebody leads anew; and then from the leader.
#[test]
fn a_partition_is_wanted_of_the_replica_that_its_leader_names() {
    let (mut core, claim) = core(0);
    core.subscription.held(claim).expect("held").leader = Some((1, 4));
    let (start, lease) = (some_time(), Duration::from_secs(300));
    let asked = |core: &Core, now| core.wanted(now).0.into_keys().collect::<Vec<_>>();

    core.prefer(claim, Preferred::new(2, (1, 4), start + lease));
    let want = core.wanted(start).0[&2].partitions[0].clone();
    assert_eq!((want.leader, want.leader_epoch), (1, 4));
    assert_eq!((asked(&core, start), asked(&core, start + lease)), (vec![2], vec![1]));

    core.subscription.held(claim).expect("held").leader = Some((1, 5));
    assert_eq!(asked(&core, start), [1]);

    core.prefer(claim, Preferred::new(2, (1, 5), start + lease));
    assert_eq!(asked(&core, start), [2]);
    core.ask_leader(claim);
    assert_eq!(asked(&core, start), [1]);
}

#[test]
fn a_seek_keeps_the_preferred_replica_and_a_new_assignment_does_not() {
    let (mut core, claim) = core(0);
    core.subscription.held(claim).expect("held").leader = Some((1, 4));
    core.prefer(claim, Preferred::new(2, (1, 4), some_time() + Duration::from_secs(300)));

    core.seek(claim.slot, Position::new(7, -1));
    assert!(core.wanted(some_time()).0.contains_key(&2));

    core.unassign_all();
    core.assign(TopicPartition::new("t", 0), Stage::Fetching);
    let claim = core.subscription.iter().next().expect("one partition").0;
    core.subscription.held(claim).expect("held").leader = Some((1, 4));
    assert!(core.wanted(some_time()).0.contains_key(&1));
}

#[test]
fn a_partition_without_leader_is_named() {
    let (core, _) = core(0);

    assert_eq!(core.wanted(some_time()).2, [Str::from("t")]);
}

/// Retention may pass what is fetched next while what was fetched before waits to be handed out.
#[test]
fn a_partition_out_of_range_is_reset_only_when_it_is_drained() {
    let (mut core, claim) = core(10);

    core.out_of_range(claim, 10);
    let before = core.to_reset().len();
    let (slot, chunk) = core.take().expect("buffered");
    core.delivered(slot, chunk, true);
    let after = core.to_reset();

    assert_eq!(before, 0);
    assert_eq!(after, [(0, TopicPartition::new("t", 0), 10)]);
}

#[test]
fn an_out_of_range_for_an_older_offset_is_ignored() {
    let (mut core, claim) = core(0);

    core.out_of_range(claim, 3);

    assert!(core.to_reset().is_empty());
}

#[test]
fn a_complaint_that_waits_is_not_repeated_and_their_number_is_bounded() {
    let mut core = Core::new(1, 1);

    for number in 0..1_000 {
        core.complain(KrafkaError::timeout(format!("complaint {}", number / 2)));
    }
    let all: Vec<_> = std::iter::from_fn(|| core.complaint()).collect();

    assert_eq!(all.len(), MAX_COMPLAINTS);
    assert_eq!((all[0].to_string(), all[1].to_string()), ("complaint 0".to_owned(), "complaint 1".to_owned()));
}

#[test]
fn the_task_is_told_once_until_it_has_looked() {
    let mut core = Core::new(1, 1);

    let told = [core.wake(), core.wake()];
    core.woke();

    assert_eq!((told, core.wake()), ([true, false], true));
}
