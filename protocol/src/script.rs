//! The test harness of all machines: inputs at times go in, actions come out, and the three laws are watched.
//!
//! A scenario is a closure that is run twice on fresh machines, from the same instant:
//!
//! ```
//! use std::time::{Duration, Instant};
//! use krafka_protocol::machine::Machine;
//! use krafka_protocol::script::Script;
//!
//! /// Rings once, a second after it was wound up.
//! #[derive(Default)]
//! struct Alarm(Option<Instant>);
//!
//! impl Machine for Alarm {
//!     type Input = &'static str;
//!     type Action = &'static str;
//!     fn handle(&mut self, input: &'static str, now: Instant) {
//!         self.0 = (input == "wind up").then(|| now + Duration::from_secs(1));
//!     }
//!     fn poll(&mut self, now: Instant) -> Option<&'static str> {
//!         self.0.take_if(|due| *due <= now).map(|_| "ring")
//!     }
//!     fn deadline(&self) -> Option<Instant> {
//!         self.0
//!     }
//! }
//!
//! Script::run(|_start| Alarm::default(), |script| {
//!     script.input("wind up");
//!     assert_eq!(script.actions(), [""; 0]);
//!
//!     script.at(Duration::from_secs(5));
//!     assert_eq!(script.timed_actions(), [(Duration::from_secs(1), "ring")]);
//!
//!     script.close("stop", |alarm| usize::from(alarm.0.is_some()));
//! });
//! ```

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::Machine;

/// A machine on a clock that only the script moves.
pub struct Script<M: Machine> {
    machine: M,
    start: Instant,
    now: Instant,
    actions: Vec<(Duration, M::Action)>,
    /// Every action ever, in words: what two runs must agree on.
    trace: Vec<String>,
}

impl<M: Machine<Action: Debug>> Script<M> {
    /// A machine that acts more often than this without time passing is taken to never stop.
    pub const MOST_ACTIONS: usize = 100_000;

    /// Runs a scenario twice on machines that `build` makes from the instant at which the scenario starts.
    ///
    /// # Panics
    /// The scenario panics; a law is broken; the two runs differ.
    pub fn run(build: impl Fn(Instant) -> M, scenario: impl Fn(&mut Self)) {
        // Instants cannot be made up, so one is asked for; no machine sees any other clock.
        #[expect(clippy::disallowed_methods, reason = "the one origin of a script's time")]
        let start = Instant::now();
        let [first, second] = [(), ()].map(|()| {
            let mut script = Self { machine: build(start), start, now: start, actions: Vec::new(), trace: Vec::new() };
            script.drain();
            scenario(&mut script);
            script.trace
        });
        assert_eq!(first, second, "the same inputs at the same times gave different actions");
    }

    /// Moves the clock to `since_start`, stopping at each deadline on the way.
    ///
    /// # Panics
    /// The time is in the past, or a law is broken.
    pub fn at(&mut self, since_start: Duration) -> &mut Self {
        let target = self.start + since_start;
        assert!(target >= self.now, "the clock stands at {:?} and cannot go back to {since_start:?}", self.elapsed());
        while let Some(deadline) = self.machine.deadline().filter(|deadline| *deadline <= target) {
            self.now = deadline;
            self.drain();
        }
        self.now = target;
        self.drain();
        self
    }

    /// Moves the clock on by `duration`, stopping at each deadline on the way.
    ///
    /// # Panics
    /// A law is broken.
    pub fn after(&mut self, duration: Duration) -> &mut Self {
        self.at(self.elapsed() + duration)
    }

    /// Tells the machine what happened, and lets it act.
    ///
    /// # Panics
    /// A law is broken.
    pub fn input(&mut self, input: M::Input) -> &mut Self {
        self.trace.push(format!("{:?}: input", self.elapsed()));
        self.machine.handle(input, self.now);
        self.drain();
        self
    }

    /// What the machine has done since this was asked last.
    pub fn actions(&mut self) -> Vec<M::Action> {
        self.actions.drain(..).map(|(_, action)| action).collect()
    }

    /// What the machine has done since this was asked last, and when.
    pub fn timed_actions(&mut self) -> Vec<(Duration, M::Action)> {
        std::mem::take(&mut self.actions)
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    /// The instant that the machine takes for now.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How long after the start the machine wants to be polled again.
    pub fn deadline(&self) -> Option<Duration> {
        self.machine.deadline().map(|deadline| deadline - self.start)
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Gives the machine its closing input, and all the time it wants; then `owed` counts the answers that are missing.
    ///
    /// # Panics
    /// Answers are missing, the machine wants to go on for ever, or a law is broken.
    pub fn close(&mut self, input: M::Input, owed: impl Fn(&M) -> usize) -> &mut Self {
        self.input(input);
        for _ in 0..Self::MOST_ACTIONS {
            let Some(deadline) = self.deadline() else {
                let owed = owed(&self.machine);
                assert_eq!(owed, 0, "after its closing input the machine owes {owed} answers");
                return self;
            };
            self.at(deadline);
        }
        panic!("after its closing input the machine still sets deadlines: the next is {:?}", self.deadline());
    }

    /// Carries out all that the machine wants to do now.
    fn drain(&mut self) {
        let elapsed = self.elapsed();
        for _ in 0..Self::MOST_ACTIONS {
            let Some(action) = self.machine.poll(self.now) else {
                if let Some(deadline) = self.machine.deadline() {
                    assert!(
                        deadline > self.now,
                        "at {elapsed:?} the machine is drained, and its deadline is {:?} in the past",
                        self.now - deadline,
                    );
                }
                return;
            };
            self.trace.push(format!("{elapsed:?}: {action:?}"));
            self.actions.push((elapsed, action));
        }
        panic!("at {elapsed:?} the machine does not stop acting: {:?}", self.trace.last());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Echoes each number after a second, unless told to misbehave.
    #[derive(Default)]
    struct Echo {
        waiting: Vec<(Instant, u32)>,
        is_late: bool,
        is_restless: bool,
        is_forgetful: bool,
        salt: u32,
    }

    impl Machine for Echo {
        type Input = Option<u32>;
        type Action = u32;

        fn handle(&mut self, input: Option<u32>, now: Instant) {
            match input {
                Some(number) => self.waiting.push((now + SECOND, number)),
                None if self.is_forgetful => {}
                None => self.waiting.iter_mut().for_each(|(due, _)| *due = now),
            }
        }

        fn poll(&mut self, now: Instant) -> Option<u32> {
            if self.is_restless {
                return Some(0);
            }
            let due = self.waiting.iter().position(|(due, _)| *due <= now && !self.is_late)?;
            Some(self.waiting.remove(due).1 + self.salt)
        }

        fn deadline(&self) -> Option<Instant> {
            let due = self.waiting.iter().map(|(due, _)| *due).min();
            if self.is_forgetful { None } else { due }
        }
    }

    #[test]
    fn time_stops_at_each_deadline() {
        Script::run(
            |_| Echo::default(),
            |script| {
                script.input(Some(1)).after(SECOND / 2).input(Some(2));
                assert_eq!(script.deadline(), Some(SECOND));

                script.at(SECOND * 9);
                assert_eq!(script.timed_actions(), [(SECOND, 1), (SECOND * 3 / 2, 2)]);
                assert_eq!(script.elapsed(), SECOND * 9);
            },
        );
    }

    #[test]
    fn a_closed_machine_has_answered() {
        Script::run(
            |_| Echo::default(),
            |script| {
                script.input(Some(7)).close(None, |echo| echo.waiting.len());
                assert_eq!(script.actions(), [7]);
            },
        );
    }

    #[test]
    #[should_panic = "the machine is drained, and its deadline is 0ns in the past"]
    fn a_deadline_in_the_past_is_found() {
        Script::run(
            |_| Echo { is_late: true, ..Echo::default() },
            |script| {
                script.input(Some(1)).at(SECOND * 2);
            },
        );
    }

    #[test]
    #[should_panic = "the same inputs at the same times gave different actions"]
    fn chance_is_found() {
        let runs = Cell::new(0);
        Script::run(
            |_| Echo { salt: runs.replace(runs.get() + 1), ..Echo::default() },
            |script| {
                script.input(Some(1)).at(SECOND);
            },
        );
    }

    #[test]
    #[should_panic = "after its closing input the machine owes 1 answers"]
    fn a_missing_answer_is_found() {
        Script::run(
            |_| Echo { is_forgetful: true, ..Echo::default() },
            |script| {
                script.input(Some(1)).close(None, |echo| echo.waiting.len());
            },
        );
    }

    #[test]
    #[should_panic = "the machine does not stop acting"]
    fn a_machine_without_an_end_is_found() {
        Script::run(|_| Echo { is_restless: true, ..Echo::default() }, |_| {});
    }
}
