//! Answers questions about a database without a model: rules turn a question in English or Italian into one SQL
//! statement over one table and at most one more, joined or counted. Pure, and about no database in particular.
//!
//! A question is read phrase by phrase ([`reading`]), and each must become a part of the request. What is left over,
//! unclear or beyond one join is declined with a reason: a wrong answer is worse than none.

use jiff::civil::Date;

pub mod dates;
pub mod description;
mod doubts;
mod draft;
mod earlier;
mod explanation;
pub mod lexicon;
mod numbers;
mod qualities;
mod reading;
pub mod request;
mod sql;
#[cfg(test)]
mod tests;
mod tokens;
mod vocabulary;
mod who;

use dates::{Calendar, YearTest};
pub use description::{ColumnType, DatabaseDescription};
use lexicon::{Beyond, Role};
use request::{Request, Test};
use vocabulary::{Item, Meaning, Vocabulary};

/// The language of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tongue {
    /// English.
    English,
    /// Italian.
    Italian,
}

impl Tongue {
    /// From an ISO 639-1 code, perhaps with a region; none for languages that the rules do not read.
    pub fn of(code: &str) -> Option<Self> {
        match code.split(['-', '_']).next().unwrap_or_default() {
            "en" => Some(Self::English),
            "it" => Some(Self::Italian),
            _ => None,
        }
    }

    /// Its ISO 639-1 code.
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Italian => "it",
        }
    }
}

/// The SQL to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// A statement and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSql {
    /// One SELECT.
    pub sql: String,
    /// What was understood, in the language of the question.
    pub explanation: String,
    /// The tables that it reads.
    pub tables: Vec<String>,
}

/// Why the rules do not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A word that says nothing to the rules, as written.
    UnknownWord(String),
    /// A phrase that may mean several things, or nothing here.
    Unclear(String),
    /// A value that is not in the database.
    NoSuchValue(String),
    /// Something two joins or more away.
    TooFar(String),
    /// A date that can be read in two ways.
    UnclearDate(String),
    /// A number that is about nothing.
    LooseNumber(String),
    /// A unit that the values are not in.
    Unit(String),
    /// A date, but nothing that has one.
    NoTime,
    /// A date that may be about one of several days.
    WhichDay,
    /// The most of something, but not how many.
    HowMany,
    /// A word that is about one of two tables: the word, and the tables.
    Ambiguous(String, [String; 2]),
    /// A word that stands for something said before.
    Earlier(String),
    /// "Who", where it is not clear which people.
    Who,
    /// "How much", where it is not clear of which amount.
    HowMuch,
    /// A list by groups, which may be a number by groups.
    ListedByGroup,
    /// What rules cannot do.
    Beyond(Beyond),
    /// A question for yes or no.
    YesOrNo,
    /// No table is named.
    NothingAsked,
    /// Understood in part.
    Unsure,
}

/// A question that the rules do not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotSay {
    /// Why.
    pub reason: Reason,
    /// Why, in the language of the question, with what the rules can do.
    pub text: String,
}

/// A question as it is asked.
#[derive(Clone, Copy, Debug)]
pub struct WordedQuestion<'a> {
    /// Its words.
    pub words: &'a str,
    /// The language in which it is read.
    pub tongue: Tongue,
    /// The day on which it is asked.
    pub today: Date,
    /// The SQL to write.
    pub engine: Engine,
}

/// The names in a database, in each language. They are made once for all questions, since a database has thousands.
#[derive(Debug)]
pub struct Vocabularies {
    english: Vocabulary,
    italian: Vocabulary,
}

impl Vocabularies {
    /// The names in this database.
    pub fn of(database: &DatabaseDescription) -> Self {
        let of = |tongue| Vocabulary::new(database, tongue);
        Self { english: of(Tongue::English), italian: of(Tongue::Italian) }
    }

    fn of_tongue(&self, tongue: Tongue) -> &Vocabulary {
        match tongue {
            Tongue::English => &self.english,
            Tongue::Italian => &self.italian,
        }
    }
}

/// Writes the statement that answers a question. `names` are those of the database.
///
/// # Errors
/// If the question is not understood word for word, with the reason.
pub fn write_sql(
    question: WordedQuestion<'_>,
    database: &DatabaseDescription,
    names: &Vocabularies,
) -> Result<RuleSql, CannotSay> {
    let tongue = question.tongue;
    let read = items(question, database, names.of_tongue(tongue));
    let request = read.and_then(|items| understand(question, database, &items)).map_err(|reason| {
        let text = explanation::declined(&reason, tongue);
        CannotSay { reason, text }
    })?;
    let name = |table: usize| database.tables.get(table).map(|table| table.name.clone());
    Ok(RuleSql {
        sql: sql::statement(&request, database, question.engine),
        explanation: explanation::understood(&request, database, tongue),
        tables: [Some(request.main), request.join.map(|join| join.table)]
            .into_iter()
            .flatten()
            .chain(request.related.iter().map(|related| related.join.table))
            .chain(request.far.iter().flatten().map(|join| join.table))
            .filter_map(name)
            .collect(),
    })
}

/// How many words of a question are words of its language rather than names in the database; `None` if one of its words says
/// nothing in it. Of two languages, it is in the one with more.
pub fn own_words(
    question: WordedQuestion<'_>,
    database: &DatabaseDescription,
    names: &Vocabularies,
) -> Option<usize> {
    let items = items(question, database, names.of_tongue(question.tongue)).ok()?;
    let own = items.iter().filter(|item| item.role.is_some() && item.meanings.is_empty());
    unknown(&items).is_none().then(|| own.map(|item| item.text.split(' ').count()).sum())
}

/// A phrase that says nothing.
fn unknown(items: &[Item]) -> Option<&Item> {
    items.iter().find(|item| item.is_unknown() && !item.quoted && !is_searched(items, item))
}

/// The phrases of a question.
fn items(
    question: WordedQuestion<'_>,
    database: &DatabaseDescription,
    vocabulary: &Vocabulary,
) -> Result<Vec<Item>, Reason> {
    let WordedQuestion { words, tongue, today, .. } = question;
    let items = vocabulary.items(words, Calendar { today, tongue }).map_err(Reason::UnclearDate)?;
    let items = with_money(items, database);
    let items = without_modifiers(items, database, tongue);
    Ok(without_own_name(items, database, tongue))
}

/// "Money" is the amount of a table that has one, and "how much money" the sum of it.
fn with_money(mut items: Vec<Item>, database: &DatabaseDescription) -> Vec<Item> {
    let amounts = (0..database.tables.len()).filter_map(|table| qualities::amount(database, table));
    let amounts: Vec<Meaning> = amounts.map(Meaning::Column).collect();
    for at in 0..items.len() {
        let (before, rest) = items.split_at_mut_checked(at).unwrap_or_default();
        let Some(item) = rest.first_mut().filter(|item| {
            item.is_unknown() && !item.quoted && matches!(&*item.text, "money" | "denaro" | "soldi")
        }) else {
            continue;
        };
        item.meanings.clone_from(&amounts);
        // "how much scholarship money"
        let asked = before.iter_mut().rev().take(2).find(|item| item.role == Some(Role::HowMuch));
        if let Some(asked) = asked {
            (asked.role, asked.text) = (Some(Role::Aggregate(lexicon::Function::Sum)), "sum of".to_owned());
        }
    }
    items
}

/// The one request that a question can be understood as.
fn understand(
    question: WordedQuestion<'_>,
    database: &DatabaseDescription,
    items: &[Item],
) -> Result<Request, Reason> {
    let tongue = question.tongue;
    if is_yes_or_no(question.words, tongue) {
        return Err(Reason::YesOrNo);
    }
    if let Some(beyond) = items.iter().find_map(beyond) {
        return Err(Reason::Beyond(beyond));
    }
    if let Some(unknown) = unknown(items) {
        return Err(Reason::UnknownWord(unknown.written.clone()));
    }
    if let Some(word) = earlier::refers_back(items, tongue) {
        return Err(Reason::Earlier(word.to_owned()));
    }
    let mut found: Vec<Request> = Vec::new();
    let mut reason = None;
    for main in mains(items, database) {
        let read = reading::Reader::new(database, items, tongue, main).read();
        match read.and_then(|request| who::about_people(request, items, database, tongue)) {
            Ok(request) if !found.contains(&request) => found.push(request),
            Ok(_) => {}
            Err(why) => reason = reason.or(Some(why)),
        }
    }
    match (found.pop(), found.is_empty()) {
        (Some(request), true) => Ok(request),
        (Some(_), false) => Err(Reason::Unsure),
        (None, _) => Err(reason.unwrap_or(Reason::NothingAsked)),
    }
}

/// What the database is called says nothing in a question about it: "How many students does the university have?"
fn without_own_name(items: Vec<Item>, database: &DatabaseDescription, tongue: Tongue) -> Vec<Item> {
    let description = database.description.get(tongue.code()).map_or("", String::as_str);
    let name = description.split([':', ',', '.', ';']).next().unwrap_or_default();
    let words: Vec<String> =
        tokens::tokens(&format!("{} {name}", database.database)).into_iter().map(|t| t.text).collect();
    let own =
        |item: &Item| item.is_unknown() && !item.quoted && item.weak.is_empty() && words.contains(&item.text);
    items
        .into_iter()
        .map(|item| if own(&item) { Item { role: Some(Role::Filler), ..item } } else { item })
        .collect()
}

/// Whether a question asks for yes or no.
fn is_yes_or_no(question: &str, tongue: Tongue) -> bool {
    let words: Vec<String> =
        tokens::tokens(question).into_iter().filter(|t| !t.mark).take(2).map(|t| t.text).collect();
    let first = words.first().map_or("", String::as_str);
    let second = words.get(1).map_or("", String::as_str);
    match tongue {
        Tongue::English => {
            let please = first == "do" && second == "show" || first == "have" && second == "a";
            matches!(first, "is" | "are" | "do" | "does" | "did" | "has" | "have" | "was" | "were") && !please
        }
        Tongue::Italian => matches!(
            (first, second),
            ("ci", "sono") | ("c", "e") | ("esistono" | "esiste" | "abbiamo" | "e", _)
        ),
    }
}

fn beyond(item: &Item) -> Option<Beyond> {
    match item.role {
        Some(Role::Beyond(beyond)) if item.meanings.is_empty() => Some(beyond),
        _ => None,
    }
}

/// Whether a word is what a text is searched for.
fn is_searched(items: &[Item], item: &Item) -> bool {
    let last = items.last().is_some_and(|last| std::ptr::eq(last, item));
    let search = |item: &Item| matches!(item.role, Some(Role::Contains | Role::StartsWith | Role::EndsWith));
    last && items.len().checked_sub(2).and_then(|at| items.get(at)).is_some_and(search)
}

/// "customer reviews" is "reviews": a table's name before another's, in English, adds nothing if each row has one.
fn without_modifiers(items: Vec<Item>, database: &DatabaseDescription, tongue: Tongue) -> Vec<Item> {
    if tongue != Tongue::English {
        return items;
    }
    let table = |item: &Item| {
        item.meanings
            .iter()
            .find_map(|meaning| if let Meaning::Table(at) = meaning { Some(*at) } else { None })
    };
    let adds_nothing = |at: usize| {
        let (Some(first), Some(second)) = (items.get(at).and_then(table), items.get(at + 1).and_then(table))
        else {
            return false;
        };
        // A group or a list before it is about the first.
        let led = at.checked_sub(1).and_then(|at| items.get(at)).and_then(|item| item.role);
        let led = matches!(led, Some(Role::Per | Role::Each | Role::WithTheir | Role::By));
        let keys = database.keys(second, first);
        let always = keys.iter().all(|(column, _)| {
            draft::column_of(database, (second, *column)).is_some_and(|column| !column.nullable)
        });
        // "students attend" has a verb.
        let modifier = items.get(at).is_some_and(|item| !tokens::is_english_plural(&item.text));
        // "for each product category"
        let owned = database.keys(first, second).len() == 1 && keys.is_empty();
        modifier && (!led && keys.len() == 1 && always || led && owned)
    };
    let kept: Vec<bool> = (0..items.len()).map(|at| !adds_nothing(at)).collect();
    items.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(item, _)| item).collect()
}

/// The tables that the question may be about: the first that is named, other than as a group; else those of the columns
/// and values that are named.
fn mains(items: &[Item], database: &DatabaseDescription) -> Vec<usize> {
    let mut tables: Vec<usize> = Vec::new();
    let computed = items.iter().any(|item| {
        item.meanings.is_empty()
            && matches!(item.role, Some(Role::Count | Role::Aggregate(_) | Role::Extreme(_) | Role::Most))
    });
    for (at, item) in items.iter().enumerate() {
        let before =
            items.iter().take(at).rev().find(|item| !item.is_light()).filter(|item| item.meanings.is_empty());
        let grouped = match before.and_then(|item| item.role) {
            // "For each order show the customer" lists orders.
            Some(Role::Per | Role::Each) => computed,
            Some(Role::SortedBy) => at > 2,
            // "Which month had the most orders?"
            Some(Role::Most) => asked_period(items).is_none(),
            Some(Role::By | Role::WithTheir | Role::Tie) => true,
            _ => false,
        };
        let table = |meaning: &Meaning| if let Meaning::Table(at) = meaning { Some(*at) } else { None };
        let named: Vec<usize> = item.meanings.iter().filter_map(table).collect();
        if !grouped && !named.is_empty() {
            // "Which researchers work in the Physics department?": a value before may say what is asked for, but not the
            // one that describes the table, as in "pending orders".
            let before =
                items.iter().take(at.saturating_sub(1)).find_map(|item| only_value_of(item, database));
            let owner =
                before.filter(|owner| named.iter().any(|table| database.keys(*owner, *table).len() == 1));
            let computed = computed_before(items.get(..at).unwrap_or_default(), &named, database);
            let mut all: Vec<usize> = owner.into_iter().chain(computed).chain(named).collect();
            all.dedup();
            return all;
        }
    }
    for item in items {
        for meaning in &item.meanings {
            if let Meaning::Column((table, column)) | Meaning::Value((table, column), _) = meaning {
                let key =
                    draft::column_of(database, (*table, *column)).is_some_and(|c| c.references.is_some());
                if !key && !tables.contains(table) {
                    tables.push(*table);
                }
            }
        }
    }
    // "Who earns the most?"
    if tables.is_empty() {
        let quality = |item: &Item| match item.role {
            Some(Role::Quality(quality, _)) => Some(quality),
            _ => None,
        };
        for quality in items.iter().filter_map(quality) {
            let has = |table: &usize| qualities::column(database, *table, quality).is_some();
            tables.extend((0..database.tables.len()).filter(has));
        }
    }
    tables
}

/// Where a question asks for a period: "which month", "in quale anno".
fn asked_period(items: &[Item]) -> Option<usize> {
    let which = items.iter().position(|item| item.role == Some(Role::Which) && item.meanings.is_empty())?;
    let period = items.get(which + 1)?;
    (matches!(period.role, Some(Role::Period(_))) && period.meanings.is_empty()).then_some(which + 1)
}

/// "The average salary in the Physics department" is about what has a salary: its table, if it refers to one of those
/// that are named.
fn computed_before(items: &[Item], named: &[usize], database: &DatabaseDescription) -> Option<usize> {
    items.iter().flat_map(|item| &item.meanings).find_map(|meaning| match meaning {
        Meaning::Column(of) if !named.contains(&of.0) => {
            let column = draft::column_of(database, *of)?;
            let number = column.kind.is_number() && column.references.is_none();
            (number && named.iter().any(|table| database.keys(of.0, *table).len() == 1)).then_some(of.0)
        }
        _ => None,
    })
}

/// The table of a value of an enumeration, if a phrase can be nothing else.
fn only_value_of(item: &Item, database: &DatabaseDescription) -> Option<usize> {
    match item.meanings.as_slice() {
        [Meaning::Value(at, _)] => {
            draft::column_of(database, *at).filter(|column| !column.values.is_empty()).map(|_| at.0)
        }
        _ => None,
    }
}

/// A year test as a comparison with the year's number.
fn numbers_of(year: YearTest) -> Option<Test> {
    use lexicon::Comparison as C;
    Some(match year {
        YearTest::Is(year) => Test::Compare(C::Equal, year.to_string()),
        YearTest::Before(year) => Test::Compare(C::Less, year.to_string()),
        YearTest::After(year) => Test::Compare(C::More, year.to_string()),
        YearTest::Since(year) => Test::Compare(C::AtLeast, year.to_string()),
        YearTest::Until(year) => Test::Compare(C::AtMost, year.to_string()),
        YearTest::Between(from, to) => Test::Between(from.to_string(), to.to_string()),
    })
}
