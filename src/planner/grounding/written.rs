//! Days, times and durations in figures, as arguments and results have them.

use jiff::civil::{Date, DateTime, Time};
use jiff::{Timestamp, Zoned};

/// A day and a time as written.
pub(super) struct ParsedMoment {
    pub local: DateTime,
    /// With an offset or a zone.
    pub instant: Option<Timestamp>,
}

pub(super) fn day(text: &str) -> Option<Date> {
    let short = (8..=10).contains(&text.len()) && text.is_ascii();
    let figures = text.chars().all(|c| c.is_ascii_digit() || c == '-');
    let whole = text.len() == 10 || (text.len() == 8 && !text.contains('-') && text.starts_with("20"));
    (short && figures && whole).then(|| text.parse().ok()).flatten()
}

pub(super) fn moment(text: &str) -> Option<ParsedMoment> {
    if text.len() < 13 || text.len() > 60 || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let local: DateTime =
        text.get(..19).and_then(|t| t.parse().ok()).or_else(|| text.get(..16)?.parse().ok()).or_else(
            || {
                let head = text.split(['Z', '+', '[']).next()?;
                head.parse().ok()
            },
        )?;
    let zoned = text.parse::<Zoned>().ok().map(|z| z.timestamp());
    Some(ParsedMoment { local, instant: zoned.or_else(|| text.parse::<Timestamp>().ok()) })
}

pub(super) fn time(text: &str) -> Option<Time> {
    let figures = text.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '.'));
    let marks = text.matches(':').count();
    let padded = if text.find(':') == Some(1) { format!("0{text}") } else { text.to_owned() };
    (figures && (1..=2).contains(&marks)).then(|| padded.parse().ok()).flatten()
}

pub(super) fn month(text: &str) -> Option<(i16, i8)> {
    let (year, month) = text.split_once('-').filter(|(y, m)| y.len() == 4 && m.len() == 2)?;
    let month: i8 = month.parse().ok().filter(|m| (1..=12).contains(m))?;
    Some((year.parse().ok().filter(|y| (1900..2200).contains(y))?, month))
}

/// `PT90M`, in minutes.
pub(super) fn lasting(text: &str) -> Option<f64> {
    let span: jiff::Span = text.starts_with('P').then(|| text.parse().ok()).flatten()?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return None;
    }
    let days = f64::from(span.get_days()) + 7.0 * f64::from(span.get_weeks());
    let minutes = f64::from(span.get_hours()) * 60.0 + span.get_minutes() as f64;
    Some(days * 1440.0 + minutes + span.get_seconds() as f64 / 60.0)
}

pub(super) fn minute(time: Time) -> i32 {
    i32::from(time.hour()) * 60 + i32::from(time.minute())
}
