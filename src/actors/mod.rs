//! The actors: one file each. They carry messages and hold no rule; rules are in `plan` and `run`.
//!
//! **Invariant:** an actor is known by its handle; no address or message type leaves its file's
//! neighbourhood, and nothing blocks an arbiter's thread.

mod aside;
pub(crate) mod clock;
pub(crate) mod driver;
pub(crate) mod feed;
pub(crate) mod gate;
pub mod journal;
pub(crate) mod launch;
pub mod live;
pub(crate) mod scene;
pub(crate) mod scene_manager;
pub(crate) mod session_registry;
