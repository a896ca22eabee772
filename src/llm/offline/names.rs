//! Names, codes, places and titles: gives each passage that may be one to the argument whose words,
//! prepositions and shape fit best.

use serde_json::{Value, json};

use super::candidates::{Candidate, PERSON, PLACE, VENUE, find};
use super::lexicon;
use super::schema::{Field, Kind};
use super::slots::Filled;
use super::source::Source;

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
        if all.len() > 1 && field.kind == Kind::Place {
            out.say_several(&field.name, all.into_iter().map(Value::String));
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
            && between.iter().all(|t| {
                t.raw == ","
                    || t.lower == "e"
                    || t.is(&["ed", "and", "or", "o", "a", "ad", "in", "at", "per", "for", "di", "da"])
            })
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
        field.speaks_of(cue) < 0.5
            && all.iter().any(|o| o.name != field.name && o.cues.iter().any(|f| f.similarity(cue) > 0.8))
    });
    let lead = candidate.lead.as_str();
    // "… for 7 days for X": what was counted before "for" says nothing of X.
    let foreign = foreign && !(*kind == Kind::Person && matches!(lead, "for" | "per"));
    if foreign {
        score -= 0.5;
    }
    let known = candidate.capital
        && candidate
            .text
            .split_whitespace()
            .next()
            .is_some_and(|w| lexicon::is_first_name(&super::text::fold(w)));
    let full = candidate.text.split_whitespace().count() > 1;
    match kind {
        Kind::Place => {
            score += if PLACE.contains(&lead) { 0.5 } else { 0.0 };
            score += if matches!(lead, "in" | "near") { 0.1 } else { 0.0 };
            score -= if known {
                0.4
            } else if full {
                0.1
            } else {
                0.0
            };
            let goes = field.named(&["to", "destination", "destinazione"]);
            let comes = field.named(&["from", "origin", "origine", "departure"]);
            if (goes && matches!(lead, "from" | "da"))
                || (comes && matches!(lead, "to" | "a" | "per" | "for"))
            {
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
            score += if known {
                0.3
            } else if full {
                0.15
            } else {
                0.0
            };
            score -= if lead == "in" { 0.3 } else { 0.0 };
            // People are not put between quotation marks where titles are.
            score -= if candidate.quoted { 0.4 } else { 0.0 };
            // Who made something stands behind "by" and "di", for whom it is behind "for" and "per".
            let made = matches!(lead, "by" | "di");
            if made && candidate.capital {
                score += if speaks_for(field) { -0.5 } else { 0.15 };
            }
            score += if candidate.capital { 0.3 } else { 0.0 };
            score += if candidate.intro || candidate.asked { 0.9 } else { 0.0 };
            score -= if candidate.digits
                && !candidate.capital
                && candidate.text.chars().all(|c| c.is_ascii_digit())
            {
                0.6
            } else {
                0.0
            };
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
        s.chars()
            .map(|c| {
                if c.is_ascii_digit() {
                    '9'
                } else if c.is_alphabetic() {
                    'a'
                } else {
                    c
                }
            })
            .collect()
    };
    let mut patterns: Vec<&str> = field.examples.iter().map(String::as_str).collect();
    patterns.extend(
        field
            .description
            .split_whitespace()
            .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()))
            .filter(|w| w.chars().any(|c| c.is_ascii_digit())),
    );
    if !candidate.text.is_empty() && patterns.iter().any(|p| shape(p) == shape(&candidate.text)) {
        score += 0.7;
    }
    if candidate.opens {
        score -= 0.3;
    }
    score
}

/// Whether an argument says for whom something is ("if it is for somebody else").
fn speaks_for(field: &Field) -> bool {
    super::text::tokens(&field.description).iter().any(|t| t.is(&["for", "per"]))
}

/// The end of the noun that begins at `first`: "penne blu", "carta da stampa", not "penne ci sono".
fn phrase_end(source: &Source, first: usize, last: usize) -> usize {
    let tokens = &source.tokens;
    let mut end = first;
    let mut content = !lexicon::is_stop(&tokens[first].norm);
    for (i, token) in tokens.iter().enumerate().take(last + 1).skip(first + 1) {
        let inner = token.is(&["di", "del", "della", "dei", "delle", "da", "of"]) && content;
        if !token.word
            || source.gone(i)
            || (lexicon::is_stop(&token.norm) && !inner)
            || lexicon::is_asking(&token.norm)
        {
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
                token.word
                    && !source.gone(*i)
                    && !token.digit()
                    && token.features().concepts.is_empty()
                    && !lexicon::is_stop(&token.norm)
                    && !lexicon::is_asking(&token.norm)
                    && before.word
                    && !before.features().concepts.is_empty()
            })
        {
            // "meteo roma"
            out.values.insert(field.name.clone(), json!(source.tokens[i].raw));
            source.take(i, i);
        } else if field.kind == Kind::Thing
            && let Some((a, b)) = super::freetext::left_over(source, verbs, fields)
            && let b = if field.named(&["title", "titolo", "book", "film", "movie", "song"]) {
                b
            } else {
                phrase_end(source, a, b)
            }
            && b - a < 8
        {
            out.values.insert(field.name.clone(), json!(source.span(a, b)));
            source.take(a, b);
        }
    }
}
