//! Statements: whether one may be executed, and what follows if not.

use std::collections::BTreeSet;

use proscenium::sql_engine::DatabaseSchema;
use proscenium::sql_guard::{self, Approved, Code, Limits, Refusal};
use proscenium::tools::ToolError;

use super::access::ReadAccess;
use super::databases::engine_error;
use super::phrases::Speech;
use super::repair::repaired;
use super::rules::description::DatabaseDescription;
use super::values::{FailedSql, NodeInput, PromptKind, SqlState};

/// Most statements that are written for one question.
const MAX_ROUNDS: usize = 3;

/// A database as a statement is checked against it.
#[derive(Debug, Clone, Copy)]
pub struct StatementContext<'a> {
    /// What it holds.
    pub schema: &'a DatabaseSchema,
    /// What its tables are called, and which are sensitive.
    pub description: &'a DatabaseDescription,
    /// Rows of an answer.
    pub max_rows: usize,
    /// The user's language.
    pub speech: Speech,
}

/// What was found about a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Examined {
    /// It may be executed.
    Fine(Approved),
    /// It is right, and reads tables that may not be read.
    NotAllowed {
        /// The tables, by the names of the description.
        tables: Vec<String>,
        /// What the guard says.
        refusal: Refusal,
    },
    /// It is wrong.
    Wrong(Refusal),
}

/// What follows from a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlDecision {
    /// How the statement stands.
    pub state: SqlState,
    /// The statement, which may have been corrected.
    pub sql: String,
    /// What was wrong with it, or is.
    pub error: String,
    /// The statements that failed so far, with this one if it did.
    pub attempts: Vec<FailedSql>,
    /// The tables that a person is to be asked about.
    pub to_approve: Vec<String>,
}

impl StatementContext<'_> {
    /// Checks a statement against what may be read. It blocks for some milliseconds.
    ///
    /// # Errors
    /// That the database has changed in between.
    pub fn examine(&self, sql: &str, access: &ReadAccess) -> Result<Examined, ToolError> {
        let refusal = match self.guard(sql, access)? {
            Ok(approved) => return Ok(Examined::Fine(approved)),
            Err(refusal) => refusal,
        };
        if !matches!(refusal.code, Code::TableNotApproved | Code::ViewNotApproved | Code::ColumnWithheld) {
            return Ok(Examined::Wrong(refusal));
        }
        // What would it read if everything was approved?
        let approved = match self.guard(sql, &ReadAccess::everything(self.description))? {
            Ok(approved) => approved,
            Err(wrong) => return Ok(Examined::Wrong(wrong)),
        };
        let tables: BTreeSet<String> = approved
            .tables
            .iter()
            .filter(|name| {
                let short = self.schema.short_name(name);
                let described = self.description.tables.iter().find(|table| table.name == short);
                let withholds = described.is_some_and(|table| {
                    let mut own = approved.columns.iter().filter(|(of, _)| of == *name);
                    own.any(|(_, column)| access.withholds(table, column))
                });
                !access.reads(&short) || withholds
            })
            .map(|name| self.schema.short_name(name))
            .collect();
        if tables.is_empty() {
            return Ok(Examined::Wrong(refusal));
        }
        Ok(Examined::NotAllowed { tables: tables.into_iter().collect(), refusal })
    }

    /// The tables that a statement reads, if it is right; by the names of the description.
    pub fn tables_of(&self, sql: &str) -> Vec<String> {
        match self.guard(sql, &ReadAccess::everything(self.description)) {
            Ok(Ok(approved)) => approved.tables.iter().map(|name| self.schema.short_name(name)).collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }

    fn guard(&self, sql: &str, access: &ReadAccess) -> Result<Result<Approved, Refusal>, ToolError> {
        let set = access
            .approved_set(self.schema, self.description)
            .map_err(|error| engine_error(&error, self.speech))?;
        let max_rows = u64::try_from(self.max_rows).unwrap_or(u64::MAX).saturating_add(1);
        let limits = Limits { max_rows, ..Limits::default() };
        Ok(sql_guard::check(sql, self.schema.dialect, &set, &limits))
    }

    /// What follows for the statement of a flow, with the values that it has.
    ///
    /// # Errors
    /// As [`examine`](Self::examine).
    pub fn decide(&self, input: &NodeInput, access: &ReadAccess) -> Result<SqlDecision, ToolError> {
        let sql = plain_statement(&input.sql);
        let decision = SqlDecision {
            state: if input.run { SqlState::Valid } else { SqlState::Checked },
            sql: sql.clone(),
            error: String::new(),
            attempts: input.attempts.clone(),
            to_approve: Vec::new(),
        };
        match self.examine(&sql, access)? {
            Examined::Fine(_) => Ok(decision),
            Examined::NotAllowed { tables, refusal } => Ok(not_allowed(input, decision, tables, &refusal)),
            Examined::Wrong(refusal) => self.wrong(input, decision, &refusal, access),
        }
    }

    /// A statement that is wrong: it is corrected by the rules where it is a person's and to be corrected, else by
    /// the author of statements, unless that leads nowhere.
    fn wrong(
        &self,
        input: &NodeInput,
        mut decision: SqlDecision,
        refusal: &Refusal,
        access: &ReadAccess,
    ) -> Result<SqlDecision, ToolError> {
        decision.error = refusal.to_string();
        let failed =
            FailedSql { sql: decision.sql.clone(), error: decision.error.clone(), refused: Vec::new() };
        let is_own = input.kind == PromptKind::Sql && input.attempts.is_empty();
        if is_own && let Some(better) = repaired(&decision.sql, self.description) {
            match self.examine(&better, access)? {
                Examined::Fine(_) if input.fix => {
                    decision.attempts.push(failed);
                    return Ok(SqlDecision { sql: better, error: String::new(), ..decision });
                }
                Examined::NotAllowed { tables, refusal } if input.fix => {
                    decision.attempts.push(failed);
                    return Ok(not_allowed(input, SqlDecision { sql: better, ..decision }, tables, &refusal));
                }
                _ => {}
            }
        }
        let goes_on = input.kind != PromptKind::Sql || input.fix;
        let state = match goes_on && !leads_nowhere(&decision.attempts, &failed) {
            true => SqlState::ToRepair,
            false => SqlState::GivenUp,
        };
        decision.attempts.push(failed);
        Ok(SqlDecision { state, ..decision })
    }
}

/// A statement that reads what may not be read. A question's statement is first written without it; if it is needed all
/// the same, a person is asked; who then takes the tables from the list gets no answer.
fn not_allowed(
    input: &NodeInput,
    mut decision: SqlDecision,
    tables: Vec<String>,
    refusal: &Refusal,
) -> SqlDecision {
    let before = input.attempts.iter().filter(|failed| failed.refused.iter().any(|own| tables.contains(own)));
    let times = before.count() + usize::from(input.kind == PromptKind::Sql);
    let was_removed = tables.iter().any(|table| input.to_approve.contains(table));
    let state = match (times, was_removed) {
        (0, _) => SqlState::ToRepair,
        (1, false) => SqlState::ToApprove,
        _ => SqlState::GivenUp,
    };
    decision.error = refusal.to_string();
    decision.attempts.push(FailedSql {
        sql: decision.sql.clone(),
        error: decision.error.clone(),
        refused: tables.clone(),
    });
    SqlDecision { state, to_approve: tables, ..decision }
}

/// Whether writing one more statement after this one is of no use: too many were written, or it or its error is one of
/// before.
pub fn leads_nowhere(attempts: &[FailedSql], failed: &FailedSql) -> bool {
    let same = |earlier: &FailedSql| {
        same_statement(&earlier.sql, &failed.sql)
            || (earlier.error == failed.error && earlier.refused.is_empty())
    };
    attempts.len() + 1 >= MAX_ROUNDS || attempts.iter().any(same)
}

/// Whether two statements differ in spaces and the case of letters at most.
fn same_statement(one: &str, other: &str) -> bool {
    let plain = |sql: &str| sql.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    plain(one) == plain(other)
}

/// A statement without the fence and the semicolon that people and models write around it.
pub fn plain_statement(sql: &str) -> String {
    let mut text = sql.trim();
    if let Some(fenced) = text.strip_prefix("```") {
        let inner = fenced.strip_suffix("```").unwrap_or(fenced);
        let has_word = inner.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("sql"));
        text = if has_word { inner.get(3..).unwrap_or_default() } else { inner };
    }
    text.trim().trim_end_matches([';', ' ', '\n', '\t', '\r']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(sql: &str, error: &str) -> FailedSql {
        FailedSql { sql: sql.to_owned(), error: error.to_owned(), refused: Vec::new() }
    }

    #[test]
    fn repairs_end_after_three_statements_and_with_the_same_statement_or_error() {
        let one = [failed("select a", "no a")];
        assert!(!leads_nowhere(&one, &failed("select b", "no b")));
        assert!(leads_nowhere(&one, &failed("SELECT  a", "other")));
        assert!(leads_nowhere(&one, &failed("select c", "no a")));
        let two = [failed("select a", "no a"), failed("select b", "no b")];
        assert!(leads_nowhere(&two, &failed("select c", "no c")));
    }

    #[test]
    fn fences_and_semicolons_are_not_part_of_a_statement() {
        for written in ["SELECT 1", " SELECT 1; ", "```sql\nSELECT 1;\n```", "```\nSELECT 1\n```"] {
            assert_eq!(plain_statement(written), "SELECT 1");
        }
        assert_eq!(plain_statement("SELECT ';'"), "SELECT ';'");
    }

    #[test]
    fn table_that_may_not_be_read_is_asked_for_only_if_it_is_needed_all_the_same() {
        let refusal = sql_guard::check(
            "select 1 from secret",
            sql_guard::Dialect::Sqlite,
            &sql_guard::ApprovedSet { default_schema: "main".to_owned(), tables: Vec::new() },
            &Limits::default(),
        )
        .unwrap_err();
        let decide = |input: &NodeInput| {
            let decision = SqlDecision {
                state: SqlState::Valid,
                sql: "select 1 from secret".to_owned(),
                error: String::new(),
                attempts: input.attempts.clone(),
                to_approve: Vec::new(),
            };
            not_allowed(input, decision, vec!["secret".to_owned()], &refusal)
        };
        let mut input = NodeInput::default();
        let mut states = Vec::new();
        for _ in 0..3 {
            let decision = decide(&input);
            states.push(decision.state);
            input.attempts = decision.attempts;
        }
        assert_eq!(states, [SqlState::ToRepair, SqlState::ToApprove, SqlState::GivenUp]);
        let own = NodeInput { kind: PromptKind::Sql, ..NodeInput::default() };
        assert_eq!(decide(&own).state, SqlState::ToApprove, "a person wrote the statement");
        let removed = NodeInput { to_approve: vec!["secret".to_owned()], ..own };
        assert_eq!(decide(&removed).state, SqlState::GivenUp, "the person took it from the list");
    }
}
