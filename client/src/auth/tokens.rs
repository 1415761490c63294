//! The one bearer token of a handle, or its one set of keys: who waits for it, and when the next is asked for.
//!
//! ```text
//!   none ──wanted──▶ fetching ──token──▶ held ──⅘ of its life──▶ fetching anew
//!    ▲                  └──failure, and none is held: all who wait hear why
//!    └─────backoff──────┘            and who comes before the backoff is over
//! ```
//!
//! While the next one is fetched, the old one is given to whoever asks. One that a broker refuses is given no more,
//! unless it is as good as new: keys are rotated, tokens revoked, and clocks differ.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use krafka_protocol::machine::Machine;

use crate::backoff::Backoff;
use crate::rng::Rng;

/// After this part of a token's life the next one is asked for (±5 %). Java: `sasl.login.refresh.window.factor`.
const REFRESH_AT: f64 = 0.8;

/// The spread of it, so that the clients of a cluster do not all ask in the same moment.
const SPREAD: f64 = 0.05;

/// One that was brought no longer ago is not asked for anew because it is refused: the next would be the same.
const NEW: Duration = Duration::from_secs(10);

/// How long a provider that has failed, or brought one that had ended, is left alone.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// What happened.
#[derive(Debug)]
pub(super) enum Input<T, W, E> {
    /// Somebody is about to authenticate.
    Wanted { waiter: W },
    /// The provider brought a token, which holds for so long; `None` for ever.
    Fetched { token: T, life: Option<Duration> },
    /// The provider brought none.
    Failed { why: E },
    /// A broker does not take the token of this number.
    Refused { number: u64 },
}

/// A token for somebody who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given<T> {
    pub(super) token: T,
    /// Which one it is, of all.
    pub(super) number: u64,
    /// Whether the provider has just brought it.
    pub(super) is_new: bool,
}

/// What to do.
#[derive(Debug)]
pub(super) enum Action<T, W, E> {
    /// Ask the provider, who may have failed the last time.
    Fetch {
        is_retry: bool,
    },
    Give {
        waiter: W,
        given: Given<T>,
    },
    Refuse {
        waiter: W,
        why: E,
    },
}

/// The machine. `T` is a token, `W` who waits for it, `E` why there is none.
pub(super) struct Tokens<T, W, E> {
    held: Option<Held<T>>,
    /// How many were brought.
    number: u64,
    is_fetching: bool,
    /// How often in a row it brought nothing that is of use.
    failures: u32,
    /// Why it brought none the last time, and until when it is left alone.
    failing: Option<(E, Instant)>,
    /// Connection attempts, of which the pool has one for each of its slots at most.
    waiting: Vec<W>,
    actions: VecDeque<Action<T, W, E>>,
    rng: Rng,
}

struct Held<T> {
    token: T,
    /// When the provider brought it.
    since: Instant,
    /// When it is no good any more.
    ends: Option<Instant>,
    /// When the next one is asked for.
    refresh: Option<Instant>,
}

impl<T: Clone, W, E: Clone> Tokens<T, W, E> {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            held: None,
            number: 0,
            is_fetching: false,
            failures: 0,
            failing: None,
            waiting: Vec::new(),
            actions: VecDeque::new(),
            rng: Rng::stream(seed, "tokens"),
        }
    }

    fn wanted(&mut self, waiter: W, now: Instant) {
        self.drop_ended(now);
        if let Some(held) = &self.held {
            let is_new = now < held.since + NEW;
            let given = Given { token: held.token.clone(), number: self.number, is_new };
            return self.actions.push_back(Action::Give { waiter, given });
        }
        if let Some((why, _)) = self.failing.as_ref().filter(|(_, until)| !self.is_fetching && now < *until) {
            let why = why.clone();
            return self.actions.push_back(Action::Refuse { waiter, why });
        }
        self.waiting.push(waiter);
        self.fetch();
    }

    fn fetch(&mut self) {
        if !self.is_fetching {
            self.is_fetching = true;
            self.actions.push_back(Action::Fetch { is_retry: self.failing.is_some() });
        }
    }

    /// How long the provider is left alone now.
    fn back_off(&mut self) -> Duration {
        let delay = RETRY.delay(self.failures, &mut self.rng);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    fn fetched(&mut self, token: T, life: Option<Duration>, now: Instant) {
        self.is_fetching = false;
        self.failing = None;
        self.number += 1;
        for waiter in self.waiting.drain(..) {
            let given = Given { token: token.clone(), number: self.number, is_new: true };
            self.actions.push_back(Action::Give { waiter, given });
        }
        // One that has ended already is given to those who ask, for the broker to judge: clocks differ. The next would
        // be the same.
        let is_over = life.is_some_and(|life| life.is_zero());
        let life = match is_over {
            true => Some(self.back_off()),
            false => life,
        };
        if !is_over {
            self.failures = 0;
        }
        let part = REFRESH_AT * self.rng.jitter(SPREAD);
        self.held = Some(Held {
            token,
            since: now,
            ends: life.map(|life| now + life),
            refresh: life.filter(|_| !is_over).map(|life| now + life.mul_f64(part)),
        });
    }

    fn failed(&mut self, why: &E, now: Instant) {
        self.is_fetching = false;
        for waiter in self.waiting.drain(..) {
            self.actions.push_back(Action::Refuse { waiter, why: why.clone() });
        }
        let delay = self.back_off();
        self.failing = Some((why.clone(), now + delay));
        self.drop_ended(now);
        if let Some(held) = &mut self.held {
            // Past its end nobody asks in advance any more: the next who wants one does.
            held.refresh = Some(now + delay).filter(|retry| held.ends.is_none_or(|ends| *retry < ends));
        }
    }

    /// The next who wants one lets the provider be asked.
    fn refused(&mut self, number: u64, now: Instant) {
        self.held.take_if(|held| self.number == number && held.since + NEW <= now);
    }

    fn drop_ended(&mut self, now: Instant) {
        self.held.take_if(|held| held.ends.is_some_and(|ends| ends <= now));
    }
}

impl<T: Clone, W, E: Clone> Machine for Tokens<T, W, E> {
    type Input = Input<T, W, E>;
    type Action = Action<T, W, E>;

    fn handle(&mut self, input: Input<T, W, E>, now: Instant) {
        match input {
            Input::Wanted { waiter } => self.wanted(waiter, now),
            Input::Fetched { token, life } => self.fetched(token, life, now),
            Input::Failed { why } => self.failed(&why, now),
            Input::Refused { number } => self.refused(number, now),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Action<T, W, E>> {
        if let Some(held) = &mut self.held
            && held.refresh.take_if(|due| *due <= now).is_some()
        {
            self.fetch();
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        self.held.as_ref().and_then(|held| held.refresh)
    }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::script::Script;

    use super::*;
    use crate::auth::BearerToken;

    type Test = Script<Tokens<BearerToken, u32, &'static str>>;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);

    fn tokens(scenario: impl Fn(&mut Test)) {
        Script::run(|_| Tokens::new(1), scenario);
    }

    fn want(script: &mut Test, waiter: u32) {
        script.input(Input::Wanted { waiter });
    }

    fn fetched(script: &mut Test, life: Option<Duration>) {
        script.input(Input::Fetched { token: BearerToken::new("t"), life });
    }

    fn failed(script: &mut Test) {
        script.input(Input::Failed { why: "no route" });
    }

    /// The actions in a word or two each.
    fn done(script: &mut Test) -> Vec<String> {
        let word = |action| match action {
            Action::Fetch { is_retry: false } => "fetch".to_owned(),
            Action::Fetch { is_retry: true } => "fetch again".to_owned(),
            Action::Give { waiter, .. } => format!("give {waiter}"),
            Action::Refuse { waiter, why } => format!("refuse {waiter}: {why}"),
        };
        script.actions().into_iter().map(word).collect()
    }

    /// AU-10: one request for all.
    #[test]
    fn connections_share_one_request() {
        tokens(|script| {
            want(script, 1);
            want(script, 2);
            assert_eq!(done(script), ["fetch"]);

            fetched(script, None);
            want(script, 3);

            assert_eq!(done(script), ["give 1", "give 2", "give 3"]);
            assert_eq!(script.deadline(), None);
        });
    }

    /// AU-10: the next one is there before the old one ends.
    #[test]
    fn the_next_token_is_asked_for_ahead_of_the_end() {
        tokens(|script| {
            want(script, 1);
            fetched(script, Some(10 * MINUTE));
            done(script);

            script.at(7 * MINUTE);
            assert_eq!(done(script), [""; 0]);
            script.at(9 * MINUTE);
            want(script, 2);
            assert_eq!(done(script), ["fetch", "give 2"]);

            fetched(script, Some(10 * MINUTE));
            script.at(16 * MINUTE);
            assert_eq!(done(script), [""; 0]);
        });
    }

    /// AU-10: a token that was revoked, or whose key was rotated.
    #[test]
    fn a_token_that_is_refused_is_not_given_again_unless_it_is_new() {
        tokens(|script| {
            want(script, 1);
            fetched(script, None);
            done(script);

            script.input(Input::Refused { number: 1 });
            want(script, 2);
            assert_eq!(done(script), ["give 2"], "the next one would be the same");

            script.after(MINUTE);
            script.input(Input::Refused { number: 0 });
            want(script, 3);
            assert_eq!(done(script), ["give 3"], "that was another one");
            script.input(Input::Refused { number: 1 });
            want(script, 4);
            assert_eq!(done(script), ["fetch"]);
            fetched(script, None);
            script.input(Input::Refused { number: 1 });
            want(script, 5);
            assert_eq!(done(script), ["give 4", "give 5"]);
        });
    }

    #[test]
    fn the_old_token_is_used_while_it_holds_and_no_longer() {
        tokens(|script| {
            want(script, 1);
            fetched(script, Some(10 * MINUTE));
            script.at(9 * MINUTE);
            failed(script);
            want(script, 2);
            assert_eq!(done(script), ["fetch", "give 1", "fetch", "give 2"]);
            script.at(9 * MINUTE + 2 * SECOND);
            assert_eq!(done(script), ["fetch again"]);
            failed(script);

            script.at(11 * MINUTE);
            done(script);
            want(script, 3);
            failed(script);
            assert_eq!(done(script).last().map(String::as_str), Some("refuse 3: no route"));
        });
    }

    #[test]
    fn a_failure_reaches_all_who_wait_and_the_next_asks_anew() {
        tokens(|script| {
            want(script, 1);
            want(script, 2);
            failed(script);
            want(script, 3);
            assert_eq!(done(script), ["fetch", "refuse 1: no route", "refuse 2: no route", "refuse 3: no route"]);

            script.after(2 * SECOND);
            want(script, 4);
            want(script, 5);
            fetched(script, None);
            want(script, 6);
            assert_eq!(done(script), ["fetch again", "give 4", "give 5", "give 6"]);
        });
    }

    /// Whoever is turned away comes again: a thousand times in ten minutes, and more.
    #[test]
    fn a_provider_that_is_down_is_asked_ever_more_slowly() {
        tokens(|script| {
            let mut asked = 0;
            for waiter in 0..1_200 {
                want(script, waiter);
                let fetches = done(script).into_iter().filter(|done| done.starts_with("fetch")).count();
                asked += fetches;
                (0..fetches).for_each(|_| failed(script));
                script.after(SECOND / 2);
            }

            assert!((20..=30).contains(&asked), "{asked} requests in ten minutes");
        });
    }

    /// A provider whose tokens have ended when they come: a clock is wrong, perhaps ours.
    #[test]
    fn tokens_without_life_are_given_and_not_asked_for_at_each_turn() {
        tokens(|script| {
            want(script, 1);
            fetched(script, Some(Duration::ZERO));
            want(script, 2);
            assert_eq!(done(script), ["fetch", "give 1", "give 2"]);
            assert_eq!(script.deadline(), None);

            let mut asked = 0;
            for waiter in 3..1_203 {
                script.after(SECOND / 2);
                want(script, waiter);
                let fetches = done(script).into_iter().filter(|done| done.starts_with("fetch")).count();
                asked += fetches;
                (0..fetches).for_each(|_| fetched(script, Some(Duration::ZERO)));
            }
            assert!((20..=30).contains(&asked), "{asked} requests in ten minutes");
        });
    }

    #[test]
    fn failed_refreshes_are_spaced() {
        tokens(|script| {
            want(script, 1);
            fetched(script, Some(10 * MINUTE));
            script.at(9 * MINUTE);
            done(script);
            let mut asked = 0;
            for _ in 0..100 {
                failed(script);
                let Some(deadline) = script.deadline() else { break };
                script.at(deadline);
                asked += done(script).len();
            }

            assert!((3..=10).contains(&asked), "{asked} requests in the last minute");
        });
    }
}
