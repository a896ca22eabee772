//! The names of months and weekdays, and the words that join and exclude days, in English, Italian, French, German, Spanish and
//! Portuguese, without accents.
//!
//! Grounding reads them, too: a word that is added here changes which arguments of a recorded run have a source.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::civil::Weekday;

/// The names of the months. After the bar: names that are rare, or more often something else.
const MONTHS: [&str; 12] = [
    "january jan gennaio gen genn janvier janv januar enero ene janeiro | jenner",
    "february feb febbraio fevrier fevr februar febrero fevereiro",
    "march mar marzo mars marz mrz marco",
    "april apr aprile avril avr abril abr",
    "may maggio mag mai mayo maio",
    "june jun giugno giu juin juni junio junho",
    "july jul luglio lug juillet juil juli julio julho",
    "august aug agosto ago aout",
    "september sep sept settembre septembre septiembre setembro",
    "october oct ottobre ott octobre oktober okt octubre outubro",
    "november nov novembre noviembre novembro",
    "december dec dicembre dic decembre dezember dez diciembre dezembro",
];

/// The names of the weekdays, as those of [`MONTHS`].
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday lunedi lundi montag lunes | mon mondays", Weekday::Monday),
    ("tuesday martedi mardi dienstag martes | tue tues tuesdays", Weekday::Tuesday),
    ("wednesday mercoledi mercredi mittwoch miercoles | wed wednesdays", Weekday::Wednesday),
    ("thursday giovedi jeudi donnerstag jueves | thu thur thurs thursdays", Weekday::Thursday),
    ("friday venerdi vendredi freitag viernes | fri fridays", Weekday::Friday),
    ("saturday sabato samedi samstag sonnabend sabado | sat saturdays", Weekday::Saturday),
    ("sunday domenica dimanche sonntag domingo | sun sundays", Weekday::Sunday),
];

/// The words for days, in the singular and in the plural; grounding has its own.
pub(crate) const DAYS: &[&str] =
    &["day", "days", "giorno", "giorni", "tag", "tage", "tagen", "jour", "jours", "dia", "dias"];
pub(crate) const WEEKS: &[&str] = &[
    "week", "weeks", "settimana", "settimane", "woche", "wochen", "semaine", "semaines", "semana", "semanas",
];
pub(crate) const WEEK: &[&str] = &["week", "settimana", "woche", "semaine", "semana"];
/// The words for months as lengths of time.
pub(crate) const MONTH_UNITS: &[&str] =
    &["month", "months", "mese", "mesi", "monat", "monate", "monaten", "mois", "mes", "meses"];
pub(crate) const MONTH: &[&str] = &["month", "mese", "monat", "mois", "mes"];
/// The words for the last of several days or weekdays.
pub(crate) const LAST_OF_SEVERAL: &[&str] = &["last", "ultimo", "ultima", "letzter", "letzten", "dernier"];
pub(crate) const MIDNIGHT: &[&str] = &["midnight", "mezzanotte", "minuit", "mitternacht", "medianoche"];
/// Words that join the ends of a range.
pub(crate) const TO: &[&str] = &[
    "al", "all", "alla", "a", "ad", "to", "until", "till", "til", "through", "thru", "fino", "au", "bis",
    "hasta", "ate",
];
/// Words that open a range whose ends are joined by "and".
pub(crate) const BETWEEN: &[&str] = &["between", "tra", "fra", "entre", "zwischen"];
/// Words and signs that join the items of a list of days or numbers.
pub(crate) const LIST_JOINTS: &[&str] = &["e", "ed", "and", "et", "und", "y", "&", "+"];
/// Words that exclude the following day.
pub(crate) const EXCLUDING: &[&str] = &[
    "not", "non", "except", "excepting", "excluding", "tranne", "escluso", "esclusi", "eccetto", "salvo",
    "nicht", "ausser", "sauf", "excepto", "without", "senza", "skipping",
];

/// What a name means, and whether it is a usual one.
type CalendarNames<T> = LazyLock<HashMap<&'static str, (T, bool)>>;

static MONTHS_BY_NAME: CalendarNames<i8> = LazyLock::new(|| by_name(MONTHS.into_iter().zip(1..)));
static WEEKDAYS_BY_NAME: CalendarNames<Weekday> = LazyLock::new(|| by_name(WEEKDAYS.into_iter()));

fn by_name<T: Copy>(lines: impl Iterator<Item = (&'static str, T)>) -> HashMap<&'static str, (T, bool)> {
    let mut names = HashMap::new();
    for (line, meaning) in lines {
        let (usual, rare) = line.split_once(" | ").unwrap_or((line, ""));
        names.extend(usual.split_whitespace().map(|name| (name, (meaning, true))));
        names.extend(rare.split_whitespace().map(|name| (name, (meaning, false))));
    }
    names
}

/// The number of the month that a word names, from 1.
pub(crate) fn month(norm: &str) -> Option<i8> {
    MONTHS_BY_NAME.get(norm).filter(|(_, is_usual)| *is_usual).map(|(month, _)| *month)
}

/// The number of the month that a word may name, from 1.
pub(crate) fn possible_month(norm: &str) -> Option<i8> {
    MONTHS_BY_NAME.get(norm).map(|(month, _)| *month)
}

pub(crate) fn weekday(norm: &str) -> Option<Weekday> {
    WEEKDAYS_BY_NAME.get(norm).filter(|(_, is_usual)| *is_usual).map(|(day, _)| *day)
}

/// The weekday that a word may name.
pub(crate) fn possible_weekday(norm: &str) -> Option<Weekday> {
    WEEKDAYS_BY_NAME.get(norm).map(|(day, _)| *day)
}

/// Returns whether the word is the usual name of a month or a weekday.
pub(crate) fn is_calendar_word(norm: &str) -> bool {
    month(norm).is_some() || weekday(norm).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_names_are_only_possible_ones() {
        assert_eq!((month("giugno"), possible_month("giugno")), (Some(6), Some(6)));
        assert_eq!((month("jenner"), possible_month("jenner")), (None, Some(1)));
        assert_eq!((month("okt"), month("ene"), month("janv")), (Some(10), Some(1), Some(1)));
        assert_eq!(
            (weekday("montag"), possible_weekday("montag")),
            (Some(Weekday::Monday), Some(Weekday::Monday))
        );
        assert_eq!((weekday("sun"), possible_weekday("sun")), (None, Some(Weekday::Sunday)));
        assert_eq!((possible_month("|"), possible_weekday("day")), (None, None));
    }
}
