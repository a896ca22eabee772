//! Metrics, spans and log lines for operators.
//!
//! [`Subscriber`] derives all three from the events of the journal in one place, so that metrics and
//! journal cannot disagree. Its actor is in `actors/kpis.rs`; [`RecordSink`] is what the journal publishes
//! to. [`ServerMetrics`] records what happens outside runs. [`Exposition`] writes
//! the metrics, including those collected on each scrape, in the Prometheus text format. [`LogLayer`] writes log
//! lines, with the ids of the spans around them (`log_context.rs`).
//!
//! **Invariant:** no label has a value that a user, a model or a client can invent ([`LabelNames`]), and
//! no log line contains their text.

mod approval_metrics;
mod buckets;
mod exposition;
mod grid;
mod http_metrics;
mod labels;
mod log_context;
mod log_format;
mod log_layer;
mod log_lines;
mod model_usage;
mod names;
mod plan_metrics;
mod process;
mod run_metrics;
mod run_tracker;
mod scrape;
mod server_metrics;
mod subscriber;
mod tenant_metrics;
#[cfg(test)]
mod tests;
pub mod traces;
mod wait_time;

pub use exposition::Exposition;
pub use http_metrics::{HttpExchange, HttpMetrics};
pub(crate) use log_context::{run_context, session_context};
pub use log_format::LineFormat;
pub use log_layer::LogLayer;
pub use names::LabelNames;
pub use process::add_process;
pub use run_metrics::RunMetrics;
pub use scrape::{
    add_approvals, add_build, add_data_dir, add_facts, add_gateway, add_learned, add_log, add_queues,
    add_sessions, add_spans, add_tools,
};
pub use server_metrics::{Component, QueueGuard, ServerMetrics, SpanFate};
pub use subscriber::{JournalTelemetry, RecordSink, Subscriber};
pub use tenant_metrics::TenantBound;

/// The prefix of every metric name.
const PREFIX: &str = "proscenium_";

/// The label value for names that are on no list.
const OTHER: &str = "other";
