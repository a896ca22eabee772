//! Whole lines of an event stream. The client crate's parser reads a line again from its beginning with every chunk
//! that arrives: a line of megabytes, although bounded, would occupy a processor for minutes.

/// Joins the pieces of a stream to whole lines.
#[derive(Debug, Default)]
pub(super) struct WholeLines {
    begun: Vec<u8>,
}

impl WholeLines {
    /// Adds a piece; returns the lines that it completes, with their ends.
    pub(super) fn add(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        let end = piece.iter().rposition(|byte| matches!(byte, b'\n' | b'\r'));
        let (completed, begun) = piece.split_at(end.map_or(0, |at| at + 1));
        self.begun.extend_from_slice(completed);
        let lines = end.map(|_| std::mem::take(&mut self.begun));
        self.begun.extend_from_slice(begun);
        lines
    }

    /// The line without an end at the end of the stream.
    pub(super) fn end(&mut self) -> Option<Vec<u8>> {
        (!self.begun.is_empty()).then(|| std::mem::take(&mut self.begun))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_passed_on_line_by_line_and_complete(
            pieces in prop::collection::vec("[ab\r\n]{0,5}", 0..12)
        ) {
            let mut lines = WholeLines::default();
            let mut passed: Vec<Vec<u8>> = pieces.iter().filter_map(|piece| lines.add(piece.as_bytes())).collect();
            let ends = |line: &Vec<u8>| matches!(line.last(), Some(b'\n' | b'\r'));
            prop_assert!(passed.iter().all(ends), "{passed:?}");
            // What has an end is not kept back.
            prop_assert!(!lines.begun.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
            passed.extend(lines.end());
            prop_assert_eq!(passed.concat(), pieces.concat().into_bytes());
        }
    }
}
