//! A record set from any bytes: batches, decompression, records.
//!
//! What can be read must be the same when it is read in another way, and when it is put into a new batch.

#![no_main]

use krafka_protocol::Bytes;
use krafka_protocol::compression::{Compressor, Decompressor};
use krafka_protocol::records::{Batch, BatchBuilder, Batches, Records, check_produced};
use libfuzzer_sys::fuzz_target;

/// More than this is not decompressed, so that the search is not spent on filling memory.
const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    let mut decompressor = Decompressor::new(LIMIT);
    let _ = check_produced(&bytes, &mut decompressor);

    let mut batches = Batches::new(bytes.clone());
    for batch in batches.by_ref() {
        let Ok(batch) = batch else { continue };
        assert_eq!(batch.header().total_len(), batch.bytes().len());
        let _ = batch.verify_crc();
        // A header names the codec but seldom fits it, so every codec gets the payload.
        let Ok(records) = batch.records(&mut decompressor) else { continue };
        assert!(records.payload().len() <= LIMIT.max(bytes.len()));
        assert_same_in_every_way(&records, &mut decompressor);
    }
    assert!(batches.position() + batches.trailing_len() == bytes.len());
});

fn assert_same_in_every_way(records: &Records, decompressor: &mut Decompressor) {
    let Ok(owned) = records.to_vec() else {
        assert!(records.iter().any(|record| record.is_err()));
        return;
    };
    let mut builder = BatchBuilder::new();
    for (record, owned) in records.iter().zip(&owned) {
        let record = record.expect("all of them can be read");
        assert_eq!((record.offset, record.timestamp), (owned.offset, owned.timestamp));
        assert_eq!((record.key, record.value), (owned.key.as_deref(), owned.value.as_deref()));
        builder.try_append_record(&record).expect("small enough to come from one batch");
    }
    if owned.is_empty() {
        return;
    }

    let mut sealed = builder.seal(&mut Compressor::none()).expect("a batch with records");
    let rebuilt = Batch::new(sealed.bytes()).expect("our own batch");
    rebuilt.verify_crc().expect("our own checksum");
    let again = rebuilt.records(decompressor).and_then(|records| records.to_vec()).expect("our own records");
    assert_eq!(again.len(), owned.len());
    for (again, owned) in again.iter().zip(&owned) {
        assert_eq!((again.timestamp, &again.key, &again.value), (owned.timestamp, &owned.key, &owned.value));
        assert!(again.headers.iter().eq(owned.headers.iter()));
    }
}
