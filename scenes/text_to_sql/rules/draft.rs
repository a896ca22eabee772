//! What has been understood of a question so far, and how it is put together at the end.

use super::description::{ColumnDescription, DatabaseDescription, TableDescription};
use super::lexicon::{Beyond, Direction, Function, Period};
use super::request::{Answer, Condition, Group, Join, Related, Request};
use super::vocabulary::ColumnAt;
use super::who::has_people;
use super::{Reason, qualities};

/// A column that was mentioned, with nothing said of it.
#[derive(Clone, Copy, Debug)]
pub struct Mention {
    /// The column.
    pub column: ColumnAt,
    /// Whether "which" or "different" stood before it.
    pub distinct: bool,
    /// Whether it is asked for: before the table, directly after it, or "with their".
    pub shown: bool,
    /// Whether it came before the table that the question is about.
    pub before: bool,
    /// Whether it was mentioned in the plural.
    pub plural: bool,
    /// Whether it was called just "name".
    pub whole: bool,
}

/// The second table of the question.
#[derive(Clone, Copy, Debug)]
pub struct Other {
    /// How it is joined.
    pub join: Join,
    /// Whether it is needed: a condition, a group or a column of it.
    pub used: bool,
}

/// What has been understood so far.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The table that the question is about.
    pub main: usize,
    /// Where it was mentioned.
    pub main_at: Option<usize>,
    /// Whether it was mentioned in the plural.
    pub plural: bool,
    /// Whether the most common values were asked for in the plural.
    pub most_plural: bool,
    /// Whether it began with "sort the …", so that "by" is an order.
    pub sorts: bool,
    /// Whether the amount that is computed was named by its table only.
    pub implied_money: bool,
    /// Whether "who" was asked.
    pub who: bool,
    /// Whether "who" was asked of those to whom the rows belong, by what they did: "who teaches Statics?"
    pub has_doer: bool,
    /// Whether "when" was asked.
    pub when: bool,
    /// Whether "how much" was asked.
    pub how_much: bool,
    /// Whether a total was asked for.
    pub total: bool,
    /// Whether rows are asked for: "show", "which".
    pub show: bool,
    /// Whether a number of rows is asked for.
    pub count: bool,
    /// Aggregates asked for.
    pub aggregates: Vec<(Function, ColumnAt)>,
    /// Columns with nothing said of them.
    pub mentions: Vec<Mention>,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Groups.
    pub groups: Vec<Group>,
    /// The order of groups by what is computed of them.
    pub ranked: Option<Direction>,
    /// Order.
    pub order: Vec<(ColumnAt, Direction)>,
    /// By name.
    pub alphabetical: bool,
    /// How many rows at most.
    pub limit: Option<u32>,
    /// The greatest or least of a column.
    pub extreme: Option<(ColumnAt, Direction)>,
    /// The most rows of the other table.
    pub most: bool,
    /// The period of which the one with the most rows is asked for: "which month", and whether in the plural.
    pub which_period: Option<(Period, bool)>,
    /// The time column of that period, once the rows are known.
    pub busiest: Option<ColumnAt>,
    /// The most common value.
    pub most_common: Option<ColumnAt>,
    /// The second table.
    pub other: Option<Other>,
    /// The table between, and a table further away that rows are grouped by.
    pub far: Option<[Join; 2]>,
    /// How many rows of another table each row has.
    pub related: Vec<Related>,
}

impl Draft {
    /// The question as understood.
    ///
    /// # Errors
    /// If it is not clear, or beyond one table and one join.
    pub fn finish(mut self, database: &DatabaseDescription) -> Result<Request, Reason> {
        let main = database.tables.get(self.main).ok_or(Reason::NothingAsked)?;
        self.show_parent(database);
        if self.other.is_some_and(|other| !other.used && other.join.to_parent) {
            return Err(Reason::Unclear(name_of(database, self.other)));
        }
        // The rows of one more table are counted or joined, or those of a table further away.
        let more = [self.other.is_some(), !self.related.is_empty(), self.far.is_some()];
        if more.into_iter().filter(|more| *more).count() > 1 {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        let is_parent_group = |group: &Group| matches!(group, Group::Parent(..));
        if self.groups.iter().filter(|group| is_parent_group(group)).count() > 1 || self.groups.len() > 2 {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        self.no_contradictions()?;
        let columns: Vec<ColumnAt> = self.mentions.iter().map(|mention| mention.column).collect();
        self.moment(database)?;
        self.totalled(database)?;
        let answer = self.answer(database, main, &columns)?;
        self.ranks_groups(&answer, database)?;
        let join = self.other.map(|other| other.join);
        let fans_out = join.is_some_and(|join| !join.to_parent) && !matches!(answer, Answer::Most);
        let plain = matches!(answer, Answer::Rows { .. } | Answer::Count);
        if fans_out && !(plain && self.groups.is_empty() && main.primary_key.len() == 1) {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        Ok(Request {
            main: self.main,
            join,
            far: self.far,
            answer,
            conditions: self.conditions,
            related: self.related,
            groups: self.groups,
            ranked: self.ranked,
            order: self.order,
            limit: self.limit,
        })
    }

    /// What is asked for, with the columns that were mentioned.
    fn answer(
        &mut self,
        database: &DatabaseDescription,
        main: &TableDescription,
        columns: &[ColumnAt],
    ) -> Result<Answer, Reason> {
        Ok(if let Some((period, is_plural)) = self.which_period {
            self.must_be_alone(columns)?;
            if is_plural || self.limit.is_some() || self.other.is_some() || self.most_common.is_some() {
                return Err(Reason::HowMany);
            }
            Answer::BusiestPeriod(self.busiest.ok_or(Reason::Unsure)?, period)
        } else if let Some(column) = self.most_common {
            self.must_be_alone(columns)?;
            self.plural = self.most_plural;
            self.one_or_so_many()?;
            Answer::MostCommon(column)
        } else if self.most {
            self.must_be_alone(columns)?;
            self.one_or_so_many()?;
            Answer::Most
        } else if !self.aggregates.is_empty() {
            self.aggregate(columns)?
        } else if self.count || !self.groups.is_empty() {
            self.counting(database, columns)?
        } else {
            self.rows(database, main)?
        })
    }

    /// Whether the question is about people.
    pub fn has_people(&self, database: &DatabaseDescription) -> bool {
        database.tables.get(self.main).is_some_and(has_people)
    }

    /// "Orders by channel, highest first": the number is meant where the groups have only names, and one number each.
    fn ranks_groups(&self, answer: &Answer, database: &DatabaseDescription) -> Result<(), Reason> {
        if self.ranked.is_none() {
            return Ok(());
        }
        let is_name = |group: &Group| match group {
            Group::Column(at) => {
                let is_year = |name: &str| name.split('_').any(|part| part == "year");
                column_of(database, *at)
                    .is_some_and(|column| column.kind == super::ColumnType::Text && !is_year(&column.name))
            }
            Group::Parent(..) => true,
            Group::Period(..) => false,
        };
        let is_one = match answer {
            Answer::Count => true,
            Answer::Aggregates(list, counted) => list.len() == 1 && !counted,
            _ => false,
        };
        let [group] = self.groups.as_slice() else { return Err(Reason::Beyond(Beyond::Steps)) };
        if is_name(group) && is_one { Ok(()) } else { Err(Reason::Beyond(Beyond::Steps)) }
    }

    /// "Products with the category": what every row has is shown.
    fn show_parent(&mut self, database: &DatabaseDescription) {
        let rows =
            !self.count && self.aggregates.is_empty() && self.groups.is_empty() && self.extreme.is_none();
        let Some(other) = self.other.as_mut().filter(|other| rows && !other.used && other.join.to_parent)
        else {
            return;
        };
        if column_of(database, other.join.key).is_none_or(|key| key.nullable) || !self.mentions.is_empty() {
            return;
        }
        other.used = true;
        let table = other.join.table;
        let label = database.tables.get(table).map(TableDescription::label_columns).unwrap_or_default();
        for column in label {
            let (distinct, shown, before, plural, whole) = (false, true, false, false, false);
            self.mentions.push(Mention { column: (table, column), distinct, shown, before, plural, whole });
        }
    }

    /// "When" shows the day of what is asked about.
    fn moment(&mut self, database: &DatabaseDescription) -> Result<(), Reason> {
        if !self.when {
            return Ok(());
        }
        let main = database.tables.get(self.main).ok_or(Reason::NoTime)?;
        if self.mentions.is_empty() {
            let time = main.time.as_ref().and_then(|time| main.column(time)).ok_or(Reason::NoTime)?;
            let column = (self.main, time);
            let (distinct, shown, before, plural, whole) = (false, true, true, false, false);
            self.mentions.push(Mention { column, distinct, shown, before, plural, whole });
        }
        let label = main.label_columns();
        let one = self.conditions.iter().any(|c| c.column.0 == self.main && label.contains(&c.column.1));
        // "When are the exams of the Statics course?"
        let parent = self.other.filter(|other| other.join.to_parent).map(|other| other.join.table);
        let named = |table: usize| {
            let label = database.tables.get(table).map(TableDescription::label_columns).unwrap_or_default();
            self.conditions.iter().any(|c| c.column.0 == table && label.contains(&c.column.1))
        };
        let one = one || parent.is_some_and(named);
        let rows = !self.count && self.aggregates.is_empty() && self.groups.is_empty() && !self.total;
        let fits =
            rows && self.mentions.len() == 1 && (one || self.extreme.is_some()) && self.limit.is_none();
        if fits { Ok(()) } else { Err(Reason::Unsure) }
    }

    /// "In total" is a count or a sum.
    fn totalled(&mut self, database: &DatabaseDescription) -> Result<(), Reason> {
        if !self.total || self.count || self.aggregates.iter().any(|(function, _)| *function == Function::Sum)
        {
            return Ok(());
        }
        let number = |mention: &Mention| {
            let column = column_of(database, mention.column)?;
            (column.kind.is_number() && column.references.is_none() && !column.unique)
                .then_some(mention.column)
        };
        let stated = self.conditions.iter().any(|condition| {
            condition.column.0 == self.main
                && column_of(database, condition.column).is_some_and(|column| column.name == "status")
        });
        match self.mentions.as_slice() {
            // "How much was refunded in total?"
            [] if self.how_much && stated && self.aggregates.is_empty() && self.main_at.is_none() => {
                let money = qualities::money(database, self.main).ok_or(Reason::Unsure)?;
                self.aggregates.push((Function::Sum, money));
                Ok(())
            }
            [mention] if mention.before && self.aggregates.is_empty() && self.how_much => {
                let column = number(mention).ok_or(Reason::Unsure)?;
                self.aggregates.push((Function::Sum, column));
                self.mentions.clear();
                Ok(())
            }
            _ => Err(Reason::Unsure),
        }
    }

    /// Two conditions that exclude each other were not meant like that.
    fn no_contradictions(&self) -> Result<(), Reason> {
        use super::request::Test;
        let equal =
            |condition: &&Condition| matches!(condition.test, Test::OneOf(_) | Test::Days(..) | Test::Is(_));
        for (at, one) in self.conditions.iter().enumerate().filter(|(_, one)| equal(one)) {
            let again =
                self.conditions.iter().skip(at + 1).filter(equal).any(|other| other.column == one.column);
            if again {
                return Err(Reason::Unsure);
            }
        }
        Ok(())
    }

    fn must_be_alone(&self, columns: &[ColumnAt]) -> Result<(), Reason> {
        let more = !columns.is_empty() || !self.aggregates.is_empty() || !self.groups.is_empty();
        let more = more || self.extreme.is_some() || !self.order.is_empty() || self.alphabetical;
        if more { Err(Reason::Beyond(Beyond::Steps)) } else { Ok(()) }
    }

    /// "The most expensive products" leaves open how many.
    fn one_or_so_many(&self) -> Result<(), Reason> {
        if self.plural && self.limit.is_none() { Err(Reason::HowMany) } else { Ok(()) }
    }

    fn aggregate(&mut self, columns: &[ColumnAt]) -> Result<Answer, Reason> {
        let bad = !columns.is_empty() || self.extreme.is_some() || self.limit.is_some() || self.alphabetical;
        if bad || !self.order.is_empty() {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        Ok(Answer::Aggregates(std::mem::take(&mut self.aggregates), self.count))
    }

    fn counting(&mut self, database: &DatabaseDescription, columns: &[ColumnAt]) -> Result<Answer, Reason> {
        if self.extreme.is_some() || self.limit.is_some() || !self.order.is_empty() || self.alphabetical {
            return Err(Reason::Beyond(Beyond::Steps));
        }
        let listed =
            !self.count && self.show && self.groups.iter().any(|group| !matches!(group, Group::Period(..)));
        if listed {
            return Err(Reason::ListedByGroup);
        }
        // "Payments per month" may be how many or how much.
        if !self.count && qualities::amount(database, self.main).is_some() {
            return Err(Reason::ListedByGroup);
        }
        match (columns, self.groups.is_empty()) {
            ([], _) => Ok(Answer::Count),
            // "How many credits has Databases?" asks for a value.
            ([column], true)
                if !self.mentions.iter().any(|mention| mention.distinct)
                    && column_of(database, *column).is_some_and(|column| column.kind.is_number()) =>
            {
                let label =
                    database.tables.get(self.main).map(TableDescription::label_columns).unwrap_or_default();
                let of_one =
                    self.conditions.iter().any(|c| c.column.0 == self.main && label.contains(&c.column.1));
                let rows = Answer::Rows { columns: vec![*column], distinct: false };
                if of_one { Ok(rows) } else { Err(Reason::Unsure) }
            }
            ([column], true) if self.mentions.iter().all(|mention| mention.before) => {
                let known = column_of(database, *column)
                    .is_some_and(|column| column.kind != super::ColumnType::Other);
                let only = self.main_at.is_some() || !has_namesakes(database, *column);
                if known && only && self.other.is_none_or(|other| other.join.to_parent) {
                    Ok(Answer::CountDistinct(*column))
                } else {
                    Err(Reason::Unsure)
                }
            }
            _ => Err(Reason::Unsure),
        }
    }

    fn rows(&mut self, database: &DatabaseDescription, main: &TableDescription) -> Result<Answer, Reason> {
        if self.mentions.iter().any(|mention| !mention.shown) {
            let unclear = self.mentions.iter().find(|mention| !mention.shown).map(|mention| mention.column);
            let name =
                unclear.and_then(|at| column_of(database, at)).map_or_else(String::new, |c| c.name.clone());
            return Err(Reason::Unclear(name.replace('_', " ")));
        }
        let mut columns: Vec<ColumnAt> = Vec::new();
        for mention in &self.mentions {
            let own = vec![mention.column];
            let label = if mention.whole { whole_label(database, mention.column) } else { own };
            columns.extend(label.into_iter().filter(|column| !columns.contains(column)).collect::<Vec<_>>());
        }
        // "products with their supplier": the product is named too.
        if !columns.is_empty() && self.mentions.iter().all(|mention| !mention.before) {
            let label = main.label_columns().into_iter().map(|column| (self.main, column));
            columns = label.filter(|column| !columns.contains(column)).chain(columns.clone()).collect();
        }
        if let Some((column, direction)) = self.extreme {
            if self.limit.is_none() {
                if self.main_at.is_none() && columns.is_empty() && !self.who {
                    return Err(Reason::NothingAsked);
                }
                self.one_or_so_many()?;
                if columns == [(column.0, column.1)] && self.order.is_empty() {
                    let function = if direction == Direction::Down { Function::Max } else { Function::Min };
                    return Ok(Answer::Aggregates(vec![(function, column)], false));
                }
                return match self.order.is_empty() && !self.alphabetical {
                    true => Ok(Answer::Extreme(column, direction, columns)),
                    false => Err(Reason::Beyond(Beyond::Steps)),
                };
            }
            self.order.insert(0, (column, direction));
        }
        if self.limit.is_some() && self.order.is_empty() && !self.alphabetical {
            return Err(Reason::Beyond(Beyond::Judgement));
        }
        if self.alphabetical {
            let names =
                main.label_columns().into_iter().rev().map(|column| ((self.main, column), Direction::Up));
            self.order.extend(names);
        }
        let distinct = self.is_distinct(database, &columns)?;
        if distinct && self.limit.is_some() {
            return Err(Reason::Unsure);
        }
        // "Full professors" says which rows; "Databases" or "more than 5" does not.
        let listed = |condition: &Condition| {
            column_of(database, condition.column).is_some_and(|column| !column.values.is_empty())
        };
        // "Who graduated this year?" asks for people.
        let people = self.who && has_people(main) && !self.conditions.is_empty();
        let named = self.main_at.is_some()
            || people
            || self.has_doer && !self.conditions.is_empty()
            || self.conditions.first().is_some_and(listed);
        let nothing = !named && columns.is_empty();
        if nothing { Err(Reason::NothingAsked) } else { Ok(Answer::Rows { columns, distinct }) }
    }

    /// Whether equal rows are shown once: asked for, or the only sense it makes.
    fn is_distinct(&self, database: &DatabaseDescription, columns: &[ColumnAt]) -> Result<bool, Reason> {
        let asked = self.mentions.iter().any(|mention| mention.distinct);
        if self.main_at.is_none()
            && self.conditions.is_empty()
            && columns.iter().any(|at| has_namesakes(database, *at))
        {
            return Err(Reason::Unsure);
        }
        if columns.is_empty() || self.mentions.iter().any(|mention| !mention.before) {
            return if asked { Err(Reason::Unsure) } else { Ok(false) };
        }
        let main = database.tables.get(self.main);
        let label = main.map(TableDescription::label_columns).unwrap_or_default();
        let names_rows = columns.iter().any(|(table, column)| {
            *table == self.main
                && (label.contains(column)
                    || column_of(database, (*table, *column)).is_some_and(|c| c.unique))
        });
        if names_rows {
            return Ok(false);
        }
        // A fact about one thing, as in "the price of the espresso machine", is no list of values.
        let about_one = self.extreme.is_some()
            || self.conditions.iter().any(|condition| {
                let column = column_of(database, condition.column);
                let kind = column.is_some_and(|column| !column.values.is_empty());
                condition.column.0 == self.main
                    && (label.contains(&condition.column.1) && !kind || column.is_some_and(|c| c.unique))
            });
        if self.how_much && !about_one {
            return Err(Reason::Unsure);
        }
        match (asked, about_one, columns) {
            (_, true, _) => Ok(false),
            (true, false, _) => Ok(true),
            (false, false, [one]) if self.conditions.is_empty() => {
                let text = column_of(database, *one).is_some_and(|c| c.kind == super::ColumnType::Text);
                let plural = self.mentions.iter().all(|mention| mention.plural);
                if text && plural { Ok(true) } else { Err(Reason::Unsure) }
            }
            (false, false, [_, _, ..]) => Ok(false),
            // "the salaries of accountants": one for each.
            (false, false, [one])
                if !self.conditions.is_empty()
                    && is_individual(database, *one)
                    && (self.when || self.mentions.iter().all(|mention| mention.plural)) =>
            {
                Ok(false)
            }
            _ => Err(Reason::Unsure),
        }
    }
}

fn name_of(database: &DatabaseDescription, other: Option<Other>) -> String {
    let table = other.and_then(|other| database.tables.get(other.join.table));
    table.map_or_else(String::new, |table| table.name.replace('_', " "))
}

/// Whether a column holds a value of each row rather than a kind of rows.
fn is_individual(database: &DatabaseDescription, at: ColumnAt) -> bool {
    column_of(database, at).is_some_and(|column| {
        let few = column.known.as_ref().is_some_and(|known| known.len() < 60);
        column.values.is_empty()
            && column.references.is_none()
            && !(few && column.kind == super::ColumnType::Text)
    })
}

/// Whether a column of another table is a kind of this one: `shipping_city` of `city`.
fn has_namesakes(database: &DatabaseDescription, at: ColumnAt) -> bool {
    let Some(own) = column_of(database, at) else { return false };
    let tail = format!("_{}", own.name);
    database.tables.iter().enumerate().filter(|(table, _)| *table != at.0).any(|(_, table)| {
        table.columns.iter().any(|column| column.name == own.name || column.name.ends_with(&tail))
    })
}

/// The description of a column.
pub fn column_of(database: &DatabaseDescription, at: ColumnAt) -> Option<&ColumnDescription> {
    database.tables.get(at.0)?.columns.get(at.1)
}

/// The "name" of a person is both its columns; of anything else, the column itself.
fn whole_label(database: &DatabaseDescription, at: ColumnAt) -> Vec<ColumnAt> {
    let Some(table) = database.tables.get(at.0) else { return vec![at] };
    let label = table.label_columns();
    let is_text =
        |column: &usize| table.columns.get(*column).is_some_and(|c| c.kind == super::ColumnType::Text);
    let is_first_name = label.first() == Some(&at.1) && label.len() == 2 && label.iter().all(is_text);
    let named_alike =
        label.iter().all(|column| table.columns.get(*column).is_some_and(|c| c.name.ends_with("name")));
    if is_first_name && named_alike {
        label.into_iter().map(|column| (at.0, column)).collect()
    } else {
        vec![at]
    }
}
