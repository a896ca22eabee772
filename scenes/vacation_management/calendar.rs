//! Public holidays and working days. Pure.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::Date;

use proscenium::tools::ToolError;

/// Years whose holidays are known: those since the calendar took its present form.
pub const YEARS: std::ops::RangeInclusive<i16> = 2001..=2199;

/// The fixed Italian public holidays: month, day, first year, key of the name.
const ITALIAN: [(i8, i8, i16, &str); 11] = [
    (1, 1, 2001, "new_year"),
    (1, 6, 2001, "epiphany"),
    (4, 25, 2001, "liberation"),
    (5, 1, 2001, "labour"),
    (6, 2, 2001, "republic"),
    (8, 15, 2001, "assumption"),
    // Law 151 of 8 October 2025.
    (10, 4, 2026, "saint_francis"),
    (11, 1, 2001, "all_saints"),
    (12, 8, 2001, "immaculate"),
    (12, 25, 2001, "christmas"),
    (12, 26, 2001, "saint_stephen"),
];

/// Whose public holidays count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calendar {
    /// Italy's, without the patron saints of towns.
    Italy,
}

/// A public holiday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holiday {
    /// When.
    pub date: Date,
    /// The key of its name in `words.toml`.
    pub key: &'static str,
}

impl Calendar {
    /// The calendar called `name` in the settings. Fails with `vacation.settings` for all but `IT`.
    pub fn named(name: &str) -> Result<Self, ToolError> {
        if name.eq_ignore_ascii_case("IT") {
            return Ok(Self::Italy);
        }
        Err(ToolError::failed(
            "vacation.settings",
            format!(
                "`scenes.settings.VacationManagement.holidays` is {name:?}: only the Italian calendar is \
                 implemented, write \"IT\""
            ),
        ))
    }

    /// The holidays of a year, in order.
    pub fn holidays(self, year: i16) -> Vec<Holiday> {
        let Self::Italy = self;
        let fixed =
            ITALIAN.iter().filter(|(_, _, since, _)| year >= *since).filter_map(|&(month, day, _, key)| {
                Some(Holiday { date: Date::new(year, month, day).ok()?, key })
            });
        let easter = easter(year);
        let movable = easter.map(|date| Holiday { date, key: "easter" }).into_iter().chain(
            easter.and_then(|date| date.tomorrow().ok()).map(|date| Holiday { date, key: "easter_monday" }),
        );
        let mut all: Vec<Holiday> = fixed.chain(movable).collect();
        all.sort_unstable();
        all
    }

    /// The working days from `from` to `to`, both included, by year; years without one are absent.
    pub fn working_days(self, from: Date, to: Date) -> BTreeMap<i16, u32> {
        let mut holidays: BTreeMap<i16, Vec<Holiday>> = BTreeMap::new();
        let mut days = BTreeMap::new();
        for day in from.series(1.day()).take_while(|day| *day <= to) {
            let of_year = holidays.entry(day.year()).or_insert_with(|| self.holidays(day.year()));
            if !is_weekend(day) && !of_year.iter().any(|holiday| holiday.date == day) {
                *days.entry(day.year()).or_insert(0) += 1;
            }
        }
        days
    }
}

/// Whether it is a Saturday or a Sunday.
pub fn is_weekend(day: Date) -> bool {
    day.weekday().to_monday_one_offset() > 5
}

/// Easter Sunday of a Gregorian year, after Meeus: the Sunday after the first full moon of spring.
fn easter(year: i16) -> Option<Date> {
    let y = i32::from(year);
    let (golden, century, of_century) = (y % 19, y / 100, y % 100);
    let drift = (century - (century + 8) / 25 + 1) / 3;
    let moon = (19 * golden + century - century / 4 - drift + 15) % 30;
    let sunday = (32 + 2 * (century % 4) + 2 * (of_century / 4) - moon - of_century % 4) % 7;
    let late = (golden + 11 * moon + 22 * sunday) / 451;
    let from_march = moon + sunday - 7 * late + 114;
    let (month, day) = (from_march / 31, from_march % 31 + 1);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn working(from: Date, to: Date) -> u32 {
        Calendar::Italy.working_days(from, to).values().sum()
    }

    #[test]
    fn easter_falls_where_the_almanac_has_it() {
        let known = [
            date(2001, 4, 15),
            date(2008, 3, 23),
            date(2011, 4, 24),
            date(2024, 3, 31),
            date(2025, 4, 20),
            date(2026, 4, 5),
            date(2027, 3, 28),
            date(2038, 4, 25),
            date(2049, 4, 18),
            date(2100, 3, 28),
        ];
        for day in known {
            assert_eq!(easter(day.year()), Some(day));
        }
        for year in YEARS {
            assert_eq!(easter(year).unwrap().weekday(), jiff::civil::Weekday::Sunday, "{year}");
        }
    }

    #[test]
    fn the_italian_year_has_easter_monday_and_since_2026_saint_francis() {
        let of = |year| Calendar::Italy.holidays(year);
        assert_eq!(of(2025).len(), 12);
        assert_eq!(of(2026).len(), 13);
        assert!(of(2026).contains(&Holiday { date: date(2026, 4, 6), key: "easter_monday" }));
        assert!(of(2026).contains(&Holiday { date: date(2026, 6, 2), key: "republic" }));
        assert!(of(2027).contains(&Holiday { date: date(2027, 10, 4), key: "saint_francis" }));
        assert!(of(2026).is_sorted());
    }

    #[test]
    fn working_days_leave_out_weekends_and_holidays() {
        assert_eq!(working(date(2026, 6, 15), date(2026, 6, 17)), 3);
        assert_eq!(working(date(2026, 6, 15), date(2026, 6, 19)), 5);
        assert_eq!(working(date(2026, 6, 10), date(2026, 6, 20)), 8);
        assert_eq!(working(date(2026, 6, 1), date(2026, 6, 5)), 4);
        assert_eq!(working(date(2026, 6, 2), date(2026, 6, 2)), 0);
        assert_eq!(working(date(2027, 3, 27), date(2027, 3, 29)), 0);
        assert_eq!(
            Calendar::Italy.working_days(date(2026, 12, 28), date(2027, 1, 8)),
            BTreeMap::from([(2026, 4), (2027, 4)])
        );
    }

    #[test]
    fn another_calendar_is_an_error_that_says_which_there_is() {
        assert_eq!(Calendar::named("it").unwrap(), Calendar::Italy);
        let error = Calendar::named("FR").unwrap_err();
        assert_eq!(error.code, "vacation.settings");
        assert!(error.message.contains("\"FR\"") && error.message.contains("\"IT\""), "{error}");
    }
}
