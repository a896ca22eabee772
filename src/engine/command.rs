//! Commands of people about runs and their plans: decide, modify, cancel, resume.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Engine;
use super::unreadable::is_unreadable;
use crate::actors::scene_manager::CommandMessage;
use crate::answer::{Answer, unknown_run_fault};
use crate::plan::TaskId;
use crate::planner::{Command, CommandAction, CommandRefusal};
use crate::run::{Fault, RunId, RunState, TenantId};
use crate::store::SwitchKind;

/// How long a command may take until its effects are on disk.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

impl Engine {
    /// Carries out a command about a tenant's run, whether the run is in progress, waits for a person, or
    /// has ended. When this returns, the command's effects are in the journal. Of several conflicting
    /// commands one is carried out, and the others are rejected.
    ///
    /// # Errors
    /// [`CommandRefusal`] with the reason, see [`crate::planner::command`]; `run.unknown` if the tenant has
    /// no such run.
    pub async fn command(
        &self,
        tenant: &TenantId,
        run: RunId,
        command: Command,
    ) -> Result<(), CommandRefusal> {
        self.dispatch_command(tenant, run, command, None).await
    }

    /// Like [`Engine::command`], and returns the run's answer when it ends, or waits for a person again.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub async fn command_and_wait(
        &self,
        tenant: &TenantId,
        run: RunId,
        command: Command,
    ) -> Result<Result<Answer, Fault>, CommandRefusal> {
        let (answer, answered) = oneshot::channel();
        self.dispatch_command(tenant, run, command, Some(answer)).await?;
        Ok(match answered.await {
            Ok(answer) => answer,
            // The run already had a driver, which delivers its answer to others.
            Err(_) => self.wait(tenant, run).await,
        })
    }

    /// The run whose plan has this public id; `None` if the tenant has none.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn run_of(&self, tenant: &TenantId, task: TaskId) -> Result<Option<RunId>, Fault> {
        self.parts.store.run_of_task(tenant, task).await.map_err(Fault::from)
    }

    /// The current state of a run, including events that are not on disk yet; `None` if the tenant has no
    /// such run.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn state_of(&self, tenant: &TenantId, run: RunId) -> Result<Option<RunState>, Fault> {
        self.system.journal.flush_for_read().await?;
        let state = self.run(tenant, run).await?;
        Ok((state.seq > 0).then_some(state))
    }

    async fn dispatch_command(
        &self,
        tenant: &TenantId,
        run: RunId,
        command: Command,
        answer: Option<oneshot::Sender<Result<Answer, Fault>>>,
    ) -> Result<(), CommandRefusal> {
        let drained =
            self.parts.switches.board.load().get(SwitchKind::Tenant, tenant.as_str()).map(Fault::from);
        if let (CommandAction::Reopen, Some(fault)) = (&command.action, drained) {
            return Err(fault.into());
        }
        let row = self.parts.store.run(tenant, run).await.map_err(Fault::from)?;
        let Some(row) = row else {
            return Err(unknown_run_fault(run).into());
        };
        let canceller = matches!(command.action, CommandAction::Cancel).then(|| command.by.clone());
        let (reply, done) = oneshot::channel();
        let message = CommandMessage { run, command, reply, answer };
        self.system.registry.command(tenant.clone(), row.session, message)?;
        match tokio::time::timeout(COMMAND_TIMEOUT, done).await {
            Ok(Ok(Err(refused))) => match canceller.filter(|_| is_unreadable(&refused.fault)) {
                // An unreadable run can still be cancelled.
                Some(by) if self.cancel_unreadable(tenant, run, &by).await? => Ok(()),
                _ => Err(refused),
            },
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Err(_)) => {
                let what = "the command was not carried out: too many are queued, or the run was just released; retry";
                Err(Fault::new("run.not_reached", what).into())
            }
            Err(_) => {
                let what = "the command still waits for the run's turn or for the disk; check whether it was carried out";
                Err(Fault::new("run.slow", what).into())
            }
        }
    }
}
