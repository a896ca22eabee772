//! Notifications of open approvals: signed messages to a webhook.
//!
//! **Invariant:** nothing waits for notifications. The notifier reads the open approvals from the store and
//! stores there which messages were delivered, so that another process can continue.

mod message;
mod messenger;
mod target;

pub use messenger::Messenger;
pub use target::Target;
