//! Every figure of runs, with its labels and buckets.

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, MetricFamily};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::grid::{Axis, Grid, Labelled, axis};
use super::people::{DECISIONS, EDITS, PLAN_EDITS};
use super::plans::{KINDS, PLAN_OUTCOMES};
use super::{Names, PREFIX, buckets};
use crate::llm::{ErrorKind, Purpose};
use crate::run::Attempt;

type Counts<const N: usize> = Grid<IntCounterVec, N>;
type Times<const N: usize> = Grid<HistogramVec, N>;

/// How requests end.
pub(super) const RUN_OUTCOMES: [&str; 5] = ["completed", "partial", "needs_input", "failed", "cancelled"];
/// How steps end.
pub(super) const STEP_OUTCOMES: [&str; 5] = ["completed", "failed", "needs_input", "blocked", "cancelled"];
/// How calls of tools end.
pub(super) const CALL_OUTCOMES: [&str; 5] = ["ok", "refused", "failed", "unknown", "skipped"];
/// Why a further plan is made.
pub(super) const CAUSES: [&str; 4] = ["request", "continuation", "feedback", "edit"];
/// Kinds of tokens, each token being of one kind.
pub(super) const TOKENS: [&str; 3] = ["input", "cached_input", "output"];
/// States of runs that have not ended.
pub(super) const IN_FLIGHT: [&str; 3] = ["queued", "running", "waiting"];
/// Where runs that wait for a person stand among them.
const WAITING: usize = 2;

/// The figures of runs. Counting is an index and an atomic step; nothing is locked.
#[derive(Clone)]
pub struct Kpis {
    registry: Registry,
    pub(super) requests: Counts<1>,
    pub(super) request_seconds: Times<1>,
    pub(super) overhead_seconds: Times<0>,
    pub(super) plans: Counts<2>,
    pub(super) plan_steps: Times<2>,
    pub(super) plan_quality: Times<2>,
    pub(super) steps: Counts<2>,
    pub(super) step_seconds: Times<2>,
    pub(super) replans: Counts<1>,
    /// By scene with tool, and outcome.
    pub(super) calls: Counts<2>,
    pub(super) call_seconds: Times<2>,
    pub(super) mutations: Counts<2>,
    /// By model, purpose and outcome.
    pub(super) llm_requests: Counts<3>,
    pub(super) llm_seconds: Times<3>,
    pub(super) llm_first_token: Times<3>,
    pub(super) llm_tokens: Counts<3>,
    /// In nano-USD, so that sums are exact; shown in dollars.
    pub(super) llm_cost: Counts<2>,
    pub(super) in_flight: Grid<IntGaugeVec, 1>,
    pub(super) recovered: Counts<1>,
    pub(super) edits: Counts<1>,
    pub(super) edited_steps: Times<1>,
    pub(super) approval_wait: Times<1>,
}

/// Where a question's purpose stands on its axis.
pub(super) fn purpose(name: &str) -> usize {
    Purpose::ALL.iter().position(|purpose| purpose.name() == name).unwrap_or(Purpose::ALL.len())
}

/// Where the outcome of an attempt stands on its axis.
pub(super) fn attempt_outcome(name: &str) -> usize {
    if name == Attempt::OK {
        return 0;
    }
    let class = ErrorKind::CLASSES.iter().position(|class| *class == name);
    class.map_or(ErrorKind::CLASSES.len() + 1, |at| at + 1)
}

impl Kpis {
    /// No run has been seen yet. What can be counted whatever there is begins at zero.
    ///
    /// # Errors
    /// Where two figures have one name, or a name is not allowed.
    pub fn new(names: &Names) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let book = Book(&registry);
        let outcomes = || axis(RUN_OUTCOMES);
        let (scenes, tools, models) =
            (|| names.scene_axis.clone(), || names.tool_axis.clone(), || names.model_axis.clone());
        let (plan_kind, plan_end) = (|| axis(KINDS), || axis(PLAN_OUTCOMES));
        let (step_end, call_end) = (|| axis(STEP_OUTCOMES), || axis(CALL_OUTCOMES));
        let purposes = || axis(Purpose::ALL.map(Purpose::name).into_iter().chain(["other"]));
        let attempt_end = || axis([Attempt::OK].into_iter().chain(ErrorKind::CLASSES).chain(["other"]));
        let made = Self {
            requests: book.count("requests_total", "Requests that ended, by the outcome of their first end: one that is carried on after it is none anew.", ["outcome"], [outcomes()])?.filled(),
            request_seconds: book.time(
                "request_duration_seconds",
                "From a request's acceptance to its first end, without the time in which it waited for a person.",
                ["outcome"],
                [outcomes()],
                buckets::REQUEST,
            )?,
            overhead_seconds: book.time(
                "orchestration_overhead_seconds",
                "Time of a run, from its turn to its first end, in which neither a model, a tool nor a person was awaited.",
                [],
                [],
                buckets::OVERHEAD,
            )?.filled(),
            plans: book.count(
                "plans_total",
                "Plans of runs that ended, by kind (scene; fallback: made by the embedded rules in place of models; \
                 none: nothing to carry out) and outcome (not_made where no plan could be made). Of a run that was \
                 carried on after its end, the plans made since are counted at its next end.",
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
                "Completeness of a plan that was carried out: the share of its steps that completed and in which at \
                 least one of the expected tools succeeded (any step that completed, where none was expected). A plan \
                 that had to be followed by another lacked a step, which counts as one more that did not.",
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
                "From a step's start to its end.",
                ["scene", "outcome"],
                [scenes(), step_end()],
                buckets::REQUEST,
            )?,
            replans: book.count(
                "replans_total",
                "Plans made after the first of a run, by cause.",
                ["cause"],
                [axis(CAUSES)],
            )?.filled(),
            calls: book.count(
                "tool_calls_total",
                "Tool calls that a scene's model asked for, by outcome (skipped: an equal call's result was shared).",
                ["scene", "tool", "outcome"],
                [tools(), call_end()],
            )?,
            call_seconds: book.time(
                "tool_duration_seconds",
                "Time of a tool call that was executed.",
                ["scene", "tool", "outcome"],
                [tools(), call_end()],
                buckets::TOOL,
            )?,
            mutations: book.count(
                "tool_mutations_total",
                "Executed calls of tools that write, by outcome (unknown: nobody knows whether it was done).",
                ["scene", "tool", "outcome"],
                [tools(), call_end()],
            )?,
            llm_requests: book.count(
                "llm_requests_total",
                "Attempts at models, by outcome (ok, or the error's class). Kept replies are not among them.",
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
                "From a question to the beginning of its streamed reply.",
                ["model", "purpose", "outcome"],
                [models(), purposes(), attempt_end()],
                buckets::MODEL,
            )?,
            llm_tokens: book.count(
                "llm_tokens_total",
                "Tokens by type: input (not cached by the provider), cached_input, output.",
                ["model", "purpose", "type"],
                [models(), purposes(), axis(TOKENS)],
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
                [axis(IN_FLIGHT)],
            )?.filled(),
            recovered: book.count(
                "recovered_runs_total",
                "Runs that were taken over after a restart and ended, by outcome; each end of one that was carried on after it.",
                ["outcome"],
                [outcomes()],
            )?.filled(),
            edits: book.count(
                "human_edits_total",
                "Changes by people: plan (a plan put in place of another), feedback (a plan made anew after their words), \
                 arguments (of a call).",
                ["action"],
                [axis(EDITS)],
            )?.filled(),
            edited_steps: book.time(
                "human_edited_steps",
                "Steps of a plan that a person's change or words changed.",
                ["action"],
                [axis(&EDITS[..PLAN_EDITS])],
                buckets::CHANGES,
            )?,
            approval_wait: book.time(
                "approval_wait_seconds",
                "From putting something to people to their decision (expired: nobody decided in time).",
                ["action"],
                [axis(DECISIONS)],
                buckets::PEOPLE,
            )?,
            registry: registry.clone(),
        };
        Ok(made)
    }

    /// The same figures for names of which these are the first: whatever is counted in either is in both.
    pub(super) fn along(&self, names: &Names) -> Self {
        let Names { scene_axis, tool_axis, model_axis, .. } = names;
        Self {
            steps: self.steps.along(scene_axis),
            step_seconds: self.step_seconds.along(scene_axis),
            calls: self.calls.along(tool_axis),
            call_seconds: self.call_seconds.along(tool_axis),
            mutations: self.mutations.along(tool_axis),
            llm_requests: self.llm_requests.along(model_axis),
            llm_seconds: self.llm_seconds.along(model_axis),
            llm_first_token: self.llm_first_token.along(model_axis),
            llm_tokens: self.llm_tokens.along(model_axis),
            llm_cost: self.llm_cost.along(model_axis),
            ..self.clone()
        }
    }

    /// So many runs wait for a person now. They are followed by nobody, and counted where they are stored.
    pub fn set_waiting(&self, runs: u64) {
        self.in_flight.set([WAITING], i64::try_from(runs).unwrap_or(i64::MAX));
    }

    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

impl std::fmt::Debug for Kpis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kpis").finish_non_exhaustive()
    }
}

/// Makes metrics and enters them.
struct Book<'a>(&'a Registry);

impl Book<'_> {
    fn enter<M: Labelled + Collector + Clone + 'static, const N: usize>(
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
    ) -> Result<Counts<N>, prometheus::Error> {
        self.enter(IntCounterVec::new(Opts::new(format!("{PREFIX}{name}"), help), &labels)?, axes)
    }

    fn gauge<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
    ) -> Result<Grid<IntGaugeVec, N>, prometheus::Error> {
        self.enter(IntGaugeVec::new(Opts::new(format!("{PREFIX}{name}"), help), &labels)?, axes)
    }

    fn time<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
        buckets: &[f64],
    ) -> Result<Times<N>, prometheus::Error> {
        let options = HistogramOpts::new(format!("{PREFIX}{name}"), help).buckets(buckets.to_vec());
        self.enter(HistogramVec::new(options, &labels)?, axes)
    }

    fn dollars<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
    ) -> Result<Counts<N>, prometheus::Error> {
        let nano = IntCounterVec::new(Opts::new(format!("{PREFIX}{name}"), help), &labels)?;
        self.0.register(Box::new(Dollars(nano.clone())))?;
        Ok(Grid::new(nano, axes))
    }
}

/// Counts nano-USD and shows dollars.
struct Dollars(IntCounterVec);

impl Collector for Dollars {
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
