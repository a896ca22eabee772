//! Heads of streams: the last sequence number and epoch that appends are checked against.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension};

use super::approvals::ApprovalChange;
use super::error::{Error, ErrorCode};
use super::plans::PlanHead;
use super::record::{JournalRow, StreamId};
use crate::run::{RunStatus, SessionId, TenantId};

/// Maximum number of cached stream heads.
const MAX_REMEMBERED: usize = 16_384;

/// The head of a stream, with its row in the lists.
#[derive(Debug, Clone)]
pub(super) struct StreamHead {
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
    pub(super) last_seq: i64,
    pub(super) epoch: u32,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) status: RunStatus,
    pub(super) request: String,
    /// Whether the run's row exists and has this status and request.
    pub(super) is_listed: bool,
    pub(super) turns: i64,
    /// The state of the run's plan.
    pub(super) plan: Option<PlanHead>,
    /// Whether any approval was ever requested in the run.
    pub(super) has_approvals: bool,
}

/// The heads of recently written streams. Only the journal writer changes streams, so it need not reread
/// what it has just written.
#[derive(Debug, Default)]
pub(super) struct HeadCache(HashMap<StreamId, StreamHead>);

impl HeadCache {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the heads of the streams of `groups`: returns those that were cached, and the streams whose heads must be
    /// read. A stream that starts in `groups` is in neither. What is not remembered again is read the next time.
    pub(super) fn take<'g>(
        &mut self,
        groups: &'g [Vec<JournalRow>],
    ) -> (BTreeMap<&'g StreamId, StreamHead>, BTreeSet<&'g StreamId>) {
        let mut known = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut unknown = BTreeSet::new();
        for row in groups.iter().flatten() {
            if !seen.insert(&row.stream) {
                continue;
            }
            match self.0.remove(&row.stream) {
                Some(head) => _ = known.insert(&row.stream, head),
                None if row.seq == 1 => {}
                None => _ = unknown.insert(&row.stream),
            }
        }
        (known, unknown)
    }

    /// Caches the head of a stream as it is on disk now. The head of an ended run is dropped, since such a
    /// run is rarely written again.
    pub(super) fn remember(&mut self, stream: &StreamId, mut head: StreamHead) {
        if matches!(stream, StreamId::Run(_)) && head.status.is_terminal() {
            self.0.remove(stream);
            return;
        }
        if self.0.len() >= MAX_REMEMBERED && !self.0.contains_key(stream) {
            self.0.clear();
        }
        head.is_listed = true;
        if let Some(plan) = &mut head.plan {
            plan.mark_written();
        }
        self.0.insert(stream.clone(), head);
    }
}

/// The head after `rows`, if they are valid continuations of `head`.
pub(super) fn advance(head: Option<&StreamHead>, rows: &[&JournalRow]) -> Result<StreamHead, Error> {
    let mut now: Option<StreamHead> = head.cloned();
    for row in rows {
        now = Some(check_epoch_and_advance(now, row)?);
    }
    now.ok_or_else(|| Error::new(ErrorCode::BadRecord, "an append without records"))
}

fn check_epoch_and_advance(head: Option<StreamHead>, row: &JournalRow) -> Result<StreamHead, Error> {
    let conflict = |why: String| {
        Error::new(
            ErrorCode::Conflict,
            format!("{}, seq {}: {why}; read the stream again", row.stream, row.seq),
        )
    };
    let mut head = head.unwrap_or_else(|| StreamHead {
        tenant: row.tenant.clone(),
        session: row.session.clone(),
        last_seq: 0,
        epoch: row.epoch,
        created: row.at,
        updated: row.at,
        status: RunStatus::Queued,
        request: String::new(),
        is_listed: false,
        turns: 0,
        plan: None,
        has_approvals: false,
    });
    if head.tenant != row.tenant || head.session != row.session {
        return Err(conflict("the stream belongs to another session".to_owned()));
    }
    if row.epoch < head.epoch {
        return Err(conflict(format!(
            "the writer has epoch {}, but epoch {} has taken over",
            row.epoch, head.epoch
        )));
    }
    if row.seq != head.last_seq + 1 {
        return Err(conflict(format!("the next sequence number is {}", head.last_seq + 1)));
    }
    head.last_seq = row.seq;
    head.epoch = row.epoch;
    head.updated = row.at;
    head.turns = head.turns.saturating_add(i64::from(row.change.turns));
    if let Some(standing) = row.change.status {
        let status = standing.apply(head.status);
        head.is_listed &= status == head.status;
        head.status = status;
    }
    head.has_approvals |= matches!(row.change.approval, Some(ApprovalChange::Required { .. }));
    PlanHead::apply(&mut head.plan, &row.change.plan, row.at);
    if let Some(request) = &row.change.request {
        head.request.clone_from(request);
        head.is_listed = false;
    }
    Ok(head)
}

/// Reads the heads of `streams`; a stream that does not exist yet is absent from the result.
pub(super) fn read_heads<'g>(
    connection: &Connection,
    streams: impl IntoIterator<Item = &'g StreamId>,
) -> rusqlite::Result<BTreeMap<&'g StreamId, StreamHead>> {
    let mut heads = BTreeMap::new();
    for stream in streams {
        let head = match stream {
            StreamId::Run(run) => {
                connection.prepare_cached(RUN_HEAD)?.query_row([run.to_string()], read_head)
            }
            StreamId::Session(tenant, session) => connection
                .prepare_cached(SESSION_HEAD)?
                .query_row([tenant.as_str(), session.as_str()], read_head),
        };
        if let Some(head) = head.optional()? {
            heads.insert(stream, head);
        }
    }
    Ok(heads)
}

const RUN_HEAD: &str = "SELECT tenant, session, last_seq, epoch, created, runs.updated AS updated, \
     runs.status AS status, request, 0 AS turns, plans.status AS plan, version, only_wanted, \
     EXISTS (SELECT 1 FROM approvals WHERE approvals.run = runs.run) AS asked \
     FROM runs LEFT JOIN plans ON plans.run = runs.run WHERE runs.run = ?";

const SESSION_HEAD: &str = "SELECT tenant, session, last_seq, epoch, created, updated, 'queued' AS status, '' AS request, \
     turns, NULL AS plan, NULL AS version, NULL AS only_wanted, 0 AS asked \
     FROM sessions WHERE tenant = ? AND session = ?";

fn read_head(row: &rusqlite::Row<'_>) -> rusqlite::Result<StreamHead> {
    let status: String = row.get("status")?;
    Ok(StreamHead {
        tenant: TenantId::new(row.get_ref("tenant")?.as_str()?).map_err(undecodable)?,
        session: SessionId::new(row.get_ref("session")?.as_str()?).map_err(undecodable)?,
        last_seq: row.get("last_seq")?,
        epoch: row.get("epoch")?,
        created: row.get("created")?,
        updated: row.get("updated")?,
        status: status.parse().map_err(|_| undecodable("runs.status holds an unknown status"))?,
        request: row.get("request")?,
        is_listed: true,
        turns: row.get("turns")?,
        plan: PlanHead::read(row)?,
        has_approvals: row.get("asked")?,
    })
}

/// The error of a stored value that cannot be read.
pub(super) fn undecodable(
    error: impl Into<Box<dyn std::error::Error + Send + Sync + 'static>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
}
