//! Reads the prompt's sections leniently: absent or malformed ones are empty.

use jiff::Zoned;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::text;
use crate::language::Lang;
use crate::llm::signature::{self, SceneLine};
use crate::llm::{Message, Request, sections};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, from = "SceneLine")]
pub(super) struct SceneCard {
    /// Its name.
    pub scene: String,
    /// Its description.
    pub description: String,
    /// Examples of requests that it serves.
    pub examples: Vec<ExampleRequest>,
    /// Its tools. Planners see flows without tools.
    pub tools: Vec<ToolCard>,
    /// Whether it is a flow.
    pub is_flow: bool,
}

/// An example of a request that a scene serves.
#[derive(Debug, Clone, Default)]
pub(super) struct ExampleRequest {
    /// The user's words.
    pub say: String,
    /// The tool that serves it.
    pub tool: Option<String>,
}

impl From<SceneLine> for SceneCard {
    fn from(line: SceneLine) -> Self {
        let mut card = SceneCard { scene: line.scene, description: line.description, ..Self::default() };
        for tool in line.tools {
            let named = |say| ExampleRequest { say, tool: Some(tool.name.clone()) };
            card.examples.extend(tool.examples.into_iter().map(named));
            card.tools.push(ToolCard {
                name: tool.name,
                effect: tool.effect,
                description: tool.description,
                parameters: signature::schema(&tool.arguments),
                schema: signature::described_schema(&tool.arguments, &tool.about),
            });
        }
        card.is_flow = card.tools.is_empty() && !line.examples.is_empty();
        card.examples.extend(line.examples.into_iter().map(|say| ExampleRequest { say, tool: None }));
        card
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct ToolCard {
    /// Its name.
    pub name: String,
    /// `read` or `write`.
    pub effect: String,
    /// Its description.
    pub description: String,
    /// JSON Schema of its arguments, as far as their signature contains it: tools are chosen by this.
    pub parameters: Value,
    /// The same with descriptions, if the prompt contains them: arguments are filled by this.
    pub schema: Value,
}

impl ToolCard {
    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        self.effect == "write"
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Conversation {
    /// Summary of older turns.
    pub summary: Option<String>,
    /// The last turns, oldest first.
    pub turns: Vec<PriorTurn>,
}

/// One request with its answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PriorTurn {
    /// The user's words.
    pub request: String,
    /// The answer's words.
    pub answer: String,
    /// The calls that succeeded.
    pub calls: Vec<PriorCall>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PriorCall {
    /// The scene; empty inside a step, whose scene it is.
    pub scene: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What it returned.
    pub result: Value,
    /// `ok`, `refused`, …; empty in lists of successful calls.
    pub outcome: String,
    /// The scene's own sentence about the result.
    pub say: Option<String>,
    /// Why there is no result, worded for users.
    pub error: Option<String>,
}

/// A question that the user has not answered yet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenQuestion {
    /// The request that led to it.
    pub request: String,
    /// The scene that asks.
    pub scene: String,
    /// The purpose of its step.
    pub purpose: String,
    /// The question.
    pub question: UserQuestion,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct UserQuestion {
    /// The text of the question.
    pub text: String,
    /// The tool that needs the answer.
    pub tool: Option<String>,
    /// Names of the missing arguments.
    pub missing: Vec<String>,
    /// The known arguments.
    pub known: Value,
}

/// A step that has run, or the result of an earlier step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Executed {
    /// Its number.
    pub step: u32,
    /// Its scene.
    pub scene: String,
    /// Its purpose.
    pub purpose: String,
    /// How it ended.
    pub status: String,
    /// Its result.
    pub result: Option<Value>,
    /// Its error.
    pub error: Option<Value>,
    /// Its question to the user.
    pub question: Option<Value>,
    /// Its calls.
    pub calls: Vec<PriorCall>,
}

/// The user message of a request that carries the prompt's sections.
#[derive(Debug, Clone, Default)]
pub(super) struct PromptText {
    text: String,
}

impl PromptText {
    /// The prompt of a request: the first user message with a section, else the first user message.
    pub fn of(request: &Request) -> Self {
        let users = || {
            request.messages.iter().filter_map(|m| match m {
                Message::User { text } => Some(text),
                _ => None,
            })
        };
        let text =
            users().find(|t| t.trim_start().starts_with('<') || t.contains("\n<")).or_else(|| users().next());
        Self { text: text.cloned().unwrap_or_default() }
    }

    /// A prompt of these sections; empty ones are omitted.
    pub fn with(parts: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (name, body) in parts {
            sections::push(&mut text, name, body);
        }
        Self { text }
    }

    /// A section's body; empty if it is absent.
    pub fn get(&self, name: &str) -> String {
        sections::get(&self.text, name).unwrap_or_default()
    }

    /// One JSON object.
    pub fn json<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        serde_json::from_str(self.get(name).trim()).unwrap_or_default()
    }

    /// One JSON object per line; malformed lines are skipped.
    pub fn lines<T: DeserializeOwned>(&self, name: &str) -> Vec<T> {
        self.get(name).lines().take(500).filter_map(|line| serde_json::from_str(line.trim()).ok()).collect()
    }

    /// The request, or the whole message if it has no sections.
    pub fn request(&self) -> String {
        let request = self.get("request");
        if request.is_empty() && !self.text.contains("\n</") { self.text.clone() } else { request }
    }

    /// The frozen local time; a fixed day if it is absent, because the model has no clock.
    pub fn now(&self) -> Zoned {
        let text = self.get("now");
        let first = text.split_whitespace().next().unwrap_or_default();
        first.parse::<Zoned>().unwrap_or_else(|_| {
            let date = first.get(..10).and_then(|d| d.parse().ok());
            let date: jiff::civil::Date = date.unwrap_or(jiff::civil::Date::constant(2026, 1, 1));
            date.to_zoned(jiff::tz::TimeZone::UTC).unwrap_or_default()
        })
    }

    /// The language of the sentences for the user.
    pub fn language(&self) -> Lang {
        Lang::of(&self.language_code())
    }

    /// The user's language, ISO 639-1: from the prompt, else detected, else English.
    pub fn language_code(&self) -> String {
        match self.get("language").trim() {
            "" => crate::language::detect(&self.request()).unwrap_or("en").to_owned(),
            code => code.to_owned(),
        }
    }

    /// The pending question, if there is one.
    pub fn pending(&self) -> Option<OpenQuestion> {
        serde_json::from_str::<OpenQuestion>(self.get("pending").trim()).ok().filter(|p| !p.scene.is_empty())
    }
}

impl PromptText {
    pub(super) fn chatbot_instructions(&self) -> String {
        let own = self.get("instructions");
        if !own.trim().is_empty() {
            return own;
        }
        let conversation: Conversation = self.json("conversation");
        let told = conversation
            .summary
            .as_deref()
            .and_then(|summary| summary.strip_prefix(sections::INSTRUCTIONS_PREFIX));
        told.map(|text| text::shorten(text, 2000).to_owned()).unwrap_or_default()
    }
}
