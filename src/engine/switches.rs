//! Applies what operators switch off or on while the engine runs.

use std::time::Duration;

use crate::llm::DisabledModels;
use crate::store::{ErrorCode, Store, SwitchKind, SwitchRow, Switchboard, SwitchedOff};

/// How often the switches are read: a change takes effect within a second.
const READ_INTERVAL: Duration = Duration::from_millis(500);

/// Reads the switches, and applies their changes.
#[derive(Clone)]
pub(super) struct SwitchReader {
    store: Store,
    pub(super) board: Switchboard,
    models: DisabledModels,
}

impl SwitchReader {
    /// A reader that has not read anything.
    pub(super) fn new(store: &Store, models: &DisabledModels) -> Self {
        Self { store: store.clone(), board: Switchboard::default(), models: models.clone() }
    }

    /// Reads the switches once.
    ///
    /// # Errors
    /// Errors of the store; then nothing has changed.
    pub(super) async fn read(&self) -> Result<(), crate::store::Error> {
        let rows = self.store.switches().await?;
        let now: SwitchedOff = rows.iter().cloned().collect();
        if **self.board.load() == now {
            return Ok(());
        }
        self.models.replace(now.of(SwitchKind::Model).map(|row| row.name.clone()));
        let before = self.board.replace(now.clone());
        changes(&before, &now, &rows).into_iter().for_each(log);
        Ok(())
    }

    /// Reads them twice a second, until the store is closed.
    pub(super) async fn run_forever(self) {
        let mut ticks = tokio::time::interval(READ_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.read().await {
                Err(error) if error.code() == ErrorCode::Stopped.as_str() => return,
                // The known switches stay in force; the next round reads again.
                Err(error) => {
                    tracing::debug!(code = error.code(), %error, "the switches could not be read");
                }
                Ok(()) => {}
            }
        }
    }
}

/// The changes of `rows` that are between `before` and `now`.
fn changes<'a>(before: &SwitchedOff, now: &SwitchedOff, rows: &'a [SwitchRow]) -> Vec<&'a SwitchRow> {
    let is_off = |switches: &SwitchedOff, row: &SwitchRow| switches.get(row.kind, &row.name).is_some();
    rows.iter().filter(|row| is_off(before, row) != is_off(now, row)).collect()
}

fn log(row: &SwitchRow) {
    let kind: &'static str = row.kind.into();
    let change = match (row.kind, row.off) {
        (SwitchKind::Tenant, true) => "is drained",
        (SwitchKind::Tenant, false) => "is no longer drained",
        (_, true) => "is switched off",
        (_, false) => "is switched on again",
    };
    tracing::warn!(kind, name = %row.name, by = %row.by, reason = %row.reason, "{kind} {} {change}", row.name);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(off: bool, by: &str) -> SwitchRow {
        let (name, reason) = ("Weather.AddCity".to_owned(), String::new());
        SwitchRow {
            kind: SwitchKind::Tool,
            name,
            off,
            reason,
            by: by.to_owned(),
            at: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_change_names_who_made_it() {
        let of = |rows: &[SwitchRow]| rows.iter().cloned().collect::<SwitchedOff>();
        let (off, on) = ([row(true, "ann")], [row(false, "bob")]);
        let (none, was_off, is_on) = (SwitchedOff::default(), of(&off), of(&on));
        let by = |rows: Vec<&SwitchRow>| rows.iter().map(|row| row.by.clone()).collect::<Vec<_>>();
        assert_eq!(by(changes(&none, &was_off, &off)), ["ann"]);
        assert_eq!(by(changes(&was_off, &is_on, &on)), ["bob"]);
        assert!(by(changes(&was_off, &was_off, &off)).is_empty());
    }
}
