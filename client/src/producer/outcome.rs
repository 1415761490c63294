//! What a broker's answer about one batch means: a table.
//!
//! The table knows codes, not batches: whether a retry still has time, which batch a sequence error is about, and
//! whether a batch can be split is for the [`sender`](super::sender) to decide.

use krafka_protocol::ErrorCode;

/// What to do about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is in the log.
    Written,
    /// It was in the log already; the broker no longer knows where.
    Duplicate,
    /// Send it again, with the same stamp.
    Retry {
        /// Whether the broker may have written it all the same.
        possibly_written: bool,
        /// Whether the metadata must be wrong.
        refresh: bool,
    },
    /// It is too large for the broker: make smaller ones of it.
    Split,
    /// Its sequence does not follow on what the broker has.
    Gap,
    /// The broker has forgotten this producer, or the records by which it knew it.
    Forgotten,
    /// The broker knows a newer epoch of this producer.
    Fenced,
    /// The broker will never take it.
    Fail {
        /// Whether the broker may have written it all the same.
        possibly_written: bool,
    },
}

impl Outcome {
    /// What `code`, as the answer for a partition of a Produce request, means for the batch.
    pub(super) fn of(code: ErrorCode) -> Self {
        const AGAIN: Outcome = Outcome::Retry { possibly_written: false, refresh: false };
        const ELSEWHERE: Outcome = Outcome::Retry { possibly_written: false, refresh: true };
        const PERHAPS: Outcome = Outcome::Retry { possibly_written: true, refresh: false };
        match code {
            ErrorCode::NONE => Self::Written,
            ErrorCode::DUPLICATE_SEQUENCE_NUMBER => Self::Duplicate,

            // The broker is not the leader, or no longer of this topic: somebody else is.
            ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::LEADER_NOT_AVAILABLE
            | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode::UNKNOWN_TOPIC_ID
            | ErrorCode::INCONSISTENT_TOPIC_ID
            | ErrorCode::FENCED_LEADER_EPOCH
            | ErrorCode::REPLICA_NOT_AVAILABLE
            // The leader's disk failed: leadership moves away from it.
            | ErrorCode::KAFKA_STORAGE_ERROR => ELSEWHERE,
            // The broker lags behind: it will learn of the epoch, the metadata need not change.
            ErrorCode::UNKNOWN_LEADER_EPOCH
            | ErrorCode::NOT_ENOUGH_REPLICAS
            // Damaged on the way; what is resent is what was built.
            | ErrorCode::CORRUPT_MESSAGE
            | ErrorCode::THROTTLING_QUOTA_EXCEEDED => AGAIN,
            // The leader appended the batch, and then waited in vain for its followers.
            ErrorCode::REQUEST_TIMED_OUT | ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND => PERHAPS,
            ErrorCode::NETWORK_EXCEPTION => Self::Retry { possibly_written: true, refresh: true },

            // Java splits for the first only. The second says that the batch exceeds segment.bytes: halves may fit.
            ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE => Self::Split,

            ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER => Self::Gap,
            ErrorCode::UNKNOWN_PRODUCER_ID => Self::Forgotten,
            ErrorCode::INVALID_PRODUCER_EPOCH => Self::Fenced,

            // An exception that the broker did not expect may have come after the append.
            ErrorCode::UNKNOWN_SERVER_ERROR => Self::Fail { possibly_written: true },
            code if code.is_retriable() => AGAIN,
            // A code from the future says nothing about the log.
            code => Self::Fail { possibly_written: !(0..=NEWEST).contains(&code.0) },
        }
    }
}

/// The newest code of Kafka 4.4.
const NEWEST: i16 = ErrorCode::ALL[ErrorCode::ALL.len() - 1].0;

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: Outcome = Outcome::Written;
    const DUPLICATE: Outcome = Outcome::Duplicate;
    const AGAIN: Outcome = Outcome::Retry { possibly_written: false, refresh: false };
    const ELSEWHERE: Outcome = Outcome::Retry { possibly_written: false, refresh: true };
    const PERHAPS: Outcome = Outcome::Retry { possibly_written: true, refresh: false };
    const LOST: Outcome = Outcome::Retry { possibly_written: true, refresh: true };
    const SPLIT: Outcome = Outcome::Split;
    const GAP: Outcome = Outcome::Gap;
    const FORGOTTEN: Outcome = Outcome::Forgotten;
    const FENCED: Outcome = Outcome::Fenced;
    const FAIL: Outcome = Outcome::Fail { possibly_written: false };
    const UNCLEAR: Outcome = Outcome::Fail { possibly_written: true };

    /// Every code of Kafka 4.4, in order from -1; what is not listed fails for good.
    #[test]
    fn every_code_has_its_outcome() {
        let special = [
            (-1, UNCLEAR),
            (0, WRITTEN),
            (2, AGAIN),
            (3, ELSEWHERE),
            (5, ELSEWHERE),
            (6, ELSEWHERE),
            (7, PERHAPS),
            (9, ELSEWHERE),
            (10, SPLIT),
            (13, LOST),
            (14, AGAIN),
            (15, AGAIN),
            (16, AGAIN),
            (18, SPLIT),
            (19, AGAIN),
            (20, PERHAPS),
            (41, AGAIN),
            (45, GAP),
            (46, DUPLICATE),
            (47, FENCED),
            (51, AGAIN),
            (56, ELSEWHERE),
            (59, FORGOTTEN),
            (74, ELSEWHERE),
            (75, AGAIN),
            (89, AGAIN),
            (100, ELSEWHERE),
            (103, ELSEWHERE),
        ];

        for code in ErrorCode::ALL {
            // Codes that no broker gives for a Produce request, and that Java calls retriable: patience costs nothing.
            let by_default = if code.is_retriable() { AGAIN } else { FAIL };
            let expected =
                special.iter().find(|(special, _)| *special == code.0).map_or(by_default, |(_, outcome)| *outcome);
            assert_eq!(Outcome::of(*code), expected, "{code:?}");
        }
    }

    /// What Java would retry, we retry: nothing retriable fails a record at once.
    #[test]
    fn nothing_retriable_fails() {
        for code in ErrorCode::ALL.iter().filter(|code| code.is_retriable()) {
            assert!(!matches!(Outcome::of(*code), Outcome::Fail { .. }), "{code:?}");
        }
    }

    #[test]
    fn a_code_from_the_future_leaves_it_open_whether_the_record_was_written() {
        assert_eq!(Outcome::of(ErrorCode(30_000)), UNCLEAR);
        assert_eq!(Outcome::of(ErrorCode(-7)), UNCLEAR);
    }
}
