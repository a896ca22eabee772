//! Names are resolved in outlines of real statements, without the text layer and without rewriting.

use proptest::prelude::*;

use super::super::{Limits, grammar, one_statement};
use super::*;

fn set() -> ApprovedSet {
    let table = |name: &str, columns: &[&str], withheld: &[&str], reads: &[&str]| ApprovedTable {
        name: TableName::new("main", name),
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        withheld: withheld.iter().map(|&column| column.to_owned()).collect(),
        reads: reads.iter().map(|&read| TableName::new("main", read)).collect(),
    };
    ApprovedSet {
        default_schema: "main".into(),
        tables: vec![
            table("customers", &["id", "name", "città"], &[], &[]),
            table("orders", &["id", "customer_id", "total"], &[], &[]),
            table("staff", &["id", "name"], &["salary"], &[]),
            table("sales", &["customer_id", "total"], &[], &["orders"]),
            table("leaks", &["name"], &[], &["orders", "secrets"]),
        ],
    }
}

fn uses(sql: &str, dialect: Dialect) -> Result<Uses, Refusal> {
    let limits = Limits::default();
    let statement = one_statement::parse(sql, dialect, &limits)?;
    resolve(&grammar::outline(&statement, dialect, &limits)?, dialect, &set())
}

fn codes(sql: &str) -> [Option<Code>; 2] {
    [Dialect::Sqlite, Dialect::Postgres].map(|dialect| uses(sql, dialect).err().map(|refusal| refusal.code))
}

fn tables(sql: &str) -> Vec<String> {
    uses(sql, Dialect::Sqlite).unwrap().tables.into_iter().map(|table| table.name).collect()
}

#[test]
fn tables_outside_the_set_are_found_wherever_they_are_read() {
    for sql in [
        "SELECT 1 FROM secrets",
        "SELECT 1 FROM \"secrets\"",
        "SELECT 1 FROM SECRETS s",
        "SELECT 1 FROM main.secrets",
        "SELECT 1 FROM other.customers",
        "SELECT 1 FROM customers c JOIN secrets s ON c.id = s.id",
        "SELECT (SELECT max(id) FROM secrets)",
        "SELECT 1 FROM customers WHERE id IN (SELECT id FROM secrets)",
        "SELECT 1 FROM customers WHERE EXISTS (SELECT 1 FROM secrets)",
        "SELECT 1 FROM (SELECT * FROM (SELECT * FROM secrets) a) b",
        "WITH c AS (SELECT * FROM secrets) SELECT 1 FROM c",
        "SELECT id FROM customers UNION SELECT id FROM secrets",
        "SELECT id FROM customers ORDER BY (SELECT max(id) FROM secrets)",
        "SELECT id FROM customers LIMIT (SELECT max(id) FROM secrets)",
        "SELECT count(*) FILTER (WHERE id IN (SELECT id FROM secrets)) FROM customers",
        "SELECT sum(id) OVER (ORDER BY (SELECT id FROM secrets)) FROM customers",
        "SELECT CASE WHEN (SELECT 1 FROM secrets) = 1 THEN 1 END FROM customers",
        "SELECT 1 FROM customers GROUP BY name HAVING count(*) > (SELECT count(*) FROM secrets)",
        "VALUES ((SELECT max(id) FROM secrets))",
    ] {
        assert_eq!(codes(sql), [Some(Code::TableNotApproved); 2], "{sql}");
    }
}

#[test]
fn common_table_expressions_shadow_tables_only_where_both_engines_agree() {
    assert_eq!(tables("WITH secrets AS (SELECT id FROM customers) SELECT id FROM secrets"), ["customers"]);
    assert_eq!(
        tables("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n"),
        Vec::<String>::new()
    );
    assert_eq!(
        tables("WITH a AS (SELECT 1 AS x) SELECT (WITH b AS (SELECT x FROM a) SELECT x FROM b)"),
        Vec::<String>::new()
    );
    for sql in [
        "WITH customers AS (SELECT * FROM customers) SELECT 1 FROM customers",
        "WITH a AS (SELECT * FROM secrets), secrets AS (SELECT 1 AS id) SELECT id FROM a",
        "WITH RECURSIVE a AS (SELECT * FROM secrets), secrets AS (SELECT 1 AS id) SELECT id FROM a",
        "WITH a AS (SELECT 1), A AS (SELECT 2) SELECT * FROM a",
    ] {
        assert_eq!(codes(sql), [Some(Code::CteOrder); 2], "{sql}");
    }
    // The name is out of scope again outside its query, and a name with a schema is never one of WITH.
    for sql in [
        "SELECT (WITH secrets AS (SELECT 1 AS id) SELECT id FROM secrets) FROM secrets",
        "WITH secrets AS (SELECT 1 AS id) SELECT id FROM main.secrets",
    ] {
        assert_eq!(codes(sql), [Some(Code::TableNotApproved); 2], "{sql}");
    }
}

#[test]
fn withheld_columns_are_refused_however_they_are_reached() {
    for sql in [
        "SELECT salary FROM staff",
        "SELECT s.salary FROM staff s",
        "SELECT main.staff.salary FROM staff",
        "SELECT * FROM staff",
        "SELECT staff.* FROM staff, customers",
        "SELECT 1 FROM staff WHERE salary > 1",
        "SELECT 1 FROM staff ORDER BY salary",
        "SELECT c.id FROM customers c JOIN staff s USING (salary)",
        "SELECT 1 FROM customers NATURAL JOIN staff",
        // The engine takes the inner name for the column of `staff`, not for the outer alias.
        "SELECT (SELECT salary FROM staff) FROM (SELECT 1 AS salary) AS s",
        // Here one engine sees the alias in WHERE and the other does not.
        "SELECT id FROM staff WHERE EXISTS (SELECT 1 AS salary FROM customers WHERE salary > 1)",
    ] {
        assert_eq!(codes(sql), [Some(Code::ColumnWithheld); 2], "{sql}");
    }
    assert_eq!(codes("SELECT a.b FROM staff AS a(x, b, c)"), [Some(Code::ColumnWithheld); 2]);
    assert_eq!(codes("SELECT rowid FROM customers"), [Some(Code::ColumnWithheld), Some(Code::UnknownColumn)]);
    assert_eq!(codes("SELECT ctid FROM customers"), [Some(Code::UnknownColumn), Some(Code::ColumnWithheld)]);
    assert_eq!(codes("SELECT id, name FROM staff"), [None; 2]);
}

#[test]
fn whole_rows_unknown_columns_and_the_catalogue_are_refused() {
    assert_eq!(codes("SELECT s FROM staff s"), [Some(Code::WholeRow); 2]);
    assert_eq!(codes("SELECT to_json(staff) FROM staff")[1], Some(Code::WholeRow));
    for sql in ["SELECT \"text\" FROM customers", "SELECT x.id FROM customers", "SELECT id"] {
        assert_eq!(codes(sql), [Some(Code::UnknownColumn); 2], "{sql}");
    }
    for sql in [
        "SELECT 1 FROM sqlite_master",
        "SELECT 1 FROM \"SQLITE_schema\"",
        "SELECT 1 FROM pragma_table_list",
        "SELECT 1 FROM temp.customers",
        "SELECT 1 FROM pg_catalog.pg_class",
        "SELECT 1 FROM pg_user",
        "SELECT 1 FROM information_schema.tables",
    ] {
        assert_eq!(codes(sql), [Some(Code::SystemCatalogue); 2], "{sql}");
    }
}

#[test]
fn views_are_read_only_if_all_that_they_read_is_approved() {
    assert_eq!(tables("SELECT total FROM sales"), ["sales"]);
    assert_eq!(codes("SELECT name FROM leaks"), [Some(Code::ViewNotApproved); 2]);
}

#[test]
fn look_alike_and_cut_names_are_refused() {
    // A Cyrillic `е`, a full-width `c`, a zero-width joiner.
    for sql in [
        "SELECT 1 FROM custom\u{435}rs",
        "SELECT 1 AS \"\u{ff43}\"",
        "SELECT id AS \"i\u{200d}d\" FROM customers",
    ] {
        assert_eq!(codes(sql), [Some(Code::Identifier); 2], "{sql}");
    }
    assert_eq!(codes("SELECT città AS \"quantità\" FROM customers"), [None; 2]);
    let long = format!("SELECT id AS {} FROM customers", "x".repeat(64));
    assert_eq!(codes(&long), [None, Some(Code::Identifier)]);
}

#[test]
fn names_are_folded_as_the_engine_folds_them() {
    assert_eq!(codes("SELECT ID FROM Customers"), [None; 2]);
    assert_eq!(codes("SELECT id FROM \"Customers\""), [None, Some(Code::TableNotApproved)]);
    assert_eq!(codes("SELECT \"ID\" FROM customers"), [None, Some(Code::UnknownColumn)]);
}

#[test]
fn the_columns_that_are_read_are_listed() {
    let uses = uses("SELECT c.name FROM customers c JOIN orders o ON o.customer_id = c.id", Dialect::Sqlite)
        .unwrap();
    let columns: Vec<_> =
        uses.columns.iter().map(|(table, column)| format!("{}.{column}", table.name)).collect();
    assert_eq!(columns, ["customers.id", "customers.name", "orders.customer_id"]);
}

proptest! {
    /// However a read of `secrets` is wrapped, it is found.
    #[test]
    fn no_wrapping_hides_a_table(wraps in proptest::collection::vec(0..6_u8, 0..4)) {
        let mut sql = "SELECT id FROM secrets".to_owned();
        for (level, wrap) in wraps.iter().enumerate() {
            sql = match wrap {
                0 => format!("SELECT id FROM ({sql}) AS t{level}"),
                1 => format!("WITH t{level} AS ({sql}) SELECT id FROM t{level}"),
                2 => format!("SELECT id FROM customers WHERE id IN ({sql})"),
                3 => format!("SELECT id FROM customers UNION ALL SELECT id FROM ({sql}) AS t{level}"),
                4 => format!("SELECT ({sql}) AS id FROM customers"),
                _ => format!("WITH secrets2 AS (SELECT 1 AS id) SELECT a.id FROM secrets2 a JOIN ({sql}) AS t{level} ON a.id = t{level}.id"),
            };
        }
        prop_assert_eq!(codes(&sql), [Some(Code::TableNotApproved); 2], "{}", sql);
    }
}
