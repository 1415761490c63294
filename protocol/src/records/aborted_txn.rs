//! Which transactions were aborted, as a broker notes it beside a segment of the log.

use crate::{DecodeError, EncodeError, Message, Reader, Writer};

/// An aborted transaction: an entry of the transaction index, a segment's file `….txnindex`.
///
/// The entries follow one another without anything between, each behind an `i16` that says its version. A broker gives
/// readers of committed records those that fall into the range read, as
/// [`AbortedTransaction`](crate::api::fetch::AbortedTransaction).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct AbortedTxn {
    /// Whose transaction it was.
    pub producer_id: i64,
    /// The transaction's first offset in this partition.
    pub first_offset: i64,
    /// The offset of the mark that ends it.
    pub last_offset: i64,
    /// The last stable offset after it was aborted: below it, the fate of every transaction is known.
    pub last_stable_offset: i64,
}

impl AbortedTxn {
    /// The bytes of an entry, with its version.
    pub const SIZE: usize = 34;

    /// Reads the next entry of a transaction index.
    ///
    /// # Errors
    /// Fewer bytes are left than an entry has, or its version is not 0.
    pub fn read(index: &mut Reader) -> Result<Self, DecodeError> {
        let version = i16::from_be_bytes(index.take_array()?);
        Self::decode(index, version)
    }

    /// Appends an entry to a transaction index.
    ///
    /// # Errors
    /// Those of [`Message::encode`], of which none can happen: an entry has numbers only.
    pub fn write(&self, index: &mut Writer) -> Result<(), EncodeError> {
        index.put_slice(&0_i16.to_be_bytes());
        self.encode(index, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_follow_one_another() {
        let entries = [1, 2].map(|producer_id| AbortedTxn { producer_id, ..AbortedTxn::default() });
        let mut index = Writer::new();
        for entry in &entries {
            entry.write(&mut index).unwrap();
        }

        let index = index.into_bytes();
        assert_eq!(index.len(), 2 * AbortedTxn::SIZE);
        let mut input = Reader::new(index);
        assert_eq!([(); 2].map(|()| AbortedTxn::read(&mut input).unwrap()), entries);
        assert!(AbortedTxn::read(&mut input).is_err_and(|error| error.is_truncated()));
    }
}
