//! Reads what an SQLite database holds. A view that cannot be read, or that does more than read tables, is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use rusqlite::hooks::Authorization;

use super::super::offered::{self, Offer};
use super::super::redact::redact;
use super::super::{
    DatabaseColumn, DatabaseSchema, DatabaseTable, ForeignKey, OmittedTable, RelationKind,
    SqlDatabaseSettings, SqlEngineError,
};
use super::authorizer::{ReadAction, Seen, action, lower};
use super::connection::{Connector, Watch};
use super::errors::engine_error;
use crate::mutex::lock;
use crate::sql_guard::{Dialect, TableName, functions};

const SCHEMA: &str = "main";

/// What a view reads, by table.
type Reads = BTreeMap<TableName, BTreeSet<String>>;

/// Reads what the database of `connector` holds.
pub(super) fn read(
    connector: &Connector,
    settings: &SqlDatabaseSettings,
    watch: &Arc<Watch>,
) -> Result<DatabaseSchema, SqlEngineError> {
    let connection = connector.connect(watch)?;
    let failed = |error| engine_error(&error, watch, None);
    let (mut tables, mut omitted) = (Vec::new(), Vec::new());
    for (name, kind) in relations(&connection).map_err(failed)? {
        match kind.as_str() {
            "table" => tables.push(table(&connection, &name).map_err(failed)?),
            "view" => match view(connector, &name, settings, watch) {
                Ok(view) => tables.push(view),
                Err(why) => omitted.push(OmittedTable { name: TableName::new(SCHEMA, name), why }),
            },
            "virtual" => {
                let why = "it is a virtual table".to_owned();
                omitted.push(OmittedTable { name: TableName::new(SCHEMA, name), why });
            }
            _ => {}
        }
    }
    stored_names(&mut tables);
    let schema = DatabaseSchema { dialect: Dialect::Sqlite, default_schema: SCHEMA.into(), tables, omitted };
    offered::apply(schema, &Offer::of(settings))
}

/// Names and types (`table`, `view`, `virtual`, `shadow`) of everything but SQLite's own tables.
fn relations(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let sql = "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
               ORDER BY name";
    connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// The names of all tables, views and table functions of `connection`, in lower case.
pub(super) fn all_relations(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let sql = "SELECT lower(name) FROM pragma_table_list UNION SELECT lower(name) FROM pragma_module_list \
               UNION VALUES ('sqlite_master'), ('sqlite_schema'), ('sqlite_temp_master'), ('sqlite_temp_schema')";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<DatabaseColumn>> {
    // `hidden` is 1 for hidden columns of virtual tables; 2 and 3 for generated ones, which are read like others.
    let sql = "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid";
    let column = |row: &rusqlite::Row<'_>| {
        let (not_null, key): (bool, i64) = (row.get(2)?, row.get(3)?);
        Ok(DatabaseColumn {
            name: row.get(0)?,
            declared_type: row.get(1)?,
            nullable: !not_null && key == 0,
            primary_key: key > 0,
            comment: None,
            withheld: false,
        })
    };
    connection.prepare(sql)?.query_map([table], column)?.collect()
}

fn table(connection: &Connection, name: &str) -> rusqlite::Result<DatabaseTable> {
    let mut keys: BTreeMap<i64, ForeignKey> = BTreeMap::new();
    let sql = "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1) ORDER BY id DESC, seq";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([name])?;
    while let Some(row) = rows.next()? {
        let (id, of, from, to): (i64, String, String, Option<String>) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let key = keys.entry(-id).or_insert_with(|| ForeignKey {
            columns: Vec::new(),
            table: TableName::new(SCHEMA, of),
            referenced: Vec::new(),
        });
        key.columns.push(from);
        key.referenced.extend(to);
    }
    Ok(DatabaseTable {
        name: TableName::new(SCHEMA, name),
        kind: RelationKind::Table,
        comment: None,
        columns: columns(connection, name)?,
        foreign_keys: keys.into_values().collect(),
        reads: BTreeMap::new(),
        sensitive: false,
        estimated_rows: None,
    })
}

/// References name tables in any case, and may leave out that they mean the primary key.
fn stored_names(tables: &mut [DatabaseTable]) {
    let stored: BTreeMap<String, (TableName, Vec<String>)> = tables
        .iter()
        .map(|table| {
            let key =
                table.columns.iter().filter(|column| column.primary_key).map(|column| column.name.clone());
            (lower(&table.name.name), (table.name.clone(), key.collect()))
        })
        .collect();
    for key in tables.iter_mut().flat_map(|table| &mut table.foreign_keys) {
        if let Some((name, primary)) = stored.get(&lower(&key.table.name)) {
            key.table = name.clone();
            if key.referenced.is_empty() {
                key.referenced.clone_from(primary);
            }
        }
    }
    for table in tables {
        table.foreign_keys.retain(|key| key.columns.len() == key.referenced.len());
    }
}

/// The view `name`, on a connection of its own: a view that breaks it breaks nothing else.
///
/// # Errors
/// Why it is left out, in words.
fn view(
    connector: &Connector,
    name: &str,
    settings: &SqlDatabaseSettings,
    watch: &Arc<Watch>,
) -> Result<DatabaseTable, String> {
    let connection = connector.connect(watch).map_err(|error| error.message)?;
    let broken = |error| format!("it cannot be read: {}", engine_error(&error, watch, None).message);
    let columns = columns(&connection, name).map_err(broken)?;
    let reads = Arc::new(Mutex::new(Reads::new()));
    let seen = Seen::default();
    let (noted, refused) = (Arc::clone(&reads), seen.clone());
    let relations = all_relations(&connection).map_err(broken)?;
    let (own, listed) =
        (lower(name), settings.view_functions.iter().map(|name| lower(name)).collect::<BTreeSet<_>>());
    let hook = move |context: rusqlite::hooks::AuthContext<'_>| match compiled(
        action(&context),
        &own,
        &listed,
        &relations,
    ) {
        Ok(None) => Authorization::Allow,
        Ok(Some((table, column))) => {
            let mut noted = lock(&noted);
            let columns = noted.entry(TableName::new(SCHEMA, table)).or_default();
            columns.extend((!column.is_empty()).then(|| column.to_owned()));
            Authorization::Allow
        }
        Err(why) => {
            refused.deny(why);
            Authorization::Deny
        }
    };
    connection.authorizer(Some(hook)).map_err(broken)?;
    let prepared =
        connection.prepare(&format!("SELECT * FROM main.\"{}\"", name.replace('"', "\"\""))).map(drop);
    match (prepared, seen.denied()) {
        (_, Some(why)) => return Err(redact(&why, false)),
        (Err(error), None) => return Err(broken(error)),
        (Ok(()), None) => {}
    }
    let reads = std::mem::take(&mut *lock(&reads));
    Ok(DatabaseTable {
        name: TableName::new(SCHEMA, name),
        kind: RelationKind::View,
        comment: None,
        columns,
        foreign_keys: Vec::new(),
        reads,
        sensitive: false,
        estimated_rows: None,
    })
}

/// What a view may do: read tables, which are returned to be noted, and call functions of the lists.
fn compiled<'a>(
    action: ReadAction<'a>,
    own: &str,
    listed: &BTreeSet<String>,
    relations: &BTreeSet<String>,
) -> Result<Option<(&'a str, &'a str)>, String> {
    match action {
        ReadAction::Select | ReadAction::Recursive => Ok(None),
        ReadAction::Count(name) if relations.contains(&lower(name)) => {
            compiled(ReadAction::Read { table: name, column: "" }, own, listed, relations)
        }
        ReadAction::Count(_) => Ok(None),
        ReadAction::Read { table, .. } if lower(table) == own => Ok(None),
        ReadAction::Read { table, .. } if lower(table).starts_with("sqlite_") => {
            Err("it reads SQLite's own tables".into())
        }
        ReadAction::Read { table, .. }
            if functions::table_function(Dialect::Sqlite, &lower(table)).is_some() =>
        {
            Ok(None)
        }
        ReadAction::Read { table, column } => Ok(Some((table, column))),
        ReadAction::Function(name) => {
            let name = lower(name);
            let allowed = functions::is_allowed(Dialect::Sqlite, &name)
                || matches!(name.as_str(), "->" | "->>")
                || listed.contains(&name);
            allowed
                .then_some(None)
                .ok_or_else(|| format!("it calls the function {name}, which is not allowed"))
        }
        ReadAction::Other => Err("it does more than read".into()),
    }
}
