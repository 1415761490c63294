//! The example `recode`: an answer for each line, and the right one.

#[path = "../../examples/recode/hex.rs"]
mod hex;
#[path = "../../examples/recode/lines.rs"]
mod lines;
#[path = "../../examples/recode/message.rs"]
mod message;
#[path = "../../examples/recode/program.rs"]
mod program;
#[path = "../../examples/recode/records.rs"]
pub(crate) mod records;
#[path = "../../examples/recode/rendering.rs"]
pub(crate) mod rendering;

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::process::ExitCode;

use krafka_protocol::{ApiKey, ApiVersionsResponse, Bytes, ErrorCode, Message as _, Reader};
use proptest::prelude::*;

use crate::vectors::{self, Vector};

/// What the program answers to messages, line by line.
fn recode(input: impl AsRef<[u8]>) -> Vec<String> {
    answers(&[], input)
}

fn answers(arguments: &[&str], input: impl AsRef<[u8]>) -> Vec<String> {
    let (mut output, mut errors) = (Vec::new(), Vec::new());

    let code = program::run(arguments.iter().map(Into::into), input.as_ref(), &mut output, &mut errors);

    assert_eq!((code, errors), (ExitCode::SUCCESS, vec![]));
    String::from_utf8(output).expect("the answers are UTF-8").lines().map(str::to_owned).collect()
}

/// What is wrong with a line, from the fourth column; the others are as given.
fn error(line: &str) -> String {
    let answer = recode(line);
    let [answer] = &answer[..] else { panic!("one line for one: {answer:?}") };
    let columns: Vec<_> = answer.split('\t').collect();
    let [_, _, _, reason, "null"] = columns[..] else { panic!("five columns: {answer}") };
    reason.strip_prefix("ERROR ").unwrap_or_else(|| panic!("an error: {answer}")).to_owned()
}

/// All of them in one run; those of 3.9.2 alone have names that 4.4 changed, which the golden tests see to.
#[test]
fn vectors_come_back_as_they_are() {
    let mut vectors = Vector::load("messages");
    vectors.retain(|vector| !vector.is_given_up());
    let lines: Vec<_> = vectors.iter().map(line).collect();

    let answers = recode(lines.join("\n"));

    assert_eq!(answers.len(), vectors.len());
    for ((vector, line), answer) in vectors.iter().zip(&lines).zip(&answers) {
        if vector.is_refused() {
            assert!(answer.ends_with("\tERROR unsupported version\tnull"), "{vector}: {answer}");
            continue;
        }
        let (columns, json) = answer.rsplit_once('\t').expect("columns");
        assert_eq!(columns, line, "{vector}");
        assert!(json.is_ascii(), "{json}");
        if vector.release != "3.9.2" {
            assert_eq!(serde_json::from_str::<serde_json::Value>(json).ok().as_ref(), Some(&vector.json), "{vector}");
        }
    }
}

/// The four columns of a vector.
fn line(vector: &Vector) -> String {
    let mut line = format!("{}\t{}\t{}\t", vector.api().code(), vector.version, vector.direction);
    if vector.bytes.is_empty() {
        line.push('-');
    }
    hex::push_hex(&mut line, &vector.bytes);
    line
}

#[test]
fn a_message_is_printed_as_java_prints_it() {
    let sasl_authenticate = "36\t0\trequest\t00000004deadbeef";
    let heartbeat = "12\t3\trequest\t0007c3a9f09d849e220000000700010affff";

    let answers = recode(format!("{sasl_authenticate}\n{heartbeat}"));

    assert_eq!(
        answers,
        [
            sasl_authenticate.to_owned() + "\t{\"authBytes\":\"3q2+7w==\"}",
            heartbeat.to_owned()
                + "\t{\"groupId\":\"\\u00E9\\uD834\\uDD1E\\\"\",\"generationId\":7,"
                + "\"memberId\":\"\\n\",\"groupInstanceId\":null}",
        ]
    );
}

#[test]
fn what_is_not_spoken_is_said() {
    assert_eq!(error("0\t99\trequest\t00"), "unsupported version");
    assert_eq!(error("0\t-1\tresponse\t-"), "unsupported version");
    assert_eq!(error("1\t32767\tresponse\tzz"), "unsupported version");
    assert_eq!(error("95\t0\trequest\t00"), "unknown API key 95");
    assert_eq!(error("-1\t0\trequest\t00"), "unknown API key -1");
}

#[test]
fn what_makes_no_sense_is_said() {
    assert_eq!(error("\n"), "the line is empty");
    assert_eq!(error("   "), "the line has 1 columns instead of 4");
    assert_eq!(error("# apiKey"), "the line has 1 columns instead of 4");
    assert_eq!(error("0\t3\trequest"), "the line has 3 columns instead of 4");
    assert_eq!(error("0\t3\trequest\t00\t"), "the line has 5 columns instead of 4");
    assert_eq!(error("Produce\t3\trequest\t00"), "the API key is no number of 16 bits");
    assert_eq!(error("0\t32768\trequest\t00"), "the version is no number of 16 bits");
    assert_eq!(error("0\t3\tRequest\t00"), "the direction is neither request nor response");
    assert_eq!(error("12\t3\tresponse\t00g0"), "position 3 of the hex is no hexadecimal digit");
    assert_eq!(error("12\t3\tresponse\t000é"), "position 4 of the hex is no hexadecimal digit");
    assert_eq!(error("12\t3\tresponse\t000"), "the hex has an odd number of digits, 3");
    assert_eq!(error("12\t3\tresponse\t000000000007aabb"), "the message ends before its bytes do: 2 are left");
    assert_eq!(
        error("12\t3\tresponse\t0000000000"),
        "HeartbeatResponse v3, error_code: the input ends too early: 2 bytes needed, 1 left"
    );
    assert_eq!(
        error("12\t3\tresponse\t-"),
        "HeartbeatResponse v3, throttle_time_ms: the input ends too early: 4 bytes needed, 0 left"
    );
}

#[test]
fn a_malformed_line_is_repeated_so_that_it_stays_columns() {
    assert_eq!(recode("\n"), ["-\t-\t-\tERROR the line is empty\tnull"]);
    assert_eq!(recode(b"\xff\x07\tx"), ["\u{fffd}\u{fffd}\tx\t-\tERROR the line has 2 columns instead of 4\tnull"]);
    assert_eq!(
        recode([b'7'; 50]),
        [format!("{}…\t-\t-\tERROR the line has 1 columns instead of 4\tnull", "7".repeat(40))]
    );
}

#[test]
fn every_line_has_an_answer_whatever_its_end() {
    let line = "12\t3\tresponse\t000000000007";
    let answer = format!("{line}\t{{\"throttleTimeMs\":0,\"errorCode\":7}}");

    assert_eq!(recode(""), [""; 0]);
    assert_eq!(recode(line), [answer.as_str()]);
    assert_eq!(recode(format!("{line}\n")), [answer.as_str()]);
    assert_eq!(recode(format!("{line}\r\n {}\r\n", line.to_uppercase().replace("RESPONSE", "response"))).len(), 2);
    let [first, empty, last] = &recode(format!("{line}\r\n\r\n{line}"))[..] else { panic!("three lines") };
    assert_eq!((first, last), (&answer, &answer));
    assert_eq!(empty, "-\t-\t-\tERROR the line is empty\tnull");
}

#[test]
fn no_bytes_are_written_as_they_were_given() {
    // A request for all topics' metadata has bytes in every version; a SaslHandshake is never empty. ApiVersions is.
    assert_eq!(recode("18\t0\trequest\t-"), ["18\t0\trequest\t-\t{}"]);
    assert_eq!(recode("18\t0\trequest\t"), ["18\t0\trequest\t\t{}"]);
}

#[test]
fn unknown_tagged_fields_are_written_again() {
    let line = "12\t4\tresponse\t000000000007014d02abcd";
    assert_eq!(recode(line), [format!("{line}\t{{\"throttleTimeMs\":0,\"errorCode\":7}}")]);
}

#[test]
fn a_refusal_of_api_versions_is_in_version_0() {
    for version in 1..=ApiKey::ApiVersions.versions().expect("we speak it").max {
        for refusal in ["002300000000", "002300000001001200000004"] {
            let line = format!("18\t{version}\tresponse\t{refusal}");
            let [answer] = &recode(&line)[..] else { panic!("one line") };
            assert!(answer.starts_with(&format!("{line}\t{{\"errorCode\":35,\"apiKeys\":[")), "{answer}");
        }
    }

    // The same error in the version that was asked for is read as that.
    let answer = ApiVersionsResponse { error_code: ErrorCode::UNSUPPORTED_VERSION.0, ..Default::default() };
    let line = "18\t4\tresponse\t0023010000000700";
    assert_eq!(recode(line), [format!("{line}\t{{\"errorCode\":35,\"apiKeys\":[],\"throttleTimeMs\":7}}")]);
    let mut input = Reader::new(Bytes::from_static(&[0, 0x23, 1, 0, 0, 0, 0, 0]));
    assert_eq!(ApiVersionsResponse::decode(&mut input, 4), Ok(answer));

    // Another error in version 0 is nothing.
    assert!(error("18\t4\tresponse\t000700000000").contains("ApiVersionsResponse v4"));
}

/// That the listings are Java's, the golden tests see to: they have them from the same function.
#[test]
fn record_sets_are_listed_line_by_line() {
    let columns = vectors::lines("records");
    let sets: Vec<_> = columns.iter().map(|columns| columns[8].as_str()).collect();

    let listings = answers(&["--records"], sets.join("\r\n"));

    assert_eq!(listings.len(), sets.len());
    for (set, listing) in sets.into_iter().zip(listings) {
        assert!(listing.is_ascii(), "{listing}");
        let listing: serde_json::Value = serde_json::from_str(&listing).expect("JSON");
        assert_eq!(listing["sizeInBytes"], if set == "-" { 0 } else { set.len() / 2 });
    }
}

#[test]
fn what_is_no_record_set_is_an_error_in_json() {
    // Of no bytes there is nothing wrong; of few, a cut batch.
    let empty = r#"{"sizeInBytes":0,"batches":[],"trailingBytes":0}"#;
    let cut = r#"{"sizeInBytes":2,"batches":[],"trailingBytes":2}"#;
    let set = vectors::lines("records").into_iter().find(|columns| columns[2] == "2").expect("a batch").swap_remove(8);
    let damaged = set[..set.len() - 1].to_owned() + if set.ends_with('0') { "1" } else { "0" };

    let listings = answers(&["--records"], format!("\n-\n ABCD \n\u{e9}\nabc\n{damaged}\n"));

    assert_eq!(listings[..3], [empty, empty, cut]);
    assert_eq!(listings[3], r#"{"error":"position 1 of the hex is no hexadecimal digit"}"#);
    assert_eq!(listings[4], r#"{"error":"the hex has an odd number of digits, 3"}"#);
    assert!(listings[5].starts_with(r#"{"error":""#) && listings[5].contains("checksum"), "{}", listings[5]);
    assert_eq!(listings.len(), 6);
}

#[test]
fn a_line_beyond_the_limit_is_an_error_and_no_more() {
    let (long, whole) = ("12\t3\tresponse\t".to_owned() + &"00".repeat(100), "12\t3\tresponse\t000000000007");
    for input in [format!("{long}\n{whole}\n"), format!("{long}\r\n{whole}"), format!("{whole}\n{long}")] {
        let mut output = Vec::new();

        lines::answer_each(input.as_bytes(), &mut output, 60, message::answer).expect("nothing fails");

        let output = String::from_utf8(output).expect("UTF-8");
        assert_eq!(output.lines().count(), 2);
        assert!(output.contains("12\t3\tresponse\tERROR the line is longer than 60 bytes\tnull\n"), "{output}");
        assert!(output.contains(&format!("{whole}\t{{")), "{output}");
    }
}

proptest! {
    /// Noise with tabs and ends of lines in it, and columns that are often right.
    #[test]
    fn noise_has_as_many_answers_as_lines(
        columns in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..20),
                (-3..100_i16).prop_map(|number| number.to_string().into_bytes()),
                prop::sample::select(&["request", "response", "-"][..]).prop_map(|text| text.as_bytes().to_vec()),
                "[0-9a-f]{0,80}".prop_map(String::into_bytes),
            ],
            0..40,
        ),
        separators in prop::collection::vec(prop::sample::select(&b"\t\t\t\t\n"[..]), 40)
    ) {
        let mut input = Vec::new();
        for (column, separator) in columns.iter().zip(separators) {
            input.extend_from_slice(column);
            input.push(separator);
        }

        let answers = recode(&input);

        let ends = input.iter().filter(|byte| **byte == b'\n').count();
        let open_line = input.last().is_some_and(|byte| *byte != b'\n');
        prop_assert_eq!(answers.len(), ends + usize::from(open_line));
        for answer in answers {
            prop_assert_eq!(answer.split('\t').count(), 5, "{}", answer);
        }
    }
}

/// A program that waits for its answer before it asks again is not kept waiting.
#[test]
fn answers_are_written_before_more_is_waited_for() {
    struct Asker<'a> {
        questions: &'a [&'a str],
        answers: &'a RefCell<Vec<u8>>,
        asked: usize,
    }

    impl Read for Asker<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let answered = self.answers.borrow().iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(answered, self.asked, "an answer for each whole question");
            let Some((question, rest)) = self.questions.split_first() else { return Ok(0) };
            self.questions = rest;
            self.asked += question.matches('\n').count();
            (&mut &mut *buffer).write(question.as_bytes())
        }
    }

    struct Answers<'a>(&'a RefCell<Vec<u8>>);

    impl Write for Answers<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let answers = RefCell::new(Vec::new());
    let questions = ["18\t0\trequest\t-\n", "18\t0\trequest\t-\nand half ", "a line\n", "\n\n\n"];

    let asker = Asker { questions: &questions, answers: &answers, asked: 0 };
    lines::answer_each(asker, Answers(&answers), lines::MAX_LINE, message::answer).expect("nothing fails");

    assert_eq!(answers.borrow().iter().filter(|byte| **byte == b'\n').count(), 6);
}

/// A pipe that fails.
struct Failing(ErrorKind);

impl Write for Failing {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(self.0.into())
    }
}

impl Read for Failing {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(self.0.into())
    }
}

#[test]
fn who_closes_the_output_has_seen_enough() {
    let mut errors = Vec::new();

    let code = program::run([], "\n".as_bytes(), Failing(ErrorKind::BrokenPipe), &mut errors);
    assert_eq!((code, errors.is_empty()), (ExitCode::SUCCESS, true));
    let code = program::run(["--help".into()], "".as_bytes(), Failing(ErrorKind::BrokenPipe), &mut errors);
    assert_eq!((code, errors.is_empty()), (ExitCode::SUCCESS, true));

    let code = program::run([], "\n".as_bytes(), Failing(ErrorKind::StorageFull), &mut errors);
    assert_eq!((code, errors.is_empty()), (ExitCode::FAILURE, false));
    let code = program::run([], Failing(ErrorKind::IsADirectory), Vec::new(), Failing(ErrorKind::BrokenPipe));
    assert_eq!(code, ExitCode::FAILURE);
}

#[test]
fn arguments_are_understood_or_refused() {
    let (mut output, mut errors) = (Vec::new(), Vec::new());

    let code = program::run(["--help".into()], "\n".as_bytes(), &mut output, &mut errors);
    assert_eq!((code, errors.is_empty()), (ExitCode::SUCCESS, true));
    assert!(output.starts_with(b"Reads Kafka messages"));

    output.clear();
    let code = program::run(["--recrods".into()], "\n".as_bytes(), &mut output, &mut errors);
    assert_eq!((code, output.is_empty()), (ExitCode::from(2), true));
    assert!(errors.starts_with(b"recode: unknown argument --recrods\n"));
}
