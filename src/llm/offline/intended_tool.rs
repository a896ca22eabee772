//! Which steps of a plan some words speak of, where every word of them is understood.

use std::collections::BTreeSet;

use serde_json::Value;

use super::entities::Entities;
use super::index::Index;
use super::lexicon;
use super::plan_changes::{self, NumberedStep};
use super::text::{self, Token};

/// How like two words are that speak of the same.
const SAME: f64 = 0.8;

/// Words that leave something out by saying that it is not wanted.
const NOT: [&str; 6] = ["not", "no", "non", "nicht", "dont", "doesnt"];

/// What is done with what is wanted or not: it names no step.
const DOING: [&str; 34] = [
    "need",
    "needs",
    "needed",
    "want",
    "wanted",
    "serve",
    "interessa",
    "interested",
    "care",
    "necessary",
    "necessario",
    "ask",
    "request",
    "book",
    "do",
    "check",
    "look",
    "get",
    "fetch",
    "include",
    "keep",
    "show",
    "chiedere",
    "richiedere",
    "prenotare",
    "fare",
    "controllare",
    "guardare",
    "cercare",
    "includere",
    "tieni",
    "lascia",
    "plan",
    "piano",
];

/// Whether words leave something out only by "not".
pub(super) fn is_not(token: &Token) -> bool {
    token.is(&NOT)
}

/// Whether words say "not" or "don't".
pub(super) fn says_not(tokens: &[Token]) -> bool {
    let short = |pair: &[Token]| pair[0].lower.ends_with('n') && pair[1].lower == "t";
    tokens.iter().any(is_not) || tokens.windows(2).any(short)
}

/// The steps that `words` speak of, by number or by name; `None` where some word of them is not understood,
/// or says something else of a step than its plan. `planned` are the steps that the words lead to.
pub(super) fn meant(
    known: &[NumberedStep],
    words: &str,
    planned: &Value,
    index: &Index,
    now: &jiff::Zoned,
) -> Option<Vec<u64>> {
    let tokens = text::tokens(words);
    let numbers = plan_changes::numbered_steps(&tokens);
    let at = |number: &u64| known.iter().position(|step| step.number == *number);
    let numbered: Vec<usize> = numbers.iter().map(at).collect::<Option<_>>()?;
    let dated = Entities::of(&tokens, now.date());
    let led_to: BTreeSet<usize> = {
        let led: Vec<&Value> = planned["steps"].as_array().into_iter().flatten().collect();
        // Words that lead elsewhere as well say more than which step.
        let elsewhere = led.iter().any(|step| !known.iter().any(|k| k.serves(step)));
        let serves = |at: &usize| !elsewhere && led.iter().any(|step| known[*at].serves(step));
        (0..known.len()).filter(serves).collect()
    };
    let mut all: BTreeSet<usize> = numbered.iter().copied().collect();
    let mut item: Option<BTreeSet<usize>> = None;
    let mut named = false;
    for (i, token) in tokens.iter().enumerate() {
        // "Without the weather, the hotel and the train": each is a thing by itself.
        if token.raw == "," || token.lower == "e" || token.is(&["and", "ed", "und", "et", "y"]) {
            all.extend(item.take().into_iter().flatten());
            continue;
        }
        let says =
            token.word && !dated.taken[i] && !plan_changes::is_out(token) && !plan_changes::is_only(token);
        let counted =
            !numbers.is_empty() && (plan_changes::is_step(token) || token.raw.parse::<u64>().is_ok());
        let plain = lexicon::is_stop(&token.norm) || lexicon::is_chat(&token.norm) || token.is(&DOING);
        // "Don't", "doesn't".
        let short_not = token.lower.ends_with('n') && tokens.get(i + 1).is_some_and(|t| t.lower == "t");
        if !says || short_not || counted || (plain && !lexicon::is_asking(&token.norm)) {
            continue;
        }
        let features = token.features();
        let like = |step: &&NumberedStep| step.words().iter().any(|word| word.similarity(&features) > SAME);
        let mut hits: BTreeSet<usize> = (0..known.len()).filter(|at| like(&&known[*at])).collect();
        let value = token.digit() || (token.capital() && !token.first);
        if hits.is_empty() && !value && index.knows(&features) {
            hits = led_to.clone();
        }
        let both = item.as_ref().map_or(hits.clone(), |item| item & &hits);
        if hits.is_empty() || both.is_empty() {
            return None;
        }
        named |= !value;
        item = Some(both);
    }
    all.extend(item.into_iter().flatten());
    // "Not in Rome" says where, and not what.
    let soft = says_not(&tokens);
    if all.is_empty() || (soft && !named && numbered.is_empty()) {
        return None;
    }
    // Named by number and by other words: both have to say the same.
    if !numbered.is_empty() && all.len() > numbered.len() {
        return None;
    }
    let own: Vec<_> = all
        .iter()
        .flat_map(|at| Entities::of(&text::tokens(&known[*at].purpose), now.date()).days)
        .map(|day| day.date)
        .collect();
    let said: Vec<_> = dated.days.iter().map(|day| day.date).collect();
    let every = said.is_empty() || own.iter().all(|day| said.contains(day));
    let same = every && said.iter().all(|day| own.contains(day)) && dated.hours.is_empty();
    same.then(|| all.iter().map(|at| known[*at].number).collect())
}
