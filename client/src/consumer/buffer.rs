//! [`Buffer`]: what has been fetched and not yet handed out, by partition, in bounded bytes.
//!
//! A partition with chunks waits in `ready` until its turn; the one at the front is drained chunk by chunk, then goes
//! to the back, so a partition with much data does not starve the others. A paused partition keeps its chunks and has
//! no turn.

use std::collections::VecDeque;

use super::chunk::Chunk;

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// By slot.
    queues: Vec<Queue>,
    /// Slots that have something to hand out, each once.
    ready: VecDeque<usize>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Queue {
    chunks: VecDeque<Box<Chunk>>,
    bytes: usize,
    is_ready: bool,
    is_paused: bool,
}

impl Buffer {
    /// Bytes of all partitions.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of one partition.
    pub(crate) fn bytes_of(&self, slot: usize) -> usize {
        self.queues.get(slot).map_or(0, |queue| queue.bytes)
    }

    pub(crate) fn push(&mut self, slot: usize, chunk: Box<Chunk>) {
        let queue = self.queue(slot);
        queue.bytes += chunk.bytes;
        let bytes = chunk.bytes;
        queue.chunks.push_back(chunk);
        self.bytes += bytes;
        self.line_up(slot);
    }

    /// Takes the chunk whose turn it is, out of the buffer; its bytes still count.
    pub(crate) fn take(&mut self) -> Option<(usize, Box<Chunk>)> {
        let slot = *self.ready.front()?;
        let queue = &mut self.queues[slot];
        let chunk = queue.chunks.pop_front().expect("a partition in line has a chunk");
        if queue.chunks.is_empty() {
            queue.is_ready = false;
            self.ready.pop_front();
        }
        Some((slot, chunk))
    }

    /// Gives a chunk back that has more to hand out: it keeps its turn.
    pub(crate) fn give_back(&mut self, slot: usize, chunk: Box<Chunk>) {
        let queue = self.queue(slot);
        queue.chunks.push_front(chunk);
        if !queue.is_ready && !queue.is_paused {
            queue.is_ready = true;
            self.ready.push_front(slot);
        }
    }

    /// A chunk that was taken is used up: the next partition's turn.
    pub(crate) fn used_up(&mut self, slot: usize, bytes: usize) {
        let queue = self.queue(slot);
        queue.bytes -= bytes;
        self.bytes -= bytes;
        if self.ready.front() == Some(&slot) {
            self.ready.rotate_left(1);
        }
    }

    /// Drops what a partition has. Chunks that are taken at the moment must be told by `used_up`.
    pub(crate) fn clear(&mut self, slot: usize) {
        let queue = self.queue(slot);
        let dropped: usize = queue.chunks.drain(..).map(|chunk| chunk.bytes).sum();
        queue.bytes -= dropped;
        self.bytes -= dropped;
        self.leave_line(slot);
    }

    pub(crate) fn pause(&mut self, slot: usize) {
        self.queue(slot).is_paused = true;
        self.leave_line(slot);
    }

    pub(crate) fn resume(&mut self, slot: usize) {
        self.queue(slot).is_paused = false;
        self.line_up(slot);
    }

    fn queue(&mut self, slot: usize) -> &mut Queue {
        if slot >= self.queues.len() {
            self.queues.resize_with(slot + 1, Queue::default);
        }
        &mut self.queues[slot]
    }

    fn line_up(&mut self, slot: usize) {
        let queue = &mut self.queues[slot];
        if !queue.is_ready && !queue.is_paused && !queue.chunks.is_empty() {
            queue.is_ready = true;
            self.ready.push_back(slot);
        }
    }

    fn leave_line(&mut self, slot: usize) {
        if std::mem::take(&mut self.queues[slot].is_ready) {
            self.ready.retain(|&other| other != slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::fetcher::Fetched;
    use super::super::subscription::{Claim, Position};
    use super::*;

    fn chunk(slot: usize, bytes: usize) -> Box<Chunk> {
        let name = crate::TopicPartition::new("t", slot as i32);
        Box::new(Chunk::new(
            name,
            Fetched {
                claim: Claim { slot, generation: 1 },
                from: Position::new(0, -1),
                next: Position::new(1, -1),
                records: Bytes::from(vec![0; bytes]),
                high_watermark: 1,
            },
        ))
    }

    /// Slots in the order in which their chunks are handed out, each used up at once.
    fn drained(buffer: &mut Buffer) -> Vec<usize> {
        let mut order = Vec::new();
        while let Some((slot, chunk)) = buffer.take() {
            buffer.used_up(slot, chunk.bytes);
            order.push(slot);
        }
        order
    }

    #[test]
    fn partitions_take_turns() {
        let mut buffer = Buffer::default();
        for slot in [0, 0, 0, 1, 2] {
            buffer.push(slot, chunk(slot, 10));
        }

        assert_eq!(drained(&mut buffer), [0, 1, 2, 0, 0]);
        assert_eq!(buffer.bytes(), 0);
    }

    #[test]
    fn a_chunk_that_is_given_back_keeps_its_turn_and_its_bytes() {
        let mut buffer = Buffer::default();
        buffer.push(0, chunk(0, 10));
        buffer.push(1, chunk(1, 10));

        let (slot, taken) = buffer.take().expect("ready");
        buffer.give_back(slot, taken);

        assert_eq!(buffer.bytes_of(0), 10);
        assert_eq!(drained(&mut buffer), [0, 1]);
    }

    #[test]
    fn a_paused_partition_keeps_its_chunks_and_has_no_turn() {
        let mut buffer = Buffer::default();
        buffer.push(0, chunk(0, 10));
        buffer.push(1, chunk(1, 10));

        buffer.pause(0);
        let during = drained(&mut buffer);
        buffer.push(0, chunk(0, 5));
        buffer.resume(0);

        assert_eq!(during, [1]);
        assert_eq!(buffer.bytes_of(0), 15);
        assert_eq!(drained(&mut buffer), [0, 0]);
    }

    #[test]
    fn clearing_frees_the_bytes_of_one_partition_only() {
        let mut buffer = Buffer::default();
        buffer.push(0, chunk(0, 10));
        buffer.push(1, chunk(1, 20));

        buffer.clear(0);

        assert_eq!((buffer.bytes(), buffer.bytes_of(0)), (20, 0));
        assert_eq!(drained(&mut buffer), [1]);
    }
}
