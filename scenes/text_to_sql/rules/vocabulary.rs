//! What the words of a question mean in a database: its tables, columns and values by all their names, longest first.

use std::collections::BTreeMap;

use super::Tongue;
use super::dates::{Calendar, Days, Found};
use super::description::{ColumnDescription, DatabaseDescription, SynonymsByLanguage};
use super::lexicon::{self, Role};
use super::numbers;
use super::tokens::{Token, folded, stem, tokens};

/// A column: the position of its table and its own.
pub type ColumnAt = (usize, usize);

/// Something in the database that a phrase may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A table.
    Table(usize),
    /// A column.
    Column(ColumnAt),
    /// A value of a column, as stored.
    Value(ColumnAt, String),
}

/// A phrase of the question and all that it may mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// What it does in any question.
    pub role: Option<Role>,
    /// A number, as SQL writes it.
    pub number: Option<String>,
    /// A date.
    pub days: Option<Days>,
    /// What it is in the database.
    pub meanings: Vec<Meaning>,
    /// What it is only beside its own column, for words that mean something else elsewhere.
    pub weak: Vec<Meaning>,
    /// Folded words.
    pub text: String,
    /// As written.
    pub written: String,
    /// Whether it stood in quotes.
    pub quoted: bool,
}

impl Item {
    /// Whether the question cannot be understood with it.
    pub fn is_unknown(&self) -> bool {
        self.role.is_none() && self.number.is_none() && self.days.is_none() && self.meanings.is_empty()
    }

    /// Whether it may be passed over between a thing and what is said of it.
    pub fn is_light(&self) -> bool {
        matches!(self.role, Some(Role::Filler | Role::Link))
            && self.meanings.is_empty()
            && self.days.is_none()
    }
}

#[derive(Debug)]
struct Phrase {
    /// Folded words.
    words: Vec<String>,
    /// Their stems; none where only the exact words will do.
    stems: Option<Vec<String>>,
    meaning: Meaning,
}

/// All names in a database, by the first word or its stem.
#[derive(Debug)]
pub struct Vocabulary {
    tongue: Tongue,
    phrases: BTreeMap<String, Vec<Phrase>>,
}

impl Vocabulary {
    /// The names in the language of the question, the names in the database itself, and all known values.
    pub fn new(database: &DatabaseDescription, tongue: Tongue) -> Self {
        let mut vocabulary = Self { tongue, phrases: BTreeMap::new() };
        for (at, table) in database.tables.iter().enumerate() {
            let own = table.name.replace('_', " ");
            for name in names(&own, &table.synonyms, tongue) {
                vocabulary.add(&name, Meaning::Table(at), true);
            }
            for (column_at, column) in table.columns.iter().enumerate() {
                vocabulary.add_column((at, column_at), column);
            }
        }
        vocabulary
    }

    fn add_column(&mut self, at: ColumnAt, column: &ColumnDescription) {
        let own = column.name.replace('_', " ");
        for name in names(&own, &column.synonyms, self.tongue) {
            self.add(&name, Meaning::Column(at), true);
        }
        if let Some(root) = root(column) {
            self.add(&root, Meaning::Column(at), true);
        }
        for value in &column.values {
            for name in names(&value.value.replace('_', " "), &value.synonyms, self.tongue) {
                self.add(&name, Meaning::Value(at, value.value.clone()), true);
            }
        }
        for value in column.known.iter().flatten() {
            let is_listed = column.values.iter().any(|listed| listed.value == *value);
            if !is_listed {
                self.add(value, Meaning::Value(at, value.clone()), false);
            }
        }
    }

    fn add(&mut self, name: &str, meaning: Meaning, stemmed: bool) {
        let words: Vec<String> =
            tokens(name).into_iter().filter(|t| !t.mark).map(|t| folded(&t.text)).collect();
        let stems: Option<Vec<String>> =
            stemmed.then(|| words.iter().map(|w| stem(w, self.tongue)).collect());
        let Some(first) = stems.as_ref().unwrap_or(&words).first() else { return };
        self.phrases.entry(first.clone()).or_default().push(Phrase { words, stems, meaning });
    }

    /// The meanings of the longest phrase that these words begin with, and how many words it has.
    fn longest(&self, words: &[&str]) -> (usize, Vec<Meaning>) {
        let Some(first) = words.first() else { return (0, Vec::new()) };
        let stemmed = stem(first, self.tongue);
        let keys = if stemmed == *first { vec![stemmed] } else { vec![stemmed, (*first).to_owned()] };
        let (mut longest, mut meanings) = (0, Vec::new());
        for phrase in keys.iter().filter_map(|key| self.phrases.get(key)).flatten() {
            let len = phrase.words.len();
            if len < longest || !phrase.matches(words, self.tongue) {
                continue;
            }
            if len > longest {
                (longest, meanings) = (len, Vec::new());
            }
            if !meanings.contains(&phrase.meaning) {
                meanings.push(phrase.meaning.clone());
            }
        }
        (longest, meanings)
    }

    /// Takes a question apart into phrases.
    ///
    /// # Errors
    /// A date that can be read in two ways, as written.
    pub fn items(&self, question: &str, calendar: Calendar) -> Result<Vec<Item>, String> {
        let words = tokens(question);
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
            let (item, len) = self.item(rest, calendar)?;
            out.extend(item);
            at += len.max(1);
        }
        Ok(out)
    }

    fn item(&self, words: &[Token], calendar: Calendar) -> Result<(Option<Item>, usize), String> {
        let Some(first) = words.first() else { return Ok((None, 1)) };
        if first.mark && matches!(&*first.text, "?" | "!" | "." | "(" | ")" | "¿" | "…" | "°" | "'" | "’")
        {
            return Ok((None, 1));
        }
        if first.quoted {
            return Ok((Some(self.quoted(first)), 1));
        }
        // A phrase does not run over a quoted text.
        let texts: Vec<&str> =
            words.iter().take_while(|word| !word.quoted).map(|w| w.text.as_str()).take(12).collect();
        let (named, meanings) = self.longest(&texts);
        let function = self.function(first, &texts);
        let dated = match calendar.phrase(words) {
            Some(Found::Unclear(written)) => return Err(written),
            Some(Found::Days(days, len)) => Some((days, len)),
            None => None,
        };
        let function_len = function.map_or(0, |(_, len)| len);
        let dated_len = dated.map_or(0, |(_, len)| len);
        let short = first.text.chars().count() <= 2 && first.written == first.text;
        let only_values = meanings.iter().all(|meaning| matches!(meaning, Meaning::Value(..)));
        let common = function.is_some_and(|(role, _)| is_common(role));
        let weak = named == 1 && (short && only_values || common);
        let mut item = Item::default();
        let len;
        if named > 0 && !weak && named >= function_len && named >= dated_len {
            len = named;
            item.meanings = meanings;
            item.role = function.filter(|(_, function_len)| *function_len == named).map(|(role, _)| role);
        } else if let Some((days, dated_len)) = dated.filter(|_| dated_len >= function_len) {
            len = dated_len;
            item.days = Some(days);
        } else if let Some((role, function_len)) = function {
            len = function_len;
            item.role = Some(role);
            if weak && function_len == 1 {
                item.weak = meanings;
            }
        } else {
            len = 1;
            item.number = self.number(first);
            if weak {
                item.weak = meanings;
            }
        }
        let part = words.get(..len).unwrap_or_default();
        item.text = part.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        item.written = part.iter().map(|word| word.written.as_str()).collect::<Vec<_>>().join(" ");
        Ok((Some(item), len))
    }

    /// What the words do in any question.
    fn function(&self, first: &Token, texts: &[&str]) -> Option<(Role, usize)> {
        let (role, len) = lexicon::phrase(texts, self.tongue)?;
        // Without its accent, "è" (is) is "e" (and).
        if (role, len) == (Role::And, 1) && matches!(&*first.written, "è" | "È" | "é") {
            return Some((Role::Filler, 1));
        }
        // "per canale e stato" has a state, "è stato" a verb.
        let names_next = self.longest(texts.get(1..).unwrap_or_default()).0 > 0;
        if role == Role::Filler && len > 1 && matches!(&*first.written, "e" | "E") && names_next {
            return Some((Role::And, 1));
        }
        // "per academic year" is not "per year".
        let longer = |start: usize| self.longest(texts.get(start..).unwrap_or_default()).0 > 1;
        if matches!(role, Role::PerPeriod(_)) && len > 1 && longer(len - 1) {
            return lexicon::phrase(texts.get(..len - 1)?, self.tongue);
        }
        Some((role, len))
    }

    fn number(&self, word: &Token) -> Option<String> {
        numbers::written(&word.text, self.tongue)
            .or_else(|| numbers::in_words(&word.text, self.tongue).map(|n| n.to_string()))
    }

    /// A quoted text is a value and nothing else.
    fn quoted(&self, word: &Token) -> Item {
        let words: Vec<String> = tokens(&word.text).into_iter().filter(|t| !t.mark).map(|t| t.text).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (len, meanings) = self.longest(&words);
        let whole = |meaning: &Meaning| len == words.len() && matches!(meaning, Meaning::Value(..));
        let meanings = meanings.into_iter().filter(whole).collect();
        Item {
            meanings,
            text: word.text.clone(),
            written: word.written.clone(),
            quoted: true,
            ..Item::default()
        }
    }
}

impl Phrase {
    /// Whether the words begin with this phrase.
    fn matches(&self, words: &[&str], tongue: Tongue) -> bool {
        let Some(words) = words.get(..self.words.len()) else { return false };
        let exact = words.iter().zip(&self.words).all(|(word, own)| word == own);
        exact
            || self
                .stems
                .as_ref()
                .is_some_and(|stems| words.iter().zip(stems).all(|(word, own)| stem(word, tongue) == *own))
    }
}

/// A word of this role is too common to be the name of something on its own.
fn is_common(role: Role) -> bool {
    !matches!(role, Role::Unit(_) | Role::Period(_) | Role::Tie | Role::Verb(_) | Role::Beyond(_))
}

/// What a thing is called: its own name, and its synonyms in the language, else in English.
fn names(own: &str, synonyms: &SynonymsByLanguage, tongue: Tongue) -> Vec<String> {
    let listed = synonyms.get(tongue.code()).or_else(|| synonyms.get("en"));
    let mut names = vec![own.to_owned()];
    names.extend(listed.into_iter().flatten().cloned());
    names
}

/// A column's name without its ending: `shipped` of `shipped_on`, `customer` of `customer_id`, `weight` of `weight_kg`.
pub fn root(column: &ColumnDescription) -> Option<String> {
    let tails: &[&str] = if column.kind.is_time() {
        &["_on", "_at", "_date", "_time"]
    } else if column.references.is_some() {
        &["_id"]
    } else if column.kind.is_number() {
        &["_kg", "_pct", "_eur", "_count", "_years"]
    } else {
        &[]
    };
    tails.iter().find_map(|tail| column.name.strip_suffix(tail)).map(|root| root.replace('_', " "))
}
