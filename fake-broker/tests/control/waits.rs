//! Waits for a rule that can never become what is waited for end at once, and say why.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use krafka_fake_broker::{FakeCluster, Rule};
use krafka_protocol::ApiKey;
use serde_json::json;
use tokio::task::JoinHandle;

use super::ask;

/// Begins to wait, over the control port and longer than any test takes, and sees that the wait is there.
async fn begun(address: &str, rule: u64, hits: u64) -> JoinHandle<(u16, serde_json::Value)> {
    let (address, path) = (address.to_owned(), format!("/rules/{rule}/wait"));
    let body = json!({"hits": hits, "timeout_ms": 600_000}).to_string();
    let wait = tokio::spawn(async move { ask(&address, "POST", &path, &body).await });
    // The connection is made and read by other tasks of this thread, and bytes on the loopback are there at once.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(!wait.is_finished(), "there is something to wait for");
    wait
}

/// What the panic of a wait in Rust says.
async fn words(wait: JoinHandle<()>) -> String {
    let panic = wait.await.expect_err("it cannot be reached").into_panic();
    panic.downcast_ref::<String>().expect("a text").clone()
}

#[tokio::test]
async fn wait_ends_when_its_rule_is_removed() {
    let fake = FakeCluster::builder().start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();

    for everything in [false, true] {
        let rule = fake.when(ApiKey::Produce).times(3).observe();
        let wait = begun(&address, rule.id(), 2).await;
        let path = if everything { "/rules".to_owned() } else { format!("/rules/{}", rule.id()) };
        assert_eq!(ask(&address, "DELETE", &path, "").await.0, 200);

        let reason = format!("rule {} was removed after 0 of 2 hits", rule.id());
        assert_eq!(wait.await.expect("it does not panic"), (404, json!({"error": reason})));
    }
}

/// A rule that acts twice never has three hits, and one whose time is over has no more than it had.
#[tokio::test]
async fn wait_for_more_than_a_rule_can_do_is_refused() {
    let fake = FakeCluster::builder().start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let twice = fake.when(ApiKey::Produce).times(2).observe();
    let brief = fake.when(ApiKey::Produce).forever().until(Duration::from_millis(1)).observe();

    for (rule, hits, reason) in [
        (&twice, 3, "acts 2 times at most, and was to have 3 hits"),
        (&brief, 1, "is over after 0 of 1 hits: its `until_ms` has passed"),
    ] {
        let body = json!({"hits": hits, "timeout_ms": 600_000}).to_string();
        let (status, answer) = ask(&address, "POST", &format!("/rules/{}/wait", rule.id()), &body).await;
        assert_eq!((status, answer), (409, json!({"error": format!("rule {} {reason}", rule.id())})));
    }
}

/// In Rust such a wait panics, as those of the cluster do.
#[tokio::test]
async fn wait_in_rust_says_why_it_ends() {
    let fake = FakeCluster::builder().start_on_pipes();
    let rule = || fake.when(ApiKey::Produce).times(2).observe();
    let waits = |rule: &Rule, hits| {
        let rule = rule.clone();
        tokio::spawn(async move { rule.wait(hits).await })
    };

    let (removed, cleared, spent) = (rule(), rule(), rule());
    let early = waits(&removed, 1);
    tokio::task::yield_now().await;
    removed.remove();
    let late = waits(&removed, 1);
    for wait in [early, late] {
        assert_eq!(words(wait).await, format!("rule {} was removed after 0 of 1 hits", removed.id()));
    }
    assert!(words(waits(&spent, 3)).await.contains("acts 2 times at most"));
    let wait = waits(&cleared, 2);
    tokio::task::yield_now().await;
    fake.clear_faults();
    assert!(words(wait).await.contains("was removed after 0 of 2 hits"));

    // What has been reached is reached, whatever becomes of the rule.
    removed.wait(0).await;
}

/// A cluster that ends takes its rules along: who waits for one of them in another task would wait for ever.
#[tokio::test]
async fn wait_ends_with_its_cluster() {
    let fake = FakeCluster::builder().start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let rule = fake.when(ApiKey::Produce).observe();
    let remote = begun(&address, rule.id(), 1).await;
    let local = tokio::spawn({
        let rule = rule.clone();
        async move { rule.wait(1).await }
    });
    tokio::task::yield_now().await;

    drop(fake);

    let reason = format!("rule {} ended with its cluster after 0 of 1 hits", rule.id());
    assert_eq!(words(local).await, reason);
    assert_eq!(remote.await.expect("it does not panic"), (404, json!({"error": reason})));
}

/// Without a runtime it is the same.
#[test]
fn blocking_wait_says_why_it_ends() {
    let fake = FakeCluster::builder().start_blocking().expect("ports");
    let rule = fake.when(ApiKey::Produce).times(1).observe();

    let panic = std::panic::catch_unwind(AssertUnwindSafe(|| fake.wait_hits(&rule, 2))).expect_err("it acts once");

    let words = panic.downcast_ref::<String>().expect("a text");
    assert_eq!(*words, format!("rule {} acts 1 time at most, and was to have 2 hits", rule.id()));
}
