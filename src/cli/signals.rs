//! Ctrl-C and SIGTERM while a request is worked on: the first stops the run at its next safe point,
//! the second leaves at once. What was done is in the journal either way.

use std::io;

use tokio::sync::mpsc;

/// Wishes to stop, as they come.
#[derive(Debug)]
pub struct Signals {
    wishes: mpsc::Receiver<&'static str>,
}

impl Signals {
    /// Listens from now on; a signal no longer ends the process by itself.
    pub fn listen() -> io::Result<Self> {
        let (tell, wishes) = mpsc::channel(4);
        listen(tell)?;
        Ok(Self { wishes })
    }

    /// Those that a test sends.
    #[cfg(test)]
    pub fn of(wishes: mpsc::Receiver<&'static str>) -> Self {
        Self { wishes }
    }

    /// The name of the next one. Never returns where there will be none.
    pub async fn next(&mut self) -> &'static str {
        match self.wishes.recv().await {
            Some(name) => name,
            None => std::future::pending().await,
        }
    }
}

/// SIGHUPs: wishes to read the configuration again. Several that come at once are one.
#[derive(Debug)]
pub struct Reloads(#[cfg(unix)] tokio::signal::unix::Signal);

impl Reloads {
    /// Listens from now on; the signal no longer ends the process.
    pub fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        return Ok(Self(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?));
        #[cfg(not(unix))]
        return Ok(Self());
    }

    /// Returns with the next one; never where there are none.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if self.0.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}

#[cfg(unix)]
fn listen(tell: mpsc::Sender<&'static str>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    for (name, kind) in [("Ctrl-C", SignalKind::interrupt()), ("SIGTERM", SignalKind::terminate())] {
        let mut source = signal(kind)?;
        let tell = tell.clone();
        actix::spawn(async move { while source.recv().await.is_some() && passed_on(&tell, name) {} });
    }
    Ok(())
}

#[cfg(not(unix))]
fn listen(tell: mpsc::Sender<&'static str>) -> io::Result<()> {
    actix::spawn(async move { while tokio::signal::ctrl_c().await.is_ok() && passed_on(&tell, "Ctrl-C") {} });
    Ok(())
}

/// Whether anybody listens still. Who presses more than four times at once has been heard.
fn passed_on(tell: &mpsc::Sender<&'static str>, name: &'static str) -> bool {
    !matches!(tell.try_send(name), Err(mpsc::error::TrySendError::Closed(_)))
}
