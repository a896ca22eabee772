//! The structure of a text or of Markdown: headings, paragraphs, list items, tables and code, one after the other.

use super::ByteSpan;

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading of this level, from 1.
    Heading(u8),
    /// Lines up to an empty one.
    Paragraph,
    /// An item of a list, with the lines that continue it.
    ListItem,
    /// Rows of a table. The first one names the columns.
    Table,
    /// Lines between fences.
    Code,
}

/// A part of a text that belongs together, with the empty lines after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its kind.
    pub kind: BlockKind,
    /// Its place in the text.
    pub span: ByteSpan,
}

/// The blocks of a text: they cover it exactly, in order. Takes time in proportion to the text.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut reader = BlockReader { blocks: Vec::new(), open: None, fence: None, start: 0 };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        reader.line(line, at);
        at += line.len();
    }
    reader.close(at);
    reader.blocks
}

/// Reads the lines of a text into blocks.
struct BlockReader {
    blocks: Vec<Block>,
    /// The kind of the block that is not complete.
    open: Option<OpenBlock>,
    /// The marks that close the code in progress.
    fence: Option<Fence>,
    /// Where the block in progress begins.
    start: usize,
}

/// The block in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenBlock {
    kind: BlockKind,
    /// Whether an empty line ended it: only further empty lines belong to it.
    ended: bool,
    is_line: bool,
}

/// The marks of a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    count: usize,
}

impl BlockReader {
    fn line(&mut self, line: &str, at: usize) {
        if let Some(fence) = self.fence {
            if fence_of(line).is_some_and(|end| {
                end.mark == fence.mark && end.count >= fence.count && is_bare_fence(line, end.mark)
            }) {
                self.fence = None;
                self.end_open();
            }
            return;
        }
        if line.trim().is_empty() {
            if self.open.is_none() {
                self.begin(BlockKind::Paragraph, at);
            }
            self.end_open();
            return;
        }
        let open = self.open.filter(|open| !open.ended);
        if let Some(level) = underline(line)
            && let Some(OpenBlock { kind: BlockKind::Paragraph, is_line: true, .. }) = open
        {
            self.open = Some(OpenBlock { kind: BlockKind::Heading(level), ended: true, is_line: false });
            return;
        }
        let kind = kind_of(line);
        let continues = match (open.map(|open| open.kind), kind) {
            (Some(BlockKind::Paragraph | BlockKind::ListItem), BlockKind::Paragraph)
            | (Some(BlockKind::Table), BlockKind::Table) => true,
            (Some(_) | None, _) => false,
        };
        if continues {
            if let Some(open) = &mut self.open {
                open.is_line = false;
            }
            return;
        }
        self.begin(kind, at);
        match kind {
            BlockKind::Heading(_) => self.end_open(),
            BlockKind::Code => self.fence = fence_of(line),
            BlockKind::Paragraph | BlockKind::ListItem | BlockKind::Table => {}
        }
    }

    fn begin(&mut self, kind: BlockKind, at: usize) {
        self.close(at);
        self.open = Some(OpenBlock { kind, ended: false, is_line: true });
    }

    fn end_open(&mut self) {
        if let Some(open) = &mut self.open {
            open.ended = true;
        }
    }

    fn close(&mut self, at: usize) {
        if let Some(open) = self.open.take() {
            self.blocks.push(Block { kind: open.kind, span: ByteSpan::new(self.start, at) });
        }
        self.start = at;
    }
}

/// What a line that is not empty begins.
fn kind_of(line: &str) -> BlockKind {
    let own = line.trim_start();
    if fence_of(line).is_some() {
        return BlockKind::Code;
    }
    let hashes = own.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&hashes) && own[hashes..].starts_with([' ', '\t']) {
        return BlockKind::Heading(u8::try_from(hashes).unwrap_or(6));
    }
    if own.starts_with('|') {
        return BlockKind::Table;
    }
    if is_list_item(own) { BlockKind::ListItem } else { BlockKind::Paragraph }
}

/// Whether a line begins an item: `- a`, `* a`, `12. a`, `3) a`.
fn is_list_item(own: &str) -> bool {
    let digits = own.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => own.strip_prefix(['-', '*', '+', '•']),
        1..=3 => own[digits..].strip_prefix(['.', ')']),
        _ => None,
    };
    rest.is_some_and(|rest| rest.starts_with([' ', '\t']))
}

fn fence_of(line: &str) -> Option<Fence> {
    let own = line.trim_start();
    let mark = own.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let count = own.chars().take_while(|c| *c == mark).count();
    (count >= 3).then_some(Fence { mark, count })
}

fn is_bare_fence(line: &str, mark: char) -> bool {
    line.trim().chars().all(|c| c == mark)
}

/// The level of the heading that a line of `===` or `---` makes of the line before it.
fn underline(line: &str) -> Option<u8> {
    let own = line.trim();
    let all = |mark: char| own.len() >= 3 && own.chars().all(|c| c == mark);
    if all('=') {
        return Some(1);
    }
    all('-').then_some(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Vec<(BlockKind, &str)> {
        blocks(text).into_iter().map(|block| (block.kind, block.span.of(text).unwrap())).collect()
    }

    #[test]
    fn structure_of_markdown_is_read() {
        use BlockKind::{Code, Heading, ListItem, Paragraph, Table};
        let text = "Title\n=====\nOne line\nand another.\n\n## Costs\n- rent\n  of the hall\n- light\n\n\
                    | a | b |\n|---|---|\n| 1 | 2 |\n```rust\n# no heading\n\n- no item\n```\nEnd.";
        let expected = [
            (Heading(1), "Title\n=====\n"),
            (Paragraph, "One line\nand another.\n\n"),
            (Heading(2), "## Costs\n"),
            (ListItem, "- rent\n  of the hall\n"),
            (ListItem, "- light\n\n"),
            (Table, "| a | b |\n|---|---|\n| 1 | 2 |\n"),
            (Code, "```rust\n# no heading\n\n- no item\n```\n"),
            (Paragraph, "End."),
        ];
        assert_eq!(shown(text), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn blocks_cover_any_text(text in "([#|`~=-]{0,4} ?[a-zà-ù€\u{1F600} ]{0,9}\r?\n?){0,40}|\\PC{0,200}") {
            let all: String = shown(&text).into_iter().map(|(_, part)| part).collect();
            prop_assert_eq!(all, text);
        }
    }
}
