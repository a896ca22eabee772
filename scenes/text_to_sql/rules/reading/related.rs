//! Rows of another table that refer to a row of the main one: how many there must be, or that there are none.

use super::super::Reason;
use super::super::description::ColumnType;
use super::super::lexicon::{Beyond, Comparison, Role};
use super::super::request::{Condition, Join, Literal, Related, Test};
use super::super::vocabulary::{Item, Meaning};
use super::{Reader, Tongue};

/// The rows of another table that were named.
struct NamedRows {
    join: Join,
    /// "cancelled orders"
    adjective: Option<Condition>,
    /// Where the next phrase is.
    end: usize,
}

impl Reader<'_> {
    /// Reads "more than 3 orders" and "without cancelled orders", if the question has that here.
    ///
    /// # Errors
    /// If it can be understood in two ways.
    pub(super) fn related(&mut self) -> Result<bool, Reason> {
        let Some((comparison, number, start)) = self.wanted_number() else { return Ok(false) };
        let Some(mut rows) = self.rows_at(start).filter(|_| self.draft.main_at.is_some()) else {
            return Ok(false);
        };
        let waiting = self.waiting;
        let clashes = waiting.not || waiting.per || waiting.sorted || waiting.most || waiting.their;
        if clashes || self.is_tree() || self.asks_of_table() || !self.draft.related.is_empty() {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        if comparison != Comparison::Equal || number > 0 {
            self.is_number_of_rows(comparison, number, rows.join)?;
        }
        let table = rows.join.table;
        let days = self.items.get(self.after_light(rows.end)).and_then(|item| item.days);
        let mut conditions: Vec<Condition> = rows.adjective.take().into_iter().collect();
        let start = self.at;
        if let Some(days) = days {
            // "Delivered orders in March" may have been ordered or delivered then.
            if !conditions.is_empty() {
                return Err(Reason::WhichDay);
            }
            conditions.push(Condition { column: self.time_of(table)?, test: Test::Days(days.from, days.to) });
            rows.end = self.after_light(rows.end) + 1;
        }
        self.nothing_else_of(table, start..rows.end)?;
        self.draft.related.push(Related { join: rows.join, comparison, number, conditions });
        self.done(rows.end)?;
        Ok(true)
    }

    /// The number of rows that is wanted, and where its name begins: none after "without".
    fn wanted_number(&self) -> Option<(Comparison, u32, usize)> {
        if self.waiting.without || self.waiting.never {
            return Some((Comparison::Equal, 0, self.at));
        }
        if self.role_at(self.at) == Some(Role::AtLeastOne) {
            return Some((Comparison::AtLeast, 1, self.at + 1));
        }
        // "più di un ordine"
        let is_article = |item: &Item| matches!(&*item.text, "un" | "una" | "a" | "an");
        if let Some(Role::Than(comparison)) = self.role_at(self.at)
            && self.items.get(self.at + 1).is_some_and(is_article)
        {
            return Some((comparison, 1, self.at + 2));
        }
        let (Test::Compare(comparison, number), None, end) = self.comparison(self.at)? else { return None };
        let is_said = matches!(self.role_at(self.at), Some(Role::Than(_)));
        // "the last 5 orders"
        let number = number.parse().ok().filter(|_| is_said || comparison != Comparison::Equal)?;
        Some((comparison, number, end))
    }

    /// The rows that are named here, if their table refers to the main one, and only so.
    fn rows_at(&self, at: usize) -> Option<NamedRows> {
        let (before, after) = match self.tongue {
            Tongue::English => (at, None),
            Tongue::Italian => (at, Some(at + 1)),
        };
        if let Some(join) = self.child(before) {
            let adjective = after.and_then(|at| self.adjective(at, join.table));
            let end = at + 1 + usize::from(adjective.is_some());
            return Some(NamedRows { join, adjective, end });
        }
        let join = self.child(at + 1).filter(|_| self.tongue == Tongue::English)?;
        let adjective = Some(self.adjective(at, join.table)?);
        Some(NamedRows { join, adjective, end: at + 2 })
    }

    /// The table that is named here, if each of its rows belongs to one of the main table.
    fn child(&self, at: usize) -> Option<Join> {
        let item = self.items.get(at)?;
        let main = self.draft.main;
        let is_own = |meaning: &Meaning| match meaning {
            Meaning::Table(table) => *table == main || !self.database.keys(main, *table).is_empty(),
            Meaning::Column(of) => of.0 == main,
            Meaning::Value(..) => false,
        };
        if item.quoted || item.meanings.iter().any(is_own) {
            return None;
        }
        let joins: Vec<Join> = item
            .meanings
            .iter()
            .filter_map(|meaning| match meaning {
                Meaning::Table(table) => match self.database.keys(*table, main).as_slice() {
                    [(key, target)] => {
                        let (key, target) = ((*table, *key), (main, *target));
                        Some(Join { table: *table, key, target, to_parent: false })
                    }
                    _ => None,
                },
                _ => None,
            })
            .collect();
        match joins.as_slice() {
            [join] => Some(*join),
            _ => None,
        }
    }

    /// The condition that a word beside a table is, if it is nothing of the main table: one value of an enumeration, or a
    /// column that is true or false.
    fn adjective(&self, at: usize, table: usize) -> Option<Condition> {
        let item = self.items.get(at).filter(|item| item.role.is_none() && !item.quoted)?;
        let mut found = None;
        for meaning in &item.meanings {
            let condition = match meaning {
                Meaning::Value(column, value) if column.0 == table => {
                    let test = Test::OneOf(vec![Literal::Text(value.clone())]);
                    self.column(*column)
                        .filter(|described| !described.values.is_empty())
                        .map(|_| Condition { column: *column, test })
                }
                Meaning::Column(column) if column.0 == table => self
                    .column(*column)
                    .filter(|described| described.kind == ColumnType::Boolean)
                    .map(|_| Condition { column: *column, test: Test::Is(true) }),
                Meaning::Value(column, _) | Meaning::Column(column) if column.0 != self.draft.main => {
                    continue;
                }
                _ => None,
            };
            if found.replace(condition?).is_some() {
                return None;
            }
        }
        found
    }

    /// "Fewer than 3 orders" may be none, and "more than 100 sales" may be pieces.
    fn is_number_of_rows(&self, comparison: Comparison, number: u32, join: Join) -> Result<(), Reason> {
        let is_clear = matches!(comparison, Comparison::More | Comparison::AtLeast | Comparison::Equal);
        if is_clear && number > 0 && !self.counts_pieces(join.table) {
            Ok(())
        } else {
            Err(Reason::Beyond(Beyond::Steps))
        }
    }

    /// Whether a row of a table stands for several pieces.
    pub(super) fn counts_pieces(&self, table: usize) -> bool {
        let is_amount =
            |name: &str| ["quantity", "qty", "pieces", "count"].iter().any(|part| name.contains(part));
        let table = self.database.tables.get(table);
        table.is_some_and(|table| table.columns.iter().any(|column| is_amount(&column.name)))
    }

    /// Whatever else the question says of the other table, or when, may hold of the rows that are counted.
    fn nothing_else_of(&self, table: usize, said: std::ops::Range<usize>) -> Result<(), Reason> {
        let main = self.draft.main;
        let is_of_main = |meaning: &Meaning| match meaning {
            Meaning::Column(at) | Meaning::Value(at, _) => at.0 == main,
            Meaning::Table(table) => *table == main,
        };
        let is_verb = |at: usize| at + 1 == said.start && self.role_of(at) == Some(Role::Tie);
        let is_of_rows = |meaning: &Meaning| match meaning {
            Meaning::Column(at) => at.0 == table && self.column(*at).is_some_and(|c| c.references.is_none()),
            Meaning::Value(at, _) => at.0 == table,
            Meaning::Table(_) => false,
        };
        for (at, item) in self.items.iter().enumerate().filter(|(at, _)| !said.contains(at) && !is_verb(*at))
        {
            let is_unclear = match at < said.start {
                // "registered in 2025" is said of the customers.
                true => !item.meanings.iter().any(is_of_main) && item.meanings.iter().any(is_of_rows),
                false => item.meanings.iter().any(is_of_rows),
            };
            let is_period = matches!(item.role, Some(Role::Period(_) | Role::PerPeriod(_)));
            let is_undated = item.days.is_some() && !self.follows_time_of_main(at);
            if is_unclear || is_undated || is_period && item.meanings.is_empty() {
                return Err(Reason::Unclear(item.written.clone()));
            }
        }
        Ok(())
    }

    /// What a phrase does in any question, whatever it means here.
    fn role_of(&self, at: usize) -> Option<Role> {
        self.items.get(at)?.role
    }

    /// "Kitchen" has the products of the categories below it, too.
    fn is_tree(&self) -> bool {
        let main = self.draft.main;
        let is_above = |(key, _): &(usize, usize)| {
            self.column((main, *key)).is_some_and(|column| column.name.contains("parent"))
        };
        self.database.keys(main, main).iter().any(is_above)
    }

    fn follows_time_of_main(&self, at: usize) -> bool {
        let named = self.items.get(..at).unwrap_or_default().iter().rev().find(|item| !Item::is_light(item));
        let is_time = |meaning: &Meaning| match meaning {
            Meaning::Column(of) => {
                of.0 == self.draft.main && self.column(*of).is_some_and(|column| column.kind.is_time())
            }
            _ => false,
        };
        named.is_some_and(|item| item.meanings.iter().any(is_time))
    }
}
