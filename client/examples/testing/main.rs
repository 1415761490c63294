//! Five things that go wrong in production, as unit tests of an application against the fake cluster.
//!
//!     cargo run --example testing       runs them and says what each has shown
//!     cargo test --example testing      the same as tests
//!
//! Each file has the application's code first, as it would stand in a service, and then its test. They run on pipes in
//! memory with the clock paused: what takes a minute in production takes no time here.

#![expect(clippy::disallowed_methods, reason = "an application tells the time as it likes")]

use std::future::Future;

use krafka::testing::{FakeCluster, FakeClusterBuilder};

mod exactly_once;
mod leader_move;
mod poison_record;
mod slow_member;
mod throttled;

/// What the applications return: any error ends them.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() {
    for (what, test) in [
        ("a leader that moves costs a retry and no record", leader_move::test as fn()),
        ("a poison record goes to the dead letters, and the others go on", poison_record::test),
        ("a transfer that crashes half-way is finished once", exactly_once::test),
        ("a slow member loses its partitions, and nothing is lost with them", slow_member::test),
        ("a throttled producer waits, and loses nothing", throttled::test),
    ] {
        test();
        println!("seen: {what}");
    }
}

/// Runs a test on a fake cluster, in memory and with the clock paused.
fn on<F: Future<Output = Result<()>>>(cluster: FakeClusterBuilder, test: impl FnOnce(FakeCluster) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let tested = runtime.expect("a runtime").block_on(async { test(cluster.start_on_pipes()).await });
    tested.expect("the application does its work");
}
