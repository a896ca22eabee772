//! Starts the export of traces, where a receiver is configured.

use std::sync::Arc;

use tokio::runtime::Handle as Runtime;

use super::builder::{StartError, start_fault};
use crate::config::{Config, OtlpTarget};
use crate::telemetry::ServerMetrics;
use crate::telemetry::traces::{ModelServers, RunTraces, SpanSink, TraceOptions};
use crate::trace_context::TraceSampler;

/// The traces of runs; `None` without a receiver.
///
/// # Errors
/// `config.otlp` for a receiver that cannot be used. Its headers are read from this process's environment.
pub(super) fn run_traces(
    config: &Config,
    runtime: &Runtime,
    server_metrics: &ServerMetrics,
) -> Result<Option<RunTraces>, StartError> {
    let settings = &config.telemetry.otlp;
    let get = |name: &str| std::env::var(name).ok();
    let target = settings.target(get).map_err(|why| start_fault("config.otlp", why))?;
    let Some(target) = target else { return Ok(None) };
    let options = TraceOptions {
        sampler: TraceSampler { ratio: settings.sample_ratio },
        content: settings.content,
        service: target.service.as_str().into(),
        models: ModelServers::new(&config.llm),
    };
    let sink = sink(target, config, runtime, server_metrics)?;
    Ok(Some(RunTraces { options, sink }))
}

#[cfg(feature = "traces")]
fn sink(
    target: OtlpTarget,
    config: &Config,
    runtime: &Runtime,
    server_metrics: &ServerMetrics,
) -> Result<Arc<dyn SpanSink>, StartError> {
    let timeout = std::time::Duration::from_millis(config.telemetry.otlp.timeout_ms);
    let exporter =
        crate::telemetry::traces::SpanExporter::start(target, timeout, server_metrics.clone(), runtime);
    let exporter = exporter.map_err(|error| {
        start_fault("config.otlp", format!("no HTTP client for traces: {}", error.without_url()))
    })?;
    Ok(Arc::new(exporter))
}

#[cfg(not(feature = "traces"))]
fn sink(_: OtlpTarget, _: &Config, _: &Runtime, _: &ServerMetrics) -> Result<Arc<dyn SpanSink>, StartError> {
    let what = "telemetry.otlp.endpoint is set, and this program was built without the feature `traces`";
    Err(start_fault("config.otlp", what))
}
