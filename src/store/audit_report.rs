//! Reads the audit log of decisions and verifies its integrity.

use data_encoding::HEXLOWER;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, QueryBuilder, Row as _};
use subtle::ConstantTimeEq as _;

use super::Store;
use super::audit::{AuditFields, GENESIS_HASH, HISTORY, HistoryHash, decision_mac};
use super::error::Error;
use super::read::{decode, read_time};
use crate::run::{RunId, TenantId};

/// Rows read per query.
const PAGE_ROWS: usize = 500;

/// A row of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditRow {
    /// Its number in the audit log, from 1.
    pub seq: i64,
    /// When it was decided.
    pub at: Timestamp,
    /// The tenant of the run.
    pub tenant: TenantId,
    /// The run.
    pub run: RunId,
    /// The sequence number of its event in the run.
    pub event: i64,
    /// The ordinal of the approval that it decides, if it decides one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<u32>,
    /// Who decided.
    pub who: String,
    /// The decision: `yes`, `yes_later`, `no`, `edited`, `rewritten`, `done`, `not_done` or `again` for an
    /// approval; `begin`, `change`, `plan`, `resume`, `cancel` or `confirmed` for a run.
    pub decision: String,
    /// Whether the run has been erased since.
    pub erased: bool,
}

/// The result of verifying the whole audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Rows that are unchanged.
    pub rows: i64,
    /// The hash of the last unchanged row, in hex.
    pub head: String,
    /// The first failure, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<AuditFailure>,
}

/// The first row that is missing or was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditFailure {
    /// Its number.
    pub seq: i64,
    /// The problem with it.
    pub why: String,
}

/// Rows of the audit log with the data they are verified against.
const AUDIT_ROWS: &str = "SELECT c.seq, c.at, c.tenant, c.run, c.event, c.approval, c.asked, c.who, c.decision, c.what, \
     c.hash, k.key, decided.body AS decided, put.body AS put, r.run IS NULL AS erased FROM audit_chain c \
     LEFT JOIN audit_keys k ON k.run = c.run LEFT JOIN runs r ON r.run = c.run \
     LEFT JOIN journal decided ON decided.stream = 'run:' || c.run AND decided.seq = c.event \
     LEFT JOIN journal put ON put.stream = 'run:' || c.run AND put.seq = c.asked \
     WHERE c.seq > ? ORDER BY c.seq LIMIT ?";

impl Store {
    /// The latest decisions of all tenants, or of one run, newest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn audit_rows(&self, run: Option<RunId>, limit: u32) -> Result<Vec<AuditRow>, Error> {
        let mut query = QueryBuilder::new(
            "SELECT seq, at, c.tenant, c.run, event, approval, who, decision, r.run IS NULL AS erased \
             FROM audit_chain c LEFT JOIN runs r ON r.run = c.run",
        );
        if let Some(run) = run {
            query.push(" WHERE c.run = ").push_bind(run.to_string());
        }
        query.push(" ORDER BY seq DESC LIMIT ").push_bind(i64::from(limit));
        let failed = |e| Error::database(self.path(), "read the audit log", &e);
        query.build_query_as().fetch_all(self.pool()).await.map_err(failed)
    }

    /// Verifies the audit log row by row, up to the first failure: a row that was changed or removed, or that
    /// contradicts the journal of its run. `head` is the hash of a row seen earlier: that row must still
    /// exist, which detects a truncated log.
    ///
    /// # Errors
    /// Database errors.
    pub async fn verify_audit(&self, head: Option<&str>) -> Result<AuditReport, Error> {
        let failed = |e| Error::database(self.path(), "read the audit log", &e);
        let mut audit = AuditReport { rows: 0, head: HEXLOWER.encode(&GENESIS_HASH), broken: None };
        let mut before = GENESIS_HASH.to_vec();
        let mut seen = head.is_none_or(|head| head == audit.head);
        loop {
            let page = sqlx::query(AUDIT_ROWS)
                .bind(audit.rows)
                .bind(PAGE_ROWS as i64)
                .fetch_all(self.pool())
                .await
                .map_err(failed)?;
            for row in &page {
                let seq = audit.rows + 1;
                let history = self.history_before(row).await.map_err(failed)?;
                match verify_row(row, seq, &before, history.as_ref()).map_err(failed)? {
                    Ok(hash) => before = hash,
                    Err(why) => {
                        audit.broken = Some(AuditFailure { seq, why });
                        return Ok(audit);
                    }
                }
                (audit.rows, audit.head) = (seq, HEXLOWER.encode(&before));
                seen |= head == Some(audit.head.as_str());
            }
            if page.len() < PAGE_ROWS {
                break;
            }
        }
        let why = if !seen {
            Some(
                "no row has the given hash: rows were removed from the end, or all rows were replaced"
                    .to_owned(),
            )
        } else {
            self.run_without_decisions().await.map_err(failed)?.map(|run| {
                format!(
                    "run {run} has an audit key but no decision: rows were removed from the end of the log"
                )
            })
        };
        audit.broken = why.map(|why| AuditFailure { seq: audit.rows + 1, why });
        Ok(audit)
    }

    /// The hash of the journal before the event of a row; `None` if its run was erased.
    async fn history_before(&self, row: &SqliteRow) -> Result<Option<[u8; 32]>, sqlx::Error> {
        if row.try_get::<Option<&[u8]>, _>("key")?.is_none() {
            return Ok(None);
        }
        let stream = format!("run:{}", row.try_get::<&str, _>("run")?);
        let event: i64 = row.try_get("event")?;
        let mut rows = sqlx::query(HISTORY).bind(stream).bind(event).fetch(self.pool());
        let mut hash = HistoryHash::default();
        while let Some(row) = rows.try_next().await? {
            hash.add(row.try_get("body")?);
        }
        Ok(Some(hash.finish()))
    }

    /// A run that has an audit key but no decision in the audit log.
    async fn run_without_decisions(&self) -> Result<Option<String>, sqlx::Error> {
        sqlx::query_scalar(
            "SELECT run FROM audit_keys k WHERE NOT EXISTS (SELECT 1 FROM audit_chain c WHERE c.run = k.run) LIMIT 1",
        )
        .fetch_optional(self.pool())
        .await
    }
}

/// The row's hash if the row has this number and is unchanged; otherwise what is wrong with it.
fn verify_row(
    row: &SqliteRow,
    seq: i64,
    before: &[u8],
    history: Option<&[u8; 32]>,
) -> Result<Result<Vec<u8>, String>, sqlx::Error> {
    let found: i64 = row.try_get("seq")?;
    if found != seq {
        return Ok(Err(format!("it is missing: the next row is {found}")));
    }
    let hash: Vec<u8> = row.try_get("hash")?;
    let fields = AuditFields {
        seq,
        at: row.try_get("at")?,
        tenant: row.try_get("tenant")?,
        run: row.try_get("run")?,
        event: row.try_get("event")?,
        approval: row.try_get("approval")?,
        asked: row.try_get("asked")?,
        who: row.try_get("who")?,
        decision: row.try_get("decision")?,
        mac: row.try_get("what")?,
    };
    if !bool::from(fields.hash(before).ct_eq(&hash)) {
        return Ok(Err(
            "its hash does not match its content and the previous row: this row or the previous one was \
                       changed or replaced"
                .to_owned(),
        ));
    }
    let run = fields.run;
    let why = match (row.try_get::<Option<&[u8]>, _>("key")?, row.try_get::<bool, _>("erased")?) {
        // The run was erased, and its decisions with it.
        (None, true) => None,
        (None, false) => Some(format!("the key of run {run} is missing, but the run still exists")),
        (Some(key), _) => {
            let event = fields.event;
            match row.try_get::<Option<&str>, _>("decided")? {
                None => Some(format!("the journal of run {run} no longer has event {event}")),
                Some(decided) => {
                    let asked: Option<&str> = row.try_get("put")?;
                    let matches = |history| {
                        decision_mac(key, decided, asked, history)
                            .is_some_and(|made| bool::from(made.ct_eq(fields.mac)))
                    };
                    // Rows of earlier releases do not cover the journal before the decision.
                    (!matches(history) && !matches(None)).then(|| {
                        format!(
                            "event {event} in the journal of run {run}, or one before it, differs from what was \
                             decided"
                        )
                    })
                }
            }
        }
    };
    Ok(why.map_or(Ok(hash), Err))
}

impl FromRow<'_, SqliteRow> for AuditRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            seq: row.try_get("seq")?,
            at: read_time(row, "at")?,
            tenant: decode(TenantId::new(row.try_get("tenant")?))?,
            run: decode(row.try_get::<&str, _>("run")?.parse())?,
            event: row.try_get("event")?,
            approval: row.try_get("approval")?,
            who: row.try_get("who")?,
            decision: row.try_get("decision")?,
            erased: row.try_get("erased")?,
        })
    }
}
