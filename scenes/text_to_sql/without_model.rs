//! What the flow's nodes do where no model answers: they ask the rules, and choose tables by the words of a request.

use std::collections::BTreeSet;

use jiff::civil::Date;
use proscenium::sql_guard::Dialect;

use super::databases::KnownDatabase;
use super::folded_text::folded;
use super::phrases::Speech;
use super::rules::description::{DatabaseDescription, SynonymsByLanguage, TableDescription};
use super::rules::{self, Engine, RuleSql, Tongue, Vocabularies, WordedQuestion};
use super::schema_text::{SchemaDetail, schema_text};

/// A database as the rules know it.
#[derive(Debug, Clone, Copy)]
pub struct AskedDatabase<'a> {
    /// The SQL to write.
    pub engine: Engine,
    /// What it holds.
    pub description: &'a DatabaseDescription,
    /// What the rules call it all.
    pub names: &'a Vocabularies,
}

impl<'a> AskedDatabase<'a> {
    /// A database that is open.
    pub fn of(known: &'a KnownDatabase) -> Self {
        let engine = match known.database.dialect() {
            Dialect::Sqlite => Engine::Sqlite,
            Dialect::Postgres => Engine::Postgres,
        };
        Self { engine, description: &known.description, names: &known.names }
    }
}

/// The statement that answers a question, and the tables that it reads.
///
/// # Errors
/// Why the rules write none, for the user.
pub fn write_sql(
    question: &str,
    speech: Speech,
    today: Date,
    known: AskedDatabase<'_>,
) -> Result<RuleSql, String> {
    let engine = known.engine;
    // The language of a short question may be taken for another one, so it is read in both. Where names are in one language,
    // a question may be read word for word in the other one, too; then it is in the one that has more of its words.
    let own = Tongue::of(speech.code());
    let others = [Tongue::English, Tongue::Italian].into_iter().filter(|tongue| Some(*tongue) != own);
    let asked = |tongue| WordedQuestion { words: question, tongue, today, engine };
    let words = |tongue| rules::own_words(asked(tongue), known.description, known.names);
    let read: Vec<(Tongue, Option<usize>)> =
        own.into_iter().chain(others).map(|tongue| (tongue, words(tongue))).collect();
    let most = read.iter().filter_map(|(_, words)| *words).max();
    let mut found = None;
    for (tongue, _) in read.iter().filter(|(_, words)| words.is_some() && *words == most) {
        // What one language declines is not answered in the other one.
        let written = rules::write_sql(asked(*tongue), known.description, known.names);
        found = found.or(Some(written.map_err(|cannot| cannot.text)?));
    }
    found.ok_or_else(|| match own {
        Some(own) => match rules::write_sql(asked(own), known.description, known.names) {
            Err(cannot) => cannot.text,
            Ok(_) => speech.no_rules().to_owned(),
        },
        None => speech.no_rules().to_owned(),
    })
}

/// Whether a text names a table, a column or a value of the database.
pub fn names_data(text: &str, description: &DatabaseDescription) -> bool {
    let said = folded(text);
    description.tables.iter().any(|table| {
        called(&table.name, &table.synonyms).any(|name| contains(&said, &name))
            || table.columns.iter().any(|column| {
                let values = column.values.iter().flat_map(|value| called(&value.value, &value.synonyms));
                let known = column.known.iter().flatten().map(|value| folded(value).trim().to_owned());
                let names = called(&column.name, &column.synonyms).filter(|name| !is_small(name));
                names.chain(values).chain(known).any(|name| !name.is_empty() && contains(&said, &name))
            })
    })
}

/// Whether a name is a word that any question may have.
fn is_small(name: &str) -> bool {
    const SMALL: [&str; 14] =
        ["from", "with", "in", "of", "at", "by", "id", "di", "da", "a", "per", "name", "nome", "lives in"];
    SMALL.contains(&name)
}

/// What a table and its columns are called, as [`folded`] writes it.
struct CalledTable {
    table: Vec<String>,
    columns: Vec<String>,
}

impl CalledTable {
    fn of(table: &TableDescription) -> Self {
        let columns = table.columns.iter().flat_map(|column| called(&column.name, &column.synonyms));
        Self { table: called(&table.name, &table.synonyms).collect(), columns: columns.collect() }
    }
}

/// The tables that a text names: by their names, by what they are called, or by a column that no other table has.
pub fn mentioned_tables(text: &str, description: &DatabaseDescription) -> BTreeSet<String> {
    let said = folded(text);
    let names: Vec<CalledTable> = description.tables.iter().map(CalledTable::of).collect();
    let mut found = BTreeSet::new();
    for (at, (table, own)) in description.tables.iter().zip(&names).enumerate() {
        if own.table.iter().any(|name| contains(&said, name)) || names_own_column(&said, at, &names) {
            found.insert(table.name.clone());
        }
    }
    found
}

/// Whether a text names a column of a table as no other table and none of its columns is called.
fn names_own_column(said: &str, at: usize, names: &[CalledTable]) -> bool {
    let is_elsewhere = |name: &String| {
        let others = names.iter().enumerate().filter(|(other, _)| *other != at);
        others.into_iter().any(|(_, other)| other.columns.contains(name) || other.table.contains(name))
    };
    let own = names.get(at).map(|own| own.columns.as_slice()).unwrap_or_default();
    let mut named = own.iter().filter(|name| name.len() > 3 && !is_small(name) && contains(said, name));
    named.any(|name| !is_elsewhere(name))
}

/// The tables that a question may need: all of them where their description fits into `most` bytes, else those that it
/// names, and those between two of them.
pub fn choose_tables(question: &str, description: &DatabaseDescription, most: usize) -> BTreeSet<String> {
    let all = || description.tables.iter().map(|table| table.name.clone()).collect();
    if schema_text(description, SchemaDetail::Described).len() <= most {
        return all();
    }
    let mentioned = mentioned_tables(question, description);
    if mentioned.is_empty() {
        return all();
    }
    let mut chosen = mentioned.clone();
    for table in &description.tables {
        let refers = |name: &String| references(table, name);
        let is_bridge = mentioned.iter().filter(|name| refers(name)).count() >= 2;
        let is_between = description.tables.iter().any(|other| {
            mentioned.contains(&other.name)
                && references(other, &table.name)
                && mentioned.iter().any(|name| *name != other.name && references(table, name))
        });
        if is_bridge || is_between {
            chosen.insert(table.name.clone());
        }
    }
    // What the named tables refer to gives their rows names.
    let referred: Vec<String> = description
        .tables
        .iter()
        .filter(|table| mentioned.contains(&table.name))
        .flat_map(|table| table.columns.iter().filter_map(|column| column.references.as_ref()))
        .map(|reference| reference.table.clone())
        .collect();
    chosen.extend(referred);
    chosen
}

fn references(table: &TableDescription, name: &str) -> bool {
    table.columns.iter().any(|column| column.references.as_ref().is_some_and(|to| to.table == name))
}

/// Leaves out columns that a question does not name, except keys, references, names of rows, days and enumerations.
pub fn trim_columns(question: &str, description: &mut DatabaseDescription) {
    let said = folded(question);
    for table in &mut description.tables {
        let (keys, label, time) = (table.primary_key.clone(), table.label.clone(), table.time.clone());
        table.columns.retain(|column| {
            keys.contains(&column.name)
                || label.contains(&column.name)
                || time.as_ref() == Some(&column.name)
                || column.references.is_some()
                || !column.values.is_empty()
                || called(&column.name, &column.synonyms).any(|name| contains(&said, &name))
        });
    }
}

/// What a table or column is called, as [`folded`] writes it.
fn called<'a>(name: &'a str, synonyms: &'a SynonymsByLanguage) -> impl Iterator<Item = String> + 'a {
    let own = [name.to_owned(), name.replace('_', " ")];
    own.into_iter()
        .chain(synonyms.values().flatten().cloned())
        .map(|name| folded(&name).trim().to_owned())
        .filter(|name| !name.is_empty())
}

/// Whether a folded text has a name, also in the plural.
fn contains(said: &str, name: &str) -> bool {
    let plural = name.strip_suffix('y').map_or_else(|| format!("{name}s"), |stem| format!("{stem}ies"));
    if [name, plural.as_str()].iter().any(|name| said.contains(&format!(" {name} "))) {
        return true;
    }
    // Another ending: "stipendio", "stipendi".
    let Some(stem) =
        name.get(..name.len().saturating_sub(1)).filter(|stem| stem.len() >= 6 && !stem.contains(' '))
    else {
        return false;
    };
    said.split(' ').any(|word| word.starts_with(stem) && word.len() <= name.len() + 1)
}
