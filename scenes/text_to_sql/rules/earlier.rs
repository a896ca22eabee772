//! Words that stand for something said before. The rules read one question and remember none, so a pronoun needs
//! something in its own question.

use super::Tongue;
use super::lexicon::Role;
use super::vocabulary::{Item, Meaning};

/// Pronouns and possessives.
const ENGLISH: [&str; 16] = [
    "they", "them", "their", "theirs", "it", "its", "he", "she", "him", "his", "her", "hers", "these",
    "those", "ones", "ours",
];
/// The same in Italian, where subjects are left out.
const ITALIAN: [&str; 19] = [
    "questi", "queste", "quelli", "quelle", "quello", "quella", "loro", "suo", "sua", "suoi", "sue", "lui",
    "lei", "essi", "esse", "mostrali", "mostrale", "elencali", "elencale",
];

/// The word of a question that stands for something that the question does not say; as written.
pub fn refers_back(items: &[Item], tongue: Tongue) -> Option<&str> {
    let without = |(at, item): &(usize, &Item)| {
        let points = stands_for_other(item, tongue) || points_at(items, *at);
        points && !is_explained(items, *at)
    };
    let found = items.iter().enumerate().find(without).or_else(|| left_out_subject(items, tongue));
    found.map(|(_, item)| item.written.as_str())
}

/// Whether a phrase is a pronoun, or shows something of "their".
fn stands_for_other(item: &Item, tongue: Tongue) -> bool {
    let words: &[&str] = if tongue == Tongue::English { &ENGLISH } else { &ITALIAN };
    let mut said = item.text.split(' ');
    let is_plain = item.meanings.is_empty() && !item.quoted;
    let is_word = is_plain && matches!(item.role, Some(Role::Filler)) && words.contains(&item.text.as_str());
    let shows =
        item.role == Some(Role::WithTheir) && said.next_back().is_some_and(|word| words.contains(&word));
    is_word || shows
}

/// "That order", "quell'ordine": one that was spoken of.
fn points_at(items: &[Item], at: usize) -> bool {
    let is = |item: &Item| {
        item.meanings.is_empty() && matches!(&*item.text, "that" | "quel" | "quell" | "quei" | "quegli")
    };
    items.get(at).is_some_and(is) && items.get(at + 1).is_some_and(is_table)
}

fn is_table(item: &Item) -> bool {
    item.meanings.iter().any(|meaning| matches!(meaning, Meaning::Table(_)))
}

/// Whether the question says before what a pronoun stands for, or describes it after: "those customers who". What is asked
/// for is not what a pronoun stands for: "how many orders did they place".
fn is_explained(items: &[Item], at: usize) -> bool {
    let before = items.get(..at).unwrap_or_default();
    let mut named = before.iter().enumerate().filter(|(_, item)| !item.meanings.is_empty()).map(|(at, _)| at);
    let is_asked = |at: usize| {
        let led = at.checked_sub(1).and_then(|at| items.get(at)).filter(|item| item.meanings.is_empty());
        led.is_some_and(|item| matches!(item.role, Some(Role::Count | Role::Which)))
    };
    let item = items.get(at).map_or("", |item| item.text.as_str());
    let is_subject = matches!(item, "they" | "he" | "she");
    let last = named.next_back();
    let other = last.is_some_and(|last| !(is_subject && is_asked(last)) || named.next().is_some());
    let next = items.get(at + 1);
    let relative = items.get(at + 2).map_or("", |item| item.text.split(' ').next().unwrap_or_default());
    let described = item == "those"
        && next.is_some_and(is_table)
        && matches!(relative, "who" | "that" | "which" | "with" | "whose" | "having");
    other || described
}

/// "Quanti ordini hanno fatto?": the verb at the end has no subject, which was said before.
fn left_out_subject(items: &[Item], tongue: Tongue) -> Option<(usize, &Item)> {
    let is_verb = |item: &Item| matches!(&*item.text, "ha" | "hanno" | "che ha" | "che hanno");
    let at = items.len().checked_sub(2).filter(|_| tongue == Tongue::Italian)?;
    let (verb, last) = (items.get(at)?, items.get(at + 1)?);
    let asked = items.first().is_some_and(|item| matches!(item.role, Some(Role::Count | Role::Which)));
    let ends = last.role == Some(Role::Tie) || last.meanings.iter().all(|m| matches!(m, Meaning::Column(_)));
    (asked && at > 1 && is_verb(verb) && ends).then_some((at, verb))
}
