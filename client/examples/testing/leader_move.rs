//! A leader moves while records are on their way.

use krafka::protocol::ApiKey;
use krafka::testing::{Clients, FakeCluster};
use krafka::{Producer, Record};

use crate::{Result, on};

/// The application: writes down orders, and knows where each is kept.
async fn place_orders(producer: &Producer, orders: impl IntoIterator<Item = u32>) -> Result<Vec<i64>> {
    let mut offsets = Vec::new();
    for order in orders {
        let kept = producer.send(Record::new("orders", order.to_string()).key("shop-1")).await?;
        offsets.push(kept.offset);
    }
    Ok(offsets)
}

#[cfg_attr(test, test)]
pub(crate) fn test() {
    on(FakeCluster::builder().nodes(3).topic("orders", 1), async |fake| {
        let producer = fake.client().connect().await?.producer().build().await?;

        // The second Produce finds that its leader is another one by now.
        let moved = fake.when(ApiKey::Produce).nth(2).move_leader(3);
        let offsets = place_orders(&producer, 1..=3).await?;
        producer.close().await?;

        assert_eq!(moved.hits(), 1, "the leader did move");
        assert_eq!(fake.leader("orders", 0), Some(3));
        assert_eq!(offsets, [0, 1, 2], "the application has not noticed");
        assert_eq!(fake.records("orders").len(), 3, "and nothing was written twice");
        assert_eq!(fake.history().count_on(3, ApiKey::Produce), 2, "the retry went to the new leader");
        Ok(())
    });
}
