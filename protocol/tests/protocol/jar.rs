//! Reads Kafka's schemas out of Kafka's jars, which `conformance/fetch-kafka` brings.
//!
//! A jar is a zip file: the directory stands at its end, and each entry is stored or deflated. What
//! is needed of that fits on a page, so there is no dependency for it.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::read::DeflateDecoder;
use serde_json::Value;

/// The entries of a jar, in memory.
pub(crate) struct Jar {
    bytes: Vec<u8>,
}

impl Jar {
    /// The `kafka-clients` jar of a Kafka version, or `None` where it cannot be had, which is an error in CI.
    pub(crate) fn fetch(version: &str) -> Option<Self> {
        Self::fetch_named("kafka-clients", version)
    }

    /// A jar of a Kafka version by its name, or `None` where it cannot be had, which is an error in CI.
    ///
    /// The reason goes to the process's own stderr: the test harness shows what a passing test
    /// printed to nobody.
    pub(crate) fn fetch_named(name: &str, version: &str) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/fetch-kafka");
        let mut command = Command::new(&script);
        command.args(["--jar", name, version]).stdin(Stdio::null());
        if std::env::var_os("KRAFKA_FETCH_TIMEOUT").is_none() {
            command.env("KRAFKA_FETCH_TIMEOUT", "90");
        }
        let reason = match command.output() {
            Ok(output) if output.status.success() => {
                let path = String::from_utf8(output.stdout).expect("paths of the cache are UTF-8");
                let bytes = std::fs::read(path.trim_end()).expect("the script names a file that exists");
                return Some(Self { bytes });
            }
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => format!("{}: {error}", script.display()),
        };
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "CI must compare with {name} {version}, and cannot have it: {reason}"
        );
        let skipped = format!("SKIPPED: no comparison with {name} {version}: {}\n", reason.trim_end());
        let _ = std::io::stderr().write_all(skipped.as_bytes());
        None
    }

    /// The schema of a message, by its name.
    pub(crate) fn schema(&self, message: &str) -> Value {
        let text = self.entry(&format!("common/message/{message}.json"));
        let text = String::from_utf8(text.unwrap_or_else(|| panic!("the jar has no schema {message}")));
        parse_schema(&text.expect("schemas are UTF-8"))
    }

    /// The names of all messages that the jar has schemas of.
    pub(crate) fn messages(&self) -> Vec<String> {
        let message = |(name, _): (&str, usize)| {
            name.strip_prefix("common/message/")?.strip_suffix(".json").map(ToOwned::to_owned)
        };
        self.entries().filter_map(message).collect()
    }

    fn entry(&self, name: &str) -> Option<Vec<u8>> {
        let (_, at) = self.entries().find(|(other, _)| *other == name)?;
        Some(self.content(self.u16(at + 10), self.u32(at + 20), self.u32(at + 42)))
    }

    /// The names of the entries, and where the directory has them.
    fn entries(&self) -> impl Iterator<Item = (&str, usize)> {
        const END: &[u8] = b"PK\x05\x06";
        let end = self.bytes.windows(END.len()).rposition(|window| window == END).expect("a zip file has a directory");
        let mut next = self.u32(end + 16);
        (0..self.u16(end + 10)).map(move |_| {
            let at = next;
            let [name_len, extra_len, comment_len] = [28, 30, 32].map(|offset| self.u16(at + offset));
            next += 46 + name_len + extra_len + comment_len;
            let name = &self.bytes[at + 46..at + 46 + name_len];
            (std::str::from_utf8(name).expect("names in jars are UTF-8"), at)
        })
    }

    fn content(&self, method: usize, size: usize, local_header: usize) -> Vec<u8> {
        let start = local_header + 30 + self.u16(local_header + 26) + self.u16(local_header + 28);
        let packed = &self.bytes[start..start + size];
        match method {
            0 => packed.to_vec(),
            8 => {
                let mut content = Vec::new();
                DeflateDecoder::new(packed).read_to_end(&mut content).expect("the jar is intact");
                content
            }
            other => panic!("zip method {other}"),
        }
    }

    fn u16(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes(self.bytes[at..at + 2].try_into().unwrap()))
    }

    fn u32(&self, at: usize) -> usize {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap()) as usize
    }
}

/// Parses a schema: JSON, with comments on lines of their own.
///
/// What Kafka's generator understands by itself is filled in: a common structure stands wherever its name does, and a
/// tagged field without versions is there wherever it is tagged.
pub(crate) fn parse_schema(text: &str) -> Value {
    let json: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut schema: Value = serde_json::from_str(&json).expect("a schema without its comments is JSON");
    let common = schema["commonStructs"].take();
    fill_in(&mut schema["fields"], common.as_array().map_or(&[], Vec::as_slice));
    schema
}

fn fill_in(fields: &mut Value, common: &[Value]) {
    for field in fields.as_array_mut().into_iter().flatten() {
        if field["versions"].is_null() {
            field["versions"] = field["taggedVersions"].clone();
        }
        let name = field["type"].as_str().map(|name| name.trim_start_matches("[]").to_owned());
        if let Some(structure) = common.iter().find(|structure| structure["name"].as_str() == name.as_deref()) {
            field["fields"] = structure["fields"].clone();
        }
        fill_in(&mut field["fields"], common);
    }
}
