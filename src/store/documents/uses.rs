//! Which runs named a document: a projection of their first events.

use sqlx::{QueryBuilder, Sqlite};

use super::super::record::{JournalRow, StreamId};
use super::super::write::MAX_ROWS;

/// Adds the statements that write which documents the runs of `rows` name.
pub(in crate::store) fn write_uses(sql: &mut QueryBuilder<Sqlite>, rows: &[&JournalRow]) {
    let mut uses: Vec<(String, String)> = Vec::new();
    for row in rows {
        if let StreamId::Run(run) = &row.stream {
            let run = run.to_string();
            uses.extend(row.change.documents.iter().map(|document| (document.to_string(), run.clone())));
        }
    }
    for uses in uses.chunks(MAX_ROWS) {
        sql.push("; INSERT OR IGNORE INTO document_uses (document, run) ");
        sql.push_values(uses, |mut values, (document, run)| {
            values.push_bind(document.as_str()).push_bind(run.as_str());
        });
    }
}
