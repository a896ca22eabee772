//! Finds JSON in text: where objects at the outermost level begin and end, without parsing them.

/// The JSON at the outermost level of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JsonCandidate<'t> {
    /// Objects, and arrays of objects, in order; each with balanced brackets.
    pub(super) pieces: Vec<&'t str>,
    /// Whether the text ends inside a piece, or begins inside one.
    pub(super) cut: bool,
}

/// Maximum nesting of brackets in a piece that is searched.
pub(super) const MAX_DEPTH: usize = 64;

/// Everything in `text` that looks like JSON. Braces in prose are skipped.
pub(super) fn scan(text: &str) -> JsonCandidate<'_> {
    let bytes = text.as_bytes();
    let mut found = JsonCandidate::default();
    let mut i = 0;
    while i < bytes.len() {
        if !begins(bytes, i) {
            i += 1;
            continue;
        }
        // `"steps": [ … ]` without the brace before it: the head of the object is missing.
        found.cut |= follows_a_key(&bytes[..i]);
        match end(bytes, i) {
            // Brackets and quotes are ASCII, so both ends are character boundaries.
            Some(end) => {
                found.pieces.extend(text.get(i..end));
                i = end;
            }
            None => {
                found.cut = true;
                break;
            }
        }
    }
    found
}

/// Whether an object, or an array of objects, begins at `at`.
fn begins(bytes: &[u8], at: usize) -> bool {
    let Some(open) = bytes.get(at).filter(|b| matches!(b, b'{' | b'[')) else { return false };
    let next = skip_blanks(bytes, at + 1);
    match (open, bytes.get(next)) {
        (b'[', Some(b'{')) => begins(bytes, next),
        (b'[', _) => false,
        (_, None | Some(b'"' | b'\'' | b'}')) => true,
        (_, Some(b'/')) => matches!(bytes.get(next + 1), Some(b'/' | b'*')),
        (_, Some(first)) if is_name(*first) => {
            let after = next + bytes[next..].iter().take_while(|b| is_name(**b)).count();
            let after = skip_blanks(bytes, after);
            bytes.get(after).is_none_or(|b| *b == b':')
        }
        _ => false,
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

fn follows_a_key(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    before.strip_suffix(b":").is_some_and(|key| key.trim_ascii_end().ends_with(b"\""))
}

/// The position after the bracket that closes the one at `start`.
fn end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    // The last byte that is neither blank nor comment: after it, a quote opens a string only where a key or a
    // value may be.
    let mut last = b'{';
    let mut i = start;
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(i + 1);
                }
            }
            b'"' => i = string_end(bytes, i)?,
            b'\'' if matches!(last, b'{' | b'[' | b',' | b':') => i = string_end(bytes, i)?,
            b'/' if bytes.get(i + 1) == Some(&b'/') => {
                i += bytes[i..].iter().position(|b| *b == b'\n')?;
                continue;
            }
            b'/' if bytes.get(i + 1) == Some(&b'*') => {
                i += 2 + bytes.get(i + 2..)?.windows(2).position(|w| w == b"*/")? + 2;
                continue;
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
        i += 1;
    }
    None
}

/// The position of the quote that closes the one at `open`.
fn string_end(bytes: &[u8], open: usize) -> Option<usize> {
    let mut escaped = false;
    for (i, &byte) in bytes.iter().enumerate().skip(open + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == bytes[open] => return Some(i),
            _ => {}
        }
    }
    None
}

/// The maximum nesting of brackets, including those in strings: never less than a parser would see.
pub(super) fn depth(piece: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in piece.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (Vec<&str>, bool) {
        let found = scan(text);
        (found.pieces, found.cut)
    }

    #[test]
    fn objects_are_found_between_words() {
        assert_eq!(
            found(r#"First {"a": "}"} then [{"b": 1}] end."#),
            (vec![r#"{"a": "}"}"#, r#"[{"b": 1}]"#], false)
        );
        assert_eq!(found("{a: 1} {'b': 'it\\'s'}"), (vec!["{a: 1}", "{'b': 'it\\'s'}"], false));
    }

    #[test]
    fn braces_and_brackets_in_prose_are_passed_over() {
        assert_eq!(found("fill {name} in [the form](x) { now }"), (vec![], false));
        assert_eq!(found("{{\"a\": 1}}"), (vec!["{\"a\": 1}"], false));
    }

    #[test]
    fn incomplete_json_is_reported_as_cut() {
        for text in [r#"{"a": {"b": 1}"#, r#"{"a": "x"#, "{", "plan: {need", r#""steps": [{"a": 1}]}"#] {
            assert!(scan(text).cut, "{text}");
        }
    }

    #[test]
    fn comments_hide_quotes_and_brackets() {
        let text = "{\"a\": 1, // don't } stop\n /* { */ \"b\": 2}";
        assert_eq!(found(text), (vec![text], false));
    }
}
