//! The replica that a partition's leader sends its consumer to, because it is in the consumer's rack (KIP-392).
//!
//! The leader's word holds for a time, as long as it is the leader. Then it is asked again, and says so again, or sends
//! records itself.

use std::time::Instant;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preferred {
    node: i32,
    /// Who said so: the leader, and its epoch.
    leader: (i32, i32),
    until: Instant,
}

impl Preferred {
    pub(crate) fn new(node: i32, leader: (i32, i32), until: Instant) -> Self {
        Self { node, leader, until }
    }

    pub(crate) fn node(&self) -> i32 {
        self.node
    }

    /// The node to fetch from, if the leader's word still holds.
    pub(crate) fn under(&self, leader: (i32, i32), now: Instant) -> Option<i32> {
        (self.leader == leader && now < self.until).then_some(self.node)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_leaders_word_holds_for_a_time_and_while_it_leads() {
        #[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
        let start = Instant::now();
        let lease = Duration::from_secs(300);
        let preferred = Preferred::new(2, (1, 7), start + lease);

        assert_eq!(preferred.under((1, 7), start), Some(2));
        assert_eq!(preferred.under((1, 7), start + lease - Duration::from_millis(1)), Some(2));
        assert_eq!(preferred.under((1, 7), start + lease), None);
        assert_eq!(preferred.under((1, 8), start), None, "it leads anew: it may know other replicas");
        assert_eq!(preferred.under((3, 8), start), None, "another leads");
    }
}
