//! Eligible leader replicas (KIP-966): those that may lead although they are not in sync.
//!
//! A partition with fewer replicas in sync than `min.insync.replicas` commits nothing, so that who falls out of sync
//! then still has all that was ever committed, and may lead again when nobody is in sync any more. The last leader is
//! remembered besides: it leads again, uncleanly, where nobody else may.
//!
//! ```text
//!   in sync ──falls out, too few are left──▶ eligible ──dies without writing to disk that it stopped──▶ last known
//!      ▲                                        │ nobody is in sync, and it is up                          │
//!      └────────────────────────────────────────┴──────────── the last leader, and nobody is eligible ─────┘
//! ```

/// The replicas of a partition that are not in sync and may lead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Eligible {
    /// Those that have all that was committed.
    pub(crate) replicas: Vec<i32>,
    /// Those of which that is no longer known; while nobody leads, the last leader alone.
    pub(crate) last_known: Vec<i32>,
}

impl Eligible {
    /// Follows a change of the replicas in sync, of which `least` are needed to commit anything.
    pub(crate) fn follow(&mut self, before: &[i32], now: &[i32], least: usize) {
        if now.len() >= least {
            self.clear();
            return;
        }
        let mut candidates: Vec<i32> = self.replicas.iter().chain(before).copied().collect();
        candidates.sort_unstable();
        candidates.dedup();
        self.replicas = candidates.iter().copied().filter(|node| !now.contains(node)).collect();
        self.last_known.retain(|node| !now.contains(node) && !candidates.contains(node));
    }

    /// Remembers who led when nobody in sync was left to lead.
    pub(crate) fn remember(&mut self, leader: Option<i32>) {
        self.last_known = leader.into_iter().collect();
    }

    /// A replica is back that may have lost what it had: it died, rather than being stopped.
    pub(crate) fn distrust(&mut self, node: i32, has_leader: bool) {
        if !self.replicas.contains(&node) {
            return;
        }
        self.replicas.retain(|other| *other != node);
        // While nobody leads, only the last leader is remembered.
        if (has_leader || self.last_known.len() != 1) && !self.last_known.contains(&node) {
            self.last_known.push(node);
        }
    }

    /// Forgets all of them: as many as are needed are in sync, or what they have counts no longer.
    pub(crate) fn clear(&mut self) {
        self.replicas.clear();
        self.last_known.clear();
    }

    /// Who leads again, uncleanly, if nobody is in sync or eligible.
    pub(crate) fn last_leader(&self) -> Option<i32> {
        match self.last_known[..] {
            [leader] if self.replicas.is_empty() => Some(leader),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_falls_out_of_sync_is_eligible_while_too_few_are_left() {
        let mut eligible = Eligible::default();

        eligible.follow(&[1, 2, 3], &[1, 2], 2);
        assert!(eligible.replicas.is_empty());
        eligible.follow(&[1, 2], &[1], 2);
        assert_eq!(eligible.replicas, [2]);
        eligible.follow(&[1], &[], 2);
        assert_eq!(eligible.replicas, [1, 2]);
        eligible.follow(&[], &[2], 2);
        assert_eq!(eligible.replicas, [1]);
        eligible.follow(&[2], &[2, 3], 2);
        assert!(eligible.replicas.is_empty());
    }

    #[test]
    fn who_died_is_known_and_not_eligible_any_more() {
        let mut eligible = Eligible::default();
        eligible.follow(&[1], &[], 1);
        eligible.remember(Some(1));
        assert_eq!((&eligible.replicas[..], eligible.last_leader()), (&[1][..], None));

        eligible.distrust(1, false);

        assert_eq!((&eligible.replicas[..], eligible.last_leader()), (&[][..], Some(1)));
    }

    #[test]
    fn the_last_leader_does_not_lead_while_another_is_eligible() {
        let mut eligible = Eligible::default();
        eligible.follow(&[1, 2], &[2], 2);
        eligible.follow(&[2], &[], 2);
        eligible.remember(Some(2));

        eligible.distrust(2, false);

        assert_eq!((&eligible.replicas[..], &eligible.last_known[..]), (&[1][..], &[2][..]));
        assert_eq!(eligible.last_leader(), None);
    }
}
