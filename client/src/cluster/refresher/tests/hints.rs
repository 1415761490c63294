//! Many hints at once, as after the end of a broker that led thousands of partitions.

use super::*;

/// Each copy of what is known is one of all topics: those that come together make one.
#[test]
fn hints_that_come_together_are_published_together() {
    const TOPICS: usize = 1_000;
    let now = crate::drive::now();
    let topics: Vec<Str> = (0..TOPICS).map(|number| Str::from(format!("topic-{number:04}"))).collect();
    let mut machine = Refresher::new(rules(), registry());
    let drained = |machine: &mut Refresher<&'static str>| std::iter::from_fn(|| machine.poll(now)).collect::<Vec<_>>();
    machine.handle(Input::Loaded { topics: topics.clone(), waiter: "w" }, now);
    drained(&mut machine);
    let fetching = machine.fetching.as_ref().expect("a fetch");
    let (fetch, node, result) = (fetching.id, fetching.candidates[0].clone(), Ok(response(&topics, 5)));
    machine.handle(Input::Fetched { fetch, node, result }, now);
    // Those who read hold what was published before.
    let before = drained(&mut machine);

    for (epoch, topic) in topics.iter().enumerate() {
        let (topic, leader_epoch) = (topic.clone(), 6 + epoch as i32);
        let hint = LeaderHint { topic, topic_id: Uuid::ZERO, partition: 0, leader: 2, leader_epoch, node: None };
        machine.handle(Input::Hinted(hint), now);
    }

    let [Action::Publish(after)] = &drained(&mut machine)[..] else { panic!("one snapshot is published") };
    let epochs = topics.iter().map(|topic| after.partition(topic, 0).expect("it is known").leader_epoch);
    assert!(epochs.eq(6..6 + TOPICS as i32));
    let Action::Publish(before) = &before[0] else { panic!("{before:?}") };
    assert_eq!(before.partition(&topics[0], 0).expect("it is known").leader_epoch, 5, "theirs is as it was");
    assert_eq!(after.version, before.version + 1);
}
