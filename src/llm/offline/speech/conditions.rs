//! Conditional sentences: which clause is the condition, and which are done under it.

use super::{Act, ClauseJoin, ClauseMood, ClauseOpener, ClauseUnit, ConditionPart};
use crate::llm::offline::pattern::is_verb;
use crate::llm::offline::pronouns;
use crate::llm::offline::text::Token;

/// Makes a clause the consequence of a condition.
pub(super) fn make_conditional(unit: &mut ClauseUnit) {
    if unit.mood.act != Act::Negated {
        unit.part = ConditionPart::Then;
        unit.mood = ClauseMood { act: Act::Condition, explicit: true };
    }
}

/// Applies the condition at `n`: the clauses after it, or the one before it, are its consequence.
pub(super) fn govern_by_condition(units: &mut [ClauseUnit], n: usize, tokens: &[Token]) {
    let would_be =
        n > 0 && units[n - 1].mood.act == Act::Hypothetical || units[n].mood.act == Act::Hypothetical;
    if would_be {
        let from = n.saturating_sub(1);
        units[from..].iter_mut().for_each(|u| u.mood = ClauseMood { act: Act::Hypothetical, explicit: true });
        return;
    }
    units[n].part = ConditionPart::Case;
    units[n].mood = ClauseMood { act: Act::Condition, explicit: true };
    let backward = n > 0 && units[n].join == ClauseJoin::Bare;
    if backward {
        make_conditional_if_plain(&mut units[n - 1]);
        return;
    }
    let mut found = false;
    for unit in units.iter_mut().skip(n + 1) {
        let more = matches!(unit.join, ClauseJoin::And | ClauseJoin::Or)
            && !found
            && matches!(unit.mood.act, Act::Statement | Act::ThirdPerson | Act::Report);
        if unit.opener != ClauseOpener::None {
            break;
        }
        if more {
            unit.part = ConditionPart::Case;
            unit.mood = ClauseMood { act: Act::Condition, explicit: true };
        } else {
            found = true;
            make_conditional_if_plain(unit);
        }
    }
    if !found && n > 0 && inner_order_start(&units[n], tokens).is_none() {
        make_conditional_if_plain(&mut units[n - 1]);
    }
}

fn make_conditional_if_plain(unit: &mut ClauseUnit) {
    if !matches!(unit.mood.act, Act::Negated | Act::Quoted | Act::Reminder | Act::Hypothetical) {
        make_conditional(unit);
    }
}

/// The token at which an order begins inside a condition: "if it rains book …".
fn inner_order_start(unit: &ClauseUnit, tokens: &[Token]) -> Option<usize> {
    const LINKS: &[&str] = &[
        "i", "we", "you", "he", "she", "it", "they", "to", "can", "could", "will", "would", "the", "a", "an",
        "my", "di", "per", "puo", "posso", "devo", "il", "la", "lo", "un", "una", "non", "not", "is", "are",
        "be", "no", "any", "mi", "ci", "le", "i", "gli", "del", "della", "this", "that", "if", "se", "ha",
        "ho", "has", "have", "do", "does", "been", "e", "still", "public",
    ];
    (unit.first + 2..unit.last).find(|i| {
        let before = tokens[..*i].iter().rev().find(|t| t.word);
        let token = &tokens[*i];
        let verb = token.word && is_verb(token) && !token.digit() && (!token.capital());
        let linked = before.is_none_or(|t| t.is(LINKS) && t.lower != "è");
        let object = tokens[i + 1..].iter().find(|t| t.word).is_some_and(|t| {
            t.digit()
                || t.capital()
                || t.is(&[
                    "a", "an", "the", "me", "my", "it", "them", "us", "un", "una", "uno", "il", "la", "le",
                    "i", "gli", "lo", "room", "sala", "vacation", "ferie", "two", "three", "due", "tre",
                    "for", "per", "all", "one", "tickets",
                ])
        });
        let suffixed = pronouns::is_suffixed(&token.norm);
        verb && !linked && (object || suffixed)
    })
}

/// Splits conditions that contain their consequence.
pub(super) fn split_cases(units: &mut Vec<ClauseUnit>, tokens: &[Token]) {
    let mut n = 0;
    while n < units.len() {
        let unit = &units[n];
        let alone = unit.part == ConditionPart::Case
            && unit.opener == ClauseOpener::If
            && !units.get(n + 1).is_some_and(|u| u.part == ConditionPart::Then);
        if alone && let Some(at) = inner_order_start(unit, tokens) {
            let mut then = unit.clone();
            then.first = at;
            then.part = ConditionPart::Then;
            then.opener = ClauseOpener::None;
            units[n].last = at - 1;
            units.insert(n + 1, then);
        }
        n += 1;
    }
}
