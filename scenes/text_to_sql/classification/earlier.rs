//! Requests that refer to what was said or found before.

use super::super::folded_text::{after_word, has_any};

/// Words that refer to rows of before.
#[rustfmt::skip]
const THESE: &[&str] = &[
    "these", "those", "them", "the rows", "the result", "the results", "the data above", "this data", "that",
    "queste", "questi", "quelle", "quelli", "le righe", "il risultato", "i risultati", "questi dati", "mostrali",
    "mostrale",
];
/// Ways of showing rows.
#[rustfmt::skip]
const SHOWING: &[&str] = &[
    "format", "formatted", "table", "list", "bullet", "present", "show", "display", "markdown", "summarise",
    "summarize", "nicely", "formatta", "tabella", "elenco", "lista", "presenta", "mostra", "mostrali", "mostrale",
    "riassumi", "visualizza",
];
/// How a request begins that goes on with the one before.
#[rustfmt::skip]
const FOLLOWING: &[&str] = &[
    "and", "or", "only", "now", "but", "what about", "how about", "same", "instead", "also", "then", "e", "ed", "o",
    "solo", "ora", "adesso", "ma", "invece", "stesso", "anche", "poi",
];
/// Words that stand for what was said before.
#[rustfmt::skip]
const REFERRING: &[&str] = &[
    "these", "those", "them", "they", "their", "it", "its", "ones", "one", "queste", "questi", "quelle", "quelli",
    "loro", "essi", "esse", "lo", "li", "ne",
];

/// Whether a folded text asks for rows of before in another form.
pub(super) fn shows_earlier_rows(said: &str) -> bool {
    has_any(said, THESE) && has_any(said, SHOWING)
}

/// Whether a folded text goes on with the request before it.
pub(super) fn goes_on(said: &str) -> bool {
    FOLLOWING.iter().any(|word| after_word(said.trim(), word).is_some()) || has_any(said, REFERRING)
}
