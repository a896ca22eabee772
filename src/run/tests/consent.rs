//! A second model of approvals and decisions, built from a run's events alone. It checks that nothing is
//! executed without a required approval, that nothing is requested twice, and that a waiting run waits for
//! a person.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::plan::{PlanStatus, PreparedCall};
use crate::run::{
    Adaptation, ApprovalScope, ApprovalSubject, CallStatus, Decision, Effect, Event, NO_APPROVAL, Outcome,
    PlanCause, PlanMade, ProgramStop, RequestedCall, RequiredApproval, RunState, RunStatus, Settings,
    canonical_json,
};

#[derive(Debug, Clone, PartialEq)]
enum DecisionState {
    /// Nobody has decided.
    Open,
    Decided(Decision),
    Lapsed,
}

#[derive(Debug)]
struct ApprovalRecord {
    matter: ApprovalSubject,
    needed: RequiredApproval,
    said: DecisionState,
}

#[derive(Debug)]
struct WriteRecord {
    scene: String,
    requested: RequestedCall,
    starts: u32,
    /// Its own ordinal, or that of the call whose place it takes.
    place: u32,
    /// Its result, once it was done.
    done: Option<Value>,
    undone_by: Option<u32>,
}

/// The model so far.
#[derive(Debug, Default)]
pub struct ConsentChecker {
    settings: Settings,
    dry_run: bool,
    plan_only: bool,
    status: Option<PlanStatus>,
    /// By version: whether it needs approval.
    plans: Vec<bool>,
    /// The versions that change a part of the one before.
    patches: BTreeSet<u32>,
    /// By step: its scene and version.
    steps: BTreeMap<u32, (String, usize)>,
    /// By step: the calls that its plan shows.
    shown: BTreeMap<u32, Vec<PreparedCall>>,
    begun: BTreeMap<u32, usize>,
    /// Steps that did something, or were completed.
    touched: BTreeSet<u32>,
    released: bool,
    asked: BTreeMap<u32, ApprovalRecord>,
    writes: BTreeMap<u32, WriteRecord>,
    stopped: bool,
    answered: bool,
    ended: bool,
    cancelled: bool,
    waiting: bool,
    /// Whether it waits until a person resumes or cancels it.
    aside: bool,
}

impl ConsentChecker {
    /// Records an event before it is applied; `state` is only used for comparison.
    pub fn before(&mut self, state: &RunState, event: &Event) {
        let was_aside = self.aside;
        self.about_the_end(event);
        self.about_waiting(event);
        match event {
            Event::RunQueued(queued) => {
                (self.dry_run, self.plan_only) = (queued.options.dry_run, queued.plan_only);
            }
            Event::RunStarted(started) => self.settings = started.settings.clone(),
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => self.planned(made),
            Event::ModificationAsked { .. } => self.withdrawn(),
            Event::ApprovalRequired { approval, matter, needed } => self.put(*approval, *matter, needed),
            Event::Decided { approval, matter, decision, .. } => self.decided(*approval, *matter, decision),
            Event::ApprovalLapsed { approval, matter, needed, .. } => self.lapsed(*approval, *matter, needed),
            Event::Released { .. } => self.released |= !was_aside,
            Event::StepStarted { step } => self.step_started(*step),
            Event::SceneReplied { step, calls, .. } | Event::Prepared { step, calls, .. } => {
                let scene = &self.steps[step].0;
                if !calls.is_empty() {
                    self.touched.insert(*step);
                }
                for call in calls.iter().filter(|call| call.effect == Effect::Write) {
                    self.covered(*step, call);
                    self.writes.insert(call.call, write(scene, call));
                }
            }
            Event::ProgramReplied { step, stop: ProgramStop::Call { requested, .. }, .. } => {
                self.touched.insert(*step);
                if requested.effect == Effect::Write {
                    assert!(
                        requested.confirm.is_none() || requested.approval.is_some(),
                        "a question without a yes"
                    );
                    let scene = requested.scene.clone().unwrap_or_default();
                    self.writes.insert(requested.call, write(&scene, requested));
                }
            }
            Event::ToolStarted { call, .. } => self.tool_started(state, *call),
            Event::ToolCompleted { call, outcome: Outcome::Ok { result, .. }, .. } => {
                if let Some(write) = self.writes.get_mut(call).filter(|write| write.starts > 0) {
                    write.done = Some(result.clone());
                }
            }
            Event::Adapted { change: Adaptation::Substituted { call, requested } }
                if requested.effect == Effect::Write =>
            {
                let of = &state.calls[call];
                self.covered(of.step, requested);
                let substitute = WriteRecord { place: *call, ..write(&of.scene, requested) };
                self.writes.insert(requested.call, substitute);
            }
            Event::Compensating { undoes, requested } => self.compensating(*undoes, requested),
            Event::CancelRequested { .. } => self.stopped |= !self.answered,
            Event::Answered { .. } => self.answered = true,
            Event::StepCompleted { step, .. } => {
                self.touched.insert(*step);
            }
            // A step that ended with text only, although it had calls to make, begins again untouched.
            Event::RunReopened { .. } => self.begun.retain(|step, _| {
                let evaded = |s: &crate::run::StepState| s.calls.is_empty() && state.is_unserved(s);
                self.touched.contains(step) && !state.steps.get(step).is_some_and(evaded)
            }),
            _ => {}
        }
        self.plan_moves(event);
    }

    /// Invariants of the state after any event.
    pub fn after(&self, state: &RunState) {
        assert_eq!(Some(state.plan_status), self.status.or(Some(PlanStatus::Draft)));
        assert_eq!(state.status == RunStatus::Waiting, self.waiting);
        let open = |a: &ApprovalRecord| a.said == DecisionState::Open;
        for (number, asked) in &self.asked {
            assert_eq!(open(asked), state.approvals[number].is_open(), "approval {number}");
            if let (true, ApprovalSubject::Call { call }) = (open(asked), asked.matter) {
                let status = &state.calls[&call].status;
                assert_eq!(*status, CallStatus::Requested, "call {call} went on without waiting");
            }
        }
    }

    /// Invariants after the run has ended.
    pub fn at_end(&self, state: &RunState) {
        if self.cancelled && self.settings.compensate && !self.dry_run {
            let left = self.next_to_undo();
            assert_eq!(left, None, "cancelled, and a write stands that could have been undone");
        }
        for (number, call) in &state.calls {
            let unknown = matches!(call.status, CallStatus::Done { outcome: Outcome::Unknown { .. } });
            let put = self.asked.values().any(|a| {
                a.matter == (ApprovalSubject::Outcome { call: *number }) && a.said == DecisionState::Open
            });
            // Writes interrupted by the run's own failure are sent for approval when it is resumed.
            if unknown && call.requested.effect == Effect::Write && state.status != RunStatus::Failed {
                assert!(put, "nobody is asked what became of write {number}");
            }
        }
    }

    fn about_the_end(&mut self, event: &Event) {
        if self.ended {
            let may = matches!(
                event,
                Event::RunReopened { .. } | Event::Decided { matter: ApprovalSubject::Outcome { .. }, .. }
            );
            assert!(may, "{event:?} after the end");
        }
        match event {
            Event::RunReopened { .. } => {
                assert!(self.ended && !self.cancelled);
                (self.ended, self.stopped, self.answered) = (false, false, false);
            }
            _ if event.is_terminal() => {
                self.ended = true;
                self.cancelled = matches!(event, Event::RunCancelled { .. });
                let about_outcome = |a: &ApprovalRecord| matches!(a.matter, ApprovalSubject::Outcome { .. });
                for asked in
                    self.asked.values_mut().filter(|a| a.said == DecisionState::Open && !about_outcome(a))
                {
                    asked.said = DecisionState::Lapsed;
                }
            }
            _ => {}
        }
    }

    /// While a run waits, only people act.
    fn about_waiting(&mut self, event: &Event) {
        if self.waiting {
            let somebody = matches!(
                event,
                Event::Decided { .. }
                    | Event::Released { .. }
                    | Event::ModificationAsked { .. }
                    | Event::PlanEdited(_)
                    | Event::CancelRequested { .. }
                    | Event::ApprovalLapsed { .. }
                    | Event::RunResumed { .. }
                    | Event::RunFailed { .. }
            );
            let outcome =
                matches!(event, Event::ApprovalRequired { matter: ApprovalSubject::Outcome { .. }, .. });
            let put_aside = matches!(event, Event::RunPutAside { .. });
            let restored = matches!(event, Event::RunPutAside { copied: Some(_), .. });
            assert!(
                somebody || restored || (self.aside && (outcome || put_aside)),
                "{event:?} while the run waits for a person"
            );
            let cancels = matches!(event, Event::CancelRequested { deadline: false, .. });
            if cancels || event.is_terminal() || matches!(event, Event::Released { .. }) {
                self.aside = false;
            }
            self.waiting = self.aside || matches!(event, Event::RunResumed { .. });
        }
        if let Event::RunPutAside { .. } = event {
            (self.aside, self.waiting) = (true, true);
        }
        if let Event::RunWaiting {} = event {
            let open = |a: &ApprovalRecord| {
                a.said == DecisionState::Open && !matches!(a.matter, ApprovalSubject::Outcome { .. })
            };
            assert!(self.is_held() || self.asked.values().any(open), "the run waits, but not for a person");
            self.waiting = true;
        }
    }

    fn planned(&mut self, made: &PlanMade) {
        if matches!(made.cause, PlanCause::Edit | PlanCause::Feedback) {
            let version = self.plans.len();
            assert!(!self.begun.values().any(|v| *v == version), "a plan that has begun was changed");
            self.withdrawn();
            self.steps.retain(|_, (_, of)| *of != version);
        }
        if let Some(patch) = &made.patch {
            self.patches.insert(made.version);
            let changed = patch.removed.iter().chain(patch.replaced.keys()).chain(&patch.dependants);
            for step in changed {
                let version = self.steps[step].1 as u32;
                let approved = self.asked.values().any(|asked| {
                    asked.matter == (ApprovalSubject::Plan { version })
                        && matches!(asked.said, DecisionState::Decided(Decision::Yes { .. }))
                });
                // The step that failed.
                assert!(
                    !approved || self.begun.contains_key(step),
                    "step {step} was approved and is changed"
                );
            }
        }
        self.plans.push(made.approval.is_some() && !self.dry_run);
        assert_eq!(made.version as usize, self.plans.len());
        for step in &made.plan.steps {
            self.steps.insert(step.step_number, (step.scene_name.clone(), self.plans.len()));
            self.shown.insert(step.step_number, step.prepared_calls.clone());
        }
        self.released = false;
    }

    /// The plan in force is being replaced: decisions about it are void.
    fn withdrawn(&mut self) {
        let version = self.plans.len() as u32;
        for asked in self.asked.values_mut().filter(|a| a.matter == ApprovalSubject::Plan { version }) {
            asked.said = DecisionState::Lapsed;
        }
        self.released = false;
    }

    fn put(&mut self, number: u32, matter: ApprovalSubject, needed: &RequiredApproval) {
        assert_eq!(number as usize, self.asked.len() + 1, "approvals count up by one");
        for asked in self.asked.values().filter(|a| a.matter == matter) {
            let again = match (matter, &asked.said) {
                (ApprovalSubject::Outcome { .. }, DecisionState::Decided(said)) => *said == Decision::Again,
                (_, said) => *said == DecisionState::Lapsed,
            };
            assert!(again, "{matter:?} is asked twice: {asked:?}");
        }
        if let ApprovalSubject::Call { call } = matter {
            let this = &self.writes[&call];
            for (other, said) in self.said_of_calls() {
                let equal = other.scene == this.scene && other.requested.key == this.requested.key;
                let decided = match said.0 {
                    Decision::No => equal,
                    _ => {
                        let act = other.requested.occurrence == this.requested.occurrence;
                        equal && act && same_arguments(other, this) && said.1.tools == needed.tools
                    }
                };
                assert!(!decided, "asked about call {call} though {other:?} was decided");
            }
        }
        if !matches!(matter, ApprovalSubject::Outcome { .. }) {
            assert!(!self.dry_run && !self.stopped, "{matter:?} is asked for nothing");
        }
        self.asked
            .insert(number, ApprovalRecord { matter, needed: needed.clone(), said: DecisionState::Open });
    }

    fn decided(&mut self, number: u32, matter: ApprovalSubject, decision: &Decision) {
        let asked = self.asked.get_mut(&number).unwrap();
        assert_eq!((asked.matter, &asked.said), (matter, &DecisionState::Open), "decided twice");
        asked.said = DecisionState::Decided(decision.clone());
        match (matter, decision) {
            (ApprovalSubject::Plan { version }, Decision::No)
                if self.begun.is_empty() && !self.patches.contains(&version) =>
            {
                self.stopped = true;
            }
            (ApprovalSubject::Call { call }, Decision::Edited { arguments, key }) => {
                let requested = &mut self.writes.get_mut(&call).unwrap().requested;
                requested.arguments = arguments.clone();
                requested.key.clone_from(key);
            }
            (ApprovalSubject::Outcome { call }, Decision::Done) => {
                self.writes.get_mut(&call).unwrap().done = Some(json!("by a person's word"));
            }
            _ => {}
        }
    }

    fn lapsed(&mut self, number: u32, matter: ApprovalSubject, needed: &RequiredApproval) {
        if number == NO_APPROVAL {
            let ApprovalSubject::Call { call } = matter else {
                panic!("{matter:?} is nobody's to approve unasked")
            };
            let own = |a: &ApprovalRecord| a.matter == matter && a.said != DecisionState::Lapsed;
            assert!(!self.asked.values().any(own), "somebody was asked about call {call}");
            self.writes.get_mut(&call).unwrap().requested.approval = Some(needed.clone());
            return;
        }
        let asked = self.asked.get_mut(&number).unwrap();
        assert_ne!(asked.said, DecisionState::Decided(Decision::No), "a no is forgotten");
        asked.said = DecisionState::Lapsed;
        match matter {
            ApprovalSubject::Plan { version } => {
                assert_eq!(version as usize, self.plans.len());
                self.plans[version as usize - 1] = true;
                self.released = false;
            }
            ApprovalSubject::Call { call } => {
                let requested = &mut self.writes.get_mut(&call).unwrap().requested;
                requested.approval = Some(needed.clone());
            }
            ApprovalSubject::Outcome { .. } => {
                panic!("an approval about the outcome of a write does not lapse")
            }
        }
    }

    /// A plan's approval covers the writes that it showed; any other write needs a separate approval.
    fn covered(&self, step: u32, call: &RequestedCall) {
        let (scene, version) = &self.steps[&step];
        let matter = ApprovalSubject::Plan { version: *version as u32 };
        let yes = |a: &ApprovalRecord| {
            a.matter == matter && matches!(a.said, DecisionState::Decided(Decision::Yes { .. }))
        };
        let Some(asked) = self.asked.values().find(|a| yes(a)) else { return };
        // The only tool of this world that declares that a plan's approval suffices.
        let enough = (scene.as_str(), call.tool.as_str()) == ("B", "book");
        let never = self.settings.approval.calls == ApprovalScope::Never;
        let covers = asked.needed.tools.contains_key(&format!("{scene}.{}", call.tool));
        if call.approval.is_some() || call.problem.is_some() || enough || never || !covers {
            return;
        }
        let arguments = canonical_json(&call.arguments);
        let same = |prepared: &&PreparedCall| {
            prepared.tool == call.tool
                && canonical_json(&Value::Object(prepared.arguments.clone())) == arguments
        };
        let shown = self.shown[&step].iter().any(|prepared| same(&prepared));
        assert!(shown, "nobody is asked about {call:?}, which the plan did not show");
    }

    fn step_started(&mut self, step: u32) {
        let version = self.steps[&step].1;
        let asked =
            self.asked.values().filter(|a| a.matter == ApprovalSubject::Plan { version: version as u32 });
        let said: Vec<&DecisionState> =
            asked.map(|a| &a.said).filter(|said| **said != DecisionState::Lapsed).collect();
        if self.plans[version - 1] {
            let yes = matches!(said.as_slice(), [DecisionState::Decided(Decision::Yes { .. })]);
            assert!(yes, "step {step} of version {version} begins though people said {said:?}");
            assert!(version < self.plans.len() || !self.is_held(), "step {step} of a held plan begins");
        }
        assert!(!said.contains(&&DecisionState::Decided(Decision::No)), "step {step} begins after a no");
        self.begun.insert(step, version);
    }

    /// Whether the plan in force was approved and held.
    fn is_held(&self) -> bool {
        let version = self.plans.len() as u32;
        let held = DecisionState::Decided(Decision::Yes { hold: true });
        !self.released
            && self.asked.values().any(|a| a.matter == ApprovalSubject::Plan { version } && a.said == held)
    }

    fn tool_started(&mut self, state: &RunState, number: u32) {
        let Some(this) = self.writes.get(&number) else { return };
        assert!(!self.dry_run, "a dry run writes");
        assert_eq!(state.calls[&number].requested.arguments, this.requested.arguments);
        if let Some(needed) = &this.requested.approval {
            let own = self.asked.values().find(|a| {
                a.matter == ApprovalSubject::Call { call: number } && a.said != DecisionState::Lapsed
            });
            match own.map(|a| &a.said) {
                Some(DecisionState::Decided(Decision::Yes { .. })) => {}
                Some(DecisionState::Decided(Decision::Edited { arguments, .. })) => {
                    assert_eq!(*arguments, this.requested.arguments, "it was not that which was approved");
                }
                Some(said) => panic!("write {number} starts though people said {said:?}"),
                None => {
                    let mut yes = false;
                    let equal =
                        |w: &WriteRecord| w.scene == this.scene && w.requested.key == this.requested.key;
                    for (other, (said, shown)) in self.said_of_calls().filter(|(w, _)| equal(w)) {
                        assert_ne!(*said, Decision::No, "write {number} starts after a no to {other:?}");
                        yes |= other.requested.occurrence == this.requested.occurrence
                            && same_arguments(other, this)
                            && shown.tools == needed.tools;
                    }
                    assert!(yes, "nobody said yes to write {number}: {this:?}");
                }
            }
        }
        self.writes.get_mut(&number).unwrap().starts += 1;
    }

    /// Decisions about writes, and what was shown.
    fn said_of_calls(&self) -> impl Iterator<Item = (&WriteRecord, (&Decision, &RequiredApproval))> {
        self.asked.values().filter_map(|asked| match (&asked.said, asked.matter) {
            (DecisionState::Decided(decision), ApprovalSubject::Call { call }) => {
                Some((&self.writes[&call], (decision, &asked.needed)))
            }
            _ => None,
        })
    }

    /// The last write that was done, can be undone, and whose undo was not attempted.
    fn next_to_undo(&self) -> Option<u32> {
        let undoable = |write: &WriteRecord| match (&write.requested.undo, &write.done) {
            (Some(undo), Some(result)) => {
                let found = undo.arguments_for(&write.requested.arguments, result).is_some();
                (found || self.settings.has_rules(3)) && write.undone_by.is_none()
            }
            _ => false,
        };
        let left = self.writes.iter().filter(|(_, write)| undoable(write));
        left.max_by_key(|(number, write)| (write.place, **number)).map(|(number, _)| *number)
    }

    fn compensating(&mut self, undoes: u32, requested: &RequestedCall) {
        assert!(self.settings.compensate && !self.dry_run, "undone though nobody wants it");
        assert_eq!(self.next_to_undo(), Some(undoes), "undone out of turn, twice or for nothing");
        let undone = self.writes.get_mut(&undoes).unwrap();
        undone.undone_by = Some(requested.call);
        let (undo, result) = (undone.requested.undo.as_ref().unwrap(), undone.done.as_ref().unwrap());
        let found = undo.arguments_for(&undone.requested.arguments, result);
        assert_eq!(found.is_none(), requested.problem.is_some(), "{requested:?}");
        let expected = match undone.requested.tool.as_str() {
            "book" => undone.done.as_ref().unwrap()["value"].clone(),
            _ => undone.requested.arguments["n"].clone(),
        };
        assert_eq!((requested.tool.as_str(), &requested.arguments["id"]), ("unbook", &expected));
        let scene = undone.scene.clone();
        self.writes.insert(requested.call, write(&scene, requested));
    }

    /// The plan's status from the events alone, as stored.
    fn plan_moves(&mut self, event: &Event) {
        let now = self.status.unwrap_or(PlanStatus::Draft);
        let to = match event.facts().plan_status {
            None => now,
            Some(PlanStatus::Approved | PlanStatus::Completed) if self.plan_only => now,
            Some(to) if now == PlanStatus::Executing && !to.is_terminal() => now,
            Some(to) => to,
        };
        assert!(now == to || now.successors().contains(&to), "{now:?} -> {to:?} by {event:?}");
        if matches!(now, PlanStatus::Completed | PlanStatus::Cancelled) {
            assert_eq!(now, to, "an end that did not last");
        }
        self.status = Some(to);
    }
}

fn write(scene: &str, requested: &RequestedCall) -> WriteRecord {
    let (scene, requested) = (scene.to_owned(), requested.clone());
    WriteRecord { place: requested.call, scene, requested, starts: 0, done: None, undone_by: None }
}

fn same_arguments(a: &WriteRecord, b: &WriteRecord) -> bool {
    canonical_json(&a.requested.arguments) == canonical_json(&b.requested.arguments)
}
