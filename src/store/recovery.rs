//! What is known of the deaths of earlier processes. It is nothing of the journal's, so it is written beside it.

use super::Store;
use super::error::Error;
use crate::run::recovery::CrashHistory;

impl Store {
    /// What the last process that served has stored; nothing where none has.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn deaths(&self) -> Result<CrashHistory, Error> {
        let failed = |e| Error::database(self.path(), "look how earlier processes ended", &e);
        let stored: Option<String> = sqlx::query_scalar("SELECT deaths FROM recovery WHERE id = 1")
            .fetch_optional(self.pool())
            .await
            .map_err(failed)?;
        // What a newer program has written there says nothing here: recovery begins anew.
        Ok(stored.and_then(|stored| serde_json::from_str(&stored).ok()).unwrap_or_default())
    }

    /// Stores it; when this returns, it is on disk.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn set_deaths(&self, deaths: &CrashHistory) -> Result<(), Error> {
        let doing = "store what is under way";
        let failed = |e| Error::database(self.path(), doing, &e);
        let mut writing = self.writer(doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        sqlx::query("INSERT INTO recovery (id, deaths) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET deaths = excluded.deaths")
            .bind(sqlx::types::Json(deaths))
            .execute(connection)
            .await
            .map_err(failed)?;
        Ok(())
    }
}
