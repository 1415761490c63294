//! Leaders that move, and move again.

use super::*;
use crate::consumer::penalties::HASTY_MOVES;

/// Partition 0, in an epoch in which a node leads it.
fn led(node: i32, leader_epoch: i32) -> Input {
    let partitions = vec![Want { leader: node, leader_epoch, ..want(0) }];
    Input::Wanted { nodes: BTreeMap::from([(node, NodeWants { partitions, held_back: false })]), room: ROOM }
}

/// Asks the leader of an epoch, which leads no more. Says whether it was asked at once.
fn is_hasty(script: &mut Script<Fetcher>, epoch: i32) -> bool {
    let node = epoch % 3 + 1;
    script.input(led(node, epoch));
    let at_once = words(script);
    if at_once.is_empty() {
        script.after(MS * 1_500);
        assert_eq!(words(script).len(), 1, "it is asked after a while");
    }
    script.input(answer(node, vec![data(0, ErrorCode::NOT_LEADER_OR_FOLLOWER)]));
    script.actions();
    !at_once.is_empty()
}

/// LE-03, LE-27: each names another one that is news, for ever. A few are followed at once, as elections may be fast.
#[test]
fn a_partition_that_moves_for_ever_is_followed_at_a_pace() {
    Script::run(fetcher, |script| {
        let hasty = (3..53).filter(|&epoch| is_hasty(script, epoch)).count();
        assert_eq!(hasty, 1 + HASTY_MOVES as usize);

        script.input(led(1, 60)).after(MS * 1_500).input(answer(1, vec![data(0, ErrorCode::NONE)]));
        script.actions();
        let hasty = (61..81).filter(|&epoch| is_hasty(script, epoch)).count();

        assert_eq!(hasty, 1 + HASTY_MOVES as usize, "it was read well in between");
    });
}

/// However often it has failed where it was led before.
#[test]
fn a_new_leader_is_asked_at_once_after_a_long_failure_of_the_old_one() {
    Script::run(fetcher, |script| {
        for _ in 0..20 {
            is_hasty(script, 3);
        }

        assert!(is_hasty(script, 4));
    });
}
