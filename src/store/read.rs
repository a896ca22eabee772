//! Reads streams, in order and without gaps, and the lists of runs and sessions. Reads are scoped to one
//! tenant: data of other tenants looks as if it did not exist.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _, SqliteConnection};

use super::Store;
use super::error::{Error, ErrorCode};
use super::owners::OwnerScope;
use super::recent_requests::first_run_id;
use super::record::{Record, StreamId};
use crate::run::{Envelope, Event, RunId, RunStatus, SCHEMA, SessionEvent, SessionId, TenantId, parse_event};

/// Maximum number of rows per page.
pub const MAX_PAGE: u32 = 500;

/// Streams with at least this many bytes are decoded on a blocking thread.
const LONG_STREAM_BYTES: usize = 256 * 1024;

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// The id.
    pub run: RunId,
    /// The tenant that is charged.
    pub tenant: TenantId,
    /// The conversation it belongs to.
    pub session: SessionId,
    /// The beginning of the request, on one line.
    pub request: String,
    /// The current status.
    pub status: RunStatus,
    /// When its first event was appended.
    pub created: Timestamp,
    /// When its last event was appended.
    pub updated: Timestamp,
    /// How many times it was taken over by another process.
    pub epoch: u32,
    /// The sequence number of its last event.
    pub last_seq: u64,
}

/// A conversation as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionRow {
    /// The id.
    pub session: SessionId,
    /// The tenant that is charged.
    pub tenant: TenantId,
    /// When its first event was appended.
    pub created: Timestamp,
    /// When its last event was appended.
    pub updated: Timestamp,
    /// Number of turns that ended.
    pub turns: u64,
    /// How many times its stream was taken over by another process.
    pub epoch: u32,
    /// The sequence number of its last event.
    pub last_seq: u64,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only those of this conversation.
    pub session: Option<SessionId>,
    /// Only those with this status.
    pub status: Option<RunStatus>,
    /// Only those that need a person: they wait, or the outcome of one of their writes is unknown.
    pub parked: bool,
    /// Only those of the users in this scope.
    pub scope: OwnerScope,
}

/// Which part of a list to return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<Id> {
    /// Maximum number of rows, at most [`MAX_PAGE`].
    pub limit: u32,
    /// Only rows after this one, the last row of the previous page.
    pub after: Option<Id>,
}

impl<Id> Default for Page<Id> {
    fn default() -> Self {
        Self { limit: 50, after: None }
    }
}

impl Store {
    /// The events of a run in order; none when the tenant has no such run. Events that the journal has not
    /// committed yet are missing: flush it first if that matters.
    ///
    /// # Errors
    /// `store.gap` and `store.unreadable`, which name the run and the event.
    pub async fn run_events(&self, tenant: &TenantId, run: RunId) -> Result<Vec<Envelope<Event>>, Error> {
        let sql = "SELECT last_seq FROM runs WHERE tenant = ?1 AND run = ?2";
        self.read_stream(&StreamId::Run(run), sql, tenant, &run.to_string()).await
    }

    /// The events of a damaged run that can still be read, in order.
    pub(crate) async fn readable_run_events(&self, run: RunId) -> Result<Vec<Event>, Error> {
        let stream = StreamId::Run(run);
        let failed = |e| Error::database(self.path(), &format!("read {stream}"), &e);
        let mut connection = self.pool().acquire().await.map_err(failed)?;
        let rows = stream_rows(&mut connection, &stream).await.map_err(failed)?;
        Ok(rows.iter().filter_map(|row| envelope(&stream, row, 0).ok()).map(|event| event.body).collect())
    }

    /// The events of a conversation's own stream in order; none when the tenant has no such session.
    ///
    /// # Errors
    /// The errors of [`Store::run_events`].
    pub async fn session_events(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<Envelope<SessionEvent>>, Error> {
        let stream = StreamId::Session(tenant.clone(), session.clone());
        let sql = "SELECT last_seq FROM sessions WHERE tenant = ?1 AND session = ?2";
        self.read_stream(&stream, sql, tenant, session.as_str()).await
    }

    /// The records of a stream with sequence numbers from `first` to `last`, in order, at most `limit`. Those
    /// that were erased are missing.
    ///
    /// # Errors
    /// `store.unreadable`; database errors.
    pub(crate) async fn records_between(
        &self,
        stream: &StreamId,
        first: u64,
        last: u64,
        limit: u32,
    ) -> Result<Vec<Record>, Error> {
        let signed = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX);
        let rows = sqlx::query(
            "SELECT seq, session, tenant, at, epoch, schema, body FROM journal \
             WHERE stream = ? AND seq BETWEEN ? AND ? ORDER BY seq LIMIT ?",
        )
        .bind(stream.to_string())
        .bind(signed(first))
        .bind(signed(last))
        .bind(i64::from(limit))
        .fetch_all(self.pool())
        .await
        .map_err(|e| Error::database(self.path(), &format!("read {stream}"), &e))?;
        let record = |row: &SqliteRow| match stream {
            StreamId::Run(_) => Ok(Record::Run(envelope(stream, row, first)?.into())),
            StreamId::Session(..) => Ok(Record::Session(envelope(stream, row, first)?)),
        };
        rows.iter().map(record).collect()
    }

    async fn read_stream<B: DeserializeOwned + Send + 'static>(
        &self,
        stream: &StreamId,
        last: &'static str,
        tenant: &TenantId,
        id: &str,
    ) -> Result<Vec<Envelope<B>>, Error> {
        let failed = |e| Error::database(self.path(), &format!("read {stream}"), &e);
        // One transaction, so that the list's last sequence number and the rows are consistent.
        let mut tx = self.pool().begin().await.map_err(failed)?;
        let last: Option<i64> = sqlx::query_scalar(last)
            .bind(tenant.as_str())
            .bind(id)
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
        let Some(last) = last else { return Ok(Vec::new()) };
        let rows = stream_rows(&mut tx, stream).await.map_err(failed)?;
        drop(tx);
        let read = match rows.iter().map(body_size).sum::<usize>() {
            0..LONG_STREAM_BYTES => envelopes(stream, &rows, last),
            // Decoding a long stream must not block the async thread.
            _ => {
                let stream = stream.clone();
                let task = tokio::task::spawn_blocking(move || envelopes(&stream, &rows, last));
                task.await.map_err(|error| {
                    Error::new(ErrorCode::Failed, format!("the events were not read: {error}"))
                })?
            }
        };
        self.note_read(stream, &read);
        read
    }

    /// One run as lists show it; `None` when the tenant has no such run.
    ///
    /// # Errors
    /// Database errors.
    pub async fn run(&self, tenant: &TenantId, run: RunId) -> Result<Option<RunRow>, Error> {
        sqlx::query_as("SELECT * FROM runs WHERE tenant = ? AND run = ?")
            .bind(tenant.as_str())
            .bind(run.to_string())
            .fetch_optional(self.pool())
            .await
            .map_err(|e| self.list_error(&e))
    }

    /// A tenant's runs, newest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: &Page<RunId>,
    ) -> Result<Vec<RunRow>, Error> {
        let mut query = sqlx::QueryBuilder::new("SELECT * FROM runs WHERE tenant = ");
        query.push_bind(tenant.as_str());
        if let Some(session) = &filter.session {
            query.push(" AND session = ").push_bind(session.as_str());
        }
        if let Some(status) = filter.status {
            query.push(" AND status = ").push_bind(<&'static str>::from(status));
        }
        if filter.parked {
            query.push(
                " AND (status = 'waiting' OR EXISTS (SELECT 1 FROM approvals AS a \
                 WHERE a.run = runs.run AND a.about = 'outcome' AND a.state = 'open'))",
            );
        }
        if let Some(after) = page.after {
            query.push(" AND (created, run) < (SELECT created, run FROM runs WHERE tenant = ");
            query.push_bind(tenant.as_str()).push(" AND run = ").push_bind(after.to_string());
            // Another user's run is not a valid cursor, as if it did not exist.
            filter.scope.push_condition(&mut query, "runs.run");
            query.push(")");
        }
        filter.scope.push_condition(&mut query, "runs.run");
        query.push(" ORDER BY created DESC, run DESC LIMIT ").push_bind(i64::from(page.limit.min(MAX_PAGE)));
        query.build_query_as().fetch_all(self.pool()).await.map_err(|e| self.list_error(&e))
    }

    /// The runs of all tenants that have not ended, oldest first, which a server resumes at startup. Not
    /// paged: the server's queues bound their number.
    ///
    /// # Errors
    /// Database errors.
    pub async fn unfinished_runs(&self) -> Result<Vec<RunRow>, Error> {
        sqlx::query_as(
            "SELECT * FROM runs WHERE status IN ('queued', 'running', 'waiting') ORDER BY created, run",
        )
        .fetch_all(self.pool())
        .await
        .map_err(|e| self.list_error(&e))
    }

    /// The runs of all tenants that were accepted at `since` or later: the newest, at most `limit`, newest first.
    pub(crate) async fn runs_accepted_since(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<RunRow>, Error> {
        // Ids sort by time.
        sqlx::query_as("SELECT * FROM runs WHERE run >= ? ORDER BY run DESC LIMIT ?")
            .bind(first_run_id(since).to_string())
            .bind(i64::from(limit))
            .fetch_all(self.pool())
            .await
            .map_err(|e| self.list_error(&e))
    }

    /// A conversation's runs that have not ended, oldest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn unfinished_runs_of(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<RunRow>, Error> {
        sqlx::query_as(
            "SELECT * FROM runs WHERE tenant = ? AND session = ? AND status IN ('queued', 'running', 'waiting') \
             ORDER BY created, run",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_all(self.pool())
        .await
        .map_err(|e| self.list_error(&e))
    }

    /// One conversation as lists show it, or, until its first turn has ended, as its runs show it; `None` when the tenant has
    /// no such session.
    ///
    /// # Errors
    /// Database errors.
    pub async fn session(&self, tenant: &TenantId, session: &SessionId) -> Result<Option<SessionRow>, Error> {
        sqlx::query_as(
            "SELECT session, tenant, created, updated, turns, epoch, last_seq FROM sessions \
             WHERE tenant = ?1 AND session = ?2 UNION ALL \
             SELECT session, tenant, min(created), max(updated), 0, 0, 0 FROM runs WHERE tenant = ?1 AND session = ?2 \
             AND NOT EXISTS (SELECT 1 FROM sessions WHERE tenant = ?1 AND session = ?2) GROUP BY tenant, session",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_optional(self.pool())
        .await
        .map_err(|e| self.list_error(&e))
    }

    /// The number of conversations of all tenants.
    ///
    /// # Errors
    /// Database errors.
    pub async fn count_sessions(&self) -> Result<u64, Error> {
        let failed = |e| Error::database(self.path(), "count the conversations", &e);
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM sessions")
            .fetch_one(self.pool())
            .await
            .map_err(failed)?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// A tenant's conversations, most recently changed first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn sessions(
        &self,
        tenant: &TenantId,
        page: &Page<SessionId>,
    ) -> Result<Vec<SessionRow>, Error> {
        self.sessions_of(tenant, None, page).await
    }

    /// Like [`Store::sessions`], optionally only those of one user.
    ///
    /// # Errors
    /// Database errors.
    pub async fn sessions_of(
        &self,
        tenant: &TenantId,
        user: Option<&str>,
        page: &Page<SessionId>,
    ) -> Result<Vec<SessionRow>, Error> {
        sqlx::query_as(
            "SELECT * FROM sessions WHERE tenant = ?1 AND (?2 IS NULL OR (updated, session) < \
             (SELECT updated, session FROM sessions WHERE tenant = ?1 AND session = ?2 AND (?4 IS NULL OR EXISTS \
             (SELECT 1 FROM session_owners AS o WHERE o.tenant = ?1 AND o.session = ?2 AND o.user = ?4)))) \
             AND (?4 IS NULL OR session IN (SELECT session FROM session_owners WHERE tenant = ?1 AND user = ?4)) \
             ORDER BY updated DESC, session DESC LIMIT ?3",
        )
        .bind(tenant.as_str())
        .bind(page.after.as_ref().map(SessionId::as_str))
        .bind(i64::from(page.limit.min(MAX_PAGE)))
        .bind(user)
        .fetch_all(self.pool())
        .await
        .map_err(|e| self.list_error(&e))
    }

    pub(super) fn list_error(&self, error: &sqlx::Error) -> Error {
        Error::database(self.path(), "read the lists", error)
    }
}

async fn stream_rows(tx: &mut SqliteConnection, stream: &StreamId) -> Result<Vec<SqliteRow>, sqlx::Error> {
    sqlx::query(
        "SELECT seq, session, tenant, at, epoch, schema, body FROM journal WHERE stream = ? ORDER BY seq",
    )
    .bind(stream.to_string())
    .fetch_all(&mut *tx)
    .await
}

/// The size of an event's body in bytes.
fn body_size(row: &SqliteRow) -> usize {
    row.try_get::<&str, _>("body").map_or(0, str::len)
}

/// Decodes the rows as events. They must be in order and without gaps up to `last`.
fn envelopes<B: DeserializeOwned>(
    stream: &StreamId,
    rows: &[SqliteRow],
    last: i64,
) -> Result<Vec<Envelope<B>>, Error> {
    let mut events = Vec::with_capacity(rows.len());
    for row in rows {
        let expected = events.len() as u64 + 1;
        let envelope = envelope(stream, row, expected)?;
        if envelope.seq != expected {
            return Err(gap_error(stream, expected));
        }
        events.push(envelope);
    }
    if events.len() as i64 != last {
        return Err(gap_error(stream, events.len() as u64 + 1));
    }
    Ok(events)
}

fn gap_error(stream: &StreamId, seq: u64) -> Error {
    Error::new(
        ErrorCode::Gap,
        format!("{stream}: event {seq} is missing from the journal; restore the database from a backup"),
    )
}

/// Decodes a row as an envelope. `expected` is the sequence number for the error message if the row's own
/// is unreadable.
fn envelope<B: DeserializeOwned>(
    stream: &StreamId,
    row: &SqliteRow,
    expected: u64,
) -> Result<Envelope<B>, Error> {
    let unreadable = |seq: u64, why: String| {
        Error::new(ErrorCode::Unreadable, format!("{stream}: event {seq} cannot be read: {why}"))
    };
    let column = |e: sqlx::Error| unreadable(expected, e.to_string());
    let seq: u64 = row.try_get("seq").map_err(column)?;
    let schema: u16 = row.try_get("schema").map_err(column)?;
    if schema > SCHEMA {
        return Err(unreadable(
            seq,
            format!(
                "it has format {schema}, this program knows up to {SCHEMA}: use the newer program that wrote it"
            ),
        ));
    }
    let at: i64 = row.try_get("at").map_err(column)?;
    let body: &str = row.try_get("body").map_err(column)?;
    Ok(Envelope {
        seq,
        run: match stream {
            StreamId::Run(run) => Some(*run),
            StreamId::Session(..) => None,
        },
        session: SessionId::new(row.try_get("session").map_err(column)?)
            .map_err(|e| unreadable(seq, e.to_string()))?,
        tenant: TenantId::new(row.try_get("tenant").map_err(column)?)
            .map_err(|e| unreadable(seq, e.to_string()))?,
        at: Timestamp::from_nanosecond(i128::from(at)).map_err(|e| unreadable(seq, e.to_string()))?,
        epoch: row.try_get("epoch").map_err(column)?,
        schema,
        body: parse_event(schema, body).map_err(|e| unreadable(seq, e.to_string()))?,
    })
}

pub(super) fn decode<T, E: std::error::Error + Send + Sync + 'static>(
    value: Result<T, E>,
) -> Result<T, sqlx::Error> {
    value.map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

pub(super) fn read_time(row: &SqliteRow, column: &str) -> Result<Timestamp, sqlx::Error> {
    time(row.try_get(column)?)
}

pub(super) fn read_optional_time(row: &SqliteRow, column: &str) -> Result<Option<Timestamp>, sqlx::Error> {
    row.try_get::<Option<i64>, _>(column)?.map(time).transpose()
}

/// The time that is stored as so many nanoseconds since 1970.
fn time(nanoseconds: i64) -> Result<Timestamp, sqlx::Error> {
    decode(Timestamp::from_nanosecond(i128::from(nanoseconds)))
}

impl FromRow<'_, SqliteRow> for RunRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            run: decode(row.try_get::<&str, _>("run")?.parse())?,
            tenant: decode(TenantId::new(row.try_get("tenant")?))?,
            session: decode(SessionId::new(row.try_get("session")?))?,
            request: row.try_get("request")?,
            status: row
                .try_get::<&str, _>("status")?
                .parse()
                .map_err(|_| sqlx::Error::Decode("runs.status holds an unknown status".into()))?,
            created: read_time(row, "created")?,
            updated: read_time(row, "updated")?,
            epoch: row.try_get("epoch")?,
            last_seq: row.try_get("last_seq")?,
        })
    }
}

impl FromRow<'_, SqliteRow> for SessionRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            session: decode(SessionId::new(row.try_get("session")?))?,
            tenant: decode(TenantId::new(row.try_get("tenant")?))?,
            created: read_time(row, "created")?,
            updated: read_time(row, "updated")?,
            turns: row.try_get("turns")?,
            epoch: row.try_get("epoch")?,
            last_seq: row.try_get("last_seq")?,
        })
    }
}
