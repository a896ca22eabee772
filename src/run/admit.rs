//! Admission of events: which events are legal in which state.

mod patches;

use super::action::Action;
use super::approval::{Approval, ApprovalSubject, Decision};
use super::event::{
    Adaptation, ConsultationChoice, ConsultationSubject, Effect, Event, EventArea, NO_APPROVAL, Outcome,
    PlanCause, PlanMade, RunStatus, Subject,
};
use super::learned::MAX_RATINGS;
use super::state::{AskStatus, CallStatus, RunState, StepState};
use crate::adapt::RecoveryAction;
use crate::flow;
use crate::plan::{self, StepStatus};

/// An event that is illegal in the current state. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} cannot follow: {why}")]
pub struct Illegal {
    /// The event's name.
    pub event: String,
    /// Why it is illegal.
    pub why: String,
}

impl RunState {
    /// Checks that `event` is legal now. Check an event that a person or a model caused before appending it.
    /// What [`RunState::next`] requests is legal, so the driver appends it with the check as a debug
    /// assertion only.
    ///
    /// # Errors
    /// [`Illegal`] with the reason.
    pub fn check(&self, event: &Event) -> Result<(), Illegal> {
        self.admit(event).map_err(|why| Illegal { event: event.key(), why })
    }

    /// There are three kinds of events: external ones (a request, a takeover, a cancellation), the end of
    /// something in flight, and all others, which are legal only when [`RunState::next`] asks for them.
    fn admit(&self, event: &Event) -> Result<(), String> {
        self.plan_status.transition_to(self.plan_after(event)).map_err(|illegal| illegal.to_string())?;
        match event {
            // Even after its end, an unknown write can be resolved and a failed run can be resumed.
            Event::Decided { approval, matter: ApprovalSubject::Outcome { call }, decision, .. } => {
                return self.admit_outcome(*approval, *call, decision);
            }
            Event::RunReopened { .. } => return self.admit_reopening(),
            Event::PlanRated { by, .. } => return self.admit_rating(by),
            _ => require(!self.status.is_terminal(), "the run has ended")?,
        }
        if let Event::RunQueued(_) = event {
            return require(self.queued.is_none(), "the request was accepted before");
        }
        require(self.queued.is_some(), "no request was accepted")?;
        match event.area() {
            EventArea::Run => self.admit_run(event),
            EventArea::Question => self.admit_question(event),
            EventArea::Planning => self.admit_planning(event),
            EventArea::Approval => self.admit_approval(event),
            EventArea::Step => self.admit_step(event),
            EventArea::Flow => self.admit_flow(event),
            EventArea::Program => self.admit_program(event),
            EventArea::Summary => self.admit_summary(event),
            EventArea::Call => self.admit_call(event),
            EventArea::Failure => self.admit_failure(event),
            EventArea::Answer => self.admit_answer(event),
        }
    }

    /// The start, the waits and the end of a run, and what is looked up for it and learned from it.
    fn admit_run(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::CancelRequested { .. } | Event::RunFailed { .. } => Ok(()),
            Event::RunCancelled { .. } => require(
                self.asks_for(|a| matches!(a, Action::Record { event: Event::RunCancelled { .. } })),
                "no cancellation was requested, or a write is in flight",
            ),
            Event::RunStarted(_) => require(self.started.is_none(), "it was started before"),
            Event::RunResumed { epoch, .. } => {
                require(*epoch > self.epoch, "a later epoch has taken the run over")
            }
            Event::RunPutAside { copied, .. } => {
                let may_wait = copied.is_some() || self.aside.is_some();
                require(may_wait || self.status != RunStatus::Waiting, "the run waits already")
            }
            Event::RunReopened { .. } | Event::PlanRated { .. } => Err("the run has not ended".to_owned()),
            Event::PlanRecalled(_) => {
                let taken = |a: &Action| matches!(a, Action::Take { .. }) && self.recalled_plan().is_some();
                require(self.asks_for(|a| *a == Action::LookUpPlan || taken(a)), "no plan is looked up now")
            }
            Event::PlanObserved(_) => {
                require(self.template.is_none() && self.is_ending(), "the run does not end now")
            }
            _ => self.is_requested(event),
        }
    }

    /// A timer must be running; everything else about a failure must be due.
    fn admit_failure(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::TimerFired { timer } => {
                require(self.timers().any(|running| running.timer == *timer), "that timer does not run")
            }
            Event::Adapted { change } => self.admit_adaptation(change),
            Event::Voted { .. } => self.admit_vote(event),
            Event::Consultation { .. } => self.admit_consultation(event),
            _ => self.is_requested(event),
        }
    }

    /// The check and the answer must be due.
    fn admit_answer(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::Continuation { round, .. } => self.at(Subject::Continuation { round: *round }),
            Event::Answered { .. } => self.at(Subject::Answer),
            _ => self.is_requested(event),
        }
    }

    /// A consultation ends with what its reply says, or is opened or given up when it is due.
    fn admit_consultation(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::Consultation {
                question: Some(question),
                chosen:
                    Some(chosen @ (ConsultationChoice::Recovery { .. } | ConsultationChoice::Decision { .. })),
                ..
            } => self.admit_choice(event, *question, chosen),
            Event::Consultation {
                subject: ConsultationSubject::Adaptation { .. },
                question: Some(question),
                chosen: None,
                error: None,
                ..
            } => self.admit_unchanged(event, *question),
            Event::Consultation {
                subject: ConsultationSubject::Interpretation { .. },
                question: Some(question),
                error: None,
                ..
            } => self.admit_mapping(event, *question),
            _ => self.is_requested(event),
        }
    }

    /// A plan is rated after its run, by each person once; a later rating replaces the earlier one.
    fn admit_rating(&self, by: &str) -> Result<(), String> {
        require(self.status.is_terminal(), "the run has not ended")?;
        require(!self.plans.is_empty(), "there is no plan to rate")?;
        let has_room = self.ratings.len() < MAX_RATINGS || self.ratings.contains_key(by);
        require(has_room, "the plan has as many ratings as it may have")
    }

    fn admit_reopening(&self) -> Result<(), String> {
        let may = matches!(self.status, RunStatus::Failed | RunStatus::Partial);
        require(may, "only a run that failed or completed in part can be resumed")?;
        require(!self.is_plan_only() && !self.plans.is_empty(), "there is no plan to resume")
    }

    /// Checks that the state machine requests the recording of exactly this event.
    pub(super) fn is_requested(&self, event: &Event) -> Result<(), String> {
        require(self.asks_for(|a| matches!(a, Action::Record { event: e } if e == event)), "it is not due")
    }

    /// A question must be due; its end and the reading of its reply must follow it.
    fn admit_question(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::ModelAsked { call, subject, attempt, fallback, .. } => {
                // Several questions of one `next` may be asked in any order, so ordinals may be out of
                // order and have gaps, but never repeat.
                let highest = self.next_ask() as usize + self.steps.len() + self.voters();
                require(!self.asks.contains_key(call), "the question was asked before")?;
                require((1..=highest).contains(&(*call as usize)), "question ordinals must increase")?;
                let due = |a: &Action| {
                    matches!(a, Action::Ask { subject: s, attempt: n, fallback: f, .. }
                        if s == subject && n == attempt && f == fallback)
                };
                require(self.asks_for(due), "that question is not due")
            }
            Event::ModelFailed { call, usage, .. } if self.is_cut_off(*call) => require(
                self.unsettled_reservations()
                    .any(|(lost, reserved)| lost == *call && reserved.interrupted_attempt().usage == *usage),
                "what the question cost is known",
            ),
            Event::ModelReplied { call, .. } | Event::ModelFailed { call, .. } => require(
                self.asks.get(call).is_some_and(|a| a.status == AskStatus::InFlight),
                "the question is not in flight",
            ),
            Event::ScenesRanked { call, .. } => {
                let due = Action::Read { call: *call, subject: Subject::Ranking };
                require(self.asks_for(|a| *a == due), "there is no ranking to read")
            }
            Event::ReplyRejected { call, .. } => require(
                self.asks_for(|a| matches!(a, Action::Read { call: c, .. } if c == call)),
                "there is no reply to read",
            ),
            _ => self.is_requested(event),
        }
    }

    /// A call must be due, and only one in flight ends, or one that the state machine refuses.
    fn admit_call(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::ToolStarted { call, attempt } => require(
                self.asks_for(|a| *a == Action::Call { call: *call, attempt: *attempt }),
                "the call is not due",
            ),
            Event::ToolCompleted { call, outcome, .. } => {
                match (self.calls.get(call).map(|c| &c.status), outcome) {
                    (Some(CallStatus::InFlight { .. }), _) => Ok(()),
                    (Some(CallStatus::Requested), Outcome::Refused { .. } | Outcome::Ok { .. }) => {
                        let ends = |a: &Action| match a {
                            Action::Record { event: Event::ToolCompleted { call: c, outcome: o, .. } } => {
                                c == call && std::mem::discriminant(o) == std::mem::discriminant(outcome)
                            }
                            _ => false,
                        };
                        require(self.asks_for(ends), "the call is not in flight")
                    }
                    _ => Err("the call is not in flight".to_owned()),
                }
            }
            _ => self.is_requested(event),
        }
    }

    /// A plan must be due, or may be changed, and its structure must be valid.
    fn admit_planning(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::PlanCreated(made) => {
                require(made.version == 1, "only the first plan is created; later ones replan")?;
                self.at(Subject::Plan { version: 1 })?;
                self.admit_plan(made)
            }
            Event::PlanEdited(made) => {
                self.may_change(made.version)?;
                require(made.cause == PlanCause::Edit, "a person's change is an edit")?;
                self.admit_plan(made)
            }
            Event::ModificationAsked { version, .. } => self.may_change(*version),
            Event::PlanRefused { version, .. } => {
                require(self.plans.len() as u32 == *version && !self.has_begun(), "the plan has begun")?;
                let begins = |a: &Action| {
                    matches!(a, Action::Record { event: Event::StepStarted { step } }
                        if self.begins_with_newest_version(*step))
                };
                require(self.asks_for(begins), "the plan does not begin now")
            }
            Event::Replanned(made) if made.patch.is_some() => {
                made.patch.as_ref().map_or(Ok(()), |patch| self.admit_patch(made, patch))
            }
            Event::Replanned(made) => {
                require(made.version > 1, "the first plan is created")?;
                self.at(Subject::Plan { version: made.version })?;
                self.admit_plan(made)
            }
            Event::PlanningFailed { version, .. } => self.at(Subject::Plan { version: *version }),
            _ => self.is_requested(event),
        }
    }

    /// A choice must be the reading of a reply that is due, one of the options, and say truthfully what holds now.
    fn admit_choice(&self, event: &Event, question: u32, chosen: &ConsultationChoice) -> Result<(), String> {
        let Event::Consultation { consultation, subject, how, refused, ask, .. } = event else {
            return Ok(());
        };
        let about = Subject::Consultation { consultation: *consultation, kind: subject.kind() };
        let due = Action::Read { call: question, subject: about };
        let state = self.consultations.get(consultation);
        // Then the state machine counts the votes.
        if state.is_some_and(|state| state.voters > 1) {
            return self.is_requested(event);
        }
        require(self.asks_for(|a| *a == due), "there is no such reply to read")?;
        require(
            state.is_some_and(|state| state.subject == *subject),
            "the consultation is about something else",
        )?;
        let option = chosen.option().filter(|_| chosen.kind() == subject.kind());
        let is_offered = |option| state.is_some_and(|state| state.options.contains(&option));
        require(option.is_some_and(is_offered), "that was not offered")?;
        require(*refused == self.choice_refusal(*consultation, chosen), "that is not what holds now")?;
        require(*how == self.consultation_outcome(question), "the reply did not come about like that")?;
        require(
            ask.is_some() == (option == Some(RecoveryAction::AskUser)),
            "a question comes with that choice alone",
        )
    }

    /// An approval must be due, and only an open one is decided.
    fn admit_approval(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::Decided { approval, matter, decision, .. } => {
                self.admit_decision(*approval, *matter, decision)
            }
            Event::ListChangeAsked { approval, .. } => self.admit_list_change(*approval),
            Event::ApprovalLapsed { approval, read: Some(read), edited, .. } => {
                self.admit_lapse_by_words(event, *approval, *read, edited.as_deref())
            }
            Event::ApprovalLapsed { approval, matter, edited, .. } => {
                self.admit_lapse(*approval, *matter, edited.is_some())
            }
            Event::Released { .. } => {
                require(self.aside.is_some() || self.is_held(), "the plan does not wait for its release")
            }
            Event::ApprovalRequired { matter: ApprovalSubject::Call { .. }, .. } => {
                let requests = |a: &Action| {
                    matches!(
                        a,
                        Action::Record {
                            event: Event::ApprovalRequired { matter: ApprovalSubject::Call { .. }, .. }
                        }
                    )
                };
                let due =
                    self.steps_due().iter().any(|a| matches!(a, Action::Record { event: e } if e == event));
                require(due && self.asks_for(requests), "it is not due")
            }
            // For a run that cannot be continued, this includes writes in flight.
            Event::ApprovalRequired { matter: ApprovalSubject::Outcome { .. }, .. }
                if self.unknown_write_request(true).as_ref() == Some(event) =>
            {
                Ok(())
            }
            _ => self.is_requested(event),
        }
    }

    /// An approval lapses if its subject has changed, and only before that has begun.
    fn admit_lapse(&self, number: u32, matter: ApprovalSubject, edited: bool) -> Result<(), String> {
        let approval = self.approvals.get(&number);
        let call_waits =
            matches!(matter, ApprovalSubject::Call { .. }) && approval.is_some_and(Approval::is_open);
        require(!edited || call_waits, "only a call that waits for approval gets other arguments")?;
        if number == NO_APPROVAL {
            return require(self.is_covered_unasked(matter), "no other approval covers it");
        }
        require(approval.is_some_and(|a| !a.lapsed && a.matter == matter), "there is no such approval")?;
        let refused = approval.is_some_and(|a| matches!(a.decided, Some((Decision::No, _))));
        require(!refused, "a refusal is final")?;
        match matter {
            ApprovalSubject::Plan { version } => {
                require(version == self.plans.len() as u32, "that plan is not in force")?;
                require(!self.has_begun(), "the plan has begun")
            }
            ApprovalSubject::Call { call } => require(
                self.calls.get(&call).is_some_and(|c| c.status == CallStatus::Requested),
                "the call has begun",
            ),
            ApprovalSubject::Outcome { .. } => {
                Err("an approval about the outcome of a write does not lapse".to_owned())
            }
        }
    }

    /// A step's replies, prepared calls and end must be due, and so must its start when a forecast precedes it.
    fn admit_step(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::Forecast { step, tools } => {
                let is_due = |a: &Action| *a == Action::Record { event: Event::StepStarted { step: *step } };
                require(!tools.is_empty(), "it names no tool")?;
                require(self.adapts(), "predefined logic has no part in the run")?;
                require(self.asks_for(is_due), "the step does not begin now")
            }
            Event::SceneReplied { step, call, calls, question, next, .. } => {
                let due = Action::Read { call: *call, subject: Subject::Scene { step: *step } };
                require(self.asks_for(|a| *a == due), "there is no such reply to read")?;
                let first = self.next_call();
                let counted = calls.iter().enumerate().all(|(i, c)| c.call == first + i as u32);
                require(counted, "call ordinals must increase by one")?;
                if next.is_none() {
                    return Ok(());
                }
                require(calls.is_empty() && question.is_none(), "a choice of the next tool comes without calls or a question")?;
                require(self.scene_work(*step).is_some_and(|work| !work.decided), "the scene has made its choice before")
            }
            Event::Prepared { step, calls, .. } => {
                let due = Action::Prepare { step: *step };
                require(self.asks_for(|a| *a == due), "the step's calls are not prepared now")?;
                let first = self.next_call();
                let counted = calls.iter().enumerate().all(|(i, c)| c.call == first + i as u32);
                require(counted, "call ordinals must increase by one")
            }
            Event::StepFailed { step, status: StepStatus::Blocked, .. } => require(
                self.asks_for(|a| {
                    matches!(a, Action::Record { event: Event::StepFailed { step: s, status: StepStatus::Blocked, .. } }
                        if s == step)
                }),
                "the step is not blocked",
            ),
            Event::StepFailed { step, status, .. } => {
                require(status.is_terminal() && *status != StepStatus::Completed, "a step cannot fail with this status")?;
                self.at(Subject::Scene { step: *step })
            }
            Event::StepCompleted { step, .. } => self.at(Subject::Scene { step: *step }),
            _ => self.is_requested(event),
        }
    }

    /// A path must be due and possible, or be what the machine itself records; a node's reply must be due, and so must
    /// the look-up of a path or the run's end.
    fn admit_flow(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::PathRecalled { step, .. } => {
                let due = Action::LookUpPath { step: *step };
                require(self.asks_for(|a| *a == due), "no path is looked up now")
            }
            Event::PathObserved { step, .. } => {
                let work = self.steps.get(step).and_then(StepState::flow);
                let is_open = work.is_some_and(|work| work.planned.is_some() && work.template.is_none());
                require(is_open && self.is_ending(), "the run does not end now, or the step has no path")
            }
            Event::FlowPlanned { step, path, call: Some(call), .. } => {
                let due = Action::Read { call: *call, subject: Subject::Path { step: *step } };
                require(self.asks_for(|a| *a == due), "there is no path to read")?;
                let flow = self.steps.get(step).and_then(|step| self.flow_of(step));
                let problems = flow.map(|flow| flow::path_problems(flow, path, &self.given_to_flow(flow)));
                require(problems.is_some_and(|problems| problems.is_empty()), "the path is not possible")
            }
            Event::NodeReplied { step, call, .. } => {
                let due = Action::Read { call: *call, subject: Subject::Node { step: *step } };
                require(self.asks_for(|a| *a == due), "there is no reply of a node to read")
            }
            _ => self.is_requested(event),
        }
    }

    /// A program must be the meaning of a reply that is due, and an execution must be due.
    fn admit_program(&self, event: &Event) -> Result<(), String> {
        match event {
            Event::ProgramWritten { step, call, .. } => {
                let due = Action::Read { call: *call, subject: Subject::Program { step: *step } };
                require(self.asks_for(|a| *a == due), "there is no program to read")
            }
            Event::ProgramReplied { step, stop, .. } => {
                let due = Action::Execute { step: *step };
                require(self.asks_for(|a| *a == due), "the step's program is not executed now")?;
                self.admit_program_stop(*step, stop)
            }
            _ => self.is_requested(event),
        }
    }

    /// A change of the calls must be due, and concern the next ordinal.
    fn admit_adaptation(&self, change: &Adaptation) -> Result<(), String> {
        match change {
            Adaptation::Substituted { call, requested } => {
                let due = Action::Substitute { call: *call };
                require(self.asks_for(|a| *a == due), "no other call takes its place now")?;
                let effect = self.calls.get(call).map(|original| original.requested.effect);
                require(effect == Some(requested.effect), "what takes its place has another effect")?;
                require(requested.call == self.next_call(), "call ordinals must increase by one")
            }
            Adaptation::Recalled { call, found } => {
                let due = Action::Recall { call: *call };
                require(self.asks_for(|a| *a == due), "no earlier result is looked for now")?;
                let fits = found.as_ref().is_none_or(|found| self.may_recall(*call, found.at));
                require(fits, "the earlier result is too old")
            }
            Adaptation::Interpreted { call, .. } => {
                let due = Action::Interpret { call: *call };
                require(self.asks_for(|a| *a == due), "no mapping is applied now")
            }
        }
    }

    fn admit_plan(&self, made: &PlanMade) -> Result<(), String> {
        let patches = made.cause == PlanCause::Adaptation || made.patch.is_some();
        require(!patches, "only a consultation changes a part of the plan")?;
        let limits = plan::PlanLimits { max_steps: self.settings().max_steps };
        let changes = matches!(made.cause, PlanCause::Feedback | PlanCause::Edit);
        let last = self.last_fixed_step(changes);
        let problems = plan::validate_structure(&made.plan, limits, &self.finished_steps(), last);
        match problems.first() {
            Some(problem) => Err(problem.message.clone()),
            None => Ok(()),
        }
    }

    /// Checks that a person may change the plan in force into version `version` now.
    pub(super) fn may_change(&self, version: u32) -> Result<(), String> {
        require(!self.plans.is_empty(), "there is no plan yet")?;
        require(self.planning.is_none(), "the plan is being changed already")?;
        require(self.cancel.is_none(), "the run is being cancelled")?;
        require(!self.is_patch(self.plans.len() as u32), "a patch is approved or refused as it is")?;
        require(
            self.plan_approval().is_some() && !self.has_begun(),
            "the plan has begun, or does not wait for approval",
        )?;
        require(version == self.plans.len() as u32 + 1, "versions must increase by one")
    }

    fn admit_decision(
        &self,
        number: u32,
        matter: ApprovalSubject,
        decision: &Decision,
    ) -> Result<(), String> {
        require(self.cancel.is_none(), "the run is being cancelled")?;
        let approval = self.approvals.get(&number).filter(|approval| approval.matter == matter);
        require(approval.is_some(), "there is no such approval")?;
        require(approval.is_some_and(|a| a.decided.is_none()), "it was decided before")?;
        require(approval.is_some_and(|a| !a.lapsed), "its subject has changed")?;
        let fits = match matter {
            // The rest of the plan goes on meanwhile, so there is nothing to hold.
            ApprovalSubject::Plan { version } if self.is_patch(version) => {
                matches!(decision, Decision::Yes { hold: false } | Decision::No)
            }
            ApprovalSubject::Plan { .. } => matches!(decision, Decision::Yes { .. } | Decision::No),
            ApprovalSubject::Call { .. } => {
                matches!(decision, Decision::Yes { hold: false } | Decision::No | Decision::Edited { .. })
            }
            ApprovalSubject::Outcome { .. } => false,
        };
        require(fits, "this decision is not possible here")
    }

    fn admit_outcome(&self, number: u32, call: u32, decision: &Decision) -> Result<(), String> {
        let approval = self.approvals.get(&number).filter(|a| a.matter == ApprovalSubject::Outcome { call });
        require(approval.is_some(), "there is no such approval")?;
        require(approval.is_some_and(|a| a.decided.is_none()), "it was decided before")?;
        let write = self.calls.get(&call).filter(|c| c.requested.effect == Effect::Write);
        let unknown =
            matches!(write.map(|c| &c.status), Some(CallStatus::Done { outcome: Outcome::Unknown { .. } }));
        require(unknown, "its outcome is known")?;
        match decision {
            Decision::Done | Decision::NotDone => Ok(()),
            Decision::Again => {
                let undoes = write.is_some_and(|c| c.undoes.is_some());
                require(!undoes, "a compensating call is not retried: say whether it was done")?;
                require(!self.status.is_terminal(), "the run has ended: resume it first")?;
                require(self.cancel.is_none(), "the run is being cancelled")?;
                require(self.answer.is_none(), "the run is about to end: resume it afterwards")
            }
            _ => Err("this decision is not possible here".to_owned()),
        }
    }

    /// Whether something is due for `subject` and nothing is in flight for it: a question, a reading, or
    /// the state machine's own decision.
    fn at(&self, subject: Subject) -> Result<(), String> {
        let here = self.asks_for(|action| match action {
            Action::Ask { subject: s, .. } | Action::Read { subject: s, .. } => *s == subject,
            Action::Record { event } => match event {
                Event::PlanningFailed { version, .. } => subject == Subject::Plan { version: *version },
                Event::Continuation { round, .. } => subject == Subject::Continuation { round: *round },
                Event::Answered { .. } => subject == Subject::Answer,
                Event::StepCompleted { step, .. } => subject == Subject::Scene { step: *step },
                Event::StepFailed { step, status, .. } => {
                    *status != StepStatus::Blocked && subject == Subject::Scene { step: *step }
                }
                _ => false,
            },
            Action::Take { version } => subject == Subject::Plan { version: *version },
            Action::Start
            | Action::LookUpPlan
            | Action::LookUpPath { .. }
            | Action::OutlineDocuments { .. }
            | Action::Prepare { .. }
            | Action::Substitute { .. }
            | Action::Recall { .. }
            | Action::Interpret { .. }
            | Action::Execute { .. }
            | Action::Call { .. } => false,
        });
        require(here, "it is not due")
    }

    /// Whether the run's last event is due.
    fn is_ending(&self) -> bool {
        self.asks_for(|a| matches!(a, Action::Record { event } if event.is_terminal()))
    }

    fn asks_for(&self, what: impl Fn(&Action) -> bool) -> bool {
        self.next().iter().any(what)
    }
}

fn require(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}
