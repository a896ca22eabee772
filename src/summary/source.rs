//! A text in the chunks that its summary was planned with, as it is read again.

use super::chunks::{Chunk, chunks_at};
use super::compose::CitedText;
use super::facts::{QuotedFact, sentences_around};
use super::span::ByteSpan;

/// Maximum size of the sentences that are shown again for a fact, in bytes.
const MAX_SHOWN: usize = 900;

/// A text in its chunks.
#[derive(Debug, Clone)]
pub struct SummarisedText {
    text: String,
    chunks: Vec<Chunk>,
    language: Option<String>,
}

impl SummarisedText {
    /// The text in the chunks with these ends, in its language (ISO 639-1, where known). `None` if they do not cover this
    /// text.
    pub fn new(text: String, ends: &[u64], language: Option<String>) -> Option<Self> {
        let chunks = chunks_at(&text, ends)?;
        Some(Self { text, chunks, language })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its language, as ISO 639-1, where it is known.
    pub fn language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    /// The chunk with this index, from 0.
    pub fn chunk(&self, index: u32) -> Option<&Chunk> {
        self.chunks.get(index as usize)
    }

    /// The index of the chunk that a place is in.
    pub fn index_at(&self, span: ByteSpan) -> Option<usize> {
        let after = self.chunks.partition_point(|chunk| chunk.span.start <= span.start);
        after.checked_sub(1)
    }

    /// The chunk that a place is in.
    pub fn chunk_at(&self, span: ByteSpan) -> Option<&Chunk> {
        self.index_at(span).and_then(|at| self.chunks.get(at))
    }

    /// Returns what the text says around the place of a fact, within its chunk.
    pub fn cited(&self, fact: &QuotedFact) -> CitedText {
        let chunk = self.chunk_at(fact.span);
        let within = |span: ByteSpan| match chunk {
            Some(chunk) => {
                ByteSpan { start: span.start.max(chunk.span.start), end: span.end.min(chunk.span.end) }
            }
            None => span,
        };
        let around = within(sentences_around(&self.text, fact.span));
        let shown = if around.len() <= MAX_SHOWN { around } else { fact.span };
        let columns = chunk.and_then(|chunk| chunk.columns?.of(&self.text)).unwrap_or_default();
        let headings = chunk.map(|chunk| chunk.heading_path(&self.text)).unwrap_or_default();
        let text = shown.of(&self.text).unwrap_or_default().to_owned();
        CitedText { text, around: format!("{headings}\n\n{columns}").into() }
    }
}
