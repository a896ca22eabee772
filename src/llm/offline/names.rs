//! Names, codes, places and titles: finds what may be one, and gives each to the argument whose
//! words, prepositions and shape fit best.

use std::rc::Rc;

use serde_json::{Value, json};

use super::lexicon;
use super::schema::{Field, Kind};
use super::slots::Filled;
use super::source::Source;
use super::text::{Features, Token};

/// A passage that may be a name.
#[derive(Debug, Clone)]
struct Candidate {
    first: usize,
    last: usize,
    text: String,
    quoted: bool,
    capital: bool,
    digits: bool,
    /// The preposition before it.
    lead: String,
    /// The telling words before it, nearest first, with their distance in words.
    cues: Vec<(Rc<Features>, usize)>,
    /// "Sono X", "my name is X".
    intro: bool,
    /// "Chi è X", "who is X".
    asked: bool,
    /// It opens a sentence, so its capital says little.
    opens: bool,
}

const PLACE: &[&str] = &["a", "ad", "in", "at", "to", "from", "da", "di", "per", "for", "near", "su", "nel", "nella", "of", "of", "verso", "en", "zu", "nach", "pour"];
const PERSON: &[&str] = &["per", "for", "con", "with", "di", "of", "a", "to", "by", "del", "della", "from"];
const VENUE: &[&str] = &["da", "dal", "al", "alla", "allo", "at", "presso", "in", "nel", "nella", "of", "il", "la"];
const ARTICLES: &[&str] = &["il", "lo", "la", "i", "gli", "le", "l", "un", "una", "uno", "the", "a", "an"];
const BE: &[&str] = &["is", "sono", "am", "called", "named", "chiamato", "chiamata", "intitolato", "titled", "are", "e", "sia"];
const INNER: &[&str] = &["di", "della", "dello", "del", "dei", "degli", "delle", "de", "da", "of", "the", "von", "van", "e", "and"];

fn wants(kind: &Kind) -> bool {
    matches!(kind, Kind::Place | Kind::Person | Kind::Id | Kind::Thing)
}

/// Fills arguments that are names from what looks like names.
pub(super) fn fill(fields: &[Field], source: &mut Source, out: &mut Filled, alone: bool, verbs: &[String]) {
    let candidates = find(source, fields, verbs);
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (f, field) in fields.iter().enumerate() {
        let kind = match &field.kind {
            Kind::List(inner) => &inner.kind,
            kind => kind,
        };
        if !(wants(kind) || (*kind == Kind::Text && candidates.iter().any(|c| c.quoted))) {
            continue;
        }
        for (c, candidate) in candidates.iter().enumerate() {
            let mut score = suits(field, kind, candidate, fields);
            if alone {
                score += 0.3;
            }
            if score >= if field.required { 0.45 } else { 0.7 } {
                pairs.push((score, f, c));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut taken = vec![false; candidates.len()];
    for (_, f, c) in pairs {
        let field = &fields[f];
        if taken[c] || out.values.contains_key(&field.name) {
            continue;
        }
        let overlap = |o: &Candidate| o.first <= candidates[c].last && candidates[c].first <= o.last;
        for (o, other) in candidates.iter().enumerate() {
            if overlap(other) {
                taken[o] = true;
            }
        }
        let candidate = &candidates[c];
        source.take(candidate.first, candidate.last);
        let all = joined(c, &candidates, source, &mut taken);
        if let Kind::List(_) = field.kind {
            out.values.insert(field.name.clone(), json!(all));
            continue;
        }
        out.values.insert(field.name.clone(), json!(candidate.text));
        if all.len() > 1 && out.several.is_none() && field.kind == Kind::Place {
            out.several = Some((field.name.clone(), all.into_iter().map(Value::String).collect()));
        }
    }
}

/// The candidate with those joined to it by "e", "and" or a comma.
fn joined(at: usize, candidates: &[Candidate], source: &Source, taken: &mut [bool]) -> Vec<String> {
    let mut all = vec![candidates[at].text.clone()];
    let mut last = candidates[at].last;
    for (n, next) in candidates.iter().enumerate().skip(at + 1) {
        if next.first <= last {
            continue;
        }
        let between = &source.tokens[last + 1..next.first];
        let joins = !between.is_empty()
            && between.iter().all(|t| t.raw == "," || t.lower == "e" || t.is(&["ed", "and", "or", "o", "a", "ad", "in", "at", "per", "for", "di", "da"]))
            && between.iter().any(|t| t.raw == "," || t.lower == "e" || t.is(&["ed", "and"]));
        if !joins || all.len() >= 5 {
            break;
        }
        all.push(next.text.clone());
        taken[n] = true;
        last = next.last;
    }
    all
}

fn suits(field: &Field, kind: &Kind, candidate: &Candidate, all: &[Field]) -> f64 {
    let mut score: f64 = 0.0;
    for (n, (cue, distance)) in candidate.cues.iter().enumerate() {
        let says = field.speaks_of(cue);
        let named = field.cues.iter().map(|f| f.similarity(cue)).fold(0.0, f64::max);
        let near = if *distance <= 3 { 1.0 } else { 0.5 };
        score = score.max((if named > 0.8 { 1.0 } else { says * 0.8 } - 0.2 * n as f64) * near);
    }
    // What is needed comes before what may be.
    score += if field.required { 0.2 } else { 0.0 };
    // The nearest word speaks of another argument.
    let foreign = candidate.cues.first().is_some_and(|(cue, _)| {
        field.speaks_of(cue) < 0.5 && all.iter().any(|o| o.name != field.name && o.cues.iter().any(|f| f.similarity(cue) > 0.8))
    });
    if foreign {
        score -= 0.5;
    }
    let lead = candidate.lead.as_str();
    let known = candidate.capital && candidate.text.split_whitespace().next().is_some_and(|w| lexicon::is_first_name(&super::text::fold(w)));
    let full = candidate.text.split_whitespace().count() > 1;
    match kind {
        Kind::Place => {
            score += if PLACE.contains(&lead) { 0.5 } else { 0.0 };
            score += if matches!(lead, "in" | "near") { 0.1 } else { 0.0 };
            score -= if known { 0.4 } else if full { 0.1 } else { 0.0 };
            let goes = field.named(&["to", "destination", "destinazione"]);
            let comes = field.named(&["from", "origin", "origine", "departure"]);
            if (goes && matches!(lead, "from" | "da")) || (comes && matches!(lead, "to" | "a" | "per" | "for")) {
                score -= 0.6;
            }
            if (comes && matches!(lead, "from" | "da")) || (goes && matches!(lead, "to" | "a" | "per")) {
                score += 0.3;
            }
            score += if candidate.capital { 0.3 } else { 0.0 };
            score -= if candidate.digits { 0.6 } else { 0.0 };
            score -= if candidate.intro { 0.6 } else { 0.0 };
        }
        Kind::Person => {
            score += if PERSON.contains(&lead) { 0.3 } else { 0.0 };
            score += if known { 0.3 } else if full { 0.15 } else { 0.0 };
            score -= if lead == "in" { 0.3 } else { 0.0 };
            score += if candidate.capital { 0.3 } else { 0.0 };
            score += if candidate.intro || candidate.asked { 0.9 } else { 0.0 };
            score -= if candidate.digits && !candidate.capital && candidate.text.chars().all(|c| c.is_ascii_digit()) { 0.6 } else { 0.0 };
        }
        Kind::Id => {
            score += if candidate.digits { 0.6 } else { -0.3 };
            score -= if candidate.intro { 0.5 } else { 0.0 };
        }
        Kind::Thing => {
            score += if VENUE.contains(&lead) { 0.35 } else { 0.0 };
            score += if candidate.capital { 0.3 } else { 0.0 };
            score += if candidate.quoted { 0.6 } else { 0.0 };
            score -= if candidate.intro { 0.6 } else { 0.0 };
            // A bare number is a name only beside the word for the thing.
            score -= if candidate.text.chars().all(|c| c.is_ascii_digit()) { 0.5 } else { 0.0 };
        }
        _ => score += if candidate.quoted { 0.6 } else { -1.0 },
    }
    if candidate.quoted && matches!(kind, Kind::Place | Kind::Id) {
        score -= 0.2;
    }
    let shape = |s: &str| -> String {
        s.chars().map(|c| if c.is_ascii_digit() { '9' } else if c.is_alphabetic() { 'a' } else { c }).collect()
    };
    let mut patterns: Vec<&str> = field.examples.iter().map(String::as_str).collect();
    patterns.extend(field.description.split_whitespace().map(|w| w.trim_matches(|c: char| !c.is_alphanumeric())).filter(|w| w.chars().any(|c| c.is_ascii_digit())));
    if !candidate.text.is_empty() && patterns.iter().any(|p| shape(p) == shape(&candidate.text)) {
        score += 0.7;
    }
    if candidate.opens {
        score -= 0.3;
    }
    score
}

/// All passages that may be names, in order.
fn find(source: &Source, fields: &[Field], verbs: &[String]) -> Vec<Candidate> {
    let tokens = &source.tokens;
    let mut out: Vec<Candidate> = Vec::new();
    for (a, b) in &source.found.quotes {
        out.push(candidate(source, *a, *b, true));
    }
    let cue = |i: usize| {
        tokens.get(i).is_some_and(|t| t.word && fields.iter().any(|f| f.cues.iter().any(|c| c.similarity(&t.features()) > 0.8)))
    };
    let mut i = 0;
    while i < tokens.len() {
        let token = &tokens[i];
        if !token.word || source.gone(i) || source.found.quoted[i] {
            i += 1;
            continue;
        }
        let before = i.checked_sub(1);
        let named = before.is_some_and(|b| {
            cue(b) || (tokens[b].lower == "è" || tokens[b].is(&BE[..BE.len() - 2]) || matches!(tokens[b].raw.as_str(), ":" | "#")) && b.checked_sub(1).is_some_and(cue)
        });
        let intro = introduces(tokens, i);
        let asked = i >= 2 && (tokens[i - 1].lower == "è" || tokens[i - 1].is(&["is", "s"])) && tokens[i - 2].is(&["chi", "who"]);
        let code = (token.digit() && (token.norm.len() >= 4 || token.raw.chars().any(char::is_alphabetic) || named || hash(tokens, i)))
            || token.raw.contains('_');
        // "The Anchor", "La Lanterna": the article is part of the name where it has a capital.
        let article = token.capital() && !token.first && token.is(ARTICLES) && tokens.get(i + 1).is_some_and(|t| t.word && t.capital() && !source.gone(i + 1));
        let plain_number = super::numbers::word(&token.norm).is_some() || (lexicon::is_stop(&token.norm) && !(named && token.raw.len() == 1 && token.capital()));
        let calendar = super::dates::is_calendar(&token.norm);
        let verb = lexicon::is_action(&token.features().concepts);
        let opens = token.first && token.capital();
        let common = opens && (verb || lexicon::is_asking(&token.norm) || lexicon::is_chat(&token.norm) || !token.features().concepts.is_empty() || verbs.contains(&token.norm));
        let plain_number = plain_number && !article;
        let capital = token.capital() && !plain_number && !calendar && !common && !(lexicon::is_chat(&token.norm) && opens);
        if code || capital {
            let mut last = i;
            if capital {
                last = run(source, i);
            }
            let mut made = candidate(source, i, last, false);
            made.intro = intro;
            made.asked = asked;
            made.opens = opens && last == i && !named;
            // "Luigi's" is a place's name; "Mario's" before a noun is Mario.
            if tokens.get(last + 1).is_some_and(|t| t.norm == "s" && t.start == tokens[last].end + 1) && VENUE.contains(&made.lead.as_str()) {
                made.text = source.span(made.first, last + 1).to_owned();
            }
            out.push(made);
            i = last + 1;
            continue;
        }
        let unknown = !plain_number && !calendar && !lexicon::is_stop(&token.norm) && !lexicon::is_asking(&token.norm) && token.features().concepts.is_empty() && !verbs.contains(&token.norm) && !lexicon::is_chat(&token.norm);
        let led = before.is_some_and(|b| tokens[b].is(PLACE) || tokens[b].is(PERSON) || tokens[b].is(VENUE));
        if (unknown && (led || named || asked)) || (intro && name_like(tokens, i)) {
            let mut last = i;
            // "per mario rossi": unknown words that follow belong to the name.
            while last < i + 2
                && tokens.get(last + 1).is_some_and(|t| {
                    t.word && !t.digit() && !source.gone(last + 1) && !lexicon::is_stop(&t.norm) && t.features().concepts.is_empty() && !super::dates::is_calendar(&t.norm)
                        && !cue(last + 1)
                })
            {
                last += 1;
            }
            let mut made = candidate(source, i, if intro { i } else { last }, false);
            made.intro = intro;
            made.asked = asked;
            out.push(made);
            i = last + 1;
            continue;
        }
        i += 1;
    }
    out.sort_by_key(|c| c.first);
    out
}

fn hash(tokens: &[Token], i: usize) -> bool {
    i > 0 && (tokens[i - 1].raw == "#" || tokens[i - 1].is(&["numero", "number", "n", "no", "nr", "codice", "code", "id"]))
}

/// The end of a run of capitals: "Il nome della Rosa", "Mario Rossi".
fn run(source: &Source, first: usize) -> usize {
    let tokens = &source.tokens;
    let mut last = first;
    let good = |i: usize| {
        tokens.get(i).is_some_and(|t| t.word && (t.capital() || t.digit()) && !source.gone(i) && !source.found.quoted[i] && !super::dates::is_calendar(&t.norm))
    };
    while last < first + 8 {
        if good(last + 1) && (tokens[last + 1].capital() || tokens[last + 1].norm.len() <= 4) {
            last += 1;
        } else if tokens.get(last + 1).is_some_and(|t| t.is(&INNER[..INNER.len() - 2]) && t.lower != "e") {
            let next = if tokens.get(last + 2).is_some_and(|t| t.is(&["the", "l", "la"])) { last + 3 } else { last + 2 };
            if good(next) && tokens[next].capital() && !tokens[last + 1].is(&["da"]) {
                last = next;
            } else {
                break;
            }
        } else {
            break;
        }
    }
    last
}

fn candidate(source: &Source, first: usize, last: usize, quoted: bool) -> Candidate {
    let tokens = &source.tokens;
    let mut cues = Vec::new();
    let mut lead = String::new();
    let mut steps = 0;
    for i in (0..first).rev() {
        let token = &tokens[i];
        // The word for the thing may be written with a capital; other names end what speaks of it.
        if !token.word {
            if matches!(token.raw.as_str(), ":" | "#" | "\"" | "«" | "“" | "'" | "‘") {
                continue;
            }
            break;
        }
        steps += 1;
        let joins = token.lower == "e" || token.is(&["ed", "and", "or"]);
        if steps > 5 || source.found.taken[i] || joins || (token.capital() && !token.first && token.norm != "i") {
            break;
        }
        let preposition = token.is(PLACE) || token.is(PERSON) || token.is(VENUE);
        if preposition && lead.is_empty() && cues.is_empty() && (!token.is(ARTICLES) || token.is(&["a"])) {
            lead = token.norm.clone();
        } else if token.is(&["il", "la"]) && lead.is_empty() {
            // An article leads only where nothing else does.
        }
        if !lexicon::is_stop(&token.norm) && !token.is(BE) {
            // A verb before it ends what speaks of it.
            cues.push((token.features(), steps));
            if i > 0 && let Some(joined) = lexicon::pair(&tokens[i - 1].norm, &token.norm) {
                cues.insert(cues.len() - 1, (super::text::features(joined), steps));
            }
            if cues.len() >= 2 {
                break;
            }
        }
    }
    // The first word of a run may itself be the word for the thing: "Sala Verdi".
    if last > first && !quoted {
        cues.insert(0, (tokens[first].features(), 0));
    }
    Candidate {
        first,
        last,
        text: source.span(first, last).to_owned(),
        quoted,
        capital: tokens[first].capital(),
        digits: tokens[first..=last].iter().any(Token::digit),
        lead,
        cues,
        intro: false,
        asked: false,
        opens: false,
    }
}

/// Whether the word before says who somebody is: "sono X", "mi chiamo X", "I am X", "my name is X".
fn introduces(tokens: &[Token], i: usize) -> bool {
    let word = |back: usize, words: &[&str]| i.checked_sub(back).and_then(|k| tokens.get(k)).is_some_and(|t| t.is(words));
    (word(1, &["sono"]) && i.checked_sub(2).is_none_or(|k| !tokens[k].word || tokens[k].is(&["io", "e", "ciao"])))
        || (word(1, &["chiamo"]) && word(2, &["mi"]))
        || (word(1, &["am"]) && word(2, &["i"]))
        || (word(1, &["m"]) && word(2, &["i"]))
        || (word(1, &["is"]) && word(2, &["name", "username"]) && word(3, &["my"]))
        || (word(1, &["suis", "bin", "soy"]))
}

/// Who the user says to be: "sono X", "my name is X".
pub(super) fn introduced(text: &str, now: &jiff::Zoned) -> Option<String> {
    let source = Source::new(text, now);
    find(&source, &[], &[]).into_iter().find(|c| c.intro).map(|c| c.text)
}

/// Whether a word without a capital reads as a login and not as an adjective ("sono stanco").
fn name_like(tokens: &[Token], i: usize) -> bool {
    let token = &tokens[i];
    let explicit = i > 0 && tokens[i - 1].is(&["chiamo"]) || (i > 1 && tokens[i - 2].is(&["name", "username"]));
    let ends = tokens.get(i + 1).is_none_or(|t| !t.word || t.lower == "e" || t.is(&["and"]));
    let login = token.digit() || token.raw.contains(['_', '.', '-']);
    let italian = tokens[i.saturating_sub(1)].is(&["sono"]) && !token.norm.ends_with(['o', 'a', 'e']);
    let stop = lexicon::is_stop(&token.norm) || !token.features().concepts.is_empty();
    explicit || (ends && !stop && (login || italian))
}

/// The end of the noun that begins at `first`: "penne blu", "carta da stampa", not "penne ci sono".
fn phrase_end(source: &Source, first: usize, last: usize) -> usize {
    let tokens = &source.tokens;
    let mut end = first;
    let mut content = !lexicon::is_stop(&tokens[first].norm);
    for i in first + 1..=last {
        let token = &tokens[i];
        let inner = token.is(&["di", "del", "della", "dei", "delle", "da", "of"]) && content;
        if !token.word || source.gone(i) || (lexicon::is_stop(&token.norm) && !inner) || lexicon::is_asking(&token.norm) {
            break;
        }
        if !inner {
            end = i;
            content = true;
        }
    }
    end
}

/// What is required and found no candidate: a reply to a question as it stands, or the words that are
/// left over.
pub(super) fn rest(fields: &[Field], source: &mut Source, out: &mut Filled, verbs: &[String], alone: bool) {
    for field in fields.iter().filter(|f| f.required).collect::<Vec<_>>() {
        if out.values.contains_key(&field.name) || !(wants(&field.kind)) {
            continue;
        }
        let words = source.tokens.iter().filter(|t| t.word).count();
        if alone && words <= 6 && field.kind != Kind::Id {
            let left = super::freetext::left_over(source, &[], fields);
            if let Some((a, b)) = left {
                out.values.insert(field.name.clone(), json!(source.span(a, b)));
                source.take(a, b);
            }
        } else if field.kind == Kind::Place
            && words <= 3
            && let Some(i) = (1..source.tokens.len()).find(|i| {
                let (before, token) = (&source.tokens[i - 1], &source.tokens[*i]);
                token.word && !source.gone(*i) && !token.digit() && token.features().concepts.is_empty() && !lexicon::is_stop(&token.norm)
                    && !lexicon::is_asking(&token.norm) && before.word && !before.features().concepts.is_empty()
            })
        {
            // "meteo roma"
            out.values.insert(field.name.clone(), json!(source.tokens[i].raw));
            source.take(i, i);
        } else if field.kind == Kind::Thing
            && let Some((a, b)) = super::freetext::left_over(source, verbs, fields)
            && let b = if field.named(&["title", "titolo", "book", "film", "movie", "song"]) { b } else { phrase_end(source, a, b) }
            && b - a < 8
        {
            out.values.insert(field.name.clone(), json!(source.span(a, b)));
            source.take(a, b);
        }
    }
}
