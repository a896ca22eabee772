//! Values of cells: exact, and of the column's declared kind.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::invisible::is_control_or_bidi;

/// The longest text of a cell, in bytes.
const MAX_TEXT: usize = 2_048;

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// A text on one line, of at most 2,048 bytes.
    Text,
    /// A whole number: a quantity, or money in cents. Floating-point numbers and booleans are none.
    Integer,
    /// An exact decimal number with this number of decimals, written as text: `"1.50"`.
    Decimal {
        /// Decimals, from 1 to 9.
        scale: u8,
    },
    /// True or false.
    Boolean,
    /// A day, `YYYY-MM-DD`.
    Day,
    /// A moment in UTC, `YYYY-MM-DDTHH:MM:SSZ`.
    Time,
}

/// The value of a cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CellValue {
    /// Nothing.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// An exact decimal number.
    Decimal {
        /// The number in its smallest units: 150 for `1.50`.
        units: i64,
        /// How many decimals it has.
        scale: u8,
    },
    /// A text, a day or a moment.
    Text(String),
}

impl CellValue {
    /// The value in JSON, as programs see it.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::from(*value),
            Self::Integer(value) => Value::from(*value),
            Self::Decimal { units, scale } => Value::from(decimal_text(*units, *scale)),
            Self::Text(value) => Value::from(value.as_str()),
        }
    }

    /// The text of a text, a day or a moment.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number that it is, in smallest units of a decimal one.
    pub fn as_units(&self) -> Option<i64> {
        match self {
            Self::Integer(units) | Self::Decimal { units, .. } => Some(*units),
            _ => None,
        }
    }
}

impl std::fmt::Display for CellValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Decimal { units, scale } => f.write_str(&decimal_text(*units, *scale)),
            Self::Text(value) => write!(f, "{value:?}"),
        }
    }
}

impl Serialize for CellValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Decimal { units, scale } => serializer.serialize_str(&decimal_text(*units, *scale)),
            Self::Text(value) => serializer.serialize_str(value),
        }
    }
}

fn decimal_text(units: i64, scale: u8) -> String {
    let one = 10_u64.pow(u32::from(scale));
    let sign = if units < 0 { "-" } else { "" };
    let width = usize::from(scale);
    format!("{sign}{}.{:0width$}", units.unsigned_abs() / one, units.unsigned_abs() % one)
}

impl ColumnKind {
    /// Describes a value of this kind, for messages.
    pub fn expected(self) -> String {
        match self {
            Self::Text => format!("a text on one line of at most {MAX_TEXT} bytes"),
            Self::Integer => "a whole number (no float, no boolean)".to_owned(),
            Self::Decimal { scale } => {
                format!("a number with {scale} decimals as text, such as \"{}\"", decimal_text(0, scale))
            }
            Self::Boolean => "true or false".to_owned(),
            Self::Day => "a day as text, YYYY-MM-DD".to_owned(),
            Self::Time => "a moment in UTC as text, YYYY-MM-DDTHH:MM:SSZ".to_owned(),
        }
    }

    /// Reads a value that is not null; `None` if it is not of this kind.
    pub fn read(self, value: &Value) -> Option<CellValue> {
        match (self, value) {
            // A person must see the actual value of a change.
            (Self::Text, Value::String(text))
                if text.len() <= MAX_TEXT && !text.chars().any(is_control_or_bidi) =>
            {
                Some(CellValue::Text(text.clone()))
            }
            (Self::Integer, Value::Number(number)) => number.as_i64().map(CellValue::Integer),
            (Self::Decimal { scale }, Value::Number(number)) => {
                let units = number.as_i64()?.checked_mul(10_i64.pow(u32::from(scale)))?;
                Some(CellValue::Decimal { units, scale })
            }
            (Self::Decimal { scale }, Value::String(text)) => {
                decimal_units(text, scale).map(|units| CellValue::Decimal { units, scale })
            }
            (Self::Boolean, Value::Bool(value)) => Some(CellValue::Boolean(*value)),
            (Self::Day, Value::String(text)) => {
                let day: Date = text.parse().ok()?;
                // Only this form sorts like the days.
                (day.year() >= 0 && day.to_string() == *text).then(|| CellValue::Text(text.clone()))
            }
            (Self::Time, Value::String(text)) => {
                let moment: Timestamp = text.parse().ok()?;
                let written = moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                (!text.starts_with('-') && written == *text).then(|| CellValue::Text(text.clone()))
            }
            _ => None,
        }
    }
}

/// The smallest units of a decimal number in text; `None` if it is not one or has more decimals.
fn decimal_units(text: &str, scale: u8) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, part) = match digits.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (digits, ""),
    };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let scale = usize::from(scale);
    if whole.is_empty() || part.len() > scale || !plain(whole) || !plain(part) {
        return None;
    }
    let units: i64 = format!("{whole}{part:0<scale$}").parse().ok()?;
    Some(if negative { -units } else { units })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_and_cents_are_whole_numbers_and_nothing_that_looks_like_one() {
        assert_eq!(ColumnKind::Integer.read(&json!(-3)), Some(CellValue::Integer(-3)));
        for wrong in
            [json!(3.0), json!(1e3), json!(true), json!("3"), json!(null), json!(u64::MAX), json!([3])]
        {
            assert_eq!(ColumnKind::Integer.read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn decimals_are_exact_and_have_one_written_form() {
        let kind = ColumnKind::Decimal { scale: 2 };
        for (text, written) in [("1.5", "1.50"), ("-0.05", "-0.05"), ("12", "12.00"), ("0", "0.00")] {
            assert_eq!(kind.read(&json!(text)).unwrap().to_json(), json!(written));
        }
        for wrong in ["1.505", "", ".5", "1e2", "NaN", "-", "+1", "1.", "1.5 "] {
            assert_eq!(kind.read(&json!(wrong)), None, "{wrong}");
        }
        assert_eq!(kind.read(&json!(0.5)), None, "a float is not exact");
    }

    #[test]
    fn text_is_on_one_line_and_looks_like_what_it_is() {
        assert!(ColumnKind::Text.read(&json!("tazzina da caffè ☕")).is_some());
        for wrong in ["a\nb", "a\u{202e}b", "\u{0}", "\u{1b}[31m", &"x".repeat(2_049)] {
            assert_eq!(ColumnKind::Text.read(&json!(wrong)), None, "{wrong:?}");
        }
    }

    #[test]
    fn days_and_moments_have_the_form_that_sorts_as_they_do() {
        assert!(ColumnKind::Day.read(&json!("2026-02-28")).is_some());
        assert!(ColumnKind::Day.read(&json!("2026-02-30")).is_none());
        assert!(ColumnKind::Day.read(&json!("20260228")).is_none());
        assert!(ColumnKind::Time.read(&json!("2026-02-28T10:00:00Z")).is_some());
        assert!(ColumnKind::Time.read(&json!("2026-02-28T10:00:00.5Z")).is_none());
        assert!(ColumnKind::Time.read(&json!("2026-02-28T10:00:00+01:00")).is_none());
    }
}
