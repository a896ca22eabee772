//! Renders the results of calls: the scene's own sentence if there is one, otherwise a bounded readable list of
//! the result's values.

use serde_json::{Map, Value};

use super::Lang;
use crate::llm::Message;

/// Maximum number of lines of a result.
const MAX_LINES: usize = 30;
/// Maximum number of characters of one value.
const MAX_VALUE: usize = 300;

#[derive(Debug, Clone, Default)]
pub(super) struct CompletedCall {
    /// The tool.
    pub name: String,
    /// `ok`, `refused`, `failed`, `unknown`, `skipped`.
    pub outcome: String,
    /// What it returned.
    pub result: Option<Value>,
    /// The scene's own sentence about the result, or the sentence for users about the error.
    pub say: Option<String>,
    /// The error message.
    pub error: Option<String>,
}

/// The completed calls of the step so far, in order.
pub(super) fn outcomes(messages: &[Message]) -> Vec<CompletedCall> {
    let mut names: Vec<(String, String)> = Vec::new();
    let mut out = Vec::new();
    for message in messages {
        match message {
            Message::Assistant { calls, .. } => {
                names.extend(calls.iter().map(|c| (c.id.clone(), c.name.clone())))
            }
            Message::Tool { call_id, text } => {
                let value: Value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
                let name = names
                    .iter()
                    .rev()
                    .find(|(id, _)| id == call_id)
                    .map(|(_, n)| n.clone())
                    .unwrap_or_default();
                let text_of = |v: &Value| v.as_str().map(str::to_owned);
                let error = value.get("error").map(|e| {
                    e.get("message").and_then(text_of).or_else(|| text_of(e)).unwrap_or_else(|| e.to_string())
                });
                out.push(CompletedCall {
                    name,
                    outcome: value.get("outcome").and_then(text_of).unwrap_or_else(|| "ok".to_owned()),
                    result: value
                        .get("result")
                        .cloned()
                        .or_else(|| (!value.is_object()).then(|| value.clone())),
                    say: value
                        .get("say")
                        .or_else(|| value.pointer("/error/say"))
                        .and_then(text_of)
                        .filter(|s| !s.trim().is_empty()),
                    error: error.or_else(|| value.get("reason").and_then(text_of)),
                });
            }
            _ => {}
        }
    }
    out
}

/// Reports all outcomes in words.
pub(super) fn report(done: &[CompletedCall], lang: Lang) -> String {
    let mut parts: Vec<String> = Vec::new();
    for one in done {
        let text = match one.outcome.as_str() {
            "ok" | "skipped" => one
                .say
                .clone()
                .or_else(|| one.result.as_ref().map(|r| result(r, lang)))
                .or_else(|| one.error.clone())
                .unwrap_or_else(|| {
                    lang.pick(["Fatto.", "Done.", "C'est fait.", "Erledigt.", "Hecho."]).to_owned()
                }),
            _ if one.say.is_some() => one.say.clone().unwrap_or_default(),
            outcome => {
                let why = one.error.clone().unwrap_or_default();
                let lead = match outcome {
                    "refused" => lang.pick([
                        "Non è stato possibile",
                        "It was not possible",
                        "Ce n'était pas possible",
                        "Es war nicht möglich",
                        "No fue posible",
                    ]),
                    "unknown" => lang.pick([
                        "Non è certo che sia stato fatto",
                        "It is not certain that it was done",
                        "Il n'est pas certain que cela ait été fait",
                        "Es ist nicht sicher, ob es ausgeführt wurde",
                        "No es seguro que se haya hecho",
                    ]),
                    _ => lang.pick([
                        "Non ha funzionato",
                        "It did not work",
                        "Cela n'a pas fonctionné",
                        "Es hat nicht funktioniert",
                        "No funcionó",
                    ]),
                };
                if why.is_empty() { format!("{lead}.") } else { format!("{lead}: {why}") }
            }
        };
        if !parts.contains(&text) {
            parts.push(text);
        }
    }
    parts.join("\n")
}

/// A result as readable lines. Of one that was too large to be shown in full, the part that is shown, and that it is one.
pub(super) fn result(value: &Value, lang: Lang) -> String {
    let mut shown = value;
    while let Some(part) = shown_part(shown) {
        shown = part;
    }
    let mut text = whole_result(shown, lang);
    if !std::ptr::eq(shown, value) {
        text.push('\n');
        text.push_str(lang.pick([
            "È solo una parte del risultato.",
            "This is only a part of the result.",
            "Ce n'est qu'une partie du résultat.",
            "Das ist nur ein Teil des Ergebnisses.",
            "Es solo una parte del resultado.",
        ]));
    }
    text
}

/// The part of a truncated result that is shown.
fn shown_part(value: &Value) -> Option<&Value> {
    let has_sizes = ["shown_bytes", "total_bytes"].iter().all(|name| value.get(name).is_some());
    let is_truncated = has_sizes && value.get("truncated") == Some(&Value::Bool(true));
    value.get("value").filter(|_| is_truncated)
}

fn whole_result(value: &Value, lang: Lang) -> String {
    let mut lines = Vec::new();
    match value {
        Value::Object(map) if map.is_empty() => {}
        // What an HTTP tool returns for an empty response.
        Value::Object(map) if map.len() == 1 && has_success_status(map) => {
            return lang
                .pick([
                    "Fatto; il servizio non ha restituito dati.",
                    "Done; the service returned no data.",
                    "C'est fait ; le service n'a renvoyé aucune donnée.",
                    "Erledigt; der Dienst hat keine Daten zurückgegeben.",
                    "Hecho; el servicio no devolvió datos.",
                ])
                .to_owned();
        }
        Value::Array(list) if list.is_empty() => {
            return lang
                .pick([
                    "Nessun risultato.", "No results.", "Aucun résultat.", "Keine Ergebnisse.",
                    "Sin resultados.",
                ])
                .to_owned();
        }
        value => write(value, 0, lang, &mut lines),
    }
    if lines.is_empty() {
        return lang.pick(["Fatto.", "Done.", "C'est fait.", "Erledigt.", "Hecho."]).to_owned();
    }
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        lines.push("…".to_owned());
    }
    lines.join("\n")
}

fn has_success_status(map: &Map<String, Value>) -> bool {
    map.get("status").and_then(Value::as_u64).is_some_and(|status| (200..300).contains(&status))
}

fn write(value: &Value, depth: usize, lang: Lang, lines: &mut Vec<String>) {
    if lines.len() > MAX_LINES || depth > 5 {
        return;
    }
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            // A flat object inside a list takes one line.
            if depth > 0 && map.values().all(|v| !v.is_object() && !v.is_array()) {
                let parts: Vec<String> = map
                    .iter()
                    .filter(|(_, v)| !v.is_null())
                    .map(|(k, v)| format!("{}: {}", label(k), scalar(v, lang)))
                    .collect();
                lines.push(format!("{indent}- {}", parts.join(", ")));
                return;
            }
            for (key, value) in map {
                match value {
                    Value::Null => {}
                    Value::Array(list) if list.iter().all(|v| !v.is_object() && !v.is_array()) => {
                        let all: Vec<String> = list.iter().take(20).map(|v| scalar(v, lang)).collect();
                        let all = if all.is_empty() {
                            lang.pick(["nessuno", "none", "aucun", "keine", "ninguno"]).to_owned()
                        } else {
                            all.join(", ")
                        };
                        lines.push(format!("{indent}{}: {all}", label(key)));
                    }
                    Value::Object(_) | Value::Array(_) => {
                        lines.push(format!("{indent}{}:", label(key)));
                        write(value, depth + 1, lang, lines);
                    }
                    value => lines.push(format!("{indent}{}: {}", label(key), scalar(value, lang))),
                }
            }
        }
        Value::Array(list) => {
            for value in list.iter().take(MAX_LINES) {
                match value {
                    Value::Object(_) | Value::Array(_) => write(value, depth.max(1), lang, lines),
                    value => lines.push(format!("{indent}- {}", scalar(value, lang))),
                }
            }
        }
        value => lines.push(format!("{indent}{}", scalar(value, lang))),
    }
}

fn label(key: &str) -> String {
    let words = super::text::name_words(key).join(" ");
    if words.is_empty() { key.to_owned() } else { words }
}

fn scalar(value: &Value, lang: Lang) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => lang.pick(["sì", "yes", "oui", "ja", "sí"]).to_owned(),
        Value::Bool(false) => lang.pick(["no", "no", "non", "nein", "no"]).to_owned(),
        Value::String(text) => super::text::shorten(text, MAX_VALUE).to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn truncated_results_are_told_as_a_part_without_their_sizes() {
        let rows = json!([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]);
        let cut = |value: Value| json!({"truncated": true, "shown_bytes": 40, "total_bytes": 90, "omitted": 2, "value": value});
        let part = "- id: 1, name: Ada\n  - id: 2, name: Bob\nThis is only a part of the result.";
        assert_eq!(result(&cut(rows.clone()), Lang::En).trim_start(), part);
        assert_eq!(result(&cut(cut(rows.clone())), Lang::En).trim_start(), part);
        let of_tool = json!({"truncated": true, "value": rows});
        assert!(result(&of_tool, Lang::En).starts_with("truncated: yes"));
    }
}
