//! Spans as messages of OTLP.

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, SpanFlags, Status};
use prost::Message;

use super::span::{AttributeValue, FinishedSpan, SpanAttribute, SpanNote, SpanRole};
use crate::config::OtlpTarget;

/// The name of the instrumentation that makes the spans.
const SCOPE: &str = "proscenium";

/// The attributes of this process.
pub(super) fn resource(target: &OtlpTarget) -> Resource {
    let attributes = [
        ("service.name", target.service.clone()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", uuid::Uuid::now_v7().to_string()),
        ("telemetry.sdk.name", SCOPE.to_owned()),
        ("telemetry.sdk.language", "rust".to_owned()),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let attributes = attributes.into_iter().map(|(name, value)| key_value(name, AttributeValue::Text(value)));
    Resource { attributes: attributes.collect(), ..Resource::default() }
}

pub(super) fn body(spans: Vec<FinishedSpan>, resource: &Resource) -> Vec<u8> {
    let scope = InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.into_iter().map(span).collect(),
        ..ScopeSpans::default()
    };
    let spans = ResourceSpans {
        resource: Some(resource.clone()),
        scope_spans: vec![spans],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![spans] }.encode_to_vec()
}

/// The number of spans that a receiver rejected although it accepted the export, and why.
pub(super) fn rejected(body: &[u8]) -> Option<(u64, String)> {
    let partial = ExportTraceServiceResponse::decode(body).ok()?.partial_success?;
    let rejected = u64::try_from(partial.rejected_spans).unwrap_or_default();
    (rejected > 0 || !partial.error_message.is_empty()).then_some((rejected, partial.error_message))
}

fn span(span: FinishedSpan) -> Span {
    let kind = match span.role {
        SpanRole::Internal => SpanKind::Internal,
        SpanRole::Client => SpanKind::Client,
    };
    // Sampled; spans of runs have their parents in this process, but for a client's.
    let flags = 1 | SpanFlags::ContextHasIsRemoteMask as u32;
    let status =
        span.error.as_ref().map(|code| Status { message: code.clone(), code: StatusCode::Error.into() });
    Span {
        trace_id: span.trace.bytes().to_vec(),
        span_id: span.id.bytes().to_vec(),
        parent_span_id: span.parent.map(|id| id.bytes().to_vec()).unwrap_or_default(),
        flags: if span.is_remote_parent { flags | SpanFlags::ContextIsRemoteMask as u32 } else { flags },
        name: span.name,
        kind: kind.into(),
        start_time_unix_nano: nanoseconds(span.started),
        end_time_unix_nano: nanoseconds(span.ended),
        attributes: key_values(span.attributes),
        events: span.notes.into_iter().map(note).collect(),
        dropped_events_count: span.dropped_notes,
        status,
        ..Span::default()
    }
}

fn note(note: SpanNote) -> Event {
    Event {
        time_unix_nano: nanoseconds(note.at),
        name: note.name.to_owned(),
        attributes: key_values(note.attributes),
        dropped_attributes_count: 0,
    }
}

fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or_default()
}

fn key_values(attributes: Vec<SpanAttribute>) -> Vec<KeyValue> {
    attributes.into_iter().map(|(name, value)| key_value(name, value)).collect()
}

fn key_value(name: &str, value: AttributeValue) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(any_value(value)), ..KeyValue::default() }
}

fn any_value(value: AttributeValue) -> AnyValue {
    let text = |text: String| AnyValue { value: Some(Value::StringValue(text)) };
    let value = match value {
        AttributeValue::Text(value) => return text(value),
        AttributeValue::Int(value) => Value::IntValue(value),
        AttributeValue::Real(value) => Value::DoubleValue(value),
        AttributeValue::Flag(value) => Value::BoolValue(value),
        AttributeValue::List(values) => {
            Value::ArrayValue(ArrayValue { values: values.into_iter().map(text).collect() })
        }
    };
    AnyValue { value: Some(value) }
}
