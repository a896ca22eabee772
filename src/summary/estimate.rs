//! The upper bound of a summary's questions to models, before anything is asked.

use serde::{Deserialize, Serialize};

use super::tree::{GROUP, SummaryPart, SummaryTree};
use super::{ByteSpan, compose};

/// Maximum size of a chunk, in bytes: 4,000 tokens by the rule of two tokens for seven bytes.
pub const CHUNK_BYTES: usize = 14_000;
/// Maximum size of the facts of a part, in bytes: 860 tokens by the same rule.
pub const PART_BYTES: usize = 3_000;
/// Maximum number of chunks of a summary.
pub const MAX_CHUNKS: u32 = 1_000;

/// The share of a model's window that a chunk may take.
const WINDOW_SHARE: usize = 3;

/// Bytes of what a question has beside its data: instructions, schema and names of sections.
const QUESTION_BYTES: usize = 2_500;
/// Bytes of what is read again for a fact, beside the fact itself, for each of its own bytes.
const AGAIN: usize = 2;

/// The questions of a summary to models, at most, without repairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryEstimate {
    /// Questions.
    pub questions: u32,
    /// Tokens of all questions.
    pub input_tokens: u64,
    /// Tokens of all replies.
    pub output_tokens: u64,
}

/// Maximum size of a chunk, in bytes, so that a question about it fits into a window of so many tokens; 0: there is no bound.
pub fn chunk_bytes(window_tokens: u32) -> usize {
    let tokens = usize::try_from(window_tokens).unwrap_or(usize::MAX) / WINDOW_SHARE;
    if tokens == 0 { CHUNK_BYTES } else { CHUNK_BYTES.min(tokens.saturating_mul(7) / 2) }
}

/// The estimate for the chunks at these places.
pub fn estimate(chunks: &[ByteSpan]) -> SummaryEstimate {
    let tree = SummaryTree::new(u32::try_from(chunks.len()).unwrap_or(u32::MAX), GROUP);
    let mut sum = SummaryEstimate { questions: tree.parts(), ..SummaryEstimate::default() };
    for number in 1..=tree.parts() {
        let (input, output) = match tree.part(number) {
            Some(SummaryPart::Chunk(at)) => {
                (chunks.get(at as usize).map_or(0, |chunk| chunk.len()), PART_BYTES * 2)
            }
            Some(SummaryPart::RollUp(of)) => (of.len() * PART_BYTES, PART_BYTES / 2),
            Some(SummaryPart::Whole(of)) => (of.len() * PART_BYTES * AGAIN, compose::MAX_SUMMARY),
            None => (0, 0),
        };
        sum.input_tokens += tokens(input + QUESTION_BYTES);
        sum.output_tokens += tokens(output);
    }
    sum
}

/// Tokens of so many bytes, by the rule that model calls are estimated with.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(2).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_takes_a_third_of_a_small_window() {
        assert_eq!(chunk_bytes(0), CHUNK_BYTES);
        assert_eq!(chunk_bytes(6_000), 7_000);
        assert_eq!(chunk_bytes(128_000), CHUNK_BYTES);
    }

    #[test]
    fn five_megabytes_are_some_hundred_questions() {
        let chunks: Vec<ByteSpan> =
            (0..375).map(|at| ByteSpan::new(at * 14_000, (at + 1) * 14_000)).collect();
        let estimate = estimate(&chunks);
        assert_eq!(estimate.questions, 375 + 47 + 6 + 1);
        assert!((1_500_000..2_500_000).contains(&estimate.input_tokens), "{estimate:?}");
    }
}
