//! Nodes that were suggested for flows.

use sqlx::Row as _;

use super::*;

#[tokio::test]
async fn suggestions_are_found_through_an_index() {
    let (_tmp, store) = fresh().await;
    let plan = format!("EXPLAIN QUERY PLAN {}", crate::store::missing_nodes::query());
    let rows = sqlx::query(sqlx::AssertSqlSafe(plan)).bind("acme").bind("lookup").bind("ada").bind(20);
    let rows = rows.fetch_all(store.pool()).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
    let found = plan.iter().any(|line| line.contains("journal USING INDEX journal_missing_nodes"));
    assert!(found, "{plan:#?}");
}
