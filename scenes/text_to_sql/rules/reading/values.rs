//! Values, numbers and dates, and the columns that they are conditions on.

use super::super::dates::{Days, YearTest};
use super::super::description::ColumnDescription;
use super::super::doubts::is_state;
use super::super::lexicon::{Beyond, Comparison, Role};
use super::super::request::{Group, Literal, Test};
use super::super::vocabulary::{ColumnAt, Item, Meaning, root};
use super::super::who::has_people;
use super::super::{Reason, Tongue, numbers_of, qualities};
use super::Reader;
use super::columns::fits_unit;

/// Values, numbers and dates.
impl Reader<'_> {
    /// The value of this column that a phrase is, also where it means something else elsewhere.
    pub(super) fn own_value(&self, column: ColumnAt, at: usize) -> Option<String> {
        let item = self.items.get(at)?;
        let value = |meaning: &Meaning| match meaning {
            Meaning::Value(of, value) if *of == column => Some(value.clone()),
            _ => None,
        };
        let own = item.meanings.iter().chain(&item.weak).find_map(value);
        let own = own.or_else(|| self.value_of_namesake(column, item));
        let listed = self.column(column).is_some_and(|c| {
            c.kind.is_number() && c.values.iter().any(|v| Some(&v.value) == item.number.as_ref())
        });
        own.or_else(|| item.number.clone().filter(|_| listed))
    }

    /// A column whose values are not known shares those of its namesakes: the years of another table.
    pub(super) fn value_of_namesake(&self, at: ColumnAt, item: &Item) -> Option<String> {
        let own = self
            .column(at)
            .filter(|own| own.known.is_none() && own.values.is_empty() && own.references.is_none())?;
        let label = self.database.tables.get(at.0)?.label_columns().contains(&at.1);
        item.meanings.iter().filter(|_| !label).find_map(|meaning| match meaning {
            Meaning::Value(other, value) => {
                let other = self.column(*other)?;
                (other.name == own.name && other.kind == own.kind).then(|| value.clone())
            }
            _ => None,
        })
    }

    /// The values of this column that follow: one, or several with "or".
    pub(super) fn values_after(&self, column: ColumnAt, at: usize) -> Result<Option<(Test, usize)>, Reason> {
        let Some(first) = self.own_value(column, at) else { return Ok(None) };
        let (mut values, mut end) = (vec![first], at + 1);
        let mut joint = None;
        loop {
            let mut next = end;
            while matches!(self.role_at(next), Some(Role::Or | Role::And)) {
                if self.role_at(next) == Some(Role::Or) || self.items.get(next).is_some_and(|i| i.text != ",")
                {
                    joint = self.role_at(next);
                }
                next += 1;
            }
            let value = self.own_value(column, self.after_light(next)).filter(|_| next > end);
            let Some(value) = value else { break };
            values.push(value);
            end = self.after_light(next) + 1;
        }
        // "Who teaches Databases and Algorithms?" asks for those who teach both, and no row has two values.
        let main = self.draft.main;
        let is_of_several = self.draft.who && !self.draft.has_people(self.database)
            || column.0 != main && !self.database.keys(column.0, main).is_empty();
        if values.len() > 1 && joint == Some(Role::And) && is_of_several {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        // "How many in Milan and Rome?" may ask for two numbers.
        if values.len() > 1
            && (joint != Some(Role::Or) && self.is_computed() || self.role_at(end) == Some(Role::Or))
        {
            return Err(Reason::Unsure);
        }
        let kind = self.column(column).map(|column| column.kind).unwrap_or_default();
        let literal =
            |value: String| if kind.is_number() { Literal::Number(value) } else { Literal::Text(value) };
        Ok(Some((Test::OneOf(values.into_iter().map(literal).collect()), end)))
    }

    pub(super) fn value(&mut self, at: ColumnAt, value: String) -> Result<(), Reason> {
        let Some(column) = self.column(at).cloned() else { return Err(Reason::Unsure) };
        let waiting = self.waiting;
        if waiting.sorted || waiting.per || waiting.most || waiting.most_common || waiting.their {
            return Err(Reason::Unsure);
        }
        if (waiting.aggregate.is_some() || waiting.extreme.is_some()) && !self.names_main_next() {
            return Err(Reason::Unsure);
        }
        // "shipped in March" is about the day of shipping.
        let next = self.after_light(self.at + 1);
        if let Some(days) = self.items.get(next).and_then(|item| item.days)
            && let Some(time) = self.time_named_after(at, &value)
            && self.draft.main_at.is_some()
        {
            if waiting.not || waiting.without {
                return Err(Reason::Unsure);
            }
            self.condition(time, Test::Days(days.from, days.to))?;
            return self.done(next + 1);
        }
        // "cancelled in March": the day of the order does not say when it was cancelled. "Of March" is said of the order.
        let of = |text: &str| matches!(text.split(' ').next(), Some("of" | "di" | "del" | "dell" | "dello"));
        let dated = self.items.get(next).is_some_and(|item| item.days.is_some() && !of(&item.text));
        if dated && is_state(&column) && self.draft.main_at.is_some() && at.0 == self.draft.main {
            return Err(Reason::NoTime);
        }
        self.no_other_place(at, &value, next)?;
        self.is_state(at, &value)?;
        let Some((test, end)) = self.values_after(at, self.at)? else { return Err(Reason::Unsure) };
        if waiting.without {
            return Err(Reason::Unsure);
        }
        let negated = self.negated(test, &column, waiting.not)?;
        if waiting.not {
            self.may_be_negated(at)?;
        }
        self.condition(at, negated)?;
        let kept = (waiting.aggregate, waiting.extreme, waiting.distinct, waiting.which);
        let counted = waiting.counted;
        self.done(self.past_name(at, end))?;
        if self.items.get(self.at).is_some_and(|item| self.is_of_main(item)) {
            (self.waiting.aggregate, self.waiting.extreme, self.waiting.distinct, self.waiting.which) = kept;
        }
        self.waiting.counted = counted;
        Ok(())
    }

    /// "The average Italian price" goes on; "the average Italian" is nothing.
    pub(super) fn names_main_next(&self) -> bool {
        self.items.get(self.at + 1).is_some_and(|next| self.is_of_main(next))
    }

    /// Whether a phrase may be the main table or a column of it.
    fn is_of_main(&self, item: &Item) -> bool {
        item.meanings.iter().any(|meaning| match meaning {
            Meaning::Column(at) => at.0 == self.draft.main,
            Meaning::Table(table) => *table == self.draft.main,
            Meaning::Value(..) => false,
        })
    }

    /// "Not supplied by" would leave out what has no supplier, and "not in" what is in a part of it.
    pub(super) fn may_be_negated(&self, at: ColumnAt) -> Result<(), Reason> {
        if at.0 == self.draft.main {
            return Ok(());
        }
        let join = self.join(at.0, None)?;
        let nullable = self.column(join.key).is_some_and(|key| key.nullable);
        let tree = !self.database.keys(at.0, at.0).is_empty();
        if nullable || !join.to_parent || tree { Err(Reason::Beyond(Beyond::Steps)) } else { Ok(()) }
    }

    /// "Orders from Milan" may be those of customers from Milan; "shipped to Turin" is no state.
    pub(super) fn no_other_place(&self, at: ColumnAt, value: &str, next: usize) -> Result<(), Reason> {
        let Some(item) = self.items.get(self.at) else { return Ok(()) };
        let led =
            self.at.checked_sub(1).and_then(|at| self.items.get(at)).map_or("", |item| item.text.as_str());
        let from = led.split(' ').next_back().unwrap_or_default();
        let sources = ["from", "of", "by", "da", "dal", "dalla", "di", "del", "della", "dei", "dai"];
        let main = self.draft.main;
        let elsewhere = |meaning: &Meaning| match meaning {
            Meaning::Value(other, _) => other.0 != main && self.database.keys(main, other.0).len() == 1,
            _ => false,
        };
        let doubtful = at.0 == main && sources.contains(&from) && item.meanings.iter().any(elsewhere);
        let value_next = self.items.get(next).is_some_and(|item| {
            item.meanings.iter().any(|meaning| matches!(meaning, Meaning::Value(other, _) if other.0 == at.0))
        });
        let moved = next > self.at + 1 && value_next && self.time_named_after(at, value).is_some();
        // "categories of Kitchen" are those below it.
        let below = at.0 == main
            && self.draft.main_at.is_some_and(|main| main + 1 < self.at)
            && !self.database.keys(main, main).is_empty()
            && (sources.contains(&from) || matches!(from, "in" | "to" | "a" | "nel" | "nella"))
            && self.database.tables.get(main).is_some_and(|table| table.label_columns().contains(&at.1));
        // "Cardiology doctors" have that specialty or are in the department of that name.
        let own = self.column(at);
        let other_kind = |meaning: &Meaning| match meaning {
            Meaning::Value(other, _) => {
                let called_alike = self
                    .column(*other)
                    .zip(own)
                    .is_some_and(|(other, own)| other.name == own.name && !own.values.is_empty());
                other.0 != main && !called_alike && !self.database.keys(main, other.0).is_empty()
            }
            _ => false,
        };
        let doubtful = doubtful || (at.0 == main && item.meanings.iter().any(other_kind));
        let doubtful =
            doubtful || (at.0 == main && (self.describes_other(main) || self.names_owner(at, from)));
        if doubtful || moved || below { Err(Reason::Unclear(item.written.clone())) } else { Ok(()) }
    }

    /// "Results of absent students": what stands beside another table describes it, and not the main one.
    fn describes_other(&self, main: usize) -> bool {
        let beside = match self.tongue {
            Tongue::English => self.items.get(self.at + 1),
            Tongue::Italian => self.at.checked_sub(1).and_then(|at| self.items.get(at)),
        };
        let other = |meaning: &Meaning| matches!(meaning, Meaning::Table(table) if *table != main);
        let is_main = |item: &Item| item.meanings.contains(&Meaning::Table(main));
        beside.is_some_and(|item| {
            !is_main(item) && item.meanings.iter().any(other) && self.draft.main_at.is_some()
        })
    }

    /// "Students of Rossi" are hardly those who are called so.
    fn names_owner(&self, at: ColumnAt, from: &str) -> bool {
        let owner = matches!(from, "of" | "by" | "di" | "del" | "della" | "dei" | "dal" | "da");
        let table = self.database.tables.get(at.0);
        let named = table.is_some_and(|table| has_people(table) && table.label_columns().contains(&at.1));
        let after_main = self.draft.main_at.is_some_and(|main| main + 2 == self.at);
        owner && named && after_main
    }

    /// Whether the value of a state says what the words do. "Not shipped" is not every other state; "have been paid" may
    /// be about payments; a "graduate" may be another thing.
    pub(super) fn is_state(&self, at: ColumnAt, value: &str) -> Result<(), Reason> {
        let Some(item) = self.items.get(self.at) else { return Ok(()) };
        let led =
            self.at.checked_sub(1).and_then(|at| self.items.get(at)).map_or("", |item| item.text.as_str());
        let passive = matches!(
            led,
            "have been"
                | "has been"
                | "were"
                | "was"
                | "sono stati"
                | "sono state"
                | "e stato"
                | "been"
                | "already"
                | "gia"
        );
        let timed = self.time_named_after(at, value).is_some();
        let main = self.draft.main;
        let near = |table: usize| {
            !self.database.keys(main, table).is_empty() || !self.database.keys(table, main).is_empty()
        };
        let elsewhere = |meaning: &Meaning| match meaning {
            Meaning::Column(other) => {
                other.0 != at.0 && near(other.0) && self.column(*other).is_some_and(|c| c.kind.is_time())
            }
            Meaning::Value(other, stored) => {
                other.0 != at.0
                    && stored != value
                    && !self.database.keys(main, other.0).is_empty()
                    && at.0 == main
            }
            Meaning::Table(_) => false,
        };
        let dated = self.items.get(self.after_light(self.at + 1)).is_some_and(|item| item.days.is_some());
        let clash = item.meanings.iter().any(elsewhere) && (passive || dated || self.waiting.not);
        let other_thing =
            item.meanings.iter().any(|meaning| matches!(meaning, Meaning::Value(..)) && elsewhere(meaning));
        let unclear = (timed && (passive || self.waiting.not)) || clash || other_thing;
        if unclear { Err(Reason::Unclear(item.written.clone())) } else { Ok(()) }
    }

    /// The time column that is named after a value of a state: `shipped_on` for `shipped`.
    pub(super) fn time_named_after(&self, at: ColumnAt, value: &str) -> Option<ColumnAt> {
        let table = self.database.tables.get(at.0)?;
        let named =
            |column: &ColumnDescription| column.kind.is_time() && root(column).as_deref() == Some(value);
        table.columns.iter().position(named).map(|column| (at.0, column))
    }

    /// A number at this place, or a year that may be one.
    pub(super) fn plain_number(&self, at: usize) -> Option<String> {
        let item = self.items.get(at).filter(|item| !item.quoted)?;
        let year = item.days.filter(|days| !days.led).and_then(|days| match days.year {
            Some(YearTest::Is(year)) if item.text.chars().all(|c| c.is_ascii_digit()) => {
                Some(year.to_string())
            }
            _ => None,
        });
        item.number.clone().filter(|_| item.meanings.is_empty()).or(year)
    }

    pub(super) fn unit_at(&self, at: usize) -> Option<String> {
        match self.role_at(at) {
            Some(Role::Unit(unit)) => Some(unit.to_owned()),
            _ => None,
        }
    }

    /// A number with the units around it: the number, the unit, and where it ends.
    pub(super) fn amount(&self, at: usize) -> Option<(String, Option<String>, usize)> {
        let led = self.unit_at(at);
        let at = at + usize::from(led.is_some());
        let number = self.plain_number(at)?;
        let scale = match self.role_at(at + 1) {
            Some(Role::Scale(zeros)) => Some(zeros),
            _ => None,
        };
        let number = scale.map_or(Some(number.clone()), |zeros| scaled(&number, zeros))?;
        let at = at + usize::from(scale.is_some());
        let tail = self.unit_at(at + 1).filter(|_| led.is_none());
        let end = at + 1 + usize::from(tail.is_some());
        Some((number, led.or(tail), end))
    }

    /// A comparison with a number that starts here.
    pub(super) fn comparison(&self, at: usize) -> Option<(Test, Option<String>, usize)> {
        let item = self.items.get(at)?;
        let role = self.role_at(at);
        let opens = role == Some(Role::Between) || matches!(&*item.text, "from" | "da" | "dai" | "between");
        if opens && let Some(found) = self.between(at + 1) {
            return Some(found);
        }
        if let Some(Role::Than(comparison)) = role {
            let mut start = at + 1;
            while self.role_at(start) == Some(Role::Filler) {
                start += 1;
            }
            let (number, unit, end) = self.amount(start)?;
            let twice = matches!(self.role_at(end), Some(Role::OrMore | Role::OrLess));
            return (!twice).then_some((Test::Compare(comparison, number), unit, end));
        }
        // "up to 2000 euros" looks like a date until the unit comes.
        if let Some(unit) = self.unit_at(at + 1)
            && let Some(year) = item.days.filter(|days| days.led).and_then(|days| days.year)
        {
            return numbers_of(year).map(|test| (test, Some(unit), at + 2));
        }
        let (number, unit, end) = self.amount(at)?;
        Some(match self.role_at(end) {
            Some(Role::OrMore) => (Test::Compare(Comparison::AtLeast, number), unit, end + 1),
            Some(Role::OrLess) => (Test::Compare(Comparison::AtMost, number), unit, end + 1),
            _ => {
                // "5 euros or more", "20 euro in su"
                (Test::Compare(Comparison::Equal, number), unit, end)
            }
        })
    }

    pub(super) fn between(&self, at: usize) -> Option<(Test, Option<String>, usize)> {
        let (low, first_unit, end) = self.amount(at)?;
        let joint = self.items.get(end)?;
        if !matches!(&*joint.text, "and" | "e" | "ed" | "to" | "a" | "ai" | "i") {
            return None;
        }
        let mut start = end + 1;
        while self.items.get(start).is_some_and(|item| matches!(&*item.text, "i" | "the" | "gli" | "ai")) {
            start += 1;
        }
        let (high, second_unit, end) = self.amount(start)?;
        let ordered = low.parse::<f64>().ok()? <= high.parse::<f64>().ok()?;
        let unit = second_unit.or(first_unit);
        ordered.then_some((Test::Between(low, high), unit, end))
    }

    /// A comparison without its column before it: the column follows, or a verb or a unit says which.
    pub(super) fn number(&mut self, test: Test, unit: Option<&str>, next: usize) -> Result<(), Reason> {
        let main = self.draft.main;
        let written = self.items.get(self.at).map(|item| item.written.clone()).unwrap_or_default();
        let not = self.waiting.not || self.waiting.without;
        if let Some(quality) = self.waiting.verb {
            let at = qualities::column(self.database, main, quality).ok_or(Reason::Unsure)?;
            let Some(column) = self.column(at).cloned() else { return Err(Reason::Unsure) };
            fits_unit(&column, unit)?;
            let test = self.negated(test, &column, not)?;
            self.condition(at, test)?;
            let same = self.items.get(next).is_some_and(|item| item.meanings.contains(&Meaning::Column(at)));
            return self.done(next + usize::from(same));
        }
        let limit = unit.is_none() && !not && self.is_limit(next);
        if let (Test::Compare(Comparison::Equal, number), true) = (&test, limit) {
            let number = number.clone();
            self.limit(Some(&number))?;
            self.at = next;
            return Ok(());
        }
        if let Some((test, at, end)) = self.either_number(&test, next).filter(|_| unit.is_none() && !not) {
            self.condition(at, test)?;
            return self.done(end);
        }
        if let Some((at, end)) = self.column_after(next) {
            let Some(column) = self.column(at).cloned() else { return Err(Reason::Unsure) };
            fits_unit(&column, unit)?;
            let test = self.negated(test, &column, not)?;
            self.condition(at, test)?;
            return self.done(end);
        }
        let bare = matches!(test, Test::Compare(Comparison::Equal, _));
        let found = match unit {
            Some("EUR") => qualities::money(self.database, main),
            Some(unit) => qualities::of_unit(self.database, main, unit),
            None => qualities::only_number(self.database, main),
        };
        if let (Some(at), false) = (found, bare)
            && self.context == main
            && self.draft.main_at.is_some()
        {
            let Some(column) = self.column(at).cloned() else { return Err(Reason::Unsure) };
            fits_unit(&column, unit)?;
            let test = self.negated(test, &column, not)?;
            self.condition(at, test)?;
            return self.done(next);
        }
        Err(match unit {
            Some(unit) if found.is_none() => Reason::Unit(unit.to_owned()),
            _ => Reason::LooseNumber(written),
        })
    }

    /// "6 or 9 credits"
    pub(super) fn either_number(&self, test: &Test, next: usize) -> Option<(Test, ColumnAt, usize)> {
        let Test::Compare(Comparison::Equal, first) = test else { return None };
        let second = self.plain_number(next + 1).filter(|_| self.role_at(next) == Some(Role::Or))?;
        let (at, end) = self.column_after(next + 2)?;
        Some((Test::OneOf(vec![Literal::Number(first.clone()), Literal::Number(second)]), at, end))
    }

    /// "the 5 most expensive", "the last 5".
    pub(super) fn is_limit(&self, next: usize) -> bool {
        let superlative = |item: &Item| {
            matches!(
                item.role,
                Some(Role::Quality(..) | Role::Most | Role::Fewest | Role::Extreme(_) | Role::Best(_))
            ) && item.meanings.is_empty()
        };
        let main_next =
            self.items.get(next).is_some_and(|item| item.meanings.contains(&Meaning::Table(self.draft.main)));
        let value_next = self.items.get(next).is_some_and(|item| {
            let own = |at: &ColumnAt| at.0 == self.draft.main;
            item.meanings.iter().any(|meaning| match meaning {
                Meaning::Value(..) => true,
                Meaning::Column(at) => own(at) && self.draft.main_at.is_none(),
                Meaning::Table(_) => false,
            })
        });
        let later = self.items.iter().skip(next).any(superlative);
        (main_next || value_next || self.items.get(next).is_some_and(superlative))
            && (later || self.draft.extreme.is_some() || self.waiting.top)
    }

    /// The numeric column right after a number: "9 credits", "100 helpful votes".
    pub(super) fn column_after(&self, next: usize) -> Option<(ColumnAt, usize)> {
        let of = |item: &Item| matches!(&*item.text, "of" | "di" | "in" | "as" | "dei" | "per" | "d");
        let at = if self.items.get(next).is_some_and(of) { next + 1 } else { next };
        let item = self.items.get(at)?;
        let tables = [Some(self.draft.main), self.other()];
        let column = |meaning: &Meaning| match meaning {
            Meaning::Column(at) if tables.contains(&Some(at.0)) => {
                let column = self.column(*at)?;
                (column.kind.is_number() && column.references.is_none()).then_some(*at)
            }
            _ => None,
        };
        let found: Vec<ColumnAt> = item.meanings.iter().filter_map(column).collect();
        match found.as_slice() {
            [one] => Some((*one, at + 1)),
            _ => None,
        }
    }

    /// A date with no column before it: that of the table it stands by.
    pub(super) fn days(&mut self, days: Days) -> Result<(), Reason> {
        let waiting = self.waiting;
        // "by March" may be up to March.
        let hangs = waiting.not || waiting.without || waiting.sorted || waiting.per || waiting.most;
        if hangs || waiting.by {
            return Err(Reason::Unsure);
        }
        // "payments of orders in 2025": of either.
        let parent =
            self.draft.other.filter(|other| other.join.to_parent && self.context == other.join.table);
        let beside = self.at.checked_sub(1).and_then(|at| self.items.get(at));
        let beside = |table: usize| beside.is_some_and(|item| item.meanings.contains(&Meaning::Table(table)));
        if parent.is_some_and(|other| beside(other.join.table) && self.is_event(other.join.table)) {
            return Err(Reason::Unsure);
        }
        let child =
            self.draft.other.filter(|other| !other.join.to_parent && self.context == other.join.table);
        let table = child.map_or(self.draft.main, |other| other.join.table);
        // "delivered per month in 2026": by the same day.
        let grouped = self.draft.groups.iter().find_map(|group| match group {
            Group::Period(column, _) if column.0 == table => Some(*column),
            _ => None,
        });
        let time = match grouped {
            Some(column) => column,
            None => self.time_of(table)?,
        };
        self.is_clear_period(table)?;
        self.no_other_moment(time)?;
        self.condition(time, Test::Days(days.from, days.to))?;
        self.waiting.tie = false;
        self.at += 1;
        Ok(())
    }

    /// "Employees in 2020" may be those who worked then or those who were hired. A question that names what happened is
    /// clear.
    fn is_clear_period(&self, table: usize) -> Result<(), Reason> {
        let people = self.database.tables.get(table).is_some_and(has_people);
        let grouped = self.draft.groups.iter().any(|group| matches!(group, Group::Period(..)));
        let is_clear = !people || self.waiting.tie || self.is_new() || grouped;
        match self.items.get(self.at).filter(|_| !is_clear) {
            Some(item) => Err(Reason::Unclear(item.written.clone())),
            None => Ok(()),
        }
    }

    /// "Shipped to Milan in March" may be about the day of shipping, which is not the usual one.
    fn no_other_moment(&self, time: ColumnAt) -> Result<(), Reason> {
        let Some(table) = self.database.tables.get(time.0) else { return Ok(()) };
        let moments = table.columns.iter().enumerate().filter(|(at, c)| *at != time.1 && c.kind.is_time());
        let moments: Vec<String> = moments.filter_map(|(_, column)| root(column)).collect();
        let said =
            |item: &&Item| item.text.split(' ').any(|word| moments.iter().any(|moment| moment == word));
        if self.items.iter().take(self.at).any(|item| said(&item)) { Err(Reason::WhichDay) } else { Ok(()) }
    }

    /// Whether "new" was said of rows: those that were added then.
    fn is_new(&self) -> bool {
        let before = self.items.iter().take(self.at);
        before.into_iter().any(|item| matches!(&*item.text, "new" | "nuovo" | "nuova" | "nuovi" | "nuove"))
    }
}

/// A number with so many zeros more: "4.5 million".
fn scaled(number: &str, zeros: usize) -> Option<String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = format!("{fraction:0<zeros$}");
    (fraction.len() == zeros).then(|| format!("{whole}{fraction}").trim_start_matches('0').to_owned())
}
