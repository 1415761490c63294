//! What a group must do beyond the log's own invariants: read everything, and read it once where nobody fell over.

use std::collections::BTreeMap;

use krafka_protocol::Str;

use crate::workload::{Read, Sent};
use crate::{Failure, Result};

/// Every acknowledged record was read by some member.
///
/// # Errors
/// Names the first that was not.
pub fn read_all(sent: &Sent, read: &[Read]) -> Result<()> {
    let values: std::collections::BTreeSet<&str> = read.iter().map(|read| read.value.as_str()).collect();
    match sent.acked().find(|(value, ..)| !values.contains(value)) {
        None => Ok(()),
        Some((value, partition, offset)) => Err(Failure::new(format!(
            "group reads all: {value}, acknowledged at {partition}@{offset}, was read by nobody"
        ))),
    }
}

/// No record was read twice: holds when members join and leave in order, and the coordinator stays reachable.
///
/// # Errors
/// Names the first that was, and by whom.
pub fn read_once(read: &[Read]) -> Result<()> {
    let mut first: BTreeMap<(i32, i64), &Read> = BTreeMap::new();
    for record in read {
        if let Some(before) = first.insert((record.partition, record.offset), record) {
            return Err(Failure::new(format!(
                "group reads once: {} at {}@{} was read by {} and by {}",
                record.value, record.partition, record.offset, before.member, record.member
            )));
        }
    }
    Ok(())
}

/// Nothing is committed that no member was handed: offset `n` may be committed once the record before it was read.
///
/// # Errors
/// Names the first partition whose committed offset runs ahead.
pub fn commits_what_was_read(committed: &BTreeMap<(Str, i32), i64>, read: &[Read]) -> Result<()> {
    for ((topic, partition), offset) in committed {
        let next = read.iter().rev().filter(|read| read.partition == *partition).map(|read| read.offset + 1);
        // Newest first: most often the first one is far enough already.
        if *offset > 0 && !next.into_iter().any(|next| next >= *offset) {
            return Err(Failure::new(format!(
                "group commits what was read: {offset} is committed for {topic}-{partition}, and nobody has read \
                     that far"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_ahead_of_all_readers_is_found() {
        let read = Read { member: "one".into(), partition: 1, offset: 7, value: "a:1".into() };
        let committed = |partition, offset| BTreeMap::from([((Str::from_static("t"), partition), offset)]);

        commits_what_was_read(&committed(1, 8), std::slice::from_ref(&read)).unwrap();
        commits_what_was_read(&committed(0, 0), std::slice::from_ref(&read)).unwrap();
        let failure = commits_what_was_read(&committed(1, 9), &[read]).unwrap_err();

        assert!(failure.to_string().ends_with("9 is committed for t-1, and nobody has read that far"), "{failure}");
    }

    #[test]
    fn a_record_read_twice_is_found() {
        let read = |member: &str| Read { member: member.into(), partition: 1, offset: 7, value: "a:1".into() };

        let failure = read_once(&[read("one"), read("two")]).unwrap_err();

        assert_eq!(failure.to_string(), "group reads once: a:1 at 1@7 was read by one and by two");
    }
}
