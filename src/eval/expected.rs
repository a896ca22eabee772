//! Which labelled calls the executed ones fulfil.

use std::collections::BTreeSet;

use jiff::civil::{Date, Weekday};
use serde_json::Value;

use super::executed::ExecutedCall;
use super::labels::LabelledCall;
use super::mentions;

/// A labelled call that has not been executed completely.
pub(super) struct ExpectedCall<'a> {
    pub(super) call: &'a LabelledCall,
    /// The days still to be covered, for a call with a first and a last day.
    days: Option<BTreeSet<Date>>,
    done: bool,
}

/// Maximum number of days of a range: a longer one counts as other arguments do.
const MAX_DAYS: usize = 3660;

fn range(from: Option<&Value>, to: Option<&Value>) -> Option<BTreeSet<Date>> {
    let day = |value: Option<&Value>| value?.as_str()?.parse::<Date>().ok();
    let (from, to) = (day(from)?, day(to)?);
    let days = from.series(jiff::Span::new().days(1)).take_while(|day| *day <= to).take(MAX_DAYS + 1);
    Some(days.collect()).filter(|days: &BTreeSet<Date>| (1..=MAX_DAYS).contains(&days.len()))
}

/// Returns whether a value is a day between the first and the last day of a labelled call.
pub(super) fn covers(call: &LabelledCall, value: &Value) -> bool {
    let day = value.as_str().and_then(|text| text.parse::<Date>().ok());
    let days = range(call.arguments.get("from"), call.arguments.get("to"));
    days.zip(day).is_some_and(|(days, day)| days.contains(&day))
}

impl<'a> ExpectedCall<'a> {
    pub(super) fn of(call: &'a LabelledCall) -> Self {
        let days = range(call.arguments.get("from"), call.arguments.get("to"));
        Self { call, days, done: false }
    }

    /// Whether the call's arguments match the label, apart from its days if they are a range.
    fn matches_label(&self, made: &ExecutedCall, words: &str) -> bool {
        let aside = |name: &str| self.days.is_some() && (name == "from" || name == "to");
        self.call.tool == made.tool
            && self.call.arguments.iter().filter(|(name, _)| !aside(name)).all(|(name, label)| {
                made.arguments.get(name).is_some_and(|given| mentions::matches_label(label, given, words))
            })
    }

    /// Returns whether it was not executed, or not completely. Missing non-working days are no loss.
    pub(super) fn is_left(&self) -> bool {
        let working = |day: &Date| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
        self.days.as_ref().map_or(!self.done, |days| days.iter().any(working))
    }
}

/// Removes a call from the expected ones; false if it was not expected, or not again.
pub(super) fn take(expected: &mut [ExpectedCall<'_>], made: &ExecutedCall, words: &str) -> bool {
    let days = range(made.arguments.get("from"), made.arguments.get("to"));
    let mut meant: Vec<&mut ExpectedCall<'_>> =
        expected.iter_mut().filter(|call| call.matches_label(made, words)).collect();
    if let Some(days) = days.filter(|_| meant.iter().any(|expected| expected.days.is_some())) {
        let left: BTreeSet<Date> = meant.iter().filter_map(|call| call.days.clone()).flatten().collect();
        if !days.is_subset(&left) {
            return !made.writes && days.iter().all(|day| left.is_empty() || left.contains(day));
        }
        let expected = meant.iter_mut().filter_map(|call| call.days.as_mut());
        expected.for_each(|left| left.retain(|day| !days.contains(day)));
        return true;
    }
    let Some(place) = meant.iter().position(|call| !call.done && call.days.is_none()) else {
        return !made.writes && meant.iter().any(|expected| expected.days.is_none());
    };
    meant[place].done = true;
    true
}
