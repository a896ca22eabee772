//! What makes a reading doubtful although each phrase has found a place: another table fits as well, a value is all that
//! is said, or a sum that makes no sense.

use super::Reason;
use super::description::{ColumnDescription, ColumnType, DatabaseDescription};
use super::draft::{Draft, column_of};
use super::lexicon::{Function, Role};
use super::qualities;
use super::request::{Condition, Test};
use super::vocabulary::{ColumnAt, Item, Meaning, root};
use super::who::{can_be_who, has_people};

/// Verbs that add nothing to a question which says more.
#[rustfmt::skip]
const IDLE_VERBS: &[&str] = &[
    "need", "see", "know", "use", "used", "assigned", "given", "charged", "applied", "assegnata", "assegnato",
    "assegnati", "applicato", "applicata", "usato", "usati", "usata", "usate", "utilizzato", "utilizzati", "utilizzate",
    "giudicati", "giudicate", "giudicato", "giudicata", "considerati", "considerate", "considerato", "considerata",
    "ritenuti", "ritenute", "interessa",
];

/// Verbs of those whose order, review or payment it is. Others may have handled it.
const OWN_VERBS: &[&str] = &[
    "placed", "placed by", "place", "made", "made by", "make", "written", "written by", "wrote", "left by",
    "submitted by", "posted by", "fatto", "fatti", "fatte", "effettuato", "effettuati", "effettuate",
    "scritto", "scritti", "scritta", "scritte", "lasciato", "lasciate", "ordinati da",
];

/// A reading of a question, before it is a request.
#[derive(Clone, Copy)]
pub struct Doubts<'a> {
    /// The reading.
    pub draft: &'a Draft,
    /// The phrases of the question.
    pub items: &'a [Item],
    /// The database.
    pub database: &'a DatabaseDescription,
}

impl Doubts<'_> {
    /// Whether the reading is the obvious one.
    ///
    /// # Errors
    /// What is doubtful.
    pub fn check(self) -> Result<(), Reason> {
        self.no_idle_verb()?;
        self.money_of_a_state()?;
        if self.draft.main_at.is_none() {
            self.no_other_table()?;
            self.more_than_a_value()?;
            self.sums_make_sense()?;
            self.no_other_person()?;
        } else {
            self.no_other_doer()?;
        }
        Ok(())
    }

    /// "Which customers were charged?" are not all customers, although the rules do not know the verb.
    fn no_idle_verb(self) -> Result<(), Reason> {
        let draft = self.draft;
        let said = !draft.conditions.is_empty() || !draft.mentions.is_empty() || !draft.aggregates.is_empty();
        let said = said || !draft.groups.is_empty() || !draft.order.is_empty() || draft.extreme.is_some();
        let said = said || draft.other.is_some() || draft.most_common.is_some();
        let idle = |item: &&Item| {
            item.role == Some(Role::Filler) && IDLE_VERBS.contains(&item.text.as_str()) && !said
        };
        match self.items.iter().find(idle) {
            Some(item) => Err(Reason::Unclear(item.written.clone())),
            None => Ok(()),
        }
    }

    /// "How many are in Milan?", where customers live in cities and orders are shipped to them: a table that is not named
    /// must be the only one with what is named.
    fn no_other_table(self) -> Result<(), Reason> {
        let main = self.draft.main;
        let others = (0..self.database.tables.len()).filter(|table| *table != main);
        let dated = self.items.iter().any(|item| {
            item.days.is_some() || matches!(item.role, Some(Role::PerPeriod(_) | Role::Period(_)))
        });
        let has_time =
            |table: usize| self.database.tables.get(table).is_some_and(|table| table.time.is_some());
        let others = others.filter(|table| !dated || has_time(*table));
        for table in others.filter(|table| !self.draft.who || self.is_who(*table)) {
            let named: Vec<&Item> =
                self.items.iter().filter(|item| !item.meanings.is_empty() && !item.is_light()).collect();
            let fits = named.iter().all(|item| self.fits(item, table) || self.fits_near(item, table));
            // Something of the table itself is named, not only of those that it refers to.
            let first = named.iter().find(|item| self.owns(item, table) && self.fits(item, main));
            if let (true, Some(first)) = (fits, first) {
                let name = |at: usize| self.database.tables.get(at).map(|table| table.name.clone());
                let both = [main, table].map(|at| name(at).unwrap_or_default());
                return Err(Reason::Ambiguous(first.written.clone(), both));
            }
        }
        Ok(())
    }

    fn is_who(self, table: usize) -> bool {
        self.database.tables.get(table).is_some_and(can_be_who)
    }

    /// Whether a phrase may be about a table: a column, a value, or a table that it refers to.
    fn fits(self, item: &Item, table: usize) -> bool {
        let refers = |meaning: &Meaning| match meaning {
            Meaning::Table(parent) => !self.database.keys(table, *parent).is_empty(),
            _ => false,
        };
        self.owns(item, table) || item.meanings.iter().any(refers)
    }

    /// Whether a phrase may be a column or a value of a table.
    fn owns(self, item: &Item, table: usize) -> bool {
        let own = |meaning: &Meaning| match meaning {
            Meaning::Column(at) => at.0 == table && !self.is_reference(*at),
            Meaning::Value(at, _) => at.0 == table,
            Meaning::Table(_) => false,
        };
        item.meanings.iter().any(own) || self.is_kind_of(item, table)
    }

    /// Whether a phrase may be about a table that this one refers to: the country of the customer who wrote a review.
    fn fits_near(self, item: &Item, table: usize) -> bool {
        item.meanings.iter().any(|meaning| match meaning {
            Meaning::Column(at) => !self.is_reference(*at) && self.database.keys(table, at.0).len() == 1,
            Meaning::Value(at, _) => self.database.keys(table, at.0).len() == 1,
            Meaning::Table(_) => false,
        })
    }

    fn is_reference(self, at: ColumnAt) -> bool {
        column_of(self.database, at).is_some_and(|column| column.references.is_some())
    }

    /// "Cost", where it is another word for a price here, and a table has shipping costs.
    fn is_kind_of(self, item: &Item, table: usize) -> bool {
        let word = item.text.as_str();
        let own = |meaning: &Meaning| match meaning {
            Meaning::Column(at) if at.0 == self.draft.main => column_of(self.database, *at)
                .filter(|column| !self.is_reference(*at) && !is_called(column, word)),
            _ => None,
        };
        let tail = format!("_{}", word.replace(' ', "_"));
        let columns =
            self.database.tables.get(table).map(|table| table.columns.as_slice()).unwrap_or_default();
        item.meanings.iter().any(|meaning| own(meaning).is_some())
            && columns.iter().any(|column| column.references.is_none() && column.name.ends_with(&tail))
    }

    /// "How many knives do we have?" counts no category called so: a value alone says which rows are meant only if they are
    /// people, or if it is a state.
    fn more_than_a_value(self) -> Result<(), Reason> {
        let draft = self.draft;
        let computed = !draft.mentions.is_empty() || !draft.aggregates.is_empty() || draft.extreme.is_some();
        let people = self.database.tables.get(draft.main).is_some_and(has_people) || draft.has_doer;
        let only_values = draft.conditions.iter().all(|condition| is_value(&condition.test));
        if computed
            || draft.how_much
            || people
            || !only_values
            || !draft.groups.is_empty()
            || draft.most_common.is_some()
        {
            return Ok(());
        }
        let stated = |condition: &Condition| column_of(self.database, condition.column).is_some_and(is_state);
        let moved = |condition: &Condition| self.has_moment(condition);
        let clear = draft.count && draft.conditions.iter().any(stated) && !draft.conditions.iter().any(moved);
        if clear { Ok(()) } else { Err(Reason::NothingAsked) }
    }

    /// Whether a state has a moment of its own, so that "how many shipped" may be those that were shipped once.
    fn has_moment(self, condition: &Condition) -> bool {
        let Some(table) = self.database.tables.get(condition.column.0) else { return false };
        let Test::OneOf(values) = &condition.test else { return false };
        let is_moment = |column: &ColumnDescription| {
            let name = root(column).filter(|_| column.kind.is_time());
            name.is_some_and(|name| values.iter().any(|value| value.is_text(&name)))
        };
        table.columns.iter().any(is_moment)
    }

    /// "How much money did we receive?" leaves out what failed, so the state must be said where there are states.
    fn money_of_a_state(self) -> Result<(), Reason> {
        let is_money = |item: &Item| matches!(&*item.text, "money" | "denaro" | "soldi");
        let table = self.database.tables.get(self.draft.main);
        let has_states = table.is_some_and(|table| table.columns.iter().any(is_state));
        let is_said = self
            .draft
            .conditions
            .iter()
            .any(|condition| column_of(self.database, condition.column).is_some_and(is_state));
        match self.items.iter().any(is_money) && has_states && !is_said {
            true => Err(Reason::HowMuch),
            false => Ok(()),
        }
    }

    /// "Total cost" is no sum of the prices of a list, and "total amount" hardly one of payments that failed.
    fn sums_make_sense(self) -> Result<(), Reason> {
        for (_, at) in self.draft.aggregates.iter().filter(|(function, _)| *function == Function::Sum) {
            let Some(column) = column_of(self.database, *at) else { continue };
            let bare = self.draft.conditions.is_empty() && self.draft.groups.is_empty();
            let has_states =
                self.database.tables.get(at.0).is_some_and(|table| table.columns.iter().any(is_state));
            let is_amount = qualities::amount(self.database, at.0) == Some(*at);
            if is_of_one_thing(column) || (bare && has_states && is_amount) {
                return Err(Reason::HowMuch);
            }
        }
        Ok(())
    }

    /// "Rossi" may also be a person of a table whose names are not known.
    fn no_other_person(self) -> Result<(), Reason> {
        let Some(named) = self.draft.conditions.iter().find(|condition| self.names_person(condition)) else {
            return Ok(());
        };
        let is_name = |item: &Item| {
            item.meanings
                .iter()
                .any(|meaning| matches!(meaning, Meaning::Value(at, _) if at.0 == named.column.0))
        };
        let fits = |table: usize| {
            let mut said = self.items.iter().filter(|item| !item.meanings.is_empty() && !item.is_light());
            said.all(|item| is_name(item) || self.fits(item, table))
        };
        let mut others = (0..self.database.tables.len()).filter(|table| *table != named.column.0);
        match others.any(|table| self.hides_people(table) && fits(table)) {
            true => Err(Reason::Unclear(self.name_of(named))),
            false => Ok(()),
        }
    }

    /// "Orders handled by Rossi" may be those of a customer or of an employee, whose names are not known.
    fn no_other_doer(self) -> Result<(), Reason> {
        let main = self.draft.main;
        let Some(named) = self.draft.conditions.iter().find(|condition| self.names_person(condition)) else {
            return Ok(());
        };
        let is_other_verb =
            |item: &Item| item.role == Some(Role::Tie) && !OWN_VERBS.contains(&item.text.as_str());
        let mut others =
            (0..self.database.tables.len()).filter(|table| *table != named.column.0 && *table != main);
        let may_be_other =
            others.any(|table| self.hides_people(table) && !self.database.keys(main, table).is_empty());
        match may_be_other && self.items.iter().any(is_other_verb) {
            true => Err(Reason::Unclear(self.name_of(named))),
            false => Ok(()),
        }
    }

    /// Whether a condition is the name of a person.
    fn names_person(self, condition: &Condition) -> bool {
        let table = self.database.tables.get(condition.column.0);
        table.is_some_and(|table| has_people(table) && table.label_columns().contains(&condition.column.1))
    }

    /// Whether a table has people whose names are not known.
    fn hides_people(self, table: usize) -> bool {
        self.database.tables.get(table).is_some_and(|table| {
            let hidden = |at: &usize| {
                table.columns.get(*at).is_some_and(|column| {
                    column.kind == ColumnType::Text && column.known.is_none() && column.values.is_empty()
                })
            };
            has_people(table) && table.label_columns().iter().any(hidden)
        })
    }

    /// The phrase that a condition comes from, as written.
    fn name_of(self, condition: &Condition) -> String {
        let is_it = |item: &&Item| {
            item.meanings.iter().any(|m| matches!(m, Meaning::Value(at, _) if *at == condition.column))
        };
        self.items.iter().find(is_it).map(|item| item.written.clone()).unwrap_or_default()
    }
}

/// Whether a phrase is a column's own name.
fn is_called(column: &ColumnDescription, word: &str) -> bool {
    let own = column.name.replace('_', " ");
    let is_it = |name: &str| name == word || format!("{name}s") == word;
    is_it(&own) || root(column).is_some_and(|root| is_it(&root))
}

fn is_value(test: &Test) -> bool {
    matches!(test, Test::OneOf(_) | Test::NoneOf(_))
}

/// Whether a column says in which state a row is.
pub fn is_state(column: &ColumnDescription) -> bool {
    !column.values.is_empty() && matches!(&*column.name, "status" | "state" | "stato" | "outcome")
}

/// Whether a column holds numbers of one thing, such as prices and marks, of which a sum says nothing.
fn is_of_one_thing(column: &ColumnDescription) -> bool {
    const KINDS: [&str; 10] =
        ["price", "fee", "rate", "rating", "grade", "mark", "score", "discount", "percentage", "pct"];
    column.unit.as_deref() == Some("%") || column.name.split('_').any(|part| KINDS.contains(&part))
}
