//! What people have done with runs: handed to the engine, and carried out whether or not the client waits.

use actix_web::http::StatusCode;
use actix_web::{rt, web};
use tokio::sync::oneshot;

use super::app::App;
use super::chat::told;
use super::problem::Problem;
use crate::planner::{Choice, Command, Wish};
use crate::run::{RunId, TenantId};

/// Has a command carried out: when this returns, what it brought about is in the journal.
pub(crate) async fn order(
    app: &web::Data<App>,
    tenant: &TenantId,
    run: RunId,
    command: Command,
) -> Result<(), Problem> {
    let place = begins(&command.wish).then(|| app.admit()).transpose()?;
    let (app, tenant) = (app.clone(), tenant.clone());
    let (tell, done) = oneshot::channel();
    // A task of its own: a client that goes away takes nothing back.
    rt::spawn(async move {
        let ordered = app.engine.command(&tenant, run, command).await;
        let goes_on = ordered.is_ok();
        // Whoever asked may have gone.
        let _ = tell.send(ordered);
        if goes_on && place.is_some() {
            // The place is the run's until it ends or waits; how it ends is for whoever asks.
            let _ = app.engine.wait(&tenant, run).await;
        }
        drop(place);
    });
    Ok(done.await.map_err(|_| failed())??)
}

/// The same, and waits until the run ends or waits for a person again.
pub(crate) async fn order_and_wait(
    app: &web::Data<App>,
    tenant: &TenantId,
    run: RunId,
    command: Command,
) -> Result<(), Problem> {
    let place = begins(&command.wish).then(|| app.admit()).transpose()?;
    let (app, tenant) = (app.clone(), tenant.clone());
    let (tell, done) = oneshot::channel();
    rt::spawn(async move {
        let carried_out = app.engine.command_and_wait(&tenant, run, command).await;
        // Whoever asked may have gone.
        let _ = tell.send(carried_out);
        drop(place);
    });
    let answer = done.await.map_err(|_| failed())??;
    answer.map(drop).map_err(|fault| told(fault, run))
}

/// Whether the run goes on with it, and takes a place among those at work: to stop must always be possible.
fn begins(wish: &Wish) -> bool {
    match wish {
        Wish::Approve { hold, .. } => !hold,
        Wish::Decide { choice, .. } => matches!(choice, Choice::Yes | Choice::Edited(_) | Choice::Again),
        Wish::Modify { .. } | Wish::Reopen => true,
        Wish::Edit { .. } | Wish::Cancel | Wish::Expire { .. } => false,
    }
}

fn failed() -> Problem {
    let detail = "what was asked may not have been done: the server failed; look at it again";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server.failed", detail)
}
