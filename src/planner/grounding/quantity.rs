//! Numbers as people write and say them, with their units.

use std::collections::BTreeSet;

use super::words::Word;

/// Numbers that a text has, in thousandths, so that they can be compared.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    values: BTreeSet<i64>,
    /// Ordinals: "the first", "al terzo".
    ranks: BTreeSet<i64>,
    /// A thing was said in the singular, with an article.
    singular: bool,
    /// The speaker alone: "for me", "per me", "just myself".
    alone: bool,
    /// Nothing or none was said.
    none: bool,
}

const SMALL: &[(&str, u32)] = &[
    ("zero", 0),
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("dozen", 12),
    ("couple", 2),
    ("pair", 2),
    ("both", 2),
    ("uno", 1),
    ("due", 2),
    ("tre", 3),
    ("quattro", 4),
    ("cinque", 5),
    ("sei", 6),
    ("sette", 7),
    ("otto", 8),
    ("nove", 9),
    ("dieci", 10),
    ("undici", 11),
    ("dodici", 12),
    ("tredici", 13),
    ("quattordici", 14),
    ("quindici", 15),
    ("sedici", 16),
    ("diciassette", 17),
    ("diciotto", 18),
    ("diciannove", 19),
    ("venti", 20),
    ("trenta", 30),
    ("quaranta", 40),
    ("cinquanta", 50),
    ("sessanta", 60),
    ("settanta", 70),
    ("ottanta", 80),
    ("novanta", 90),
    ("dozzina", 12),
    ("paio", 2),
    ("coppia", 2),
    ("entrambi", 2),
    ("entrambe", 2),
    ("ambedue", 2),
    ("deux", 2),
    ("trois", 3),
    ("quatre", 4),
    ("cinq", 5),
    ("sept", 7),
    ("huit", 8),
    ("neuf", 9),
    ("dix", 10),
    ("onze", 11),
    ("douze", 12),
    ("treize", 13),
    ("quatorze", 14),
    ("quinze", 15),
    ("seize", 16),
    ("vingt", 20),
    ("trente", 30),
    ("quarante", 40),
    ("cinquante", 50),
    ("soixante", 60),
    ("eins", 1),
    ("zwei", 2),
    ("drei", 3),
    ("vier", 4),
    ("funf", 5),
    ("sechs", 6),
    ("sieben", 7),
    ("acht", 8),
    ("neun", 9),
    ("zehn", 10),
    ("elf", 11),
    ("zwolf", 12),
    ("dreizehn", 13),
    ("vierzehn", 14),
    ("funfzehn", 15),
    ("sechzehn", 16),
    ("siebzehn", 17),
    ("achtzehn", 18),
    ("neunzehn", 19),
    ("zwanzig", 20),
    ("dreissig", 30),
    ("vierzig", 40),
    ("funfzig", 50),
    ("sechzig", 60),
    ("siebzig", 70),
    ("achtzig", 80),
    ("neunzig", 90),
    ("dutzend", 12),
    ("dos", 2),
    ("tres", 3),
    ("cuatro", 4),
    ("cinco", 5),
    ("seis", 6),
    ("siete", 7),
    ("ocho", 8),
    ("nueve", 9),
    ("diez", 10),
    ("once", 11),
    ("doce", 12),
    ("trece", 13),
    ("catorce", 14),
    ("quince", 15),
    ("dieciseis", 16),
    ("diecisiete", 17),
    ("dieciocho", 18),
    ("diecinueve", 19),
    ("veinte", 20),
    ("treinta", 30),
    ("cuarenta", 40),
    ("cincuenta", 50),
    ("sesenta", 60),
    ("docena", 12),
];

const ORDINALS: &[(&str, u32)] = &[
    ("first", 1),
    ("second", 2),
    ("third", 3),
    ("fourth", 4),
    ("fifth", 5),
    ("sixth", 6),
    ("seventh", 7),
    ("eighth", 8),
    ("ninth", 9),
    ("tenth", 10),
    ("eleventh", 11),
    ("twelfth", 12),
    ("thirteenth", 13),
    ("fourteenth", 14),
    ("fifteenth", 15),
    ("sixteenth", 16),
    ("seventeenth", 17),
    ("eighteenth", 18),
    ("nineteenth", 19),
    ("twentieth", 20),
    ("thirtieth", 30),
    ("primo", 1),
    ("prima", 1),
    ("secondo", 2),
    ("seconda", 2),
    ("terzo", 3),
    ("terza", 3),
    ("quarto", 4),
    ("quarta", 4),
    ("quinto", 5),
    ("quinta", 5),
    ("sesto", 6),
    ("sesta", 6),
    ("settimo", 7),
    ("settima", 7),
    ("ottavo", 8),
    ("ottava", 8),
    ("nono", 9),
    ("nona", 9),
    ("decimo", 10),
    ("decima", 10),
    ("undicesimo", 11),
    ("dodicesimo", 12),
    ("premier", 1),
    ("premiere", 1),
    ("deuxieme", 2),
    ("troisieme", 3),
    ("quatrieme", 4),
    ("erste", 1),
    ("ersten", 1),
    ("erster", 1),
    ("zweite", 2),
    ("zweiten", 2),
    ("dritte", 3),
    ("dritten", 3),
    ("vierte", 4),
    ("vierten", 4),
    ("funfte", 5),
    ("funften", 5),
    ("primero", 1),
    ("primera", 1),
    ("segundo", 2),
    ("segunda", 2),
    ("tercero", 3),
    ("tercera", 3),
    ("cuarto", 4),
];

/// The value of one word that names a whole number: "three", "ventuno", "duecentocinquanta".
pub(super) fn spoken(norm: &str) -> Option<u32> {
    if norm.len() > 40 {
        return None;
    }
    if let Some((_, value)) = SMALL.iter().find(|(word, _)| *word == norm) {
        return Some(*value);
    }
    match norm {
        "hundred" | "cento" | "cent" | "hundert" | "cien" | "ciento" => return Some(100),
        "thousand" | "mille" | "mila" | "tausend" | "mil" | "milla" => return Some(1000),
        "million" | "milione" | "milioni" | "millions" | "millionen" => return Some(1_000_000),
        _ => {}
    }
    for (mark, by) in [("mila", 1000), ("mille", 1000), ("tausend", 1000), ("cento", 100), ("hundert", 100)] {
        if let Some((head, tail)) = norm.split_once(mark) {
            let head = if head.is_empty() { 1 } else { spoken(head)? };
            let tail = if tail.is_empty() { 0 } else { spoken(tail)? };
            return head.checked_mul(by)?.checked_add(tail);
        }
    }
    // fünfundzwanzig
    if let Some((unit, tens)) = norm.split_once("und")
        && let (Some(unit), Some(tens)) = (spoken_unit(unit), small(tens).filter(|t| *t >= 20))
    {
        return Some(tens + unit);
    }
    // ventuno, ventitre, trentotto
    SMALL.iter().filter(|(_, value)| *value >= 20 && value % 10 == 0).find_map(|(tens, value)| {
        let stem = tens.trim_end_matches(['i', 'a', 'e']);
        let rest = norm.strip_prefix(tens).or_else(|| norm.strip_prefix(stem))?;
        spoken_unit(rest).map(|unit| value + unit)
    })
}

fn small(norm: &str) -> Option<u32> {
    SMALL.iter().find(|(word, _)| *word == norm).map(|(_, value)| *value)
}

fn spoken_unit(norm: &str) -> Option<u32> {
    if norm == "ein" { Some(1) } else { small(norm).filter(|value| (1..10).contains(value)) }
}

/// The value of an ordinal: "third", "terzo", "3rd", "3o".
pub(super) fn ordinal(norm: &str) -> Option<u32> {
    if let Some((_, value)) = ORDINALS.iter().find(|(word, _)| *word == norm) {
        return Some(*value);
    }
    let digits = norm.trim_end_matches(|c: char| !c.is_ascii_digit());
    let tail = norm.get(digits.len()..)?;
    let marked =
        matches!(tail, "st" | "nd" | "rd" | "th" | "o" | "a" | "er" | "e" | "eme" | "deg" | "degdeg");
    if marked && (1..=3).contains(&digits.len()) {
        return digits.parse().ok();
    }
    // "trentesimo", and "twenty-first" is two words.
    let head = norm.strip_suffix("esimo").or_else(|| norm.strip_suffix("esima"))?;
    ["", "i", "a", "o", "e"].iter().find_map(|end| spoken(&format!("{head}{end}")))
}

/// A number with its place and what it counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// Index of its first word.
    pub first: usize,
    /// Index behind its last word, the unit not included.
    pub next: usize,
    /// What it may be: `2,500` is one of two.
    pub values: Vec<f64>,
}

/// The number that begins at `i`.
pub(super) fn at(words: &[Word], i: usize) -> Option<Found> {
    figures(words, i).or_else(|| in_words(words, i))
}

/// `12`, `2,500`, `3.5`, `1.5k`, `90min`.
fn figures(words: &[Word], i: usize) -> Option<Found> {
    let first = words.get(i)?;
    let split = |norm: &str| {
        let at = norm.find(|c: char| !c.is_ascii_digit()).unwrap_or(norm.len());
        (norm[..at].to_owned(), norm[at..].to_owned())
    };
    let (mut digits, mut suffix) = split(&first.norm);
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let mut parts = vec![std::mem::take(&mut digits)];
    let mut next = i + 1;
    let mut marks = String::new();
    while suffix.is_empty()
        && parts.len() < 5
        && let (Some(mark), Some(more)) = (words.get(next), words.get(next + 1))
        && mark.glued
        && more.glued
        && mark.is(&[".", ",", "'"])
    {
        let (more, rest) = split(&more.norm);
        if more.is_empty() || more.len() > 9 {
            break;
        }
        marks.push_str(&mark.norm);
        parts.push(more);
        suffix = rest;
        next += 2;
    }
    let scale = match suffix.as_str() {
        "k" | "mila" => 1e3,
        "m" | "mln" => 1e6,
        _ => 1.0,
    };
    let mut values = readings(&parts);
    if scale > 1.0 {
        let scaled: Vec<f64> = values.iter().map(|v| v * scale).collect();
        values.extend(scaled);
    }
    match words.get(next).map(|w| w.norm.as_str()) {
        Some("thousand" | "mila" | "k" | "mille" | "tausend") => {
            values = values.iter().map(|v| v * 1e3).collect();
            next += 1;
        }
        Some("million" | "millions" | "milioni" | "milione" | "mln" | "millionen") => {
            values = values.iter().map(|v| v * 1e6).collect();
            next += 1;
        }
        _ => {}
    }
    Some(Found { first: i, next, values })
}

/// `2,500` is 2500 in one language and 2.5 in another.
fn readings(parts: &[String]) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::new();
    let mut add = |text: String| out.extend(text.parse::<f64>().ok());
    match parts {
        [] => {}
        [one] => add(one.clone()),
        [head @ .., last] => {
            if head.iter().skip(1).chain([last]).all(|p| p.len() == 3) {
                add(parts.concat());
            }
            if head.iter().skip(1).all(|p| p.len() == 3) {
                add(format!("{}.{last}", head.concat()));
            }
            if out.is_empty() {
                return parts.iter().filter_map(|p| p.parse().ok()).collect();
            }
        }
    }
    out
}

/// "twenty-five", "one hundred and twenty", "duecento", "half".
fn in_words(words: &[Word], i: usize) -> Option<Found> {
    let first = words.get(i)?;
    if first.is(&["half", "mezzo", "mezza", "mezz", "halb", "halbe", "demi", "demie", "media", "medio"]) {
        return Some(Found { first: i, next: i + 1, values: vec![0.5] });
    }
    let mut total = 0.0;
    let mut group = f64::from(spoken(&first.norm)?);
    let mut next = i + 1;
    for _ in 0..12 {
        let skip = usize::from(words.get(next).is_some_and(|w| {
            (w.norm == "-" && w.glued) || (group >= 100.0 && w.is(&["and", "e", "et", "y"]))
        }));
        let Some(more) = words.get(next + skip).and_then(|w| spoken(&w.norm)).map(f64::from) else { break };
        if more >= 1000.0 && group < more {
            total += group * more;
            group = 0.0;
        } else if more == 100.0 && group < 10.0 {
            group *= 100.0;
        } else if (group >= 100.0 && more < 100.0) || (20.0..100.0).contains(&group) && more < 10.0 {
            group += more;
        } else if group == 0.0 && total > 0.0 {
            group = more;
        } else {
            break;
        }
        next += skip + 1;
    }
    // "two and a half", "due e mezzo"
    let mut values = vec![total + group];
    if words.get(next).is_some_and(|w| w.is(&["and", "e", "et", "y"])) {
        let skip = usize::from(words.get(next + 1).is_some_and(|w| w.is(&["a", "un"])));
        if words.get(next + 1 + skip).is_some_and(|w| w.is(&["half", "mezzo", "mezza", "demi", "media"])) {
            values.push(total + group + 0.5);
        }
    }
    Some(Found { first: i, next, values })
}

/// Minutes in a unit of time.
pub(super) fn minutes(norm: &str) -> Option<f64> {
    Some(match norm {
        "second" | "seconds" | "sec" | "secondi" | "secondes" | "sekunden" => 1.0 / 60.0,
        "min" | "mins" | "minute" | "minutes" | "minuto" | "minuti" | "minuten" | "minutos" => 1.0,
        "h" | "hr" | "hrs" | "hour" | "hours" | "ora" | "ore" | "heure" | "heures" | "stunde" | "stunden"
        | "hora" | "horas" => 60.0,
        _ => return days(norm).map(|days| days * 1440.0),
    })
}

/// Days in a unit of the calendar that is always as long.
pub(super) fn days(norm: &str) -> Option<f64> {
    Some(match norm {
        "day" | "days" | "night" | "nights" | "giorno" | "giorni" | "notte" | "notti" | "giornata"
        | "giornate" | "jour" | "jours" | "nuit" | "nuits" | "tag" | "tage" | "tagen" | "nacht"
        | "nachte" | "dia" | "dias" | "noche" | "noches" => 1.0,
        "week" | "weeks" | "settimana" | "settimane" | "semaine" | "semaines" | "woche" | "wochen"
        | "semana" | "semanas" => 7.0,
        "fortnight" | "fortnights" | "quindicina" => 14.0,
        _ => return None,
    })
}

/// Months in a unit.
pub(super) fn months(norm: &str) -> Option<f64> {
    Some(match norm {
        "month" | "months" | "mese" | "mesi" | "mois" | "monat" | "monate" | "monaten" | "mes" | "meses" => {
            1.0
        }
        "year" | "years" | "anno" | "anni" | "an" | "ans" | "jahr" | "jahre" | "jahren" | "ano" | "anos" => {
            12.0
        }
        _ => return None,
    })
}

/// What a number with this unit may be in other units.
fn converted(value: f64, unit: &str) -> Vec<f64> {
    if let Some(length) = minutes(unit) {
        let all = value * length;
        return [1.0 / 60.0, 1.0, 60.0, 1440.0, 10_080.0].iter().map(|by| all / by).collect();
    }
    if let Some(length) = months(unit) {
        let all = value * length;
        return vec![all, all / 12.0, all * 30.0, all * 365.0 / 12.0];
    }
    match unit {
        "%" | "percent" | "percento" | "prozent" => vec![value / 100.0],
        "km" | "kg" | "kilometers" | "kilometres" | "chilometri" | "kilo" | "kilos" | "chili" | "chilo"
        | "k" | "l" | "litri" | "liters" | "litres" | "gb" => vec![value * 1000.0, value * 1024.0],
        "m" | "g" | "grams" | "grammi" | "meters" | "metri" | "ml" | "mb" => {
            vec![value / 1000.0, value / 1024.0]
        }
        "euro" | "euros" | "eur" | "€" | "$" | "dollar" | "dollars" | "dollari" | "usd" | "£" | "pounds"
        | "sterline" | "franchi" | "chf" => vec![value * 100.0],
        "cent" | "cents" | "centesimi" => vec![value / 100.0],
        "dozen" | "dozens" | "dozzina" | "dozzine" => vec![value * 12.0],
        _ => Vec::new(),
    }
}

const ARTICLES: &[&str] = &["a", "an", "un", "una", "uno", "ein", "eine", "einen", "une"];

impl Numbers {
    /// Adds the numbers of a text; `dated` are its words that are part of a day or a time.
    pub fn read(&mut self, words: &[Word], dated: &[bool]) {
        let mut i = 0;
        while i < words.len() {
            let word = &words[i];
            if dated.get(i).copied().unwrap_or(false) {
                i += 1;
                continue;
            }
            self.alone |=
                word.is(&["me", "myself", "alone", "solo", "sola", "single", "moi", "mich", "mir", "io"]);
            self.none |=
                word.is(&["no", "none", "without", "senza", "nessun", "nessuno", "nessuna", "nothing"]);
            if let Some(rank) = ordinal(&word.norm) {
                self.ranks.insert(i64::from(rank) * 1000);
            }
            let next = words.get(i + 1);
            if word.is(ARTICLES) && next.is_some_and(Word::alphabetic) {
                self.singular = true;
                if let Some(unit) = next.filter(|w| minutes(&w.norm).is_some() || months(&w.norm).is_some()) {
                    self.add(1.0, Some(&unit.norm));
                    self.hours_and_more(words, 1.0, &unit.norm, i + 2);
                }
            }
            match at(words, i).filter(|found| !pronoun(words, found)) {
                Some(found) => {
                    self.found(words, &found);
                    i = found.next.max(i + 1);
                }
                None => i += 1,
            }
        }
        self.lists(words);
    }

    fn found(&mut self, words: &[Word], found: &Found) {
        let own = words[found.first].norm.trim_start_matches(|c: char| c.is_ascii_digit());
        let glued = Some(own).filter(|unit| !unit.is_empty() && words[found.first].norm.len() > unit.len());
        let mut unit = glued.map(str::to_owned);
        if unit.is_none() {
            // "half an hour", "a couple of weeks", "3-day"
            let mut at = found.next;
            while at < found.next + 2
                && words.get(at).is_some_and(|w| w.is(&["an", "a", "of", "di", "-", "d", "'"]))
            {
                at += 1;
            }
            unit = words.get(at).map(|w| w.norm.clone());
        }
        // "€ 50"
        if let Some(mark) = found.first.checked_sub(1).map(|i| &words[i]).filter(|w| w.is(&["€", "$", "£"]))
        {
            unit = Some(mark.norm.clone());
        }
        for value in &found.values {
            self.add(*value, unit.as_deref());
        }
        if let (Some(hours), Some(unit)) = (found.values.first(), unit) {
            self.hours_and_more(words, *hours, &unit, found.next);
        }
    }

    /// "1h30", "an hour and 30 minutes", "2 ore e mezza".
    fn hours_and_more(&mut self, words: &[Word], hours: f64, unit: &str, from: usize) {
        if minutes(unit) != Some(60.0) {
            return;
        }
        let after = words.get(from..).unwrap_or_default();
        let more = after.iter().take(4).find_map(|w| w.figure().or_else(|| spoken(&w.norm)));
        let half = after.iter().take(4).any(|w| w.is(&["half", "mezza", "mezzo", "demie", "media"]));
        if let Some(more) = more.map(f64::from).or(half.then_some(30.0)).filter(|more| *more < 60.0) {
            self.add(hours * 60.0 + more, Some("minutes"));
        }
    }

    /// Adds one number.
    pub fn add(&mut self, value: f64, unit: Option<&str>) {
        self.values.extend(key(value));
        for other in unit.map(|unit| converted(value, unit)).unwrap_or_default() {
            self.values.extend(key(other));
        }
    }

    /// How many there are in a list that was said: "for me and Anna", "Emma, Anna e Luca".
    fn lists(&mut self, words: &[Word]) {
        let joins = |w: &Word| w.is(&[",", "and", "e", "ed", "et", "und", "y", "&", "+"]);
        let ends = |w: &Word| w.is(&[".", ";", "?", "!", ":"]);
        let (mut items, mut length) = (1, 0);
        for word in words.iter().chain([&Word { norm: ".".to_owned(), glued: true, capital: false }]) {
            if joins(word) {
                if length > 0 {
                    items += 1;
                }
                length = 0;
            } else if ends(word) || length >= 4 {
                if items > 1 {
                    self.values.insert(items * 1000);
                    if length == 0 {
                        self.values.insert((items - 1) * 1000);
                    }
                }
                items = 1;
                length = usize::from(!ends(word));
            } else {
                length += 1;
            }
        }
    }

    /// Whether the number was said, or follows from what was.
    pub fn derives(&self, value: f64) -> bool {
        key(value.abs()).is_some_and(|key| self.values.contains(&key))
    }

    /// Whether "the third" stands for it.
    pub fn ranks(&self, value: f64) -> bool {
        key(value).is_some_and(|key| self.ranks.contains(&key))
    }

    /// Whether one thing was said in the singular.
    pub fn singular(&self) -> bool {
        self.singular
    }

    /// Whether the speaker was meant and nobody else.
    pub fn alone(&self) -> bool {
        self.alone
    }

    /// Whether nothing was said in so many words.
    pub fn none(&self) -> bool {
        self.none
    }
}

/// "the one with the dentist", "that one": it counts nothing. `sei` is "you are" as well.
fn pronoun(words: &[Word], found: &Found) -> bool {
    let word = &words[found.first];
    if found.next != found.first + 1 || !word.is(&["one", "uno", "sei", "una"]) {
        return false;
    }
    let next = words.get(found.next);
    let before = found.first.checked_sub(1).map(|i| &words[i]);
    if before.is_some_and(|w| w.is(&["number", "numero", "no", "nr", "room", "table", "#"])) {
        return false;
    }
    let pointed = before.is_some_and(|w| {
        w.is(&[
            "the", "that", "this", "which", "each", "every", "any", "no", "another", "first", "last", "other",
        ])
    });
    let counts = next.is_some_and(|w| {
        w.alphabetic()
            && !w.is(&[
                "with", "at", "on", "in", "of", "for", "from", "to", "that", "which", "who", "is", "was",
                "and", "or", "di", "con", "per", "che", "libero", "libera", "please", "tu", "a", "il", "la",
                "lo",
            ])
    });
    pointed || !counts
}

fn key(value: f64) -> Option<i64> {
    (value.is_finite() && value.abs() < 9e12).then(|| (value * 1000.0).round() as i64)
}
