//! Confirmation of writes by the user: which writes, why, the question, and the effect of a plain yes.
//!
//! A confirmation is not an approval: only the user is asked, no webhook is notified, and a required
//! approval is still requested afterwards. The run ends with the question; the yes is a new request.

mod question;
mod sources;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub(super) use self::question::question_above_arguments;
use self::question::{confirmation_question, repeat_question};
use self::sources::sources;
pub(super) use self::sources::{untraced_arguments, without_added_characters};
use super::approval::{definition, stand_in_reason, with_approval};
use super::command::plan_from_person;
use super::consent;
use super::grounding::{GroundingSources, is_optional, is_optional_text, untraced};
use super::planned_calls::{names_action, unasked_action};
use super::prompt::binding_calls;
use super::supplied_plan::invalid_plan_fault;
use crate::invisible;
use crate::language;
use crate::llm::offline;
use crate::plan::{Plan, PreparedCall, Step};
use crate::run::{
    CallState, CallStatus, ConfirmPolicy, ConfirmedCall, Context, Effect, Event, Outcome, PendingQuestion,
    PlanCause, PlanMade, RequestedCall, RunState, Settings, StepState, Unconfirmed, call_key, exact_json,
};
use crate::scene::{Catalogue, Scene, SceneTool};

/// A write that a scene's model requests, before any confirmation or approval.
pub(super) struct ProposedWrite<'a> {
    pub(super) scene: &'a Scene,
    pub(super) step: &'a StepState,
    pub(super) tool: &'a SceneTool,
    pub(super) arguments: &'a Value,
    pub(super) key: &'a str,
    pub(super) occurrence: u32,
    /// Whether a person will be asked to approve exactly this call.
    pub(super) is_approved_by_itself: bool,
    /// The calls of the same reply that come before it.
    pub(super) before: &'a [RequestedCall],
    /// Whether the model itself asks if the call is wanted.
    pub(super) is_question: bool,
    /// Why the plan alone does not decide for the call.
    pub(super) doubts: PlanDoubts,
    /// The tool whose failed call it takes the place of.
    pub(super) stands_for: Option<&'a str>,
}

/// Reasons why a plan alone is not enough for a write that it prepared, if its scene is not asked. Such a write is
/// confirmed whatever the policy, unless people have authorised it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PlanDoubts {
    /// No word of the request names what the write does.
    pub(super) is_unnamed: bool,
    /// The plan makes the write depend on what another call finds.
    pub(super) is_conditional: bool,
}

impl PlanDoubts {
    fn reasons(self, is_approved_by_itself: bool) -> Vec<String> {
        let mut why = Vec::new();
        // An approver sees the exact call, but not that it depends on something.
        if self.is_unnamed && !is_approved_by_itself {
            why.push("the request does not name what it does".to_owned());
        }
        if self.is_conditional {
            why.push("the plan makes it depend on what another call finds".to_owned());
        }
        why
    }
}

/// Why the user has to confirm the call, and the question; `None` if it may be executed without
/// confirmation.
pub(super) fn required_confirmation(
    state: &RunState,
    catalogue: &Catalogue,
    asked: &ProposedWrite<'_>,
) -> Option<Unconfirmed> {
    let settings = state.settings();
    if !settings.has_rules(1) || asked.tool.effect != Effect::Write || state.is_dry_run() {
        return None;
    }
    let configured = settings.confirm_for(asked.scene.confirm);
    // No model considered this request itself, so no policy exempts a write from being traced to the request.
    let policy = match state.is_planned_by_learning(asked.step.step.step_number) {
        true => configured.max(ConfirmPolicy::Unclear),
        false => configured,
    };
    if is_authorised_by_people(state, asked) {
        return None;
    }
    // These reasons count whatever the policy.
    let mut why = asked.doubts.reasons(asked.is_approved_by_itself);
    why.extend(asked.stands_for.filter(|_| !asked.is_approved_by_itself).map(stand_in_reason));
    why.extend(doubt_about_results(state, catalogue, asked));
    if policy == ConfirmPolicy::Writes {
        why.push("every write is to be confirmed".to_owned());
    }
    if policy != ConfirmPolicy::Never {
        why.extend(intent_doubts(state, asked));
    }
    // An approver will see exactly this call and can judge where its arguments come from. Only the user
    // knows whether it was requested at all.
    if policy != ConfirmPolicy::Never && !asked.is_approved_by_itself {
        why.extend(provenance_doubts(state, catalogue, asked));
    }
    if why.is_empty() {
        return None;
    }
    let language = state.started.as_ref().and_then(|started| started.language.as_deref());
    let exact = settings.has_rules(2);
    let mut question = confirmation_question(&asked.scene.name, asked.tool, asked.arguments, language, exact);
    if is_repeated(state, asked) || is_respelled(state, asked) {
        question = format!("{} {question}", repeat_question(language));
    }
    Some(Unconfirmed { question, why, tool: definition(asked.tool) })
}

/// Whether a person wrote the call, approved it with the plan, or confirmed it by this request.
fn is_authorised_by_people(state: &RunState, asked: &ProposedWrite<'_>) -> bool {
    let same = |call: &PreparedCall| {
        call.tool == asked.tool.name
            && exact_json(&Value::Object(call.arguments.clone())) == exact_json(asked.arguments)
    };
    let shown = binding_calls(state, asked.step).iter().filter(|call| same(call)).count();
    let is_shown = shown > asked.occurrence as usize;
    if !state.is_confirmation() {
        return is_shown && !is_repeated(state, asked);
    }
    // A confirmation covers the call only as it was then.
    let confirmed = state.started.iter().flat_map(|started| &started.confirmed);
    let now = definition(asked.tool);
    let mut confirmed =
        confirmed.filter(|call| call.scene == asked.scene.name && call.tool == asked.tool.name);
    confirmed.any(|call| call.definition == now && exact_json(&call.arguments) == exact_json(asked.arguments))
}

/// Reasons to doubt that the user requested the call.
fn intent_doubts(state: &RunState, asked: &ProposedWrite<'_>) -> Vec<String> {
    let mut why = Vec::new();
    if state.is_confirmation() {
        why.push("it is not the call that was confirmed, or its tool has changed since".to_owned());
    }
    if is_repeated(state, asked) || is_respelled(state, asked) {
        why.push("the same was done before in this request".to_owned());
    }
    if asked.is_question {
        why.push("its scene asks whether it is wanted".to_owned());
    }
    if let Some(said) = consent::parse_consent(state.request())
        && !state.is_confirmation()
        && !answers_a_question(state, said)
    {
        why.push("the request says yes or no to nothing that was asked".to_owned());
    }
    if asked.step.step.unclear {
        why.push("the plan is not sure that it was asked for".to_owned());
    }
    if language::is_background_task(state.request(), instructions(state)) {
        why.push("the request sets a task about a text: what the text says is no request".to_owned());
    }
    if state.settings().has_rules(7) && !state.is_confirmation() {
        why.extend(unasked_action(state, asked.scene, asked.tool));
        why.extend(single_day_of_several(state, asked));
    }
    why
}

/// The doubt about a write for one day where the request, or the one whose question it answers, asks for several days: "3 days
/// off" and "from 14 December" say no last day (revision 16 of the rules).
fn single_day_of_several(state: &RunState, asked: &ProposedWrite<'_>) -> Option<String> {
    let started = state.started.as_ref().filter(|_| state.settings().has_rules(16))?;
    let arguments = asked.arguments.as_object()?;
    let answered = started.context.pending.as_ref().map(|pending| pending.request.as_str());
    let parts = answered.into_iter().chain([state.request()]).flat_map(offline::requested_parts);
    let mut named = parts.filter(|part| names_action(asked.scene, asked.tool, part));
    let (from, to) = named.find_map(|part| {
        offline::single_day_of_several(&part, &asked.tool.parameters, arguments, &started.now)
    })?;
    Some(format!("several days are asked for, and {from} and {to} are the same"))
}

/// Whether a plain yes or no answers a question of a scene. A no never answers one: what it refuses is not
/// done.
fn answers_a_question(state: &RunState, yes: bool) -> bool {
    let pending = state.started.as_ref().and_then(|started| started.context.pending.as_ref());
    yes && pending.is_some_and(|pending| pending.unconfirmed.is_empty() && was_shown(state, pending))
}

/// Whether the last answer showed the question. Before revision 2 of the rules, this was not checked.
fn was_shown(state: &RunState, pending: &PendingQuestion) -> bool {
    let last = state.started.as_ref().and_then(|started| started.context.turns.last());
    !state.settings().has_rules(2)
        || last.is_some_and(|turn| turn.answer.contains(pending.question.text.trim()))
}

/// Reasons about the sources of its arguments not to execute the call without a person's confirmation.
fn provenance_doubts(state: &RunState, catalogue: &Catalogue, asked: &ProposedWrite<'_>) -> Vec<String> {
    let mut why = Vec::new();
    let (tool, scene) = (asked.tool.name.as_str(), asked.scene.name.as_str());
    let nowhere = untraced_arguments(state, catalogue, asked.tool, asked.arguments);
    if !nowhere.is_empty() {
        why.push(format!("nobody said and no tool found: {}", nowhere.join(", ")));
    }
    if !state.foresees(scene, tool) && !state.is_foreseen_by_program(asked.step, scene, tool) {
        why.push(format!("no plan named {tool} of {scene} before the first result of a tool"));
    }
    let max = max_unconfirmed_writes(state, catalogue);
    let writes = asked
        .before
        .iter()
        .filter(|call| call.effect == Effect::Write && call.problem.is_none() && call.confirm.is_none());
    if state.writes_asked_for() + writes.count() as u32 >= max {
        why.push(format!("the run has begun {max} writes already"));
    }
    why
}

/// The doubt about a write in a run with results of an earlier run, or results that a model interpreted. These are no
/// source of values, nor is anything found with them, so only values that the user said are beyond doubt.
fn doubt_about_results(state: &RunState, catalogue: &Catalogue, asked: &ProposedWrite<'_>) -> Option<String> {
    let why = match (state.has_earlier_result(), state.has_interpreted_result()) {
        (true, _) => "it rests on a result of an earlier time",
        (_, true) => "it rests on a result that a model has interpreted",
        _ => return None,
    };
    let from = sources(state, catalogue)?;
    let said = GroundingSources { found: Vec::new(), ..from };
    let nowhere = untraced(&asked.tool.parameters, asked.arguments, &said);
    let what = nowhere.join(", ");
    (!nowhere.is_empty()).then(|| format!("{why}: {what}"))
}

/// Maximum number of writes that the run may begin without confirmation.
fn max_unconfirmed_writes(state: &RunState, catalogue: &Catalogue) -> u32 {
    let names = state.steps.values().flat_map(|step| step.step.scene_names());
    let scenes = names.filter_map(|name| catalogue.get(name));
    let raised = scenes.filter_map(|scene| scene.max_writes).max().unwrap_or(0);
    state.settings().max_writes.max(raised)
}

/// Whether an equal call of the step, or of an earlier step of the same plan, was done or is due.
fn is_repeated(state: &RunState, asked: &ProposedWrite<'_>) -> bool {
    if asked.tool.repeatable {
        return false;
    }
    let done = |call: &CallState| is_done_or_due(state, call);
    let number = asked.step.step.step_number;
    let history = own_calls(state, number);
    if !state.settings().has_rules(2) {
        return history.into_iter().any(|call| call.requested.key == asked.key && done(call))
            || asked.before.iter().any(|call| call.key == asked.key && call.problem.is_none());
    }
    let key = |arguments: &Value| loose_key(asked.tool, &given(state, asked.tool, arguments, false));
    let own = key(asked.arguments);
    let same = |call: &RequestedCall| {
        call.key == asked.key || (call.tool == asked.tool.name && key(&call.arguments) == own)
    };
    let mut history = history.into_iter().filter(|call| call.scene == asked.scene.name);
    history.any(|call| same(&call.requested) && done(call))
        || asked.before.iter().any(|call| same(call) && call.problem.is_none())
}

/// Whether the run did, or will do, the write in another spelling: in another step, or in this one before it was
/// resumed. The duplicate guard has an equal call share its outcome, and knows no spellings. Steps of one plan may
/// differ in their notes on purpose; a further plan that adds one would do again what was done.
fn is_respelled(state: &RunState, asked: &ProposedWrite<'_>) -> bool {
    if asked.tool.repeatable || !state.settings().has_rules(12) {
        return false;
    }
    let is_other = |call: &CallState| {
        call.scene == asked.scene.name
            && call.requested.tool == asked.tool.name
            && call.requested.key != asked.key
            && is_done_or_due(state, call)
    };
    let number = asked.step.step.step_number;
    let is_of_same_plan = |call: &CallState| {
        let other = state.steps.get(&call.step).filter(|_| call.step != number);
        other.is_some_and(|other| other.version == asked.step.version)
    };
    state.calls.values().filter(|call| is_other(call)).any(|call| {
        let is_same_plan = is_of_same_plan(call);
        let key = if is_same_plan { spelled_key } else { loose_key };
        let key = |arguments: &Value| key(asked.tool, &given(state, asked.tool, arguments, is_same_plan));
        key(&call.requested.arguments) == key(asked.arguments)
    })
}

/// Whether a call was done and not undone, or is to be done.
fn is_done_or_due(state: &RunState, call: &CallState) -> bool {
    match &call.status {
        // What took its place may have done it.
        CallStatus::Done { .. } if call.replaced_by.is_some() => is_done_instead(state, call),
        CallStatus::Done { outcome } => matches!(outcome, Outcome::Ok { .. }) && !state.is_undone(call),
        CallStatus::Requested => call.requested.problem.is_none() && call.requested.confirm.is_none(),
        CallStatus::InFlight { .. }
        | CallStatus::Again { .. }
        | CallStatus::Failing { .. }
        | CallStatus::BackedOff { .. } => true,
        CallStatus::Skipped { .. } => false,
    }
}

/// Whether the call that took the place of `call` was done and not undone.
fn is_done_instead(state: &RunState, call: &CallState) -> bool {
    let by = state.effective_substitute(call).and_then(|by| state.calls.get(&state.resolved(by)));
    by.is_some_and(|by| {
        matches!(&by.status, CallStatus::Done { outcome: Outcome::Ok { .. } }) && !state.is_undone(by)
    })
}

/// The arguments without optional ones that say nothing: empty texts, empty lists and false. Unless `with_flags`, also
/// without optional true. Before revision 15 of the rules, all arguments.
fn given<'a>(state: &RunState, tool: &SceneTool, arguments: &'a Value, with_flags: bool) -> Cow<'a, Value> {
    let Value::Object(map) = arguments else { return Cow::Borrowed(arguments) };
    let is_blank = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(flag) => !(*flag && with_flags),
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(_) => false,
    };
    let is_left_out = |name: &str, value: &Value| is_blank(value) && is_optional(&tool.parameters, name);
    if !state.settings().has_rules(15) || !map.iter().any(|(name, value)| is_left_out(name, value)) {
        return Cow::Borrowed(arguments);
    }
    let kept = map.iter().filter(|(name, value)| !is_left_out(name, value));
    Cow::Owned(Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect()))
}

/// A key that is equal for writes that differ only in how their strings are written, or in optional free
/// text such as a note.
fn loose_key(tool: &SceneTool, arguments: &Value) -> String {
    let Value::Object(map) = arguments else { return call_key("", &tool.name, arguments, &tool.identity) };
    let kept = map.iter().filter(|(name, _)| !is_optional_text(&tool.parameters, name));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    spelled_key(tool, &Value::Object(kept.collect()))
}

/// A key that is equal for writes that differ only in how their strings are written.
fn spelled_key(tool: &SceneTool, arguments: &Value) -> String {
    call_key("", &tool.name, &loosened(arguments, 0), &tool.identity)
}

/// The value with its strings in lower case, trimmed, and without invisible characters.
fn loosened(value: &Value, depth: u8) -> Value {
    match value {
        Value::String(text) => {
            let seen: String =
                text.chars().filter(|c| c.is_whitespace() || !invisible::is_invisible(*c)).collect();
            seen.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase().into()
        }
        Value::Array(list) if depth < 64 => list.iter().map(|one| loosened(one, depth + 1)).collect(),
        Value::Object(map) if depth < 64 => {
            let members = map.iter().map(|(name, one)| (name.clone(), loosened(one, depth + 1)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// The calls of a step since it last began, and of the earlier steps of the same plan, with those that took their places.
fn own_calls(state: &RunState, number: u32) -> Vec<&CallState> {
    let steps = state.steps.iter().filter(|(earlier, _)| state.precedes(**earlier, number));
    let calls = steps.flat_map(|(_, step)| {
        let rounds = step.scene().into_iter().flat_map(|work| &work.history);
        let of_program = step.code().into_iter().flat_map(|work| &work.program_calls);
        rounds.flat_map(|round| &round.calls).chain(of_program.map(|made| &made.call))
    });
    calls.flat_map(|call| state.with_substitute(*call)).map(|(_, call)| call).collect()
}

/// How many equal calls of a repeatable tool precede the one requested now.
pub(super) fn occurrence(
    state: &RunState,
    number: u32,
    tool: &SceneTool,
    key: &str,
    before: &[RequestedCall],
) -> u32 {
    if !tool.repeatable || !state.settings().has_rules(1) {
        return 0;
    }
    let earlier = own_calls(state, number).into_iter().filter(|call| {
        call.requested.key == key && call.requested.problem.is_none() && call.requested.confirm.is_none()
    });
    let together = before.iter().filter(|call| call.key == key && call.problem.is_none());
    (earlier.count() + together.count()) as u32
}

fn instructions(state: &RunState) -> &str {
    state.queued.as_ref().and_then(|queued| queued.instructions.as_deref()).unwrap_or_default()
}

/// The calls that a request confirms, given its `settings` and memory: those of the last question, if the
/// request is a plain yes of the user who was asked.
pub fn confirmed(state: &RunState, settings: &Settings, context: &Context) -> Vec<ConfirmedCall> {
    let (Some(queued), Some(pending)) = (&state.queued, &context.pending) else { return Vec::new() };
    let speaks = queued.plan.is_none() && !queued.plan_only && !queued.options.dry_run;
    let is_yes = consent::parse_consent(&queued.request) == Some(true);
    let is_heard = queued.answers.is_some() && queued.answers == pending.run;
    let is_task = || language::is_background_task(&queued.request, instructions(state));
    if !settings.has_rules(1) || !speaks || !is_yes || !is_heard || pending.user != queued.user || is_task() {
        return Vec::new();
    }
    pending.unconfirmed.clone()
}

/// The event that puts the confirmed calls of a request in force as its plan.
pub(super) fn confirmed_plan(state: &RunState, catalogue: &Catalogue, version: u32) -> Event {
    let confirmed = state.started.iter().flat_map(|started| &started.confirmed);
    let mut steps: Vec<Step> = Vec::new();
    for call in confirmed {
        let arguments = call.arguments.as_object().cloned().unwrap_or_else(Map::new);
        let prepared = PreparedCall { tool: call.tool.clone(), arguments };
        // Each call was confirmed separately, so none depends on another scene's.
        match steps.iter_mut().find(|step| step.scene_name == call.scene) {
            Some(step) => {
                if !step.expected_tools.contains(&call.tool) {
                    step.expected_tools.push(call.tool.clone());
                }
                step.purpose.push('\n');
                step.purpose.push_str(&call.question);
                step.prepared_calls.push(prepared);
            }
            None => steps.push(Step {
                step_number: steps.len() as u32 + 1,
                scene_name: call.scene.clone(),
                purpose: call.question.clone(),
                expected_tools: vec![call.tool.clone()],
                prepared_calls: vec![prepared],
                ..Step::default()
            }),
        }
    }
    let reasoning = "The user has confirmed exactly this.".to_owned();
    let plan = Plan { needs_execution: true, reasoning, steps, ..Plan::default() };
    let by = state.queued.as_ref().map(|queued| queued.user.clone());
    match plan_from_person(state, catalogue, &plan, version, PlanCause::Request) {
        Ok(made) => Event::PlanCreated(with_approval(state, catalogue, PlanMade { by, ..made })),
        Err(problems) => Event::PlanningFailed { version, error: invalid_plan_fault(&problems) },
    }
}
