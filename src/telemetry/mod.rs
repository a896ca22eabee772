//! Metrics, spans and log lines for operators.
//!
//! [`Subscriber`] derives all three from the events of the journal in one place, so that metrics and
//! journal cannot disagree. [`ServerMetrics`] records what happens outside runs. [`Exposition`] writes
//! the metrics, including those collected on each scrape, in the Prometheus text format.
//!
//! **Invariant:** no label has a value that a user, a model or a client can invent ([`LabelNames`]), and
//! no log line contains their text.

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

/// The prefix of every metric name.
const PREFIX: &str = "proscenium_";
