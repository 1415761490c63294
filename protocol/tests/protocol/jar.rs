//! Reads Kafka's schemas out of Kafka's jars, which `conformance/fetch-kafka` brings.
//!
//! A jar is a zip file: the directory stands at its end, and each entry is stored or deflated. What
//! is needed of that fits on a page, so there is no dependency for it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use flate2::read::DeflateDecoder;
use serde_json::Value;

/// The releases that we compare with, the oldest first.
pub(crate) const RELEASES: [&str; 6] = ["3.9.2", "4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0"];

/// All schemas of one release of Kafka.
pub(crate) struct Release {
    pub(crate) version: &'static str,
    /// By the names of their files.
    pub(crate) schemas: BTreeMap<String, Value>,
    /// The jars themselves.
    pub(crate) jars: Vec<PathBuf>,
}

/// The releases, as far as their jars can be had.
pub(crate) fn releases() -> &'static [Release] {
    static FETCHED: LazyLock<Vec<Release>> = LazyLock::new(fetch);
    &FETCHED
}

/// Reads the jars of all releases. Where some cannot be had, that is an error in CI.
///
/// The reason goes to the process's own stderr: the test harness shows what a passing test
/// printed to nobody.
fn fetch() -> Vec<Release> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/fetch-kafka");
    let mut command = Command::new(&script);
    command.arg("--schemas").args(RELEASES).stdin(Stdio::null());
    if std::env::var_os("KRAFKA_FETCH_TIMEOUT").is_none() {
        command.env("KRAFKA_FETCH_TIMEOUT", "90");
    }
    let (jars, reason) = match command.output() {
        Ok(output) => (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => (Vec::new(), format!("{}: {error}", script.display())),
    };
    let jars = String::from_utf8(jars).expect("paths of the cache are UTF-8");

    let mut releases = Vec::new();
    for version in RELEASES {
        let mut schemas = BTreeMap::new();
        let names = jars.lines().filter(|jar| jar.ends_with(&format!("-{version}.jar")));
        let jars: Vec<PathBuf> = names.map(PathBuf::from).collect();
        for jar in &jars {
            let bytes = std::fs::read(jar).expect("the script names files that exist");
            schemas.append(&mut Jar { bytes }.schemas());
        }
        if !schemas.is_empty() {
            releases.push(Release { version, schemas, jars });
            continue;
        }
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "CI must compare with the jars of Kafka {version}, and cannot have them: {reason}"
        );
        let skipped = format!("SKIPPED: no comparison with Kafka {version}: {}\n", reason.trim_end());
        let _ = std::io::stderr().write_all(skipped.as_bytes());
    }
    releases
}

/// The entries of a jar, in memory.
struct Jar {
    bytes: Vec<u8>,
}

impl Jar {
    /// The schemas in it, by the names of their files.
    fn schemas(&self) -> BTreeMap<String, Value> {
        const END: &[u8] = b"PK\x05\x06";
        let end = self.bytes.windows(END.len()).rposition(|window| window == END).expect("a jar has a directory");
        let (count, mut at) = (self.u16(end + 10), self.u32(end + 16));
        let mut schemas = BTreeMap::new();
        for _ in 0..count {
            let [name_len, extra_len, comment_len] = [28, 30, 32].map(|offset| self.u16(at + offset));
            let name = std::str::from_utf8(&self.bytes[at + 46..at + 46 + name_len]).expect("names are UTF-8");
            let schema = name.strip_prefix("common/message/").and_then(|name| name.strip_suffix(".json"));
            if let Some(schema) = schema {
                let content = self.content(self.u16(at + 10), self.u32(at + 20), self.u32(at + 42));
                let text = String::from_utf8(content).expect("schemas are UTF-8");
                schemas.insert(schema.to_owned(), parse_schema(&text));
            }
            at += 46 + name_len + extra_len + comment_len;
        }
        schemas
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
