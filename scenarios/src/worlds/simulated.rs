//! The simulated world: turmoil, with one host for each broker and one for the clients; a seed draws the faults.
//!
//! All hosts share the one cluster value, as threads of a process would; what is simulated is the network between the
//! clients and each node. turmoil's own clock drives everything, also the fake's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use krafka::{Connect, Connecting, Stream};
use krafka_fake_broker::{Clock, FakeCluster};
use turmoil::net::{TcpListener, TcpStream};

use super::scripted::NODES;
use crate::nemesis::Plan;
use crate::runner::{Ended, tell};
use crate::{Failure, Kind, Story, World};

/// The most that a story may take of its world's time.
const LIMIT: Duration = Duration::from_secs(900);

/// The port that each broker listens on, at a host of its own.
const PORT: u16 = 9092;

pub(crate) fn run(story: &Story, seed: u64, plan: &Plan) -> Ended {
    let mut sim = turmoil::Builder::new()
        .rng_seed(seed)
        .epoch(SystemTime::UNIX_EPOCH + Duration::from_millis(super::NOON_MS))
        .simulation_duration(LIMIT)
        .tick_duration(Duration::from_millis(1))
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(5))
        .tcp_capacity(1 << 16)
        .build();
    let builder = FakeCluster::builder()
        .nodes(NODES)
        .seed(seed)
        .start_time_ms(super::NOON_MS as i64)
        .fresh_coordinators(true)
        .clock(Arc::new(SimulatedClock(base())));
    let fake = Arc::new(story.doors.of(builder).build());
    for node in fake.nodes() {
        let fake = fake.clone();
        sim.host(host_name(node), move || listen(fake.clone(), node));
    }
    let timers = fake.clone();
    sim.host("timers", move || {
        let timers = timers.clone();
        async move {
            timers.run_timers().await;
            Ok(())
        }
    });

    let verdict = Arc::new(Mutex::new(None));
    let (told, cluster, story, plan) = (verdict.clone(), fake.clone(), *story, plan.clone());
    sim.client("clients", async move {
        let world = World::new(Kind::Simulated, seed, cluster.bootstrap(), Arc::new(TurmoilConnect), Some(cluster));
        let world = world.behind(story.doors);
        let verdict = tell(&story, &world, &plan).await;
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some((verdict, world.elapsed()));
        Ok(())
    });
    let ran = sim.run();
    let virtual_time = sim.elapsed();
    drop(sim);
    let told = verdict.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (verdict, virtual_time) = match (told, ran) {
        (Some((verdict, elapsed)), _) => (verdict, elapsed),
        (None, Err(error)) => (Err(Failure::new(format!("the simulation ended with: {error}"))), virtual_time),
        (None, Ok(())) => (Err(Failure::new("the simulation ended without a verdict")), virtual_time),
    };
    Ended { verdict, virtual_time, trace: super::trace(&fake) }
}

async fn listen(fake: Arc<FakeCluster>, node: i32) -> turmoil::Result {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let fake = fake.clone();
        tokio::spawn(async move { fake.serve(node, stream).await });
    }
}

/// What the fake calls its nodes when it has no shell of its own.
fn host_name(node: i32) -> String {
    format!("broker-{node}")
}

struct TurmoilConnect;

impl Connect for TurmoilConnect {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move { Ok(Box::new(TcpStream::connect((host, port)).await?) as Box<dyn Stream>) })
    }
}

/// turmoil's clock. Each host's runtime has a base of its own, so that their instants cannot be compared; this one can.
#[derive(Debug)]
struct SimulatedClock(Instant);

impl Clock for SimulatedClock {
    fn now(&self) -> Instant {
        self.0 + turmoil::sim_elapsed().unwrap_or_default()
    }
}

#[expect(clippy::disallowed_methods, reason = "only differences from this base are ever looked at")]
fn base() -> Instant {
    Instant::now()
}
