//! The grammar layer alone: no approved set, so every name passes.

use super::super::one_statement;
use super::*;

fn codes(sql: &str) -> [Option<Code>; 2] {
    let limits = Limits::default();
    [Dialect::Sqlite, Dialect::Postgres].map(|dialect| {
        one_statement::parse(sql, dialect, &limits)
            .and_then(|statement| outline(&statement, dialect, &limits))
            .err()
            .map(|refusal| refusal.code)
    })
}

#[test]
fn statements_that_are_no_queries_are_refused() {
    for sql in [
        "DELETE FROM t",
        "INSERT INTO t VALUES (1) RETURNING *",
        "UPDATE t SET a = 1",
        "DROP TABLE t",
        "CREATE TABLE t (a INT)",
        "CREATE VIEW v AS SELECT 1",
        "BEGIN",
        "COMMIT",
        "EXPLAIN SELECT 1",
        "VACUUM",
    ] {
        let codes = codes(sql);
        let refused = |code: &Option<Code>| matches!(code, Some(Code::NotAQuery | Code::Syntax));
        assert!(codes.iter().all(refused), "{sql}: {codes:?}");
    }
}

#[test]
fn writes_inside_queries_are_refused() {
    for sql in [
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
        "WITH d AS (SELECT 1) DELETE FROM t",
        "WITH d AS (SELECT 1) INSERT INTO t SELECT * FROM d",
        "SELECT * INTO copy FROM t",
    ] {
        assert_eq!(codes(sql), [Some(Code::Clause); 2], "{sql}");
    }
    assert_eq!(codes("SELECT a FROM t FOR UPDATE")[1], Some(Code::Clause));
    assert!(codes("TABLE t").iter().all(Option::is_some));
}

#[test]
fn functions_operators_types_and_literals_outside_the_lists_are_refused() {
    for (sql, code) in [
        ("SELECT pg_sleep(1)", Code::Function),
        ("SELECT pg_catalog.lower('a')", Code::Function),
        ("SELECT zeroblob(1)", Code::Function),
        ("SELECT \"LOAD_extension\"('x')", Code::Function),
        ("SELECT * FROM pg_ls_dir('.')", Code::Function),
        ("SELECT printf('%*d', 9, 1)", Code::Function),
        ("SELECT CAST('t' AS regclass)", Code::DataType),
        ("SELECT CAST('t' AS my_type)", Code::DataType),
        ("SELECT CAST('t' AS char(100000))", Code::DataType),
        ("SELECT lpad('a', 100000)", Code::Argument),
    ] {
        let codes = codes(sql);
        assert!(codes.iter().all(Option::is_some) && codes.contains(&Some(code)), "{sql}: {codes:?}");
    }
    for (sql, code) in [
        ("SELECT current_user", Code::Function),
        ("SELECT 't'::regclass", Code::DataType),
        ("SELECT $$text$$", Code::Literal),
        ("SELECT E'a'", Code::Literal),
        ("SELECT $1", Code::Literal),
        ("SELECT (a).b FROM t", Code::Expression),
        ("SELECT 1 OPERATOR(public.+) 2", Code::Operator),
        ("SELECT format('%1$*2$s', 'a', 9)", Code::Argument),
        ("SELECT count(t.*) FROM t", Code::Clause),
    ] {
        assert_eq!(codes(sql)[1], Some(code), "{sql}");
    }
    for (sql, code) in [
        ("SELECT a FROM 'sqlite_master'", Code::Identifier),
        ("SELECT a FROM t WHERE a MATCH 'x'", Code::Operator),
        ("SELECT a FROM t WHERE a = ?1", Code::Literal),
        ("SELECT format('%*d', 9, 1)", Code::Argument),
    ] {
        let found = codes(sql)[0];
        assert!(found == Some(code) || found == Some(Code::Syntax), "{sql}: {found:?}");
    }
}

#[test]
fn large_statements_are_refused_and_long_chains_pass() {
    super::super::on_large_stack(|| {
        let chain = |length| format!("SELECT a FROM t WHERE {}a = 1", "a = 1 OR ".repeat(length));
        assert_eq!(codes(&chain(100)), [None; 2]);
        assert_eq!(codes(&chain(3000)), [Some(Code::TooComplex); 2]);
        let tables = (0..17).map(|n| format!("t t{n}")).collect::<Vec<_>>().join(", ");
        assert_eq!(codes(&format!("SELECT 1 FROM {tables}")), [Some(Code::TooComplex); 2]);
    })
    .unwrap();
}

#[test]
fn ordinary_queries_of_both_dialects_pass() {
    for sql in [
        "SELECT DISTINCT a, count(*) AS n, sum(b) FILTER (WHERE b > 0) FROM t GROUP BY a HAVING count(*) > 1 ORDER BY n DESC LIMIT 5 OFFSET 2",
        "SELECT a, row_number() OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT CASE WHEN a IS NULL THEN 'none' ELSE upper(a) END FROM t WHERE b BETWEEN 1 AND 2 AND c NOT LIKE 'x%'",
        "SELECT a FROM t LEFT JOIN u USING (id) UNION ALL SELECT CAST(b AS TEXT) FROM v",
        "VALUES (1, 'a'), (2, NULL)",
        "SELECT data -> 'a' ->> 'b' FROM t",
        "SELECT a FROM t WINDOW w AS (ORDER BY a)",
        "SELECT a FROM t WHERE (a, b) IN (SELECT a, b FROM u)",
    ] {
        assert_eq!(codes(sql), [None; 2], "{sql}");
    }
    for sql in [
        "SELECT date_trunc('month', d)::date, EXTRACT(YEAR FROM d), d + INTERVAL '1 day' FROM t",
        "SELECT DISTINCT ON (a) a, array_agg(b ORDER BY b) FROM t WHERE a = ANY(ARRAY[1, 2]) AND b ~* 'x' ORDER BY a",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t, LATERAL (SELECT 1) x, generate_series(1, 3) AS g",
        "SELECT a, b FROM t GROUP BY ROLLUP (a, b)",
    ] {
        assert_eq!(codes(sql)[1], None, "{sql}");
    }
    for sql in [
        "SELECT [a], `b` FROM t LIMIT 5, 10",
        "SELECT x'00ff', printf('%05.2f', a), strftime('%Y-%m', d) FROM t, json_each(t.j)",
    ] {
        assert_eq!(codes(sql)[0], None, "{sql}");
    }
}
