//! The protocol against what is not ours: Kafka's own schemas, and bytes that Java wrote.

mod coordinator;
mod differential;
mod error_codes;
mod filler;
mod golden;
mod hostile;
mod jar;
mod kinds;
mod payloads;
mod recode;
mod records;
mod rendering;
mod round_trip;
mod schemas;
mod vectors;
mod versions;
