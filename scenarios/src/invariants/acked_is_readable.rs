//! What was acknowledged is in the log, at the partition and offset that the acknowledgement told.

use std::collections::BTreeMap;

use super::Log;
use crate::workload::Sent;
use crate::{Failure, Result};

/// Checks one sender against the log of its topic.
///
/// # Errors
/// Names the first acknowledged record that is not where it should be.
pub fn check(sent: &Sent, log: &Log) -> Result<()> {
    let places: BTreeMap<&str, (i32, i64)> =
        log.records.iter().map(|record| (record.value.as_str(), (record.partition, record.offset))).collect();
    for (value, partition, offset) in sent.acked() {
        match places.get(value) {
            None => {
                let place = format!("{}-{partition}@{offset}", log.topic);
                return Err(Failure::new(format!(
                    "acked is readable: {value} was acknowledged at {place} and is gone"
                )));
            }
            // -1: the broker had the batch already, and did not say where.
            Some(place) if *place == (partition, offset) || (offset == -1 && place.0 == partition) => {}
            Some(place) => {
                return Err(Failure::new(format!(
                    "acked is readable: {value} was acknowledged at {partition}@{offset} and lies at {}@{}",
                    place.0, place.1
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::Logged;
    use crate::workload::{Fate, SentRecord};

    fn acked(value: &str, offset: i64) -> Sent {
        let fate = Fate::Acked { partition: 0, offset };
        Sent { topic: "t".into(), records: vec![SentRecord { value: value.into(), fate }] }
    }

    fn log(value: &str, offset: i64) -> Log {
        Log { topic: "t".into(), records: vec![Logged { partition: 0, offset, value: value.into() }] }
    }

    #[test]
    fn a_record_in_its_place_passes() {
        check(&acked("a:1", 5), &log("a:1", 5)).unwrap();
        check(&acked("a:1", -1), &log("a:1", 5)).unwrap();
    }

    #[test]
    fn a_lost_record_is_found() {
        let failure = check(&acked("a:1", 5), &log("a:2", 5)).unwrap_err();

        assert_eq!(failure.to_string(), "acked is readable: a:1 was acknowledged at t-0@5 and is gone");
    }

    #[test]
    fn a_record_elsewhere_is_found() {
        let failure = check(&acked("a:1", 5), &log("a:1", 6)).unwrap_err();

        assert_eq!(failure.to_string(), "acked is readable: a:1 was acknowledged at 0@5 and lies at 0@6");
    }
}
