//! The scripted world: in-memory pipes and a paused clock on one thread; only the faults that the story asks for.

use std::sync::Arc;
use std::time::Duration;

use krafka_fake_broker::FakeCluster;
use tokio::runtime::Builder;

use crate::nemesis::Plan;
use crate::runner::{Ended, tell};
use crate::{Failure, Kind, Story, World};

/// How many nodes the fake has.
pub const NODES: i32 = 3;

/// The most that a story may take of its world's time.
const LIMIT: Duration = Duration::from_secs(1_800);

pub(crate) fn run(story: &Story, seed: u64) -> Ended {
    let runtime =
        Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime can be built");
    runtime.block_on(async {
        let builder = FakeCluster::builder()
            .nodes(NODES)
            .seed(seed)
            .start_time_ms(super::NOON_MS as i64)
            .fresh_coordinators(true);
        let fake = Arc::new(story.doors.of(builder).start_on_pipes());
        let connect = Arc::new(fake.pipes());
        let world = World::new(Kind::Scripted, seed, fake.bootstrap(), connect, Some(fake.clone()));
        let world = world.behind(story.doors);
        let verdict = match tokio::time::timeout(LIMIT, tell(story, &world, &Plan::none())).await {
            Ok(verdict) => verdict,
            Err(_) => Err(Failure::new(format!("the story did not end within {LIMIT:?}"))),
        };
        Ended { verdict, virtual_time: world.elapsed(), trace: super::trace(&fake) }
    })
}
