//! What `#[derive(Message)]` implements.

use std::fmt::Debug;

use crate::ApiKey;
use crate::schema::{MessageSchema, Versions};
use crate::value::Value;
use crate::wire::{DecodeError, EncodeError, Reader, Writer};

/// A message of the protocol, or a structure inside one, in all of its versions and in both directions.
pub trait Message: Sized + Default + Clone + Debug + PartialEq {
    /// The fields and their versions.
    const SCHEMA: &'static MessageSchema;

    /// What [`Default`] gives.
    #[doc(hidden)]
    const DEFAULT: Self;

    /// Writes the message as `version` has it.
    ///
    /// # Errors
    /// The version is outside [`MessageSchema::versions`]; a field that may not be ignored is set and the version lacks
    /// it; a field is null where the version has no null; something is longer than the protocol can express.
    fn encode(&self, out: &mut Writer, version: i16) -> Result<(), EncodeError>;

    /// Reads a message as `version` has it. What follows it is left in `input`.
    ///
    /// # Errors
    /// The version is outside [`MessageSchema::versions`], or the bytes are no such message.
    fn decode(input: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        let mut message = Self::DEFAULT;
        message.fill(input, version)?;
        Ok(message)
    }

    /// Reads a message into one that is at its default. After an error some fields are set.
    ///
    /// So an element of an array is made where it shall stay: moving it there would cost as much as reading it.
    #[doc(hidden)]
    fn fill(&mut self, input: &mut Reader, version: i16) -> Result<(), DecodeError>;

    /// The number of bytes that [`encode`](Message::encode) writes.
    ///
    /// # Errors
    /// Those of [`encode`](Message::encode).
    fn size(&self, version: i16) -> Result<usize, EncodeError>;

    /// About how many bytes [`encode`](Message::encode) copies, found in no time.
    #[doc(hidden)]
    fn hint(&self) -> usize;

    /// The fewest bytes that any value takes.
    #[doc(hidden)]
    fn min_size(version: i16) -> usize;

    /// The value of the field at this place in [`MessageSchema::fields`], for code that does not know the type.
    fn field(&self, index: usize) -> Option<Value<'_>>;
}

/// A message that a client sends and that is answered with another.
pub trait Request: Message {
    /// The API.
    const KEY: ApiKey;
    /// The versions that can be encoded and decoded: [`MessageSchema::versions`].
    const VERSIONS: Versions;
    /// The answer.
    type Response: Message;
}

/// What does not compile, since the schema makes no sense; the derive's own tests have the rest.
///
/// A tag that is used twice:
///
/// ```compile_fail
/// #[derive(Clone, Debug, PartialEq, krafka_protocol::Message)]
/// #[message(versions = 0..=3, flexible = 2..)]
/// struct Foo {
///     #[field(versions = 2.., tag = 0)]
///     a: i32,
///     #[field(versions = 3.., tag = 0)]
///     b: i32,
/// }
/// ```
///
/// A structure that lacks a version of the message around it:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Debug, PartialEq, krafka_protocol::Message)]
/// #[message(versions = 0..=3)]
/// struct Foo {
///     bars: Vec<Bar>,
/// }
///
/// #[derive(Clone, Debug, PartialEq, krafka_protocol::Message)]
/// #[message(versions = 1..=3)]
/// struct Bar {}
/// ```
///
/// A structure in another encoding than the message around it:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Debug, PartialEq, krafka_protocol::Message)]
/// #[message(versions = 0..=3, flexible = 2..)]
/// struct Foo {
///     bars: Vec<Bar>,
/// }
///
/// #[derive(Clone, Debug, PartialEq, krafka_protocol::Message)]
/// #[message(versions = 0..=3)]
/// struct Bar {}
/// ```
///
/// A number that no API has:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Debug, PartialEq, krafka_protocol::Message)]
/// #[message(key = 999, versions = 0..=3, response = Foo)]
/// struct Foo {}
/// const _: krafka_protocol::ApiKey = <Foo as krafka_protocol::Request>::KEY;
/// ```
#[cfg(doctest)]
struct Refusals;
