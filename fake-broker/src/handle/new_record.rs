//! A record as a test writes it down, to be appended.

use krafka_protocol::compression::Compressor;
use krafka_protocol::records::{BatchBuilder, RecordsError, SealedBatch};
use krafka_protocol::{Bytes, Str};

/// A record for [`FakeCluster::append_record`](crate::FakeCluster::append_record): nothing at first, no key and no
/// value, with the time of now.
///
/// **Unstable:** may change in any release.
///
/// ```
/// use krafka_fake_broker::{FakeCluster, NewRecord};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
/// let record = NewRecord::new().key("table 4").value("tea").header("trace", "7f3a").timestamp_ms(1_700_000_000_000);
/// assert_eq!(fake.append_record("orders", 0, &record), 0);
/// assert_eq!(fake.records("orders")[0].timestamp, 1_700_000_000_000);
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRecord {
    key: Option<Bytes>,
    value: Option<Bytes>,
    headers: Vec<(Str, Option<Bytes>)>,
    timestamp_ms: Option<i64>,
}

impl NewRecord {
    /// Returns a record without anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// A record of these.
    pub(super) fn of(key: Option<&[u8]>, value: Option<&[u8]>) -> Self {
        Self { key: key.map(Bytes::copy_from_slice), value: value.map(Bytes::copy_from_slice), ..Self::default() }
    }

    /// Gives it a key.
    pub fn key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Gives it a value; without one it is a tombstone in a compacted topic.
    pub fn value(mut self, value: impl Into<Bytes>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Adds a header. A name may come more than once.
    pub fn header(mut self, name: impl Into<Str>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// Adds a header whose value is null.
    pub fn null_header(mut self, name: impl Into<Str>) -> Self {
        self.headers.push((name.into(), None));
        self
    }

    /// Sets its time, in milliseconds since 1970. The default is the cluster's time of now. In a topic with
    /// `message.timestamp.type=LogAppendTime` it is the time of now in any case.
    pub fn timestamp_ms(mut self, timestamp_ms: i64) -> Self {
        self.timestamp_ms = Some(timestamp_ms);
        self
    }

    /// A batch of it alone.
    ///
    /// # Errors
    ///
    /// If it is larger than a batch can be.
    pub(super) fn to_batch(&self, now_ms: i64) -> Result<SealedBatch, RecordsError> {
        let mut batch = BatchBuilder::new();
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (&**name, value.as_deref())).collect();
        let timestamp_ms = self.timestamp_ms.unwrap_or(now_ms);
        batch.try_append::<&str, &[u8]>(timestamp_ms, self.key.as_deref(), self.value.as_deref(), &headers)?;
        batch.seal(&mut Compressor::none())
    }
}
