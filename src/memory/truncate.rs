//! Truncation that says what was cut. Sizes are in quarters of a token, measured as JSON.

use serde_json::{Map, Value};

use super::estimate::{json_quarters, json_size};
use crate::run::{PendingQuestion, Turn};

/// Maximum size of one call's arguments or result in any prompt.
const VALUE: usize = 800;
/// The same in a turn that must be shortened.
const SMALL_VALUE: usize = 200;
/// Maximum characters of a string inside a shortened value.
const STRING_CHARS: usize = 160;
/// Maximum items of a list inside a shortened value.
const ITEMS: usize = 8;
/// Maximum fields of an object inside a shortened value.
const FIELDS: usize = 24;
/// Maximum nesting depth of a shortened value.
const LEVELS: usize = 5;
/// Room for the note on how many calls were omitted.
const OMISSION_NOTE: usize = 40;

/// The beginning of `text` in at most `max`, with a note about the cut if there is room.
pub(super) fn text(text: &str, max: usize) -> String {
    if fits(text.chars(), max) {
        return text.to_owned();
    }
    let mut mark = format!("… [cut, {} characters in all]", text.chars().count());
    if json_text_size(&mark) * 2 > max {
        mark = "…".to_owned();
    }
    let Some(room) = max.checked_sub(json_text_size(&mark)) else { return String::new() };
    let mut out: String = take_fitting(text.chars(), room).collect();
    out.push_str(&mark);
    out
}

/// The beginning and the end of `text` in at most `max`, for texts whose latest information comes last.
pub(super) fn middle(text: &str, max: usize) -> String {
    const MARK: &str = "\n… [cut] …\n";
    if fits(text.chars(), max) {
        return text.to_owned();
    }
    let Some(room) = max.checked_sub(json_text_size(MARK)) else { return self::text(text, max) };
    let mut out: String = take_fitting(text.chars(), room / 2).collect();
    let mut tail: Vec<char> = take_fitting(text.chars().rev(), room / 2).collect();
    tail.reverse();
    out.push_str(MARK);
    out.extend(tail);
    out
}

/// A replacement of `value` of at most `max`: with its long parts shortened, or a part of its text. `None` if it fits
/// as it is.
fn shortened_value(value: &Value, max: usize) -> Option<Value> {
    if json_size(value) <= max {
        return None;
    }
    let compact = compact(value, LEVELS);
    if json_size(&compact) <= max {
        return Some(compact);
    }
    let Some(room) = max.checked_sub(2) else { return Some(Value::Null) };
    Some(match text(&compact.to_string(), room) {
        piece if piece.is_empty() => Value::Null,
        piece => Value::String(piece),
    })
}

/// `turn` in at most `max`, which must be at least 200. Shortens results and arguments first, then the
/// texts, then omits calls, oldest first.
/// Returns its size, too.
pub(super) fn turn(turn: &Turn, max: usize) -> (Turn, usize) {
    let mut out = turn.clone();
    values(&mut out, VALUE);
    let now = json_size(&out);
    if now <= max {
        return (out, now);
    }
    values(&mut out, SMALL_VALUE);
    out.request = text(&out.request, max / 4);
    out.answer = text(&out.answer, max / 3);
    let mut now = json_size(&out);
    if now <= max {
        return (out, now);
    }
    let target = max.saturating_sub(OMISSION_NOTE);
    let mut left_out = 0;
    for call in &out.calls {
        if now <= target {
            break;
        }
        now = now.saturating_sub(json_size(call) + 1);
        left_out += 1;
    }
    out.calls.drain(..left_out);
    if json_size(&out) > target {
        let frame = Turn { request: String::new(), answer: String::new(), ..out.clone() };
        let room = target.saturating_sub(json_size(&frame));
        out.request = text(&turn.request, room / 3);
        out.answer = text(&turn.answer, room / 3 * 2);
    }
    if left_out > 0 {
        out.answer.push_str(&format!(" [{left_out} calls left out]"));
    }
    let size = json_size(&out);
    (out, size)
}

fn values(turn: &mut Turn, max: usize) {
    for part in turn.calls.iter_mut().flat_map(|call| [&mut call.arguments, &mut call.result]) {
        // Most parts are short, and need not be parsed.
        if json_size(part) > max
            && let Some(shorter) = shortened_value(part, max)
        {
            *part = shorter.into();
        }
    }
}

/// `pending` in at most `max`. Names and known values are kept whole or omitted, since a shortened one
/// could be mistaken for the real one. `None` if not even the names fit.
///
/// Calls to be confirmed are not part of any prompt: they take no room and stay whole.
pub(super) fn pending(pending: &PendingQuestion, max: usize) -> Option<PendingQuestion> {
    let mut out = pending.clone();
    let unconfirmed = std::mem::take(&mut out.unconfirmed);
    // The documents that a reply may name are no part of a prompt; those that it names are.
    out.question.choices.clear();
    let out = if json_size(&out) <= max { Some(out) } else { shortened(out, pending, max) };
    out.map(|out| PendingQuestion { unconfirmed, ..out })
}

fn shortened(mut out: PendingQuestion, pending: &PendingQuestion, max: usize) -> Option<PendingQuestion> {
    out.request.clear();
    out.purpose.clear();
    out.question.text.clear();
    out.question.known = Value::Null;
    let room = max.checked_sub(json_size(&out))?;
    out.question.known = fitting_fields(&pending.question.known, room / 3);
    let room = max.checked_sub(json_size(&out))?;
    out.question.text = text(&pending.question.text, room / 2);
    out.request = text(&pending.request, room / 4);
    out.purpose = text(&pending.purpose, room / 4);
    Some(out)
}

/// The fields of `value` that fit into `max`, each whole.
fn fitting_fields(value: &Value, max: usize) -> Value {
    let Value::Object(fields) = value else { return Value::Null };
    let mut kept = Map::new();
    for (name, field) in fields {
        kept.insert(name.clone(), field.clone());
        if json_size(&kept) > max {
            kept.remove(name);
        }
    }
    if kept.is_empty() { Value::Null } else { Value::Object(kept) }
}

fn compact(value: &Value, levels: usize) -> Value {
    match value {
        Value::String(s) => match s.char_indices().nth(STRING_CHARS) {
            Some((end, _)) => Value::String(format!("{}…", &s[..end])),
            None => value.clone(),
        },
        Value::Array(_) | Value::Object(_) if levels == 0 => Value::String("…".to_owned()),
        Value::Array(items) => {
            let mut out: Vec<Value> =
                items.iter().take(ITEMS).map(|item| compact(item, levels - 1)).collect();
            if items.len() > ITEMS {
                out.push(Value::String(format!("… {} more", items.len() - ITEMS)));
            }
            Value::Array(out)
        }
        Value::Object(fields) => {
            let mut out: Map<String, Value> = fields
                .iter()
                .take(FIELDS)
                .map(|(name, field)| (name.clone(), compact(field, levels - 1)))
                .collect();
            if fields.len() > FIELDS {
                out.insert("…".to_owned(), Value::String(format!("{} more", fields.len() - FIELDS)));
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

pub(super) fn json_text_size(text: &str) -> usize {
    text.chars().map(json_quarters).sum()
}

fn fits(chars: impl Iterator<Item = char>, max: usize) -> bool {
    let mut room = max;
    for c in chars {
        match room.checked_sub(json_quarters(c)) {
            Some(rest) => room = rest,
            None => return false,
        }
    }
    true
}

/// The first characters that fit into `room`.
fn take_fitting<I: Iterator<Item = char>>(chars: I, room: usize) -> impl Iterator<Item = char> {
    chars.scan(room, |room, c| {
        *room = room.checked_sub(json_quarters(c))?;
        Some(c)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn truncated_text_says_so() {
        let long = "a".repeat(1000);
        let cut = text(&long, 100);
        assert!(cut.ends_with("… [cut, 1000 characters in all]"), "{cut}");
        assert_eq!(text("short", 100), "short");
    }

    #[test]
    fn long_list_keeps_first_items_and_counts_the_rest() {
        let days: Vec<Value> = (0..300).map(|n| json!({"day": n})).collect();
        let cut = shortened_value(&json!({"city": "Milan", "days": days}), 400).unwrap();
        assert_eq!(cut["city"], "Milan");
        assert_eq!(cut["days"][0]["day"], 0);
        assert_eq!(cut["days"][8], "… 292 more");
    }

    #[test]
    fn known_values_are_kept_whole_or_omitted() {
        let fields = json!({"from": "2026-06-15", "note": "x".repeat(2000)});
        assert_eq!(fitting_fields(&fields, 100), json!({"from": "2026-06-15"}));
    }

    proptest! {
        #[test]
        fn truncated_text_never_exceeds_its_room(t in "\\PC*|[\"\n\\\\a]*", max in 0usize..200) {
            prop_assert!(json_text_size(&text(&t, max)) <= max);
            prop_assert!(json_text_size(&middle(&t, max)) <= max);
        }
    }
}
