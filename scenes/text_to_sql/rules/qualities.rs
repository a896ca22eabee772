//! Which column adjectives and verbs are about: "expensive", "weighs".

use super::description::{ColumnDescription, DatabaseDescription};
use super::lexicon::Quality;
use super::tokens::folded;
use super::vocabulary::{ColumnAt, root};

/// The words for each quality that a column is called by.
fn words(quality: Quality) -> &'static [&'static str] {
    match quality {
        Quality::Price => &["price", "cost", "list price", "fee", "tuition fee"],
        Quality::Weight => &["weight"],
        Quality::Time => &[],
        Quality::Birth => &["birth date", "birthday", "date of birth", "born"],
        Quality::Rating => &["rating", "stars"],
        Quality::Pay => &["salary", "pay", "wage"],
        Quality::Length => &["duration", "duration years", "length"],
    }
}

/// The one column of a table that has this quality.
pub fn column(database: &DatabaseDescription, table: usize, quality: Quality) -> Option<ColumnAt> {
    let words = words(quality);
    only(database, table, |column| {
        let fits = if quality == Quality::Birth { column.kind.is_time() } else { column.kind.is_number() };
        fits && names(column).any(|name| words.contains(&name.as_str()))
    })
}

/// Whether more of a column is better.
pub fn is_rating(database: &DatabaseDescription, at: ColumnAt) -> bool {
    let column = database.tables.get(at.0).and_then(|table| table.columns.get(at.1));
    let words = ["rating", "stars", "grade", "mark", "score"];
    column.is_some_and(|column| {
        column.kind.is_number() && names(column).any(|name| words.contains(&name.as_str()))
    })
}

/// The one column of a table that is its amount of money.
pub fn money(database: &DatabaseDescription, table: usize) -> Option<ColumnAt> {
    let words = ["price", "amount", "cost", "fee", "value"];
    only(database, table, |column| {
        column.unit.is_some() && names(column).any(|name| words.contains(&name.as_str()))
    })
}

/// The one column of a table that is an amount of money, so that its sum makes sense, unlike that of prices.
pub fn amount(database: &DatabaseDescription, table: usize) -> Option<ColumnAt> {
    only(database, table, |column| column.unit.is_some() && names(column).any(|name| name == "amount"))
}

/// The one column of a table in this unit.
pub fn of_unit(database: &DatabaseDescription, table: usize, unit: &str) -> Option<ColumnAt> {
    only(database, table, |column| column.unit.as_deref() == Some(unit))
}

/// The one amount of a table that has no other number.
pub fn only_number(database: &DatabaseDescription, table: usize) -> Option<ColumnAt> {
    let key =
        |column: &ColumnDescription| column.references.is_some() || column.unique || column.name == "id";
    let found = only(database, table, |column| column.kind.is_number() && !key(column))?;
    money(database, table).filter(|money| *money == found)
}

/// English names, which every description has.
fn names(column: &ColumnDescription) -> impl Iterator<Item = String> {
    let own = [column.name.replace('_', " ")].into_iter().chain(root(column));
    own.chain(column.synonyms.get("en").into_iter().flatten().map(|name| folded(name)))
}

fn only(
    database: &DatabaseDescription,
    table: usize,
    fits: impl Fn(&ColumnDescription) -> bool,
) -> Option<ColumnAt> {
    let columns = &database.tables.get(table)?.columns;
    let mut found = columns.iter().enumerate().filter(|(_, column)| fits(column)).map(|(at, _)| (table, at));
    found.next().filter(|_| found.next().is_none())
}
