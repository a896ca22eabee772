//! The text of the flow's last node: rows, a statement, its explanation, or why there is no answer. Pure.

use serde_json::Value;

use super::classification::is_about_change;
use super::phrases::Speech;
use super::present::{ShownColumn, table};
use super::rules::description::{DatabaseDescription, TableDescription, TextByLanguage};
use super::values::{NodeInput, PromptKind, SqlState};
use super::without_model;

/// Bytes of a statement in a text.
const MAX_SQL_BYTES: usize = 1_500;
/// Characters of an error in a text.
const MAX_ERROR_CHARS: usize = 400;
/// Tables that are listed in a text.
const MAX_TABLES: usize = 40;

/// What an answer is made of.
#[derive(Debug, Clone, Copy)]
pub struct AnswerParts<'a> {
    /// The values of the flow.
    pub input: &'a NodeInput,
    /// What a statement does, in words.
    pub explanation: Option<&'a str>,
}

/// The answer's text, in Markdown.
pub fn final_text(parts: &AnswerParts<'_>, speech: Speech) -> String {
    let input = parts.input;
    if let Some(explanation) = parts.explanation {
        return explanation.to_owned();
    }
    if input.kind == PromptKind::Rows {
        return input
            .rows
            .as_ref()
            .and_then(|rows| given_rows(rows, speech))
            .unwrap_or_else(|| speech.no_given_rows().to_owned());
    }
    let declined = input.declined.trim();
    if !declined.is_empty() && input.sql.trim().is_empty() {
        return declined.to_owned();
    }
    match input.sql_state {
        Some(SqlState::Done) => {
            let rows = input.result.as_ref().and_then(|result| result_text(result, speech));
            let rows = rows.unwrap_or_else(|| speech.no_rows().to_owned());
            let understood = shortened(&input.understood);
            let gap = if understood.trim().is_empty() { "" } else { "\n\n" };
            format!("{rows}{gap}{understood}\n\n{}", fenced(&input.sql))
        }
        Some(SqlState::Checked) => checked_text(input, speech),
        _ => failed_text(input, speech),
    }
}

/// A statement that is valid and was not executed.
fn checked_text(input: &NodeInput, speech: Speech) -> String {
    let sql = fenced(&input.sql);
    match (input.kind, input.attempts.first()) {
        (PromptKind::Sql, Some(first)) if first.sql.trim() != input.sql.trim() => {
            let error = shortened(&first.error);
            format!("{}\n\n{sql}\n\n{} {error}", speech.corrected(), speech.what_was_wrong())
        }
        (PromptKind::Sql, _) => format!("{}\n\n{sql}", speech.valid()),
        _ => format!("{}\n\n{sql}", speech.written()),
    }
}

/// A statement that cannot be executed, or none.
fn failed_text(input: &NodeInput, speech: Speech) -> String {
    let last = input.attempts.last();
    if let Some(refused) = last.map(|failed| &failed.refused).filter(|refused| !refused.is_empty()) {
        return speech.needs_tables(refused);
    }
    match (input.kind, last) {
        (PromptKind::Sql, Some(failed)) => {
            let error = shortened(&failed.error);
            format!("{} {error}\n\n{}", speech.not_valid(), fenced(&failed.sql))
        }
        _ => speech.given_up().to_owned(),
    }
}

/// The rows of an executed statement; `None` if there are none.
fn result_text(result: &Value, speech: Speech) -> Option<String> {
    let columns: Vec<ShownColumn> = result["columns"]
        .as_array()?
        .iter()
        .map(|column| ShownColumn::new(column["name"].as_str().unwrap_or_default(), column["type"].as_str()))
        .collect();
    let rows: Vec<Vec<Value>> =
        result["rows"].as_array()?.iter().map(|row| row.as_array().cloned().unwrap_or_default()).collect();
    if rows.is_empty() {
        return None;
    }
    let (mut text, shown) = table(&columns, &rows, speech);
    if shown < rows.len() {
        text.push_str(&format!("\n\n{}", speech.more_rows(rows.len() - shown)));
    }
    if !result["truncated"].is_null() {
        text.push_str(&format!("\n\n{}", speech.truncated(rows.len())));
    }
    Some(text)
}

/// Rows that the caller gives: a list of objects, or an earlier result.
fn given_rows(rows: &Value, speech: Speech) -> Option<String> {
    if rows.is_object() {
        return result_text(rows, speech);
    }
    let rows: Vec<&serde_json::Map<String, Value>> =
        rows.as_array()?.iter().filter_map(Value::as_object).collect();
    let names: Vec<&String> = rows.first()?.keys().collect();
    let columns: Vec<ShownColumn> = names.iter().map(|name| ShownColumn::new(name, None)).collect();
    let cells: Vec<Vec<Value>> = rows
        .iter()
        .map(|row| names.iter().map(|name| row.get(*name).cloned().unwrap_or_default()).collect())
        .collect();
    let (mut text, shown) = table(&columns, &cells, speech);
    if shown < cells.len() {
        text.push_str(&format!("\n\n{}", speech.more_rows(cells.len() - shown)));
    }
    Some(text)
}

/// What is answered without data: what a table that is named holds, else which tables there are; and that data is not
/// changed.
pub fn general_text(description: &DatabaseDescription, request: &str, speech: Speech) -> String {
    if is_about_change(request) {
        return format!("{} {}", speech.only_reads(), speech.can_be_asked());
    }
    let named = without_model::mentioned_tables(request, description);
    let mut tables = description.tables.iter().filter(|table| named.contains(&table.name));
    if let (Some(only), None) = (tables.next(), tables.next()) {
        return table_text(only, speech);
    }
    let line = |table: &TableDescription| format!("- {}{}", table.name, meaning(&table.description, speech));
    let mut lines: Vec<String> = description.tables.iter().take(MAX_TABLES).map(line).collect();
    if description.tables.len() > MAX_TABLES {
        lines.push("- …".to_owned());
    }
    format!("{}\n{}\n\n{}", speech.tables(&description.database), lines.join("\n"), speech.can_be_asked())
}

fn table_text(table: &TableDescription, speech: Speech) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| format!("- {}{}", column.name, meaning(&column.description, speech)))
        .collect();
    let head = format!("{}{}", table.name, meaning(&table.description, speech));
    format!("{head}\n\n{}\n{}", speech.columns(), columns.join("\n"))
}

/// `: ` and what a table or column means, in the language where it is written, else in English; else nothing.
fn meaning(texts: &TextByLanguage, speech: Speech) -> String {
    let text = texts.get(speech.code()).or_else(|| texts.get("en")).or_else(|| texts.values().next());
    let line = text.map(|text| proscenium::invisible::one_line(text)).unwrap_or_default();
    if line.is_empty() { line } else { format!(": {line}") }
}

fn fenced(sql: &str) -> String {
    let sql: String = sql.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    let shown = match sql.char_indices().find(|(at, _)| *at >= MAX_SQL_BYTES) {
        Some((end, _)) => format!("{}…", sql.get(..end).unwrap_or_default()),
        None => sql,
    };
    // A fence inside the statement would end this one.
    format!("```sql\n{}\n```", shown.replace("```", "` ` `"))
}

fn shortened(error: &str) -> String {
    let line = proscenium::invisible::one_line(error);
    match line.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
