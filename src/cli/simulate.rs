//! `simulate-llm`: serves a simulated model until a signal stops it.

use std::io::Write;

use proscenium::shipped;
use proscenium::simulate::{Profile, Simulator};

use super::args::SimulateLlm;
use super::failure::{Exit, Failure};
use super::open_files;
use super::output::Output;
use super::server_notices::ServerNotices;
use super::signals::Signals;

/// Serves until SIGTERM or Ctrl-C, then waits for replies in progress.
pub async fn run<W: Write>(
    simulate: SimulateLlm,
    out: &mut Output<W>,
    notices: &ServerNotices,
) -> Result<Exit, Failure> {
    let profile = match simulate.profile.as_deref().map(Profile::of_file).transpose() {
        Ok(profile) => profile.unwrap_or_default(),
        Err(faults) => {
            for fault in faults {
                notices.error(&fault.to_string());
            }
            return Ok(Exit::Usage);
        }
    };
    open_files::raise_limit();
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new("simulate.signals", format!("cannot listen for SIGTERM: {error}")))?;
    let simulator = Simulator::start_with_nodes(&simulate.addr, profile, shipped::simulated_node)
        .await
        .map_err(|error| Failure::new(error.code(), error.to_string()))?;
    writeln!(out, "proscenium simulates a model at http://{}/v1", simulator.addr())?;
    out.flush()?;
    if !simulator.addr().ip().is_loopback() {
        notices.say("it is reachable from other machines, and asks for no key");
    }
    let name = signals.next().await;
    notices.say(&format!("{name}: finishing the replies in progress; a second signal exits immediately"));
    let drained = tokio::select! {
        drained = simulator.stop() => drained,
        _ = signals.next() => false,
    };
    if drained {
        return Ok(Exit::Completed);
    }
    notices.say("some replies were cut off");
    Ok(Exit::Failed)
}
