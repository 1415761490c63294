//! The command line: what is asked for, and where it comes from and goes to.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::process::ExitCode;

use super::lines::{Line, MAX_LINE, answer_each};
use super::{message, records};

/// Runs the program.
pub(crate) fn run(
    arguments: impl IntoIterator<Item = OsString>,
    input: impl Read,
    mut output: impl Write,
    mut errors: impl Write,
) -> ExitCode {
    let mut answer: fn(Line<'_>) -> String = message::answer;
    for argument in arguments {
        match argument.to_str() {
            Some("--records") => answer = records::answer,
            Some("--help" | "-h") => return finish(output.write_all(HELP.as_bytes()), errors),
            _ => {
                // Whoever closed standard error does not want to know.
                let _ = writeln!(errors, "recode: unknown argument {}\n\n{HELP}", argument.display());
                return ExitCode::from(2);
            }
        }
    }
    finish(answer_each(input, output, MAX_LINE, answer), errors)
}

fn finish(result: std::io::Result<()>, mut errors: impl Write) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the answers has seen enough, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(errors, "recode: {error}");
            ExitCode::FAILURE
        }
    }
}

const HELP: &str = "\
Reads Kafka messages or record sets in hex and prints what krafka makes of them.

    cargo run -p krafka-protocol --example recode < messages.tsv
    cargo run -p krafka-protocol --example recode -- --records < record-sets.txt

Without --records, each line of standard input is the body of one request or response, without length and header, in
four columns that tabs separate. Each is answered, in order, by a line of five:

    api key   version   request|response   hex
    api key   version   request|response   hex of what we write   what we read, as JSON

The hex of no bytes is `-`. The JSON is on one line and in ASCII, as Kafka's own JsonConverter has it: the names of the
schema with a small first letter, bytes in base64, and of a record set only its size. Tagged fields that were not sent
are not printed. Unknown tagged fields are not printed either, but written again, if the tags of all structures ascend.

What is wrong with a line stands in the fourth column, and null in the fifth:

    ERROR unsupported version     the API has no such version, or none at all that we speak
    ERROR unknown API key N       Kafka has no such API
    ERROR ...                     the line, the hex or the bytes make no sense: why, and in which field

Every line has an answer, and none ends the program. The answer to ApiVersions may be the error UNSUPPORTED_VERSION in
version 0, whatever the column says; it is written in version 0 too. A line of more than 256 MiB is an error.

With --records, each line is the hex of a record set: batches, or messages of the formats 0 and 1, perhaps with a cut
one at the end. Each is answered by a line of JSON: the batches with the fields of their headers and their records, keys
and values in hex, and the number of bytes behind the last whole batch. If anything is wrong with it, that is

    {\"error\": \"...\"}
";
