//! Reads a TOML document with the line of each key, so that all its faults can be reported at once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::FaultReport;
use crate::nearest::{did_you_mean, name_list};

/// The maximum number of reported syntax errors.
const MAX_SYNTAX_ERRORS: usize = 5;

/// The lists of tables whose headers are easily written with single brackets.
const LISTS: [&str; 4] = ["tools", "tables", "nodes", "invariants"];

/// A value and, if it was read from a file, its line.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) line: Option<u32>,
}

impl<T> Located<T> {
    /// A value that comes from no file.
    pub(crate) fn without_line(value: T) -> Self {
        Self { value, line: None }
    }
}

/// The byte offsets at which the lines of a text begin.
struct LineIndex(Vec<usize>);

impl LineIndex {
    pub(crate) fn new(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The line of a byte offset, from 1.
    pub(crate) fn line_at(&self, byte: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= byte)).unwrap_or(u32::MAX)
    }
}

/// The lines of the parts of a JSON value, by JSON pointer.
#[derive(Debug, Clone, Default)]
pub(crate) struct PointerLines(BTreeMap<String, u32>);

impl PointerLines {
    /// The line of the value at `pointer`, or of the nearest value that contains it.
    pub(crate) fn line(&self, pointer: &str) -> Option<u32> {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.0.get(pointer) {
                return Some(*line);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }
}

/// Required or optional, of a key in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
}

/// The values of a table of texts, by key.
pub(crate) type LocatedTexts = BTreeMap<String, Located<String>>;

/// Reads one table. The keys that were read before [`Self::reject_unknown_keys`] are the allowed ones.
pub(crate) struct TableReader<'a> {
    report: &'a FaultReport,
    lines: &'a LineIndex,
    table: &'a DeTable<'a>,
    /// The prefix of its keys in messages, such as `tools[2].`.
    path: String,
    line: u32,
    known: Vec<&'static str>,
}

/// A table with the key that it is under.
pub(crate) struct NamedTable<'a> {
    pub(crate) key: Located<String>,
    pub(crate) table: TableReader<'a>,
    /// The table as JSON, with the lines of its parts.
    pub(crate) source: Value,
    pub(crate) lines: PointerLines,
}

/// Parses a document with `read`. Returns `None` if the text is not TOML. Faults are reported.
pub(crate) fn read_toml<T>(
    text: &str,
    report: &FaultReport,
    read: impl FnOnce(TableReader<'_>) -> T,
) -> Option<T> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let lines = LineIndex::new(text);
    // Those after the first few are mostly their consequence.
    for error in errors.iter().take(MAX_SYNTAX_ERRORS) {
        let line = error.span().map(|span| lines.line_at(span.start));
        let header = error.span().and_then(|span| text.get(span)).filter(|key| LISTS.contains(key));
        let remedy = match header {
            Some(key) => format!("if this begins another of the {key}, write [[{key}]] above each of them"),
            None => "fix this first: the rest of the file is checked afterwards".to_owned(),
        };
        report.error(line, "syntax", format!("invalid TOML: {}", error.message()), remedy);
    }
    let (table, path) = (table.get_ref(), String::new());
    let root = TableReader { report, lines: &lines, table, path, line: 1, known: Vec::new() };
    errors.is_empty().then(|| read(root))
}

impl<'a> TableReader<'a> {
    /// The report that collects its faults.
    pub(crate) fn report(&self) -> &'a FaultReport {
        self.report
    }

    /// The line that the table begins on.
    pub(crate) fn line(&self) -> Option<u32> {
        Some(self.line)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The line of a key, or of the table if the key is absent.
    pub(crate) fn line_of(&self, key: &str) -> Option<u32> {
        Some(match self.table.get_key_value(key) {
            Some((key, _)) => self.lines.line_at(key.span().start),
            None => self.line,
        })
    }

    pub(crate) fn string(&mut self, key: &'static str, need: Presence) -> Option<Located<String>> {
        let value = self.get(key, need)?;
        match value.get_ref() {
            DeValue::String(text) => Some(self.at(key, text.to_string())),
            other => self.wrong_type(key, other, "a string"),
        }
    }

    /// One of a fixed set of keywords.
    pub(crate) fn keyword<T: Copy>(
        &mut self,
        key: &'static str,
        need: Presence,
        words: &[(&str, T)],
    ) -> Option<Located<T>> {
        let value = self.get(key, need)?;
        let DeValue::String(text) = value.get_ref() else {
            let choices = words.iter().map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>();
            return self.wrong_type(key, value.get_ref(), &format!("one of: {}", choices.join(", ")));
        };
        let given = self.at(key, text.to_string());
        if let Some((_, meant)) = words.iter().find(|(word, _)| *word == given.value) {
            return Some(Located { value: *meant, line: given.line });
        }
        let names = words.iter().map(|(word, _)| *word);
        let message = format!("`{}{key}` is {:?}", self.path, given.value);
        let hint = did_you_mean(&given.value, names.clone());
        let remedy = format!("write one of: {}; {hint}", name_list(names));
        self.report.error(given.line, "invalid_value", message, remedy.trim_end_matches([';', ' ']));
        None
    }

    pub(crate) fn number(&mut self, key: &'static str) -> Option<Located<u64>> {
        self.whole_number(key, Presence::Optional)
    }

    /// A number that may not be absent.
    pub(crate) fn required_number(&mut self, key: &'static str) -> Option<Located<u64>> {
        self.whole_number(key, Presence::Required)
    }

    fn whole_number(&mut self, key: &'static str, need: Presence) -> Option<Located<u64>> {
        let value = self.get(key, need)?;
        let read = match value.get_ref() {
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).map_err(|_| n.as_str()),
            other => return self.wrong_type(key, other, "a whole number of 0 or more"),
        };
        match read {
            Ok(n) => Some(self.at(key, n)),
            Err(given) => {
                let message = format!("`{}{key}` is {given}", self.path);
                self.report.error(self.line_of(key), "bound", message, "write a whole number of 0 or more");
                None
            }
        }
    }

    /// A number with or without a fraction.
    pub(crate) fn decimal(&mut self, key: &'static str) -> Option<Located<f64>> {
        let value = self.get(key, Presence::Optional)?;
        let read = match value.get_ref() {
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
            DeValue::Float(n) => n.as_str().parse().ok().filter(|n: &f64| n.is_finite()),
            _ => None,
        };
        match read {
            Some(n) => Some(self.at(key, n)),
            None => self.wrong_type(key, value.get_ref(), "a number"),
        }
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> Option<Located<bool>> {
        let value = self.get(key, Presence::Optional)?;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(self.at(key, *flag)),
            other => self.wrong_type(key, other, "true or false"),
        }
    }

    pub(crate) fn strings(&mut self, key: &'static str) -> Vec<Located<String>> {
        let Some(value) = self.get(key, Presence::Optional) else { return Vec::new() };
        let DeValue::Array(elements) = value.get_ref() else {
            self.wrong_type::<()>(key, value.get_ref(), "a list of strings");
            return Vec::new();
        };
        let mut strings = Vec::new();
        for element in elements.iter() {
            match element.get_ref() {
                DeValue::String(text) => {
                    let line = Some(self.lines.line_at(element.span().start));
                    strings.push(Located { value: text.to_string(), line });
                }
                other => {
                    self.wrong_type::<()>(key, other, "a list of strings");
                }
            }
        }
        strings
    }

    /// A table inside this one.
    pub(crate) fn table(&mut self, key: &'static str) -> Option<TableReader<'a>> {
        let value = self.get(key, Presence::Optional)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(self.subtable(table, format!("{}{key}.", self.path), value)),
            other => {
                let header = self.header(key);
                self.wrong_type(key, other, &format!("a table, such as [{header}] on a line of its own"))
            }
        }
    }

    /// The header of a table inside this one: `tools.http`, where the path is `tools[2].`.
    fn header(&self, key: &str) -> String {
        let path = format!("{}{key}", self.path);
        let names = path.split('.').map(|part| part.split('[').next().unwrap_or(part));
        names.collect::<Vec<_>>().join(".")
    }

    /// A table inside this one, or a list of tables.
    pub(crate) fn table_or_tables(&mut self, key: &'static str) -> Vec<TableReader<'a>> {
        match self.get(key, Presence::Optional).map(Spanned::get_ref) {
            Some(DeValue::Array(_)) => self.tables(key),
            _ => self.table(key).into_iter().collect(),
        }
    }

    /// A list of tables, written as `[[key]]`.
    pub(crate) fn tables(&mut self, key: &'static str) -> Vec<TableReader<'a>> {
        let Some(value) = self.get(key, Presence::Optional) else { return Vec::new() };
        let DeValue::Array(elements) = value.get_ref() else {
            self.wrong_type::<()>(
                key,
                value.get_ref(),
                &format!("a list of tables, each written as [[{}]]", self.header(key)),
            );
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            match element.get_ref() {
                DeValue::Table(table) => {
                    tables.push(self.subtable(table, format!("{}{key}[{index}].", self.path), element));
                }
                other => {
                    let message = format!("`{}{key}[{index}]` is {}", self.path, type_description(other));
                    let line = self.lines.line_at(element.span().start);
                    let remedy = "write a table, such as { key = \"…\" }, with the keys that belong here";
                    self.report.error(Some(line), "wrong_type", message, remedy);
                }
            }
        }
        tables
    }

    /// The tables of a table with arbitrary keys.
    pub(crate) fn named_tables(&mut self) -> Vec<NamedTable<'a>> {
        let mut tables = Vec::new();
        for (name, value) in self.table.iter() {
            let key = self.located_key(name);
            let DeValue::Table(table) = value.get_ref() else {
                let message =
                    format!("`{}{}` is {}", self.path, key.value, type_description(value.get_ref()));
                self.report.error(key.line, "wrong_type", message, "write a table");
                continue;
            };
            let mut lines = PointerLines::default();
            lines.0.insert(String::new(), key.line.unwrap_or(self.line));
            let source = self.convert(value, "", &mut lines);
            let path = format!("{}{}.", self.path, key.value);
            let table =
                TableReader { line: key.line.unwrap_or(self.line), ..self.subtable(table, path, value) };
            tables.push(NamedTable { key, table, source, lines });
        }
        tables
    }

    /// The texts of a table with arbitrary keys; numbers and booleans are converted to text.
    pub(crate) fn texts(&mut self, key: &'static str) -> LocatedTexts {
        let Some(value) = self.get(key, Presence::Optional) else { return BTreeMap::new() };
        self.texts_at(key, value)
    }

    fn texts_at(&self, key: &str, value: &Spanned<DeValue<'a>>) -> LocatedTexts {
        let mut texts = BTreeMap::new();
        let path = format!("{}{key}.", self.path);
        let DeValue::Table(table) = value.get_ref() else {
            let name = if matches!(key, "say" | "confirm" | "about") { "en" } else { "name" };
            self.wrong_type::<()>(key, value.get_ref(), &format!("a table, such as {{ {name} = \"…\" }}"));
            return texts;
        };
        for (name, value) in table.iter() {
            let line = Some(self.lines.line_at(name.span().start));
            let text = match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(n) => n.to_string(),
                DeValue::Float(n) => n.to_string(),
                DeValue::Boolean(b) => b.to_string(),
                other => {
                    let message = format!("`{path}{}` is {}", name.get_ref(), type_description(other));
                    self.report.error(line, "wrong_type", message, "write a string");
                    continue;
                }
            };
            texts.insert(name.get_ref().to_string(), Located { value: text, line });
        }
        texts
    }

    /// The tables of texts of a table with arbitrary keys.
    pub(crate) fn text_tables(&mut self) -> Vec<(Located<String>, LocatedTexts)> {
        let mut tables = Vec::new();
        for (name, value) in self.table.iter() {
            let key = self.located_key(name);
            if let DeValue::Table(_) = value.get_ref() {
                let texts = self.texts_at(&key.value, value);
                tables.push((key, texts));
            } else {
                let message =
                    format!("`{}{}` is {}", self.path, key.value, type_description(value.get_ref()));
                self.report.error(key.line, "wrong_type", message, "write a table, such as { en = \"…\" }");
            }
        }
        tables
    }

    /// Any value as JSON, with the lines of its parts.
    pub(crate) fn json(&mut self, key: &'static str) -> Option<(Located<Value>, PointerLines)> {
        let value = self.get(key, Presence::Optional)?;
        let mut places = PointerLines::default();
        places.0.insert(String::new(), self.line_of(key).unwrap_or(self.line));
        let json = self.convert(value, "", &mut places);
        Some((self.at(key, json), places))
    }

    /// Reports every key that was not read.
    pub(crate) fn reject_unknown_keys(self) {
        self.reject_misplaced_keys(|_| None);
    }

    /// Reports every key that was not read. `place` says where a key belongs that is known in another table.
    pub(crate) fn reject_misplaced_keys(self, place: impl Fn(&str) -> Option<String>) {
        for (key, _) in self.table.iter() {
            let name: &str = key.get_ref();
            if self.known.contains(&name) {
                continue;
            }
            let line = Some(self.lines.line_at(key.span().start));
            let hint = place(name).unwrap_or_else(|| did_you_mean(name, self.known.iter().copied()));
            let remedy =
                if hint.is_empty() { format!("the keys here are: {}", self.known.join(", ")) } else { hint };
            self.report.error(
                line,
                "unknown_key",
                format!("`{}{name}` is not a key of a {}", self.path, self.report.kind()),
                remedy,
            );
        }
    }

    fn get(&mut self, key: &'static str, need: Presence) -> Option<&'a Spanned<DeValue<'a>>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let found = self.table.get(key);
        if found.is_none() && need == Presence::Required {
            let message = format!("`{}{key}` is missing", self.path);
            let remedy = match self.table_with(key) {
                Some((table, line)) => {
                    format!(
                        "move `{key}` from line {line} above [{table}]: below it, it is a key of that table"
                    )
                }
                None => format!("add {key} = …"),
            };
            self.report.error(Some(self.line), "missing_key", message, remedy);
        }
        found
    }

    /// A table of the file's root that has this key, and the line of the key there.
    fn table_with(&self, key: &str) -> Option<(&'a str, u32)> {
        let mut tables = self.table.iter().filter(|_| self.path.is_empty());
        tables.find_map(|(name, value)| {
            let (inside, _) = value.get_ref().as_table()?.get_key_value(key)?;
            let name: &str = name.get_ref();
            Some((name, self.lines.line_at(inside.span().start)))
        })
    }

    fn subtable(
        &self,
        table: &'a DeTable<'a>,
        path: String,
        value: &Spanned<DeValue<'a>>,
    ) -> TableReader<'a> {
        let line = self.lines.line_at(value.span().start);
        TableReader { report: self.report, lines: self.lines, table, path, line, known: Vec::new() }
    }

    fn at<T>(&self, key: &str, value: T) -> Located<T> {
        Located { value, line: self.line_of(key) }
    }

    fn located_key(&self, name: &Spanned<Cow<'_, str>>) -> Located<String> {
        let line = Some(self.lines.line_at(name.span().start));
        Located { value: name.get_ref().to_string(), line }
    }

    fn wrong_type<T>(&self, key: &str, value: &DeValue<'_>, expected: &str) -> Option<T> {
        let message = format!("`{}{key}` is {}", self.path, type_description(value));
        self.report.error(self.line_of(key), "wrong_type", message, format!("write {expected}"));
        None
    }

    fn convert(&self, value: &Spanned<DeValue<'_>>, pointer: &str, places: &mut PointerLines) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(b) => Value::Bool(*b),
            DeValue::Datetime(time) => Value::String(time.to_string()),
            DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
                Ok(n) => n.into(),
                Err(_) => self.unrepresentable_number(value),
            },
            DeValue::Float(n) => match n.as_str().parse().ok().and_then(serde_json::Number::from_f64) {
                Some(n) => Value::Number(n),
                None => self.unrepresentable_number(value),
            },
            DeValue::Array(elements) => {
                let mut json = Vec::new();
                for (index, element) in elements.iter().enumerate() {
                    let pointer = format!("{pointer}/{index}");
                    places.0.insert(pointer.clone(), self.lines.line_at(element.span().start));
                    json.push(self.convert(element, &pointer, places));
                }
                Value::Array(json)
            }
            DeValue::Table(table) => {
                let mut json = Map::new();
                for (key, value) in table.iter() {
                    let name = key.get_ref();
                    let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                    places.0.insert(pointer.clone(), self.lines.line_at(key.span().start));
                    json.insert(name.to_string(), self.convert(value, &pointer, places));
                }
                Value::Object(json)
            }
        }
    }

    fn unrepresentable_number(&self, value: &Spanned<DeValue<'_>>) -> Value {
        let line = Some(self.lines.line_at(value.span().start));
        self.report.error(
            line,
            "wrong_type",
            "the number cannot be written in JSON",
            "use one of at most 64 bits",
        );
        Value::Null
    }
}

fn type_description(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
