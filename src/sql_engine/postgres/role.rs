//! The rights of a connection's role beside reading. The layers above only have to hold where this one does not; so a
//! role that may do more is refused.

use sqlx::postgres::PgConnection;

use super::super::{DatabaseSchema, SqlEngineError, SqlErrorCode};
use super::errors::engine_error;

/// Roles that the server defines and that read nothing but rows, settings and statistics.
const READING_ROLES: &str = "'pg_read_all_data', 'pg_read_all_settings', 'pg_read_all_stats', 'pg_stat_scan_tables', \
                             'pg_monitor'";

/// Whether a role is the one of the session, or one that it can become.
const MEMBER: &str = "(pg_catalog.pg_has_role(current_user, oid, 'MEMBER') \
                      OR pg_catalog.pg_has_role(session_user, oid, 'MEMBER'))";

/// What the role must not be able to do, each with the query that lists where it can.
fn faults() -> [(&'static str, String); 6] {
    let attribute = |attribute: &str, name: &str| {
        format!(
            "SELECT '{name}' || CASE WHEN rolname = current_user THEN '' ELSE ' as a member of ' || rolname END \
             FROM pg_catalog.pg_roles WHERE {attribute} AND {MEMBER}"
        )
    };
    let attributes = [
        ("rolsuper", "is a superuser"),
        ("rolbypassrls", "goes around row policies"),
        ("rolreplication", "may replicate"),
        ("rolcreaterole", "may create roles"),
        ("rolcreatedb", "may create databases"),
    ];
    let relations = "pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                     WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') \
                     AND n.nspname NOT LIKE 'pg\\_temp\\_%' AND n.nspname NOT LIKE 'pg\\_toast\\_temp\\_%'";
    let attributes = attributes.map(|(key, name)| attribute(key, name)).join(" UNION ALL ");
    [
        ("", attributes),
        (
            "is a member of",
            format!(
                "SELECT rolname::text FROM pg_catalog.pg_roles WHERE rolname LIKE 'pg\\_%' \
                 AND rolname NOT IN ({READING_ROLES}) AND {MEMBER}"
            ),
        ),
        (
            "may create schemas in the database",
            "SELECT d::text FROM pg_catalog.current_database() d \
             WHERE pg_catalog.has_database_privilege(d::text, 'CREATE')"
                .to_owned(),
        ),
        (
            "may create in the schema",
            "SELECT nspname::text FROM pg_catalog.pg_namespace WHERE nspname NOT LIKE 'pg\\_temp\\_%' \
             AND nspname NOT LIKE 'pg\\_toast%' AND pg_catalog.has_schema_privilege(oid, 'CREATE')"
                .to_owned(),
        ),
        (
            "may change",
            format!(
                "SELECT n.nspname || '.' || c.relname FROM {relations} AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND \
                 (pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') \
                 OR pg_catalog.has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'))"
            ),
        ),
        (
            "may advance the sequence",
            format!(
                "SELECT n.nspname || '.' || c.relname FROM {relations} AND CASE c.relkind WHEN 'S' \
                 THEN pg_catalog.has_sequence_privilege(c.oid, 'USAGE, UPDATE') ELSE false END"
            ),
        ),
    ]
}

/// What an operator may want to restrict further.
const REMARKS: [(&str, &str); 2] = [
    (
        "the role may create temporary tables (REVOKE TEMPORARY ON DATABASE … FROM PUBLIC)",
        "SELECT 1::pg_catalog.int4 WHERE pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY')",
    ),
    (
        "the role may execute functions that run with their owner's rights (SECURITY DEFINER)",
        "SELECT 1::pg_catalog.int4 FROM pg_catalog.pg_proc WHERE prosecdef AND pronamespace <> 'pg_catalog'::regnamespace \
         AND pg_catalog.has_schema_privilege(pronamespace, 'USAGE') \
         AND pg_catalog.has_function_privilege(oid, 'EXECUTE') LIMIT 1",
    ),
];

/// Refuses a role that may write or act; returns remarks on what else it may do.
///
/// # Errors
/// [`SqlErrorCode::Role`], and those of the connection.
pub(super) async fn check(connection: &mut PgConnection) -> Result<Vec<String>, SqlEngineError> {
    for (what, query) in faults() {
        let query = format!("SELECT f::text FROM ({query}) AS q(f) ORDER BY 1 LIMIT 4");
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(query));
        let found: Vec<String> =
            query.fetch_all(&mut *connection).await.map_err(|error| engine_error(&error))?;
        if !found.is_empty() {
            let more = if found.len() > 3 { ", …" } else { "" };
            let listed = found.get(..found.len().min(3)).unwrap_or_default().join(", ");
            let what =
                [what, &listed].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
            return Err(SqlEngineError::new(
                SqlErrorCode::Role,
                format!("the role {what}{more}"),
                "connect as a role that may only SELECT: CREATE ROLE … LOGIN, GRANT USAGE ON SCHEMA …, GRANT SELECT ON …",
            ));
        }
    }
    let mut remarks = Vec::new();
    for (remark, query) in REMARKS {
        let found: Option<i32> = sqlx::query_scalar(query)
            .fetch_optional(&mut *connection)
            .await
            .map_err(|error| engine_error(&error))?;
        remarks.extend(found.map(|_| remark.to_owned()));
    }
    Ok(remarks)
}

/// Remarks on columns that are withheld by the settings and that the role could read: plans do not show which columns are
/// read, so there the guard is the only layer.
///
/// # Errors
/// Those of the connection.
pub(super) async fn readable_withheld(
    connection: &mut PgConnection,
    schema: &DatabaseSchema,
) -> Result<Vec<String>, SqlEngineError> {
    let mut remarks = Vec::new();
    for table in &schema.tables {
        for column in table.columns.iter().filter(|column| column.withheld) {
            let sql = "SELECT pg_catalog.has_column_privilege(\
                       pg_catalog.quote_ident($1) || '.' || pg_catalog.quote_ident($2), $3, 'SELECT')";
            let query =
                sqlx::query_scalar(sql).bind(&table.name.schema).bind(&table.name.name).bind(&column.name);
            let readable: bool =
                query.fetch_one(&mut *connection).await.map_err(|error| engine_error(&error))?;
            if readable {
                let name = schema.short_name(&table.name);
                remarks.push(format!(
                    "the role may read the withheld column {} of {name}: revoke SELECT on it",
                    column.name
                ));
            }
        }
    }
    Ok(remarks)
}
