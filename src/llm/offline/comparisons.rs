//! Questions that compare earlier results: "which one is warmer?", "compare them", "e qual è il più caro?". All that they
//! compare is told again, side by side.

use super::clauses::ClauseLink;
use super::drafts::StepDraft;
use super::followup;
use super::lexicon;
use super::pattern::{Patterns, patterns, strip_fillers};
use super::plan::OfflinePlanner;
use super::prompt::{Conversation, PriorTurn};
use super::routing::Hit;
use super::text::{self, Token};
use crate::language::function_words::AND;

/// Whether words ask which of some names it is, before a further one: "which of Rome, Naples and …".
pub(super) fn asks_which_of(words: &[&Token]) -> bool {
    let mut words = words.iter();
    let asks =
        words.next().is_some_and(|word| word.is(WHICH)) && words.next().is_some_and(|word| word.is(OF));
    asks && words.len() > 0 && words.all(|word| word.capital() || word.is_and())
}

/// Maximum number of turns whose results are compared.
const MAX_TURNS: usize = 4;

/// Words that ask which of several it is.
const WHICH: &[&str] = &[
    "which", "what", "where", "who", "quale", "qual", "quali", "dove", "chi", "lequel", "laquelle", "quel",
    "quelle", "ou", "qui", "welche", "welcher", "welches", "wo", "wer", "cual", "donde", "quien",
];

/// Words after these, before what it is one of.
const OF: &[&str] = &["of", "between", "tra", "fra", "von", "de", "entre"];

/// Orders to compare earlier results.
static COMPARE: &Patterns = patterns![
    "compare/both them/these/those/both/the? two?",
    "confronta/confrontali/confrontale/paragonali/paragonale li/le/i? due?",
    "compare-les/compare/comparez/comparez-les les? deux?",
    "vergleiche/vergleich/vergleichen sie? sie/die/beide/beiden beiden?",
    "comparalos/comparalas/compara los/las? dos?",
    "what/what/whats s/is/are the difference/differences",
    "qual è la differenza",
    "tutti/tutte e/i/le? due",
    "tous/toutes les deux",
    "los/las dos",
    "beide",
];

/// Words that make a comparison of the next one.
const MORE: &[&str] =
    &["more", "most", "less", "least", "piu", "meno", "plus", "moins", "mas", "menos", "am"];

/// Comparisons that are one word.
const COMPARATIVES: &[&str] = &[
    "better", "best", "worse", "worst", "migliore", "peggiore", "maggiore", "minore", "meglio", "peggio",
    "meilleur", "meilleure", "pire", "mejor", "peor", "mayor", "menor", "besser", "schlechter", "teurer",
    "mehr", "weniger",
];

/// Words for any of the things that are compared.
const ONES: &[&str] = &[
    "one", "ones", "two", "due", "deux", "zwei", "dos", "beiden", "city", "citta", "ville", "stadt",
    "ciudad", "place", "there", "la", "es", "fa", "fait", "hace", "tra", "fra", "entre", "between",
    "fait-il",
];

/// Words before a noun that ends as a comparison does: "my manager", "the letter".
const BEFORE_NOUNS: &[&str] =
    &["the", "a", "an", "my", "your", "our", "his", "her", "their", "der", "die", "das", "mein", "ihr"];

/// Whether words only ask which of the things told before is more of something. `is_known` says whether the catalogue has a
/// word, which is then the subject of a question of its own.
fn compares(words: &str, is_known: impl Fn(&Token) -> bool) -> bool {
    let tokens = text::tokens(words);
    let all: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
    let own = strip_fillers(&all);
    let own = if own.is_empty() { &all } else { own };
    let own = if own.first().is_some_and(|and| and.is(AND)) { &own[1..] } else { own };
    let is_small = |token: &&Token| {
        lexicon::is_stop_word(&token.norm) || lexicon::is_pleasantry(&token.norm) || token.is(ONES)
    };
    if let Some(end) = COMPARE.ends(own, 0).max() {
        return own[end..].iter().all(&is_small);
    }
    let Some((_, rest)) = own.split_first().filter(|(which, _)| which.is(WHICH)) else { return false };
    let is_comparative = |at: usize| {
        let token = rest[at];
        let is_led = at.checked_sub(1).is_some_and(|before| rest[before].is(MORE));
        let is_noun = at.checked_sub(1).is_some_and(|before| rest[before].is(BEFORE_NOUNS));
        let ends = token.norm.ends_with("er") && !is_noun || token.norm.ends_with("est");
        let ends = ends && !is_known(token);
        is_led
            || token.is(COMPARATIVES)
            || ends && token.norm.len() > 4 && !token.capital() && !is_small(&token)
    };
    let found = (0..rest.len()).filter(|at| is_comparative(*at)).count();
    let others = (0..rest.len()).filter(|at| !is_comparative(*at)).map(|at| rest[at]);
    found == 1 && others.into_iter().all(|token| is_small(&token) || token.is(MORE))
}

impl OfflinePlanner {
    /// The reads of a question that compares earlier results: those of the last turn that told something, and of the turns
    /// before it that called the same tool, if together they told more than one thing.
    pub fn compared_reads(&self, words: &str) -> Vec<StepDraft> {
        let is_known = |token: &Token| self.index.has_similar_word(&token.features());
        if !compares(words, is_known) {
            return Vec::new();
        }
        let turns = &self.conversation.turns;
        let Some(last) = turns.iter().rposition(|turn| !turn.calls.is_empty()) else { return Vec::new() };
        let Some(hit) = self.only_read_of(&turns[last]) else { return Vec::new() };
        let mut purposes: Vec<String> = Vec::new();
        let mut told = 0;
        for at in (0..=last).rev().take(MAX_TURNS) {
            let turn = &turns[at];
            if self.only_read_of(turn).is_none_or(|own| own.place() != hit.place()) || told > 1 {
                break;
            }
            let Some(purpose) = self.purpose_of(at, hit) else { break };
            told += turn.calls.len();
            purposes.insert(0, purpose);
        }
        let draft =
            |purpose| StepDraft { hit, purpose, link: ClauseLink::Next, refers_back: false, unclear: false };
        if told > 1 { purposes.into_iter().map(draft).collect() } else { Vec::new() }
    }

    /// The read that all calls of a turn made.
    fn only_read_of(&self, turn: &PriorTurn) -> Option<Hit> {
        let mut hits = turn.calls.iter().map(|call| self.index.named(&call.scene, &call.tool));
        let first = hits.next()??;
        let is_same = |hit: Option<Hit>| hit.is_some_and(|hit| hit.place() == first.place());
        (!self.writes(first) && hits.all(is_same)).then_some(first)
    }

    /// The words that led to the read of a turn, whole where the turn only named another value.
    fn purpose_of(&self, at: usize, hit: Hit) -> Option<String> {
        let turns = &self.conversation.turns;
        let request = &turns[at].request;
        let is_its = |found: Hit| {
            found.place() == hit.place()
                && self.filled(hit, request).missing(self.index.fields(hit)).is_empty()
        };
        let before = Conversation { summary: None, turns: turns[..at].to_vec() };
        let earlier = || {
            followup::resolve(request, &before, &self.index, &self.now)
                .filter(|found| found.0.place() == hit.place())
        };
        match self.index.route(request, self.today(), None) {
            Some(found) if is_its(found) => Some(request.clone()),
            _ => earlier().map(|found| found.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::compares;

    #[test]
    fn comparison_names_nothing_of_its_own() {
        for said in [
            "Which one is warmer?",
            "And which is colder?",
            "Which is the warmest?",
            "Which of the two is more expensive?",
            "Where is it hotter?",
            "Compare them",
            "both, please",
            "Quale è più calda?",
            "E dove fa più caldo?",
            "Qual è il migliore?",
            "Lequel est le plus cher ?",
            "Où fait-il plus chaud ?",
            "Wo ist es wärmer?",
            "Welche ist am wärmsten?",
            "¿Cuál es más barato?",
            "¿Dónde hace más calor?",
        ] {
            assert!(compares(said, |_| false), "{said}");
        }
        for said in [
            "Which item is cheaper?",
            "Which is my manager?",
            "Where is the order?",
            "What is the weather in Rome?",
            "Who is Peter?",
            "Compare Rome and Milan",
            "Which books are overdue?",
            "What else?",
            "Where is the letter?",
            "Where is my request?",
            "Quali sono le feste?",
            "",
        ] {
            assert!(!compares(said, |token| token.is(&["order", "request"])), "{said}");
        }
    }
}
