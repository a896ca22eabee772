//! Values of the interpreter as JSON, and JSON as values of the interpreter.

use monty_types::{MontyDate, MontyDateTime, MontyObject, MontyTime};
use serde_json::{Map, Number, Value};

use crate::nesting::MAX_DEPTH;

/// The value as JSON of at most [`MAX_DEPTH`] levels. What it takes at most when it is written is taken from `left` bytes.
///
/// # Errors
/// What of it JSON cannot express, as the end of a sentence about the value.
pub(super) fn to_json(value: MontyObject, left: &mut usize) -> Result<Value, String> {
    let mut writer = JsonWriter { left: *left };
    let json = writer.value(value, 1)?;
    *left = writer.left;
    Ok(json)
}

/// Maximum number of bytes that a text takes in JSON.
fn written_bytes(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\')).count();
    text.len() + 5 * escaped + 2
}

struct JsonWriter {
    left: usize,
}

impl JsonWriter {
    fn value(&mut self, value: MontyObject, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
        }
        Ok(match value {
            MontyObject::None => self.plain(4, Value::Null)?,
            MontyObject::Bool(value) => self.plain(5, value.into())?,
            MontyObject::Int(value) => self.plain(20, value.into())?,
            MontyObject::BigInt(value) => match value.to_string().parse::<u64>() {
                Ok(value) => self.plain(20, value.into())?,
                Err(_) => return Err("has an integer beyond 64 bits".to_owned()),
            },
            MontyObject::Float(value) => match Number::from_f64(value) {
                Some(number) => self.plain(25, Value::Number(number))?,
                None => return Err(format!("has the number `{value}`, which is not finite")),
            },
            MontyObject::String(text) => self.text(text)?,
            MontyObject::Date(date) => self.text(date_text(&date))?,
            MontyObject::Time(time) => self.text(time_text(&time))?,
            MontyObject::DateTime(time) => self.text(date_time_text(&time))?,
            MontyObject::List(elements) | MontyObject::Tuple(elements) => {
                // Brackets, and what separates it from what follows.
                self.take(2)?;
                let element = |element| self.value(element, depth + 1);
                Value::Array(elements.into_iter().map(element).collect::<Result<_, _>>()?)
            }
            MontyObject::Dict(pairs) => {
                let mut object = Map::new();
                for (key, value) in pairs {
                    let MontyObject::String(key) = key else {
                        return Err(format!("has the key `{}`, and keys must be text", short_repr(&key)));
                    };
                    self.take(written_bytes(&key) + 1)?;
                    object.insert(key, self.value(value, depth + 1)?);
                }
                self.plain(2, Value::Object(object))?
            }
            MontyObject::Cycle(..) => return Err("contains itself".to_owned()),
            other => {
                let remedy = "use numbers, text, lists and dictionaries";
                return Err(format!("has a value of type `{}`: {remedy}", type_of(&other)));
            }
        })
    }

    fn text(&mut self, text: String) -> Result<Value, String> {
        self.take(written_bytes(&text))?;
        Ok(Value::String(text))
    }

    fn plain(&mut self, size: usize, value: Value) -> Result<Value, String> {
        self.take(size)?;
        Ok(value)
    }

    fn take(&mut self, size: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(size + 1).ok_or("is too large")?;
        Ok(())
    }
}

fn type_of(value: &MontyObject) -> &str {
    match value {
        MontyObject::Set(_) => "set",
        MontyObject::FrozenSet(_) => "frozenset",
        MontyObject::Bytes(_) => "bytes",
        MontyObject::TimeDelta(_) => "timedelta",
        MontyObject::NamedTuple { .. } => "namedtuple",
        MontyObject::ClassInstance(instance) => &instance.class_type.name,
        MontyObject::Function { .. } | MontyObject::BuiltinFunction(_) => "function",
        MontyObject::Type(_) => "type",
        MontyObject::Exception { .. } => "exception",
        _ => "object",
    }
}

/// A key that is no text, for a message. Only plain values are keys, so this is bounded but for a tuple's elements.
fn short_repr(key: &MontyObject) -> String {
    match key {
        MontyObject::None | MontyObject::Bool(_) | MontyObject::Int(_) | MontyObject::Float(_) => {
            key.py_repr()
        }
        other => type_of(other).to_owned(),
    }
}

fn date_text(date: &MontyDate) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn clock_text(hour: u8, minute: u8, second: u8, microsecond: u32) -> String {
    let fraction = if microsecond == 0 { String::new() } else { format!(".{microsecond:06}") };
    format!("{hour:02}:{minute:02}:{second:02}{fraction}")
}

fn offset_text(seconds: Option<i32>) -> String {
    let Some(seconds) = seconds else { return String::new() };
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn time_text(time: &MontyTime) -> String {
    let clock = clock_text(time.hour, time.minute, time.second, time.microsecond);
    format!("{clock}{}", offset_text(time.offset_seconds))
}

fn date_time_text(time: &MontyDateTime) -> String {
    let date = MontyDate { year: time.year, month: time.month, day: time.day };
    let clock = clock_text(time.hour, time.minute, time.second, time.microsecond);
    format!("{}T{clock}{}", date_text(&date), offset_text(time.offset_seconds))
}

pub(super) fn from_json(value: &Value) -> MontyObject {
    match value {
        Value::Null => MontyObject::None,
        Value::Bool(value) => MontyObject::Bool(*value),
        Value::Number(number) => from_number(number),
        Value::String(text) => MontyObject::String(text.clone()),
        Value::Array(elements) => MontyObject::List(elements.iter().map(from_json).collect()),
        Value::Object(fields) => {
            let pair = |(key, value): (&String, &Value)| (MontyObject::String(key.clone()), from_json(value));
            MontyObject::dict(fields.iter().map(pair).collect::<Vec<_>>())
        }
    }
}

fn from_number(number: &Number) -> MontyObject {
    if let Some(value) = number.as_i64() {
        return MontyObject::Int(value);
    }
    if number.is_u64()
        && let Ok(value) = number.to_string().parse()
    {
        return MontyObject::BigInt(value);
    }
    MontyObject::Float(number.as_f64().unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn error(value: MontyObject) -> String {
        to_json(value, &mut 1000).unwrap_err()
    }

    #[test]
    fn values_that_json_cannot_express_are_errors() {
        assert_eq!(error(MontyObject::Float(f64::NAN)), "has the number `NaN`, which is not finite");
        assert_eq!(
            error(MontyObject::List(vec![MontyObject::Float(f64::INFINITY)])),
            "has the number `inf`, which is not finite"
        );
        assert!(error(MontyObject::Set(vec![])).starts_with("has a value of type `set`"));
        assert!(error(MontyObject::Bytes(vec![1])).starts_with("has a value of type `bytes`"));
        assert_eq!(
            error(MontyObject::BigInt("99999999999999999999".parse().unwrap())),
            "has an integer beyond 64 bits"
        );
        let keys = MontyObject::dict(vec![(MontyObject::Int(1), MontyObject::None)]);
        assert_eq!(error(keys), "has the key `1`, and keys must be text");
        assert_eq!(error(MontyObject::Cycle(1, "[...]".to_owned())), "contains itself");
        assert_eq!(error(MontyObject::String("x".repeat(1000))), "is too large");
        assert_eq!(error(MontyObject::List(vec![MontyObject::None; 300])), "is too large");
        assert_eq!(error(MontyObject::List(vec![MontyObject::List(vec![]); 600])), "is too large");
        assert_eq!(error(MontyObject::String("\0".repeat(170))), "is too large");
        let deep = (0..100).fold(MontyObject::None, |inner, _| MontyObject::List(vec![inner]));
        assert_eq!(error(deep), "is nested deeper than 64 levels");
    }

    #[test]
    fn dates_are_text_as_tools_expect_it() {
        let date = MontyDate { year: 2026, month: 3, day: 7 };
        assert_eq!(to_json(MontyObject::Date(date), &mut 1000), Ok(json!("2026-03-07")));
        let time = MontyDateTime {
            year: 2026,
            month: 3,
            day: 7,
            hour: 9,
            minute: 5,
            second: 0,
            microsecond: 250,
            offset_seconds: Some(-5400),
            timezone_name: None,
        };
        assert_eq!(
            to_json(MontyObject::DateTime(time), &mut 1000),
            Ok(json!("2026-03-07T09:05:00.000250-01:30"))
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(".{0,6}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_survives_the_way_through_the_interpreter(value in any_json()) {
            let mut left = 1_000_000;
            let json = to_json(from_json(&value), &mut left);
            prop_assert_eq!(json.as_ref(), Ok(&value));
            prop_assert!(value.to_string().len() <= 1_000_000 - left);
        }
    }
}
