//! Clauses about the past: "I already booked …", "ho già prenotato …".

use super::is_date_word;
use super::others::is_person_name;
use crate::llm::offline::lexicon;
use crate::llm::offline::pattern::{is_participle, is_past, is_verb};
use crate::llm::offline::phrases::{KIN, THEY};
use crate::llm::offline::speech::Act;
use crate::llm::offline::text::Token;

/// Past forms of verbs for something that went wrong.
const TROUBLE: &[&str] = &[
    "lost", "broke", "broken", "forgot", "forgotten", "stolen", "stole", "damaged", "crashed", "failed",
    "stopped", "perso", "persa", "rotto", "rotta", "dimenticato", "rubato", "danneggiato", "smarrito",
    "smarrita", "bloccato", "bloccata", "smesso",
];

/// The act that a past form expresses.
fn act_of_past_verb(verb: &Token) -> Act {
    if verb.is(TROUBLE) { Act::Statement } else { Act::Report }
}

/// The act of a clause about the past: a report, or a statement if something went wrong and may need fixing.
pub(super) fn report_act(words: &[&Token]) -> Option<Act> {
    for i in 0..words.len().min(12) {
        let t = words[i];
        if i > 0
            && (is_verb(t) && !is_past(&t.norm) && !is_participle(&t.norm) && !t.is(&["had", "have"]))
            && words[..i].iter().all(|w| !w.is(&["i", "we", "ho", "abbiamo", "ve"]))
            && !is_date_word(t)
        {
            return None;
        }
        if t.is(&["because", "perche", "che", "that", "which", "who"]) {
            return None;
        }
        if t.is(&["i", "we", "you"]) {
            return english_past_act(words, i);
        }
        let report = italian_perfect_act(words, i)
            .or_else(|| is_italian_past_tense(words, i).then_some(Act::Report))
            .or_else(|| third_person_past_act(words, i));
        if report.is_some() {
            return report;
        }
    }
    None
}

/// The act of an English past form after the pronoun at `i`: "I already booked".
fn english_past_act(words: &[&Token], i: usize) -> Option<Act> {
    let mut k = i + 1;
    while words.get(k).is_some_and(|t| {
        t.is(&[
            "already", "just", "also", "never", "once", "recently", "only", "then", "have", "had", "ve", "d",
            "once", "actually", "usually", "always", "even",
        ])
    }) && k < i + 4
    {
        k += 1;
    }
    let verb = words.get(k)?;
    let polite = verb.is(&["wanted", "hoped", "needed", "wondered", "read", "put", "cut"]) && k == i + 1;
    (is_past(&verb.norm) && !polite).then(|| act_of_past_verb(verb))
}

/// The act of an Italian participle after the auxiliary at `i`: "ho già prenotato".
fn italian_perfect_act(words: &[&Token], i: usize) -> Option<Act> {
    let auxiliary = words[i];
    if !auxiliary.is(&[
        "ho", "hai", "abbiamo", "avete", "hanno", "avevo", "avevamo", "aveva", "ha", "sono", "siamo", "ero",
        "eravamo",
    ]) {
        return None;
    }
    let mut k = i + 1;
    while words.get(k).is_some_and(|t| {
        t.is(&["gia", "appena", "mai", "sempre", "anche", "solo", "poi", "non", "pure", "proprio"])
    }) {
        k += 1;
    }
    let verb = words.get(k).filter(|t| is_participle(&t.norm))?;
    let dative = words[..i].iter().any(|w| w.is(&["mi", "ci"]));
    let to_be = auxiliary.is(&["sono", "siamo"])
        && !verb.is(&["stato", "stata", "stati", "andato", "andata", "andati"])
        && !dative;
    if to_be {
        return None;
    }
    let others = auxiliary.is(&["ha", "hanno", "aveva"]) && dative;
    Some(if others { Act::Statement } else { act_of_past_verb(verb) })
}

/// Whether the word at `i` is an Italian imperfect ("prendevo", "chiedevamo") or simple past ("prenotai").
fn is_italian_past_tense(words: &[&Token], i: usize) -> bool {
    let t = words[i];
    let imperfect = ["avo", "evo", "ivo", "avamo", "evamo", "ivamo"].iter().any(|e| t.norm.ends_with(e))
        && t.norm.len() > 5
        && (t.first || !t.capital())
        && !is_date_word(t)
        && !t
            .is(&["nuovo", "arrivo", "attivo", "motivo", "preventivo", "indicativo", "dispositivo", "bravo"]);
    let once = t.norm.len() > 6 && t.norm.ends_with("ai") && lexicon::may_be_action(&t.features().concepts);
    (imperfect || once) && (i == 0 || is_date_word(words[i - 1]) || lexicon::is_stop_word(&words[i - 1].norm))
}

/// The act of an English past form at `i` with a noun as its subject: "Luca booked …", "my payment failed".
fn third_person_past_act(words: &[&Token], i: usize) -> Option<Act> {
    let t = words[i];
    if i == 0 || i > 3 || !is_past(&t.norm) || is_verb(words[0]) {
        return None;
    }
    let named = words[..i].iter().any(|w| is_person_name(w) || w.is(THEY));
    let owned = words[0].is(KIN) || words[0].is(&["the", "il", "la"]);
    if named {
        return Some(act_of_past_verb(t));
    }
    owned.then_some(Act::Statement)
}
