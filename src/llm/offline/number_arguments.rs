//! Assigns each number to the argument whose cue words are next to it.

use jiff::{SpanRound, Unit};
use serde_json::{Value, json};

use super::dates::RangeRole;
use super::lexicon;
use super::numbers::Number;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots::Filled;
use super::source::SourceText;
use super::text::{Token, features};
use crate::language;

/// Cue words of arguments that count people.
const PEOPLE: &[&str] = &[
    "people", "persons", "guests", "persone", "coperti", "ospiti", "attendees", "partecipanti", "diners",
    "party", "seats", "posti", "travelers", "travellers", "passengers", "passeggeri", "viaggiatori",
];

/// Cue words of arguments for amounts of money.
const MONEY: &[&str] =
    &["amount", "importo", "euro", "price", "prezzo", "cost", "budget", "eur", "cifra", "somma", "money"];

/// Cue words of arguments that say by how much something changes.
const DIFFERENCE: &[&str] = &[
    "difference", "increase", "decrease", "percent", "percentage", "discount", "differenza", "aumento",
    "sconto", "percentuale",
];

/// Cue words of arguments that count things of any kind.
const QUANTITY: &[&str] = &[
    "quantity", "quantita", "count", "pieces", "pezzi", "copies", "copie", "units", "number", "numero",
    "many", "quanti",
];

/// A possible assignment of a number to an argument, with its score and the value in the argument's unit.
struct NumberMatch {
    score: f64,
    field: usize,
    number: usize,
    value: f64,
}

pub(super) fn fill(fields: &[ArgumentField], source: &mut SourceText, out: &mut Filled, alone: bool) {
    let numeric: Vec<&ArgumentField> =
        fields.iter().filter(|f| matches!(f.kind, ArgumentKind::Number(_))).collect();
    if numeric.is_empty() {
        return;
    }
    let mut found: Vec<Number> =
        source.found.numbers.iter().filter(|n| is_quantity(source, n, alone)).cloned().collect();
    sum_people(&numeric, &mut found, source);
    let mut taken = vec![false; found.len()];
    let takes_days = fields.iter().any(|field| field.kind == ArgumentKind::Date);
    for pair in score_matches(&numeric, &found, source, alone) {
        let field = numeric[pair.field];
        if taken[pair.number] || out.values.contains_key(&field.name) {
            continue;
        }
        taken[pair.number] = true;
        out.values.insert(field.name.clone(), number_value(pair.value));
        out.doubtful |= is_in_other_currency(source, field, &found[pair.number])
            || takes_days && may_be_day(source, &found[pair.number]);
        source.take(found[pair.number].first, found[pair.number].last);
        let which = field.identifies() || is_numbered(field, &found[pair.number], source);
        let listed = if which { listed_numbers(pair.number, &found, source) } else { Vec::new() };
        for at in &listed {
            taken[*at] = true;
            source.take(found[*at].first, found[*at].last);
        }
        if !listed.is_empty() {
            let all = std::iter::once(pair.number).chain(listed).map(|at| number_value(found[at].value));
            out.set_several(&field.name, all);
        }
    }
    fill_ordinals(&numeric, source, out);
    fill_day_counts(fields, &numeric, source, out);
    fill_calendar_numbers(&numeric, source, out);
    fill_relative_year(&numeric, source, out);
}

/// Fills "next year" and "last year" into an argument for a year.
fn fill_relative_year(numeric: &[&ArgumentField], source: &mut SourceText, out: &mut Filled) {
    let is_open =
        |field: &&&ArgumentField| field.named(&["year", "anno"]) && !out.values.contains_key(&field.name);
    let Some(field) = numeric.iter().find(is_open) else { return };
    let found = (0..source.tokens.len()).find_map(|i| Some((i, years_ahead(source, i)?)));
    if let Some((i, ahead)) = found {
        out.values.insert(field.name.clone(), json!(i64::from(source.now.year()) + ahead));
        source.take(i.saturating_sub(1), (i + 1).min(source.tokens.len() - 1));
    }
}

/// How many years after the present one a word for a year means, by the word beside it.
fn years_ahead(source: &SourceText, i: usize) -> Option<i64> {
    const YEAR: &[&str] = &["year", "anno", "jahr", "annee", "an", "ano"];
    const NEXT: &[&str] = &[
        "next", "prossimo", "venturo", "nachstes", "nachsten", "kommendes", "prochaine", "prochain",
        "proximo",
    ];
    const LAST: &[&str] =
        &["last", "scorso", "passato", "letztes", "letzten", "derniere", "dernier", "passee", "pasado"];
    let beside = |words: &[&str]| i > 0 && source.is(i - 1, words) || source.is(i + 1, words);
    let comes = source.is(i + 1, &["que"]) && source.is(i + 2, &["viene"]);
    match () {
        () if !source.is(i, YEAR) => None,
        () if comes || beside(NEXT) => Some(1),
        () => beside(LAST).then_some(-1),
    }
}

/// Adds up "two adults and two children" for a tool that counts all people together.
fn sum_people(numeric: &[&ArgumentField], found: &mut Vec<Number>, source: &SourceText) {
    let apart = ["adults", "adult", "adulti", "grown", "children", "child", "bambini", "kids"];
    if numeric.iter().any(|f| f.named(&apart)) || !numeric.iter().any(|f| f.mentions(PEOPLE)) {
        return;
    }
    let person = |n: &Number| source.tokens.get(n.last + 1).is_some_and(is_person);
    let joined = |a: &Number, b: &Number| {
        let between = source.tokens.get(a.last + 2..b.first).unwrap_or_default();
        between.len() == 1 && (between[0].lower == "e" || between[0].is(&["and", "und", "et", "y", "plus"]))
    };
    let Some(at) = found.windows(2).position(|p| p.iter().all(person) && joined(&p[0], &p[1])) else {
        return;
    };
    let second = found.remove(at + 1);
    found[at].value += second.value;
    found[at].last = second.last;
}

/// Whether a word is a noun for counted people.
fn is_person(token: &Token) -> bool {
    token.is(&["friends", "amici", "amiche", "others"])
        || ["people", "child", "adult"]
            .iter()
            .any(|w| super::text::features(w).similarity(&token.features()) > 0.8)
}

/// Whether a number is a quantity. In "the one with …", "which one" and "one of them" it is a pronoun, and
/// "half past one" is a time.
fn is_quantity(source: &SourceText, number: &Number, alone: bool) -> bool {
    if (number.first..=number.last).any(|i| source.used[i] || source.found.quoted[i]) {
        return false;
    }
    let tokens = &source.tokens;
    let before = number.first.checked_sub(1).and_then(|i| tokens.get(i)).filter(|t| t.word);
    let is_before = |words: &[&str]| before.is_some_and(|t| t.is(words));
    if is_before(&["past", "quarter", "half", "quarto"]) {
        return false;
    }
    let pronoun = number.first == number.last && tokens[number.first].is(&["one", "uno", "ones"]);
    let next = tokens.get(number.last + 1).filter(|t| t.word);
    let counted = next.is_some_and(|t| !lexicon::is_stop_word(&t.norm) && !lexicon::is_pleasantry(&t.norm));
    let points = is_before(&[
        "the", "this", "that", "which", "another", "other", "no", "any", "every", "each", "quello", "quale",
        "l", "last", "first", "next", "only", "some",
    ]);
    !pronoun || (alone && next.is_none()) || (counted && !points)
}

/// Whether a number says by how much something changes, and not to what: "by 5 euros", "abbassa … di 5 euro", "10 percent".
fn is_difference(source: &SourceText, number: &Number) -> bool {
    let before = number.first.checked_sub(1);
    let is_before = |words: &[&str]| before.is_some_and(|at| source.is(at, words));
    let changes = || {
        let verbs = ["raise", "lower"].map(features);
        source.tokens.iter().any(|t| t.word && verbs.iter().any(|verb| verb.similarity(&t.features()) > 0.8))
    };
    let after = source.tokens.get(number.last + 1);
    after.is_some_and(|t| t.raw == "%" || t.is(&["percent", "percento", "prozent", "pourcent", "cento"]))
        || (source.is(number.last + 1, &["per", "por", "pour"])
            && source.is(number.last + 2, &["cent", "cento", "ciento"]))
        || (is_before(&["per"]) && source.is(number.first, &["cento"]))
        || is_before(&["by"])
        || (is_before(&["di", "de", "um", "en", "another"]) && changes())
}

/// Whether the words name another currency for a number than the argument's description.
fn is_in_other_currency(source: &SourceText, field: &ArgumentField, number: &Number) -> bool {
    let near = [number.first.checked_sub(1), Some(number.last + 1)];
    let said = near.into_iter().flatten().filter_map(|at| source.tokens.get(at));
    let other = |t: &Token| matches!(t.raw.as_str(), "$" | "£") || is_currency(t) && !is_euro(t);
    field.mentions(&["euro", "euros", "eur"])
        && !field.mentions(&["dollars", "currency"])
        && said.into_iter().any(other)
}

/// Whether a number may be the day of a month instead: "la mia richiesta del 14".
fn may_be_day(source: &SourceText, number: &Number) -> bool {
    let before =
        |back: usize, words: &[&str]| number.first.checked_sub(back).is_some_and(|at| source.is(at, words));
    let is_led = before(1, &["del", "dell", "du", "vom", "dal"])
        || before(1, &["the"]) && before(2, &["of", "from", "on"]);
    is_led && (1.0..=31.0).contains(&number.value) && number.value.fract() == 0.0
}

fn is_euro(token: &Token) -> bool {
    token.raw == "€" || token.is(&["euro", "euros", "eur", "cent", "cents", "centesimi"])
}

/// Every possible assignment of a number to an argument, best score first.
fn score_matches(
    numeric: &[&ArgumentField],
    found: &[Number],
    source: &SourceText,
    alone: bool,
) -> Vec<NumberMatch> {
    let mut pairs: Vec<NumberMatch> = Vec::new();
    for (f, field) in numeric.iter().enumerate() {
        for (n, number) in found.iter().enumerate() {
            let (score, value) = score_number(field, number, source, alone);
            if !alone && field.named(MONEY) && is_difference(source, number) && !field.mentions(DIFFERENCE) {
                continue;
            }
            if matches!(field.kind, ArgumentKind::Number(true)) && value.fract() != 0.0 {
                continue;
            }
            let outside = field.min.is_some_and(|m| value < m) || field.max.is_some_and(|m| value > m);
            let score = if outside { score - 0.15 } else { score };
            if score >= if field.required { 0.2 } else { 0.5 } {
                pairs.push(NumberMatch { score, field: f, number: n, value });
            }
        }
    }
    pairs.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then(a.number.cmp(&b.number)).then(a.field.cmp(&b.field))
    });
    pairs
}

/// Whether the noun before a number makes it an identifier: "loans 1 and 2", not "for 4 and 2".
fn is_numbered(field: &ArgumentField, number: &Number, source: &SourceText) -> bool {
    let before = number.first.checked_sub(1).and_then(|i| source.tokens.get(i)).filter(|t| t.word);
    !field.named(QUANTITY)
        && before.is_some_and(|t| {
            t.is(&["number", "numbers", "numero", "numeri", "n", "no", "nr"])
                || field
                    .cues
                    .iter()
                    .any(|c| !lexicon::is_stop_word(&c.norm) && c.similarity(&t.features()) > 0.8)
        })
}

/// Indexes of the numbers joined to the one at `at` only by "and" or a comma: "loans 1, 2 and 5".
fn listed_numbers(at: usize, found: &[Number], source: &SourceText) -> Vec<usize> {
    let mut last = found[at].last;
    let mut all = Vec::new();
    for (n, next) in found.iter().enumerate().skip(at + 1) {
        let between = &source.tokens[(last + 1).min(next.first)..next.first];
        let joins = |t: &Token| t.raw == "," || t.raw == "&" || t.is_and();
        if between.is_empty()
            || !between.iter().all(|t| joins(t) || t.is(&["number", "numero", "n", "no", "la", "il"]))
        {
            break;
        }
        all.push(n);
        last = next.last;
    }
    all
}

/// Fills arguments from ordinals: "Al primo turno", "the second shift".
fn fill_ordinals(numeric: &[&ArgumentField], source: &mut SourceText, out: &mut Filled) {
    const RANKS: [&[&str]; 4] = [
        &["primo", "prima", "first"],
        &["secondo", "seconda", "second"],
        &["terzo", "terza", "third"],
        &["quarto", "quarta", "fourth"],
    ];
    for field in numeric.iter().filter(|f| !f.identifies()) {
        if out.values.contains_key(&field.name) {
            continue;
        }
        let rank = |i: usize| RANKS.iter().position(|names| source.is(i, names));
        let beside = |i: usize| {
            let token = source.tokens.get(i).filter(|t| t.word);
            token.is_some_and(|t| field.cues.iter().any(|c| c.similarity(&t.features()) > 0.8))
        };
        let ordinal = (0..source.tokens.len())
            .filter(|i| !source.is_taken(*i) && (beside(i + 1) || (*i > 0 && beside(i - 1))))
            .find_map(|i| Some((i, rank(i)?)));
        if let Some((i, rank)) = ordinal {
            out.values.insert(field.name.clone(), json!(rank + 1));
            source.take(i, i);
        }
    }
}

/// Fills numbers of nights or days from a stated range of dates.
fn fill_day_counts(
    fields: &[ArgumentField],
    numeric: &[&ArgumentField],
    source: &SourceText,
    out: &mut Filled,
) {
    let first = source.found.days.iter().find(|d| d.role == RangeRole::From);
    let last = source.found.days.iter().find(|d| d.role == RangeRole::To);
    let (Some(first), Some(last)) = (first, last) else { return };
    let span = last.date.since(first.date).ok();
    let span = span.and_then(|s| s.round(SpanRound::new().largest(Unit::Day).days_are_24_hours()).ok());
    let days = span.map_or(0, |s| s.get_days());
    // A tool with an argument for the end date needs no count.
    let ended = fields.iter().any(|f| f.kind == ArgumentKind::Date && f.role == RangeRole::To);
    for field in numeric.iter().filter(|f| f.required || !ended) {
        if out.values.contains_key(&field.name) {
            continue;
        }
        if field.named(&["nights", "notti"]) {
            out.values.insert(field.name.clone(), json!(days));
        } else if field.named(&["days", "giorni"]) {
            out.values.insert(field.name.clone(), json!(days + 1));
        }
    }
}

/// Fills required numbers of a month ("in September") or of a day ("on the 1st of each month").
fn fill_calendar_numbers(numeric: &[&ArgumentField], source: &mut SourceText, out: &mut Filled) {
    for field in numeric.iter().filter(|f| f.required) {
        if out.values.contains_key(&field.name) {
            continue;
        }
        let month = field.named(&["month", "mese"]) && field.max.is_none_or(|m| m <= 12.0);
        let day = field.named(&["day", "giorno"]) && field.max.is_none_or(|m| m <= 31.0);
        let named = |i: &usize| super::dates::month(&source.tokens[*i].norm).filter(|_| month);
        let all = 0..source.tokens.len();
        if let Some((i, value)) = all.clone().find_map(|i| Some((i, named(&i)?))) {
            out.values.insert(field.name.clone(), json!(value));
            source.take(i, i);
        } else if let Some((i, value)) =
            all.clone().find_map(|i| Some((i, monthly_day(source, i).filter(|_| day)?)))
        {
            out.values.insert(field.name.clone(), json!(value));
            source.take(i, (i + 3).min(source.tokens.len() - 1));
        }
    }
}

/// The day of a monthly recurrence: "The 1st of each month", "il giorno 1 di ogni mese".
fn monthly_day(source: &SourceText, i: usize) -> Option<i64> {
    let norm = source.tokens[i].norm.as_str();
    let digits = norm.trim_end_matches(|c: char| !c.is_ascii_digit());
    let day: i64 = digits.parse().ok().filter(|day| (1..=31).contains(day))?;
    let of = usize::from(source.is(i + 1, &["of", "di", "del"]));
    let each = source.is(i + 1 + of, &["each", "every", "ogni", "the"]);
    (each && source.is(i + 2 + of, &["month", "mese"])).then_some(day)
}

fn number_value(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// Minutes in a unit of time.
pub(super) fn unit_minutes(norm: &str) -> Option<f64> {
    Some(match norm {
        "minuti" | "minuto" | "minutes" | "minute" | "min" | "mins" => 1.0,
        "ora" | "ore" | "hour" | "hours" | "h" => 60.0,
        "giorno" | "giorni" | "day" | "days" => 1440.0,
        "notte" | "notti" | "night" | "nights" => 1440.0,
        "settimana" | "settimane" | "week" | "weeks" => 10_080.0,
        "mese" | "mesi" | "month" | "months" => 43_800.0,
        "anno" | "anni" | "year" | "years" => 525_600.0,
        _ => return None,
    })
}

/// Scores a number for an argument and converts it to the argument's unit.
fn score_number(field: &ArgumentField, number: &Number, source: &SourceText, alone: bool) -> (f64, f64) {
    let Number { first, last, value } = *number;
    let word = |i: usize| source.tokens.get(i).filter(|t| t.word);
    let mut score = context_similarity(field, number, source);
    if let Some(unit) = word(last + 1).and_then(|t| unit_minutes(&t.norm)) {
        let similarity = field.similarity(&source.tokens[last + 1].features());
        return convert_unit(field, value, unit, score, similarity);
    }
    let lone = !is_content_word(source, last + 1) || is_closing_verb(source, last + 1);
    let led = first > 0 && source.is(first - 1, &["per", "for", "in", "of", "pour", "fur", "para"]);
    let we = first > 0 && source.is(first - 1, &["siamo", "are", "re"]);
    let people = field.mentions(PEOPLE);
    if people && ((lone && (led || we)) || word(last + 1).is_some_and(is_person)) {
        score = score.max(0.75);
    }
    let money = field.mentions(MONEY);
    let coin = |i: usize| word(i).is_some_and(is_currency);
    if coin(last + 1) || (first > 0 && coin(first - 1)) {
        // A number with a currency is an amount of money and nothing else.
        let other =
            people || field.identifies() || field.cues.iter().any(|f| unit_minutes(&f.norm).is_some());
        let score = if money {
            0.95
        } else if field.required && !other {
            0.4
        } else {
            0.0
        };
        return (score, value);
    }
    if field.named(&["year", "anno"]) {
        let year = (1900.0..2200.0).contains(&value) && value.fract() == 0.0 && last == first;
        return (if year { score.max(0.9) } else { 0.0 }, value);
    }
    if score < 0.2 && field.required && may_be_bare(field, number, source, lone, money || people) {
        score = if lone { 0.3 } else { 0.2 };
    }
    if alone && lone {
        score = score.max(0.6);
    }
    (score, value)
}

/// Whether a word is a currency.
pub(super) fn is_currency(token: &Token) -> bool {
    token.is(&[
        "euro", "euros", "eur", "dollar", "dollars", "dollari", "dollaro", "usd", "pounds", "pound",
        "sterline", "gbp", "bucks", "franchi", "chf",
    ])
}

/// Whether a word is the verb, or the part of one, with which a German request ends: "Ticket 131 schließen", "sage den Termin 12 ab".
fn is_closing_verb(source: &SourceText, i: usize) -> bool {
    const PARTS: &[&str] = &["ab", "an", "auf", "aus", "ein", "frei", "weg", "zu", "zuruck"];
    let Some(verb) = source.tokens.get(i).filter(|t| t.word && !t.capital() && !t.digit()) else {
        return false;
    };
    let closes =
        source.tokens[i + 1..].iter().all(|t| !t.word || lexicon::is_pleasantry(&t.norm) || t.is(&["bitte"]));
    let is_german = matches!(language::detect(source.text), Some("de") | None);
    let is_infinitive = verb.norm.len() > 4 && verb.norm.ends_with("en");
    closes && is_german && (verb.is(PARTS) || is_infinitive)
}

fn is_content_word(source: &SourceText, i: usize) -> bool {
    let token = source.tokens.get(i).filter(|t| t.word);
    token.is_some_and(|t| !lexicon::is_stop_word(&t.norm) && !source.found.taken[i])
}

/// Similarity of an argument to the words next to a number: the noun it counts, at most after an adjective,
/// or the words before it.
fn context_similarity(field: &ArgumentField, number: &Number, source: &SourceText) -> f64 {
    let similarity = |i: usize| {
        let token = &source.tokens[i];
        let own = field.similarity(&token.features());
        // "Bedrooms" matches "bed".
        let longer = |c: &str| c.len() >= 3 && token.norm.len() > c.len() + 2 && token.norm.starts_with(c);
        own.max(if field.cues.iter().any(|c| longer(&c.en)) { 0.75 } else { 0.0 })
    };
    let mut score: f64 = 0.0;
    for (distance, i) in (number.last + 1..=number.last + 3).enumerate() {
        let Some(token) = source.tokens.get(i).filter(|t| t.word && !source.found.taken[i]) else { break };
        if distance > 0 && (token.digit() || token.lower == "e" || token.is(&["and", "ed"])) {
            break;
        }
        if is_content_word(source, i) {
            score = score.max(similarity(i) - 0.12 * distance as f64);
        }
    }
    let mut seen = 0;
    for i in (number.first.saturating_sub(4)..number.first).rev() {
        let token = &source.tokens[i];
        if !token.word && !matches!(token.raw.as_str(), ":" | "#" | "=" | "€" | "$") {
            break;
        }
        if is_content_word(source, i) {
            score = score.max(similarity(i) * 0.9 - 0.1 * f64::from(seen));
            seen += 1;
            if seen == 2 {
                break;
            }
        }
    }
    score
}

/// Scores and converts a number followed by a unit of time.
fn convert_unit(field: &ArgumentField, value: f64, unit: f64, score: f64, similarity: f64) -> (f64, f64) {
    let own = field.cues.iter().chain(&field.hints).find_map(|f| unit_minutes(&f.norm));
    let lasts = field.mentions(&["duration", "durata", "length", "long"]);
    match own {
        Some(own) if own == unit => (score.max(0.9), value),
        Some(own) => (if lasts || own < unit { score.max(0.8) } else { score * 0.3 }, value * unit / own),
        None if lasts => (score.max(0.7), value),
        // A number of days or hours fills no other argument.
        None => (if similarity > 0.5 { score } else { 0.0 }, value),
    }
}

/// Whether a number without a matching cue may be the value of a required argument.
fn may_be_bare(
    field: &ArgumentField,
    number: &Number,
    source: &SourceText,
    lone: bool,
    counting: bool,
) -> bool {
    let before = number.first.checked_sub(1).and_then(|i| source.tokens.get(i));
    let placed = before.is_some_and(|t| {
        t.is(&[
            "at", "on", "by", "to", "until", "till", "from", "since", "after", "before", "around", "alle",
            "il", "dal", "al", "le", "the", "entro",
        ])
    });
    if lone {
        // "At 5", "on the 3" express a time or a day; "to 30" is what a price is set to.
        let is_set = field.named(MONEY) && before.is_some_and(|t| t.is(&["to"]));
        return !placed || is_set || field.identifies();
    }
    // A number that counts another kind of thing is neither an identifier nor an amount of money.
    let quantity = field.named(QUANTITY) && !field.named(&["id", "code", "codice"]);
    !field.identifies() && !counting && quantity && !placed
}
