//! Writes the bytes of the golden tests as a first corpus, so that a short run starts from every message there is.

use std::error::Error;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use krafka_protocol::ApiKey;
use ruzstd::decoding::StreamingDecoder;

fn main() -> Result<(), Box<dyn Error>> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let vectors = fuzz.join("../protocol/tests/vectors");

    let corpus = fuzz.join("corpus/decode_any");
    fs::create_dir_all(&corpus)?;
    for kind in ["messages", "unknown-tags"] {
        for (index, line) in lines(&vectors.join(format!("{kind}.tsv.zst")))?.iter().enumerate() {
            let [_, key, name, direction, version, _, _, hex, ..] = line.split('\t').collect::<Vec<_>>()[..] else {
                return Err(format!("{kind}: a line with too few columns").into());
            };
            let (key, version): (i16, u8) = (key.parse()?, version.parse()?);
            if ApiKey::from_code(key).and_then(ApiKey::versions).is_some() {
                let response = if direction == "response" { 0x80 } else { 0 };
                let input = [&[u8::try_from(key)?, version | response][..], &unhex(hex)?].concat();
                fs::write(corpus.join(format!("{kind}-{name}-{direction}-{version}-{index}")), input)?;
            }
        }
    }

    let corpus = fuzz.join("corpus/records");
    fs::create_dir_all(&corpus)?;
    for (index, line) in lines(&vectors.join("records.tsv.zst"))?.iter().enumerate() {
        let columns = line.split('\t').collect::<Vec<_>>();
        let hex = columns.get(8).ok_or("records: a line with too few columns")?;
        fs::write(corpus.join(format!("records-{index}")), unhex(hex)?)?;
    }
    Ok(())
}

fn lines(path: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut text = String::new();
    StreamingDecoder::new(fs::File::open(path)?)?.read_to_string(&mut text)?;
    Ok(text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect())
}

fn unhex(hex: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    if hex == "-" {
        return Ok(Vec::new());
    }
    hex.as_bytes().chunks(2).map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}
