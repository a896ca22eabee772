//! The tree of a summary: which part is made of which. Its shape follows from the number of chunks alone, so the number
//! of questions is known before the first one.

use std::ops::Range;

/// How many parts are rolled up into one, in a summary that begins now.
pub const GROUP: u32 = 8;

/// A part of a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryPart {
    /// The facts of a chunk: its index.
    Chunk(u32),
    /// The most important facts of these parts.
    RollUp(Range<u32>),
    /// The summary, made of the facts of these parts.
    Whole(Range<u32>),
}

/// The parts of a summary, numbered from 1: the chunks in order, then level by level what is made of them, and last the
/// whole. Each part but the last is used by exactly one later part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryTree {
    /// The first part of each level, and the number after the last part.
    starts: Vec<u32>,
    /// How many parts are rolled up into one.
    group: u32,
}

impl SummaryTree {
    /// The tree over so many chunks, with groups of `group` parts, 2 at least: a level has at most a `group`th of the parts
    /// of the one before it, rounded up.
    pub fn new(chunks: u32, group: u32) -> Self {
        let group = group.max(2);
        let mut starts = vec![1];
        let mut width = chunks.max(1);
        let mut next = width.saturating_add(1);
        starts.push(next);
        while width > group {
            width = width.div_ceil(group);
            next = next.saturating_add(width);
            starts.push(next);
        }
        starts.push(next.saturating_add(1));
        Self { starts, group }
    }

    /// The number of parts, and so of questions.
    pub fn parts(&self) -> u32 {
        self.starts.last().map_or(0, |end| end - 1)
    }

    /// The number of chunks.
    pub fn chunks(&self) -> u32 {
        self.starts.get(1).map_or(0, |end| end - 1)
    }

    /// Returns the part of this number; `None` for a number that no part has.
    pub fn part(&self, number: u32) -> Option<SummaryPart> {
        let level = self.starts.windows(2).position(|level| (level[0]..level[1]).contains(&number))?;
        let start = *self.starts.get(level)?;
        let Some(below) = level.checked_sub(1) else { return Some(SummaryPart::Chunk(number - 1)) };
        let (first, end) = (*self.starts.get(below)?, start);
        if number == self.parts() {
            return Some(SummaryPart::Whole(first..end));
        }
        let from = first + (number - start) * self.group;
        Some(SummaryPart::RollUp(from..end.min(from + self.group)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_few_chunks_make_the_whole_at_once() {
        let tree = SummaryTree::new(3, GROUP);
        assert_eq!(
            (tree.parts(), tree.part(3), tree.part(4)),
            (4, Some(SummaryPart::Chunk(2)), Some(SummaryPart::Whole(1..4)))
        );
        assert_eq!(tree.part(5), None);
        assert_eq!(SummaryTree::new(20, GROUP).part(23), Some(SummaryPart::RollUp(17..21)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn every_part_is_used_once_and_levels_shrink(chunks in 1_u32..2_000) {
            let tree = SummaryTree::new(chunks, GROUP);
            let parts = tree.parts();
            let mut used = vec![0; parts as usize + 1];
            for number in 1..=parts {
                match tree.part(number).unwrap() {
                    SummaryPart::Chunk(index) => prop_assert_eq!(index + 1, number),
                    SummaryPart::RollUp(of) | SummaryPart::Whole(of) => {
                        prop_assert!(of.end <= number && (1..=GROUP).contains(&(of.end - of.start)));
                        of.for_each(|part| used[part as usize] += 1);
                    }
                }
            }
            prop_assert!(used[1..parts as usize].iter().all(|times| *times == 1));
            // n/8 + n/64 + … with one more a level for rounding.
            prop_assert!(parts <= chunks + chunks / 7 + 6, "{parts} parts of {chunks} chunks");
            prop_assert!(tree.part(parts + 1).is_none() && tree.part(0).is_none());
        }
    }
}
