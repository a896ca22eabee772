//! Switches of operators while the server runs: tools, models, and tenants that are drained.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _};
use strum::{EnumString, IntoStaticStr};

use super::Store;
use super::error::Error;
use super::keys::{check_printable, nanoseconds};
use super::read::{decode, read_time};

/// The kind of thing that a switch turns off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SwitchKind {
    /// A tool, named `Scene.Tool`: its calls are refused, and it is not offered.
    Tool,
    /// A model, by its configured name: it is not asked.
    Model,
    /// A tenant: its new requests are refused.
    Tenant,
}

/// A change of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwitchRow {
    /// The kind of thing that it turns off.
    pub kind: SwitchKind,
    /// The name of the tool, model or tenant.
    pub name: String,
    /// Whether it is switched off.
    pub off: bool,
    /// Why; may be empty.
    pub reason: String,
    /// Who changed it.
    pub by: String,
    /// When it was changed.
    pub at: Timestamp,
}

/// The things that are switched off, by kind and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchedOff(BTreeMap<(SwitchKind, String), SwitchRow>);

impl SwitchedOff {
    /// The change that switched this off; `None` if it is on.
    pub fn get(&self, kind: SwitchKind, name: &str) -> Option<&SwitchRow> {
        // Most of the time nothing is off.
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&(kind, name.to_owned()))
    }

    /// Everything of this kind that is switched off, by name.
    pub fn of(&self, kind: SwitchKind) -> impl Iterator<Item = &SwitchRow> {
        self.0.values().filter(move |row| row.kind == kind)
    }
}

impl FromIterator<SwitchRow> for SwitchedOff {
    fn from_iter<I: IntoIterator<Item = SwitchRow>>(rows: I) -> Self {
        let off = rows.into_iter().filter(|row| row.off);
        Self(off.map(|row| ((row.kind, row.name.clone()), row)).collect())
    }
}

/// The switches as this process knows them. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Switchboard(Arc<ArcSwap<SwitchedOff>>);

impl Switchboard {
    /// Returns what is switched off now.
    pub fn load(&self) -> arc_swap::Guard<Arc<SwitchedOff>> {
        self.0.load()
    }

    /// Replaces it; returns what was switched off before.
    pub fn replace(&self, now: SwitchedOff) -> Arc<SwitchedOff> {
        self.0.swap(Arc::new(now))
    }
}

impl Store {
    /// Switches something off or on again. A running server applies it within a second.
    ///
    /// # Errors
    /// `store.bad_record` if the name, the reason or `by` is not at most 128 printable characters,
    /// `store.read_only`, and database errors.
    pub async fn switch(
        &self,
        kind: SwitchKind,
        name: &str,
        off: bool,
        reason: &str,
        by: &str,
    ) -> Result<SwitchRow, Error> {
        check_printable("the name", name)?;
        check_printable("the reason", reason)?;
        check_printable("the user", by)?;
        let at = Timestamp::now();
        let failed = |e| Error::database(self.path(), "store the switch", &e);
        let mut writing = self.writer("store the switch").await?;
        sqlx::query("INSERT INTO switches (kind, name, off, reason, by, at) VALUES (?, ?, ?, ?, ?, ?)")
            .bind(<&'static str>::from(kind))
            .bind(name)
            .bind(off)
            .bind(reason)
            .bind(by)
            .bind(nanoseconds(at)?)
            .execute(writing.connection().await.map_err(failed)?)
            .await
            .map_err(failed)?;
        let (name, reason, by) = (name.to_owned(), reason.to_owned(), by.to_owned());
        Ok(SwitchRow { kind, name, off, reason, by, at })
    }

    /// The newest change of each switch.
    ///
    /// # Errors
    /// Database errors.
    pub async fn switches(&self) -> Result<Vec<SwitchRow>, Error> {
        let failed = |e| Error::database(self.path(), "read the switches", &e);
        sqlx::query_as(
            "SELECT kind, name, off, reason, by, at FROM switches \
             WHERE id IN (SELECT max(id) FROM switches GROUP BY kind, name) ORDER BY kind, name",
        )
        .fetch_all(self.pool())
        .await
        .map_err(failed)
    }
}

impl FromRow<'_, SqliteRow> for SwitchRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            kind: decode(row.try_get::<&str, _>("kind")?.parse())?,
            name: row.try_get("name")?,
            off: row.try_get("off")?,
            reason: row.try_get("reason")?,
            by: row.try_get("by")?,
            at: read_time(row, "at")?,
        })
    }
}

impl From<&SwitchRow> for crate::run::Fault {
    /// Why what is switched off is refused.
    fn from(row: &SwitchRow) -> Self {
        let reason = if row.reason.is_empty() { String::new() } else { format!(": {}", row.reason) };
        let (code, message) = match row.kind {
            SwitchKind::Tool => {
                ("tool.disabled", format!("{} is switched off since {}{reason}", row.name, row.at))
            }
            SwitchKind::Model => {
                ("llm.disabled", format!("model {} is switched off since {}{reason}", row.name, row.at))
            }
            SwitchKind::Tenant => (
                "tenant.draining",
                "new requests of this tenant are not accepted for now; runs under way end".to_owned(),
            ),
        };
        Self::new(code, message).classed(crate::run::FaultClass::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::ErrorCode;
    use super::super::tests::fresh;
    use super::*;

    #[tokio::test]
    async fn newest_change_of_a_switch_is_in_force_and_all_are_kept() {
        let (_tmp, store) = fresh().await;
        assert!(store.switches().await.unwrap().is_empty());
        store.switch(SwitchKind::Tool, "Desk.Book", true, "the back end is down", "ada").await.unwrap();
        store.switch(SwitchKind::Model, "small", true, "", "ada").await.unwrap();
        store.switch(SwitchKind::Tool, "Desk.Book", false, "it is up again", "bob").await.unwrap();
        let now = store.switches().await.unwrap();
        let view: Vec<(&str, bool, &str)> = now.iter().map(|row| (&*row.name, row.off, &*row.by)).collect();
        assert_eq!(view, [("small", true, "ada"), ("Desk.Book", false, "bob")]);
        let off: SwitchedOff = now.into_iter().collect();
        assert!(off.get(SwitchKind::Tool, "Desk.Book").is_none());
        assert_eq!(off.get(SwitchKind::Model, "small").map(|row| &*row.by), Some("ada"));
        let sql = "SELECT off FROM switches WHERE name = 'Desk.Book' ORDER BY id";
        let history: Vec<bool> = sqlx::query_scalar(sql).fetch_all(store.pool()).await.unwrap();
        assert_eq!(history, [true, false]);
        let error = store.switch(SwitchKind::Tool, "a\nb", true, "", "ada").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::BadRecord.as_str());
    }
}
