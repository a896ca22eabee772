//! Reads a question phrase by phrase. Every phrase must become a part of the request; what is left over, or fits in two
//! places, ends the reading: a question half understood is not answered.

mod columns;
mod how_much;
mod related;
mod sense;
mod tables;
mod values;

use super::description::{ColumnDescription, ColumnType, DatabaseDescription};
use super::doubts::Doubts;
use super::draft::{Draft, Mention, column_of};
use super::lexicon::{Beyond, Direction, Function, Period, Quality, Role};
use super::request::{Group, Literal, Request, Test};
use super::vocabulary::{ColumnAt, Item, Meaning};
use super::who::{asks_for_namesake, asks_who};
use super::{Reason, Tongue, qualities};

/// Periods in the plural.
const PERIODS: [&str; 6] = ["months", "years", "days", "mesi", "anni", "giorni"];

/// What was said just before and waits for what it is about.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    not: bool,
    without: bool,
    never: bool,
    with: bool,
    with_a: bool,
    their: bool,
    per: bool,
    by: bool,
    sorted: bool,
    which: bool,
    distinct: bool,
    tie: bool,
    counted: bool,
    most: bool,
    most_common: bool,
    aggregate: Option<Function>,
    more_aggregates: [Option<Function>; 3],
    extreme: Option<Direction>,
    verb: Option<Quality>,
    top: bool,
    fewest: bool,
    direction: Option<Direction>,
}

/// What a phrase is in this question.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sense {
    Main,
    Table(usize),
    /// A foreign key's column, and the table that it points to.
    Parent(ColumnAt, usize),
    Column(ColumnAt),
    Value(ColumnAt, String),
}

/// Reads one question about one table.
pub struct Reader<'a> {
    database: &'a DatabaseDescription,
    items: &'a [Item],
    tongue: Tongue,
    at: usize,
    waiting: Waiting,
    draft: Draft,
    /// The table that was mentioned last.
    context: usize,
    /// Where the name of the last group ended.
    group_end: Option<usize>,
    /// Where the last sorting ended.
    sort_end: Option<usize>,
}

impl<'a> Reader<'a> {
    /// A reader of a question that is about this table.
    pub fn new(database: &'a DatabaseDescription, items: &'a [Item], tongue: Tongue, main: usize) -> Self {
        let who = asks_who(items);
        let has_doer = asks_for_namesake(items, database, main, tongue);
        let draft = Draft { main, who, has_doer, ..Draft::default() };
        Self {
            database,
            items,
            tongue,
            at: 0,
            waiting: Waiting::default(),
            draft,
            context: main,
            group_end: None,
            sort_end: None,
        }
    }

    /// The question as understood.
    ///
    /// # Errors
    /// What is not understood, not clear, or beyond one table and one join.
    pub fn read(mut self) -> Result<Request, Reason> {
        while let Some(item) = self.items.get(self.at) {
            let before = self.at;
            self.step(item)?;
            if self.at == before {
                return Err(Reason::UnknownWord(item.written.clone()));
            }
        }
        // "Which payment method is most common?"
        if let ([mention], true) = (self.draft.mentions.as_slice(), self.waiting.most_common)
            && mention.column.0 == self.draft.main
        {
            (self.draft.most_common, self.draft.most_plural) = (Some(mention.column), mention.plural);
            self.draft.mentions.clear();
            self.waiting.most_common = false;
        }
        // "How much does the heaviest product weigh?"
        if let (Some(quality), true, false) = (
            self.waiting.verb,
            self.draft.how_much && self.draft.extreme.is_some(),
            self.waiting.aggregate.is_some(),
        ) {
            let at = qualities::column(self.database, self.draft.main, quality).ok_or(Reason::Unsure)?;
            self.show_too(at);
            self.draft.mentions.iter_mut().for_each(|mention| mention.before = true);
        }
        // "How much does a product weigh on average?"
        if let (Some(quality), true) = (self.waiting.verb, self.waiting.aggregate.is_some()) {
            self.average_of(quality)?;
        }
        // "Which payment is the largest?"
        let asked = self.draft.show || self.draft.limit.is_some();
        if let (Some(direction), true, true) = (self.waiting.extreme, asked, self.draft.main_at.is_some())
            && let Some(money) = qualities::money(self.database, self.draft.main)
            && self.draft.mentions.is_empty()
        {
            self.waiting.extreme = None;
            self.set_extreme(money, direction)?;
        }
        self.how_much()?;
        self.no_second_time()?;
        self.money_of_all_states()?;
        let waiting = self.waiting;
        let hangs = waiting.not || waiting.without || waiting.per || waiting.sorted || waiting.most_common;
        let hangs =
            hangs || waiting.aggregate.is_some() || waiting.extreme.is_some() || waiting.verb.is_some();
        let tied = self.draft.other.is_some_and(|other| other.used);
        let hangs = hangs || waiting.never || waiting.fewest || waiting.direction.is_some();
        let hangs = hangs || (waiting.tie && !tied) || waiting.most || waiting.their || waiting.with_a;
        if hangs || (waiting.top && self.draft.limit.is_none()) {
            return Err(Reason::Unsure);
        }
        Doubts { draft: &self.draft, items: self.items, database: self.database }.check()?;
        self.draft.finish(self.database)
    }

    /// "Delivered orders in March" may have been ordered or delivered then.
    fn no_second_time(&self) -> Result<(), Reason> {
        let states = self.draft.conditions.iter().filter_map(|condition| match &condition.test {
            Test::OneOf(values) => Some((condition.column, values)),
            _ => None,
        });
        for (column, values) in states {
            let timed = values.iter().find_map(|value| match value {
                Literal::Text(text) => self.time_named_after(column, text),
                Literal::Number(_) => None,
            });
            let other_time = |at: ColumnAt| timed.is_some_and(|timed| timed.0 == at.0 && timed != at);
            let dated = self
                .draft
                .conditions
                .iter()
                .any(|c| matches!(c.test, Test::Days(..)) && other_time(c.column));
            // "The last delivered order" was ordered last or delivered last.
            let dated = dated || self.draft.extreme.is_some_and(|(at, _)| other_time(at));
            let dated = dated || self.draft.busiest.is_some_and(other_time);
            let dated = dated || self.draft.order.iter().any(|(at, _)| other_time(*at));
            let grouped =
                self.draft.groups.iter().any(|g| matches!(g, Group::Period(at, _) if other_time(*at)));
            if dated || grouped {
                return Err(Reason::WhichDay);
            }
        }
        Ok(())
    }

    fn step(&mut self, item: &Item) -> Result<(), Reason> {
        if item.quoted && item.meanings.is_empty() {
            return Err(Reason::NoSuchValue(item.written.clone()));
        }
        // "first", "it": a value only beside its column.
        if let Some(column) = self.weak_value(item) {
            return self.value(column, String::new());
        }
        if let Some((columns, end)) = self.of_next_table() {
            return self.shown_of(columns, end);
        }
        if self.is_merely_new(item) {
            self.at += 1;
            return Ok(());
        }
        if self.related()? {
            return Ok(());
        }
        // What never was is no state of a column.
        if self.waiting.never && !item.is_light() {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        if !item.meanings.is_empty() {
            match self.sense()? {
                Some(sense) => return self.take(sense),
                None if item.role.is_none() => return Err(self.no_sense(item)),
                None => {}
            }
        }
        if let Some((test, unit, next)) = self.comparison(self.at) {
            return self.number(test, unit.as_deref(), next);
        }
        if let Some(days) = item.days {
            return self.days(days);
        }
        match item.role {
            Some(role) => self.role(role, item),
            None if item.number.is_some() => Err(Reason::LooseNumber(item.written.clone())),
            None => Err(Reason::UnknownWord(item.written.clone())),
        }
    }

    /// "new customers in March": those whose day is in March, where "new" is no state of theirs.
    fn is_merely_new(&self, item: &Item) -> bool {
        let new = matches!(&*item.text, "new" | "nuovo" | "nuova" | "nuovi" | "nuove");
        let main = self.draft.main;
        let own =
            item.meanings.iter().any(|meaning| matches!(meaning, Meaning::Value(at, _) if at.0 == main));
        let main_next =
            self.items.get(self.at + 1).is_some_and(|next| next.meanings.contains(&Meaning::Table(main)));
        let dated = self
            .items
            .iter()
            .any(|item| item.days.is_some() || matches!(item.role, Some(Role::PerPeriod(_))));
        new && !own && main_next && dated && self.time_of(main).is_ok() && !self.is_event(main)
    }

    /// The column of which a common word is a value, if its name comes next.
    fn weak_value(&self, item: &Item) -> Option<ColumnAt> {
        let next = self.items.get(self.at + 1)?;
        item.weak.iter().find_map(|meaning| match meaning {
            Meaning::Value(at, _)
                if at.0 == self.draft.main && next.meanings.contains(&Meaning::Column(*at)) =>
            {
                Some(*at)
            }
            _ => None,
        })
    }

    /// Why a name of something in the database does not fit.
    fn no_sense(&self, item: &Item) -> Reason {
        let far = item.meanings.iter().any(|meaning| !matches!(meaning, Meaning::Value(..)));
        if far { Reason::TooFar(item.written.clone()) } else { Reason::Unclear(item.written.clone()) }
    }

    /// Notes a word that waits for what it is about; says whether it is one.
    fn waits(&mut self, role: Role) -> Result<bool, Reason> {
        // "sort the suppliers by name"
        let table_next = self
            .items
            .get(self.after_light(self.at + 1))
            .is_some_and(|item| item.meanings.contains(&Meaning::Table(self.draft.main)));
        if role == Role::SortedBy && table_next && self.draft.main_at.is_none() {
            self.draft.sorts = true;
            return Ok(true);
        }
        let waiting = &mut self.waiting;
        match role {
            Role::Link | Role::And | Role::Between => {}
            // "the cheapest product, and how much does it cost?"
            Role::HowMuch if self.draft.main_at.is_some() && self.draft.extreme.is_some() => {
                waiting.their = true
            }
            Role::HowMuch => self.draft.how_much = true,
            Role::With => waiting.with = true,
            Role::Where if self.at > 0 => waiting.with = true,
            Role::By => waiting.by = true,
            Role::Tie => waiting.tie = true,
            Role::WithA => waiting.with_a = true,
            Role::WithTheir => waiting.their = true,
            Role::Not => waiting.not = true,
            Role::Without => waiting.without = true,
            Role::Never => waiting.never = true,
            Role::Distinct => {
                waiting.distinct = true;
                let after = self
                    .items
                    .get(self.at)
                    .is_some_and(|item| item.text.starts_with("senza") || item.text.starts_with("without"));
                if let Some(mention) = self.draft.mentions.last_mut().filter(|_| after) {
                    mention.distinct = true;
                }
            }
            Role::Per | Role::Each => waiting.per = true,
            Role::SortedBy => waiting.sorted = true,
            Role::Most => waiting.most = true,
            Role::Fewest => waiting.fewest = true,
            Role::Ascending if waiting.sorted => waiting.direction = Some(Direction::Up),
            Role::Descending if waiting.sorted => waiting.direction = Some(Direction::Down),
            Role::MostCommon => waiting.most_common = true,
            Role::Aggregate(function) if waiting.aggregate.is_none() => waiting.aggregate = Some(function),
            // "minimum, maximum and average price"
            Role::Aggregate(function) => waiting.also(function)?,
            Role::Verb(quality) if waiting.their => {
                let at = qualities::column(self.database, self.draft.main, quality).ok_or(Reason::Unsure)?;
                self.show_too(at);
            }
            Role::Verb(quality) => waiting.verb = Some(quality),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A column that is shown with what names a row.
    fn show_too(&mut self, column: ColumnAt) {
        let (distinct, shown, before, plural, whole) = (false, true, false, false, false);
        self.draft.mentions.push(Mention { column, distinct, shown, before, plural, whole });
        self.clear();
    }

    fn role(&mut self, role: Role, item: &Item) -> Result<(), Reason> {
        if self.waits(role)? {
            self.at += 1;
            return Ok(());
        }
        let waiting = self.waiting;
        match role {
            Role::Filler => {
                let shows = ["show", "list", "display", "mostra", "elenca", "elenco", "visualizza"];
                self.draft.show |=
                    shows.iter().any(|word| item.text.split(' ').any(|part| part.starts_with(word)));
            }
            Role::Which => {
                self.waiting.which = true;
                self.draft.show = true;
            }
            Role::Count => self.count(item)?,
            Role::Extreme(direction) => self.extreme(direction)?,
            Role::Best(direction) if self.is_about_rating() => self.extreme(direction)?,
            Role::Best(_) => return Err(Reason::Beyond(Beyond::Judgement)),
            Role::Quality(quality, direction) => self.quality(quality, direction)?,
            Role::Top => self.top()?,
            Role::Alphabetical => self.draft.alphabetical = true,
            Role::When => self.draft.when = true,
            Role::Total => self.draft.total = true,
            Role::NewestFirst | Role::OldestFirst => {
                let direction = if role == Role::NewestFirst { Direction::Down } else { Direction::Up };
                let time = self.time_of(self.draft.main)?;
                self.draft.order.push((time, direction));
            }
            Role::PerPeriod(period) if self.is_rate(period)? => {}
            Role::PerPeriod(period) => self.period(period)?,
            Role::Period(period) if waiting.per => {
                self.waiting.per = false;
                self.period(period)?;
            }
            Role::Period(period) if super::asked_period(self.items) == Some(self.at) => {
                self.waiting.which = false;
                self.draft.which_period = Some((period, PERIODS.contains(&item.text.as_str())));
            }
            Role::Period(period) if waiting.by && self.draft.count => {
                self.waiting.by = false;
                self.period(period)?;
            }
            Role::Beyond(beyond) => return Err(Reason::Beyond(beyond)),
            Role::AtLeastOne => return Err(Reason::Beyond(Beyond::Steps)),
            Role::Ascending => self.directed(item, Direction::Up)?,
            Role::Descending => self.directed(item, Direction::Down)?,
            _ => return Err(Reason::Unclear(item.written.clone())),
        }
        self.at += 1;
        Ok(())
    }

    /// "Cheapest first", and "orders by channel, highest first".
    fn directed(&mut self, item: &Item, direction: Direction) -> Result<(), Reason> {
        if is_about_price(&item.text) {
            let column = qualities::column(self.database, self.draft.main, Quality::Price);
            self.draft.order.push((column.ok_or(Reason::Unsure)?, direction));
        } else if self.ends_with_groups() {
            self.draft.ranked = Some(direction);
        } else {
            return Err(Reason::Unclear(item.written.clone()));
        }
        Ok(())
    }

    /// Whether groups of what is computed were read, and no order is wanted of anything else.
    fn ends_with_groups(&self) -> bool {
        let draft = &self.draft;
        self.is_computed() && !draft.groups.is_empty() && draft.order.is_empty() && draft.ranked.is_none()
    }

    /// "how many", and the number of a total or an average: "the average number of credits".
    fn count(&mut self, item: &Item) -> Result<(), Reason> {
        let computed = self.waiting.aggregate.is_some() || self.waiting.extreme.is_some();
        let numeric = |item: &Item| {
            item.meanings.iter().any(|meaning| match meaning {
                Meaning::Column(at) => {
                    at.0 == self.draft.main && self.column(*at).is_some_and(|c| c.kind.is_number())
                }
                _ => false,
            })
        };
        // "by number of stars"
        if self.waiting.by_or_per() && self.draft.count && self.items.get(self.at + 1).is_some_and(numeric) {
            return Ok(());
        }
        if self.is_of_number() {
            let sums = item.text.contains("total") || item.text.contains("complessiv");
            if sums && !computed {
                self.waiting.aggregate = Some(Function::Sum);
            }
            return if sums || computed { Ok(()) } else { Err(Reason::Unsure) };
        }
        let again = self.draft.count || (self.draft.main_at.is_some() && !self.draft.groups.is_empty());
        if computed || again {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        self.waiting.counted = true;
        self.draft.count = true;
        Ok(())
    }

    /// "the top 5", "the first"
    fn top(&mut self) -> Result<(), Reason> {
        // "first visits", where a visit may be of the kind "first".
        let item = self.items.get(self.at);
        let kind = |meaning: &Meaning| matches!(meaning, Meaning::Value(at, _) if at.0 == self.draft.main);
        if let Some(item) = item.filter(|item| item.weak.iter().any(kind)) {
            return Err(Reason::Unclear(item.written.clone()));
        }
        let limit = self.items.get(self.at + 1).and_then(|next| next.number.clone());
        self.limit(limit.as_deref())?;
        if limit.is_none() && self.is_earliest() {
            let time = self.time_of(self.draft.main)?;
            return self.set_extreme(time, Direction::Up);
        }
        // "the first and the last"
        if limit.is_none() && self.role_at(self.at + 1) == Some(Role::And) {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        self.waiting.top = true;
        self.at += usize::from(limit.is_some());
        Ok(())
    }

    /// "Which customer registered first?", "the first order"
    fn is_earliest(&self) -> bool {
        let first = self.items.get(self.at).is_some_and(|item| {
            matches!(&*item.text, "first" | "primo" | "prima" | "per primo" | "per prima")
        });
        let verb = |item: &Item| {
            let main = self.draft.main;
            item.meanings
                .iter()
                .any(|m| matches!(m, Meaning::Column(at) if self.time_of(main).ok() == Some(*at)))
        };
        let last = self.at + 1 == self.items.len();
        let after_verb = last && self.at.checked_sub(1).and_then(|at| self.items.get(at)).is_some_and(verb);
        let main_next = self.items.get(self.at + 1).is_some_and(|item| {
            item.meanings.contains(&Meaning::Table(self.draft.main))
                && !super::tokens::is_english_plural(&item.text)
        });
        let before_main = main_next && (self.draft.when || self.is_event(self.draft.main));
        first && (after_verb || before_main)
    }

    fn limit(&mut self, number: Option<&str>) -> Result<(), Reason> {
        let Some(number) = number else { return Ok(()) };
        let limit = number.parse().ok().filter(|limit| (1..=1000).contains(limit));
        if limit.is_none() || self.draft.limit.is_some() {
            return Err(Reason::LooseNumber(number.to_owned()));
        }
        self.draft.limit = limit;
        Ok(())
    }

    /// "less than 2000 a year", of a column that holds amounts by the year: the period is that of the amount.
    fn is_rate(&self, period: Period) -> Result<bool, Reason> {
        let last = self.at.checked_sub(1).and_then(|at| self.items.get(at));
        let amount = |item: &Item| {
            item.number.is_some() || item.days.is_some() || matches!(item.role, Some(Role::Unit(_)))
        };
        let number = |test: &Test| matches!(test, Test::Compare(..) | Test::Between(..));
        let Some(condition) = self.draft.conditions.last().filter(|c| number(&c.test)) else {
            return Ok(false);
        };
        if !last.is_some_and(amount) {
            return Ok(false);
        }
        let description = self.column(condition.column).and_then(|column| column.description.get("en"));
        let yearly = description.is_some_and(|text| text.to_lowercase().contains("yearly"));
        if period == Period::Year && yearly { Ok(true) } else { Err(Reason::Unsure) }
    }

    /// "Enrolments by year" may be by academic year.
    fn not_by_another_year(&self, period: Period) -> Result<(), Reason> {
        let columns = self.database.tables.get(self.draft.main).map(|table| table.columns.as_slice());
        let is_year = |column: &ColumnDescription| {
            column.kind == ColumnType::Text && column.name.split('_').any(|part| part == "year")
        };
        let is_unclear = period == Period::Year && columns.unwrap_or_default().iter().any(is_year);
        if is_unclear { Err(Reason::WhichDay) } else { Ok(()) }
    }

    fn period(&mut self, period: Period) -> Result<(), Reason> {
        self.not_by_another_year(period)?;
        // "delivered in 2026, per month": by the day that was just spoken of.
        let said = self.draft.conditions.iter().rev().find(|condition| {
            matches!(condition.test, Test::Days(..)) && condition.column.0 == self.draft.main
        });
        let column = match said.map(|condition| condition.column) {
            Some(column) => column,
            None => self.time_of(self.draft.main)?,
        };
        self.draft.groups.push(Group::Period(column, period));
        Ok(())
    }

    /// "the average number of credits": a number of the rows, no number of rows.
    fn is_of_number(&self) -> bool {
        let asked = self.waiting.aggregate.is_some() || self.waiting.extreme.is_some();
        let total = self
            .items
            .get(self.at)
            .is_some_and(|item| item.text.contains("tot") || item.text.contains("compl"));
        let main = self.draft.main;
        let number = |meaning: &Meaning| match meaning {
            Meaning::Column(at) if at.0 == main => {
                self.column(*at).is_some_and(|c| c.kind.is_number() && c.references.is_none() && !c.unique)
            }
            _ => false,
        };
        let next = self.items.get(self.after_light(self.at + 1));
        let table = |item: &Item| item.meanings.iter().any(|meaning| matches!(meaning, Meaning::Table(_)));
        (asked || total) && next.is_some_and(|next| next.meanings.iter().any(number) && !table(next))
    }

    /// "the best rating", "il voto migliore"
    fn is_about_rating(&self) -> bool {
        let rating = |item: Option<&Item>| {
            item.is_some_and(|item| {
                item.meanings
                    .iter()
                    .any(|m| matches!(m, Meaning::Column(at) if qualities::is_rating(self.database, *at)))
            })
        };
        rating(self.items.get(self.at + 1))
            || rating(self.at.checked_sub(1).and_then(|at| self.items.get(at)))
    }

    /// "The highest": of a column that is named before or after.
    fn extreme(&mut self, direction: Direction) -> Result<(), Reason> {
        let function = |direction| if direction == Direction::Down { Function::Max } else { Function::Min };
        if let Some(first) = self.waiting.extreme.take() {
            // "the highest and lowest price"
            let both = self.at.checked_sub(1).and_then(|at| self.role_at(at)) == Some(Role::And);
            if !both || self.draft.main_at.is_some() || self.waiting.aggregate.is_some() {
                return Err(Reason::Unsure);
            }
            self.waiting.aggregate = Some(function(first));
            return self.waiting.also(function(direction));
        }
        self.waiting.extreme = Some(direction);
        Ok(())
    }

    fn set_extreme(&mut self, column: ColumnAt, direction: Direction) -> Result<(), Reason> {
        if self.draft.extreme.is_some() || column.0 != self.draft.main {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        self.draft.extreme = Some((column, direction));
        self.waiting.top = false;
        Ok(())
    }

    fn quality(&mut self, quality: Quality, direction: Direction) -> Result<(), Reason> {
        // "the latest delivery date"
        let time_next = self.items.get(self.at + 1).is_some_and(|next| {
            let date =
                next.text.split(' ').any(|word| ["date", "data"].iter().any(|noun| word.starts_with(noun)));
            date && next.meanings.iter().any(|meaning| match meaning {
                Meaning::Column(at) => {
                    at.0 == self.draft.main && self.column(*at).is_some_and(|c| c.kind.is_time())
                }
                _ => false,
            })
        });
        if quality == Quality::Time && time_next && self.draft.main_at.is_none() {
            return self.extreme(direction);
        }
        let column = match quality {
            Quality::Time => self.time_of(self.draft.main)?,
            Quality::Birth => match qualities::column(self.database, self.draft.main, quality) {
                Some(column) => column,
                None if self.is_event(self.draft.main) => self.time_of(self.draft.main)?,
                None => return Err(Reason::Unsure),
            },
            _ => qualities::column(self.database, self.draft.main, quality).ok_or(Reason::Unsure)?,
        };
        if std::mem::take(&mut self.waiting.sorted) {
            self.draft.order.push((column, direction));
            return Ok(());
        }
        // "the last 5 orders"
        let next = self.items.get(self.at + 1).and_then(|next| next.number.clone());
        if let Some(number) = next {
            self.limit(Some(&number))?;
            self.at += 1;
        }
        self.set_extreme(column, direction)
    }

    /// Whether the rows of a table are events rather than people or things, which have ages of their own.
    pub(super) fn is_event(&self, table: usize) -> bool {
        self.database.tables.get(table).is_some_and(|table| {
            !table
                .columns
                .iter()
                .any(|column| column.name.ends_with("name") || column.name.ends_with("title"))
        })
    }

    fn clear(&mut self) {
        self.waiting = Waiting { top: self.waiting.top, ..Waiting::default() };
    }

    /// The next phrase that is more than a link.
    fn after_light(&self, mut at: usize) -> usize {
        while self.items.get(at).is_some_and(Item::is_light) {
            at += 1;
        }
        at
    }

    fn role_at(&self, at: usize) -> Option<Role> {
        self.items.get(at).filter(|item| item.meanings.is_empty()).and_then(|item| item.role)
    }
}

impl Waiting {
    fn by_or_per(self) -> bool {
        self.by || self.per
    }

    fn also(&mut self, function: Function) -> Result<(), Reason> {
        let free = self.more_aggregates.iter_mut().find(|place| place.is_none());
        *free.ok_or(Reason::Beyond(Beyond::Steps))? = Some(function);
        Ok(())
    }

    fn aggregates(self) -> impl Iterator<Item = Function> {
        self.aggregate.into_iter().chain(self.more_aggregates.into_iter().flatten())
    }
}

/// Whether words for an order are about prices.
fn is_about_price(text: &str) -> bool {
    ["expensive", "cheap", "caro", "costos", "econom"].iter().any(|word| text.contains(word))
}
