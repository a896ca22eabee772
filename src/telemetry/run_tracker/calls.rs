//! The tool calls of a run: their ends, their failures, and the reactions to these.

use jiff::Timestamp;
use tracing::Span;

use super::{MetricSink, RunTracker};
use crate::adapt::{ConsultationKind, PolicyChoice};
use crate::run::{
    Adaptation, ConsultationChoice, Effect, Event, FaultClass, Outcome, RequestedCall, TimerSubject,
    UnexpectedSubject,
};
use crate::telemetry::labels::{ClosedLabel, ToolOutcome};
use crate::telemetry::log_lines;
use crate::telemetry::wait_time::{duration_nanos, seconds};

/// A call of a tool that was requested.
pub(super) struct TrackedCall {
    step: u32,
    /// Index on the axis of scenes.
    scene: usize,
    /// Index on the axis of tools.
    tool: usize,
    writes: bool,
    succeeded: bool,
    pub(super) under_way: Option<(Timestamp, Span)>,
    /// Since when it waits for its next attempt.
    pub(super) backed_off: Option<Timestamp>,
    /// The tool that it replaces.
    stands_for: Option<usize>,
}

impl RunTracker {
    /// Observes a call, or its replacement.
    pub(super) fn observe_call(&mut self, event: &Event, at: Timestamp, to: MetricSink<'_>) {
        match event {
            Event::ToolStarted { call, attempt } => self.tool_started(*call, *attempt, at, to),
            Event::ToolCompleted { call, outcome, millis, .. } => {
                self.tool_ended(*call, outcome, *millis, at, to);
            }
            Event::ToolSkipped { call, first } => self.tool_skipped(*call, *first, to),
            Event::Adapted { change: Adaptation::Substituted { call, requested } } => {
                let original = self.calls.get(call).map(|call| (call.step, call.tool));
                self.tool_requested(original.map_or(0, |(step, _)| step), requested, to);
                if let Some(substitute) = self.calls.get_mut(&requested.call) {
                    substitute.stands_for = original.map(|(_, tool)| tool);
                }
            }
            Event::Adapted {
                change:
                    Adaptation::Recalled { call, found: Some(_) }
                    | Adaptation::Interpreted { call, found: Some(_) },
            } => {
                if let Some((step, tool)) = self.calls.get(call).map(|call| (call.step, call.tool)) {
                    self.mark_succeeded(step, tool);
                }
            }
            Event::Compensating { undoes, requested } => {
                let step = self.calls.get(undoes).map_or(0, |call| call.step);
                self.tool_requested(step, requested, to);
            }
            _ => {}
        }
    }

    /// Observes an unexpected event, and the reaction to it.
    pub(super) fn observe_failure(&mut self, event: &Event, at: Timestamp, to: MetricSink<'_>) {
        match event {
            Event::Unexpected {
                subject: UnexpectedSubject::Call { call, attempt },
                class,
                code,
                chosen,
                unasked,
                ..
            } => {
                let line = log_lines::UnexpectedLine { attempt: *attempt, class: class.name(), code };
                self.unexpected(*call, (*class, *chosen), line, to);
                if let (Some(metrics), Some(why)) = (to.metrics, unasked) {
                    metrics
                        .calls
                        .consultations
                        .inc([ConsultationKind::Recovery as usize, why.outcome() as usize]);
                }
            }
            Event::Unexpected {
                subject: UnexpectedSubject::Step { step },
                class,
                code,
                chosen,
                unasked,
                ..
            } => {
                log_lines::step_unexpected(&self.span, *step, class.name(), code, *chosen);
                if let (Some(metrics), Some(why)) = (to.metrics, unasked) {
                    metrics
                        .calls
                        .consultations
                        .inc([ConsultationKind::Adaptation as usize, why.outcome() as usize]);
                }
            }
            Event::Unexpected { subject: UnexpectedSubject::Run { idle_steps }, .. } => {
                log_lines::no_progress(&self.span, *idle_steps);
            }
            Event::Consultation { .. } => self.consulted(event, to),
            Event::BackedOff { call, .. } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.backed_off = Some(at);
                }
            }
            Event::TimerFired { timer: TimerSubject::Retry { call, .. } } => {
                if let Some(since) = self.calls.get_mut(call).and_then(|call| call.backed_off.take()) {
                    self.wait_intervals.add(at, at.as_nanosecond() - since.as_nanosecond());
                }
            }
            _ => {}
        }
    }

    pub(super) fn tool_requested(&mut self, step: u32, requested: &RequestedCall, to: MetricSink<'_>) {
        let scene = requested.scene.as_deref().unwrap_or_else(|| self.scene_of(step, to));
        let call = TrackedCall {
            step,
            scene: to.names.scene_index(scene),
            tool: to.names.tool_index(scene, &requested.tool),
            writes: requested.effect == Effect::Write,
            succeeded: false,
            under_way: None,
            backed_off: None,
            stands_for: None,
        };
        self.calls.insert(requested.call, call);
    }

    fn tool_started(&mut self, number: u32, attempt: u32, at: Timestamp, to: MetricSink<'_>) {
        let Some(call) = self.calls.get(&number) else { return };
        let (scene, tool) = (to.names.scene_name(call.scene), to.names.tool_name(call.tool));
        let span = log_lines::tool(self.parent(Some(call.step)), number, scene, tool, attempt);
        if let Some(call) = self.calls.get_mut(&number) {
            call.under_way = Some((at, span));
        }
    }

    fn tool_ended(&mut self, number: u32, outcome: &Outcome, millis: u64, at: Timestamp, to: MetricSink<'_>) {
        let (end, error) = match outcome {
            Outcome::Ok { .. } => (ToolOutcome::Ok, None),
            Outcome::Refused { error } => (ToolOutcome::Refused, Some(error)),
            Outcome::Failed { error } => (ToolOutcome::Failed, Some(error)),
            Outcome::Unknown { error } => (ToolOutcome::Unknown, Some(error)),
        };
        let Some(call) = self.calls.get_mut(&number) else {
            // It was requested before this process tracked the run.
            if let Some(metrics) = to.metrics {
                metrics.calls.ended.inc([to.names.tool_index("", ""), end as usize]);
            }
            return;
        };
        let began = call.under_way.take();
        call.succeeded |= end == ToolOutcome::Ok;
        let (tool, step, writes) = (call.tool, call.step, call.writes);
        let stands_for = call.stands_for;
        let lasted = began.as_ref().map(|(began, _)| duration_nanos(Some(*began), at, millis));
        if let Some(metrics) = to.metrics {
            metrics.calls.ended.inc([tool, end as usize]);
            if let Some(nanos) = lasted {
                metrics.calls.seconds.observe([tool, end as usize], seconds(nanos));
                if writes {
                    metrics.calls.mutations.inc([tool, end as usize]);
                }
            }
        }
        if let Some(nanos) = lasted {
            self.wait_intervals.add(at, nanos);
        }
        if end == ToolOutcome::Ok {
            self.mark_succeeded(step, tool);
            if let Some(expected) = stands_for {
                self.mark_succeeded(step, expected);
            }
        }
        let (scene, name) = (self.scene_of(step, to), to.names.tool_name(tool));
        let span = began.as_ref().map_or_else(|| self.parent(Some(step)), |(_, span)| span);
        let outcome = end.name();
        let line = log_lines::ToolEndLine { scene, tool: name, outcome, error, millis, write: writes };
        log_lines::tool_ended(span, &self.span, &line);
    }

    fn unexpected(
        &mut self,
        number: u32,
        (class, chosen): (FaultClass, PolicyChoice),
        line: log_lines::UnexpectedLine<'_>,
        to: MetricSink<'_>,
    ) {
        if let Some(metrics) = to.metrics {
            metrics.calls.policies.inc([class as usize, chosen.action() as usize]);
        }
        let Some(call) = self.calls.get(&number) else { return };
        let (scene, tool) = (to.names.scene_name(call.scene), to.names.tool_name(call.tool));
        log_lines::unexpected(self.parent(Some(call.step)), &self.span, (scene, tool), chosen, &line);
    }

    fn consulted(&mut self, event: &Event, to: MetricSink<'_>) {
        let Event::Consultation { consultation, subject, how, chosen, refused, model, .. } = event else {
            return;
        };
        let kind = subject.kind();
        if let Some(metrics) = to.metrics {
            metrics.calls.consultations.inc([kind as usize, *how as usize]);
        }
        let Some(call) = subject.call().and_then(|call| self.calls.get(&call)) else { return };
        let line = log_lines::ConsultationLine {
            consultation: *consultation,
            kind: kind.name(),
            how: how.name(),
            chosen: chosen.as_ref().map(ConsultationChoice::id),
            refused: refused.map(<&'static str>::from),
            model: model.as_deref(),
        };
        let (scene, tool) = (to.names.scene_name(call.scene), to.names.tool_name(call.tool));
        log_lines::consulted(self.parent(Some(call.step)), &self.span, (scene, tool), &line);
    }

    fn tool_skipped(&mut self, number: u32, first: u32, to: MetricSink<'_>) {
        let shared = self.calls.get(&first).is_some_and(|call| call.succeeded);
        let (tool, step) = match self.calls.get(&number) {
            Some(call) => (call.tool, Some(call.step)),
            None => (to.names.tool_index("", ""), None),
        };
        if let Some(metrics) = to.metrics {
            metrics.calls.ended.inc([tool, ToolOutcome::Skipped as usize]);
        }
        if let Some(step) = step.filter(|_| shared) {
            self.mark_succeeded(step, tool);
        }
    }

    fn mark_succeeded(&mut self, step: u32, tool: usize) {
        if let Some(step) = self.steps.get_mut(&step)
            && !step.succeeded.contains(&tool)
        {
            step.succeeded.push(tool);
        }
    }
}
