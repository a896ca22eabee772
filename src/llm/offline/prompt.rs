//! The prompt's sections, read leniently: what is absent or broken reads as empty.

use jiff::Zoned;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::llm::signature::{self, SceneLine};
use crate::llm::{Message, Request, sections};

/// A scene as the planner is told of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, from = "SceneLine")]
pub(super) struct SceneCard {
    /// Its name.
    pub scene: String,
    /// What it is for.
    pub description: String,
    /// Requests it serves.
    pub examples: Vec<ExampleRequest>,
    /// Its tools.
    pub tools: Vec<ToolCard>,
}

/// A request that a scene serves.
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
            });
        }
        card.examples.extend(line.examples.into_iter().map(|say| ExampleRequest { say, tool: None }));
        card
    }
}

/// A tool as the planner is told of it.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolCard {
    /// Its name.
    pub name: String,
    /// `read` or `write`.
    pub effect: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments, as far as their signature tells.
    pub parameters: Value,
}

impl ToolCard {
    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        self.effect == "write"
    }
}

/// The conversation so far.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Conversation {
    /// Older turns, shortened.
    pub summary: Option<String>,
    /// The last turns, oldest first.
    pub turns: Vec<PriorTurn>,
}

/// One request and what became of it.
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

/// A call, with what came of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PriorCall {
    /// The scene; absent where it is known from around it.
    pub scene: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What it returned.
    pub result: Value,
    /// `ok`, `refused`, …; empty where only successes are told.
    pub outcome: String,
}

/// A question not yet answered.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenQuestion {
    /// The request that led to it.
    pub request: String,
    /// The scene that asks.
    pub scene: String,
    /// What its step was for.
    pub purpose: String,
    /// What it asks.
    pub question: UserQuestion,
}

/// What only the user can say.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct UserQuestion {
    /// The question.
    pub text: String,
    /// The tool that needs it.
    pub tool: Option<String>,
    /// Names of the missing arguments.
    pub missing: Vec<String>,
    /// What is known.
    pub known: Value,
}

/// A step that ran, or a result that a step is given.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Executed {
    /// Its number.
    pub step: u32,
    /// Its scene.
    pub scene: String,
    /// What it was for.
    pub purpose: String,
    /// How it ended.
    pub status: String,
    /// What it found or did.
    pub result: Option<Value>,
    /// Why it did not.
    pub error: Option<Value>,
    /// What it asks.
    pub question: Option<Value>,
    /// Its calls.
    pub calls: Vec<PriorCall>,
}

/// All user text of a request's first messages, with its sections.
#[derive(Debug, Clone, Default)]
pub(super) struct PromptText {
    text: String,
}

impl PromptText {
    /// The prompt of a request: the first user message that carries a section, else the first.
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

    /// A prompt of these sections; empty ones are left out.
    pub fn with(parts: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (name, body) in parts {
            sections::push(&mut text, name, body);
        }
        Self { text }
    }

    /// A section's body; empty where it is absent.
    pub fn get(&self, name: &str) -> String {
        sections::get(&self.text, name).unwrap_or_default()
    }

    /// One JSON object.
    pub fn json<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        serde_json::from_str(self.get(name).trim()).unwrap_or_default()
    }

    /// One JSON object a line; lines that cannot be read are passed over.
    pub fn lines<T: DeserializeOwned>(&self, name: &str) -> Vec<T> {
        self.get(name).lines().take(500).filter_map(|line| serde_json::from_str(line.trim()).ok()).collect()
    }

    /// The request, or whatever the message says where there are no sections.
    pub fn request(&self) -> String {
        let request = self.get("request");
        if request.is_empty() && !self.text.contains("\n</") { self.text.clone() } else { request }
    }

    /// The frozen local time; a fixed day where it is absent, since nothing here has a clock.
    pub fn now(&self) -> Zoned {
        let text = self.get("now");
        let first = text.split_whitespace().next().unwrap_or_default();
        first.parse::<Zoned>().unwrap_or_else(|_| {
            let date = first.get(..10).and_then(|d| d.parse().ok());
            let date: jiff::civil::Date = date.unwrap_or(jiff::civil::Date::constant(2026, 1, 1));
            date.to_zoned(jiff::tz::TimeZone::UTC).unwrap_or_default()
        })
    }

    /// The language of the user, told or detected.
    pub fn language(&self) -> Lang {
        let told = self.get("language");
        let told = told.trim();
        if !told.is_empty() {
            return Lang::of(told);
        }
        Lang::of(crate::llm::language::detect(&self.request()).unwrap_or("en"))
    }

    /// What is pending, where something is.
    pub fn pending(&self) -> Option<OpenQuestion> {
        serde_json::from_str::<OpenQuestion>(self.get("pending").trim()).ok().filter(|p| !p.scene.is_empty())
    }
}

/// The languages that have framing words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lang {
    /// Italian.
    It,
    /// English.
    En,
    /// French.
    Fr,
    /// German.
    De,
    /// Spanish.
    Es,
}

impl Lang {
    /// By its ISO 639-1 code; English for what is not known here.
    pub fn of(code: &str) -> Self {
        match code.get(..2).unwrap_or_default() {
            "it" => Lang::It,
            "fr" => Lang::Fr,
            "de" => Lang::De,
            "es" => Lang::Es,
            _ => Lang::En,
        }
    }

    /// The one of these texts that is in this language: Italian, English, French, German, Spanish.
    pub fn pick(self, texts: [&str; 5]) -> &str {
        match self {
            Lang::It => texts[0],
            Lang::En => texts[1],
            Lang::Fr => texts[2],
            Lang::De => texts[3],
            Lang::Es => texts[4],
        }
    }
}
