//! Whether a rule holds where its test runs; and where it need not, why.
//!
//!     the test returns    ──▶ holds        or, if it said that this place differs, a failure: it no longer does
//!     the test panics     ──▶ a failure    or, if it said that this place differs, "differs", and why
//!     it finds no API     ──▶ not there    and why
//!
//! libtest knows passed and failed only. So that a test that did not judge is not taken for one that did, each verdict
//! is a line of the file that `KRAFKA_AGREEMENTS` names: `conformance/agreements` makes the table of it.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::thread;

/// The environment variable that names the file for the verdicts.
const AGREEMENTS: &str = "KRAFKA_AGREEMENTS";

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The fake.
    Fake,
    /// A Kafka.
    Real,
}

/// What a test says about the place that it runs at.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    place: Place,
    difference: Rc<RefCell<Option<String>>>,
}

/// What a test unwinds with when the place has not got what it is about.
struct NotThere(String);

impl Agreement {
    /// An agreement at this place, until the test says otherwise.
    pub(crate) fn new(place: Place) -> Self {
        Self { place, difference: Rc::default() }
    }

    /// Ends the test: the place has not got what it is about.
    pub(crate) fn is_not_there(&self, why: String) -> ! {
        // No panic: the hook has nothing to print, as nothing is wrong.
        resume_unwind(Box::new(NotThere(why)))
    }

    /// States that what comes does not hold here.
    pub(crate) fn differs(&self, why: String) {
        *self.difference.borrow_mut() = Some(why);
    }

    /// Runs a test to its verdict.
    pub(crate) fn judge(&self, test: impl FnOnce()) {
        let ended = catch_unwind(AssertUnwindSafe(test));
        match (ended, self.difference.take()) {
            (Ok(()), None) => self.tell("holds", ""),
            (Ok(()), Some(why)) => panic!("the difference that the test states is no longer there: {why}"),
            (Err(payload), difference) => match (payload.downcast::<NotThere>(), difference) {
                (Ok(not_there), _) => self.tell("not there", &not_there.0),
                (Err(_), Some(why)) => self.tell("differs", &why),
                (Err(payload), None) => resume_unwind(payload),
            },
        }
    }

    fn tell(&self, verdict: &str, why: &str) {
        // The thread of a test has its name.
        let (place, name) = (self.place, thread::current().name().unwrap_or("?").to_owned());
        if !why.is_empty() {
            println!("{name}: {verdict} on {place:?}: {why}");
        }
        if let Ok(path) = std::env::var(AGREEMENTS) {
            let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the file for the verdicts");
            // One write a line, so that tests that run beside each other do not mix theirs.
            let line = format!("{name}\t{place:?}\t{verdict}\t{why}\n");
            file.write_all(line.as_bytes()).expect("room for a line");
        }
    }
}

#[test]
fn test_that_states_a_difference_must_fail() {
    let agreement = Agreement::new(Place::Fake);

    agreement.judge(|| {
        agreement.differs("it is said to".to_owned());
        panic!("and it does");
    });
    let stale = catch_unwind(AssertUnwindSafe(|| agreement.judge(|| agreement.differs("it is said to".to_owned()))));
    let failed = catch_unwind(AssertUnwindSafe(|| agreement.judge(|| panic!("nothing was said"))));

    assert!(stale.is_err() && failed.is_err());
}

#[test]
fn test_ends_where_something_is_not_there() {
    let agreement = Agreement::new(Place::Fake);

    agreement.judge(|| agreement.is_not_there("nothing comes behind this".to_owned()));
}
