//! Idempotency keys: each key of a user belongs to at most one run.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use sqlx::Row as _;

use super::Store;
use super::error::{Error, ErrorCode};
use super::record::{JournalRow, StreamId};
use crate::run::{RunId, SessionId, TenantId};

/// The request that was accepted with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedRequest {
    /// The run that it started or decided about.
    pub run: RunId,
    /// The run's conversation.
    pub session: SessionId,
    /// SHA-256 of the canonical request, in hex.
    pub hash: String,
}

impl Store {
    /// The request that a user of `tenant` sent with this idempotency key; `None` if there was none, or if it
    /// was erased with its conversation.
    ///
    /// # Errors
    /// Database errors.
    pub async fn claimed_request(
        &self,
        tenant: &TenantId,
        user: &str,
        key: &str,
    ) -> Result<Option<ClaimedRequest>, Error> {
        let failed = |e| Error::database(self.path(), "look up an idempotency key", &e);
        let row = sqlx::query(
            "SELECT run, session, hash FROM idempotency JOIN runs USING (run, tenant) \
             WHERE tenant = ? AND user = ? AND key = ?",
        )
        .bind(tenant.as_str())
        .bind(user)
        .bind(key)
        .fetch_optional(self.pool())
        .await
        .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let read = || {
            Ok::<_, sqlx::Error>(ClaimedRequest {
                run: row
                    .try_get::<&str, _>("run")?
                    .parse()
                    .map_err(|e| sqlx::Error::Decode(Box::<uuid::Error>::new(e)))?,
                session: SessionId::new(row.try_get("session")?)
                    .map_err(|e| sqlx::Error::Decode(Box::new(e)))?,
                hash: row.try_get("hash")?,
            })
        };
        read().map(Some).map_err(failed)
    }
}

const TAKEN: &str = "SELECT run FROM idempotency WHERE tenant = ? AND user = ? AND key = ?";

/// The idempotency keys of one transaction: those already taken, and those it claims.
#[derive(Default)]
pub(super) struct Claims {
    taken: BTreeMap<(TenantId, String, String), String>,
    new: Vec<NewClaim>,
}

struct NewClaim {
    tenant: TenantId,
    user: String,
    key: String,
    hash: String,
    run: String,
}

impl Claims {
    /// Reads which of the keys requested by `groups` are already taken.
    pub(super) fn read(connection: &Connection, groups: &[Vec<JournalRow>]) -> rusqlite::Result<Self> {
        let mut claims = Self::default();
        let asked =
            groups.iter().flatten().filter_map(|row| Some((row, &row.change.idempotency.as_ref()?.key)));
        for (row, key) in asked {
            let owner = &row.change.key_owner;
            let mut read = connection.prepare_cached(TAKEN)?;
            let run = read.query_row(params![row.tenant.as_str(), owner, key], |row| row.get(0));
            if let Some(run) = run.optional()? {
                claims.taken.insert((row.tenant.clone(), owner.clone(), key.clone()), run);
            }
        }
        Ok(claims)
    }

    /// Claims the keys that these rows of one stream request.
    ///
    /// # Errors
    /// `request.duplicate` if another run has one of them.
    pub(super) fn add(&mut self, stream: &StreamId, rows: &[&JournalRow]) -> Result<(), Error> {
        for row in rows {
            let (Some(asked), StreamId::Run(run)) = (&row.change.idempotency, stream) else { continue };
            let place = (row.tenant.clone(), row.change.key_owner.clone(), asked.key.clone());
            if let Some(run) = self.taken.get(&place) {
                let message = format!(
                    "{stream}: a request with this idempotency key was accepted before, as run {run}; ask for that run"
                );
                return Err(Error::new(ErrorCode::Duplicate, message));
            }
            self.taken.insert(place, run.to_string());
            self.new.push(NewClaim {
                tenant: row.tenant.clone(),
                user: row.change.key_owner.clone(),
                key: asked.key.clone(),
                hash: asked.hash.clone(),
                run: run.to_string(),
            });
        }
        Ok(())
    }

    /// Writes the claimed keys.
    pub(super) fn insert(&self, connection: &Connection) -> rusqlite::Result<()> {
        for NewClaim { tenant, user, key, hash, run } in &self.new {
            let sql = "INSERT INTO idempotency (tenant, user, key, hash, run) VALUES (?, ?, ?, ?, ?)";
            connection.prepare_cached(sql)?.execute(params![tenant.as_str(), user, key, hash, run])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::super::tests::{envelope, event, fresh, run_id, session, tenant};
    use super::*;
    use crate::run::{ApprovalSubject, Decision, Envelope, Event, Idempotency, RequestIdentity, RunStatus};

    /// The user of the test requests.
    const USER: &str = "keysersoze";

    fn named(n: u128, key: &str) -> JournalRow {
        let mut first = event(n, 1);
        if let Event::RunQueued(queued) = &mut first.body {
            queued.idempotency = Some(Idempotency { key: key.to_owned(), hash: format!("hash of {n}") });
        }
        Record::Run(first.into()).to_row().unwrap()
    }

    fn codes(outcomes: &[super::super::AppendOutcome]) -> Vec<Option<&'static str>> {
        outcomes.iter().map(|o| o.failures.first().map(|(_, error)| error.code())).collect()
    }

    #[tokio::test]
    async fn second_run_with_same_key_is_refused_alone() {
        let (_tmp, store) = fresh().await;
        let other = Record::Run(Envelope { tenant: TenantId::new("other").unwrap(), ..event(5, 1) }.into());
        let mut foreign = other.to_row().unwrap();
        foreign.change.idempotency = named(5, "a").change.idempotency;
        let groups = [vec![named(1, "a")], vec![named(2, "a")], vec![named(3, "b")], vec![foreign]];
        let outcomes = store.write(&groups).await.unwrap();
        // All in one transaction. Another tenant's key is a different key.
        assert_eq!(codes(&outcomes), [None, Some("request.duplicate"), None, None]);
        let outcomes = store.write(&[vec![named(4, "a")]]).await.unwrap();
        assert_eq!(codes(&outcomes), [Some("request.duplicate")]);
        let claimed = store.claimed_request(&tenant(), USER, "a").await.unwrap().unwrap();
        assert_eq!((claimed.run, claimed.session.as_str()), (run_id(1), "s1"));
        assert_eq!(claimed.hash, "hash of 1");
        for n in [2, 4] {
            assert_eq!(store.run(&tenant(), run_id(n)).await.unwrap(), None, "run {n}");
        }
        assert_eq!(store.claimed_request(&tenant(), USER, "c").await.unwrap(), None);
        // Another user's key is a different key.
        assert_eq!(store.claimed_request(&tenant(), "hockney", "a").await.unwrap(), None);
        let mut theirs = named(6, "a");
        theirs.change.key_owner = "hockney".to_owned();
        assert_eq!(codes(&store.write(&[vec![theirs]]).await.unwrap()), [None]);
        assert_eq!(store.claimed_request(&tenant(), "hockney", "a").await.unwrap().unwrap().run, run_id(6));
        assert_eq!(store.claimed_request(&tenant(), USER, "a").await.unwrap().unwrap().run, run_id(1));
    }

    #[tokio::test]
    async fn decision_claims_its_key_in_the_same_transaction() {
        let (_tmp, store) = fresh().await;
        let begun = |n| Record::Run(event(n, 1).into()).to_row().unwrap();
        store.write(&[vec![begun(1)], vec![begun(2)]]).await.unwrap();
        let decided = |n: u128, key: &str| {
            let idempotency = Some(Idempotency { key: key.to_owned(), hash: format!("hash of {n}") });
            let decided = Event::Decided {
                approval: 1,
                matter: ApprovalSubject::Plan { version: 1 },
                decision: Decision::No,
                by: "b".to_owned(),
                note: None,
                word: Some(RequestIdentity { idempotency, asked: None }),
            };
            Record::Run(envelope(Some(run_id(n)), "s1", 2, decided).into()).to_row().unwrap()
        };
        let outcomes = store.write(&[vec![decided(1, "a")], vec![decided(2, "a")]]).await.unwrap();
        assert_eq!(codes(&outcomes), [None, Some("request.duplicate")]);
        let claimed = store.claimed_request(&tenant(), "b", "a").await.unwrap().unwrap();
        assert_eq!((claimed.run, claimed.hash.as_str()), (run_id(1), "hash of 1"));
        // The refused event was not written, so it decided nothing.
        assert_eq!(store.run_events(&tenant(), run_id(2)).await.unwrap().len(), 1);
        assert_eq!(codes(&store.write(&[vec![decided(2, "b")]]).await.unwrap()), [None]);
    }

    #[tokio::test]
    async fn keys_are_looked_up_by_the_primary_key() {
        let (_tmp, store) = fresh().await;
        let sql = format!("EXPLAIN QUERY PLAN {TAKEN}");
        let steps = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(store.pool()).await.unwrap();
        let steps: Vec<String> = steps.iter().map(|step| step.get("detail")).collect();
        assert!(
            steps.iter().any(|step| step.starts_with("SEARCH idempotency USING PRIMARY KEY")),
            "{steps:?}"
        );
    }

    #[tokio::test]
    async fn erasing_conversation_frees_its_key() {
        let (_tmp, store) = fresh().await;
        store.write(&[vec![named(1, "a")]]).await.unwrap();
        let end = Event::RunCompleted { status: RunStatus::Completed };
        let end = Record::Run(envelope(Some(run_id(1)), "s1", 2, end).into()).to_row().unwrap();
        store.write(&[vec![end]]).await.unwrap();
        assert!(store.erase_session(&tenant(), &session("s1")).await.unwrap());
        assert_eq!(store.claimed_request(&tenant(), USER, "a").await.unwrap(), None);
        assert_eq!(codes(&store.write(&[vec![named(2, "a")]]).await.unwrap()), [None]);
    }
}
