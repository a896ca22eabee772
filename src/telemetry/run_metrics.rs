//! All metrics of runs, with their labels and buckets.

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, MetricFamily};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use strum::{IntoEnumIterator, VariantArray};

use super::grid::{Axis, Grid, LabelledMetric, axis};
use super::labels::{
    ClosedLabel, DecisionLabel, EditKind, InFlightState, PathLabel, PlanKind, PlanOutcome, RatingLabel,
    ReplanCause, RequestScope, RunOutcome, StepOutcome, TokenKind, ToolOutcome,
};
use super::tenant_metrics::TenantMetrics;
use super::{LabelNames, PREFIX, buckets};
use crate::adapt::{ConsultationKind, ConsultationOutcome, PolicyAction};
use crate::fault::FaultClass;
use crate::llm::{ErrorKind, Purpose};
use crate::run::{Attempt, RecallOutcome};

type CounterGrid<const N: usize> = Grid<IntCounterVec, N>;
type HistogramGrid<const N: usize> = Grid<HistogramVec, N>;

/// The metrics of runs. Recording is an index and an atomic operation, without locks.
#[derive(Clone)]
pub struct RunMetrics {
    registry: Registry,
    pub(super) requests: CounterGrid<1>,
    pub(super) request_seconds: HistogramGrid<1>,
    pub(super) overhead_seconds: HistogramGrid<0>,
    pub(super) scopes: CounterGrid<1>,
    pub(super) tenants: TenantMetrics,
    pub(super) plans: CounterGrid<2>,
    pub(super) plan_steps: HistogramGrid<2>,
    pub(super) plan_quality: HistogramGrid<2>,
    pub(super) steps: CounterGrid<2>,
    pub(super) step_seconds: HistogramGrid<2>,
    /// By flow and node, and outcome.
    pub(super) flow_nodes: CounterGrid<2>,
    /// By flow, and who planned the path.
    pub(super) flow_paths: CounterGrid<2>,
    pub(super) replans: CounterGrid<1>,
    /// By scene and tool, and outcome.
    pub(super) calls: CounterGrid<2>,
    pub(super) call_seconds: HistogramGrid<2>,
    pub(super) mutations: CounterGrid<2>,
    /// By class of failure, and what was done.
    pub(super) policies: CounterGrid<2>,
    pub(super) consultations: CounterGrid<2>,
    /// By model, purpose and outcome.
    pub(super) llm_requests: CounterGrid<3>,
    pub(super) llm_seconds: HistogramGrid<3>,
    pub(super) llm_first_token: HistogramGrid<3>,
    pub(super) llm_tokens: CounterGrid<3>,
    /// In nano-USD, so that sums are exact; exported in dollars.
    pub(super) llm_cost: CounterGrid<2>,
    pub(super) in_flight: Grid<IntGaugeVec, 1>,
    pub(super) recovered: CounterGrid<1>,
    pub(super) plan_reuse: CounterGrid<1>,
    pub(super) path_reuse: CounterGrid<1>,
    /// By score.
    pub(super) ratings: CounterGrid<1>,
    pub(super) edits: CounterGrid<1>,
    pub(super) edited_steps: HistogramGrid<1>,
    pub(super) approval_wait: HistogramGrid<1>,
}

/// The index of a purpose on its axis.
pub(super) fn purpose_index(name: &str) -> usize {
    Purpose::VARIANTS.iter().position(|purpose| purpose.name() == name).unwrap_or(Purpose::VARIANTS.len())
}

/// The index of an attempt's outcome on its axis.
pub(super) fn attempt_outcome_index(name: &str) -> usize {
    if name == Attempt::OK {
        return 0;
    }
    let class = ErrorKind::CLASSES.iter().position(|class| *class == name);
    class.map_or(ErrorKind::CLASSES.len() + 1, |at| at + 1)
}

impl RunMetrics {
    /// Creates the metrics. Those whose labels do not depend on the configuration start at zero.
    ///
    /// # Errors
    /// If two metrics have the same name, or a name is invalid.
    pub fn new(names: &LabelNames) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let book = MetricRegistrar(&registry);
        let outcomes = RunOutcome::axis;
        let (scenes, tools, models) =
            (|| names.scene_axis.clone(), || names.tool_axis.clone(), || names.model_axis.clone());
        let (plan_kind, plan_end) = (PlanKind::axis, PlanOutcome::axis);
        let (step_end, call_end) = (StepOutcome::axis, ToolOutcome::axis);
        let purposes = || axis(Purpose::VARIANTS.iter().copied().map(Purpose::name).chain(["other"]));
        let attempt_end = || axis([Attempt::OK].into_iter().chain(ErrorKind::CLASSES).chain(["other"]));
        let made = Self {
            requests: book.count("requests_total", "Requests that ended, by their first outcome: resuming a finished run is not counted again.", ["outcome"], [outcomes()])?.with_all_series(),
            request_seconds: book.time(
                "request_duration_seconds",
                "Time from a request's acceptance to its first end, excluding the time it waited for a person.",
                ["outcome"],
                [outcomes()],
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
            tenants: book.tenants(names)?,
            plans: book.count(
                "plans_total",
                "Plans of runs that ended, by kind (scene; learned: from earlier executions, \
                 without a planner; fallback: made by the embedded rules instead of models; \
                 none: nothing to execute) and outcome (needs_input: the user is asked for more; not_made: no plan could be \
                 made). For a run resumed after its \
                 end, the plans made since are counted at its next end.",
                ["kind", "outcome"],
                [plan_kind(), plan_end()],
            )?,
            plan_steps: book.time(
                "plan_steps",
                "Steps of a plan.",
                ["kind", "outcome"],
                [plan_kind(), plan_end()],
                buckets::STEPS,
            )?,
            plan_quality: book.time(
                "plan_quality_ratio",
                "Completeness of an executed plan: the share of its steps that completed and in which at least one \
                 of the expected tools succeeded (any completed step, if no tool was expected). A plan that another \
                 one had to follow lacked a step, which counts as one more step that did not complete.",
                ["kind", "outcome"],
                [plan_kind(), plan_end()],
                buckets::RATIO,
            )?,
            steps: book.count(
                "steps_total",
                "Steps that ended, by scene and outcome.",
                ["scene", "outcome"],
                [scenes(), step_end()],
            )?,
            step_seconds: book.time(
                "step_duration_seconds",
                "Time from a step's start to its end.",
                ["scene", "outcome"],
                [scenes(), step_end()],
                buckets::STEP,
            )?,
            flow_nodes: book.count(
                "flow_nodes_total",
                "Nodes of flows that ended, by outcome. They are not counted as steps.",
                ["flow", "node", "outcome"],
                [names.node_axis.clone(), step_end()],
            )?,
            flow_paths: book.count(
                "flow_paths_total",
                "Paths through flows, by what planned them (planner: a model; rules: the embedded rules; learned: earlier \
                 executions; graph: nothing, so the conditions of the graph decide).",
                ["flow", "planned_by"],
                [scenes(), PathLabel::axis()],
            )?,
            replans: book.count(
                "replans_total",
                "Plans made after the first one of a run, by cause.",
                ["cause"],
                [ReplanCause::axis()],
            )?.with_all_series(),
            calls: book.count(
                "tool_calls_total",
                "Tool calls that a scene's model requested, by outcome (skipped: it shares the result of an equal call).",
                ["scene", "tool", "outcome"],
                [tools(), call_end()],
            )?,
            call_seconds: book.time(
                "tool_duration_seconds",
                "Time of an executed tool call.",
                ["scene", "tool", "outcome"],
                [tools(), call_end()],
                buckets::TOOL,
            )?,
            mutations: book.count(
                "tool_mutations_total",
                "Executed calls of tools that write, by outcome (unknown: whether it was done is unknown).",
                ["scene", "tool", "outcome"],
                [tools(), call_end()],
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
            llm_requests: book.count(
                "llm_requests_total",
                "Attempts at models, by outcome (ok, or the error class). Cached replies are not counted.",
                ["model", "purpose", "outcome"],
                [models(), purposes(), attempt_end()],
            )?,
            llm_seconds: book.time(
                "llm_request_duration_seconds",
                "Time of one attempt at a model.",
                ["model", "purpose", "outcome"],
                [models(), purposes(), attempt_end()],
                buckets::MODEL,
            )?,
            llm_first_token: book.time(
                "llm_time_to_first_token_seconds",
                "Time from a model request to the first token of its streamed reply.",
                ["model", "purpose", "outcome"],
                [models(), purposes(), attempt_end()],
                buckets::MODEL,
            )?,
            llm_tokens: book.count(
                "llm_tokens_total",
                "Tokens by type: input (not cached by the provider), cached_input, output.",
                ["model", "purpose", "type"],
                [models(), purposes(), TokenKind::axis()],
            )?,
            llm_cost: book.dollars(
                "llm_cost_usd_total",
                "US dollars charged for attempts at models.",
                ["model", "purpose"],
                [models(), purposes()],
            )?,
            in_flight: book.gauge(
                "runs_in_flight",
                "Runs that have not ended, by state.",
                ["state"],
                [InFlightState::axis()],
            )?.with_all_series(),
            recovered: book.count(
                "recovered_runs_total",
                "Runs that were recovered after a restart and ended, by outcome. A run that is resumed after its end counts at each end.",
                ["outcome"],
                [outcomes()],
            )?.with_all_series(),
            plan_reuse: book.count(
                "plan_reuse_total",
                "Searches for learned plans before a plan is made, by outcome (reused: no planner was asked; hints: only hints were wanted; unfit: \
                 the request is none of a kind that is learned; unknown, unproven, demoted, suspended: see the state of \
                 learned plans; changed: a tool has another definition; unusable: no valid plan with this request's values; \
                 unavailable: the store could not be read).",
                ["outcome"],
                [axis(RecallOutcome::VARIANTS.iter().map(|outcome| <&'static str>::from(*outcome)))],
            )?.with_all_series(),
            path_reuse: book.count(
                "path_reuse_total",
                "Searches for learned paths before the path through a flow is planned, by outcome (as of plan_reuse_total; reused: no path \
                 planner was asked; unusable: the path is not possible now).",
                ["outcome"],
                [axis(RecallOutcome::VARIANTS.iter().map(|outcome| <&'static str>::from(*outcome)))],
            )?.with_all_series(),
            ratings: book.count(
                "plan_ratings_total",
                "Ratings of plans by people. A later rating of the same person counts again.",
                ["score"],
                [RatingLabel::axis()],
            )?.with_all_series(),
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
            registry: registry.clone(),
        };
        Ok(made)
    }

    /// The same metrics for extended names, which must start with the current ones. Both share all series.
    pub(super) fn with_names(&self, names: &LabelNames) -> Self {
        let LabelNames { scene_axis, tool_axis, model_axis, node_axis, .. } = names;
        Self {
            steps: self.steps.with_first_axis(scene_axis),
            step_seconds: self.step_seconds.with_first_axis(scene_axis),
            flow_nodes: self.flow_nodes.with_first_axis(node_axis),
            flow_paths: self.flow_paths.with_first_axis(scene_axis),
            calls: self.calls.with_first_axis(tool_axis),
            call_seconds: self.call_seconds.with_first_axis(tool_axis),
            mutations: self.mutations.with_first_axis(tool_axis),
            llm_requests: self.llm_requests.with_first_axis(model_axis),
            llm_seconds: self.llm_seconds.with_first_axis(model_axis),
            llm_first_token: self.llm_first_token.with_first_axis(model_axis),
            llm_tokens: self.llm_tokens.with_first_axis(model_axis),
            llm_cost: self.llm_cost.with_first_axis(model_axis),
            ..self.clone()
        }
    }

    /// Sets the number of runs that wait for a person. They are not tracked but counted in the store.
    pub fn set_waiting(&self, runs: u64) {
        self.in_flight.set([InFlightState::Waiting as usize], i64::try_from(runs).unwrap_or(i64::MAX));
    }

    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

impl std::fmt::Debug for RunMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunMetrics").finish_non_exhaustive()
    }
}

/// Creates metrics and registers them.
struct MetricRegistrar<'a>(&'a Registry);

impl MetricRegistrar<'_> {
    fn register<M: LabelledMetric + Collector + Clone + 'static, const N: usize>(
        &self,
        metric: M,
        axes: [Axis; N],
    ) -> Result<Grid<M, N>, prometheus::Error> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(Grid::new(metric, axes))
    }

    fn count<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
    ) -> Result<CounterGrid<N>, prometheus::Error> {
        self.register(IntCounterVec::new(Opts::new(format!("{PREFIX}{name}"), help), &labels)?, axes)
    }

    fn gauge<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
    ) -> Result<Grid<IntGaugeVec, N>, prometheus::Error> {
        self.register(IntGaugeVec::new(Opts::new(format!("{PREFIX}{name}"), help), &labels)?, axes)
    }

    fn time<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
        buckets: &[f64],
    ) -> Result<HistogramGrid<N>, prometheus::Error> {
        let options = HistogramOpts::new(format!("{PREFIX}{name}"), help).buckets(buckets.to_vec());
        self.register(HistogramVec::new(options, &labels)?, axes)
    }

    fn dollars<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
    ) -> Result<CounterGrid<N>, prometheus::Error> {
        Ok(Grid::new(self.nano_dollars(name, help, &labels)?, axes))
    }

    /// A counter of nano-USD, exported in dollars.
    fn nano_dollars(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<IntCounterVec, prometheus::Error> {
        let nano = IntCounterVec::new(Opts::new(format!("{PREFIX}{name}"), help), labels)?;
        self.0.register(Box::new(DollarCounter(nano.clone())))?;
        Ok(nano)
    }

    fn tenants(&self, names: &LabelNames) -> Result<TenantMetrics, prometheus::Error> {
        let requests = IntCounterVec::new(
            Opts::new(
                format!("{PREFIX}tenant_requests_total"),
                "Requests that ended, by tenant and first outcome (tenant other: all beyond telemetry.max_tenant_labels).",
            ),
            &["tenant", "outcome"],
        )?;
        self.0.register(Box::new(requests.clone()))?;
        let cost = self.nano_dollars(
            "tenant_cost_usd_total",
            "US dollars charged for attempts at models, by tenant (other: all beyond telemetry.max_tenant_labels).",
            &["tenant"],
        )?;
        Ok(TenantMetrics::new(requests, cost, &names.tenants))
    }
}

/// Counts nano-USD and exports dollars.
struct DollarCounter(IntCounterVec);

impl Collector for DollarCounter {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.0.collect();
        for metric in families.iter_mut().flat_map(|family| family.mut_metric()) {
            let mut dollars = Counter::default();
            dollars.set_value(metric.get_counter().get_value() / 1e9);
            metric.set_counter(dollars);
        }
        families
    }
}
