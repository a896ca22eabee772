//! Summaries of texts of any length: chunks along their structure, facts of each chunk with the places that say so, groups
//! of facts rolled up level by level, and one text over the facts that remain. Every number, date and name of that text is
//! found in a place that it cites, or its sentence is removed.
//!
//! **Invariant:** pure; knows no model, run or document store. Each level has at most an eighth of the parts of the one
//! below it, and a part has a bounded size, so a summary ends and is bounded whatever the text and the replies.

mod blocks;
mod chunks;
mod compose;
mod decimal;
mod estimate;
mod evidence;
mod extract;
mod facts;
mod figures;
mod sentences;
mod source;
mod span;
mod stems;
#[cfg(test)]
mod tests;
mod tree;

pub use chunks::{Chunk, chunks, chunks_at};
pub use compose::{
    CitedText, MAX_SUMMARY, RemovedSentence, VerifiedText, quoted_bytes, quoted_text, verified_text,
    without_markup,
};
pub use estimate::{CHUNK_BYTES, MAX_CHUNKS, PART_BYTES, SummaryEstimate, chunk_bytes, estimate};
pub use extract::extracted_facts;
pub use facts::{QuotedFact, ReportedFact, distinct, fitting, located_facts, quotable, sentences_around};
pub use sentences::sentences;
pub use source::SummarisedText;
pub use span::ByteSpan;
pub use tree::{GROUP, SummaryPart, SummaryTree};
