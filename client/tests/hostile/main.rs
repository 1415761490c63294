//! BY-01, BY-02, BY-03, BY-10, BY-11, BY-15, BY-16, BY-17: a peer that answers as Kafka does but for one mistake, at
//! any byte of any answer. Nothing panics, nothing hangs beyond its timeout, nothing takes memory beyond its limits,
//! and afterwards the same handle works.
//!
//! A session (`session.rs`) is recorded once against the fake; then it is repeated, each time with one mistake
//! (`meddler.rs`). Time is virtual, and the same mistake always meets the same bytes. By default a few hundred mistakes
//! are tried, spread over all answers; `just hostile` tries them all.

#![allow(clippy::disallowed_methods, reason = "tests ask for the virtual time to see how long something took")]

mod meddler;
mod nulls;
mod session;

use std::cell::Cell;
use std::sync::Once;
use std::time::Duration;

use allocation_counter::measure;

use crate::meddler::{Mistake, Plan};
use crate::session::{Ending, Kind, run};

/// How much more than an undisturbed session one with a mistake may hold at a time: a response as large as is allowed,
/// what it decodes to, and a little.
const MORE_MEMORY: u64 = 3 * session::MAX_RESPONSE_SIZE as u64 + (2 << 20);

/// A session takes a few seconds; each mistake may cost request timeouts, backoffs, and the longest throttle.
const BOUND: Duration = Duration::from_secs(20 * 60);

thread_local! {
    /// How often something panicked on this thread, which is all that a runtime of one thread has.
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// Counts panics: those in tasks would be lost with the task.
fn count_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            before(panic);
        }));
    });
}

/// Runs a session with a plan; what became of it, and how many bytes it held at most.
fn measured(kind: Kind, plan: Plan) -> (Ending, u64) {
    count_panics();
    let mut ending = None;
    let taken = measure(|| ending = Some(run(kind, plan)));
    (ending.expect("it was run"), taken.bytes_max)
}

/// From one mistake that is tried to the next.
fn stride(all: usize, wanted: usize) -> usize {
    if std::env::var_os("KRAFKA_HOSTILE").is_some_and(|value| value == "all") {
        return 1;
    }
    // Each byte has some changes, each answer some banners: the stride has no divisor in common with their number, so
    // that all of them get their turn.
    let is_odd = |stride: &usize| [2, 3, 5, 7].iter().all(|number| !stride.is_multiple_of(*number));
    ((all / wanted).max(1)..).find(is_odd).expect("there is always another")
}

/// Tries one in so many of these mistakes.
fn try_all(
    kind: Kind,
    mistakes: impl Iterator<Item = Mistake> + Clone,
    wanted: usize,
    is_harmless: impl Fn(Mistake) -> bool,
) {
    let (undisturbed, memory) = measured(kind, Plan::none());
    let stride = stride(mistakes.clone().count(), wanted);

    for mistake in mistakes.step_by(stride) {
        let (ending, taken) = measured(kind, Plan::one(mistake));

        assert_eq!(PANICS.get(), 0, "{mistake:?}: something panicked");
        assert!(ending.was_made, "{mistake:?} met no byte: the session is not the one that was recorded");
        assert!(ending.is_well, "{mistake:?}: the handle does not work afterwards: {ending:?}");
        assert!(ending.took <= BOUND, "{mistake:?}: it took {:?}", ending.took);
        assert!(taken <= memory + MORE_MEMORY, "{mistake:?}: {taken} bytes, where {memory} would do");
        if is_harmless(mistake) {
            assert_eq!(ending.read, undisturbed.read, "{mistake:?}");
        }
    }
}

/// The lengths of the answers of an undisturbed session, in the order in which they come.
fn answers(kind: Kind) -> Vec<usize> {
    let ending = run(kind, Plan::none());
    let (values, answers) = match kind {
        Kind::Whole => (6, 30),
        Kind::Login => (0, 8),
    };
    assert!(ending.is_well && ending.read.len() == values && ending.answers.len() >= answers, "{ending:?}");
    ending.answers
}

fn each_byte(answers: &[usize]) -> impl Iterator<Item = (usize, usize)> + Clone {
    answers.iter().enumerate().flat_map(|(answer, length)| (0..*length).map(move |byte| (answer, byte)))
}

#[test]
fn a_changed_byte() {
    let answers = answers(Kind::Whole);
    let changes = [0x01, 0x80, 0xff];
    let mistakes = each_byte(&answers)
        .flat_map(move |(answer, byte)| changes.map(|change| Mistake::Changed { answer, byte, change }));

    try_all(Kind::Whole, mistakes, 120, |_| false);
}

/// BY-10 of what is said before a connection is used.
#[test]
fn a_changed_byte_while_logging_in() {
    let answers = answers(Kind::Login);
    let changes = [0x01, 0x80, 0xff];
    let mistakes = each_byte(&answers)
        .flat_map(move |(answer, byte)| changes.map(|change| Mistake::Changed { answer, byte, change }));

    try_all(Kind::Login, mistakes, 60, |_| false);
}

/// And then the connection is closed.
#[test]
fn an_answer_cut_short() {
    let answers = answers(Kind::Whole);
    let mistakes = each_byte(&answers).map(|(answer, byte)| Mistake::Cut { answer, byte });

    // A lost connection is replaced, and what was asked is asked again: nobody notices.
    try_all(Kind::Whole, mistakes, 50, |mistake| !matches!(mistake, Mistake::Cut { answer: 0, .. }));
}

/// And then the peer is silent, but stays.
#[test]
fn an_answer_that_never_ends() {
    let answers = answers(Kind::Whole);
    let mistakes = each_byte(&answers).map(|(answer, byte)| Mistake::Stopped { answer, byte });

    try_all(Kind::Whole, mistakes, 40, |_| false);
}

#[test]
fn a_repeated_byte() {
    let answers = answers(Kind::Whole);
    let mistakes = each_byte(&answers).map(|(answer, byte)| Mistake::RepeatedByte { answer, byte });

    try_all(Kind::Whole, mistakes, 50, |_| false);
}

/// Also in place of the next, which is then another API's.
#[test]
fn a_repeated_answer() {
    let answers = answers(Kind::Whole).len();
    let mistakes = (0..answers).flat_map(|answer| [Mistake::Repeated { answer }, Mistake::Replaced { answer }]);

    try_all(Kind::Whole, mistakes, 45, |_| false);
}

/// BY-01: lengths that no frame has, and that no frame may have.
#[test]
fn an_absurd_length() {
    let answers = answers(Kind::Whole).len();
    let lengths =
        [-1, i32::MIN, 0, 3, i32::MAX, session::MAX_RESPONSE_SIZE as i32 + 1, session::MAX_RESPONSE_SIZE as i32];
    let mistakes = (0..answers).flat_map(|answer| lengths.map(|length| Mistake::Length { answer, length }));

    try_all(Kind::Whole, mistakes, 45, |_| false);
}

/// BY-15, BY-16: in place of an answer, or before it.
#[test]
fn another_protocol() {
    let answers = answers(Kind::Whole).len();
    let banners = [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\x15\x03\x03\0\x02\x02\x46",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\0\0\0\x04\0\0\0\x63",
    ];
    let mistakes = (0..answers).flat_map(|answer| banners.map(|banner| Mistake::Banner { answer, banner }));

    try_all(Kind::Whole, mistakes, 45, |_| false);
}
