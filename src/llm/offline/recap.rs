//! Summaries of the conversation: for the user who asks for one, and for turns that no longer fit into the
//! prompt.

use serde::Deserialize;

use super::Lang;
use super::prompt::{Conversation, PriorTurn, PromptText};
use super::text;

/// Maximum length of a summary in characters.
const MAX_SUMMARY: usize = 700;

/// Tells the user what was asked and answered so far.
pub(super) fn recap(conversation: &Conversation, lang: Lang) -> String {
    let mut lines: Vec<String> = Vec::new();
    if let Some(summary) = conversation.summary.as_deref().map(str::trim).filter(|s| !s.is_empty()) {
        lines.extend(summary.lines().map(str::to_owned));
    }
    lines.extend(conversation.turns.iter().map(|t| line(t, 220)));
    if lines.is_empty() {
        return lang
            .pick([
                "Non abbiamo ancora parlato di nulla.",
                "We have not discussed anything yet.",
                "Nous n'avons encore parlé de rien.",
                "Wir haben noch nichts besprochen.",
                "Todavía no hemos hablado de nada.",
            ])
            .to_owned();
    }
    let lead = lang.pick([
        "Finora abbiamo parlato di questo:",
        "So far we discussed this:",
        "Jusqu'ici, nous avons parlé de ceci :",
        "Bisher haben wir dies besprochen:",
        "Hasta ahora hemos hablado de esto:",
    ]);
    format!("{lead}\n{}", lines.join("\n"))
}

/// A bounded summary of an earlier summary and the turns after it. If it is too long, the oldest turns lose
/// their answers first, then requests that differ in one word are merged into one line.
pub(super) fn summary(prompt: &PromptText) -> String {
    let facts: Vec<RememberedFact> = prompt.lines("facts");
    let mut lines = remembered_lines(facts.iter().flat_map(|fact| fact.words.lines()));
    let size = |lines: &[String]| lines.iter().map(|l| l.chars().count() + 1).sum::<usize>();
    for i in 0..lines.len() {
        if size(&lines) <= MAX_SUMMARY {
            break;
        }
        if let Some((request, _)) = lines[i].split_once(" → ") {
            lines[i] = request.to_owned();
        }
    }
    if size(&lines) > MAX_SUMMARY {
        lines = merge_similar_lines(lines);
    }
    while size(&lines) > MAX_SUMMARY && lines.len() > 1 {
        lines.remove(0);
    }
    text::shorten(&lines.join("\n"), MAX_SUMMARY).to_owned()
}

/// A fact of a conversation, as its summary is asked for.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RememberedFact {
    words: String,
}

/// The lines of the summary so far as they are, then a line for each turn: what follows its answer's first line is left out.
fn remembered_lines<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut request: Option<&str> = None;
    let mut in_turn = false;
    let of = |request: &str, answer: &str| {
        let turn =
            PriorTurn { request: request.to_owned(), answer: answer.to_owned(), ..PriorTurn::default() };
        line(&turn, 120)
    };
    for own in words.map(str::trim).filter(|own| !own.is_empty()) {
        if let Some(next) = own.strip_prefix("User: ") {
            lines.extend(request.replace(next).map(|before| of(before, "")));
            in_turn = true;
        } else if let Some(said) = request.filter(|_| own.starts_with("Assistant")) {
            let answer = own.split_once(": ").map_or("", |(_, answer)| answer);
            lines.push(of(said, answer));
            request = None;
        } else if !in_turn {
            lines.push(own.to_owned());
        }
    }
    lines.extend(request.map(|before| of(before, "")));
    lines
}

fn line(turn: &PriorTurn, max: usize) -> String {
    let request = text::one_line(&turn.request);
    let answer = text::one_line(&turn.answer);
    let request = text::shorten(&request, 160);
    if answer.is_empty() {
        return format!("- {request}");
    }
    let short = text::shorten(&answer, max);
    let cut = if short.len() < answer.len() { "…" } else { "" };
    format!("- {request} → {short}{cut}")
}

/// Merges neighbouring lines that differ in one place into one line with both values.
fn merge_similar_lines(lines: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in lines {
        let merged = out.last().and_then(|last| merge(last, &line));
        match (merged, out.last_mut()) {
            (Some(merged), Some(last)) => *last = merged,
            _ => out.push(line),
        }
    }
    out
}

fn merge(a: &str, b: &str) -> Option<String> {
    let x: Vec<&str> = a.split(' ').collect();
    let y: Vec<&str> = b.split(' ').collect();
    let start = x.iter().zip(&y).take_while(|(p, q)| p == q).count();
    let rest_y = y.get(start..)?;
    // The first line may already contain a list ("giorno 1, 2 e") between the shared beginning and end.
    let [value, tail @ ..] = rest_y else { return None };
    if start == 0 || start < y.len() / 2 {
        return None;
    }
    let middle = x.get(start..x.len().checked_sub(tail.len())?)?;
    if middle.is_empty() || !x.ends_with(tail) || middle.len() > 40 {
        return None;
    }
    let listed = middle.len() == 1 || middle[..middle.len() - 1].iter().all(|w| w.ends_with(','));
    let mark = middle.last()?.chars().next_back().filter(|c| matches!(c, '?' | '.' | '!'));
    let old: Vec<String> = middle.iter().map(|w| w.trim_end_matches(['?', '.', '!']).to_owned()).collect();
    let value = value.trim_end_matches(['?', '.', '!']);
    let mark = mark.map(String::from).unwrap_or_default();
    listed.then(|| {
        let mut parts: Vec<String> = x[..start].iter().map(|w| (*w).to_owned()).collect();
        parts.push(format!("{}, {value}{mark}", old.join(" ")));
        parts.extend(tail.iter().map(|w| (*w).to_owned()));
        parts.join(" ")
    })
}
