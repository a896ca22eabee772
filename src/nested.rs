//! How deep JSON is nested. What is nested deeper than JSON readers go could be written and never be read
//! again, so everything that comes from a model, a tool or a client is held to [`MAX_DEPTH`], and nothing
//! beyond [`READ_DEPTH`] is appended to the journal.

use serde_json::Value;

/// The deepest JSON that is taken from a model, a tool or a client. It leaves room for the event, the
/// document and the reply that the value stands in.
pub(crate) const MAX_DEPTH: usize = 64;

/// The deepest JSON that this program reads: the reader's own bound.
pub(crate) const READ_DEPTH: usize = 127;

/// How deep objects and lists are nested in this JSON, brackets in strings left out.
pub(crate) fn of_text(json: &[u8]) -> usize {
    let (mut now, mut most) = (0usize, 0usize);
    let (mut string, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            b'{' | b'[' if !string => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' if !string => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Whether a value is nested deeper than [`MAX_DEPTH`].
pub(crate) fn is_too_deep<'v>(values: impl IntoIterator<Item = &'v Value>) -> bool {
    // Not by recursion: the value may be deeper than the stack.
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

/// The value with whatever lies deeper than [`MAX_DEPTH`] left out, and said so in its place.
pub(crate) fn shallow(mut value: Value) -> Value {
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

    /// Lists within lists, so many.
    fn lists(depth: usize) -> Value {
        (1..depth).fold(json!([]), |inner, _| json!([inner]))
    }

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert_eq!(of_text(br#"{"a": ["[[[", {"b": "\"{{"}]}"#), 3);
        assert_eq!(of_text(b"[[]]"), 2);
        assert_eq!(of_text(b"1"), 0);
    }

    #[test]
    fn the_reader_goes_as_deep_as_is_said_and_no_deeper() {
        let text = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(serde_json::from_str::<Value>(&text(READ_DEPTH)).is_ok());
        assert!(serde_json::from_str::<Value>(&text(READ_DEPTH + 1)).is_err());
    }

    #[test]
    fn what_lies_too_deep_is_left_out_and_nothing_else() {
        assert!(!is_too_deep([&lists(MAX_DEPTH)]));
        assert_eq!(shallow(lists(MAX_DEPTH)), lists(MAX_DEPTH));
        for depth in [MAX_DEPTH + 1, 100, 1000] {
            let deep = json!({"a": lists(depth), "b": {"c": [1, "x"]}});
            assert!(is_too_deep([&deep]));
            let cut = shallow(deep);
            assert!(!is_too_deep([&cut]));
            assert_eq!(of_text(cut.to_string().as_bytes()), MAX_DEPTH);
            assert_eq!(cut["b"], json!({"c": [1, "x"]}));
            assert!(cut.to_string().contains("nested deeper than 64 levels"));
        }
    }
}
