//! The audit log of human decisions, which outlives the erasure of its runs.
//!
//! Each row says who decided what about which run, and when, without any content. It holds an HMAC of the
//! decision, of the question and of everything that the run's journal held before, keyed with a random key of
//! the run. While the run exists, its journal can be verified against the HMAC. Erasing the run also erases the key, so nothing can be guessed from the
//! rest. Each row's hash covers the previous row, so changing or removing a row is detectable.

use hmac::{Hmac, KeyInit, Mac};
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::heads::undecodable;
use super::keys::random;
use super::record::{JournalRow, StreamId};
use crate::run::{Decision, Event, RunId};

/// Size of a run's random key, in bytes.
const KEY_BYTES: usize = 32;

/// The previous hash of the first row.
pub(super) const GENESIS_HASH: [u8; 32] = [0; 32];

/// A human decision as the audit log records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditDecision {
    /// The ordinal of the approval, if the decision is about one.
    pub(crate) approval: Option<u32>,
    /// Who decided; `None` for the user whose request the run is.
    pub(crate) who: Option<String>,
    pub(crate) decision: &'static str,
}

impl AuditDecision {
    /// Extracts the decision of an event; `None` if the event is not a decision. A pure function.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let (approval, who, decision) = match event {
            Event::Decided { approval, decision: Decision::Yes { hold: true }, by, .. } => {
                (Some(*approval), by, "yes_later")
            }
            Event::Decided { approval, decision, by, .. } => (Some(*approval), by, decision.name()),
            // Another person's edit of a call is sent for approval again; its author has decided on the arguments.
            Event::ApprovalLapsed { approval, edited: Some(edited), read: None, .. } => {
                (Some(*approval), &edited.by, "rewritten")
            }
            Event::RunStarted(started) if !started.confirmed.is_empty() => {
                return Some(Self { approval: None, who: None, decision: "confirmed" });
            }
            Event::Released { by } => (None, by, "begin"),
            Event::ModificationAsked { by, .. } => (None, by, "change"),
            Event::ListChangeAsked { approval, by, .. } => (Some(*approval), by, "change"),
            Event::PlanEdited(made) => (None, made.by.as_ref()?, "plan"),
            Event::RunReopened { by } => (None, by, "resume"),
            Event::CancelRequested { by, deadline: false, .. } => (None, by, "cancel"),
            _ => return None,
        };
        Some(Self { approval, who: Some(who.clone()), decision })
    }
}

/// The fields that a row's hash covers, besides the previous hash.
pub(super) struct AuditFields<'a> {
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) tenant: &'a str,
    pub(super) run: &'a str,
    pub(super) event: i64,
    pub(super) approval: Option<u32>,
    pub(super) asked: Option<i64>,
    pub(super) who: &'a str,
    pub(super) decision: &'a str,
    pub(super) mac: &'a [u8],
}

impl AuditFields<'_> {
    /// The hash of the row, chained to the previous hash.
    pub(super) fn hash(&self, before: &[u8]) -> [u8; 32] {
        let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
        let mut hash = Sha256::new();
        for part in [
            before,
            self.seq.to_string().as_bytes(),
            self.at.to_string().as_bytes(),
            self.tenant.as_bytes(),
            self.run.as_bytes(),
            self.event.to_string().as_bytes(),
            number(self.approval.map(i64::from)).as_bytes(),
            number(self.asked).as_bytes(),
            self.who.as_bytes(),
            self.decision.as_bytes(),
            self.mac,
        ] {
            // The length prefix keeps bytes from moving between adjacent fields unnoticed.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// The HMAC of a decision, of its question and of the journal before it; `None` if the key has the wrong
/// length. Rows of earlier releases have no `history`.
pub(super) fn decision_mac(
    key: &[u8],
    decided: &str,
    asked: Option<&str>,
    history: Option<&[u8; 32]>,
) -> Option<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok().filter(|_| key.len() == KEY_BYTES)?;
    mac.update(&(decided.len() as u64).to_be_bytes());
    mac.update(decided.as_bytes());
    mac.update(asked.unwrap_or_default().as_bytes());
    if let Some(history) = history {
        mac.update(b"history");
        mac.update(history);
    }
    Some(mac.finalize().into_bytes().into())
}

/// The bodies of the events of stream `?1` before event `?2`.
pub(super) const HISTORY: &str = "SELECT body FROM journal WHERE stream = ? AND seq < ? ORDER BY seq";

/// SHA-256 over the events of a run before a decision: what was decided refers to these.
#[derive(Default)]
pub(super) struct HistoryHash(Sha256);

impl HistoryHash {
    /// Adds the body of the next event.
    pub(super) fn add(&mut self, body: &str) {
        self.0.update((body.len() as u64).to_be_bytes());
        self.0.update(body);
    }

    /// The hash of all that were added.
    pub(super) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// The hash of the events of a run before `event`.
fn history_hash(connection: &Connection, run: &str, event: i64) -> rusqlite::Result<[u8; 32]> {
    let mut read = connection.prepare_cached(HISTORY)?;
    let mut rows = read.query(params![format!("run:{run}"), event])?;
    let mut hash = HistoryHash::default();
    while let Some(row) = rows.next()? {
        hash.add(row.get_ref("body")?.as_str()?);
    }
    Ok(hash.finish())
}

/// The decisions among these rows, in order.
pub(super) fn audit_decisions<'r>(
    rows: &[&'r JournalRow],
) -> Vec<(RunId, &'r AuditDecision, &'r JournalRow)> {
    let rulings = rows.iter().filter_map(|row| match (&row.stream, &row.change.audit_decision) {
        (StreamId::Run(run), Some(ruling)) => Some((*run, ruling, *row)),
        _ => None,
    });
    rulings.collect()
}

/// Appends the decisions to the audit log, in the transaction that appends their events.
pub(super) fn write(
    connection: &Connection,
    rulings: &[(RunId, &AuditDecision, &JournalRow)],
) -> rusqlite::Result<()> {
    if rulings.is_empty() {
        return Ok(());
    }
    let last = "SELECT seq, hash FROM audit_chain ORDER BY seq DESC LIMIT 1";
    let last = connection.prepare_cached(last)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    let (mut seq, mut before): (i64, Vec<u8>) = last.optional()?.unwrap_or((0, GENESIS_HASH.to_vec()));
    for (run, ruling, row) in rulings {
        seq += 1;
        before = insert_decision(connection, seq, &before, &run.to_string(), ruling, row)?.to_vec();
    }
    Ok(())
}

/// Inserts one row and returns its hash.
fn insert_decision(
    connection: &Connection,
    seq: i64,
    before: &[u8],
    run: &str,
    ruling: &AuditDecision,
    row: &JournalRow,
) -> rusqlite::Result<[u8; 32]> {
    let key = run_key(connection, run)?;
    let asked = match ruling.approval {
        Some(approval) => approval_event(connection, run, row.seq, approval)?,
        None => None,
    };
    let (asked, body) = asked.unzip();
    let history = history_hash(connection, run, row.seq)?;
    let what = decision_mac(&key, &row.body, body.as_deref(), Some(&history))
        .ok_or_else(|| undecodable(format!("the key of run {run} in audit_keys is damaged")))?;
    let AuditDecision { approval, who, decision } = ruling;
    let who = match who {
        Some(who) => who.clone(),
        None => requester(connection, run)?,
    };
    let who = who.as_str();
    let (tenant, event, approval) = (row.tenant.as_str(), row.seq, *approval);
    let fields =
        AuditFields { seq, at: row.at, tenant, run, event, approval, asked, who, decision, mac: &what };
    let hash = fields.hash(before);
    let mut insert = connection.prepare_cached(
        "INSERT INTO audit_chain (seq, at, tenant, run, event, approval, asked, who, decision, what, hash) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    insert.execute(params![seq, row.at, tenant, run, event, approval, asked, who, *decision, what, hash])?;
    Ok(hash)
}

/// The user whose request the run is.
fn requester(connection: &Connection, run: &str) -> rusqlite::Result<String> {
    let sql = "SELECT json_extract(body, '$.user') FROM journal WHERE stream = ? AND seq = 1";
    let mut read = connection.prepare_cached(sql)?;
    let user: Option<Option<String>> = read.query_row([format!("run:{run}")], |row| row.get(0)).optional()?;
    Ok(user.flatten().unwrap_or_default())
}

/// The run's key; created if there is none.
fn run_key(connection: &Connection, run: &str) -> rusqlite::Result<Vec<u8>> {
    let mut read = connection.prepare_cached("SELECT key FROM audit_keys WHERE run = ?")?;
    if let Some(key) = read.query_row([run], |row| row.get(0)).optional()? {
        return Ok(key);
    }
    let key = random::<KEY_BYTES>().map_err(|error| undecodable(error.to_string()))?;
    let mut insert = connection.prepare_cached("INSERT INTO audit_keys (run, key) VALUES (?, ?)")?;
    insert.execute(params![run, key])?;
    Ok(key.to_vec())
}

/// The event that requested an approval: its sequence number and body. It is matched as text, so a damaged
/// body of another event cannot make the query fail.
fn approval_event(
    connection: &Connection,
    run: &str,
    before: i64,
    approval: u32,
) -> rusqlite::Result<Option<(i64, String)>> {
    let mut read = connection.prepare_cached(
        "SELECT seq, body FROM journal WHERE stream = 'run:' || ? AND seq < ? AND body GLOB ? \
         ORDER BY seq DESC LIMIT 1",
    )?;
    let form = format!("{{\"type\":\"approval_required\",\"approval\":{approval},*");
    read.query_row(params![run, before, form], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: AuditFields<'_> = AuditFields {
        seq: 1,
        at: 2,
        tenant: "acme",
        run: "r",
        event: 3,
        approval: Some(4),
        asked: Some(5),
        who: "ada",
        decision: "yes",
        mac: &[6],
    };

    #[test]
    fn row_hash_covers_every_field_and_the_previous_row() {
        let others = [
            FIELDS.hash(&[1]),
            AuditFields { seq: 9, ..FIELDS }.hash(&GENESIS_HASH),
            AuditFields { at: 9, ..FIELDS }.hash(&GENESIS_HASH),
            AuditFields { tenant: "acm", run: "er", ..FIELDS }.hash(&GENESIS_HASH),
            AuditFields { run: "s", ..FIELDS }.hash(&GENESIS_HASH),
            AuditFields { event: 9, ..FIELDS }.hash(&GENESIS_HASH),
            AuditFields { approval: None, ..FIELDS }.hash(&GENESIS_HASH),
            AuditFields { approval: None, asked: Some(4), ..FIELDS }.hash(&GENESIS_HASH),
            AuditFields { who: "bob", ..FIELDS }.hash(&GENESIS_HASH),
            AuditFields { decision: "no", ..FIELDS }.hash(&GENESIS_HASH),
            AuditFields { mac: &[7], ..FIELDS }.hash(&GENESIS_HASH),
        ];
        let mut all = others.to_vec();
        all.push(FIELDS.hash(&GENESIS_HASH));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), others.len() + 1);
    }

    #[test]
    fn decision_mac_depends_on_both_events_and_the_key() {
        let key = [1; KEY_BYTES];
        let one = decision_mac(&key, "decided", Some("asked"), None).unwrap();
        assert_eq!(decision_mac(&key, "decided", Some("asked"), None), Some(one));
        for other in [
            decision_mac(&key, "decide", Some("dasked"), None),
            decision_mac(&key, "decided", None, None),
            decision_mac(&[2; KEY_BYTES], "decided", Some("asked"), None),
            decision_mac(&key, "decided", Some("asked"), Some(&[3; 32])),
        ] {
            assert_ne!(other, Some(one));
        }
        assert_eq!(decision_mac(&[], "decided", None, None), None);
    }
}
