//! Bytes written by the official Java client, with the values that they stand for.
//!
//! `tests/vectors/select.py` chose them; its README says what the columns hold.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use krafka_protocol::{ApiKey, Bytes, Reader};
use serde_json::Value;

/// The releases of the Java client that wrote vectors.
pub(crate) const RELEASES: [&str; 2] = ["3.9.2", "4.4.0"];

/// One line of a file of vectors.
pub(crate) struct Vector {
    pub(crate) key: i16,
    pub(crate) name: String,
    /// `request`, `response`, or either with `-header` or `-frame`; `data` for what is neither.
    pub(crate) direction: String,
    pub(crate) version: i16,
    seed: String,
    pub(crate) bytes: Bytes,
    /// The values as Java prints them.
    pub(crate) json: Value,
    extra: Value,
}

impl Vector {
    /// The vectors of one kind that a release wrote.
    pub(crate) fn load(kind: &str, release: &str) -> Vec<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/{kind}-{release}.tsv.gz"));
        let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut text = String::new();
        GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("vectors are gzip of ASCII");
        let vectors: Vec<_> = text.lines().skip(1).map(Self::parse).collect();
        assert!(!vectors.is_empty(), "{} has no vectors", path.display());
        vectors
    }

    fn parse(line: &str) -> Self {
        let columns: Vec<&str> = line.split('\t').collect();
        let [key, name, direction, version, _header_version, seed, hex, json, extra] = columns[..] else {
            panic!("a vector has nine columns: {line}")
        };
        Self {
            key: key.parse().expect("an API key"),
            name: name.to_owned(),
            direction: direction.to_owned(),
            version: version.parse().expect("a version"),
            seed: seed.to_owned(),
            bytes: if hex == "-" { Bytes::new() } else { unhex(hex) },
            json: serde_json::from_str(json).expect("JSON"),
            extra: serde_json::from_str(extra).expect("JSON"),
        }
    }

    /// The API.
    pub(crate) fn api(&self) -> ApiKey {
        ApiKey::from_code(self.key).expect("Kafka 4.4 knows the API")
    }

    /// A reader of all the bytes.
    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.bytes.clone())
    }

    /// The record sets, by their path, in hex.
    pub(crate) fn records(&self) -> BTreeMap<String, String> {
        let records = self.extra["records"].as_object();
        let entry = |(path, hex): (&String, &Value)| (path.clone(), hex.as_str().expect("hex").to_owned());
        records.into_iter().flatten().map(entry).collect()
    }
}

/// What a failed assertion says about the vector.
impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} v{} (seed {})", self.name, self.direction, self.version, self.seed)
    }
}

/// Bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from lower-case hex.
pub(crate) fn unhex(hex: &str) -> Bytes {
    let digits = hex.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hex is ASCII");
        u8::from_str_radix(pair, 16).expect("two hexadecimal digits")
    };
    digits.map(byte).collect()
}
