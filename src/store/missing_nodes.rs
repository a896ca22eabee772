//! Nodes that path planners missed in flows, from the journal.

use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _};

use super::Store;
use super::error::Error;
use super::read::{decode, read_time};
use crate::flow::MissingNode;
use crate::run::{RunId, TenantId};

/// The newest suggestions of a tenant among which those of a flow are looked for.
const MAX_LOOKED_AT: u32 = 1_000;

/// A suggested node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingNodeRow {
    /// The suggestion.
    pub node: MissingNode,
    /// The run whose request needed it.
    pub run: RunId,
    /// When it was suggested.
    pub at: Timestamp,
}

impl Store {
    /// The newest nodes that were suggested for a tenant's `flow`, the last one first, at most `limit`; with `user`, only
    /// those of that user's requests. Looks at the tenant's last 1,000 suggestions.
    ///
    /// # Errors
    /// Database errors.
    pub async fn missing_nodes(
        &self,
        tenant: &TenantId,
        flow: &str,
        user: Option<&str>,
        limit: u32,
    ) -> Result<Vec<MissingNodeRow>, Error> {
        let query = sqlx::query_as(sqlx::AssertSqlSafe(query())).bind(tenant.as_str());
        let query = query.bind(flow).bind(user).bind(limit);
        query.fetch_all(self.pool()).await.map_err(|e| self.list_error(&e))
    }
}

/// The newest suggestions for tenant `?1`'s flow `?2`, of user `?3` or all, at most `?4`.
pub(super) fn query() -> String {
    format!(
        "SELECT substr(stream, 5) AS run, at, json_extract(body, '$.missing_node') AS node FROM \
             (SELECT stream, seq, at, body FROM journal WHERE tenant = ?1 \
             AND body GLOB '{{\"type\":\"flow_planned\"*,\"missing_node\":{{*' ORDER BY at DESC LIMIT {MAX_LOOKED_AT}) \
             WHERE json_valid(body) AND json_extract(body, '$.missing_node.flow') = ?2 AND \
             (?3 IS NULL OR EXISTS (SELECT 1 FROM plans WHERE run = substr(stream, 5) AND user = ?3)) \
             ORDER BY at DESC, stream, seq DESC LIMIT ?4"
    )
}

impl FromRow<'_, SqliteRow> for MissingNodeRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            node: decode(serde_json::from_str(row.try_get("node")?))?,
            run: decode(row.try_get::<&str, _>("run")?.parse())?,
            at: read_time(row, "at")?,
        })
    }
}
