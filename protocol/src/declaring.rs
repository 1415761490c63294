//! How a message is declared: a page to read, with nothing in it to call.
//!
//! # One struct, all versions, both directions
//!
//! A message is a plain struct. Its fields are Kafka's, in the order of the wire, under Kafka's names in Rust's
//! spelling; attributes say what Kafka's JSON schema says besides. `#[derive(Message)]` makes of that `Default`,
//! encoding, decoding and the exact size, for every version, and [the schema as data](crate::schema). There is no
//! build script and no generated file: what you read is what runs.
//!
//! ```
//! use krafka_protocol::{Message, Reader, Str, Uuid, Writer};
//!
//! /// Asks where some rooms of a house are.
//! #[derive(Clone, Debug, PartialEq, Message)]
//! #[message(versions = 0..=3, flexible = 2..)]
//! pub struct FindRooms {
//!     /// The house; its name was replaced by an id in version 3.
//!     #[field(versions = ..=2)]
//!     pub house: Str,
//!     /// The house's id.
//!     #[field(versions = 3..)]
//!     pub house_id: Uuid,
//!     /// The rooms, or null for all of them.
//!     #[field(nullable = 1..)]
//!     pub rooms: Option<Vec<Room>>,
//!     /// How long the caller can wait, in milliseconds; -1 as long as it takes.
//!     #[field(versions = 1.., ignorable, default = -1)]
//!     pub patience_ms: i32,
//!     /// Who asks. Few say so, hence it is tagged: it takes no room when it is not set.
//!     #[field(versions = 2.., tag = 0, nullable = 2.., ignorable, default = null)]
//!     pub visitor: Option<Str>,
//! }
//!
//! /// One room.
//! #[derive(Clone, Debug, PartialEq, Message)]
//! #[message(versions = 0..=3, flexible = 2..)]
//! pub struct Room {
//!     /// The floor, counted from the street.
//!     pub floor: i8,
//!     /// What is written on the door.
//!     pub name: Str,
//! }
//!
//! let request = FindRooms {
//!     house: "Usher".into(),
//!     rooms: Some(vec![Room { floor: -1, name: "vault".into() }]),
//!     ..FindRooms::default()
//! };
//! let mut out = Writer::new();
//! request.encode(&mut out, 0)?;
//! assert_eq!(out.into_bytes(), &b"\0\x05Usher\0\0\0\x01\xff\0\x05vault"[..]);
//!
//! // Version 3 has no place for the name of a house, and a name that is set must not get lost.
//! let error = request.encode(&mut Writer::new(), 3).unwrap_err();
//! assert_eq!(error.to_string(), "FindRooms v3, house: the field is set, and this version does not have it");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From Kafka's JSON to attributes
//!
//! | Kafka's schema says | we write |
//! |---|---|
//! | `"validVersions": "0-3"` | `#[message(versions = 0..=3)]`, on each structure inside as well |
//! | `"flexibleVersions": "2+"` | `#[message(flexible = 2..)]`, on each structure inside as well |
//! | `"apiKey": 10`, `"type": "request"` | `#[message(key = 10, response = FindCoordinatorResponse)]` |
//! | `"apiKey": 10`, `"type": "response"` | `#[message(key = 10)]` |
//! | `"latestVersionUnstable": true` | `#[message(versions = 0..=5, unstable = 6)]` |
//! | `"versions": "1+"`, `"versions": "0-2"` | `#[field(versions = 1..)]`, `#[field(versions = ..=2)]` |
//! | `"nullableVersions": "1+"` | an `Option`, and `#[field(nullable = 1..)]` |
//! | `"taggedVersions": "2+", "tag": 0` | `#[field(versions = 2.., tag = 0)]` |
//! | `"ignorable": true` | `#[field(ignorable)]` |
//! | `"default": "-1"`, `"default": "null"` | `#[field(default = -1)]`, `#[field(default = null)]` |
//! | `"type": "records"` | `Option<Bytes>`, and `#[field(records)]` |
//! | `bool`, `int8` … `int64`, `uint16`, `uint32`, `float64` | `bool`, `i8` … `i64`, `u16`, `u32`, `f64` |
//! | `string`, `bytes`, `uuid`, `[]T` | [`Str`](crate::Str), [`Bytes`](crate::Bytes), [`Uuid`](crate::Uuid), `Vec<T>` |
//! | `commonStructs` | one struct, used in several places |
//!
//! Whatever is not said is what Kafka means when its schema does not say it: a field is in all versions of the
//! message, is never null, is no tagged field, must not be dropped, and is zero, false or empty by default.
//!
//! # What the words mean on the wire
//!
//! **Versions.** A field that a version does not have is not written, and after reading it has its default. If
//! somebody set it all the same, writing fails, so that nothing is lost silently; `ignorable` fields are those of
//! which Kafka says that they may be.
//!
//! **Null.** `nullable` says in which versions null may stand; writing `None` in another one fails, and reading null
//! there does too. An `Option` whose default is not `null` is `Some` of the empty value by default, as in Java.
//!
//! **Flexible versions** (KIP-482) count lengths with varints and end each structure with its tagged fields. A tagged
//! field at its default is not written. Tags that the version does not know are skipped when they are read: a newer
//! peer may send them.
//!
//! **Unstable versions** can still change in Kafka. They cannot be written or read unless this crate is built with
//! the feature `unstable-protocol`.
//!
//! # What does not compile
//!
//! The derive refuses what makes no sense: versions outside the message's, a tag that is used twice or in a version
//! that is not flexible, a default of another type, null as the default where a version has no null, a structure that
//! lacks versions of the field that holds it or becomes flexible at another version. Each of these is an error at the
//! attribute that is wrong.
//!
//! # How we know that a declaration is right
//!
//! Nobody believes a codec because it can read what it wrote. Each message of this crate is held against three
//! witnesses:
//!
//! 1. **Kafka's schemas.** [`Message::SCHEMA`](crate::Message::SCHEMA) is compared, field by field, with the JSON
//!    inside the jars of Kafka 3.9, 4.0, 4.1, 4.2, 4.3 and 4.4: `just schemas`. A new file in a newer jar is reported
//!    by name.
//! 2. **Java's bytes.** Every API, version and direction is read from what Java's serializers wrote, compared with
//!    the values that Java prints, and written again to the same bytes: `just golden`.
//! 3. **Another Rust codec**, on random messages: the same bytes in, the same bytes out (`differential` in the
//!    tests).
//!
//! # Adding an API
//!
//! 1. `src/api/<name>.rs`: request, response and what is inside them. Say what a field means, in which unit, and what
//!    -1, 0 and null stand for.
//! 2. A line in the table of `src/api/mod.rs`. [`AnyRequest`](crate::AnyRequest),
//!    [`AnyResponse`](crate::AnyResponse), [`ApiKey::versions`](crate::ApiKey::versions) and the constants in
//!    [`versions`](crate::versions) come from it.
//! 3. `cargo test -p krafka-protocol`: the schema test finds what the file says differently from Kafka.
//!
//! The derive writes paths that begin with `krafka_protocol`, so a crate that declares messages of its own depends on
//! this crate by that name.
