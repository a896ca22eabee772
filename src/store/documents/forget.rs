//! Forgetting in conversations with a document: the runs that named it, and what is remembered of these.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AssertSqlSafe, SqliteConnection};

use super::super::erase::delete_run;
use super::super::error::{Error, ErrorCode};
use super::super::read::decode;
use super::super::record::StreamId;
use super::super::tenant_bytes;
use super::Documents;
use crate::memory;
use crate::run::{DocumentId, RunId, SCHEMA, SessionEvent, SessionId, TenantId};

/// Whether run `r` is active, or a person has to decide about one of its writes: an erased run could not tell of it.
pub(super) const IS_ACTIVE: &str = "(r.status IN ('queued', 'running', 'waiting') OR EXISTS (SELECT 1 FROM approvals AS a \
     WHERE a.run = r.run AND a.about = 'outcome' AND a.state = 'open'))";

/// Whether run `r` ended with a question and called no tool: nothing is lost with it but the question.
const ONLY_ASKS: &str = "(r.status = 'needs_input' AND NOT EXISTS (SELECT 1 FROM journal AS j \
     WHERE j.stream = 'run:' || r.run AND j.body LIKE '%\"type\":\"tool_started\"%'))";

/// A run that named a document.
#[derive(Debug)]
pub(super) struct DocumentUse {
    pub(super) run: RunId,
    pub(super) session: SessionId,
    /// Whether it is not over.
    pub(super) is_active: bool,
}

impl Documents {
    /// The conversations of the runs that named or listed a document.
    pub(super) async fn remembering(&self, id: DocumentId) -> Result<Vec<SessionId>, Error> {
        let mut connection = self.store.pool().acquire().await.map_err(|e| self.read_error(&e))?;
        let uses = uses_of(&mut connection, id).await.map_err(|e| self.read_error(&e))?;
        let listing = listing_sessions(&mut connection, id).await.map_err(|e| self.read_error(&e))?;
        let mut sessions: Vec<SessionId> = Vec::new();
        for session in uses.into_iter().map(|used| used.session).chain(listing) {
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        Ok(sessions)
    }

    /// Erases the runs of a conversation that named a document, or only listed it and did nothing else, and what it remembers of
    /// the document, in one transaction. Returns these runs. The conversation must not be used meanwhile.
    ///
    /// # Errors
    /// `document.in_use` if one of these runs, or a later one of the conversation, is not over; `store.unreadable` if the
    /// conversation's stream cannot be read; database errors.
    pub(super) async fn forget(
        &self,
        tenant: &TenantId,
        id: DocumentId,
        session: &SessionId,
    ) -> Result<Vec<RunId>, Error> {
        let doing = format!("forget document {id} in session {session}");
        let failed = |e| Error::database(self.store.path(), &doing, &e);
        // Nothing changes the stream meanwhile; appends to others do not wait while it is read.
        let events = self.store.session_events(tenant, session).await?;
        let last = events.last().map_or(0, |event| event.seq);
        let (runs, listing) = {
            let mut connection = self.store.pool().acquire().await.map_err(failed)?;
            let runs = runs_in(&mut connection, id, session).await.map_err(failed)?;
            (runs, listing_in(&mut connection, (id, tenant, session), "TRUE").await.map_err(failed)?)
        };
        if runs.is_empty() && listing.is_empty() {
            return Ok(Vec::new());
        }
        let events = events.into_iter().map(|event| (event.seq, event.body)).collect::<Vec<_>>();
        let named = runs.clone();
        let changed =
            tokio::task::spawn_blocking(move || memory::without_document(&events, id, &named)).await;
        let changed = changed.map_err(|error| Error::new(ErrorCode::Failed, format!("{doing}: {error}")))?;

        let mut writing = self.store.writer(&doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let mut tx =
            sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        // A run that began later may have been told what the document says.
        if let Some(first) = runs.first().copied()
            && let Some(run) = active_since(&mut tx, tenant, session, first).await.map_err(failed)?
        {
            return Err(deletion_continues(
                id,
                &format!("run {run} of session {session}, which may know of it,"),
            ));
        }
        let is_same = runs_in(&mut tx, id, session).await.map_err(failed)? == runs
            && last_of(&mut tx, tenant, session).await.map_err(failed)? == last;
        if !is_same {
            return Err(deletion_continues(id, &format!("session {session}, which remembers it,")));
        }
        rewrite(&mut tx, tenant, session, &changed).await.map_err(failed)?;
        let mut erased = runs;
        erased.extend(listing_in(&mut tx, (id, tenant, session), ONLY_ASKS).await.map_err(failed)?);
        for run in &erased {
            delete_run(&mut tx, tenant, &run.to_string()).await.map_err(failed)?;
        }
        tx.commit().await.map_err(failed)?;
        Ok(erased.into_iter().collect())
    }
}

/// Why a document cannot be forgotten now, if so: a run that named it, or a later one of its conversation, is not over, or one of
/// a conversation that listed it is under way.
pub(super) async fn check_at_rest(
    tx: &mut SqliteConnection,
    id: DocumentId,
    tenant: &TenantId,
) -> Result<Option<Error>, sqlx::Error> {
    let mut first: BTreeMap<SessionId, RunId> = BTreeMap::new();
    for used in uses_of(tx, id).await? {
        if used.is_active {
            return Ok(Some(in_use(id, &format!("run {}, which names it,", used.run))));
        }
        first.entry(used.session).or_insert(used.run);
    }
    for (session, run) in &first {
        if let Some(run) = active_since(tx, tenant, session, *run).await? {
            let what = format!("run {run} of session {session}, which may know of it,");
            return Ok(Some(in_use(id, &what)));
        }
    }
    let sql = "SELECT a.run FROM document_listings AS l JOIN runs AS r ON r.run = l.run \
         JOIN runs AS a ON a.tenant = r.tenant AND a.session = r.session AND a.status IN ('queued', 'running') \
         WHERE l.document = ? LIMIT 1";
    let run: Option<String> = sqlx::query_scalar(sql).bind(id.to_string()).fetch_optional(tx).await?;
    Ok(run.map(|run| in_use(id, &format!("run {run}, whose conversation lists it,"))))
}

/// The runs of a conversation that named a document.
async fn runs_in(
    connection: &mut SqliteConnection,
    id: DocumentId,
    session: &SessionId,
) -> Result<BTreeSet<RunId>, sqlx::Error> {
    let uses = uses_of(connection, id).await?;
    Ok(uses.into_iter().filter(|used| used.session == *session).map(|used| used.run).collect())
}

/// The conversations of the runs that listed a document.
async fn listing_sessions(
    connection: &mut SqliteConnection,
    id: DocumentId,
) -> Result<Vec<SessionId>, sqlx::Error> {
    let sql = "SELECT DISTINCT r.session FROM document_listings AS l JOIN runs AS r ON r.run = l.run WHERE l.document = ?";
    let sessions: Vec<String> = sqlx::query_scalar(sql).bind(id.to_string()).fetch_all(connection).await?;
    sessions.iter().map(|session| decode(SessionId::new(session))).collect()
}

/// The runs `r` of a conversation that listed a document, and for which `condition` holds.
async fn listing_in(
    connection: &mut SqliteConnection,
    (id, tenant, session): (DocumentId, &TenantId, &SessionId),
    condition: &str,
) -> Result<BTreeSet<RunId>, sqlx::Error> {
    let sql = format!(
        "SELECT r.run FROM document_listings AS l JOIN runs AS r ON r.run = l.run \
         WHERE l.document = ? AND r.tenant = ? AND r.session = ? AND {condition}"
    );
    let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(id.to_string());
    let runs: Vec<String> = query.bind(tenant.as_str()).bind(session.as_str()).fetch_all(connection).await?;
    runs.iter().map(|run| decode(run.parse::<RunId>())).collect()
}

/// The last sequence number of the conversation's stream; 0 if it has none.
async fn last_of(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<u64, sqlx::Error> {
    let last: Option<i64> =
        sqlx::query_scalar("SELECT last_seq FROM sessions WHERE tenant = ? AND session = ?")
            .bind(tenant.as_str())
            .bind(session.as_str())
            .fetch_optional(connection)
            .await?;
    Ok(last.and_then(|last| u64::try_from(last).ok()).unwrap_or(0))
}

/// Writes events of a conversation's stream anew, and corrects the tenant's stored bytes.
async fn rewrite(
    tx: &mut SqliteConnection,
    tenant: &TenantId,
    session: &SessionId,
    events: &[(u64, SessionEvent)],
) -> Result<(), sqlx::Error> {
    let stream = StreamId::Session(tenant.clone(), session.clone()).to_string();
    let mut freed: i64 = 0;
    for (seq, event) in events {
        let body = serde_json::to_string(event).map_err(|e| sqlx::Error::Encode(Box::new(e)))?;
        let seq = i64::try_from(*seq).unwrap_or(i64::MAX);
        let before: i64 =
            sqlx::query_scalar("SELECT length(CAST(body AS BLOB)) FROM journal WHERE stream = ? AND seq = ?")
                .bind(&stream)
                .bind(seq)
                .fetch_one(&mut *tx)
                .await?;
        freed += before - i64::try_from(body.len()).unwrap_or(0);
        sqlx::query("UPDATE journal SET body = ?, schema = ? WHERE stream = ? AND seq = ?")
            .bind(body)
            .bind(SCHEMA)
            .bind(&stream)
            .bind(seq)
            .execute(&mut *tx)
            .await?;
    }
    tenant_bytes::subtract(tx, tenant, freed).await
}

/// A run of the conversation that was accepted at `first` or later, and is not over.
async fn active_since(
    tx: &mut SqliteConnection,
    tenant: &TenantId,
    session: &SessionId,
    first: RunId,
) -> Result<Option<String>, sqlx::Error> {
    let sql = format!(
        "SELECT r.run FROM runs AS r WHERE r.tenant = ? AND r.session = ? AND r.run >= ? AND {IS_ACTIVE} LIMIT 1"
    );
    // Ids sort by time.
    sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(first.to_string())
        .fetch_optional(tx)
        .await
}

/// The runs that named a document.
pub(super) async fn uses_of(
    connection: &mut SqliteConnection,
    id: DocumentId,
) -> Result<Vec<DocumentUse>, sqlx::Error> {
    let sql = format!(
        "SELECT r.run, r.session, {IS_ACTIVE} FROM document_uses AS u JOIN runs AS r ON r.run = u.run \
         WHERE u.document = ? ORDER BY r.run"
    );
    let rows: Vec<(String, String, bool)> =
        sqlx::query_as(AssertSqlSafe(sql)).bind(id.to_string()).fetch_all(connection).await?;
    let mut uses = Vec::with_capacity(rows.len());
    for (run, session, is_active) in rows {
        let (run, session) = (decode(run.parse::<RunId>())?, decode(SessionId::new(&session))?);
        uses.push(DocumentUse { run, session, is_active });
    }
    Ok(uses)
}

/// The error for a document whose deletion has begun, where `what` is at work.
pub(super) fn deletion_continues(id: DocumentId, what: &str) -> Error {
    let what = format!(
        "no request finds the document {id} any more, but {what} is active: what is left is forgotten within an hour, or when \
         you repeat the deletion after that has ended"
    );
    Error::new(ErrorCode::DocumentInUse, what)
}

/// The error for a document that `what` uses.
pub(super) fn in_use(id: DocumentId, what: &str) -> Error {
    let what = format!(
        "the document {id} cannot be deleted while {what} is active or has a write whose outcome is to be decided: \
         cancel the run, wait for it to end, or decide"
    );
    Error::new(ErrorCode::DocumentInUse, what)
}
