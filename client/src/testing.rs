//! The in-process fake cluster, for tests of code that uses this client.
//!
//! ```
//! use krafka::testing::FakeCluster;
//! use krafka::{Environment, Kafka};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
//! let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_on_pipes();
//! let kafka = Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1)).connect().await?;
//!
//! let topics = kafka.admin().list_topics().await?;
//!
//! assert_eq!(&*topics[0].name, "orders");
//! # Ok::<_, krafka::KrafkaError>(())
//! # }).unwrap();
//! ```

pub use krafka_fake_broker::*;

use crate::environment::{Connect, Connecting, Stream};

impl Connect for Pipes {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let stream: Box<dyn Stream> = Box::new(Self::connect(self, host, port).await?);
            Ok(stream)
        })
    }
}
