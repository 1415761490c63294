//! How a suite ended, as a table.

use std::time::Duration;

use scenarios::Result;

/// One line of the table.
pub struct Line {
    /// The story or check.
    pub name: String,
    /// How long it took.
    pub took: Duration,
    /// Whether it held.
    pub verdict: Result<()>,
}

/// Prints one line as it comes.
pub fn print(line: &Line) {
    let verdict = match &line.verdict {
        Ok(()) => "holds".to_owned(),
        Err(failure) => format!("FAILED: {failure}"),
    };
    println!("{:44} {:8.2} s  {verdict}", line.name, line.took.as_secs_f64());
}

/// Prints the sum, and says whether all held. A suite that ran nothing has not held.
#[must_use]
pub fn sum(lines: &[Line]) -> bool {
    let failed = lines.iter().filter(|line| line.verdict.is_err()).count();
    println!("{} passed, {failed} failed", lines.len() - failed);
    failed == 0 && !lines.is_empty()
}
