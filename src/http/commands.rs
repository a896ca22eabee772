//! Commands about runs. The engine carries them out even if the client disconnects.

use actix_web::http::StatusCode;
use actix_web::{rt, web};
use tokio::sync::oneshot;

use super::app::{AdmissionPermit, App};
use super::intake::accepted_problem;
use super::problem::Problem;
use crate::planner::{ApproverChoice, Command, CommandAction};
use crate::run::{RunId, TenantId};

/// Has the engine carry out a command. When this returns, its effects are in the journal.
pub(crate) async fn submit_command(
    app: &web::Data<App>,
    tenant: &TenantId,
    run: RunId,
    command: Command,
) -> Result<(), Problem> {
    let permit = take_permit(app, tenant, &command.action).await?;
    let (app, tenant) = (app.clone(), tenant.clone());
    let (reply, answer) = oneshot::channel();
    // In a separate task: a client that disconnects cancels nothing.
    rt::spawn(async move {
        let result = app.engine.command(&tenant, run, command).await;
        let is_accepted = result.is_ok();
        // The client may have disconnected.
        let _ = reply.send(result);
        if is_accepted && permit.is_some() {
            // The run holds the permit until it ends or waits. Its result is not needed here.
            let _ = app.engine.wait(&tenant, run).await;
        }
        drop(permit);
    });
    Ok(answer.await.map_err(|_| uncertain_outcome())??)
}

/// Like [`submit_command`], and waits until the run ends or waits for a person again.
pub(crate) async fn submit_command_and_wait(
    app: &web::Data<App>,
    tenant: &TenantId,
    run: RunId,
    command: Command,
) -> Result<(), Problem> {
    let permit = take_permit(app, tenant, &command.action).await?;
    let (app, tenant) = (app.clone(), tenant.clone());
    let (reply, answer) = oneshot::channel();
    rt::spawn(async move {
        let result = app.engine.command_and_wait(&tenant, run, command).await;
        // The client may have disconnected.
        let _ = reply.send(result);
        drop(permit);
    });
    let ended = answer.await.map_err(|_| uncertain_outcome())??;
    ended.map(drop).map_err(|fault| accepted_problem(fault, run))
}

/// A permit, if the command needs one.
async fn take_permit(
    app: &App,
    tenant: &TenantId,
    action: &CommandAction,
) -> Result<Option<AdmissionPermit>, Problem> {
    if needs_permit(action) { app.admit(tenant).await.map(Some) } else { Ok(None) }
}

/// Whether the run continues after this command, and so needs a permit. Stopping must always be possible.
fn needs_permit(action: &CommandAction) -> bool {
    match action {
        CommandAction::Approve { hold, .. } => !hold,
        CommandAction::Decide { choice, .. } => {
            matches!(
                choice,
                ApproverChoice::Yes
                    | ApproverChoice::Edited(_)
                    | ApproverChoice::Words(_)
                    | ApproverChoice::Again
            )
        }
        CommandAction::Modify { .. } | CommandAction::Reopen => true,
        CommandAction::Edit { .. }
        | CommandAction::Cancel
        | CommandAction::Rate { .. }
        | CommandAction::Expire { .. } => false,
    }
}

fn uncertain_outcome() -> Problem {
    let detail = "the command may not have been carried out because of an internal error; check its effect";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server.failed", detail)
}
