//! What of a request flows take part in: the whole of one that no scene serves, questions that would be left undone, and tasks
//! on documents.

use serde_json::{Value, json};

use super::clauses::{self, Clause, ClauseLink};
use super::drafts::{self, StepDraft, UnservedParts};
use super::flow_choice;
use super::flow_questions;
use super::plan::{AskedPlan, OfflinePlanner};
use super::prompt::SceneCard;
use super::pronouns;
use super::speech::{Act, ConditionPart};
use super::text;
use crate::flow;
use crate::language::questions;

/// How words for a conversation begin.
const TALK: &[&str] = &[
    "conversa", "chat", "dialog", "discuss", "discorso", "gesprach", "unterhaltung", "parlat", "talk",
    "said", "detto",
];
/// Words for those who talk.
const TALKERS: &[&str] = &[
    "we", "our", "say", "abbiamo", "nostra", "nostro", "wir", "unser", "unsere", "nous", "notre", "hemos",
    "nuestra",
];
/// Most words of a task on a document that is not named.
const MAX_TASK_WORDS: usize = 12;

impl OfflinePlanner {
    /// The step whose question the request answers by naming documents.
    pub fn plan_for_chosen_documents(&self, asked: &AskedPlan, cards: &[SceneCard]) -> Option<Value> {
        let pending = self.pending.as_ref().filter(|_| asked.is_first && asked.names_documents)?;
        let asks = pending.question.missing.iter().any(|missing| missing == questions::DOCUMENT);
        let flow = cards.iter().find(|card| asks && card.is_flow && card.scene == pending.scene)?;
        let step = flow_step(&flow.scene, &pending.purpose, asked.first);
        let reasoning = "The request names what was asked for.";
        Some(json!({"needs_execution": true, "reasoning": reasoning, "steps": [step]}))
    }

    /// The plan with the flow that the whole request is for, if there is one. Flows take part only where no scene does, so
    /// that none of them gets a part of a request that belongs to a scene's write.
    pub fn flow_plan(&self, cards: &[SceneCard], words: &str, first: u32) -> Option<Value> {
        let flow = flow_choice::flow_for(&flows_of(cards), words)?.scene.clone();
        let reasoning = format!("The request asks for: {flow}.");
        let step = flow_step(&flow, words, first);
        Some(json!({"needs_execution": true, "reasoning": reasoning, "steps": [step]}))
    }

    /// The plan with the flow that answers a question about things which it names, where the scenes whose reads were found do
    /// not: "Who are our three best customers?" is not for the profile of a person.
    pub fn flow_plan_in_place_of(
        &self,
        drafts: &[StepDraft],
        cards: &[SceneCard],
        words: &str,
        first: u32,
    ) -> Option<Value> {
        let is_one_question = self.pending.is_none()
            && drafts.iter().all(|draft| !self.writes(draft.hit))
            && matches!(clauses::split(words, self).as_slice(), [clause] if clause.part == ConditionPart::Whole);
        if drafts.is_empty() || !is_one_question {
            return None;
        }
        let flows = flows_of(cards);
        let flow = flows.iter().find(|flow| flow_questions::asks_for_things(flow, words))?;
        let thing = flow_questions::thing_asked_for(flow, words)?;
        let knows = |card: &SceneCard| {
            let examples = card.examples.iter().map(|example| &example.say);
            let tools = card.tools.iter().map(|tool| &tool.description);
            examples.chain(tools).chain([&card.description]).any(|text| flow_questions::names(text, &thing))
        };
        let is_known = drafts.iter().any(|draft| self.index.scenes.get(draft.hit.scene).is_some_and(&knows));
        if is_known { None } else { self.flow_plan(cards, words, first) }
    }

    /// At most `room` questions of a request that no scene serves and a flow does, each with its flow. The steps of scenes stay as they
    /// are: a flow only takes whole questions that would be left undone, and none where the request restricts, excludes or
    /// supposes anything, since they might belong to a scene's write.
    pub fn flow_parts(
        &self,
        cards: &[SceneCard],
        words: &str,
        unserved: &mut UnservedParts,
        room: usize,
    ) -> Vec<(String, String)> {
        let clauses = clauses::split(words, self);
        let is_plain = |clause: &Clause| {
            matches!(clause.act, Act::Request | Act::Question) && clause.part == ConditionPart::Whole
        };
        let stands_alone = !unserved.has_forbidden
            && unserved.unavailable.is_empty()
            && self.pending.is_none()
            && !flow::restricts(words)
            && clauses.iter().all(is_plain);
        let says_when = self.says_when(words);
        let is_framed = clauses.iter().any(|clause| flow::begins_with_frame(&clause.text));
        let flows = flows_of(cards);
        let mut parts = Vec::new();
        unserved.words.retain(|part| {
            let has_room = stands_alone && parts.len() < room;
            let own = clauses.iter().find(|clause| has_room && clause.text == *part);
            let own = own.filter(|clause| self.is_own_question(clause));
            // What is said elsewhere of days, times or places may hold of this question, too.
            let own = own.filter(|clause| !says_when || self.says_when(&clause.text));
            let own = own.filter(|clause| !is_framed || flow::begins_with_frame(&clause.text));
            let own = own.filter(|clause| flow::ends_sentence(words, &clause.text));
            let flow = own.and_then(|clause| flow_choice::flow_for(&flows, &clause.text));
            parts.extend(flow.map(|flow| (flow.scene.clone(), part.clone())));
            flow.is_none()
        });
        parts
    }

    /// Whether words have a day, a time, or the name of a month or a weekday.
    fn says_when(&self, words: &str) -> bool {
        let names_one = |token: &text::Token| super::dates::is_calendar_word(&token.norm);
        self.has_day_or_time(words) || text::tokens(words).iter().any(names_one)
    }

    /// Whether a clause asks for information by itself, whatever is said before it.
    fn is_own_question(&self, clause: &Clause) -> bool {
        let tokens = text::tokens(&clause.text);
        let points_back = pronouns::hands_back(&tokens) || flow::points_back(&clause.text);
        let asks = clause.act == Act::Question || drafts::opens_with_lookup(&clause.text);
        asks && clause.link != ClauseLink::Then && !points_back
    }
}

/// Whether words that set a task on a text mean a document, and not what was said about one, and have no text of their own.
pub(super) fn is_about_a_document(words: &str) -> bool {
    let has_text = words.contains([':', '\n', '"', '“', '„', '«']);
    let tokens = text::tokens(words);
    let names = ["document", "documento", "dokument"];
    let is_talk =
        |token: &text::Token| token.is(TALKERS) || TALK.iter().any(|talk| token.norm.starts_with(talk));
    !has_text
        && !tokens.iter().any(is_talk)
        && tokens.iter().filter(|token| token.word).count() <= MAX_TASK_WORDS
        && tokens.iter().any(|token| names.contains(&token.norm.as_str()))
}

pub(super) fn flows_of(cards: &[SceneCard]) -> Vec<SceneCard> {
    cards.iter().filter(|card| card.is_flow).cloned().collect()
}

fn flow_step(flow: &str, words: &str, number: u32) -> Value {
    json!({
        "step_number": number, "scene_name": flow, "purpose": text::one_line(words), "expected_tools": [],
        "depends_on_step": Value::Null,
    })
}

/// Adds a step for each part of the request that a flow serves.
pub(super) fn add_flow_steps(plan: &mut Value, parts: &[(String, String)], first: u32) {
    for (flow, words) in parts {
        let count = plan["steps"].as_array().map_or(0, Vec::len);
        let number = first.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        let step = flow_step(flow, words, number);
        if let Some(steps) = plan["steps"].as_array_mut() {
            steps.push(step);
        }
        let reasoning = plan["reasoning"].as_str().unwrap_or_default();
        plan["reasoning"] = json!(format!("{reasoning} {flow} serves: {words}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_on_a_document_is_told_from_one_on_the_conversation() {
        for (words, is_about_it) in [
            ("Summarise this document", true),
            ("Riassumi il documento", true),
            ("Summarise our conversation about the document", false),
            ("Riassumi la conversazione sul documento", false),
            ("Summarise what was said of the document", false),
            ("What did we say about the document?", false),
            ("Summarise this document: it is blue.", false),
            ("Summarise it", false),
        ] {
            assert_eq!(is_about_a_document(words), is_about_it, "{words}");
        }
    }
}
