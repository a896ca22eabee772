//! Appends to many streams in one transaction, with each stream checked separately.
//!
//! Every statement that is sent by itself costs a round trip to the database's thread. So a transaction is one text of
//! several statements, each with all rows of its table as bound values, and the stream heads are cached instead of
//! read ([`heads`]).

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{QueryBuilder, Sqlite, SqliteConnection};

use super::Store;
use super::approvals;
use super::audit;
use super::claims::Claims;
use super::documents;
use super::error::Error;
use super::heads::{self, StreamHead, advance};
use super::last_results;
use super::learned;
use super::plans::{self, PlanTuple};
use super::record::{JournalRow, StreamId};
use super::tenant_bytes::{self, StoredBytes};
use super::writer::WriterGuard;

/// Maximum number of rows of one statement: of the 32,766 values that SQLite binds, a row takes at most ten.
pub(super) const MAX_ROWS: usize = 3_000;

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
    let pragma = writing.synchronous(synced);
    commit(writing.connection_and_heads().await?.0, pragma, &accepted, &heads, &claims).await?;
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

/// Writes the rows and updates the rows of their streams in the lists, after `pragma`.
async fn commit(
    connection: &mut SqliteConnection,
    pragma: &'static str,
    rows: &[&JournalRow],
    heads: &BTreeMap<&StreamId, StreamHead>,
    claims: &Claims,
) -> Result<(), sqlx::Error> {
    let changes = approvals::approval_changes(rows, heads);
    let decisions = audit::audit_decisions(rows);
    let learned: Vec<&JournalRow> =
        rows.iter().copied().filter(|row| !row.change.learned.is_empty()).collect();
    let alone = changes.is_empty() && decisions.is_empty() && learned.is_empty();
    // SQLite accepts this setting only outside a transaction.
    let mut sql = QueryBuilder::new(pragma);
    sql.push("BEGIN IMMEDIATE");
    insert_events(&mut sql, rows);
    last_results::write_results(&mut sql, rows);
    documents::write_uses(&mut sql, rows);
    write_heads(&mut sql, heads);
    tenant_bytes::add_bytes(&mut sql, rows);
    claims.insert(&mut sql);
    if alone {
        sql.push("; COMMIT");
    }
    // Cached statements terminate the database's thread if one of several cannot be prepared again.
    sql.build().persistent(false).execute(&mut *connection).await?;
    if !alone {
        approvals::write_approvals(connection, &changes).await?;
        audit::write(connection, &decisions).await?;
        learned::write_learned(connection, &learned).await?;
        sqlx::query("COMMIT").execute(connection).await?;
    }
    Ok(())
}

/// Adds the statements that insert the events.
fn insert_events(sql: &mut QueryBuilder<Sqlite>, rows: &[&JournalRow]) {
    for rows in rows.chunks(MAX_ROWS) {
        sql.push("; INSERT INTO journal (stream, seq, session, tenant, at, epoch, schema, body) ");
        sql.push_values(rows, |mut values, row| {
            values.push_bind(row.stream.to_string()).push_bind(row.seq).push_bind(row.session.as_str());
            values.push_bind(row.tenant.as_str()).push_bind(row.at).push_bind(row.epoch);
            values.push_bind(row.schema).push_bind(row.body.as_str());
        });
    }
}

/// Adds the statements that write the changed runs, conversations and plans.
fn write_heads(sql: &mut QueryBuilder<Sqlite>, heads: &BTreeMap<&StreamId, StreamHead>) {
    let (mut runs, mut sessions) = (Vec::new(), Vec::new());
    for (stream, head) in heads {
        match stream {
            StreamId::Run(run) => runs.push((run.to_string(), head)),
            StreamId::Session(..) => sessions.push(head),
        }
    }
    for runs in runs.chunks(MAX_ROWS) {
        sql.push(
            "; INSERT INTO runs (run, tenant, session, status, created, updated, epoch, last_seq, request) ",
        );
        sql.push_values(runs, |mut values, (run, head)| {
            values.push_bind(run.as_str()).push_bind(head.tenant.as_str()).push_bind(head.session.as_str());
            values
                .push_bind(<&'static str>::from(head.status))
                .push_bind(head.created)
                .push_bind(head.updated);
            values.push_bind(head.epoch).push_bind(head.last_seq).push_bind(head.request.as_str());
        });
        sql.push(
            " ON CONFLICT (run) DO UPDATE SET request = excluded.request, status = excluded.status, \
             updated = excluded.updated, epoch = excluded.epoch, last_seq = excluded.last_seq",
        );
    }
    for sessions in sessions.chunks(MAX_ROWS) {
        sql.push("; INSERT INTO sessions (tenant, session, turns, created, updated, epoch, last_seq) ");
        sql.push_values(sessions, |mut values, head| {
            values.push_bind(head.tenant.as_str()).push_bind(head.session.as_str()).push_bind(head.turns);
            values.push_bind(head.created).push_bind(head.updated);
            values.push_bind(head.epoch).push_bind(head.last_seq);
        });
        sql.push(
            " ON CONFLICT (tenant, session) DO UPDATE SET turns = excluded.turns, updated = excluded.updated, \
             epoch = excluded.epoch, last_seq = excluded.last_seq",
        );
    }
    let plans: Vec<PlanTuple<'_>> = runs
        .iter()
        .filter_map(|(run, head)| head.plan.as_ref().and_then(|plan| plan.unwritten_row(run)))
        .collect();
    for plans in plans.chunks(MAX_ROWS) {
        plans::write_plans(sql, plans);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{open, record};
    use super::*;

    #[tokio::test]
    async fn batch_of_more_rows_than_a_statement_holds_is_appended_whole() {
        let tmp = tempfile::tempdir().unwrap();
        let store = open(tmp.path()).await;
        // As many runs, so that the lists of runs and plans need several statements, too.
        let runs = MAX_ROWS as u128 + 7;
        let group = |n| (1..=2).map(|seq| record(n, seq).to_row().unwrap()).collect();
        let groups: Vec<Vec<JournalRow>> = (1..=runs).map(group).collect();
        let outcomes = store.write(&groups).await.unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.failures.is_empty()));
        for (query, rows) in [
            ("SELECT count(*) FROM journal", 2 * runs),
            ("SELECT count(*) FROM runs WHERE last_seq = 2", runs),
            ("SELECT count(*) FROM plans", runs),
        ] {
            let counted: i64 = sqlx::query_scalar(query).fetch_one(store.pool()).await.unwrap();
            assert_eq!(counted as u128, rows, "{query}");
        }
    }
}
