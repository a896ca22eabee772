//! The record of what people decided: append-only, chained, and without content, so that it outlives the
//! erasure of what was decided.
//!
//! Each row has an HMAC-SHA256 of the decision's event under a key of its run alone. Erasing the run erases the
//! key, and the HMAC then tells nobody anything; as long as the run is there, the row proves what was decided.
//! Each row's hash covers the one before it: a row that was changed, left out or put in breaks the chain.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::{Row as _, SqliteConnection};

use super::Store;
use super::error::Error;
use super::record::{Row, Stream};
use crate::run::{Decision, Event};

/// Rows that are read at once.
const PAGE: u32 = 500;

/// What stands in place of the hash before the first row.
const BEGINNING: &str = "";

/// Who decided what: all that the record says of a decision in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Who.
    pub(crate) by: String,
    /// What, as a word.
    pub(crate) decision: &'static str,
}

impl Decided {
    /// The decision that an event is, if it is a person's. A pure function.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let decided = |by: &str, decision| Some(Self { by: by.to_owned(), decision });
        match event {
            Event::Decided { by, decision, .. } => decided(
                by,
                match decision {
                    Decision::Yes { .. } => "yes",
                    Decision::Edited { .. } => "edited",
                    Decision::No => "no",
                    Decision::Done => "done",
                    Decision::NotDone => "not_done",
                    Decision::Again => "again",
                },
            ),
            Event::Released { by } => decided(by, "released"),
            Event::PlanEdited(made) => decided(made.by.as_deref().unwrap_or_default(), "plan_edited"),
            Event::ModificationAsked { by, .. } => decided(by, "modification_asked"),
            Event::RunReopened { by } => decided(by, "reopened"),
            Event::CancelRequested { by, deadline: false, .. } => decided(by, "cancelled"),
            _ => None,
        }
    }
}

/// One decision, as the record has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditRow {
    /// From 1, without gaps.
    pub seq: i64,
    /// When, in nanoseconds since 1970.
    #[serde(rename = "at_ns")]
    pub at: i64,
    /// Who pays for the run.
    pub tenant: String,
    /// The run.
    pub run: String,
    /// The number of the decision's event in the run.
    pub event: i64,
    /// Who decided.
    pub by: String,
    /// `yes`, `edited`, `no`, `done`, `not_done`, `again`, `released`, `plan_edited`, `modification_asked`,
    /// `reopened` or `cancelled`.
    pub decision: String,
    /// HMAC-SHA256 of the event, in hexadecimal digits.
    pub mac: String,
    /// The hash of the row before it; empty for the first.
    pub previous: String,
    /// SHA-256 of all of the above.
    pub hash: String,
}

impl AuditRow {
    /// When it was decided.
    pub fn time(&self) -> Timestamp {
        Timestamp::from_nanosecond(i128::from(self.at)).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn hashed(&self) -> String {
        let Self { seq, at, tenant, run, event, by, decision, mac, previous, .. } = self;
        let all = (seq, at, tenant, run, event, by, decision, mac, previous);
        hex(&Sha256::digest(serde_json::to_vec(&all).unwrap_or_default()))
    }
}

/// What a look at the whole record found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audited {
    /// How many decisions there are.
    pub rows: i64,
    /// The hash of the last one: kept elsewhere, it shows later that none of them was taken away.
    pub head: String,
    /// Those whose event was there and is what was decided.
    pub proven: u64,
    /// Those whose run was erased.
    pub erased: u64,
    /// The first row that is not what it was, and why; absent where all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// Appends the decisions among these rows, in the transaction that appends the rows.
pub(super) async fn write(tx: &mut SqliteConnection, rows: &[&Row]) -> Result<(), sqlx::Error> {
    for row in rows {
        let (Stream::Run(run), Some(decided)) = (&row.stream, &row.change.decided) else { continue };
        let run = run.to_string();
        let mac = mac(&key(tx, &run).await?, &row.body);
        let last = sqlx::query("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1");
        let (before, previous) = match last.fetch_optional(&mut *tx).await? {
            Some(last) => (last.try_get("seq")?, last.try_get("hash")?),
            None => (0, BEGINNING.to_owned()),
        };
        let mut entry = AuditRow {
            seq: before + 1,
            at: row.at,
            tenant: row.tenant.as_str().to_owned(),
            run,
            event: row.seq,
            by: decided.by.clone(),
            decision: decided.decision.to_owned(),
            mac,
            previous,
            hash: String::new(),
        };
        entry.hash = entry.hashed();
        sqlx::query(
            "INSERT INTO audit (seq, at, tenant, run, event, decided_by, decision, mac, previous, hash) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(entry.seq)
        .bind(entry.at)
        .bind(entry.tenant)
        .bind(entry.run)
        .bind(entry.event)
        .bind(entry.by)
        .bind(entry.decision)
        .bind(entry.mac)
        .bind(entry.previous)
        .bind(entry.hash)
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}

/// The key of a run's decisions, made for the first of them.
async fn key(tx: &mut SqliteConnection, run: &str) -> Result<Vec<u8>, sqlx::Error> {
    let known = sqlx::query_scalar("SELECT key FROM audit_keys WHERE run = ?").bind(run);
    if let Some(known) = known.fetch_optional(&mut *tx).await? {
        return Ok(known);
    }
    let made = rand::random::<[u8; 32]>().to_vec();
    let insert = sqlx::query("INSERT INTO audit_keys (run, key) VALUES (?, ?)").bind(run).bind(&made);
    insert.execute(tx).await?;
    Ok(made)
}

fn mac(key: &[u8], body: &str) -> String {
    // A key of any length is one.
    Hmac::<Sha256>::new_from_slice(key).map_or_else(
        |_| String::new(),
        |mut mac| {
            mac.update(body.as_bytes());
            hex(&mac.finalize().into_bytes())
        },
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Store {
    /// Decisions after number `after`, in order, at most 500.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn audit(&self, after: i64) -> Result<Vec<AuditRow>, Error> {
        let sql = "SELECT seq, at, tenant, run, event, decided_by, decision, mac, previous, hash FROM audit \
                   WHERE seq > ? ORDER BY seq LIMIT ?";
        let rows = sqlx::query(sql).bind(after).bind(PAGE).fetch_all(self.pool()).await;
        let read = |row: &sqlx::sqlite::SqliteRow| -> Result<AuditRow, sqlx::Error> {
            Ok(AuditRow {
                seq: row.try_get("seq")?,
                at: row.try_get("at")?,
                tenant: row.try_get("tenant")?,
                run: row.try_get("run")?,
                event: row.try_get("event")?,
                by: row.try_get("decided_by")?,
                decision: row.try_get("decision")?,
                mac: row.try_get("mac")?,
                previous: row.try_get("previous")?,
                hash: row.try_get("hash")?,
            })
        };
        let rows = rows.and_then(|rows| rows.iter().map(read).collect());
        rows.map_err(|e| Error::database(self.path(), "read the record of decisions", &e))
    }

    /// Looks whether the record of decisions is what it was, and whether the decisions that are still there
    /// are those that it proves.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn audited(&self) -> Result<Audited, Error> {
        let mut found = Audited { rows: 0, head: BEGINNING.to_owned(), proven: 0, erased: 0, broken: None };
        loop {
            let page = self.audit(found.rows).await?;
            if page.is_empty() {
                return Ok(found);
            }
            let mut bodies = self.decisions(&page).await?;
            for row in page {
                let wrong = fault(&row, &found).map(str::to_owned).or_else(|| {
                    match bodies.remove(&row.seq) {
                        None => found.erased += 1,
                        Some((key, Some(body))) if mac(&key, &body) == row.mac => found.proven += 1,
                        Some((_, Some(_))) => return Some("its event was changed".to_owned()),
                        Some((_, None)) => {
                            return Some("its event is gone, and its run was not erased".to_owned());
                        }
                    }
                    None
                });
                if let Some(wrong) = wrong {
                    found.broken =
                        Some(format!("row {}, decided by {} in run {}: {wrong}", row.seq, row.by, row.run));
                    return Ok(found);
                }
                (found.rows, found.head) = (row.seq, row.hash);
            }
        }
    }

    /// By row: the key of its run, and the decision's event.
    async fn decisions(&self, page: &[AuditRow]) -> Result<BTreeMap<i64, (Vec<u8>, Option<String>)>, Error> {
        let ends = (page.first().map_or(0, |row| row.seq), page.last().map_or(0, |row| row.seq));
        let sql = "SELECT audit.seq, key, body FROM audit JOIN audit_keys ON audit_keys.run = audit.run \
                   LEFT JOIN journal ON stream = 'run:' || audit.run AND journal.seq = audit.event \
                   WHERE audit.seq BETWEEN ? AND ?";
        let rows = sqlx::query_as::<_, (i64, Vec<u8>, Option<String>)>(sql).bind(ends.0).bind(ends.1);
        let rows = rows.fetch_all(self.pool()).await;
        let rows = rows.map_err(|e| Error::database(self.path(), "read the decisions", &e))?;
        Ok(rows.into_iter().map(|(seq, key, body)| (seq, (key, body))).collect())
    }
}

/// Why a row cannot be the one behind those that were looked at.
fn fault(row: &AuditRow, before: &Audited) -> Option<&'static str> {
    if row.seq != before.rows + 1 {
        Some("rows before it are missing")
    } else if row.previous != before.head {
        Some("it does not follow the row before it")
    } else if row.hash != row.hashed() {
        Some("it was changed")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
