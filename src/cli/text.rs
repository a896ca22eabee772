//! Words for a terminal: cleaned of what would steer it, cut to size, numbers in units.

use std::time::Duration;

/// `text` without characters that steer a terminal or turn its reading order: what models, tools
/// and users write is shown, never obeyed. Line ends and tabs stay.
pub fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| match c {
            '\n' | '\t' => true,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
            c => !c.is_control(),
        })
        .collect()
}

/// `text` cleaned, on one line.
pub fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `text` cleaned, on one line, in at most `width` columns; what was cut is marked with `…`.
pub fn short(text: &str, width: usize) -> String {
    console::truncate_str(&one_line(text), width, "…").into_owned()
}

/// JSON on one line, in at most `width` columns.
pub fn json(value: &serde_json::Value, width: usize) -> String {
    short(&value.to_string(), width)
}

/// JSON over several lines, with nothing in it that cannot be seen: what a person says yes to is shown as it
/// is, so what steers a terminal, turns the reading order or has no width is written as an escape.
pub fn exact(value: &serde_json::Value) -> String {
    let mut out = String::new();
    for c in format!("{value:#}").chars() {
        let unseen = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            || (c.is_control() && c != '\n');
        match unseen {
            // All of these are in the basic plane.
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

/// `1 step`, `2 steps`.
pub fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Milliseconds in a unit that fits: `3.4 ms`, `1.23 s`, `2 min 5 s`.
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

/// US dollars with as many digits as say something: `$0`, `$0.000042`, `$1.20`.
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

/// The name of a value of a closed set, as it stands in JSON.
pub fn name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_left_out() {
        let nasty = "a\u{1b}[31mred\u{7}\u{9b}2J\u{202e}b\tc\nd\r";
        assert_eq!(clean(nasty), "a[31mred2Jb\tc\nd");
        assert_eq!(one_line(nasty), "a[31mred2Jb c d");
    }

    #[test]
    fn long_text_is_cut_by_columns_and_marked() {
        assert_eq!(short("abcdef", 6), "abcdef");
        assert_eq!(short("abcdefg", 6), "abcde…");
        assert_eq!(short("日本語です", 5), "日本…");
    }

    #[test]
    fn what_a_person_says_yes_to_hides_nothing() {
        let value = serde_json::json!({"to": "a\u{202e}b\u{200b}\u{9b}c\u{1b}"});
        let shown = exact(&value);
        assert_eq!(shown, "{\n  \"to\": \"a\\u202eb\\u200b\\u009bc\\u001b\"\n}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn numbers_have_units_that_fit() {
        let told: Vec<String> =
            [0.0, 0.25, 3.44, 12.0, 250.0, 1234.0, 125_000.0].into_iter().map(duration).collect();
        assert_eq!(told, ["0 ms", "0.25 ms", "3.4 ms", "12 ms", "250 ms", "1.23 s", "2 min 5 s"]);
        let told: Vec<String> = [0.0, 0.000_000_1, 0.000_042, 0.0123, 1.2].into_iter().map(dollars).collect();
        assert_eq!(told, ["$0", "$0.000001", "$0.000042", "$0.0123", "$1.20"]);
    }
}
