//! Reads what a PostgreSQL database holds: the tables and views of the schemas in the settings that the role may read.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::postgres::PgConnection;

use super::super::offered::{self, Offer};
use super::super::{
    DatabaseColumn, DatabaseSchema, DatabaseTable, ForeignKey, OmittedTable, RelationKind,
    SqlDatabaseSettings, SqlEngineError, SqlErrorCode,
};
use super::Facts;
use super::connection::begin;
use super::errors::engine_error;
use super::plan::fault_of_view;
use crate::sql_guard::{Dialect, TableName};

/// Milliseconds for one query of the catalogue.
const TIMEOUT_MS: u64 = 20_000;

/// Maximum number of tables, columns and references that are read.
const MAX_ROWS: usize = 200_000;

const RELATIONS: &str = "SELECT c.oid::int8, n.nspname::text, c.relname::text, c.relkind::text, \
    obj_description(c.oid, 'pg_class'), c.reltuples::float8, \
    has_any_column_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE') \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = ANY($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition \
    ORDER BY n.nspname, c.relname";

const COLUMNS: &str = "SELECT a.attrelid::int8, a.attname::text, format_type(a.atttypid, a.atttypmod), \
    NOT a.attnotnull, COALESCE(a.attnum = ANY(i.indkey::int2[]), false), col_description(a.attrelid, a.attnum), \
    has_column_privilege(a.attrelid, a.attnum, 'SELECT') \
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary \
    WHERE n.nspname = ANY($1) AND c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition \
    AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum";

const FOREIGN_KEYS: &str = "SELECT k.conrelid::int8, n.nspname::text, c.relname::text, \
    ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u(num, ord) \
          JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.num ORDER BY u.ord), \
    ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u(num, ord) \
          JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.num ORDER BY u.ord) \
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE k.contype = 'f' AND k.conparentid = 0 ORDER BY k.conrelid, k.conname";

/// What views and materialized views read, of all schemas.
const VIEW_READS: &str = "SELECT vn.nspname::text, v.relname::text, n.nspname::text, c.relname::text, a.attname::text \
    FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class JOIN pg_namespace vn ON vn.oid = v.relnamespace \
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid \
         AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class \
    JOIN pg_class c ON c.oid = d.refobjid JOIN pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND d.refobjsubid > 0 \
    WHERE r.rulename = '_RETURN' AND vn.nspname NOT IN ('pg_catalog', 'information_schema')";

/// The queries of views, as the server writes them.
const VIEW_QUERIES: &str = "SELECT n.nspname::text, c.relname::text, pg_get_viewdef(c.oid) \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('v', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')";

/// Functions of users that views call, also without naming them: by operators and casts.
const VIEW_FUNCTIONS: &str = "SELECT vn.nspname::text, v.relname::text, p.proname::text \
    FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class JOIN pg_namespace vn ON vn.oid = v.relnamespace \
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_proc'::regclass \
    JOIN pg_proc p ON p.oid = d.refobjid \
    WHERE r.rulename = '_RETURN' AND vn.nspname NOT IN ('pg_catalog', 'information_schema')";

const PARENTS: &str = "SELECT cn.nspname::text, c.relname::text, pn.nspname::text, p.relname::text \
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace \
    JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = p.relnamespace \
    WHERE c.relkind IN ('r', 'p', 'f')";

const FUNCTIONS: &str =
    "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace";

type RelationRow = (i64, String, String, String, Option<String>, f64, bool);
type ColumnRow = (i64, String, String, bool, bool, Option<String>, bool);
type ForeignKeyRow = (i64, String, String, Vec<String>, Vec<String>);
type ReadRow = (String, String, String, String, Option<String>);

/// What each view reads, by table.
type Reads = BTreeMap<TableName, BTreeMap<TableName, BTreeSet<String>>>;

/// Reads what the database holds.
pub(super) async fn read(
    connection: &mut PgConnection,
    settings: &SqlDatabaseSettings,
) -> Result<(DatabaseSchema, Facts), SqlEngineError> {
    let failed = |error: sqlx::Error| engine_error(&error);
    let default_schema = settings.schemas.first().cloned().ok_or_else(|| {
        SqlEngineError::new(
            SqlErrorCode::Settings,
            "`schemas` is empty",
            "name at least one schema, such as public",
        )
    })?;
    begin(connection, TIMEOUT_MS).await?;
    let schemas = &settings.schemas;
    let relations: Vec<RelationRow> =
        sqlx::query_as(RELATIONS).bind(schemas).fetch_all(&mut *connection).await.map_err(failed)?;
    let columns: Vec<ColumnRow> =
        sqlx::query_as(COLUMNS).bind(schemas).fetch_all(&mut *connection).await.map_err(failed)?;
    let keys: Vec<ForeignKeyRow> =
        sqlx::query_as(FOREIGN_KEYS).fetch_all(&mut *connection).await.map_err(failed)?;
    let reads: Vec<ReadRow> = sqlx::query_as(VIEW_READS).fetch_all(&mut *connection).await.map_err(failed)?;
    let queries: Vec<(String, String, String)> =
        sqlx::query_as(VIEW_QUERIES).fetch_all(&mut *connection).await.map_err(failed)?;
    let calls: Vec<(String, String, String)> =
        sqlx::query_as(VIEW_FUNCTIONS).fetch_all(&mut *connection).await.map_err(failed)?;
    let parents: Vec<(String, String, String, String)> =
        sqlx::query_as(PARENTS).fetch_all(&mut *connection).await.map_err(failed)?;
    let functions: Vec<String> =
        sqlx::query_scalar(FUNCTIONS).fetch_all(&mut *connection).await.map_err(failed)?;
    sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await.map_err(failed)?;
    if relations.len().max(columns.len()) > MAX_ROWS {
        let what = "the database has too many tables and columns";
        return Err(SqlEngineError::new(SqlErrorCode::Settings, what, "list fewer schemas"));
    }
    let mut facts = Facts { functions: functions.into_iter().collect(), parents: BTreeMap::new() };
    let faults = view_faults(&queries, &calls, &facts.functions, &settings.view_functions);
    let (tables, omitted) = tables(relations, columns, keys, &closed(reads), &faults);
    let schema = DatabaseSchema { dialect: Dialect::Postgres, default_schema, tables, omitted };
    for (schema, name, parent_schema, parent) in parents {
        let parents = facts.parents.entry(TableName::new(schema, name)).or_default();
        parents.push(TableName::new(parent_schema, parent));
    }
    Ok((offered::apply(schema, &Offer::of(settings))?, facts))
}

/// What views read directly, extended by what those read that are views.
fn closed(rows: Vec<ReadRow>) -> Reads {
    let mut direct = Reads::new();
    for (schema, view, read_schema, read, column) in rows {
        let reads = direct.entry(TableName::new(schema, view)).or_default();
        reads.entry(TableName::new(read_schema, read)).or_default().extend(column);
    }
    let mut all = Reads::new();
    for view in direct.keys() {
        let mut reads: BTreeMap<TableName, BTreeSet<String>> = BTreeMap::new();
        let mut pending = vec![view];
        let mut seen = BTreeSet::new();
        while let Some(next) = pending.pop() {
            if !seen.insert(next) {
                continue;
            }
            for (read, columns) in direct.get(next).into_iter().flatten() {
                reads.entry(read.clone()).or_default().extend(columns.iter().cloned());
                pending.push(read);
            }
        }
        all.insert(view.clone(), reads);
    }
    all
}

/// Views that call functions which are not allowed.
fn view_faults(
    queries: &[(String, String, String)],
    calls: &[(String, String, String)],
    own: &BTreeSet<String>,
    beside: &[String],
) -> BTreeMap<TableName, String> {
    let written = queries.iter().filter_map(|(schema, view, query)| {
        fault_of_view(query, own, beside).map(|why| (TableName::new(schema, view), why))
    });
    let called =
        calls.iter().filter(|(_, _, function)| !beside.contains(function)).map(|(schema, view, function)| {
            let why = format!("it calls the function {function}, which is not in `view_functions`");
            (TableName::new(schema, view), why)
        });
    written.chain(called).collect()
}

/// The fault of a relation that is not offered, in words.
fn fault(
    name: &TableName,
    kind: &str,
    readable: bool,
    reads: &Reads,
    faults: &BTreeMap<TableName, String>,
) -> Option<String> {
    if !readable {
        return Some("the role has no permission to read it".into());
    }
    if kind == "f" {
        return Some("it is a foreign table".into());
    }
    let within = reads.get(name).into_iter().flat_map(BTreeMap::keys);
    if within.clone().any(|read| matches!(read.schema.as_str(), "pg_catalog" | "information_schema")) {
        return Some("it reads the system's catalogue".into());
    }
    std::iter::once(name).chain(within).find_map(|name| faults.get(name).cloned())
}

fn tables(
    relations: Vec<RelationRow>,
    columns: Vec<ColumnRow>,
    keys: Vec<ForeignKeyRow>,
    reads: &Reads,
    faults: &BTreeMap<TableName, String>,
) -> (Vec<DatabaseTable>, Vec<OmittedTable>) {
    let mut columns_of: BTreeMap<i64, Vec<DatabaseColumn>> = BTreeMap::new();
    for (table, name, declared_type, nullable, primary_key, comment, readable) in columns {
        let column =
            DatabaseColumn { name, declared_type, nullable, primary_key, comment, withheld: !readable };
        columns_of.entry(table).or_default().push(column);
    }
    let mut keys_of: BTreeMap<i64, Vec<ForeignKey>> = BTreeMap::new();
    for (table, schema, name, columns, referenced) in keys {
        let key = ForeignKey { columns, table: TableName::new(schema, name), referenced };
        keys_of.entry(table).or_default().push(key);
    }
    let (mut tables, mut omitted) = (Vec::new(), Vec::new());
    for (id, schema, name, kind, comment, rows, readable) in relations {
        let name = TableName::new(schema, name);
        if let Some(why) = fault(&name, &kind, readable, reads, faults) {
            omitted.push(OmittedTable { name, why });
            continue;
        }
        tables.push(DatabaseTable {
            kind: match kind.as_str() {
                "v" => RelationKind::View,
                "m" => RelationKind::MaterializedView,
                _ => RelationKind::Table,
            },
            comment,
            columns: columns_of.remove(&id).unwrap_or_default(),
            foreign_keys: keys_of.remove(&id).unwrap_or_default(),
            reads: reads.get(&name).cloned().unwrap_or_default(),
            sensitive: false,
            estimated_rows: (rows >= 0.0).then_some(rows as u64),
            name,
        });
    }
    (tables, omitted)
}
