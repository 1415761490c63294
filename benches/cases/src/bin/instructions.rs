//! Runs each case once inside of [`measured`], for callgrind to count its instructions: see `benches/check`.
//!
//! Callgrind counts only inside of that function and writes what it counted each time that it returns, so the order of
//! the names on standard output is the order of its files.

use krafka_bench_cases::Case;

fn main() {
    for mut case in krafka_bench_cases::all() {
        // Tables, buffers and lazily initialised statics are there from now on, as in a program that runs for a while.
        case.run();
        case.run();
        measured(&mut case);
        println!("{}", case.name);
    }
}

/// Found by its name, which must not be mangled away by being put in line.
#[inline(never)]
fn measured(case: &mut Case) {
    case.run();
}
