//! Frames between a socket and the channel: read into one buffer each, written several at once.
//!
//! A frame is a four-byte length and as many bytes. Small responses are read many at a time and copied out, so that a
//! record that the user keeps does not pin its neighbours; a large one gets a buffer of its own size, which the socket
//! fills and which the records then are slices of.

use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use zeroize::{Zeroize, Zeroizing};

use crate::limits::MAX_HANDSHAKE_SIZE;

/// How much one read takes in when no large frame is under way.
const READ_SIZE: usize = 64 * 1024;

/// A frame up to this size is copied out of the read buffer; a larger one is split off it.
const COPIED_SIZE: usize = 8 * 1024;

/// How many pieces one vectored write hands over. Linux takes up to 1,024; past a few dozen there is no gain.
const MAX_PIECES: usize = 64;

/// How much is gathered for a stream that writes one piece at a time: one TLS record.
const GATHERED_SIZE: usize = 16 * 1024;

/// Why bytes from the peer cannot be a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// The length is negative, or too small for a correlation id.
    BadLength(i32),
    /// The frame is larger than the limit.
    TooLarge { length: usize, limit: usize },
    /// A peer that has not yet shown that it is a broker announces more than any broker says then.
    Stranger { length: usize },
    /// An HTTP server answers.
    Http,
    /// A TLS server complains.
    Tls,
    /// Somebody sends text: what it begins with.
    Text([u8; 4]),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadLength(length) => write!(f, "the peer sent a frame of length {length}, which Kafka never does"),
            Self::TooLarge { length, limit } => write!(
                f,
                "the broker announced a response of {length} bytes, and max_response_size is {limit}: raise it, or ask \
                 for less at a time"
            ),
            Self::Stranger { length } => write!(
                f,
                "the peer announces an answer of {length} bytes in the handshake, which no broker does, so it is no \
                 Kafka listener: give the port of one (9092 in many installations)"
            ),
            Self::Http => f.write_str(
                "the port speaks HTTP, not Kafka: give the port of a Kafka listener (9092 in many installations)",
            ),
            Self::Tls => f.write_str(
                "the port speaks TLS, and this client does not: configure TLS (KafkaBuilder::tls), or give the port of \
                 a plaintext listener",
            ),
            Self::Text(start) => write!(
                f,
                "the port answers with text (it begins with '{}'), so it is no Kafka listener: give the port of one \
                 (9092 in many installations)",
                start.escape_ascii()
            ),
        }
    }
}

/// Takes frames out of a stream of bytes.
#[derive(Debug)]
pub(crate) struct FrameReader {
    limit: usize,
    /// Whether the peer has not yet shown that it is a broker.
    is_stranger: bool,
    /// What was read and not yet taken out.
    buffer: BytesMut,
    /// A large frame under way (without its length), and its length.
    large: Option<(BytesMut, usize)>,
}

impl FrameReader {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, is_stranger: false, buffer: BytesMut::new(), large: None }
    }

    /// A reader for the handshake, during which nobody knows who the peer is.
    pub(crate) fn of_stranger(limit: usize) -> Self {
        Self { is_stranger: true, ..Self::new(limit.min(MAX_HANDSHAKE_SIZE)) }
    }

    /// The peer is a broker: allows frames up to another size from now on.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.is_stranger = false;
    }

    /// Where the socket puts the next bytes. Never empty.
    pub(crate) fn space(&mut self) -> bytes::buf::Limit<&mut BytesMut> {
        match &mut self.large {
            Some((frame, length)) => {
                let missing = *length - frame.len();
                frame.limit(missing)
            }
            None => {
                self.buffer.reserve(READ_SIZE);
                (&mut self.buffer).limit(READ_SIZE)
            }
        }
    }

    /// The next whole frame, without its length.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        if let Some((frame, length)) = self.large.take() {
            if frame.len() == length {
                return Ok(Some(frame.freeze()));
            }
            self.large = Some((frame, length));
            return Ok(None);
        }
        let Some(prefix) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = self.check(*prefix)?;
        let available = self.buffer.len() - 4;
        if available >= length {
            self.buffer.advance(4);
            let frame = if length <= COPIED_SIZE {
                let copy = Bytes::copy_from_slice(&self.buffer[..length]);
                self.buffer.advance(length);
                copy
            } else {
                self.buffer.split_to(length).freeze()
            };
            return Ok(Some(frame));
        }
        if length > READ_SIZE / 2 {
            self.buffer.advance(4);
            let mut frame = BytesMut::with_capacity(length);
            frame.put_slice(&self.buffer);
            self.buffer.clear();
            self.large = Some((frame, length));
        }
        Ok(None)
    }

    fn check(&self, prefix: [u8; 4]) -> Result<usize, FrameError> {
        let length = i32::from_be_bytes(prefix);
        match &prefix {
            // With so high a limit it may be a length, and one of a broker that has shown itself is.
            _ if !self.is_stranger && (4..=self.limit as i64).contains(&i64::from(length)) => Ok(length as usize),
            b"HTTP" => Err(FrameError::Http),
            // A TLS alert record: type 21, version 3.x.
            [0x15, 0x03, ..=0x04, _] => Err(FrameError::Tls),
            _ if length < 4 => Err(FrameError::BadLength(length)),
            // As a length it would be half a gigabyte and more. An HTTP server that did not understand the request may
            // answer with the page alone; SSH, SMTP and others introduce themselves.
            _ if length as usize > self.limit && prefix.iter().all(is_text) => Err(FrameError::Text(prefix)),
            _ if self.is_stranger && length as usize > MAX_HANDSHAKE_SIZE => {
                Err(FrameError::Stranger { length: length as usize })
            }
            _ if length as usize > self.limit => {
                Err(FrameError::TooLarge { length: length as usize, limit: self.limit })
            }
            // A stranger's, and short.
            _ => Ok(length as usize),
        }
    }
}

fn is_text(byte: &u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

/// Frames that the socket has not yet taken, written as many at a time as it takes.
#[derive(Debug)]
pub(crate) struct FrameWriter<F> {
    frames: VecDeque<F>,
    /// What is gathered for a stream without vectored writes, of which the stream has taken so many bytes. Belongs
    /// before `frames`.
    gathered: Zeroizing<Vec<u8>>,
    taken: usize,
    /// Frames that are wholly in `gathered`.
    frames_gathered: usize,
}

impl<F: Buf> FrameWriter<F> {
    pub(crate) fn new() -> Self {
        Self { frames: VecDeque::new(), gathered: Zeroizing::default(), taken: 0, frames_gathered: 0 }
    }

    pub(crate) fn push(&mut self, frame: F) {
        self.frames.push_back(frame);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.taken == self.gathered.len()
    }

    /// The next pieces, for a vectored write; how many of `pieces` were filled.
    pub(crate) fn pieces<'a>(&'a self, pieces: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for frame in &self.frames {
            filled += frame.chunks_vectored(&mut pieces[filled..]);
            if filled == pieces.len() {
                break;
            }
        }
        filled
    }

    /// The next bytes, gathered from small pieces into one, for a stream that writes one piece at a time.
    pub(crate) fn gather(&mut self) -> &[u8] {
        if self.taken == self.gathered.len() {
            self.gathered.clear();
            self.taken = 0;
        }
        while self.gathered.len() < GATHERED_SIZE {
            let Some(frame) = self.frames.front_mut() else { break };
            let count = frame.remaining().min(GATHERED_SIZE - self.gathered.len());
            self.gathered.put(frame.take(count));
            if !frame.has_remaining() {
                self.frames.pop_front();
                self.frames_gathered += 1;
            }
        }
        &self.gathered[self.taken..]
    }

    /// Notes that the socket took `count` bytes of what [`FrameWriter::gather`] returned; how many frames that
    /// finished.
    pub(crate) fn advance_gathered(&mut self, count: usize) -> usize {
        self.taken += count;
        // The frames count as written together with the last byte of the piece that they were gathered into.
        if self.taken == self.gathered.len() { std::mem::take(&mut self.frames_gathered) } else { 0 }
    }

    /// Wipes what was gathered of a frame with a secret in it, once the stream has all of it.
    pub(crate) fn wipe(&mut self) {
        if self.taken == self.gathered.len() {
            self.gathered.zeroize();
            self.taken = 0;
        }
    }

    /// Notes that the socket took `count` bytes of what [`FrameWriter::pieces`] returned; how many frames that
    /// finished.
    pub(crate) fn advance(&mut self, mut count: usize) -> usize {
        let mut finished = 0;
        while let Some(frame) = self.frames.front_mut() {
            let taken = frame.remaining().min(count);
            frame.advance(taken);
            count -= taken;
            if frame.has_remaining() {
                break;
            }
            self.frames.pop_front();
            finished += 1;
        }
        finished
    }
}

/// Room for the pieces of one vectored write.
pub(crate) fn room<'a>() -> [IoSlice<'a>; MAX_PIECES] {
    [IoSlice::new(&[]); MAX_PIECES]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(body: &[u8]) -> Vec<u8> {
        [&(body.len() as i32).to_be_bytes(), body].concat()
    }

    fn body(length: usize, seed: u8) -> Vec<u8> {
        (0..length).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
    }

    /// Feeds the bytes in pieces of at most `step`, and returns the frames that came out.
    fn read(bytes: &[u8], step: usize) -> Result<Vec<Bytes>, FrameError> {
        let mut reader = FrameReader::new(1 << 20);
        let (mut frames, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let mut space = reader.space();
            let taken = step.min(rest.len()).min(space.remaining_mut());
            space.put_slice(&rest[..taken]);
            rest = &rest[taken..];
            while let Some(frame) = reader.next_frame()? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    /// CB-18: however the bytes are cut, the same frames come out.
    #[test]
    fn cuts_do_not_matter() {
        let bodies = [body(4, 1), body(100, 2), body(9_000, 3), body(70_000, 4), body(5, 5)];
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();

        for step in [1, 2, 3, 5, 7, 64, 1_000, 65_536, usize::MAX] {
            let frames = read(&bytes, step).expect("all frames are good");

            assert_eq!(frames.len(), bodies.len(), "step {step}");
            assert!(frames.iter().zip(&bodies).all(|(frame, body)| frame == body), "step {step}");
        }
    }

    #[test]
    fn a_large_frame_is_read_into_a_buffer_of_its_own_size() {
        let mut reader = FrameReader::new(1 << 20);

        reader.space().put_slice(&framed(&body(500_000, 1))[..10]);

        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!(reader.space().remaining_mut(), 500_000 - 6, "neither more nor less than the frame lacks");
    }

    /// Who keeps a small frame keeps no more than that: not the buffer that it was read into with others.
    #[test]
    fn a_small_frame_shares_its_memory_with_nobody() {
        let bytes = [framed(&body(100, 1)), framed(&body(COPIED_SIZE, 2)), framed(&body(3_000, 3))].concat();

        let frames = read(&bytes, usize::MAX).expect("all frames are good");

        assert_eq!(frames.len(), 3);
        assert!(frames.iter().all(Bytes::is_unique));
    }

    #[test]
    fn a_response_over_the_limit_is_refused_before_it_is_read() {
        let mut reader = FrameReader::new(1_000);

        reader.space().put_slice(&1_001_i32.to_be_bytes());

        let error = reader.next_frame().expect_err("too large");
        assert_eq!(error, FrameError::TooLarge { length: 1_001, limit: 1_000 });
        assert!(error.to_string().contains("1001 bytes, and max_response_size is 1000"), "{error}");
    }

    /// The first packet of MySQL: no setting of the client makes it an answer of Kafka.
    #[test]
    fn a_stranger_is_no_broker_that_says_too_much() {
        let mysql = [0x4a, 0, 0, 0, 10, b'8', b'.', b'0'];
        let mut reader = FrameReader::of_stranger(usize::MAX);
        reader.space().put_slice(&mysql);
        let error = reader.next_frame().expect_err("no broker");
        assert_eq!(error, FrameError::Stranger { length: 0x4a00_0000 });
        assert!(error.to_string().contains("no Kafka listener"), "{error}");

        let mut narrow = FrameReader::of_stranger(1_000);
        narrow.space().put_slice(&1_001_i32.to_be_bytes());
        assert_eq!(narrow.next_frame(), Err(FrameError::TooLarge { length: 1_001, limit: 1_000 }));
        let mut known = FrameReader::of_stranger(1_000);
        known.set_limit(2_000);
        known.space().put_slice(&mysql);
        assert_eq!(known.next_frame(), Err(FrameError::TooLarge { length: 0x4a00_0000, limit: 2_000 }));
    }

    #[test]
    fn other_protocols_are_recognised() {
        assert_eq!(read(b"HTTP/1.1 400 Bad Request\r\n", 100), Err(FrameError::Http));
        assert_eq!(read(&[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46], 100), Err(FrameError::Tls));
        assert_eq!(read(b"<!DOCTYPE HTML>", 100), Err(FrameError::Text(*b"<!DO")));
        assert_eq!(read(b"SSH-2.0-OpenSSH_9.2\r\n", 100), Err(FrameError::Text(*b"SSH-")));
        assert_eq!(read(&(-1_i32).to_be_bytes(), 100), Err(FrameError::BadLength(-1)));
        assert_eq!(read(&0_i32.to_be_bytes(), 100), Err(FrameError::BadLength(0)));
    }

    /// Writes everything in steps of `step` bytes; what was written, and after how many bytes each frame was finished.
    fn write(writer: &mut FrameWriter<Bytes>, step: usize, vectored: bool) -> (Vec<u8>, usize) {
        let (mut out, mut finished) = (Vec::new(), 0);
        while !writer.is_empty() {
            let chunk: Vec<u8> = if vectored {
                let mut pieces = room();
                let filled = writer.pieces(&mut pieces);
                pieces[..filled].iter().flat_map(|piece| piece.iter().copied()).take(step).collect()
            } else {
                writer.gather().iter().copied().take(step).collect()
            };
            finished += if vectored { writer.advance(chunk.len()) } else { writer.advance_gathered(chunk.len()) };
            out.extend(chunk);
        }
        (out, finished)
    }

    #[test]
    fn partial_writes_lose_nothing() {
        let frames = [body(10, 1), body(40_000, 2), body(3, 3)];
        let all = frames.concat();

        for (step, vectored) in [(1, true), (7, true), (usize::MAX, true), (1, false), (13, false), (usize::MAX, false)]
        {
            let mut writer = FrameWriter::new();
            frames.iter().for_each(|frame| writer.push(Bytes::from(frame.clone())));

            let (written, finished) = write(&mut writer, step, vectored);

            assert_eq!(written, all, "step {step}, vectored {vectored}");
            assert_eq!(finished, frames.len());
        }
    }

    #[test]
    fn several_frames_go_out_in_one_write() {
        let mut writer = FrameWriter::new();
        (0..5).for_each(|n| writer.push(Bytes::from(body(10, n))));

        let mut pieces = room();

        assert_eq!(writer.pieces(&mut pieces), 5);
        assert_eq!(writer.gather().len(), 50);
    }

    /// What a stranger's first bytes mean, they may be by chance in the length of a large answer.
    #[test]
    fn a_length_that_is_allowed_is_a_length() {
        let begun = |reader: &mut FrameReader, prefix: [u8; 4]| {
            reader.buffer.extend_from_slice(&prefix);
            reader.next_frame()
        };
        for prefix in [*b"HTTP", *b"SSH-", [0x15, 0x03, 0x03, 0x00]] {
            let length = usize::try_from(i32::from_be_bytes(prefix)).expect("it is a length, too");
            assert_eq!(begun(&mut FrameReader::new(length), prefix), Ok(None));
            assert!(begun(&mut FrameReader::new(length - 1), prefix).is_err());
            assert!(begun(&mut FrameReader::of_stranger(usize::MAX), prefix).is_err());
        }
    }
}
