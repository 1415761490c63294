//! Calls of the admin client.

use krafka::{AdminClient, NewTopic};

use super::{World, at_each_poll, settle};

async fn admin(world: &World) -> AdminClient {
    world.kafka.admin()
}

#[tokio::test(start_paused = true)]
async fn describing_the_cluster() {
    let call = async |admin: &AdminClient| {
        assert_eq!(admin.describe_cluster().await.expect("it is answered").brokers.len(), 2);
    };

    assert!(at_each_poll(admin, call, async |_, admin| call(admin).await).await > 0);
}

#[tokio::test(start_paused = true)]
async fn listing_and_describing_topics() {
    let list = async |admin: &AdminClient| {
        assert_eq!(admin.list_topics().await.expect("it is answered").len(), 1);
    };
    let describe = async |admin: &AdminClient| {
        let topics = admin.describe_topics(["orders"]).await.expect("it is answered");
        assert_eq!(topics["orders"].as_ref().expect("it exists").partitions.len(), 2);
    };

    assert!(at_each_poll(admin, list, async |_, admin| list(admin).await).await > 0);
    assert!(at_each_poll(admin, describe, async |_, admin| describe(admin).await).await > 0);
}

/// A topic that was being created is created, or is not; the call can be made again.
#[tokio::test(start_paused = true)]
async fn creating_topics() {
    let create = async |admin: &AdminClient| {
        let _ = admin.create_topics([NewTopic::new("new", 1)]).await.expect("it is answered");
    };
    let check = async |world: &World, admin: &AdminClient| {
        create(admin).await;
        assert!(world.fake.topics().iter().any(|topic| &**topic == "new"));
    };

    assert!(at_each_poll(admin, create, check).await > 0);
}

#[tokio::test(start_paused = true)]
async fn adding_partitions() {
    let add = async |admin: &AdminClient| {
        let _ = admin.create_partitions([("orders", 3)]).await.expect("it is answered");
    };
    let check = async |_: &World, admin: &AdminClient| {
        add(admin).await;
        settle().await;
        let topics = admin.describe_topics(["orders"]).await.expect("it is answered");
        assert_eq!(topics["orders"].as_ref().expect("it exists").partitions.len(), 3);
    };

    assert!(at_each_poll(admin, add, check).await > 0);
}

#[tokio::test(start_paused = true)]
async fn deleting_topics() {
    let prepare = async |world: &World| {
        world.fake.create_topic("old", 1);
        world.kafka.admin()
    };
    let delete = async |admin: &AdminClient| {
        let _ = admin.delete_topics(["old"]).await.expect("it is answered");
    };
    let check = async |world: &World, admin: &AdminClient| {
        delete(admin).await;
        assert!(!world.fake.topics().iter().any(|topic| &**topic == "old"));
    };

    assert!(at_each_poll(prepare, delete, check).await > 0);
}
