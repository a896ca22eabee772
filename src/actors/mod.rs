//! Actors: one file an actor, each behind a cheap-clone handle with async methods.
//!
//! **Invariant:** mailboxes are bounded, no address or message type leaves its file, and nothing
//! blocks an arbiter's thread.

pub mod journal;
