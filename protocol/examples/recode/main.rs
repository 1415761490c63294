//! Lets anyone judge the codec from outside: messages or record sets in hex come in, and what we make of
//! them goes out.
//!
//! `cargo run -p krafka-protocol --example recode -- --help` says how. All that it does is tested by the module
//! `recode` of this crate's tests.

mod hex;
mod lines;
mod message;
mod program;
mod records;
mod rendering;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::run(std::env::args_os().skip(1), std::io::stdin().lock(), std::io::stdout().lock(), std::io::stderr())
}
