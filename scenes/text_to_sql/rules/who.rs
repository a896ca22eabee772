//! "Who": what is answered must be people, or others who act, such as suppliers. A question about orders or reviews is
//! answered with those that they refer to, if its verb is that of one reference: "Customer who wrote the review".

use super::description::{ColumnDescription, DatabaseDescription, TableDescription};
use super::lexicon::Role;
use super::request::{Answer, Join, Request};
use super::tokens::tokens;
use super::vocabulary::{ColumnAt, Item, Meaning};
use super::{Reason, Tongue};

/// How many letters two forms of a verb share at least, and how many of three they share of each.
const SHARED_LETTERS: usize = 5;

/// Whether a question asks who.
pub fn asks_who(items: &[Item]) -> bool {
    items.first().is_some_and(|item| matches!(item.text.split(' ').next(), Some("who" | "chi")))
}

/// Whether the rows of a table can be what "who" asks for: they have last names or addresses of mail.
pub fn can_be_who(table: &TableDescription) -> bool {
    has_people(table) || table.columns.iter().any(|column| column.name.split('_').any(|part| part == "email"))
}

/// Whether the rows of a table are people: their last names are known.
pub fn has_people(table: &TableDescription) -> bool {
    let label = table.label_columns();
    label.iter().any(|at| table.columns.get(*at).is_some_and(|column| column.name == "last_name"))
}

/// The request that a question for people is: about the people, where the words are about what they did.
///
/// # Errors
/// If it is not clear who is meant.
pub fn about_people(
    request: Request,
    items: &[Item],
    database: &DatabaseDescription,
    tongue: Tongue,
) -> Result<Request, Reason> {
    let main = database.tables.get(request.main).ok_or(Reason::NothingAsked)?;
    let shows_people = match &request.answer {
        Answer::Rows { columns, .. } | Answer::Extreme(_, _, columns) => columns
            .iter()
            .any(|(table, _)| database.tables.get(*table).is_some_and(can_be_who) && *table != request.main),
        _ => false,
    };
    if !asks_who(items) || can_be_who(main) || shows_people {
        return Ok(request);
    }
    let plain = request.join.is_none()
        && request.far.is_none()
        && request.related.is_empty()
        && request.groups.is_empty()
        && request.order.is_empty();
    if !plain || request.limit.is_some() {
        return Err(Reason::Who);
    }
    let to = doer(items, database, request.main, tongue).ok_or(Reason::Who)?;
    match request.answer {
        // The people, with what they did as a condition; each once.
        Answer::Rows { ref columns, distinct: false } if columns.is_empty() => {
            let join = Join { table: request.main, to_parent: false, ..to };
            Ok(Request { main: to.table, join: Some(join), ..request })
        }
        Answer::Extreme(column, direction, ref columns) if columns.is_empty() => {
            let label =
                database.tables.get(to.table).map(TableDescription::label_columns).unwrap_or_default();
            let label = label.into_iter().map(|column| (to.table, column)).collect();
            Ok(Request { answer: Answer::Extreme(column, direction, label), join: Some(to), ..request })
        }
        _ => Err(Reason::Who),
    }
}

/// The people that a table refers to and the verb is about: by what is said of the reference, or because there is no
/// other one and they "have" the rows.
fn doer(items: &[Item], database: &DatabaseDescription, table: usize, tongue: Tongue) -> Option<Join> {
    let references = references_to_people(database, table);
    let verb = items.iter().skip(1).find(|item| !item.is_light())?;
    let fits = |(at, join): &&(ColumnAt, Join)| {
        super::draft::column_of(database, *at).is_some_and(|column| is_verb_of(column, verb, tongue))
            || database.tables.get(join.table).is_some_and(|people| is_verb_of_name(people, verb, tongue))
    };
    let mut fitting = references.iter().filter(fits);
    if let Some((_, join)) = fitting.next() {
        return fitting.next().is_none().then_some(*join);
    }
    let has = matches!(verb.role, Some(Role::With | Role::WithA)) && verb.meanings.is_empty();
    match references.as_slice() {
        [(_, join)] if has && !is_bridged(database, table) => Some(*join),
        _ => None,
    }
}

/// Whether a question asks for people of whom a table has one each, by a verb that they are called after: "who teaches
/// Statics?"
pub fn asks_for_namesake(
    items: &[Item],
    database: &DatabaseDescription,
    table: usize,
    tongue: Tongue,
) -> bool {
    let Some(to) = doer(items, database, table, tongue).filter(|_| asks_who(items)) else { return false };
    let verb = items.iter().skip(1).find(|item| !item.is_light());
    let people = database.tables.get(to.table);
    people.zip(verb).is_some_and(|(people, verb)| is_verb_of_name(people, verb, tongue))
}

/// The foreign keys of a table to people, which every row has.
fn references_to_people(database: &DatabaseDescription, table: usize) -> Vec<(ColumnAt, Join)> {
    let people = (0..database.tables.len()).filter(|at| database.tables.get(*at).is_some_and(can_be_who));
    let keys = people.flat_map(|to| {
        database.keys(table, to).into_iter().map(move |(column, target)| {
            let (key, target) = ((table, column), (to, target));
            (key, Join { table: to, key, target, to_parent: true })
        })
    });
    keys.collect()
}

/// Whether people are tied to a table in another way: by a table that refers to both.
fn is_bridged(database: &DatabaseDescription, table: usize) -> bool {
    (0..database.tables.len()).any(|bridge| {
        bridge != table
            && !database.keys(bridge, table).is_empty()
            && !references_to_people(database, bridge).is_empty()
    })
}

/// Whether a verb is the one in what is said of a reference: "Customer who wrote the review".
fn is_verb_of(column: &ColumnDescription, verb: &Item, tongue: Tongue) -> bool {
    let said = column.description.get(tongue.code()).map_or("", String::as_str);
    let said: Vec<String> =
        tokens(said).into_iter().filter(|word| !word.mark).map(|word| word.text).collect();
    // What stands after "who" is what they did; before it is what they are called.
    let said = said.iter().skip_while(|word| !matches!(word.as_str(), "who" | "che" | "cui")).skip(1);
    let mut said = said.filter(|word| word.chars().count() >= SHARED_LETTERS);
    let is_named = verb.meanings.iter().any(|meaning| matches!(meaning, Meaning::Table(_)));
    !is_named && said.any(|word| verb.text.split(' ').any(|own| are_forms(own, word)))
}

/// Whether people are called after what they do: teachers teach, "insegnanti insegnano".
fn is_verb_of_name(people: &TableDescription, verb: &Item, tongue: Tongue) -> bool {
    let synonyms = people.synonyms.get(tongue.code()).into_iter().flatten();
    let mut names = std::iter::once(&people.name).chain(synonyms).map(|name| name.to_lowercase());
    verb.meanings.is_empty() && names.any(|name| verb.text.split(' ').any(|own| are_forms(own, &name)))
}

/// Whether two words may be forms of one verb: "received" and "receives".
fn are_forms(one: &str, other: &str) -> bool {
    let shared = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let most = |word: &str| shared * 3 >= word.chars().count() * 2;
    one == other || (shared >= SHARED_LETTERS && most(one) && most(other))
}
