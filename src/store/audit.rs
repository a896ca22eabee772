//! The audit log of human decisions, which outlives the erasure of its runs.
//!
//! Each row says who decided what about which run, and when, without any content. It holds an HMAC of the
//! decision and of the question, keyed with a random key of the run. While the run exists, its journal can
//! be verified against the HMAC. Erasing the run also erases the key, so nothing can be guessed from the
//! rest. Each row's hash covers the previous row, so changing or removing a row is detectable.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use sqlx::{Row as _, SqliteConnection};

use super::keys::random;
use super::record::{Row, Stream};
use crate::run::{Decision, Event, RunId};

/// Size of a run's random key, in bytes.
const KEY_BYTES: usize = 32;

/// The previous hash of the first row.
pub(super) const BEGINNING: [u8; 32] = [0; 32];

/// A human decision as the audit log records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ruling {
    /// The ordinal of the approval, if the decision is about one.
    pub(crate) approval: Option<u32>,
    pub(crate) who: String,
    pub(crate) decision: &'static str,
}

impl Ruling {
    /// Extracts the decision of an event; `None` if the event is not a decision. A pure function.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let (approval, who, decision) = match event {
            Event::Decided { approval, decision: Decision::Yes { hold: true }, by, .. } => {
                (Some(*approval), by, "yes_later")
            }
            Event::Decided { approval, decision, by, .. } => (Some(*approval), by, decision.name()),
            Event::Released { by } => (None, by, "begin"),
            Event::ModificationAsked { by, .. } => (None, by, "change"),
            Event::PlanEdited(made) => (None, made.by.as_ref()?, "plan"),
            Event::RunReopened { by } => (None, by, "resume"),
            Event::CancelRequested { by, deadline: false, .. } => (None, by, "cancel"),
            _ => return None,
        };
        Some(Self { approval, who: who.clone(), decision })
    }
}

/// The fields that a row's hash covers, besides the previous hash.
pub(super) struct Fields<'a> {
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) tenant: &'a str,
    pub(super) run: &'a str,
    pub(super) event: i64,
    pub(super) approval: Option<u32>,
    pub(super) asked: Option<i64>,
    pub(super) who: &'a str,
    pub(super) decision: &'a str,
    pub(super) what: &'a [u8],
}

impl Fields<'_> {
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
            self.what,
        ] {
            // The length prefix keeps bytes from moving between adjacent fields unnoticed.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// The HMAC of a decision and of its question; `None` if the key has the wrong length.
pub(super) fn what(key: &[u8], decided: &str, asked: Option<&str>) -> Option<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok().filter(|_| key.len() == KEY_BYTES)?;
    mac.update(&(decided.len() as u64).to_be_bytes());
    mac.update(decided.as_bytes());
    mac.update(asked.unwrap_or_default().as_bytes());
    Some(mac.finalize().into_bytes().into())
}

/// The decisions among these rows, in order.
pub(super) fn rulings<'r>(rows: &[&'r Row]) -> Vec<(RunId, &'r Ruling, &'r Row)> {
    let rulings = rows.iter().filter_map(|row| match (&row.stream, &row.change.ruling) {
        (Stream::Run(run), Some(ruling)) => Some((*run, ruling, *row)),
        _ => None,
    });
    rulings.collect()
}

/// Appends the decisions to the audit log, in the transaction that appends their events.
pub(super) async fn write(
    tx: &mut SqliteConnection,
    rulings: &[(RunId, &Ruling, &Row)],
) -> Result<(), sqlx::Error> {
    if rulings.is_empty() {
        return Ok(());
    }
    let last = sqlx::query("SELECT seq, hash FROM audit_chain ORDER BY seq DESC LIMIT 1")
        .fetch_optional(&mut *tx)
        .await?;
    let (mut seq, mut before): (i64, Vec<u8>) = match &last {
        Some(row) => (row.try_get("seq")?, row.try_get("hash")?),
        None => (0, BEGINNING.to_vec()),
    };
    for (run, ruling, row) in rulings {
        seq += 1;
        before = add(tx, seq, &before, &run.to_string(), ruling, row).await?.to_vec();
    }
    Ok(())
}

/// Inserts one row and returns its hash.
async fn add(
    tx: &mut SqliteConnection,
    seq: i64,
    before: &[u8],
    run: &str,
    ruling: &Ruling,
    row: &Row,
) -> Result<[u8; 32], sqlx::Error> {
    let key = key(tx, run).await?;
    let asked = match ruling.approval {
        Some(approval) => asked(tx, run, row.seq, approval).await?,
        None => None,
    };
    let (asked, body) = asked.unzip();
    let what = what(&key, &row.body, body.as_deref())
        .ok_or_else(|| sqlx::Error::Protocol(format!("the key of run {run} in audit_keys is damaged")))?;
    let Ruling { approval, who, decision } = ruling;
    let (tenant, event, approval) = (row.tenant.as_str(), row.seq, *approval);
    let fields = Fields { seq, at: row.at, tenant, run, event, approval, asked, who, decision, what: &what };
    let hash = fields.hash(before);
    sqlx::query(
        "INSERT INTO audit_chain (seq, at, tenant, run, event, approval, asked, who, decision, what, hash) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(seq)
    .bind(row.at)
    .bind(tenant)
    .bind(run)
    .bind(event)
    .bind(approval)
    .bind(asked)
    .bind(who)
    .bind(*decision)
    .bind(&what[..])
    .bind(&hash[..])
    .execute(tx)
    .await?;
    Ok(hash)
}

/// The run's key; created if there is none.
async fn key(tx: &mut SqliteConnection, run: &str) -> Result<Vec<u8>, sqlx::Error> {
    let known: Option<Vec<u8>> = sqlx::query_scalar("SELECT key FROM audit_keys WHERE run = ?")
        .bind(run)
        .fetch_optional(&mut *tx)
        .await?;
    if let Some(key) = known {
        return Ok(key);
    }
    let key = random::<KEY_BYTES>().map_err(|error| sqlx::Error::Protocol(error.to_string()))?;
    sqlx::query("INSERT INTO audit_keys (run, key) VALUES (?, ?)")
        .bind(run)
        .bind(&key[..])
        .execute(tx)
        .await?;
    Ok(key.to_vec())
}

/// The event that requested an approval: its sequence number and body. It is matched as text, so a damaged
/// body of another event cannot make the query fail.
async fn asked(
    tx: &mut SqliteConnection,
    run: &str,
    before: i64,
    approval: u32,
) -> Result<Option<(i64, String)>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT seq, body FROM journal WHERE stream = 'run:' || ? AND seq < ? AND body GLOB ? \
         ORDER BY seq DESC LIMIT 1",
    )
    .bind(run)
    .bind(before)
    .bind(format!("{{\"type\":\"approval_required\",\"approval\":{approval},*"))
    .fetch_optional(tx)
    .await?;
    row.map(|row| Ok((row.try_get("seq")?, row.try_get("body")?))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: Fields<'_> = Fields {
        seq: 1,
        at: 2,
        tenant: "acme",
        run: "r",
        event: 3,
        approval: Some(4),
        asked: Some(5),
        who: "ada",
        decision: "yes",
        what: &[6],
    };

    #[test]
    fn the_hash_of_a_row_covers_each_of_its_fields_and_the_row_before() {
        let others = [
            FIELDS.hash(&[1]),
            Fields { seq: 9, ..FIELDS }.hash(&BEGINNING),
            Fields { at: 9, ..FIELDS }.hash(&BEGINNING),
            Fields { tenant: "acm", run: "er", ..FIELDS }.hash(&BEGINNING),
            Fields { run: "s", ..FIELDS }.hash(&BEGINNING),
            Fields { event: 9, ..FIELDS }.hash(&BEGINNING),
            Fields { approval: None, ..FIELDS }.hash(&BEGINNING),
            Fields { approval: None, asked: Some(4), ..FIELDS }.hash(&BEGINNING),
            Fields { who: "bob", ..FIELDS }.hash(&BEGINNING),
            Fields { decision: "no", ..FIELDS }.hash(&BEGINNING),
            Fields { what: &[7], ..FIELDS }.hash(&BEGINNING),
        ];
        let mut all = others.to_vec();
        all.push(FIELDS.hash(&BEGINNING));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), others.len() + 1);
    }

    #[test]
    fn what_was_decided_is_told_apart_by_both_events_and_by_the_key() {
        let key = [1; KEY_BYTES];
        let one = what(&key, "decided", Some("asked")).unwrap();
        assert_eq!(what(&key, "decided", Some("asked")), Some(one));
        for other in [
            what(&key, "decide", Some("dasked")),
            what(&key, "decided", None),
            what(&[2; KEY_BYTES], "decided", Some("asked")),
        ] {
            assert_ne!(other, Some(one));
        }
        assert_eq!(what(&[], "decided", None), None);
    }
}
