//! Calendar words in English, Italian, French, German, Spanish and Portuguese, without accents.

use jiff::ToSpan;
use jiff::civil::Date;

use crate::language::{calendar_words, holidays};

/// Months whose names have other meanings: they need an adjacent day.
const OTHER_WORDS: &[&str] = &[
    "may", "mai", "mars", "ago", "jan", "mag", "march", "sep", "dec", "jun", "dic", "august", "marco", "gen",
    "mar", "abr",
];

/// Short names of months that are read since revision 16 of the rules: runs before asked the user about days with them.
const SHORT_NAMES: &[&str] = &["gen", "genn", "janv", "ene", "fevr", "mar", "avr", "abr", "juil"];

/// The month that a word names, from 1, and whether the word has another meaning; `short`: also by one of the [`SHORT_NAMES`].
pub(super) fn month(norm: &str, short: bool) -> Option<(i8, bool)> {
    let month = calendar_words::possible_month(norm).filter(|_| short || !SHORT_NAMES.contains(&norm))?;
    Some((month, OTHER_WORDS.contains(&norm)))
}

/// The days of a holiday: in the year of `today`, before and after it. `later`: also by names that are read since revision 17 of
/// the rules.
pub(super) fn holiday(
    norm: &str,
    before: Option<&str>,
    next: Option<&str>,
    today: Date,
    later: bool,
) -> Vec<Date> {
    let years = [-1, 0, 1].map(|ahead: i16| today.year().saturating_add(ahead));
    if let Some(days) = holidays::days_after_easter(norm, next, later) {
        return years.iter().filter_map(|y| holidays::easter(*y)?.checked_add(days.days()).ok()).collect();
    }
    let eve = next == Some("eve");
    let fixed = match (norm, before, next) {
        ("year" | "years", Some("new"), _) => Some((1, 1)),
        ("an", Some("nouvel"), _) | ("nuevo", Some("ano"), _) if later => Some((1, 1)),
        ("silvestro", Some("san"), _) | ("sylvestre", Some("saint"), _) if later => Some((12, 31)),
        ("eve", _, _) if before == Some("s") => Some((12, 31)),
        ("boxing", _, Some("day")) | ("stefano", Some("santo"), _) => Some((12, 26)),
        _ => holidays::fixed(norm, later),
    };
    let Some((month, day)) = fixed else { return Vec::new() };
    let all = years.iter().filter_map(|y| Date::new(*y, month, day).ok());
    all.map(|date| if eve { date.saturating_sub(1.days()) } else { date }).collect()
}

/// The offset in days from today that a word means.
pub(super) fn offset(norm: &str) -> Option<i64> {
    Some(match norm {
        "today" | "tonight" | "oggi" | "stasera" | "stanotte" | "stamattina" | "stamani" | "heute"
        | "hoy" | "hui" | "hoje" | "now" | "adesso" | "subito" | "immediately" | "asap" | "jetzt"
        | "maintenant" | "ahora" => 0,
        "tomorrow" | "domani" | "demain" | "morgen" | "manana" | "amanha" | "tmrw" | "tomorow" => 1,
        "dopodomani" | "ubermorgen" => 2,
        "yesterday" | "ieri" | "hier" | "gestern" | "ayer" | "ontem" => -1,
        _ => return None,
    })
}

/// Words between the days of a list or range.
pub(super) const LINKS: &[&str] = &[
    "and", "e", "ed", "et", "und", "y", "o", "or", "od", "oder", "ou", "to", "until", "till", "til",
    "through", "thru", "up", "al", "all", "alla", "a", "ad", "fino", "au", "bis", "hasta", "-", "/", ",",
    "&", "the", "il", "lo", "l", "'", "le", "la", "of", "di", "de", "del", "dell", "d", "dal", "dall", "on",
    "also", "anche", "poi", "then", "day", "giorno", "from", "between", "tra", "fra", "zum", "zu", "dem",
    "den", "der", "am", "el", ".", "as", "well", "year", "anno", "s", "in", "plus", "not", "non", "no",
    "but", "ma", "except", "tranne",
];

/// Words that make the following number a day.
pub(super) const CUES: &[&str] = &[
    "the", "il", "l", "lo", "giorno", "day", "on", "dal", "dall", "al", "all", "del", "dell", "nel", "from",
    "to", "until", "till", "through", "by", "el", "le", "am", "den", "dem", "vom", "zum", "bis", "du", "au",
    "between", "tra", "fra", "-", "and", "e", "ed", "or", "o", "before", "after", "prima", "dopo", "entro",
    "fino", "date", "i", "gli", "un",
];

/// Words that refer to the past, beside [`LAST`].
pub(super) const PAST: &[&str] = &[
    "ago", "yesterday", "was", "were", "spent", "paid", "had", "took", "went", "bought", "did", "scorsi",
    "fa", "speso", "ieri", "pagato", "comprato", "stato", "stata", "ho", "abbiamo", "already", "gia",
];

/// Words for the next in time.
pub(super) const NEXT: &[&str] = &[
    "next", "coming", "following", "prossimo", "prossima", "prossimi", "prossime", "successivo",
    "successiva", "seguente", "nachste", "nachsten", "nachster", "prochain", "prochaine", "proximo",
    "proxima", "entrante",
];

/// Words for the last in time.
pub(super) const LAST: &[&str] = &[
    "last", "previous", "past", "scorso", "scorsa", "passato", "passata", "letzte", "letzten", "dernier",
    "derniere", "pasado", "pasada",
];

/// Words for the current one.
pub(super) const THIS: &[&str] = &[
    "this", "current", "questo", "questa", "corrente", "diese", "dieser", "diesen", "diesem", "ce", "cette",
    "este", "esta",
];

pub(super) const WEEK: &[&str] =
    &["week", "weeks", "settimana", "settimane", "woche", "semaine", "semana", "workweek"];

/// Words for after something in time.
pub(super) const AFTER: &[&str] = &[
    "after", "following", "dopo", "successiva", "successivo", "seguente", "later", "nach", "apres",
    "despues", "prossima",
];

/// Words for before something in time.
pub(super) const BEFORE: &[&str] =
    &["before", "prior", "preceding", "prima", "precedente", "earlier", "vor", "avant", "antes"];
