//! Code of the user's that the client calls, and that calls the client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use krafka::testing::{FakeCluster, Pipes};
use krafka::{Connect, Connecting, Environment, Kafka};
use tracing::span;

use super::observed::hear_all;

const SECOND: Duration = Duration::from_secs(1);

/// Looks at the client whenever it is called.
#[derive(Clone, Default)]
struct Nosy {
    kafka: Arc<OnceLock<Kafka>>,
    looked: Arc<AtomicUsize>,
}

impl Nosy {
    fn look(&self) {
        if let Some(kafka) = self.kafka.get() {
            let opened = kafka.metrics().connections.opened;
            kafka.rebootstrap();
            self.looked.fetch_add(usize::from(opened > 0), Ordering::Relaxed);
        }
    }
}

/// Each line of the log.
impl tracing::Subscriber for Nosy {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.look();
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Dialling {
    nosy: Nosy,
    pipes: Pipes,
}

/// Each connection.
impl Connect for Dialling {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        self.nosy.look();
        Connect::connect(&self.pipes, host, port)
    }
}

/// CB-25: whoever is told of a lost connection, or makes the next one, may ask the client at once: no lock is held.
#[tokio::test(start_paused = true)]
async fn who_is_called_may_call_back() {
    let nosy = Nosy::default();
    hear_all();
    let _guard = tracing::subscriber::set_default(nosy.clone());
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let environment = Environment::new(Dialling { nosy: nosy.clone(), pipes: fake.pipes() }, 1);
    let kafka = Kafka::builder(fake.bootstrap()).environment(environment).connect().await.expect("it is up");
    assert!(nosy.kafka.set(kafka.clone()).is_ok());

    for _ in 0..3 {
        kafka.admin().describe_cluster().await.expect("it is up");
        fake.disconnect(1);
        fake.refuse_connections(1, true);
        tokio::time::sleep(SECOND).await;
        fake.refuse_connections(1, false);
    }
    kafka.admin().describe_cluster().await.expect("it is up");
    kafka.close();
    tokio::time::sleep(SECOND).await;

    assert!(nosy.looked.load(Ordering::Relaxed) > 6, "{nosy:?}", nosy = nosy.looked);
}
