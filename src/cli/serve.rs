//! `serve`: serves the HTTP API until a signal stops it.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use proscenium::config::{LoadedConfig, ServerConfig};
use proscenium::http::{ServeError, Server};
use proscenium::{Config, Engine};

use super::address::{AddressFile, ServerDefaults};
use super::args::Cli;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::server_notices::ServerNotices;
use super::signals::{Reloads, Signals};
use super::{engine, open_files, settings};

/// How often writing the address file is tried again if the disk is full.
const REWRITE_INTERVAL: Duration = Duration::from_secs(1);

/// Serves until SIGTERM or Ctrl-C, then waits for accepted requests.
pub async fn serve<W: Write>(
    cli: Cli,
    loaded: LoadedConfig,
    out: &mut Output<W>,
    notices: &ServerNotices,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new("serve.signals", format!("cannot listen for SIGTERM: {error}")))?;
    let mut reloads = Reloads::listen()
        .map_err(|error| Failure::new("serve.signals", format!("cannot listen for SIGHUP: {error}")))?;
    let mut served = loaded.config.clone();
    if let Some(limit) = open_files::raise_limit() {
        served.server = fit_open_files(&loaded.config.server, limit)?;
    }
    let engine = Arc::new(engine::engine(loaded.clone()).await?);
    engine.server_metrics().count_dropped_log_lines(notices.dropped_lines());
    let server = start_server(&engine, &served, notices).await?;
    let (config, scenes) = (cli.global.config.as_deref(), loaded.config.scenes.dir.as_deref());
    let address = AddressFile::new(&loaded.config.store.data_dir, server.addr(), config, scenes);
    let defaults =
        ServerDefaults { tenant: engine.default_principal().0, values: settings::value_hashes(&loaded) };
    let mut is_written = match address.write(&defaults) {
        Ok(()) => true,
        // It can still serve reads; the other commands find it once there is room.
        Err(failure) if failure.code == "store.full" => {
            notices.failure(&failure);
            false
        }
        Err(failure) => {
            server.stop().await;
            stop(engine).await?;
            return Err(failure);
        }
    };
    writeln!(out, "proscenium serves at http://{}", server.addr())?;
    out.flush()?;
    let name = loop {
        tokio::select! {
            name = signals.next() => break name,
            // Scenes are read by workers, which takes time.
            () = reloads.next() => tokio::select! {
                name = signals.next() => break name,
                () = reload(&engine, &cli, &address, notices) => {}
            },
            () = tokio::time::sleep(REWRITE_INTERVAL), if !is_written => is_written = address.write(&defaults).is_ok(),
        }
    };
    // A run that is cut off by the end of a shutdown does not count as a crash, however long it takes.
    engine.begin_shutdown().await;
    notices.say(&format!("{name}: finishing accepted requests; a second signal exits immediately"));
    let drained = tokio::select! {
        drained = server.stop() => drained,
        _ = signals.next() => false,
    };
    // Before another process can own the data directory.
    drop(address);
    stop(engine).await?;
    if drained {
        return Ok(Exit::Completed);
    }
    notices.say("some runs had not ended; what they did is in the journal");
    Ok(Exit::Failed)
}

/// The values that a limit of open files allows; warns if they are lower than configured.
fn fit_open_files(configured: &ServerConfig, limit: u64) -> Result<ServerConfig, Failure> {
    const REMEDY: &str = "raise the limit of open files (`ulimit -Hn`, or LimitNOFILE= of a systemd unit)";
    let Some(fitted) = configured.within_open_files(limit) else {
        let message = format!("this process may open only {limit} files, which is too few to serve");
        return Err(Failure::new("server.open_files", message).help(REMEDY));
    };
    let needed = configured.open_files();
    if needed > limit {
        tracing::warn!(
            code = "server.open_files",
            limit,
            needed,
            "at most {} connections are served at once, and further ones wait: {REMEDY}, or lower server.max_connections \
             and server.max_in_flight",
            fitted.max_connections
        );
    }
    Ok(fitted)
}

/// Binds the port, resumes unfinished runs and begins to serve; the engine is stopped if any of it fails.
async fn start_server(
    engine: &Arc<Engine>,
    config: &Config,
    notices: &ServerNotices,
) -> Result<Server, Failure> {
    // First, so that a process that cannot serve touches no run.
    let bound = match Server::bind(engine, config).await {
        Ok(bound) => bound,
        Err(error) => return Err(not_served(engine.clone(), &error).await),
    };
    // Before any request is accepted: it comes after the unfinished runs of its conversation.
    let unfinished = match engine.resume_unfinished().await {
        Ok(unfinished) => unfinished,
        Err(fault) => {
            stop(engine.clone()).await?;
            return Err(Failure::new(&fault.code, fault.message));
        }
    };
    let server = match Server::serve(engine.clone(), config, bound).await {
        Ok(server) => server,
        Err(error) => return Err(not_served(engine.clone(), &error).await),
    };
    if unfinished > 0 {
        let runs = if unfinished == 1 { "run" } else { "runs" };
        notices.say(&format!("continuing {unfinished} {runs} that had not ended"));
    }
    Ok(server)
}

/// Reads the configuration and the scenes again; faulty ones leave everything as it was.
async fn reload(engine: &Engine, cli: &Cli, address: &AddressFile, notices: &ServerNotices) {
    let (loaded, faults) = super::read(cli);
    if !faults.0.is_empty() {
        notices.faults(&faults);
        return notices.say("SIGHUP: the configuration has faults; the previous one stays in force");
    }
    let values = settings::value_hashes(&loaded);
    match engine.reload(loaded.config).await {
        Ok(restart) => {
            if let Err(failure) =
                address.write(&ServerDefaults { tenant: engine.default_principal().0, values })
            {
                notices.failure(&failure);
            }
            notices.say("SIGHUP: configuration and scenes were read again");
            for key in restart {
                notices.say(&format!("SIGHUP: {key} has changed; this takes effect after a restart"));
            }
        }
        Err(error) => {
            notices.failure(&engine::failed(error));
            notices.say("SIGHUP: the previous configuration stays in force");
        }
    }
}

async fn not_served(engine: Arc<Engine>, error: &ServeError) -> Failure {
    match stop(engine).await {
        Ok(()) => Failure::new(error.code(), error.to_string()),
        Err(failure) => failure,
    }
}

async fn stop(engine: Arc<Engine>) -> Result<(), Failure> {
    Ok(engine.shut_down().await?)
}
