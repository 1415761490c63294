//! The ids of scenarios that tests name, found in their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What of a source may have marks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Marked {
    /// Tests.
    Tests,
    /// Functions that others call: stories, and trials.
    Stories,
}

/// Which tests name which id.
pub(super) struct Marks {
    /// The groups of ids that count.
    groups: &'static [&'static str],
    tests: BTreeMap<String, BTreeSet<String>>,
}

impl Marks {
    /// Looks for ids of these groups.
    pub(super) fn of_groups(groups: &'static [&'static str]) -> Self {
        Self { groups, tests: BTreeMap::new() }
    }

    /// Reads the marks of all sources in a folder. Tests are named behind the prefix.
    pub(super) fn read(&mut self, folder: &Path, prefix: &str, marked: Marked) {
        for (module, text) in source_files(folder) {
            for (test, words) in tests(&text, marked) {
                self.add(words, &format!("{prefix}{module}::{test}"));
            }
            let of_the_file: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
            self.add(of_the_file, &format!("{prefix}{module}"));
        }
    }

    fn add(&mut self, words: impl AsRef<str>, test: &str) {
        for id in ids(words, self.groups) {
            self.tests.entry(id).or_default().insert(test.to_owned());
        }
    }

    /// The tests that name an id.
    pub(super) fn of(&self, id: &str) -> Vec<&str> {
        self.tests.get(id).into_iter().flatten().map(String::as_str).collect()
    }

    /// All ids that are named.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.tests.keys().map(String::as_str)
    }
}

/// The sources in a folder with their modules, in the order of these.
pub(super) fn source_files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).expect("a folder of sources");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            // The module that looks for marks has them in its examples.
            let inner = if name == "coverage" { vec![] } else { source_files(&path) };
            found.extend(inner.into_iter().map(|(module, text)| match module.as_str() {
                "mod" => (name.clone(), text),
                _ => (format!("{name}::{module}"), text),
            }));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((name, fs::read_to_string(&path).expect("a source")));
        }
    }
    found.sort();
    found
}

/// The tests of a source, each with its doc comment.
pub(super) fn tests(text: &str, marked: Marked) -> Vec<(&str, String)> {
    let is_one = |attribute: &str| attribute == "#[test]" || attribute.starts_with("#[tokio::test");
    let (mut found, mut words, mut is_test) = (Vec::new(), String::new(), marked == Marked::Stories);
    for line in text.lines().map(str::trim_start) {
        if let Some(doc) = line.strip_prefix("///") {
            words = words + doc + "\n";
        } else if is_one(line) {
            is_test = marked == Marked::Tests;
        } else if !line.starts_with("#[") {
            let begins = match marked {
                Marked::Tests => &["fn ", "async fn "][..],
                Marked::Stories => &["pub async fn ", "pub(super) async fn "],
            };
            let name = begins.iter().find_map(|begin| line.strip_prefix(begin)?.split('(').next());
            if let Some(name) = name.filter(|_| is_test) {
                found.push((name, std::mem::take(&mut words)));
            }
            (words, is_test) = (String::new(), marked == Marked::Stories);
        }
    }
    found
}

/// The ids of some groups in a text, such as `LE-01` and `FI-01a`.
pub(super) fn ids(text: impl AsRef<str>, groups: &[&str]) -> BTreeSet<String> {
    let is_id = |word: &&str| {
        let Some((group, number)) = word.split_once('-') else { return false };
        let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
        groups.contains(&group)
            && digits.len() == 2
            && number.len() <= 3
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let words = text.as_ref().split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(is_id);
    words.map(str::to_owned).collect()
}

#[test]
fn marks_are_found_in_doc_comments_of_tests_alone() {
    let text = "/// LE-01.\n#[test]\nfn first() {}\n\n/// LE-02.\nfn helper() {}\n\n\
                // LE-03.\n#[test]\nfn second() {}\n\n\
                /// LE-04.\n#[tokio::test(start_paused = true)]\nasync fn third() {}\n";

    let found: Vec<_> =
        tests(text, Marked::Tests).into_iter().map(|(test, words)| (test, ids(words, &["LE"]))).collect();

    let id = |id: &str| BTreeSet::from([id.to_owned()]);
    assert_eq!(found, [("first", id("LE-01")), ("second", BTreeSet::new()), ("third", id("LE-04"))]);
    let all = ids("FI-01a, FI-9; SH-01 and BY-170", &["FI", "BY"]);
    assert_eq!(all.into_iter().collect::<Vec<_>>(), ["FI-01a"]);
}

#[test]
fn stories_are_marked_without_being_tests() {
    let text = "/// LE-01.\npub async fn told() {}\n\n/// LE-02.\nasync fn helper() {}\n";

    let found: Vec<_> = tests(text, Marked::Stories).into_iter().map(|(test, _)| test).collect();

    assert_eq!(found, ["told"]);
}
