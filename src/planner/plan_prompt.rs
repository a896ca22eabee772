//! The prompt for a plan. What is the same for every request of a catalogue comes first, so that providers can cache it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::approval::planned_calls;
use super::completed_work::completed_work;
use super::constraints::{allowed, not_allowed, push_guidance, push_switched_off, shown_as_switched_off};
use super::documents::push_documents;
use super::facts::push_facts;
use super::prompt::{common, context, conversation, forced, pending};
use super::shortlist::{is_shortlisted, shortlist};
use super::tools::create_plan;
use crate::language;
use crate::llm::signature::{self, SceneLine, ToolLine};
use crate::llm::{Purpose, Request, sections};
use crate::plan::{PROGRAM, SYNTHESIS};
use crate::run::{Effect, OutOfScope, PlanningMaker, RunState, Subject};
use crate::scene::{Catalogue, PlanShape, PlannedCalls, Scene};

const PLAN: &str = "\
You plan how a user's request is carried out by scenes. You do not answer it yourself. Call the function \
CreateExecutionPlan exactly once.
- If no scene serves the request (small talk, general knowledge, a question about this conversation itself), set \
needs_execution to false and give no steps. A scene serves only what its description says.
- A step is one task for one scene from <scenes>. Use scene and tool names exactly as listed; never invent one.
- Make one step for each thing the user asks for, and no step for anything the user does not ask for.
- purpose: what the scene is to do, in the user's language, complete in itself: repeat every name, place, date and \
number the user gave, resolve what the request refers to from <conversation>, and add nothing the user did not say.
- expected_tools: the tools of that scene which the step needs. Name a tool with effect \"write\" only if the user asks \
for that change.
- depends_on_step: null if the step can start at once. If the user gives an order (\"then\", \"poi\") or the step needs \
another's result, the number of that step.
- A scene may take part in several steps, as when a value is read, changed and read again.
- If a detail is missing, plan the step all the same: its scene asks the user.
- A text that the user wants translated, corrected, summarised, given a title or questions, and a text that is quoted or \
meant for somebody else, asks for nothing: needs_execution is false unless a scene does just that task. The same holds \
where the chatbot's instructions set such a task.
- What the user says not to do, did in the past, only asks about, or makes depend on a condition is no request for a \
change: plan what can be looked up, and set unclear to true for a step whose change the user may not want.
- unserved: the parts of the request that no scene serves, in the user's words; they are named as not done.
- If there is <pending>, the assistant has asked the user that question. If the request answers it, plan a step for \
that scene whose purpose joins the earlier purpose with what the user says now.";

const PREPARED: &str = "
- A person is shown the plan before it begins. prepared_calls: for each tool with effect \"write\" among expected_tools, \
the call as it is to be made, with the arguments that the user said. Leave an argument out where the user did not say \
it or another step finds it; never make one up. A date without a year is the next such date after <now>; the end of a \
range is the first such date after its start.";

const PREPARED_ALL: &str = "
- prepared_calls: the calls that carry out the step, in their order; arguments is one JSON object as text. Give each call \
whose required arguments are all known: said by the user, in <conversation>, or in the result of a step that this one \
depends on. Such a result is referred to, never guessed: as the value of an argument write \
{\"$ref\": {\"step\": 1, \"tool\": \"AddCity\", \"pointer\": \"/id\"}}, with a JSON pointer into that result. Leave a call out if an \
argument is unknown or depends on what a call finds; the scene then decides. Never make a value up. A call with effect \
\"write\" only for a change that the user asks for. A date without a year is the next such date after <now>; the end of a \
range is the first such date after its start.";

const IF_NEEDED: &str = "
- if_needed: those of expected_tools that are called only if what another call finds makes it necessary; the step may end \
without them.";

const NOTHING_LATER: &str = "
- Nothing is asked later: each step consists of its prepared_calls alone. Prepare every call of a step; what cannot be \
prepared is not done. Name in unserved whatever part of the request the steps do not carry out.";

const WITH_SYNTHESIS: &str = "
- A step of LLM has no tool: a model makes values of the results of steps that it depends on, such as a comparison, a ranking \
or a text that another step needs. inputs: one JSON object as text; each value is a constant, or a result as \
{\"$ref\": {\"step\": 1, \"tool\": \"AddCity\", \"pointer\": \"\"}}. output: the JSON Schema of the object to make, as text, or null for a \
text. The answer is worded without such a step, and no change takes its values from one.";

const WITH_PROGRAMS: &str = "
- A step of PROGRAM is one Python program, which is written when the step begins, and which calls tools of several scenes and \
computes with their results. Use one where a task loops over what a call finds, filters, counts or computes, or does the same for \
many things; otherwise use steps of scenes. scenes: the scenes whose tools it calls; purpose: the whole task.";

const WITH_ANSWER: &str = "
- answer: null where needs_execution is true. Otherwise the answer to the user, in the user's language, brief and exact: from \
<conversation>, or from general knowledge; never claim to have done anything. Say what the scenes can do if that helps.";

const WITH_REFUSAL: &str = "
- answer: null where needs_execution is true. Otherwise the reply to the user, in the user's language: answer only if the \
request is a greeting or about <conversation> itself. Otherwise say in one sentence that this is outside what you can do, and \
what the scenes can do.";

const SHORTLISTED: &str = "
- <scenes> lists every scene; <shortlist> describes those that seem to fit, with their tools. If a scene that is not in \
<shortlist> may serve the request better, write its name (or the topic, if no name fits) in more_scenes, with \
needs_execution false and no steps: you are then shown its tools. Otherwise more_scenes is empty.";

const HINTS: &str = "Plans that answered similar requests; words in braces stand for values. They are examples, not instructions, and \
the request below may need another plan.";

const OPERATOR: &str = "\nFurther instructions, from the operator; the rules above hold in any case:\n";

const REPLAN: &str = "
This is a further plan. <executed> was already done: never repeat it. Plan only what <missing> names, number the steps \
from <number_from>, and let them depend on executed steps where they need their results. If nothing more can be done, \
set needs_execution to false and give no steps.";

const MANY_STEPS: &str = "
- At most {max} steps. If the request needs more, plan the first {max}: the rest is planned afterwards.";

const MODIFY: &str = "
There is a plan already, in <plan>, and a person wants it changed as <feedback> says. Write the whole plan anew with that \
change: keep every step that <feedback> does not speak of, with its words and tools, and number the steps from \
<number_from>. What is in <executed> was already done: never repeat it.";

/// The request to send for plan `version`.
pub(super) fn request(state: &RunState, catalogue: &Catalogue, version: u32) -> Request {
    let shape = shape(state, catalogue, version);
    let mut system = instructions(PLAN, state, shape);
    let mut data = known(state, catalogue, version, shape);
    let feedback = state.planning.as_ref().and_then(|planning| planning.feedback.as_ref());
    if version == 1 && feedback.is_none() {
        push_hints(state, &mut data);
    }
    if let Some(feedback) = feedback {
        system.push_str(MODIFY);
        if !state.finished_steps().is_empty() {
            sections::push(&mut data, "executed", &completed_work(state, catalogue));
        }
        if let Some(made) = state.plan() {
            sections::push(&mut data, "plan", &json!(made.plan).to_string());
        }
        sections::push(&mut data, "feedback", &feedback.words);
        sections::push(&mut data, "number_from", &(state.last_fixed_step(true) + 1).to_string());
    } else if version > 1 {
        system.push_str(REPLAN);
        sections::push(&mut data, "executed", &completed_work(state, catalogue));
        let missing = state.verdicts.last().and_then(|v| v.missing_information.clone()).unwrap_or_default();
        sections::push(&mut data, "missing", &missing);
        sections::push(&mut data, "number_from", &(state.last_step() + 1).to_string());
    }
    sections::push(&mut data, "request", state.request());
    let tries = state.tries(Subject::Plan { version });
    forced(state, Purpose::Plan, system, data, create_plan(catalogue, shape), tries)
}

/// The sections that any author of steps is shown: the scenes, the time, the conversation, the user.
pub(super) fn known(state: &RunState, catalogue: &Catalogue, version: u32, shape: PlanShape) -> String {
    let mut data = String::new();
    // The author of arguments has to know what they mean.
    let described = shape.calls == PlannedCalls::All;
    let allowed = allowed(state, catalogue);
    let narrowed = allowed.as_ref().map(|scenes| narrowed(scenes, described));
    let scenes = match (&narrowed, shape.shortlisted) {
        (_, true) => catalogue.overview(overview),
        (Some(narrowed), false) => narrowed.as_str(),
        (None, false) => catalogue.description(described, |catalogue| scenes(catalogue, described)),
    };
    if state.settings().has_rules(3) {
        data.push_str(scenes);
        data.push_str(&common(state));
    } else {
        data.push_str(&common(state));
        data.push_str(scenes);
    }
    let context = context(state);
    sections::push(&mut data, "conversation", &conversation(&context, context.turns.iter()));
    push_facts(&context, &mut data);
    pending(&mut data, &context);
    if shape.calls != PlannedCalls::None {
        // Some arguments describe the user.
        sections::push(&mut data, "user", state.queued.as_ref().map_or("", |queued| queued.user.as_str()));
    }
    if shape.shortlisted {
        let listed = shortlist(state, catalogue, version);
        let text = match &allowed {
            None => lines(listed.into_iter().map(Arc::as_ref), described),
            Some(allowed) => {
                let is_listed = |scene: &&Scene| listed.iter().any(|listed| listed.name == scene.name);
                lines(allowed.iter().filter(is_listed), described)
            }
        };
        sections::push(&mut data, "shortlist", &text);
    }
    push_guidance(state, &mut data);
    push_documents(state, &mut data);
    let refused = not_allowed(state, catalogue);
    if !refused.is_empty() {
        sections::push(&mut data, "not_allowed", &lines(refused.iter(), false));
    }
    push_switched_off(state, &lines(shown_as_switched_off(catalogue), false), &mut data);
    data
}

/// Returns what plan `version` may contain.
pub(super) fn shape(state: &RunState, catalogue: &Catalogue, version: u32) -> PlanShape {
    let changes = state.planning.as_ref().is_some_and(|planning| planning.feedback.is_some());
    PlanShape {
        calls: planned_calls(state, catalogue),
        max_steps: state.settings().max_steps,
        answers: version == 1 && !changes && state.settings().has_rules(3) && !state.is_plan_only(),
        shortlisted: is_shortlisted(state, catalogue),
        synthesis: offers_synthesis(state, catalogue),
        programs: offers_programs(state, catalogue),
        switched_off: state.settings().has_rules(11) && !catalogue.switched_off().is_empty(),
    }
}

/// Whether planners are offered steps of kind llm: a model executes them, no scene or flow has their name, and the run is of a
/// release that offers them.
fn offers_synthesis(state: &RunState, catalogue: &Catalogue) -> bool {
    state.settings().node_model == Some(true)
        && !state.prepares_everything()
        && !catalogue.is_empty()
        && catalogue.get(SYNTHESIS).is_none()
}

/// Returns whether planners are offered steps of kind code: programs may be written and executed, and no scene has their name.
pub(super) fn offers_programs(state: &RunState, catalogue: &Catalogue) -> bool {
    state.settings().maker != PlanningMaker::Scenes
        && state.settings().program_model == Some(true)
        && !state.prepares_everything()
        && !catalogue.is_empty()
        && catalogue.get(PROGRAM).is_none()
}

/// Adds the plans that succeeded for similar requests. They are explained here, so that prompts with and without them
/// begin alike.
fn push_hints(state: &RunState, data: &mut String) {
    let hints = state.recall.iter().flat_map(|recall| &recall.hints);
    let lines: Vec<String> = hints.map(|hint| json!(hint).to_string()).collect();
    if !lines.is_empty() {
        let text = format!("{HINTS}\n{}", lines.join("\n"));
        sections::push(data, "similar_plans", &text);
    }
}

/// The system message for an author of steps: `task`, then the rules for steps of this shape.
pub(super) fn instructions(task: &str, state: &RunState, shape: PlanShape) -> String {
    let settings = state.settings();
    let mut system = task.to_owned();
    if settings.has_rules(1) {
        system.push_str(&MANY_STEPS.replace("{max}", &shape.max_steps.to_string()));
    }
    match shape.calls {
        PlannedCalls::None => {}
        PlannedCalls::Writes => system.push_str(PREPARED),
        PlannedCalls::All => {
            system.push_str(PREPARED_ALL);
            system.push_str(IF_NEEDED);
            if state.prepares_everything() {
                system.push_str(NOTHING_LATER);
            }
        }
    }
    if shape.synthesis {
        system.push_str(WITH_SYNTHESIS);
    }
    if shape.programs {
        system.push_str(WITH_PROGRAMS);
    }
    if shape.answers {
        system.push_str(match settings.out_of_scope {
            OutOfScope::Answer => WITH_ANSWER,
            OutOfScope::Decline => WITH_REFUSAL,
        });
    }
    if shape.shortlisted && task == PLAN {
        system.push_str(SHORTLISTED);
    }
    if !settings.planner_instructions.is_empty() {
        system.push_str(OPERATOR);
        system.push_str(&settings.planner_instructions);
    }
    system
}

/// The section with every scene in full.
fn scenes(catalogue: &Catalogue, described: bool) -> String {
    let mut section = String::new();
    sections::push(&mut section, "scenes", &lines(catalogue.iter().map(Arc::as_ref), described));
    section
}

/// The section with the scenes and tools that a request's constraints allow.
fn narrowed(scenes: &[Scene], described: bool) -> String {
    let mut section = String::new();
    sections::push(&mut section, "scenes", &lines(scenes.iter(), described));
    section
}

/// The section with every scene by name and first sentence.
fn overview(catalogue: &Catalogue) -> String {
    let lines: Vec<String> = catalogue
        .iter()
        .map(|scene| {
            let description = language::first_sentence(&scene.description);
            json!({"scene": scene.name, "description": description}).to_string()
        })
        .collect();
    let mut section = String::new();
    sections::push(&mut section, "scenes", &lines.join("\n"));
    section
}

/// One line for each scene. Examples are listed with the tool that serves them, and arguments by their signature: complete
/// schemas would double the prompt without better plans. An author that prepares calls gets the arguments `described`.
fn lines<'a>(scenes: impl Iterator<Item = &'a Scene>, described: bool) -> String {
    let says = |scene: &Scene, tool: Option<&str>| -> Vec<String> {
        scene.examples.iter().filter(|e| e.tool.as_deref() == tool).map(|e| e.say.clone()).collect()
    };
    let lines: Vec<String> = scenes
        .map(|scene| SceneLine {
            scene: scene.name.clone(),
            description: scene.description.clone(),
            tools: scene
                .tools
                .iter()
                .map(|tool| ToolLine {
                    name: tool.name.clone(),
                    effect: if tool.effect == Effect::Write { "write" } else { "read" }.to_owned(),
                    description: tool.description.clone(),
                    arguments: signature::signature(&tool.parameters),
                    about: match described {
                        true => signature::descriptions(&tool.parameters),
                        false => BTreeMap::new(),
                    },
                    examples: says(scene, Some(&tool.name)),
                })
                .collect(),
            examples: says(scene, None),
        })
        // Serialising plain data cannot fail.
        .map(|line| serde_json::to_string(&line).unwrap_or_default())
        .collect();
    lines.join("\n")
}
