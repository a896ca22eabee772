//! The permissions of a statement, as SQLite asks for each action while it compiles the statement: everything is denied but
//! reading what is approved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::super::DatabaseSchema;
use crate::mutex::lock;
use crate::sql_guard::{ApprovedSet, Dialect, TableName, functions};

/// Columns by table, both in lower case.
type Columns = BTreeMap<String, BTreeSet<String>>;

/// The tables and columns that a statement may read.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadPermission {
    /// What it may name itself.
    direct: Columns,
    /// What it may read through each view.
    views: BTreeMap<String, Columns>,
    /// Functions that views may call beside those of the guard's list.
    view_functions: BTreeSet<String>,
    /// The names of all tables, views and table functions of the connection.
    relations: BTreeSet<String>,
    /// The columns of what it may name itself that it must not read.
    withheld: Columns,
}

/// An action as SQLite asks about it.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadAction<'a> {
    /// A query is in the statement.
    Select,
    /// A recursive query is in the statement.
    Recursive,
    /// A column is read; the empty name if rows are only counted.
    Read { table: &'a str, column: &'a str },
    /// Rows are only counted, of a table that is written without its database, or of a common table expression: SQLite
    /// does not say which.
    Count(&'a str),
    /// A function is called.
    Function(&'a str),
    /// Anything else.
    Other,
}

impl ReadPermission {
    /// Returns what `set` allows of `schema`.
    pub(super) fn new(set: &ApprovedSet, schema: &DatabaseSchema, view_functions: &[String]) -> Self {
        let mut permission = Self {
            view_functions: view_functions.iter().map(|name| lower(name)).collect(),
            ..Self::default()
        };
        for table in &set.tables {
            let Some(known) = schema.table(&table.name) else { continue };
            let readable = |column: &&String| known.readable().any(|readable| readable.name == **column);
            let columns = table.columns.iter().filter(readable).map(|column| lower(column)).collect();
            let columns: BTreeSet<String> = columns;
            let withheld = known.columns.iter().map(|column| lower(&column.name));
            let withheld: BTreeSet<_> = withheld.filter(|column| !columns.contains(column)).collect();
            if !withheld.is_empty() {
                permission.withheld.insert(lower(&table.name.name), withheld);
            }
            permission.direct.insert(lower(&table.name.name), columns);
            if !known.reads.is_empty() && known.reads.keys().all(|read| contains(set, read)) {
                let reads = known.reads.iter();
                let reads = reads.map(|(read, columns)| {
                    (lower(&read.name), columns.iter().map(|name| lower(name)).collect())
                });
                permission.views.insert(lower(&table.name.name), reads.collect());
            }
        }
        permission
    }

    /// With the names of all tables, views and table functions of the connection.
    pub(super) fn among(self, relations: BTreeSet<String>) -> Self {
        Self { relations, ..self }
    }

    /// SQLite does not ask about the columns of `NATURAL JOIN` and `USING`. So a statement that reads one of `tables` (in
    /// lower case) with columns which it must not read may not have the word NATURAL, nor USING and one of those columns.
    ///
    /// # Errors
    /// What is denied, in words.
    pub(super) fn check_joins(&self, sql: &str, tables: &BTreeSet<String>) -> Result<(), String> {
        let words = sql.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let words: BTreeSet<String> = words.map(lower).collect();
        let joins_on = |withheld: &BTreeSet<String>| {
            words.contains("natural")
                || (words.contains("using")
                    && withheld.iter().any(|column| sql.to_lowercase().contains(column)))
        };
        let mut read = self.withheld.iter().filter(|(table, _)| tables.contains(*table));
        match read.find(|(_, withheld)| joins_on(withheld)) {
            None => Ok(()),
            Some((table, _)) => {
                Err(format!("NATURAL or USING may join on columns of {table} that are not approved"))
            }
        }
    }

    /// Checks that `action` is allowed; `accessor` is the view that takes it.
    ///
    /// # Errors
    /// What is denied, in words.
    pub(super) fn check(&self, action: ReadAction<'_>, accessor: Option<&str>) -> Result<(), String> {
        let view = accessor.map(lower).and_then(|accessor| self.views.get(&accessor));
        match action {
            ReadAction::Select | ReadAction::Recursive => Ok(()),
            ReadAction::Function(name) => {
                let name = lower(name);
                let listed =
                    functions::is_allowed(Dialect::Sqlite, &name) || matches!(name.as_str(), "->" | "->>");
                if listed || (view.is_some() && self.view_functions.contains(&name)) {
                    Ok(())
                } else {
                    Err(format!("the function {name} is not allowed"))
                }
            }
            ReadAction::Read { table, column } => {
                let columns = view.unwrap_or(&self.direct).get(&lower(table));
                match columns {
                    Some(columns) if column.is_empty() || columns.contains(&lower(column)) => Ok(()),
                    Some(_) => Err(format!("the column {column} of {table} is not approved")),
                    None if functions::table_function(Dialect::Sqlite, &lower(table)).is_some() => Ok(()),
                    None => Err(format!("the table {table} is not approved")),
                }
            }
            ReadAction::Count(name) => {
                let known = view.unwrap_or(&self.direct).contains_key(&lower(name));
                if known || !self.relations.contains(&lower(name)) {
                    return Ok(());
                }
                self.check(ReadAction::Read { table: name, column: "" }, accessor)
            }
            ReadAction::Other => Err("the statement does more than read".into()),
        }
    }
}

fn contains(set: &ApprovedSet, name: &TableName) -> bool {
    set.tables.iter().any(|table| table.name == *name)
}

pub(super) fn lower(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The action of `context`. All tables are in the database `main`; others are none that can be read.
pub(super) fn action<'a>(context: &AuthContext<'a>) -> ReadAction<'a> {
    match context.action {
        AuthAction::Select => ReadAction::Select,
        AuthAction::Recursive => ReadAction::Recursive,
        AuthAction::Function { function_name } => ReadAction::Function(function_name),
        AuthAction::Read { table_name, column_name } if context.database_name == Some("main") => {
            ReadAction::Read { table: table_name, column: column_name }
        }
        AuthAction::Read { table_name, column_name: "" } if context.database_name.is_none() => {
            ReadAction::Count(table_name)
        }
        _ => ReadAction::Other,
    }
}

/// The findings of the hook: the first action that was denied, and the tables that are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Arc<Mutex<(Option<String>, BTreeSet<String>)>>);

impl Seen {
    pub(super) fn deny(&self, what: String) {
        lock(&self.0).0.get_or_insert(what);
    }

    pub(super) fn denied(&self) -> Option<String> {
        lock(&self.0).0.clone()
    }

    fn read(&self, table: &str) {
        lock(&self.0).1.insert(lower(table));
    }

    /// In lower case.
    pub(super) fn tables(&self) -> BTreeSet<String> {
        lock(&self.0).1.clone()
    }
}

/// The hook that asks `permission` and notes what it sees.
pub(super) fn hook(
    permission: Arc<ReadPermission>,
    seen: Seen,
) -> impl for<'r> FnMut(AuthContext<'r>) -> Authorization + Send + 'static {
    move |context| {
        let action = action(&context);
        if let ReadAction::Read { table, .. } | ReadAction::Count(table) = action {
            seen.read(table);
        }
        match permission.check(action, context.accessor) {
            Ok(()) => Authorization::Allow,
            Err(what) => {
                seen.deny(what);
                Authorization::Deny
            }
        }
    }
}
