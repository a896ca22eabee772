//! Numbers as they are written, compared exactly.

/// A number that is not negative: digits without zeros at their ends, times a power of ten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    digits: String,
    power: i32,
}

impl Decimal {
    /// A whole number.
    pub fn whole(value: u64) -> Self {
        Self::of_parts(&value.to_string(), "")
    }

    /// The number with these digits before and after its mark.
    fn of_parts(whole: &str, fraction: &str) -> Self {
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let kept = digits.trim_end_matches('0');
        if kept.is_empty() {
            return Self { digits: String::new(), power: 0 };
        }
        let zeros = i32::try_from(digits.len() - kept.len()).unwrap_or(i32::MAX);
        let behind = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
        Self { digits: kept.to_owned(), power: zeros.saturating_sub(behind) }
    }

    /// The number times this power of ten.
    pub fn times_ten_to(mut self, power: i32) -> Self {
        if !self.digits.is_empty() {
            self.power = self.power.saturating_add(power);
        }
        self
    }
}

/// How a language marks groups of digits and decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DigitMarks {
    /// `1,234.5`
    PointDecimal,
    /// `1.234,5`
    CommaDecimal,
    /// Not known: both are possible.
    Unknown,
}

impl DigitMarks {
    /// Those of a language (ISO 639-1).
    pub fn of(language: Option<&str>) -> Self {
        match language {
            Some("en" | "zh" | "ja" | "ko") => DigitMarks::PointDecimal,
            Some("it" | "de" | "fr" | "es" | "pt" | "nl" | "pl") => DigitMarks::CommaDecimal,
            _ => DigitMarks::Unknown,
        }
    }
}

/// The values that digits with marks may have: `2,500` is 2500 in English and 2.5 in Italian. None if they are no
/// number, as `1.2.3`.
pub(super) fn readings(written: &str, marks: DigitMarks) -> Vec<Decimal> {
    let parts: Vec<&str> = written.split(['.', ',']).collect();
    if parts.iter().any(|part| part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit())) {
        return Vec::new();
    }
    let mut used = written.chars().filter(|c| matches!(c, '.' | ','));
    let [head @ .., last] = parts.as_slice() else { return Vec::new() };
    let Some(first_mark) = used.next() else { return vec![Decimal::of_parts(last, "")] };
    let last_mark = used.next_back().unwrap_or(first_mark);
    let are_groups = |parts: &[&str]| parts.iter().skip(1).all(|part| part.len() == 3);
    let starts_group =
        head.first().is_some_and(|part| (1..=3).contains(&part.len()) && !part.starts_with('0'));
    let grouped = || Decimal::of_parts(&parts.concat(), "");
    let decimal = || Decimal::of_parts(&head.concat(), last);
    let inner_marks = written.chars().filter(|c| *c == last_mark).count();
    if first_mark != last_mark {
        // Two marks: the last one is the decimal one.
        return if inner_marks == 1 && are_groups(head) && starts_group {
            vec![decimal()]
        } else {
            Vec::new()
        };
    }
    if inner_marks > 1 {
        return if are_groups(&parts) && starts_group { vec![grouped()] } else { Vec::new() };
    }
    if last.len() != 3 || !starts_group {
        return vec![decimal()];
    }
    match (marks, last_mark) {
        (DigitMarks::Unknown, _) => vec![grouped(), decimal()],
        (DigitMarks::PointDecimal, ',') | (DigitMarks::CommaDecimal, '.') => vec![grouped()],
        (DigitMarks::PointDecimal | DigitMarks::CommaDecimal, _) => vec![decimal()],
    }
}

/// The power of ten that a word behind a number multiplies it by.
pub(super) fn scale(norm: &str) -> Option<i32> {
    Some(match norm {
        "thousand" | "mila" | "mille" | "tausend" | "tsd" | "mil" | "k" => 3,
        "million" | "millions" | "milione" | "milioni" | "millionen" | "millones" | "millon" | "mln"
        | "mio" | "mn" => 6,
        "billion" | "billions" | "bn" | "miliardo" | "miliardi" | "milliard" | "milliards" | "milliarde"
        | "milliarden" | "mrd" => 9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(written: &str, marks: DigitMarks, values: &[(&str, &str)]) {
        let expected: Vec<Decimal> =
            values.iter().map(|(whole, part)| Decimal::of_parts(whole, part)).collect();
        assert_eq!(readings(written, marks), expected, "{written}");
    }

    #[test]
    fn marks_are_read_by_language() {
        use DigitMarks::{CommaDecimal, PointDecimal, Unknown};
        is("2,500", PointDecimal, &[("2500", "")]);
        is("2,500", CommaDecimal, &[("2", "5")]);
        is("2.500", Unknown, &[("2500", ""), ("2", "5")]);
        is("3,5", PointDecimal, &[("3", "5")]);
        is("0.500", CommaDecimal, &[("0", "5")]);
        is("1.234.567,80", PointDecimal, &[("1234567", "8")]);
        is("12.500", CommaDecimal, &[("12500", "")]);
        is("0042", Unknown, &[("42", "")]);
        for no_number in ["1.2.3", "1,,2", "1.23,4", "12345,678.9,1"] {
            is(no_number, Unknown, &[]);
        }
    }

    #[test]
    fn equal_values_are_equal_however_they_are_written() {
        let of = |text| readings(text, DigitMarks::PointDecimal).remove(0);
        assert_eq!(of("2.50").times_ten_to(6), of("2,500,000"));
        assert_eq!(of("2.5").times_ten_to(6), Decimal::whole(2_500_000));
        assert_eq!(of("0.0").times_ten_to(3), Decimal::whole(0));
    }
}
