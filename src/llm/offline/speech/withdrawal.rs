//! Words that take back what was asked before them: "…, but no", "…, anzi no", "…. Just kidding."

use super::{Act, ClauseJoin, ClauseMood, ClauseOpener, ClauseUnit, ConditionPart};
use crate::llm::offline::lexicon;
use crate::llm::offline::pattern::{Patterns, any, is_infinitive, is_verb, patterns, strip_fillers};
use crate::llm::offline::text::Token;

/// Phrases that take back a request, however they are joined to it.
static WITHDRAWS: &Patterns = patterns![
    "no way/thanks/no?",
    "nope/nah/never",
    "never mind",
    "nevermind",
    "forget about? it/that",
    "scratch/strike that",
    "not right? now/yet/anymore/immediately/away/really",
    "leave it",
    "ignore/disregard that/this/it?",
    "don/do t/not do? it/that/this?",
    "dont do? it/that/this?",
    "not",
    "i/we ve/have? changed my/our mind/minds",
    "i/we ve/have? decided against it/that?",
    "i/we ve/have? decided not to",
    "i/we take it/that back",
    "i/we won t/not",
    "i m/am/was? only? kidding/joking",
    "kidding/joking",
    "it/that was a joke",
    "let s/us not",
    "stop",
    "lascia/lasciate/lasciamo stare/perdere",
    "lascialo/lasciala/lasciali/lasciale stare/perdere",
    "ho/abbiamo cambiato idea",
    "ci? ho/abbiamo ripensato",
    "non importa",
    "non fa niente/nulla",
    "fa niente",
    "non ora/adesso/ancora/subito",
    "non farlo/farla/fatelo/fare",
    "scherzo/scherzavo",
    "sto/stavo scherzando",
    "neanche/nemmeno/neppure per sogno/idea/scherzo",
    "meglio di? no",
    "mai",
    "giammai/macche/niente",
    "come non detto",
    "vergiss/vergessen es/sie? es?",
    "lass/lassen es/das/sie? es? sein?",
    "ach? nein danke",
    "ach nein",
    "nein? doch nicht",
    "nicht jetzt/sofort",
    "laisse/laissez tomber",
    "oublie/oubliez ca/cela?",
    "non merci",
    "pas maintenant/encore",
    "pas tout de suite",
    "olvidalo/dejalo",
    "no mejor no",
    "mejor no",
    "no ahora/todavia",
];

/// Phrases that take back a request only after "but".
static WITHDRAWS_AFTER_BUT: &Patterns = patterns![
    "i/we can/could t/not",
    "i/we cannot/cant",
    "i/we couldn t",
    "i/we don/do/didn/did t/not want/need it/that? anymore?",
    "it s/is/was too late",
    "no longer",
    "non posso/possiamo/potevo/riesco piu?",
    "non voglio/serve/occorre piu?",
    "è troppo tardi",
];

/// Words around a withdrawal that take nothing back by themselves.
static LEADS: &Patterns = patterns![
    "anzi/aspetta/ripensandoci/forse/magari/insomma",
    "wait/hmm/hm/maybe/perhaps/better",
    "hold on",
    "o meglio",
    "i mean",
    "on second thought/thoughts",
];

/// Whether words take back what precedes them, and say nothing else. `asked`: whether a question mark follows.
pub(super) fn is_withdrawal(words: &[&Token], join: ClauseJoin, asked: bool) -> bool {
    // "…, no?", "… or not?".
    let is_alternative = join == ClauseJoin::Or && words.len() == 1;
    let is_tag = asked && words.iter().any(|t| t.is(&["no", "not"]));
    if is_alternative || is_tag {
        return false;
    }
    let mut rest = strip_fillers(words);
    let mut takes_back = false;
    while !rest.is_empty() {
        let phrase = any(rest, 0, WITHDRAWS)
            .or_else(|| any(rest, 0, WITHDRAWS_AFTER_BUT).filter(|_| join == ClauseJoin::But));
        let Some(at) = phrase.or_else(|| lead(rest)) else { return false };
        takes_back |= phrase.is_some();
        rest = strip_fillers(&rest[at..]);
    }
    takes_back
}

/// Whether a lone "no" ends a sentence and takes back the words before it, up to a punctuation mark: "Annulla la richiesta
/// 1 no"; not "…, breakfast no", where it belongs to a noun.
pub(super) fn is_final_no(words: &[&Token], before: &[&Token], asked: bool) -> bool {
    let ([no], Some(last)) = (words, before.last()) else { return false };
    let is_taken_back = before.iter().any(|token| is_verb(token) || is_infinitive(&token.norm));
    no.is(&["no"]) && !asked && is_taken_back && !lexicon::is_stop_word(&last.norm) && !is_verb(last)
}

/// The end of words at the beginning that say nothing by themselves.
fn lead(words: &[&Token]) -> Option<usize> {
    any(words, 0, LEADS).or_else(|| words.first().filter(|t| lexicon::is_pleasantry(&t.norm)).map(|_| 1))
}

/// Whether a clause takes back what precedes it, and says nothing else.
pub(super) fn takes_back(unit: &ClauseUnit, tokens: &[Token]) -> bool {
    let asked = tokens.get(unit.last + 1).is_some_and(|t| t.raw == "?");
    unit.mood.act != Act::Quoted && is_withdrawal(&words(unit, tokens), unit.join, asked)
}

/// Forbids what withdrawals take back. Earlier requests become questions, since it is not clear whether they are meant,
/// too: those of the same sentence, and all where the withdrawal is a sentence and answers no question.
pub(super) fn apply(units: &mut Vec<ClauseUnit>, tokens: &[Token]) {
    let mut n = 1;
    while n < units.len() {
        if !takes_back(&units[n], tokens) {
            n += 1;
            continue;
        }
        let target = withdrawn(&units[..n], tokens);
        let answers = tokens.get(units[target].last + 1).is_some_and(|t| t.raw == "?");
        let is_about_all = units[n].join == ClauseJoin::Start && !answers;
        let begin = if is_about_all { 0 } else { sentence_start(units, target) };
        for earlier in &mut units[begin..target] {
            if earlier.mood.act == Act::Request {
                earlier.mood = ClauseMood { act: Act::Question, explicit: true };
            }
        }
        let last = units[n].last;
        let unit = &mut units[target];
        unit.last = last;
        unit.mood = ClauseMood { act: Act::Negated, explicit: true };
        unit.part = ConditionPart::Whole;
        unit.opener = ClauseOpener::None;
        unit.verb = None;
        units.drain(target + 1..=n);
        n = target + 1;
    }
}

/// The clause that a withdrawal after `units` takes back: the last one that asks for something; of a conditional
/// sentence its first clause.
fn withdrawn(units: &[ClauseUnit], tokens: &[Token]) -> usize {
    let asks = |unit: &ClauseUnit| {
        let is_background =
            matches!(unit.mood.act, Act::Report | Act::Statement | Act::ThirdPerson | Act::Hypothetical);
        !is_background && !is_empty(&words(unit, tokens))
    };
    let Some(mut at) = units.iter().rposition(asks) else { return units.len() - 1 };
    let conditional = |unit: &ClauseUnit| unit.mood.act == Act::Condition;
    while at > 0
        && units[at].join != ClauseJoin::Start
        && conditional(&units[at])
        && conditional(&units[at - 1])
    {
        at -= 1;
    }
    at
}

/// Whether words say nothing by themselves.
fn is_empty(words: &[&Token]) -> bool {
    let mut rest = strip_fillers(words);
    while let Some(at) = lead(rest) {
        rest = strip_fillers(&rest[at..]);
    }
    rest.is_empty()
}

fn sentence_start(units: &[ClauseUnit], at: usize) -> usize {
    units[..=at].iter().rposition(|unit| unit.join == ClauseJoin::Start).unwrap_or(0)
}

fn words<'a>(unit: &ClauseUnit, tokens: &'a [Token]) -> Vec<&'a Token> {
    tokens[unit.first..=unit.last].iter().filter(|t| t.word).collect()
}
