//! The ids of scenarios that tests name, found in their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::coverage::GROUPS;

/// Which tests name which id.
#[derive(Default)]
pub(super) struct Marks(BTreeMap<String, BTreeSet<String>>);

impl Marks {
    /// Reads the marks of all sources in a folder. Tests are named behind the prefix.
    pub(super) fn read(&mut self, folder: &Path, prefix: &str) {
        for (module, text) in source_files(folder) {
            for (test, words) in tests(&text) {
                for id in ids(words) {
                    self.0.entry(id).or_default().insert(format!("{prefix}{module}::{test}"));
                }
            }
            let of_the_file: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
            for id in ids(of_the_file) {
                self.0.entry(id).or_default().insert(format!("{prefix}{module}"));
            }
        }
    }

    /// The tests that name an id.
    pub(super) fn of(&self, id: &str) -> Vec<&str> {
        self.0.get(id).into_iter().flatten().map(String::as_str).collect()
    }

    /// All ids that are named.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
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
fn tests(text: &str) -> Vec<(&str, String)> {
    let (mut found, mut words, mut is_test) = (Vec::new(), String::new(), false);
    for line in text.lines().map(str::trim_start) {
        if let Some(doc) = line.strip_prefix("///") {
            words = words + doc + "\n";
        } else if line == "#[test]" {
            is_test = true;
        } else if !line.starts_with("#[") {
            let name = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next());
            if let Some(name) = name.filter(|_| is_test) {
                found.push((name, std::mem::take(&mut words)));
            }
            (words, is_test) = (String::new(), false);
        }
    }
    found
}

/// The ids in a text, such as `LE-01` and `FI-01a`.
fn ids(text: impl AsRef<str>) -> BTreeSet<String> {
    let is_id = |word: &&str| {
        let Some((group, number)) = word.split_once('-') else { return false };
        let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
        GROUPS.iter().any(|(name, _)| *name == group)
            && digits.len() == 2
            && number.len() <= 3
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let words = text.as_ref().split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(is_id);
    words.map(str::to_owned).collect()
}

#[test]
fn marks_are_found_in_doc_comments_of_tests_alone() {
    let text =
        "/// LE-01.\n#[test]\nfn first() {}\n\n/// LE-02.\nfn helper() {}\n\n// LE-03.\n#[test]\nfn second() {}\n";

    let found: Vec<_> = tests(text).into_iter().map(|(test, words)| (test, ids(words))).collect();

    assert_eq!(found, [("first", BTreeSet::from(["LE-01".to_owned()])), ("second", BTreeSet::new())]);
    assert_eq!(ids("FI-01a, FI-9; SH-01 and BY-170").into_iter().collect::<Vec<_>>(), ["FI-01a"]);
}
