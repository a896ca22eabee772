//! What a text speaks of besides words: days, times, numbers and quoted passages, with their places.

use std::cell::RefCell;
use std::rc::Rc;

use jiff::civil::Date;

use super::dates::{self, Day, RangeRole};
use super::dayexpr::{DayExpr, Expr};
use super::dayreader;
use super::numbers::{self, Number};
use super::text::{self, Token, TokenCache};
use super::times::{self, Hour};

/// The days, times, numbers and quotations of a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Entities {
    /// Days, in order.
    pub days: Vec<Day>,
    /// What was said of days, in order: those of `days`, days left out, and what is not clear.
    pub said: Vec<Expr>,
    /// Times, in order.
    pub hours: Vec<Hour>,
    /// Numbers that are no part of a day or a time.
    pub numbers: Vec<Number>,
    /// First and last token inside quotation marks.
    pub quotes: Vec<(usize, usize)>,
    /// By token: whether it is part of a day or a time.
    pub taken: Vec<bool>,
    /// By token: whether it is inside quotation marks.
    pub quoted: Vec<bool>,
}

thread_local! {
    static READ: RefCell<TokenCache<Date, Entities>> = RefCell::default();
}

impl Entities {
    /// Everything found in a text, as of a day.
    pub fn within(text: &str, today: Date) -> Rc<Self> {
        let text = text::cut(text);
        if let Some(known) = READ.with(|memory| memory.borrow().get(today, text)) {
            return known;
        }
        let found = Rc::new(Self::of(&text::tokens(text), today));
        READ.with(|memory| memory.borrow_mut().put(today, text, &found));
        found
    }

    /// Whether days were spoken of that nobody can tell for certain.
    pub fn unclear_days(&self) -> bool {
        self.said.iter().any(|expr| matches!(expr.said, DayExpr::Unclear | DayExpr::Beside(..)))
    }

    /// Everything found in these tokens.
    pub fn of(tokens: &[Token], today: Date) -> Self {
        let mut taken = vec![false; tokens.len()];
        let mut quoted = vec![false; tokens.len()];
        let quotes = quotes(tokens);
        for (a, b) in &quotes {
            quoted[*a..=*b].fill(true);
        }
        let first = dayreader::find(tokens, today, &quoted);
        let probe: Vec<Day> = days_of(&first);
        let hours: Vec<Hour> = times::find(tokens, !probe.is_empty())
            .into_iter()
            .filter(|h| !quoted[h.first])
            // "from 15 to 17 June" are days; what reads both ways is a day.
            .filter(|h| {
                let clock = tokens[h.first..=h.last].iter().any(|t| t.norm.contains(':'));
                clock
                    || !probe.iter().any(|d| {
                        d.first <= h.last && h.first <= d.last && d.last > d.first && has_month(tokens, d)
                    })
            })
            .collect();
        for hour in &hours {
            taken[hour.first..=hour.last].fill(true);
        }
        // Where no time takes tokens away from days, the days are those found at first.
        let said = if hours.is_empty() {
            first
        } else {
            let blocked: Vec<bool> = taken.iter().zip(&quoted).map(|(t, q)| *t || *q).collect();
            dayreader::find(tokens, today, &blocked)
        };
        let mut days = days_of(&said);
        for day in days.iter_mut().filter(|day| day.role == RangeRole::From) {
            day.first = opened(tokens, day.first);
        }
        for day in &days {
            taken[day.first..=day.last].fill(true);
        }
        for expr in said.iter().filter(|e| e.days.is_empty()) {
            taken[expr.first..=expr.last].fill(true);
        }
        let numbers =
            numbers::find(tokens).into_iter().filter(|n| !taken[n.first] && !quoted[n.first]).collect();
        Self { days, said, hours, numbers, quotes, taken, quoted }
    }
}

/// The days that arguments may take.
fn days_of(said: &[Expr]) -> Vec<Day> {
    said.iter().flat_map(|expr| expr.days.iter().cloned()).collect()
}

/// Where a beginning really begins: "a partire dal 12", "starting from Monday".
fn opened(tokens: &[Token], first: usize) -> usize {
    let back = |n: usize, words: &[&str]| first.checked_sub(n).is_some_and(|i| tokens[i].is(words));
    if back(1, &["partire", "decorrere", "cominciare", "iniziare"]) && back(2, &["a"]) {
        first - 2
    } else if back(1, &["starting", "beginning"]) {
        first - 1
    } else {
        first
    }
}

fn has_month(tokens: &[Token], day: &Day) -> bool {
    // The month of a range's beginning stands at its end.
    let end = (day.last + 4).min(tokens.len().saturating_sub(1));
    tokens[day.first..=end].iter().any(|t| dates::month(&t.norm).is_some())
}

/// What stands between quotation marks; an apostrophe is none.
pub(super) fn quotes(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut open: Option<(usize, char)> = None;
    for (i, token) in tokens.iter().enumerate() {
        let Some(mark) = token.raw.chars().next().filter(|_| !token.word) else { continue };
        match open {
            Some((start, close)) if mark == close => {
                if i > start + 1 {
                    out.push((start + 1, i - 1));
                }
                open = None;
            }
            Some(_) => {}
            None => {
                let close = match mark {
                    '"' => '"',
                    '“' | '„' => '”',
                    '«' => '»',
                    '\'' | '‘' => {
                        if mark == '‘' {
                            '’'
                        } else {
                            '\''
                        }
                    }
                    _ => continue,
                };
                open = Some((i, close));
            }
        }
    }
    out
}
