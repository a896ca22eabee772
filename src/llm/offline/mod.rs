//! The embedded model: rules without weights and without network access. It receives the same prompts and
//! forced tools as any other model.
//!
//! It routes by similarity to the scenes' examples and descriptions, plans by the connectives of the
//! request, fills slots by the argument schemas, and composes answers from results.
//!
//! **Invariant:** it contains no canned answers and knows no scene by name. It has no clock (the prompt
//! carries the current time) and no state that affects its output.

mod answer;
mod asks;
mod candidates;
mod change_phrase;
mod changed_write;
mod clarity;
mod clauses;
mod comparisons;
mod connectives;
mod corrections;
mod countries;
mod courtesies;
mod cue_words;
mod date_arguments;
mod doubts;
mod drafts;
mod exclusions;
mod flow_choice;
mod flow_followups;
mod flow_path;
mod flow_questions;
mod followup;
mod free_text;
mod index;
mod intended_steps;
mod introductions;
mod memory;
mod mood;
mod named_days;
mod names;
mod number_arguments;
mod opening_act;
mod options;
mod order_verbs;
mod own_matters;
mod periods;
mod phrases;
mod plan;
mod plan_changes;
mod plan_flows;
mod prepared;
mod prompt;
mod pronouns;
mod quantity_questions;
mod recap;
mod recent_turns;
mod recovery;
mod render;
mod repeated_write;
mod replies;
mod reword;
mod rival_tools;
mod routing;
mod scene;
mod scored_clause;
mod senses;
mod separable_verbs;
mod similar_tools;
mod slots;
mod small_talk;
mod source;
mod speech;
mod tuples;
mod verdict;
mod weights;
mod who_questions;

#[cfg(test)]
mod tests;

pub(crate) use asks::{
    PlainAsk, Unasked, only_asks_to_be_told, plain_ask, requested_clauses, requested_parts, unasked,
};
pub(crate) use date_arguments::single_day_of_several;
use prompt::PromptText;
use serde_json::{Value, json};

use super::functions::{
    ADAPT_PLAN, CHECK_CONTINUATION, CHOOSE_RECOVERY, CREATE_PLAN, INTERPRET_DATA, MAKE_DECISION,
    PLAN_FLOW_PATH, WRITE_SUMMARY,
};
use super::{Completion, Message, Purpose, Request, ToolChoice};
use crate::language::{
    Lang, date_expression, dates, entities, lexicon, numbers, pattern, questions, schema, text, text_task,
};
use crate::run::{Reply, ReplyCall, Usage};

/// The model name in its replies.
pub const NAME: &str = "offline";

/// The embedded model.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineModel;

impl OfflineModel {
    /// Replies to a request. The same request always gets the same reply. Missing or malformed prompt
    /// sections are read as empty.
    pub fn complete(&self, request: &Request) -> Completion {
        let prompt = PromptText::of(request);
        let (text, calls) = reply_to(request, &prompt);
        let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
        let usage = Usage {
            calls: 1,
            input_tokens: estimated_tokens(input_characters(request)),
            cached_input_tokens: 0,
            output_tokens: estimated_tokens(
                text.chars().count()
                    + calls.iter().map(|c| c.name.len() + c.arguments.chars().count()).sum::<usize>(),
            ),
            cost_nano_usd: 0,
        };
        let reply = Reply { text, calls, finish_reason: Some(finish.to_owned()), model: NAME.to_owned() };
        Completion { reply, usage, first_token: None }
    }
}

fn reply_to(request: &Request, prompt: &PromptText) -> (String, Vec<ReplyCall>) {
    let forced = |name: &str, arguments| (String::new(), vec![forced_call(request, name, arguments)]);
    match (request.purpose, &request.choice) {
        (Purpose::Plan, _) => forced(CREATE_PLAN, plan::create(request, prompt)),
        (Purpose::Continuation, _) => forced(CHECK_CONTINUATION, verdict::check(request, prompt)),
        (Purpose::Scene, choice) => match scene::next(request, prompt) {
            scene::StepReply::Calls(calls) if *choice != ToolChoice::None => {
                (String::new(), scene::with_ids(request, calls))
            }
            scene::StepReply::Calls(_) => (questions::no_tool_notice(prompt.language()), Vec::new()),
            scene::StepReply::Text(text) => (text, Vec::new()),
        },
        (Purpose::Answer, _) => (answer::answer(prompt), Vec::new()),
        (Purpose::Recovery, _) => forced(CHOOSE_RECOVERY, recovery::choose(request)),
        (Purpose::Decision, _) => forced(MAKE_DECISION, recovery::choose(request)),
        // The offline model knows no meaning of data.
        (Purpose::Interpretation, _) => {
            forced(INTERPRET_DATA, json!({"reason": "no mapping is known", "mapping": []}))
        }
        // The offline model leaves a plan as it is.
        (Purpose::Adaptation, _) => forced(
            ADAPT_PLAN,
            json!({"reason": "no other plan is known", "remove": [], "replace": [], "add": []}),
        ),
        (Purpose::Path, _) => {
            let path = flow_path::path(prompt).unwrap_or_else(|| json!({"reasoning": "", "path": []}));
            forced(PLAN_FLOW_PATH, path)
        }
        // Of documents, the reader of the reply quotes what they say.
        (Purpose::Summary, ToolChoice::Forced(name)) if name != WRITE_SUMMARY => forced(name, json!({})),
        (Purpose::Summary, _) => forced(WRITE_SUMMARY, json!({"summary": recap::summary(prompt)})),
        // A node declares what is done without a model; the rules write no programs; the gateway never asks them for
        // embeddings.
        (Purpose::Node | Purpose::Program | Purpose::Embedding, _) => (String::new(), Vec::new()),
    }
}

fn forced_call(request: &Request, usual: &str, arguments: Value) -> ReplyCall {
    let name = match &request.choice {
        ToolChoice::Forced(name) => name.clone(),
        _ => request.tools.first().map_or_else(|| usual.to_owned(), |t| t.name.clone()),
    };
    ReplyCall { id: "offline-1".to_owned(), name, arguments: arguments.to_string() }
}

/// Length of the whole request.
fn input_characters(request: &Request) -> usize {
    let messages: usize = request
        .messages
        .iter()
        .map(|m| match m {
            Message::System { text } | Message::User { text } | Message::Tool { text, .. } => text.len(),
            Message::Assistant { text, calls } => {
                text.len() + calls.iter().map(|c| c.arguments.len()).sum::<usize>()
            }
        })
        .sum();
    let tools: usize = request
        .tools
        .iter()
        .map(|t| t.name.len() + t.description.len() + t.parameters.to_string().len())
        .sum();
    messages + tools
}

/// Estimates tokens at four characters each.
fn estimated_tokens(characters: usize) -> u64 {
    u64::try_from(characters.div_ceil(4)).unwrap_or(u64::MAX)
}
