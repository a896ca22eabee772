//! Rows as a Markdown table, with numbers and days in the reader's language.

use std::fmt::Write as _;

use jiff::civil::Time;
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
/// Digits of a floating-point number after the point.
const SHOWN_DIGITS: usize = 4;
/// Last words of the names of columns whose numbers name something, or are years.
const KEY_WORDS: [&str; 13] =
    ["id", "no", "nr", "code", "zip", "postcode", "plz", "phone", "year", "anno", "année", "jahr", "año"];
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
    /// A column by its name and its declared type, where that is known. Keys, years and texts that look like numbers, such
    /// as versions, are not grouped.
    pub fn new(name: &str, declared_type: Option<&str>) -> Self {
        let declared = declared_type.unwrap_or_default().to_ascii_lowercase();
        let is_truth = declared.starts_with("bool");
        let is_text = ["char", "text", "clob"].iter().any(|part| declared.contains(part));
        let is_key = KEY_WORDS.contains(&last_word(name).as_str());
        let shown_as = match (is_truth, is_key || is_text) {
            (true, _) => ShownAs::Truth,
            (false, true) => ShownAs::Plain,
            (false, false) => ShownAs::Number,
        };
        Self { name: name.to_owned(), shown_as }
    }
}

/// The last word of a name, in lower case: `id` of `order_id`, `order id`, `OrderId` and `OrderID`.
fn last_word(name: &str) -> String {
    let mut letters: Vec<char> = Vec::new();
    for letter in name.chars().rev() {
        let is_boundary = letter.is_lowercase() && letters.last().is_some_and(|next| next.is_uppercase());
        if !letter.is_alphanumeric() || is_boundary {
            break;
        }
        letters.push(letter);
    }
    letters.iter().rev().collect::<String>().to_lowercase()
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

/// A floating-point number as people read it: with at most four digits after the point, or with its first four if it is
/// smaller than 1. Very large and very small ones keep their exponent.
fn rounded(number: &serde_json::Number) -> String {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-9..1e15).contains(&size) {
        return number.to_string();
    }
    let digits = SHOWN_DIGITS + (1..9).take_while(|zeros| size < 0.1_f64.powi(*zeros)).count();
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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

/// A day or a moment in words, where the text is one and nothing else: `2026-03-01`, `2026-03-01 10:30:00`,
/// `2026-03-01T10:30:00Z`.
fn day(text: &str, speech: Speech) -> Option<String> {
    let (date, rest) = text.split_at_checked(10)?;
    let is_day = date.bytes().filter(|byte| *byte == b'-').count() == 2;
    let day = phrase::format_day(date, speech.code()).filter(|_| is_day)?;
    if rest.is_empty() {
        return Some(day);
    }
    let time = rest.strip_prefix([' ', 'T'])?;
    let (clock, offset) = time.split_at(time.find(['+', '-', 'Z']).unwrap_or(time.len()));
    let zone = zone(offset)?;
    let minute = clock.get(..5).filter(|minute| minute.as_bytes().get(2) == Some(&b':'))?;
    let at: Time = clock.parse().ok()?;
    match at == Time::midnight() && zone.is_empty() {
        true => Some(day),
        false => Some(format!("{day}, {minute}{zone}")),
    }
}

/// The zone of a moment in words, for what follows its time: nothing, `Z`, `+00`, `+02` or `-03:30`.
fn zone(offset: &str) -> Option<String> {
    let digits = offset.strip_prefix(['+', '-']).unwrap_or_default();
    let is_offset = [2, 4, 5].contains(&digits.len())
        && digits.bytes().enumerate().all(|(at, byte)| byte.is_ascii_digit() || (at == 2 && byte == b':'));
    match offset {
        "" => Some(String::new()),
        "Z" => Some(" UTC".to_owned()),
        _ if !is_offset => None,
        _ if digits.bytes().all(|byte| matches!(byte, b'0' | b':')) => Some(" UTC".to_owned()),
        _ => Some(format!(" UTC{offset}")),
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
    fn small_and_large_numbers_keep_their_size() {
        let shown = |value: f64| cell(&json!(value), ShownAs::Number, Speech::En);
        assert_eq!(shown(0.1 + 0.2), "0.3");
        assert_eq!([shown(0.000_061_234_5), shown(-0.012_345_67)], ["0.00006123", "-0.01235"]);
        assert_eq!([shown(1e-12), shown(1e308), shown(-0.0)], ["1e-12", "1e+308", "0"]);
        assert_eq!([shown(1_234_567.25), shown(100.0)], ["1,234,567.25", "100"]);
    }

    #[test]
    fn moment_keeps_its_zone_and_text_that_begins_with_one_stays_as_it_is() {
        let shown = |text: &str| cell(&json!(text), ShownAs::Plain, Speech::En);
        assert_eq!(shown("2026-03-01 00:00:00"), "1 March 2026");
        assert_eq!(shown("2026-03-01 08:00:00.25+00"), "1 March 2026, 08:00 UTC");
        assert_eq!(shown("2026-03-01T00:00:00Z"), "1 March 2026, 00:00 UTC");
        assert_eq!(shown("2026-03-01 08:00:00+05:30"), "1 March 2026, 08:00 UTC+05:30");
        for text in [
            "0044-03-15 10:00:00 BC",
            "2026-03-01 12:34:56 disk full",
            "2026-03-01 12:34 call Ada",
            "2026-03-01 08:00-12:00 closed",
            "2026-03-01 25:00",
            "2026-03-01 10:30:00+2",
        ] {
            assert_eq!(shown(text), text);
        }
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
        for name in ["OrderID", "trackId", "postal code", "born_year"] {
            assert_eq!(as_column(name, Some("INTEGER"), json!(20121)), "20121", "{name}");
        }
        assert_eq!(as_column("paid", None, json!(20121)), "20.121");
        assert_eq!(as_column("version", Some("varchar"), json!("1010.20")), "1010.20");
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
