//! What a phrase is in this question: the one sense that fits where it stands.

use super::super::description::{ColumnDescription, ColumnType, TableDescription};
use super::super::lexicon::Role;
use super::super::tokens::{folded, stem, tokens};
use super::super::vocabulary::{ColumnAt, Item, Meaning};
use super::super::who::has_people;
use super::super::{Reason, Tongue};
use super::{Reader, Sense, column_of};

/// What a phrase is.
impl Reader<'_> {
    pub(super) fn column(&self, at: ColumnAt) -> Option<&ColumnDescription> {
        column_of(self.database, at)
    }

    pub(super) fn other(&self) -> Option<usize> {
        self.draft.other.map(|other| other.join.table)
    }

    /// The one sense of this phrase that fits.
    pub(super) fn sense(&self) -> Result<Option<Sense>, Reason> {
        let Some(item) = self.items.get(self.at) else { return Ok(None) };
        let main = self.draft.main;
        let is_main = item.meanings.contains(&Meaning::Table(main));
        if is_main && (self.draft.main_at.is_none() || self.waiting.per) {
            return self.main_sense(item).map(Some);
        }
        if let Some(other) = self.other().filter(|other| item.meanings.contains(&Meaning::Table(*other))) {
            let key = |meaning: &Meaning| match meaning {
                Meaning::Column(at) if at.0 == main && self.column(*at)?.references.is_some() => Some(*at),
                _ => None,
            };
            let key = item.meanings.iter().find_map(key);
            return Ok(Some(key.map_or(Sense::Table(other), |key| Sense::Parent(key, other))));
        }
        let near = self.senses_in(item, main);
        let far = self.other().map(|other| self.senses_in(item, other)).unwrap_or_default();
        let beside = |senses: &[Sense], table: usize| !senses.is_empty() && self.is_beside(table);
        let other = self.other().unwrap_or(main);
        let fitting = if near.is_empty() || (beside(&far, other) && !beside(&near, main)) {
            far
        } else if far.is_empty() || (beside(&near, main) && !beside(&far, other)) {
            near
        } else {
            return Err(Reason::Unclear(item.written.clone()));
        };
        let table = |meaning: &Meaning| match meaning {
            Meaning::Table(table) if *table != main => Some(Sense::Table(*table)),
            _ => None,
        };
        let tables: Vec<Sense> = item.meanings.iter().filter_map(table).collect();
        // A value right beside the table that it belongs to is that table's, mentioned or not.
        if let Some(sense) = self.value_of_next(item, &fitting)? {
            return Ok(Some(sense));
        }
        for tier in [fitting, tables] {
            if !tier.is_empty() {
                return self.only(item, tier).map(Some);
            }
        }
        let implied = self.implicit(item)?;
        if implied.is_empty() { Ok(None) } else { self.only(item, implied).map(Some) }
    }

    /// What a name of the main table is: the table, or its number of the same name.
    fn main_sense(&self, item: &Item) -> Result<Sense, Reason> {
        let main = self.draft.main;
        // "the average grade", of the table of grades.
        let number = |at: &ColumnAt| self.column(*at).is_some_and(|column| column.kind.is_number());
        let own = |meaning: &&Meaning| match meaning {
            Meaning::Column(at) => at.0 == main && (self.waiting.most_common || number(at)),
            _ => false,
        };
        let asked =
            self.waiting.aggregate.is_some() || self.waiting.extreme.is_some() || self.waiting.most_common;
        let asked = asked || matches!(self.role_at(self.at + 1), Some(Role::Aggregate(_) | Role::Extreme(_)));
        // "lecturers" may be all teachers or those of that rank, and "buyers" those who buy or whose job it is.
        let value = |meaning: &Meaning| match meaning {
            Meaning::Value(at, _) => {
                let listed = self.column(*at).is_some_and(|column| !column.values.is_empty());
                listed || at.0 == main || !self.database.keys(main, at.0).is_empty()
            }
            _ => false,
        };
        if item.meanings.iter().any(value) || self.names_some_rows(item) {
            return Err(Reason::Unclear(item.written.clone()));
        }
        Ok(match item.meanings.iter().find(own) {
            Some(Meaning::Column(at)) if asked => Sense::Column(*at),
            _ => Sense::Main,
        })
    }

    /// "Professors" may be all teachers, or those whose ranks are called so: "full professor". What the table is called
    /// first is all of its rows.
    fn names_some_rows(&self, item: &Item) -> bool {
        let own = stem(&item.text, self.tongue);
        let Some(table) = self.database.tables.get(self.draft.main) else { return false };
        let first = table.synonyms.get(self.tongue.code()).and_then(|names| names.first());
        if [Some(&table.name), first]
            .into_iter()
            .flatten()
            .any(|name| stem(&folded(name), self.tongue) == own)
        {
            return false;
        }
        let values = table.columns.iter().flat_map(|column| &column.values);
        let mut names = values.flat_map(|value| {
            let called = value.synonyms.get(self.tongue.code()).into_iter().flatten();
            called.chain(std::iter::once(&value.value))
        });
        names.any(|name| {
            let words: Vec<String> =
                tokens(name).into_iter().map(|word| stem(&folded(&word.text), self.tongue)).collect();
            words.len() > 1 && words.contains(&own)
        })
    }

    /// What a phrase may be in one table.
    pub(super) fn senses_in(&self, item: &Item, table: usize) -> Vec<Sense> {
        let sense = |meaning: &Meaning| match meaning {
            Meaning::Column(at) if at.0 == table => {
                let reference = self.column(*at)?.references.as_ref();
                let parent = reference.and_then(|reference| self.database.table(&reference.table));
                Some(parent.map_or(Sense::Column(*at), |parent| Sense::Parent(*at, parent)))
            }
            Meaning::Value(at, value) if at.0 == table => Some(Sense::Value(*at, value.clone())),
            _ => None,
        };
        let found: Vec<Sense> = item.meanings.iter().filter_map(sense).collect();
        let columns = self.database.tables.get(table).map_or(0, |table| table.columns.len());
        let shared = (0..columns).filter_map(|column| {
            let value = self.value_of_namesake((table, column), item)?;
            Some(Sense::Value((table, column), value))
        });
        if found.is_empty() && table == self.draft.main { shared.collect() } else { found }
    }

    /// Whether a table's name stands right before this phrase, or right after it.
    pub(super) fn is_beside(&self, table: usize) -> bool {
        let names =
            |item: Option<&Item>| item.is_some_and(|item| item.meanings.contains(&Meaning::Table(table)));
        let before = (0..self.at).rev().find(|at| !self.items.get(*at).is_some_and(Item::is_light));
        let before = before.and_then(|at| self.items.get(at));
        names(before) || names(self.items.get(self.at + 1))
    }

    /// "German suppliers", "cancelled orders": the table comes next.
    pub(super) fn value_of_next(&self, item: &Item, fitting: &[Sense]) -> Result<Option<Sense>, Reason> {
        let Some(next) = self.items.get(self.at + 1) else { return Ok(None) };
        let belongs = |meaning: &Meaning| match meaning {
            Meaning::Value(at, value) if next.meanings.contains(&Meaning::Table(at.0)) => {
                (at.0 != self.draft.main).then(|| Sense::Value(*at, value.clone()))
            }
            Meaning::Column(at)
                if next.meanings.contains(&Meaning::Table(at.0)) && at.0 != self.draft.main =>
            {
                let whether = self.column(*at).is_some_and(|column| column.kind == ColumnType::Boolean);
                whether.then_some(Sense::Column(*at))
            }
            _ => None,
        };
        let mut senses: Vec<Sense> = item.meanings.iter().filter_map(belongs).collect();
        let main_next =
            next.meanings.contains(&Meaning::Table(self.draft.main)) && self.draft.main_at.is_none();
        let own = fitting.iter().any(|sense| matches!(sense, Sense::Value(at, _) if at.0 == self.draft.main));
        if senses.is_empty() || (main_next && own) || self.tongue == Tongue::Italian {
            return Ok(None);
        }
        if senses.len() > 1 {
            return Err(Reason::Unclear(item.written.clone()));
        }
        Ok(senses.pop())
    }

    /// Values of a table that a foreign key points to, although it is not mentioned: "orders from Germany".
    pub(super) fn implicit(&self, item: &Item) -> Result<Vec<Sense>, Reason> {
        if self.other().is_some() {
            return Ok(Vec::new());
        }
        let main = self.draft.main;
        let is_near = |table: usize| table != main && self.database.keys(main, table).len() == 1;
        let value = |meaning: &Meaning| match meaning {
            Meaning::Value(at, value) if is_near(at.0) || self.names_child(*at) => {
                Some(Sense::Value(*at, value.clone()))
            }
            _ => None,
        };
        let senses: Vec<Sense> = item.meanings.iter().filter_map(value).collect();
        if item
            .meanings
            .iter()
            .any(|meaning| self.is_of_one_of_several(meaning) || self.is_of_namesake(meaning))
        {
            return Err(Reason::Unclear(item.written.clone()));
        }
        // The name of a person may be that of another, in a table whose names are not known.
        let is_label = |sense: &Sense| match sense {
            Sense::Value(at, _) => {
                self.database.tables.get(at.0).is_some_and(|t| t.label_columns().contains(&at.1))
            }
            _ => false,
        };
        let hidden = |(at, table): (usize, &TableDescription)| {
            is_near(at)
                && table.label_columns().iter().any(|column| {
                    let column = table.columns.get(*column);
                    column.is_some_and(|c| {
                        c.kind == ColumnType::Text && c.known.is_none() && c.values.is_empty()
                    })
                })
        };
        // The same name may be that of a thing further away.
        let namesake = |meaning: &Meaning| match meaning {
            Meaning::Value(at, value) => {
                !is_near(at.0) && !self.names_child(*at) && is_label(&Sense::Value(*at, value.clone()))
            }
            _ => false,
        };
        let person = self.name_part().is_some();
        let doubtful = !person
            && (self.database.tables.iter().enumerate().any(hidden) || item.meanings.iter().any(namesake));
        // "in Germany" may be where things are, go or come from.
        let before =
            self.at.checked_sub(1).and_then(|at| self.items.get(at)).map_or("", |item| item.text.as_str());
        let place =
            matches!(before, "in" | "at" | "a" | "ad" | "nel" | "nella" | "nell" | "to" | "about" | "su");
        let is_named = senses.iter().any(is_label);
        let described = !is_named && self.describes_people();
        if (is_named && doubtful) || (!is_named && (place || described) && !senses.is_empty()) {
            return Err(Reason::Unclear(item.written.clone()));
        }
        Ok(senses)
    }

    /// Whether a value is in a table that the main one refers to in several ways, so that it may describe either: the city
    /// of the doctor, or of the one who sent the patient. A full name is told apart by its other part.
    fn is_of_one_of_several(&self, meaning: &Meaning) -> bool {
        let Meaning::Value(at, _) = meaning else { return false };
        at.0 != self.draft.main
            && self.database.keys(self.draft.main, at.0).len() > 1
            && self.name_part().is_none()
    }

    /// Whether a value is in a column of another table that is called like one of the main table: "returned payments",
    /// where orders are returned and payments have states of their own.
    fn is_of_namesake(&self, meaning: &Meaning) -> bool {
        let Meaning::Value(at, _) = meaning else { return false };
        let Some(column) = self.column(*at).filter(|_| at.0 != self.draft.main) else { return false };
        let label = self.database.tables.get(at.0).map(TableDescription::label_columns).unwrap_or_default();
        let main = self.database.tables.get(self.draft.main);
        !label.contains(&at.1) && main.is_some_and(|main| main.column(&column.name).is_some())
    }

    /// "Italian students" are not those whose programme is in Italian: what stands beside people describes them.
    fn describes_people(&self) -> bool {
        let main = self.draft.main;
        let is_main =
            |item: Option<&Item>| item.is_some_and(|item| item.meanings.contains(&Meaning::Table(main)));
        let before = self.at.checked_sub(1).and_then(|at| self.items.get(at));
        let beside = match self.tongue {
            Tongue::English => is_main(self.items.get(self.at + 1)),
            Tongue::Italian => is_main(before),
        };
        beside && self.database.tables.get(main).is_some_and(has_people)
    }

    /// Whether a column names the rows of a table that refers to the main one: the supplier of a product.
    pub(super) fn names_child(&self, at: ColumnAt) -> bool {
        let keys = self.database.keys(at.0, self.draft.main);
        let label = self.database.tables.get(at.0).map(TableDescription::label_columns).unwrap_or_default();
        at.0 != self.draft.main
            && keys.len() == 1
            && (label.as_slice() == [at.1] || (label.contains(&at.1) && self.name_part() == Some(at)))
            && self.draft.main_at.is_some()
    }

    /// One of several senses in the same table, by what stands around the phrase.
    pub(super) fn only(&self, item: &Item, senses: Vec<Sense>) -> Result<Sense, Reason> {
        let mut senses = senses;
        if senses.len() > 1 {
            let next = self.items.get(self.after_light(self.at + 1));
            let about_column = self.waiting.without
                || self.waiting.sorted
                || self.waiting.per
                || self.waiting.aggregate.is_some()
                || self.role_at(self.at + 1) == Some(Role::Missing)
                || next
                    .is_some_and(|next| next.days.is_some() || matches!(next.role, Some(Role::PerPeriod(_))));
            let has = |value: bool| senses.iter().any(|sense| matches!(sense, Sense::Value(..)) == value);
            if has(true) && has(false) {
                senses.retain(|sense| matches!(sense, Sense::Value(..)) != about_column);
            }
        }
        // A person's first and last name stand together.
        if senses.len() > 1
            && let Some(column) = self.name_part()
        {
            senses.retain(|sense| matches!(sense, Sense::Value(at, _) if *at == column));
        }
        match (senses.pop(), senses.is_empty()) {
            (Some(sense), true) => Ok(sense),
            _ => Err(Reason::Unclear(item.written.clone())),
        }
    }

    /// The column of the name that is due here, if the next or the last phrase is the other part of it.
    pub(super) fn name_part(&self) -> Option<ColumnAt> {
        let values = |at: Option<usize>| -> Vec<ColumnAt> {
            let item = at.and_then(|at| self.items.get(at));
            let column = |meaning: &Meaning| match meaning {
                Meaning::Value(at, _) => Some(*at),
                _ => None,
            };
            item.map(|item| item.meanings.iter().filter_map(column).collect()).unwrap_or_default()
        };
        let (here, last, next) =
            (values(Some(self.at)), values(self.at.checked_sub(1)), values(Some(self.at + 1)));
        for column in here {
            let label = self.database.tables.get(column.0)?.label_columns();
            let place = label.iter().position(|other| *other == column.1);
            let at = |place: Option<usize>| {
                place.and_then(|place| label.get(place)).map(|other| (column.0, *other))
            };
            let follows = at(place.map(|place| place + 1)).is_some_and(|other| next.contains(&other));
            let led =
                at(place.and_then(|place| place.checked_sub(1))).is_some_and(|other| last.contains(&other));
            if follows || led {
                return Some(column);
            }
        }
        None
    }
}
