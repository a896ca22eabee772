//! Values that chat applications send in another JSON type than the protocol's: numbers for flags, and counts
//! with a fraction of zero.

use serde::de::{Deserialize, Deserializer, Unexpected};
use serde_json::Value;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

/// Reads an optional flag; the numbers 1 and 0 are read as `true` and `false`.
pub(super) fn flag<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<bool>, D::Error> {
    match Value::deserialize(reader)? {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(flag)),
        value if value.as_f64() == Some(1.0) => Ok(Some(true)),
        value if value.as_f64() == Some(0.0) => Ok(Some(false)),
        value => Err(invalid(&value, "`true` or `false`")),
    }
}

/// Reads an optional count; `1.0` is read as 1.
pub(super) fn count<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u32>, D::Error> {
    let value = Value::deserialize(reader)?;
    if value.is_null() {
        return Ok(None);
    }
    let whole = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=1e9).contains(number));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range and whole")]
    whole.map(|number| Some(number as u32)).ok_or_else(|| invalid(&value, "a whole number"))
}

fn invalid<E: serde::de::Error>(value: &Value, expected: &str) -> E {
    let found = match value {
        Value::String(text) => Unexpected::Str(text),
        Value::Number(number) => Unexpected::Float(number.as_f64().unwrap_or_default()),
        Value::Bool(flag) => Unexpected::Bool(*flag),
        Value::Array(_) => Unexpected::Seq,
        _ => Unexpected::Map,
    };
    E::invalid_type(found, &expected)
}

/// The schema of what [`flag`] reads.
pub(super) fn flag_schema() -> RefOr<Schema> {
    let boolean = ObjectBuilder::new().schema_type(Type::Boolean);
    let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(1));
    let nothing = ObjectBuilder::new().schema_type(Type::Null);
    AnyOfBuilder::new().item(boolean).item(number).item(nothing).into()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    struct Body {
        #[serde(default, deserialize_with = "super::flag")]
        stream: Option<bool>,
        #[serde(default, deserialize_with = "super::count")]
        n: Option<u32>,
    }

    #[test]
    fn numbers_are_read_as_flags_and_counts() {
        for (stream, n, expected) in [
            (json!(1), json!(1.0), (Some(true), Some(1))),
            (json!(0), json!(2), (Some(false), Some(2))),
            (json!(true), json!(null), (Some(true), None)),
            (json!(null), json!(0), (None, Some(0))),
        ] {
            let body: Body = serde_json::from_value(json!({"stream": stream, "n": n})).unwrap();
            assert_eq!((body.stream, body.n), expected);
        }
        for wrong in [json!({"stream": 2}), json!({"stream": "yes"}), json!({"n": 1.5}), json!({"n": -1})] {
            serde_json::from_value::<Body>(wrong).unwrap_err();
        }
    }
}
