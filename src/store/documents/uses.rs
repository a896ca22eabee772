//! Which runs named a document, and which listed one: a projection of their events.

use sqlx::{QueryBuilder, Sqlite};

use super::super::record::{JournalRow, StreamId};
use super::super::write::MAX_ROWS;
use crate::run::DocumentId;

/// Adds the statements that write which documents the runs of `rows` name, and which they list.
pub(in crate::store) fn write_uses(sql: &mut QueryBuilder<Sqlite>, rows: &[&JournalRow]) {
    write_pairs(sql, "document_uses", rows, |row| &row.change.documents);
    write_pairs(sql, "document_listings", rows, |row| &row.change.listed);
}

fn write_pairs(
    sql: &mut QueryBuilder<Sqlite>,
    table: &str,
    rows: &[&JournalRow],
    of: fn(&JournalRow) -> &[DocumentId],
) {
    let mut uses: Vec<(String, String)> = Vec::new();
    for row in rows {
        if let StreamId::Run(run) = &row.stream {
            let run = run.to_string();
            uses.extend(of(row).iter().map(|document| (document.to_string(), run.clone())));
        }
    }
    for uses in uses.chunks(MAX_ROWS) {
        sql.push(format!("; INSERT OR IGNORE INTO {table} (document, run) "));
        sql.push_values(uses, |mut values, (document, run)| {
            values.push_bind(document.as_str()).push_bind(run.as_str());
        });
    }
}
