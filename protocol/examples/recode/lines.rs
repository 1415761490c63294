//! A line of output for each line of input, whatever stands in it and however long it is.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

/// A line without its end.
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    /// How many bytes were dropped at its end, because the line is longer than the limit.
    pub(crate) dropped: usize,
}

/// The longest line that is read whole. Half of it is as much as the body of any frame that a broker takes, which is
/// of 100 MiB unless told otherwise.
pub(crate) const MAX_LINE: usize = 256 << 20;

/// Writes what `answer` says to each line, as a line.
///
/// What has been answered is written before more is waited for, so that a program at the other end may put its
/// questions one by one.
///
/// # Errors
/// The input cannot be read, or the output not be written.
pub(crate) fn answer_each(
    input: impl Read,
    output: impl Write,
    max_line: usize,
    mut answer: impl FnMut(Line<'_>) -> String,
) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let mut output = BufWriter::with_capacity(BUFFER, output);
    let mut line = Vec::new();
    loop {
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
        line.clear();
        line.shrink_to(BUFFER);
        if input.by_ref().take(max_line as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            return output.flush();
        }

        let mut dropped = 0;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > max_line {
            dropped = 1 + input.skip_until(b'\n')?;
            line.truncate(max_line);
        }
        let bytes = line.strip_suffix(b"\r").unwrap_or(&line);
        output.write_all(answer(Line { bytes, dropped }).as_bytes())?;
        output.write_all(b"\n")?;
    }
}

const BUFFER: usize = 1 << 16;
