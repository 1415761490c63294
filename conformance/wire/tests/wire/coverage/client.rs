//! Where the scenarios of the client's foundation are judged: `conformance/SCENARIOS.md`, made of the marks in the
//! tests.
//!
//! `client.tsv` has the scenarios, and the reason where real Kafka does not judge one. A test takes a scenario on as
//! [above](super): by its doc comment, or in the first lines of its file. So do stories, and the trials of
//! `conformance`. A scenario that nothing judges needs a reason; so does one that real Kafka does not judge.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::marks::{Marked, Marks, ids, source_files, tests};
use super::{Rule, assert_written, repository, rules};

/// The scenarios: an id, what it says, and perhaps why real Kafka has no part in it.
const SCENARIOS: &str = include_str!("client.tsv");

/// What stands above the tables.
const INTRODUCTION: &str = "\
# Scenarios of the client

Where each scenario of the client's foundation is judged. Made of the marks in the tests by `just coverage`: do not
edit.

- **machine**: tests of one machine or value, in `client/src` and `protocol`;
- **handle**: tests through the public handle, on the fake, with paused time: `client/tests`;
- **story**: `scenarios/src/stories`, in the scripted and the simulated world, where a seed draws more faults;
- **real**: on real Kafka 4.4.0 and 3.9.2, and on the fake over TCP: `conformance/src` (trials, doors), and the stories
  that run there as well. A dash is followed by the reason.
";

/// The groups of scenarios, and what each is about.
const GROUPS: [(&str, &str); 10] = [
    ("CB", "Connections and bootstrap"),
    ("AV", "Versions"),
    ("MD", "Metadata"),
    ("LE", "Leaders that move"),
    ("AU", "Logins and permissions"),
    ("TH", "Throttles and quotas"),
    ("RB", "Beginning again"),
    ("TL", "TLS"),
    ("BY", "Bytes that nobody should send"),
    ("LC", "Lives and ends"),
];

/// The names of the groups.
const NAMES: &[&str] = &["CB", "AV", "MD", "LE", "AU", "TH", "RB", "TL", "BY", "LC"];

/// The marks of each kind of test.
struct Places {
    machine: Marks,
    handle: Marks,
    story: Marks,
    real: Marks,
}

impl Places {
    fn read() -> Self {
        let marks = |folders: &[(&str, &str, Marked)]| {
            let mut marks = Marks::of_groups(NAMES);
            for (folder, prefix, marked) in folders {
                marks.read(&repository().join(folder), prefix, *marked);
            }
            marks
        };
        Self {
            machine: marks(&[
                ("client/src", "", Marked::Tests),
                ("protocol/src", "protocol: ", Marked::Tests),
                ("protocol/tests", "protocol: ", Marked::Tests),
            ]),
            handle: marks(&[("client/tests", "", Marked::Tests)]),
            story: marks(&[("scenarios/src/stories", "", Marked::Stories)]),
            real: marks(&[("conformance/src", "", Marked::Stories)]),
        }
    }

    /// What judges an id on real Kafka: trials, and the stories that run in all worlds.
    fn on_real(&self, id: &str) -> Vec<String> {
        let listed = std::fs::read_to_string(repository().join("scenarios/src/stories/mod.rs")).expect("the stories");
        let is_for_all = |story: &&str| listed.contains(&format!("    {story} in All:"));
        let stories = self.story.of(id).into_iter().filter(is_for_all).map(|story| format!("story {story}"));
        self.real.of(id).into_iter().map(str::to_owned).chain(stories).collect()
    }
}

fn cell<T: AsRef<str>>(tests: &[T]) -> String {
    tests.iter().map(|test| format!("`{}`", test.as_ref())).collect::<Vec<_>>().join(", ")
}

fn page() -> String {
    let (scenarios, places) = (rules(SCENARIOS), Places::read());
    let mut page = INTRODUCTION.to_owned();
    for (group, about) in GROUPS {
        let of_group: Vec<_> = scenarios.iter().filter(|scenario| scenario.id.starts_with(group)).collect();
        let on_real = of_group.iter().filter(|scenario| !places.on_real(scenario.id).is_empty()).count();
        let columns = "| id | scenario | machine | handle | story | real |\n| --- | --- | --- | --- | --- | --- |";
        write!(page, "\n## {about} ({group})\n\n{on_real} of {} on real Kafka.\n\n{columns}\n", of_group.len())
            .expect("a string has room");
        for Rule { id, says, reason } in of_group {
            let real = places.on_real(id);
            let real = if real.is_empty() { format!("– {}", reason.unwrap_or_default()) } else { cell(&real) };
            let [machine, handle, story] =
                [&places.machine, &places.handle, &places.story].map(|marks| cell(&marks.of(id)));
            writeln!(page, "| {id} | {says} | {machine} | {handle} | {story} | {real} |").expect("a string has room");
        }
    }
    page
}

/// What nothing judges and what real Kafka does not judge has a reason, which goes when a test comes.
#[test]
fn each_scenario_of_the_client_is_judged_or_has_a_reason() {
    let (scenarios, places) = (rules(SCENARIOS), Places::read());
    let ids_where = |is_so: &dyn Fn(&Rule) -> bool| -> Vec<&str> {
        scenarios.iter().filter(|scenario| is_so(scenario)).map(|scenario| scenario.id).collect()
    };

    let open = ids_where(&|it| places.on_real(it.id).is_empty() && it.reason.is_none());
    let excused = ids_where(&|it| !places.on_real(it.id).is_empty() && it.reason.is_some());
    let known: BTreeSet<_> = scenarios.iter().map(|scenario| scenario.id).collect();
    let named = [&places.machine, &places.handle, &places.story, &places.real].into_iter().flat_map(Marks::ids);
    let strange: BTreeSet<_> = named.filter(|id| !known.contains(id)).collect();

    assert_eq!(open, [""; 0], "real Kafka does not judge these, and client.tsv does not say why");
    assert_eq!(excused, [""; 0], "real Kafka judges these, and client.tsv says why it does not");
    assert_eq!(strange, BTreeSet::new(), "tests name these, and client.tsv does not");
}

/// What a trial is called in the table begins with the ids of its doc comment.
#[test]
fn trials_are_called_by_the_ids_of_their_doc_comments() {
    let folder = repository().join("conformance/src/trials");
    let list = std::fs::read_to_string(folder.join("mod.rs")).expect("the trials");
    let listed: BTreeMap<_, _> = list
        .lines()
        .filter_map(|line| {
            let (ids, rest) = line.trim_start().strip_prefix('"')?.split_once("\" ")?;
            // The ids of one group have its name only once: "CB-01,04".
            let mut group = "";
            let whole = ids.split(',').map(|id| match id.split_once('-') {
                Some((name, _)) => {
                    group = name;
                    id.to_owned()
                }
                None => format!("{group}-{id}"),
            });
            Some((rest.split(" on ").next()?.to_owned(), whole.collect::<BTreeSet<_>>()))
        })
        .collect();
    let mut documented = BTreeMap::new();
    for (module, text) in source_files(&folder) {
        for (name, words) in tests(&text, Marked::Stories) {
            let ids = ids(words, NAMES);
            if !ids.is_empty() {
                documented.insert(format!("{module}::{name}"), ids);
            }
        }
    }

    assert!(listed.len() > 40, "{listed:?}");
    assert_eq!(listed, documented);
}

#[test]
fn page_of_the_client_is_what_the_marks_say() {
    assert_written("SCENARIOS.md", &page());
}
