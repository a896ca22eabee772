//! Wishes to change data, which the flow never does.

use super::super::folded_text::{after_word, folded};
use super::statement::{changes_data, split_statement};

/// Verbs with which data is changed.
#[rustfmt::skip]
const CHANGE_VERBS: &[&str] = &[
    "delete", "remove", "insert", "add", "update", "change", "set", "drop", "create", "modify", "rename", "erase",
    "cancel", "mark", "increase", "raise", "lower", "reduce", "register", "truncate", "elimina", "cancella",
    "rimuovi", "aggiungi", "inserisci", "aggiorna", "modifica", "cambia", "imposta", "crea", "annulla", "svuota",
    "togli", "rinomina", "aumenta", "abbassa", "segna", "registra",
];
/// Infinitives of the Italian verbs of change, after "puoi" or "vorrei".
#[rustfmt::skip]
const CHANGE_INFINITIVES: &[&str] = &[
    "eliminare", "cancellare", "rimuovere", "aggiungere", "inserire", "aggiornare", "modificare", "cambiare",
    "impostare", "creare", "annullare", "svuotare", "togliere", "rinominare", "aumentare",
];
/// What may stand before the verb of a wish.
#[rustfmt::skip]
const POLITE: &[&str] = &[
    "please", "can you", "could you", "would you", "can", "could", "you", "i want to", "i would like to",
    "i d like to", "i need to", "let s", "now", "then", "ok", "hi", "hello", "ciao", "buongiorno", "per favore",
    "per piacere", "puoi", "potresti", "mi puoi", "vorrei", "voglio", "devo", "ora", "adesso", "poi", "mi", "and",
    "e", "salve",
];

/// Whether a request wants data to be changed.
pub fn is_about_change(request: &str) -> bool {
    let (around, sql) = split_statement(request);
    if sql.is_empty() { is_wish_to_change(&folded(&around)) } else { changes_data(&sql) }
}

/// Whether a folded text is a wish to change data: it begins with such a verb, after polite words.
pub(super) fn is_wish_to_change(said: &str) -> bool {
    let mut rest = said.trim();
    while let Some(shorter) = POLITE.iter().find_map(|polite| after_word(rest, polite)) {
        rest = shorter;
    }
    let is_sum =
        ["add up", "set of", "change in", "changes in"].iter().any(|lead| after_word(rest, lead).is_some());
    let verbs = CHANGE_VERBS.iter().chain(CHANGE_INFINITIVES);
    !is_sum && verbs.into_iter().any(|verb| after_word(rest, verb).is_some())
}
