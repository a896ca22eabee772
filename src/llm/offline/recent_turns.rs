//! Ambiguous recent days: "12 November" on the 22nd may be ten days ago or in a year.

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use super::dates;
use super::slots::Filled;
use super::source::SourceText;
use super::speech;
use super::text::{Token, features, name_words, tokens};
use crate::llm::ToolSpec;

/// For how many days the past date is as likely as the next one.
const RECENT_DAYS: i32 = 31;

/// Words of tools that report the past.
const PAST_WORDS: &str = "\
movements transactions history statement past last receipts log logs payments spent happened made movimenti transazioni \
storico estratto passati ricevute pagamenti";

/// The ambiguous days of a text: as read, and one year earlier.
fn ambiguous_days(source: &SourceText) -> Vec<(Date, Date)> {
    let today = source.now.date();
    let last_year = |date: Date| date.checked_sub(1.years()).ok();
    let recent = |date: Date| {
        let ago = today.since(date).map_or(0, |span| span.get_days());
        (1..=RECENT_DAYS).contains(&ago)
    };
    let mut out = Vec::new();
    for expr in &source.found.date_expressions {
        let end = (expr.last + 4).min(source.tokens.len());
        let words = &source.tokens[expr.first..=expr.last];
        let dated = |t: &Token| dates::month(&t.norm).is_some() || t.norm.contains('/');
        let year = |t: &Token| {
            t.norm.split(['/', '-', '.']).any(|part| part.len() == 4 && part.parse::<u16>().is_ok())
                || t.is(&["next", "prossimo", "year", "anno"])
        };
        if !words.iter().any(dated) || source.tokens[expr.first..end].iter().any(year) {
            continue;
        }
        if expr.days.iter().filter_map(|day| last_year(day.date)).any(recent) {
            out.extend(expr.days.iter().filter_map(|day| Some((day.date, last_year(day.date)?))));
        }
    }
    out
}

/// Whether a value is an ambiguous day.
pub(super) fn is_doubtful(source: &SourceText, filled: &Filled) -> bool {
    let values: Vec<String> = filled
        .values
        .values()
        .chain(filled.several.iter().flat_map(Map::values))
        .map(Value::to_string)
        .collect();
    ambiguous_days(source)
        .iter()
        .any(|(date, _)| values.iter().any(|value| value.contains(&date.to_string())))
}

/// Moves ambiguous days to the past if the question or the tool is about the past.
pub(super) fn move_to_past(source: &SourceText, filled: &mut Filled, tool: &ToolSpec) {
    let ambiguous = ambiguous_days(source);
    if ambiguous.is_empty() || !(reports_past(tool) || speech::asks_past(source.text)) {
        return;
    }
    let several = filled.several.iter_mut().flat_map(Map::values_mut);
    for value in filled.values.values_mut().chain(several) {
        let Some(text) = value.as_str() else { continue };
        let was = ambiguous.iter().find(|(date, _)| text.starts_with(&date.to_string()));
        if let Some((date, was)) = was {
            *value = json!(text.replacen(&date.to_string(), &was.to_string(), 1));
        }
    }
}

pub(super) fn reports_past(tool: &ToolSpec) -> bool {
    let like =
        |norm: &str| PAST_WORDS.split_whitespace().any(|w| features(w).similarity(&features(norm)) > 0.9);
    name_words(&tool.name).iter().any(|w| like(w))
        || tokens(&tool.description).iter().take(40).any(|t| t.word && like(&t.norm))
}
