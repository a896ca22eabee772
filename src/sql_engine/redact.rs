//! Redacts values in the messages of engines, so that a model or a log gets the fault and not the data.

/// Longest message that is kept, in characters.
const MAX_CHARS: usize = 300;

/// What stands for a value.
const REDACTED: &str = "…";

/// The first line of `message` without what stands in single quotes, and without what stands in double quotes if
/// `double_quoted`: some messages quote values so, others quote names. Text in double quotes that cannot be a name is
/// redacted in any case.
pub(super) fn redact(message: &str, double_quoted: bool) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut kept = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(['\'', '"']) {
        let (before, quoted) = rest.split_at(start);
        let quote = if quoted.starts_with('"') { '"' } else { '\'' };
        // An apostrophe within a word, as in "can't", quotes nothing.
        if quote == '\''
            && before.ends_with(char::is_alphanumeric)
            && quoted[1..].starts_with(char::is_alphabetic)
        {
            kept.push_str(before);
            kept.push('\'');
            rest = &quoted[1..];
            continue;
        }
        kept.push_str(before);
        let end = closing(quoted, quote);
        let inner = quoted[1..end].strip_suffix(quote).unwrap_or(&quoted[1..end]);
        kept.push(quote);
        kept.push_str(if quote == '\'' || double_quoted || !is_name(inner) { REDACTED } else { inner });
        kept.push(quote);
        rest = &quoted[end..];
    }
    kept.push_str(rest);
    match kept.char_indices().nth(MAX_CHARS) {
        None => kept,
        Some((end, _)) => format!("{}…", &kept[..end]),
    }
}

/// Where the quoted text at the start of `quoted` ends, with its closing quote; a doubled quote is part of it. Text that is
/// not closed goes to the end.
fn closing(quoted: &str, quote: char) -> usize {
    let mut rest = quoted.char_indices().skip(1).peekable();
    while let Some((at, character)) = rest.next() {
        if character == quote {
            match rest.peek() {
                Some((_, next)) if *next == quote => {
                    rest.next();
                }
                _ => return at + 1,
            }
        }
    }
    quoted.len()
}

/// Whether `inner` may be the name of a table, column, type or function, or a sign of SQL.
fn is_name(inner: &str) -> bool {
    inner.len() <= 63
        && !inner.starts_with(|first: char| first.is_ascii_digit())
        && !inner.contains(['\'', '"', '\n', '@'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_stay_and_values_go() {
        for (message, double_quoted, redacted) in [
            ("column \"nome\" does not exist", false, "column \"nome\" does not exist"),
            (
                "invalid input syntax for type integer: \"Rossi\"",
                true,
                "invalid input syntax for type integer: \"…\"",
            ),
            ("syntax error at or near \"'Rossi'\"", false, "syntax error at or near \"…\""),
            ("syntax error at or near \"4111\"", false, "syntax error at or near \"…\""),
            ("bad JSON path: 'it''s me'", false, "bad JSON path: '…'"),
            ("unterminated 'Rossi", false, "unterminated '…'"),
            ("can't read \"orders\"", false, "can't read \"orders\""),
            ("first\nDETAIL: Rossi", false, "first"),
        ] {
            assert_eq!(redact(message, double_quoted), redacted);
        }
    }

    proptest! {
        #[test]
        fn nothing_in_single_quotes_stays(before in "[a-z ]{0,9} ", value in "[A-Z0-9]{4,12}", after in " [a-z ]{0,9}") {
            let (single, double) = (format!("{before}'{value}'{after}"), format!("{before}\"{value}\"{after}"));
            prop_assert!(!redact(&single, false).contains(&value));
            prop_assert!(!redact(&double, true).contains(&value));
        }

        #[test]
        fn any_message_is_read(message in any::<String>(), double_quoted: bool) {
            prop_assert!(redact(&message, double_quoted).chars().count() <= 3 * MAX_CHARS);
        }
    }
}
