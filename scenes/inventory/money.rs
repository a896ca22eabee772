//! Money in cents, exactly.

use serde_json::{Number, Value, json};

/// An amount as text: `22.90`.
pub fn text(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.unsigned_abs() / 100, cents.unsigned_abs() % 100)
}

/// An amount as a JSON number, as tools take it.
pub fn number(cents: i64) -> Value {
    // Written with two decimals and read again: the number that these decimals mean.
    text(cents).parse::<f64>().map_or(Value::Null, |amount| json!(amount))
}

/// The cents of an amount; `None` if it has parts of cents, or is not above zero.
pub fn cents(amount: &Number) -> Option<i64> {
    let text = amount.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // `25.0` has no part of a cent, either.
    let part = part.trim_end_matches('0');
    if part.len() > 2 || !digits(whole) || !digits(part) {
        return None;
    }
    let cents: i64 = format!("{whole}{part:0<2}").parse().ok()?;
    (cents > 0).then_some(cents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_of_an_amount_are_exact_or_there_are_none() {
        let read = |text: &str| cents(&serde_json::from_str(text).unwrap());
        for (amount, expected) in
            [("24.5", 2450), ("24", 2400), ("0.07", 7), ("25.0", 2500), ("1234567.89", 123_456_789)]
        {
            assert_eq!(read(amount), Some(expected), "{amount}");
        }
        for amount in ["24.505", "0", "-3", "1e30", "0.001", "1e-9"] {
            assert_eq!(read(amount), None, "{amount}");
        }
        assert_eq!(
            (text(2290), text(-7), number(2450)),
            ("22.90".to_owned(), "-0.07".to_owned(), json!(24.5))
        );
    }
}
