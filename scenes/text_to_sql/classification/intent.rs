//! What is to be done with a statement, or with the one that a question needs.

use super::super::folded_text::has_any;

/// Words that ask for an explanation of a statement.
#[rustfmt::skip]
const EXPLAIN: &[&str] = &[
    "explain", "what does", "what is this", "describe", "meaning", "mean", "walk me through", "understand",
    "in plain", "spiega", "spiegami", "spieghi", "cosa fa", "che fa", "significa", "vuol dire", "descrivi", "capire",
    "in parole", "a cosa serve",
];
/// Words that ask for a correction.
#[rustfmt::skip]
const FIX: &[&str] = &[
    "fix", "correct", "corrected", "repair", "debug", "wrong", "error", "errors", "broken", "mistake", "mistakes",
    "typo", "does not work", "doesn t work", "doesn't work", "not working", "fails", "correggi", "correggere",
    "sistema", "aggiusta", "ripara", "errore", "errori", "non funziona", "sbagliata", "sbagliato", "non va",
];
/// Words that ask whether a statement is right.
#[rustfmt::skip]
const CHECK: &[&str] = &[
    "valid", "validate", "check", "verify", "is this ok", "is this right", "would this work", "does this work",
    "will this run", "valida", "valido", "controlla", "verifica", "verificare", "corretta", "corretto", "e giusta",
];
/// Words that ask for the execution of a statement.
#[rustfmt::skip]
const RUN: &[&str] = &[
    "run", "execute", "run it", "execute it", "show me the result", "show the result", "show me the rows",
    "the results", "the result", "give me the rows", "what does it return", "esegui", "eseguila", "eseguire",
    "lancia", "lanciala", "fai girare", "il risultato", "i risultati", "mostrami le righe", "cosa restituisce",
    "che cosa restituisce", "e poi esegui", "and tell me",
];
/// Words that forbid it.
#[rustfmt::skip]
const NO_RUN: &[&str] = &[
    "don t run", "do not run", "don t execute", "do not execute", "without running", "without executing",
    "not run it", "no need to run", "just the query", "only the query", "senza eseguirla", "senza eseguire",
    "non eseguirla", "non eseguire", "solo la query", "non lanciarla", "senza lanciarla",
];
/// Verbs with which a query is asked for.
#[rustfmt::skip]
const WRITE_VERBS: &[&str] = &[
    "write", "generate", "draft", "prepare", "compose", "give me", "show me", "create", "build", "what would",
    "what is", "scrivi", "scrivimi", "genera", "generami", "prepara", "preparami", "dammi", "crea", "mostrami",
    "quale sarebbe", "fammi",
];

/// Whether a folded text asks for an explanation.
pub(super) fn asks_to_explain(said: &str) -> bool {
    has_any(said, EXPLAIN)
}

/// Whether a folded text asks for a correction.
pub(super) fn asks_to_fix(said: &str) -> bool {
    has_any(said, FIX)
}

/// Whether a folded text asks whether a statement is right.
pub(super) fn asks_to_check(said: &str) -> bool {
    has_any(said, CHECK)
}

/// Whether a folded text forbids execution.
pub(super) fn forbids_running(said: &str) -> bool {
    has_any(said, NO_RUN)
}

/// Whether a folded text asks for execution.
pub(super) fn asks_to_run(said: &str) -> bool {
    has_any(said, RUN) && !forbids_running(said)
}

/// Whether a folded text asks for a query rather than for what it finds.
pub(super) fn asks_for_query(said: &str) -> bool {
    has_any(said, &["query", "sql", "statement", "interrogazione"]) && has_any(said, WRITE_VERBS)
}
