//! Reads the replies of scenes' models: the calls that they make, the question that they ask, or their result.

use jiff::civil::Date;
use serde_json::{Map, Value};

use super::answer_figures::{days_from_people, results_of_scene};
use super::approval::{ApprovableCall, call_approval, effective_definition};
use super::confirmation::{
    PlanDoubts, ProposedWrite, occurrence, required_confirmation, without_added_characters,
};
use super::constraints::forbidden_call;
use super::prompt::{binding_calls, offered};
use super::read::EMPTY_REPLY;
use super::required_reply::{RequiredReply, required_reply, was_sent_back, write_is_open, writes_not_called};
use super::step_expectations::key_in_step;
use super::tools::{ASK_USER, NEXT_CALL, NOTHING};
use crate::language;
use crate::llm::reader;
use crate::plan::PlanProblem;
use crate::run::{
    AskStatus, CallState, ConfirmPolicy, Effect, Event, Fault, Outcome, Question, ReaderMode, Reply,
    ReplyCall, RequestedCall, RunState, StepState, Subject, call_key,
};
use crate::scene::{Catalogue, Scene, SceneTool, arguments};
use crate::schema::required_names;

/// The code of a final text before a call that the plan expects.
pub(super) const EXPECTED_CALL_MISSING: &str = "reply.undone";
/// The code of a write with a day that the user did not name.
const UNSAID_VALUE: &str = "reply.unsaid";
/// Maximum number of calls read from one reply; a longer list is a malfunction of the model.
const MAX_CALLS_IN_REPLY: usize = 64;

pub(super) fn read_scene(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    call: u32,
    number: u32,
    fallback: bool,
) -> Result<Event, Vec<PlanProblem>> {
    let none =
        || vec![PlanProblem::new("step.unknown", format!("there is no step {number} with a known scene"))];
    let step = state.steps.get(&number).ok_or_else(none)?;
    let scene = catalogue.get(&step.step.scene_name).ok_or_else(none)?;
    let required = required_reply(state, catalogue, number);
    let names: Vec<&str> = offered(scene, step).map(|t| t.name.as_str()).chain([ASK_USER]).collect();
    let (mut written, text) = written_calls(reply, own_words(state, reply), &names, &required);
    if written.len() > MAX_CALLS_IN_REPLY {
        return Err(vec![PlanProblem::new(
            "reply.too_many_calls",
            format!("{} calls in one reply; at most {MAX_CALLS_IN_REPLY} are read", written.len()),
        )]);
    }
    if state.is_last_round(number) && !state.settings().has_rules(1) {
        // No tools were offered, so any calls are ignored.
        written.clear();
    }
    // A model that calls a tool instead of choosing one has also decided.
    let direct = |call: &ReplyCall| names.iter().any(|name| name.eq_ignore_ascii_case(&call.name));
    if required == RequiredReply::Decision
        && !written.iter().any(direct)
        && let Some(decided) = read_next(reply, &names)?
    {
        let nothing = decided == NOTHING;
        // Then its earlier text is the result.
        let text = if nothing { last_words(state, step) } else { String::new() };
        let (calls, question, next) = (Vec::new(), None, Some(decided).filter(|_| !nothing));
        return Ok(Event::SceneReplied { step: number, call, text, calls, question, next });
    }
    let request = SceneRequest { state, catalogue, scene, step, required: &required, fallback };
    let (calls, question) = request.read_calls(&written)?;
    if calls.is_empty() && question.is_none() {
        request.check_end(&text)?;
    }
    Ok(Event::SceneReplied { step: number, call, text, calls, question, next: None })
}

/// The text of a reply without the thoughts of its model: empty if there is nothing else.
pub(super) fn own_words<'a>(state: &RunState, reply: &'a Reply) -> &'a str {
    let text = reply.text.as_str();
    let own = if state.settings().has_rules(7) { reader::after_reasoning(text) } else { Some(text) };
    own.unwrap_or_default().trim()
}

/// The calls that a reply contains, and its `text`. A model may also write its calls, or the arguments of the
/// call it was forced to make, as text.
fn written_calls(
    reply: &Reply,
    text: &str,
    names: &[&str],
    required: &RequiredReply,
) -> (Vec<ReplyCall>, String) {
    if !reply.calls.is_empty() {
        return (reply.calls.clone(), text.to_owned());
    }
    let mut written = reader::calls_in_text(text, names);
    if let (true, RequiredReply::Read(tool) | RequiredReply::Call(tool)) = (written.is_empty(), required) {
        written = bare_call(reply, tool).into_iter().collect();
    }
    let text = if written.is_empty() { text.to_owned() } else { String::new() };
    (written, text)
}

/// The question to a scene's model that a reply answers.
struct SceneRequest<'a> {
    state: &'a RunState,
    catalogue: &'a Catalogue,
    scene: &'a Scene,
    step: &'a StepState,
    required: &'a RequiredReply,
    /// Whether the offline model replies in place of failed models.
    fallback: bool,
}

impl SceneRequest<'_> {
    /// Reads the calls of a reply: the tool calls and the question to the user.
    fn read_calls(
        &self,
        written: &[ReplyCall],
    ) -> Result<(Vec<RequestedCall>, Option<Question>), Vec<PlanProblem>> {
        let Self { state, catalogue, scene, step, fallback, .. } = *self;
        let mut question = None;
        let mut calls: Vec<RequestedCall> = Vec::new();
        for one in written {
            let ordinal = state.next_call() + calls.len() as u32;
            if one.name.eq_ignore_ascii_case(ASK_USER) {
                let asked = read_question(one)?;
                match confirmable(state, scene, step, &asked) {
                    Some(meant) => {
                        let meant = SceneReplyCall {
                            before: &calls,
                            fallback,
                            is_question: true,
                            ..SceneReplyCall::new(&meant, ordinal)
                        };
                        calls.push(read_call(state, catalogue, scene, step, &meant));
                    }
                    None => question = Some(join_questions(question.take(), asked, state)),
                }
                continue;
            }
            let missing = match self.required {
                RequiredReply::Call(name) => match scene.tool(name) {
                    Some(tool) => read_missing_arguments(state, step, tool, one)?,
                    None => None,
                },
                _ => None,
            };
            if missing.is_some() {
                question = missing;
                continue;
            }
            let one = SceneReplyCall { before: &calls, fallback, ..SceneReplyCall::new(one, ordinal) };
            calls.push(read_call(state, catalogue, scene, step, &one));
        }
        Ok((calls, question))
    }

    /// Checks that the scene may end its step now: not without text and results, not before it has made the call
    /// that it chose, and not before it was asked once about an expected write.
    fn check_end(&self, text: &str) -> Result<(), Vec<PlanProblem>> {
        let Self { state, scene, step, .. } = *self;
        if let RequiredReply::Call(tool) = self.required {
            let what = format!(
                "you decided for {tool}: call it, or call {ASK_USER} if the user has not said what it needs"
            );
            return Err(vec![PlanProblem::new("reply.no_call", what)]);
        }
        let has_result = |call: &u32| matches!(state.outcome(*call), Some(Outcome::Ok { .. }));
        if text.is_empty() && !step.calls.iter().any(has_result) {
            let what = "the reply was empty: call a tool, call AskUser, or say the result in words";
            return Err(vec![PlanProblem::new(EMPTY_REPLY, what)]);
        }
        let is_last = state.is_last_round(step.step.step_number);
        if !is_last && !was_sent_back(state, step) && write_is_open(state, scene, step) {
            let what = format!(
                "the plan expects {} in this step, and it was not called: nothing has been changed yet",
                writes_not_called(state, scene, step).join(", ")
            );
            return Err(vec![PlanProblem::new(EXPECTED_CALL_MISSING, what)]);
        }
        Ok(())
    }
}

/// The arguments of `tool`, if the reply's text is nothing else.
fn bare_call(reply: &Reply, tool: &str) -> Option<ReplyCall> {
    let arguments = reader::object(reply.text.trim())?;
    Some(ReplyCall { id: "text_1".to_owned(), name: tool.to_owned(), arguments: arguments.to_string() })
}

/// The decision in a reply, if any: a name of `offered` or [`NOTHING`].
fn read_next(reply: &Reply, offered: &[&str]) -> Result<Option<String>, Vec<PlanProblem>> {
    let value = reader::read(reply, NEXT_CALL, ReaderMode::Tolerant).ok();
    let Some(next) = value.as_ref().and_then(|v| v.get("next")).and_then(Value::as_str) else {
        return if reply.calls.is_empty() { Ok(None) } else { Err(vec![undecided(offered)]) };
    };
    let choices = || offered.iter().copied().chain([NOTHING]);
    match choices().find(|name| name.eq_ignore_ascii_case(next.trim())) {
        Some(name) => Ok(Some(name.to_owned())),
        None => Err(vec![undecided(offered)]),
    }
}

fn undecided(offered: &[&str]) -> PlanProblem {
    let what = format!("{NEXT_CALL} needs \"next\": one of {}, {NOTHING}", offered.join(", "));
    PlanProblem::new("reply.undecided", what)
}

/// Ordinals of the questions asked in a step since its scene's last reply.
fn scene_tries<'a>(state: &'a RunState, step: &StepState) -> impl DoubleEndedIterator<Item = &'a u32> {
    state.tries(Subject::Scene { step: step.step.step_number }).iter()
}

/// The text of the last rejected reply.
fn last_words(state: &RunState, step: &StepState) -> String {
    let tries = scene_tries(state, step).rev().filter_map(|call| state.asks.get(call));
    let rejected = tries.into_iter().find_map(|ask| match &ask.status {
        AskStatus::Rejected { reply, .. } => Some(reply.text.trim().to_owned()),
        _ => None,
    });
    rejected.unwrap_or_default()
}

/// The question to the user for a call that omits required arguments of `tool` or sets them to null. A day
/// of a write that the user did not name counts as missing; if the user named other days, the reply is
/// rejected once first.
fn read_missing_arguments(
    state: &RunState,
    step: &StepState,
    tool: &SceneTool,
    call: &ReplyCall,
) -> Result<Option<Question>, Vec<PlanProblem>> {
    let arguments = reader::object(&call.arguments);
    let Some(Value::Object(mut given)) = arguments.filter(|_| call.name.eq_ignore_ascii_case(&tool.name))
    else {
        return Ok(None);
    };
    given.retain(|_, value| !value.is_null() && value.as_str().is_none_or(|text| !text.trim().is_empty()));
    // From revision 1 on, such a write is confirmed instead.
    let guarded = tool.effect == Effect::Write && !state.settings().has_rules(1);
    let wrong = if guarded { invented_days(state, step, tool, &given) } else { Vec::new() };
    let days = days_from_people(state);
    if !wrong.is_empty() && !days.is_empty() && !was_rejected(state, step, UNSAID_VALUE) {
        let days: Vec<String> = days.iter().map(Date::to_string).collect();
        let what = format!(
            "{}: the user did not say that day. The days that were said: {}. Write null where it is none of them",
            wrong.join(", "),
            days.join(", ")
        );
        return Err(vec![PlanProblem::new(UNSAID_VALUE, what)]);
    }
    given.retain(|name, _| !wrong.contains(name));
    let mut missing = missing_arguments(tool, &given);
    for name in &wrong {
        if !missing.contains(&name.as_str()) {
            missing.push(name);
        }
    }
    Ok(question_for(state, tool, &missing, &given))
}

/// The required arguments of a tool that are not `given`.
pub(super) fn missing_arguments<'a>(tool: &'a SceneTool, given: &Map<String, Value>) -> Vec<&'a str> {
    required_names(&tool.parameters).filter(|name| !given.contains_key(*name)).collect()
}

/// The question to the user for the `missing` arguments of a tool; `None` if none are.
pub(super) fn question_for(
    state: &RunState,
    tool: &SceneTool,
    missing: &[&str],
    given: &Map<String, Value>,
) -> Option<Question> {
    let language = state.language().unwrap_or_default();
    (!missing.is_empty()).then(|| Question {
        text: language::question_for_missing_arguments(
            &tool.parameters,
            missing,
            language,
            !state.settings().has_rules(18),
        ),
        tool: Some(tool.name.clone()),
        missing: missing.iter().map(|name| (*name).to_owned()).collect(),
        known: Value::Object(given.clone()),
        choices: Vec::new(),
    })
}

/// The fault of a write if the user named none of its days. If one of them was named, the others may be derived from
/// it; if the rules can read no day in the text, nothing can be concluded.
fn on_other_days(state: &RunState, step: &StepState, tool: &SceneTool, arguments: &Value) -> Option<Fault> {
    let arguments = arguments.as_object().filter(|_| tool.effect == Effect::Write)?;
    // An approved plan shows the days.
    let mut people = binding_calls(state, step).iter().filter(|call| call.tool == tool.name);
    if people.any(|call| call.arguments == *arguments) {
        return None;
    }
    let named_days = days_from_people(state);
    let wrong = invented_days(state, step, tool, arguments);
    let days = arguments.iter().filter(|(name, value)| day_of(tool, name, value).is_some()).count();
    if named_days.is_empty() || wrong.is_empty() || wrong.len() < days {
        return None;
    }
    let named_days: Vec<String> = named_days.iter().map(Date::to_string).collect();
    let message = format!(
        "{} was not called: the user said none of the days in {}. The days that were said: {}. Call it with those, \
         or call {ASK_USER}",
        tool.name,
        wrong.join(", "),
        named_days.join(", ")
    );
    Some(Fault::new("tool.other_days", message))
}

fn day_of(tool: &SceneTool, name: &str, value: &Value) -> Option<Date> {
    let schema = tool.parameters.get("properties").and_then(|all| all.get(name))?;
    value.as_str().filter(|_| schema["format"] == "date")?.parse().ok()
}

/// The arguments with days that neither the user named nor the scene's own tools returned.
fn invented_days(
    state: &RunState,
    step: &StepState,
    tool: &SceneTool,
    arguments: &Map<String, Value>,
) -> Vec<String> {
    let named = days_from_people(state);
    let shown = binding_calls(state, step);
    let by_plan = |name: &String, value: &Value| {
        shown.iter().any(|call| call.tool == tool.name && call.arguments.get(name) == Some(value))
    };
    let found = results_of_scene(state, &step.step.scene_name);
    let made_up = |(name, value): &(&String, &Value)| {
        day_of(tool, name, value)
            .is_some_and(|day| !named.contains(&day) && !found.contains(&day.to_string()))
            && !by_plan(name, value)
    };
    arguments.iter().filter(made_up).map(|(name, _)| name.clone()).collect()
}

/// Whether a reply to the question that is due was rejected with this code.
fn was_rejected(state: &RunState, step: &StepState, code: &str) -> bool {
    scene_tries(state, step).filter_map(|call| state.asks.get(call)).any(|ask| match &ask.status {
        AskStatus::Rejected { problems, .. } => problems.iter().any(|p| p.code == code),
        _ => false,
    })
}

/// Joins two questions of one reply. Before revision 1, the later one replaced the first.
fn join_questions(before: Option<Question>, asked: Question, state: &RunState) -> Question {
    match before.filter(|_| state.settings().has_rules(1)) {
        Some(before) if before.text != asked.text => {
            let text = format!("{}\n{}", before.text, asked.text);
            // Only one tool can continue: that of the later question.
            Question { text, ..asked }
        }
        _ => asked,
    }
}

/// The write that a question only asks the user to confirm: none of its arguments is missing.
fn confirmable(state: &RunState, scene: &Scene, step: &StepState, asked: &Question) -> Option<ReplyCall> {
    let settings = state.settings();
    let never = settings.confirm_for(scene.confirm) == ConfirmPolicy::Never;
    if !settings.has_rules(1) || never || !asked.missing.is_empty() || !asked.known.is_object() {
        return None;
    }
    let tool = asked.tool.as_deref()?;
    let tool = offered(scene, step).find(|t| t.name == tool && t.effect == Effect::Write)?;
    let arguments = asked.known.to_string();
    arguments::check(tool, &arguments).ok()?;
    Some(ReplyCall { id: String::new(), name: tool.name.clone(), arguments })
}

fn read_question(call: &ReplyCall) -> Result<Question, Vec<PlanProblem>> {
    let value: Value = reader::object(&call.arguments).unwrap_or(Value::Null);
    let text = |name: &str| {
        value.get(name).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned)
    };
    let Some(question) = text("question") else {
        return Err(vec![PlanProblem::new(
            "reply.no_question",
            "AskUser needs \"question\": the words for the user",
        )]);
    };
    let missing = value
        .get("missing")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let known = value.get("known").filter(|v| v.is_object()).cloned().unwrap_or(Value::Null);
    Ok(Question { text: question, tool: text("tool"), missing, known, choices: Vec::new() })
}

/// A call that cannot be executed, with the reason.
pub(super) fn unusable(written: &ReplyCall, call: u32, tool: &str, problem: Fault) -> RequestedCall {
    RequestedCall {
        provider_id: written.id.clone(),
        problem: Some(problem),
        ..RequestedCall::new(call, tool, "", Value::String(written.arguments.clone()), Effect::Read)
    }
}

/// A call as written in a scene's reply.
pub(super) struct SceneReplyCall<'a> {
    pub(super) call: &'a ReplyCall,
    /// Its ordinal in the run.
    pub(super) ordinal: u32,
    /// The calls of the same reply that come before it.
    pub(super) before: &'a [RequestedCall],
    /// Whether the offline model requested it in place of failed models.
    pub(super) fallback: bool,
    /// Whether the scene only asks if the call is wanted.
    pub(super) is_question: bool,
    /// Whether the plan prepared it, so that it is part of no reply.
    pub(super) is_prepared: bool,
    /// Why the plan alone does not decide for the call.
    pub(super) doubts: PlanDoubts,
    /// The failed call that it replaces; then it is part of no reply.
    pub(super) stands_for: Option<&'a CallState>,
}

impl<'a> SceneReplyCall<'a> {
    /// A call that a scene's model wrote, alone in its reply.
    pub(super) fn new(call: &'a ReplyCall, ordinal: u32) -> Self {
        Self {
            call,
            ordinal,
            before: &[],
            fallback: false,
            is_question: false,
            is_prepared: false,
            doubts: PlanDoubts::default(),
            stands_for: None,
        }
    }
}

/// The tool that a model named, or the name and why there is none. Some models write names in another case or followed
/// by an argument list.
fn called_tool<'s, 'n>(
    scene: &'s Scene,
    step: &StepState,
    name: &'n str,
) -> Result<&'s SceneTool, (&'n str, Fault)> {
    let bare = name.split('(').next().unwrap_or("").trim();
    let tool = scene.tool(bare).or_else(|| scene.tools.iter().find(|t| t.name.eq_ignore_ascii_case(bare)));
    tool.ok_or_else(|| {
        let all: Vec<&str> = offered(scene, step).map(|t| t.name.as_str()).collect();
        let message = format!("there is no tool {bare:?}; the tools are {}", all.join(", "));
        (bare, Fault::new("tool.unknown", message))
    })
}

pub(super) fn read_call(
    state: &RunState,
    catalogue: &Catalogue,
    scene: &Scene,
    step: &StepState,
    written: &SceneReplyCall<'_>,
) -> RequestedCall {
    let SceneReplyCall { call: reply, ordinal, before, fallback, is_question, stands_for, .. } = *written;
    let tool = match called_tool(scene, step, &reply.name) {
        Ok(tool) => tool,
        Err((bare, problem)) => return unusable(reply, ordinal, bare, problem),
    };
    let (arguments, problem) = read_arguments(state, catalogue, scene, step, tool, written);
    let problem = problem.or_else(|| forbidden_call(state, scene, tool));
    let number = step.step.step_number;
    let key = key_in_step(call_key(&scene.name, &tool.name, &arguments, &tool.identity), step, tool);
    let occurrence = match stands_for {
        Some(original) if tool.repeatable => original.requested.occurrence,
        Some(_) => 0,
        None => occurrence(state, number, tool, &key, before),
    };
    let by_rules = fallback || state.is_planned_by_rules(number);
    let approvable = ApprovableCall { tool, arguments: &arguments, occurrence, by_rules, stands_for };
    let approval = if problem.is_none() { call_approval(state, &step.step, &approvable) } else { None };
    let asked = ProposedWrite {
        scene,
        step,
        tool,
        arguments: &arguments,
        key: &key,
        occurrence,
        is_approved_by_itself: approval.is_some(),
        before,
        is_question,
        doubts: written.doubts,
        stands_for: stands_for.map(|original| original.requested.tool.as_str()),
    };
    let confirm = if problem.is_none() { required_confirmation(state, catalogue, &asked) } else { None };
    let adapts = state.settings().mode.is_some();
    let policies = (adapts && !tool.policies.is_empty()).then(|| Box::new(tool.policies.clone()));
    let definition = (adapts && tool.effect == Effect::Write).then(|| effective_definition(tool));
    RequestedCall {
        call: ordinal,
        scene: None,
        provider_id: reply.id.clone(),
        tool: tool.name.clone(),
        key,
        arguments,
        effect: tool.effect,
        repeat: tool.repeat,
        problem,
        approval,
        undo: tool.undo.clone(),
        confirm,
        occurrence,
        volatile: tool.volatile && state.settings().has_rules(1),
        policies,
        definition,
    }
}

/// The arguments without those that the schema does not declare: they would only make two equal calls differ.
fn declared_arguments(tool: &SceneTool, arguments: Value) -> Value {
    let schema = &tool.parameters;
    let elsewhere = ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "additionalProperties"];
    let is_plain = elsewhere.iter().all(|key| schema.get(*key).is_none_or(|value| *value == false));
    match (schema.get("properties").and_then(Value::as_object), arguments) {
        (Some(declared), Value::Object(mut map)) if is_plain => {
            map.retain(|name, _| declared.contains_key(name));
            Value::Object(map)
        }
        (_, arguments) => arguments,
    }
}

/// The arguments without the invisible characters that a model added.
///
/// # Errors
/// Why they do not fit the tool without them.
fn visible_arguments(
    state: &RunState,
    catalogue: &Catalogue,
    tool: &SceneTool,
    arguments: Value,
) -> Result<Value, Fault> {
    let visible = without_added_characters(state, catalogue, arguments.clone());
    match visible == arguments {
        true => Ok(arguments),
        false => arguments::check(tool, &visible.to_string()),
    }
}

/// The arguments of a call, and why it is not executed, if so.
fn read_arguments(
    state: &RunState,
    catalogue: &Catalogue,
    scene: &Scene,
    step: &StepState,
    tool: &SceneTool,
    written: &SceneReplyCall<'_>,
) -> (Value, Option<Fault>) {
    let settings = state.settings();
    // A substitute was not chosen by a model.
    let is_offered = written.stands_for.is_some() || offered(scene, step).any(|t| t.name == tool.name);
    let given = &written.call.arguments;
    let checked = arguments::check(tool, given).and_then(|arguments| {
        let is_exact = state.is_confirmation() || !binding_calls(state, step).is_empty();
        match is_exact {
            true => Ok(arguments),
            false => visible_arguments(state, catalogue, tool, arguments),
        }
    });
    let arguments = match checked {
        Ok(arguments) => match settings.has_rules(2) && tool.effect == Effect::Write {
            true => declared_arguments(tool, arguments),
            false => arguments,
        },
        Err(fault) => return (Value::String(given.clone()), Some(fault)),
    };
    if !is_offered {
        let message = format!(
            "{} changes something and the plan does not expect it in this step: it was not called",
            tool.name
        );
        return (arguments, Some(Fault::new("tool.not_offered", message)));
    }
    if settings.has_rules(1) {
        // A question executes nothing.
        let asks = written.is_question || written.is_prepared || state.is_confirmation();
        let last = state.is_last_round(step.step.step_number) && !asks;
        let message = || {
            format!(
                "{} was not called: this was the last of {} replies in this step",
                tool.name, settings.max_rounds
            )
        };
        return (arguments, last.then(|| Fault::new("bound.rounds", message())));
    }
    // From revision 1 on, `confirmation` decides about days of writes.
    let problem = on_other_days(state, step, tool, &arguments);
    (arguments, problem)
}
