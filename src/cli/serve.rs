//! `serve`: chatbots over HTTP, until a signal says stop.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use proscenium::Engine;
use proscenium::config::LoadedConfig;
use proscenium::http::{ServeError, Server};

use super::address::{AddressFile, ServerDefaults};
use super::args::Cli;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::signals::{Reloads, Signals};
use super::{engine, settings};

/// How often the address is left again where the disk has no room for it.
const AGAIN: Duration = Duration::from_secs(1);

/// Serves until SIGTERM or Ctrl-C; what was accepted by then is waited for.
pub async fn serve<W: Write, E: Write>(
    cli: Cli,
    loaded: LoadedConfig,
    out: &mut Output<W>,
    errors: &mut Output<E>,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new("serve.signals", format!("SIGTERM cannot be listened to: {error}")))?;
    let mut reloads = Reloads::listen()
        .map_err(|error| Failure::new("serve.signals", format!("SIGHUP cannot be listened to: {error}")))?;
    let engine = Arc::new(engine::engine(loaded.clone()).await?);
    // A process that cannot serve touches no run.
    let bound = match Server::bind(&engine, &loaded.config).await {
        Ok(bound) => bound,
        Err(error) => return Err(not_served(engine, &error).await),
    };
    // Before anything new is taken: a request comes after what was left unfinished in its conversation.
    let unfinished = match engine.resume_unfinished().await {
        Ok(unfinished) => unfinished,
        Err(fault) => {
            stop(engine).await?;
            return Err(Failure::new(&fault.code, fault.message));
        }
    };
    let server = match Server::serve(engine.clone(), &loaded.config, bound).await {
        Ok(server) => server,
        Err(error) => return Err(not_served(engine, &error).await),
    };
    if unfinished > 0 {
        let runs = if unfinished == 1 { "run" } else { "runs" };
        writeln!(errors, "carrying on {unfinished} {runs} that had not ended")?;
        errors.flush()?;
    }
    let (config, scenes) = (cli.global.config.as_deref(), loaded.config.scenes.dir.as_deref());
    let asked = ServerDefaults { tenant: engine.default_principal().0, values: settings::told(&loaded) };
    let left = AddressFile::new(&loaded.config.store.data_dir, server.addr(), config, scenes);
    let mut told = match left.tell(&asked) {
        Ok(()) => true,
        // It serves what can be read; the other commands find it once there is room.
        Err(failure) if failure.code == "store.full" => {
            failure.write(errors)?;
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
            () = reloads.next() => reload(&engine, &cli, &left, errors).await?,
            () = tokio::time::sleep(AGAIN), if !told => told = left.tell(&asked).is_ok(),
        }
    };
    // However long that takes and however it ends: nobody has died.
    engine.begin_shutdown().await;
    writeln!(errors, "{name}: finishing what was accepted; once more leaves at once")?;
    errors.flush()?;
    let drained = tokio::select! {
        drained = server.stop() => drained,
        _ = signals.next() => false,
    };
    // Before the data directory has another owner.
    drop(left);
    stop(engine).await?;
    if drained {
        return Ok(Exit::Completed);
    }
    writeln!(errors, "some runs had not ended; what they did is in the journal")?;
    Ok(Exit::Failed)
}

/// Reads the configuration and the scenes again; faulty ones leave everything as it was.
async fn reload<E: Write>(
    engine: &Engine,
    cli: &Cli,
    left: &AddressFile,
    errors: &mut Output<E>,
) -> Result<(), Failure> {
    let (loaded, faults) = super::read(cli);
    if !faults.0.is_empty() {
        writeln!(errors, "{faults}\nSIGHUP: the configuration has faults; the one before stays in force")?;
        return Ok(errors.flush()?);
    }
    let values = settings::told(&loaded);
    match engine.reload(loaded.config).await {
        Ok(restart) => {
            if let Err(failure) = left.tell(&ServerDefaults { tenant: engine.default_principal().0, values })
            {
                failure.write(errors)?;
            }
            writeln!(errors, "SIGHUP: configuration and scenes were read again")?;
            for key in restart {
                writeln!(errors, "SIGHUP: {key} has changed; a restart puts that into force")?;
            }
        }
        Err(error) => {
            let failure = engine::failed(error);
            failure.write(errors)?;
            writeln!(errors, "SIGHUP: the configuration before stays in force")?;
        }
    }
    Ok(errors.flush()?)
}

async fn not_served(engine: Arc<Engine>, error: &ServeError) -> Failure {
    match stop(engine).await {
        Ok(()) => Failure::new(error.code(), error.to_string()),
        Err(failure) => failure,
    }
}

async fn stop(engine: Arc<Engine>) -> Result<(), Failure> {
    engine.shut_down().await.map_err(|error| Failure::new(error.code(), error.to_string()))
}
