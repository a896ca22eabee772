//! Writing: one transaction for the appends of many streams, each stream checked on its own.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::Store;
use super::claims::Claims;
use super::error::{Code, Error};
use super::record::{Row, Stream, status_named, status_text};
use crate::run::{RunStatus, SessionId, TenantId};

/// Rows of one `INSERT`, largest first: few statements, since each is a message to the database's
/// thread and back, and few different texts to prepare.
const CHUNKS: [usize; 4] = [64, 16, 4, 1];

/// Where a stream stands, and its row in the lists.
#[derive(Debug, Clone)]
struct Head {
    tenant: TenantId,
    session: SessionId,
    last_seq: i64,
    epoch: u32,
    created: i64,
    updated: i64,
    status: RunStatus,
    request: String,
    turns: i64,
}

impl Store {
    /// Appends `groups` in one transaction, in order. Inside a group, the rows of one stream stand or
    /// fall together; a stream that fails takes no other with it, and its later rows fail too. The
    /// outcome of each group is that of its first failing stream.
    ///
    /// # Errors
    /// For the whole transaction: nothing of it is stored (or, where the commit itself failed, all or
    /// nothing: only reading tells).
    pub(crate) async fn write(&self, groups: &[Vec<Row>]) -> Result<Vec<Outcome>, Error> {
        let failed = |e| Error::database(self.path(), "append to the journal", &e);
        let mut tx = self.writer()?.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        let mut heads = heads(&mut tx, groups).await.map_err(failed)?;
        let mut claims = Claims::read(&mut tx, groups).await.map_err(failed)?;
        let mut broken: BTreeMap<&Stream, Error> = BTreeMap::new();
        let mut accepted: Vec<&Row> = Vec::new();
        let mut outcomes = Vec::with_capacity(groups.len());
        for group in groups {
            let mut failures = Vec::new();
            let mut streams: BTreeMap<&Stream, Vec<&Row>> = BTreeMap::new();
            for row in group {
                streams.entry(&row.stream).or_default().push(row);
            }
            for (stream, rows) in streams {
                let checked = match broken.get(stream) {
                    Some(error) => Err(error.clone()),
                    None => advance(heads.get(stream), &rows)
                        .and_then(|head| claims.add(stream, &rows).map(|()| head)),
                };
                match checked {
                    Ok(head) => {
                        heads.insert(stream.clone(), head);
                        accepted.extend(rows);
                    }
                    Err(error) => {
                        broken.insert(stream, error.clone());
                        failures.push((stream.clone(), error));
                    }
                }
            }
            outcomes.push(Outcome { failures });
        }
        if !accepted.is_empty() {
            insert(&mut tx, &accepted).await.map_err(failed)?;
            let touched: BTreeSet<&Stream> = accepted.iter().map(|row| &row.stream).collect();
            let touched: Vec<(&Stream, &Head)> =
                touched.into_iter().filter_map(|stream| Some((stream, heads.get(stream)?))).collect();
            list(&mut tx, &touched).await.map_err(failed)?;
            claims.write(&mut tx).await.map_err(failed)?;
        }
        tx.commit().await.map_err(failed)?;
        Ok(outcomes)
    }
}

/// What became of one group: the streams that failed, none when all is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) failures: Vec<(Stream, Error)>,
}

/// The head after `rows`, if they fit behind `head`.
fn advance(head: Option<&Head>, rows: &[&Row]) -> Result<Head, Error> {
    let mut now: Option<Head> = head.cloned();
    for row in rows {
        now = Some(step(now, row)?);
    }
    now.ok_or_else(|| Error::new(Code::BadRecord, "an append without records"))
}

fn step(head: Option<Head>, row: &Row) -> Result<Head, Error> {
    let conflict = |why: String| {
        Error::new(Code::Conflict, format!("{}, seq {}: {why}; read the stream again", row.stream, row.seq))
    };
    let mut head = head.unwrap_or_else(|| Head {
        tenant: row.tenant.clone(),
        session: row.session.clone(),
        last_seq: 0,
        epoch: row.epoch,
        created: row.at,
        updated: row.at,
        status: RunStatus::Queued,
        request: String::new(),
        turns: 0,
    });
    if head.tenant != row.tenant || head.session != row.session {
        return Err(conflict("the stream belongs to another session".to_owned()));
    }
    if row.epoch < head.epoch {
        return Err(conflict(format!(
            "the writer is of epoch {}, but epoch {} has taken over",
            row.epoch, head.epoch
        )));
    }
    if row.seq != head.last_seq + 1 {
        return Err(conflict(format!("the next number is {}", head.last_seq + 1)));
    }
    head.last_seq = row.seq;
    head.epoch = row.epoch;
    head.updated = row.at;
    head.turns = head.turns.saturating_add(i64::from(row.change.turns));
    if let Some(status) = row.change.status {
        head.status = status;
    }
    if let Some(request) = &row.change.request {
        head.request.clone_from(request);
    }
    Ok(head)
}

/// Where the streams of `groups` stand; those that do not exist yet are absent.
async fn heads(
    tx: &mut SqliteConnection,
    groups: &[Vec<Row>],
) -> Result<BTreeMap<Stream, Head>, sqlx::Error> {
    let mut heads = BTreeMap::new();
    let mut runs: BTreeMap<String, &Row> = BTreeMap::new();
    let mut sessions: BTreeMap<&Stream, &Row> = BTreeMap::new();
    for row in groups.iter().flatten() {
        match &row.stream {
            Stream::Run(run) => _ = runs.insert(run.to_string(), row),
            Stream::Session(..) => _ = sessions.insert(&row.stream, row),
        }
    }
    if !runs.is_empty() {
        let ids: Vec<&str> = runs.keys().map(String::as_str).collect();
        let rows = sqlx::query(
            "SELECT run, tenant, session, last_seq, epoch, created, updated, status, request FROM runs \
             WHERE run IN (SELECT value FROM json_each(?))",
        )
        .bind(sqlx::types::Json(ids))
        .fetch_all(&mut *tx)
        .await?;
        for row in rows {
            let Some(given) = runs.get(row.try_get::<&str, _>("run")?) else { continue };
            let head = Head {
                tenant: id(TenantId::new(row.try_get("tenant")?))?,
                session: id(SessionId::new(row.try_get("session")?))?,
                last_seq: row.try_get("last_seq")?,
                epoch: row.try_get("epoch")?,
                created: row.try_get("created")?,
                updated: row.try_get("updated")?,
                status: status_named(row.try_get("status")?)
                    .ok_or_else(|| sqlx::Error::Decode("runs.status holds an unknown status".into()))?,
                request: row.try_get("request")?,
                turns: 0,
            };
            heads.insert(given.stream.clone(), head);
        }
    }
    if !sessions.is_empty() {
        let ids: Vec<(&str, &str)> =
            sessions.values().map(|row| (row.tenant.as_str(), row.session.as_str())).collect();
        let rows = sqlx::query(
            // CROSS: one look into the list for each that is given, never the other way round.
            "SELECT s.tenant, s.session, last_seq, epoch, created, updated, turns FROM json_each(?) AS given \
             CROSS JOIN sessions AS s \
             ON s.tenant = json_extract(given.value, '$[0]') AND s.session = json_extract(given.value, '$[1]')",
        )
        .bind(sqlx::types::Json(ids))
        .fetch_all(&mut *tx)
        .await?;
        for row in rows {
            let tenant = id(TenantId::new(row.try_get("tenant")?))?;
            let session = id(SessionId::new(row.try_get("session")?))?;
            let head = Head {
                tenant: tenant.clone(),
                session: session.clone(),
                last_seq: row.try_get("last_seq")?,
                epoch: row.try_get("epoch")?,
                created: row.try_get("created")?,
                updated: row.try_get("updated")?,
                status: RunStatus::Queued,
                request: String::new(),
                turns: row.try_get("turns")?,
            };
            heads.insert(Stream::Session(tenant, session), head);
        }
    }
    Ok(heads)
}

fn id<T>(id: Result<T, crate::run::InvalidId>) -> Result<T, sqlx::Error> {
    id.map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

async fn insert(tx: &mut SqliteConnection, rows: &[&Row]) -> Result<(), sqlx::Error> {
    for chunk in chunks(rows) {
        let sql = with_rows(
            "INSERT INTO journal (stream, seq, session, tenant, at, epoch, schema, body) VALUES ",
            "(?, ?, ?, ?, ?, ?, ?, ?)",
            chunk.len(),
            "",
        );
        // Nothing but placeholders was joined in.
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for row in chunk {
            query = query
                .bind(row.stream.to_string())
                .bind(row.seq)
                .bind(row.session.as_str())
                .bind(row.tenant.as_str())
                .bind(row.at)
                .bind(i64::from(row.epoch))
                .bind(i64::from(row.schema))
                .bind(row.body.as_str());
        }
        query.execute(&mut *tx).await?;
    }
    Ok(())
}

/// Brings the streams' rows in their lists up to date.
async fn list(tx: &mut SqliteConnection, touched: &[(&Stream, &Head)]) -> Result<(), sqlx::Error> {
    let mut runs = Vec::new();
    let mut sessions = Vec::new();
    for (stream, head) in touched {
        match stream {
            Stream::Run(run) => runs.push((run, *head)),
            Stream::Session(tenant, session) => sessions.push((tenant, session, *head)),
        }
    }
    for chunk in chunks(&runs) {
        let sql = with_rows(
            "INSERT INTO runs (run, tenant, session, request, status, created, updated, epoch, last_seq) VALUES ",
            "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
            chunk.len(),
            " ON CONFLICT (run) DO UPDATE SET request = excluded.request, status = excluded.status, \
             updated = excluded.updated, epoch = excluded.epoch, last_seq = excluded.last_seq",
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (run, head) in chunk {
            query = query
                .bind(run.to_string())
                .bind(head.tenant.as_str())
                .bind(head.session.as_str())
                .bind(head.request.as_str())
                .bind(status_text(head.status))
                .bind(head.created)
                .bind(head.updated)
                .bind(i64::from(head.epoch))
                .bind(head.last_seq);
        }
        query.execute(&mut *tx).await?;
    }
    for chunk in chunks(&sessions) {
        let sql = with_rows(
            "INSERT INTO sessions (tenant, session, turns, created, updated, epoch, last_seq) VALUES ",
            "(?, ?, ?, ?, ?, ?, ?)",
            chunk.len(),
            " ON CONFLICT (tenant, session) DO UPDATE SET turns = excluded.turns, \
             updated = excluded.updated, epoch = excluded.epoch, last_seq = excluded.last_seq",
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (tenant, session, head) in chunk {
            query = query
                .bind(tenant.as_str())
                .bind(session.as_str())
                .bind(head.turns)
                .bind(head.created)
                .bind(head.updated)
                .bind(i64::from(head.epoch))
                .bind(head.last_seq);
        }
        query.execute(&mut *tx).await?;
    }
    Ok(())
}

/// All of `rows`, in pieces of the sizes of [`CHUNKS`].
fn chunks<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let size = CHUNKS.into_iter().find(|size| rest.len() >= *size)?;
        let (chunk, after) = rest.split_at(size);
        rest = after;
        Some(chunk)
    })
}

/// A statement over `count` rows, each with the placeholders of `row`.
fn with_rows(before: &str, row: &str, count: usize, after: &str) -> String {
    let mut sql = String::with_capacity(before.len() + count * (row.len() + 2) + after.len());
    sql.push_str(before);
    for i in 0..count {
        if i > 0 {
            sql.push_str(", ");
        }
        sql.push_str(row);
    }
    sql.push_str(after);
    sql
}
