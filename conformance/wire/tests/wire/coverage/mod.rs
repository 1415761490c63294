//! Which test judges which scenario, and which API: `conformance/COVERAGE.md`, made of the marks in the tests.
//!
//! `rules.tsv` has the scenarios of the groups LE, BY and FI, and the reason where one does not judge a broker. A test
//! takes a scenario on by naming its id in its doc comment, or in the first lines of its file for all tests of that
//! file. A scenario without a test fails here, and so does an id that is not on the list, and an API that the fake
//! serves and no test sends. `just coverage` writes the page anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use krafka_fake_broker::FakeCluster;
use krafka_protocol::{ApiKey, ApiVersionsRequest};

use crate::target::on_fake;

mod client;
mod marks;

use marks::{Marked, Marks, source_files};

/// The scenarios: an id, what it says, and perhaps why no test of the fake's has it.
const RULES: &str = include_str!("rules.tsv");

/// The environment variable that asks for the page to be written.
const WRITE: &str = "KRAFKA_WRITE_COVERAGE";

/// What stands above the tables.
const INTRODUCTION: &str = "\
# Coverage

Which tests judge which scenario and which API. Made of the marks in the tests by `just coverage`: do not edit. Where
each test holds, on the fake and on real Kafka, is in [AGREEMENTS.md](AGREEMENTS.md). Names without a crate are tests
of `conformance/wire/tests/wire`.
";

/// What a group of scenarios is about.
const GROUPS: [(&str, &str); 3] =
    [("LE", "Leaders that move"), ("BY", "Bytes that nobody should send"), ("FI", "What the fake must prove")];

/// One line of the list.
struct Rule {
    id: &'static str,
    says: &'static str,
    reason: Option<&'static str>,
}

fn rules(list: &'static str) -> Vec<Rule> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut parts = line.split('\t');
            let mut next = || parts.next().filter(|part| !part.is_empty());
            Rule { id: next().expect("an id"), says: next().expect("what it says"), reason: next() }
        })
        .collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two folders up").to_owned()
}

/// The marks of all tests that judge the fake.
fn marks() -> Marks {
    let mut marks = Marks::of_groups(&["LE", "BY", "FI"]);
    for (folder, prefix) in [
        ("conformance/wire/tests/wire", ""),
        ("fake-broker/src", "krafka-fake-broker: "),
        ("fake-broker/tests", "krafka-fake-broker: "),
    ] {
        marks.read(&repository().join(folder), prefix, Marked::Tests);
    }
    marks
}

/// The files of wire tests that send each API's request.
fn senders() -> BTreeMap<ApiKey, BTreeSet<String>> {
    let mut senders: BTreeMap<ApiKey, BTreeSet<String>> = BTreeMap::new();
    for (module, text) in source_files(&repository().join("conformance/wire/tests/wire")) {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
            let key =
                word.strip_suffix("Request").and_then(|name| ApiKey::SPOKEN.iter().find(|key| key.name() == name));
            if let Some(key) = key {
                senders.entry(*key).or_default().insert(module.clone());
            }
        }
    }
    senders
}

/// The tests that name an id, in one cell.
fn told(marks: &Marks, id: &str) -> String {
    marks.of(id).iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join(", ")
}

fn page() -> String {
    let (rules, marks) = (rules(RULES), marks());
    let mut page = INTRODUCTION.to_owned();
    for (group, about) in GROUPS {
        let of_group = rules.iter().filter(|rule| rule.id.starts_with(group));
        let (judged, excused): (Vec<_>, Vec<_>) = of_group.clone().partition(|rule| rule.reason.is_none());
        write!(
            page,
            "\n## {about} ({group})\n\n{} of {} judge the fake.\n\n| id | rule | tests |\n| --- | --- | --- |\n",
            judged.len(),
            judged.len() + excused.len()
        )
        .expect("a string has room");
        // Some tests are about several items of a rule, and name the rule.
        let families: BTreeSet<_> = rules.iter().map(|rule| &rule.id[..5]).collect();
        for family in families {
            let tests = told(&marks, family);
            if family.starts_with(group) && !tests.is_empty() && !rules.iter().any(|rule| rule.id == family) {
                writeln!(page, "| {family} | as a whole | {tests} |").expect("a string has room");
            }
        }
        for Rule { id, says, reason } in of_group {
            let tests = told(&marks, id);
            let cell = reason.map_or(tests, |reason| format!("none: {reason}"));
            writeln!(page, "| {id} | {says} | {cell} |").expect("a string has room");
        }
    }
    page += "\n## APIs\n\nWhich files of wire tests send each API that the fake serves.\n\n";
    page += "| API | files |\n| --- | --- |\n";
    for (key, files) in senders() {
        let files = files.iter().map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
        writeln!(page, "| {} {} | {files} |", key.code(), key.name()).expect("a string has room");
    }
    page
}

#[test]
fn each_scenario_has_a_test_or_a_reason() {
    let (rules, marks) = (rules(RULES), marks());

    let open: Vec<_> =
        rules.iter().filter(|rule| rule.reason.is_none() && marks.of(rule.id).is_empty()).map(|rule| rule.id).collect();
    let excused: Vec<_> = rules
        .iter()
        .filter(|rule| rule.reason.is_some() && !marks.of(rule.id).is_empty())
        .map(|rule| rule.id)
        .collect();
    let known: BTreeSet<_> = rules.iter().map(|rule| rule.id).collect();
    let is_known = |id: &str| known.iter().any(|known| known.starts_with(id));
    let strange: Vec<_> = marks.ids().filter(|id| !is_known(id)).collect();

    assert_eq!(open, [""; 0], "no test names these");
    assert_eq!(excused, [""; 0], "these have a test, and a reason to have none");
    assert_eq!(strange, [""; 0], "tests name these, and rules.tsv does not");
}

/// What the fake serves, its telemetry included, is asked for on the wire.
#[test]
fn each_api_that_is_served_is_sent_by_a_test() {
    on_fake(FakeCluster::builder().client_telemetry(true), async |target, _| {
        let senders = senders();
        let asked = ApiVersionsRequest {
            client_software_name: "wire".into(),
            client_software_version: "1".into(),
            ..ApiVersionsRequest::default()
        };
        let answer = target.connect().await.call(asked, 3).await;
        let served: Vec<_> = answer.api_keys.iter().filter_map(|key| ApiKey::from_code(key.api_key)).collect();
        let unsent: Vec<_> = served.iter().filter(|key| !senders.contains_key(key)).collect();

        assert!(served.len() > 70, "{served:?}");
        assert_eq!(unsent, [&ApiKey::Produce; 0]);
    });
}

/// Writes a page where that is asked for, and fails where it is not what was written.
fn assert_written(name: &str, page: &str) {
    let path = repository().join("conformance").join(name);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, page).expect("the page can be written");
    }

    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "conformance/{name} is not what the tests say: run `just coverage`");
}

#[test]
fn page_is_what_the_marks_say() {
    assert_written("COVERAGE.md", &page());
}
