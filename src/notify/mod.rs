//! Notifications of open approvals: signed messages to a webhook.
//!
//! **Invariant:** nothing waits for notifications. The notifier reads the open approvals from the store and
//! stores there which messages were delivered, so that another process can continue.

mod message;
mod notifier;
mod webhook;

pub use notifier::WebhookNotifier;
pub use webhook::WebhookTarget;
