//! What the rules say in place of a model to the questions of the flow's nodes, going by their prompts alone: for the
//! simulated model. The prompts are the templates of `flow.toml`.

use std::sync::LazyLock;

use jiff::civil::Date;
use serde_json::{Value, json};

use super::classification::classify;
use super::databases::sample_words;
use super::phrases::Speech;
use super::rules::description::{
    ColumnDescription, ColumnReference, DatabaseDescription, TableDescription, ValueDescription,
};
use super::rules::{Engine, Vocabularies};
use super::schema_text::type_named;
use super::without_model::{AskedDatabase, write_sql};

/// What the tables of the sample database are called.
static SAMPLE_WORDS: LazyLock<DatabaseDescription> = LazyLock::new(sample_words);

/// The reply to the question of a node (`FLOW.NODE`) whose prompt has this task; `None` if the rules know none.
pub fn reply(node: &str, task: &str) -> Option<Value> {
    match node {
        "text_to_sql.classify_prompt" => {
            let request = between(task, "\nRequest: ", "\nPurpose: ")?;
            let found =
                classify(request, task.contains("\nThe rows of an earlier answer are there already."));
            Some(json!({"kind": found.kind, "run": found.run, "fix": found.fix, "sql": found.sql}))
        }
        "text_to_sql.rewrite_prompt" => {
            let question = between(task, "\nQuestion: ", "\nWhat it is about: ")?;
            Some(json!({"question": question}))
        }
        "text_to_sql.generate_sql" => generated(task),
        _ => None,
    }
}

/// A statement for the question of a prompt. What the rules wrote once they do not write better.
fn generated(task: &str) -> Option<Value> {
    let (asked, after) = task.rsplit_once("\nTables, one JSON object a line:\n")?;
    let (_, question) = asked.split_once("\nQuestion: ")?;
    let today: Date = asked.split_once("it is now ")?.1.get(..10)?.parse().ok()?;
    let language = between(asked, "in the language of the question (", "), what is missing");
    let speech = Speech::of(language);
    if after.contains("\nWhat is wrong with it: ") {
        return Some(json!({"sql": "", "declined": speech.no_rules(), "understood": ""}));
    }
    let tables = after.lines().filter_map(|line| table(&serde_json::from_str(line).ok()?, &SAMPLE_WORDS));
    let description = DatabaseDescription { tables: tables.collect(), ..DatabaseDescription::default() };
    let names = Vocabularies::of(&description);
    let is_postgres = asked.contains("The SQL is that of PostgreSQL");
    let engine = if is_postgres { Engine::Postgres } else { Engine::Sqlite };
    let database = AskedDatabase { engine, description: &description, names: &names };
    Some(match write_sql(question.trim(), speech, today, database) {
        Ok(written) => json!({"sql": written.sql, "declined": "", "understood": written.explanation}),
        Err(why) => json!({"sql": "", "declined": why, "understood": ""}),
    })
}

/// A table as its line tells, with the words of the sample database for the table of that name.
fn table(line: &Value, words: &DatabaseDescription) -> Option<TableDescription> {
    let name = line["table"].as_str()?;
    let words = words.tables.iter().find(|words| words.name == name).cloned().unwrap_or_default();
    let columns = line["columns"].as_object()?.iter().map(|(name, told)| {
        let known = words.columns.iter().find(|words| words.name == *name).cloned().unwrap_or_default();
        column(name, told, known)
    });
    let primary_key: Vec<String> = texts(&line["primary_key"]).collect();
    let mut columns: Vec<ColumnDescription> = columns.collect();
    for column in &mut columns {
        column.unique = primary_key == [column.name.as_str()];
    }
    Some(TableDescription { name: name.to_owned(), columns, primary_key, ..words })
}

fn column(name: &str, told: &Value, words: ColumnDescription) -> ColumnDescription {
    let reference = told["references"].as_str().and_then(|to| to.rsplit_once('.'));
    let value = |value: String| ValueDescription { value, ..ValueDescription::default() };
    ColumnDescription {
        name: name.to_owned(),
        kind: type_named(told["type"].as_str().unwrap_or_default()),
        nullable: told["nullable"].as_bool().unwrap_or_default(),
        references: reference
            .map(|(table, column)| ColumnReference { table: table.to_owned(), column: column.to_owned() }),
        values: if words.values.is_empty() {
            texts(&told["values"]).map(value).collect()
        } else {
            words.values
        },
        ..words
    }
}

fn texts(list: &Value) -> impl Iterator<Item = String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
}

/// The text between two others, of which the second is the last of its kind.
fn between<'t>(text: &'t str, from: &str, to: &str) -> Option<&'t str> {
    let (found, _) = text.split_once(from)?.1.rsplit_once(to)?;
    Some(found.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = r#"{"table":"orders","columns":{"id":{"type":"integer"},"order_date":{"type":"date, as YYYY-MM-DD"},"customer_id":{"type":"integer","references":"customers.id"}},"primary_key":["id"]}
{"table":"customers","columns":{"id":{"type":"integer"},"city":{"type":"text","nullable":true}},"primary_key":["id"]}"#;

    /// The prompt of `generate_sql`, as its template has it.
    fn asked(question: &str, more: &str) -> Value {
        let task = format!(
            "Write one SQL query that answers the question.\n\n- The SQL is that of SQLite: one SELECT.\n- it is now \
             2026-05-04T09:00:00+02:00[Europe/Rome]. Order\n- say in declined, in the language of the question (en), what is \
             missing.\nQuestion: {question}\nTables, one JSON object a line:\n{TABLES}\n{more}"
        );
        reply("text_to_sql.generate_sql", &task).unwrap()
    }

    #[test]
    fn rules_answer_the_questions_of_the_nodes_by_their_prompts() {
        let classified = reply(
            "text_to_sql.classify_prompt",
            "Say what this request needs.\nRequest: Explain this SQL: SELECT 1\nPurpose: explains\n\nkind:\n- question: data",
        );
        assert_eq!(classified.unwrap()["kind"], "explain");
        let rewritten = reply(
            "text_to_sql.rewrite_prompt",
            "Write it.\nQuestion: How many orders\nwere placed?\nWhat it is about: orders",
        );
        assert_eq!(rewritten.unwrap(), json!({"question": "How many orders\nwere placed?"}));
        let march = "SELECT COUNT(*) AS count FROM orders WHERE order_date >= '2026-03-01' AND order_date < '2026-04-01'";
        assert_eq!(asked("How many orders were placed in March?", "")["sql"], march);
        let unknown = asked("How many unicorns were placed in March?", "");
        assert!(unknown["sql"] == "" && unknown["declined"] != "", "{unknown}");
        let failed = "The query that was not valid:\nSELECT\nWhat is wrong with it: syntax\n";
        assert_eq!(asked("How many orders were placed in March?", failed)["sql"], "");
        assert_eq!(reply("lookup.generate", "Question: x"), None);
    }
}
