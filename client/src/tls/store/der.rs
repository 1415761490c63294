//! DER, as far as key stores have it: tags, lengths and what they hold, within what is there.

use super::Fault;

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const BMP: u8 = 0x1e;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// `[0]`, around something.
pub(super) const CONTEXT: u8 = 0xa0;
/// `[0]`, in the place of the tag of octets.
pub(super) const CONTEXT_OCTETS: u8 = 0x80;

/// What is still to be read.
#[derive(Clone, Copy)]
pub(super) struct Der<'a>(pub(super) &'a [u8]);

impl<'a> Der<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next element: its tag, and what is in it.
    pub(super) fn element(&mut self) -> Result<(u8, Self), Fault> {
        let [tag, first, rest @ ..] = self.0 else { return Err(BROKEN) };
        let (len, rest) = match *first {
            short @ ..0x80 => (usize::from(short), rest),
            // Without a length in front, up to a mark at the end: BER, which old tools wrote.
            0x80 => return Err(Fault::Unread("its parts")),
            long => {
                let count = usize::from(long & 0x7f);
                let (len, rest) = rest.split_at_checked(count).filter(|_| count <= 4).ok_or(BROKEN)?;
                (len.iter().fold(0, |len, byte| (len << 8) | usize::from(*byte)), rest)
            }
        };
        let (contents, rest) = rest.split_at_checked(len).ok_or(BROKEN)?;
        self.0 = rest;
        Ok((*tag, Self(contents)))
    }

    /// The next element, which has this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Result<Self, Fault> {
        match self.element()? {
            (found, contents) if found == tag => Ok(contents),
            _ => Err(BROKEN),
        }
    }

    /// The next element, if it has this tag.
    pub(super) fn optional(&mut self, tag: u8) -> Result<Option<Self>, Fault> {
        if self.0.first() == Some(&tag) { self.expect(tag).map(Some) } else { Ok(None) }
    }

    /// The next element, whole.
    pub(super) fn whole(&mut self) -> Result<&'a [u8], Fault> {
        let before = self.0;
        self.element()?;
        Ok(&before[..before.len() - self.0.len()])
    }

    /// A number that counts something.
    pub(super) fn number(&mut self) -> Result<u32, Fault> {
        let bytes = self.expect(INTEGER)?.0;
        // The first bit is the sign.
        let bytes = match bytes {
            [0, rest @ ..] => rest,
            [0x80..=0xff, ..] => return Err(BROKEN),
            bytes => bytes,
        };
        if bytes.len() > 4 {
            return Err(BROKEN);
        }
        Ok(bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte)))
    }

    /// An algorithm, and what is said of it.
    pub(super) fn algorithm(&mut self) -> Result<(&'a [u8], Self), Fault> {
        let mut algorithm = self.expect(SEQUENCE)?;
        let id = algorithm.expect(OID)?.0;
        Ok((id, algorithm))
    }
}

pub(super) const BROKEN: Fault = Fault::Broken("PKCS #12");
