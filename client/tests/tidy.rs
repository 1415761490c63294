//! What lints cannot check: where code may wait, where it may ask for the time or for chance, and how long a file is.
//!
//! Each test walks the whole repository and fails with the file, the line and the alternative.

use std::fs;
use std::path::{Path, PathBuf};

/// Files that may `.await` besides each folder's `driver.rs`: handles, and the files that *are* sockets.
const MAY_AWAIT: &[&str] = &[
    // Handles: what the user, or another part of the client, holds.
    "client/src/kafka.rs",
    "client/src/kafka_builder.rs",
    "client/src/admin/mod.rs",
    "client/src/auth/mod.rs",
    "client/src/auth/aws/sdk.rs",
    "client/src/auth/oidc/mod.rs",
    "client/src/cluster/mod.rs",
    "client/src/cluster/published.rs",
    "client/src/consumer/mod.rs",
    "client/src/consumer/waiting.rs",
    "client/src/network/mod.rs",
    "client/src/producer/mod.rs",
    "client/src/protocol/mod.rs",
    "client/src/testing.rs",
    // The one loop that every driver calls.
    "client/src/drive.rs",
    // Files of the user's, which may hang as sockets do.
    "client/src/files.rs",
    "client/src/tls/fresh.rs",
    // Sockets.
    "client/src/network/dial.rs",
    "client/src/network/pool.rs",
    "client/src/network/race.rs",
    "client/src/network/socks5.rs",
    "client/src/network/tcp.rs",
    "client/src/network/tls.rs",
    // The fake broker's shells.
    "fake-broker/src/builder.rs",
    "fake-broker/src/blocking.rs",
    "fake-broker/src/handle/",
    "fake-broker/src/handle/nodes.rs",
    "fake-broker/src/serve/",
    "fake-broker/src/bin/",
];

/// Crates that hold no machines: programs and test code, which wait as they like.
const NOT_PURE: &[&str] = &["scenarios/", "conformance/", "benches/", "fuzz/", "protocol/derive/"];

/// Files that may be longer than [`MAX_LINES`], each with its reason.
const MAY_BE_LONG: &[(&str, &str)] = &[];

/// Past this a file is asked whether it holds two nouns.
const MAX_LINES: usize = 600;

/// Past this a line no longer fits beside another one.
const MAX_COLUMNS: usize = 120;

struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The lines of product code with their numbers: no comments, nothing behind `#[cfg(test)] mod tests`.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut pending_test = false;
        let mut in_tests = false;
        self.text.lines().enumerate().filter_map(move |(index, line)| {
            let trimmed = line.trim_start();
            if trimmed.starts_with("#[cfg(test)]") && !line.starts_with(' ') {
                pending_test = true;
            } else if pending_test {
                // `#[cfg(test)] mod tests { … }` is the last item of a file; `mod tests;` is one line.
                in_tests |= trimmed.starts_with("mod ") && trimmed.ends_with('{');
                pending_test = trimmed.starts_with("#[");
            }
            (!in_tests && !trimmed.starts_with("//")).then_some((index + 1, line))
        })
    }

    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Notes each of these lines that has one of the words.
    fn find<'a>(&self, lines: impl Iterator<Item = (usize, &'a str)>, words: &[&str], faults: &mut Vec<String>) {
        for (number, line) in lines {
            for word in words.iter().filter(|word| line.contains(**word)) {
                faults.push(format!("{}:{number}: {word}", self.path));
            }
        }
    }

    fn is_product(&self) -> bool {
        let is_test =
            self.path.ends_with("/tests.rs") || self.path.ends_with("laws.rs") || self.path.contains("/tests/");
        self.path.contains("/src/") && !is_test
    }

    fn is_pure(&self) -> bool {
        self.is_product()
            && !NOT_PURE.iter().any(|prefix| self.path.starts_with(prefix))
            && !self.path.ends_with("/driver.rs")
            && !MAY_AWAIT.iter().any(|allowed| self.path.starts_with(allowed))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_owned()
}

fn sources() -> Vec<Source> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<Source>) {
        let mut entries: Vec<_> =
            fs::read_dir(folder).expect("a folder of ours").map(|e| e.expect("an entry").path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | "corpus" | "artifacts") {
                    walk(&path, root, found);
                }
            } else if name.ends_with(".rs") {
                let text = fs::read_to_string(&path).expect("a source file is text");
                let path = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
                found.push(Source { path, text });
            }
        }
    }
    let (root, mut found) = (root(), Vec::new());
    walk(&root, &root, &mut found);
    assert!(found.len() > 30, "tidy must see the repository; it saw {} files in {}", found.len(), root.display());
    found
}

fn report(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}\n  {}\n", faults.join("\n  "));
}

/// Whether a line waits; a method called `awaits_…` does not.
fn awaits(line: &str) -> bool {
    line.split(".await").skip(1).any(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}

#[test]
fn only_handles_drivers_and_sockets_await() {
    let faults: Vec<_> = sources()
        .iter()
        .filter(|source| source.is_pure())
        .flat_map(|source| source.code().filter(|(_, line)| awaits(line)).map(|(n, _)| format!("{}:{n}", source.path)))
        .collect();

    report(
        "These files wait, but are neither a handle, nor a driver, nor a socket (see MAY_AWAIT). Return an action and \
         let the folder's driver.rs carry it out:",
        &faults,
    );
}

#[test]
fn machines_take_time_and_chance_as_arguments() {
    let words =
        ["Instant::now", "SystemTime::now", "thread_rng", "rand::", "RandomState", "HashMap::new", "HashSet::new"];
    // Where time comes in: the two clocks, and the origin of a script's time, which is a test harness.
    let exempt = ["client/src/environment.rs", "fake-broker/src/clock.rs", "protocol/src/script.rs"];
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| source.is_pure() && !exempt.contains(&source.path.as_str())) {
        source.find(source.code(), &words, &mut faults);
    }

    report(
        "Machines and values take `now`, a seed and ordered collections: the same run twice is the same run:",
        &faults,
    );
}

#[test]
fn files_hold_one_noun() {
    let faults: Vec<_> = sources()
        .iter()
        .filter(|source| !MAY_BE_LONG.iter().any(|(path, _)| *path == source.path))
        .map(|source| (source.text.lines().count(), &source.path))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();

    report("These files are long: do they hold two nouns? Split them, or say in MAY_BE_LONG why not:", &faults);
}

#[test]
fn exceptions_for_long_files_are_still_needed() {
    let sources = sources();
    let stale: Vec<_> = MAY_BE_LONG
        .iter()
        .filter(|(path, _)| !sources.iter().any(|s| s.path == *path && s.text.lines().count() > MAX_LINES))
        .map(|(path, _)| (*path).to_owned())
        .collect();

    report("These files are no longer long (or are gone): take them off MAY_BE_LONG:", &stale);
}

#[test]
fn lines_fit_on_half_a_screen() {
    let faults: Vec<_> = sources()
        .iter()
        .flat_map(|source| {
            source
                .text
                .lines()
                .enumerate()
                .filter(|(_, line)| line.chars().count() > MAX_COLUMNS)
                .map(|(index, _)| format!("{}:{}", source.path, index + 1))
        })
        .collect();

    report("These lines are longer than 120 columns:", &faults);
}

#[test]
fn nothing_is_left_open() {
    // Spelled apart, so that this file does not find itself.
    let words = [concat!("FIX", "ME"), concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[ign", "ore")];
    let mut faults = Vec::new();
    for source in &sources() {
        source.find(source.lines(), &words, &mut faults);
    }

    report("These were left open:", &faults);
}

#[test]
fn tests_do_not_sleep_in_real_time() {
    let nap = concat!("thread::", "sleep");
    let faults: Vec<_> = sources()
        .iter()
        .filter(|source| !["conformance/", "benches/"].iter().any(|folder| source.path.starts_with(folder)))
        .flat_map(|source| {
            source
                .text
                .lines()
                .enumerate()
                .filter(|(_, l)| l.contains(nap))
                .map(|(i, _)| format!("{}:{}", source.path, i + 1))
        })
        .collect();

    report(
        "A test that sleeps in real time is slow on one machine and wrong on another; use the paused clock:",
        &faults,
    );
}

#[test]
fn every_file_says_what_it_is() {
    let faults: Vec<_> = sources()
        .iter()
        .filter(|source| !source.text.starts_with("//!") && !source.text.starts_with("#!"))
        .map(|source| source.path.clone())
        .collect();

    report("These files do not begin with `//!`, one sentence on what they are:", &faults);
}

/// What the page of `krafka::testing` names is stable; everything else that a test can call says that it is not.
#[test]
fn the_fake_says_what_may_change() {
    let page = fs::read_to_string(root().join("client/src/testing.rs")).expect("the page");
    let (_, list) = page.split_once("# What is stable").expect("the list");
    let (list, _) = list.split_once("\n//! # ").expect("a section behind it");
    let mut stable = std::collections::BTreeSet::new();
    for entry in list.split("\n//! * [`").skip(1) {
        let (owner, names) = entry.split_once("`][]: ").expect("names behind the type");
        stable.extend(names.split('`').skip(1).step_by(2).map(|name| format!("{owner}::{name}")));
    }
    let owners: std::collections::BTreeSet<_> = stable.iter().filter_map(|name| name.split("::").next()).collect();

    let (mut faults, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    for source in sources().iter().filter(|source| source.path.starts_with("fake-broker/src/")) {
        let (mut owner, mut is_marked) = ("", false);
        for (number, line) in source.lines() {
            if let Some(begun) = line.strip_prefix("impl") {
                owner = begun.trim_start().split([' ', '<']).next().unwrap_or_default();
                owner = if line.contains(" for ") || !owners.contains(owner) { "" } else { owner };
            }
            is_marked |= line.contains("/// **Unstable:**");
            let Some(function) = line.strip_prefix("    pub ") else { continue };
            let Some((_, function)) = function.split_once("fn ") else { continue };
            let name = function.split(['(', '<']).next().unwrap_or_default();
            if !owner.is_empty() {
                let name = format!("{owner}::{name}");
                if stable.contains(&name) == is_marked {
                    faults.push(format!("{}:{number}: {name}", source.path));
                }
                seen.insert(name);
            }
            is_marked = false;
        }
    }
    faults.extend(stable.difference(&seen).map(|name| format!("{name}: there is no such function")));
    report(
        "These are either on the page of krafka::testing or marked as **Unstable:**, not both and not neither:",
        &faults,
    );
}
