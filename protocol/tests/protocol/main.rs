//! The protocol against what is not ours: Kafka's own schemas, and bytes that Java wrote.

mod golden;
mod jar;
mod rendering;
mod schemas;
mod vectors;
