//! Each codec on any bytes: bounded memory, whatever they say of themselves.
//!
//! The first byte names the codec, the rest is its input. What decompresses must do so again, by a decompressor that
//! has seen other input as by a new one, and when it was compressed by us.

#![no_main]

use std::alloc::System;
use std::cell::RefCell;

use cap::Cap;
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use libfuzzer_sys::fuzz_target;

/// The most that an input may become.
const LIMIT: usize = 1 << 20;

/// Refuses what the limit does not explain: the output once or twice, a block of LZ4, a window of zstd, and tables. A
/// length that lies would ask for more, and that ends the program.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 48 << 20);

thread_local! {
    static USED: RefCell<Decompressor> = RefCell::new(Decompressor::new(LIMIT));
}

fuzz_target!(|data: &[u8]| {
    let [codec, input @ ..] = data else { return };
    let codec = Compression::ALL[usize::from(*codec) % Compression::ALL.len()];

    let fresh = Decompressor::new(LIMIT).decompress(codec, input);
    let used = USED.with_borrow_mut(|used| used.decompress(codec, input));
    assert_eq!(fresh, used, "{codec}");
    let Ok(output) = fresh else { return };
    assert!(output.len() <= LIMIT);

    // A budget below what it becomes refuses it.
    if let Some(budget) = output.len().checked_sub(1) {
        let mut decompressor = Decompressor::new(LIMIT);
        decompressor.set_budget(budget);
        assert!(decompressor.decompress(codec, input).is_err(), "{codec}");
        assert_eq!(decompressor.budget(), Some(budget), "{codec}");
    }

    // Builds without C or feature do not write zstd.
    let Ok(mut compressor) = Compressor::new(codec, None) else { return };
    let again = compressor.compress(&output).expect("anything compresses").to_vec();
    assert_eq!(USED.with_borrow_mut(|used| used.decompress(codec, &again)), Ok(output), "{codec}");
});
