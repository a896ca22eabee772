//! Fills names, codes, places and titles: assigns each candidate to the argument whose words, prepositions and
//! format fit best.

use serde_json::{Value, json};

use super::candidates::{
    NameCandidate, PERSON_PREPOSITIONS, PLACE_PREPOSITIONS, VENUE_PREPOSITIONS, find_candidates,
};
use super::lexicon;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots::Filled;
use super::source::SourceText;
use super::text::{Features, features};
use crate::language::function_words::{ARTICLES, OR};

/// Maximum number of further names in a list.
const MAX_JOINED: usize = 31;

/// Prepositions that precede the name of a venue.
const VENUES: &[&str] = &["at", "da", "dal", "al", "alla", "allo", "presso"];

/// Words before what something is compared with: "is Rome warmer than Milan?"
const THAN: &[&str] = &["than", "als", "che"];

fn takes_name(kind: &ArgumentKind) -> bool {
    matches!(kind, ArgumentKind::Place | ArgumentKind::Person | ArgumentKind::Id | ArgumentKind::Thing)
}

/// Fills arguments from the name candidates of the text.
pub(super) fn fill(
    fields: &[ArgumentField],
    source: &mut SourceText,
    out: &mut Filled,
    alone: bool,
    verbs: &[String],
) {
    let candidates = find_candidates(source, fields, verbs);
    let rivals = NameRivals::of(fields);
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (f, field) in fields.iter().enumerate() {
        let kind = match &field.kind {
            ArgumentKind::List(inner) => &inner.kind,
            kind => kind,
        };
        if !(takes_name(kind) || (*kind == ArgumentKind::Text && candidates.iter().any(|c| c.quoted))) {
            continue;
        }
        for (c, candidate) in candidates.iter().enumerate() {
            let mut score = fit_score(field, kind, candidate, fields, &rivals);
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
        let overlap = |o: &NameCandidate| o.first <= candidates[c].last && candidates[c].first <= o.last;
        for (o, other) in candidates.iter().enumerate() {
            if overlap(other) {
                taken[o] = true;
            }
        }
        assign(field, c, &candidates, source, &mut taken, out);
    }
}

/// Assigns a candidate to an argument, with the candidates joined to it.
fn assign(
    field: &ArgumentField,
    at: usize,
    candidates: &[NameCandidate],
    source: &mut SourceText,
    taken: &mut [bool],
    out: &mut Filled,
) {
    let candidate = &candidates[at];
    source.take(candidate.first, candidate.last);
    let all = match field.kind {
        // "At Smith and Sons" is one name; "X and Y" after a verb are two things.
        ArgumentKind::Thing if !candidate.quoted && VENUES.contains(&candidate.preposition.as_str()) => {
            Vec::new()
        }
        _ => joined_candidates(at, candidates, source, taken),
    };
    let is_compared =
        all.first().is_some_and(|next| is_compared(source, candidate.last + 1, candidates[*next].first));
    for at in &all {
        source.take(candidates[*at].first, candidates[*at].last);
    }
    let texts: Vec<Value> = std::iter::once(at).chain(all).map(|at| json!(candidates[at].text)).collect();
    if let ArgumentKind::List(_) = field.kind {
        out.values.insert(field.name.clone(), Value::Array(texts));
        return;
    }
    out.values.insert(field.name.clone(), json!(candidate.text));
    if texts.len() > 1 && !matches!(field.kind, ArgumentKind::Text) {
        out.alternatives |= is_compared || (candidate.first..source.tokens.len()).any(|i| source.is(i, OR));
        // "A room for Carla and Ugo" may be one.
        out.doubtful |= field.kind == ArgumentKind::Person;
        out.set_several(&field.name, texts);
    }
}

/// The candidates joined to the one at `at` by "and", "or" or a comma.
fn joined_candidates(
    at: usize,
    candidates: &[NameCandidate],
    source: &SourceText,
    taken: &mut [bool],
) -> Vec<usize> {
    let mut all = Vec::new();
    let mut last = candidates[at].last;
    for (n, next) in candidates.iter().enumerate().skip(at + 1) {
        if next.first <= last {
            continue;
        }
        let between = &source.tokens[last + 1..next.first];
        let and = |t: &super::text::Token| {
            matches!(t.raw.as_str(), "," | "&" | "+" | "/") || t.is_and() || t.is(OR)
        };
        let joins = !between.is_empty()
            && between.iter().all(|t| {
                and(t)
                    || matches!(t.raw.as_str(), "\"" | "«" | "»" | "“" | "”")
                    || t.is(&[
                        "of", "del", "dell", "della", "dello", "a", "ad", "in", "at", "per", "for", "di",
                        "da", "il", "la", "the", "en", "de", "pour", "fur",
                    ])
            })
            && between.iter().any(and);
        let joins =
            (joins || is_compared(source, last + 1, next.first)) && next.digits == candidates[at].digits;
        if !joins || all.len() >= MAX_JOINED || taken[n] {
            break;
        }
        all.push(n);
        taken[n] = true;
        last = next.last;
    }
    all
}

/// Whether the words from `first` to before `next` compare what is before them with what follows: "is Rome warmer than Milan?"
fn is_compared(source: &SourceText, first: usize, next: usize) -> bool {
    let mut between = first..next;
    let is_comparative = |i: usize| {
        source.is(i, &["than", "piu", "meno", "mehr", "weniger"])
            || source.tokens[i].norm.len() > 4 && source.tokens[i].norm.ends_with("er")
    };
    (1..=3).contains(&between.len())
        && between.clone().all(|i| source.tokens[i].word)
        && between.any(|i| source.is(i, THAN))
        && (0..next).any(is_comparative)
}

/// Which other arguments of a tool take a name.
struct NameRivals {
    thing: bool,
    person: bool,
    destination: bool,
    place: bool,
}

impl NameRivals {
    fn of(fields: &[ArgumentField]) -> Self {
        let any = |kind: &ArgumentKind| fields.iter().any(|f| f.kind == *kind && (f.required || f.is_name()));
        Self {
            thing: any(&ArgumentKind::Thing),
            person: fields.iter().any(|f| f.kind == ArgumentKind::Person && f.required),
            destination: fields.iter().any(is_destination),
            place: fields.iter().any(|f| f.kind == ArgumentKind::Place),
        }
    }
}

fn is_destination(field: &ArgumentField) -> bool {
    field.kind == ArgumentKind::Place && field.named(&["to", "destination", "destinazione"])
}

fn is_origin(field: &ArgumentField) -> bool {
    field.kind == ArgumentKind::Place && field.named(&["from", "origin", "origine", "departure"])
}

/// How well a preposition fits an argument that takes a place.
fn place_preposition_score(field: &ArgumentField, lead: &str, rivals: &NameRivals) -> f64 {
    let inside = matches!(lead, "in" | "nel" | "nella" | "near" | "en" | "im" | "su" | "zu" | "nach");
    let towards = matches!(lead, "to" | "a" | "ad" | "verso" | "per" | "nach" | "zu");
    let away = matches!(lead, "from" | "da" | "dal" | "dalla");
    if is_origin(field) {
        return match () {
            () if away => 0.8,
            () if !rivals.destination && inside => 0.5,
            () => -0.6,
        };
    }
    if is_destination(field) {
        return match () {
            () if towards => 0.8,
            () if away => -0.6,
            () if inside => 0.5,
            () => 0.0,
        };
    }
    let rival = rivals.thing || rivals.person;
    match lead {
        _ if inside => 0.6,
        "a" | "ad" | "verso" => 0.5,
        _ if rivals.thing && VENUES.contains(&lead) => -0.6,
        "for" | "of" | "with" | "by" | "per" | "di" | "con" | "to" if rival => -0.4,
        _ if PLACE_PREPOSITIONS.contains(&lead) => 0.5,
        _ => 0.0,
    }
}

/// How well a candidate fits an argument.
fn fit_score(
    field: &ArgumentField,
    kind: &ArgumentKind,
    candidate: &NameCandidate,
    all: &[ArgumentField],
    rivals: &NameRivals,
) -> f64 {
    let mut score = cue_score(field, candidate);
    // Required arguments come before optional ones.
    score += if field.required { 0.2 } else { 0.0 };
    // The nearest cue word belongs to another argument.
    let foreign = candidate.cues.first().is_some_and(|(cue, _)| {
        field.similarity(cue) < 0.5
            && all.iter().any(|o| o.name != field.name && o.cues.iter().any(|f| f.similarity(cue) > 0.8))
    });
    let lead = candidate.preposition.as_str();
    // "… for 7 days for X": the counted noun before "for" is no cue for X.
    let foreign = foreign
        && !(*kind == ArgumentKind::Person && matches!(lead, "for" | "per" | "pour" | "fur" | "para"));
    // The name's preposition outweighs the noun before it: "tickets for the movie in Berkeley".
    let foreign =
        foreign && !(*kind == ArgumentKind::Place && place_preposition_score(field, lead, rivals) >= 0.5);
    let foreign = foreign
        && !(*kind == ArgumentKind::Thing && field.is_name() && (lead == "with" || VENUES.contains(&lead)));
    if foreign {
        score -= 0.5;
    }
    score += match kind {
        ArgumentKind::Place => place_score(field, candidate, rivals),
        ArgumentKind::Person => person_score(field, candidate, rivals),
        ArgumentKind::Id => {
            (if candidate.digits { 0.6 } else { -0.3 }) - if candidate.is_introduction { 0.5 } else { 0.0 }
        }
        ArgumentKind::Thing => thing_score(field, candidate, rivals),
        _ if candidate.quoted => 0.6,
        _ => -1.0,
    };
    if candidate.quoted && matches!(kind, ArgumentKind::Place | ArgumentKind::Id) {
        score -= 0.2;
    }
    if has_example_format(field, &candidate.text) {
        score += 0.7;
    }
    if candidate.opens_sentence {
        score -= 0.3;
    }
    score
}

/// How well the cue words before a candidate fit an argument.
fn cue_score(field: &ArgumentField, candidate: &NameCandidate) -> f64 {
    let mut score: f64 = 0.0;
    for (n, (cue, distance)) in candidate.cues.iter().enumerate() {
        let similarity = field.similarity(cue);
        let named = field.cues.iter().map(|f| f.similarity(cue)).fold(0.0, f64::max);
        let near = if *distance <= 3 { 1.0 } else { 0.5 };
        score = score.max((if named > 0.8 { 1.0 } else { similarity * 0.8 } - 0.2 * n as f64) * near);
    }
    score
}

/// Whether a capitalised name begins with a common first name.
fn is_known_person(candidate: &NameCandidate) -> bool {
    let first = candidate.text.split_whitespace().next();
    candidate.capital && first.is_some_and(|w| lexicon::is_first_name(&super::text::fold(w)))
}

/// Whether a text begins with a common first name, in any case.
fn begins_with_first_name(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|w| lexicon::is_first_name(&super::text::fold(w)))
}

fn is_full_name(candidate: &NameCandidate) -> bool {
    candidate.text.split_whitespace().count() > 1
}

fn place_score(field: &ArgumentField, candidate: &NameCandidate, rivals: &NameRivals) -> f64 {
    let mut score = place_preposition_score(field, &candidate.preposition, rivals);
    score -= match candidate {
        c if is_known_person(c) => 0.4,
        c if is_full_name(c) && rivals.person => 0.1,
        _ => 0.0,
    };
    score += if candidate.capital { 0.3 } else { 0.0 };
    score -= if candidate.digits { 0.6 } else { 0.0 };
    score -= if candidate.is_introduction { 0.6 } else { 0.0 };
    // Without a preposition, a name is that of a thing if the tool takes one.
    score -= if candidate.preposition.is_empty() && rivals.thing { 0.3 } else { 0.0 };
    score
}

fn person_score(field: &ArgumentField, candidate: &NameCandidate, rivals: &NameRivals) -> f64 {
    let lead = candidate.preposition.as_str();
    let mut score = if PERSON_PREPOSITIONS.contains(&lead) { 0.3 } else { 0.0 };
    // "Lend Dune to Ada": a name without a preposition is rather that of the thing.
    score -= if lead.is_empty() && rivals.thing { 0.1 } else { 0.0 };
    score += match candidate {
        c if is_known_person(c) => 0.3,
        c if is_full_name(c) => 0.15,
        _ => 0.0,
    };
    score -= if lead == "in" { 0.3 } else { 0.0 };
    // Quotation marks enclose titles rather than persons.
    score -= if candidate.quoted { 0.4 } else { 0.0 };
    // "By" and "di" precede a creator, "for" and "per" a recipient.
    if matches!(lead, "by" | "di") && candidate.capital {
        score += if is_recipient(field) { -0.5 } else { 0.15 };
    }
    score += if candidate.capital { 0.3 } else { 0.0 };
    score += if candidate.is_introduction || candidate.is_asked_about { 0.9 } else { 0.0 };
    // "Milan's weather", "does Milan have": the name of a place or a thing has something, too.
    let owns = candidate.is_owner && (is_known_person(candidate) || !(rivals.place || rivals.thing));
    score += if owns { 0.7 } else { 0.0 };
    let number = candidate.digits && !candidate.capital && candidate.text.chars().all(|c| c.is_ascii_digit());
    score -= if number { 0.6 } else { 0.0 };
    // "Paris, France" is no person.
    score -= if candidate.text.contains(',') { 0.8 } else { 0.0 };
    // "To Paris", "from Las Vegas" need not be persons.
    let personal =
        matches!(lead, "for" | "per" | "pour" | "fur" | "para" | "with" | "con" | "di" | "of" | "by");
    let certain = is_known_person(candidate)
        || candidate.is_introduction
        || candidate.is_asked_about
        || candidate.is_announced
        || owns;
    let login = candidate.digits || candidate.text.contains(['_', '.', '@']);
    let plain = !candidate.capital && !login && !begins_with_first_name(&candidate.text);
    let placed = personal || (lead.is_empty() && is_full_name(candidate));
    if !field.required && !certain && (plain || !placed) {
        score -= 0.5;
    }
    score
}

fn thing_score(field: &ArgumentField, candidate: &NameCandidate, rivals: &NameRivals) -> f64 {
    let lead = candidate.preposition.as_str();
    let place = match lead {
        "in" | "near" | "nel" | "nella" | "from" if rivals.place => -0.5,
        // "… to Ada" is who gets the thing.
        "to" | "a" | "ad" if rivals.person => -0.35,
        lead if VENUE_PREPOSITIONS.contains(&lead) || PERSON_PREPOSITIONS.contains(&lead) => 0.35,
        _ => 0.0,
    };
    let mut score = place + if candidate.capital { 0.3 } else { 0.0 };
    score += if candidate.quoted { 0.6 } else { 0.0 };
    score -= if candidate.is_introduction { 0.6 } else { 0.0 };
    // A name has a capital, or is next to the noun for the thing.
    let unmarked = !candidate.capital && !candidate.quoted && !candidate.digits;
    // "The prescription of ramipril": the "of" specifies the noun.
    let of = matches!(lead, "of" | "di" | "del" | "dell" | "dello" | "della") && !candidate.cues.is_empty();
    score -= if unmarked && field.is_name() && !candidate.is_announced && !of { 0.6 } else { 0.0 };
    // A bare number is a name only next to the noun for the thing.
    score -= if candidate.text.chars().all(|c| c.is_ascii_digit()) { 0.5 } else { 0.0 };
    score
}

/// Whether a text has the format of the argument's examples: `AB123CD`.
fn has_example_format(field: &ArgumentField, text: &str) -> bool {
    let kind = |c: char| match c {
        c if c.is_ascii_digit() => '9',
        c if c.is_alphabetic() => 'a',
        c => c,
    };
    let same = |pattern: &str| pattern.chars().map(kind).eq(text.chars().map(kind));
    let word = |w: &'_ str| w.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let described = field.description.split_whitespace().map(word);
    !text.is_empty()
        && (field.examples.iter().any(|p| same(p))
            || described.filter(|w| w.chars().any(|c| c.is_ascii_digit())).any(|w| same(&w)))
}

/// Whether an argument is the recipient of something ("if it is for somebody else").
fn is_recipient(field: &ArgumentField) -> bool {
    super::text::tokens(&field.description).iter().any(|t| t.is(&["for", "per"]))
}

/// The end of the noun phrase that begins at `first`: "penne blu", "carta da stampa", not "penne ci sono".
fn noun_phrase_end(source: &SourceText, first: usize, last: usize) -> usize {
    let tokens = &source.tokens;
    let mut end = first;
    let mut content = !lexicon::is_stop_word(&tokens[first].norm);
    for (i, token) in tokens.iter().enumerate().take(last + 1).skip(first + 1) {
        let inner = token.is(&["di", "del", "della", "dei", "delle", "da", "of"]) && content;
        if !token.word
            || source.is_taken(i)
            || (lexicon::is_stop_word(&token.norm) && !inner)
            || lexicon::is_question_word(&token.norm)
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

/// Fills required arguments without a candidate: with the whole reply to a question, or with the noun at the
/// place of the object.
pub(super) fn fill_without_candidate(
    fields: &[ArgumentField],
    source: &mut SourceText,
    out: &mut Filled,
    verbs: &[String],
    alone: bool,
) {
    let words = source.tokens.iter().filter(|t| t.word).count();
    for field in fields.iter().filter(|f| f.required && takes_name(&f.kind)) {
        if out.values.contains_key(&field.name) {
            continue;
        }
        let span = match field.kind {
            _ if alone && words <= 6 && field.kind != ArgumentKind::Id => {
                super::free_text::remaining_text(source, &[], fields)
            }
            ArgumentKind::Place if words <= 3 => unknown_after_subject(source).map(|i| (i, i)),
            // "Order 5 boxes of paper": what is counted is the thing, also where its words are known.
            ArgumentKind::Thing if field.is_name() => unknown_object(source, verbs, fields)
                .or_else(|| object_noun(source, verbs, fields).filter(|span| is_counted(source, span.0))),
            ArgumentKind::Thing => object_noun(source, verbs, fields),
            _ => None,
        };
        if let Some((a, b)) = span {
            out.values.insert(field.name.clone(), json!(source.span(a, b)));
            source.take(a, b);
        }
    }
}

/// Whether a number stands directly before a token.
fn is_counted(source: &SourceText, at: usize) -> bool {
    source.found.numbers.iter().any(|number| number.last + 1 == at)
}

/// "Meteo roma": an unknown word after a known one in a very short text.
fn unknown_after_subject(source: &SourceText) -> Option<usize> {
    (1..source.tokens.len()).find(|i| {
        let (before, token) = (&source.tokens[i - 1], &source.tokens[*i]);
        token.word
            && !source.is_taken(*i)
            && !token.digit()
            && token.features().concepts.is_empty()
            && !lexicon::is_stop_word(&token.norm)
            && !lexicon::is_question_word(&token.norm)
            && before.word
            && !before.features().concepts.is_empty()
    })
}

/// "Play bohemian rhapsody", "lend me emma": unknown words directly after the verb, without an article.
fn unknown_object(source: &SourceText, verbs: &[String], fields: &[ArgumentField]) -> Option<(usize, usize)> {
    let tokens = &source.tokens;
    let own = |i: usize| verbs.first().is_some_and(|v| tokens[i].norm == *v) || is_action(source, i);
    let verb = tokens.iter().enumerate().take(6).find(|(i, t)| t.word && own(*i))?.0;
    let mut first = verb + 1;
    while source.is(first, &["me", "mi", "us", "ci"]) {
        first += 1;
    }
    let unknown = |i: usize| {
        tokens.get(i).is_some_and(|t| {
            t.word
                && !source.is_taken(i)
                && !lexicon::is_stop_word(&t.norm)
                && !lexicon::is_pleasantry(&t.norm)
                && !lexicon::is_question_word(&t.norm)
                && !super::candidates::is_amount(&t.norm)
                && super::numbers::word(&t.norm).is_none()
                && !fields.iter().any(|f| f.cues.iter().any(|c| c.similarity(&t.features()) > 0.8))
                && !verbs.iter().any(|v| features(v).similarity(&t.features()) > 0.8)
        })
    };
    // A known word is a common noun and no name.
    let common = |i: usize| !tokens[i].features().concepts.is_empty();
    if !unknown(first) || common(first) {
        return None;
    }
    let mut last = first;
    while unknown(last + 1) && last < first + 5 {
        last += 1;
    }
    Some((first, last))
}

fn is_action(source: &SourceText, i: usize) -> bool {
    lexicon::is_action(&source.tokens[i].features().concepts)
}

/// "12 evidenziatori", "order some pens": the noun of the requested thing.
fn object_noun(source: &SourceText, verbs: &[String], fields: &[ArgumentField]) -> Option<(usize, usize)> {
    let opening = (0..source.tokens.len()).find(|i| source.tokens[*i].word);
    let opening = opening.filter(|i| super::candidates::opens_before_article(&source.tokens, *i));
    let opening = opening.map(|i| source.tokens[i].norm.to_string());
    let verbs: Vec<String> = verbs.iter().cloned().chain(opening).collect();
    let (first, last) = super::free_text::remaining_text(source, &verbs, fields)?;
    let end = noun_phrase_end(source, first, last);
    let mut last = end;
    let is_like = |i: usize, word: &Features| word.similarity(&source.tokens[i].features()) > 0.8;
    // A word of the tool's arguments is the kind of thing and not the thing itself.
    let is_kind = |i: usize| {
        let own = |f: &ArgumentField| {
            let sampled =
                ["e.g", "like ", "such as", "esempio", "come "].iter().any(|w| f.description.contains(w));
            f.hints.iter().any(|h| !sampled && is_like(i, h))
        };
        fields.iter().any(own)
    };
    // "The teapot price": what is asked for stands behind the thing.
    let is_asked = |i: usize| is_kind(i) || verbs.iter().any(|verb| is_like(i, &features(verb)));
    while last > first && is_asked(last) {
        last -= 1;
    }
    let noun = &source.tokens[last];
    let amount = super::candidates::is_amount(&noun.norm)
        || super::candidates::is_verb(&noun.norm)
        || lexicon::is_stop_word(&noun.norm)
        || is_kind(last);
    // The noun must follow the verb, the count or the question word.
    let before = (0..first).rev().find(|i| source.tokens[*i].word);
    let placed = before.is_none_or(|i| {
        let token = &source.tokens[i];
        source.found.numbers.iter().any(|n| n.last == i)
            || lexicon::is_question_word(&token.norm)
            || lexicon::may_be_action(&token.features().concepts)
            || last < end && token.is(&["is", "are", "s", "does", "do"])
            // "Quanto costano le penne?": a word of the tool's name.
            || verbs.iter().any(|v| features(v).similarity(&token.features()) > 0.8)
            || token.is(&[
                "of", "di", "del", "dell", "della", "dello", "some", "a", "an", "un", "una", "dei", "delle",
                "degli", "the", "il", "la", "i", "le", "gli", "any", "new", "me", "mi", "my",
            ])
    });
    // "The milk jug" is a milk jug; "The Hobbit" is not.
    let article = |i: &usize| {
        let token = &source.tokens[*i];
        !token.capital() && token.is(ARTICLES)
    };
    let first = if first < last && article(&first) { first + 1 } else { first };
    (placed && !amount && last - first < 8).then_some((first, last))
}
