//! Fills free-text arguments: notes, reasons, subjects, messages. The text follows a mark or a cue word; a
//! required argument also takes what remains of the request.

use serde_json::json;

use super::index::polite_lead_span;
use super::lexicon;
use super::pattern;
use super::pronouns;
use super::schema::{ArgumentField, ArgumentKind};
use super::scored_clause::asks_how_many;
use super::slots::Filled;
use super::source::SourceText;
use super::text::{Features, Token, features};
use crate::language;

/// Cue words for a text of any kind.
const TEXT_CUES: &[&[&str]] = &[
    &["che", "dice", "che"],
    &["dicendo", "che"],
    &["saying", "that"],
    &["says", "that"],
    &["che", "dice"],
    &["che", "recita"],
    &["con", "scritto"],
    &["dicendo"],
    &["saying"],
    &["stating"],
    &["segnalando", "che"],
    &["segnalando"],
    &["which", "says"],
];

const REASON_CUES: &[&[&str]] = &[
    &["a", "causa", "di"],
    &["a", "causa", "del"],
    &["a", "causa", "della"],
    &["per", "il", "fatto", "che"],
    &["because", "of"],
    &["due", "to"],
    &["in", "quanto"],
    &["perche"],
    &["poiche"],
    &["siccome"],
    &["because"],
    &["since"],
    &["as"],
];

const SUBJECT_CUES: &[&[&str]] = &[
    &["a", "proposito", "di"],
    &["riguardo", "a"],
    &["riguardo", "al"],
    &["riguardo", "alla"],
    &["che", "riguarda"],
    &["relativo", "a"],
    &["regarding"],
    &["about"],
    &["concerning"],
];

/// Words before a subject, for arguments that are one: elsewhere, they often lead to a place or a day.
const SUBJECT_PREPOSITIONS: &[&str] = &["su", "sul", "sulla", "sullo", "sull", "sui", "sugli", "sulle", "on"];

const LEAD_WORDS: &[&str] = &[
    "che", "that", "per", "for", "di", "to", "of", "con", "with", "e", "and", "a", "al", "alla", "un", "una",
    "an", "su", "on", "about", "in", "del", "della", "dei", "delle", "ad", "mi", "me", "my", "mio", "mia",
    "please", "pls", "plz", "kindly", "is", "sono", "no",
];

pub(super) fn fill(
    fields: &[ArgumentField],
    source: &mut SourceText,
    out: &mut Filled,
    verbs: &[String],
    alone: bool,
) {
    let texts: Vec<&ArgumentField> =
        fields.iter().filter(|f| f.kind == ArgumentKind::Text && !out.values.contains_key(&f.name)).collect();
    let mut shared: Option<String> = None;
    for field in &texts {
        if let Some((a, b)) = announced_text(field, fields, source)
            && let Some((a, b)) = trim_text(source, a, b, fields)
        {
            let text = source.span(a, b).to_owned();
            shared = Some(text.clone());
            source.take(a, b);
            out.values.insert(field.name.clone(), json!(text));
        }
    }
    let open: Vec<&&ArgumentField> =
        texts.iter().filter(|f| f.required && !out.values.contains_key(&f.name)).collect();
    for field in open {
        // A missing reason is not filled from the rest of the request.
        if field.named(&["reason", "motivo", "why", "motivation", "motivazione", "justification", "purpose"])
            && !alone
        {
            continue;
        }
        // A short and a long form of the same text (title and description) share it.
        let text = shared.clone().or_else(|| {
            let (a, b) = text_after_verb(source, fields)
                .or_else(|| remaining_text(source, if alone { &[] } else { verbs }, fields))
                .map(|(a, b)| (with_count(source, a), b))?;
            let is_own =
                |a: usize| alone || !(is_whole_request(source, a, b) || says_only_what_is_left(source, a, b));
            let a = Some(a).filter(|a| is_own(*a)).or_else(|| {
                after_opening_verb(source, a).map(|a| with_count(source, a)).filter(|a| *a <= b && is_own(*a))
            })?;
            let text = source.span(a, b).to_owned();
            source.take(a, b);
            Some(text)
        });
        if let Some(text) = text {
            shared = Some(text.clone());
            out.values.insert(field.name.clone(), json!(text));
        }
    }
}

/// Whether a span is the whole request, which is never the value of its own argument: but "do we still have teapots?" says
/// nothing but what is counted.
fn is_whole_request(source: &SourceText, first: usize, last: usize) -> bool {
    if first > 0 && asks_how_many(&source.tokens) {
        return false;
    }
    let said = |i: &usize| {
        let token = &source.tokens[*i];
        token.word && !lexicon::is_stop_word(&token.norm) && !lexicon::is_pleasantry(&token.norm)
    };
    let name = |i: usize| source.tokens[i].capital() && !source.tokens[i].first;
    let lead = polite_lead_span(&source.tokens);
    let said = |i: &usize| said(i) && !lead.contains(&source.tokens[*i].start);
    !(first..=last).any(name) && !(0..first).chain(last + 1..source.tokens.len()).any(|i| said(&i))
}

/// Whether a span only asks what is left, of something that was said before: "(how many are) left".
fn says_only_what_is_left(source: &SourceText, first: usize, last: usize) -> bool {
    let left = features("left");
    let mut content =
        source.tokens[first..=last].iter().filter(|t| t.word && !lexicon::is_stop_word(&t.norm)).peekable();
    content.peek().is_some() && content.all(|t| t.features().similarity(&left) > 0.8)
}

/// The first and last token of the text that follows a cue for this argument.
fn announced_text(
    field: &ArgumentField,
    all: &[ArgumentField],
    source: &SourceText,
) -> Option<(usize, usize)> {
    let tokens = &source.tokens;
    let end = tokens.len().checked_sub(1)?;
    let at = |phrases: &[&[&str]]| {
        (0..tokens.len()).find_map(|i| {
            phrases
                .iter()
                .find(|p| !source.is_taken(i) && p.iter().enumerate().all(|(k, w)| source.is(i + k, &[w])))
                .map(|p| i + p.len())
        })
    };
    if let Some(from) = text_start_after_argument_cue(field, all, source) {
        return (from <= end).then(|| (from, text_end(source, from, all, field)));
    }
    if let Some(i) = at(TEXT_CUES).filter(|i| *i <= end) {
        return Some((i, text_end(source, i, all, field)));
    }
    let reason = field.mentions(REASON_ARGUMENT_WORDS);
    if (reason || field.required)
        && let Some(i) = at(REASON_CUES)
            .filter(|i| *i <= end && (reason || !source.is(i - 1, &["as", "since"])) && !is_role(source, *i))
    {
        return Some((i, text_end(source, i, all, field)));
    }
    if reason && let Some(motive) = find_motive(source, end) {
        return Some(motive);
    }
    // "Request: 14 December" says when, and no note.
    let is_note = |(from, to): &(usize, usize)| {
        let is_day = |i: usize| source.found.days.iter().any(|day| (day.first..=day.last).contains(&i));
        field.required || !(*from..=*to).any(is_day)
    };
    if let Some(i) = at(SUBJECT_CUES).filter(|i| *i <= end) {
        return Some((i, text_end(source, i, all, field))).filter(is_note);
    }
    if field.named(&["subject", "topic", "argomento", "tema", "materia"]) {
        let led = |i: &usize| {
            source.is(*i, SUBJECT_PREPOSITIONS) && !source.is_taken(*i) && !source.found.taken[i + 1]
        };
        if let Some(i) = (0..end).find(led) {
            return Some((i + 1, text_end(source, i + 1, all, field)));
        }
    }
    let colon = tokens.iter().position(|t| t.raw == ":");
    // "…: ci prenoti un tavolo?" is a question, not a note.
    let asks = tokens[end].raw == "?" && !field.required;
    let colon = colon.filter(|i| !asks && !pronouns::hands_back(&tokens[i + 1..]));
    let colon = colon.filter(|i| *i < end && !source.used[i + 1]);
    colon.map(|i| (i + 1, text_end(source, i + 1, all, field))).filter(is_note)
}

/// Whether the text at `i` says after "as" what something is, and not why: "as sick leave", but not "as I am ill".
fn is_role(source: &SourceText, i: usize) -> bool {
    const SUBJECTS: &[&str] = &[
        "i", "we", "he", "she", "they", "it", "you", "there", "my", "our", "the", "this", "that", "his",
        "her",
    ];
    source.is(i.wrapping_sub(1), &["as"]) && !source.is(i, SUBJECTS)
}

const REASON_ARGUMENT_WORDS: &[&str] =
    &["reason", "motivo", "motivation", "why", "cause", "causa", "purpose", "perche", "motivazione"];

/// "Per motivi familiari", "for family reasons": the first and last token of the motive.
fn find_motive(source: &SourceText, end: usize) -> Option<(usize, usize)> {
    let motive = features("reason");
    let i = source
        .tokens
        .iter()
        .position(|t| t.word && t.features().similarity(&motive) > 0.8 && t.norm.len() > 4)?;
    let first = (i.saturating_sub(2)..i).find(|k| source.is(*k, &["per", "for"])).map(|k| k + 1)?;
    let last = if first == i { (i + 1).min(end) } else { i };
    Some((first, last))
}

/// The token after a cue word of the argument: "note: …", "con oggetto …", "with the message …", "motivo …".
/// The token may be beyond the end of the text.
fn text_start_after_argument_cue(
    field: &ArgumentField,
    all: &[ArgumentField],
    source: &SourceText,
) -> Option<usize> {
    let tokens = &source.tokens;
    let end = tokens.len().checked_sub(1)?;
    for (i, token) in tokens.iter().enumerate() {
        if !token.word || source.is_taken(i) || i == 0 && tokens.len() < 3 {
            continue;
        }
        let named =
            |f: &ArgumentField| f.cues.iter().map(|c| c.similarity(&token.features())).fold(0.0, f64::max);
        let mark = tokens.get(i + 1).is_some_and(|t| t.raw == ":" || t.lower == "è" || t.is(&["is"]));
        let led = i > 0
            && source.is(
                i - 1,
                &["con", "with", "the", "come", "as", "di", "una", "la", "il", "l", "and", "e", "a"],
            );
        if named(field) < 0.8
            || all
                .iter()
                .any(|o| o.name != field.name && o.kind == ArgumentKind::Text && named(o) > named(field))
        {
            continue;
        }
        // "Apri un problema: …": a cue at the head of the request needs a mark.
        let head = i < 3;
        if mark {
            return Some(i + 2);
        }
        if led && !head && i < end {
            return Some(if source.is(i + 1, &["che", "that", "di", "of"]) { i + 2 } else { i + 1 });
        }
    }
    None
}

/// The text after the opening verb and its days and times: "Ricordami di comprare il latte", "report that
/// the tap drips".
fn text_after_verb(source: &SourceText, fields: &[ArgumentField]) -> Option<(usize, usize)> {
    let tokens = &source.tokens;
    let verb = tokens.iter().take(5).position(|t| t.word && lexicon::is_action(&t.features().concepts))?;
    let mut at = verb + 1;
    while at < tokens.len() && (source.found.taken[at] || source.is(at, &["me", "mi", "us", "ci"])) {
        at += 1;
    }
    (at + 1 < tokens.len() && source.is(at, &["di", "che", "that", "to"]))
        .then(|| trim_text(source, at + 1, tokens.len() - 1, fields))?
}

/// The last token of a text: its closing quotation mark, or the token before the cue of another argument.
fn text_end(source: &SourceText, from: usize, all: &[ArgumentField], own: &ArgumentField) -> usize {
    let end = source.tokens.len().saturating_sub(1);
    if source.tokens.get(from).is_some_and(|t| matches!(t.raw.as_str(), "\"" | "«" | "“"))
        && let Some((_, b)) = source.found.quotes.iter().find(|(a, _)| *a == from + 1)
    {
        return *b;
    }
    for i in from + 1..end {
        let token = &source.tokens[i];
        let other = token.word
            && source.is(i - 1, &["con", "with", "e", "and"])
            && all
                .iter()
                .any(|o| o.name != own.name && o.cues.iter().any(|c| c.similarity(&token.features()) > 0.8));
        if other {
            return i.saturating_sub(2).max(from);
        }
    }
    end
}

/// Trims marks at the ends and trailing parts that other arguments used (", priorità alta"). `None` if no
/// content is left.
fn trim_text(
    source: &SourceText,
    mut first: usize,
    mut last: usize,
    fields: &[ArgumentField],
) -> Option<(usize, usize)> {
    let tokens = &source.tokens;
    last = last.min(tokens.len().checked_sub(1)?);
    while first <= last && !tokens[first].word && !is_sign(tokens, first) {
        first += 1;
    }
    // Trailing days and times belong to the text only if no argument takes them.
    let dated = fields
        .iter()
        .any(|f| matches!(f.kind, ArgumentKind::Date | ArgumentKind::DateTime | ArgumentKind::Time));
    loop {
        while dated && last > first && (source.found.taken[last] || !tokens[last].word) {
            last -= 1;
        }
        while last > first && !tokens[last].word {
            last -= 1;
        }
        if first > last {
            return None;
        }
        let mark = (first..last).rev().find(|i| matches!(tokens[*i].raw.as_str(), "," | "."));
        let Some(comma) = mark else { break };
        let taken = (comma + 1..=last).any(|i| source.is_taken(i));
        let told = taken
            && (comma + 1..=last).filter(|i| tokens[*i].word).all(|i| {
                let about = |f: &ArgumentField| {
                    f.kind != ArgumentKind::Text && f.similarity(&tokens[i].features()) > 0.5
                };
                source.is_taken(i) || lexicon::is_stop_word(&tokens[i].norm) || fields.iter().any(about)
            });
        if !told {
            break;
        }
        last = comma;
    }
    let content = (first..=last).any(|i| {
        tokens[i].word && !source.used[i] && (!lexicon::is_stop_word(&tokens[i].norm) || tokens[i].digit())
    });
    content.then_some((first, last))
}

/// The first token of a text, or the one before it that says how many there are of its first word: the sign of a number, or an
/// English article.
fn with_count(source: &SourceText, first: usize) -> usize {
    let is_count = |before: &usize| {
        // Both are prepositions in other languages.
        let is_english = || language::detect(source.text).is_none_or(|language| language == "en");
        let is_name = source.tokens.get(*before + 1).is_some_and(Token::capital);
        let is_article = source.is(*before, &["a", "an"]) && !is_name && is_english();
        is_article && !source.is_taken(*before) || is_sign(&source.tokens, *before)
    };
    first.checked_sub(1).filter(is_count).unwrap_or(first)
}

/// The token after an opening verb at `at` that the dictionary does not have, and its particle: "take back (the) 2 teapots".
fn after_opening_verb(source: &SourceText, at: usize) -> Option<usize> {
    let verb = source.tokens.get(at)?;
    let gerund = verb.norm.strip_suffix("ing").filter(|stem| stem.len() > 2);
    let is_verb = pattern::is_verb(verb)
        || gerund
            .is_some_and(|stem| pattern::is_verb_form(stem) || pattern::is_verb_form(&format!("{stem}e")));
    let mut next = at + 1;
    while source.is(next, &["back", "up", "in", "out", "off", "the", "a", "an"]) {
        next += 1;
    }
    (is_verb && next < source.tokens.len()).then_some(next)
}

/// Whether a token is the minus of a negative number: "-2", but not "3-2".
fn is_sign(tokens: &[Token], at: usize) -> bool {
    let Some([minus, number]) = tokens.get(at..at + 2) else { return false };
    let is_apart = at.checked_sub(1).is_none_or(|before| tokens[before].end < minus.start);
    matches!(minus.raw.as_str(), "-" | "−") && number.digit() && minus.end == number.start && is_apart
}

/// What remains of a request after its head ("apri un ticket per …") and the spans that other arguments
/// used at its ends are removed.
pub(super) fn remaining_text(
    source: &SourceText,
    verbs: &[String],
    fields: &[ArgumentField],
) -> Option<(usize, usize)> {
    let tokens = &source.tokens;
    let names: Vec<std::rc::Rc<Features>> = verbs.iter().map(|v| features(v)).collect();
    let own = |i: usize| {
        let word = tokens[i].features();
        names.iter().any(|f| f.similarity(&word) > 0.8)
            || (!verbs.is_empty() && lexicon::is_action(&word.concepts))
            || fields.iter().any(|f| f.cues.iter().any(|c| c.similarity(&word) > 0.8))
    };
    let lead = if verbs.is_empty() { 0..0 } else { polite_lead_span(tokens) };
    let head = |i: usize| {
        !tokens[i].word
            || lead.contains(&tokens[i].start)
            || source.is_taken(i)
            || own(i)
            || lexicon::is_pleasantry(&tokens[i].norm)
            || tokens[i].is(LEAD_WORDS)
            || (!verbs.is_empty()
                && (lexicon::is_stop_word(&tokens[i].norm) || lexicon::is_question_word(&tokens[i].norm)))
    };
    let mut first = 0;
    while first < tokens.len() && head(first) {
        first += 1;
    }
    if first >= tokens.len() {
        return None;
    }
    // Keep the article of the first word.
    if first > 0
        && tokens[first - 1].is(&["il", "lo", "la", "i", "gli", "le", "l", "the", "un", "una", "non"])
        && !source.is_taken(first - 1)
    {
        first -= 1;
    }
    let mut last = tokens.len() - 1;
    while last > first && (!tokens[last].word || source.is_taken(last) || tokens[last].is(LEAD_WORDS)) {
        last -= 1;
    }
    // "How many teapots do we have?", "quante teiere ci sono?"
    let asks = !verbs.is_empty() && tokens.last().is_some_and(|end| end.raw == "?");
    let ends_question = |token: &Token| {
        lexicon::is_stop_word(&token.norm)
            || token
                .is(&["left", "available", "remaining", "rimaste", "rimasti", "disponibili", "disponibile"])
    };
    while asks && last > first && ends_question(&tokens[last]) && !source.found.quoted[last] {
        last -= 1;
    }
    trim_text(source, first, last, fields)
}
