//! A span: its subject, its beginning and end, and its attributes.

use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::trace_context::{RunTrace, SpanId, SpanKey, TraceId};

/// Maximum length of a name or an attribute that is no content, in characters.
const MAX_CHARS: usize = 256;
const MAX_NOTES: usize = 64;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// An integer.
    Int(i64),
    /// A number.
    Real(f64),
    /// Yes or no.
    Flag(bool),
    /// Texts.
    List(Vec<String>),
}

impl AttributeValue {
    /// A name or code.
    pub(super) fn word(text: &str) -> Self {
        AttributeValue::Text(word(text))
    }

    pub(super) fn count(number: u64) -> Self {
        AttributeValue::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// Its approximate size in bytes.
    fn size(&self) -> usize {
        match self {
            AttributeValue::Text(text) => text.len(),
            AttributeValue::List(texts) => texts.iter().map(String::len).sum(),
            AttributeValue::Int(_) | AttributeValue::Real(_) | AttributeValue::Flag(_) => 8,
        }
    }
}

/// A name and its value.
pub type SpanAttribute = (&'static str, AttributeValue);

/// The role of a span: whether its work happens in another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanRole {
    /// In this one.
    Internal,
    /// A request to another one.
    Client,
}

/// Something that happened during a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanNote {
    /// When.
    pub at: Timestamp,
    /// Its name.
    pub name: &'static str,
    /// More about it.
    pub attributes: Vec<SpanAttribute>,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedSpan {
    /// The trace.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// The span that it is part of.
    pub parent: Option<SpanId>,
    /// Whether that is a span of the client that sent the request.
    pub is_remote_parent: bool,
    /// Whether it is a request to another process.
    pub role: SpanRole,
    /// Its name.
    pub name: String,
    /// When it began.
    pub started: Timestamp,
    /// When it ended, not before `started`.
    pub ended: Timestamp,
    /// Its attributes.
    pub attributes: Vec<SpanAttribute>,
    /// The events during the span.
    pub notes: Vec<SpanNote>,
    /// Notes for which there was no room.
    pub dropped_notes: u32,
    /// The code of the error that it ended with.
    pub error: Option<String>,
}

impl FinishedSpan {
    /// Its approximate size in bytes.
    pub fn size(&self) -> usize {
        let of = |attributes: &[SpanAttribute]| -> usize {
            attributes.iter().map(|(name, value)| name.len() + value.size() + 16).sum()
        };
        let notes: usize = self.notes.iter().map(|note| note.name.len() + of(&note.attributes) + 32).sum();
        size_of::<Self>() + self.name.len() + of(&self.attributes) + notes
    }

    /// An attribute.
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

/// Receives finished spans.
pub trait SpanSink: Send + Sync {
    /// Receives one. It never blocks.
    fn export(&self, span: FinishedSpan);

    /// Passes on what it has received, within a bound, and takes no more.
    fn stop(&self) -> BoxFuture<'static, ()>;
}

#[derive(Debug, Clone)]
pub(super) struct OpenSpan(FinishedSpan);

impl OpenSpan {
    pub(super) fn new(
        trace: &RunTrace,
        key: SpanKey,
        parent: Option<SpanId>,
        name: String,
        started: Timestamp,
    ) -> Self {
        Self(FinishedSpan {
            trace: trace.id,
            id: trace.span(key),
            parent,
            is_remote_parent: false,
            role: SpanRole::Internal,
            name: word(&name),
            started,
            ended: started,
            attributes: Vec::new(),
            notes: Vec::new(),
            dropped_notes: 0,
            error: None,
        })
    }

    pub(super) fn id(&self) -> SpanId {
        self.0.id
    }

    pub(super) fn started(&self) -> Timestamp {
        self.0.started
    }

    pub(super) fn set_remote_parent(&mut self) {
        self.0.is_remote_parent = self.0.parent.is_some();
    }

    pub(super) fn rename(&mut self, name: String) {
        self.0.name = word(&name);
    }

    pub(super) fn set_role(&mut self, role: SpanRole) {
        self.0.role = role;
    }

    pub(super) fn set(&mut self, name: &'static str, value: AttributeValue) {
        self.0.attributes.push((name, value));
    }

    pub(super) fn set_word(&mut self, name: &'static str, text: &str) {
        if !text.is_empty() {
            self.set(name, AttributeValue::word(text));
        }
    }

    pub(super) fn note(&mut self, at: Timestamp, name: &'static str, attributes: Vec<SpanAttribute>) {
        if self.0.notes.len() < MAX_NOTES {
            self.0.notes.push(SpanNote { at, name, attributes });
        } else {
            self.0.dropped_notes = self.0.dropped_notes.saturating_add(1);
        }
    }

    /// Records that it ended with an error of this code.
    pub(super) fn fail(&mut self, code: &str) {
        let code = word(code);
        self.set("error.type", AttributeValue::Text(code.clone()));
        self.0.error = Some(code);
    }

    /// Ends it. If the clock was set back, its duration is zero.
    pub(super) fn end(mut self, at: Timestamp) -> FinishedSpan {
        self.0.ended = at.max(self.0.started);
        self.0
    }
}

/// A name or code, cut where it is too long for one.
pub(super) fn word(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}
