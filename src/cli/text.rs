//! Formats text for a terminal: without control characters, truncated, numbers with units.

use std::time::Duration;

use proscenium::invisible;

/// `text` without characters that control a terminal or change its reading order: text of models, tools and users is
/// only shown. Line ends and tabs stay.
pub fn clean(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !invisible::is_control_or_bidi(*c)).collect()
}

/// `text` on one line, without invisible characters.
pub fn one_line(text: &str) -> String {
    invisible::one_line(text)
}

/// `text` on one line, in at most `width` columns; a truncation is marked with `…`.
pub fn short(text: &str, width: usize) -> String {
    console::truncate_str(&one_line(text), width, "…").into_owned()
}

/// JSON on one line, in at most `width` columns.
pub fn json(value: &serde_json::Value, width: usize) -> String {
    console::truncate_str(&whole_json(value), width, "…").into_owned()
}

/// JSON on one line, without invisible characters.
pub fn whole_json(value: &serde_json::Value) -> String {
    invisible::escape_json(&value.to_string())
}

/// `1 step`, `2 steps`.
pub fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Milliseconds in a suitable unit: `3.4 ms`, `1.23 s`, `2 min 5 s`.
pub fn duration(ms: f64) -> String {
    if !ms.is_finite() || ms < 0.0 {
        "0 ms".to_owned()
    } else if ms > 0.0 && ms < 1.0 {
        format!("{ms:.2} ms")
    } else if ms < 100.0 && ms.fract() != 0.0 {
        format!("{ms:.1} ms")
    } else if ms < 1_000.0 {
        format!("{ms:.0} ms")
    } else if ms < 60_000.0 {
        format!("{:.2} s", ms / 1_000.0)
    } else {
        let seconds = Duration::from_secs_f64((ms / 1_000.0).min(1e9)).as_secs();
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

/// US dollars with the significant digits: `$0`, `$0.000042`, `$1.20`.
pub fn dollars(usd: f64) -> String {
    if usd <= 0.0 || !usd.is_finite() {
        "$0".to_owned()
    } else if usd < 0.01 {
        let digits = format!("{usd:.6}");
        format!("${}", if digits == "0.000000" { "0.000001" } else { digits.trim_end_matches('0') })
    } else if usd < 1.0 {
        format!("${usd:.4}")
    } else {
        format!("${usd:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_removed() {
        let nasty = "a\u{1b}[31mred\u{7}\u{9b}2J\u{202e}b\tc\nd\r";
        assert_eq!(clean(nasty), "a[31mred2Jb\tc\nd");
        assert_eq!(one_line(nasty), "a[31mred2J\\u{202e}b c d");
    }

    #[test]
    fn long_text_is_cut_by_columns_and_marked() {
        assert_eq!(short("abcdef", 6), "abcdef");
        assert_eq!(short("abcdefg", 6), "abcde…");
        assert_eq!(short("日本語です", 5), "日本…");
    }

    #[test]
    fn numbers_have_units_that_fit() {
        let texts: Vec<String> =
            [0.0, 0.25, 3.44, 12.0, 250.0, 1234.0, 125_000.0].into_iter().map(duration).collect();
        assert_eq!(texts, ["0 ms", "0.25 ms", "3.4 ms", "12 ms", "250 ms", "1.23 s", "2 min 5 s"]);
        let texts: Vec<String> =
            [0.0, 0.000_000_1, 0.000_042, 0.0123, 1.2].into_iter().map(dollars).collect();
        assert_eq!(texts, ["$0", "$0.000001", "$0.000042", "$0.0123", "$1.20"]);
    }
}
