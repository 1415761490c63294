//! No record is in the log twice: an idempotent producer's retries leave no trace.

use std::collections::BTreeMap;

use super::Log;
use crate::{Failure, Result};

/// Checks a topic's log.
///
/// # Errors
/// Names the first record that lies there twice, and where.
pub fn check(log: &Log) -> Result<()> {
    let mut first = BTreeMap::new();
    for record in &log.records {
        if let Some((partition, offset)) = first.insert(&record.value, (record.partition, record.offset)) {
            return Err(Failure::new(format!(
                "no duplicates: {} lies in {} at {partition}@{offset} and at {}@{}",
                record.value, log.topic, record.partition, record.offset
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::Logged;

    #[test]
    fn a_record_written_twice_is_found() {
        let record = |offset, value: &str| Logged { partition: 3, offset, value: value.into() };
        let log = Log { topic: "t".into(), records: vec![record(0, "a:1"), record(1, "a:2"), record(2, "a:1")] };

        let failure = check(&log).unwrap_err();

        assert_eq!(failure.to_string(), "no duplicates: a:1 lies in t at 3@0 and at 3@2");
    }
}
