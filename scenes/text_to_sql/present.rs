//! Rows as a Markdown table, with numbers and days in the reader's language.

use std::fmt::Write as _;

use proscenium::invisible;
use proscenium::tools::phrase;
use serde_json::Value;

use super::phrases::Speech;

/// Rows of a table in a text; the others are in the result.
const MAX_SHOWN_ROWS: usize = 50;
/// Bytes of a table in a text.
const MAX_TABLE_BYTES: usize = 5_000;
/// Characters of a cell in a text.
const MAX_CELL_CHARS: usize = 60;
/// Digits from which a number is grouped.
const GROUPED_DIGITS: usize = 4;

/// What a column holds, as far as it matters for showing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownAs {
    /// Numbers that count or measure something.
    Number,
    /// Truth values, perhaps as 0 and 1.
    Truth,
    /// Anything else, as it is; days are recognised.
    Plain,
}

/// A column of a shown table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownColumn {
    /// Its heading.
    pub name: String,
    /// How its cells are shown.
    pub shown_as: ShownAs,
}

impl ShownColumn {
    /// A column by its name and its declared type, where that is known. Names of keys and years are numbers that nobody
    /// groups.
    pub fn new(name: &str, declared_type: Option<&str>) -> Self {
        let lower = name.to_lowercase();
        let is_truth =
            declared_type.is_some_and(|declared| declared.to_ascii_lowercase().starts_with("bool"));
        let is_key = ["id", "year", "anno", "année", "jahr", "año"].contains(&lower.as_str())
            || ["_id", " id", "_year", "_no"].iter().any(|end| lower.ends_with(end));
        let shown_as = match (is_truth, is_key) {
            (true, _) => ShownAs::Truth,
            (false, true) => ShownAs::Plain,
            (false, false) => ShownAs::Number,
        };
        Self { name: name.to_owned(), shown_as }
    }
}

/// A cell in the reader's language, as one line.
pub fn cell(value: &Value, shown_as: ShownAs, speech: Speech) -> String {
    let text = match (value, shown_as) {
        (Value::Null, _) => "–".to_owned(),
        (Value::Bool(truth), _) => speech.truth(*truth).to_owned(),
        (Value::Number(number), ShownAs::Truth) => match number.as_i64() {
            Some(truth @ (0 | 1)) => speech.truth(truth == 1).to_owned(),
            _ => number.to_string(),
        },
        (Value::Number(number), ShownAs::Number) => grouped(&rounded(number), speech),
        (Value::Number(number), ShownAs::Plain) => number.to_string(),
        (Value::String(text), ShownAs::Number) if is_decimal(text) => grouped(text, speech),
        (Value::String(text), _) => day(text, speech).unwrap_or_else(|| text.clone()),
        (other, _) => other.to_string(),
    };
    let line = invisible::one_line(&text);
    match line.char_indices().nth(MAX_CELL_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// A floating-point number as people read it: with at most four digits after the point.
fn rounded(number: &serde_json::Number) -> String {
    match (number.is_f64(), number.as_f64()) {
        (true, Some(value)) => {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => number.to_string(),
    }
}

/// Whether a text is a number with a point, as databases write exact ones.
fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let Some((whole, fraction)) = digits.split_once('.') else { return false };
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    all_digits(whole) && all_digits(fraction)
}

/// A number in digits, with the separators of the language.
fn grouped(number: &str, speech: Speech) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(a, b)| (a, Some(b)));
    if !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let (thousands, point) = match speech {
        Speech::En => (",", "."),
        // A cell is one line of ordinary spaces.
        Speech::Fr => (" ", ","),
        Speech::It | Speech::De | Speech::Es => (".", ","),
    };
    let mut out = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > 0 && left.is_multiple_of(3) && whole.len() >= GROUPED_DIGITS {
            out.push_str(thousands);
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push_str(point);
        out.push_str(fraction);
    }
    out
}

/// A day or a moment in words, where the text is one: `2026-03-01`, `2026-03-01 10:30:00`.
fn day(text: &str, speech: Speech) -> Option<String> {
    let is_day = text.len() == 10 && text.bytes().filter(|byte| *byte == b'-').count() == 2;
    let is_moment = text.len() >= 16 && text.get(10..11).is_some_and(|gap| gap == " " || gap == "T");
    if !is_day && !is_moment {
        return None;
    }
    let day = phrase::format_day(text, speech.code())?;
    match text.get(11..16).filter(|time| is_moment && *time != "00:00") {
        Some(time) if time.as_bytes().get(2) == Some(&b':') => Some(format!("{day}, {time}")),
        Some(_) => None,
        None => Some(day),
    }
}

/// A Markdown table of as many rows as a text holds, and how many it holds. A single value is one line instead.
pub fn table(columns: &[ShownColumn], rows: &[Vec<Value>], speech: Speech) -> (String, usize) {
    if let ([column], [row]) = (columns, rows) {
        let value = row.first().map(|value| cell(value, column.shown_as, speech)).unwrap_or_default();
        return (format!("{}: {value}", heading(&column.name)), 1);
    }
    let shown = |row: &Vec<Value>| -> Vec<String> {
        row.iter()
            .zip(columns)
            .map(|(value, column)| escaped(&cell(value, column.shown_as, speech)))
            .collect()
    };
    let cells: Vec<Vec<String>> = rows.iter().take(MAX_SHOWN_ROWS).map(shown).collect();
    let headings: Vec<String> = columns.iter().map(|column| escaped(&heading(&column.name))).collect();
    let width = |at: usize| {
        let of = |row: &Vec<String>| row.get(at).map_or(0, |cell| cell.chars().count());
        cells.iter().chain([&headings]).map(of).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let is_number = |at: usize| {
        let are_numbers = rows.iter().filter_map(|row| row.get(at)).all(|value| match value {
            Value::Number(_) | Value::Null => true,
            Value::String(text) => is_decimal(text),
            _ => false,
        });
        are_numbers && !rows.is_empty()
    };
    let right: Vec<bool> = (0..columns.len()).map(is_number).collect();
    let line = |cells: &[String]| {
        let mut out = "|".to_owned();
        for ((cell, width), right) in cells.iter().zip(&widths).zip(&right) {
            let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
            // Writing into a String cannot fail.
            let _ = match right {
                true => write!(out, " {gap}{cell} |"),
                false => write!(out, " {cell}{gap} |"),
            };
        }
        out.push('\n');
        out
    };
    let mut out = line(&headings);
    out.push('|');
    for (width, right) in widths.iter().zip(&right) {
        let _ = match right {
            true => write!(out, "{}:|", "-".repeat(width + 1)),
            false => write!(out, "{}|", "-".repeat(width + 2)),
        };
    }
    out.push('\n');
    let mut count = 0;
    for row in &cells {
        let row = line(row);
        if out.len() + row.len() > MAX_TABLE_BYTES {
            break;
        }
        out.push_str(&row);
        count += 1;
    }
    (out.trim_end().to_owned(), count)
}

fn heading(name: &str) -> String {
    cell(&Value::String(name.to_owned()), ShownAs::Plain, Speech::En)
}

/// A cell in which no character begins another one.
fn escaped(cell: &str) -> String {
    cell.replace('\\', "\\\\").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn columns(names: &[&str]) -> Vec<ShownColumn> {
        names.iter().map(|name| ShownColumn::new(name, None)).collect()
    }

    #[test]
    fn numbers_and_days_are_those_of_the_language() {
        let shown =
            |value: Value| [Speech::En, Speech::It, Speech::Fr].map(|s| cell(&value, ShownAs::Number, s));
        assert_eq!(shown(json!(1234567.5)), ["1,234,567.5", "1.234.567,5", "1 234 567,5"]);
        assert_eq!(shown(json!(999)), ["999", "999", "999"]);
        assert_eq!(shown(json!("-1234.50")), ["-1,234.50", "-1.234,50", "-1 234,50"]);
        assert_eq!(shown(json!("2026-03-01")), ["1 March 2026", "1 marzo 2026", "1er mars 2026"]);
        assert_eq!(shown(json!("2026-03-01 10:30:00"))[1], "1 marzo 2026, 10:30");
        assert_eq!(shown(json!("2026-13-01"))[0], "2026-13-01");
        assert_eq!(shown(json!(2.0 / 3.0))[0], "0.6667");
        assert_eq!(shown(Value::Null)[0], "–");
    }

    #[test]
    fn keys_and_years_are_not_grouped_and_truth_is_said() {
        let as_column = |name: &str, declared: Option<&str>, value: Value| {
            cell(&value, ShownColumn::new(name, declared).shown_as, Speech::It)
        };
        assert_eq!(as_column("order_id", None, json!(12345)), "12345");
        assert_eq!(as_column("anno", None, json!(2026)), "2026");
        assert_eq!(as_column("active", Some("BOOLEAN"), json!(1)), "sì");
        assert_eq!(as_column("active", Some("BOOLEAN"), json!(7)), "7");
    }

    #[test]
    fn table_is_markdown_with_numbers_to_the_right() {
        let rows = vec![vec![json!("web"), json!(1200)], vec![json!("a|b\nc"), json!(7)]];
        insta::assert_snapshot!(table(&columns(&["channel", "orders"]), &rows, Speech::En).0, @r"
        | channel | orders |
        |---------|-------:|
        | web     |  1,200 |
        | a\|b c  |      7 |
        ");
        assert_eq!(table(&columns(&["n"]), &[vec![json!(42)]], Speech::En), ("n: 42".to_owned(), 1));
    }

    #[test]
    fn long_tables_say_how_many_rows_they_hold() {
        let rows: Vec<Vec<Value>> = (0..80).map(|n| vec![json!(n), json!("x")]).collect();
        let (text, shown) = table(&columns(&["n", "x"]), &rows, Speech::En);
        assert_eq!((shown, text.lines().count()), (MAX_SHOWN_ROWS, MAX_SHOWN_ROWS + 2));
    }

    proptest! {
        #[test]
        fn no_cell_breaks_the_table(cells in proptest::collection::vec("\\PC{0,80}", 2..12)) {
            let rows: Vec<Vec<Value>> = cells.chunks_exact(2).map(|row| row.iter().map(|c| json!(c)).collect()).collect();
            let (text, shown) = table(&columns(&["a", "b"]), &rows, Speech::En);
            prop_assert_eq!(text.lines().count(), shown + 2);
            for line in text.lines().skip(2) {
                let plain = line.replace("\\\\", "").replace("\\|", "");
                prop_assert_eq!(plain.matches('|').count(), 3);
            }
        }
    }
}
