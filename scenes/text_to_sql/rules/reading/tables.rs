//! The table that the question is about, and the one it is joined with.

use super::super::description::TableDescription;
use super::super::draft::{Mention, Other};
use super::super::lexicon::{Beyond, Function, Period, Quality, Role};
use super::super::request::{Condition, Group, Join, Test};
use super::super::tokens::stem;
use super::super::vocabulary::{ColumnAt, Item, Meaning};
use super::super::{Reason, Tongue, qualities};
use super::columns::fits_unit;
use super::{Reader, Sense, Waiting};

/// How far away another way to a table is looked for.
const FAR_STEPS: usize = 3;

/// Parts of the question.
impl Reader<'_> {
    pub(super) fn take(&mut self, sense: Sense) -> Result<(), Reason> {
        match sense {
            Sense::Main => self.main(),
            Sense::Table(table) => self.table(table, None),
            Sense::Parent(key, table) => self.parent(key, table),
            Sense::Column(column) => self.named_column(column),
            Sense::Value(column, value) => self.value(column, value),
        }
    }

    pub(super) fn main(&mut self) -> Result<(), Reason> {
        let waiting = self.waiting;
        // "every product" in a list is all of them.
        let all = waiting.per && self.draft.main_at.is_none() && !self.is_computed();
        if waiting.most || (waiting.counted && waiting.by_or_per() && self.draft.limit.is_some()) {
            return self.most_of_column();
        }
        // "Average rating by supplier" groups what each supplier has one of.
        let grouped = waiting.by && self.is_computed();
        let misplaced = waiting.not || waiting.without || waiting.sorted || waiting.fewest || waiting.tie;
        if (waiting.per && !all) || misplaced || grouped {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        // "customer reviews": the reviews, whose customers need no saying.
        self.draft.main_at = Some(self.at);
        self.draft.plural = self.is_plural();
        self.context = self.draft.main;
        let kept = Waiting {
            aggregate: waiting.aggregate,
            more_aggregates: waiting.more_aggregates,
            extreme: waiting.extreme,
            most_common: waiting.most_common,
            top: waiting.top,
            ..Waiting::default()
        };
        let column_next = self.items.get(self.at + 1).is_some_and(|next| {
            next.meanings
                .iter()
                .any(|meaning| matches!(meaning, Meaning::Column(at) if at.0 == self.draft.main))
        });
        self.waiting = Waiting {
            distinct: waiting.distinct && column_next,
            which: waiting.which && column_next,
            ..kept
        };
        let money = qualities::money(self.database, self.draft.main);
        // "the five largest payments"
        if let (Some(direction), Some(column), true) = (waiting.extreme, money, self.draft.limit.is_some())
            && !column_next
        {
            self.waiting.extreme = None;
            self.set_extreme(column, direction)?;
        }
        // "Quanto pesano in media i prodotti?"
        if let Some(quality) = waiting.verb {
            self.at += 1;
            return self.average_of(quality);
        }
        self.at += 1;
        if !column_next && self.of_money(money) {
            return Ok(());
        }
        if !column_next && self.waiting.extreme.is_some() {
            return Err(Reason::Beyond(Beyond::Judgement));
        }
        if !column_next && waiting.aggregate.is_some() {
            return Err(Reason::Unsure);
        }
        self.own_number()
    }

    /// "the average scholarship", "the sum of the payments": whether it is about the table's one amount.
    fn of_money(&mut self, money: Option<ColumnAt>) -> bool {
        let (Some(column), Some(function)) = (money, self.waiting.aggregate) else { return false };
        let one = self.waiting.aggregates().count() == 1;
        // A sum of prices says nothing.
        let summed = qualities::amount(self.database, self.draft.main) == Some(column) && self.sums_up();
        let clear = function == Function::Average || (function == Function::Sum && summed);
        if one && clear {
            self.draft.aggregates.push((function, column));
            self.draft.implied_money = true;
            self.waiting.aggregate = None;
        }
        one && clear
    }

    /// What a verb of price, weight or pay is about, computed as was asked.
    pub(super) fn average_of(&mut self, quality: Quality) -> Result<(), Reason> {
        let column = qualities::column(self.database, self.draft.main, quality).ok_or(Reason::Unsure)?;
        let functions: Vec<Function> = self.waiting.aggregates().collect();
        if functions.is_empty() {
            return Err(Reason::Unsure);
        }
        self.draft.aggregates.extend(functions.into_iter().map(|function| (function, column)));
        self.clear();
        Ok(())
    }

    /// "the sum of", "the total of", not "the total payments", which may be how many.
    fn sums_up(&self) -> bool {
        self.items
            .iter()
            .take(self.at)
            .filter(|item| matches!(item.role, Some(Role::Aggregate(Function::Sum))))
            .any(|item| {
                let words: Vec<&str> = item.text.split(' ').collect();
                words.iter().any(|word| matches!(*word, "sum" | "somma"))
                    || words.len() > 1
                        && words.iter().any(|word| matches!(*word, "of" | "dei" | "degli" | "delle" | "del"))
            })
    }

    /// "Grades above 28": the table is called like its number.
    pub(super) fn own_number(&mut self) -> Result<(), Reason> {
        let Some(item) = self.at.checked_sub(1).and_then(|at| self.items.get(at)) else { return Ok(()) };
        let number = |meaning: &Meaning| match meaning {
            Meaning::Column(at) if at.0 == self.draft.main => {
                self.column(*at).filter(|c| c.kind.is_number() && c.references.is_none()).map(|_| *at)
            }
            _ => None,
        };
        let columns: Vec<ColumnAt> = item.meanings.iter().filter_map(number).collect();
        let next = self.after_light(self.at);
        let ([at], Some((test, unit, end))) = (columns.as_slice(), self.comparison(next)) else {
            return Ok(());
        };
        if self.column_after(end).is_some() {
            return Ok(());
        }
        let Some(column) = self.column(*at).cloned() else { return Ok(()) };
        fits_unit(&column, unit.as_deref())?;
        let at = *at;
        self.condition(at, test)?;
        self.done(end)
    }

    /// "Which city has the most customers?", "the top 5 cities by number of customers"
    pub(super) fn most_of_column(&mut self) -> Result<(), Reason> {
        if let Some((period, _)) = self.draft.which_period {
            return self.most_of_period(period);
        }
        let [mention] = self.draft.mentions.as_slice() else { return Err(Reason::Beyond(Beyond::Steps)) };
        let fits = mention.before && mention.column.0 == self.draft.main && self.draft.most_common.is_none();
        if !fits || self.waiting.not || self.waiting.without || self.waiting.sorted {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        // "In which year were the most scholarships awarded?" may be the academic year or that of the award.
        let time = self.time_of(self.draft.main).ok();
        let is_year = self.column(mention.column).is_some_and(|column| column.name.ends_with("year"));
        let says_time = |item: &Item| time.is_some_and(|time| item.meanings.contains(&Meaning::Column(time)));
        if is_year && self.items.iter().any(says_time) {
            return Err(Reason::WhichDay);
        }
        self.draft.most_common = Some(mention.column);
        self.draft.most_plural = mention.plural;
        self.draft.mentions.clear();
        self.draft.count = false;
        self.draft.main_at = Some(self.at);
        self.clear();
        self.at += 1;
        Ok(())
    }

    /// "Which month of 2026 had the most orders?"
    fn most_of_period(&mut self, period: Period) -> Result<(), Reason> {
        if self.waiting.not || self.waiting.without || self.waiting.sorted || !self.draft.mentions.is_empty()
        {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        self.not_by_another_year(period)?;
        let time = self.time_of(self.draft.main)?;
        // "The most products" are there and do not happen; "registered" says what did.
        let says_so = |item: &Item| item.meanings.contains(&Meaning::Column(time));
        let happens = self.is_event(self.draft.main) || self.items.iter().any(says_so);
        // A month of one year, and not every March.
        let within_year = |item: &Item| {
            let days = item.days.and_then(|days| Some((days.from?, days.to?.yesterday().ok()?)));
            days.is_some_and(|(from, last)| from.year() == last.year())
        };
        let is_clear = match period {
            Period::Year => true,
            Period::Month => self.items.iter().any(within_year),
            Period::Day => false,
        };
        if !happens || !is_clear {
            return Err(Reason::Unsure);
        }
        self.draft.busiest = Some(time);
        self.draft.main_at = Some(self.at);
        self.clear();
        self.at += 1;
        Ok(())
    }

    pub(super) fn is_plural(&self) -> bool {
        let Some(item) = self.items.get(self.at) else { return false };
        // "which of our products", "quale dei prodotti": one of them.
        let text = |at: usize| self.items.get(at).map_or("", |item| item.text.as_str());
        if text(0) == "quale" || (text(0) == "which" && text(1).starts_with("of")) {
            return false;
        }
        let head = item.text.split(' ').next().unwrap_or_default();
        let last = item.text.split(' ').next_back().unwrap_or_default();
        if self.tongue == Tongue::English {
            return stem(last, self.tongue) != last;
        }
        let plural = ["i", "gli", "le", "dei", "degli", "delle", "quali", "sono"];
        let led = self.items.iter().take(self.at).rev().take(2);
        let led = led.chain(self.items.iter().take(2));
        let led = led.flat_map(|item| item.text.split(' ')).any(|word| plural.contains(&word));
        // "prodotti", and "categorie", whose singular ends in a.
        let synonyms = self.database.tables.iter().flat_map(|table| table.synonyms.get("it")).flatten();
        let singular = head.strip_suffix('e').map(|root| format!("{root}a"));
        led || head.ends_with('i') || synonyms.into_iter().any(|name| Some(name) == singular.as_ref())
    }

    /// How the main table is linked to another.
    pub(super) fn join(&self, table: usize, key: Option<ColumnAt>) -> Result<Join, Reason> {
        let main = self.draft.main;
        if let Some(other) = self.draft.other {
            return if other.join.table == table {
                Ok(other.join)
            } else {
                Err(Reason::Beyond(Beyond::Steps))
            };
        }
        let up = self.database.keys(main, table);
        let down = self.database.keys(table, main);
        let join = |table, key, target, to_parent| Join { table, key, target, to_parent };
        match (up.as_slice(), down.as_slice()) {
            _ if table == main => Err(Reason::Beyond(Beyond::Steps)),
            ([(column, target)], []) => Ok(join(table, (main, *column), (table, *target), true)),
            ([], [(column, target)]) => Ok(join(table, (table, *column), (main, *target), false)),
            ([], []) => {
                Err(Reason::TooFar(self.items.get(self.at).map(|i| i.written.clone()).unwrap_or_default()))
            }
            _ => {
                let key = key.ok_or(Reason::Unsure)?;
                let target = up.iter().find(|(column, _)| *column == key.1).ok_or(Reason::Unsure)?.1;
                Ok(join(table, key, (table, target), true))
            }
        }
    }

    pub(super) fn use_other(&mut self, join: Join, used: bool) {
        let used = used || self.draft.other.is_some_and(|other| other.used);
        self.draft.other = Some(Other { join, used });
        self.context = join.table;
    }

    /// A foreign key by its own name, which is the table it points to seen from here.
    pub(super) fn parent(&mut self, key: ColumnAt, table: usize) -> Result<(), Reason> {
        if key.0 != self.draft.main {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        let nullable = self.column(key).is_some_and(|column| column.nullable);
        if self.waiting.without || self.role_at(self.after_light(self.at + 1)) == Some(Role::Missing) {
            let missing = !self.waiting.without;
            if !nullable {
                return Err(Reason::Unsure);
            }
            self.draft.conditions.push(Condition { column: key, test: Test::Null });
            self.at = if missing { self.after_light(self.at + 1) + 1 } else { self.at + 1 };
            self.clear();
            return Ok(());
        }
        let there = self.waiting.with_a || (self.waiting.with && table == self.draft.main);
        if there && nullable && !self.value_follows(table) {
            self.draft.conditions.push(Condition { column: key, test: Test::NotNull });
            self.at += 1;
            self.clear();
            return Ok(());
        }
        self.table(table, Some(key))
    }

    /// Whether a value of this table follows, so that its name only says what the value is.
    pub(super) fn value_follows(&self, table: usize) -> bool {
        let mut at = self.after_light(self.at + 1);
        // "the supplier's country is Italy" has the column between.
        let column =
            |item: &Item| item.meanings.iter().any(|m| matches!(m, Meaning::Column(at) if at.0 == table));
        let value =
            |item: &Item| item.meanings.iter().any(|m| matches!(m, Meaning::Value(at, _) if at.0 == table));
        if self.items.get(at).is_some_and(|item| column(item) && !value(item)) {
            at = self.after_light(at + 1);
        }
        self.items.get(at).is_some_and(value)
    }

    pub(super) fn table(&mut self, table: usize, key: Option<ColumnAt>) -> Result<(), Reason> {
        let waiting = self.waiting;
        let value_follows = self.value_follows(table);
        let grouping = waiting.per || (waiting.by && (self.draft.count || !self.draft.aggregates.is_empty()));
        if grouping
            && !value_follows
            && key.is_none()
            && self.draft.other.is_none()
            && self.group_by_far(table)?
        {
            return Ok(());
        }
        let join = self.join(table, key)?;
        if waiting.most || (waiting.counted && waiting.by_or_per() && self.draft.limit.is_some()) {
            // "più venduto" is no number of sales.
            let head =
                self.items.get(self.at).and_then(|item| item.text.split(' ').next()).unwrap_or_default();
            if join.to_parent || self.draft.most || head.ends_with('o') {
                return Err(Reason::Beyond(Beyond::Steps));
            }
            self.draft.most = true;
            self.draft.count = false;
            self.use_other(join, true);
        } else if self.asks_of_table() {
            return Err(Reason::Beyond(Beyond::Steps));
        } else if waiting.without {
            let nullable = join.to_parent && self.column(join.key).is_some_and(|column| column.nullable);
            if !nullable {
                return Err(Reason::Beyond(Beyond::Steps));
            }
            self.draft.conditions.push(Condition { column: join.key, test: Test::Null });
        } else if grouping && !value_follows {
            if !join.to_parent {
                return Err(Reason::Beyond(Beyond::Steps));
            }
            self.use_other(join, true);
            self.draft.groups.push(Group::Parent(join.key, table));
        } else if (waiting.their || waiting.with) && join.to_parent && self.is_possessive() {
            // "with the customer's name"
            self.use_other(join, false);
            self.clear();
            self.waiting.their = true;
            self.at += 1;
            self.at += usize::from(self.items.get(self.at).is_some_and(|item| item.text == "s"));
            return Ok(());
        } else if waiting.their {
            self.shown_parent(join)?;
        } else {
            self.is_needed(table, join, value_follows)?;
            self.use_other(join, false);
        }
        self.clear();
        self.at += 1;
        Ok(())
    }

    /// "Average rating per category": the category of the product that is reviewed, if there is no other way to a category.
    /// Says whether it is that.
    fn group_by_far(&mut self, table: usize) -> Result<bool, Reason> {
        let main = self.draft.main;
        let is_near =
            !self.database.keys(main, table).is_empty() || !self.database.keys(table, main).is_empty();
        if is_near || table == main || self.draft.far.is_some() || self.asks_of_table() {
            return Ok(false);
        }
        // Suppliers have ratings of their own, and "sold items" may be pieces.
        let is_own = |meaning: &Meaning| matches!(meaning, Meaning::Column(at) if at.0 == table);
        let others = self.items.iter().enumerate().filter(|(at, _)| *at != self.at);
        let has_own = others.into_iter().any(|(_, item)| item.meanings.iter().any(is_own));
        if has_own || self.counts_pieces(main) {
            return Ok(false);
        }
        let ways = self.ways_up(main, table, FAR_STEPS);
        let [way] = ways.as_slice() else { return Ok(false) };
        let [via, to] = way.as_slice() else { return Ok(false) };
        self.draft.far = Some([*via, *to]);
        self.draft.groups.push(Group::Parent(to.key, table));
        self.group_end = Some(self.at + 1);
        self.clear();
        self.at += 1;
        Ok(true)
    }

    /// All ways from a table to one that it refers to, directly or by others.
    fn ways_up(&self, from: usize, to: usize, steps: usize) -> Vec<Vec<Join>> {
        let mut ways = Vec::new();
        if steps == 0 {
            return ways;
        }
        for table in (0..self.database.tables.len()).filter(|table| *table != from) {
            for (key, target) in self.database.keys(from, table) {
                let join = Join { table, key: (from, key), target: (table, target), to_parent: true };
                let rest = match table == to {
                    true => vec![Vec::new()],
                    false => self.ways_up(table, to, steps - 1),
                };
                ways.extend(rest.into_iter().map(|rest| std::iter::once(join).chain(rest).collect()));
            }
        }
        ways
    }

    /// Whether another table is named for a reason: something ties it to the main one, or says which of its rows.
    fn is_needed(&self, table: usize, join: Join, value_follows: bool) -> Result<(), Reason> {
        let waiting = self.waiting;
        let tied = waiting.with || waiting.with_a || waiting.tie;
        let alone = !value_follows && !tied && !self.column_or_value_before(table);
        if (alone && !join.to_parent && !self.says_more(table)) || waiting.distinct || waiting.which {
            return Err(Reason::Unsure);
        }
        // "Orders by customer" may be a list or a number by customer.
        if alone && waiting.by {
            return Err(Reason::ListedByGroup);
        }
        // "orders and customers" are two lists.
        match self.at.checked_sub(1).and_then(|at| self.role_at(at)) {
            Some(Role::And) if alone => Err(Reason::Beyond(Beyond::Steps)),
            _ => Ok(()),
        }
    }

    /// "the customer's": what follows is the customer's.
    fn is_possessive(&self) -> bool {
        let column = |item: &Item| item.meanings.iter().any(|meaning| matches!(meaning, Meaning::Column(_)));
        let tail = self.items.get(self.at + 1).is_some_and(|item| item.text == "s");
        self.tongue == Tongue::English && self.items.get(self.at + 1 + usize::from(tail)).is_some_and(column)
    }

    /// Whether something was asked of another table that is asked of columns or of the main table only.
    pub(super) fn asks_of_table(&self) -> bool {
        let waiting = self.waiting;
        let counted = waiting.counted && self.draft.main_at.is_some();
        counted
            || waiting.fewest
            || waiting.not
            || waiting.sorted
            || waiting.aggregate.is_some()
            || waiting.extreme.is_some()
    }

    /// "products with their supplier": what names the supplier is shown.
    pub(super) fn shown_parent(&mut self, join: Join) -> Result<(), Reason> {
        if !join.to_parent {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        self.use_other(join, true);
        let label = self.database.tables.get(join.table).map(TableDescription::label_columns);
        for column in label.unwrap_or_default() {
            let column = (join.table, column);
            self.draft.mentions.push(Mention {
                column,
                distinct: false,
                shown: true,
                before: false,
                plural: false,
                whole: false,
            });
        }
        Ok(())
    }

    /// Whether a condition on this table was read just before: "cancelled orders".
    pub(super) fn column_or_value_before(&self, table: usize) -> bool {
        self.draft.conditions.last().is_some_and(|condition| condition.column.0 == table)
    }

    /// Whether a date follows, which is this table's.
    pub(super) fn says_more(&self, table: usize) -> bool {
        let next = self.items.get(self.after_light(self.at + 1));
        self.database.tables.get(table).is_some_and(|table| table.time.is_some())
            && next.is_some_and(|next| next.days.is_some())
    }

    pub(super) fn touch(&mut self, column: ColumnAt) -> Result<(), Reason> {
        if column.0 == self.draft.main {
            return Ok(());
        }
        let join = self.join(column.0, None)?;
        let context = self.context;
        self.use_other(join, true);
        self.context = context;
        Ok(())
    }

    pub(super) fn condition(&mut self, column: ColumnAt, test: Test) -> Result<(), Reason> {
        self.touch(column)?;
        self.draft.conditions.push(Condition { column, test });
        Ok(())
    }

    pub(super) fn time_of(&self, table: usize) -> Result<ColumnAt, Reason> {
        let described = self.database.tables.get(table).ok_or(Reason::NoTime)?;
        let column = described.time.as_ref().and_then(|time| described.column(time)).ok_or(Reason::NoTime)?;
        let is_time = described.columns.get(column).is_some_and(|column| column.kind.is_time());
        if is_time { Ok((table, column)) } else { Err(Reason::NoTime) }
    }
}
