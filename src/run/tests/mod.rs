//! The laws of a run, held against invented worlds: models that say anything, tools that end in any
//! way, processes that die, people who change their minds.

mod attacks;
mod chaos;
mod consent;
mod controlled;
mod laws;
mod named;
mod page;
mod people;
mod script;
mod sim;
mod watch;
mod words;
mod world;
