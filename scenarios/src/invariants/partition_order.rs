//! Within a partition, the records of one sender lie in the order in which they were sent.

use std::collections::BTreeMap;

use super::Log;
use crate::{Failure, Result};

/// Checks a topic's log.
///
/// # Errors
/// Names the first record that lies behind a later one of its sender.
pub fn check(log: &Log) -> Result<()> {
    let mut last: BTreeMap<(i32, &str), (u64, i64)> = BTreeMap::new();
    for record in &log.records {
        let Some((sender, number)) = record.value.split_once(':') else { continue };
        let Ok(number) = number.parse::<u64>() else { continue };
        let before = last.insert((record.partition, sender), (number, record.offset));
        if let Some((earlier, offset)) = before.filter(|(earlier, _)| *earlier >= number) {
            return Err(Failure::new(format!(
                "partition order: in {}-{}, {sender}:{earlier} at offset {offset} lies before {} at {}",
                log.topic, record.partition, record.value, record.offset
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::Logged;

    fn log(values: &[(i32, &str)]) -> Log {
        let records = values
            .iter()
            .enumerate()
            .map(|(offset, (partition, value))| Logged {
                partition: *partition,
                offset: offset as i64,
                value: (*value).into(),
            })
            .collect();
        Log { topic: "t".into(), records }
    }

    #[test]
    fn senders_and_partitions_are_independent() {
        check(&log(&[(0, "a:2"), (0, "b:1"), (1, "a:1"), (0, "a:3"), (0, "marker")])).unwrap();
    }

    #[test]
    fn a_record_out_of_order_is_found() {
        let failure = check(&log(&[(0, "a:2"), (0, "a:1")])).unwrap_err();

        assert_eq!(failure.to_string(), "partition order: in t-0, a:2 at offset 0 lies before a:1 at 1");
    }
}
