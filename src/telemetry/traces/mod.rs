//! Traces: the spans of a run, made of its events, and their export over OTLP.
//!
//! [`TraceFold`] makes spans from events alone, so a run that another process resumes continues its trace, and a stored
//! journal yields the spans that its run had. The subscriber of the metrics computes it beside the metrics, on the
//! thread of their actor, and hands finished spans to a [`SpanSink`]. Names and attributes follow OpenTelemetry's
//! conventions for generative AI; others begin with `proscenium.`.
//!
//! **Invariant:** nothing waits for a span. No span has a text of a user, a model or a tool, unless content is switched
//! on.

mod content;
#[cfg(feature = "traces")]
mod exporter;
mod fold;
mod model_calls;
mod options;
#[cfg(feature = "traces")]
mod otlp;
mod span;
#[cfg(test)]
mod tests;

#[cfg(feature = "traces")]
pub use exporter::SpanExporter;
pub use fold::TraceFold;
pub use options::{ModelServer, ModelServers, RunTraces, TraceOptions};
pub use span::{AttributeValue, FinishedSpan, SpanNote, SpanRole, SpanSink};
