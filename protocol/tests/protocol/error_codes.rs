//! The table of error codes against those of Java, code by code.
//!
//! What Java has is printed of `org.apache.kafka.common.protocol.Errors` by `tests/java/PrintErrors.java`: the code,
//! the name, whether its exception is a `RetriableException`, and whether it is an `InvalidMetadataException`. That of
//! 4.4.0 is kept in `errors-4.4.0.tsv`; where there is a JDK, the program asks the jars of all releases.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use krafka_protocol::{ErrorCode, Recovery};

use crate::jar::{Release, releases};

#[test]
fn names_numbers_and_retries_are_those_of_java() {
    let ours: Vec<_> =
        ErrorCode::ALL.iter().map(|code| (code.0, code.name().to_owned(), code.is_retriable())).collect();
    let javas: Vec<_> = java().map(|(code, name, is_retriable, _)| (code, name, is_retriable)).collect();

    assert_eq!(ours, javas);
}

#[test]
fn what_java_calls_invalid_metadata_refreshes_it() {
    for (code, name, _, is_invalid_metadata) in java() {
        let expected = match name.as_str() {
            "COORDINATOR_NOT_AVAILABLE" | "NOT_COORDINATOR" => Recovery::RefreshCoordinator,
            // Java's exceptions do not say it, its clients do it: the admin client looks for the controller, the
            // consumer for the leader.
            "NOT_CONTROLLER" | "OFFSET_NOT_AVAILABLE" | "UNKNOWN_LEADER_EPOCH" => Recovery::RefreshMetadata,
            _ if is_invalid_metadata => Recovery::RefreshMetadata,
            _ => Recovery::None,
        };
        assert_eq!(ErrorCode(code).recovery(), expected, "{name}");
    }
}

#[test]
fn every_error_says_what_happened_in_its_own_words() {
    for (index, code) in ErrorCode::ALL.iter().enumerate() {
        assert!(!code.message().is_empty() && !code.message().ends_with('.'), "{code}");
        let earlier = ErrorCode::ALL[..index].iter().find(|earlier| earlier.message() == code.message());
        assert_eq!(earlier, None, "{code} says the same");
    }
}

#[test]
fn an_unknown_code_is_an_error_without_remedy() {
    let unknown = ErrorCode(9999);

    assert_eq!(unknown.name(), "UNKNOWN");
    assert_eq!(unknown.to_string(), "error 9999");
    assert_eq!((unknown.is_ok(), unknown.is_retriable(), unknown.recovery()), (false, false, Recovery::None));
}

/// Every release knows the codes up to one of its own, under the same names as 4.4, and judges them alike.
#[test]
fn all_releases_agree() {
    let Some(classes) = compiled() else { return };
    let newest: Vec<_> = java().collect();
    for release in releases() {
        let printed = print(&classes, release);
        let theirs: Vec<_> = parse(&printed).collect();
        let last = theirs.last().expect("there are errors").0;
        let ours: Vec<_> = newest.iter().filter(|(code, ..)| *code <= last).cloned().collect();

        assert_eq!(theirs, ours, "Kafka {}", release.version);
    }
}

/// The folder with the compiled program; none where there is no JDK, which in CI is an error.
fn compiled() -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java");
    let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("java");
    let files = ["PrintErrors.java", "org/slf4j/Logger.java", "org/slf4j/LoggerFactory.java"];
    // The jar that the program is compiled against makes no difference: it asks each at run time.
    let jars = &releases().last()?.jars;
    let class_path = std::env::join_paths(jars).expect("no path of ours has a colon");
    let mut javac = Command::new("javac");
    javac.arg("-d").arg(&classes).arg("-cp").arg(class_path).args(files.map(|file| sources.join(file)));
    match javac.output() {
        Ok(output) => {
            assert!(output.status.success(), "javac: {}", String::from_utf8_lossy(&output.stderr));
            Some(classes)
        }
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must have a JDK: javac: {error}");
            let _ = writeln!(std::io::stderr(), "SKIPPED: no comparison of error codes: javac: {error}");
            None
        }
    }
}

fn print(classes: &Path, release: &Release) -> String {
    let class_path = std::env::join_paths(release.jars.iter().map(PathBuf::as_path).chain([classes]));
    let mut java = Command::new("java");
    java.arg("-cp").arg(class_path.expect("no path of ours has a colon")).arg("PrintErrors");
    let output = java.output().expect("who has javac has java");
    assert!(output.status.success(), "Kafka {}: {}", release.version, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the table is ASCII")
}

fn java() -> impl Iterator<Item = (i16, String, bool, bool)> {
    parse(include_str!("../vectors/errors-4.4.0.tsv")).collect::<Vec<_>>().into_iter()
}

fn parse(table: &str) -> impl Iterator<Item = (i16, String, bool, bool)> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let columns: Vec<_> = line.split('\t').collect();
        let [code, name, retriable, invalid_metadata] = columns[..] else { panic!("four columns: {line}") };
        let flag = |text: &str| text.parse().expect("true or false");
        (code.parse().expect("a code"), name.to_owned(), flag(retriable), flag(invalid_metadata))
    })
}
