//! Columns: grouped by, sorted by, computed, compared or shown.

use super::super::dates::Days;
use super::super::description::{ColumnDescription, ColumnType, TableDescription};
use super::super::draft::Mention;
use super::super::lexicon::{Beyond, Comparison, Direction, Function, Role};
use super::super::request::{Group, Literal, Test};
use super::super::vocabulary::{ColumnAt, Item, Meaning};
use super::super::{Reason, qualities};
use super::{Reader, Waiting};

/// Columns.
impl Reader<'_> {
    pub(super) fn named_column(&mut self, at: ColumnAt) -> Result<(), Reason> {
        let Some(column) = self.column(at).cloned() else { return Err(Reason::Unsure) };
        let here = self.at;
        let next = self.after_light(here + 1);
        if self.placed(at, &column, next)? {
            return Ok(());
        }
        if self.waiting.aggregate.is_some() || matches!(self.role_at(here + 1), Some(Role::Aggregate(_))) {
            return self.aggregate(at, &column);
        }
        if self.superlative(at, &column)? {
            return Ok(());
        }
        if let Some((test, end)) = self.said_of(at, &column, next)? {
            self.condition(at, test)?;
            return self.done(self.past_name(at, end));
        }
        self.bare(at, &column)
    }

    /// A column that rows are grouped or sorted by, or whose most common value is asked for; says whether it is one.
    fn placed(&mut self, at: ColumnAt, column: &ColumnDescription, next: usize) -> Result<bool, Reason> {
        let (waiting, here) = (self.waiting, self.at);
        // "by status and channel"
        let led = here.checked_sub(1).filter(|last| self.role_at(*last) == Some(Role::And));
        let again = led.is_some() && self.group_end == led && self.draft.groups.len() == 1;
        // "graduated per year"
        let plain = !(waiting.per || waiting.by || waiting.sorted || waiting.not || waiting.without);
        if let (Some(Role::PerPeriod(period)), true, true) =
            (self.role_at(next), column.kind.is_time(), plain)
            && at.0 == self.draft.main
        {
            self.happened(column)?;
            self.draft.groups.push(Group::Period(at, period));
            return self.done(next + 1).map(|()| true);
        }
        let common_next = self.role_at(here + 1) == Some(Role::MostCommon);
        if (waiting.most_common || common_next) && at.0 == self.draft.main {
            self.draft.most_common = Some(at);
            self.draft.most_plural = self.is_plural();
            return self.done(here + 1 + usize::from(common_next)).map(|()| true);
        }
        // "the top 5 by rating"
        let ranked = waiting.by_or_per() && waiting.top && self.draft.limit.is_some() && !self.is_computed();
        let grouping = (waiting.per || (waiting.by && self.is_computed()) || again) && !self.draft.sorts;
        if grouping && !ranked && self.own_value(at, next).is_none() {
            return self.group_by(at, column).map(|()| true);
        }
        if ranked && (column.kind.is_number() || column.kind.is_time()) && column.references.is_none() {
            self.set_extreme(at, Direction::Down)?;
            return self.done(here + 1).map(|()| true);
        }
        // "by price, highest first"
        let directed = waiting.by && !self.is_computed() && self.direction_at(here + 1).is_some();
        let directed = directed || (waiting.by_or_per() && self.draft.sorts);
        let again = led.is_some() && self.sort_end == led;
        if waiting.sorted || directed || again {
            return self.sort_by(at, here + 1).map(|()| true);
        }
        Ok(false)
    }

    /// A column whose greatest or least value is asked for, or the rows that have it; says whether it is one.
    fn superlative(&mut self, at: ColumnAt, column: &ColumnDescription) -> Result<bool, Reason> {
        let (waiting, here) = (self.waiting, self.at);
        if waiting.most || waiting.fewest {
            let direction = if waiting.most { Direction::Down } else { Direction::Up };
            let main_next = self
                .items
                .get(here + 1)
                .is_some_and(|item| item.meanings.contains(&Meaning::Table(self.draft.main)));
            if main_next && column.kind.is_number() && column.references.is_none() {
                // "the most helpful reviews"
                self.set_extreme(at, direction)?;
                return self.done(here + 1).map(|()| true);
            }
            self.waiting.extreme = Some(direction);
        }
        let best =
            matches!(self.role_at(here + 1), Some(Role::Best(_))) && qualities::is_rating(self.database, at);
        let extreme = matches!(self.role_at(here + 1), Some(Role::Extreme(_)));
        if self.waiting.extreme.is_some() || best || extreme {
            return self.extreme_of(at, column).map(|()| true);
        }
        Ok(false)
    }

    /// "the name of the supplier", "il nome del cliente": the other table that the column is of, and where it is named.
    pub(super) fn of_next_table(&self) -> Option<(Vec<ColumnAt>, usize)> {
        let waiting = self.waiting;
        let plain =
            !(waiting.per || waiting.by || waiting.sorted || waiting.without || waiting.not || waiting.most);
        let plain = plain && waiting.aggregate.is_none() && waiting.extreme.is_none() && !waiting.most_common;
        // "nome e cognome del cliente"
        let is_column = |at: usize| {
            self.items
                .get(at)
                .is_some_and(|item| item.meanings.iter().any(|m| matches!(m, Meaning::Column(_))))
        };
        let mut link_at = self.at + 1;
        while self.role_at(link_at) == Some(Role::And) && is_column(link_at + 1) {
            link_at += 2;
        }
        let link = self.items.get(link_at)?.text.as_str();
        if !plain
            || self.is_computed()
            || !matches!(link, "of" | "of the" | "del" | "della" | "dei" | "delle" | "dell" | "dello" | "di")
        {
            return None;
        }
        let at = self.after_light(link_at + 1);
        let item = self.items.get(at)?;
        let main = self.draft.main;
        let named = |table: usize| item.meanings.contains(&Meaning::Table(table));
        let parent = (0..self.database.tables.len())
            .find(|table| *table != main && named(*table) && self.database.keys(main, *table).len() == 1)?;
        let shown = waiting.their || waiting.with || self.draft.main_at.is_none() || self.lists_on();
        let own = self.items.get(self.at)?;
        let column = |meaning: &Meaning| match meaning {
            Meaning::Column(at) if at.0 == parent => Some(*at),
            _ => None,
        };
        let columns: Vec<ColumnAt> = own.meanings.iter().filter_map(column).collect();
        let label = self.database.tables.get(parent)?.label_columns();
        let is_name = columns.iter().any(|at| label.contains(&at.1));
        let columns =
            if is_name { label.into_iter().map(|column| (parent, column)).collect() } else { columns };
        let one = is_name || columns.len() == 1;
        let end = if link_at == self.at + 1 { at + 1 } else { self.at + 1 };
        (shown && one && !named(main) && !self.value_at(at + 1, parent)).then_some((columns, end))
    }

    /// Whether a value of a table stands here.
    fn value_at(&self, at: usize, table: usize) -> bool {
        self.items.get(self.after_light(at)).is_some_and(|item| {
            item.meanings.iter().any(|meaning| matches!(meaning, Meaning::Value(at, _) if at.0 == table))
        })
    }

    pub(super) fn shown_of(&mut self, columns: Vec<ColumnAt>, end: usize) -> Result<(), Reason> {
        let before = self.draft.main_at.is_none();
        for column in columns {
            self.touch(column)?;
            let (distinct, shown, plural, whole) = (false, true, false, false);
            self.draft.mentions.push(Mention { column, distinct, shown, before, plural, whole });
        }
        self.done(end)
    }

    /// "a duration of 3 years", "the second semester": the column's name again, after what is said of it.
    pub(super) fn past_name(&self, at: ColumnAt, end: usize) -> usize {
        let again = self.items.get(end).is_some_and(|item| item.meanings.contains(&Meaning::Column(at)));
        end + usize::from(again)
    }

    pub(super) fn is_computed(&self) -> bool {
        self.draft.count || !self.draft.aggregates.is_empty()
    }

    pub(super) fn done(&mut self, end: usize) -> Result<(), Reason> {
        self.clear();
        self.at = end;
        Ok(())
    }

    pub(super) fn group_by(&mut self, at: ColumnAt, column: &ColumnDescription) -> Result<(), Reason> {
        if column.kind == ColumnType::Other || column.unique || self.waiting.without || self.waiting.not {
            return Err(Reason::Unsure);
        }
        if at.0 != self.draft.main {
            let join = self.join(at.0, None)?;
            if !join.to_parent {
                return Err(Reason::Beyond(Beyond::Steps));
            }
            self.use_other(join, true);
        }
        self.draft.groups.push(Group::Column(at));
        let end = self.past_again(at);
        self.group_end = Some(end);
        self.done(end)
    }

    /// "each star rating", "ogni città di provenienza": where the names of one column end.
    fn past_again(&self, at: ColumnAt) -> usize {
        let next = self.after_light(self.at + 1);
        let again = self.items.get(next).is_some_and(|item| item.meanings.contains(&Meaning::Column(at)));
        if again { next + 1 } else { self.at + 1 }
    }

    /// The direction of an order at this place, perhaps after a comma, and where it ends.
    pub(super) fn direction_at(&self, at: usize) -> Option<(Direction, usize)> {
        let at = at + usize::from(self.role_at(at) == Some(Role::And));
        match self.role_at(at)? {
            Role::Ascending | Role::OldestFirst => Some((Direction::Up, at + 1)),
            Role::Descending | Role::NewestFirst => Some((Direction::Down, at + 1)),
            _ => None,
        }
    }

    pub(super) fn sort_by(&mut self, at: ColumnAt, end: usize) -> Result<(), Reason> {
        let before = self.waiting.direction.map(|direction| (direction, end));
        let (direction, end) = before.or_else(|| self.direction_at(end)).unwrap_or((Direction::Up, end));
        if at.0 != self.draft.main {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        self.draft.order.push((at, direction));
        self.waiting.top = false;
        self.sort_end = Some(end);
        self.done(end)
    }

    /// The aggregates named right after a column, as in Italian: "prezzo minimo, massimo e medio".
    pub(super) fn functions_after(&self) -> (Vec<Function>, usize) {
        let (mut found, mut at) = (Vec::new(), self.at + 1);
        loop {
            let mut next = at;
            while !found.is_empty() && self.role_at(next) == Some(Role::And) {
                next += 1;
            }
            let Some(Role::Aggregate(function)) = self.role_at(next) else { return (found, at) };
            found.push(function);
            at = next + 1;
        }
    }

    pub(super) fn aggregate(&mut self, at: ColumnAt, column: &ColumnDescription) -> Result<(), Reason> {
        let (after, end) = self.functions_after();
        let before: Vec<Function> = self.waiting.aggregates().collect();
        let functions = match (before.is_empty(), after.is_empty()) {
            (false, true) => before,
            (true, false) => after.clone(),
            _ => return Err(Reason::Beyond(Beyond::Steps)),
        };
        let ordered = |function: &Function| matches!(function, Function::Max | Function::Min);
        let fits = column.kind.is_number() || (column.kind.is_time() && functions.iter().all(ordered));
        if !fits || column.references.is_some() {
            return Err(Reason::Unsure);
        }
        if self.waiting.extreme.is_some() || self.waiting.not || self.waiting.without {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        // "the products with the maximum price"
        if after.is_empty()
            && self.draft.main_at.is_some()
            && self.waiting.with
            && self.draft.groups.is_empty()
        {
            let direction = match functions.as_slice() {
                [Function::Max] => Direction::Down,
                [Function::Min] => Direction::Up,
                _ => return Err(Reason::Beyond(Beyond::Steps)),
            };
            self.set_extreme(at, direction)?;
            return self.done(end);
        }
        self.touch_for_aggregate(at)?;
        self.draft.aggregates.extend(functions.into_iter().map(|function| (function, at)));
        self.done(end)
    }

    pub(super) fn touch_for_aggregate(&mut self, at: ColumnAt) -> Result<(), Reason> {
        if at.0 == self.draft.main { Ok(()) } else { Err(Reason::Beyond(Beyond::Steps)) }
    }

    /// "the highest price", "the product with the highest price".
    pub(super) fn extreme_of(&mut self, at: ColumnAt, column: &ColumnDescription) -> Result<(), Reason> {
        let next = match self.role_at(self.at + 1) {
            Some(Role::Extreme(direction)) => Some(direction),
            _ => None,
        };
        let next = match self.role_at(self.at + 1) {
            Some(Role::Best(direction)) if self.waiting.extreme.is_none() => Some(direction),
            _ => next,
        };
        let direction = match (self.waiting.extreme, next) {
            (Some(direction), None) | (None, Some(direction)) => direction,
            _ => return Err(Reason::Beyond(Beyond::Steps)),
        };
        if !(column.kind.is_number() || column.kind.is_time()) || column.references.is_some() {
            return Err(Reason::Unsure);
        }
        if self.waiting.not || self.waiting.without {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        let of_rows = self.draft.main_at.is_some_and(|main| main + 1 != self.at || self.waiting.with);
        let of_rows = of_rows || self.draft.who;
        if of_rows && self.draft.aggregates.is_empty() && self.draft.groups.is_empty() && !self.draft.count {
            self.set_extreme(at, direction)?;
        } else {
            let function = if direction == Direction::Down { Function::Max } else { Function::Min };
            self.touch_for_aggregate(at)?;
            // "the highest salaries" are more than one.
            let grouped = self.items.iter().any(|item| {
                matches!(item.role, Some(Role::Per | Role::Each | Role::By | Role::And | Role::PerPeriod(_)))
            });
            // Of "the largest number of credits", the number is the largest.
            let number = self.waiting.most || self.waiting.fewest;
            if self.is_plural() && !grouped && !number {
                return Err(Reason::HowMany);
            }
            self.draft.aggregates.push((function, at));
            // "prezzo più alto e più basso"
            let end = self.at + 1 + usize::from(next.is_some());
            if let (Some(Role::And), Some(Role::Extreme(second)), true) =
                (self.role_at(end), self.role_at(end + 1), next.is_some())
            {
                let function = if second == Direction::Down { Function::Max } else { Function::Min };
                self.draft.aggregates.push((function, at));
                return self.done(end + 2);
            }
        }
        self.done(self.at + 1 + usize::from(next.is_some()))
    }

    /// What is said of a column right after it.
    pub(super) fn said_of(
        &self,
        at: ColumnAt,
        column: &ColumnDescription,
        next: usize,
    ) -> Result<Option<(Test, usize)>, Reason> {
        let Waiting { not, without, with_a, .. } = self.waiting;
        let here = self.at + 1;
        match self.role_at(next) {
            Some(Role::Missing) if column.nullable && !not && !without => {
                return Ok(Some((Test::Null, next + 1)));
            }
            Some(Role::Present) if column.nullable && !not && !without => {
                return Ok(Some((Test::NotNull, next + 1)));
            }
            Some(Role::Missing | Role::Present) => return Err(Reason::Unsure),
            Some(role @ (Role::Contains | Role::StartsWith | Role::EndsWith)) => {
                return self.part_of_text(column, role, next + 1).map(Some);
            }
            _ => {}
        }
        if column.kind == ColumnType::Boolean {
            // "paid in 2025": whether is known, when is not.
            if self.items.get(next).is_some_and(|item| item.days.is_some()) && self.draft.main_at.is_some() {
                return Err(Reason::NoTime);
            }
            return Ok(Some((Test::Is(!(not || without)), here)));
        }
        if without {
            return self.nothing_there(column).map(|test| Some((test, here)));
        }
        if let Some((test, end)) = self.values_after(at, next)? {
            return self.negated(test, column, not).map(|test| Some((test, end)));
        }
        if column.kind.is_number()
            && column.references.is_none()
            && let Some((test, unit, end)) = self.comparison(next)
        {
            fits_unit(column, unit.as_deref())?;
            return self.negated(test, column, not).map(|test| Some((test, end)));
        }
        if let Some(days) = self.items.get(next).and_then(|item| item.days) {
            return self.dated(column, days, not).map(|test| test.map(|test| (test, next + 1)));
        }
        if not {
            return Err(Reason::Unsure);
        }
        // "con una stella"
        let star = self.items.get(self.at).is_some_and(|item| matches!(&*item.text, "star" | "stella"));
        if with_a && star && qualities::is_rating(self.database, at) {
            return Ok(Some((Test::Compare(Comparison::Equal, "1".to_owned()), here)));
        }
        Ok((with_a && column.nullable).then_some((Test::NotNull, here)))
    }

    pub(super) fn dated(
        &self,
        column: &ColumnDescription,
        days: Days,
        not: bool,
    ) -> Result<Option<Test>, Reason> {
        if not {
            return Err(Reason::Unsure);
        }
        if column.kind.is_time() {
            self.happened(column)?;
            // "born in May" means every May.
            let usual = |table: &TableDescription| table.time.as_deref() == Some(column.name.as_str());
            let usual = self.database.tables.get(self.context).is_some_and(usual);
            if days.guessed && !usual && column.name.contains("birth") {
                return Err(Reason::Unsure);
            }
            return Ok(Some(Test::Days(days.from, days.to)));
        }
        let year = days.year.filter(|_| column.kind == ColumnType::Integer && column.references.is_none());
        Ok(year.map(Test::Year))
    }

    pub(super) fn nothing_there(&self, column: &ColumnDescription) -> Result<Test, Reason> {
        if column.nullable {
            Ok(Test::Null)
        } else if column.kind.is_number() && column.references.is_none() {
            Ok(Test::OneOf(vec![Literal::Number("0".to_owned())]))
        } else {
            Err(Reason::Unsure)
        }
    }

    pub(super) fn negated(&self, test: Test, column: &ColumnDescription, not: bool) -> Result<Test, Reason> {
        match (not, test) {
            (false, test) => Ok(test),
            (true, Test::OneOf(values)) if !column.nullable => Ok(Test::NoneOf(values)),
            (true, Test::Compare(Comparison::Equal, number)) if !column.nullable => {
                Ok(Test::Compare(Comparison::NotEqual, number))
            }
            _ => Err(Reason::Unsure),
        }
    }

    pub(super) fn part_of_text(
        &self,
        column: &ColumnDescription,
        role: Role,
        at: usize,
    ) -> Result<(Test, usize), Reason> {
        let at = self.after_light(at);
        let item = self.items.get(at).ok_or(Reason::Unsure)?;
        let plain = !item.written.contains(['%', '_', '\\']) && (item.quoted || at + 1 == self.items.len());
        if column.kind != ColumnType::Text || !plain || self.waiting.not || self.waiting.without {
            return Err(Reason::Unsure);
        }
        let test = Test::Like(role != Role::StartsWith, item.written.clone(), role != Role::EndsWith);
        Ok((test, at + 1))
    }

    /// A column with nothing said of it: shown, or a verb that holds of every row.
    pub(super) fn bare(&mut self, at: ColumnAt, column: &ColumnDescription) -> Result<(), Reason> {
        let item = self.items.get(self.at).cloned().unwrap_or_default();
        let waiting = self.waiting;
        let noun = ["date", "data", "day", "giorn", "time", "birthday", "complean"];
        let is_verb = column.kind.is_time()
            && !item.text.split(' ').any(|word| noun.iter().any(|noun| word.starts_with(noun)));
        let asked = waiting.which && self.draft.main_at.is_some() && self.draft.extreme.is_some();
        let shown_with =
            asked || waiting.their || self.lists_on() || (self.draft.when && self.draft.mentions.is_empty());
        if is_verb && !shown_with && !waiting.distinct {
            let usual = self.time_of(at.0).ok() == Some(at);
            let says_nothing =
                item.role == Some(Role::Tie) || self.items.len() > self.at + 1 || !self.has_states(at.0);
            if column.nullable || at.0 != self.context || !usual || !says_nothing {
                return Err(Reason::Unclear(item.written));
            }
            return self.done(self.at + 1);
        }
        if self.says_which(&item.text, shown_with) {
            return Err(Reason::Unclear(item.written));
        }
        // "which cities do they live in" names the city twice.
        if self.draft.mentions.iter().any(|mention| mention.column == at) {
            return self.done(self.at + 1);
        }
        // "live in Italy", where "live in" is a name of the city.
        let tail = item.text.split(' ').next_back().unwrap_or_default();
        let leads =
            item.text.contains(' ') && matches!(tail, "in" | "at" | "to" | "from" | "a" | "di" | "da");
        let value_next = self.items.get(self.after_light(self.at + 1)).is_some_and(|next| {
            let mut meanings = next.meanings.iter().chain(&next.weak);
            meanings.any(|meaning| matches!(meaning, Meaning::Value(other, _) if other.0 == at.0))
                || next.days.is_some()
        });
        let each = matches!(self.role_at(self.after_light(self.at + 1)), Some(Role::Each | Role::Per));
        if leads && (value_next || each) {
            self.at += 1;
            return Ok(());
        }
        let before = self.draft.main_at.is_none();
        let beside_main = self.draft.main_at.is_some_and(|main| main + 1 == self.at);
        let shown = before || beside_main || shown_with;
        self.touch(at)?;
        let distinct = waiting.distinct || (waiting.which && before);
        let before = before
            || self.draft.when
            || beside_main
            || (self.lists_on() && self.draft.mentions.last().is_some_and(|m| m.before));
        let whole = matches!(&*item.text, "name" | "names" | "nome" | "nomi" | "full name" | "full names");
        let plural = self.is_plural();
        self.draft.mentions.push(Mention { column: at, distinct, shown, before, plural, whole });
        self.done(self.at + 1)
    }

    /// Whether a column that nothing is said of may say which rows are meant, rather than be shown.
    fn says_which(&self, text: &str, shown: bool) -> bool {
        let waiting = self.waiting;
        // "the cheapest product in stock"
        let mut words = text.split(' ');
        let leads = matches!(words.next(), Some("in" | "on" | "at" | "out")) && words.next().is_some();
        let predicate = leads && self.draft.main_at.is_some();
        // "lines with a discount" may be those that have one.
        let led = self.at.checked_sub(1).and_then(|at| self.items.get(at));
        let with = waiting.with || led.is_some_and(|led| led.text == "con");
        let with = with && !waiting.their && self.draft.main_at.is_none() && !self.draft.mentions.is_empty();
        // "by hire date" may group or sort.
        predicate || with || (waiting.by && !shown)
    }

    /// "Paid in March": the moment of a payment that may have failed does not say that it was paid.
    fn happened(&self, column: &ColumnDescription) -> Result<(), Reason> {
        let Some(item) = self.items.get(self.at) else { return Ok(()) };
        let main = self.draft.main;
        let usual = self
            .time_of(main)
            .ok()
            .and_then(|at| self.column(at))
            .is_some_and(|usual| usual.name == column.name);
        let noun = ["date", "data", "day", "giorn", "time"];
        let is_noun = item.text.split(' ').any(|word| noun.iter().any(|noun| word.starts_with(noun)));
        let doubtful = usual && column.nullable && self.has_states(main) && !is_noun;
        if doubtful { Err(Reason::Unclear(item.written.clone())) } else { Ok(()) }
    }

    /// Whether the rows of a table have a state, so that "enrolled" may be one.
    pub(super) fn has_states(&self, table: usize) -> bool {
        let columns =
            self.database.tables.get(table).map(|table| table.columns.as_slice()).unwrap_or_default();
        columns
            .iter()
            .any(|column| !column.values.is_empty() && matches!(&*column.name, "status" | "state" | "stato"))
    }

    /// "their name and price": after "and", a list of columns goes on.
    pub(super) fn lists_on(&self) -> bool {
        let last = self.at.checked_sub(1).filter(|at| self.role_at(*at) == Some(Role::And));
        let Some(last) = last else { return false };
        let before = last.checked_sub(1).and_then(|at| self.items.get(at));
        let column = |item: &Item| item.meanings.iter().any(|meaning| matches!(meaning, Meaning::Column(_)));
        before.is_some_and(column) && self.draft.mentions.last().is_some_and(|mention| mention.shown)
    }
}

/// Whether a number in this unit can be compared with the column.
pub(super) fn fits_unit(column: &ColumnDescription, unit: Option<&str>) -> Result<(), Reason> {
    match (unit, column.unit.as_deref()) {
        (None, _) => Ok(()),
        (Some(unit), Some(own)) if unit == own => Ok(()),
        (Some(unit), _) => Err(Reason::Unit(unit.to_owned())),
    }
}
