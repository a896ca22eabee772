//! Words that stand for something said before. The rules read one question and remember none, so a pronoun needs
//! something in its own question.

use super::Tongue;
use super::lexicon::Role;
use super::tokens::is_english_plural;
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

/// How words that ask for a list begin.
const SHOWING: [&str; 6] = ["show", "list", "display", "mostra", "elenc", "visualizza"];

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

fn is_named(item: &Item) -> bool {
    !item.meanings.is_empty()
}

/// Whether the question says before what a pronoun stands for, or describes it after: "those customers who". What is asked
/// for is not what a pronoun stands for: "how many orders did they place". It may be for a possessive: "products with their
/// supplier".
fn is_explained(items: &[Item], at: usize) -> bool {
    let Some(item) = items.get(at) else { return false };
    let before = items.get(..at).unwrap_or_default();
    let next = items.get(at + 1);
    let relative = items.get(at + 2).map_or("", |item| item.text.split(' ').next().unwrap_or_default());
    let described = item.text == "those"
        && next.is_some_and(is_table)
        && matches!(relative, "who" | "that" | "which" | "with" | "whose" | "having");
    let italian = matches!(&*item.text, "suo" | "sua" | "suoi" | "sue");
    let is_possessive = item.role == Some(Role::WithTheir) || italian && next.is_some_and(is_named);
    // "products that customers bought"
    let relates = item.text == "that" && next.is_some_and(|next| is_english_plural(&next.text));
    // "orders except those that were cancelled"
    let excepted = matches!(&*item.text, "those" | "quelli" | "quelle")
        && before.last().is_some_and(|last| last.role == Some(Role::Not));
    if is_possessive || relates || excepted {
        return described || before.iter().any(is_named);
    }
    described || names_more_than_asked(before)
}

/// Whether something is named beside what the last clause asks for: anything in the clauses before it, or a table in the
/// rest of it. A value there is a condition on what is asked for: "how many orders from Milan did they place".
fn names_more_than_asked(items: &[Item]) -> bool {
    let start = (0..items.len()).rev().find(|at| starts_clause(items, *at)).unwrap_or_default();
    let (said, clause) = items.split_at_checked(start).unwrap_or_default();
    // "cancelled and returned orders"
    let in_asked = |item: &&Item| is_named(item) || matches!(item.role, Some(Role::And | Role::Or));
    let mut rest = clause.iter().skip_while(|item| !is_named(item)).skip_while(in_asked);
    said.iter().any(is_named) || rest.any(is_table)
}

/// Whether a phrase is a question word, "show", or an "and" before more than another name or number.
fn starts_clause(items: &[Item], at: usize) -> bool {
    let Some(item) = items.get(at).filter(|item| !is_named(item)) else { return false };
    let is_more = |next: &Item| !is_named(next) && next.number.is_none() && next.days.is_none();
    // "orders which they placed"
    let follows_table = at.checked_sub(1).and_then(|at| items.get(at)).is_some_and(is_table);
    match item.role {
        Some(Role::Which) if item.text == "which" => !follows_table,
        Some(Role::Count | Role::Which | Role::HowMuch | Role::When) => true,
        Some(Role::And) => items.get(at + 1).is_none_or(is_more),
        Some(Role::Filler) => item.text.split(' ').any(|word| SHOWING.iter().any(|s| word.starts_with(*s))),
        _ => false,
    }
}

/// "Quanti ordini hanno fatto a marzo?": the verb has no subject, which was said before. After the participle, there are only
/// dates and places.
fn left_out_subject(items: &[Item], tongue: Tongue) -> Option<(usize, &Item)> {
    let is_verb = |item: &Item| matches!(&*item.text, "ha" | "hanno" | "che ha" | "che hanno");
    let at = items.iter().rposition(is_verb).filter(|_| tongue == Tongue::Italian)?;
    let verb = items.get(at)?;
    let (done, rest) = items.get(at + 1..)?.split_first()?;
    let asked = items.first().is_some_and(|item| matches!(item.role, Some(Role::Count | Role::Which)));
    // "Quanti clienti hanno ordinato" has a subject: customers, which are not what is ordered.
    let is_asked = |meaning: &Meaning| match meaning {
        Meaning::Column(of) | Meaning::Value(of, _) => names_table(items.get(..at).unwrap_or_default(), of.0),
        Meaning::Table(_) => false,
    };
    let is_tie = done.role == Some(Role::Tie) && !is_named(done);
    let is_done = is_tie || is_named(done) && done.meanings.iter().all(is_asked);
    (asked && at > 1 && is_done && are_circumstances(rest)).then_some((at, verb))
}

fn names_table(items: &[Item], table: usize) -> bool {
    items.iter().any(|item| item.meanings.contains(&Meaning::Table(table)))
}

/// Whether phrases are only dates and values, with words without a meaning here between them: "a Milano nel 2025".
fn are_circumstances(items: &[Item]) -> bool {
    let is_value = |item: &Item| {
        item.days.is_some()
            || is_named(item) && item.meanings.iter().all(|meaning| matches!(meaning, Meaning::Value(..)))
    };
    // A value is led by a preposition, but a date need not be: "quanti ordini ha fatto Rossi" has a subject.
    let mut led = false;
    items.iter().all(|item| {
        let is_led = led && is_value(item);
        led = item.is_light();
        led || is_led || item.days.is_some()
    })
}
