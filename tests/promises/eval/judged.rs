//! The faults of a played request.

use std::collections::BTreeSet;

use jiff::civil::{Date, Weekday};
use serde_json::{Value, json};

use super::{MadeCall, PlayedRequest};
use crate::support::eval::{Call, Class};
use crate::support::mentions;

/// A labelled call that has not been executed completely.
struct ExpectedCall<'a> {
    call: &'a Call,
    /// The days still to be covered, for a call with a first and a last day.
    days: Option<BTreeSet<Date>>,
    done: bool,
}

fn range(from: Option<&Value>, to: Option<&Value>) -> Option<BTreeSet<Date>> {
    let day = |value: Option<&Value>| value?.as_str()?.parse::<Date>().ok();
    let (from, to) = (day(from)?, day(to)?);
    let days = from.series(jiff::Span::new().days(1)).take_while(|day| *day <= to);
    Some(days.collect()).filter(|days: &BTreeSet<Date>| !days.is_empty())
}

impl<'a> ExpectedCall<'a> {
    fn of(call: &'a Call) -> Self {
        let days = range(call.arguments.get("from"), call.arguments.get("to"));
        Self { call, days, done: false }
    }

    /// Whether the call's arguments match the label, apart from its days if they are a range.
    fn matches_label(&self, made: &MadeCall, words: &str) -> bool {
        let aside = |name: &str| self.days.is_some() && (name == "from" || name == "to");
        self.call.tool == made.tool
            && self.call.arguments.iter().filter(|(name, _)| !aside(name)).all(|(name, label)| {
                made.arguments.get(name).is_some_and(|given| mentions::matches_label(label, given, words))
            })
    }

    /// Missing non-working days are no loss.
    fn is_left(&self) -> bool {
        let working = |day: &Date| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
        self.days.as_ref().map_or(!self.done, |days| days.iter().any(working))
    }
}

/// Removes a call from the expected ones; false if it was not expected, or not again.
fn take(expected: &mut [ExpectedCall], made: &MadeCall, words: &str) -> bool {
    let days = range(made.arguments.get("from"), made.arguments.get("to"));
    let mut meant: Vec<&mut ExpectedCall> =
        expected.iter_mut().filter(|w| w.matches_label(made, words)).collect();
    if let Some(days) = days.filter(|_| meant.iter().any(|expected| expected.days.is_some())) {
        let left: BTreeSet<Date> = meant.iter().filter_map(|w| w.days.clone()).flatten().collect();
        if !days.is_subset(&left) {
            return !made.writes && days.iter().all(|day| left.is_empty() || left.contains(day));
        }
        meant.iter_mut().filter_map(|w| w.days.as_mut()).for_each(|left| left.retain(|d| !days.contains(d)));
        return true;
    }
    let Some(place) = meant.iter().position(|w| !w.done && w.days.is_none()) else {
        return !made.writes && meant.iter().any(|expected| expected.days.is_none());
    };
    meant[place].done = true;
    true
}

/// The faults of a request.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) wrong_writes: Vec<String>,
    /// Calls with a value that does not occur in the words.
    pub(super) invented: Vec<String>,
    pub(super) dropped: Vec<String>,
    /// Reads with other values than labelled.
    pub(super) other_reads: usize,
    pub(super) scenes: Option<bool>,
    pub(super) tools_out_of_scope: bool,
    pub(super) needless: bool,
    /// It did not ask, though it had to.
    pub(super) unasked: bool,
    /// Labelled calls that were not executed.
    pub(super) left: usize,
}

impl PlayedRequest {
    pub(super) fn judged(&self, today: Date) -> Judged {
        let words = self.labelled.words();
        let mut judged = Judged::default();
        let mut expected: Vec<ExpectedCall> = self.labelled.calls.iter().map(ExpectedCall::of).collect();
        let mut others = vec![];
        for made in &self.calls {
            let meant = take(&mut expected, made, &words) && self.extras_are_mentioned(made, &words, today);
            if !meant {
                others.push(made.tool.as_str());
                judged.other_reads += usize::from(!made.writes && self.is_labelled(&made.tool));
                judged.wrong_writes.extend(made.writes.then(|| made.to_string()));
            }
            if let Some(name) = self.unmentioned(made, &words, today) {
                judged.invented.push(format!("{name} of {made}"));
            }
        }
        let left: Vec<&Call> = expected.iter().filter(|w| w.is_left()).map(|w| w.call).collect();
        judged.left = left.len();
        judged.dropped = self.dropped(&left, others);
        let asked = self.status == "needs_input";
        judged.scenes = self.labelled.scenes.as_ref().and_then(|scenes| {
            // A question before planning has chosen no scene.
            let before = asked && self.scenes.is_empty() && (self.labelled.asks || self.labelled.may_ask);
            (!before).then(|| scenes.iter().cloned().collect::<BTreeSet<_>>() == self.scenes)
        });
        let uncalled_for = |made: &MadeCall| !self.labelled.optional.contains(&made.tool);
        judged.tools_out_of_scope =
            self.labelled.class == Class::OutOfScope && self.calls.iter().any(uncalled_for);
        judged.needless = self.labelled.plain && asked;
        judged.unasked = self.labelled.asks && !asked;
        judged
    }

    /// Whether the arguments without a label derive from the words.
    fn extras_are_mentioned(&self, made: &MadeCall, words: &str, today: Date) -> bool {
        let labels = self.labelled.calls.iter().filter(|call| call.tool == made.tool);
        let labels: BTreeSet<&String> = labels.flat_map(|call| call.arguments.keys()).collect();
        let mut extras = made.arguments.iter().filter(|(name, _)| !labels.contains(name));
        extras.all(|(name, value)| {
            mentions::is_mentioned(value, &made.schema["properties"][name], words, today)
        })
    }

    /// A required argument that is neither labelled nor mentioned.
    fn unmentioned<'a>(&self, made: &'a MadeCall, words: &str, today: Date) -> Option<&'a str> {
        let required = made.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let labelled = |name: &str, given: &Value| {
            let calls = self.labelled.calls.iter().filter(|call| call.tool == made.tool);
            let mut labels = calls.filter_map(|call| call.arguments.get(name));
            labels.any(|label| mentions::matches_label(label, given, words))
        };
        let mut given = required.filter_map(|name| made.arguments.get_key_value(name));
        let unmentioned = given.find(|(name, value)| {
            let schema = &made.schema["properties"][name.as_str()];
            !labelled(name, value) && !mentions::is_mentioned(value, schema, words, today)
        });
        unmentioned.map(|(name, _)| name.as_str())
    }

    fn is_labelled(&self, tool: &str) -> bool {
        self.labelled.calls.iter().any(|call| call.tool == tool)
    }

    /// What was silently dropped. A call with other values than labelled counts for its label, and so does
    /// another tool's call for the only one: those are other faults. A request that is declined as a whole
    /// has no dropped half.
    fn dropped(&self, left: &[&Call], mut others: Vec<&str>) -> Vec<String> {
        let mut dropped = vec![];
        let whole = self.labelled.calls.len() == 1 && self.labelled.undone.is_empty();
        if (self.scenes.is_empty() && self.calls.is_empty()) || (whole && !others.is_empty()) {
            return dropped;
        }
        for call in left.iter().filter(|_| self.status == "completed") {
            if let Some(place) = others.iter().position(|tool| *tool == call.tool) {
                others.remove(place);
            } else if !self.names(call) {
                dropped.push(format!("{} {}", call.tool, json!(call.arguments)));
            }
        }
        let answer = self.answer.to_lowercase();
        let unnamed = |words: &&String| !words.split('|').any(|w| answer.contains(&w.to_lowercase()));
        let unnamed = self.labelled.undone.iter().filter(unnamed);
        dropped.extend(unnamed.map(|words| format!("{words:?} is not named")));
        if self.status == "completed" && !self.labelled.undone.is_empty() {
            dropped.push("completed, though something was not done".into());
        }
        dropped
    }

    /// Whether the answer names one of the call's values that no executed call had. A call without such a
    /// value counts as named if the answer quotes some of the request.
    fn names(&self, call: &Call) -> bool {
        let words_of_answer = mentions::tokens(&self.answer);
        let words = self.labelled.words();
        let made: Vec<&Value> = self.calls.iter().flat_map(|made| made.arguments.values()).collect();
        let own = |label: &&Value| !made.iter().any(|given| mentions::matches_label(label, given, &words));
        let mut own = call.arguments.values().filter(own).peekable();
        if own.peek().is_none() {
            let quoted = self.answer.split('«').skip(1).filter_map(|rest| rest.split_once('»'));
            let quoted: Vec<&str> = quoted.map(|(span, _)| span.trim()).collect();
            return quoted.iter().any(|span| words.to_lowercase().contains(&span.to_lowercase()));
        }
        own.any(|value| match value {
            Value::String(text) => match text.parse::<Date>() {
                Ok(date) => self.answer.contains(text) || words_of_answer.contains(&date.day().to_string()),
                Err(_) => text
                    .split('|')
                    .any(|text| mentions::tokens(text).iter().all(|word| words_of_answer.contains(word))),
            },
            value => words_of_answer.contains(&value.to_string()),
        })
    }
}
