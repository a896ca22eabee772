//! What operations see: figures, spans and log lines.
//!
//! [`Subscriber`] turns the events of the journal into all three, in one place, so that figures and
//! journal cannot disagree; [`Outside`] is the one place for what happens outside runs. [`Exposition`]
//! writes the figures, and what is looked up when they are asked for, in Prometheus' text format.
//!
//! **Invariant:** no label has a value that a user, a model or a client can invent ([`Names`]), and no
//! log line has words of theirs.

mod awaited;
mod buckets;
mod exposition;
mod figures;
mod grid;
mod kpis;
mod lines;
mod names;
mod outside;
mod people;
mod plans;
mod run;
mod scrape;
mod subscriber;
#[cfg(test)]
mod tests;

pub use exposition::Exposition;
pub use figures::{Figures, Sheet};
pub use kpis::Kpis;
pub use names::Names;
pub use outside::{Outside, Part, Queued};
pub use scrape::{gateway, journal, people, sessions};
pub use subscriber::{Subscriber, Watch};

/// What every metric's name begins with.
const PREFIX: &str = "proscenium_";
