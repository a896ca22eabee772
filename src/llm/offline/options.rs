//! Fills enumerations and boolean arguments.

use serde_json::{Value, json};

use super::lexicon;
use super::schema::{ArgumentField, ArgumentKind, EnumValue};
use super::slots::Filled;
use super::source::SourceText;
use super::text::{Features, Token, features};
use super::weights::EQUAL_SCORES;

/// Negations.
const NOT: &[&str] =
    &["non", "not", "no", "senza", "without", "nessun", "nessuna", "never", "mai", "don", "doesn"];

/// Fills enumerations, single and in lists.
pub(super) fn fill_enums(fields: &[ArgumentField], source: &mut SourceText, out: &mut Filled, alone: bool) {
    for field in fields {
        match &field.kind {
            ArgumentKind::Enum(choices) => {
                if let Some((choice, first, last)) = best_value(field, choices, source, alone) {
                    let mut all = vec![(choice, first, last)];
                    all.extend(joined_values(field, choices, source, &all[0]));
                    out.doubtful |= has_unrelated_value(choices, source, &all);
                    all.sort_by_key(|(_, first, _)| *first);
                    for (_, first, last) in &all {
                        source.take(*first, *last);
                    }
                    let values: Vec<Value> = all.into_iter().map(|(value, _, _)| value).collect();
                    out.values.extend(values.first().map(|value| (field.name.clone(), value.clone())));
                    if values.len() > 1 {
                        out.set_several(&field.name, values);
                    }
                }
            }
            ArgumentKind::List(inner) => {
                if let ArgumentKind::Enum(choices) = &inner.kind {
                    let all: Vec<Value> = choices
                        .iter()
                        .filter_map(|c| {
                            best_value(field, std::slice::from_ref(c), source, alone).map(|b| b.0)
                        })
                        .collect();
                    if !all.is_empty() {
                        out.values.insert(field.name.clone(), Value::Array(all));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Other values joined to the one found by "and": "my debit card and my credit card".
fn joined_values(
    field: &ArgumentField,
    choices: &[EnumValue],
    source: &SourceText,
    found: &(Value, usize, usize),
) -> Vec<(Value, usize, usize)> {
    let others = choices.iter().filter(|c| c.value != found.0);
    let mentioned = others.filter_map(|c| {
        let exact =
            c.words.iter().filter_map(|words| find_words(words, source)).find(|found| found.0 > 0.9)?;
        Some((c.value.clone(), exact.1, exact.2))
    });
    let near = |other: &(Value, usize, usize)| {
        let (from, to) = if other.1 > found.2 { (found.2 + 1, other.1) } else { (other.2 + 1, found.1) };
        let Some(between) = source.tokens.get(from..to) else { return false };
        let and = between.iter().any(Token::is_and);
        and && between.len() <= 6
            && between.iter().all(|t| {
                !t.word
                    || lexicon::is_stop_word(&t.norm)
                    || t.is(&["one", "una"])
                    || field.similarity(&t.features()) > 0.5
                    || choices.iter().flat_map(|c| &c.words).flatten().any(|w| *w == t.norm)
                    // "La tessera blu e la tessera rossa".
                    || source.tokens[..from].iter().any(|before| before.norm == t.norm)
            })
    };
    mentioned.filter(near).collect()
}

/// Whether the text mentions a further value, so that it is unclear which one is meant.
fn has_unrelated_value(choices: &[EnumValue], source: &SourceText, found: &[(Value, usize, usize)]) -> bool {
    let mut others = choices.iter().filter(|c| found.iter().all(|(value, _, _)| *value != c.value));
    let apart = |first: usize, last: usize| found.iter().all(|(_, a, b)| last < *a || first > *b);
    others.any(|c| {
        let mut mentions = c.words.iter().filter_map(|words| find_words(words, source));
        mentions.any(|(score, first, last)| score > 0.99 && apart(first, last))
    })
}

/// The value that the text means, with the first and last token of its words.
fn best_value(
    field: &ArgumentField,
    choices: &[EnumValue],
    source: &SourceText,
    alone: bool,
) -> Option<(Value, usize, usize)> {
    let mut best: Option<(f64, Value, usize, usize)> = None;
    for choice in choices {
        for (n, words) in choice.words.iter().enumerate() {
            let Some((mut score, first, last)) = find_words(words, source) else { continue };
            score -= if n == 0 { 0.0 } else { 0.03 };
            // Longer expressions are more certain, and even more so next to the argument's name.
            score += 0.02 * words.len().min(3) as f64;
            let beside = [first.checked_sub(1), first.checked_sub(2), Some(last + 1)];
            let near = beside
                .iter()
                .flatten()
                .filter_map(|i| source.tokens.get(*i))
                .any(|t| t.word && field.similarity(&t.features()) > 0.8);
            score += if near { 0.2 } else { 0.0 };
            if best.as_ref().is_none_or(|b| score > b.0 + EQUAL_SCORES) {
                best = Some((score, choice.value.clone(), first, last));
            }
        }
    }
    if let Some((score, value, first, last)) = best
        && score >= if alone { 0.7 } else { 0.8 }
    {
        return Some((value, first, last));
    }
    // "Urgente" for the values low, normal, high.
    if field.mentions(&["priority", "urgency", "priorita", "urgenza", "severity"]) {
        let urgent = features("urgent");
        let at = source.tokens.iter().position(|t| t.word && t.features().similarity(&urgent) > 0.8)?;
        if is_negated_at(&source.tokens, at) {
            return None;
        }
        let high = features("high");
        let top =
            choices.iter().find(|c| c.words.iter().flatten().any(|w| features(w).similarity(&high) > 0.8))?;
        return Some((top.value.clone(), at, at));
    }
    None
}

/// Finds words that stand together in the text: their similarity, the first and the last token.
fn find_words(words: &[String], source: &SourceText) -> Option<(f64, usize, usize)> {
    let mut first = usize::MAX;
    let mut last = 0;
    let mut total = 0.0;
    // "Senza glutine" contains its own negation.
    let denies = words.iter().any(|w| NOT.contains(&w.as_str()) || w == "free");
    for word in words {
        let target = features(word);
        let mut found: Option<(f64, usize)> = None;
        for (i, token) in source.tokens.iter().enumerate() {
            if !token.word
                || source.is_taken(i)
                || source.found.quoted[i]
                || (!denies && is_negated_at(&source.tokens, i))
            {
                continue;
            }
            let exact = token.norm == target.norm;
            if !exact && (lexicon::is_stop_word(&token.norm) || target.norm.len() < 3) {
                continue;
            }
            // "Check my balance" does not mean the checking account.
            if !exact && lexicon::may_be_action(&token.features().concepts) && !is_noun_of(token, &target) {
                continue;
            }
            let mut sim = token.features().similarity(&target);
            if sim == 0.0 && token.norm.contains('-') {
                sim = token.norm.split('-').map(|p| features(p).similarity(&target)).fold(0.0, f64::max);
            }
            if sim == 0.0
                && token.norm.len() >= 5
                && target.norm.len() >= 5
                && strsim::jaro_winkler(&token.norm, &target.norm) > 0.93
            {
                sim = 0.82;
            }
            if sim > 0.0 && found.is_none_or(|f| sim > f.0) {
                found = Some((sim, i));
            }
        }
        let (sim, at) = found?;
        total += sim;
        first = first.min(at);
        last = last.max(at);
    }
    (last.saturating_sub(first) <= words.len() + 1).then(|| (total / words.len().max(1) as f64, first, last))
}

/// Whether an action word is another form of the value's noun ("prenotazione" for "prenotazioni") and not its
/// verb.
fn is_noun_of(token: &Token, target: &Features) -> bool {
    !(target.norm.starts_with(token.norm.as_str()) || token.norm.starts_with(target.norm.as_str()))
        || target.norm.len().abs_diff(token.norm.len()) < 2
}

/// Whether one of the two words before a token is a negation.
fn is_negated_at(tokens: &[Token], at: usize) -> bool {
    (at.saturating_sub(2)..at).any(|i| tokens[i].is(NOT))
}

/// Fills booleans: true if the text has the words of the argument's name, false after a "without" or "not".
pub(super) fn fill_flags(fields: &[ArgumentField], source: &mut SourceText, out: &mut Filled, alone: bool) {
    for field in fields
        .iter()
        .filter(|f| f.kind == ArgumentKind::Bool && !out.values.contains_key(&f.name))
        .collect::<Vec<_>>()
    {
        let general = [
            "is", "has", "with", "include", "needs", "need", "want", "wants", "required", "con", "is", "use",
            "requires",
        ];
        let words: Vec<_> =
            field.cues.iter().filter(|f| !general.contains(&f.norm.as_str()) && f.norm.len() > 2).collect();
        // The cues contain the joined form of the name besides its parts; the parts are enough.
        let words: Vec<_> = words
            .iter()
            .filter(|f| {
                field.cues.iter().filter(|o| o.norm != f.norm && f.norm.contains(&o.norm)).count() < 2
            })
            .collect();
        let places: Option<Vec<usize>> = words
            .iter()
            .map(|w| source.tokens.iter().position(|t| t.word && t.features().similarity(w) > 0.8))
            .collect();
        match places {
            Some(places) if !places.is_empty() => {
                let first = places.iter().copied().min().unwrap_or(0);
                let denied = is_negated_at(&source.tokens, first);
                out.values.insert(field.name.clone(), json!(!denied));
                for place in &places {
                    source.take(*place, *place);
                }
                if let Some(not) = (first.saturating_sub(2)..first).find(|i| denied && source.is(*i, NOT)) {
                    source.take(not, not);
                }
            }
            _ if alone && field.required => {
                let yes =
                    source.tokens.iter().any(|t| t.is(&["si", "yes", "certo", "sure", "ok", "oui", "ja"]));
                let no = source.tokens.iter().any(|t| t.is(NOT));
                if yes != no {
                    out.values.insert(field.name.clone(), json!(yes));
                }
            }
            _ => {}
        }
    }
}
