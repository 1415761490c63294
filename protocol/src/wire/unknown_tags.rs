//! [`UnknownTags`]: what a message carried and has no place for, for whoever passes it on.
//!
//! A newer peer may add tagged fields to any structure of a flexible version (KIP-482). A client skips them. A proxy,
//! or a tool that must lose nothing, lets the reader keep them beside the message, and has the writer put them back.
//!
//! Their places are counted: each structure that is read begins its tagged fields at some moment, and a writer comes to
//! the same structures in the same order. So they only fit the message that they came with, unchanged, in its version.

use bytes::Bytes;

/// The tagged fields of a message that its version does not know, and those known ones that were sent although they are
/// at their defaults: with them a message is written again byte by byte as it was read. A header counts as a structure
/// of its own: take its tags before those of the body, or write both with one writer.
///
/// ```
/// use krafka_protocol::{Bytes, HeartbeatResponse, Message, Reader, Writer};
///
/// // No throttle, no error, and one tagged field that nobody knows: number 7, the two bytes "hi".
/// let bytes = Bytes::from_static(b"\0\0\0\0\0\0\x01\x07\x02hi");
/// let mut input = Reader::new(bytes.clone()).keep_unknown_tags();
/// let response = HeartbeatResponse::decode(&mut input, 4)?;
/// let unknown = input.take_unknown_tags();
/// assert_eq!(unknown.iter().collect::<Vec<_>>(), [(0, 7, &Bytes::from_static(b"hi"))]);
///
/// let mut out = Writer::new().with_unknown_tags(unknown);
/// response.encode(&mut out, 4)?;
/// assert_eq!(out.into_bytes(), bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownTags {
    /// Sorted by structure and number once the message has been read.
    tags: Vec<KeptTag>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KeptTag {
    structure: u32,
    number: u32,
    /// The content; `None` for a field that the message knows.
    value: Option<Bytes>,
}

impl UnknownTags {
    /// Whether there are none: the message alone says everything.
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// The unknown fields: the number of the structure, the tag and the content. Structures are numbered from 0 in the
    /// order in which their tagged fields begin.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, &Bytes)> {
        self.tags.iter().filter_map(|tag| Some((tag.structure, tag.number, tag.value.as_ref()?)))
    }

    /// Whether a structure was sent with this known field although it is at its default.
    pub fn has_default(&self, structure: u32, number: u32) -> bool {
        self.of(structure).iter().any(|tag| tag.number == number && tag.value.is_none())
    }

    fn of(&self, structure: u32) -> &[KeptTag] {
        let start = self.tags.partition_point(|tag| tag.structure < structure);
        let end = self.tags.partition_point(|tag| tag.structure <= structure);
        &self.tags[start..end]
    }
}

/// What a reader has kept so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Keeper {
    structures: u32,
    tags: Vec<KeptTag>,
    /// Some structure's tags did not ascend, as Kafka's protocol has them.
    is_disordered: bool,
}

impl Keeper {
    /// What one tag that is kept takes in memory.
    pub(super) const COST: usize = size_of::<KeptTag>();

    /// Begins the tagged fields of the next structure.
    pub(super) fn open(&mut self) -> u32 {
        self.structures += 1;
        self.structures - 1
    }

    /// Notes a tag: with its content if it is unknown, without if it is known and at its default.
    pub(super) fn keep(&mut self, structure: u32, number: u32, value: Option<Bytes>) {
        self.tags.push(KeptTag { structure, number, value });
    }

    /// Notes that the tags of a structure do not ascend. Then structures inside them are not met in the order in which
    /// a writer comes to them, and nothing can be put back.
    pub(super) fn disorder(&mut self) {
        self.is_disordered = true;
    }

    /// What was kept of the message that has been read.
    pub(super) fn finish(&mut self) -> UnknownTags {
        let Self { mut tags, is_disordered, .. } = std::mem::take(self);
        if is_disordered {
            tags.clear();
        }
        tags.sort_by_key(|tag| (tag.structure, tag.number));
        UnknownTags { tags }
    }
}

/// What a writer has to put back.
#[derive(Debug)]
pub(super) struct Restorer {
    structures: u32,
    unknown: UnknownTags,
}

impl Restorer {
    pub(super) fn new(unknown: UnknownTags) -> Self {
        Self { structures: 0, unknown }
    }

    /// Whether the next structure was sent with this known field at its default.
    pub(super) fn has_default(&self, number: u32) -> bool {
        self.unknown.has_default(self.structures, number)
    }

    /// Begins the tagged fields of the next structure: its number, and how many of its fields are unknown.
    pub(super) fn open(&mut self) -> (u32, u32) {
        let structure = self.structures;
        self.structures += 1;
        (structure, self.unknown.of(structure).iter().filter(|tag| tag.value.is_some()).count() as u32)
    }

    /// The unknown fields of a structure whose numbers are in this range.
    pub(super) fn between(&self, structure: u32, numbers: std::ops::Range<u64>) -> Vec<(u32, Bytes)> {
        let tags = self.unknown.of(structure).iter().filter(|tag| numbers.contains(&tag.number.into()));
        tags.filter_map(|tag| Some((tag.number, tag.value.clone()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Bytes, DecodeError, Message, Reader, UnknownTags, Writer};

    /// Knows the tags 0 and 2 in version 0, and 1 besides in version 1.
    #[derive(Clone, Debug, PartialEq, Message)]
    #[message(versions = 0..=1, flexible = 0..)]
    struct House {
        rooms: Vec<Room>,
        #[field(tag = 0)]
        number: i8,
        #[field(versions = 1.., tag = 1)]
        floors: i8,
        #[field(tag = 2)]
        attic: Room,
    }

    #[derive(Clone, Debug, PartialEq, Message)]
    #[message(versions = 0..=1, flexible = 0..)]
    struct Room {
        doors: i8,
    }

    fn read(body: &[u8], budget: usize) -> Result<(House, UnknownTags), DecodeError> {
        let mut input = Reader::with_budget(Bytes::copy_from_slice(body), budget).keep_unknown_tags();
        let house = House::decode(&mut input, 0)?;
        assert!(input.is_empty());
        Ok((house, input.take_unknown_tags()))
    }

    fn write(house: &House, unknown: UnknownTags) -> Bytes {
        let mut out = Writer::new().with_unknown_tags(unknown);
        house.encode(&mut out, 0).unwrap();
        out.into_bytes()
    }

    #[test]
    fn unknown_tags_stand_between_known_ones_and_inside_them() {
        let rooms = [3, /* one */ 4, 0, /* another */ 5, 1, /* tag */ 7, 1, b'x'];
        let tags =
            [4, /* number */ 0, 1, 9, /* unknown */ 1, 1, b'y', /* attic */ 2, 6, 1, 1, 200, 1, 1, b'z'];
        let body = [&rooms[..], &tags, &[3, 0]].concat();

        let (house, unknown) = read(&body, 10_000).unwrap();

        assert_eq!((house.rooms[1].doors, house.number, house.floors, house.attic.doors), (5, 9, 0, 1));
        let kept: Vec<_> = unknown.iter().map(|(structure, number, value)| (structure, number, &value[..])).collect();
        assert_eq!(kept, [(1, 7, &b"x"[..]), (2, 1, b"y"), (2, 3, b""), (3, 200, b"z")]);
        assert_eq!(write(&house, unknown), body);
        assert_eq!(write(&house, UnknownTags::default()), [3, 4, 0, 5, 0, 2, 0, 1, 9, 2, 2, 1, 0][..]);
    }

    #[test]
    fn a_known_tag_at_its_default_is_sent_again() {
        let body = [1, 2, 0, 1, 0, 2, 5, 0, 1, 6, 1, b'x'];

        let (house, unknown) = read(&body, 10_000).unwrap();

        assert_eq!(house, House::default());
        assert!(unknown.has_default(0, 0) && unknown.has_default(0, 2) && !unknown.has_default(1, 0));
        assert_eq!(write(&house, unknown), body[..]);
    }

    /// The writer would come to the structures inside them in another order.
    #[test]
    fn tags_that_do_not_ascend_are_not_kept() {
        for tags in [&[2, 7, 0, 0, 1, 9][..], &[2, 0, 1, 8, 0, 1, 9], &[3, 7, 0, 7, 0, 0, 1, 9]] {
            let (house, unknown) = read(&[&[1], tags].concat(), 10_000).unwrap();

            assert_eq!((house.number, unknown), (9, UnknownTags::default()));
        }
    }

    #[test]
    fn what_is_kept_is_charged_to_the_budget() {
        let tags: Vec<u8> = (3..103).flat_map(|number| [number, 0]).collect();
        let body = [&[1, 100][..], &tags].concat();

        let refused = read(&body, 1_000).unwrap_err().to_string();

        assert_eq!(read(&body, 10_000).unwrap().1.iter().count(), 100);
        assert!(refused.contains("budget"), "{refused}");
        assert!(House::decode(&mut Reader::with_budget(body.into(), 0), 0).is_ok(), "skipping costs nothing");
    }
}
