//! Receiving a reply as it arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::run::Reply;

/// The receiver of a reply. It must return quickly and never block: the reply waits for it.
pub trait Listener: Send + Sync {
    /// Whether somebody reads what is passed on, or may do so before the reply ends. If not, the model need not stream.
    fn has_reader(&self) -> bool {
        true
    }

    /// Discards what was received so far: the attempt failed.
    fn restart(&self);

    /// A chunk of the message's text.
    fn text(&self, piece: &str);

    /// A chunk of the arguments of the call with this index, as the model writes them; `name` is the function's
    /// name as far as it is known.
    fn arguments(&self, call: usize, name: &str, piece: &str);

    /// The complete reply. Called once per reply, also after its chunks, and if there were none because it was
    /// cached, shared with an equal question, or not streamed.
    fn whole(&self, reply: &Reply);
}

/// Passes a reply on as it arrives: to a receiver, or nowhere.
#[derive(Clone, Default)]
pub struct Sink {
    listener: Option<Arc<dyn Listener>>,
    /// Whether a piece of the reply has arrived since the last restart, whether or not there is a receiver.
    begun: Arc<AtomicBool>,
}

impl Sink {
    /// A sink that passes the reply to `listener`.
    pub fn to(listener: Arc<dyn Listener>) -> Self {
        Self { listener: Some(listener), begun: Arc::default() }
    }

    /// Returns whether there is a receiver.
    pub fn is_live(&self) -> bool {
        self.listener.is_some()
    }

    /// Returns whether the reply is read as it arrives.
    pub(super) fn is_read(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| listener.has_reader())
    }

    /// Returns whether a piece of the reply has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Notes that a piece of the reply has arrived.
    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub(super) fn restart(&self) {
        self.begun.store(false, Ordering::Relaxed);
        if let Some(listener) = &self.listener {
            listener.restart();
        }
    }

    pub(super) fn text(&self, piece: &str) {
        if let Some(listener) = self.listener.as_ref().filter(|_| !piece.is_empty()) {
            listener.text(piece);
        }
    }

    pub(super) fn arguments(&self, call: usize, name: &str, piece: &str) {
        if let Some(listener) = self.listener.as_ref().filter(|_| !piece.is_empty()) {
            listener.arguments(call, name, piece);
        }
    }

    pub(super) fn whole(&self, reply: &Reply) {
        if let Some(listener) = &self.listener {
            listener.whole(reply);
        }
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.listener.is_some() { "Sink(listener)" } else { "Sink(nowhere)" })
    }
}
