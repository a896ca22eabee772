//! Size limits of plans written by people, and of a plan's version history.

use super::{Plan, PlanProblem};

/// The largest plan that a person may send, in bytes of its JSON.
pub const MAX_PLAN_BYTES: usize = 256 * 1024;

/// Maximum number of versions of a plan that changes by people may create.
pub const MAX_VERSIONS: usize = 32;

/// The largest total size of all versions of a plan, in bytes of their JSON.
pub const MAX_VERSIONS_BYTES: usize = 2 * 1024 * 1024;

/// The size of the plan's JSON in bytes.
pub fn json_size(plan: &Plan) -> usize {
    // Serialising a plan cannot fail.
    serde_json::to_vec(plan).map_or(usize::MAX, |json| json.len())
}

/// Checks that a plan sent by a person is not too large.
///
/// # Errors
/// `plan.too_large`.
pub fn check_size(plan: &Plan) -> Result<(), PlanProblem> {
    let bytes = json_size(plan);
    if bytes <= MAX_PLAN_BYTES {
        return Ok(());
    }
    let what = format!(
        "the plan has {bytes} bytes of JSON, and at most {MAX_PLAN_BYTES} are accepted: omit what its tools \
         can find themselves, or split it into several plans"
    );
    Err(PlanProblem::new("plan.too_large", what))
}
