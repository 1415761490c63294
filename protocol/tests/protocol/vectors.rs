//! Bytes written by the official Java client, with the values that they stand for.
//!
//! `tests/vectors/pack.py` packed them; the README beside it says what the columns hold.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use krafka_protocol::{ApiKey, Bytes, Reader};
use ruzstd::decoding::StreamingDecoder;
use serde_json::Value;

/// The lines of a file of vectors, without the one that names the columns. The first column is the release of Java's
/// client that wrote the line: `3.9.2`, `4.4.0` or `both`.
pub(crate) fn lines(kind: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/{kind}.tsv.zst"));
    let packed = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    let mut unpacked = StreamingDecoder::new(packed).expect("vectors are zstd");
    unpacked.read_to_string(&mut text).expect("vectors are zstd of ASCII");
    let lines: Vec<_> = text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    assert!(!lines.is_empty(), "{} has no vectors", path.display());
    lines
}

/// One line of a file of messages.
pub(crate) struct Vector {
    /// The release of the Java client that wrote it, or `both`.
    pub(crate) release: String,
    /// The API's number, -1 for what is none.
    key: i16,
    pub(crate) name: String,
    /// `request`, `response`, or either with `-header` or `-frame`; `data` for what is neither.
    pub(crate) direction: String,
    pub(crate) version: i16,
    /// The version of the header that goes with it, -1 if none does.
    pub(crate) header_version: i16,
    seed: String,
    pub(crate) bytes: Bytes,
    /// The values as Java prints them.
    pub(crate) json: Value,
    /// Whether no release has the API's version as a stable one.
    pub(crate) is_unstable: bool,
    extra: Value,
}

impl Vector {
    /// The vectors of one kind that any release wrote.
    pub(crate) fn load(kind: &str) -> Vec<Self> {
        lines(kind).iter().map(|columns| Self::parse(columns)).collect()
    }

    fn parse(columns: &[String]) -> Self {
        let [release, key, name, direction, version, header_version, seed, hex, json, flags, extra] = columns else {
            panic!("a vector has eleven columns: {columns:?}")
        };
        Self {
            release: release.clone(),
            key: key.parse().expect("an API key"),
            name: name.clone(),
            direction: direction.clone(),
            version: version.parse().expect("a version"),
            header_version: header_version.parse().expect("a version"),
            seed: seed.clone(),
            bytes: unhex(hex),
            json: serde_json::from_str(json).expect("JSON"),
            is_unstable: flags == "unstable",
            extra: serde_json::from_str(extra).expect("JSON"),
        }
    }

    /// Whether it is in a version that we refuse: a stable one of no release, without the feature for those.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_unstable && !cfg!(feature = "unstable-protocol")
    }

    /// Whether it is in a layout that Kafka gave up under the same version: ReadShareGroupStateSummary 0 was unstable
    /// in 3.9, and got another field in its answer before it was stable.
    pub(crate) fn is_given_up(&self) -> bool {
        self.release == "3.9.2" && self.is_of(ApiKey::ReadShareGroupStateSummary) && self.version == 0
    }

    /// Whether it belongs to this API.
    pub(crate) fn is_of(&self, api: ApiKey) -> bool {
        self.key == api.code()
    }

    /// The API.
    pub(crate) fn api(&self) -> ApiKey {
        ApiKey::from_code(self.key).expect("Kafka 4.4 knows the API")
    }

    /// A reader of all the bytes, which keeps the tags that no schema knows.
    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.bytes.clone()).keep_unknown_tags()
    }

    /// Whether there are tagged fields in it that no schema knows.
    pub(crate) fn has_unknown_tags(&self) -> bool {
        !self.extra["unknownTags"].is_null()
    }

    /// Those, by the path of their structures: numbers and contents, in hex.
    pub(crate) fn unknown_tags(&self) -> BTreeMap<String, Vec<(u32, String)>> {
        if self.has_unknown_tags() {
            serde_json::from_value(self.extra["unknownTags"].clone()).expect("numbers and hex")
        } else {
            BTreeMap::new()
        }
    }

    /// The record sets, by their path, in hex.
    pub(crate) fn records(&self) -> BTreeMap<String, String> {
        let records = self.extra["records"].as_object();
        let entry = |(path, hex): (&String, &Value)| (path.clone(), hex.as_str().expect("hex").to_owned());
        records.into_iter().flatten().map(entry).collect()
    }
}

/// A version of an API, in one direction, as a release of Java's client has it.
#[derive(Clone, Debug)]
pub(crate) struct ApiVersion {
    /// `3.9.2`, `4.4.0` or `both`.
    pub(crate) release: String,
    pub(crate) api: ApiKey,
    /// `request` or `response`.
    pub(crate) direction: String,
    pub(crate) version: i16,
    pub(crate) is_flexible: bool,
    pub(crate) is_unstable: bool,
}

/// All versions of all APIs.
pub(crate) fn api_versions() -> Vec<ApiVersion> {
    let parse = |columns: Vec<String>| {
        let [release, key, _name, direction, version, _header_version, flexible, _listeners, flags] = &columns[..]
        else {
            panic!("a version has nine columns: {columns:?}")
        };
        // A release that has an API no more says so in a line of its own.
        (version != "none").then(|| ApiVersion {
            release: release.clone(),
            api: ApiKey::from_code(key.parse().expect("an API key")).expect("we know its name"),
            direction: direction.clone(),
            version: version.parse().expect("a version"),
            is_flexible: flexible == "true",
            is_unstable: flags.split(',').any(|flag| flag == "unstable"),
        })
    };
    lines("apis").into_iter().filter_map(parse).collect()
}

/// What a failed assertion says about the vector.
impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} v{} (seed {} of {})", self.name, self.direction, self.version, self.seed, self.release)
    }
}

/// Bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from lower-case hex, or from `-`, which is none.
pub(crate) fn unhex(hex: &str) -> Bytes {
    if hex == "-" {
        return Bytes::new();
    }
    let digits = hex.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hex is ASCII");
        u8::from_str_radix(pair, 16).expect("two hexadecimal digits")
    };
    digits.map(byte).collect()
}
