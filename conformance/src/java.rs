//! Kafka's jars, and the programs in them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::{env, fs, thread};

use scenarios::{Failure, Result};

/// Client VM, one collector thread: a broker for a test starts fastest so.
const JVM: &[&str] = &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xms64m", "-Xmx512m"];

/// The jars of one Kafka version on this machine.
#[derive(Clone, Debug)]
pub struct Jars {
    version: String,
    folder: PathBuf,
}

impl Jars {
    /// Fetches the jars by Maven, unless they are in the cache: see `conformance/fetch-kafka`.
    ///
    /// # Errors
    /// If Maven is missing or reaches no repository; says so.
    pub fn fetch(version: &str) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fetch-kafka");
        let run = Command::new(&script).arg(version).stdin(Stdio::null()).output()?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if !run.status.success() {
            return Err(Failure::new(format!("the jars of Kafka {version} cannot be had: {}", said(&run.stderr))));
        }
        Ok(Self { version: version.to_owned(), folder: PathBuf::from(said(&run.stdout)) })
    }

    /// Which version's they are.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether this is Kafka 3.
    #[must_use]
    pub fn is_3(&self) -> bool {
        self.version.starts_with("3.")
    }

    /// A command that runs one class, logging warnings at most, with the log settings in `home`.
    ///
    /// # Errors
    /// If the log settings cannot be written.
    pub fn class(&self, class: &str, home: &Path, level: &str) -> Result<Command> {
        // Kafka 3 logs by reload4j, Kafka 4 by log4j 2; each ignores the other's file.
        let (log4j, log4j2) = (home.join("log4j.properties"), home.join("log4j2.xml"));
        fs::write(&log4j, LOG4J)?;
        fs::write(&log4j2, LOG4J2)?;
        let mut command = Command::new(java());
        command.args(JVM).arg(format!("-Dlevel={level}"));
        command.arg(format!("-Dlog4j.configuration=file:{}", log4j.display()));
        command.arg(format!("-Dlog4j2.configurationFile={}", log4j2.display()));
        command.arg("-cp").arg(format!("{}/*", self.folder.display())).arg(class);
        Ok(command)
    }
}

const LOG4J: &str = "\
log4j.rootLogger=${level}, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %m (%c)%n
";

const LOG4J2: &str = "\
<Configuration status=\"ERROR\"><Appenders><Console name=\"out\" target=\"SYSTEM_ERR\">
<PatternLayout pattern=\"%d{HH:mm:ss.SSS} %p %m (%c)%n\"/></Console></Appenders>
<Loggers><Root level=\"${sys:level}\"><AppenderRef ref=\"out\"/></Root></Loggers></Configuration>
";

/// The `java` to use: that of `JAVA_HOME`, or the one on the PATH.
fn java() -> PathBuf {
    match env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java")).filter(|java| java.exists()) {
        Some(java) => java,
        None => PathBuf::from("java"),
    }
}

/// Runs a command to its end with this input, and returns its output.
///
/// # Errors
/// If it cannot be started, or ends with a code other than 0; then with what it said.
pub fn run(mut command: Command, input: &[u8]) -> Result<Output> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(explain_no_java)?;
    // Fed from a thread, so that a program that writes before it has read all cannot block us.
    let feeding = child.stdin.take().map(|mut stdin| {
        let input = input.to_vec();
        thread::spawn(move || stdin.write_all(&input))
    });
    let output = child.wait_with_output()?;
    if let Some(Ok(fed)) = feeding.map(thread::JoinHandle::join) {
        fed?;
    }
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let tail: Vec<&str> = said.lines().rev().take(15).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        return Err(Failure::new(format!(
            "{:?} ended with {}:\n{}",
            command.get_program(),
            output.status,
            tail.join("\n")
        )));
    }
    Ok(output)
}

pub(crate) fn explain_no_java(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::NotFound => Failure::new("there is no java: install JDK 17 or later, or set JAVA_HOME"),
        _ => error.into(),
    }
}

/// A process that is ended when it is dropped.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may be gone already, which is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
