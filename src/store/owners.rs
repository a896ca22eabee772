//! Owners of runs and conversations: the user of a run's `run_queued` event, and of the first run of a
//! conversation.

use sqlx::sqlite::Sqlite;
use sqlx::{QueryBuilder, Row as _};

use super::Store;
use super::error::Error;
use super::read::decode;
use crate::run::{RunId, SessionId, TenantId};

/// Which users' rows a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OwnerScope {
    /// Rows of all users of the tenant.
    #[default]
    Tenant,
    /// Rows of one user.
    User(String),
    /// Rows of one user, and rows of runs in which any approval was requested.
    UserOrWithApprovals(String),
}

impl OwnerScope {
    /// Adds the condition for this scope to a query; `run` is the column with the run's id.
    pub(super) fn push_condition(&self, query: &mut QueryBuilder<Sqlite>, run: &'static str) {
        let (user, put) = match self {
            OwnerScope::Tenant => return,
            OwnerScope::User(user) => (user, false),
            OwnerScope::UserOrWithApprovals(user) => (user, true),
        };
        query.push(" AND (EXISTS (SELECT 1 FROM plans AS own WHERE own.run = ").push(run);
        query.push(" AND own.user = ").push_bind(user.clone()).push(")");
        if put {
            query.push(" OR EXISTS (SELECT 1 FROM approvals AS put WHERE put.run = ").push(run).push(")");
        }
        query.push(")");
    }
}

/// The stored facts of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredSession {
    /// The user of its first request; `None` if none is stored.
    pub(crate) owner: Option<String>,
    /// Whether there is any event of it, or of a run of it.
    pub(crate) has_events: bool,
}

/// The owner of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOwner {
    /// The conversation it belongs to.
    pub session: SessionId,
    /// The user who requested it; empty if unknown.
    pub user: String,
    /// Whether any approval was requested in it.
    pub has_approvals: bool,
}

impl Store {
    /// The owner of a run; `None` if the tenant has no such run.
    ///
    /// # Errors
    /// Database errors.
    pub async fn run_owner(&self, tenant: &TenantId, run: RunId) -> Result<Option<RunOwner>, Error> {
        let row = sqlx::query(
            "SELECT session, coalesce((SELECT user FROM plans WHERE plans.run = runs.run), '') AS user, \
             EXISTS (SELECT 1 FROM approvals WHERE approvals.run = runs.run) AS put \
             FROM runs WHERE tenant = ? AND run = ?",
        )
        .bind(tenant.as_str())
        .bind(run.to_string())
        .fetch_optional(self.pool())
        .await
        .map_err(|e| self.list_error(&e))?;
        let read = |row: sqlx::sqlite::SqliteRow| {
            Ok(RunOwner {
                session: decode(SessionId::new(row.try_get("session")?))?,
                user: row.try_get("user")?,
                has_approvals: row.try_get("put")?,
            })
        };
        row.map(read).transpose().map_err(|e| self.list_error(&e))
    }

    /// Returns what is stored of a conversation, in one question.
    pub(crate) async fn stored_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<StoredSession, Error> {
        let row = sqlx::query(
            "SELECT (SELECT user FROM session_owners WHERE tenant = ?1 AND session = ?2) AS owner, \
             EXISTS (SELECT 1 FROM sessions WHERE tenant = ?1 AND session = ?2) \
             OR EXISTS (SELECT 1 FROM runs WHERE tenant = ?1 AND session = ?2) AS has_events",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_one(self.pool())
        .await
        .map_err(|e| self.list_error(&e))?;
        let read =
            || Ok(StoredSession { owner: row.try_get("owner")?, has_events: row.try_get("has_events")? });
        read().map_err(|e| self.list_error(&e))
    }

    /// The owner of a conversation; `None` if nothing of it is stored.
    ///
    /// # Errors
    /// Database errors.
    pub async fn session_owner(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<String>, Error> {
        sqlx::query_scalar("SELECT user FROM session_owners WHERE tenant = ? AND session = ?")
            .bind(tenant.as_str())
            .bind(session.as_str())
            .fetch_optional(self.pool())
            .await
            .map_err(|e| self.list_error(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::super::schema::MIGRATIONS;
    use super::super::tests::{envelope, event, fresh, open, run_id, session, tenant};
    use super::super::{DataDir, RunFilter};
    use super::*;
    use crate::run::{Event, RunStatus};

    #[tokio::test]
    async fn first_user_owns_conversation_until_it_is_fully_erased() {
        let (_tmp, store) = fresh().await;
        let begun = |n: u128, user: &str| {
            let mut first = event(n, 1);
            if let Event::RunQueued(queued) = &mut first.body {
                queued.user = user.to_owned();
            }
            vec![Record::Run(first.into()).to_row().unwrap()]
        };
        store.write(&[begun(1, "ada"), begun(2, "bob")]).await.unwrap();
        let owner = async || store.session_owner(&tenant(), &session("s1")).await.unwrap();
        assert_eq!(owner().await.as_deref(), Some("ada"));
        let new = store.session(&tenant(), &session("s1")).await.unwrap().unwrap();
        assert_eq!((new.session, new.turns), (session("s1"), 0), "shown before its first turn has ended");
        let of = async |n| store.run_owner(&tenant(), run_id(n)).await.unwrap();
        let bob = RunOwner { session: session("s1"), user: "bob".to_owned(), has_approvals: false };
        assert_eq!(of(2).await, Some(bob));
        assert_eq!(of(3).await, None);
        let filter = RunFilter { scope: OwnerScope::User("bob".to_owned()), ..RunFilter::default() };
        let listed = store.runs(&tenant(), &filter, &super::super::Page::default()).await.unwrap();
        assert_eq!(listed.iter().map(|row| row.run).collect::<Vec<_>>(), [run_id(2)]);
        for n in [1, 2] {
            let end = Event::RunCompleted { status: RunStatus::Completed };
            let end = Record::Run(envelope(Some(run_id(n)), "s1", 2, end).into()).to_row().unwrap();
            store.write(&[vec![end]]).await.unwrap();
        }
        assert!(store.erase_run(&tenant(), run_id(1)).await.unwrap());
        assert_eq!(
            owner().await.as_deref(),
            Some("ada"),
            "ownership outlives the run that started the conversation"
        );
        assert!(store.erase_run(&tenant(), run_id(2)).await.unwrap());
        assert_eq!(owner().await, None);
    }

    #[tokio::test]
    async fn migration_assigns_owners_from_first_requests() {
        let tmp = tempfile::tempdir().unwrap();
        let old = Store::open_with(DataDir::open(tmp.path()).unwrap(), &MIGRATIONS[..6]).await.unwrap();
        sqlx::raw_sql(
            r#"INSERT INTO runs (run, tenant, session, status, created, updated, epoch, last_seq, request) VALUES
                ('00000000-0000-0000-0000-000000000001', 'acme', 's1', 'completed', 1, 1, 0, 1, ''),
                ('00000000-0000-0000-0000-000000000002', 'acme', 's1', 'completed', 2, 2, 0, 1, '');
            INSERT INTO plans (run, task, user, only_wanted, status, version, updated) VALUES
                ('00000000-0000-0000-0000-000000000001', 't1', 'ada', 0, 'completed', 1, 1),
                ('00000000-0000-0000-0000-000000000002', 't2', 'bob', 0, 'completed', 1, 1);
            INSERT INTO sessions (tenant, session, turns, created, updated, epoch, last_seq) VALUES
                ('acme', 's1', 1, 1, 1, 0, 1), ('acme', 'erased-runs', 1, 1, 1, 0, 1);
            INSERT INTO journal (stream, seq, session, tenant, at, epoch, schema, body) VALUES
                ('run:00000000-0000-0000-0000-000000000002', 1, 's1', 'acme', 1, 0, 1,
                '{"type":"decided","by":"carl","word":{"idempotency":{"key":"yes","hash":"h"}}}');
            INSERT INTO idempotency (tenant, key, hash, run) VALUES
                ('acme', 'one', 'h', '00000000-0000-0000-0000-000000000001'),
                ('acme', 'yes', 'h', '00000000-0000-0000-0000-000000000002');"#,
        )
        .execute(old.pool())
        .await
        .unwrap();
        old.close().await;
        let store = open(tmp.path()).await;
        let owner = async |name| store.session_owner(&tenant(), &session(name)).await.unwrap();
        assert_eq!(owner("s1").await.as_deref(), Some("ada"));
        assert_eq!(owner("erased-runs").await.as_deref(), Some(""));
        for (user, key, run) in [("ada", "one", Some(1)), ("carl", "yes", Some(2)), ("bob", "yes", None)] {
            let found = store.claimed_request(&tenant(), user, key).await.unwrap();
            assert_eq!(found.map(|claimed| claimed.run), run.map(run_id), "{user} {key}");
        }
    }
}
