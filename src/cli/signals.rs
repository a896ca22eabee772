//! Ctrl-C and SIGTERM while a request is worked on: the first stops the run at its next safe point,
//! the second exits at once. In both cases, the journal holds what was done.

use std::io;

use tokio::sync::mpsc;

/// Signals to stop, in order.
#[derive(Debug)]
pub struct Signals {
    names: mpsc::Receiver<&'static str>,
}

impl Signals {
    /// Listens from now on; a signal no longer ends the process by itself.
    pub fn listen() -> io::Result<Self> {
        let (sender, names) = mpsc::channel(4);
        listen(sender)?;
        Ok(Self { names })
    }

    /// Signals that a test sends.
    #[cfg(test)]
    pub fn of(names: mpsc::Receiver<&'static str>) -> Self {
        Self { names }
    }

    /// The name of the next signal. Never returns if there will be none.
    pub async fn next(&mut self) -> &'static str {
        match self.names.recv().await {
            Some(name) => name,
            None => std::future::pending().await,
        }
    }
}

/// SIGHUPs: requests to read the configuration again. Several at once count as one.
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

    /// Returns at the next signal; never on platforms without it.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if self.0.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}

#[cfg(unix)]
fn listen(sender: mpsc::Sender<&'static str>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    for (name, kind) in [("Ctrl-C", SignalKind::interrupt()), ("SIGTERM", SignalKind::terminate())] {
        let mut source = signal(kind)?;
        let sender = sender.clone();
        actix::spawn(async move { while source.recv().await.is_some() && pass_on(&sender, name) {} });
    }
    Ok(())
}

#[cfg(not(unix))]
fn listen(sender: mpsc::Sender<&'static str>) -> io::Result<()> {
    actix::spawn(async move { while tokio::signal::ctrl_c().await.is_ok() && pass_on(&sender, "Ctrl-C") {} });
    Ok(())
}

/// Passes a signal on; false if the receiver is gone. Signals beyond the channel's capacity are dropped: the
/// ones before them have the same effect.
fn pass_on(sender: &mpsc::Sender<&'static str>, name: &'static str) -> bool {
    !matches!(sender.try_send(name), Err(mpsc::error::TrySendError::Closed(_)))
}
