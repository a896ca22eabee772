//! Chunks of a text, along its structure.

use super::blocks::{Block, BlockKind, blocks};
use super::{ByteSpan, sentences};

/// The smallest bound on a chunk, in bytes.
const MIN_BOUND: usize = 64;
/// Maximum size, in bytes, of the headings or the first row of a table that are shown with a chunk.
const MAX_SHOWN: usize = 400;

/// A part of a text that is read by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its place in the text.
    pub span: ByteSpan,
    /// The headings above its beginning, the outermost first: not parts of it, except for those that begin it.
    pub headings: Vec<ByteSpan>,
    /// The row with the names of the columns, where the chunk continues a table.
    pub columns: Option<ByteSpan>,
}

impl Chunk {
    /// Its headings, on one line.
    pub fn heading_path(&self, text: &str) -> String {
        let names = self.headings.iter().filter_map(|span| span.of(text));
        let names: Vec<&str> =
            names.map(|name| name.trim().trim_matches(['#', ' ', '=', '-', '\n'])).collect();
        crate::language::text::shorten(&names.join(" > "), MAX_SHOWN).to_owned()
    }
}

/// Splits a text into chunks of at most `bound` bytes (64 at least): they cover it exactly, in order, and do not overlap.
/// They end where a section, a block, a row or line, a sentence or a word ends, in this order of preference. Takes time
/// in proportion to the text.
pub fn chunks(text: &str, bound: usize) -> Vec<Chunk> {
    let blocks = blocks(text);
    let mut packer = Packer { bound: bound.max(MIN_BOUND), ..Packer::default() };
    for block in &blocks {
        packer.add(text, *block);
    }
    packer.close();
    described(text, &packer.chunks, blocks)
}

/// The chunks with these ends, as [`chunks`] made them before. `None` if they do not cover this text.
pub fn chunks_at(text: &str, ends: &[u64]) -> Option<Vec<Chunk>> {
    let mut start = 0;
    let mut spans = Vec::with_capacity(ends.len());
    for end in ends {
        let span = ByteSpan { start, end: *end };
        span.of(text).filter(|part| !part.is_empty())?;
        spans.push(span);
        start = *end;
    }
    (start == text.len() as u64).then(|| described(text, &spans, blocks(text)))
}

/// The chunks at these places, with the headings above them.
fn described(text: &str, spans: &[ByteSpan], blocks: Vec<Block>) -> Vec<Chunk> {
    let (mut headings, mut last) = (Headings::default(), None);
    let mut blocks = blocks.into_iter().peekable();
    let describe = |span: &ByteSpan| {
        while let Some(block) = blocks.next_if(|block| block.span.start <= span.start) {
            headings.see(text, block);
            last = Some(block);
        }
        let table =
            last.filter(|block: &Block| block.kind == BlockKind::Table && block.span.start < span.start);
        let columns = table.and_then(|block| first_row(text, block));
        Chunk { span: *span, headings: headings.path(), columns }
    };
    spans.iter().map(describe).collect()
}

/// The headings above a place.
#[derive(Debug, Default)]
struct Headings {
    open: Vec<(u8, ByteSpan)>,
}

impl Headings {
    fn see(&mut self, text: &str, block: Block) {
        if let BlockKind::Heading(level) = block.kind {
            self.open.retain(|(above, _)| *above < level);
            self.open.push((level, super::span::trimmed(text, block.span)));
        }
    }

    fn path(&self) -> Vec<ByteSpan> {
        self.open.iter().map(|(_, span)| *span).filter(|span| span.len() <= MAX_SHOWN).collect()
    }
}

/// The first row of a table, if it is short enough to be shown again.
fn first_row(text: &str, table: Block) -> Option<ByteSpan> {
    let len = table.span.of(text)?.lines().next()?.len();
    let start = usize::try_from(table.span.start).ok()?;
    (len <= MAX_SHOWN).then(|| ByteSpan::new(start, start + len))
}

/// Packs blocks into chunks.
#[derive(Debug, Default)]
struct Packer {
    bound: usize,
    chunks: Vec<ByteSpan>,
    /// The chunk in progress.
    open: Option<ByteSpan>,
    /// Where the headings at its end begin, which belong to what follows.
    trailing: Option<u64>,
}

impl Packer {
    fn size(&self) -> usize {
        self.open.map_or(0, ByteSpan::len)
    }

    fn add(&mut self, text: &str, block: Block) {
        let is_heading = matches!(block.kind, BlockKind::Heading(_));
        // A section that begins in the second half of a chunk begins the next one.
        let begins_section = is_heading && self.size() * 2 >= self.bound && self.trailing.is_none();
        if begins_section || self.size() + block.span.len() > self.bound {
            // Headings stay with the beginning of what follows, also where that does not fit as a whole.
            self.close_before_headings(block.span.len().min(self.bound / 2));
        }
        if self.size() + block.span.len() <= self.bound {
            self.extend(block.span);
            self.trailing = is_heading.then(|| self.trailing.unwrap_or(block.span.start));
            return;
        }
        for piece in pieces(text, block, self.bound, self.size()) {
            if self.size() + piece.len() > self.bound {
                self.close();
            }
            self.extend(piece);
        }
        self.trailing = None;
    }

    /// Adds to the chunk in progress, or begins one.
    fn extend(&mut self, span: ByteSpan) {
        match &mut self.open {
            Some(open) => open.end = span.end,
            None => self.open = Some(span),
        }
    }

    fn close(&mut self) {
        self.chunks.extend(self.open.take());
        self.trailing = None;
    }

    /// Closes the chunk in progress; headings at its end begin the next one if what follows fits behind them.
    fn close_before_headings(&mut self, follows: usize) {
        let moved = self.open.zip(self.trailing).filter(|(open, at)| {
            let headings = ByteSpan { start: *at, end: open.end };
            *at > open.start && headings.len() + follows <= self.bound
        });
        let Some((open, at)) = moved else { return self.close() };
        self.chunks.push(ByteSpan { start: open.start, end: at });
        self.open = Some(ByteSpan { start: at, end: open.end });
    }
}

/// The pieces of a block that is too large: the first fits behind `used` bytes where that is possible.
fn pieces(text: &str, block: Block, bound: usize, used: usize) -> Vec<ByteSpan> {
    let by_line = matches!(block.kind, BlockKind::Table | BlockKind::Code | BlockKind::ListItem);
    let own = block.span.of(text).unwrap_or_default();
    let mut units: Vec<ByteSpan> = Vec::new();
    if by_line {
        let mut at = 0;
        for line in own.split_inclusive('\n') {
            units.push(ByteSpan::new(at, at + line.len()));
            at += line.len();
        }
    } else {
        let mut at = 0;
        for sentence in sentences(own) {
            let end = usize::try_from(sentence.end).unwrap_or(own.len());
            units.push(ByteSpan::new(at, end));
            at = end;
        }
        if at < own.len() {
            units.push(ByteSpan::new(at, own.len()));
        }
    }
    let mut packed: Vec<ByteSpan> = Vec::new();
    let mut room = bound.saturating_sub(used);
    for unit in units.into_iter().flat_map(|unit| words(own, unit, bound)) {
        match packed.last_mut().filter(|last| last.len() + unit.len() <= room) {
            Some(last) => last.end = unit.end,
            None => {
                room = if packed.is_empty() && unit.len() <= room { room } else { bound };
                packed.push(unit);
            }
        }
    }
    packed.into_iter().map(|piece| piece.moved(block.span.start)).collect()
}

/// A unit, or its parts of at most `bound` bytes, which end after a blank where there is one.
fn words(own: &str, unit: ByteSpan, bound: usize) -> Vec<ByteSpan> {
    let mut parts = Vec::new();
    let mut rest = unit;
    while rest.len() > bound {
        let Some(shown) = rest.of(own) else { break };
        let max = shown.floor_char_boundary(bound);
        let blank = shown[..max].rfind(char::is_whitespace).map(|at| at + 1).filter(|at| *at * 2 > max);
        // A blank may have more than one byte.
        let cut = blank.map_or(max, |at| shown.ceil_char_boundary(at).min(max)).max(1);
        parts.push(ByteSpan { start: rest.start, end: rest.start + cut as u64 });
        rest.start += cut as u64;
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, bound: usize) -> Vec<&str> {
        chunks(text, bound).into_iter().map(|chunk| chunk.span.of(text).unwrap()).collect()
    }

    #[test]
    fn chunks_follow_the_structure_and_keep_their_headings() {
        let text = "# Report\n\nAll went well this year, in every respect.\n\n## Costs\n\nRent rose.\n\n\
                    | item | euro |\n|---|---|\n| rent | 100 |\n| light | 20 |\n| water | 30 |\n";
        let found = chunks(text, 64);
        let parts: Vec<_> = found
            .iter()
            .map(|chunk| {
                let columns = chunk.columns.and_then(|span| span.of(text));
                (chunk.span.of(text).unwrap(), chunk.heading_path(text), columns)
            })
            .collect();
        insta::assert_debug_snapshot!(parts);
        let ends: Vec<u64> = found.iter().map(|chunk| chunk.span.end).collect();
        assert_eq!(chunks_at(text, &ends), Some(found));
        assert_eq!(chunks_at("another text", &ends), None);
    }

    #[test]
    fn five_megabytes_are_split_at_once() {
        let section =
            "## Section\n\nA sentence with words. Another one, no longer than that.\n\n- item\n- item\n\n";
        let long = "word ".repeat(200_000);
        let unbroken = "x".repeat(1_000_000);
        let text = format!("{}{long}\n\n{unbroken}", section.repeat(40_000));
        assert!(text.len() > 5_000_000);
        let found = shown(&text, 14_000);
        assert!(found.len() < text.len() / 7_000 + 3, "{}", found.len());
        assert_eq!(found.concat(), text);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn chunks_cover_any_text_within_their_bound(
            text in "([#|`~=-]{0,4} ?[A-Za-zà-ù€\u{1F600}. ]{0,60}\r?\n{0,2}){0,40}|\\PC{0,2000}",
            bound in 0_usize..400,
        ) {
            let found = chunks(&text, bound);
            let all: String = found.iter().map(|chunk| chunk.span.of(&text).unwrap()).collect();
            prop_assert_eq!(&all, &text);
            prop_assert!(found.iter().all(|chunk| (1..=bound.max(MIN_BOUND)).contains(&chunk.span.len())));
            let ends: Vec<u64> = found.iter().map(|chunk| chunk.span.end).collect();
            let again = chunks_at(&text, &ends).unwrap();
            let spans = |chunks: &[Chunk]| chunks.iter().map(|chunk| chunk.span).collect::<Vec<_>>();
            prop_assert_eq!(spans(&again), spans(&found));
        }
    }
}
