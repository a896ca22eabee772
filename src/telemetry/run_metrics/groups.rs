//! The metrics of runs, grouped by subject.

use prometheus::{HistogramVec, IntCounterVec};
use strum::{IntoEnumIterator, VariantArray};

use super::registrar::MetricRegistrar;
use crate::adapt::{ConsultationKind, ConsultationOutcome, PolicyAction};
use crate::fault::FaultClass;
use crate::flow::PathMaker;
use crate::llm::{ErrorKind, Purpose};
use crate::run::{Attempt, PlanCause, RecallOutcome};
use crate::telemetry::grid::{Axis, Grid, axis};
use crate::telemetry::labels::{
    ClosedLabel, DecisionLabel, EditKind, PlanKind, PlanOutcome, RatingLabel, RequestScope, RunOutcome,
    StepOutcome, TokenKind, ToolOutcome,
};
use crate::telemetry::{LabelNames, buckets};

pub(super) type CounterGrid<const N: usize> = Grid<IntCounterVec, N>;
pub(super) type HistogramGrid<const N: usize> = Grid<HistogramVec, N>;

/// Requests, from their acceptance to their first end.
#[derive(Clone)]
pub(in crate::telemetry) struct RequestMetrics {
    pub(in crate::telemetry) ended: CounterGrid<1>,
    pub(in crate::telemetry) seconds: HistogramGrid<1>,
    pub(in crate::telemetry) overhead_seconds: HistogramGrid<0>,
    pub(in crate::telemetry) scopes: CounterGrid<1>,
    pub(in crate::telemetry) recovered: CounterGrid<1>,
}

impl RequestMetrics {
    pub(super) fn new(book: &MetricRegistrar<'_>) -> Result<Self, prometheus::Error> {
        Ok(Self {
            ended: book.count("requests_total", "Requests that ended, by their first outcome: resuming a finished run is not counted again.", ["outcome"], [RunOutcome::axis()])?.with_all_series(),
            seconds: book.time(
                "request_duration_seconds",
                "Time from a request's acceptance to its first end, excluding the time it waited for a person.",
                ["outcome"],
                [RunOutcome::axis()],
                buckets::REQUEST,
            )?,
            overhead_seconds: book.time(
                "orchestration_overhead_seconds",
                "Time of a run, from its start to its first end, excluding waits for models, tools and people.",
                [],
                [],
                buckets::OVERHEAD,
            )?.with_all_series(),
            scopes: book.count(
                "requests_by_scope_total",
                "Requests that ended and had a plan, by how much of them scenes serve: served, partly, unserved (out of scope) \
                 or conversation (no scene is needed: greetings, and what the conversation answers).",
                ["scope"],
                [RequestScope::axis()],
            )?.with_all_series(),
            recovered: book.count(
                "recovered_runs_total",
                "Runs that were recovered after a restart and ended, by outcome. A run that is resumed after its end counts at each end.",
                ["outcome"],
                [RunOutcome::axis()],
            )?.with_all_series(),
        })
    }
}

/// Plans, and what earlier runs taught about them.
#[derive(Clone)]
pub(in crate::telemetry) struct PlanMetrics {
    pub(in crate::telemetry) made: CounterGrid<2>,
    pub(in crate::telemetry) steps: HistogramGrid<2>,
    pub(in crate::telemetry) quality: HistogramGrid<2>,
    pub(in crate::telemetry) replans: CounterGrid<1>,
    pub(in crate::telemetry) reuse: CounterGrid<1>,
    pub(in crate::telemetry) path_reuse: CounterGrid<1>,
    /// By score.
    pub(in crate::telemetry) ratings: CounterGrid<1>,
}

impl PlanMetrics {
    pub(super) fn new(book: &MetricRegistrar<'_>) -> Result<Self, prometheus::Error> {
        Ok(Self {
            made: book.count(
                "plans_total",
                "Plans of runs that ended, by kind (scene; learned: from earlier executions, \
                 without a planner; fallback: made by the offline model instead of the configured models; \
                 none: nothing to execute) and outcome (needs_input: the user is asked for more; not_made: no plan could be \
                 made). For a run resumed after its \
                 end, the plans made since are counted at its next end.",
                ["kind", "outcome"],
                [PlanKind::axis(), PlanOutcome::axis()],
            )?,
            steps: book.time(
                "plan_steps",
                "Steps of a plan.",
                ["kind", "outcome"],
                [PlanKind::axis(), PlanOutcome::axis()],
                buckets::STEPS,
            )?,
            quality: book.time(
                "plan_quality_ratio",
                "Completeness of an executed plan: the share of its steps that completed and in which at least one \
                 of the expected tools succeeded (any completed step, if no tool was expected). A plan that another \
                 one had to follow lacked a step, which counts as one more step that did not complete.",
                ["kind", "outcome"],
                [PlanKind::axis(), PlanOutcome::axis()],
                buckets::RATIO,
            )?,
            replans: book.count(
                "replans_total",
                "Plans made after the first one of a run, by cause.",
                ["cause"],
                [PlanCause::axis()],
            )?.with_all_series(),
            reuse: book.count(
                "plan_reuse_total",
                "Searches for learned plans before a plan is made, by outcome (reused: no planner was asked; hints: only hints were wanted; unfit: \
                 the request is none of a kind that is learned; unknown, unproven, demoted, suspended: see the state of \
                 learned plans; changed: a tool has another definition; unusable: no valid plan with this request's values; \
                 unavailable: the store could not be read).",
                ["outcome"],
                [recall_outcomes()],
            )?.with_all_series(),
            path_reuse: book.count(
                "path_reuse_total",
                "Searches for learned paths before the path through a flow is planned, by outcome (as of plan_reuse_total; reused: no path \
                 planner was asked; unusable: the path is not possible now).",
                ["outcome"],
                [recall_outcomes()],
            )?.with_all_series(),
            ratings: book.count(
                "plan_ratings_total",
                "Ratings of plans by people. A later rating of the same person counts again.",
                ["score"],
                [RatingLabel::axis()],
            )?.with_all_series(),
        })
    }
}

/// The metrics of people's changes and decisions.
#[derive(Clone)]
pub(in crate::telemetry) struct DecisionMetrics {
    pub(in crate::telemetry) edits: CounterGrid<1>,
    pub(in crate::telemetry) edited_steps: HistogramGrid<1>,
    pub(in crate::telemetry) approval_wait: HistogramGrid<1>,
}

impl DecisionMetrics {
    pub(super) fn new(book: &MetricRegistrar<'_>) -> Result<Self, prometheus::Error> {
        Ok(Self {
            edits: book.count(
                "human_edits_total",
                "Edits by people: plan (a plan replaced by their own), feedback (replanning requested in words), \
                 arguments (of a tool call).",
                ["action"],
                [EditKind::axis()],
            )?.with_all_series(),
            edited_steps: book.time(
                "human_edited_steps",
                "Steps of a plan that a person's edit or feedback changed.",
                ["action"],
                [axis([EditKind::Plan, EditKind::Feedback].map(EditKind::name))],
                buckets::CHANGES,
            )?,
            approval_wait: book.time(
                "approval_wait_seconds",
                "Time from an approval request to its decision (expired: not decided in time).",
                ["action"],
                [DecisionLabel::axis()],
                buckets::DECISION,
            )?,
        })
    }
}

/// Steps of plans, and nodes of flows.
#[derive(Clone)]
pub(in crate::telemetry) struct StepMetrics {
    pub(in crate::telemetry) ended: CounterGrid<2>,
    pub(in crate::telemetry) seconds: HistogramGrid<2>,
    /// By flow and node, and outcome.
    pub(in crate::telemetry) flow_nodes: CounterGrid<2>,
    /// By flow, and who planned the path.
    pub(in crate::telemetry) flow_paths: CounterGrid<2>,
}

impl StepMetrics {
    pub(super) fn new(book: &MetricRegistrar<'_>, names: &LabelNames) -> Result<Self, prometheus::Error> {
        Ok(Self {
            ended: book.count(
                "steps_total",
                "Steps that ended, by scene and outcome.",
                ["scene", "outcome"],
                [names.scene_axis.clone(), StepOutcome::axis()],
            )?,
            seconds: book.time(
                "step_duration_seconds",
                "Time from a step's start to its end.",
                ["scene", "outcome"],
                [names.scene_axis.clone(), StepOutcome::axis()],
                buckets::STEP,
            )?,
            flow_nodes: book.count(
                "flow_nodes_total",
                "Nodes of flows that ended, by outcome. They are not counted as steps.",
                ["flow", "node", "outcome"],
                [names.node_axis.clone(), StepOutcome::axis()],
            )?,
            flow_paths: book.count(
                "flow_paths_total",
                "Paths through flows, by what planned them (planner: a model; rules: the offline model; learned: earlier \
                 executions; graph: nothing, so the conditions of the graph decide).",
                ["flow", "planned_by"],
                [names.scene_axis.clone(), PathMaker::axis()],
            )?,
        })
    }

    /// The same metrics for extended names.
    pub(super) fn with_names(&self, names: &LabelNames) -> Self {
        Self {
            ended: self.ended.with_first_axis(&names.scene_axis),
            seconds: self.seconds.with_first_axis(&names.scene_axis),
            flow_nodes: self.flow_nodes.with_first_axis(&names.node_axis),
            flow_paths: self.flow_paths.with_first_axis(&names.scene_axis),
        }
    }
}

/// Tool calls, and the reactions to failed ones.
#[derive(Clone)]
pub(in crate::telemetry) struct CallMetrics {
    /// By scene and tool, and outcome.
    pub(in crate::telemetry) ended: CounterGrid<2>,
    pub(in crate::telemetry) seconds: HistogramGrid<2>,
    pub(in crate::telemetry) mutations: CounterGrid<2>,
    /// By class of failure, and what was done.
    pub(in crate::telemetry) policies: CounterGrid<2>,
    pub(in crate::telemetry) consultations: CounterGrid<2>,
}

impl CallMetrics {
    pub(super) fn new(book: &MetricRegistrar<'_>, names: &LabelNames) -> Result<Self, prometheus::Error> {
        Ok(Self {
            ended: book.count(
                "tool_calls_total",
                "Tool calls that a scene's model requested, by outcome (skipped: it shares the result of an equal call).",
                ["scene", "tool", "outcome"],
                [names.tool_axis.clone(), ToolOutcome::axis()],
            )?,
            seconds: book.time(
                "tool_duration_seconds",
                "Time of an executed tool call.",
                ["scene", "tool", "outcome"],
                [names.tool_axis.clone(), ToolOutcome::axis()],
                buckets::TOOL,
            )?,
            mutations: book.count(
                "tool_mutations_total",
                "Executed calls of tools that write, by outcome (unknown: whether it was done is unknown).",
                ["scene", "tool", "outcome"],
                [names.tool_axis.clone(), ToolOutcome::axis()],
            )?,
            policies: book.count(
                "policies_total",
                "Failed attempts of tool calls in runs with a level or a mode, by the class of the failure and what was \
                 done: another attempt, the call of an alternative, an earlier result, leaving the call out, or failing.",
                ["class", "action"],
                [axis(FaultClass::iter().map(FaultClass::name)), axis(PolicyAction::VARIANTS.iter().map(|action| action.name()))],
            )?.with_all_series(),
            consultations: book.count(
                "consultations_total",
                "Unexpected things about which a model was or was not asked, by kind of consultation and by how that was \
                 decided.",
                ["scenario", "how"],
                [
                    axis(ConsultationKind::VARIANTS.iter().map(|kind| kind.name())),
                    axis(ConsultationOutcome::VARIANTS.iter().map(|how| how.name())),
                ],
            )?.with_all_series(),
        })
    }

    /// The same metrics for extended names.
    pub(super) fn with_names(&self, names: &LabelNames) -> Self {
        Self {
            ended: self.ended.with_first_axis(&names.tool_axis),
            seconds: self.seconds.with_first_axis(&names.tool_axis),
            mutations: self.mutations.with_first_axis(&names.tool_axis),
            ..self.clone()
        }
    }
}

#[derive(Clone)]
pub(in crate::telemetry) struct ModelMetrics {
    /// By model, purpose and outcome.
    pub(in crate::telemetry) requests: CounterGrid<3>,
    pub(in crate::telemetry) seconds: HistogramGrid<3>,
    pub(in crate::telemetry) first_token: HistogramGrid<3>,
    pub(in crate::telemetry) tokens: CounterGrid<3>,
    /// In nano-USD, so that sums are exact; exported in dollars.
    pub(in crate::telemetry) cost: CounterGrid<2>,
}

impl ModelMetrics {
    pub(super) fn new(book: &MetricRegistrar<'_>, names: &LabelNames) -> Result<Self, prometheus::Error> {
        Ok(Self {
            requests: book.count(
                "llm_requests_total",
                "Attempts at models, by outcome (ok, or the error class). Cached replies are not counted.",
                ["model", "purpose", "outcome"],
                [names.model_axis.clone(), purposes(), attempt_end()],
            )?,
            seconds: book.time(
                "llm_request_duration_seconds",
                "Time of one attempt at a model.",
                ["model", "purpose", "outcome"],
                [names.model_axis.clone(), purposes(), attempt_end()],
                buckets::MODEL,
            )?,
            first_token: book.time(
                "llm_time_to_first_token_seconds",
                "Time from a model request to the first token of its streamed reply.",
                ["model", "purpose", "outcome"],
                [names.model_axis.clone(), purposes(), attempt_end()],
                buckets::MODEL,
            )?,
            tokens: book.count(
                "llm_tokens_total",
                "Tokens by type: input (not cached by the provider), cached_input, output.",
                ["model", "purpose", "type"],
                [names.model_axis.clone(), purposes(), TokenKind::axis()],
            )?,
            cost: book.dollars(
                "llm_cost_usd_total",
                "US dollars charged for attempts at models.",
                ["model", "purpose"],
                [names.model_axis.clone(), purposes()],
            )?,
        })
    }

    /// The same metrics for extended names.
    pub(super) fn with_names(&self, names: &LabelNames) -> Self {
        Self {
            requests: self.requests.with_first_axis(&names.model_axis),
            seconds: self.seconds.with_first_axis(&names.model_axis),
            first_token: self.first_token.with_first_axis(&names.model_axis),
            tokens: self.tokens.with_first_axis(&names.model_axis),
            cost: self.cost.with_first_axis(&names.model_axis),
        }
    }
}

fn recall_outcomes() -> Axis {
    axis(RecallOutcome::VARIANTS.iter().map(|outcome| <&'static str>::from(*outcome)))
}

fn purposes() -> Axis {
    axis(Purpose::VARIANTS.iter().copied().map(Purpose::name).chain(["other"]))
}

fn attempt_end() -> Axis {
    axis([Attempt::OK].into_iter().chain(ErrorKind::CLASSES).chain(["other"]))
}

pub(in crate::telemetry) fn purpose_index(name: &str) -> usize {
    Purpose::VARIANTS.iter().position(|purpose| purpose.name() == name).unwrap_or(Purpose::VARIANTS.len())
}

/// The index of an attempt's outcome on its axis.
pub(in crate::telemetry) fn attempt_outcome_index(name: &str) -> usize {
    if name == Attempt::OK {
        return 0;
    }
    let class = ErrorKind::CLASSES.iter().position(|class| *class == name);
    class.map_or(ErrorKind::CLASSES.len() + 1, |at| at + 1)
}
