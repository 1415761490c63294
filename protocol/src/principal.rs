//! Who a client is, as one broker tells another.

use crate::{Bytes, DecodeError, EncodeError, Message, Reader, Str, Writer};

/// A principal as Kafka's own principal builder writes it: what a broker sends with a request that it passes on, in
/// [`Envelope`](crate::ApiKey::Envelope) (KIP-590).
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct DefaultPrincipalData {
    /// Its type, `User` for instance.
    pub r#type: Str,
    /// Its name.
    pub name: Str,
    /// Whether the client showed a delegation token to the broker that passes its request on.
    pub token_authenticated: bool,
}

impl DefaultPrincipalData {
    /// The bytes that stand in an Envelope, with their version.
    ///
    /// # Errors
    /// Type or name is too long.
    pub fn to_bytes(&self) -> Result<Bytes, EncodeError> {
        let mut out = Writer::new();
        out.put_slice(&0_i16.to_be_bytes());
        self.encode(&mut out, 0)?;
        Ok(out.into_bytes())
    }

    /// Reads the bytes that stand in an Envelope.
    ///
    /// # Errors
    /// The version is not 0, or the bytes make no sense.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut input = Reader::new(bytes);
        let version = i16::from_be_bytes(input.take_array()?);
        Self::decode(&mut input, version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_stands_behind_its_version() {
        let alice = DefaultPrincipalData { r#type: "User".into(), name: "alice".into(), token_authenticated: true };
        let bytes = alice.to_bytes().unwrap();

        assert_eq!(bytes[..], *b"\0\0\x05User\x06alice\x01\0");
        assert_eq!(DefaultPrincipalData::from_bytes(bytes), Ok(alice));
        assert!(DefaultPrincipalData::from_bytes(Bytes::from_static(b"\0\x01\x01\x01\0\0")).is_err());
        assert!(DefaultPrincipalData::from_bytes(Bytes::from_static(b"\0")).is_err());
    }
}
