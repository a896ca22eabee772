//! The laws of a conversation, held against invented worlds, and named cases.

mod drivers;
mod journal;
mod laws;
mod named;
mod people;
mod sim;
mod watch;
mod world;
