//! Calls that a plan prepares: read with the plan, and made when their step begins.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::approval::unfit_call;
use super::confirmation::{PlanDoubts, untraced_arguments};
use super::flow_node;
use super::prompt::binding_calls;
use super::scene_reply::{SceneReplyCall, missing_arguments, question_for, read_call, unusable};
use crate::language;
use crate::llm::offline::{self, Unasked};
use crate::llm::reader;
use crate::plan::{self, Plan, PreparedCall, Reference};
use crate::run::{
    Effect, Event, Fault, PlanMaker, Question, ReplyCall, RequestedCall, RunState, StepState, UnpreparedCall,
    UnusableCall,
};
use crate::scene::{Catalogue, Scene, SceneTool};

/// A prepared call whose arguments are not an object: the index of its step in the plan, and its tool.
pub(super) type UnreadableCall = (usize, String);

/// Parses the arguments of prepared calls that a model wrote as text. A call whose arguments cannot be parsed is
/// removed from the plan and returned: its scene makes it.
pub(super) fn parse_arguments(plan: &mut Value) -> Vec<UnreadableCall> {
    let steps = plan.get_mut("steps").and_then(Value::as_array_mut);
    let mut unreadable = Vec::new();
    for (place, step) in steps.into_iter().flatten().enumerate() {
        let calls = step.get_mut("prepared_calls");
        match calls {
            Some(Value::Array(calls)) => calls.retain_mut(|call| {
                let is_parsed = parse_call(call);
                let tool = call["tool"].as_str().filter(|_| !is_parsed);
                unreadable.extend(tool.map(|tool| (place, tool.to_owned())));
                is_parsed
            }),
            // Some models write null for an empty list.
            Some(other) => *other = Value::Array(Vec::new()),
            None => {}
        }
    }
    unreadable
}

/// Parses the arguments of prepared calls that a model wrote as text although objects were required. Text that cannot
/// be parsed is left as it is, for the model to correct.
pub(super) fn parse_object_texts(plan: &mut Value) {
    let steps = plan.get_mut("steps").and_then(Value::as_array_mut);
    let calls = steps.into_iter().flatten().filter_map(|step| step.get_mut("prepared_calls")?.as_array_mut());
    calls.flatten().for_each(|call| _ = parse_call(call));
}

fn parse_call(call: &mut Value) -> bool {
    let has_tool = call.get("tool").is_some_and(Value::is_string);
    let Some(arguments) = call.get_mut("arguments") else { return false };
    if let Some(text) = arguments.as_str() {
        match reader::object(text) {
            Some(parsed) => *arguments = parsed,
            None => return false,
        }
    }
    has_tool && arguments.is_object()
}

/// Removes the prepared calls that cannot be made: of tools that the step does not expect, with arguments that do not
/// fit, with references that do not go to an earlier step, or with references inside of arguments. Those of expected
/// tools are returned: their scene makes them. A reference to an earlier step adds a dependency on it.
pub(super) fn take_unusable(
    plan: &mut Plan,
    catalogue: &Catalogue,
    finished: &BTreeSet<u32>,
    unreadable: &[UnreadableCall],
) -> Vec<UnusableCall> {
    let numbers: BTreeSet<u32> = plan.steps.iter().map(|step| step.step_number).collect();
    let mut unusable = Vec::new();
    for (place, step) in plan.steps.iter_mut().enumerate() {
        let number = step.step_number;
        let precedes = |found: &Reference| {
            finished.contains(&found.step) || (found.step < number && numbers.contains(&found.step))
        };
        let mut calls = std::mem::take(&mut step.prepared_calls);
        let own = unreadable.iter().filter(|(at, tool)| *at == place && step.expected_tools.contains(tool));
        let mut found: Vec<UnpreparedCall> = own.map(|(_, tool)| unreadable_call(tool)).collect();
        calls.retain(|call| {
            let why = misplaced_reference(call, precedes)
                .or_else(|| unfit_call(catalogue, step, call).map(|problem| problem.message));
            let is_expected = step.expected_tools.contains(&call.tool);
            let is_usable = is_expected && why.is_none();
            found.extend(why.filter(|_| is_expected).map(|why| UnpreparedCall {
                tool: call.tool.clone(),
                arguments: Value::Object(call.arguments.clone()),
                why,
            }));
            is_usable
        });
        step.prepared_calls = calls;
        unusable.extend(found.into_iter().map(|call| UnusableCall { step: number, call }));
    }
    for at in 0..plan.steps.len() {
        let step = &plan.steps[at];
        let calls = step.prepared_calls.iter().flat_map(|call| call.references());
        let inputs = step.input_references().filter(|found| found.step < step.step_number);
        let found: BTreeSet<u32> = calls.chain(inputs).map(|found| found.step).collect();
        for earlier in found {
            let number = plan.steps[at].step_number;
            if !finished.contains(&earlier) && !plan::depends_on(plan, number, earlier) {
                let before = plan.steps[at].depends_on_step.iter();
                plan.steps[at].depends_on_step = before.chain([earlier]).collect();
            }
        }
    }
    unusable
}

fn unreadable_call(tool: &str) -> UnpreparedCall {
    let why = "its arguments were no JSON object".to_owned();
    UnpreparedCall { tool: tool.to_owned(), arguments: Value::Null, why }
}

/// The problem of the references of a call.
fn misplaced_reference(call: &PreparedCall, precedes: impl Fn(&Reference) -> bool) -> Option<String> {
    let is_inside = |value: &Value| Reference::of(value).is_none() && Reference::is_misplaced_in(value);
    if call.arguments.values().any(is_inside) {
        return Some("a reference stands inside of an argument".to_owned());
    }
    let mut references = call.references();
    references.find(|found| !precedes(found)).map(|found| format!("step {} is no earlier step", found.step))
}

/// The event with the prepared calls of a step.
pub fn prepared(state: &RunState, catalogue: &Catalogue, number: u32) -> Event {
    let Some(step) = state.steps.get(&number) else {
        return prepared_event(number, Vec::new(), Vec::new(), None);
    };
    if step.is_node() {
        return flow_node::prepared(state, catalogue, number);
    }
    if state.is_confirmation() {
        let calls = confirmed_calls(state, catalogue, step);
        return prepared_event(number, calls, Vec::new(), None);
    }
    let mut calls: Vec<RequestedCall> = Vec::new();
    let mut unprepared = Vec::new();
    let scene = catalogue.get(&step.step.scene_name);
    for planned in &step.step.prepared_calls {
        let effect =
            scene.and_then(|scene| scene.tool(&planned.tool)).map_or(Effect::Read, |tool| tool.effect);
        let call = resolve(state, &planned.arguments, effect).and_then(|arguments| {
            let scene = scene.ok_or_else(|| "the scene is not loaded".to_owned())?;
            prepared_call(state, catalogue, (scene, step), (&planned.tool, &arguments), &calls)
        });
        match call {
            Ok(call) => calls.push(call),
            Err(why) => unprepared.push(UnpreparedCall {
                tool: planned.tool.clone(),
                arguments: Value::Object(planned.arguments.clone()),
                why,
            }),
        }
    }
    let question =
        scene.filter(|_| !state.asks_scene(step)).and_then(|scene| missing_values(state, scene, step));
    unprepared.extend(state.unusable_calls(step).cloned());
    let is_planned = |tool: &String| {
        step.step.prepared_calls.iter().any(|call| call.tool == *tool)
            || state.unusable_calls(step).any(|call| call.tool == *tool)
    };
    let writes = scene.into_iter().flat_map(|scene| &scene.tools).filter(|tool| tool.effect == Effect::Write);
    for tool in writes.map(|tool| &tool.name) {
        let is_optional = step.step.if_needed.contains(tool);
        if step.step.expected_tools.contains(tool) && !is_optional && !is_planned(tool) {
            let why = "its arguments were not known when the plan was made".to_owned();
            unprepared.push(UnpreparedCall { tool: tool.clone(), arguments: Value::Null, why });
        }
    }
    prepared_event(number, calls, unprepared, question)
}

fn prepared_event(
    step: u32,
    calls: Vec<RequestedCall>,
    unprepared: Vec<UnpreparedCall>,
    question: Option<Question>,
) -> Event {
    Event::Prepared { step, calls, unprepared, question }
}

/// The question for the missing values of the first tool that the step expects and the plan could not prepare
/// completely. Usually the scene would ask it, but this scene may not be asked.
fn missing_values(state: &RunState, scene: &Scene, step: &StepState) -> Option<Question> {
    let none = Map::new();
    let given = |tool: &str| {
        let mut planned = step.step.prepared_calls.iter().filter(|call| call.tool == tool);
        planned.next().map_or(&none, |call| &call.arguments)
    };
    let expected = step.step.expected_tools.iter().filter(|tool| !step.step.if_needed.contains(tool));
    expected.filter_map(|name| scene.tool(name)).find_map(|tool| {
        let mut given = given(&tool.name).clone();
        given.retain(|_, value| !value.is_null() && Reference::of(value).is_none());
        let found = step.step.prepared_calls.iter().filter(|call| call.tool == tool.name);
        let referenced = |name: &str| {
            found
                .clone()
                .any(|call| call.arguments.get(name).is_some_and(|value| Reference::of(value).is_some()))
        };
        let mut missing = missing_arguments(tool, &given);
        missing.retain(|name| !referenced(name));
        question_for(state, tool, &missing, &given)
    })
}

/// A prepared call that may be made as it is.
///
/// # Errors
/// Why it may not.
fn prepared_call(
    state: &RunState,
    catalogue: &Catalogue,
    (scene, step): (&Scene, &StepState),
    (tool, arguments): (&str, &Value),
    before: &[RequestedCall],
) -> Result<RequestedCall, String> {
    let written = ReplyCall { id: String::new(), name: tool.to_owned(), arguments: arguments.to_string() };
    let asks = state.asks_scene(step);
    let by_plan = binding_calls(state, step).is_empty();
    let is_conditional = by_plan && state.settings().has_rules(4) && is_conditional_write(scene, step, tool);
    let is_unnamed = by_plan && !asks && unnamed_action(state, scene, tool).is_some();
    let written = SceneReplyCall {
        before,
        is_prepared: true,
        doubts: if asks { PlanDoubts::default() } else { PlanDoubts { is_unnamed, is_conditional } },
        ..SceneReplyCall::new(&written, state.next_call() + before.len() as u32)
    };
    let call = read_call(state, catalogue, scene, step, &written);
    if let Some(problem) = &call.problem {
        return Err(problem.message.clone());
    }
    // The scene may not be asked, so the user is.
    if !asks {
        return Ok(call);
    }
    if is_conditional {
        return Err("the plan makes it depend on what another call finds".to_owned());
    }
    // The scene asks the user what is missing, rather than whether an invented value is right.
    if let Some(confirm) = &call.confirm {
        return Err(confirm.why.join("; "));
    }
    // A call that a person wrote or approved needs no second opinion.
    if call.approval.is_none() && by_plan {
        second_opinion(state, catalogue, scene, &call)?;
    }
    Ok(call)
}

/// Whether a call that only the planner considered is made without its scene: a read whose values were all said or
/// found, and a write whose action the user named.
///
/// # Errors
/// Why its scene has to decide.
fn second_opinion(
    state: &RunState,
    catalogue: &Catalogue,
    scene: &Scene,
    call: &RequestedCall,
) -> Result<(), String> {
    let Some(tool) = scene.tool(&call.tool) else { return Ok(()) };
    if call.effect == Effect::Read {
        let nowhere = untraced_arguments(state, catalogue, tool, &call.arguments);
        return match nowhere.is_empty() {
            true => Ok(()),
            false => Err(format!("nobody said and no tool found: {}", nowhere.join(", "))),
        };
    }
    unnamed_action(state, scene, &tool.name).map_or(Ok(()), Err)
}

/// Why the request does not clearly ask for what a write does: no word of it names that.
pub(super) fn unnamed_action(state: &RunState, scene: &Scene, tool: &str) -> Option<String> {
    let tool = scene.tool(tool).filter(|tool| tool.effect == Effect::Write)?;
    let named = names_action(scene, tool, &requested_in_words(state));
    (!named).then(|| format!("the request does not name what {} does", tool.name))
}

/// Why the request does not ask for a write: its words name the write, but forbid it or only ask about it; or nothing
/// names it, and the request only asks for information. The last wording that names the write counts, in the request
/// and in later changes of the plan. `None` if a person wrote the plan.
pub(super) fn unasked_action(state: &RunState, scene: &Scene, tool: &SceneTool) -> Option<String> {
    if state.plans.iter().any(|made| made.maker == PlanMaker::Person) {
        return None;
    }
    let changes = state.plans.iter().rev().filter_map(|made| made.why.as_deref());
    let mut said = changes.chain([state.request()]);
    let Some(said) = said.find(|words| names_action(scene, tool, words)) else {
        return only_asks_to_be_told(state).then(|| "the request only asks to be told something".to_owned());
    };
    let why = match offline::unasked(said, |clause| names_action(scene, tool, clause))? {
        Unasked::Forbidden => "the request forbids what",
        // The rules read questions, and polite requests in their form, in these languages only.
        Unasked::Question if !matches!(language::detect(said), Some("en" | "it")) => return None,
        Unasked::Question => "the request is only a question about what",
    };
    Some(format!("{why} {} does", tool.name))
}

/// Whether the request is the only wording of what is wanted, and it only asks for information.
fn only_asks_to_be_told(state: &RunState) -> bool {
    let started = state.started.as_ref();
    let answers_question = started.is_some_and(|started| started.context.pending.is_some());
    let is_changed = state.plans.iter().any(|made| made.why.is_some());
    state.settings().has_rules(15)
        && !answers_question
        && !is_changed
        && offline::only_asks_to_be_told(state.request())
}

/// Returns whether words name what a tool does.
pub(super) fn names_action(scene: &Scene, tool: &SceneTool, said: &str) -> bool {
    let examples = scene.examples.iter().filter(|example| example.tool.as_ref() == Some(&tool.name));
    let about = examples.map(|example| example.say.as_str()).chain([tool.description.as_str()]);
    language::names_action(said, &tool.name, about)
}

/// Whether the plan lists a write among those that may turn out unnecessary.
fn is_conditional_write(scene: &Scene, step: &StepState, tool: &str) -> bool {
    let writes = scene.tool(tool).is_some_and(|tool| tool.effect == Effect::Write);
    writes && step.step.if_needed.iter().any(|name| name == tool)
}

/// The words with which the user asks: those of the request, of a request whose question it answers, and of changes to
/// the plan.
fn requested_in_words(state: &RunState) -> String {
    let context = state.started.as_ref().map(|started| &started.context);
    let pending = context.and_then(|context| context.pending.as_ref());
    let changes = state.plans.iter().filter_map(|made| made.why.as_deref());
    let asked = pending.map(|pending| pending.request.as_str());
    let said: Vec<&str> = asked.into_iter().chain([state.request()]).chain(changes).collect();
    said.join("\n")
}

/// The arguments of a call with the effect `by`, with the values that their references stand for.
///
/// # Errors
/// Which reference has no value, and why.
fn resolve(state: &RunState, arguments: &Map<String, Value>, by: Effect) -> Result<Value, String> {
    let mut resolved = Map::new();
    for (name, value) in arguments {
        let value = match Reference::of(value) {
            Some(found) => state.referenced(&found, by).map_err(|why| format!("{name}: {why}"))?,
            None => value.clone(),
        };
        resolved.insert(name.clone(), value);
    }
    Ok(Value::Object(resolved))
}

/// The calls that the user confirmed; each carries its problem, if any.
fn confirmed_calls(state: &RunState, catalogue: &Catalogue, step: &StepState) -> Vec<RequestedCall> {
    let mut calls: Vec<RequestedCall> = Vec::new();
    let scene = catalogue.get(&step.step.scene_name);
    // The plan omits null arguments, but the confirmation covers the complete call.
    let confirmed = state.started.iter().flat_map(|started| &started.confirmed);
    for known in confirmed.filter(|call| call.scene == step.step.scene_name) {
        let ordinal = state.next_call() + calls.len() as u32;
        let written =
            ReplyCall { id: String::new(), name: known.tool.clone(), arguments: known.arguments.to_string() };
        let call = match scene {
            Some(scene) => {
                let written = SceneReplyCall { before: &calls, ..SceneReplyCall::new(&written, ordinal) };
                read_call(state, catalogue, scene, step, &written)
            }
            None => unknown_call(&written, ordinal, &step.step.scene_name),
        };
        calls.push(call);
    }
    calls
}

fn unknown_call(written: &ReplyCall, call: u32, scene: &str) -> RequestedCall {
    let fault = Fault::new("scene.unknown", format!("the scene {scene} is not loaded"));
    unusable(written, call, &written.name, fault)
}
