//! The tables of the scenes.

use sqlx::{AssertSqlSafe, Connection as _};

use super::Store;
use super::error::{Error, ErrorCode};

/// The definitions of the store's own tables, to detect that a scene changes them.
const RESERVED: &str = "SELECT group_concat(name || ' ' || coalesce(sql, ''), ';') FROM (SELECT name, sql FROM sqlite_schema \
     WHERE tbl_name IN ('journal', 'runs', 'sessions', 'api_keys', 'idempotency', 'erased_usage', \
     'audit_chain', 'audit_keys') ORDER BY name)";

impl Store {
    /// Runs a scene's `schema.sql` in one transaction. It runs at every start, so it must use
    /// `CREATE TABLE IF NOT EXISTS`. The names `journal`, `runs`, `sessions`, `api_keys`,
    /// `idempotency`, `erased_usage`, `audit_chain` and `audit_keys` are reserved.
    ///
    /// # Errors
    /// `store.scene_schema` names the scene and what is wrong with its SQL; nothing of it is applied.
    pub async fn apply_scene_schema(&self, scene: &str, sql: &str) -> Result<(), Error> {
        let doing = format!("create the tables of scene {scene}");
        let failed = |e| Error::database(self.path(), &doing, &e);
        let wrong = |why: String| {
            Error::new(
                ErrorCode::SceneSchema,
                format!("the schema.sql of scene {scene} cannot be applied: {why}"),
            )
        };
        let mut writing = self.writer(&doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        let before: Option<String> =
            sqlx::query_scalar(RESERVED).fetch_one(&mut *tx).await.map_err(failed)?;
        let version: i64 =
            sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *tx).await.map_err(failed)?;
        // The operator's own file is trusted and runs unchanged.
        if let Err(error) = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *tx).await {
            let why = error.as_database_error().map(|error| error.message().to_owned());
            let error = match failed(error) {
                error if error.kind() == ErrorCode::Failed => wrong(why.unwrap_or_else(|| error.to_string())),
                other => other,
            };
            return Err(error);
        }
        let after: Option<String> = sqlx::query_scalar(RESERVED).fetch_one(&mut *tx).await.map_err(failed)?;
        let version_after: i64 =
            sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *tx).await.map_err(failed)?;
        if before != after || version != version_after {
            return Err(wrong(
                "it changes the store's own tables; name its tables after the scene".to_owned(),
            ));
        }
        tx.commit().await.map_err(failed)
    }
}
