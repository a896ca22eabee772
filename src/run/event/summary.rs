//! What events say about the summary of documents.

use serde::{Deserialize, Serialize};

use super::super::document::DocumentId;
use crate::summary::{QuotedFact, SummaryEstimate};

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

/// What came of one part of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PartOutcome {
    /// The facts of a chunk, or those of a group that were chosen.
    Facts {
        /// The facts, in their order in the text.
        facts: Vec<QuotedFact>,
        /// How many were reported that the text does not say, or for which there was no room.
        #[serde(default, skip_serializing_if = "is_none")]
        dropped: u32,
    },
    /// The summary itself.
    Text {
        /// The text, with the numbers of its sources in brackets.
        text: String,
        /// Its sources, in the order of their numbers.
        sources: Vec<QuotedFact>,
        /// How many sentences were removed, because no source says what they say.
        #[serde(default, skip_serializing_if = "is_none")]
        removed: u32,
    },
    /// Nobody was asked, or nobody answered: the part has no facts.
    Skipped {
        /// The code of the reason.
        code: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}
