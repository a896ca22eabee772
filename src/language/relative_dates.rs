//! Days that are named by their distance from today, in English, Italian, French, German, Spanish and Portuguese: "the day
//! after tomorrow", "tre giorni fa", "nächste Woche", "pasado mañana".

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::calendar_words::{DAYS, MONTH_UNITS, WEEKS};
use super::dates::{DateReader, WrittenDate};

/// What a phrase means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelativeDate {
    /// The day so many days after today.
    Day(i64),
    /// The week so many weeks after the present one, from Monday to Sunday.
    Week(i64),
    /// The coming weekend, or the present one.
    Weekend,
}

/// The phrases, without accents, by their meaning.
const PHRASES: &[(&str, RelativeDate)] = &[
    (
        "oggi, stasera, stanotte, stamattina, questa mattina, questa sera, questo pomeriggio, today, tonight, this morning, this \
         afternoon, this evening, heute, diesen morgen, diesen nachmittag, diesen abend, hoy, esta manana, esta tarde, esta noche, \
         hoje, aujourd hui, aujourd, ce matin, cet apres-midi, ce soir",
        RelativeDate::Day(0),
    ),
    ("domani, tomorrow, tmrw, tomorow, tommorow, demain, morgen, manana, amanha", RelativeDate::Day(1)),
    (
        "dopodomani, dopo domani, the day after tomorrow, day after tomorrow, ubermorgen, apres-demain, apres - demain, apres demain, pasado \
         manana, depois de amanha",
        RelativeDate::Day(2),
    ),
    ("ieri, yesterday, hier, gestern, ayer, ontem", RelativeDate::Day(-1)),
    (
        "altro ieri, altroieri, ieri l altro, the day before yesterday, day before yesterday, vorgestern, avant-hier, avant - hier, avant hier, \
         anteayer, antes de ayer, anteontem",
        RelativeDate::Day(-2),
    ),
    (
        "next week, prossima settimana, settimana prossima, settimana che viene, nachste woche, nachsten woche, kommende woche, \
         kommenden woche, semaine prochaine, prochaine semaine, semaine qui vient, proxima semana, semana proxima, semana que \
         viene, semana entrante, semana que vem",
        RelativeDate::Week(1),
    ),
    ("week after next, ubernachste woche, ubernachsten woche", RelativeDate::Week(2)),
    (
        "last week, scorsa settimana, settimana scorsa, letzte woche, letzten woche, vergangene woche, vergangenen woche, semaine \
         derniere, semana pasada, semana passada",
        RelativeDate::Week(-1),
    ),
    ("weekend, week-end, fine settimana, wochenende, fin de semana, fim de semana", RelativeDate::Weekend),
];

/// The words of a phrase and its meaning.
type Phrase = (Vec<&'static str>, RelativeDate);

/// The phrases by their first words, the longest first.
static BY_FIRST_WORD: LazyLock<HashMap<&'static str, Vec<Phrase>>> = LazyLock::new(|| {
    let mut all: HashMap<&str, Vec<Phrase>> = HashMap::new();
    for (phrases, meaning) in PHRASES {
        for phrase in phrases.split(", ") {
            let words: Vec<&str> = phrase.split_whitespace().collect();
            if let Some(first) = words.first() {
                all.entry(first).or_default().push((words, *meaning));
            }
        }
    }
    all.values_mut().for_each(|phrases| phrases.sort_by_key(|(words, _)| std::cmp::Reverse(words.len())));
    all
});

/// The longest phrase at the beginning of `words`, which gives the word at an index, and its number of words.
fn phrase<'w>(words: impl Fn(usize) -> Option<&'w str>) -> Option<(RelativeDate, usize)> {
    let phrases = BY_FIRST_WORD.get(words(0)?)?;
    let fits = |phrase: &&Phrase| phrase.0.iter().enumerate().all(|(at, word)| words(at) == Some(*word));
    phrases.iter().find(fits).map(|(words, meaning)| (*meaning, words.len()))
}

/// The distance in days from today of the day that several words name together, such as "pasado mañana", and their number.
/// `words` gives the word at an index, without accents.
pub(crate) fn day_of_several_words<'w>(words: impl Fn(usize) -> Option<&'w str>) -> Option<(i64, usize)> {
    match phrase(words)? {
        (RelativeDate::Day(days), length) if length > 1 => Some((days, length)),
        _ => None,
    }
}

/// Words before a length of time that lies ahead: "in 3 days".
const AHEAD: &[&str] = &["tra", "fra", "in", "within", "dans", "en", "em"];
/// Words before a length of time that has passed.
const PASSED: &[&str] = &["vor", "hace"];
/// Words after one.
const AGO: &[&str] = &["ago", "fa"];
/// Words for one, besides the numbers.
const ONE: &[&str] = &["a", "un", "una", "une", "ein", "einem", "einer", "einen"];
const COMING: &[&str] = &[
    "next", "prossimo", "prossima", "nachste", "nachsten", "nachstes", "kommende", "kommenden", "kommendes",
    "prochain", "prochaine", "proximo", "proxima",
];
const LAST: &[&str] = &[
    "last", "scorso", "scorsa", "letzte", "letzten", "letztes", "vergangenen", "vergangenes", "dernier",
    "derniere", "pasado", "pasada", "passado", "passada", "passato", "passata",
];

impl DateReader<'_> {
    /// Parses a day, a week or a weekend relative to today at `i`.
    pub(super) fn relative_date(&self, i: usize) -> Option<(WrittenDate, usize)> {
        if let Some(found) = self.relative_phrase(i) {
            return Some(found);
        }
        let word = |at: usize, words: &[&str]| self.is(at, words);
        // "Dentro de tres días", "il y a trois jours".
        let leads = match () {
            () if word(i, &["dentro"]) && word(i + 1, &["de"]) => Some((1, 2)),
            () if word(i, AHEAD) => Some((1, 1)),
            () if word(i, PASSED) => Some((-1, 1)),
            () if word(i, &["il"]) && word(i + 1, &["y"]) && word(i + 2, &["a"]) => Some((-1, 3)),
            () => None,
        };
        if let Some((sign, words)) = leads {
            let (date, next) = self.length_from_today(i + words, sign)?;
            return Some((WrittenDate::Exact(date), next));
        }
        let (date, next) = self.length_from_today(i, -1)?;
        if word(next, AGO) {
            return Some((WrittenDate::Exact(date), next + 1));
        }
        let is_ahead = word(next, &["from"]) && word(next + 1, &["now"]);
        let (date, next) = is_ahead.then(|| self.length_from_today(i, 1)).flatten()?;
        Some((WrittenDate::Exact(date), next + 2))
    }

    fn relative_phrase(&self, i: usize) -> Option<(WrittenDate, usize)> {
        let (meaning, words) = phrase(|at| self.token_at(i + at).map(|token| token.norm.as_str()))?;
        let before = |words: &[&str]| i.checked_sub(1).is_some_and(|at| self.is(at, words));
        let next = i + words;
        match meaning {
            // "Guten Morgen", "heute Morgen" and "por la mañana" are no tomorrow.
            RelativeDate::Day(1)
                if self.is(i, &["morgen", "manana"])
                    && before(&["guten", "heute", "gestern", "am", "jeden", "la", "esta", "cada"]) =>
            {
                None
            }
            // In German, "hier" is here.
            RelativeDate::Day(-1) if self.is(i, &["hier"]) && self.is_german() => None,
            RelativeDate::Day(days) => {
                Some((WrittenDate::Exact(self.today.saturating_add(days.days())), next))
            }
            RelativeDate::Week(weeks) => {
                let to_monday = i64::from(self.today.weekday().to_monday_zero_offset());
                let monday = self.today.saturating_add((weeks * 7 - to_monday).days());
                Some((WrittenDate::Between(monday, monday.saturating_add(6.days())), next))
            }
            RelativeDate::Weekend => Some(self.weekend(i, next)),
        }
    }

    fn is_german(&self) -> bool {
        let words: Vec<&str> = self.tokens.iter().map(|t| t.raw.as_str()).collect();
        super::detect(&words.join(" ")) == Some("de")
    }

    /// Parses a length of time at `i`, "three weeks", and adds it to today, or subtracts it.
    fn length_from_today(&self, i: usize, sign: i64) -> Option<(Date, usize)> {
        // "In 36 mesi" and "en 24 mois" say how long something takes.
        let is_length = i.checked_sub(1).is_some_and(|at| self.is(at, &["in", "en", "em"]))
            && (!self.is(i, ONE) || self.is(i + 1, &["mese"]));
        let count = self.token_at(i).and_then(|t| {
            super::numbers::digits(&t.norm)
                .or_else(|| super::numbers::word(&t.norm))
                .or_else(|| t.is(ONE).then_some(1.0))
        })?;
        let count = if (0.0..=999.0).contains(&count) { sign * count as i64 } else { return None };
        let date = match () {
            () if self.is(i + 1, DAYS) => self.today.saturating_add(count.days()),
            () if self.is(i + 1, WEEKS) => self.today.saturating_add((count * 7).days()),
            () if self.is(i + 1, MONTH_UNITS) && !is_length => self.today.saturating_add(count.months()),
            () => return None,
        };
        Some((date, i + 2))
    }

    /// The weekend whose words are those from `first` to before `next`.
    fn weekend(&self, first: usize, next: usize) -> (WrittenDate, usize) {
        let beside = |words: &[&str]| {
            let before = (1..=3).filter_map(|back| first.checked_sub(back));
            self.is(next, words) || before.into_iter().any(|at| self.is(at, words))
        };
        let to_saturday = 5 - i64::from(self.today.weekday().to_monday_zero_offset());
        let weeks = match () {
            () if beside(LAST) => -1,
            () if to_saturday <= 0 && beside(COMING) => 1,
            () => 0,
        };
        let begin = self.today.saturating_add((to_saturday + weeks * 7).days());
        (WrittenDate::Between(begin, begin.saturating_add(1.days())), next)
    }

    /// The weekday at `i`: the next one, or the last one if a word beside it says so.
    pub(super) fn nearest_weekday(&self, i: usize, day: Weekday) -> (WrittenDate, usize) {
        let next = i + 1;
        if i.checked_sub(1).is_some_and(|at| self.is(at, LAST)) || self.is(next, LAST) {
            let back = i64::from(self.today.weekday().to_monday_zero_offset() - day.to_monday_zero_offset())
                .rem_euclid(7);
            let date = self.today.saturating_sub(if back == 0 { 7 } else { back }.days());
            return (WrittenDate::Exact(date), next + usize::from(self.is(next, LAST)));
        }
        (WrittenDate::Weekday(day), next + usize::from(self.is(next, COMING)))
    }
}
