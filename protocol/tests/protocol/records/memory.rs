//! What reading and writing batches allocates: nothing per record, and nothing on the word of a header.

use allocation_counter::{AllocationInfo, measure};
use krafka_protocol::Bytes;
use krafka_protocol::compression::{
    Compression, CompressionError, Compressor, DEFAULT_DECOMPRESSION_LIMIT, Decompressor,
};
use krafka_protocol::records::{Batch, BatchBuilder, BatchHeader, HEADER_LEN, NO_HEADERS, Record, RecordsError};

use super::hostile::zstd_bomb;

/// More than a snappy chunk or an LZ4 block holds, and more than 100,000, which some decoders refuse.
const MANY: u32 = 150_000;

fn many(codec: Compression) -> Bytes {
    let mut builder = BatchBuilder::new();
    for index in 0..MANY {
        let value = index.to_be_bytes();
        let headers = &[("h", Some("v"))][..usize::from(index % 16 == 0)];
        builder.try_append(1_000, None, Some(&value), headers).expect("it fits");
    }
    builder.seal(&mut Compressor::new(codec, None).expect("built in")).expect("there are records").bytes()
}

/// Runs it where nothing has been allocated before, and returns what it returns.
fn measured<T>(work: impl FnOnce() -> T) -> (T, AllocationInfo) {
    let mut done = None;
    let info = measure(|| done = Some(work()));
    (done.expect("it ran"), info)
}

#[test]
fn a_batch_may_hold_more_than_100_000_records() {
    for codec in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        let batch = Batch::new(many(codec)).expect("a batch");
        batch.verify_crc().expect("its own checksum");
        let records = batch.records(&mut Decompressor::default()).expect("readable");

        let owned: Vec<Record> = records.to_vec().expect("readable");

        assert_eq!((batch.header().count, owned.len()), (150_000, 150_000), "{codec}");
        let as_written = |(index, record): (u32, &Record)| {
            record.offset == i64::from(index)
                && record.value.as_deref() == Some(&index.to_be_bytes())
                && record.headers.len() == usize::from(index % 16 == 0)
        };
        assert!((0..).zip(&owned).all(as_written), "{codec}");
    }
}

#[test]
fn borrowed_records_allocate_nothing() {
    let batch = Batch::new(many(Compression::None)).expect("a batch");
    let records = batch.records(&mut Decompressor::default()).expect("readable");

    let (bytes, info) = measured(|| {
        let records = records.iter().map(|record| record.expect("readable"));
        records
            .map(|r| r.value.map_or(0, <[u8]>::len) + r.headers.iter().map(|h| h.key.len()).sum::<usize>())
            .sum::<usize>()
    });

    assert_eq!(bytes, 150_000 * 4 + 150_000 / 16);
    assert_eq!(info.count_total, 0);
}

#[test]
fn looking_at_a_header_allocates_nothing() {
    let batch = many(Compression::Lz4);

    let (header, info) = measured(|| BatchHeader::peek(&batch[..HEADER_LEN]));

    assert_eq!(header.map(|header| header.count), Ok(150_000));
    assert_eq!(info.count_total, 0);
}

/// Owned records share one buffer. The first handle on it makes the count that all share.
#[test]
fn owned_records_allocate_nothing_of_their_own() {
    let batch = Batch::new(many(Compression::Snappy)).expect("a batch");
    let records = batch.records(&mut Decompressor::default()).expect("readable");

    let (last, info) = measured(|| records.into_iter().map(|record| record.expect("readable")).last());

    assert_eq!(last.map(|record| record.offset), Some(149_999));
    assert!(info.count_total <= 1, "{info:?}");
}

#[test]
fn appending_allocates_as_the_buffer_grows() {
    let (builder, info) = measured(|| {
        let mut builder = BatchBuilder::new();
        for index in 0..MANY {
            builder.try_append(1_000, None, Some(&index.to_be_bytes()), NO_HEADERS).expect("it fits");
        }
        builder
    });

    assert_eq!(builder.count(), MANY);
    assert!(info.count_total < 30, "{info:?}");
}

/// As many as fit the bytes, of which none is there: the first one shows.
#[test]
fn a_lying_count_makes_room_for_little() {
    let zeros = vec![0; 10 << 20];
    let mut header = BatchHeader::peek(&many(Compression::None)).expect("a header");
    header.count = (zeros.len() / 7) as i32;
    header.batch_length = (HEADER_LEN - 12 + zeros.len()) as i32;
    let mut bytes = vec![0; HEADER_LEN];
    header.write(bytes.first_chunk_mut().expect("61 bytes"));
    bytes.extend_from_slice(&zeros);
    let records = Batch::new(bytes.into()).and_then(|batch| batch.records(&mut Decompressor::default()));
    let records = records.expect("there are bytes enough");

    let (read, info) = measured(|| records.to_vec());

    assert!(matches!(read, Err(RecordsError::Record { index: 0, .. })), "{read:?}");
    assert!(info.bytes_max < 3 << 20, "{info:?}");
}

/// 64 MiB of zeros, compressed.
fn bomb(codec: Compression) -> Vec<u8> {
    match codec {
        Compression::Zstd => zstd_bomb(),
        _ => {
            let mut compressor = Compressor::new(codec, None).expect("built in");
            compressor.compress(&vec![0; 64 << 20]).expect("zeros compress").to_vec()
        }
    }
}

const CODECS: [Compression; 4] = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// A buffer that doubles as it grows, and the decoder's own: no more than that for a bomb of any size.
#[test]
fn a_bomb_costs_a_few_times_the_limit() {
    const LIMIT: usize = 1 << 20;
    for codec in CODECS {
        let bomb = bomb(codec);

        let (done, info) = measured(|| Decompressor::new(LIMIT).decompress(codec, &bomb));

        assert_eq!(done, Err(CompressionError::LimitExceeded { codec, limit: LIMIT }));
        assert!(info.bytes_max < 5 * LIMIT as u64, "{codec}: {info:?}");
    }
}

/// Each is within the limit for one, and whoever keeps them all has a budget for that.
#[test]
fn many_small_bombs_cost_a_few_times_the_budget() {
    const LIMIT: usize = 1 << 20;
    for codec in CODECS {
        let small = match codec {
            Compression::Zstd => zstd_frame(0b1000_0000, &[0x58, 0, 0, 8, 0], 4),
            _ => {
                let mut compressor = Compressor::new(codec, None).expect("built in");
                compressor.compress(&vec![0; LIMIT / 2]).expect("zeros compress").to_vec()
            }
        };

        let ((kept, error), info) = measured(|| {
            let mut decompressor = Decompressor::new(LIMIT);
            decompressor.set_budget(4 * LIMIT);
            let mut kept = Vec::new();
            loop {
                match decompressor.decompress(codec, &small) {
                    Ok(bytes) => kept.push(bytes),
                    Err(error) => break (kept.len(), error),
                }
            }
        });

        assert_eq!(kept, 8, "{codec}");
        assert_eq!(error, CompressionError::BudgetExceeded { codec, left: 0, budget: 4 * LIMIT });
        assert!(info.bytes_max < 10 * LIMIT as u64, "{codec}: {info:?}");
    }
}

/// A frame with this descriptor and these bytes of header, and blocks of 128 KiB that repeat a byte.
fn zstd_frame(descriptor: u8, header: &[u8], blocks: usize) -> Vec<u8> {
    let mut frame = [&[0x28, 0xb5, 0x2f, 0xfd, descriptor][..], header].concat();
    for left in (0..blocks).rev() {
        frame.extend_from_slice(&[2 | u8::from(left == 0), 0, 0x10, 0]);
    }
    frame
}

/// An LZ4 frame with this descriptor, whose checksum is right, and these bytes behind it.
fn lz4_frame(descriptor: &[u8], checksum: u8, rest: &[u8]) -> Vec<u8> {
    [&[0x04, 0x22, 0x4d, 0x18][..], descriptor, &[checksum], rest].concat()
}

/// Every field of a codec's own header that says how much is to come, with 128 MiB allowed.
#[test]
fn lengths_in_codecs_headers_allocate_nothing() {
    const XERIAL: &[u8] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
    let gzip = Compressor::new(Compression::Gzip, None).expect("built in").compress(b"abc").expect("abc").to_vec();
    let huge_isize = [&gzip[..gzip.len() - 4], &[0, 0, 0, 7]].concat();
    let mut huge_name = gzip;
    huge_name[3] = 4; // An extra field of 0x4a4b bytes, which are not there.
    let lies: [(&str, Compression, Vec<u8>); 12] = [
        ("snappy: 64 MiB in a raw block", Compression::Snappy, vec![0x80, 0x80, 0x80, 0x20, 0, 0]),
        ("snappy: 4 GiB in a raw block", Compression::Snappy, vec![0xff, 0xff, 0xff, 0xff, 0x0f, 0]),
        ("snappy: a chunk of 2 GiB", Compression::Snappy, [XERIAL, &[0x7f, 0xff, 0xff, 0xff, 0]].concat()),
        (
            "snappy: 64 MiB in a chunk",
            Compression::Snappy,
            [XERIAL, &[0, 0, 0, 6, 0x80, 0x80, 0x80, 0x20, 0, 0]].concat(),
        ),
        ("gzip: its length", Compression::Gzip, huge_isize),
        ("gzip: an extra field", Compression::Gzip, huge_name),
        ("lz4: content of 64 MiB", Compression::Lz4, lz4_frame(&[0x68, 0x40, 0, 0, 0, 4, 0, 0, 0, 0], 0x49, &[0; 4])),
        ("lz4: a block of 2 GiB", Compression::Lz4, lz4_frame(&[0x60, 0x70], 0x73, &[0xff, 0xff, 0xff, 0x7f, 0])),
        ("lz4: blocks of 4 MiB", Compression::Lz4, lz4_frame(&[0x60, 0x70], 0x73, &[2, 0, 0, 0, 0x1f, 0])),
        ("zstd: a window of 128 MiB", Compression::Zstd, zstd_frame(0, &[17 << 3], 0)),
        ("zstd: content of 64 MiB", Compression::Zstd, zstd_frame(0b1010_0000, &[0, 0, 0, 4], 1)),
        ("zstd: content of 16 EiB", Compression::Zstd, zstd_frame(0b1110_0000, &[0xff; 8], 1)),
    ];
    for (lie, codec, input) in lies {
        let (done, info) = measured(|| Decompressor::new(DEFAULT_DECOMPRESSION_LIMIT).decompress(codec, &input));

        assert!(done.is_err(), "{lie}: {done:?}");
        // The tables of a decoder take what they take; the least of the lies is 2 MiB.
        assert!(info.bytes_max < 1 << 20, "{lie}: {info:?}");
    }
}

/// A window of 128 MiB around three blocks that tell no lies.
#[test]
fn a_large_window_around_little_is_little() {
    let frame = zstd_frame(0, &[17 << 3], 3);

    let (done, info) =
        measured(|| Decompressor::new(DEFAULT_DECOMPRESSION_LIMIT).decompress(Compression::Zstd, &frame));

    assert_eq!(done.map(|bytes| bytes.len()), Ok(384 << 10));
    assert!(info.bytes_max < 3 << 20, "{info:?}");
}
