//! Stories that drive the whole client, and the worlds that they run in.
//!
//! A [`Story`] is one function that says what it proves. It is written once and runs in up to three worlds:
//!
//! | world | network | time | faults | cluster |
//! | --- | --- | --- | --- | --- |
//! | [scripted](worlds::scripted) | in-memory pipes | paused clock | those that the story asks for | the fake |
//! | [simulated](worlds::simulated) | turmoil, a host per broker | simulated | also some that a seed draws | the fake |
//! | [real](worlds::real) | TCP | real | those that a client can cause | Kafka, or the fake over TCP |
//!
//! All of them end with the same [invariants].
//!
//! ```
//! # use scenarios::{Story, runner};
//! let all = scenarios::stories::all();
//! let story = all.iter().find(|story| story.name == "one_record_through_every_room").unwrap();
//! let outcome = runner::run(story, scenarios::Kind::Scripted, 1);
//! assert!(outcome.verdict.is_ok());
//! ```

pub mod calls;
pub mod failure;
pub mod invariants;
pub mod links;
pub mod nemesis;
pub mod runner;
pub mod stories;
pub mod workload;
pub mod world;
pub mod worlds;

pub use failure::{Failure, Result};
pub use stories::{Story, Worlds};
pub use world::{Kind, Topic, World};
