//! A second account of what people were asked and what they said, kept from a run's events alone: nothing
//! is done that needs a yes and has none, nobody is asked twice, and what waits waits for somebody.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::plan::{PlanStatus, PreparedCall};
use crate::run::{
    AskFor, CallStatus, Cause, Decision, Effect, Event, Matter, NOT_PUT, Needed, Outcome, PlanMade,
    RequestedCall, RunState, RunStatus, Settings, canonical_json,
};

#[derive(Debug, Clone, PartialEq)]
enum Said {
    /// Nobody has decided.
    Open,
    Decided(Decision),
    Lapsed,
}

#[derive(Debug)]
struct Asked {
    matter: Matter,
    needed: Needed,
    said: Said,
}

#[derive(Debug)]
struct Write {
    scene: String,
    requested: RequestedCall,
    starts: u32,
    /// What it found, once it was done.
    done: Option<Value>,
    undone_by: Option<u32>,
}

/// What the events have told so far of people, and of what needs them.
#[derive(Debug, Default)]
pub struct Consent {
    settings: Settings,
    dry_run: bool,
    plan_only: bool,
    status: Option<PlanStatus>,
    /// By version: whether it needs a yes.
    plans: Vec<bool>,
    /// By step: its scene and version.
    steps: BTreeMap<u32, (String, usize)>,
    /// By step: the calls that its plan shows.
    shown: BTreeMap<u32, Vec<PreparedCall>>,
    begun: BTreeMap<u32, usize>,
    /// Steps that did something, or were completed.
    touched: BTreeSet<u32>,
    released: bool,
    asked: BTreeMap<u32, Asked>,
    writes: BTreeMap<u32, Write>,
    stopped: bool,
    answered: bool,
    ended: bool,
    cancelled: bool,
    waiting: bool,
}

impl Consent {
    /// Takes note of an event that is about to happen; `state` is only compared with.
    pub fn before(&mut self, state: &RunState, event: &Event) {
        self.about_the_end(event);
        self.about_waiting(event);
        match event {
            Event::RunQueued(queued) => {
                (self.dry_run, self.plan_only) = (queued.dry_run, queued.plan_only);
            }
            Event::RunStarted(started) => self.settings = started.settings.clone(),
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => self.planned(made),
            Event::ModificationAsked { .. } => self.withdrawn(),
            Event::ApprovalRequired { approval, matter, needed } => self.put(*approval, *matter, needed),
            Event::Decided { approval, matter, decision, .. } => self.decided(*approval, *matter, decision),
            Event::ApprovalLapsed { approval, matter, needed, .. } => self.lapsed(*approval, *matter, needed),
            Event::Released { .. } => self.released = true,
            Event::StepStarted { step } => self.step_started(*step),
            Event::SceneReplied { step, calls, .. } => {
                let scene = &self.steps[step].0;
                if !calls.is_empty() {
                    self.touched.insert(*step);
                }
                for call in calls.iter().filter(|call| call.effect == Effect::Write) {
                    self.covered(*step, call);
                    self.writes.insert(call.call, write(scene, call));
                }
            }
            Event::ToolStarted { call, .. } => self.tool_started(state, *call),
            Event::ToolCompleted { call, outcome: Outcome::Ok { result, .. }, .. } => {
                if let Some(write) = self.writes.get_mut(call).filter(|write| write.starts > 0) {
                    write.done = Some(result.clone());
                }
            }
            Event::Compensating { undoes, requested } => self.compensating(*undoes, requested),
            Event::CancelRequested { .. } => self.stopped |= !self.answered,
            Event::Answered { .. } => self.answered = true,
            Event::StepCompleted { step, .. } => {
                self.touched.insert(*step);
            }
            // A step that ended in words alone, where something was to be done, begins anew untouched.
            Event::RunReopened { .. } => self.begun.retain(|step, _| {
                let evaded = |s: &crate::run::StepState| s.calls.is_empty() && state.is_unserved(s);
                self.touched.contains(step) && !state.steps.get(step).is_some_and(evaded)
            }),
            _ => {}
        }
        self.plan_moves(event);
    }

    /// What must hold of the state after any event.
    pub fn after(&self, state: &RunState) {
        assert_eq!(Some(state.plan_status), self.status.or(Some(PlanStatus::Draft)));
        assert_eq!(state.status == RunStatus::Waiting, self.waiting);
        let open = |a: &Asked| a.said == Said::Open;
        for (number, asked) in &self.asked {
            assert_eq!(open(asked), state.approvals[number].is_open(), "approval {number}");
            if let (true, Matter::Call { call }) = (open(asked), asked.matter) {
                let status = &state.calls[&call].status;
                assert_eq!(*status, CallStatus::Requested, "call {call} went on without waiting");
            }
        }
    }

    /// What must hold when the run has ended.
    pub fn at_end(&self, state: &RunState) {
        if self.cancelled && self.settings.compensate && !self.dry_run {
            let left = self.undoable().next_back();
            assert_eq!(left, None, "cancelled, and a write stands that could have been undone");
        }
        for (number, call) in &state.calls {
            let unknown = matches!(call.status, CallStatus::Done { outcome: Outcome::Unknown { .. } });
            let put = self
                .asked
                .values()
                .any(|a| a.matter == (Matter::Outcome { call: *number }) && a.said == Said::Open);
            // What the run's failure itself cut off is put when it is carried on.
            if unknown && call.requested.effect == Effect::Write && state.status != RunStatus::Failed {
                assert!(put, "nobody is asked what became of write {number}");
            }
        }
    }

    fn about_the_end(&mut self, event: &Event) {
        if self.ended {
            let may = matches!(
                event,
                Event::RunReopened { .. } | Event::Decided { matter: Matter::Outcome { .. }, .. }
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
                let about_outcome = |a: &Asked| matches!(a.matter, Matter::Outcome { .. });
                for asked in self.asked.values_mut().filter(|a| a.said == Said::Open && !about_outcome(a)) {
                    asked.said = Said::Lapsed;
                }
            }
            _ => {}
        }
    }

    /// While a run waits, people act, and nothing else happens.
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
            assert!(somebody, "{event:?} while the run waits for a person");
            self.waiting = matches!(event, Event::RunResumed { .. });
        }
        if let Event::RunWaiting {} = event {
            let open = |a: &Asked| a.said == Said::Open && !matches!(a.matter, Matter::Outcome { .. });
            assert!(self.is_held() || self.asked.values().any(open), "it waits for nobody");
            self.waiting = true;
        }
    }

    fn planned(&mut self, made: &PlanMade) {
        if matches!(made.cause, Cause::Edit | Cause::Feedback) {
            let version = self.plans.len();
            assert!(!self.begun.values().any(|v| *v == version), "a plan that has begun was changed");
            self.withdrawn();
            self.steps.retain(|_, (_, of)| *of != version);
        }
        self.plans.push(made.approval.is_some() && !self.dry_run);
        assert_eq!(made.version as usize, self.plans.len());
        for step in &made.plan.steps {
            self.steps.insert(step.step_number, (step.scene_name.clone(), self.plans.len()));
            self.shown.insert(step.step_number, step.prepared_calls.clone());
        }
        self.released = false;
    }

    /// The plan in force is to be another: what was said of it counts no more.
    fn withdrawn(&mut self) {
        let version = self.plans.len() as u32;
        for asked in self.asked.values_mut().filter(|a| a.matter == Matter::Plan { version }) {
            asked.said = Said::Lapsed;
        }
        self.released = false;
    }

    fn put(&mut self, number: u32, matter: Matter, needed: &Needed) {
        assert_eq!(number as usize, self.asked.len() + 1, "approvals count up by one");
        for asked in self.asked.values().filter(|a| a.matter == matter) {
            let again = match (matter, &asked.said) {
                (Matter::Outcome { .. }, Said::Decided(said)) => *said == Decision::Again,
                (_, said) => *said == Said::Lapsed,
            };
            assert!(again, "{matter:?} is asked twice: {asked:?}");
        }
        if let Matter::Call { call } = matter {
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
        if !matches!(matter, Matter::Outcome { .. }) {
            assert!(!self.dry_run && !self.stopped, "{matter:?} is asked for nothing");
        }
        self.asked.insert(number, Asked { matter, needed: needed.clone(), said: Said::Open });
    }

    fn decided(&mut self, number: u32, matter: Matter, decision: &Decision) {
        let asked = self.asked.get_mut(&number).unwrap();
        assert_eq!((asked.matter, &asked.said), (matter, &Said::Open), "decided twice");
        asked.said = Said::Decided(decision.clone());
        match (matter, decision) {
            (Matter::Plan { .. }, Decision::No) if self.begun.is_empty() => self.stopped = true,
            (Matter::Call { call }, Decision::Edited { arguments, key }) => {
                let requested = &mut self.writes.get_mut(&call).unwrap().requested;
                requested.arguments = arguments.clone();
                requested.key.clone_from(key);
            }
            (Matter::Outcome { call }, Decision::Done) => {
                self.writes.get_mut(&call).unwrap().done = Some(json!("by a person's word"));
            }
            _ => {}
        }
    }

    fn lapsed(&mut self, number: u32, matter: Matter, needed: &Needed) {
        if number == NOT_PUT {
            let Matter::Call { call } = matter else { panic!("{matter:?} is nobody's to approve unasked") };
            let own = |a: &Asked| a.matter == matter && a.said != Said::Lapsed;
            assert!(!self.asked.values().any(own), "somebody was asked about call {call}");
            self.writes.get_mut(&call).unwrap().requested.approval = Some(needed.clone());
            return;
        }
        let asked = self.asked.get_mut(&number).unwrap();
        assert_ne!(asked.said, Said::Decided(Decision::No), "a no is forgotten");
        asked.said = Said::Lapsed;
        match matter {
            Matter::Plan { version } => {
                assert_eq!(version as usize, self.plans.len());
                self.plans[version as usize - 1] = true;
                self.released = false;
            }
            Matter::Call { call } => {
                let requested = &mut self.writes.get_mut(&call).unwrap().requested;
                requested.approval = Some(needed.clone());
            }
            Matter::Outcome { .. } => panic!("what became of a write does not lapse"),
        }
    }

    /// A yes to a plan covers what was shown in it: any other write is asked about by itself.
    fn covered(&self, step: u32, call: &RequestedCall) {
        let (scene, version) = &self.steps[&step];
        let matter = Matter::Plan { version: *version as u32 };
        let yes = |a: &Asked| a.matter == matter && matches!(a.said, Said::Decided(Decision::Yes { .. }));
        let Some(asked) = self.asked.values().find(|a| yes(a)) else { return };
        // The only tool of this world that says of itself that a plan's yes is enough.
        let enough = (scene.as_str(), call.tool.as_str()) == ("B", "book");
        let never = self.settings.approval.calls == AskFor::Never;
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
        let asked = self.asked.values().filter(|a| a.matter == Matter::Plan { version: version as u32 });
        let said: Vec<&Said> = asked.map(|a| &a.said).filter(|said| **said != Said::Lapsed).collect();
        if self.plans[version - 1] {
            let yes = matches!(said.as_slice(), [Said::Decided(Decision::Yes { .. })]);
            assert!(yes, "step {step} of version {version} begins though people said {said:?}");
            assert!(version < self.plans.len() || !self.is_held(), "step {step} of a held plan begins");
        }
        assert!(!said.contains(&&Said::Decided(Decision::No)), "step {step} begins after a no");
        self.begun.insert(step, version);
    }

    /// Whether the plan in force was only approved.
    fn is_held(&self) -> bool {
        let version = self.plans.len() as u32;
        let held = Said::Decided(Decision::Yes { hold: true });
        !self.released && self.asked.values().any(|a| a.matter == Matter::Plan { version } && a.said == held)
    }

    fn tool_started(&mut self, state: &RunState, number: u32) {
        let Some(this) = self.writes.get(&number) else { return };
        assert!(!self.dry_run, "a dry run writes");
        assert_eq!(state.calls[&number].requested.arguments, this.requested.arguments);
        if let Some(needed) = &this.requested.approval {
            let own = self
                .asked
                .values()
                .find(|a| a.matter == Matter::Call { call: number } && a.said != Said::Lapsed);
            match own.map(|a| &a.said) {
                Some(Said::Decided(Decision::Yes { .. })) => {}
                Some(Said::Decided(Decision::Edited { arguments, .. })) => {
                    assert_eq!(*arguments, this.requested.arguments, "it was not that which was approved");
                }
                Some(said) => panic!("write {number} starts though people said {said:?}"),
                None => {
                    let mut yes = false;
                    let equal = |w: &Write| w.scene == this.scene && w.requested.key == this.requested.key;
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

    /// What was said of writes, and what was shown.
    fn said_of_calls(&self) -> impl Iterator<Item = (&Write, (&Decision, &Needed))> {
        self.asked.values().filter_map(|asked| match (&asked.said, asked.matter) {
            (Said::Decided(decision), Matter::Call { call }) => {
                Some((&self.writes[&call], (decision, &asked.needed)))
            }
            _ => None,
        })
    }

    /// The writes that were done, say how they are undone, and were not tried to be undone.
    fn undoable(&self) -> impl DoubleEndedIterator<Item = u32> {
        let undoable = |write: &Write| match (&write.requested.undo, &write.done) {
            (Some(undo), Some(result)) => {
                undo.arguments_for(&write.requested.arguments, result).is_some() && write.undone_by.is_none()
            }
            _ => false,
        };
        self.writes.iter().filter(move |(_, write)| undoable(write)).map(|(number, _)| *number)
    }

    fn compensating(&mut self, undoes: u32, requested: &RequestedCall) {
        assert!(self.settings.compensate && !self.dry_run, "undone though nobody wants it");
        assert_eq!(self.undoable().next_back(), Some(undoes), "undone out of turn, twice or for nothing");
        let undone = self.writes.get_mut(&undoes).unwrap();
        undone.undone_by = Some(requested.call);
        let expected = match undone.requested.tool.as_str() {
            "book" => undone.done.as_ref().unwrap()["value"].clone(),
            _ => undone.requested.arguments["n"].clone(),
        };
        assert_eq!((requested.tool.as_str(), &requested.arguments["id"]), ("unbook", &expected));
        let scene = undone.scene.clone();
        self.writes.insert(requested.call, write(&scene, requested));
    }

    /// The plan's status by the events alone, as the store keeps it.
    fn plan_moves(&mut self, event: &Event) {
        let now = self.status.unwrap_or(PlanStatus::Draft);
        let to = match event.plan_status() {
            None => now,
            Some(PlanStatus::Approved | PlanStatus::Completed) if self.plan_only => now,
            Some(to) if now == PlanStatus::Executing && !to.is_terminal() => now,
            Some(to) => to,
        };
        assert!(now == to || now.followed_by().contains(&to), "{now:?} -> {to:?} by {event:?}");
        if matches!(now, PlanStatus::Completed | PlanStatus::Cancelled) {
            assert_eq!(now, to, "an end that did not last");
        }
        self.status = Some(to);
    }
}

fn write(scene: &str, requested: &RequestedCall) -> Write {
    let (scene, requested) = (scene.to_owned(), requested.clone());
    Write { scene, requested, starts: 0, done: None, undone_by: None }
}

fn same_arguments(a: &Write, b: &Write) -> bool {
    canonical_json(&a.requested.arguments) == canonical_json(&b.requested.arguments)
}
