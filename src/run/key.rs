//! Deduplication keys of tool calls, and the idempotency keys of writes.

use serde_json::Value;

use super::ids::RunId;

/// The key of a call: scene, tool and canonical arguments. With `identity`, only those arguments count: a
/// reworded comment does not make it another booking.
pub fn call_key(scene: &str, tool: &str, arguments: &Value, identity: &[String]) -> String {
    let mut out = format!("{scene}/{tool}");
    match arguments {
        Value::Object(map) if !identity.is_empty() => {
            let chosen = map.iter().filter(|(name, _)| identity.contains(name));
            canonical(&Value::Object(chosen.map(|(k, v)| (k.clone(), v.clone())).collect()), &mut out);
        }
        // No arguments at all and an empty object are the same call.
        Value::Null => out.push_str("{}"),
        other => canonical(other, &mut out),
    }
    out
}

/// Canonical JSON: equal values yield equal text. Keys are sorted, there is no whitespace, null members are
/// omitted and equal numbers are written alike.
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    canonical(value, &mut out);
    out
}

/// Like [`canonical_json`], but keeps null members: a person approves exactly what was shown.
pub fn exact_json(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, true, &mut out);
    out
}

fn canonical(value: &Value, out: &mut String) {
    write_canonical(value, false, out);
}

/// JSON with sorted keys and without whitespace. Equal numbers are written alike (`1`, `1.0` and `1e0`).
/// Null members are omitted unless `nulls` is set.
fn write_canonical(value: &Value, nulls: bool, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().filter(|(_, v)| nulls || !v.is_null()).collect();
            members.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (i, (name, member)) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(member, nulls, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, nulls, out);
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            // A float without a fraction is exactly the integer that it is written as here.
            Some(float)
                if !number.is_i64() && !number.is_u64() && float.fract() == 0.0 && float.abs() < 9.2e18 =>
            {
                out.push_str(&(float as i64).to_string());
            }
            _ => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

/// The key under which a write may be repeated: the same in every attempt, different for every call.
pub fn idempotency_key(run: RunId, step: u32, call: u32) -> String {
    format!("{run}.{step}.{call}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_ignores_order_whitespace_number_forms_and_nulls() {
        let one = call_key("S", "T", &json!({"b": 1, "a": [1.0, {"y": null, "x": 100}]}), &[]);
        let two: Value = serde_json::from_str(r#"{ "a": [1, {"x": 1e2}], "b": 1.0, "c": null }"#).unwrap();
        assert_eq!(one, call_key("S", "T", &two, &[]));
        assert_ne!(one, call_key("S", "U", &two, &[]));
        assert_ne!(call_key("S", "T", &json!({"a": 1}), &[]), call_key("S", "T", &json!({"a": "1"}), &[]));
        assert_ne!(call_key("S", "T", &json!({"a": 1.5}), &[]), call_key("S", "T", &json!({"a": 1}), &[]));
    }

    #[test]
    fn key_uses_only_the_declared_identity_arguments() {
        let identity = ["from".to_owned(), "to".to_owned()];
        let a = json!({"from": "2026-06-15", "to": "2026-06-17", "note": "sea"});
        let b = json!({"from": "2026-06-15", "to": "2026-06-17", "note": "the sea"});
        let c = json!({"from": "2026-06-16", "to": "2026-06-17", "note": "sea"});
        assert_eq!(call_key("V", "M", &a, &identity), call_key("V", "M", &b, &identity));
        assert_ne!(call_key("V", "M", &a, &identity), call_key("V", "M", &c, &identity));
    }
}
