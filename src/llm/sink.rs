//! Telling what a reply says while it comes.

use std::sync::Arc;

use crate::run::Reply;

/// Who is told. What it does must be quick and never wait: the reply waits for it.
pub trait Listener: Send + Sync {
    /// What was told so far counts no more: its attempt failed.
    fn restart(&self);

    /// A piece of the message's text.
    fn text(&self, piece: &str);

    /// A piece of the arguments of the call with that index, as the model writes them; `name` is the
    /// function's as far as it is known.
    fn arguments(&self, call: usize, name: &str, piece: &str);

    /// The whole reply. Told once for each reply, also where its pieces were told before, and where
    /// there were none: it was kept, an equal question got it, or the model does not stream.
    fn whole(&self, reply: &Reply);
}

/// Where a reply goes while it comes: to a listener, or nowhere.
#[derive(Clone, Default)]
pub struct Sink(Option<Arc<dyn Listener>>);

impl Sink {
    /// A sink that tells `listener`.
    pub fn to(listener: Arc<dyn Listener>) -> Self {
        Self(Some(listener))
    }

    /// Whether anybody is told.
    pub fn is_live(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn restart(&self) {
        if let Some(listener) = &self.0 {
            listener.restart();
        }
    }

    pub(super) fn text(&self, piece: &str) {
        if let Some(listener) = self.0.as_ref().filter(|_| !piece.is_empty()) {
            listener.text(piece);
        }
    }

    pub(super) fn arguments(&self, call: usize, name: &str, piece: &str) {
        if let Some(listener) = self.0.as_ref().filter(|_| !piece.is_empty()) {
            listener.arguments(call, name, piece);
        }
    }

    pub(super) fn whole(&self, reply: &Reply) {
        if let Some(listener) = &self.0 {
            listener.whole(reply);
        }
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Sink(listener)" } else { "Sink(nowhere)" })
    }
}
