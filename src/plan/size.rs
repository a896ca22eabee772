//! How large plans may be that people write, and how much of a plan's history is kept.

use super::{Plan, Problem};

/// The largest plan that a person may send, in bytes of its JSON.
pub const MAX_PLAN_BYTES: usize = 256 * 1024;

/// Most versions of a plan that people's changes may come to.
pub const MAX_VERSIONS: usize = 32;

/// The most that all versions of a plan together may come to, in bytes of their JSON.
pub const MAX_VERSIONS_BYTES: usize = 2 * 1024 * 1024;

/// Bytes of the plan's JSON.
pub fn size(plan: &Plan) -> usize {
    // A plan always has a JSON form.
    serde_json::to_vec(plan).map_or(usize::MAX, |json| json.len())
}

/// Whether a plan that somebody sends can be taken.
///
/// # Errors
/// `plan.too_large`.
pub fn taken(plan: &Plan) -> Result<(), Problem> {
    let bytes = size(plan);
    if bytes <= MAX_PLAN_BYTES {
        return Ok(());
    }
    let what = format!(
        "the plan has {bytes} bytes of JSON, and at most {MAX_PLAN_BYTES} are taken: leave out what its tools \
         can find themselves, or ask for it in several plans"
    );
    Err(Problem::new("plan.too_large", what))
}
