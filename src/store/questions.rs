//! Runs that ended with a question or wait for a decision, for clients that keep the conversation themselves.

use jiff::Timestamp;

use super::Store;
use super::error::Error;
use super::recent_requests::first_run_id;
use super::record::request_excerpt;
use crate::run::{RunId, TenantId};

/// Maximum number of runs returned for the same request.
const MAX_QUESTIONS: u32 = 50;

impl Store {
    /// The runs of a tenant that ended with a question to the user at `since` or later and whose request has
    /// the same beginning as `request`: newest first, at most 50.
    pub(crate) async fn runs_with_question(
        &self,
        tenant: &TenantId,
        request: &str,
        since: Timestamp,
    ) -> Result<Vec<RunId>, Error> {
        let sql = "SELECT run FROM runs WHERE tenant = ?1 AND status = 'needs_input' AND request = ?2 \
                   AND updated >= ?3 ORDER BY run DESC LIMIT ?4";
        let query = sqlx::query_scalar::<_, String>(sql)
            .bind(tenant.as_str())
            .bind(request_excerpt(request))
            .bind(i64::try_from(since.as_nanosecond()).unwrap_or(i64::MAX))
            .bind(i64::from(MAX_QUESTIONS));
        let found = query.fetch_all(self.pool()).await;
        let found = found.map_err(|e| Error::database(self.path(), "find runs with a question", &e))?;
        Ok(found.iter().filter_map(|run| run.parse().ok()).collect())
    }

    /// The waiting runs of a tenant whose request has the same beginning as `request`: newest first, at most 50.
    pub(crate) async fn waiting_runs(&self, tenant: &TenantId, request: &str) -> Result<Vec<RunId>, Error> {
        let sql = "SELECT run FROM runs INDEXED BY runs_unfinished \
                   WHERE status IN ('queued', 'running', 'waiting') AND status = 'waiting' AND tenant = ?1 \
                   AND request = ?2 ORDER BY run DESC LIMIT ?3";
        let query = sqlx::query_scalar::<_, String>(sql)
            .bind(tenant.as_str())
            .bind(request_excerpt(request))
            .bind(i64::from(MAX_QUESTIONS));
        let found = query.fetch_all(self.pool()).await;
        let found = found.map_err(|e| Error::database(self.path(), "find waiting runs", &e))?;
        Ok(found.iter().filter_map(|run| run.parse().ok()).collect())
    }

    /// Returns whether the tenant sent a request, accepted at `since` or later, that answers the question of `run`.
    pub(crate) async fn is_answered(
        &self,
        tenant: &TenantId,
        run: RunId,
        since: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM runs CROSS JOIN journal ON stream = 'run:' || runs.run AND seq = 1 \
                   WHERE runs.tenant = ?1 AND runs.run >= ?2 \
                   AND CASE WHEN json_valid(body) THEN json_extract(body, '$.pending.run') END = ?3)";
        let query = sqlx::query_scalar::<_, bool>(sql)
            .bind(tenant.as_str())
            .bind(first_run_id(since).to_string())
            .bind(run.to_string());
        let found = query.fetch_one(self.pool()).await;
        found.map_err(|e| Error::database(self.path(), "find the answer to a question", &e))
    }
}
