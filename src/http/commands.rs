//! Commands about runs. The engine carries them out even if the client disconnects.

use actix_web::http::StatusCode;
use actix_web::{rt, web};
use tokio::sync::oneshot;

use super::app::{AdmissionPermit, App};
use super::intake::accepted_problem;
use super::problem::Problem;
use crate::Answer;
use crate::planner::{ApproverChoice, Command, CommandAction};
use crate::run::{Fault, RunId, TenantId};

/// Has the engine carry out a command. When this returns, its effects are in the journal.
pub(crate) async fn submit_command(
    app: &web::Data<App>,
    tenant: &TenantId,
    run: RunId,
    command: Command,
) -> Result<(), Problem> {
    submit(app, tenant, run, command, false).await.map(drop)
}

/// Like [`submit_command`], and waits until the run ends or waits for a person again.
pub(crate) async fn submit_command_and_wait(
    app: &web::Data<App>,
    tenant: &TenantId,
    run: RunId,
    command: Command,
) -> Result<(), Problem> {
    match submit(app, tenant, run, command, true).await? {
        Some(Err(fault)) => Err(accepted_problem(fault, run)),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Submits a command; with `until_end`, returns how the run ended.
async fn submit(
    app: &web::Data<App>,
    tenant: &TenantId,
    run: RunId,
    command: Command,
    until_end: bool,
) -> Result<Option<Result<Answer, Fault>>, Problem> {
    let permit = take_permit(app, tenant, &command.action).await?;
    let (app, tenant) = (app.clone(), tenant.clone());
    let (reply, result) = oneshot::channel();
    // In a separate task: a client that disconnects cancels nothing.
    rt::spawn(async move {
        let outcome = match until_end {
            true => app.engine.command_and_wait(&tenant, run, command).await.map(Some),
            false => app.engine.command(&tenant, run, command).await.map(|()| None),
        };
        let may_still_run = matches!(outcome, Ok(None));
        // The client may have disconnected.
        let _ = reply.send(outcome);
        if may_still_run && permit.is_some() {
            // The run holds the permit until it ends or waits. Its result is not needed here.
            let _ = app.engine.wait(&tenant, run).await;
        }
        drop(permit);
    });
    Ok(result.await.map_err(|_| uncertain_outcome())??)
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
