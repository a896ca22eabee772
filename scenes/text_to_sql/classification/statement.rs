//! The statement in a request: where it begins and ends, and whether it changes data.

use super::super::folded_text::{folded, has_any};

/// Words with which statements begin.
#[rustfmt::skip]
const STATEMENT_WORDS: &[&str] = &[
    "select", "with", "insert", "update", "delete", "drop", "alter", "create", "truncate", "values", "replace",
];
/// Words that announce a statement.
const ANNOUNCING: [&str; 7] =
    ["sql", "query", "statement", "istruzione", "interrogazione", "queries", "select"];

/// A request without its statement, and the statement; which is empty if there is none.
pub(super) fn split_statement(request: &str) -> (String, String) {
    if let Some((before, rest)) = request.split_once("```") {
        let (inner, after) = rest.split_once("```").unwrap_or((rest, ""));
        let inner = inner.trim_start();
        let has_word = inner.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("sql"));
        let sql = if has_word { inner.get(3..).unwrap_or_default() } else { inner };
        return (format!("{before} {after}"), sql.trim().to_owned());
    }
    let Some(start) = statement_start(request) else { return (request.to_owned(), String::new()) };
    let (before, sql) = request.split_at(start);
    let (sql, after) = statement_end(before, sql);
    (format!("{before} {after}"), without_marks(sql).to_owned())
}

/// A statement without the quotes around it. Backticks in pairs are those of names in it.
fn without_marks(sql: &str) -> &str {
    let sql = sql.trim().trim_matches(['“', '”']).trim();
    match sql.matches('`').count() % 2 {
        0 => sql,
        _ => sql.trim_matches('`').trim(),
    }
}

/// Whether a statement is meant to change data.
pub(super) fn changes_data(sql: &str) -> bool {
    let first = sql
        .split(|c: char| !c.is_alphabetic())
        .find(|word| !word.is_empty())
        .unwrap_or_default()
        .to_lowercase();
    !["select", "with", "values", "explain"].contains(&first.as_str())
        && STATEMENT_WORDS.contains(&first.as_str())
}

/// Where the statement of a request begins.
fn statement_start(request: &str) -> Option<usize> {
    let announced = has_any(&folded(request), &ANNOUNCING);
    let mut words = word_starts(request).into_iter();
    words
        .find(|(at, word)| {
            let rest = request.get(*at..).unwrap_or_default();
            let before = request.get(..*at).unwrap_or_default().trim_end();
            let after_mark = before.is_empty() || before.ends_with([':', '`', '"', '\n', '“', '«', '?', '.']);
            let lower = word.to_lowercase();
            let is_upper = word.chars().all(char::is_uppercase);
            let is_word = STATEMENT_WORDS.contains(&lower.as_str());
            let is_misspelt = word.len() > 4
                && ["select", "insert", "delete", "update"]
                    .iter()
                    .any(|right| strsim::damerau_levenshtein(right, &lower) <= 1);
            match (is_word || is_misspelt, is_upper) {
                (false, _) => false,
                (true, true) => is_word || after_mark || announced,
                (true, false) => (after_mark || announced) && looks_like_sql(rest, &lower),
            }
        })
        .map(|(at, _)| at)
}

/// Whether a text that begins with a word of SQL goes on like SQL and not like a sentence.
fn looks_like_sql(rest: &str, first: &str) -> bool {
    let said = folded(rest);
    let has_marks = rest.contains(['*', '=', '(', ';', '<', '>']) || rest.contains("_");
    match first {
        "select" | "selec" | "selct" | "slect" => {
            said.contains(" from ")
                && (has_marks || !has_any(&said, &["the", "all the", "i", "le", "gli", "dei", "delle"]))
        }
        "with" => said.contains(" as ") && said.contains(" select "),
        "insert" => said.contains(" into "),
        "update" => said.contains(" set ") && has_marks,
        "delete" => said.contains(" from ") && has_marks,
        "drop" | "truncate" | "alter" | "create" => {
            said.contains(" table ") && rest.split_whitespace().count() <= 12 && has_marks
        }
        _ => said.contains(" from "),
    }
}

/// A statement without the words that follow it: behind a closing quote or a semicolon, or on a further line.
fn statement_end<'a>(before: &str, sql: &'a str) -> (&'a str, &'a str) {
    let closing = match before.trim_end().chars().last() {
        Some('`') => Some('`'),
        Some('“') => Some('”'),
        Some('«') => Some('»'),
        _ => None,
    };
    if let Some(end) = closing.and_then(|closing| sql.find(closing)) {
        let (sql, after) = sql.split_at(end);
        return (sql, after);
    }
    match sql.find(';') {
        Some(end)
            if sql.get(end + 1..).is_some_and(|rest| {
                !rest.trim().is_empty() && !rest.contains(';') && !begins_statement(rest)
            }) =>
        {
            let (sql, after) = sql.split_at(end);
            (sql, after.trim_start_matches(';'))
        }
        _ => match sql.find("\n\n") {
            Some(end) => sql.split_at(end),
            None => (sql, ""),
        },
    }
}

fn begins_statement(text: &str) -> bool {
    let first = text
        .split(|c: char| !c.is_alphabetic())
        .find(|word| !word.is_empty())
        .unwrap_or_default()
        .to_lowercase();
    STATEMENT_WORDS.contains(&first.as_str())
}

/// The words of a text with the bytes at which they begin.
fn word_starts(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_alphanumeric() || c == '_', start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push((from, text.get(from..at).unwrap_or_default()));
                start = None;
            }
            _ => {}
        }
    }
    words
}
