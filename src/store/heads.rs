//! Where streams stand: what their writers are checked against.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::{Row as _, SqliteConnection};

use super::approvals::ApprovalChange;
use super::error::{Code, Error};
use super::plans::PlanHead;
use super::record::{Row, Stream, status_named};
use crate::run::{RunStatus, SessionId, TenantId};

/// Most streams that are remembered.
const MAX_REMEMBERED: usize = 16_384;

/// Where a stream stands, and its row in the lists.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
    pub(super) last_seq: i64,
    pub(super) epoch: u32,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) status: RunStatus,
    pub(super) request: String,
    pub(super) turns: i64,
    /// Where the run's plan stands.
    pub(super) plan: Option<PlanHead>,
    /// Whether anything was ever put to a person in the run.
    pub(super) asked: bool,
}

/// Streams that were written lately. The writer is the only one that changes them, so it need not read
/// what it has just written.
#[derive(Debug, Default)]
pub(super) struct Heads(HashMap<Stream, Head>);

impl Heads {
    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The heads of the streams of `groups`: those that are remembered, and none of a stream that begins
    /// there. Beside them, what has to be read.
    pub(super) fn of<'g>(
        &self,
        groups: &'g [Vec<Row>],
    ) -> (BTreeMap<&'g Stream, Head>, BTreeSet<&'g Stream>) {
        let mut known = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut unknown = BTreeSet::new();
        for row in groups.iter().flatten() {
            if !seen.insert(&row.stream) {
                continue;
            }
            match self.0.get(&row.stream) {
                Some(head) => _ = known.insert(&row.stream, head.clone()),
                None if row.seq == 1 => {}
                None => _ = unknown.insert(&row.stream),
            }
        }
        (known, unknown)
    }

    /// Remembers where a stream stands by what is on disk now. A run that has ended is not written again.
    pub(super) fn remember(&mut self, stream: &Stream, mut head: Head) {
        if matches!(stream, Stream::Run(_)) && head.status.is_terminal() {
            self.0.remove(stream);
            return;
        }
        if self.0.len() >= MAX_REMEMBERED && !self.0.contains_key(stream) {
            self.0.clear();
        }
        if let Some(plan) = &mut head.plan {
            plan.written();
        }
        self.0.insert(stream.clone(), head);
    }
}

/// The head after `rows`, if they fit behind `head`.
pub(super) fn advance(head: Option<&Head>, rows: &[&Row]) -> Result<Head, Error> {
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
        plan: None,
        asked: false,
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
    if let Some(standing) = row.change.status {
        head.status = standing.after(head.status);
    }
    head.asked |= matches!(row.change.approval, Some(ApprovalChange::Required { .. }));
    PlanHead::follow(&mut head.plan, &row.change.plan, row.at);
    if let Some(request) = &row.change.request {
        head.request.clone_from(request);
    }
    Ok(head)
}

/// Where `streams` stand; those that do not exist yet are absent.
pub(super) async fn read<'g>(
    connection: &mut SqliteConnection,
    streams: impl IntoIterator<Item = &'g Stream>,
) -> Result<BTreeMap<&'g Stream, Head>, sqlx::Error> {
    let mut runs: BTreeMap<String, &Stream> = BTreeMap::new();
    let mut sessions: BTreeMap<(&str, &str), &Stream> = BTreeMap::new();
    for stream in streams {
        match stream {
            Stream::Run(run) => _ = runs.insert(run.to_string(), stream),
            Stream::Session(tenant, session) => {
                sessions.insert((tenant.as_str(), session.as_str()), stream);
            }
        }
    }
    let rows = sqlx::query(
        // CROSS: one look into the list for each that is given, never the other way round.
        "SELECT runs.run, tenant, session, last_seq, epoch, created, runs.updated AS updated, \
         runs.status AS status, request, 0 AS turns, plans.status AS plan, version, only_wanted, \
         EXISTS (SELECT 1 FROM approvals WHERE approvals.run = runs.run) AS asked \
         FROM runs LEFT JOIN plans ON plans.run = runs.run \
         WHERE runs.run IN (SELECT value FROM json_each(?)) \
         UNION ALL \
         SELECT NULL, s.tenant, s.session, last_seq, epoch, created, updated, 'queued', '', turns, \
         NULL, NULL, NULL, 0 \
         FROM json_each(?) AS given CROSS JOIN sessions AS s \
         ON s.tenant = json_extract(given.value, '$[0]') AND s.session = json_extract(given.value, '$[1]')",
    )
    .bind(sqlx::types::Json(runs.keys().collect::<Vec<_>>()))
    .bind(sqlx::types::Json(sessions.keys().collect::<Vec<_>>()))
    .fetch_all(connection)
    .await?;
    let mut heads = BTreeMap::new();
    for row in rows {
        let (tenant, session) = (row.try_get("tenant")?, row.try_get("session")?);
        let stream = match row.try_get::<Option<&str>, _>("run")? {
            Some(run) => runs.get(run),
            None => sessions.get(&(tenant, session)),
        };
        let Some(stream) = stream else { continue };
        let head = Head {
            tenant: id(TenantId::new(tenant))?,
            session: id(SessionId::new(session))?,
            last_seq: row.try_get("last_seq")?,
            epoch: row.try_get("epoch")?,
            created: row.try_get("created")?,
            updated: row.try_get("updated")?,
            status: status_named(row.try_get("status")?)
                .ok_or_else(|| sqlx::Error::Decode("runs.status holds an unknown status".into()))?,
            request: row.try_get("request")?,
            turns: row.try_get("turns")?,
            plan: PlanHead::read(&row)?,
            asked: row.try_get("asked")?,
        };
        heads.insert(*stream, head);
    }
    Ok(heads)
}

fn id<T>(id: Result<T, crate::run::InvalidId>) -> Result<T, sqlx::Error> {
    id.map_err(|e| sqlx::Error::Decode(Box::new(e)))
}
