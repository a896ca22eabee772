//! Appends to many streams in one transaction, with each stream checked separately.
//!
//! The statements of a transaction are kept compiled, each is executed once for each of its rows, and the stream heads are
//! cached instead of read ([`heads`]).

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
use rusqlite::{Connection, params};

use super::Store;
use super::approvals;
use super::audit;
use super::claims::Claims;
use super::documents;
use super::error::Error;
use super::heads::{self, StreamHead, advance};
use super::last_results;
use super::learned;
use super::plans;
use super::record::{JournalRow, StreamId};
use super::tenant_bytes::{self, StoredBytes};
use super::writer::WriterGuard;

impl Store {
    /// Appends `groups` in one transaction, in order. Within a group, the rows of one stream are atomic: a
    /// failing stream affects no other stream, but its later rows fail too. The outcome of each group lists
    /// its failed streams.
    ///
    /// With `synced`, the data is on disk when this returns. Without it, the data survives a crash of this
    /// process but not of the machine, until the next synced append or [`Store::sync`]. The transaction is executed on
    /// the caller's thread, which waits for the disk: the journal has one of its own.
    ///
    /// # Errors
    /// Failures of the whole transaction, of which nothing is stored. If the commit itself failed, all or
    /// nothing is stored, and only reading can tell which.
    pub(crate) async fn append(
        &self,
        groups: &[Vec<JournalRow>],
        synced: bool,
    ) -> Result<Vec<AppendOutcome>, Error> {
        const DOING: &str = "append to the journal";
        let locked = self.journal_writer()?.lock().await;
        let mut writing = locked.map_err(|e| Error::database(self.path(), DOING, &e))?;
        let max = self.max_tenant_bytes();
        let mut written = write(&mut writing, groups, max, synced, false);
        if written.as_ref().is_err_and(is_unique_violation) {
            // The cached heads are wrong: another writer has changed a stream. Retry with the stored heads.
            writing.discard_journal();
            written = write(&mut writing, groups, max, synced, true);
        }
        if written.is_err() {
            writing.discard_journal();
        }
        written.map_err(|e| Error::sqlite(self.path(), DOING, &e))
    }

    /// [`Store::append`], synced.
    #[cfg(test)]
    pub(crate) async fn write(&self, groups: &[Vec<JournalRow>]) -> Result<Vec<AppendOutcome>, Error> {
        self.append(groups, true).await
    }

    /// Fsyncs earlier appends that were not synced.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) async fn sync(&self) -> Result<(), Error> {
        // SQLite appends commits to this file and locks only its other files, so opening it here is safe.
        let log = self.wal_path();
        let synced = tokio::task::spawn_blocking(move || std::fs::File::open(log)?.sync_data()).await;
        let synced = synced.unwrap_or_else(|stopped| Err(std::io::Error::other(stopped)));
        synced.map_err(|e| Error::io(self.path(), "fsync the journal", &e))
    }
}

/// The outcome of one group: the streams that failed, empty on success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppendOutcome {
    pub(crate) failures: Vec<(StreamId, Error)>,
}

/// The rows of a transaction that were checked and may be written, and what the next ones are checked against.
struct CheckedBatch<'g> {
    /// After the accepted rows.
    heads: BTreeMap<&'g StreamId, StreamHead>,
    claims: Claims,
    stored: StoredBytes,
    /// The streams of which a row was refused.
    broken: BTreeMap<&'g StreamId, Error>,
    accepted: Vec<&'g JournalRow>,
}

impl<'g> CheckedBatch<'g> {
    /// Accepts the rows of a group, or those of its streams that can be continued.
    fn add(&mut self, group: &'g [JournalRow]) -> AppendOutcome {
        let mut streams: BTreeMap<&StreamId, Vec<&JournalRow>> = BTreeMap::new();
        for row in group {
            streams.entry(&row.stream).or_default().push(row);
        }
        let mut failures = Vec::new();
        for (stream, rows) in streams {
            match self.check(stream, &rows) {
                Ok(head) => {
                    self.heads.insert(stream, head);
                    self.accepted.extend(rows);
                }
                Err(error) => {
                    self.broken.insert(stream, error.clone());
                    failures.push((stream.clone(), error));
                }
            }
        }
        AppendOutcome { failures }
    }

    /// The head of a stream after these rows, if they may follow.
    fn check(&mut self, stream: &StreamId, rows: &[&JournalRow]) -> Result<StreamHead, Error> {
        if let Some(error) = self.broken.get(stream) {
            return Err(error.clone());
        }
        let head = advance(self.heads.get(stream), rows)?;
        self.stored.add(rows)?;
        self.claims.add(stream, rows)?;
        Ok(head)
    }
}

/// One attempt, based on the cached stream heads, or with `read` on the stored heads of all streams.
fn write(
    writing: &mut WriterGuard<'_>,
    groups: &[Vec<JournalRow>],
    max_tenant_bytes: Option<u64>,
    synced: bool,
    read: bool,
) -> rusqlite::Result<Vec<AppendOutcome>> {
    let (connection, remembered) = writing.journal()?;
    let (mut heads, mut unknown) = remembered.take(groups);
    if read {
        unknown = groups.iter().flatten().map(|row| &row.stream).collect();
    }
    if !unknown.is_empty() {
        heads.extend(heads::read_heads(connection, unknown)?);
    }
    let mut batch = CheckedBatch {
        heads,
        claims: Claims::read(connection, groups)?,
        stored: StoredBytes::read(connection, groups, max_tenant_bytes)?,
        broken: BTreeMap::new(),
        accepted: Vec::new(),
    };
    let outcomes = groups.iter().map(|group| batch.add(group)).collect();
    let CheckedBatch { mut heads, claims, accepted, .. } = batch;
    if accepted.is_empty() {
        return Ok(outcomes);
    }
    let touched: BTreeSet<&StreamId> = accepted.iter().map(|row| &row.stream).collect();
    heads.retain(|stream, _| touched.contains(stream));
    writing.set_synced(synced)?;
    let (connection, remembered) = writing.journal()?;
    commit(connection, &accepted, &heads, &claims)?;
    for (stream, head) in heads {
        remembered.remember(stream, head);
    }
    Ok(outcomes)
}

/// Whether the error says that a row to insert already exists.
fn is_unique_violation(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(SQLITE_CONSTRAINT_PRIMARYKEY | SQLITE_CONSTRAINT_UNIQUE))
}

/// Writes the rows and updates the rows of their streams in the lists. After an error the transaction is still open.
fn commit(
    connection: &Connection,
    rows: &[&JournalRow],
    heads: &BTreeMap<&StreamId, StreamHead>,
    claims: &Claims,
) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    insert_events(connection, rows)?;
    last_results::write_results(connection, rows)?;
    documents::write_uses(connection, rows)?;
    write_heads(connection, heads)?;
    tenant_bytes::add_bytes(connection, rows)?;
    claims.insert(connection)?;
    approvals::write_approvals(connection, &approvals::approval_changes(rows, heads))?;
    audit::write(connection, &audit::audit_decisions(rows))?;
    learned::write_learned(connection, rows)?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

fn insert_events(connection: &Connection, rows: &[&JournalRow]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO journal (stream, seq, session, tenant, at, epoch, schema, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for rows in rows.chunk_by(|row, next| row.stream == next.stream) {
        let Some(first) = rows.first() else { continue };
        let stream = first.stream.to_string();
        for row in rows {
            let (session, tenant) = (row.session.as_str(), row.tenant.as_str());
            insert.execute(params![
                stream, row.seq, session, tenant, row.at, row.epoch, row.schema, row.body
            ])?;
        }
    }
    Ok(())
}

/// Writes the changed runs, conversations and plans.
fn write_heads(connection: &Connection, heads: &BTreeMap<&StreamId, StreamHead>) -> rusqlite::Result<()> {
    for (stream, head) in heads {
        match stream {
            StreamId::Run(run) => write_run(connection, &run.to_string(), head)?,
            StreamId::Session(..) => write_session(connection, head)?,
        }
    }
    Ok(())
}

/// Writes the row of a run, and of its plan if that has changed.
fn write_run(connection: &Connection, run: &str, head: &StreamHead) -> rusqlite::Result<()> {
    if !(head.is_listed && update_run(connection, run, head)?) {
        insert_run(connection, run, head)?;
    }
    match head.plan.as_ref().and_then(|plan| plan.changed_row(run)) {
        Some(plan) => plans::write_plan(connection, &plan),
        None => Ok(()),
    }
}

/// Updates the row of a run whose status has not changed, which no index has anything of: a third of the time of
/// [`insert_run`], and most commits with events of a run change no status. Whether there is such a row.
fn update_run(connection: &Connection, run: &str, head: &StreamHead) -> rusqlite::Result<bool> {
    let mut update =
        connection.prepare_cached("UPDATE runs SET updated = ?, epoch = ?, last_seq = ? WHERE run = ?")?;
    Ok(update.execute(params![head.updated, head.epoch, head.last_seq, run])? == 1)
}

fn insert_run(connection: &Connection, run: &str, head: &StreamHead) -> rusqlite::Result<()> {
    let mut write = connection.prepare_cached(
        "INSERT INTO runs (run, tenant, session, status, created, updated, epoch, last_seq, request) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (run) DO UPDATE SET request = excluded.request, status = excluded.status, \
         updated = excluded.updated, epoch = excluded.epoch, last_seq = excluded.last_seq",
    )?;
    let (tenant, session) = (head.tenant.as_str(), head.session.as_str());
    let status = <&'static str>::from(head.status);
    let (created, updated, request) = (head.created, head.updated, head.request.as_str());
    let counts = (head.epoch, head.last_seq);
    write
        .execute(params![run, tenant, session, status, created, updated, counts.0, counts.1, request])
        .map(drop)
}

/// Writes the row of a conversation.
fn write_session(connection: &Connection, head: &StreamHead) -> rusqlite::Result<()> {
    let mut write = connection.prepare_cached(
        "INSERT INTO sessions (tenant, session, turns, created, updated, epoch, last_seq) \
         VALUES (?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (tenant, session) DO UPDATE SET turns = excluded.turns, updated = excluded.updated, \
         epoch = excluded.epoch, last_seq = excluded.last_seq",
    )?;
    let (tenant, session) = (head.tenant.as_str(), head.session.as_str());
    write
        .execute(params![tenant, session, head.turns, head.created, head.updated, head.epoch, head.last_seq])
        .map(drop)
}
