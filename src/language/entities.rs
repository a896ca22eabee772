//! Extracts the entities of a text (days, times, numbers and quotations) with their token spans.

use std::cell::RefCell;
use std::rc::Rc;

use jiff::civil::Date;

use super::date_expression::{DateExpression, DateExpressionKind};
use super::date_expression_reader;
use super::dates::{self, DateSpan, RangeRole};
use super::numbers::{self, Number};
use super::text::{self, Token, TokenCache};
use super::times::{self, Hour};

#[derive(Debug, Clone, Default)]
pub(crate) struct Entities {
    /// Days, in order.
    pub days: Vec<DateSpan>,
    /// Date expressions, in order: those of `days`, exclusions, and unclear ones.
    pub date_expressions: Vec<DateExpression>,
    /// Times, in order.
    pub times: Vec<Hour>,
    /// Numbers that are not part of a day or a time.
    pub numbers: Vec<Number>,
    /// First and last token inside each pair of quotation marks.
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
    /// The entities of a text, resolved against a day. Cached for the thread.
    pub fn in_text(text: &str, today: Date) -> Rc<Self> {
        let text = text::cut(text);
        if let Some(known) = READ.with(|memory| memory.borrow().get(today, text)) {
            return known;
        }
        let found = Rc::new(Self::in_tokens(&text::tokens(text), today));
        READ.with(|memory| memory.borrow_mut().put(today, text, &found));
        found
    }

    /// Returns whether some date expression is unclear.
    pub fn has_unclear_days(&self) -> bool {
        self.date_expressions.iter().any(|expr| {
            matches!(expr.kind, DateExpressionKind::Unclear | DateExpressionKind::BeforeOrAfter(..))
        })
    }

    /// The entities of these tokens.
    pub fn in_tokens(tokens: &[Token], today: Date) -> Self {
        let mut taken = vec![false; tokens.len()];
        let mut quoted = vec![false; tokens.len()];
        let quotes = quoted_spans(tokens);
        for (a, b) in &quotes {
            quoted[*a..=*b].fill(true);
        }
        let first = date_expression_reader::find_expressions(tokens, today, &quoted);
        let probe: Vec<DateSpan> = days_of(&first);
        let times: Vec<Hour> = times::find(tokens, !probe.is_empty())
            .into_iter()
            .filter(|h| !quoted[h.first])
            // "Vom 14.12. bis 16.12." are days.
            .filter(|h| !(h.first..=h.last).any(|i| dates::is_dotted_day(tokens, i)))
            // "from 15 to 17 June" are days: an ambiguous expression is read as days.
            .filter(|h| {
                let clock = tokens[h.first..=h.last].iter().any(|t| t.norm.contains(':'));
                clock
                    || !probe.iter().any(|d| {
                        d.first <= h.last && h.first <= d.last && d.last > d.first && has_month(tokens, d)
                    })
            })
            .collect();
        for hour in &times {
            taken[hour.first..=hour.last].fill(true);
        }
        // Without times, no tokens are blocked and the first result is final.
        let date_expressions = if times.is_empty() {
            first
        } else {
            let blocked: Vec<bool> = taken.iter().zip(&quoted).map(|(t, q)| *t || *q).collect();
            date_expression_reader::find_expressions(tokens, today, &blocked)
        };
        let mut days = days_of(&date_expressions);
        for day in days.iter_mut().filter(|day| day.role == RangeRole::From) {
            day.first = range_start(tokens, day.first);
        }
        for day in &days {
            taken[day.first..=day.last].fill(true);
        }
        for expr in date_expressions.iter().filter(|e| e.days.is_empty()) {
            taken[expr.first..=expr.last].fill(true);
        }
        // A minus before digits is no word.
        let begins = |n: &Number| if tokens[n.first].word { n.first } else { n.last };
        let is_free = |n: &Number| !taken[begins(n)] && !quoted[begins(n)];
        let numbers = numbers::find(tokens).into_iter().filter(is_free).collect();
        Self { days, date_expressions, times, numbers, quotes, taken, quoted }
    }
}

/// The days that can fill arguments.
fn days_of(said: &[DateExpression]) -> Vec<DateSpan> {
    said.iter().flat_map(|expr| expr.days.iter().cloned()).collect()
}

/// The first token of a beginning with its verb: "a partire dal 12", "starting from Monday".
fn range_start(tokens: &[Token], first: usize) -> usize {
    let back = |n: usize, words: &[&str]| first.checked_sub(n).is_some_and(|i| tokens[i].is(words));
    if back(1, &["partire", "decorrere", "cominciare", "iniziare"]) && back(2, &["a"]) {
        first - 2
    } else if back(1, &["starting", "beginning"]) {
        first - 1
    } else {
        first
    }
}

fn has_month(tokens: &[Token], day: &DateSpan) -> bool {
    // The month of a range's beginning may follow at its end.
    let end = (day.last + 4).min(tokens.len().saturating_sub(1));
    tokens[day.first..=end].iter().any(|t| dates::month(&t.norm).is_some())
}

/// The token spans between quotation marks. An apostrophe is not a quotation mark.
pub(crate) fn quoted_spans(tokens: &[Token]) -> Vec<(usize, usize)> {
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
