//! The nesting depth of JSON. Values nested deeper than the JSON parser's limit could be written but never
//! read again. So everything from a model, a tool or a client is limited to [`MAX_DEPTH`], and nothing
//! deeper than [`READ_DEPTH`] is appended to the journal.

use serde_json::Value;

/// Maximum depth of JSON from a model, a tool or a client. It leaves room for the event, document or reply
/// that contains the value.
pub(crate) const MAX_DEPTH: usize = 64;

/// Maximum depth of JSON that this program reads: the limit of the parser.
pub(crate) const READ_DEPTH: usize = 127;

/// Returns whether this JSON text is nested no deeper than [`READ_DEPTH`].
pub(crate) fn is_readable(json: &[u8]) -> bool {
    // Few texts have so many brackets at all, and these are soon counted.
    let opening = json.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    opening <= READ_DEPTH || depth_of_text(json) <= READ_DEPTH
}

/// The nesting depth of objects and lists in this JSON text; brackets in strings do not count.
pub(crate) fn depth_of_text(json: &[u8]) -> usize {
    let (mut now, mut max) = (0usize, 0usize);
    let (mut string, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            b'{' | b'[' if !string => {
                now += 1;
                max = max.max(now);
            }
            b'}' | b']' if !string => now = now.saturating_sub(1),
            _ => {}
        }
    }
    max
}

/// Returns whether any of the values is nested deeper than [`MAX_DEPTH`].
pub(crate) fn is_too_deep<'v>(values: impl IntoIterator<Item = &'v Value>) -> bool {
    // No recursion: the depth may exceed the stack.
    let mut left: Vec<(&Value, usize)> = values.into_iter().map(|value| (value, 1)).collect();
    while let Some((value, depth)) = left.pop() {
        if depth > MAX_DEPTH && (value.is_object() || value.is_array()) {
            return true;
        }
        match value {
            Value::Array(elements) => left.extend(elements.iter().map(|element| (element, depth + 1))),
            Value::Object(fields) => left.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    false
}

/// Replaces whatever is nested deeper than [`MAX_DEPTH`] with a note.
pub(crate) fn truncate_deep(mut value: Value) -> Value {
    cut(&mut value, 1);
    value
}

fn cut(value: &mut Value, depth: usize) {
    match value {
        Value::Array(_) | Value::Object(_) if depth > MAX_DEPTH => {
            *value = Value::String(format!("… [nested deeper than {MAX_DEPTH} levels]"));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| cut(element, depth + 1)),
        Value::Object(fields) => fields.values_mut().for_each(|field| cut(field, depth + 1)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lists(depth: usize) -> Value {
        (1..depth).fold(json!([]), |inner, _| json!([inner]))
    }

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert_eq!(depth_of_text(br#"{"a": ["[[[", {"b": "\"{{"}]}"#), 3);
        assert_eq!(depth_of_text(b"[[]]"), 2);
        assert_eq!(depth_of_text(b"1"), 0);
    }

    #[test]
    fn json_parser_accepts_exactly_the_documented_depth() {
        let text = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_readable(text(READ_DEPTH).as_bytes()) && !is_readable(text(READ_DEPTH + 1).as_bytes()));
        assert!(is_readable(
            json!([[[]], [[]], "[".repeat(500), vec![json!({}); 500]]).to_string().as_bytes()
        ));
        assert!(serde_json::from_str::<Value>(&text(READ_DEPTH)).is_ok());
        assert!(serde_json::from_str::<Value>(&text(READ_DEPTH + 1)).is_err());
    }

    #[test]
    fn only_values_nested_too_deep_are_removed() {
        assert!(!is_too_deep([&lists(MAX_DEPTH)]));
        assert_eq!(truncate_deep(lists(MAX_DEPTH)), lists(MAX_DEPTH));
        for depth in [MAX_DEPTH + 1, 100, 1000] {
            let deep = json!({"a": lists(depth), "b": {"c": [1, "x"]}});
            assert!(is_too_deep([&deep]));
            let cut = truncate_deep(deep);
            assert!(!is_too_deep([&cut]));
            assert_eq!(depth_of_text(cut.to_string().as_bytes()), MAX_DEPTH);
            assert_eq!(cut["b"], json!({"c": [1, "x"]}));
            assert!(cut.to_string().contains("nested deeper than 64 levels"));
        }
    }
}
