//! Appends to many streams in one transaction, with each stream checked separately.
//!
//! Every statement costs a round trip to the database's thread. So a whole transaction is one constant
//! text of several statements that takes all its rows as JSON lists, and the stream heads are cached
//! instead of read ([`heads`]).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::Store;
use super::approvals;
use super::audit;
use super::claims::Claims;
use super::error::Error;
use super::heads::{self, StreamHead, advance};
use super::plans;
use super::record::{JournalRow, StreamId};
use super::tenant_bytes::{self, StoredBytes};
use super::writer::WriterGuard;

/// Inserts the rows of one transaction. Texts that may be long are concatenated in a separate parameter,
/// and the lists hold their offsets: inside a list they would be parsed again for each column. (A substring
/// of an empty parameter is NULL.)
const INSERT_ROWS: &str = "\
    INSERT INTO journal (stream, seq, session, tenant, at, epoch, schema, body) \
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, \
    CAST(substr(?, value ->> 7, value ->> 8) AS TEXT) FROM json_each(?); \
    INSERT INTO runs (run, tenant, session, status, created, updated, epoch, last_seq, request) \
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, \
    coalesce(CAST(substr(?, value ->> 8, value ->> 9) AS TEXT), '') FROM json_each(?) WHERE true \
    ON CONFLICT (run) DO UPDATE SET request = excluded.request, status = excluded.status, \
    updated = excluded.updated, epoch = excluded.epoch, last_seq = excluded.last_seq; \
    INSERT INTO sessions (tenant, session, turns, created, updated, epoch, last_seq) \
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6 \
    FROM json_each(?) WHERE true \
    ON CONFLICT (tenant, session) DO UPDATE SET turns = excluded.turns, \
    updated = excluded.updated, epoch = excluded.epoch, last_seq = excluded.last_seq";

impl Store {
    /// Appends `groups` in one transaction, in order. Within a group, the rows of one stream are atomic: a
    /// failing stream affects no other stream, but its later rows fail too. The outcome of each group lists
    /// its failed streams.
    ///
    /// With `synced`, the data is on disk when this returns. Without it, the data survives a crash of this
    /// process but not of the machine, until the next synced append or [`Store::sync`].
    ///
    /// # Errors
    /// Failures of the whole transaction, of which nothing is stored. If the commit itself failed, all or
    /// nothing is stored, and only reading can tell which.
    pub(crate) async fn append(
        &self,
        groups: &[Vec<JournalRow>],
        synced: bool,
    ) -> Result<Vec<AppendOutcome>, Error> {
        let failed = |e| Error::database(self.path(), "append to the journal", &e);
        let mut writing = self.journal_writer()?.lock().await.map_err(failed)?;
        let most = self.max_tenant_bytes();
        let mut written = write(&mut writing, groups, most, synced, false).await;
        if written.as_ref().is_err_and(is_unique_violation) {
            // The cached heads are wrong: another writer has changed a stream. Retry with the stored heads.
            writing.discard();
            written = write(&mut writing, groups, most, synced, true).await;
        }
        if written.is_err() {
            writing.discard();
        }
        written.map_err(failed)
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
        let mut log = self.path().as_os_str().to_owned();
        log.push("-wal");
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

/// One attempt, based on the cached stream heads, or with `read` on the stored heads of all streams.
async fn write(
    writing: &mut WriterGuard<'_>,
    groups: &[Vec<JournalRow>],
    max_tenant_bytes: Option<u64>,
    synced: bool,
    read: bool,
) -> Result<Vec<AppendOutcome>, sqlx::Error> {
    let (connection, remembered) = writing.connection_and_heads().await?;
    let (mut heads, mut unknown) = remembered.lookup(groups);
    if read {
        unknown = groups.iter().flatten().map(|row| &row.stream).collect();
    }
    if !unknown.is_empty() {
        heads.extend(heads::read_heads(connection, unknown).await?);
    }
    let mut claims = Claims::read(connection, groups).await?;
    let mut stored = StoredBytes::read(connection, groups, max_tenant_bytes).await?;
    let mut broken: BTreeMap<&StreamId, Error> = BTreeMap::new();
    let mut accepted: Vec<&JournalRow> = Vec::new();
    let mut outcomes = Vec::with_capacity(groups.len());
    for group in groups {
        let mut failures = Vec::new();
        let mut streams: BTreeMap<&StreamId, Vec<&JournalRow>> = BTreeMap::new();
        for row in group {
            streams.entry(&row.stream).or_default().push(row);
        }
        for (stream, rows) in streams {
            let checked = match broken.get(stream) {
                Some(error) => Err(error.clone()),
                None => advance(heads.get(stream), &rows)
                    .and_then(|head| stored.add(&rows).map(|()| head))
                    .and_then(|head| claims.add(stream, &rows).map(|()| head)),
            };
            match checked {
                Ok(head) => {
                    heads.insert(stream, head);
                    accepted.extend(rows);
                }
                Err(error) => {
                    broken.insert(stream, error.clone());
                    failures.push((stream.clone(), error));
                }
            }
        }
        outcomes.push(AppendOutcome { failures });
    }
    if accepted.is_empty() {
        return Ok(outcomes);
    }
    let touched: BTreeSet<&StreamId> = accepted.iter().map(|row| &row.stream).collect();
    heads.retain(|stream, _| touched.contains(stream));
    writing.begin_transaction();
    commit(writing.connection_and_heads().await?.0, &accepted, &heads, claims, synced).await?;
    writing.end_transaction();
    let (_, remembered) = writing.connection_and_heads().await?;
    for (stream, head) in heads {
        remembered.remember(stream, head);
    }
    Ok(outcomes)
}

/// Whether the error says that a row to insert already exists.
fn is_unique_violation(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// A row of the journal: stream, sequence number, session, tenant, time, epoch, schema, offset and length of
/// the body.
type EventTuple<'a> = (String, i64, &'a str, &'a str, i64, u32, u16, usize, usize);

/// A row of the list of runs: run, tenant, session, status, created, updated, epoch, last sequence number,
/// offset and length of the request.
type RunTuple<'a> = (String, &'a str, &'a str, &'a str, i64, i64, u32, i64, usize, usize);

/// A row of the list of sessions: tenant, session, turns, created, updated, epoch, last sequence number.
type SessionTuple<'a> = (&'a str, &'a str, i64, i64, i64, u32, i64);

/// Writes the rows and updates the rows of their streams in the lists.
async fn commit(
    connection: &mut SqliteConnection,
    rows: &[&JournalRow],
    heads: &BTreeMap<&StreamId, StreamHead>,
    claims: Claims,
    synced: bool,
) -> Result<(), sqlx::Error> {
    let (bodies, events) = event_rows(rows);
    let HeadRows { requests, runs, sessions, plans } = HeadRows::of(heads);
    let changes = approvals::approval_changes(rows, heads);
    let decisions = audit::audit_decisions(rows);
    let alone = claims.is_empty() && changes.is_empty() && decisions.is_empty();
    // SQLite accepts this setting only outside a transaction.
    let synchronous = if synced { "FULL" } else { "NORMAL" };
    let add_bytes = tenant_bytes::ADD_BYTES;
    let mut sql = format!("PRAGMA synchronous = {synchronous}; BEGIN IMMEDIATE; {INSERT_ROWS}{add_bytes}");
    if !plans.is_empty() {
        sql.push_str(plans::WRITE_PLANS);
    }
    if alone {
        sql.push_str("; COMMIT");
    }
    // Safe: only constants were concatenated.
    let mut query = sqlx::query(AssertSqlSafe(sql))
        // Cached statements terminate the database's thread if one of several cannot be prepared again.
        .persistent(false)
        .bind(bodies.0)
        .bind(json_list(&events))
        .bind(requests.0)
        .bind(json_list(&runs))
        .bind(json_list(&sessions))
        .bind(json_list(&tenant_bytes::added_bytes(rows)));
    if !plans.is_empty() {
        query = query.bind(json_list(&plans));
    }
    query.execute(&mut *connection).await?;
    if !alone {
        claims.write(connection).await?;
        approvals::write_approvals(connection, &changes).await?;
        audit::write(connection, &decisions).await?;
        sqlx::query("COMMIT").execute(connection).await?;
    }
    Ok(())
}

/// The texts and rows of the events to append.
fn event_rows<'r>(rows: &[&'r JournalRow]) -> (TextBuffer, Vec<EventTuple<'r>>) {
    let mut bodies = TextBuffer::default();
    let mut events: Vec<EventTuple<'r>> = Vec::with_capacity(rows.len());
    for row in rows {
        let (from, length) = bodies.add(&row.body);
        let (session, tenant) = (row.session.as_str(), row.tenant.as_str());
        let stream = row.stream.to_string();
        events.push((stream, row.seq, session, tenant, row.at, row.epoch, row.schema, from, length));
    }
    (bodies, events)
}

/// The rows of the changed runs, conversations and plans.
struct HeadRows<'h> {
    /// The texts of the runs' requests.
    requests: TextBuffer,
    runs: Vec<RunTuple<'h>>,
    sessions: Vec<SessionTuple<'h>>,
    plans: Vec<plans::PlanTuple<'h>>,
}

impl<'h> HeadRows<'h> {
    fn of(heads: &'h BTreeMap<&StreamId, StreamHead>) -> Self {
        let mut requests = TextBuffer::default();
        let mut runs: Vec<RunTuple<'h>> = Vec::new();
        let mut sessions: Vec<SessionTuple<'h>> = Vec::new();
        let mut plans: Vec<plans::PlanTuple<'h>> = Vec::new();
        for (stream, head) in heads {
            let StreamHead {
                tenant, session, last_seq, epoch, created, updated, status, request, turns, ..
            } = head;
            let (tenant, session) = (tenant.as_str(), session.as_str());
            match stream {
                StreamId::Run(run) => {
                    let (from, length) = requests.add(request);
                    let (run, status) = (run.to_string(), <&'static str>::from(*status));
                    plans.extend(head.plan.as_ref().and_then(|plan| plan.unwritten_row(&run)));
                    runs.push((
                        run, tenant, session, status, *created, *updated, *epoch, *last_seq, from, length,
                    ));
                }
                StreamId::Session(..) => {
                    sessions.push((tenant, session, *turns, *created, *updated, *epoch, *last_seq));
                }
            }
        }
        Self { requests, runs, sessions, plans }
    }
}

fn json_list<T: Serialize>(rows: &[T]) -> Json<&[T]> {
    Json(rows)
}

/// Concatenated texts.
#[derive(Default)]
struct TextBuffer(Vec<u8>);

impl TextBuffer {
    /// Appends a text; returns its 1-based offset, as SQL counts, and its length in bytes.
    fn add(&mut self, text: &str) -> (usize, usize) {
        let from = self.0.len() + 1;
        self.0.extend_from_slice(text.as_bytes());
        (from, text.len())
    }
}
