//! What the network does to frames on their way between a client and a node.
//!
//! It is TCP's network: nothing is lost for good and nothing overtakes what went before it on its connection. What a
//! link loses is sent again, so that loss is time; what a partition holds arrives once the partition is over.
//!
//! ```text
//!   sent ──▶ waits for what goes before it ──▶ bytes ÷ bandwidth ──▶ + latency ± jitter, + retransmissions
//!                                                                        └──▶ partition: held ──▶ arrives
//! ```
//!
//! Other than on a real network, each connection has the whole of its bandwidth, and a frame arrives at a node in one
//! piece. A connection is made in no time, unless its link is cut.

use std::time::Duration;

use krafka_protocol::Str;
use serde::{Deserialize, Serialize};

use super::action::Action;
use crate::rng::Rng;

/// Which way something goes on a link between a node and its peer: a client, or another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Towards {
    /// To the node: requests.
    Node,
    /// To the peer: answers.
    Peer,
}

/// A frame, or a part of one, that sets out.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    pub(crate) connection: u64,
    pub(crate) node: i32,
    /// As far as the connection has told.
    pub(crate) client_id: Option<Str>,
    pub(crate) towards: Towards,
    pub(crate) bytes: usize,
}

/// How a frame gets through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passage {
    /// How much later it arrives than it would.
    pub(crate) delay: Duration,
    /// How many bytes pass in a second; `None` for all at once.
    pub(crate) bytes_per_second: Option<u64>,
}

/// The longest that a frame is late: whoever waits longer waits for ever.
const MAX_DELAY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How much of a frame a network carries in one packet.
const PACKET_BYTES: usize = 1460;

/// How often one packet is lost in a row at most: on a real link the connection is dead then, after a quarter of an
/// hour.
const MAX_LOSSES: u32 = 12;

/// The most packets of one frame whose fate is drawn: more would only repeat the worst.
const MAX_DRAWS: usize = 10_000;

impl Passage {
    /// Adds what a rule does to the frame.
    pub(super) fn suffer(&mut self, action: &Action, bytes: usize, chance: &mut Rng) {
        match action {
            Action::Latency { time, jitter } => {
                let spread = u64::try_from(jitter.as_micros()).unwrap_or(u64::MAX / 4);
                let drawn = Duration::from_micros(chance.below(2 * spread.min(u64::MAX / 4) + 1));
                self.add((*time).min(MAX_DELAY).saturating_add(drawn).saturating_sub(*jitter));
            }
            Action::Bandwidth { bytes_per_second } => {
                let slowest = self.bytes_per_second.unwrap_or(u64::MAX).min(*bytes_per_second);
                self.bytes_per_second = Some(slowest);
            }
            Action::Loss { probability, retransmit } => {
                self.add(retransmissions(bytes, *probability, *retransmit, chance));
            }
            _ => {}
        }
    }

    fn add(&mut self, delay: Duration) {
        self.delay = self.delay.saturating_add(delay).min(MAX_DELAY);
    }

    /// How long so many bytes take to set out.
    pub(crate) fn time_for(&self, bytes: usize) -> Duration {
        let Some(rate) = self.bytes_per_second else { return Duration::ZERO };
        let nanos = bytes as u128 * 1_000_000_000 / u128::from(rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// How much later a frame is whole because packets of it were lost. Each is sent again after a time that doubles with
/// each loss; the packets' times run beside each other, so that the worst one counts.
fn retransmissions(bytes: usize, probability: f64, timeout: Duration, chance: &mut Rng) -> Duration {
    let packets = bytes.div_ceil(PACKET_BYTES).clamp(1, MAX_DRAWS);
    let mut worst = 0;
    for _ in 0..packets {
        let mut losses = 0;
        while losses < MAX_LOSSES && chance.hits(probability) {
            losses += 1;
        }
        worst = worst.max(losses);
    }
    timeout.saturating_mul((1 << worst) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn passage(action: &Action, bytes: usize, seed: u64) -> Passage {
        let mut passage = Passage::default();
        passage.suffer(action, bytes, &mut Rng::stream(seed, "faults"));
        passage
    }

    #[test]
    fn jitter_spreads_the_latency_to_both_sides() {
        let action = Action::Latency { time: 100 * MS, jitter: 20 * MS };
        let delays: Vec<_> = (0..1_000).map(|seed| passage(&action, 10, seed).delay).collect();

        let (least, most) = (delays.iter().min().expect("some"), delays.iter().max().expect("some"));
        assert!((80 * MS..85 * MS).contains(least) && *most > 115 * MS && *most <= 120 * MS, "{least:?} {most:?}");
    }

    #[test]
    fn latency_is_never_less_than_nothing() {
        let action = Action::Latency { time: MS, jitter: 50 * MS };
        assert!((0..100).any(|seed| passage(&action, 10, seed).delay == Duration::ZERO));
    }

    #[test]
    fn lost_packets_cost_retransmission_timeouts_that_double() {
        let action = Action::Loss { probability: 0.5, retransmit: 200 * MS };
        let delays: Vec<_> = (0..1_000).map(|seed| passage(&action, 10, seed).delay).collect();

        let share = |delay: Duration| delays.iter().filter(|found| **found == delay).count();
        assert!((450..550).contains(&share(Duration::ZERO)), "{}", share(Duration::ZERO));
        assert!((200..300).contains(&share(200 * MS)), "{}", share(200 * MS));
        assert!((90..160).contains(&share(600 * MS)), "{}", share(600 * MS));
    }

    #[test]
    fn large_frame_is_hit_more_often() {
        let action = Action::Loss { probability: 0.01, retransmit: 200 * MS };
        let hit = |bytes| (0..1_000).filter(|seed| !passage(&action, bytes, *seed).delay.is_zero()).count();
        assert!(hit(100) < 30 && hit(1_000_000) > 990, "{} {}", hit(100), hit(1_000_000));
    }

    #[test]
    fn narrowest_of_two_links_counts() {
        let mut passage = Passage::default();
        for bytes_per_second in [2_000, 1_000, 5_000] {
            passage.suffer(&Action::Bandwidth { bytes_per_second }, 1, &mut Rng::stream(0, "faults"));
        }
        assert_eq!(passage.time_for(500), 500 * MS);
    }
}
