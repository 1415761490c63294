//! Writes the bytes of the golden tests as a first corpus, so that a short run starts from every message there is.

use std::error::Error;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use krafka_protocol::ApiKey;
use krafka_protocol::records::Batches;
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
    let payloads = fuzz.join("corpus/decompress");
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&payloads)?;
    for (index, line) in lines(&vectors.join("records.tsv.zst"))?.iter().enumerate() {
        let columns = line.split('\t').collect::<Vec<_>>();
        let hex = columns.get(8).ok_or("records: a line with too few columns")?;
        let records = unhex(hex)?;
        for (batch_index, batch) in Batches::new(records.clone().into()).filter_map(Result::ok).enumerate() {
            let codec = batch.header().attributes.compression()?;
            let input = [&[codec.code()], batch.payload()].concat();
            fs::write(payloads.join(format!("records-{index}-{batch_index}")), input)?;
        }
        fs::write(corpus.join(format!("records-{index}")), records)?;
    }

    // A message of each kind, empty and with some of everything.
    let corpus = fuzz.join("corpus/encode_after_decode");
    fs::create_dir_all(&corpus)?;
    let kinds = 2 * u8::try_from(ApiKey::SPOKEN.len())?;
    for kind in 0..kinds {
        let chance = (0..=255).map(|index: u8| index.wrapping_mul(kind).wrapping_add(index >> 3));
        fs::write(corpus.join(format!("empty-{kind}")), [kind, 0, 0])?;
        fs::write(
            corpus.join(format!("filled-{kind}")),
            [kind, kind, kind].into_iter().chain(chance).collect::<Vec<_>>(),
        )?;
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
