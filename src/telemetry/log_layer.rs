//! Writes log lines. A line has the fields of its event, and those with which the spans around it began; of two with the
//! same name, the inner one counts. Fields that a span records later describe its end, and are in no other line.

use std::fmt::Debug;
use std::io::Write;

use jiff::Timestamp;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::log_format::{LineFields, LineFormat, LogLine};

/// The target of records of the crate `log`, which name their own in a field.
const LOG_CRATE: &str = "log";

/// A layer of a `tracing` subscriber that writes each event as one line, in one call of its writer.
#[derive(Debug)]
pub struct LogLayer<W> {
    format: LineFormat,
    writer: W,
}

impl<W> LogLayer<W> {
    /// Writes lines of this format to `writer`.
    pub fn new(format: LineFormat, writer: W) -> Self {
        Self { format, writer }
    }
}

impl<S, W> Layer<S> for LogLayer<W>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = LineFields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = LineFields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let own_target = if metadata.target() == LOG_CRATE { fields.take_text("log.target") } else { None };
        if own_target.is_some() {
            fields.remove_all("log.");
        }
        // From the innermost span outwards.
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(outer) = span.extensions().get::<LineFields>() {
                fields.add_outer(outer);
            }
        }
        let target = own_target.as_deref().unwrap_or(metadata.target());
        let line = LogLine { at: Timestamp::now(), level: *metadata.level(), target, fields: &fields };
        // There is nowhere to report an error of the log.
        let _ = self.writer.make_writer_for(metadata).write_all(line.format(self.format).as_bytes());
    }
}

impl Visit for LineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.set(field.name(), Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), Value::String(value.to_owned()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), value.into());
    }
}
