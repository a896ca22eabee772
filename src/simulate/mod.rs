//! A simulated model: a server of the OpenAI protocol that answers by the rules of the offline model ([`crate::llm::offline`]),
//! with latencies and faults from a [`Profile`]. It is for tests of load and of failures, without a model and its costs.
//!
//! What it answers depends on the request alone; which fault a request meets on the request, the seed and how often it
//! was sent ([`fate`]). The handlers ([`server`]) carry both to the wire.
//!
//! **Invariant:** nothing of it serves users: no engine and no store. It knows no scene; scenes are in the prompts, and what
//! the rules of a scene say in place of a model is given to it ([`NodeReply`]).

mod answers;
mod counts;
mod embed;
mod fate;
mod forced;
mod latency;
mod profile;
mod profile_file;
mod question;
mod reply;
mod server;

pub use answers::NodeReply;
pub use counts::SimulatorCounts;
pub use fate::FaultKind;
pub use latency::{LatencyDistribution, LatencyShape};
pub use profile::{FaultRates, Profile, ScriptedFault};
pub use server::{SimulateError, Simulator};
