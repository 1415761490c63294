//! `#[derive(Message)]`: a struct with Kafka's fields becomes a message of Kafka's protocol.
//!
//! The struct is the schema: its fields stand in the order of the wire, under Kafka's names in Rust's spelling, and
//! attributes say what Kafka's JSON says. The derive writes `Default`, encode, decode and size for every version, and
//! the schema as data. What can be wrong in a schema is refused when it is compiled.
//!
//! On the struct, `#[message(…)]`:
//!
//! | attribute            | meaning                                                                           |
//! |----------------------|-----------------------------------------------------------------------------------|
//! | `versions = 4..=18`  | the versions that can be encoded and decoded; the only one that must be there     |
//! | `flexible = 12..`    | the versions in the flexible encoding; without it, none                           |
//! | `unstable = 19`      | one version beside those, which Kafka marks unstable                              |
//! | `key = 1`            | the API's number, on a request and on its response                                |
//! | `response = Foo`     | makes it a `Request` with that response                                           |
//! | `name = "Foo"`       | Kafka's name, where two structures of a file share it; without it, the struct's   |
//!
//! The unstable version is the one after the last or before the first of `versions`. It is refused, as any version that
//! the message does not have, and is no part of the schema's, unless krafka-protocol has the feature
//! `unstable-protocol`: the feature of that crate counts, not one of the crate that declares the message. Fields may
//! have it in their versions like any other, and structures inside the message simply have it in their `versions`.
//!
//! On a field, `#[field(…)]`, all optional:
//!
//! | attribute            | meaning                                                                           |
//! |----------------------|-----------------------------------------------------------------------------------|
//! | `versions = 7..`     | the versions that have the field (also `..=14`, `5..=9`, `3`); without it, all    |
//! | `nullable = 9..`     | for an `Option`: where it may be null; without it, in all of the field's versions |
//! | `tag = 0`            | a tagged field                                                                    |
//! | `ignorable`          | a value is dropped where the version lacks the field; otherwise that is an error  |
//! | `default = -1`       | what it is when nobody set it; without it zero, false or empty                    |
//! | `default = null`     | for an `Option`: `None`; without it, `Some` of the empty value, as in Kafka       |
//! | `records`            | the schema's type is `records`; null by default, empty if a version has no null   |

mod attributes;
mod expand;
mod field;
mod step;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Derives `Message` (and `Request`, where there is a response) and `Default`. The crate's page says how.
#[proc_macro_derive(Message, attributes(message, field))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
