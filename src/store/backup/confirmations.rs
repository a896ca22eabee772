//! Questions that a plain yes answers by executing a call. After a restore they count no more: they may have been answered,
//! and the call made, after the backup was taken.

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::super::Store;
use super::super::error::Error;
use super::super::read::decode;
use super::super::record::{JournalRow, Record};
use crate::memory::{self, Memory};
use crate::run::{Envelope, SessionEvent, SessionId, TenantId};

/// The conversations in which such a question was asked, open or not, by the index of the streams.
const ASKED: &str = "SELECT tenant, session, last_seq, epoch FROM sessions AS s WHERE EXISTS (SELECT 1 FROM journal AS j \
     WHERE j.stream = 'session:' || s.tenant || '/' || s.session AND j.body GLOB '{\"type\":\"turn_ended\"*' \
     AND json_valid(j.body) AND json_array_length(j.body, '$.pending.unconfirmed') > 0) ORDER BY tenant, session";

/// A conversation, and where its stream ends.
struct AskedConversation {
    tenant: TenantId,
    session: SessionId,
    last_seq: u64,
    epoch: u32,
}

/// Records in each conversation that its open question counts no more; returns their number.
pub(super) async fn lapse_questions(store: &Store, copied: Timestamp, now: Timestamp) -> Result<u64, Error> {
    let failed = |e| Error::database(store.path(), "read the conversations", &e);
    let rows = sqlx::query(ASKED).fetch_all(store.pool()).await.map_err(failed)?;
    let mut lapsed = 0;
    for row in &rows {
        let asked = asked(row).map_err(failed)?;
        let events = match store.session_events(&asked.tenant, &asked.session).await {
            Ok(events) => events,
            // Nobody can answer in it either.
            Err(error) if error.is_damaged_stream() => continue,
            Err(error) => return Err(error),
        };
        let memory = Memory::from_events(memory::Options::default(), events.iter().map(|event| &event.body));
        if memory.pending().is_some_and(|pending| !pending.unconfirmed.is_empty()) {
            let group = vec![lapse(&asked, copied, now)?];
            for outcome in store.append(&[group], true).await? {
                if let Some((_, error)) = outcome.failures.into_iter().next() {
                    return Err(error);
                }
            }
            lapsed += 1;
        }
    }
    Ok(lapsed)
}

fn asked(row: &SqliteRow) -> Result<AskedConversation, sqlx::Error> {
    Ok(AskedConversation {
        tenant: decode(TenantId::new(row.try_get("tenant")?))?,
        session: decode(SessionId::new(row.try_get("session")?))?,
        last_seq: row.try_get("last_seq")?,
        epoch: row.try_get("epoch")?,
    })
}

fn lapse(asked: &AskedConversation, copied: Timestamp, now: Timestamp) -> Result<JournalRow, Error> {
    let lapsed = SessionEvent::QuestionLapsed { copied };
    let envelope = Envelope::of_session(&asked.tenant, &asked.session, asked.last_seq + 1, now, lapsed);
    Record::Session(Envelope { epoch: asked.epoch, ..envelope }).to_row()
}
