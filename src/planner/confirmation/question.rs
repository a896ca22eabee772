//! The question whether a write is to be executed, in the user's language.

use serde_json::{Value, json};

use crate::invisible::{self, one_line};
use crate::run::RunState;
use crate::scene::{Scene, SceneTool};
use crate::tools::phrase;

/// The sentence before the question whether to repeat a call.
pub(super) fn repeat_question(language: Option<&str>) -> &'static str {
    match language {
        Some("it") => "È già stato fatto. Ancora una volta?",
        Some("de") => "Das wurde schon getan. Noch einmal?",
        Some("fr") => "Cela a déjà été fait. Encore une fois ?",
        Some("es") => "Ya se ha hecho. ¿Una vez más?",
        _ => "This was done already. Once more?",
    }
}

/// The question of a call without its arguments, for displays that list them below it: only the tool's own phrase may
/// contain them.
pub(in crate::planner) fn question_above_arguments(
    state: &RunState,
    scene: &Scene,
    tool: &SceneTool,
    (arguments, question): (&Value, String),
) -> String {
    let language = state.language();
    if !state.settings().has_rules(8) || own_question(tool, arguments, language.unwrap_or("en")).is_some() {
        return question;
    }
    let generated = |arguments: &Value| confirmation_question(&scene.name, tool, arguments, language, true);
    question.replace(&generated(arguments), &generated(&Value::Null))
}

/// The tool's own phrase for the question that names the exact call.
fn own_question(tool: &SceneTool, arguments: &Value, language: &str) -> Option<String> {
    let template = tool.confirm.get(language)?;
    let own = phrase::render(template, language, &json!({}), arguments)?;
    Some(invisible::escape_text(&own))
}

/// The question that names the exact call: the tool's own phrase, or one that lists the arguments.
pub(super) fn confirmation_question(
    scene: &str,
    tool: &SceneTool,
    arguments: &Value,
    language: Option<&str>,
    exact: bool,
) -> String {
    let language = language.unwrap_or("en");
    if let Some(own) = own_question(tool, arguments, language) {
        return own;
    }
    let [lead, with] = match language {
        "it" => ["Devo eseguire", "con"],
        "de" => ["Soll ich dies ausführen:", "mit"],
        "fr" => ["Dois-je exécuter", "avec"],
        "es" => ["¿Debo ejecutar", "con"],
        _ => ["Shall I carry out", "with"],
    };
    let name = one_line(&tool.name);
    let values: Vec<String> = arguments
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| describe_argument(name, value, exact))
        .collect();
    let call = format!("{lead} {name} ({})", one_line(scene));
    if values.is_empty() { format!("{call}?") } else { format!("{call} {with} {}?", values.join(", ")) }
}

fn describe_argument(name: &str, value: &Value, exact: bool) -> String {
    let line = if exact { invisible::exact_line } else { one_line };
    let value = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("{}: {}", line(name), line(&value))
}
