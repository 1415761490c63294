//! The real world: a cluster behind TCP, whoever started it. The stories for it break nothing.

use std::sync::Arc;
use std::time::Duration;

use krafka::{Connect, TcpConnect};
use tokio::runtime::Builder;

use crate::nemesis::Plan;
use crate::runner::{Outcome, tell, wall_now};
use crate::{Failure, Kind, Story, World};

/// The most that a story may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs a story on the cluster behind these bootstrap servers.
///
/// `run` sets the names of this run's topics and groups apart from those of other runs on the same cluster.
#[must_use]
pub fn run(story: &Story, bootstrap: &str, run: u64) -> Outcome {
    let began = wall_now();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let verdict = runtime.block_on(async {
        let connect: Arc<dyn Connect> = Arc::new(TcpConnect);
        let world = World::new(Kind::Real, run, bootstrap.to_owned(), connect, None);
        match tokio::time::timeout(LIMIT, tell(story, &world, &Plan::none())).await {
            Ok(verdict) => verdict,
            Err(_) => Err(Failure::new(format!("the story did not end within {LIMIT:?}"))),
        }
    });
    let (wall_time, trace) = (began.elapsed(), Vec::new());
    let (kind, plan) = (Kind::Real, Plan::none());
    Outcome { story: story.name, kind, seed: run, verdict, virtual_time: wall_time, wall_time, plan, trace }
}
