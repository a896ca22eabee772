//! Truncates a tool's result to the size that a model may see, as JSON that says what was omitted.

use serde_json::{Map, Value, json};

/// The smallest supported bound; smaller ones are raised to it.
pub const MIN_BOUND: usize = 256;

/// The largest result that is stored whole, in bytes of JSON. A model may be shown less.
pub const MAX_STORED_BYTES: usize = 256 * 1024;

/// The maximum depth of truncation; deeper values are omitted as a whole.
const MAX_DEPTH: usize = 64;

/// Returns `value` unchanged if its JSON has at most `max_bytes` bytes, and otherwise
/// `{"truncated": true, "shown_bytes": …, "total_bytes": …, "value": …}` within that size. Arrays keep their
/// leading elements whole, and `"omitted"` counts the others; objects keep as many fields as fit, the
/// smallest first; strings are cut between characters. Inside `value`, omissions are marked in place:
/// `"… [+120 bytes]"`, `"… [+7 elements]"`, `"…": "[+2 fields]"`.
pub fn truncate(value: Value, max_bytes: usize) -> Value {
    let max_bytes = max_bytes.max(MIN_BOUND);
    let total = size(&value);
    if total <= max_bytes {
        return value;
    }
    // No number in the envelope is larger than the total.
    let empty =
        json!({"omitted": total, "shown_bytes": total, "total_bytes": total, "truncated": true, "value": 0});
    let room = max_bytes.saturating_sub(size(&empty) - 1);
    let mut envelope = Map::new();
    let shown = match &value {
        Value::Array(elements) => {
            let (kept, omitted) = leading_elements(elements, room, 0);
            envelope.insert("omitted".to_owned(), json!(omitted));
            Value::Array(kept)
        }
        other => fit(other, room, 0).unwrap_or(Value::Null),
    };
    envelope.insert("truncated".to_owned(), json!(true));
    envelope.insert("shown_bytes".to_owned(), json!(size(&shown)));
    envelope.insert("total_bytes".to_owned(), json!(total));
    envelope.insert("value".to_owned(), shown);
    Value::Object(envelope)
}

/// The size in bytes of the value's compact JSON.
pub(crate) fn size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Serializing a `Value` cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// As much of the value as fits into `room` bytes of JSON.
fn fit(value: &Value, room: usize, depth: usize) -> Option<Value> {
    if size(value) <= room {
        return Some(value.clone());
    }
    if depth >= MAX_DEPTH {
        return None;
    }
    let fitted = match value {
        Value::String(text) => fit_text(text, room).map(Value::String),
        Value::Array(elements) => {
            let note = size(&elements_note(elements.len())) + 1;
            let (mut kept, omitted) = leading_elements(elements, room.checked_sub(note)?, depth);
            if omitted > 0 {
                kept.push(elements_note(omitted));
            }
            (size(&Value::Array(vec![])) <= room).then_some(Value::Array(kept))
        }
        Value::Object(fields) => fit_object(fields, room, depth),
        _ => None,
    };
    // If even the truncated value with its note does not fit, it is omitted.
    fitted.filter(|fitted| size(fitted) <= room)
}

/// The leading elements that fit whole, or as much of the first as fits; and the number of omitted
/// elements.
fn leading_elements(elements: &[Value], room: usize, depth: usize) -> (Vec<Value>, usize) {
    let mut left = room.saturating_sub(2);
    let mut kept = Vec::new();
    for element in elements {
        let needed = size(element) + usize::from(!kept.is_empty());
        if needed > left {
            break;
        }
        left -= needed;
        kept.push(element.clone());
    }
    if kept.is_empty()
        && let Some(first) = elements.first().and_then(|first| fit(first, left, depth + 1))
    {
        kept.push(first);
    }
    let omitted = elements.len() - kept.len();
    (kept, omitted)
}

/// Keeps small fields first, so that one long field does not displace many short ones. The remaining room is
/// shared among the long ones.
fn fit_object(fields: &Map<String, Value>, room: usize, depth: usize) -> Option<Value> {
    let note = |omitted: usize| Value::String(format!("[+{omitted} fields]"));
    let reserved = 2 + size(&Value::String("…".to_owned())) + 1 + size(&note(fields.len()));
    let mut left = room.checked_sub(reserved)?;
    let mut by_size: Vec<(usize, &String, &Value)> =
        fields.iter().map(|(name, value)| (size(value), name, value)).collect();
    by_size.sort_by_key(|(size, ..)| *size);
    let mut kept = Map::new();
    let count = by_size.len();
    for (index, (_, name, value)) in by_size.into_iter().enumerate() {
        let key = size(&Value::String(name.clone())) + 2;
        let share = left / (count - index);
        let Some(value) = share.checked_sub(key).and_then(|share| fit(value, share, depth + 1)) else {
            continue;
        };
        left -= key + size(&value);
        kept.insert(name.clone(), value);
    }
    let omitted = count - kept.len();
    if omitted > 0 {
        kept.insert("…".to_owned(), note(omitted));
    }
    Some(Value::Object(kept))
}

/// The leading characters that fit, with a note of how many bytes follow.
fn fit_text(text: &str, room: usize) -> Option<String> {
    let longest_note = bytes_note(text.len());
    let mut left = room.checked_sub(2 + longest_note.len())?;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let written = match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if c < ' ' => 6,
            c => c.len_utf8(),
        };
        if written > left {
            break;
        }
        left -= written;
        end = at + c.len_utf8();
    }
    Some(format!("{}{}", &text[..end], bytes_note(text.len() - end)))
}

fn bytes_note(omitted: usize) -> String {
    format!("… [+{omitted} bytes]")
}

fn elements_note(omitted: usize) -> Value {
    Value::String(format!("… [+{omitted} elements]"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_small_result_is_left_as_it_is() {
        assert_eq!(truncate(json!({"city": "Milan"}), 256), json!({"city": "Milan"}));
    }

    #[test]
    fn an_array_keeps_its_leading_elements_whole_and_counts_the_others() {
        let value: Value = (0..100).map(|day| json!({"day": day, "note": "sun and clouds"})).collect();
        let cut = truncate(value.clone(), 400);
        let kept = cut["value"].as_array().unwrap();
        assert!(!kept.is_empty());
        assert_eq!(kept[..], value.as_array().unwrap()[..kept.len()]);
        assert_eq!(cut["omitted"], json!(100 - kept.len()));
        assert_eq!(cut["total_bytes"], json!(size(&value)));
        assert_eq!(cut["shown_bytes"], json!(size(&cut["value"])));
        assert_eq!(cut["truncated"], json!(true));
    }

    #[test]
    fn a_long_field_does_not_push_out_the_short_ones() {
        let cut =
            truncate(json!({"aaa": "x".repeat(5000), "name": "Rossi", "list": vec!["entry"; 500]}), 512);
        assert_eq!(cut["value"]["name"], "Rossi");
        assert!(cut["value"]["aaa"].as_str().unwrap().starts_with("xxxx"));
        assert_eq!(cut["value"]["list"][0], "entry");
        let last = cut["value"]["list"].as_array().unwrap().last().unwrap().as_str().unwrap();
        assert!(last.ends_with("elements]"), "{last}");
    }

    #[test]
    fn a_string_is_cut_between_characters() {
        let cut = truncate(json!("è€😀\"\n".repeat(200)), 300);
        assert!(cut["value"].as_str().unwrap().starts_with("è€😀\"\n"));
        assert!(size(&cut) <= 300);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "(?s).{0,200}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 120, 12, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
                prop::collection::btree_map("(?s).{0,40}", inner, 0..12)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn whatever_comes_in_what_goes_out_is_json_within_the_bound(value in any_json(), max in 256_usize..2000) {
            let total = size(&value);
            let out = truncate(value.clone(), max);
            let text = serde_json::to_string(&out).unwrap();
            prop_assert!(text.len() <= max, "{} > {max}", text.len());
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), out.clone());
            if total <= max {
                prop_assert_eq!(out, value);
            } else {
                prop_assert_eq!(&out["truncated"], &json!(true));
            }
        }
    }
}
