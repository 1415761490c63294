//! Stories of administrators.

use krafka::{AdminClient, KrafkaError, NewTopic};
use krafka_protocol::ErrorCode;

use crate::world::PATIENCE;
use crate::{Result, World, ensure};

/// The life of a topic, with a mistake at each step.
pub async fn topics_come_and_go(world: &World) -> Result<()> {
    let admin = world.kafka().await?.admin();
    let name = world.name("books");
    let books = || NewTopic::new(&name, 2).replication_factor(1);

    create(world, &admin, books()).await??;
    let again = create(world, &admin, books()).await?;
    let bad = create(world, &admin, NewTopic::new("a/b", 1)).await?;
    let two = described(&admin, &name, 2);
    world.until_some("the topic is described with two partitions", || two()).await?;
    extend(world, &admin, &name, 5).await??;
    let fewer = extend(world, &admin, &name, 3).await?;
    let five = described(&admin, &name, 5);
    world.until_some("the topic is described with five partitions", || five()).await?;
    let listed = world.calls().within(PATIENCE, "list", admin.list_topics()).await??;
    delete(world, &admin, &name).await??;
    // The broker that is asked may not know of the deletion yet, and then deletes it again without a complaint.
    let twice = world.until_some("the topic is gone", async || delete(world, &admin, &name).await.ok()?.err()).await?;

    ensure!(is(&again, ErrorCode::TOPIC_ALREADY_EXISTS), "a second create gave {again:?}");
    ensure!(is(&bad, ErrorCode::INVALID_TOPIC_EXCEPTION), "a bad name gave {bad:?}");
    ensure!(is(&fewer, ErrorCode::INVALID_PARTITIONS), "fewer partitions gave {fewer:?}");
    ensure!(listed.iter().any(|topic| *topic.name == *name), "the list lacks {name}");
    ensure!(matches!(&twice, KrafkaError::UnknownTopic { .. }), "a second delete gave {twice:?}");
    Ok(())
}

async fn create(world: &World, admin: &AdminClient, topic: NewTopic) -> Result<krafka::Result<()>> {
    let results = world.calls().within(PATIENCE, "create", admin.create_topics([topic])).await??;
    Ok(results.into_values().collect())
}

async fn extend(world: &World, admin: &AdminClient, name: &str, count: i32) -> Result<krafka::Result<()>> {
    let results = world.calls().within(PATIENCE, "extend", admin.create_partitions([(name, count)])).await??;
    Ok(results.into_values().collect())
}

async fn delete(world: &World, admin: &AdminClient, name: &str) -> Result<krafka::Result<()>> {
    let results = world.calls().within(PATIENCE, "delete", admin.delete_topics([name])).await??;
    Ok(results.into_values().collect())
}

/// Asks whether a broker describes the topic with so many partitions.
fn described(admin: &AdminClient, name: &str, count: usize) -> impl AsyncFn() -> Option<()> {
    let (admin, name) = (admin.clone(), name.to_owned());
    async move || {
        let results = admin.describe_topics([&name]).await.ok()?;
        results.into_values().next()?.ok().filter(|topic| topic.partitions.len() == count).map(|_| ())
    }
}

fn is<T>(result: &Result<T, KrafkaError>, expected: ErrorCode) -> bool {
    matches!(result, Err(KrafkaError::Broker { code, .. }) if *code == expected)
}
