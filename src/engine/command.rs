//! What people may have done with runs and their plans: decided, changed, cancelled, carried on.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Engine;
use super::unreadable::is_unreadable;
use crate::actors::driver::store_fault;
use crate::actors::scene_manager::CommandMessage;
use crate::answer::Answer;
use crate::plan::TaskId;
use crate::planner::{Command, Refused, Wish};
use crate::run::{Fault, RunId, RunState, TenantId};

/// How long a decision may take to get on disk.
const PATIENCE: Duration = Duration::from_secs(30);

impl Engine {
    /// Has a command about a tenant's run carried out, whether the run is under way, waits for a person,
    /// or has ended; when this returns, what it brought about is in the journal. Of many commands that
    /// exclude each other one is carried out, and the others are refused.
    ///
    /// # Errors
    /// [`Refused`] with why: see [`crate::planner::command`]; `run.unknown` where the tenant has no such
    /// run.
    pub async fn command(&self, tenant: &TenantId, run: RunId, command: Command) -> Result<(), Refused> {
        self.order(tenant, run, command, None).await
    }

    /// The same, and gives the answer that the run comes to: when it ends, or waits for a person again.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub async fn command_and_wait(
        &self,
        tenant: &TenantId,
        run: RunId,
        command: Command,
    ) -> Result<Result<Answer, Fault>, Refused> {
        let (answer, answered) = oneshot::channel();
        self.order(tenant, run, command, Some(answer)).await?;
        Ok(match answered.await {
            Ok(answer) => answer,
            // It had a driver already, which others wait for.
            Err(_) => self.wait(tenant, run).await,
        })
    }

    /// The run whose plan has this public id; `None` where the tenant has none.
    ///
    /// # Errors
    /// The store's.
    pub async fn run_of(&self, tenant: &TenantId, task: TaskId) -> Result<Option<RunId>, Fault> {
        self.parts.store.run_of(tenant, task).await.map_err(|error| store_fault(&error))
    }

    /// A run as its journal has it just now, with all that was told to the journal so far; `None` where
    /// the tenant has no such run.
    ///
    /// # Errors
    /// The store's.
    pub async fn state_of(&self, tenant: &TenantId, run: RunId) -> Result<Option<RunState>, Fault> {
        self.system.journal.flush_to_read().await.map_err(|error| store_fault(&error))?;
        let state = self.run(tenant, run).await?;
        Ok((state.seq > 0).then_some(state))
    }

    async fn order(
        &self,
        tenant: &TenantId,
        run: RunId,
        command: Command,
        answer: Option<oneshot::Sender<Result<Answer, Fault>>>,
    ) -> Result<(), Refused> {
        let refused = |fault: Fault| Refused { fault, difference: Vec::new(), record: None };
        let row = self.parts.store.run(tenant, run).await.map_err(|error| refused(store_fault(&error)))?;
        let Some(row) = row else {
            return Err(refused(Fault::new("run.unknown", format!("there is no run {run}"))));
        };
        let is_cancelled = matches!(command.wish, Wish::Cancel).then(|| command.by.clone());
        let (reply, done) = oneshot::channel();
        let wish = CommandMessage { run, command, reply, answer };
        self.system.registry.command(tenant.clone(), row.session, wish).map_err(refused)?;
        match tokio::time::timeout(PATIENCE, done).await {
            // A run that cannot be read can still be ended.
            Ok(Ok(Err(unread))) if is_cancelled.is_some() && is_unreadable(&unread.fault) => {
                let by = is_cancelled.unwrap_or_default();
                match self.cancel_unreadable(tenant, run, &by).await.map_err(refused)? {
                    true => Ok(()),
                    false => Err(unread),
                }
            }
            Ok(Ok(done)) => done,
            Ok(Err(_)) => {
                let what =
                    "the decision was not taken: too many wait, or the run was left just then; try again";
                Err(refused(Fault::new("run.not_reached", what)))
            }
            Err(_) => {
                let what =
                    "the decision waits for the run's turn, or for the disk: look whether it was taken";
                Err(refused(Fault::new("run.slow", what)))
            }
        }
    }
}
