//! The table of error codes against that of Java.
//!
//! `errors-4.4.0.tsv` is what a Java program printed of `org.apache.kafka.common.protocol.Errors`: the code, the name,
//! whether its exception is a `RetriableException`, and whether it is an `InvalidMetadataException`.

use krafka_protocol::{ErrorCode, Recovery};

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

fn java() -> impl Iterator<Item = (i16, String, bool, bool)> {
    include_str!("../vectors/errors-4.4.0.tsv").lines().skip(1).map(|line| {
        let columns: Vec<_> = line.split('\t').collect();
        let [code, name, retriable, invalid_metadata] = columns[..] else { panic!("four columns: {line}") };
        let flag = |text: &str| text.parse().expect("true or false");
        (code.parse().expect("a code"), name.to_owned(), flag(retriable), flag(invalid_metadata))
    })
}
