//! The crash history of earlier processes. It is no part of the journal, so it is written separately.

use super::Store;
use super::error::Error;
use crate::run::recovery::CrashHistory;

impl Store {
    /// The crash history that the last server process stored; empty if there is none.
    ///
    /// # Errors
    /// Database errors.
    pub async fn crash_history(&self) -> Result<CrashHistory, Error> {
        let failed = |e| Error::database(self.path(), "read the crash history", &e);
        let stored: Option<String> = sqlx::query_scalar("SELECT deaths FROM recovery WHERE id = 1")
            .fetch_optional(self.pool())
            .await
            .map_err(failed)?;
        // A newer version's format cannot be read here: start with an empty history.
        Ok(stored.and_then(|stored| serde_json::from_str(&stored).ok()).unwrap_or_default())
    }

    /// Stores the crash history durably: it is on disk when this returns.
    ///
    /// # Errors
    /// Database errors.
    pub async fn set_crash_history(&self, history: &CrashHistory) -> Result<(), Error> {
        let doing = "store the crash history";
        let failed = |e| Error::database(self.path(), doing, &e);
        let mut writing = self.writer(doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        sqlx::query("INSERT INTO recovery (id, deaths) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET deaths = excluded.deaths")
            .bind(sqlx::types::Json(history))
            .execute(connection)
            .await
            .map_err(failed)?;
        Ok(())
    }
}
