//! Parses date expressions: lists, exclusions, days derived from others, and unclear expressions.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::calendar_words::{EXCLUDING, LAST_OF_SEVERAL, LIST_JOINTS, WEEK, WEEKS};
use super::date_expression::{DateExpression, DateExpressionKind, is_too_far_apart};
use super::dates::{
    DateRange, DateReader, DateSpan, RangeRole, WrittenDate as Written, day_number, month, weekday,
};
use super::function_words::OR;
use super::numbers;
use super::text::Token;

/// Maximum length of a list of days.
const MAX_LIST: usize = 40;

/// How many days are searched for those that are excluded from them.
const MAX_EXCLUDED_FROM: usize = 400;

/// Finds all date expressions, in order. Tokens in `taken` (times, quotations) are skipped.
pub(crate) fn find_expressions(tokens: &[Token], today: Date, taken: &[bool]) -> Vec<DateExpression> {
    let reader = DateReader { tokens, today, taken };
    let mut out: Vec<DateExpression> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let found = reader
            .read_excluded(i, &out)
            .or_else(|| reader.read_following_day(i, &out))
            .or_else(|| reader.read_unclear(i))
            .or_else(|| reader.read_derived_day(i))
            .or_else(|| reader.read_list(i))
            .or_else(|| reader.read_range(i))
            .or_else(|| {
                reader.single_date(i).map(|(days, next)| (vec![expression_of(days, i, next - 1)], next))
            });
        let Some((mut exprs, mut next)) = found else {
            i += 1;
            continue;
        };
        if let Some(after) = reader.read_trailing_exclusion(next) {
            exclude_last_day(&mut exprs, after - 1);
            next = after;
        }
        if reader.has_ambiguous_numeric_date(i, next) || reader.contradicts_weekday(&exprs) {
            exprs = vec![unclear_expression(i, next - 1)];
        }
        if let (Some(before), Some(first)) = (out.last_mut(), exprs.first_mut())
            && !(before.days.is_empty() || first.days.is_empty())
        {
            first.listed |= reader.joins_list(before.last + 1, first.first, LIST_JOINTS);
            reader.follow_in_list(before, first);
            // Alternatives: it is unclear which of the two is meant.
            if reader.joins_list(before.last + 1, first.first, OR) {
                *before = unclear_expression(before.first, before.last);
                *first = unclear_expression(first.first, first.last);
            }
        }
        out.extend(exprs);
        i = next.max(i + 1);
    }
    out
}

fn expression_of(days: Vec<DateSpan>, first: usize, last: usize) -> DateExpression {
    let said = match days.as_slice() {
        [day] if day.role == RangeRole::Single => DateExpressionKind::Single(day.date),
        [day] => DateExpressionKind::Bound(day.role, day.date),
        [from, .., to] => DateExpressionKind::Range(from.date, to.date),
        [] => DateExpressionKind::Unclear,
    };
    DateExpression { kind: said, days, first, last, listed: false }
}

fn unclear_expression(first: usize, last: usize) -> DateExpression {
    DateExpression { kind: DateExpressionKind::Unclear, days: Vec::new(), first, last, listed: false }
}

/// The first and the last day of the list, range or day that was said last.
fn days_said_last(all: &[DateExpression]) -> Option<(Date, Date)> {
    let end = all.iter().rposition(|expr| !expr.days.is_empty())?;
    let begin = all[..=end].iter().rposition(|expr| !expr.listed && !expr.days.is_empty())?;
    Some((all[begin].days.first()?.date, all[end].days.last()?.date))
}

/// Excludes the last stated day: "17 June excluded".
fn exclude_last_day(exprs: &mut Vec<DateExpression>, last: usize) {
    let Some(expr) = exprs.last_mut() else { return };
    expr.last = last;
    match expr.kind {
        DateExpressionKind::Single(date) => {
            expr.kind = DateExpressionKind::Excluded(date, date);
            expr.days.clear();
        }
        DateExpressionKind::Range(_, to) => {
            let out = DateExpression {
                kind: DateExpressionKind::Excluded(to, to),
                days: Vec::new(),
                first: last,
                last,
                listed: false,
            };
            exprs.push(out);
        }
        _ => {}
    }
}

const LEADS: &[&str] = &[
    "il", "l", "lo", "the", "on", "for", "per", "del", "el", "le", "den", "am", "giorno", "anche", "also",
    "dell",
];
/// Those of them that stand before the number of a day.
const LEADS_OF_DAYS: &[&str] = &["il", "l", "the", "el", "le", "den", "am", "giorno"];
/// Words that exclude the following day, beside [`EXCLUDING`].
const ALSO_EXCLUDING: &[&str] = &[
    "esclusa", "anziche", "minus", "meno", "saltando", "escludendo", "ohne", "ausgenommen", "sans", "hormis",
    "excepte", "sin", "menos", "excluyendo", "barring", "omitting",
];
/// Pairs of words that exclude what follows.
const EXCLUSION_PAIRS: &[(&str, &[&str])] = &[
    ("instead", &["of", "than"]),
    ("rather", &["of", "than"]),
    ("other", &["than"]),
    ("apart", &["from"]),
    ("aside", &["from"]),
    ("leaving", &["out"]),
    ("al", &["posto"]),
    ("a", &["parte"]),
    ("invece", &["di", "del", "dell", "che"]),
];
const OFF: &[&str] = &["off", "frei", "libero", "libre"];
const DAY: &[&str] = &["day", "giorno", "tag", "jour", "dia"];
const THE_DAY: &[&str] = &["the", "il", "al", "am", "dem", "den", "le", "el"];
const BEFORE: &[&str] = &["before", "prima", "precedente", "vor", "avant", "antes"];
const AFTER: &[&str] = &["after", "following", "dopo", "successivo", "nach", "apres", "despues"];
/// Words that refer to an unknown day before, after or near a date.
const VICINITY_WORDS: &[&str] = &[
    "before", "after", "around", "about", "approximately", "roughly", "circa", "near", "intorno", "attorno",
    "verso", "prima", "dopo", "vor", "nach", "avant", "apres", "antes", "despues",
];
/// Words that say which week of a month is meant.
const RANKS: &[&str] = &[
    "first", "second", "third", "fourth", "last", "1st", "2nd", "3rd", "4th", "prima", "seconda", "terza",
    "quarta", "ultima", "prime", "ultime", "erste", "ersten", "zweite", "zweiten", "letzte", "letzten",
    "premiere", "deuxieme", "derniere", "primera", "segunda", "tercera",
];
const WEEK_OF: &[&str] = &[
    "after", "before", "dopo", "prima", "of", "del", "dell", "di", "following", "al", "on", "from", "dal",
    "in", "de", "d", "du", "vom",
];
const WEEKEND_OF: &[&str] = &["of", "del", "dell", "dopo", "after", "prima", "before"];
const MONTH_PARTS: &[&str] =
    &["end", "fine", "mid", "meta", "middle", "beginning", "start", "inizio", "inizi", "early", "late"];

/// One day, by the tokens from `first` to before `next`.
fn single_day(date: Date, first: usize, next: usize) -> ExpressionMatch {
    let last = next - 1;
    let days = vec![DateSpan { first, last, date, role: RangeRole::Single }];
    Some((vec![expression_of(days, first, last)], next))
}

type ExpressionMatch = Option<(Vec<DateExpression>, usize)>;

impl DateReader<'_> {
    /// Whether the tokens in `from..to` are only commas, lead words and the given `words`; before these, also "off", as in "the
    /// 14th off, and the 16th".
    fn joins_list(&self, from: usize, to: usize, words: &[&str]) -> bool {
        let joins = |i: usize| self.is(i, words);
        let comma = |i: usize| self.token_at(i).is_some_and(|t| t.raw == ",");
        let rest = |from: usize| (from..to).any(joins);
        let off = |i: usize| {
            let is_off = self.is(i, OFF) || self.token_at(i).is_some_and(|t| t.raw == ".");
            words == LIST_JOINTS && is_off && rest(i + 1)
        };
        let all = (from..to).all(|i| joins(i) || comma(i) || self.is(i, LEADS) || off(i));
        // A comma joins like "and" but does not separate alternatives.
        let joined = (from..to).any(|i| joins(i) || (words == LIST_JOINTS && comma(i)));
        all && joined && to - from <= 5
    }

    /// Moves a day without a month that follows another one in a list, and would be before it, into the next month: on 25 December,
    /// "the 24th and the 28th" are 24 and 28 January.
    fn follow_in_list(&self, before: &DateExpression, next: &mut DateExpression) {
        let (DateExpressionKind::Single(first), DateExpressionKind::Single(day)) = (&before.kind, &next.kind)
        else {
            return;
        };
        let says_day_alone = (next.first..=next.last).all(|i| {
            self.is(i, LEADS) || self.token_at(i).is_some_and(|t| t.digit() && day_number(&t.norm).is_some())
        });
        let later = day.saturating_add(1.month());
        if next.listed && says_day_alone && day < first && later > *first && later.day() == day.day() {
            next.kind = DateExpressionKind::Single(later);
            next.days.iter_mut().for_each(|span| span.date = later);
        }
    }

    /// Whether an English text has a numeric date that reads differently in Europe and in America.
    fn has_ambiguous_numeric_date(&self, from: usize, to: usize) -> bool {
        let both = |token: &Token| {
            let mut parts = token.norm.split('/').map(|p| p.parse::<i16>().ok());
            let (a, b) = (parts.next().flatten(), parts.next().flatten());
            a.zip(b).is_some_and(|(a, b)| a != b && (1..=12).contains(&a) && (1..=12).contains(&b))
        };
        if !(from..to).filter_map(|i| self.token_at(i)).any(both) {
            return false;
        }
        let words: Vec<&str> = self.tokens.iter().map(|t| t.raw.as_str()).collect();
        super::detect(&words.join(" ")) == Some("en")
    }

    /// Whether a day falls on another weekday than the one before it: "Tuesday 14 December" where the 14th is a Monday.
    fn contradicts_weekday(&self, exprs: &[DateExpression]) -> bool {
        exprs.iter().flat_map(|e| &e.days).any(|day| {
            let said = (day.first..day.last)
                .find_map(|i| Some((i, weekday(&self.token_at(i)?.norm)?)))
                .filter(|(i, _)| (i + 1..=day.last).any(|k| self.token_at(k).is_some_and(Token::digit)));
            said.is_some_and(|(_, weekday)| weekday != day.date.weekday())
        })
    }

    fn skip_leads(&self, mut i: usize) -> usize {
        let mut steps = 0;
        while steps < 3 && self.is(i, LEADS) {
            i += 1;
            steps += 1;
        }
        i
    }

    /// Parses an exclusion: "not 16", "tranne il 16", "except from 16 to 18 June", "instead of 16 June".
    fn read_excluded(&self, i: usize, before: &[DateExpression]) -> ExpressionMatch {
        let is_pair = |(first, second): &(&str, &[&str])| self.is(i, &[*first]) && self.is(i + 1, second);
        let instead = EXCLUSION_PAIRS.iter().any(is_pair);
        if !(self.is(i, EXCLUDING) || self.is(i, ALSO_EXCLUDING) || instead) {
            return None;
        }
        let at = self.skip_leads(i + if instead { 2 } else { 1 });
        let known = days_said_last(before);
        let mut exprs = Vec::new();
        let mut at = at;
        while let Some((excluded, next)) = self.read_excluded_days(at, known) {
            let first = if exprs.is_empty() { i } else { at };
            exprs.extend(excluded.into_iter().map(|(from, to)| DateExpression {
                kind: DateExpressionKind::Excluded(from, to),
                ..unclear_expression(first, next - 1)
            }));
            let comma = self.token_at(next).is_some_and(|t| t.raw == ",");
            if exprs.len() >= MAX_LIST || !(comma || self.is(next, LIST_JOINTS) || self.is(next, OR)) {
                break;
            }
            at = self.skip_leads(next + 1);
        }
        let next = exprs.last()?.last + 1;
        Some((exprs, next))
    }

    /// Parses an excluded day or range, as first and last days. A weekday, or a day without a month, is that of the `known` days.
    fn read_excluded_days(
        &self,
        at: usize,
        known: Option<(Date, Date)>,
    ) -> Option<(Vec<(Date, Date)>, usize)> {
        if let Some((exprs, next)) = self.read_range(at)
            && let [DateExpression { kind: DateExpressionKind::Range(from, to), .. }] = exprs.as_slice()
        {
            return Some((vec![(*from, *to)], next));
        }
        // "Not the 14th but the 15th", "non il 14 ma il 15".
        let is_led = at.checked_sub(1).is_some_and(|before| self.is(before, LEADS_OF_DAYS));
        let (said, next) = self.date_at(at, (known.is_some() || is_led) && !self.is_counted(at))?;
        let is_said = |day: &Date| match said {
            Written::Parts { day: number, month: None, .. } => day.day() == number,
            Written::Weekday(weekday) => day.weekday() == weekday,
            _ => false,
        };
        let days = known.into_iter().flat_map(|(from, to)| {
            from.series(1.day()).take_while(move |day| *day <= to).take(MAX_EXCLUDED_FROM)
        });
        let mut dates: Vec<Date> = days.filter(is_said).collect();
        if dates.is_empty() {
            dates.push(match (said, known) {
                (Written::Parts { day, month: None, year: None }, Some((_, last))) => {
                    Date::new(last.year(), last.month(), day).ok()?
                }
                (Written::Between(from, to), _) => return Some((vec![(from, to)], next)),
                _ => self.resolve(said, self.today, false)?,
            });
        }
        Some((dates.into_iter().map(|date| (date, date)).collect(), next))
    }

    /// Matches an exclusion word after a date: "17 June excluded", "il 17 escluso".
    fn read_trailing_exclusion(&self, i: usize) -> Option<usize> {
        let ends = self.tokens.get(i + 1).is_none_or(|t| !t.word || super::lexicon::is_stop_word(&t.norm));
        (self.is(i, &["excluded", "exclusive", "escluso", "esclusa"])
            && ends
            && self.date_at(self.skip_leads(i + 1), false).is_none())
        .then_some(i + 1)
    }

    /// Parses the day after the previous date: "tomorrow and the day after", "il 15 giugno e il giorno dopo".
    fn read_following_day(&self, i: usize, before: &[DateExpression]) -> ExpressionMatch {
        let at = self.skip_leads_before_day(i);
        let next = at + 2;
        let said = self.is(at, &["day", "giorno"])
            && self.is(at + 1, &["after", "dopo", "successivo", "seguente"])
            || self.is(at, &["following"]) && self.is(at + 1, &["day"]);
        if !said || self.date_at(self.skip_leads(next), true).is_some() {
            return None;
        }
        single_day(before.last()?.days.last()?.date.tomorrow().ok()?, i, next)
    }

    fn skip_leads_before_day(&self, i: usize) -> usize {
        (i..i + 2).find(|at| !self.is(*at, &["the", "il", "on", "anche", "also"])).unwrap_or(i + 2)
    }

    /// Parses an expression whose days are unclear.
    fn read_unclear(&self, i: usize) -> ExpressionMatch {
        let next = self
            .read_relative_week(i)
            .or_else(|| self.read_part_of_month(i))
            .or_else(|| self.read_weekday_after_next(i))
            .or_else(|| self.around_holiday(i));
        next.map(|next| (vec![unclear_expression(i, next - 1)], next)).or_else(|| self.read_side_of_day(i))
    }

    /// The index after the reference date at `at`.
    fn reference_date_end(&self, at: usize) -> Option<usize> {
        let at = self.skip_leads(at);
        let bare = self.is(at.wrapping_sub(1), &["il", "the", "l", "del", "el"]) && !self.is_counted(at);
        self.date_at(at, bare).map(|found| found.1)
    }

    /// Matches a week relative to a date: "the week after 15 June", "la settimana del 15 giugno"; not "the
    /// week after".
    fn read_relative_week(&self, i: usize) -> Option<usize> {
        let at = if self.is(i, &["the", "la", "in", "nella", "during"]) { i + 1 } else { i };
        let at = if self.is(at, &["the", "la"]) { at + 1 } else { at };
        if self.is(at, &["weekend", "week-end"]) {
            return self.is(at + 1, WEEKEND_OF).then(|| self.reference_date_end(at + 2)).flatten();
        }
        // "The first week of January", which people count in different ways.
        if self.is(at, RANKS) && self.is(at + 1, WEEKS) {
            let of = at + 2 + usize::from(self.is(at + 2, WEEK_OF));
            let of = of + usize::from(self.is(of, &["the"]));
            return self.token_at(of).is_some_and(|t| month(&t.norm).is_some()).then_some(of + 1);
        }
        if !self.is(at, WEEK) {
            return None;
        }
        let behind = self.is(at + 1, &["successiva", "precedente", "starting", "beginning"]);
        let of = at + if behind { 2 } else { 1 };
        if !(behind || self.is(of, WEEK_OF)) {
            return None;
        }
        self.reference_date_end(of + usize::from(self.is(of, WEEK_OF)))
            .or_else(|| self.reference_date_end(of))
    }

    /// Matches "the Monday after next" and "Monday week", which people count in different ways.
    fn read_weekday_after_next(&self, i: usize) -> Option<usize> {
        let at = if self.is(i, &["the", "on"]) { i + 1 } else { i };
        let at = if self.is(at, &["the"]) { at + 1 } else { at };
        let day = self.token_at(at).is_some_and(|t| weekday(&t.norm).is_some());
        let is_week = self.is(at + 1, &["week"]) && self.token_at(at + 2).is_none_or(|t| !t.digit());
        match () {
            () if day && self.is(at + 1, &["after"]) && self.is(at + 2, &["next"]) => Some(at + 3),
            () => (day && is_week).then_some(at + 2),
        }
    }

    /// Matches a part of a month: "the end of June", "metà giugno", "fine mese".
    fn read_part_of_month(&self, i: usize) -> Option<usize> {
        if !self.is(i, MONTH_PARTS) {
            return None;
        }
        let of = i + 1 + usize::from(self.is(i + 1, &["of", "di", "del", "-", "to"]));
        let of = of + usize::from(self.is(of, &["the"]));
        let month = self.token_at(of).is_some_and(|t| month(&t.norm).is_some() || t.is(&["mese", "month"]));
        let day = self.token_at(of + 1).is_some_and(Token::digit);
        (month && !day).then_some(of + 1)
    }

    /// Parses an unknown day before, after or near a date: "before 15 June", "dopo il 15", "around the 15th".
    fn read_side_of_day(&self, i: usize) -> ExpressionMatch {
        // "Après demain" and "vor drei Tagen" are single days.
        if !self.is(i, VICINITY_WORDS) || self.relative_date(i).is_some() {
            return None;
        }
        let joined = self.is(i + 1, &["di", "del", "dell", "a", "al", "to"]);
        // "Prima il 15 giugno, poi …" expresses an order; "what about Monday?" means that day.
        if (self.is(i, &["prima"]) && !joined)
            || (self.is(i, &["about"]) && !self.token_at(self.skip_leads(i + 1)).is_some_and(Token::digit))
        {
            return None;
        }
        let of = i + 1 + usize::from(joined);
        let next = self.reference_date_end(of)?;
        let side = match () {
            () if self.is(i, &["before", "prima", "vor", "avant", "antes"]) => Some(RangeRole::To),
            () if self.is(i, &["after", "dopo", "nach", "apres", "despues"]) => Some(RangeRole::From),
            () => None,
        };
        let day = self
            .date_at(self.skip_leads(of), true)
            .and_then(|(said, _)| self.resolve(said, self.today, false));
        let kind = match (side, day) {
            (Some(role), Some(day)) => DateExpressionKind::BeforeOrAfter(role, day),
            _ => DateExpressionKind::Unclear,
        };
        Some((vec![DateExpression { kind, ..unclear_expression(i, next - 1) }], next))
    }

    /// Parses a day derived from another date: "the first Monday of March", "the Monday after 15 June", "two
    /// days before 15 June", "Monday next week".
    fn read_derived_day(&self, i: usize) -> ExpressionMatch {
        let at = if self.is(i, &["the", "il", "l", "on", "lo", "le", "la"]) { i + 1 } else { i };
        let at = if self.is(at, &["the", "il"]) { at + 1 } else { at };
        let single = |date, next| single_day(date, i, next);
        if let Some((date, next)) = self.nth_weekday(at).or_else(|| self.first_or_last_of_month(at)) {
            return single(date, next);
        }
        if let Some(day) = self.token_at(at).and_then(|t| weekday(&t.norm)) {
            let (week, next) = self.match_next_week(at + 1);
            if week {
                let monday = self.resolve(Written::Weekday(Weekday::Monday), self.today, true)?;
                return single(monday.saturating_add(i64::from(day.to_monday_zero_offset()).days()), next);
            }
            let (after, date, next) = self.read_side(at + 1, true)?;
            return single(adjacent_weekday(date, day, after), next);
        }
        // "Le lendemain de Noël", "la veille du 15 juin".
        if self.is(at, &["lendemain", "veille"]) && self.is(at + 1, &["de", "du", "d"]) {
            let of = self.skip_leads(at + 2);
            let (said, next) = self.date_at(of, true).filter(|_| !self.is_counted(of))?;
            let date = self.resolve(said, self.today, false)?;
            let is_after = self.is(at, &["lendemain"]);
            return single(if is_after { date.tomorrow() } else { date.yesterday() }.ok()?, next);
        }
        // Not "some day before 15 June".
        if self.is(at, DAY) && self.is(at.wrapping_sub(1), THE_DAY) {
            let (after, date, next) = self.read_side(at + 1, true)?;
            return single(if after { date.tomorrow() } else { date.yesterday() }.ok()?, next);
        }
        let count = self.token_at(at).and_then(|t| {
            numbers::digits(&t.norm)
                .or_else(|| numbers::word(&t.norm))
                .or_else(|| t.is(&["a", "un", "una"]).then_some(1.0))
        })?;
        let unit = match () {
            () if self.is(at + 1, &["day", "days", "giorno", "giorni"]) => 1,
            () if self.is(at + 1, &["week", "weeks", "settimana", "settimane"]) => 7,
            () => return None,
        };
        let (after, date, next) = self.read_side(at + 2, false)?;
        // "Two days before Christmas off" may be two days, and "the two days before Christmas" are.
        let are_several = count > 1.0 && self.is(at.wrapping_sub(1), &["the", "i", "gli", "le"]);
        if !(1.0..=365.0).contains(&count) || are_several || self.is(next, &["off"]) {
            return None;
        }
        let days = (count as i64 * unit).days();
        single(if after { date.saturating_add(days) } else { date.saturating_sub(days) }, next)
    }

    /// Parses "after 15 June", "prima di Natale": whether after, the date, and the index behind it. `bare`: a number alone
    /// may be a day.
    fn read_side(&self, at: usize, bare: bool) -> Option<(bool, Date, usize)> {
        let after = self.is(at, AFTER);
        if !after && !self.is(at, BEFORE) {
            return None;
        }
        let of = self.skip_leads(at + 1 + usize::from(self.is(at + 1, &["di", "del", "al", "de"])));
        let (said, next) = self.date_at(of, bare).filter(|_| !self.is_counted(of))?;
        Some((after, self.resolve(said, self.today, false)?, next))
    }

    /// Parses the first or the last day of a month: "the last day of December", "il primo giorno di marzo".
    fn first_or_last_of_month(&self, at: usize) -> Option<(Date, usize)> {
        let is_last = self.is(at, LAST_OF_SEVERAL);
        let is_first = self.is(at, &["first", "primo", "erster", "ersten", "premier", "primer"]);
        let is_day = self.is(at + 1, &["day", "giorno", "tag", "jour", "dia"]);
        let of = at + 2 + usize::from(self.is(at + 2, &["of", "in", "di", "del", "de", "im", "des"]));
        let month = self.token_at(of).and_then(|t| month(&t.norm))?;
        let (year, next) = self.year(of + 1);
        let first = self.resolve(Written::Parts { day: 1, month: Some(month), year }, self.today, false)?;
        let this = self.today.first_of_month();
        match () {
            () if is_day && is_first => Some((first, next)),
            // The present month is not over yet.
            () if is_day && is_last && year.is_none() && this.month() == month => {
                Some((this.last_of_month(), next))
            }
            () if is_day && is_last => Some((first.last_of_month(), next)),
            () => None,
        }
    }

    /// Parses the n-th weekday of a month: "first Monday of March", "ultimo venerdì del mese".
    fn nth_weekday(&self, at: usize) -> Option<(Date, usize)> {
        let rank: i8 = match self.token_at(at)?.norm.as_str() {
            "first" | "primo" | "prima" | "1st" => 1,
            "second" | "secondo" | "seconda" | "2nd" => 2,
            "third" | "terzo" | "terza" | "3rd" => 3,
            "fourth" | "quarto" | "quarta" | "4th" => 4,
            "last" | "ultimo" | "ultima" => -1,
            _ => return None,
        };
        let day = self.token_at(at + 1).and_then(|t| weekday(&t.norm))?;
        let of = at + 2 + usize::from(self.is(at + 2, &["of", "in", "di", "del", "a", "de"]));
        let of = of + usize::from(self.is(of, &["the"]));
        let within = |first: Date| first.nth_weekday_of_month(rank, day).ok();
        if self.is(of, &["month", "mese"]) && self.is(of - 1, &["the", "del"]) {
            let this = self.today.first_of_month();
            let next = if self.is(of + 1, &["prossimo"]) { this.saturating_add(1.months()) } else { this };
            return within(next).filter(|d| *d >= self.today).map(|d| (d, of + 1));
        }
        let month = self.token_at(of).and_then(|t| month(&t.norm))?;
        let (year, next) = self.year(of + 1);
        let years = year.map_or(vec![self.today.year(), self.today.year().saturating_add(1)], |y| vec![y]);
        let all = years.into_iter().filter_map(|y| within(Date::new(y, month, 1).ok()?));
        all.into_iter().find(|d| year.is_some() || *d >= self.today).map(|d| (d, next))
    }

    /// Whether "next week" or "della prossima settimana" follows a weekday, and the index after it.
    fn match_next_week(&self, i: usize) -> (bool, usize) {
        let at = i + usize::from(self.is(i, &["of", "della", "nella", "di"]));
        let front = self.is(at, &["next", "prossima"]) && self.is(at + 1, &["week", "settimana"]);
        let back = self.is(at, &["settimana"]) && self.is(at + 1, &["prossima"]);
        (front || back, at + 2)
    }

    /// Parses a range; contradictory dates are unclear.
    fn read_range(&self, i: usize) -> ExpressionMatch {
        match self.range(i)? {
            DateRange::Days(days, next) => Some((vec![expression_of(days, i, next - 1)], next)),
            DateRange::Contradictory(next) => Some((vec![unclear_expression(i, next - 1)], next)),
        }
    }

    /// Parses a list of days: "15, 16 and 18 June", "June 15, 16 and 18", "il 3 e il 4 agosto", "15-17 and 20
    /// June".
    fn read_list(&self, i: usize) -> ExpressionMatch {
        let start = self.skip_leads(i);
        let ahead = self.token_at(start).and_then(|t| month(&t.norm));
        let mut parts: Vec<DayListItem> = Vec::new();
        let mut at = if ahead.is_some() { start + 1 } else { start };
        let (mut and, mut or) = (false, false);
        while parts.len() < MAX_LIST {
            let Some(part) = self.read_list_item(self.skip_leads(at)) else { break };
            if part.month.is_none() && (self.is_counted(part.next - 1) || self.is_clock_unit(part.next)) {
                break;
            }
            let next = part.next;
            parts.push(part);
            let comma = self.token_at(next).is_some_and(|t| t.raw == ",");
            let either = self.is(next + usize::from(comma), OR);
            let joins = self.is(next + usize::from(comma), LIST_JOINTS) || either;
            if !(comma || joins) {
                break;
            }
            and |= joins;
            or |= either;
            at = next + usize::from(comma) + usize::from(joins);
        }
        let all_own = parts.iter().all(|p| p.month.is_some());
        if parts.len() < 2 || !(and || all_own) {
            return None;
        }
        let last = parts.iter().rev().find_map(|p| p.month.map(|m| (m, p.year)));
        let mut shared = ahead.map(|m| (m, parts.iter().rev().find_map(|p| p.year))).or(last)?;
        // A day without a month takes the next month named, otherwise the last one.
        for part in parts.iter_mut().rev() {
            match part.month {
                Some(month) => shared = (month, part.year.or(shared.1)),
                None => (part.month, part.year) = (Some(shared.0), part.year.or(shared.1)),
            }
        }
        let next = parts.last()?.next;
        if or { Some((vec![unclear_expression(i, next - 1)], next)) } else { self.resolve_list(&parts, i) }
    }

    fn resolve_list(&self, parts: &[DayListItem], i: usize) -> ExpressionMatch {
        let mut out: Vec<DateExpression> = Vec::new();
        let next = parts.last()?.next;
        for part in parts {
            let date = |day| {
                let said = Written::Parts { day, month: part.month, year: part.year };
                self.resolve(said, self.today, false)
            };
            let (from, to) = (date(part.from)?, date(part.to)?);
            if to < from {
                return Some((vec![unclear_expression(i, next - 1)], next));
            }
            let first = if out.is_empty() { i } else { part.first };
            let day = |date, role| DateSpan { first, last: part.next - 1, date, role };
            let days = if from == to {
                vec![day(from, RangeRole::Single)]
            } else {
                vec![day(from, RangeRole::From), day(to, RangeRole::To)]
            };
            out.push(DateExpression { listed: !out.is_empty(), ..expression_of(days, first, part.next - 1) });
        }
        let dates: Vec<Date> = out.iter().filter_map(|e| e.days.first()).map(|d| d.date).collect();
        let (min, max) = (dates.iter().min()?, dates.iter().max()?);
        // Some days of this month are past, so the list would mix this year and the next.
        if parts.iter().any(|p| p.year.is_none())
            && is_too_far_apart(*min, *max)
            && parts.iter().all(|p| p.month == parts[0].month)
        {
            return Some((vec![unclear_expression(i, next - 1)], next));
        }
        Some((out, next))
    }

    /// Parses one item of a list: a day or a dashed range, optionally with its month.
    fn read_list_item(&self, at: usize) -> Option<DayListItem> {
        let token = self.token_at(at)?;
        let month_first = month(&token.norm).filter(|_| self.token_at(at + 1).is_some_and(Token::digit));
        let day_at = if month_first.is_some() { at + 1 } else { at };
        let norm = self.token_at(day_at)?.norm.as_str();
        let (from, to) = match norm.split_once('-') {
            Some((a, b)) => (day_number(a)?, day_number(b)?),
            None => {
                let word = |w: &str| numbers::word(w).filter(|v| *v >= 2.0).map(|v| v as i8);
                let day = day_number(norm).or_else(|| word(norm)).filter(|d| (1..=31).contains(d))?;
                (day, day)
            }
        };
        let mut next = day_at + 1;
        let mut said = month_first;
        let of = next + usize::from(self.is(next, &["di", "of", "de", "."]));
        if said.is_none()
            && let Some(month) = self.token_at(of).and_then(|t| month(&t.norm))
        {
            said = Some(month);
            next = of + 1;
        } else if self.is(next, &["."]) && (self.is(next + 1, LIST_JOINTS) || self.is(next + 1, OR)) {
            // "Am 3. und 4. März".
            next += 1;
        }
        let (year, next) = if said.is_some() { self.year(next) } else { (None, next) };
        Some(DayListItem { first: at, next, from, to, month: said, year })
    }

    fn is_clock_unit(&self, i: usize) -> bool {
        self.is(i, &["am", "pm", "oclock", "ore", "uhr"])
            || self.token_at(i).is_some_and(|t| matches!(t.raw.as_str(), "%" | "€" | ":"))
    }
}

/// One item of a list; its month may be stated elsewhere.
struct DayListItem {
    first: usize,
    next: usize,
    from: i8,
    to: i8,
    month: Option<i8>,
    year: Option<i16>,
}

/// The next such weekday after a date, or the last one before it.
fn adjacent_weekday(date: Date, day: Weekday, after: bool) -> Date {
    let ahead =
        i64::from((day.to_monday_zero_offset() - date.weekday().to_monday_zero_offset()).rem_euclid(7));
    if after {
        date.saturating_add(if ahead == 0 { 7 } else { ahead }.days())
    } else {
        date.saturating_sub((7 - ahead).days())
    }
}
