//! Payloads of events about the summary of documents.

use serde::{Deserialize, Serialize};

use super::super::document::DocumentId;
use super::subject::Subject;
use crate::summary::{ByteSpan, QuotedFact, SummarisedText, SummaryEstimate};

/// The owner of a summary: a step of kind summary, or a call of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SummaryOwner {
    /// The step.
    pub step: u32,
    /// The call, if it is one.
    pub tool_call: Option<u32>,
}

impl SummaryOwner {
    /// A step of kind summary.
    pub fn step(step: u32) -> Self {
        Self { step, tool_call: None }
    }

    /// The summary that a question is about, and the part of it.
    pub fn of(subject: Subject) -> Option<(Self, u32)> {
        match subject {
            Subject::Summary { step, tool_call, part } => Some((Self { step, tool_call }, part)),
            _ => None,
        }
    }

    /// The question about a part of it.
    pub fn subject(self, part: u32) -> Subject {
        Subject::Summary { step: self.step, tool_call: self.tool_call, part }
    }
}

/// A document that a step summarises, at the content that it had when the step began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummarisedDocument {
    /// Its id.
    pub id: DocumentId,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// How documents are summarised: their chunks, and what that asks of models at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryOutline {
    /// The documents, read as one text, one after the other.
    pub documents: Vec<SummarisedDocument>,
    /// Where the chunks of that text end, in bytes. The first one begins at 0.
    pub ends: Vec<u64>,
    /// How many parts are rolled up into one: which numbers parts have follows from it.
    pub group: u32,
    /// The language of the text, as ISO 639-1, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What is asked of models, at most, without repairs.
    pub estimate: SummaryEstimate,
    /// The most that this costs with the first model, in nano-USD. Absent where it costs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd: Option<u64>,
}

impl SummaryOutline {
    /// The text of the documents, one after the other, in these chunks. `None` if it is not the text that the chunks are of.
    pub fn read(&self, text: String) -> Option<SummarisedText> {
        SummarisedText::new(text, &self.ends, self.language.clone())
    }

    /// The document that holds a place of the text of all documents, and the place in it. `None` for a place that no single one
    /// holds.
    pub fn place_of(&self, span: ByteSpan) -> Option<(&SummarisedDocument, ByteSpan)> {
        let mut first = 0;
        for document in &self.documents {
            let next = first + document.bytes;
            if span.start >= first && span.end <= next {
                return Some((document, ByteSpan { start: span.start - first, end: span.end - first }));
            }
            first = next;
        }
        None
    }

    /// Returns whether `other` divides the same documents into the same chunks.
    pub(in crate::run) fn is_same_text(&self, other: &Self) -> bool {
        (&self.documents, &self.ends) == (&other.documents, &other.ends)
    }
}

/// The outcome of one part of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PartOutcome {
    /// The facts of a chunk, or those of a group that were chosen.
    Facts {
        /// The facts, in their order in the text.
        facts: Vec<QuotedFact>,
        /// How many were reported that the text does not say, or for which there was no room.
        #[serde(default, skip_serializing_if = "crate::run::is_default")]
        dropped: u32,
    },
    /// The summary itself.
    Text {
        /// The text, with the numbers of its sources in brackets.
        text: String,
        /// Its sources, in the order of their numbers.
        sources: Vec<QuotedFact>,
        /// How many sentences were removed, because no source says what they say.
        #[serde(default, skip_serializing_if = "crate::run::is_default")]
        removed: u32,
    },
    /// Nobody was asked, or nobody answered: the part has no facts.
    Skipped {
        /// The code of the reason.
        code: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_single_documents() {
        let document = |n: u128, bytes| SummarisedDocument {
            id: DocumentId(uuid::Uuid::from_u128(n)),
            sha256: n.to_string(),
            bytes,
        };
        let outline = SummaryOutline {
            documents: vec![document(1, 10), document(2, 20)],
            ends: vec![30],
            group: 8,
            language: None,
            estimate: SummaryEstimate::default(),
            cost_nano_usd: None,
        };
        let (of, span) = outline.place_of(ByteSpan::new(12, 15)).unwrap();
        assert_eq!((of.sha256.as_str(), span), ("2", ByteSpan::new(2, 5)));
        // Across two documents, or behind both.
        for (start, end) in [(8, 12), (29, 31)] {
            assert!(outline.place_of(ByteSpan::new(start, end)).is_none());
        }
    }
}
