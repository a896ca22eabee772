//! The SQL guard: decides whether a statement that a model or a person wrote may be executed. It is pure: text and an
//! approved set go in, an [`Approved`] statement or a [`Refusal`] comes out.
//!
//! Layers, in order; each is a function of its own with its own tests, and each one alone refuses what it is for:
//!
//! 1. [`text`]: length and characters.
//! 2. [`one_statement`]: exactly one statement, no tail.
//! 3. [`grammar`]: an allow-list of the syntax tree. Every field of every node is named in it, so a version of the
//!    parser that knows more syntax does not compile until someone decides about it; every variant that is not listed
//!    is refused.
//! 4. [`names`]: every table, through common table expressions, aliases, subqueries and quoted names, is in the
//!    approved set, and no withheld column is used.
//! 5. [`rewrite`]: the statement is written anew from the syntax tree, with the full names of the tables and a bound on
//!    the rows, and must read as the same tree again. What is executed is therefore what was checked: comments and other
//!    text that two parsers may read differently are gone.
//!
//! The engine's own means are the last layer; they are in `sql_engine`, which does not rely on the guard.
//!
//! *Architecture invariants*: the guard opens no file, connection or clock; it never panics on any text; a node of the
//! syntax tree that it does not know is refused.

pub mod approved_set;
pub mod functions;
pub mod grammar;
pub mod names;
pub mod one_statement;
pub mod outline;
pub mod refusal;
pub mod rewrite;
pub mod text;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, IntoStaticStr};

pub use approved_set::{ApprovedSet, ApprovedTable, TableName};
pub use refusal::{Code, Layer, Refusal, TextPosition};

/// Bytes of stack that [`check`] gives to the thread that parses. Trees are bounded by [`Limits`]; parsing, comparing,
/// writing and dropping them recurse, and a caller's thread may have little stack left.
pub const STACK_BYTES: usize = 64 * 1024 * 1024;

/// The SQL that an engine reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Display, EnumIter, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

impl Dialect {
    pub(crate) fn parser_dialect(self) -> Box<dyn sqlparser::dialect::Dialect> {
        match self {
            Self::Sqlite => Box::new(sqlparser::dialect::SQLiteDialect {}),
            Self::Postgres => Box::new(sqlparser::dialect::PostgreSqlDialect {}),
        }
    }

    /// The key by which the engine compares a name in a statement. SQLite ignores the case of ASCII letters, quoted or
    /// not; PostgreSQL lowers unquoted names and takes quoted ones as they are.
    pub(crate) fn folded(self, written: &str, quoted: bool) -> String {
        match self {
            Self::Postgres if quoted => written.to_owned(),
            _ => written.to_ascii_lowercase(),
        }
    }

    /// The key of a name as the engine stores it.
    pub(crate) fn stored(self, name: &str) -> String {
        self.folded(name, true)
    }
}

/// Bounds on what is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of text.
    pub max_bytes: usize,
    /// Levels of nesting.
    pub max_depth: usize,
    /// Nodes of the syntax tree: expressions, tables, queries.
    pub max_nodes: usize,
    /// Tables in `FROM`, over the whole statement.
    pub max_tables: usize,
    /// Rows that the outermost query may return: a larger `LIMIT` is lowered, a missing one is added.
    pub max_rows: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 16_384, max_depth: 40, max_nodes: 2_000, max_tables: 16, max_rows: 1_001 }
    }
}

/// A statement that may be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approved {
    /// The statement to execute: written from the syntax tree, never the text that came in.
    pub sql: String,
    /// The tables and views that it reads, by name.
    pub tables: Vec<TableName>,
    /// The columns of those that it reads; `*` counts as all that are approved.
    pub columns: Vec<(TableName, String)>,
    /// The `LIMIT` that the guard added or lowered it to, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_to: Option<u64>,
}

/// Runs all layers on a thread with a stack of [`STACK_BYTES`], and waits for it: some milliseconds at most. An async
/// caller runs it where blocking is allowed.
///
/// # Errors
/// The first layer's [`Refusal`]; [`Code::Internal`] if the thread cannot start or does not end well.
pub fn check(sql: &str, dialect: Dialect, set: &ApprovedSet, limits: &Limits) -> Result<Approved, Refusal> {
    on_large_stack(|| check_here(sql, dialect, set, limits))?
}

/// Runs all layers on the caller's thread, which must have a stack of [`STACK_BYTES`].
///
/// # Errors
/// The first layer's [`Refusal`].
pub fn check_here(
    sql: &str,
    dialect: Dialect,
    set: &ApprovedSet,
    limits: &Limits,
) -> Result<Approved, Refusal> {
    text::check(sql, limits)?;
    let statement = one_statement::parse(sql, dialect, limits)?;
    let outline = grammar::outline(&statement, dialect, limits)?;
    let uses = names::resolve(&outline, dialect, set)?;
    rewrite::rewrite(statement, uses, dialect, limits)
}

/// Runs `work` on a thread with a stack of [`STACK_BYTES`].
///
/// # Errors
/// [`Code::Internal`] if the thread cannot start or panics.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Refusal> {
    let failed =
        |what: &str| Refusal::new(Layer::Text, Code::Internal, what, "nothing was executed; try again");
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("sql-guard".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|error| failed(&format!("no thread to check the statement on: {error}")))?;
        thread.join().map_err(|_| failed("the statement could not be checked"))
    })
}
