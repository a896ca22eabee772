use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::*;
use crate::staged::{
    CellValue, ColumnDefinition, ColumnKind, EntryRule, FilledBy, RowFilter, TableDefinition, TableRow,
};
use crate::tools::{SceneStore, ToolErrorKind, testing};

fn column(name: &str, kind: ColumnKind) -> ColumnDefinition {
    ColumnDefinition { name: name.to_owned(), kind, optional: false, values: Vec::new(), filled: None }
}

/// Items with one of each kind of column, and entries of their changes.
fn shop() -> Arc<SceneTables> {
    let items = TableDefinition {
        name: "items".to_owned(),
        description: String::new(),
        columns: vec![
            column("sku", ColumnKind::Text),
            column("stock", ColumnKind::Integer),
            ColumnDefinition { optional: true, ..column("weight", ColumnKind::Decimal { scale: 2 }) },
            column("fragile", ColumnKind::Boolean),
            column("since", ColumnKind::Day),
        ],
        key: vec!["sku".to_owned()],
        checks: vec!["stock >= 0".to_owned()],
        append_only: false,
        records: None,
        initial: vec![item("cup", 3), item("pot", 1)],
    };
    let sales = TableDefinition {
        name: "sales".to_owned(),
        description: String::new(),
        columns: vec![
            ColumnDefinition { filled: Some(FilledBy::Id), ..column("id", ColumnKind::Text) },
            column("sku", ColumnKind::Text),
            column("change", ColumnKind::Integer),
        ],
        key: vec!["id".to_owned()],
        checks: Vec::new(),
        append_only: true,
        records: Some(EntryRule {
            table: "items".to_owned(),
            by: BTreeMap::from([("sku".to_owned(), "sku".to_owned())]),
            amounts: BTreeMap::from([("change".to_owned(), "stock".to_owned())]),
            checks: Vec::new(),
        }),
        initial: Vec::new(),
    };
    Arc::new(SceneTables(vec![items, sales]))
}

fn item(sku: &str, stock: i64) -> TableRow {
    [
        ("sku", CellValue::Text(sku.to_owned())),
        ("stock", CellValue::Integer(stock)),
        ("weight", CellValue::Null),
        ("fragile", CellValue::Boolean(stock % 2 == 0)),
        ("since", CellValue::Text(format!("2026-01-0{}", stock % 9 + 1))),
    ]
    .map(|(name, cell)| (name.to_owned(), cell))
    .into()
}

/// A store with the tables, created as at two starts.
async fn store() -> (tempfile::TempDir, sqlx::SqlitePool) {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new().filename(directory.path().join("t.db")).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
    for _ in 0..2 {
        sqlx::raw_sql(sqlx::AssertSqlSafe(schema("Shop", &shop()))).execute(&pool).await.unwrap();
    }
    (directory, pool)
}

fn context(pool: &sqlx::SqlitePool, tenant: &str, key: &str) -> ToolContext {
    let mut context = testing::context();
    context.store = SceneStore::new(pool.clone()).with_tables("Shop", shop());
    context.principal.tenant = crate::run::TenantId::new(tenant).unwrap();
    context.idempotency_key = Some(key.to_owned());
    context
}

/// Sells one piece of an item.
async fn sell(pool: &sqlx::SqlitePool, key: &str, sku: &str) -> Result<WriteDiff, ToolError> {
    staged_sale(pool, key, sku).await?.commit().await
}

async fn staged_sale(pool: &sqlx::SqlitePool, key: &str, sku: &str) -> Result<TableSession, ToolError> {
    let mut tables = context(pool, "acme", key).tables()?;
    let stock = tables.get("items", json!(sku)).await?["stock"].as_i64().unwrap();
    tables.update("items", json!(sku), json!({"stock": stock - 1})).await?;
    tables.insert("sales", json!({"sku": sku, "change": -1})).await?;
    Ok(tables)
}

async fn stock(pool: &sqlx::SqlitePool, tenant: &str) -> Vec<Value> {
    let mut tables = context(pool, tenant, "read").tables().unwrap();
    let rows = tables.find("items", json!({})).await.unwrap();
    rows.iter().map(|row| json!([row["sku"], row["stock"]])).collect()
}

async fn sold(pool: &sqlx::SqlitePool) -> usize {
    context(pool, "acme", "read").tables().unwrap().find("sales", json!({})).await.unwrap().len()
}

#[tokio::test]
async fn tenant_begins_with_the_declared_rows_and_has_rows_of_its_own() {
    let (_directory, pool) = store().await;
    sell(&pool, "k1", "cup").await.unwrap();
    assert_eq!(stock(&pool, "acme").await, [json!(["cup", 2]), json!(["pot", 1])]);
    assert_eq!(stock(&pool, "other").await, [json!(["cup", 3]), json!(["pot", 1])]);
    let mut without = context(&pool, "third", "read");
    without.settings = json!({"initial_rows": false});
    assert!(without.tables().unwrap().find("items", json!({})).await.unwrap().is_empty());
}

#[tokio::test]
async fn key_commits_once_and_tells_a_repeated_call_what_it_did() {
    let (_directory, pool) = store().await;
    let (first, second) =
        (staged_sale(&pool, "k1", "cup").await.unwrap(), staged_sale(&pool, "k1", "cup").await.unwrap());
    let other = staged_sale(&pool, "k1", "pot").await.unwrap();
    assert_eq!(first.commit().await.unwrap(), second.commit().await.unwrap());
    assert_eq!(sold(&pool).await, 1);
    let (base, forged) = other.staged();
    let host = other.host().clone();
    // As a tool that is repeated and stages something else: it gets what it did before.
    assert_eq!(other.commit().await.unwrap().changes.len(), 2);
    assert_eq!(sold(&pool).await, 1);
    let tables = context(&pool, "acme", "k1").tenant_tables().unwrap();
    let error = tables
        .commit(CommitTerms { key: "k1", host: &host, result: None }, &base, &forged)
        .await
        .unwrap_err();
    assert_eq!((error.code.as_str(), error.kind), ("staged.key_reused", ToolErrorKind::Refused));
    let done = context(&pool, "acme", "k1").tables().unwrap().committed().await.unwrap();
    assert_eq!(done.unwrap().changes.len(), 2);
    assert!(context(&pool, "acme", "k2").tables().unwrap().committed().await.unwrap().is_none());
    assert!(context(&pool, "other", "k1").tables().unwrap().committed().await.unwrap().is_none());
}

#[tokio::test]
async fn of_two_sales_of_the_last_piece_one_is_a_conflict_and_changes_nothing() {
    let (_directory, pool) = store().await;
    let (one, two) =
        (staged_sale(&pool, "k1", "pot").await.unwrap(), staged_sale(&pool, "k2", "pot").await.unwrap());
    let (one, two) = tokio::join!(one.commit(), two.commit());
    let failed: Vec<_> = [one, two].into_iter().filter_map(Result::err).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].code.as_str(), failed[0].kind), ("staged.conflict", ToolErrorKind::Refused));
    assert_eq!(sold(&pool).await, 1);
    assert_eq!(stock(&pool, "acme").await[1], json!(["pot", 0]));
    // A repetition reads again, and finds nothing left.
    let error = sell(&pool, "k3", "pot").await.unwrap_err();
    assert_eq!(error.code, "staged.check");
}

#[tokio::test]
async fn commit_that_breaks_a_rule_changes_nothing() {
    let (_directory, pool) = store().await;
    let mut tables = context(&pool, "acme", "k1").tables().unwrap();
    tables.update("items", json!("cup"), json!({"stock": 1})).await.unwrap();
    tables.update("items", json!("pot"), json!({"stock": 0})).await.unwrap();
    tables.insert("sales", json!({"sku": "cup", "change": -2})).await.unwrap();
    let error = tables.commit().await.unwrap_err();
    assert_eq!((error.code.as_str(), error.kind), ("staged.rule", ToolErrorKind::Refused));
    assert_eq!(stock(&pool, "acme").await, [json!(["cup", 3]), json!(["pot", 1])]);
    assert_eq!(sold(&pool).await, 0);
}

#[tokio::test]
async fn forged_diff_or_base_is_refused_by_the_commit_itself() {
    let (_directory, pool) = store().await;
    let tables = context(&pool, "acme", "k1").tenant_tables().unwrap();
    let session = staged_sale(&pool, "k1", "cup").await.unwrap();
    let host = session.host().clone();
    let terms = CommitTerms { key: "k1", host: &host, result: None };
    let (base, honest) = session.staged();
    let written = serde_json::to_value(&honest).unwrap();
    let forged = |pointer: &str, value: Value| {
        let mut forged = written.clone();
        *forged.pointer_mut(pointer).unwrap() = value;
        WriteDiff::read(&shop(), &forged).unwrap()
    };
    let code = |diff: WriteDiff| {
        let (tables, base) = (&tables, &base);
        async move { tables.commit(terms, base, &diff).await.map_err(|error| error.code) }
    };
    assert_eq!(code(forged("/0/after/stock", json!(-1))).await, Err("staged.check".to_owned()));
    assert_eq!(code(forged("/0/after/stock", json!(1))).await, Err("staged.rule".to_owned()));
    assert_eq!(code(forged("/0/before/stock", json!(4))).await, Err("staged.rule".to_owned()));
    assert_eq!(code(forged("/0/before/fragile", json!(true))).await, Err("staged.conflict".to_owned()));
    let unread = tables.commit(terms, &ReadBase::default(), &honest).await.unwrap_err();
    assert_eq!(unread.code, "staged.arguments");
    let stranger = HostValues { id: "mallory".to_owned(), ..host.clone() };
    let other = tables
        .commit(CommitTerms { key: "k1", host: &stranger, result: None }, &base, &honest)
        .await
        .unwrap_err();
    assert_eq!(other.code, "staged.value");
    assert_eq!(code(honest).await, Ok(false));
}

#[tokio::test]
async fn table_of_an_earlier_start_with_other_columns_is_an_error_at_the_start() {
    let (_directory, pool) = store().await;
    let mut tables = shop().as_ref().clone();
    tables.0[0].columns.push(column("colour", ColumnKind::Text));
    let again = sqlx::raw_sql(sqlx::AssertSqlSafe(schema("Shop", &tables))).execute(&pool).await;
    assert!(again.unwrap_err().to_string().contains("colour"));
}

fn filter() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        "[a-d]".prop_map(|sku| json!({"sku": sku})),
        ("[a-d]", "[a-d]").prop_map(|(a, b)| json!({"sku": [a, b]})),
        Just(json!({"sku": []})),
        (0..9_i64, 0..9_i64).prop_map(|(low, high)| json!({"stock": {"gte": low, "lt": high}})),
        (0..9_i64).prop_map(|stock| json!({"stock": {"gt": stock}, "fragile": true})),
        Just(json!({"weight": null})),
        (0..9_i64).prop_map(|weight| json!({"weight": {"lte": weight}})),
        (0..9_i64).prop_map(|weight| json!({"weight": [null, format!("{weight}.50")]})),
        (1..9_u8).prop_map(|day| json!({"since": {"gt": format!("2026-01-0{day}")}})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn store_finds_exactly_the_rows_that_pass_a_filter(
        rows in prop::collection::btree_map("[a-d]", (0..9_i64, prop::option::of(0..900_i64)), 0..5),
        filters in prop::collection::vec(filter(), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
            sqlx::raw_sql(sqlx::AssertSqlSafe(schema("Shop", &shop()))).execute(&pool).await.unwrap();
            let mut context = context(&pool, "acme", "k");
            context.settings = json!({"initial_rows": false});
            let tables = context.tenant_tables().unwrap();
            let stored: Vec<TableRow> = rows.iter().map(|(sku, (stock, weight))| {
                let weight = weight.map_or(CellValue::Null, |units| CellValue::Decimal { units, scale: 2 });
                let mut row = item(sku, *stock);
                row.insert("weight".to_owned(), weight);
                row
            }).collect();
            let mut db = pool.acquire().await.unwrap();
            for row in &stored {
                let table = &shop().0[0];
                inserted(&tables.names, table, "acme", row, 7).build().execute(&mut *db).await.unwrap();
                inserted(&tables.names, table, "other", row, 7).build().execute(&mut *db).await.unwrap();
            }
            drop(db);
            for asked in filters {
                let filter = RowFilter::read(&shop().0[0], asked.as_object().unwrap()).unwrap();
                let found = tables.read(&TableReading::Range("items".to_owned(), filter.clone())).await.unwrap();
                let found: Vec<TableRow> = found.into_iter().map(|row| row.values).collect();
                let expected: Vec<TableRow> = stored.iter().filter(|row| filter.matches(row)).cloned().collect();
                assert_eq!(found, expected, "{asked}");
            }
        });
    }
}
