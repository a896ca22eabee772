//! Who is told that something waits for a person: an address that gets signed messages.
//!
//! **Invariant:** nothing waits for it. It reads what waits from the store, and remembers there what
//! arrived, so that another process goes on where this one ended.

mod message;
mod messenger;
mod target;

pub use messenger::Messenger;
pub use target::Target;
