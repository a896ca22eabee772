//! A second, simpler model of a run, built from its events alone. It detects violations of a run's rules,
//! even those that the state machine would miss.

use std::collections::{BTreeMap, BTreeSet};

use crate::adapt::{ExecutionLevel, ExecutionMode, PolicyChoice, RecoveryAction};
use crate::plan::{PlanStatus, StepStatus};
use crate::run::{
    Adaptation, ApprovalSubject, ConsultationChoice, ConsultationSubject, Decision, Duplicates, Effect,
    Event, Outcome, PlanCause, PlanMaker, PlanPatch, ProgramStop, Repeat, RequestedCall, RunState, Settings,
    Subject, TimerSubject, UnexpectedSubject, Usage,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallProgress {
    Asked,
    Flying,
    /// A read interrupted by a crash.
    Cut,
    Done,
    /// Done, but a write of its scene followed.
    Cleared,
    Unknown,
    /// A person asked for a retry.
    Wanted,
    /// Done and undone.
    Undone,
    Harmless,
}

#[derive(Debug)]
struct WatchedCall {
    step: u32,
    scene: String,
    requested: RequestedCall,
    fallback: bool,
    round: u32,
    seen: CallProgress,
    /// A write of its scene ended while it was in flight.
    overtaken: bool,
    /// A person approved it by itself.
    approved: bool,
    starts: u32,
    /// An attempt may have taken effect and none is known to have succeeded.
    uncertain: bool,
    /// It waits before its next attempt.
    waits: bool,
    /// The timer of its next attempt has fired.
    due: bool,
    /// How many starts a restart of the server interrupted.
    interruptions: u32,
    /// The write that it undoes.
    undoes: Option<u32>,
    /// The call whose place it takes.
    replaces: Option<u32>,
    /// The call that took its place.
    replaced_by: Option<u32>,
}

impl WatchedCall {
    /// Starts that no restart interrupted.
    fn own_starts(&self) -> u32 {
        self.starts - self.interruptions
    }
}

/// The model so far.
#[derive(Debug, Default)]
pub struct RunChecker {
    settings: Settings,
    calls: BTreeMap<u32, WatchedCall>,
    /// By step: its scene, its dependencies, whether a fallback planned it, its version.
    planned: BTreeMap<u32, (String, Vec<u32>, bool, u32)>,
    started: BTreeSet<u32>,
    completed: BTreeSet<u32>,
    ended: BTreeSet<u32>,
    asks: BTreeMap<u32, (Subject, bool)>,
    rounds: BTreeMap<u32, u32>,
    /// Steps whose scene's model has chosen the next call.
    decided: BTreeSet<u32>,
    /// By subject, round and whether it was after a decision: models asked, rules asked, lost.
    tries: BTreeMap<(Subject, u32, bool), [u32; 2]>,
    crashes: u32,
    plans: u32,
    /// Plans that were not changes by people.
    planned_rounds: u32,
    /// Versions whose planning began because of the request or of a check.
    begun_plannings: BTreeSet<u32>,
    lookups: u32,
    /// The version that the plan in force began with, before patches.
    first_in_force: u32,
    patches: BTreeMap<u32, PlanPatch>,
    /// The step because of which a model may change the plan now.
    adapting: Option<u32>,
    new_calls: u32,
    usage: Usage,
    plan_only: bool,
    dry_run: bool,
    stopped: bool,
    /// Steps running again because a person asked for a retry of a write.
    revived: usize,
    /// A person refused the plan in force, or it failed the preflight.
    refused: bool,
    answered: bool,
    terminal: u32,
    /// How long it has waited for retries.
    waited_ms: u64,
    /// Consultations about which a model was asked, each with its voter, if several models vote.
    consulted: BTreeSet<(u32, u32)>,
    /// Steps that a recovery ended: nothing new begins in them.
    halted: BTreeSet<u32>,
    /// By step: the calls of its program, and how often that was executed.
    program_calls: BTreeMap<u32, Vec<u32>>,
    executions: BTreeMap<u32, u32>,
}

impl RunChecker {
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), ..Self::default() }
    }

    /// Records an event before it is applied; `state` is only used for ordinals.
    pub fn before(&mut self, state: &RunState, event: &Event) {
        let after_the_end = matches!(
            event,
            Event::RunReopened { .. } | Event::Decided { matter: ApprovalSubject::Outcome { .. }, .. }
        );
        assert!(self.terminal == 0 || after_the_end, "{event:?} after the end");
        assert!(!self.stopped || !self.begins(event), "{event:?} begins something after the wish to stop");
        match event {
            Event::RunStarted(started) => self.settings = started.settings.clone(),
            Event::RunResumed { restart, .. } => self.crash(*restart),
            Event::Planning { version, .. } => {
                assert!(self.begun_plannings.insert(*version), "version {version} is planned twice");
                self.forget_tries_of_plan(*version);
                assert!(self.planned_rounds <= self.settings.max_replans, "a plan too many");
                assert!(*version == 1 || self.new_calls > 0, "another plan after a round without a new call");
            }
            Event::ModelAsked { call, subject, fallback, .. } => self.asked(*call, *subject, *fallback),
            Event::ModelReplied { usage, .. } | Event::ModelFailed { usage, .. } => self.usage += *usage,
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                self.plans += 1;
                assert_eq!(made.version, self.plans);
                self.refused = false;
                if made.patch.is_none() {
                    self.new_calls = 0;
                    self.first_in_force = self.plans;
                }
                if let Some(patch) = &made.patch {
                    self.patched(made.version, patch);
                } else if matches!(made.cause, PlanCause::Feedback | PlanCause::Edit) {
                    let touched: Vec<u32> = self.calls.values().map(|call| call.step).collect();
                    let begun =
                        |n: &u32| self.started.contains(n) || touched.contains(n) || self.ended.contains(n);
                    self.planned.retain(|number, _| begun(number));
                } else {
                    self.planned_rounds += 1;
                }
                assert!(made.plan.steps.len() <= self.settings.max_steps as usize, "a step too many");
                for step in &made.plan.steps {
                    let depends = step.depends_on_step.iter().collect();
                    // `ConsentChecker` checks that nothing begins without a required approval.
                    let fallback = made.maker == PlanMaker::Fallback && made.approval.is_none();
                    let planned = (step.scene_name.clone(), depends, fallback, made.version);
                    assert!(self.planned.insert(step.step_number, planned).is_none(), "a number used twice");
                }
            }
            Event::StepStarted { step } => {
                assert_eq!(self.adapting, None, "step {step} begins while the plan may change");
                assert!(!self.plan_only, "a step runs though only a plan is wanted");
                assert!(self.started.insert(*step), "step {step} runs twice");
                for dependency in &self.planned[step].1 {
                    assert!(self.completed.contains(dependency), "step {step} before {dependency}");
                }
            }
            Event::FlowPlanned { .. } | Event::NodeStarted { .. } | Event::NodeReplied { .. } => {
                panic!("no flow is planned in this world: {event:?}")
            }
            Event::SummaryPlanned { .. } | Event::SummaryPart { .. } | Event::SummaryStopped { .. } => {
                panic!("no summary is planned in this world: {event:?}")
            }
            Event::SceneReplied { step, calls, next: Some(_), .. } => {
                assert!(self.decided.insert(*step), "step {step} decides twice");
                assert_eq!(calls.len(), 0, "a decision does nothing by itself");
            }
            Event::SceneReplied { step, call, calls, next: None, .. } => {
                let round = self.rounds.entry(*step).or_default();
                *round += 1;
                assert!(*round <= self.settings.max_rounds, "a round too many");
                let fallback = self.asks[call].1 || self.planned[step].2;
                let round = *round;
                for requested in calls {
                    self.insert(*step, requested, fallback, round);
                }
            }
            Event::ToolStarted { call, .. } => {
                let started = &state.calls[call];
                let version = state.steps[&started.step].version as usize;
                let by_person = state.plans[version - 1].maker == PlanMaker::Person;
                self.tool_started(*call, state.is_shown(started), by_person);
            }
            Event::Adapted { change: Adaptation::Substituted { call, requested } } => {
                self.substituted(*call, requested);
            }
            Event::Adapted { change: Adaptation::Recalled { call, found } } => {
                assert!(self.settings.mode > Some(ExecutionMode::Strict), "an earlier result in mode strict");
                let wrote = self.calls.values().any(|c| c.requested.effect == Effect::Write && c.starts > 0);
                let call = self.calls.get_mut(call).unwrap();
                assert_eq!((call.requested.effect, call.seen), (Effect::Read, CallProgress::Harmless));
                if found.is_some() && !wrote {
                    call.seen = CallProgress::Done;
                }
            }
            Event::Adapted { change: Adaptation::Interpreted { call, found } } => {
                let may = self.settings.mode > Some(ExecutionMode::Strict)
                    && self.settings.level >= Some(ExecutionLevel::Intelligent);
                assert!(may, "a result is interpreted below the level intelligent");
                let call = self.calls.get_mut(call).unwrap();
                assert_eq!((call.requested.effect, call.seen), (Effect::Read, CallProgress::Harmless));
                if found.is_some() {
                    call.seen = if call.overtaken { CallProgress::Cleared } else { CallProgress::Done };
                }
            }
            Event::ToolCompleted { call, outcome, .. } => self.tool_completed(*call, outcome),
            Event::ToolSkipped { call, first } => {
                let seen = self.calls[&state.resolved(*first)].seen;
                assert!(
                    matches!(seen, CallProgress::Done | CallProgress::Unknown),
                    "{call} shares {first}, which is {seen:?}"
                );
                assert!(self.same(*call, *first), "{call} shares the outcome of another call");
            }
            Event::StepCompleted { step, .. } => {
                assert!(self.started.contains(step) && self.ended.insert(*step), "step {step} ends twice");
                self.completed.insert(*step);
                self.at_step_end(*step);
            }
            Event::StepFailed { step, status, .. } => {
                assert!(self.ended.insert(*step), "step {step} ends twice");
                assert_eq!(*status == StepStatus::Blocked, !self.started.contains(step));
                self.at_step_end(*step);
            }
            Event::Answered { .. } => {
                assert!(!self.answered, "two answers");
                self.answered = true;
            }
            Event::CancelRequested { .. } => self.stopped |= !self.answered,
            Event::RunCompleted { .. } => {
                assert_ne!(self.answered, self.plan_only, "completed without an answer, or with one unasked");
                assert!(!self.write_flying(), "ended during a write");
                self.terminal += 1;
            }
            Event::RunCancelled { .. } => {
                let asked = self.stopped || self.refused;
                assert!(asked && !self.write_flying(), "cancelled unasked, or during a write");
                self.terminal += 1;
            }
            Event::RunFailed { .. } => self.terminal += 1,
            Event::RunQueued(queued) => {
                (self.plan_only, self.dry_run) = (queued.plan_only, queued.options.dry_run)
            }
            Event::ModificationAsked { version, .. } => {
                self.forget_tries_of_plan(*version);
            }
            Event::Decided { matter: ApprovalSubject::Plan { version }, decision: Decision::No, .. } => {
                self.plan_refused(*version);
            }
            Event::Decided {
                matter: ApprovalSubject::Call { call },
                decision: Decision::Edited { arguments, key },
                ..
            } => {
                let requested = &mut self.calls.get_mut(call).unwrap().requested;
                requested.arguments = arguments.clone();
                requested.key.clone_from(key);
                self.approve_call(*call, true);
            }
            Event::Decided { matter: ApprovalSubject::Call { call }, decision, .. } => {
                self.approve_call(*call, *decision != Decision::No);
            }
            Event::ApprovalLapsed { matter: ApprovalSubject::Call { call }, .. } => {
                self.approve_call(*call, false)
            }
            Event::Decided { matter: ApprovalSubject::Outcome { call }, decision, .. } => {
                self.resolved(*call, decision)
            }
            Event::PlanRefused { version, .. } => self.plan_refused(*version),
            Event::RunReopened { .. } => self.reopened(state),
            Event::Compensating { undoes, requested } => self.compensating(*undoes, requested),
            Event::ProgramReplied { step, stop: ProgramStop::Call { requested, written, .. }, .. } => {
                self.executed(*step);
                let name = format!("{}.{}", requested.scene.as_ref().unwrap(), requested.tool);
                assert_eq!(name, written.function, "another call than the program's");
                let fallback = self.planned[step].2;
                let called = self.program_calls.entry(*step).or_default();
                called.push(requested.call);
                let round = u32::try_from(called.len()).unwrap();
                assert!(round <= self.settings.max_calls, "a call too many of one program");
                self.insert(*step, requested, fallback, round);
            }
            Event::ProgramReplied { step, .. } => self.executed(*step),
            Event::ProgramWritten { step, .. } => {
                assert!(self.started.contains(step), "a program of a step that has not begun");
                // Calls of programs before a resumption are not those of this one.
                let mut calls = self.program_calls.get(step).into_iter().flatten();
                let wrote = calls.any(|call| {
                    let call = &self.calls[call];
                    call.requested.effect == Effect::Write && call.starts > 0
                });
                if !wrote {
                    self.program_calls.remove(step);
                }
                self.executions.remove(step);
            }
            Event::Prepared { step, calls, .. } => {
                let fallback = self.planned[step].2;
                for requested in calls {
                    self.insert(*step, requested, fallback, 0);
                }
            }
            Event::Unexpected { subject: UnexpectedSubject::Call { call, .. }, chosen, .. } => {
                assert!(self.settings.mode.is_some(), "a policy in a run without a mode");
                let call = &self.calls[call];
                let may_skip = self.settings.mode != Some(ExecutionMode::Strict) && !call.uncertain;
                assert!(*chosen != PolicyChoice::Skip || may_skip, "{call:?} is left out");
                let may_consult = self.settings.level >= Some(ExecutionLevel::Adaptive);
                let consults = matches!(chosen, PolicyChoice::Consult { .. });
                assert!(!consults || may_consult, "a model is consulted below the level adaptive");
                let unsafe_to_repeat = call.uncertain && call.requested.repeat != Repeat::Key;
                assert!(!consults || !unsafe_to_repeat, "a model is consulted in place of a person");
            }
            Event::Unexpected { subject: UnexpectedSubject::Step { step }, chosen, .. } => {
                assert!(self.ended.contains(step) && self.adapting.is_none());
                let consults = matches!(chosen, PolicyChoice::Consult { .. });
                self.adapting = consults.then_some(*step);
            }
            Event::Unexpected { subject: UnexpectedSubject::Run { idle_steps }, .. } => {
                assert!(*idle_steps >= self.settings.consultations.max_idle_steps);
                self.adapting = None;
            }
            Event::Voted { consultation, voter, .. } => {
                let own = &state.consultations[consultation];
                assert!((1..=own.voters).contains(voter) && !own.ended, "{event:?}");
                assert!(!own.votes.contains_key(voter), "voter {voter} votes twice");
            }
            Event::Consultation { subject, question, chosen, refused, .. } => {
                if let ConsultationSubject::Adaptation { step } = subject {
                    assert_eq!(self.adapting.take(), Some(*step));
                    return;
                }
                assert!(chosen.is_none() || question.is_some() || state.consultations.len() > 1);
                let Some(ConsultationChoice::Recovery { action }) =
                    chosen.clone().filter(|_| refused.is_none())
                else {
                    return;
                };
                let call = &self.calls[&subject.call().unwrap()];
                let may_be_done = call.uncertain;
                let repeats = matches!(action, RecoveryAction::Retry { .. } | RecoveryAction::Abort);
                assert!(repeats || !may_be_done, "{action:?} for a write that may be done");
                if matches!(action, RecoveryAction::AskUser | RecoveryAction::Abort) {
                    self.halted.insert(call.step);
                }
            }
            Event::Forecast { tools, .. } => {
                assert!(self.settings.mode.is_some() && !tools.is_empty(), "a forecast of nothing");
            }
            Event::BackedOff { call, delay_ms, .. } => {
                self.waited_ms += delay_ms;
                assert!(self.waited_ms <= self.settings.policies.max_wait_per_run_ms, "it waits too long");
                self.calls.get_mut(call).unwrap().waits = true;
            }
            Event::TimerFired { timer: TimerSubject::Retry { call, .. } } => {
                let call = self.calls.get_mut(call).unwrap();
                assert!(std::mem::replace(&mut call.waits, false), "a timer that does not run has fired");
                call.due = true;
            }
            Event::PlanRecalled(recall) => {
                self.lookups += 1;
                assert!(
                    self.lookups == 1 || (self.lookups == 2 && recall.plan.is_none()),
                    "a look-up too many"
                );
            }
            Event::PathRecalled { .. }
            | Event::PathObserved { .. }
            | Event::PlanObserved(_)
            | Event::PlanRated { .. }
            | Event::PlanningFailed { .. }
            | Event::ReplyRejected { .. }
            | Event::ScenesRanked { .. }
            | Event::Continuation { .. }
            | Event::ApprovalRequired { .. }
            | Event::Decided { .. }
            | Event::ApprovalLapsed { .. }
            | Event::ListChangeAsked { .. }
            | Event::Released { .. }
            | Event::RunWaiting {}
            | Event::RunPutAside { .. } => {}
        }
    }

    /// A patch takes out what has not begun, and puts a step in the place of one that failed.
    fn patched(&mut self, version: u32, patch: &PlanPatch) {
        let may = self.settings.level >= Some(ExecutionLevel::Intelligent)
            && self.settings.mode == Some(ExecutionMode::Creative);
        assert!(may, "the plan changes though level or mode do not allow it");
        self.patches.insert(version, patch.clone());
        assert!(self.patches.len() <= self.settings.consultations.max_patches as usize, "a patch too many");
        let about = self.adapting.expect("a patch that nobody asked for");
        let calls: BTreeSet<u32> = self.calls.values().map(|call| call.step).collect();
        let is_fresh = |n: &u32| !self.started.contains(n) && !self.ended.contains(n) && !calls.contains(n);
        let gone: Vec<u32> = patch.removed.iter().chain(patch.replaced.keys()).copied().collect();
        for step in &gone {
            assert!(is_fresh(step) || (*step == about && self.ended.contains(step)), "{step} has begun");
        }
        assert!(patch.dependants.iter().all(is_fresh), "what has begun depends on something else now");
        // Nothing may rest on a step that was replaced.
        self.completed.retain(|step| !gone.contains(step));
        self.planned.retain(|step, _| *step == about || !gone.contains(step));
        let uncertain = self.calls.values().any(|c| c.seen == CallProgress::Unknown || c.uncertain);
        assert!(!uncertain || self.settings.rules < 4, "patched while nobody knows what a write did");
        for step in &patch.dependants {
            self.repoint(*step, &patch.replaced);
        }
    }

    fn repoint(&mut self, step: u32, exchanged: &BTreeMap<u32, u32>) {
        if let Some(planned) = self.planned.get_mut(&step) {
            for depends in &mut planned.1 {
                *depends = exchanged.get(depends).copied().unwrap_or(*depends);
            }
        }
    }

    /// A person refused a plan, or it failed the preflight. What depended on the step that a refused patch replaced
    /// depends on it again.
    fn plan_refused(&mut self, version: u32) {
        let Some(patch) = self.patches.get(&version).cloned() else {
            self.refused = true;
            return;
        };
        let back: BTreeMap<u32, u32> = patch
            .replaced
            .iter()
            .filter(|(old, _)| self.planned.contains_key(*old))
            .map(|(old, new)| (*new, *old))
            .collect();
        for step in &patch.dependants {
            if !self.started.contains(step) {
                self.repoint(*step, &back);
            }
        }
        let cancelled =
            self.planned.iter().filter(|(_, planned)| planned.3 == version).map(|(step, _)| *step);
        self.ended.extend(cancelled);
    }

    /// A program is executed once for each call that it has made, and once more; and only where none of its calls is under way.
    fn executed(&mut self, step: u32) {
        let executions = self.executions.entry(step).or_default();
        *executions += 1;
        assert!(*executions <= self.settings.max_calls + 1, "step {step} is executed without end");
        for call in self.calls.values().filter(|call| call.step == step && call.undoes.is_none()) {
            let flies = matches!(call.seen, CallProgress::Flying | CallProgress::Wanted | CallProgress::Cut);
            assert!(
                !flies && !call.waits && !call.due,
                "step {step} is executed while {call:?} is under way"
            );
        }
        assert!(self.started.contains(&step) && !self.ended.contains(&step), "step {step} is executed");
    }

    fn insert(&mut self, step: u32, requested: &RequestedCall, fallback: bool, round: u32) {
        let call = WatchedCall {
            undoes: None,
            step,
            scene: requested.scene.clone().unwrap_or_else(|| self.planned[&step].0.clone()),
            requested: requested.clone(),
            fallback,
            round,
            seen: CallProgress::Asked,
            overtaken: false,
            approved: false,
            starts: 0,
            uncertain: false,
            waits: false,
            due: false,
            interruptions: 0,
            replaces: None,
            replaced_by: None,
        };
        assert!(self.calls.insert(requested.call, call).is_none(), "an ordinal used twice");
    }

    /// A call takes the place of one that certainly did nothing.
    fn substituted(&mut self, original: u32, requested: &RequestedCall) {
        let of = &self.calls[&original];
        let (step, fallback, round) = (of.step, of.fallback, of.round);
        assert!(self.settings.mode > Some(ExecutionMode::Strict), "another tool in mode strict");
        assert_eq!((of.seen, of.uncertain), (CallProgress::Harmless, false), "{of:?} may have been done");
        assert_eq!(of.replaces, None, "a chain of alternatives");
        assert_eq!(of.requested.effect, requested.effect);
        // Each alternative is called once, and only after those before it did nothing, and nobody said no to them.
        let before: Vec<&WatchedCall> =
            self.calls.values().filter(|call| call.replaces == Some(original)).collect();
        assert!(before.len() < 2, "more substitutes than alternatives");
        for earlier in before {
            assert_ne!(earlier.requested.tool, requested.tool, "an alternative is called twice");
            assert!(matches!(earlier.seen, CallProgress::Harmless | CallProgress::Asked), "{earlier:?}");
        }
        self.insert(step, requested, fallback, round);
        self.calls.get_mut(&requested.call).unwrap().replaces = Some(original);
        self.calls.get_mut(&original).unwrap().replaced_by = Some(requested.call);
    }

    /// A person resolves the outcome of a write, or has it retried.
    fn resolved(&mut self, number: u32, decision: &Decision) {
        let call = self.calls.get_mut(&number).unwrap();
        // A retry that never happened because the run ended leaves the outcome unknown.
        assert!(
            matches!(call.seen, CallProgress::Unknown | CallProgress::Wanted),
            "what is known was asked: {:?}",
            call.seen
        );
        call.seen = match decision {
            Decision::Done => CallProgress::Done,
            Decision::Again => CallProgress::Wanted,
            _ => CallProgress::Harmless,
        };
        call.uncertain = *decision == Decision::Again && (call.uncertain || self.settings.rules >= 6);
        let (step, undoes, seen) = (call.step, call.undoes, call.seen);
        if let (Some(undone), CallProgress::Done) = (undoes, seen) {
            self.calls.get_mut(&undone).unwrap().seen = CallProgress::Undone;
        }
        if seen == CallProgress::Wanted {
            self.revived += 1;
            self.started.insert(step);
            self.halted.remove(&step);
            self.ended.remove(&step);
            self.completed.remove(&step);
            let judges =
                |subject: &Subject| matches!(subject, Subject::Continuation { .. } | Subject::Answer);
            self.tries.retain(|(subject, ..), _| *subject != Subject::Scene { step } && !judges(subject));
        }
    }

    /// Steps that did not achieve their purpose begin again. The state machine decides which, except for
    /// undone ones.
    fn reopened(&mut self, state: &RunState) {
        assert_eq!(self.terminal, 1);
        (self.terminal, self.stopped, self.answered) = (0, false, false);
        self.adapting = None;
        self.waited_ms = 0;
        self.consulted.clear();
        self.halted.clear();
        self.program_calls.clear();
        self.executions.clear();
        self.tries.clear();
        self.begun_plannings.clear();
        let mut after = state.clone();
        after.apply(&Event::RunReopened { by: String::new() }).unwrap();
        let undone =
            |step: u32| self.calls.values().any(|c| c.step == step && c.seen == CallProgress::Undone);
        for (number, step) in &after.steps {
            let anew = step.status == StepStatus::Pending;
            assert!(
                anew || !undone(*number) || !self.completed.contains(number),
                "{number} rests on what was undone"
            );
            if anew {
                self.started.remove(number);
                self.ended.remove(number);
                self.completed.remove(number);
                self.rounds.remove(number);
                self.decided.remove(number);
            }
        }
        for call in self.calls.values_mut() {
            (call.waits, call.due) = (false, false);
            let flew = matches!(call.seen, CallProgress::Flying | CallProgress::Wanted);
            call.uncertain |= flew && self.settings.rules >= 4 && call.requested.effect == Effect::Write;
            call.seen = match call.seen {
                CallProgress::Asked | CallProgress::Cut => CallProgress::Harmless,
                CallProgress::Flying | CallProgress::Wanted if call.requested.effect == Effect::Write => {
                    CallProgress::Unknown
                }
                CallProgress::Flying => CallProgress::Harmless,
                seen => seen,
            };
        }
    }

    fn compensating(&mut self, undoes: u32, requested: &RequestedCall) {
        let (step, scene) = (self.calls[&undoes].step, self.calls[&undoes].scene.clone());
        self.insert(step, requested, false, u32::MAX);
        let call = self.calls.get_mut(&requested.call).unwrap();
        (call.scene, call.undoes) = (scene, Some(undoes));
    }

    /// Invariants of the state after any event.
    pub fn after(&self, state: &RunState) {
        let running = state.steps.values().filter(|s| s.status == StepStatus::Running).count();
        let max = self.settings.max_parallel_steps.max(1) as usize + self.revived;
        assert!(running <= max, "{running} steps at once");
        assert_eq!(state.usage, self.usage);
        assert_eq!(state.status.is_terminal(), self.terminal == 1);
        assert_eq!(state.write_in_flight() && self.terminal == 0, self.write_flying() && self.terminal == 0);
    }

    /// Invariants after the run has ended.
    pub fn at_end(&self, state: &RunState) {
        assert_eq!(self.terminal, 1);
        let draft = state.plan_status == PlanStatus::Draft && self.plan_only;
        assert!(draft || state.steps.values().all(|s| s.status.is_terminal()), "a step is left open");
        for (number, call) in &self.calls {
            let maybe_done =
                matches!(call.seen, CallProgress::Done | CallProgress::Unknown | CallProgress::Flying);
            if call.requested.effect == Effect::Write && maybe_done {
                assert!(state.outcome(*number).is_some(), "nothing is said of write {number}");
            }
        }
    }

    fn asked(&mut self, call: u32, subject: Subject, fallback: bool) {
        assert!(self.asks.insert(call, (subject, fallback)).is_none(), "an ordinal asked twice");
        assert!(!fallback || self.settings.fallback_enabled, "the rules are asked though they are off");
        let basic = self.settings.level == Some(ExecutionLevel::Basic);
        // The ranking of scenes precedes the plan.
        let may_ask = fallback || matches!(subject, Subject::Plan { .. } | Subject::Ranking);
        assert!(!basic || may_ask, "a model is asked about {subject:?} at the level basic");
        let (round, decided) = match subject {
            Subject::Scene { step } => {
                (self.rounds.get(&step).copied().unwrap_or(0), self.decided.contains(&step))
            }
            _ => (0, false),
        };
        if let Some(consultation) = subject.consultation() {
            let voter = if let Subject::Vote { voter, .. } = subject { voter } else { 0 };
            self.consulted.insert((consultation, voter));
            let max = self.settings.consultations.max_per_run as usize;
            assert!(self.consulted.len() <= max, "a consultation too many");
            assert!(!fallback, "the offline model is consulted");
        }
        if let Subject::Scene { .. } = subject {
            assert!(round < self.settings.max_rounds, "a question after the last round");
        }
        let crashes = self.crashes;
        let tries = self.tries.entry((subject, round, decided)).or_default();
        tries[usize::from(fallback)] += 1;
        let models = self.settings.max_retries.max(1) + 1 + crashes;
        assert!(tries[0] <= models && tries[1] <= 1 + crashes, "{subject:?} is asked without end: {tries:?}");
    }

    /// A plan that a person asks to change, and one that a check asks for afterwards, have the same version when the
    /// change could not be made. Each has its own tries.
    fn forget_tries_of_plan(&mut self, version: u32) {
        self.tries.retain(|(subject, ..), _| *subject != Subject::Plan { version });
    }

    /// A call may need an approval only since its tool changed; `ConsentChecker` checks what it covers.
    fn approve_call(&mut self, number: u32, approved: bool) {
        if let Some(call) = self.calls.get_mut(&number) {
            call.approved = approved;
        }
    }

    fn tool_started(&mut self, number: u32, shown: bool, by_person: bool) {
        let this = &self.calls[&number];
        let write = this.requested.effect == Effect::Write;
        assert!(this.requested.problem.is_none(), "a call with a problem ran");
        let new = this.starts == 0 && this.undoes.is_none();
        assert!(!(new && self.halted.contains(&this.step)), "a call begins in a step that a recovery ended");
        // Shown writes were approved with the plan: see `ConsentChecker`.
        let approved = this.approved || this.requested.approval.is_some() || this.undoes.is_some() || shown;
        assert!(!(write && this.fallback) || approved, "a fallback writes by itself");
        assert!(!(write && self.dry_run), "a dry run writes");
        assert!(this.requested.confirm.is_none(), "a write that nobody has confirmed ran");
        if write && this.replaces.is_some() {
            assert!(approved || by_person, "another tool writes and nobody said yes to it: {this:?}");
        }
        if let Some(by) = this.replaced_by {
            let by = &self.calls[&by];
            assert!(
                matches!(by.seen, CallProgress::Harmless | CallProgress::Undone),
                "{this:?} beside {by:?}"
            );
        }
        let allowed = match (this.seen, this.requested.effect, this.requested.repeat) {
            (CallProgress::Asked, _, _) => true,
            (CallProgress::Cut, Effect::Read, _) => true,
            (CallProgress::Unknown, Effect::Write, Repeat::Key) => this.own_starts() < 2 || this.due,
            // No attempt can have taken effect.
            (CallProgress::Harmless, _, _) => this.due && !this.uncertain,
            (CallProgress::Wanted, Effect::Write, _) => true,
            _ => false,
        };
        assert!(allowed, "{this:?} started again");
        for (other, call) in self.calls.iter().filter(|(n, _)| **n != number) {
            if this.undoes.is_some() {
                continue;
            }
            if self.same(number, *other) {
                let free = matches!(
                    call.seen,
                    CallProgress::Asked
                        | CallProgress::Harmless
                        | CallProgress::Cleared
                        | CallProgress::Undone
                );
                assert!(
                    this.seen == CallProgress::Wanted || free,
                    "{number} runs beside its equal {other}: {call:?}"
                );
                // What took the place of an equal call is the same act.
                let by = call.replaced_by.filter(|by| *by != number && write).map(|by| &self.calls[&by]);
                let done = by.filter(|by| {
                    matches!(by.seen, CallProgress::Done | CallProgress::Unknown | CallProgress::Flying)
                });
                assert!(
                    this.seen == CallProgress::Wanted || done.is_none(),
                    "{number} runs although {other} was done in another way: {done:?}"
                );
            } else if write
                && call.requested.effect == Effect::Write
                && (&call.scene, &call.requested.tool) == (&this.scene, &this.requested.tool)
                && this.starts == 0
            {
                let held = call.seen == CallProgress::Unknown
                    && (call.requested.repeat == Repeat::Never || call.starts > 1);
                assert!(!held, "{number} writes with a tool that is held since {other}");
            }
            if call.step == this.step && call.round == this.round && call.seen == CallProgress::Flying {
                assert!(!write && call.requested.effect == Effect::Read, "a write beside another call");
            }
        }
        let step = this.step;
        if this.starts == 0 && self.planned.get(&step).is_some_and(|planned| planned.3 >= self.first_in_force)
        {
            self.new_calls += 1;
        }
        let this = self.calls.get_mut(&number).unwrap();
        this.seen = CallProgress::Flying;
        this.overtaken = false;
        this.due = false;
        this.starts += 1;
        assert!(this.own_starts() <= 10, "{this:?} is retried without end");
        let begun =
            |c: &&WatchedCall| c.step == step && c.starts > 0 && c.undoes.is_none() && c.replaces.is_none();
        let in_step = self.calls.values().filter(begun).count();
        assert!(in_step <= self.settings.max_calls as usize, "a call too many");
    }

    fn tool_completed(&mut self, number: u32, outcome: &Outcome) {
        let this = self.calls.get_mut(&number).unwrap();
        let write = this.requested.effect == Effect::Write;
        let unknown = matches!(outcome, Outcome::Unknown { .. });
        this.uncertain |= write && unknown && self.settings.rules >= 4;
        this.uncertain &= !matches!(outcome, Outcome::Ok { .. });
        let uncertain = this.uncertain;
        this.seen = match outcome {
            Outcome::Ok { .. } if this.overtaken => CallProgress::Cleared,
            Outcome::Ok { .. } => CallProgress::Done,
            Outcome::Unknown { .. } if write => CallProgress::Unknown,
            // An earlier attempt may have taken effect.
            _ if uncertain => CallProgress::Unknown,
            _ => CallProgress::Harmless,
        };
        let (scene, began, undoes) = (this.scene.clone(), this.starts > 0, this.undoes);
        if let (Some(undone), Outcome::Ok { .. }) = (undoes, outcome) {
            self.calls.get_mut(&undone).unwrap().seen = CallProgress::Undone;
        }
        if write && began && (uncertain || matches!(outcome, Outcome::Ok { .. } | Outcome::Unknown { .. })) {
            self.clear(&scene);
        }
    }

    fn clear(&mut self, scene: &str) {
        let everywhere = self.settings.rules > 0;
        let reads = |c: &&mut WatchedCall| c.requested.effect == Effect::Read;
        for call in self.calls.values_mut().filter(reads).filter(|c| everywhere || c.scene == scene) {
            match call.seen {
                CallProgress::Done => call.seen = CallProgress::Cleared,
                // The result of a read that failed may still be interpreted.
                CallProgress::Flying | CallProgress::Harmless => call.overtaken = true,
                _ => {}
            }
        }
    }

    /// A driver ended. Calls that a restart of the server interrupted are not held against them.
    fn crash(&mut self, restart: bool) {
        self.crashes += 1;
        let mut cut_off = Vec::new();
        for call in self.calls.values_mut().filter(|c| c.seen == CallProgress::Flying) {
            call.interruptions += u32::from(restart);
            call.seen = match call.requested.effect {
                Effect::Read if restart || call.own_starts() < 4 => CallProgress::Cut,
                Effect::Read => CallProgress::Harmless,
                Effect::Write => {
                    call.uncertain |= self.settings.rules >= 4;
                    cut_off.push(call.scene.clone());
                    CallProgress::Unknown
                }
            };
        }
        for scene in cut_off {
            self.clear(&scene);
        }
    }

    fn at_step_end(&self, step: u32) {
        let open = self.calls.values().any(|c| {
            c.step == step
                && (c.waits
                    || c.due
                    || matches!(c.seen, CallProgress::Flying | CallProgress::Cut | CallProgress::Wanted))
        });
        assert!(!open, "step {step} ends while its calls are under way");
    }

    fn same(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.calls[&a], &self.calls[&b]);
        let by_arguments = a.replaces.is_some() || b.replaces.is_some();
        match self.settings.duplicates {
            Duplicates::SceneTool if !by_arguments => {
                a.scene == b.scene && a.requested.tool == b.requested.tool
            }
            Duplicates::Arguments | Duplicates::SceneTool => {
                (&a.requested.key, a.requested.occurrence) == (&b.requested.key, b.requested.occurrence)
            }
        }
    }

    fn write_flying(&self) -> bool {
        self.calls.values().any(|c| c.requested.effect == Effect::Write && c.seen == CallProgress::Flying)
    }

    /// Whether the event begins anything other than a compensation.
    fn begins(&self, event: &Event) -> bool {
        match event {
            Event::Planning { .. } | Event::StepStarted { .. } | Event::ModelAsked { .. } => true,
            Event::ToolStarted { call, .. } => self.calls[call].undoes.is_none(),
            _ => false,
        }
    }
}
