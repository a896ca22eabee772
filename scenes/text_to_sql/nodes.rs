//! The functions of the flow's nodes: each receives values of the flow and returns values of the flow.

use std::collections::BTreeSet;
use std::sync::Arc;

use proscenium::sql_engine::{SqlColumn, SqlRows, SqlValue};
use proscenium::tools::{NativeTools, ToolContext, ToolError, native};
use serde_json::{Value, json};

use super::access::{ReadAccess, known, needs_yes};
use super::answer::{AnswerParts, final_text, general_text};
use super::classification::{classify, goes_on, without_answer};
use super::databases::{ConfiguredDatabases, KnownDatabase, OpenDatabases, engine_error, limits};
use super::explained::explained;
use super::phrases::Speech;
use super::rules::RuleSql;
use super::rules::description::DatabaseDescription;
use super::schema_text::{SchemaDetail, dialect_name, schema_text};
use super::settings::TextToSqlSettings;
use super::statements::{Examined, StatementContext, leads_nowhere, plain_statement};
use super::values::{FailedSql, NodeInput, PromptKind, SqlState};
use super::without_model::{self, AskedDatabase};

/// Adds the functions under the names that `flow.toml` gives.
pub fn register(tools: NativeTools) -> NativeTools {
    let open = Arc::new(OpenDatabases::default());
    macro_rules! node {
        ($function:ident) => {{
            let open = Arc::clone(&open);
            native(move |input: NodeInput, context: ToolContext| {
                let open = Arc::clone(&open);
                async move { $function(input, NodeCall::of(&open, context)?).await }
            })
        }};
    }
    tools
        .with_dependencies("text_to_sql", ConfiguredDatabases)
        .with_settings("text_to_sql", |settings| TextToSqlSettings::parse(settings).map(drop))
        .with("text_to_sql.classify", node!(classify_prompt))
        .with("text_to_sql.general", node!(general))
        .with("text_to_sql.rewrite", node!(rewrite))
        .with("text_to_sql.relevant_tables", node!(relevant_tables))
        .with("text_to_sql.trim", node!(trim))
        .with("text_to_sql.generate", node!(generate))
        .with("text_to_sql.validate", node!(validate))
        .with("text_to_sql.execute", node!(execute))
        .with("text_to_sql.format", node!(format_response))
}

/// One call of a node's function.
struct NodeCall {
    open: Arc<OpenDatabases>,
    context: ToolContext,
    settings: TextToSqlSettings,
    speech: Speech,
}

impl NodeCall {
    fn of(open: &Arc<OpenDatabases>, context: ToolContext) -> Result<Self, ToolError> {
        let settings = TextToSqlSettings::of(&context)?;
        let speech = Speech::of(context.language.as_deref());
        Ok(Self { open: Arc::clone(open), context, settings, speech })
    }

    async fn database(&self, input: &NodeInput) -> Result<Arc<KnownDatabase>, ToolError> {
        self.open.of(&self.context, &self.settings, input.database.as_deref()).await
    }

    /// What the rules write for a question, or why they write nothing.
    fn written(&self, question: &str, known: &KnownDatabase) -> Result<RuleSql, String> {
        let asked = AskedDatabase::of(known);
        without_model::write_sql(question, self.speech, self.context.now.date(), asked)
    }

    /// The question without a model: the user's own words or, where these go on with an earlier question and say too little
    /// by themselves, the purpose, which says all.
    fn question<'a>(&self, input: &'a NodeInput, known: &KnownDatabase) -> &'a str {
        let is_written = |words: &str| self.written(words, known).is_ok();
        let goes_on = goes_on(&input.request) && !is_written(&input.request);
        if goes_on && is_written(&input.purpose) { &input.purpose } else { &input.request }
    }

    /// What a statement may read. One that is not executed may name everything.
    fn access(&self, known: &KnownDatabase, input: &NodeInput) -> ReadAccess {
        match input.run {
            true => ReadAccess::of(&known.description, self.settings.ask, input),
            false => ReadAccess::everything(&known.description),
        }
    }

    /// Runs `work` where it may block, with the database as statements are checked against it.
    async fn checked<T: Send + 'static>(
        &self,
        known: &Arc<KnownDatabase>,
        work: impl FnOnce(StatementContext<'_>) -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let (known, max_rows, speech) = (Arc::clone(known), self.settings.max_rows, self.speech);
        let work = move || {
            let schema = known.database.schema();
            work(StatementContext { schema: &schema, description: &known.description, max_rows, speech })
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| ToolError::failed("text_to_sql.check", "the statement could not be checked"))
    }
}

/// `classify_prompt` without a model.
async fn classify_prompt(input: NodeInput, call: NodeCall) -> Result<Value, ToolError> {
    let mut found = classify(&input.request, input.rows.is_some());
    if found.kind == PromptKind::Question && found.run {
        let known = call.database(&input).await?;
        if call.written(call.question(&input, &known), &known).is_err() {
            let names_data = without_model::names_data(&input.request, &known.description);
            found = without_answer(found, &input.request, input.rows.is_some(), names_data);
        }
    }
    Ok(json!({"kind": found.kind, "run": found.run, "fix": found.fix, "sql": found.sql}))
}

/// `general_questions`.
async fn general(input: NodeInput, call: NodeCall) -> Result<Value, ToolError> {
    let known = call.database(&input).await?;
    Ok(json!({"text": general_text(&known.description, &input.request, call.speech)}))
}

/// `rewrite_prompt` without a model.
async fn rewrite(input: NodeInput, call: NodeCall) -> Result<Value, ToolError> {
    let known = call.database(&input).await?;
    Ok(json!({"question": call.question(&input, &known)}))
}

/// `get_relevant_tables`. A sensitive table is among them only if the words or the statement are about it, and where
/// data is read, a person is asked about it.
async fn relevant_tables(input: NodeInput, call: NodeCall) -> Result<Value, ToolError> {
    let known_database = call.database(&input).await?;
    let description = &known_database.description;
    let meant: BTreeSet<String> = if input.sql.trim().is_empty() {
        // The user's own words only: what a model made of them may be what some data told it.
        let written = call.written(&input.request, &known_database);
        let mut meant = without_model::mentioned_tables(&input.request, description);
        meant.extend(written.into_iter().flat_map(|written| written.tables));
        meant
    } else {
        let sql = plain_statement(&input.sql);
        let read = call.checked(&known_database, move |on| on.tables_of(&sql)).await?;
        match read.is_empty() {
            true => without_model::mentioned_tables(&input.sql, description),
            false => read.into_iter().collect(),
        }
    };
    let (mut tables, mut to_approve) = (Vec::new(), Vec::new());
    let approved = known(description, &input.approved_tables);
    let chosen = match input.sql.trim().is_empty() {
        true => without_model::choose_tables(input.asked(), description, call.settings.schema_bytes),
        false => meant.clone(),
    };
    for table in &description.tables {
        let is_meant = meant.contains(&table.name);
        let is_offered = !table.sensitive || approved.contains(&table.name);
        if !(is_meant || is_offered && chosen.contains(&table.name)) {
            continue;
        }
        if input.run && needs_yes(table, call.settings.ask) && !approved.contains(&table.name) {
            to_approve.push(table.name.clone());
        }
        tables.push(table.name.clone());
    }
    Ok(json!({"tables": tables, "to_approve": to_approve, "all_tables": all_tables(description)}))
}

/// The tables that a person may add to the list.
fn all_tables(description: &DatabaseDescription) -> Vec<&str> {
    description.tables.iter().map(|table| table.name.as_str()).collect()
}

/// `trim_relevant_tables`.
async fn trim(input: NodeInput, call: NodeCall) -> Result<Value, ToolError> {
    let known_database = call.database(&input).await?;
    let mut readable = call.access(&known_database, &input).of_description(&known_database.description);
    let listed = known(&known_database.description, &input.tables);
    readable.tables.retain(|table| listed.contains(&table.name));
    let mut text = schema_text(&readable, SchemaDetail::Described);
    if text.len() > call.settings.schema_bytes {
        without_model::trim_columns(input.asked(), &mut readable);
        text = schema_text(&readable, SchemaDetail::Described);
    }
    Ok(json!({"schema": text, "dialect": dialect_name(known_database.database.dialect())}))
}

/// `generate_sql` without a model: templates over one table or two. What they wrote once they do not write better.
async fn generate(input: NodeInput, call: NodeCall) -> Result<Value, ToolError> {
    let known = call.database(&input).await?;
    if input.kind == PromptKind::Sql {
        return Ok(json!({"sql": "", "declined": "", "understood": ""}));
    }
    Ok(match call.written(input.asked(), &known) {
        Ok(written) => json!({"sql": written.sql, "declined": "", "understood": written.explanation}),
        Err(why) => json!({"sql": "", "declined": why, "understood": ""}),
    })
}

/// `validate_sql`.
async fn validate(input: NodeInput, call: NodeCall) -> Result<Value, ToolError> {
    let known = call.database(&input).await?;
    let access = call.access(&known, &input);
    let (asked, readable) = (input.clone(), access.clone());
    let decision = call.checked(&known, move |on| on.decide(&asked, &readable)).await??;
    let mut out = json!({
        "sql": decision.sql,
        "sql_state": decision.state,
        "error": decision.error,
        "attempts": decision.attempts,
    });
    match decision.state {
        // What others wrote about the tables is left out now: it may be what led to the refused statement.
        SqlState::ToRepair => {
            let mut shown = access.of_description(&known.description);
            let listed = super::access::known(&known.description, &input.tables);
            shown.tables.retain(|table| listed.contains(&table.name));
            let was_refused = decision.attempts.iter().any(|failed| !failed.refused.is_empty());
            let detail = if was_refused { SchemaDetail::Bare } else { SchemaDetail::Described };
            out["schema"] = json!(schema_text(&shown, detail));
            out["dialect"] = json!(dialect_name(known.database.dialect()));
        }
        SqlState::ToApprove => {
            let mut tables = input.tables.clone();
            tables.extend(decision.to_approve.iter().filter(|table| !input.tables.contains(table)).cloned());
            out["tables"] = json!(tables);
            out["to_approve"] = json!(decision.to_approve);
            out["all_tables"] = json!(all_tables(&known.description));
        }
        SqlState::Valid | SqlState::Checked | SqlState::Done | SqlState::GivenUp => {}
    }
    Ok(out)
}

/// `execute_sql`: the only place where a statement reaches a database. It is checked once more, with what may be read
/// now.
async fn execute(input: NodeInput, call: NodeCall) -> Result<Value, ToolError> {
    let known = call.database(&input).await?;
    let access = ReadAccess::of(&known.description, call.settings.ask, &input);
    let sql = plain_statement(&input.sql);
    let (text, readable) = (sql.clone(), access.clone());
    let approved = match call.checked(&known, move |on| on.examine(&text, &readable)).await?? {
        Examined::Fine(approved) => approved,
        Examined::NotAllowed { refusal, .. } | Examined::Wrong(refusal) => {
            return Err(ToolError::refused("text_to_sql.refused", refusal.to_string())
                .saying(call.speech.not_valid()));
        }
    };
    let schema = known.database.schema();
    let set = access
        .approved_set(&schema, &known.description)
        .map_err(|error| engine_error(&error, call.speech))?;
    let found = known.database.query(&approved, &set, &limits(&call.settings), &call.context.cancelled).await;
    let error = match found {
        Ok(rows) => {
            return Ok(json!({
                "result": result(&known.name, &sql, &rows),
                "sql_state": SqlState::Done,
                "error": "",
                "attempts": input.attempts,
            }));
        }
        Err(error) if error.code.is_repairable() => error,
        Err(error) => return Err(engine_error(&error, call.speech)),
    };
    let failed = FailedSql { sql, error: error.to_string(), refused: Vec::new() };
    let goes_on = input.kind != PromptKind::Sql || input.fix;
    let state = match goes_on && !leads_nowhere(&input.attempts, &failed) {
        true => SqlState::ToRepair,
        false => SqlState::GivenUp,
    };
    let mut attempts = input.attempts;
    attempts.push(failed);
    Ok(json!({"result": null, "sql_state": state, "error": error.to_string(), "attempts": attempts}))
}

/// The rows of a statement as the flow, and then clients, get them.
fn result(database: &str, sql: &str, rows: &SqlRows) -> Value {
    let column = |column: &SqlColumn| json!({"name": column.name, "type": column.declared_type});
    let row = |row: &Vec<SqlValue>| row.iter().map(SqlValue::to_json).collect::<Vec<Value>>();
    json!({
        "database": database,
        "sql": sql,
        "columns": rows.columns.iter().map(column).collect::<Vec<Value>>(),
        "rows": rows.rows.iter().map(row).collect::<Vec<Vec<Value>>>(),
        "truncated": rows.truncated,
        "cut_cells": rows.cut_cells,
    })
}

/// `format_final_response`.
async fn format_response(input: NodeInput, call: NodeCall) -> Result<Value, ToolError> {
    let explanation = match input.kind {
        PromptKind::Explain => {
            let known = call.database(&input).await?;
            Some(explained(&input.sql, &known.description, call.speech))
        }
        _ => None,
    };
    let parts = AnswerParts { input: &input, explanation: explanation.as_deref() };
    Ok(json!({"text": final_text(&parts, call.speech)}))
}
