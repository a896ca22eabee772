//! Metrics, spans and log lines for operators.
//!
//! [`Subscriber`] derives all three from the events of the journal in one place, so that metrics and
//! journal cannot disagree. [`ServerMetrics`] records what happens outside runs. [`Exposition`] writes
//! the metrics, including those collected on each scrape, in the Prometheus text format.
//!
//! **Invariant:** no label has a value that a user, a model or a client can invent ([`LabelNames`]), and
//! no log line contains their text.

mod approval_metrics;
mod buckets;
mod exposition;
mod grid;
mod kpis;
mod log_lines;
mod metric_set;
mod names;
mod plan_metrics;
mod run_tracker;
mod scrape;
mod server_metrics;
mod subscriber;
#[cfg(test)]
mod tests;
mod wait_time;

pub use exposition::Exposition;
pub use kpis::Kpis;
pub use metric_set::{MetricSet, MetricSnapshot};
pub use names::LabelNames;
pub use scrape::{add_approvals, add_gateway, add_queues, add_sessions};
pub use server_metrics::{Component, QueueGuard, ServerMetrics};
pub use subscriber::{JournalTelemetry, Subscriber};

/// The prefix of every metric name.
const PREFIX: &str = "proscenium_";
