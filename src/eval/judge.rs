//! Compares an executed request with its labels.

use std::collections::BTreeSet;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::executed::{ExecutedCall, ExecutedRequest};
use super::expected::{ExpectedCall, covers, take};
use super::labels::{ExpectedTool, LabelledCall, LabelledRequest};
use super::mentions;
use crate::run::RunStatus;

/// A difference from the labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalFault {
    /// The kind.
    pub kind: EvalFaultKind,
    /// What was expected, or what happened instead.
    pub detail: String,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EvalFaultKind {
    /// It could not be executed.
    NotExecutable,
    /// A write that was not asked for, or with other values.
    WrongWrite,
    /// A required value that is not in the words.
    InventedValue,
    /// A part of the request was neither done nor named in the answer.
    DroppedPart,
    /// Another set of scenes took part or completed.
    WrongScenes,
    /// A tool was called though no scene serves the request.
    OutOfScopeCall,
    /// A question about a plain and complete request.
    NeedlessQuestion,
    /// No question, though one had to be asked.
    MissingQuestion,
    /// A labelled call was not executed.
    MissingCall,
    /// A read with other values than labelled. It is counted, and the request may be right.
    OtherRead,
    /// The second began before the first had ended.
    WrongOrder,
    /// A text is missing in the answer.
    NotMentioned,
    /// It ended otherwise.
    WrongStatus,
    /// What must never happen.
    Forbidden,
}

/// The labelled and the actual members of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetMatch {
    /// As labelled.
    pub expected: BTreeSet<String>,
    /// As executed.
    pub actual: BTreeSet<String>,
}

/// How an executed request compares with its labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The differences from the labels.
    pub faults: Vec<EvalFault>,
    /// The scenes, where they are labelled and were chosen.
    pub scenes: Option<SetMatch>,
    /// The tools, where the calls are labelled and no question took their place.
    pub tools: Option<SetMatch>,
    /// Labelled calls whose tool was called.
    pub reached: usize,
    /// Labelled calls that were executed with their arguments.
    pub matched: usize,
    /// Labelled calls that were not executed completely.
    pub left: usize,
    /// Pairs that were executed in their order.
    pub in_order: usize,
    /// Texts that the answer contains.
    pub mentioned: usize,
}

/// A rule that `never` names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ForbiddenThing<'a> {
    AnyCall,
    Twice(&'a str),
    EqualCalls,
}

/// The rule that `never` names; `None` for words that only people understand.
pub(super) fn forbidden(never: &str) -> Option<ForbiddenThing<'_>> {
    match never {
        "any tool call" => Some(ForbiddenThing::AnyCall),
        "the same tool with the same arguments twice" => Some(ForbiddenThing::EqualCalls),
        other => other.strip_suffix(" twice").filter(|tool| !tool.contains(' ')).map(ForbiddenThing::Twice),
    }
}

impl LabelledRequest {
    /// Returns whether it has a label that is judged.
    pub fn is_judged(&self) -> bool {
        self.scenes.is_some()
            || self.completes.is_some()
            || self.calls.is_some()
            || self.status.is_some()
            || self.plain
            || self.asks
            || self.nothing_written
            || ![self.tools.len(), self.before.len(), self.answer_mentions.len(), self.undone.len()]
                .iter()
                .all(|n| *n == 0)
            || self.never.iter().any(|never| forbidden(never).is_some())
    }

    /// Its conditions in words, which are not judged.
    pub fn unjudged(&self) -> Vec<&str> {
        let never = self.never.iter().filter(|never| forbidden(never).is_none());
        never.chain(&self.check).map(String::as_str).collect()
    }
}

impl Judgement {
    /// Returns whether everything is as labelled; a further read is allowed.
    pub fn is_right(&self) -> bool {
        self.faults.iter().all(|fault| fault.kind == EvalFaultKind::OtherRead)
    }

    /// How many faults of a kind there are.
    pub fn count(&self, kind: EvalFaultKind) -> usize {
        self.faults.iter().filter(|fault| fault.kind == kind).count()
    }

    fn add(&mut self, kind: EvalFaultKind, detail: impl Into<String>) {
        self.faults.push(EvalFault { kind, detail: detail.into() });
    }
}

/// Compares an executed request with its labels. `today` is the day of its clock.
pub fn judge(request: &LabelledRequest, executed: &ExecutedRequest, today: Date) -> Judgement {
    let judge = Judge { request, executed, today, words: request.words() };
    let mut judgement = Judgement::default();
    if executed.status.is_none() {
        judgement.left = request.labelled_calls().len();
        judgement.add(EvalFaultKind::NotExecutable, &executed.answer);
        return judgement;
    }
    judge.calls(&mut judgement);
    judge.scenes(&mut judgement);
    judge.tools(&mut judgement);
    judge.order(&mut judgement);
    judge.end(&mut judgement);
    judge.answer(&mut judgement);
    judge.never(&mut judgement);
    judgement
}

struct Judge<'a> {
    request: &'a LabelledRequest,
    executed: &'a ExecutedRequest,
    today: Date,
    words: String,
}

impl Judge<'_> {
    /// The calls against `calls`, `nothing_written` and `optional`.
    fn calls(&self, judgement: &mut Judgement) {
        let labelled = self.request.labelled_calls();
        let is_labelled = self.request.calls.is_some();
        let mut expected: Vec<ExpectedCall<'_>> = labelled.iter().map(ExpectedCall::of).collect();
        let mut others = Vec::new();
        for made in &self.executed.calls {
            let is_meant = take(&mut expected, made, &self.words) && self.extras_are_mentioned(made);
            if !is_meant {
                others.push(made.tool.as_str());
                if !made.writes && self.names_tool(&made.tool) {
                    judgement.add(EvalFaultKind::OtherRead, made.to_string());
                }
                if made.writes && (is_labelled || self.request.nothing_written) {
                    judgement.add(EvalFaultKind::WrongWrite, made.to_string());
                }
            }
            if let Some(name) = self.unmentioned(made).filter(|_| is_labelled) {
                judgement.add(EvalFaultKind::InventedValue, format!("{name} of {made}"));
            }
        }
        let left: Vec<&LabelledCall> =
            expected.iter().filter(|call| call.is_left()).map(|call| call.call).collect();
        let called: BTreeSet<&str> = self.executed.calls.iter().map(|call| call.tool.as_str()).collect();
        judgement.left = left.len();
        judgement.matched = labelled.len() - left.len();
        judgement.reached = labelled.iter().filter(|call| called.contains(call.tool.as_str())).count();
        for part in self.dropped(&left, others) {
            judgement.add(EvalFaultKind::DroppedPart, part);
        }
        let is_excused = self.executed.asked() && (self.request.asks || self.request.may_ask);
        for call in left.iter().filter(|_| !is_excused) {
            judgement.add(EvalFaultKind::MissingCall, shown(call));
        }
        let is_needless = |made: &&ExecutedCall| !self.request.optional.contains(&made.tool);
        if let Some(made) =
            self.executed.calls.iter().find(is_needless).filter(|_| self.request.is_out_of_scope())
        {
            judgement.add(EvalFaultKind::OutOfScopeCall, made.to_string());
        }
        if is_labelled && !is_excused {
            judgement.tools = Some(SetMatch {
                expected: labelled.iter().map(|call| call.tool.clone()).collect(),
                actual: called
                    .into_iter()
                    .filter(|tool| !self.request.optional.iter().any(|optional| optional == tool))
                    .map(str::to_owned)
                    .collect(),
            });
        }
    }

    /// The scenes against `scenes` and `completes`.
    fn scenes(&self, judgement: &mut Judgement) {
        let took_part = self.executed.scenes();
        // A question before planning has chosen no scene.
        let none_chosen = self.executed.asked() && took_part.is_empty();
        let is_early = none_chosen && (self.request.asks || self.request.may_ask);
        for (expected, actual, verb) in [
            (&self.request.scenes, took_part, "takes part"),
            (&self.request.completes, self.executed.completed_scenes(), "completes"),
        ] {
            let Some(expected) = expected.as_ref().filter(|_| !is_early) else { continue };
            let expected: BTreeSet<String> = expected.iter().cloned().collect();
            if expected != actual {
                let detail = match expected.is_empty() {
                    true => format!("no scene {verb}"),
                    false => format!("{} {verb}", list(&expected)),
                };
                judgement.add(EvalFaultKind::WrongScenes, format!("expected: {detail}"));
            }
            judgement.scenes.get_or_insert(SetMatch { expected, actual });
        }
    }

    /// The calls against `tools`.
    fn tools(&self, judgement: &mut Judgement) {
        for tool in &self.request.tools {
            let mut done = self.executed.calls.iter().filter(|call| call.tool == tool.name && call.succeeded);
            if !done.any(|call| tool.fits(&Value::Object(call.arguments.clone()), self.today)) {
                judgement.add(EvalFaultKind::MissingCall, format!("{} {}", tool.name, json!(tool.args)));
            }
        }
    }

    fn order(&self, judgement: &mut Judgement) {
        for [first, second] in &self.request.before {
            match (self.end_of(first), self.beginning_of(second)) {
                (Some(ended), Some(began)) if ended < began => judgement.in_order += 1,
                _ => judgement.add(EvalFaultKind::WrongOrder, format!("{first} before {second}")),
            }
        }
    }

    /// When the last step of a scene, or call of a tool, ended.
    fn end_of(&self, name: &str) -> Option<u64> {
        let steps = self.executed.steps.iter().filter(|step| step.scene == name);
        let calls = self.executed.calls.iter().filter(|call| call.tool == name);
        steps.filter_map(|step| step.completed).chain(calls.filter_map(|call| call.ended)).max()
    }

    /// When the first step of a scene, or call of a tool, began.
    fn beginning_of(&self, name: &str) -> Option<u64> {
        let steps = self.executed.steps.iter().filter(|step| step.scene == name);
        let calls = self.executed.calls.iter().filter(|call| call.tool == name);
        steps.filter_map(|step| step.began).chain(calls.filter_map(|call| call.began)).min()
    }

    /// How it ended, and whether it asked.
    fn end(&self, judgement: &mut Judgement) {
        let asked = self.executed.asked();
        if self.request.plain && asked {
            judgement.add(EvalFaultKind::NeedlessQuestion, &self.executed.answer);
        }
        if self.request.asks && !asked {
            judgement.add(EvalFaultKind::MissingQuestion, "it had to ask");
        }
        if let (Some(expected), Some(actual)) = (self.request.status, self.executed.status)
            && expected != actual
        {
            judgement.add(EvalFaultKind::WrongStatus, format!("expected: {}", name(expected)));
        }
        if self.request.status.is_none() && self.executed.status == Some(RunStatus::Waiting) {
            let why = "it waits for a person: approval is configured, and nobody gives it here";
            judgement.add(EvalFaultKind::WrongStatus, why);
        }
    }

    fn answer(&self, judgement: &mut Judgement) {
        for texts in &self.request.answer_mentions {
            match texts.split('|').any(|text| self.executed.answer.contains(text)) {
                true => judgement.mentioned += 1,
                false => judgement.add(EvalFaultKind::NotMentioned, format!("{texts:?}")),
            }
        }
    }

    fn never(&self, judgement: &mut Judgement) {
        let calls = &self.executed.calls;
        for never in &self.request.never {
            let happened = match forbidden(never) {
                Some(ForbiddenThing::AnyCall) => !calls.is_empty(),
                Some(ForbiddenThing::Twice(tool)) => {
                    calls.iter().filter(|call| call.tool == tool).count() > 1
                }
                Some(ForbiddenThing::EqualCalls) => {
                    let is_equal = |a: &ExecutedCall, b: &ExecutedCall| {
                        (&a.tool, &a.arguments) == (&b.tool, &b.arguments)
                    };
                    (1..calls.len())
                        .any(|later| calls[..later].iter().any(|call| is_equal(call, &calls[later])))
                }
                None => false,
            };
            if happened {
                judgement.add(EvalFaultKind::Forbidden, never);
            }
        }
    }

    /// Whether the arguments without a label derive from the words.
    fn extras_are_mentioned(&self, made: &ExecutedCall) -> bool {
        let labels = self.request.labelled_calls().iter().filter(|call| call.tool == made.tool);
        let labels: BTreeSet<&String> = labels.flat_map(|call| call.arguments.keys()).collect();
        let mut extras = made.arguments.iter().filter(|(name, _)| !labels.contains(name));
        extras.all(|(name, value)| self.is_mentioned(made, name, value))
    }

    fn is_mentioned(&self, made: &ExecutedCall, name: &str, value: &Value) -> bool {
        mentions::is_mentioned(value, &made.schema["properties"][name], &self.words, self.today)
    }

    /// A required argument that is neither labelled nor mentioned.
    fn unmentioned<'a>(&self, made: &'a ExecutedCall) -> Option<&'a str> {
        let required = made.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let is_labelled = |name: &str, given: &Value| {
            let mut calls = self.request.labelled_calls().iter().filter(|call| call.tool == made.tool);
            let is_meant = |call: &LabelledCall| {
                let label = call.arguments.get(name);
                covers(call, given)
                    || label.is_some_and(|label| mentions::matches_label(label, given, &self.words))
            };
            calls.any(is_meant)
        };
        let mut given = required.filter_map(|name| made.arguments.get_key_value(name));
        let unmentioned =
            given.find(|(name, value)| !is_labelled(name, value) && !self.is_mentioned(made, name, value));
        unmentioned.map(|(name, _)| name.as_str())
    }

    fn names_tool(&self, tool: &str) -> bool {
        self.request.labelled_calls().iter().any(|call| call.tool == tool)
    }

    /// What was silently dropped. A call with other values than labelled counts for its label, and so does
    /// another tool's call for the only one: those are other faults. A request that is declined as a whole
    /// has no dropped part.
    fn dropped(&self, left: &[&LabelledCall], mut others: Vec<&str>) -> Vec<String> {
        let mut dropped = Vec::new();
        let is_whole = self.request.labelled_calls().len() == 1 && self.request.undone.is_empty();
        let is_declined = self.executed.steps.is_empty() && self.executed.calls.is_empty();
        if is_declined || (is_whole && !others.is_empty()) {
            return dropped;
        }
        let is_completed = self.executed.status == Some(RunStatus::Completed);
        for call in left.iter().filter(|_| is_completed) {
            if let Some(place) = others.iter().position(|tool| *tool == call.tool) {
                others.remove(place);
            } else if !self.answer_names(call) {
                dropped.push(shown(call));
            }
        }
        let answer = self.executed.answer.to_lowercase();
        let unnamed = |words: &&String| !words.split('|').any(|word| answer.contains(&word.to_lowercase()));
        let unnamed = self.request.undone.iter().filter(unnamed);
        dropped.extend(unnamed.map(|words| format!("{words:?} is not named")));
        if is_completed && !self.request.undone.is_empty() {
            dropped.push("completed, though something was not done".into());
        }
        dropped
    }

    /// Whether the answer names one of the call's values that no executed call had. A call without such a
    /// value counts as named if the answer quotes some of the request.
    fn answer_names(&self, call: &LabelledCall) -> bool {
        let answer = &self.executed.answer;
        let words_of_answer = mentions::tokens(answer);
        let made: Vec<&Value> = self.executed.calls.iter().flat_map(|made| made.arguments.values()).collect();
        let own =
            |label: &&Value| !made.iter().any(|given| mentions::matches_label(label, given, &self.words));
        let mut own = call.arguments.values().filter(own).peekable();
        if own.peek().is_none() {
            let quoted = answer.split('«').skip(1).filter_map(|rest| rest.split_once('»'));
            let mut quoted = quoted.map(|(span, _)| span.trim().to_lowercase());
            return quoted.any(|span| self.words.to_lowercase().contains(&span));
        }
        own.any(|value| match value {
            Value::String(text) => match text.parse::<Date>() {
                Ok(date) => answer.contains(text) || words_of_answer.contains(&date.day().to_string()),
                Err(_) => text
                    .split('|')
                    .any(|text| mentions::tokens(text).iter().all(|word| words_of_answer.contains(word))),
            },
            value => words_of_answer.contains(&value.to_string()),
        })
    }
}

impl ExpectedTool {
    /// Returns whether the arguments of a call match: each equals one of the alternatives, or is the next date from `today` on
    /// that ends with it.
    pub fn fits(&self, arguments: &Value, today: Date) -> bool {
        self.args.iter().all(|(name, meant)| {
            let given = match &arguments[name] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            meant
                .split('|')
                .any(|meant| given == meant || next_date(meant, today).is_some_and(|date| date == given))
        })
    }
}

/// `06-15` as the next such date.
fn next_date(suffix: &str, today: Date) -> Option<String> {
    let (month, day) = suffix.split_once('-')?;
    if month.len() != 2 || day.len() != 2 {
        return None;
    }
    let mut dates = today.series(jiff::Span::new().days(1)).take(4 * 366).map(|date| date.to_string());
    dates.find(|date| date.ends_with(suffix))
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn shown(call: &LabelledCall) -> String {
    format!("{} {}", call.tool, json!(call.arguments))
}

fn name(status: RunStatus) -> &'static str {
    status.into()
}

#[cfg(test)]
mod tests;
