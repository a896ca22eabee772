//! Which runs named a document, and which listed one: a projection of their events.

use rusqlite::Connection;

use super::super::record::{JournalRow, StreamId};
use crate::run::{DocumentId, RunId};

/// Writes which documents the runs of `rows` name, and which they list.
pub(in crate::store) fn write_uses(connection: &Connection, rows: &[&JournalRow]) -> rusqlite::Result<()> {
    const USES: &str = "INSERT OR IGNORE INTO document_uses (document, run) VALUES (?, ?)";
    const LISTINGS: &str = "INSERT OR IGNORE INTO document_listings (document, run) VALUES (?, ?)";
    for row in rows {
        if let StreamId::Run(run) = &row.stream {
            write_pairs(connection, USES, &row.change.documents, *run)?;
            write_pairs(connection, LISTINGS, &row.change.listed, *run)?;
        }
    }
    Ok(())
}

fn write_pairs(
    connection: &Connection,
    sql: &str,
    documents: &[DocumentId],
    run: RunId,
) -> rusqlite::Result<()> {
    for document in documents {
        connection.prepare_cached(sql)?.execute([document.to_string(), run.to_string()])?;
    }
    Ok(())
}
