//! Which scenes the prompt for a plan describes in full, if there are too many to describe all of them.
//!
//! The prompt lists every scene by name and first sentence, and those of the shortlist with tools and examples. A plan
//! may use any scene, and may ask for scenes that are not on the list (`more_scenes`): the reply is then returned with
//! their descriptions, like a reply that needs repair.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::tools::{CREATE_PLAN, MORE_SCENES};
use crate::llm::{Request, embeddings, reader};
use crate::plan::PlanProblem;
use crate::run::{AskStatus, Event, Reply, RunState, Settings, Subject};
use crate::scene::{Catalogue, Scene};

/// The code of a reply that asks for more scenes.
const ASKS_FOR_MORE: &str = "plan.more_scenes";
/// How many scenes are added for a topic.
const PER_TOPIC: usize = 5;
/// Maximum number of names and topics read from one reply.
const MAX_WANTED: usize = 20;
/// Turns of the conversation whose words and scenes count.
const RECENT_TURNS: usize = 2;
/// Maximum number of scenes that a ranking by embeddings names: later ones would hardly count.
pub const MAX_RANKED: usize = 100;

/// Returns whether the prompts of this run describe only some scenes in full.
pub(super) fn is_shortlisted(state: &RunState, catalogue: &Catalogue) -> bool {
    needs_shortlist(state.settings(), catalogue)
}

/// Returns whether prompts with these settings describe only some scenes in full.
pub fn needs_shortlist(settings: &Settings, catalogue: &Catalogue) -> bool {
    let max = settings.shortlist as usize;
    max > 0 && catalogue.len() > max
}

/// The scenes that the prompt for plan `version` describes in full, by name.
///
/// Scenes that the run or the open question already involves, and those that earlier replies named or asked for, are
/// always among them. The others are found by the words of the request, of what is missing, and of recent turns, and by
/// the embedding of the request where a model offered one.
pub(super) fn shortlist<'a>(state: &RunState, catalogue: &'a Catalogue, version: u32) -> Vec<&'a Arc<Scene>> {
    let max = state.settings().shortlist as usize;
    let mut listed: BTreeSet<&str> = BTreeSet::new();
    let mut add = |name: &str| {
        let name = name.trim();
        let found = catalogue.iter().find(|scene| scene.name.eq_ignore_ascii_case(name));
        listed.extend(found.map(|scene| scene.name.as_str()));
    };
    let context = state.started.as_ref().map(|started| &started.context);
    let turns = context.into_iter().flat_map(|context| context.turns.iter().rev().take(RECENT_TURNS));
    turns.flat_map(|turn| &turn.calls).for_each(|call| add(&call.scene));
    let pending = context.and_then(|context| context.pending.as_ref());
    pending.into_iter().for_each(|pending| add(&pending.scene));
    let planned = state.plans.iter().flat_map(|made| &made.plan.steps);
    planned.for_each(|step| add(&step.scene_name));
    rejected_replies(state, version).flat_map(named_scenes).for_each(|name| add(&name));
    let topics: Vec<String> = rejected_replies(state, version).flat_map(requested_scenes_in).collect();
    topics.iter().for_each(|topic| add(topic));
    for topic in &topics {
        listed.extend(catalogue.matching(topic).take(PER_TOPIC).map(|scene| scene.name.as_str()));
    }
    let max = max.max(listed.len());
    for scene in catalogue.ranked(&words(state), state.ranking.as_deref().unwrap_or_default()) {
        if listed.len() >= max {
            break;
        }
        listed.insert(&scene.name);
    }
    catalogue.iter().filter(|scene| listed.contains(scene.name.as_str())).collect()
}

/// The question for the ranking by embeddings: the vector of the request's text.
pub(super) fn ranking_request(state: &RunState) -> Request {
    embeddings::request([state.request()])
}

/// Reads the reply about the ranking: the names of scenes, the most similar first.
///
/// # Errors
/// It is no such list.
pub(super) fn read_ranking(reply: &Reply, call: u32) -> Result<Event, Vec<PlanProblem>> {
    let unreadable = |why: String| vec![PlanProblem::new("ranking.unreadable", why)];
    let scenes: Vec<String> =
        serde_json::from_str(&reply.text).map_err(|error| unreadable(error.to_string()))?;
    match scenes.len() {
        1..=MAX_RANKED => Ok(Event::ScenesRanked { call, scenes }),
        number => Err(unreadable(format!("{number} scenes are ranked; 1 to {MAX_RANKED} are allowed"))),
    }
}

/// The words to search by: of the request, what it continues, and what is still missing.
fn words(state: &RunState) -> String {
    let feedback = state.planning.as_ref().and_then(|planning| planning.feedback.as_ref());
    let missing = state.verdicts.last().and_then(|verdict| verdict.missing_information.as_deref());
    let context = state.started.as_ref().map(|started| &started.context);
    let pending = context.and_then(|context| context.pending.as_ref());
    let last = context.and_then(|context| context.turns.last());
    let mut texts = vec![state.request()];
    texts.extend(feedback.map(|feedback| feedback.words.as_str()));
    texts.extend(missing);
    texts.extend(pending.map(|pending| pending.request.as_str()));
    texts.extend(last.map(|turn| turn.request.as_str()));
    texts.join("\n")
}

fn rejected_replies(state: &RunState, version: u32) -> impl Iterator<Item = &Reply> {
    let tries = state.tries(Subject::Plan { version }).iter();
    tries.filter_map(|call| state.asks.get(call)).filter_map(|ask| match &ask.status {
        AskStatus::Rejected { reply, .. } => Some(reply),
        _ => None,
    })
}

/// The scenes of the steps of a rejected plan, so that its repair sees their tools.
fn named_scenes(reply: &Reply) -> Vec<String> {
    let Some(plan) = plan_of_reply(reply) else { return Vec::new() };
    let steps = plan["steps"].as_array().into_iter().flatten();
    steps.filter_map(|step| step["scene_name"].as_str()).take(MAX_WANTED).map(str::to_owned).collect()
}

fn requested_scenes_in(reply: &Reply) -> Vec<String> {
    plan_of_reply(reply).map(|plan| requested_scenes(&plan)).unwrap_or_default()
}

fn plan_of_reply(reply: &Reply) -> Option<Value> {
    reader::read(reply, CREATE_PLAN, crate::run::ReaderMode::Tolerant).ok()
}

/// The names and topics that a plan asks for.
fn requested_scenes(plan: &Value) -> Vec<String> {
    let wanted = plan[MORE_SCENES].as_array().into_iter().flatten().filter_map(Value::as_str);
    wanted.map(str::trim).filter(|one| !one.is_empty()).take(MAX_WANTED).map(str::to_owned).collect()
}

/// The problem of a plan that asks for scenes which its prompt did not describe. `None` if it asks for none, if an
/// earlier reply did so already, or if no repair is left: such a plan is used as it is.
pub(super) fn more_scenes(
    state: &RunState,
    catalogue: &Catalogue,
    version: u32,
    plan: &Value,
) -> Option<PlanProblem> {
    let wanted = requested_scenes(plan);
    if wanted.is_empty() || !is_shortlisted(state, catalogue) {
        return None;
    }
    let tries = state.tries(Subject::Plan { version });
    let before = tries.iter().filter_map(|call| state.asks.get(call)).any(|ask| match &ask.status {
        AskStatus::Rejected { problems, .. } => problems.iter().any(|problem| problem.code == ASKS_FOR_MORE),
        _ => false,
    });
    // This reply is among the tries.
    if before || tries.len() > state.settings().max_retries as usize {
        return None;
    }
    let message = format!(
        "you asked for more scenes ({}): <shortlist> now describes those that were found. Write the plan, and ask for no \
         more",
        wanted.join(", ")
    );
    Some(PlanProblem::new(ASKS_FOR_MORE, message))
}
