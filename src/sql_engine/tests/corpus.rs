//! `statements.yaml`: what each layer does with each statement, on each engine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use secrecy::SecretString;
use serde::Deserialize;

use super::postgres_server::PostgresServer;
use super::*;

const PASSES: &str = "passes";

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
enum Kind {
    SideEffect,
    Access,
    Resource,
    Good,
}

/// What two layers do with a statement: a code, or [`PASSES`].
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Outcome {
    guard: String,
    engine: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    kind: Kind,
    sql: Option<String>,
    sqlite_sql: Option<String>,
    postgres_sql: Option<String>,
    first: Option<String>,
    sqlite: Option<Outcome>,
    postgres: Option<Outcome>,
}

impl Entry {
    /// The statement for `dialect` and what is expected of it.
    fn on(&self, dialect: Dialect) -> Option<(String, &Outcome)> {
        let (own, outcome) = match dialect {
            Dialect::Sqlite => (&self.sqlite_sql, &self.sqlite),
            Dialect::Postgres => (&self.postgres_sql, &self.postgres),
        };
        let outcome = outcome.as_ref()?;
        let sql = own
            .as_ref()
            .or(self.sql.as_ref())
            .unwrap_or_else(|| panic!("{} has no SQL for {dialect}", self.id));
        Some((repeated(sql), outcome))
    }
}

/// `sql` with each `{TEXT*N}` replaced by `TEXT` N times.
fn repeated(sql: &str) -> String {
    let mut out = String::new();
    let mut rest = sql;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        let inner = rest[start + 1..].split('}').next().unwrap();
        match inner.rsplit_once('*').and_then(|(text, times)| Some((text, times.parse::<usize>().ok()?))) {
            Some((text, times)) => {
                out.push_str(&text.repeat(times));
                rest = &rest[start + inner.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[start + 1..];
            }
        }
    }
    out + rest
}

fn entries() -> Vec<Entry> {
    let entries: Vec<Entry> = serde_norway::from_str(&fixture("statements.yaml")).unwrap();
    let ids: BTreeSet<_> = entries.iter().map(|entry| &entry.id).collect();
    assert_eq!(ids.len(), entries.len(), "an id is repeated");
    assert!(entries.len() >= 150, "{} statements", entries.len());
    entries
}

/// Bounds under which abuse ends soon: SQLite's at its instructions, PostgreSQL's at the deadline.
fn limits(dialect: Dialect, kind: Kind) -> QueryLimits {
    let timeout_ms = if dialect == Dialect::Postgres && kind == Kind::Resource { 2_000 } else { 120_000 };
    QueryLimits { timeout_ms, max_kilo_instructions: 2_000, ..QueryLimits::default() }
}

/// The outcome of the guard's layers without an engine.
fn of_guard(sql: &str, dialect: Dialect, set: &ApprovedSet) -> String {
    match sql_guard::check(sql, dialect, set, &Limits::default()) {
        Ok(_) => PASSES.into(),
        Err(refusal) => format!("{}/{}", refusal.layer, refusal.code),
    }
}

/// The outcome of the engine's layer without the guard, whatever rows the statement returns.
async fn of_engine(database: &SqlDatabase, sql: &str, kind: Kind) -> String {
    match unguarded(database, sql, &limits(database.dialect(), kind)).await {
        Ok(_) => PASSES.into(),
        Err(error) => error.code.as_str().trim_start_matches("sql.engine.").to_owned(),
    }
}

/// The first row of a good statement, as it comes through both layers.
async fn first_row(database: &SqlDatabase, sql: &str) -> Result<String, String> {
    let set = approved(database);
    let approved = sql_guard::check(sql, database.dialect(), &set, &Limits::default())
        .map_err(|refusal| refusal.to_string())?;
    let rows = database
        .query(&approved, &set, &limits(database.dialect(), Kind::Good), &CancellationToken::new())
        .await;
    let rows = rows.map_err(|error| error.to_string())?;
    let first =
        rows.rows.first().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"));
    Ok(first.unwrap_or_default())
}

/// Executes every statement for `database` and compares; `unchanged` fails if the database was changed.
async fn check(database: &SqlDatabase, unchanged: impl AsyncFn()) {
    let dialect = database.dialect();
    let set = approved(database);
    let (mut faults, mut layers) = (String::new(), BTreeMap::<(Kind, String), usize>::new());
    let mut count = 0;
    for entry in entries() {
        let Some((sql, expected)) = entry.on(dialect) else { continue };
        count += 1;
        let guard = of_guard(&sql, dialect, &set);
        let engine = if entry.kind == Kind::Good {
            match (first_row(database, &sql).await, &entry.first) {
                (Ok(first), Some(expected)) if first != *expected => {
                    writeln!(faults, "{}: the first row is {first:?}, not {expected:?}", entry.id).unwrap();
                    PASSES.to_owned()
                }
                (Ok(_), _) => PASSES.to_owned(),
                (Err(error), _) => {
                    writeln!(faults, "{}: {error}", entry.id).unwrap();
                    "fails".to_owned()
                }
            }
        } else {
            of_engine(database, &sql, entry.kind).await
        };
        let stopped = [&guard, &engine].iter().filter(|outcome| **outcome != PASSES).count();
        let enough = match entry.kind {
            Kind::SideEffect | Kind::Access => stopped == 2,
            Kind::Resource => stopped >= 1,
            Kind::Good => stopped == 0,
        };
        if !enough {
            writeln!(faults, "{}: {:?}, and {stopped} layers stop it", entry.id, entry.kind).unwrap();
        }
        let actual = Outcome { guard, engine };
        // A busy machine stops by time what an idle one finishes.
        let late = entry.kind == Kind::Resource && actual.engine == "timeout" && expected.engine == PASSES;
        if actual.guard != expected.guard || (actual.engine != expected.engine && !late) {
            writeln!(faults, "ACTUAL {} {dialect} guard={} engine={}", entry.id, actual.guard, actual.engine)
                .unwrap();
        }
        let layer = actual.guard.split('/').next().unwrap_or_default();
        *layers.entry((entry.kind, format!("guard: {layer}"))).or_default() += 1;
        *layers.entry((entry.kind, format!("engine: {}", actual.engine))).or_default() += 1;
    }
    unchanged().await;
    println!("{count} statements on {dialect}");
    for ((kind, layer), count) in layers {
        println!("  {kind:?}: {layer}: {count}");
    }
    assert!(faults.is_empty(), "{dialect}:\n{faults}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_statement_of_the_corpus_is_stopped_or_passed_by_the_layers_that_must_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let path = sqlite_file(dir.path());
    let before = std::fs::read(&path).unwrap();
    let files = || std::fs::read_dir(dir.path()).unwrap().count();
    let database = SqlDatabase::open(sqlite_settings(path.clone())).await.unwrap();
    check(&database, async || {
        assert!(std::fs::read(&path).unwrap() == before, "the file was changed");
        assert_eq!(files(), 1, "a file was written beside the database");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_statement_of_the_corpus_is_stopped_or_passed_by_the_layers_that_must_on_postgres() {
    let Some(server) = PostgresServer::start("corpus on PostgreSQL") else { return };
    server.run("postgres", &fixture("statements_postgres.sql")).await;
    let url = SecretString::from(server.url("reader", "postgres"));
    let settings = SqlDatabaseSettings {
        withheld: vec!["staff.salary".into()],
        ..SqlDatabaseSettings::new("shop", SqlDatabaseKind::Postgres { url })
    };
    let database = SqlDatabase::open(settings).await.unwrap();
    let state = async || {
        let sql = "SELECT (SELECT count(*) FROM customers)::text || ' ' || (SELECT string_agg(name, ',') FROM customers) \
                   || ' ' || (SELECT count(*) FROM audit) || ' ' || (SELECT last_value FROM counter) \
                   || ' ' || (SELECT count(*) FROM pg_class) || ' ' || (SELECT count(*) FROM pg_largeobject_metadata) \
                   || ' ' || (SELECT count(*) FROM pg_roles) || ' ' || (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')";
        let mut owner = server.owner("postgres").await;
        sqlx::query_scalar::<_, String>(sql).fetch_one(&mut owner).await.unwrap()
    };
    let before = state().await;
    check(&database, async || assert_eq!(state().await, before)).await;
}

/// A question of the sample data with its reference, for both engines or for each.
#[derive(Debug, Deserialize)]
struct Pair {
    id: String,
    sql: Option<String>,
    sqlite: Option<String>,
    postgres: Option<String>,
}

/// Executes the references of `sample` with all tables approved; returns the numbers of their rows.
async fn row_counts(database: &SqlDatabase, sample: &str) -> BTreeMap<String, usize> {
    let names: Vec<_> = database.schema().tables.iter().map(|table| table.name.clone()).collect();
    let set = database.approved_set(&names).unwrap();
    let pairs: Vec<Pair> = serde_norway::from_str(&fixture(&format!("pairs_{sample}.yaml"))).unwrap();
    let (mut counts, mut faults) = (BTreeMap::new(), String::new());
    for Pair { id, sql, sqlite, postgres } in pairs {
        let own = if database.dialect() == Dialect::Sqlite { sqlite } else { postgres };
        let sql = own.or(sql).unwrap();
        match sql_guard::check(&sql, database.dialect(), &set, &Limits::default()) {
            Err(refusal) => writeln!(faults, "{id}: {refusal}").unwrap(),
            Ok(approved) => {
                let rows =
                    database.query(&approved, &set, database.limits(), &CancellationToken::new()).await;
                match rows {
                    Ok(rows) => drop(counts.insert(id, rows.rows.len())),
                    Err(error) => writeln!(faults, "{id}: {error}").unwrap(),
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}:\n{faults}", database.dialect());
    assert!(counts.len() >= 50 && counts.values().all(|count| *count > 0), "{counts:?}");
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_questions_pass_both_layers_with_as_many_rows_on_either_engine() {
    let server = PostgresServer::start("references on PostgreSQL");
    let dir = tempfile::tempdir().unwrap();
    let scripts = [("shop", "../../../scenes/text_to_sql/data/shop.sql"), ("university", "university.sql")];
    for (sample, script) in scripts {
        let script = fixture(script);
        let path = dir.path().join(format!("{sample}.db"));
        rusqlite::Connection::open(&path).unwrap().execute_batch(&script).unwrap();
        let kind = SqlDatabaseKind::Sqlite { path };
        let database = SqlDatabase::open(SqlDatabaseSettings::new(sample, kind)).await.unwrap();
        let counts = row_counts(&database, sample).await;
        let Some(server) = &server else { continue };
        let role = format!("{sample}_reader");
        server.run("postgres", &format!("CREATE DATABASE {sample}")).await;
        server.run(sample, &script).await;
        let grants =
            format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}");
        server.run(sample, &grants).await;
        let kind = SqlDatabaseKind::Postgres { url: SecretString::from(server.url(&role, sample)) };
        let database = SqlDatabase::open(SqlDatabaseSettings::new(sample, kind)).await.unwrap();
        assert_eq!(row_counts(&database, sample).await, counts);
    }
}

#[test]
fn repetitions_in_statements_are_expanded() {
    assert_eq!(repeated("SELECT {(*3}1{)*3}"), "SELECT (((1)))");
    assert_eq!(repeated("{SELECT * FROM *2}t"), "SELECT * FROM SELECT * FROM t");
    assert_eq!(repeated("'{\"a\": 1}' {x*0}#>> '{tags,0}'"), "'{\"a\": 1}' #>> '{tags,0}'");
}
