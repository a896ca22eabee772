//! PostgreSQL: one server for all of it, since each test is a process of its own.

use secrecy::SecretString;

use super::eventually::eventually;
use super::postgres_server::PostgresServer;
use super::*;

fn settings(server: &PostgresServer, role: &str) -> SqlDatabaseSettings {
    let url = SecretString::from(server.url(role, "postgres"));
    SqlDatabaseSettings {
        withheld: vec!["staff.salary".into()],
        sensitive: vec!["orders".into()],
        ..SqlDatabaseSettings::new("shop", SqlDatabaseKind::Postgres { url })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_read_by_a_restricted_role_within_bounds() {
    let Some(server) = PostgresServer::start("PostgreSQL engine") else { return };
    server.run("postgres", &fixture("statements_postgres.sql")).await;
    let database = SqlDatabase::open(settings(&server, "reader")).await.unwrap();
    insta::assert_yaml_snapshot!("postgres_schema", *database.schema());
    types_and_bounds(&database).await;
    rarer_types(&server).await;
    views(&database).await;
    error_codes(&server, &database).await;
    sessions(&server, &database).await;
    ended_statements(&server).await;
    roles(&server).await;
    let remarks = database.check_live().await.unwrap();
    assert!(remarks.iter().any(|remark| remark.contains("SECURITY DEFINER")), "{remarks:?}");
    assert!(remarks.iter().any(|remark| remark.contains("public.bumping is left out")), "{remarks:?}");
    drop(server);
    let error = guarded(&database, "SELECT id FROM customers", &QueryLimits::default()).await.unwrap_err();
    assert_eq!(error.code, SqlErrorCode::Connection, "{error}");
}

async fn types_and_bounds(database: &SqlDatabase) {
    let all = QueryLimits::default();
    let sql = "SELECT id, total, placed, paid, data, \"order\" FROM orders WHERE id = 1";
    let rows = guarded(database, sql, &all).await.unwrap();
    let types: Vec<_> = rows.columns.iter().filter_map(|column| column.declared_type.as_deref()).collect();
    assert_eq!(types, ["int4", "numeric", "date", "bool", "jsonb", "text"]);
    let json = "{\"size\": 3, \"tags\": [\"new\", \"sale\"], \"color\": \"red\"}";
    assert_eq!(
        rows.rows,
        [[
            SqlValue::Integer(1),
            SqlValue::Decimal("10.00".into()),
            SqlValue::Date("2026-01-15".into()),
            SqlValue::Bool(true),
            SqlValue::Json(json.into()),
            SqlValue::Text("A-1".into()),
        ]]
    );
    let sql = "SELECT n, 'x' AS x FROM numbers ORDER BY n";
    for (limits, rows, bound) in [
        (all.clone(), 100, None),
        (QueryLimits { max_rows: 100, ..all.clone() }, 100, None),
        (QueryLimits { max_rows: 99, ..all.clone() }, 99, Some(RowBound::Rows)),
        (QueryLimits { max_cells: 21, ..all.clone() }, 10, Some(RowBound::Cells)),
        (QueryLimits { max_bytes: 91, ..all.clone() }, 10, Some(RowBound::Bytes)),
    ] {
        let got = guarded(database, sql, &limits).await.unwrap();
        assert_eq!((got.rows.len(), got.truncated), (rows, bound));
        assert_eq!(got.rows[9][0], SqlValue::Integer(10), "the order is the statement's");
    }
    let short = QueryLimits { max_cell_chars: 2, ..all.clone() };
    let got = guarded(database, "SELECT name FROM customers ORDER BY id", &short).await.unwrap();
    assert_eq!((got.rows[4][0].to_string(), got.cut_cells), ("Zo…".into(), 5));
    let none = guarded(database, "SELECT id, name FROM customers WHERE id < 0", &all).await.unwrap();
    assert_eq!((none.columns.len(), none.rows.len()), (2, 0));
    let cheap = QueryLimits { max_cost: 10.0, ..all };
    let sql = "SELECT count(*) FROM numbers a, numbers b";
    assert_eq!(guarded(database, sql, &cheap).await.unwrap_err().code, SqlErrorCode::TooExpensive);
}

async fn rarer_types(server: &PostgresServer) {
    let settings = SqlDatabaseSettings {
        withheld: vec!["staff.salary".into(), "customers.city".into()],
        ..settings(server, "reader")
    };
    let database = SqlDatabase::open(settings).await.unwrap();
    let set = database.approved_set(&[TableName::new("public", "kinds")]).unwrap();
    let sql = "SELECT * FROM kinds WHERE mood = 'happy' AND code = 'abc' AND tags[1] = 'a'";
    let approved = sql_guard::check(sql, Dialect::Postgres, &set, &Limits::default()).unwrap();
    let rows =
        database.query(&approved, &set, &QueryLimits::default(), &CancellationToken::new()).await.unwrap();
    let columns = rows.columns.iter().zip(&rows.rows[0]);
    let shown = columns.map(|(column, value)| {
        format!("{} {}: {value:?}", column.name, column.declared_type.as_deref().unwrap())
    });
    insta::assert_snapshot!("postgres_types", shown.collect::<Vec<_>>().join("\n"));
    // Plans do not show columns: the operator is told what only the guard withholds.
    let remarks = database.check_live().await.unwrap();
    let revoke: Vec<_> =
        remarks.iter().filter(|remark| remark.contains("withheld column city of customers")).collect();
    assert_eq!(revoke.len(), 1, "{remarks:?}");
    assert!(!remarks.iter().any(|remark| remark.contains("salary of staff: revoke")), "{remarks:?}");
}

async fn views(database: &SqlDatabase) {
    let limits = QueryLimits::default();
    let cancel = CancellationToken::new();
    let view = TableName::new("public", "paid");
    let sql = "SELECT amount FROM public.paid";
    let alone = database.approved_set(std::slice::from_ref(&view)).unwrap();
    let error = database.execute(sql, &alone, &limits, &cancel, Instant::now()).await.unwrap_err();
    assert_eq!(error.code, SqlErrorCode::Forbidden, "{error}");
    // The table that it reads is in a schema that is not offered: it can be approved, and still not be named.
    let all = database.approved_set(&database.schema().with_reads(&[view])).unwrap();
    let approved = sql_guard::check(sql, Dialect::Postgres, &all, &Limits::default()).unwrap();
    let rows = database.query(&approved, &all, &limits, &cancel).await.unwrap();
    assert_eq!(rows.rows, [[SqlValue::Decimal("12.5".into())]]);
    let direct = "SELECT amount FROM hidden.payments";
    assert!(sql_guard::check(direct, Dialect::Postgres, &all, &Limits::default()).is_err());
}

async fn error_codes(server: &PostgresServer, database: &SqlDatabase) {
    for (sql, expected) in [
        ("SELECT nome FROM public.customers", SqlErrorCode::UnknownName),
        ("SELECT FROM public.customers WHERE", SqlErrorCode::Syntax),
        ("SELECT 'hunter2'::integer", SqlErrorCode::Data),
        ("SELECT 1 / (n - n) FROM public.numbers", SqlErrorCode::Data),
        ("SELECT CASE WHEN true THEN 1 ELSE DATE '2026-01-01' END", SqlErrorCode::Type),
        ("SELECT salary FROM public.staff", SqlErrorCode::Permission),
        ("SELECT token FROM public.secrets WHERE token = 'hunter2'", SqlErrorCode::Forbidden),
        ("SELECT id FROM public.customers FOR UPDATE", SqlErrorCode::Permission),
    ] {
        let error = unguarded(database, sql, &QueryLimits::default()).await.unwrap_err();
        assert_eq!(error.code, expected, "{sql}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    let mut elsewhere = settings(server, "reader");
    for (url, expected) in [
        (server.url("reader", "missing"), SqlErrorCode::Settings),
        (server.url("nobody_known", "postgres"), SqlErrorCode::Authentication),
        (
            "postgres://reader@localhost/postgres?host=/tmp/no-such-folder".to_owned(),
            SqlErrorCode::Connection,
        ),
        ("postgres://reader@127.0.0.1:1/postgres".to_owned(), SqlErrorCode::Connection),
    ] {
        elsewhere.kind = SqlDatabaseKind::Postgres { url: SecretString::from(url.clone()) };
        let error = SqlDatabase::open(elsewhere.clone()).await.unwrap_err();
        assert_eq!(error.code, expected, "{url}: {error}");
    }
}

/// Nothing that a statement does to its session is there for the next one, and connections are used again.
async fn sessions(server: &PostgresServer, database: &SqlDatabase) {
    let mut owner = server.owner("postgres").await;
    let sql = "SELECT string_agg(pid::text || state, ',') FROM pg_stat_activity WHERE usename = 'reader'";
    guarded(database, "SELECT id FROM customers", &QueryLimits::default()).await.unwrap();
    let before: String = sqlx::query_scalar(sql).fetch_one(&mut owner).await.unwrap();
    guarded(database, "SELECT id FROM customers", &QueryLimits::default()).await.unwrap();
    let after: String = sqlx::query_scalar(sql).fetch_one(&mut owner).await.unwrap();
    assert_eq!(before, after, "one connection, in no transaction");
    assert!(after.ends_with("idle") && !after.contains(','), "{after}");
}

/// A statement is ended on the server at its deadline, when it is cancelled, and when its caller has gone.
async fn ended_statements(server: &PostgresServer) {
    let settings = SqlDatabaseSettings { max_concurrent: 1, ..settings(server, "reader") };
    let database = SqlDatabase::open(settings).await.unwrap();
    let endless = QueryLimits { timeout_ms: 600_000, ..QueryLimits::default() };
    let soon = QueryLimits { timeout_ms: 300, ..QueryLimits::default() };
    assert_eq!(unguarded(&database, ENDLESS, &soon).await.unwrap_err().code, SqlErrorCode::Timeout);
    let mut owner = server.owner("postgres").await;
    let mut running = async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active' \
                   AND query LIKE '%RECURSIVE%' OR query LIKE 'FETCH%' AND state = 'active'";
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut owner).await.unwrap()
    };
    eventually("the statement has ended", async || running().await == 0).await;
    for cancelled in [true, false] {
        let cancel = CancellationToken::new();
        let task = tokio::spawn({
            let (database, cancel, endless) = (database.clone(), cancel.clone(), endless.clone());
            let set = approved(&database);
            async move { database.execute(ENDLESS, &set, &endless, &cancel, Instant::now()).await }
        });
        eventually("the statement runs", async || running().await == 1).await;
        if cancelled {
            cancel.cancel();
            assert_eq!(task.await.unwrap().unwrap_err().code, SqlErrorCode::Cancelled);
        } else {
            task.abort();
        }
        eventually("the statement has ended", async || running().await == 0).await;
    }
    guarded(&database, "SELECT id FROM customers", &QueryLimits::default()).await.unwrap();
}

/// A role that may do more than read is refused, with what it may do.
async fn roles(server: &PostgresServer) {
    for (role, setup, says) in [
        ("owner", "SELECT 1", "superuser"),
        ("maker", "CREATE ROLE maker LOGIN CREATEROLE", "create roles"),
        ("databases", "CREATE ROLE databases LOGIN CREATEDB", "create databases"),
        ("copier", "CREATE ROLE copier LOGIN REPLICATION", "replicate"),
        ("bypasser", "CREATE ROLE bypasser LOGIN BYPASSRLS", "row policies"),
        ("files", "CREATE ROLE files LOGIN; GRANT pg_read_server_files TO files", "pg_read_server_files"),
        (
            "program",
            "CREATE ROLE program LOGIN; GRANT pg_execute_server_program TO program",
            "pg_execute_server_program",
        ),
        (
            "hidden_owner",
            "CREATE ROLE hidden_owner LOGIN NOINHERIT; GRANT owner TO hidden_owner",
            "as a member of owner",
        ),
        ("writer", "CREATE ROLE writer LOGIN; GRANT INSERT ON files TO writer", "public.files"),
        (
            "column_writer",
            "CREATE ROLE column_writer LOGIN; GRANT UPDATE (name) ON staff TO column_writer",
            "public.staff",
        ),
        (
            "table_owner",
            "CREATE ROLE table_owner LOGIN; ALTER TABLE audit OWNER TO table_owner",
            "public.audit",
        ),
        (
            "schema_maker",
            "CREATE ROLE schema_maker LOGIN; GRANT CREATE ON SCHEMA hidden TO schema_maker",
            "hidden",
        ),
        (
            "db_maker",
            "CREATE ROLE db_maker LOGIN; GRANT CREATE ON DATABASE postgres TO db_maker",
            "create schemas",
        ),
        (
            "counter_user",
            "CREATE ROLE counter_user LOGIN; GRANT USAGE ON SEQUENCE counter TO counter_user",
            "counter",
        ),
    ] {
        server.run("postgres", setup).await;
        let error = SqlDatabase::open(settings(server, role)).await.unwrap_err();
        assert_eq!(error.code, SqlErrorCode::Role, "{role}: {error}");
        assert!(error.message.contains(says), "{role}: {error}");
    }
}
