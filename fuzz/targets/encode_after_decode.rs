//! Every message that there is: what decodes encodes, and decodes to the same.
//!
//! Any input is a message: the first three bytes choose which, in which version, and what a peer adds to it; the rest
//! is the chance that fills its fields by the schema. So the search is spent on values, not on finding the form.

#![no_main]

use krafka_protocol::{Bytes, EncodeError, Reader, UnknownTags, Writer};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)] // The tests use more of them.
#[path = "../../protocol/tests/protocol/filler.rs"]
mod filler;
#[allow(dead_code)]
#[path = "../../protocol/tests/protocol/kinds.rs"]
mod kinds;

use filler::{Extra, fill};
use kinds::Either;

fuzz_target!(|data: &[u8]| {
    let [kind, version, extra, entropy @ ..] = data else { return };
    let kinds: Vec<_> = kinds::kinds().collect();
    let kind = kinds[usize::from(*kind) % kinds.len()];
    let versions: Vec<_> = kind.schema.versions.iter().collect();
    let version = versions[usize::from(*version) % versions.len()];
    let extra = [Extra::Nothing, Extra::Defaults, Extra::UnknownTags][usize::from(*extra) % 3];
    let name = kind.schema.name;

    let bytes = Bytes::from(fill(kind.schema, version, entropy, extra));
    let decoded = kind.decode_all(bytes.clone(), version).unwrap_or_else(|error| panic!("{name} v{version}: {error}"));
    let again = decoded.encode(version).unwrap_or_else(|error| panic!("{name} v{version}: {error}"));
    if extra == Extra::Nothing {
        assert_eq!(again, bytes, "{name} v{version}");
    }
    assert_eq!(kind.decode_all(again.clone(), version).as_ref(), Ok(&decoded), "{name} v{version}");

    // With the tags that nobody knows kept, every byte comes back.
    let mut input = Reader::new(bytes.clone()).keep_unknown_tags();
    let kept = kind.decode(&mut input, version).unwrap_or_else(|error| panic!("{name} v{version}: {error}"));
    assert_eq!(kept, decoded, "{name} v{version}");
    assert_eq!(encode_with(&kept, version, input.take_unknown_tags()), Ok(bytes), "{name} v{version}");

    // Another version refuses the message, or says as much of it as it can, and then the same of that.
    for other in versions {
        let Ok(bytes) = decoded.encode(other) else { continue };
        let less = kind.decode_all(bytes.clone(), other).unwrap_or_else(|error| panic!("{name} v{other}: {error}"));
        assert_eq!(less.encode(other).as_ref(), Ok(&bytes), "{name} v{other}");
    }
});

fn encode_with(message: &Either, version: i16, unknown: UnknownTags) -> Result<Bytes, EncodeError> {
    let mut out = Writer::new().with_unknown_tags(unknown);
    match message {
        Either::Request(request) => request.encode(&mut out, version)?,
        Either::Response(response) => response.encode(&mut out, version)?,
    }
    Ok(out.into_bytes())
}
