//! The sources that the arguments of a run's writes may come from: what people said, and what tools found.

use std::borrow::Cow;

use serde_json::Value;

use super::instructions;
use crate::planner::constraints;
use crate::planner::facts::{self, plain_words, statements_of};
use crate::planner::grounding::{DayNames, GroundingSources, as_written, has_invisible, untraced};
use crate::run::{
    CallState, Context, Effect, Outcome, PlanMaker, RunState, RunStatus, TurnCall, plain_leaves,
};
use crate::scene::{Catalogue, SceneTool};

/// The names of the arguments that nobody said and no tool found.
pub(in crate::planner) fn untraced_arguments(
    state: &RunState,
    catalogue: &Catalogue,
    tool: &SceneTool,
    arguments: &Value,
) -> Vec<String> {
    // The request usually contains all values and is read quickly. The conversation, which may be long, is read only
    // for a value that the request does not contain: further sources never make a value doubtful.
    let Some(asked) = asked_sources(state) else { return Vec::new() };
    if untraced(&tool.parameters, arguments, &asked).is_empty() {
        return Vec::new();
    }
    let sources = sources(state, catalogue);
    sources.map(|from| untraced(&tool.parameters, arguments, &from)).unwrap_or_default()
}

/// The arguments of a model without the invisible characters that it added to words that were said or found.
pub(in crate::planner) fn without_added_characters(
    state: &RunState,
    catalogue: &Catalogue,
    arguments: Value,
) -> Value {
    if !state.settings().has_rules(13) || !has_invisible(&arguments) {
        return arguments;
    }
    match sources(state, catalogue) {
        Some(from) => as_written(arguments, &from),
        None => arguments,
    }
}

/// The first of the [`sources`]: the request and the instructions.
fn asked_sources(state: &RunState) -> Option<GroundingSources<'_>> {
    let started = state.started.as_ref()?;
    Some(GroundingSources {
        said: vec![state.request().into(), instructions(state).into()],
        found: Vec::new(),
        user: state.queued.as_ref().map_or("", |queued| queued.user.as_str()),
        now: &started.now,
        language: started.language.as_deref(),
        strict: state.settings().has_rules(2),
        lists: state.settings().has_rules(6),
        exact: state.settings().has_rules(13),
        lookalikes: state.settings().has_rules(15),
        names: DayNames {
            short_months: state.settings().has_rules(16),
            several_words: state.settings().has_rules(17),
        },
    })
}

/// The sources that the arguments of a write may come from.
pub(super) fn sources<'a>(state: &'a RunState, catalogue: &Catalogue) -> Option<GroundingSources<'a>> {
    let started = state.started.as_ref()?;
    let asked = asked_sources(state)?;
    let said = asked.said;
    let mut sources = CollectedSources { state, strict: asked.strict, said, found: Vec::new() };
    sources.add_plans();
    sources.add_results();
    sources.found.extend(constraints::trusted_state(state).map(Cow::Borrowed));
    sources.add_conversation(&started.context, catalogue);
    let CollectedSources { said, found, .. } = sources;
    Some(GroundingSources { said, found, ..asked })
}

/// The sources of a run's writes, as they are collected.
struct CollectedSources<'a> {
    state: &'a RunState,
    /// Whether the rules are those since revision 2.
    strict: bool,
    /// What the user said.
    said: Vec<Cow<'a, str>>,
    /// What tools found.
    found: Vec<Cow<'a, Value>>,
}

impl<'a> CollectedSources<'a> {
    /// What people wrote into plans, or asked of them.
    fn add_plans(&mut self) {
        for made in &self.state.plans {
            self.said.extend(made.why.iter().map(|why| why.as_str().into()));
            if made.maker == PlanMaker::Person && !self.state.is_confirmation() {
                self.said.extend(made.plan.steps.iter().map(|step| step.purpose.as_str().into()));
            }
        }
    }

    /// The results of the run's own calls.
    fn add_results(&mut self) {
        let state = self.state;
        // A flow's own functions may return what a model wrote.
        let is_evidence = |call: &CallState| !state.is_of_flow(call) && !call.is_untraced;
        let evidence = state.calls.iter().filter(|(_, call)| is_evidence(call));
        for (number, _) in evidence {
            // A result comes with the arguments of the call that has it.
            let by = state.calls.get(&state.resolved(*number)).filter(|by| by.is_evidence());
            if let (Some(call), Some(Outcome::Ok { result, .. })) = (by, state.outcome(*number)) {
                let is_read = call.requested.effect == Effect::Read;
                let result = match self.strict && is_read {
                    true => without_echo(result, &call.requested.arguments),
                    false => Cow::Borrowed(result),
                };
                self.found.push(facts::without_prose(state, result));
            }
        }
    }

    /// What the conversation knew when the run started.
    fn add_conversation(&mut self, context: &'a Context, catalogue: &Catalogue) {
        let (state, strict) = (self.state, self.strict);
        // A model wrote the summary: it is a source of names, but not of values.
        let summary = |text: &'a String| if strict { plain_words(text).into() } else { text.as_str().into() };
        self.said.extend(context.summary.iter().map(summary));
        for evidence in facts::evidence(state) {
            self.said.extend(evidence.said.iter().map(|text| Cow::Borrowed(text.as_str())));
            self.found.extend(facts::values(evidence).map(Cow::Borrowed));
        }
        // A figure that a model made up in an earlier answer is no source.
        let founded = state.settings().has_rules(6).then(|| facts::grounded_statements(state));
        // A call that the user was asked to confirm and has not confirmed is no evidence for itself.
        let pending = context.pending.as_ref().filter(|pending| pending.unconfirmed.is_empty());
        for (at, turn) in context.turns.iter().enumerate() {
            self.said.push(turn.request.as_str().into());
            let is_last = at + 1 == context.turns.len();
            // A question that a model wrote is no evidence for the calls that a yes to it leads to.
            let is_question =
                turn.status == RunStatus::NeedsInput && (strict || !is_last || pending.is_none());
            if !is_question {
                let founded = founded.as_ref().and_then(|founded| founded.get(at).cloned());
                let statements = founded.unwrap_or_else(|| statements_of(&turn.answer));
                let is_stale = turn.calls.iter().any(|call| call.stale);
                self.said.push(if is_stale { plain_words(&statements).into() } else { statements.into() });
            }
            turn.calls
                .iter()
                .filter(|call| !call.stale)
                .for_each(|call| self.add_earlier_call(call, catalogue));
        }
        self.said.extend(context.pending.iter().map(|pending| pending.request.as_str().into()));
        if let Some(pending) = pending.filter(|_| !strict) {
            self.said.push(pending.question.text.as_str().into());
            self.found.push(Cow::Borrowed(&pending.question.known));
        }
    }

    fn add_earlier_call(&mut self, call: &'a TurnCall, catalogue: &Catalogue) {
        let tool = catalogue.get(&call.scene).and_then(|scene| scene.tool(&call.tool));
        // The arguments of a write were traced, confirmed or approved when it was made.
        if !self.strict || tool.is_some_and(|tool| tool.effect == Effect::Write) {
            self.found.push(Cow::Borrowed(call.arguments.value()));
            self.found.push(facts::without_prose(self.state, Cow::Borrowed(call.result.value())));
        } else {
            let result = without_echo(call.result.value(), call.arguments.value());
            self.found.push(facts::without_prose(self.state, result));
        }
    }
}

/// A result without the values that the call itself was given: a tool that repeats its input has found nothing.
fn without_echo<'a>(result: &'a Value, arguments: &Value) -> Cow<'a, Value> {
    let given = plain_leaves(arguments);
    if given.is_empty() {
        return Cow::Borrowed(result);
    }
    Cow::Owned(pruned(result, &given, 0))
}

fn pruned(value: &Value, given: &[&Value], depth: u8) -> Value {
    match value {
        Value::Array(list) if depth < 64 => list.iter().map(|one| pruned(one, given, depth + 1)).collect(),
        Value::Object(map) if depth < 64 => {
            let members = map.iter().map(|(name, one)| (name.clone(), pruned(one, given, depth + 1)));
            Value::Object(members.collect())
        }
        other if given.contains(&other) => Value::Null,
        other => other.clone(),
    }
}
