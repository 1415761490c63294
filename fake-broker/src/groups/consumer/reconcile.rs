//! One step of a member towards its target.
//!
//! A member comes to the target's epoch only when it has given up all that the target does not have; until then it
//! stays in its epoch. What others still hold it gets when they have given it up. So no partition is ever with two.
//!
//! ```text
//!              must give up                     has given up
//!     Stable ───────────────▶ UnrevokedPartitions ──────────▶ Stable, or
//!        └──── others still hold part of the target ────────▶ UnreleasedPartitions ──── they let go ───▶ Stable
//! ```

use std::collections::BTreeSet;

use krafka_protocol::Uuid;
use krafka_protocol::api::consumer_group_heartbeat::TopicPartitions;

use super::member::{Held, Member, MemberState, Partitions};

/// What a member is reconciled with.
pub(super) struct Target<'a> {
    pub(super) epoch: i32,
    pub(super) partitions: &'a Partitions,
    /// The topics that the member subscribes to now: a target may be older than that.
    pub(super) subscribed: &'a BTreeSet<Uuid>,
    /// Whether the member has just changed what it subscribes to.
    pub(super) has_changed: bool,
    /// What the member says that it holds; `None` if it does not say.
    pub(super) owned: Option<&'a [TopicPartitions]>,
}

/// Takes the step. `is_held` tells whether any member holds a partition.
pub(super) fn reconcile(member: &mut Member, target: &Target<'_>, is_held: impl Fn(Uuid, i32) -> bool) {
    let must_revoke = |revoking: &Held| still_owns(target.owned, revoking);
    match member.state {
        MemberState::Stable if member.epoch != target.epoch => next(member, target, is_held),
        MemberState::Stable if target.has_changed => drop_unsubscribed(member, target),
        MemberState::Stable => {}
        MemberState::UnrevokedPartitions if must_revoke(&member.revoking) => {
            if target.has_changed {
                drop_unsubscribed(member, target);
            }
        }
        MemberState::UnrevokedPartitions | MemberState::UnreleasedPartitions => next(member, target, is_held),
    }
}

/// Whether a member still holds some of these, for all that is known: one that does not say does.
fn still_owns(owned: Option<&[TopicPartitions]>, revoking: &Held) -> bool {
    let Some(owned) = owned else { return true };
    owned.iter().any(|topic| {
        revoking.get(&topic.topic_id).is_some_and(|held| topic.partitions.iter().any(|index| held.contains_key(index)))
    })
}

/// Takes topics away at once that the member does not subscribe to any more.
fn drop_unsubscribed(member: &mut Member, target: &Target<'_>) {
    let gone: Vec<Uuid> = member.assigned.keys().filter(|topic| !target.subscribed.contains(*topic)).copied().collect();
    if gone.is_empty() {
        return;
    }
    let mut revoking = member.revoking.clone();
    for topic in gone {
        let indexes = member.assigned.remove(&topic).unwrap_or_default();
        revoking.entry(topic).or_default().extend(indexes);
    }
    let epoch = member.epoch;
    member.advance(epoch);
    if still_owns(target.owned, &revoking) {
        member.state = MemberState::UnrevokedPartitions;
        member.revoking = revoking;
    }
}

/// Computes what the member is to hold next.
fn next(member: &mut Member, target: &Target<'_>, is_held: impl Fn(Uuid, i32) -> bool) {
    let mut assigned = Held::new();
    let mut revoking = Held::new();
    let mut pending = Partitions::new();
    let mut waits = false;
    let topics: BTreeSet<Uuid> = target.partitions.keys().chain(member.assigned.keys()).copied().collect();
    let nothing = BTreeSet::new();
    for topic in topics {
        let is_subscribed = target.subscribed.contains(&topic);
        let wanted = target.partitions.get(&topic).filter(|_| is_subscribed).unwrap_or(&nothing);
        let current = member.assigned.get(&topic);
        for (index, epoch) in current.into_iter().flatten() {
            let into = if wanted.contains(index) { &mut assigned } else { &mut revoking };
            into.entry(topic).or_default().insert(*index, *epoch);
        }
        for index in wanted.iter().filter(|index| !current.is_some_and(|current| current.contains_key(*index))) {
            // What this member is giving up itself it can have back: nobody else can hold it meanwhile.
            let own = member.revoking.get(&topic).is_some_and(|held| held.contains_key(index));
            if is_held(topic, *index) && !own {
                waits = true;
            } else {
                pending.entry(topic).or_default().insert(*index);
            }
        }
    }
    if !revoking.is_empty() && still_owns(target.owned, &revoking) {
        let epoch = member.epoch;
        member.advance(epoch);
        member.state = MemberState::UnrevokedPartitions;
        member.assigned = assigned;
        member.revoking = revoking;
        return;
    }
    for (topic, indexes) in pending {
        assigned.entry(topic).or_default().extend(indexes.into_iter().map(|index| (index, target.epoch)));
    }
    member.advance(target.epoch);
    member.state = if waits { MemberState::UnreleasedPartitions } else { MemberState::Stable };
    member.assigned = assigned;
    member.revoking = Held::new();
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: Uuid = Uuid([1; 16]);
    const OTHER: Uuid = Uuid([2; 16]);

    fn held(indexes: &[i32], epoch: i32) -> Held {
        if indexes.is_empty() { Held::new() } else { [(TOPIC, indexes.iter().map(|i| (*i, epoch)).collect())].into() }
    }

    fn member(assigned: &[i32], epoch: i32) -> Member {
        Member { epoch, assigned: held(assigned, epoch), ..Member::new("m".into()) }
    }

    fn owned(indexes: &[i32]) -> Vec<TopicPartitions> {
        vec![TopicPartitions { topic_id: TOPIC, partitions: indexes.to_vec() }]
    }

    /// Takes a step towards these partitions at epoch 5; others hold what is in `held`.
    fn step(member: &mut Member, wanted: &[i32], owned: Option<&[TopicPartitions]>, held: &[i32]) {
        let partitions: Partitions = [(TOPIC, wanted.iter().copied().collect())].into();
        let subscribed = [TOPIC].into();
        let target = Target { epoch: 5, partitions: &partitions, subscribed: &subscribed, has_changed: false, owned };
        reconcile(member, &target, |_, index| held.contains(&index));
    }

    #[test]
    fn free_partitions_come_at_once() {
        let mut new = member(&[], 0);

        step(&mut new, &[0, 1], Some(&[]), &[]);

        assert_eq!((new.state, new.epoch, new.assigned), (MemberState::Stable, 5, held(&[0, 1], 5)));
    }

    #[test]
    fn what_others_hold_is_waited_for() {
        let mut new = member(&[], 0);

        step(&mut new, &[0, 1], Some(&[]), &[1]);
        assert_eq!((new.state, new.epoch), (MemberState::UnreleasedPartitions, 5));
        assert_eq!(new.assigned, held(&[0], 5));

        step(&mut new, &[0, 1], None, &[]);
        assert_eq!((new.state, new.assigned), (MemberState::Stable, held(&[0, 1], 5)));
    }

    #[test]
    fn what_is_taken_away_must_be_given_up_first() {
        let mut old = member(&[0, 1], 4);

        step(&mut old, &[0], None, &[]);
        assert_eq!((old.state, old.epoch), (MemberState::UnrevokedPartitions, 4));
        assert_eq!((&old.assigned, &old.revoking), (&held(&[0], 4), &held(&[1], 4)));

        step(&mut old, &[0], Some(&owned(&[0, 1])), &[]);
        assert_eq!(old.state, MemberState::UnrevokedPartitions, "it still has it");
        step(&mut old, &[0], None, &[]);
        assert_eq!(old.state, MemberState::UnrevokedPartitions, "it does not say");

        step(&mut old, &[0], Some(&owned(&[0])), &[]);
        assert_eq!((old.state, old.epoch, old.previous_epoch), (MemberState::Stable, 5, 4));
        assert_eq!((old.assigned, old.revoking), (held(&[0], 4), Held::new()));
    }

    #[test]
    fn partition_on_its_way_out_may_come_back_to_its_holder() {
        let mut old = member(&[0, 1], 4);
        step(&mut old, &[0], None, &[]);

        step(&mut old, &[0, 1], Some(&owned(&[0])), &[0, 1]);

        assert_eq!((old.state, old.epoch), (MemberState::Stable, 5));
        assert_eq!(old.assigned[&TOPIC].keys().copied().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn topics_that_are_not_subscribed_any_more_go_before_the_next_target() {
        let mut old = member(&[0], 5);
        let (partitions, subscribed) = ([(TOPIC, [0].into())].into(), [OTHER].into());
        let target =
            |owned| Target { epoch: 5, partitions: &partitions, subscribed: &subscribed, has_changed: true, owned };

        reconcile(&mut old, &target(None), |_, _| false);
        assert_eq!(
            (old.state, &old.assigned, &old.revoking),
            (MemberState::UnrevokedPartitions, &Held::new(), &held(&[0], 5))
        );

        let mut quick = member(&[0], 5);
        reconcile(&mut quick, &target(Some(&[])), |_, _| false);
        assert_eq!((quick.state, quick.assigned, quick.revoking), (MemberState::Stable, Held::new(), Held::new()));
    }
}
