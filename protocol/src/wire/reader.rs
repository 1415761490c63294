//! Reads values from a frame, without copying and without trusting it.
//!
//! Two things bound what a frame can make us allocate. An array's length is believed only if that many of the smallest
//! possible elements fit into the bytes that are left; and everything that is allocated is charged to a budget, since a
//! byte on the wire may become forty in memory. Nothing that a broker legally sends is refused by either.

use bytes::{Buf, Bytes};

use super::array_len;
use super::error::{DecodeError, DecodeErrorKind};
use super::unknown_tags::{Keeper, UnknownTags};

/// A position in a frame, and how much memory its decoded form may still take.
#[derive(Clone, Debug)]
pub struct Reader {
    frame: Bytes,
    /// What is left: to the frame's end, or to that of the tagged field being read. Nothing else is ever looked at, so
    /// that one comparison with its length guards each read.
    rest: Bytes,
    /// How many bytes of the frame lie behind `rest`, while a tagged field is being read.
    behind: usize,
    budget: usize,
    /// There if unknown tags are not skipped but kept.
    keeper: Option<Box<Keeper>>,
}

impl Reader {
    /// Memory that the decoded form of any frame may take, however short the frame is.
    pub const BASE_BUDGET: usize = 128 << 20;
    /// Memory that each byte of the frame adds to the budget. Kafka's densest large response is the one to Metadata, at
    /// about three bytes of memory to one of the wire.
    pub const BUDGET_PER_BYTE: usize = 8;

    /// Starts at the beginning of `frame`.
    pub fn new(frame: Bytes) -> Self {
        let budget = Self::BASE_BUDGET.saturating_add(frame.len().saturating_mul(Self::BUDGET_PER_BYTE));
        Self::with_budget(frame, budget)
    }

    /// Starts at the beginning of `frame`, with an own budget of decoded memory in bytes.
    pub fn with_budget(frame: Bytes, budget: usize) -> Self {
        Self { rest: frame.clone(), frame, behind: 0, budget, keeper: None }
    }

    /// Keeps the tagged fields that messages do not know, instead of skipping them.
    #[must_use]
    pub fn keep_unknown_tags(self) -> Self {
        Self { keeper: Some(Box::default()), ..self }
    }

    /// The tagged fields that whatever was read since this was last called does not know, if they were to be
    /// [kept](Self::keep_unknown_tags). There are none if the tags of some structure did not ascend, as the protocol
    /// demands that they do.
    pub fn take_unknown_tags(&mut self) -> UnknownTags {
        self.keeper.as_mut().map(|keeper| keeper.finish()).unwrap_or_default()
    }

    /// The number of bytes that are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything has been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of bytes that have been read.
    #[inline]
    pub fn position(&self) -> usize {
        self.frame.len() - self.behind - self.rest.len()
    }

    /// What is left of the budget of decoded memory.
    #[inline]
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Takes the rest of the input, as it is.
    pub fn take_rest(&mut self) -> Bytes {
        std::mem::take(&mut self.rest)
    }

    /// Takes `len` bytes as a slice of the frame.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn take_bytes(&mut self, len: usize) -> Result<Bytes, DecodeError> {
        if len > self.rest.len() {
            return Err(DecodeError::truncated(len, self.rest.len()));
        }
        Ok(self.split_to(len))
    }

    /// Takes bytes that are known to be there.
    #[inline(always)]
    pub(crate) fn split_to(&mut self, len: usize) -> Bytes {
        // `Bytes::slice` and `Bytes::split_to` copy what they return while its parts are still on their way to the
        // cache, and take twice the time.
        let mut taken = self.whole();
        self.narrow(&mut taken, len);
        taken
    }

    /// A handle on the whole frame.
    #[doc(hidden)]
    #[inline(always)]
    pub fn whole(&self) -> Bytes {
        self.frame.clone()
    }

    /// Takes bytes that are known to be there, and makes a handle on the whole frame one on them.
    #[inline(always)]
    pub(crate) fn narrow(&mut self, whole: &mut Bytes, len: usize) {
        whole.advance(self.position());
        whole.truncate(len);
        self.rest.advance(len);
    }

    /// Takes `N` bytes as an array: the root of all numbers.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn take_array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.rest.first_chunk::<N>() {
            Some(&bytes) => {
                self.rest.advance(N);
                Ok(bytes)
            }
            None => Err(DecodeError::truncated(N, self.rest.len())),
        }
    }

    /// The next `N` bytes, which may be more than will be taken, or nothing if there are fewer.
    #[inline]
    pub(crate) fn peek_array<const N: usize>(&self) -> Option<&[u8; N]> {
        self.rest.first_chunk()
    }

    /// The next `N` bytes, to be [skipped](Self::skip) once the fields that they are have been read from them.
    ///
    /// # Errors
    /// There are fewer.
    #[doc(hidden)]
    #[inline]
    pub fn peek_run<const N: usize>(&self) -> Result<&[u8; N], DecodeError> {
        self.rest.first_chunk().ok_or_else(|| DecodeError::truncated(N, self.rest.len()))
    }

    /// Takes `count` elements of `N` bytes as what `make` makes of them: the root of all arrays of numbers.
    #[inline]
    pub(crate) fn take_chunks<const N: usize, T>(
        &mut self,
        count: usize,
        make: impl FnOnce(&[[u8; N]]) -> T,
    ) -> Result<T, DecodeError> {
        let len = count.saturating_mul(N);
        match self.rest.get(..len) {
            Some(bytes) => {
                let made = make(bytes.as_chunks().0);
                self.rest.advance(len);
                Ok(made)
            }
            None => Err(DecodeError::truncated(len, self.rest.len())),
        }
    }

    /// Moves on by `len` bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn skip(&mut self, len: usize) -> Result<(), DecodeError> {
        if len > self.rest.len() {
            return Err(DecodeError::truncated(len, self.rest.len()));
        }
        self.rest.advance(len);
        Ok(())
    }

    /// Takes an unsigned varint of at most 32 bits.
    ///
    /// # Errors
    /// It ends too late, or not at all.
    #[inline]
    pub fn take_varint(&mut self) -> Result<u32, DecodeError> {
        match *self.rest {
            [first, ..] if first < 0x80 => {
                self.rest.advance(1);
                Ok(u32::from(first))
            }
            [first, second, ..] if second < 0x80 => {
                self.rest.advance(2);
                Ok(u32::from(first & 0x7f) | u32::from(second) << 7)
            }
            _ => self.take_long_varint(),
        }
    }

    #[cold]
    fn take_long_varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.take_array()?;
            if shift == 28 && byte > 0x0f {
                return Err(DecodeError::new(DecodeErrorKind::Varint));
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        unreachable!("the fifth byte of a varint either ends it or is an error")
    }

    /// Takes the length of a string: `None` is null.
    #[inline]
    pub(crate) fn take_string_len(&mut self, flexible: bool) -> Result<Option<usize>, DecodeError> {
        if flexible {
            self.take_compact_len()
        } else {
            Ok(usize::try_from(i16::from_be_bytes(self.take_array()?)).ok())
        }
    }

    /// Takes the length of bytes or of an array: `None` is null.
    ///
    /// Always in line: the call costs as much as what it does, and every array of a message needs it.
    #[inline(always)]
    pub(crate) fn take_len(&mut self, flexible: bool) -> Result<Option<usize>, DecodeError> {
        if flexible {
            self.take_compact_len()
        } else {
            Ok(usize::try_from(i32::from_be_bytes(self.take_array()?)).ok())
        }
    }

    #[inline(always)]
    fn take_compact_len(&mut self) -> Result<Option<usize>, DecodeError> {
        Ok((self.take_varint()? as usize).checked_sub(1))
    }

    /// Believes the length of an array of elements that take at least `min_size` bytes each here and `memory` bytes
    /// each once they are decoded, or refuses it.
    #[inline]
    pub(crate) fn admit(&mut self, count: usize, min_size: usize, memory: usize) -> Result<(), DecodeError> {
        if !array_len::fit(count, min_size, self.remaining()) {
            let (length, left) = (count as i64, self.remaining());
            return Err(DecodeError::new(DecodeErrorKind::Length { what: "array", length, left }));
        }
        self.charge(count.saturating_mul(memory.max(1)))
    }

    /// Takes memory out of the budget.
    #[inline]
    pub(crate) fn charge(&mut self, memory: usize) -> Result<(), DecodeError> {
        match self.budget.checked_sub(memory) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(DecodeError::new(DecodeErrorKind::Budget { needed: memory, left: self.budget })),
        }
    }

    /// Begins a tagged field: until [`close_tag`](Self::close_tag), nothing behind it can be read.
    ///
    /// Like Java's reader the derive takes tags in any order, and the last of two equal ones; unlike Java's it
    /// insists that a known field fills the size that it was announced with.
    #[doc(hidden)]
    #[inline]
    pub fn open_tag(&mut self) -> Result<OpenTag, DecodeError> {
        let number = self.take_varint()?;
        let size = self.take_varint()? as usize;
        if size > self.rest.len() {
            return Err(DecodeError::truncated(size, self.rest.len()));
        }
        let behind = self.rest.split_off(size);
        self.behind += behind.len();
        Ok(OpenTag { number, size, behind })
    }

    /// Ends a tagged field that was read, or [passed over](Self::pass_tag).
    #[doc(hidden)]
    #[inline]
    pub fn close_tag(&mut self, tag: OpenTag) -> Result<(), DecodeError> {
        if !self.rest.is_empty() {
            return Err(DecodeError::tag_size(tag.number, tag.size, tag.size - self.rest.len()));
        }
        self.behind -= tag.behind.len();
        self.rest = tag.behind;
        Ok(())
    }

    /// Begins the tagged fields at the end of a structure.
    #[doc(hidden)]
    #[inline]
    pub fn open_tags(&mut self) -> Result<OpenTags, DecodeError> {
        let count = self.take_varint()?;
        let structure = self.keeper.as_mut().map_or(0, |keeper| keeper.open());
        Ok(OpenTags { count, structure, least: 0 })
    }

    /// Passes over the content of a tagged field that this version does not know: a newer peer may send it.
    #[doc(hidden)]
    pub fn pass_tag(&mut self, tags: &mut OpenTags, tag: &OpenTag) -> Result<(), DecodeError> {
        if self.keeper.is_some() {
            self.charge(Keeper::COST)?;
            self.note_order(tags, tag.number);
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.keep(tags.structure, tag.number, Some(self.rest.clone()));
        }
        self.rest.clear();
        Ok(())
    }

    /// Whether unknown tags are kept.
    #[doc(hidden)]
    #[inline]
    pub fn keeps_tags(&self) -> bool {
        self.keeper.is_some()
    }

    /// Notes a tagged field that was read, and whether it is what it would be without having been sent.
    #[doc(hidden)]
    #[cold]
    pub fn note_tag(&mut self, tags: &mut OpenTags, number: u32, is_default: bool) -> Result<(), DecodeError> {
        self.charge(Keeper::COST)?;
        self.note_order(tags, number);
        if let Some(keeper) = self.keeper.as_mut().filter(|_| is_default) {
            keeper.keep(tags.structure, number, None);
        }
        Ok(())
    }

    fn note_order(&mut self, tags: &mut OpenTags, number: u32) {
        if let Some(keeper) = self.keeper.as_mut().filter(|_| u64::from(number) < tags.least) {
            keeper.disorder();
        }
        tags.least = u64::from(number) + 1;
    }

    /// Passes over the tagged fields at the end of a structure that knows none.
    #[doc(hidden)]
    #[inline]
    pub fn pass_tags(&mut self) -> Result<(), DecodeError> {
        if self.pass_no_tags() { Ok(()) } else { self.pass_some_tags() }
    }

    /// Passes over the end of a structure without tagged fields. Says no, and reads nothing, if it has some.
    #[doc(hidden)]
    #[inline]
    pub fn pass_no_tags(&mut self) -> bool {
        // Hardly ever there are any.
        let has_none = self.rest.first() == Some(&0) && self.keeper.is_none();
        if has_none {
            self.rest.advance(1);
        }
        has_none
    }

    #[cold]
    fn pass_some_tags(&mut self) -> Result<(), DecodeError> {
        let mut tags = self.open_tags()?;
        for _ in 0..tags.count {
            let tag = self.open_tag()?;
            self.pass_tag(&mut tags, &tag)?;
            self.close_tag(tag)?;
        }
        Ok(())
    }
}

/// The tagged fields of a structure that is being read.
#[doc(hidden)]
#[derive(Debug)]
pub struct OpenTags {
    /// How many there are.
    pub count: u32,
    /// Which structure it is, if that matters.
    structure: u32,
    /// The least number that the next one may have.
    least: u64,
}

/// A tagged field that is being read.
#[doc(hidden)]
#[derive(Debug)]
pub struct OpenTag {
    /// The tag.
    pub number: u32,
    size: usize,
    /// What follows it.
    behind: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::api_versions::ApiVersion;
    use crate::{ApiVersionsResponse, Message};

    /// A response of version 3 without APIs, and these tagged fields: how many, and then for each tag, size and value.
    fn tagged(tags: &[u8]) -> Result<ApiVersionsResponse, DecodeError> {
        let body = [&[0, 0, 1, 0, 0, 0, 0], tags].concat();
        let mut input = Reader::new(Bytes::from(body));
        let response = ApiVersionsResponse::decode(&mut input, 3)?;
        assert!(input.is_empty(), "{} bytes are left", input.remaining());
        Ok(response)
    }

    const EPOCH_5: [u8; 10] = [1, 8, 0, 0, 0, 0, 0, 0, 0, 5];
    const EPOCH_6: [u8; 10] = [1, 8, 0, 0, 0, 0, 0, 0, 0, 6];
    const READY: [u8; 3] = [3, 1, 1];

    #[test]
    fn tags_come_in_any_order() {
        let response = tagged(&[&[2][..], &READY, &EPOCH_5].concat()).unwrap();

        assert_eq!((response.finalized_features_epoch, response.zk_migration_ready), (5, true));
    }

    /// BY-04.
    #[test]
    fn the_last_of_two_equal_tags_counts() {
        let response = tagged(&[&[2][..], &EPOCH_5, &EPOCH_6].concat()).unwrap();

        assert_eq!(response.finalized_features_epoch, 6);
    }

    /// BY-04.
    #[test]
    fn a_tag_that_nobody_knows_is_skipped() {
        let response = tagged(&[&[2][..], &[0x85, 0x01, 2, 0xff, 0xff], &READY].concat()).unwrap();

        assert!(response.zk_migration_ready);
    }

    /// BY-04.
    #[test]
    fn a_tagged_field_fills_its_size() {
        let too_long = tagged(&[1, 3, 2, 1, 0]).unwrap_err();
        let too_short = tagged(&[1, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap_err();
        let past_the_end = tagged(&[1, 3, 2, 1]).unwrap_err();

        assert_eq!(
            too_long.to_string(),
            "ApiVersionsResponse v3, tagged fields: tagged field 3 was announced with 2 bytes and has 1"
        );
        assert_eq!(
            too_short.to_string(),
            "ApiVersionsResponse v3, finalized_features_epoch: the input ends too early: 8 bytes needed, 7 left"
        );
        assert_eq!(
            past_the_end.to_string(),
            "ApiVersionsResponse v3, tagged fields: the input ends too early: 2 bytes needed, 1 left"
        );
    }

    /// Neighbours are read at once, and yet it is one of them that the input ends in.
    #[test]
    fn the_field_that_the_input_ends_in_is_named() {
        let frame = |len| Bytes::from(vec![0; len]);
        let missing = |len| ApiVersion::decode(&mut Reader::new(frame(len)), 0).unwrap_err().to_string();

        let ends = "the input ends too early: 2 bytes needed";
        assert_eq!(missing(0), format!("ApiVersion v0, api_key: {ends}, 0 left"));
        assert_eq!(missing(1), format!("ApiVersion v0, api_key: {ends}, 1 left"));
        assert_eq!(missing(2), format!("ApiVersion v0, min_version: {ends}, 0 left"));
        assert_eq!(missing(5), format!("ApiVersion v0, max_version: {ends}, 1 left"));
        assert_eq!(ApiVersion::decode(&mut Reader::new(frame(6)), 0), Ok(ApiVersion::default()));
    }

    #[test]
    fn varints_have_at_most_32_bits() {
        let varint = |bytes: &'static [u8]| Reader::new(Bytes::from_static(bytes)).take_varint();

        assert_eq!(varint(&[0x7f]), Ok(127));
        assert_eq!(varint(&[0x80, 0x01]), Ok(128));
        assert_eq!(varint(&[0x80, 0x00]), Ok(0));
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok(u32::MAX));
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x1f]), Err(DecodeError::new(DecodeErrorKind::Varint)));
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x8f, 0x00]), Err(DecodeError::new(DecodeErrorKind::Varint)));
        assert!(varint(&[0x80]).unwrap_err().is_truncated());
    }

    #[test]
    fn a_reader_knows_what_is_left() {
        let mut input = Reader::with_budget(Bytes::from_static(b"abc"), 7);
        assert_eq!((input.is_empty(), input.remaining(), input.budget()), (false, 3, 7));

        input.charge(5).unwrap();
        input.skip(1).unwrap();
        assert_eq!((input.position(), input.budget()), (1, 2));
        assert_eq!(input.take_rest(), "bc");
        assert_eq!((input.is_empty(), input.position()), (true, 3));
    }

    /// Only a reader that keeps tags pays for what it keeps.
    #[test]
    fn known_tags_cost_nothing() {
        let body = Bytes::from([&[0, 0, 1, 0, 0, 0, 0, 1][..], &EPOCH_5].concat());

        assert!(ApiVersionsResponse::decode(&mut Reader::with_budget(body.clone(), 0), 3).is_ok());
        let error = ApiVersionsResponse::decode(&mut Reader::with_budget(body, 0).keep_unknown_tags(), 3).unwrap_err();
        assert!(error.is_over_budget(), "{error}");
    }

    /// Then nothing could be put back where it was.
    #[test]
    fn nothing_is_kept_of_tags_that_do_not_ascend() {
        let unknown = [77, 1, 0xff];
        let kept = |tags: &[&[u8]]| {
            let body = [&[0, 0, 1, 0, 0, 0, 0, tags.len() as u8][..], &tags.concat()].concat();
            let mut input = Reader::new(body.into()).keep_unknown_tags();
            ApiVersionsResponse::decode(&mut input, 3).unwrap();
            input.take_unknown_tags().iter().count()
        };

        assert_eq!(kept(&[&EPOCH_5, &unknown]), 1);
        assert_eq!(kept(&[&unknown, &EPOCH_5]), 0);
        assert_eq!(kept(&[&EPOCH_5, &EPOCH_6, &unknown]), 0);
        assert_eq!(kept(&[&EPOCH_5, &unknown, &unknown]), 0);
    }
}
