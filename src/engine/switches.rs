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
        let now: SwitchedOff = self.store.switches().await?.into_iter().collect();
        if **self.board.load() == now {
            return Ok(());
        }
        self.models.replace(now.of(SwitchKind::Model).map(|row| row.name.clone()));
        let before = self.board.replace(now.clone());
        now.beyond(&before).for_each(|row| log(row, "is switched off"));
        before.beyond(&now).for_each(|row| log(row, "is switched on again"));
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
                // What is known stays in force; the next round reads again.
                Err(error) => {
                    tracing::debug!(code = error.code(), %error, "the switches could not be read");
                }
                Ok(()) => {}
            }
        }
    }
}

fn log(row: &SwitchRow, change: &str) {
    let kind: &'static str = row.kind.into();
    tracing::warn!(kind, name = %row.name, by = %row.by, reason = %row.reason, "{kind} {} {change}", row.name);
}
