//! Runs one story in one world, and says how it ended.
//!
//! Each run has a thread of its own: simulated time stops for a task that never yields, so only the machine's clock can
//! notice one, and a panic in any task of the run must fail it, which a hook on that thread sees.

use std::cell::RefCell;
use std::panic;
use std::sync::{Once, mpsc};
use std::thread;
use std::time::Duration;

use crate::nemesis::Plan;
use crate::worlds::{scripted, simulated};
use crate::{Failure, Kind, Result, Story, World, invariants};

/// The most that a run may take of the machine's time.
const WALL_LIMIT: Duration = Duration::from_secs(300);

/// How one run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The story's name.
    pub story: &'static str,
    /// Where it ran.
    pub kind: Kind,
    /// With which seed.
    pub seed: u64,
    /// Whether it held.
    pub verdict: Result<()>,
    /// How much time passed in the world.
    pub virtual_time: Duration,
    /// How much time passed on the machine.
    pub wall_time: Duration,
    /// The faults that the seed drew.
    pub plan: Plan,
    /// What the cluster was asked and answered, a line each; the same for the same run.
    pub trace: Vec<String>,
}

impl Outcome {
    /// The command that repeats this run.
    #[must_use]
    pub fn command(&self) -> String {
        let Self { story, kind, seed, .. } = self;
        format!("cargo run --release -p scenarios -- --story {story} --world {kind} --seed {seed}")
    }
}

/// What a world hands back when its run is over.
pub(crate) struct Ended {
    pub(crate) verdict: Result<()>,
    pub(crate) virtual_time: Duration,
    pub(crate) trace: Vec<String>,
}

/// Runs a story in a world without a real cluster.
///
/// # Panics
/// If asked for [`Kind::Real`]: those runs are [`worlds::real`](crate::worlds::real)'s.
#[must_use]
pub fn run(story: &Story, kind: Kind, seed: u64) -> Outcome {
    let plan = match kind {
        Kind::Scripted => Plan::none(),
        Kind::Simulated => Plan::draw(seed, scripted::NODES),
        Kind::Real => panic!("a real world is run by worlds::real"),
    };
    let began = wall_now();
    let (story, drawn) = (*story, plan.clone());
    let ended = on_a_thread(story.name, move || match kind {
        Kind::Scripted => scripted::run(&story, seed),
        _ => simulated::run(&story, seed, &drawn),
    });
    let Ended { verdict, virtual_time, trace } = ended;
    Outcome { story: story.name, kind, seed, verdict, virtual_time, wall_time: began.elapsed(), plan, trace }
}

/// Tells the story while the plan strikes; then heals, and checks the invariants.
pub(crate) async fn tell(story: &Story, world: &World, plan: &Plan) -> Result<()> {
    let mut disturbing = std::pin::pin!(plan.carry_out(world));
    let mut telling = (story.tell)(world);
    // The plan first: a fault due at the same instant as a story's step strikes before it, in every run.
    let told = tokio::select! {
        biased;
        () = &mut disturbing => telling.await,
        told = &mut telling => {
            disturbing.await;
            told
        }
    };
    told?;
    if let Some(fake) = world.try_fake() {
        crate::nemesis::heal(world, fake);
    }
    invariants::check(world).await
}

/// Runs on a fresh thread, under the wall clock's limit; a panic on it is a failure.
fn on_a_thread(name: &str, run: impl FnOnce() -> Ended + Send + 'static) -> Ended {
    catch_panics();
    let (done, ended) = mpsc::channel();
    let spawned = thread::Builder::new().name(name.to_owned()).stack_size(8 << 20).spawn(move || {
        let mut ended = run();
        if let Some(words) = PANICKED.with_borrow_mut(Option::take) {
            ended.verdict = Err(Failure::new(words));
        }
        // Nobody listens any more once the limit has passed.
        let _ = done.send(ended);
    });
    let failed =
        |words: String| Ended { verdict: Err(Failure::new(words)), virtual_time: Duration::ZERO, trace: vec![] };
    let thread = match spawned {
        Ok(thread) => thread,
        Err(error) => return failed(format!("no thread for the run: {error}")),
    };
    match ended.recv_timeout(WALL_LIMIT) {
        Ok(ended) => ended,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            failed(format!("hung: no end within {WALL_LIMIT:?} of the machine's time"))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(payload) => failed(format!("panicked: {}", words_of(&*payload))),
            Ok(()) => failed("ended without a verdict".to_owned()),
        },
    }
}

thread_local! {
    /// The first panic on this thread, of whichever task: a runtime swallows those of spawned tasks.
    static PANICKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn catch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let words = format!("panicked at {place}: {}", words_of(info.payload()));
            PANICKED.with_borrow_mut(|first| first.get_or_insert(words).len());
            before(info);
        }));
    });
}

fn words_of(payload: &(dyn std::any::Any + Send)) -> String {
    let words = payload.downcast_ref::<&str>().map(ToString::to_string);
    words.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}

#[expect(clippy::disallowed_methods, reason = "the wall time of a run is the machine's")]
pub(crate) fn wall_now() -> std::time::Instant {
    std::time::Instant::now()
}
