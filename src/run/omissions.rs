//! The lines that every answer has to contain: writes that were done, writes that the user has to confirm, and
//! requested work that was not done.

use std::cell::OnceCell;

use serde_json::Value;

use super::event::{Effect, Outcome};
use super::state::{CallState, CallStatus, RunState};
use crate::invisible;
use crate::language::{self, ActReport, lower_words};
use crate::plan::StepStatus;
use crate::sentences::{self, OmissionTexts};

/// Maximum length of a read with its arguments, in characters.
const MAX_READ: usize = 200;

impl RunState {
    /// `answer` with a line appended for everything that it has to mention and does not.
    pub fn with_omissions(&self, answer: &str) -> String {
        if !self.settings().has_rules(1) {
            return answer.to_owned();
        }
        let words = OmissionTexts::of(self.language());
        if self.settings().has_rules(2) {
            return self.with_visible_omissions(answer, words);
        }
        let text = NormalisedAnswer::of(answer);
        let mut lines: Vec<String> = Vec::new();
        for (number, call) in &self.calls {
            lines.extend(self.omitted_write(*number, call, &text, words));
        }
        for step in self.steps.values().filter(|step| step.status == StepStatus::NeedsInput) {
            let questions = self.unconfirmed(step).filter_map(|call| call.requested.confirm.as_ref());
            let asked = questions.map(|confirm| confirm.question.clone());
            lines.extend(asked.filter(|question| !text.has(question)));
        }
        for part in self.unserved().filter(|part| !text.mentions(part)) {
            lines.push(format!("{} {part}", words.unserved));
        }
        lines.extend(self.cut_line(words));
        lines.dedup();
        lines.retain(|line| !text.has(line));
        if lines.is_empty() {
            return answer.to_owned();
        }
        format!("{}\n{}", answer.trim_end(), lines.join("\n")).trim_start().to_owned()
    }

    /// Like [`Self::with_omissions`] from revision 2 of the rules on: only visible text mentions something,
    /// and the open questions are the last lines, so that a yes can mean nothing else.
    fn with_visible_omissions(&self, answer: &str, words: &OmissionTexts) -> String {
        let shown = visible_text(answer);
        let text = NormalisedAnswer::of(&shown);
        let questions = self.open_questions();
        let mut lines: Vec<String> = Vec::new();
        for (number, call) in &self.calls {
            let line = self.omitted_write(*number, call, &text, words);
            lines.extend(line.map(|line| separate_lines(&line, &call.requested.arguments)));
        }
        lines.extend(self.failed_write_lines(&shown, &text, words));
        lines.extend(self.unserved_lines(&text, words));
        lines.extend(self.missed_read_lines(&shown, &text));
        lines.extend(self.failed_read_lines(&shown, &text));
        lines.extend(self.cut_line(words));
        lines.extend(self.odd_lines(words));
        lines.extend(self.earlier_lines(words));
        lines.extend(self.left_out_line(&text, words));
        lines.extend(self.undecided_line(words));
        lines.dedup();
        lines.retain(|line| !text.has(line));
        let answer = if questions.is_empty() { answer.to_owned() } else { disarm(answer) };
        let questions: Vec<String> = questions.iter().map(|question| disarm(question)).collect();
        if !lines.is_empty() || !ends_with_lines(answer.trim_end(), &questions) {
            lines.extend(questions);
        }
        if lines.is_empty() {
            // Byte for byte what was streamed.
            return answer;
        }
        format!("{}\n{}", answer.trim_end(), lines.join("\n")).trim_start().to_owned()
    }

    /// The lines for parts of the request that no step serves, with the reason if their tool is switched off.
    fn unserved_lines(&self, text: &NormalisedAnswer, words: &OmissionTexts) -> Vec<String> {
        let line = |part: &str| match self.unavailable().any(|off| off == part) {
            true => sentences::not_available(self.language(), part),
            false => format!("{} {part}", words.unserved),
        };
        self.unserved().filter(|part| !text.mentions(part)).map(line).collect()
    }

    /// The line for a write that was done, or may have been, and that the text does not mention.
    fn omitted_write(
        &self,
        number: u32,
        call: &CallState,
        text: &NormalisedAnswer,
        words: &OmissionTexts,
    ) -> Option<String> {
        let counts = call.requested.effect == Effect::Write
            && call.attempts > 0
            && call.undoes.is_none()
            && !self.is_undone(call);
        let CallStatus::Done { outcome } = &call.status else { return None };
        if !counts {
            return None;
        }
        let (line, result) = match outcome {
            Outcome::Ok { say: Some(say), result, .. } => (say.clone(), Some(result)),
            Outcome::Ok { result, .. } => (self.describe_call(call), Some(result)),
            Outcome::Unknown { .. } => (format!("{}: {}", self.describe_call(call), words.unknown), None),
            Outcome::Refused { .. } | Outcome::Failed { .. } => return None,
        };
        // A value shared with another write does not show which one the text means, so each write needs a value of its
        // own.
        let of_arguments = || leaf_values(&call.requested.arguments);
        let result = result.filter(|_| of_arguments().next().is_none());
        let own: Vec<String> = of_arguments()
            .chain(result.into_iter().flat_map(leaf_values))
            .filter(|value| !self.is_shared(number, value))
            .collect();
        let is_mentioned = text.has(&line)
            || (!own.is_empty() && own.iter().filter(|value| text.has_value(value)).count() > own.len() / 2)
            || (own.is_empty() && text.names_tool(&call.requested.tool));
        (!is_mentioned).then_some(line)
    }

    /// The lines for writes that failed and that the text does not mention: because it denies nothing, because it also
    /// claims something, or because it lacks the values that identify this one among several.
    fn failed_write_lines(&self, shown: &str, text: &NormalisedAnswer, words: &OmissionTexts) -> Vec<String> {
        if !self.settings().has_rules(7) {
            return Vec::new();
        }
        let mut failed = self.failed_writes();
        if self.settings().has_rules(8) {
            // A program whose changes met a conflict is executed again, and reports the result itself.
            failed.retain(|(call, _)| !call.is_commit);
        }
        if failed.is_empty() {
            return Vec::new();
        }
        let is_denied = match self.settings().has_rules(8) {
            true => ActReport::of(shown, |_| false).is_denied(),
            false => language::denies(shown),
        };
        let is_only = failed.len() == 1 || !self.settings().has_rules(8);
        let is_told = |call: &CallState, told: &str| {
            let mut values = leaf_values(&call.requested.arguments);
            text.has(told) || (is_denied && (is_only || values.any(|value| text.has_value(&value))))
        };
        let untold = failed.into_iter().filter(|(call, told)| !is_told(call, told));
        untold
            .map(|(call, told)| {
                separate_lines(&format!("{} {told}", words.unserved), &call.requested.arguments)
            })
            .collect()
    }

    /// The text that users read about a call without a result, and the same text with the call.
    fn told_about(&self, number: u32, call: &CallState) -> (String, String) {
        let about = self.outcome(number).map(|outcome| outcome.user_text(self.language()));
        let about = about.unwrap_or_default();
        let call_in_words = language::text::shorten_to_words(&self.describe_call(call), MAX_READ);
        let line = format!("{call_in_words}: {about}");
        (about, line)
    }

    /// The lines for the reads of steps without a result, if the text denies nothing and contains nothing of what users
    /// read about them.
    fn failed_read_lines(&self, shown: &str, text: &NormalisedAnswer) -> Vec<String> {
        let steps = self.plan_steps().filter(|(_, step)| self.is_in_round(step));
        let mut failed = steps.flat_map(|(_, step)| self.failed_reads(step)).peekable();
        if failed.peek().is_none() || language::denies(shown) {
            return Vec::new();
        }
        let lines = failed.filter_map(|(number, call)| {
            let (about, line) = self.told_about(number, call);
            let is_told = !about.is_empty() && text.has(&about);
            (!is_told).then(|| separate_lines(&line, &call.requested.arguments))
        });
        lines.collect()
    }

    /// The lines for reads without a result that the text does not mention. A text mentions one if it contains one of
    /// that read's own values, or everything that users read about them; the line then belongs to that sentence.
    fn missed_read_lines(&self, shown: &str, text: &NormalisedAnswer) -> Vec<String> {
        let missed_line = |number: u32, call: &CallState| {
            let (about, line) = self.told_about(number, call);
            let own_values: Vec<String> = leaf_values(&call.requested.arguments)
                .filter(|value| !self.has_value_in_result(value))
                .collect();
            let is_denied = |sentence: &str| {
                let words = NormalisedAnswer::of(sentence);
                (own_values.is_empty() || own_values.iter().any(|value| words.has_value(value)))
                    && (language::denies(sentence) || words.has(&about))
            };
            let is_mentioned = text.has(&line) || sentences_of(shown).any(is_denied);
            (!is_mentioned).then(|| separate_lines(&line, &call.requested.arguments))
        };
        let steps = self.plan_steps().filter(|(_, step)| self.is_in_round(step));
        let missed = steps.flat_map(|(_, step)| self.missed_reads(step));
        let mut lines: Vec<String> = missed.filter_map(|(number, call)| missed_line(number, call)).collect();
        lines.dedup();
        lines
    }

    /// Whether a read that has a result was made with this value, so that the value does not identify another read.
    fn has_value_in_result(&self, value: &str) -> bool {
        let mut found = self.calls.iter().filter(|(number, _)| self.is_effective(**number));
        found.any(|(_, call)| leaf_values(&call.requested.arguments).any(|one| one == value))
    }

    /// Whether another executed write has the same value.
    fn is_shared(&self, number: u32, value: &str) -> bool {
        self.calls.iter().any(|(other, call)| {
            *other != number
                // A call and its substitute have one line.
                && self.place(*other) != self.place(number)
                && call.requested.effect == Effect::Write
                && call.attempts > 0
                && leaf_values(&call.requested.arguments).any(|one| one == value)
        })
    }

    /// The tool and its arguments, on one line.
    pub fn describe_call(&self, call: &CallState) -> String {
        let exact = |text: &str| match self.settings().has_rules(2) {
            true => invisible::exact_line(text),
            false => text.to_owned(),
        };
        let arguments = call.requested.arguments.as_object().into_iter().flatten();
        let values: Vec<String> = arguments
            .map(|(name, value)| match value {
                Value::String(text) => format!("{}: {}", exact(name), exact(text)),
                other => format!("{}: {}", exact(name), exact(&other.to_string())),
            })
            .collect();
        let tool = &call.requested.tool;
        if values.is_empty() { tool.clone() } else { format!("{tool} ({})", values.join(", ")) }
    }

    /// The lines for writes that were done and whose results are not as their tools declare.
    fn odd_lines(&self, words: &OmissionTexts) -> Vec<String> {
        let odd = self.calls.values().filter(|call| !call.breaches.is_empty() && !self.is_undone(call));
        let line = |call: &CallState| {
            separate_lines(&format!("{}: {}", self.describe_call(call), words.odd), &call.requested.arguments)
        };
        odd.map(line).collect()
    }

    /// The lines for results of earlier runs, with their local time. They are always added: a text that contains the
    /// values does not say how old they are.
    fn earlier_lines(&self, words: &OmissionTexts) -> Vec<String> {
        let Some(now) = self.started.as_ref().map(|started| &started.now) else { return Vec::new() };
        let line = |call: &CallState| {
            let at = call.stale_since?.to_zoned(now.time_zone().clone());
            let form = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
            let time = at.strftime(form);
            let call = separate_lines(&self.describe_call(call), &call.requested.arguments);
            Some(format!("{} {time}, {} {call}", words.as_of, words.since_unavailable))
        };
        self.calls.values().filter_map(line).collect()
    }

    /// The line for optional calls that failed and were left out, and that the text does not mention.
    fn left_out_line(&self, text: &NormalisedAnswer, words: &OmissionTexts) -> Option<String> {
        let mut calls: Vec<String> = Vec::new();
        for call in self.calls.values().filter(|call| call.left_out) {
            let line = separate_lines(&self.describe_call(call), &call.requested.arguments);
            if !calls.contains(&line) && !text.has(&line) {
                calls.push(line);
            }
        }
        (!calls.is_empty()).then(|| format!("{} {}", words.left_out, calls.join("; ")))
    }

    /// The line for tools that nobody could decide about.
    fn undecided_line(&self, words: &OmissionTexts) -> Option<String> {
        let tools: Vec<&str> = self.steps.values().flat_map(|step| self.undecided(step)).collect();
        (!tools.is_empty()).then(|| format!("{} {}", words.undecided, tools.join("; ")))
    }

    fn cut_line(&self, words: &OmissionTexts) -> Option<String> {
        let mut tools: Vec<String> = Vec::new();
        for call in self.steps.values().flat_map(|step| self.cut_calls(step)) {
            let line = self.describe_call(call);
            if !tools.contains(&line) {
                tools.push(line);
            }
        }
        (!tools.is_empty()).then(|| format!("{} {}", words.cut, tools.join("; ")))
    }
}

/// Returns what a reader sees of an answer shown as Markdown: without HTML comments and link references.
pub(crate) fn visible_text(answer: &str) -> String {
    let mut out = String::with_capacity(answer.len());
    let mut rest = answer;
    while let Some((before, hidden)) = rest.split_once("<!--") {
        out.push_str(before);
        rest = hidden.split_once("-->").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    let is_reference = |line: &&str| line.trim_start().starts_with('[') && line.contains("]:");
    let mut shown = String::with_capacity(out.len());
    for (at, line) in out.lines().filter(|line| !is_reference(line)).enumerate() {
        if at > 0 {
            shown.push('\n');
        }
        shown.push_str(line);
    }
    shown
}

fn sentences_of(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['.', '!', '?', '\n']).map(str::trim).filter(|sentence| !sentence.is_empty())
}

/// The answer with a space after each `<` that could open HTML, which might hide what follows it.
fn disarm(answer: &str) -> String {
    let mut out = String::with_capacity(answer.len());
    let mut rest = answer.chars().peekable();
    while let Some(c) = rest.next() {
        out.push(c);
        if c == '<' && rest.peek().is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '!' | '?' | '/')) {
            out.push(' ');
        }
    }
    out
}

fn ends_with_lines(text: &str, lines: &[String]) -> bool {
    let own = lines.join("\n");
    let before = text.strip_suffix(own.trim());
    lines.is_empty() || before.is_some_and(|before| before.is_empty() || before.ends_with('\n'))
}

/// A sentence about a call whose arguments cannot add lines of their own.
fn separate_lines(line: &str, arguments: &Value) -> String {
    if leaf_values(arguments).any(|value| invisible::exact_line(&value) != value) {
        return invisible::escape_text(line);
    }
    line.lines().map(invisible::escape_text).collect::<Vec<_>>().join("\n")
}

/// The strings and numbers of a value, as text.
fn leaf_values(value: &Value) -> Box<dyn Iterator<Item = String> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.trim().to_owned()).filter(|t| !t.is_empty())),
        Value::Number(number) => Box::new(std::iter::once(number.to_string())),
        Value::Array(items) => Box::new(items.iter().flat_map(leaf_values)),
        Value::Object(fields) => Box::new(fields.values().flat_map(leaf_values)),
        Value::Null | Value::Bool(_) => Box::new(std::iter::empty()),
    }
}

/// An answer, normalised for searching values and phrases. Normalised on first use, because usually nothing was left
/// out.
struct NormalisedAnswer<'a> {
    text: &'a str,
    plain: OnceCell<String>,
    words: OnceCell<Vec<String>>,
}

impl<'a> NormalisedAnswer<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, plain: OnceCell::new(), words: OnceCell::new() }
    }

    /// In lower case, with single spaces.
    fn plain(&self) -> &str {
        self.plain.get_or_init(|| plain(self.text))
    }

    fn words(&self) -> &[String] {
        self.words.get_or_init(|| lower_words(self.text))
    }

    /// Whether it contains the phrase, ignoring whitespace and case.
    fn has(&self, phrase: &str) -> bool {
        self.plain().contains(&plain(phrase))
    }

    /// Whether it contains the value: a date by its day as a separate number, anything else by its words.
    fn has_value(&self, value: &str) -> bool {
        if let Some(day) = day_of_month(value) {
            return self.words().iter().any(|word| word.parse() == Ok(day));
        }
        let own = lower_words(value);
        !own.is_empty() && self.words().windows(own.len()).any(|part| part == own.as_slice())
    }

    /// Whether it mentions a part of a request: contains most of its long words.
    fn mentions(&self, part: &str) -> bool {
        let own: Vec<String> =
            lower_words(part).into_iter().filter(|word| word.chars().count() > 3).collect();
        if own.is_empty() {
            return self.has(part);
        }
        let mentioned = own.iter().filter(|word| self.words().contains(word)).count();
        mentioned * 2 > own.len()
    }

    /// Whether it contains a word of the tool's name, in any form.
    fn names_tool(&self, tool: &str) -> bool {
        let stems = split_name(tool).into_iter().filter(|word| word.chars().count() > 3);
        let stems: Vec<String> = stems.map(|word| word.chars().take(4).collect()).collect();
        stems.iter().any(|stem| self.words().iter().any(|word| word.starts_with(stem.as_str())))
    }
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// `MakeRequest` as `make`, `request`.
fn split_name(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut before_is_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || out.is_empty() || (c.is_uppercase() && before_is_lower) {
            out.push(String::new());
        }
        if let Some(last) = out.last_mut().filter(|_| c.is_alphanumeric()) {
            last.extend(c.to_lowercase());
        }
        before_is_lower = c.is_lowercase() || c.is_numeric();
    }
    out
}

/// The day of an ISO date, with or without a time.
fn day_of_month(value: &str) -> Option<i8> {
    value.get(..10)?.parse::<jiff::civil::Date>().ok().map(|date| date.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_any_spelling() {
        let text = NormalisedAnswer::of(
            "Ho richiesto le ferie dal 5 ottobre 2026 per Anna Bianchi, richiesta n. 41.",
        );
        for value in ["2026-10-05", "Anna Bianchi", "41", "anna"] {
            assert!(text.has_value(value), "{value}");
        }
        for value in ["2026-10-06", "Bianchi Anna", "4", "Luca"] {
            assert!(!text.has_value(value), "{value}");
        }
    }

    #[test]
    fn names_of_tools_are_split_into_words() {
        assert_eq!(split_name("MakeRequest"), ["make", "request"]);
        assert_eq!(split_name("cancel_order2"), ["cancel", "order2"]);
        assert!(NormalisedAnswer::of("The lights are locked now.").names_tool("LockDoors"));
        assert!(!NormalisedAnswer::of("Done.").names_tool("LockDoors"));
    }
}
