//! SQLite.

use super::eventually::eventually;
use super::*;

async fn open(dir: &Path) -> SqlDatabase {
    SqlDatabase::open(sqlite_settings(sqlite_file(dir))).await.unwrap()
}

async fn open_error(path: &Path, forbidden: &[PathBuf]) -> SqlErrorCode {
    let settings =
        SqlDatabaseSettings { forbidden_paths: forbidden.to_vec(), ..sqlite_settings(path.to_owned()) };
    SqlDatabase::open(SqlDatabaseSettings { withheld: Vec::new(), sensitive: Vec::new(), ..settings })
        .await
        .unwrap_err()
        .code
}

#[tokio::test]
async fn the_schema_has_tables_keys_and_what_views_read_and_leaves_out_views_that_do_more() {
    let dir = tempfile::tempdir().unwrap();
    let schema = open(dir.path()).await.schema();
    insta::assert_yaml_snapshot!("sqlite_schema", *schema);
}

#[tokio::test]
async fn a_view_needs_the_approval_of_what_it_reads() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path()).await;
    let view = TableName::new("main", "order_totals");
    let sql = "SELECT name FROM order_totals";
    let alone = database.approved_set(std::slice::from_ref(&view)).unwrap();
    let refusal = sql_guard::check(sql, Dialect::Sqlite, &alone, &Limits::default()).unwrap_err();
    assert_eq!(refusal.code, sql_guard::Code::ViewNotApproved);
    let limits = QueryLimits::default();
    let cancel = CancellationToken::new();
    let error = database.execute(sql, &alone, &limits, &cancel, Instant::now()).await.unwrap_err();
    assert_eq!(error.code, SqlErrorCode::Forbidden);
    let all = database.approved_set(&database.schema().with_reads(&[view])).unwrap();
    let approved = sql_guard::check(sql, Dialect::Sqlite, &all, &Limits::default()).unwrap();
    assert_eq!(database.query(&approved, &all, &limits, &cancel).await.unwrap().rows.len(), 3);
}

#[tokio::test]
async fn names_that_the_database_does_not_have_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = sqlite_file(dir.path());
    for (sensitive, withheld) in
        [("custmers", "staff.salary"), ("customers", "staff.pay"), ("customers", "salary")]
    {
        let settings = SqlDatabaseSettings {
            sensitive: vec![sensitive.into()],
            withheld: vec![withheld.into()],
            ..sqlite_settings(path.clone())
        };
        assert_eq!(SqlDatabase::open(settings).await.unwrap_err().code, SqlErrorCode::Settings);
    }
    let database = SqlDatabase::open(sqlite_settings(path)).await.unwrap();
    let error = database.approved_set(&[TableName::new("main", "secret")]).unwrap_err();
    assert_eq!(error.code, SqlErrorCode::UnknownTable);
}

#[tokio::test]
async fn the_products_own_database_is_never_opened() {
    let dir = tempfile::tempdir().unwrap();
    // By its mark.
    let marked = dir.path().join("marked.db");
    let mark = "CREATE TABLE t (a); PRAGMA application_id = 1347571539;";
    rusqlite::Connection::open(&marked).unwrap().execute_batch(mark).unwrap();
    assert_eq!(open_error(&marked, &[]).await, SqlErrorCode::OwnDatabase);
    assert!(include_str!("../../store/schema.rs").contains("0x5052_4f53"), "1347571539 is the store's mark");
    // By its tables, if somebody has removed the mark.
    let migrated = dir.path().join("migrated.db");
    let connection = rusqlite::Connection::open(&migrated).unwrap();
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = std::fs::read_dir(migrations).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        connection.execute_batch(&std::fs::read_to_string(file).unwrap()).unwrap();
    }
    assert_eq!(open_error(&migrated, &[]).await, SqlErrorCode::OwnDatabase);
    // By its folder, also through a link.
    let path = sqlite_file(dir.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for path in [&path, &link] {
        assert_eq!(open_error(path, &[dir.path().to_owned()]).await, SqlErrorCode::OwnDatabase);
    }
}

#[tokio::test]
async fn file_that_is_no_database_is_unreadable_and_none_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text.db");
    std::fs::write(
        &text,
        "not a database, but long enough to be read as the header of one ............................",
    )
    .unwrap();
    let missing = dir.path().join("missing.db");
    for path in [&text, &missing, &dir.path().to_owned(), &PathBuf::from(":memory:"), &PathBuf::from("")] {
        assert_eq!(open_error(path, &[]).await, SqlErrorCode::Unreadable, "{}", path.display());
    }
    let uri = PathBuf::from(format!("file:{}?mode=rwc", missing.display()));
    assert_eq!(open_error(&uri, &[]).await, SqlErrorCode::Unreadable);
    assert!(!missing.exists());
}

#[tokio::test]
async fn rows_cells_bytes_and_long_cells_are_bounded_and_it_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path()).await;
    let sql = "SELECT n, 'x' AS x FROM numbers ORDER BY n";
    let all = QueryLimits::default();
    for (limits, rows, bound) in [
        (all.clone(), 100, None),
        (QueryLimits { max_rows: 100, ..all.clone() }, 100, None),
        (QueryLimits { max_rows: 99, ..all.clone() }, 99, Some(RowBound::Rows)),
        (QueryLimits { max_cells: 21, ..all.clone() }, 10, Some(RowBound::Cells)),
        (QueryLimits { max_bytes: 91, ..all.clone() }, 10, Some(RowBound::Bytes)),
    ] {
        let got = guarded(&database, sql, &limits).await.unwrap();
        assert_eq!((got.rows.len(), got.truncated, got.cut_cells), (rows, bound, 0));
    }
    let short = QueryLimits { max_cell_chars: 2, ..all };
    let got = guarded(&database, "SELECT name FROM customers ORDER BY id", &short).await.unwrap();
    assert_eq!((got.rows[0][0].to_string(), got.rows[4][0].to_string()), ("An…".into(), "Zo…".into()));
    assert_eq!((got.cut_cells, got.truncated), (5, None));
}

#[tokio::test]
async fn a_statement_ends_at_its_deadline_at_its_bound_and_with_its_caller() {
    let dir = tempfile::tempdir().unwrap();
    let settings = SqlDatabaseSettings { max_concurrent: 1, ..sqlite_settings(sqlite_file(dir.path())) };
    let database = SqlDatabase::open(settings).await.unwrap();
    let endless =
        QueryLimits { timeout_ms: 600_000, max_kilo_instructions: u64::MAX, ..QueryLimits::default() };
    let soon = QueryLimits { timeout_ms: 50, ..endless.clone() };
    assert_eq!(unguarded(&database, ENDLESS, &soon).await.unwrap_err().code, SqlErrorCode::Timeout);
    let few = QueryLimits { max_kilo_instructions: 100, ..endless.clone() };
    assert_eq!(unguarded(&database, ENDLESS, &few).await.unwrap_err().code, SqlErrorCode::TooExpensive);
    // Cancelled once the statement runs: it holds the only place.
    let (cancel, set) = (CancellationToken::new(), approved(&database));
    let running = tokio::spawn({
        let (database, cancel, endless) = (database.clone(), cancel.clone(), endless.clone());
        async move { database.execute(ENDLESS, &set, &endless, &cancel, Instant::now()).await }
    });
    eventually("the statement runs", async || database.inner.places.available_permits() == 0).await;
    cancel.cancel();
    assert_eq!(running.await.unwrap().unwrap_err().code, SqlErrorCode::Cancelled);
    eventually("the statement has ended", async || database.inner.places.available_permits() == 1).await;
    // The caller has gone.
    let dropped = tokio::spawn({
        let (database, endless) = (database.clone(), endless.clone());
        async move { unguarded(&database, ENDLESS, &endless).await }
    });
    eventually("the statement runs", async || database.inner.places.available_permits() == 0).await;
    let waiting = QueryLimits { timeout_ms: 1, ..endless.clone() };
    let busy = unguarded(&database, "SELECT 1", &waiting).await.unwrap_err();
    assert!(matches!(busy.code, SqlErrorCode::Busy | SqlErrorCode::Timeout), "{busy}");
    dropped.abort();
    assert_eq!(guarded(&database, "SELECT name FROM customers", &endless).await.unwrap().rows.len(), 5);
}

#[tokio::test]
async fn a_database_is_read_while_others_write_and_busy_while_it_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let path = sqlite_file(dir.path());
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer
        .execute_batch("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; INSERT INTO files VALUES (2, x'00')")
        .unwrap();
    let database = SqlDatabase::open(sqlite_settings(path)).await.unwrap();
    let count = async || unguarded(&database, "SELECT count(*) FROM files", &QueryLimits::default()).await;
    assert_eq!(count().await.unwrap().rows, [[SqlValue::Integer(1)]]);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(count().await.unwrap().rows, [[SqlValue::Integer(2)]]);
    writer.execute_batch("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE").unwrap();
    assert_eq!(count().await.unwrap_err().code, SqlErrorCode::Busy);
}

#[tokio::test]
async fn errors_have_different_codes_and_hold_no_values() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path()).await;
    for (sql, expected) in [
        ("SELECT nome FROM customers", SqlErrorCode::UnknownName),
        ("SELECT name FROM customers WHERE id = abs('hunter2', 1)", SqlErrorCode::Type),
        ("SELECT FROM customers WHERE", SqlErrorCode::Syntax),
        ("SELECT json_extract('hunter2', '$.a')", SqlErrorCode::Data),
        ("SELECT json_extract('{}', 'hunter2')", SqlErrorCode::Data),
        ("SELECT abs(-9223372036854775808)", SqlErrorCode::Data),
        ("SELECT load_extension('hunter2')", SqlErrorCode::Forbidden),
        ("SELECT 1; SELECT 'hunter2'", SqlErrorCode::Forbidden),
    ] {
        let error = unguarded(&database, sql, &QueryLimits::default()).await.unwrap_err();
        assert_eq!(error.code, expected, "{sql}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn a_common_table_expression_with_the_name_of_a_view_reads_no_more_than_the_view() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path()).await;
    for sql in [
        "WITH order_totals AS (SELECT token AS name FROM secrets) SELECT name FROM order_totals",
        "WITH order_totals AS (SELECT salary AS name FROM staff) SELECT name FROM order_totals",
        "WITH leaks AS (SELECT token FROM secrets) SELECT token FROM leaks",
    ] {
        assert_eq!(code(&database, sql).await, Some(SqlErrorCode::Forbidden), "{sql}");
    }
}

#[tokio::test]
async fn check_live_says_what_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path()).await;
    let remarks = database.check_live().await.unwrap();
    assert!(remarks.iter().any(|remark| remark.starts_with("main.loading is left out")), "{remarks:?}");
    std::fs::remove_file(dir.path().join("statements.db")).unwrap();
    assert_eq!(database.check_live().await.unwrap_err().code, SqlErrorCode::Unreadable);
}
