//! Breaks long lines between words, for a terminal.

use console::{measure_text_width, strip_ansi_codes};

/// Columns of help where no terminal tells its width.
const DEFAULT_WIDTH: usize = 80;
/// Maximum number of columns of help, also on a wide terminal.
const MAX_HELP: usize = 100;
/// Columns that the text of an option keeps.
const MIN_COLUMN: usize = 24;

/// `line` in lines of at most `width` columns, if its words allow. JSON, rows of tables, commands to copy and flowcharts
/// stay whole.
pub fn line(line: &str, width: usize) -> String {
    if measure_text_width(line) <= width || is_kept(line) {
        return line.to_owned();
    }
    broken(line, width, hanging(line))
}

/// `line` in lines of at most `width` columns, the further ones indented by `indent`.
pub fn hanging_by(line: &str, width: usize, indent: usize) -> String {
    if measure_text_width(line) <= width { line.to_owned() } else { broken(line, width, indent) }
}

/// Help for a terminal of `width` columns, with the texts of options in their column.
pub fn help(text: &str, width: Option<usize>) -> String {
    let width = width.unwrap_or(DEFAULT_WIDTH).min(MAX_HELP);
    let lines = text.split('\n').map(|line| match measure_text_width(line) > width {
        true => broken(line, width, column(line, width)),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a line is something to copy or to compare.
fn is_kept(line: &str) -> bool {
    let text = line.trim_start();
    let mut words = text.split(' ');
    let first = words.next().unwrap_or_default();
    let is_flowchart = ["[\"", "{\""].iter().any(|node| first.contains(node))
        || words.next().is_some_and(|word| word.starts_with("-->"));
    text.starts_with(['{', '}', '[', ']', '"', '|']) || first == "proscenium" || is_flowchart
}

/// The indent of the lines below a broken one: that of its text behind a sign or a number.
fn hanging(line: &str) -> usize {
    let line = strip_ansi_codes(line);
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let first = text.split(' ').next().unwrap_or_default();
    let is_number =
        first.strip_suffix('.').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    match first {
        "▸" | "·" | "✓" | "✗" | "?" | "!" | "-" | "*" => indent + 2,
        _ if is_number => indent + first.len() + 1,
        _ if indent > 0 => indent + 2,
        _ => 0,
    }
}

/// Where the text of an option begins, behind its last gap.
fn column(line: &str, width: usize) -> usize {
    let line = strip_ansi_codes(line);
    let indent = line.len() - line.trim_start_matches(' ').len();
    let gap = line.get(indent..).and_then(|text| text.rfind("  ").map(|gap| indent + gap + 2));
    match gap {
        Some(column) if column + MIN_COLUMN <= width => measure_text_width(&line[..column]),
        Some(_) => indent + 8,
        None => indent,
    }
}

/// Breaks a line at spaces; a word that no line holds is also broken behind its commas.
fn broken(line: &str, width: usize, hanging: usize) -> String {
    let hanging = hanging.min(width / 2);
    let mut out = String::new();
    let (mut used, mut has_words) = (0, false);
    let mut spaces = 0;
    for word in line.split(' ') {
        let long = measure_text_width(word) + hanging > width;
        let parts: Vec<&str> = if long { word.split_inclusive(',').collect() } else { vec![word] };
        for part in parts {
            let columns = measure_text_width(part);
            if has_words && used + spaces + columns > width {
                out.push('\n');
                out.push_str(&" ".repeat(hanging));
                used = hanging;
            } else {
                out.push_str(&" ".repeat(spaces));
                used += spaces;
            }
            out.push_str(part);
            used += columns;
            has_words |= columns > 0;
            spaces = 0;
        }
        spaces += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_hang_below_their_text() {
        assert_eq!(line("one two three", 7), "one two\nthree");
        assert_eq!(line("✓ step 1 Weather: completed", 18), "✓ step 1 Weather:\n  completed");
        assert_eq!(line("  2. one two three", 12), "  2. one two\n     three");
        assert_eq!(line("   why: one two", 12), "   why: one\n     two");
        assert_eq!(line("日本 日本 日本", 9), "日本 日本\n日本");
        assert_eq!(line("a {\"one\":1,\"two\":2,\"three\":3}", 20), "a {\"one\":1,\"two\":2,\n\"three\":3}");
    }

    #[test]
    fn rows_hang_by_a_given_indent() {
        assert_eq!(hanging_by("1234  given  one two three", 17, 4), "1234  given  one\n    two three");
        assert_eq!(hanging_by("1234  given  one", 17, 4), "1234  given  one");
    }

    #[test]
    fn lines_to_copy_or_compare_are_not_wrapped() {
        for kept in [
            "  \"note\": \"one two three\"",
            "  proscenium plans approve 1 --hash 2",
            "  s1[\"1. one two three\"]",
            "  n1([\"one two three\"])",
            "  n2{\"one two three\"}",
            "  n1 -->|\"one two three\"| n2",
            "| one two three | 1 |",
        ] {
            assert_eq!(line(kept, 12), kept);
        }
    }

    #[test]
    fn help_breaks_in_the_column_of_its_texts() {
        let text = "  --config <FILE>  Configuration file on top of the defaults\n\nUsage: all";
        insta::assert_snapshot!(help(text, Some(44)), @r"
          --config <FILE>  Configuration file on top
                           of the defaults

        Usage: all
        ");
        assert!(help(&"word ".repeat(60), None).lines().all(|line| line.len() <= 80));
    }
}
