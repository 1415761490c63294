//! The fields of a message as values, for code that does not know its type.
//!
//! [`Message::SCHEMA`] says which fields there are, [`Message::field`] gives them one by one: enough
//! to print any message in any form, or to compare it with what another program made of the same
//! bytes.
//!
//! ```
//! use krafka_protocol::{HeartbeatRequest, Message};
//! use krafka_protocol::value::Value;
//!
//! let request = HeartbeatRequest { generation_id: 7, ..HeartbeatRequest::default() };
//! let index = HeartbeatRequest::SCHEMA.fields.iter().position(|field| field.name == "generation_id");
//! assert!(matches!(request.field(index.unwrap()), Some(Value::Int(7))));
//! ```

use crate::schema::MessageSchema;
use crate::{Bytes, Message, Str, Uuid};

/// The value of a field, or an element of one.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // Their names say it.
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// A number of any size, signed or not.
    Int(i64),
    Float(f64),
    Str(&'a Str),
    Bytes(&'a Bytes),
    Uuid(Uuid),
    Array(&'a dyn Elements),
    Struct(&'a dyn Structure),
}

/// An array of anything.
pub trait Elements {
    /// The number of elements.
    fn count(&self) -> usize;
    /// The element at this place, counted from 0.
    fn element(&self, index: usize) -> Option<Value<'_>>;
}

/// A message of any type.
pub trait Structure {
    /// The fields and their versions.
    fn schema(&self) -> &'static MessageSchema;
    /// The value of the field at this place in the schema.
    fn field(&self, index: usize) -> Option<Value<'_>>;
}

impl<M: Message> Structure for M {
    fn schema(&self) -> &'static MessageSchema {
        M::SCHEMA
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        Message::field(self, index)
    }
}
