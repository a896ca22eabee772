//! The rule by which a learned plan may be used now.

use jiff::Timestamp;
use strum::VariantArray as _;

use super::filling::fill;
use super::template::RequestTemplate;
use crate::llm::offline::PlainAsk;
use crate::plan::Plan;
use crate::planner;
use crate::run::{Demotion, LearnedPlan, PlanRecall, RecallOutcome, RunState};
use crate::scene::Catalogue;
use crate::store::{LearnedCount, LearnedRow};

/// The store's knowledge of a template's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanHistory {
    pub(crate) plan: LearnedPlan,
    /// How often it succeeded since it was learned or demoted.
    pub(crate) successes: u32,
    pub(crate) demoted: Option<Demotion>,
    pub(crate) suspended_until: Option<Timestamp>,
    /// Whether this user may profit from it: three users said such a request, or this one did.
    pub(crate) is_shared: bool,
}

impl From<LearnedRow> for PlanHistory {
    fn from(row: LearnedRow) -> Self {
        Self {
            successes: row.successes,
            demoted: row.demoted,
            suspended_until: row.suspended_until,
            is_shared: row.kept || row.by_user,
            plan: row.plan,
        }
    }
}

/// The standing of a learned plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(serde::Serialize, serde::Deserialize, strum::IntoStaticStr, strum::VariantArray, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LearnedStanding {
    /// It may be reused.
    Proven,
    /// It has not succeeded often enough.
    Unproven,
    /// It failed, a tool has changed, or it was rated badly.
    Demoted,
    /// One of its tools was out of service a short time ago.
    Suspended,
}

/// The standing of a plan with `successes` at `now`, where `after` successes prove it.
pub(crate) fn standing(
    successes: u32,
    demoted: Option<Demotion>,
    suspended_until: Option<Timestamp>,
    after: u32,
    now: Timestamp,
) -> LearnedStanding {
    match demoted {
        Some(Demotion::Rating) => LearnedStanding::Demoted,
        Some(Demotion::Failure | Demotion::Definition) if successes < after => LearnedStanding::Demoted,
        _ if suspended_until.is_some_and(|until| now < until) => LearnedStanding::Suspended,
        _ if successes < after => LearnedStanding::Unproven,
        _ => LearnedStanding::Proven,
    }
}

/// The number of plans of each standing.
pub(crate) fn counted(counts: &[LearnedCount]) -> Vec<(&'static str, u64)> {
    let mut found = [0_u64; LearnedStanding::VARIANTS.len()];
    let (now, later) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
    for count in counts {
        let suspended = count.is_suspended.then_some(later);
        found[standing(u32::from(count.is_proven), count.demoted, suspended, 1, now) as usize] += count.plans;
    }
    LearnedStanding::VARIANTS.iter().map(|state| <&'static str>::from(*state)).zip(found).collect()
}

/// Returns what is known of a template, if it is proven at `now` and this user may profit from it.
pub(super) fn proven(
    known: Option<&PlanHistory>,
    (after, now): (u32, Timestamp),
) -> Result<&PlanHistory, RecallOutcome> {
    let known = known.filter(|known| known.is_shared).ok_or(RecallOutcome::Unknown)?;
    match standing(known.successes, known.demoted, known.suspended_until, after, now) {
        LearnedStanding::Proven => Ok(known),
        LearnedStanding::Demoted => Err(RecallOutcome::Demoted),
        LearnedStanding::Suspended => Err(RecallOutcome::Suspended),
        LearnedStanding::Unproven => Err(RecallOutcome::Unproven),
    }
}

/// Returns what follows for a run from what is known of its template, at `now`. The plan is one that may be executed.
pub(crate) fn recalled(
    state: &RunState,
    catalogue: &Catalogue,
    template: &RequestTemplate,
    known: Option<&PlanHistory>,
    rule: (u32, Timestamp),
) -> PlanRecall {
    match found_plan(state, catalogue, template, known, rule) {
        Ok(plan) => {
            PlanRecall { plan: Some(plan), ..PlanRecall::without_plan(RecallOutcome::Reused, &template.id) }
        }
        Err(why) => PlanRecall::without_plan(why, &template.id),
    }
}

fn found_plan(
    state: &RunState,
    catalogue: &Catalogue,
    template: &RequestTemplate,
    known: Option<&PlanHistory>,
    rule: (u32, Timestamp),
) -> Result<Plan, RecallOutcome> {
    let known = proven(known, rule)?;
    let plan = fill(&known.plan, template, known.successes).ok_or(RecallOutcome::Unusable)?;
    if planner::tool_definitions(catalogue, &plan) != known.plan.definitions {
        return Err(RecallOutcome::Changed);
    }
    // A question may ask whether something is allowed.
    if template.ask == PlainAsk::Question && planner::expects_writes(catalogue, &plan) {
        return Err(RecallOutcome::Unfit);
    }
    planner::usable_learned_plan(state, catalogue, &plan).map_err(|_| RecallOutcome::Unusable)
}
