//! What becomes of the bytes of an answer on their way out.

use std::collections::VecDeque;
use std::time::Duration;

use krafka_protocol::Bytes;
use serde::{Deserialize, Serialize};

use super::names::millis;
use crate::rng::Rng;

/// Harm to the bytes of an answer. Several add up: what is in the bytes first, then where they end, then their pace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Damage {
    /// Writes so many bytes at a time, with a pause between. One byte at a time is a dribble; the smallest pause that a
    /// client can see is a millisecond.
    Chunk {
        /// How many bytes are written at once.
        bytes: usize,
        /// How long it takes until the next are written.
        #[serde(rename = "pause_ms", with = "millis")]
        pause: Duration,
    },
    /// Writes only the first bytes of the frame, its length included, and then closes the connection.
    Truncate {
        /// How many bytes are written.
        bytes: usize,
        /// Whether the connection is reset (RST) and not closed in order (FIN).
        #[serde(default)]
        reset: bool,
    },
    /// Flips bits of one byte of the frame.
    Flip {
        /// Which byte, counted from 0 with the four of the length; any but those four, drawn from the seed, if none is
        /// given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<usize>,
        /// The bits to flip.
        #[serde(default = "all_bits")]
        mask: u8,
    },
    /// Writes bytes in front of the frame that mean nothing, drawn from the seed.
    Garbage {
        /// How many.
        bytes: usize,
    },
    /// Announces this length instead of the frame's own.
    Length {
        /// The length.
        length: i32,
    },
    /// Keeps the frame until the connection's next answer and writes both at once, or until this time has passed.
    Coalesce {
        /// For how long at most.
        #[serde(rename = "within_ms", with = "millis")]
        within: Duration,
    },
}

/// One step of writing a damaged answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write these bytes.
    Write(Bytes),
    /// Wait.
    Pause(Duration),
    /// Close the connection when all is written.
    Finish,
    /// Reset the connection.
    Reset,
}

impl Damage {
    /// Says what is wrong with it.
    ///
    /// # Errors
    ///
    /// It harms nothing.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Chunk { bytes: 0, .. } => {
                Err("`chunk` writes at least one byte at a time: `bytes` is not 0".to_owned())
            }
            Self::Flip { mask: 0, .. } => Err("`flip` flips the bits of its `mask`, which is not 0".to_owned()),
            Self::Garbage { bytes: 0 } => Err("`garbage` is at least one byte: `bytes` is not 0".to_owned()),
            _ => Ok(()),
        }
    }
}

fn all_bits() -> u8 {
    0xff
}

/// How many bytes of a frame are its length.
const PREFIX: usize = 4;

/// The most bytes of garbage that one rule makes.
const MAX_GARBAGE: usize = 16 * 1024 * 1024;

/// Plans how a frame is written. What is to be coalesced is for the connection to keep.
pub(crate) fn plan(frame: Bytes, damages: &[Damage], chance: &mut Rng) -> VecDeque<Step> {
    let mut bytes = frame.to_vec();
    for damage in damages {
        match damage {
            Damage::Flip { at, mask } => {
                let body = bytes.len().saturating_sub(PREFIX).max(1) as u64;
                let at = at.unwrap_or_else(|| PREFIX + chance.below(body) as usize);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= mask;
                }
            }
            Damage::Length { length } if bytes.len() >= PREFIX => {
                bytes[..PREFIX].copy_from_slice(&length.to_be_bytes());
            }
            Damage::Garbage { bytes: count } => {
                let garbage = (0..(*count).min(MAX_GARBAGE)).map(|_| chance.next_u64() as u8);
                bytes.splice(0..0, garbage.collect::<Vec<_>>());
            }
            _ => {}
        }
    }
    let mut end = None;
    for damage in damages {
        if let Damage::Truncate { bytes: kept, reset } = damage {
            bytes.truncate(*kept);
            end = Some(if *reset { Step::Reset } else { Step::Finish });
        }
    }
    let mut steps = VecDeque::new();
    let bytes = Bytes::from(bytes);
    let chunk = damages.iter().find_map(|damage| match damage {
        Damage::Chunk { bytes, pause } => Some(((*bytes).max(1), *pause)),
        _ => None,
    });
    match chunk {
        None if bytes.is_empty() => {}
        None => steps.push_back(Step::Write(bytes)),
        Some((size, pause)) => {
            let mut rest = bytes;
            while !rest.is_empty() {
                steps.push_back(Step::Write(rest.split_to(size.min(rest.len()))));
                if !rest.is_empty() {
                    steps.push_back(Step::Pause(pause));
                }
            }
        }
    }
    steps.extend(end);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Bytes = Bytes::from_static(&[0, 0, 0, 4, 1, 2, 3, 4]);

    fn planned(damages: &[Damage]) -> Vec<Step> {
        plan(FRAME, damages, &mut Rng::stream(1, "faults")).into()
    }

    fn write(bytes: &[u8]) -> Step {
        Step::Write(Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn chunks_make_up_the_frame_with_pauses_between() {
        let pause = Duration::from_millis(1);

        let steps = planned(&[Damage::Chunk { bytes: 3, pause }]);

        let pause = Step::Pause(pause);
        assert_eq!(steps, [write(&[0, 0, 0]), pause.clone(), write(&[4, 1, 2]), pause, write(&[3, 4])]);
    }

    #[test]
    fn contents_are_harmed_before_the_end_is_cut_off() {
        let flip = Damage::Flip { at: Some(5), mask: 0x0f };
        let truncate = Damage::Truncate { bytes: 6, reset: true };
        let length = Damage::Length { length: -1 };

        assert_eq!(planned(&[truncate, flip, length]), [write(&[255, 255, 255, 255, 1, 13]), Step::Reset]);
    }

    #[test]
    fn drawn_bit_is_never_in_the_length() {
        for seed in 0..100 {
            let flip = Damage::Flip { at: None, mask: 0xff };
            let steps = plan(FRAME, &[flip], &mut Rng::stream(seed, "faults"));
            let [Step::Write(bytes)] = steps.as_slices().0 else { panic!("{steps:?}") };
            assert_eq!((&bytes[..4], bytes == &FRAME), (&FRAME[..4], false));
        }
    }

    #[test]
    fn garbage_comes_first_and_is_the_seeds() {
        let garbage = planned(&[Damage::Garbage { bytes: 5 }]);

        let [Step::Write(bytes)] = &garbage[..] else { panic!("{garbage:?}") };
        assert_eq!(bytes[5..], FRAME);
        assert_eq!(garbage, planned(&[Damage::Garbage { bytes: 5 }]));
    }

    #[test]
    fn nothing_may_be_all_that_is_written() {
        assert_eq!(planned(&[Damage::Truncate { bytes: 0, reset: false }]), [Step::Finish]);
    }
}
